//! What cannot be used says why, and nothing of it is called.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tsuji_conformance::{Keep, endpoint};
use tsuji_core::{Peers, Scopes, TransportId};
use tsuji_engine::About;
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::Bells;
use tsuji_transport::wire::Relates;
use tsuji_transport::{ErrorKind, PeerId, Transport};
use tsuji_transport_plugin::{Plugin, PluginConfig, PluginEngine, file_name, folders, locate};

/// A folder for libraries; it stays, as all that is built.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refusal");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A library of `refusal/lying.c`.
fn lying(file: &str, words: &[&str]) -> PathBuf {
    let out = folder().join(format!("{file}.so"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refusal/lying.c");
    tsuji_conformance::compile(
        &source,
        &out,
        &[&["-shared", "-fPIC", "-Wno-unused"], words].concat(),
    );
    out
}

fn refused(file: &str, words: &[&str], expect: &str) {
    let path = lying(file, words);
    let error = Plugin::load(&path, "lying").map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let text = error.to_string();
    assert!(text.contains(expect), "{text}: {expect:?} is not in it");
    assert!(text.contains(&*path.to_string_lossy()), "{text}: it does not say where");
}

#[test]
fn an_older_a_newer_or_a_lying_table_is_refused() {
    refused("older", &["-DABI=0"], "version 0 of the ABI, older than that of this build, 1");
    refused("newer", &["-DABI=2"], "version 2 of the ABI, newer than that of this build, 1");
    refused("shorter", &["-DSIZE=64"], "its table has 64 bytes");
    refused("longer", &["-DSIZE=4096"], "its table has 4096 bytes");
    refused("hole", &["-DJOIN=NULL"], "function 1 of 21 in its table is null");
    refused("end", &["-DSHORT"], "function 21 of 21 in its table is null");
    refused("nobody", &["-DNAME=NULL"], "no name");
    refused(
        "other",
        &["-DNAME=\"other\""],
        "it is the transport \"other\"; allowed there: \"lying\"",
    );
    refused("nowhere", &["-DSCOPES=0"], "its scopes are 0x0");
    refused("everywhere", &["-DSCOPES=7"], "its scopes are 0x7");
    refused("everybody", &["-DPEERS=32"], "its peers are 0x20");
    refused("everything", &["-DFEATURES=2"], "its features are 0x2");
    refused("nothing", &["-DSAMPLE_BYTES_MAX=3"], "its largest sample has 3 bytes");
    refused("none", &["-DANSWER=NULL"], "it answers no table");
    let odd = "-DANSWER=(const struct tsuji_transport *) ((const char *) &table + 1)";
    refused("odd", &[odd], "its table is not aligned");
    refused("mute", &["-DSYMBOL=something_else"], "no transport");
}

#[test]
fn what_is_no_library_is_refused() {
    let path = folder().join(file_name("text"));
    std::fs::write(&path, "not a library").unwrap();
    let error = Plugin::load(&path, "text").map(drop).unwrap_err();
    assert!(error.to_string().contains("text.so"), "{error}");
    // What it is linked with is not there.
    let error =
        Plugin::load(&lying("unresolved", &["-DELSEWHERE"]), "lying").map(drop).unwrap_err();
    assert!(error.to_string().contains("undefined symbol: somewhere_else"), "{error}");
    let error = Plugin::load(Path::new("/nowhere/lib.so"), "x").map(drop).unwrap_err();
    assert!(error.to_string().contains("/nowhere/lib.so"), "{error}");
    let error = locate(&file_name("not_there"), &folders()).unwrap_err();
    assert!(error.contains("TSUJI_TRANSPORT_PATH"), "{error}");
}

fn config(path: PathBuf) -> PluginConfig {
    let about = About {
        id: TransportId::new("lying"),
        scopes: Scopes { intra: false, local: true, remote: false },
        peers: Peers::TSUJI,
        sample_bytes_max: 100,
        relates: Relates::Never,
    };
    PluginConfig::new(about, path, 0)
}

fn open(config: PluginConfig) -> tsuji_transport::Error {
    let bells = Bells::create(&Backing::Anonymous).unwrap();
    let endpoint = endpoint("t", Keep::Last(10));
    let transport = PluginEngine::create(PeerId([1; 16]), config).unwrap();
    transport.open_writer(&endpoint, Arc::new(bells.claim_cell().unwrap())).map(drop).unwrap_err()
}

#[test]
fn what_a_plugin_says_against_joining_is_told() {
    let error = open(config(lying("no", &[])));
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("lying: there is nothing to join"), "{error}");
    let error = open(config(lying("yes", &["-DANSWERS_OK"])));
    assert!(error.to_string().contains("lying answers nothing"), "{error}");
}

#[test]
fn a_plugin_that_is_not_what_was_said_is_refused() {
    let mut config = config(lying("another", &["-DSAMPLE_BYTES_MAX=99"]));
    let error = open(config.clone());
    assert!(error.to_string().contains("sample_bytes_max: 99"), "{error}");
    config.about.sample_bytes_max = 99;
    assert_eq!(open(config).kind(), ErrorKind::Unsupported);
}

#[test]
fn nothing_is_loaded_before_it_is_needed() {
    let path = folder().join("not there yet.so");
    let transport = PluginEngine::create(PeerId([1; 16]), config(path)).unwrap();
    assert_eq!(transport.id().as_str(), "lying");
    assert!(transport.capability().scopes.local);
}
