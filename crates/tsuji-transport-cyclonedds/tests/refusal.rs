//! What cannot be joined says why.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use tsuji_conformance::{Keep, endpoint};
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::Bells;
use tsuji_transport::{ErrorKind, PeerId, Transport};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds};

fn open(config: &CycloneConfig) -> tsuji_transport::Result<()> {
    let bells = Bells::create(&Backing::Anonymous).unwrap();
    let endpoint = endpoint("t", Keep::Last(10));
    let transport = CycloneDds::create(PeerId([1; 16]), config)?;
    let cell = Arc::new(bells.claim_cell().unwrap());
    loop {
        match transport.open_writer(&endpoint, Arc::clone(&cell)) {
            // Names are being asked for.
            Err(error) if error.kind() == ErrorKind::Busy => std::thread::yield_now(),
            opened => return opened.map(drop),
        }
    }
}

fn local() -> CycloneConfig {
    CycloneConfig::on_loopback(7)
}

#[test]
fn an_interface_that_does_not_exist_is_named() {
    let config = CycloneConfig { interfaces: vec!["nowhere0".to_owned()], ..local() };
    let error = open(&config).unwrap_err();
    assert!(error.to_string().contains("nowhere0"), "{error}");
    open(&local()).unwrap();
}

#[test]
fn a_domain_beyond_the_last_is_refused_with_what_is_allowed() {
    let error = open(&CycloneConfig { domain: 233, ..local() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("at most 232"), "{error}");
}

#[test]
fn what_is_written_in_xml_stays_a_value() {
    let strange = r#"a"b<c>&amp;"#;
    let error = open(&CycloneConfig { interfaces: vec![strange.to_owned()], ..local() });
    assert!(error.unwrap_err().to_string().contains(strange));
    let error = open(&CycloneConfig { peers: vec![strange.to_owned()], ..local() });
    assert!(error.unwrap_err().to_string().contains(strange));
}

#[test]
fn user_data_that_the_engine_cannot_write_are_refused() {
    let config = CycloneConfig { user_data: vec![b'x'; 60_001], ..local() };
    let error = open(&config).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("60001 bytes; at most 60000"), "{error}");
}
