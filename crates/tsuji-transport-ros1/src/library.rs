//! The shared library, `libtsuji_transport_ros1.so`.
#![allow(unsafe_code, reason = "the name of the function that it exports is its own")]

use std::ffi::CStr;

use tsuji_core::{Peers, Scopes};
use tsuji_engine::Participant;
use tsuji_engine_abi::{Asked, Library};
use tsuji_transport::Result;

use crate::config::Ros1Config;
use crate::{PEERS, SAMPLE_BYTES_MAX, SCOPES, participant};

const VERSION: &CStr = {
    let text = concat!(env!("CARGO_PKG_VERSION"), " over TCPROS\0");
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(it) => it,
        Err(_) => panic!("a NUL in a version"),
    }
};

struct Exported;

impl Library for Exported {
    const NAME: &'static CStr = c"ros1";
    const VERSION: &'static CStr = VERSION;
    const SCOPES: Scopes = SCOPES;
    const PEERS: Peers = PEERS;
    const SAMPLE_BYTES_MAX: u64 = SAMPLE_BYTES_MAX;
    const RELATES: bool = true;

    fn join(asked: &Asked) -> Result<Box<dyn Participant>> {
        Ok(Box::new(participant::Participant::join(&Ros1Config::read(asked)?)?))
    }
}

tsuji_engine_abi::export!(Exported);
