//! Shared memory keeps the contract of the seam.

use std::sync::Arc;

use tsuji_conformance::World;
use tsuji_transport_shm::{SharedMemory, ShmConfig};

tsuji_conformance::suite!(shm, || World::between(|id, bells| {
    let config = ShmConfig { memory_bytes_max: 256 << 20, ..ShmConfig::default() };
    Arc::new(
        SharedMemory::create(id, &tsuji_conformance::life(), bells, &config)
            .expect("shared memory"),
    )
}));
