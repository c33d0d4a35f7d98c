//! The contract of the seam, over the loopback interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tsuji_conformance::World;
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds};

/// Two participants in a domain that no other world of this process has. Beyond 101 the ports of a
/// domain are among those that the system gives to anybody.
fn over_loopback() -> World {
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    let number = WORLDS.fetch_add(1, Ordering::Relaxed);
    let config = CycloneConfig::on_loopback(10 + number % 90);
    World::settled(move |id, _| Arc::new(CycloneDds::create(id, &config).expect("a participant")))
}

tsuji_conformance::suite!(cyclonedds, over_loopback);
