//! The contract of the seam, over the example transport in C.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tsuji_conformance::World;
use tsuji_core::Peers;
use tsuji_engine::About;
use tsuji_transport_plugin::{Plugin, PluginConfig, PluginEngine};

/// Two participants in a domain that no other world of this process has.
fn over_the_example() -> World {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    let library = LIBRARY.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
        std::fs::create_dir_all(&folder).expect("a folder for the library");
        tsuji_conformance::example_transport(&folder)
    });
    let plugin = Plugin::load(library, "example").expect("the example is a transport");
    let about = About { peers: Peers::TSUJI, ..plugin.about().clone() };
    let domain = WORLDS.fetch_add(1, Ordering::Relaxed) % 233;
    let config = PluginConfig {
        host_only: true,
        settings: vec![("folder".to_owned(), sockets())],
        ..PluginConfig::new(about, library.clone(), domain)
    };
    World::settled(move |id, _| {
        let made = PluginEngine::create(id, config.clone());
        std::sync::Arc::new(made.expect("the domain is in range"))
    })
}

/// A folder of this process for the sockets, whose path is short enough for them.
fn sockets() -> String {
    let folder = std::env::temp_dir().join(format!("tsuji-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for sockets");
    folder.to_string_lossy().into_owned()
}

tsuji_conformance::suite!(example, over_the_example);
