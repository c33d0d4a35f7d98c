//! The shared library, `libtsuji_transport_zenoh.so`.
#![allow(unsafe_code, reason = "the name of the function that it exports is its own")]

use std::env;
use std::ffi::CStr;

use tsuji_core::{Peers, Scopes};
use tsuji_engine::{Engine, Participant};
use tsuji_engine_abi::{Asked, Library};
use tsuji_transport::Result;

use crate::config::{URI, ZenohConfig};
use crate::{PEERS, SAMPLE_BYTES_MAX, SCOPES, Zenoh};

const VERSION: &CStr = {
    let text = concat!(env!("CARGO_PKG_VERSION"), " over Zenoh 1.10.2\0");
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(it) => it,
        Err(_) => panic!("a NUL in a version"),
    }
};

struct Exported;

impl Library for Exported {
    const NAME: &'static CStr = c"zenoh";
    const VERSION: &'static CStr = VERSION;
    const SCOPES: Scopes = SCOPES;
    const PEERS: Peers = PEERS;
    const SAMPLE_BYTES_MAX: u64 = SAMPLE_BYTES_MAX;
    const RELATES: bool = true;

    fn join(asked: &Asked) -> Result<Box<dyn Participant>> {
        let uri = env::var(URI).ok().filter(|it| !it.is_empty());
        Zenoh::new(ZenohConfig::read(asked, uri.as_deref())?)?.join()
    }
}

tsuji_engine_abi::export!(Exported);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_which_zenoh_it_is_over() {
        let lock = include_str!("../Cargo.lock");
        let (_, behind) = lock.split_once("name = \"zenoh\"\nversion = \"").unwrap();
        let (zenoh, _) = behind.split_once('"').unwrap();
        let expect = format!("{} over Zenoh {zenoh}", env!("CARGO_PKG_VERSION"));
        assert_eq!(Exported::VERSION.to_str().unwrap(), expect);
    }
}
