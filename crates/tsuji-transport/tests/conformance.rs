//! The transports of this crate keep the contract of the seam; so does the faulty one while it is
//! without fault.

use std::sync::Arc;

use tsuji_conformance::World;
use tsuji_transport::faulty::Faulty;
use tsuji_transport::inproc::InProcess;

tsuji_conformance::suite!(inproc, || World::shared(InProcess::new()));

tsuji_conformance::suite!(faulty, || World::shared(Faulty::new(Arc::new(InProcess::new()), 1)));
