//! Shared memory keeps the contract of the seam.

use std::sync::Arc;

use tsuji_conformance::World;
use tsuji_platform::life::Life;
use tsuji_transport_shm::{SharedMemory, ShmConfig};

tsuji_conformance::suite!(shm, || World::between(|id, bells| {
    let config = ShmConfig { memory_bytes_max: 256 << 20, ..ShmConfig::default() };
    Arc::new(
        SharedMemory::create(id, &Arc::new(Life::begin().expect("a pipe")), bells, &config)
            .expect("shared memory"),
    )
}));
