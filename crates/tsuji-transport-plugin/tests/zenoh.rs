//! The contract of the seam, over Zenoh. Its library is built by `scripts/zenoh`, and looked for where all
//! plug-ins are.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tsuji_conformance::{World, cases};
use tsuji_transport_plugin::{Plugin, PluginConfig, PluginEngine, file_name, folders, locate};

/// Two participants in a domain that no other world of this process has, without a router.
fn over_loopback() -> World {
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    let path = locate(&file_name("zenoh"), &folders()).expect("the library was built").path;
    let plugin = Plugin::load(&path, "zenoh").expect("the library is a transport");
    let domain = WORLDS.fetch_add(1, Ordering::Relaxed) % 233;
    let config =
        PluginConfig { host_only: true, ..PluginConfig::new(plugin.about().clone(), path, domain) };
    World::settled(move |id, _| {
        Arc::new(PluginEngine::create(id, config.clone()).expect("the domain is in range"))
    })
}

tsuji_conformance::suite!(zenoh, over_loopback);

#[test]
fn a_forked_child_of_zenoh_is_refused() {
    cases::fork::a_forked_child_is_refused(over_loopback(), in_child);
}

/// What `body` answers in a forked child; false when the child panics or is killed.
fn in_child(body: &mut dyn FnMut() -> bool) -> bool {
    // SAFETY: `body` takes no lock that another thread of this test binary can hold but the allocator's.
    unsafe { tsuji_platform::fork::run_in_child(body) }
}
