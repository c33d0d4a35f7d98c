//! Turns the text of a policy file into a policy, and a policy back into text.
//!
//! This crate reads no file and decides no route: it is handed a text and a name for messages, and
//! hands on a [`Policy`] of `tsuji-core`, which cannot be wrong.
//!
//! # The file
//! ```xml
//! <tsuji prefer="latency" interop="rtps" engine="cyclonedds" builtin="on">
//!   <size line="64KiB"/>
//!   <topic pattern="/camera/**" size="large" expected="900KiB"/>
//!   <rule name="pictures" priority="10" size="large" scope="local" peer="tsuji"
//!         topic="/camera/**" use="shm cyclonedds"/>
//!   <forbid name="pictures stay here" topic="/camera/**" scope="remote" use="cyclonedds zenoh"/>
//!   <robot name="r2" shared="/clock /fleet/**"/>
//!   <export topic="/camera/**" rate="5"/>
//!   <transport name="shm"><set key="memory_bytes_max" value="1GiB"/></transport>
//!   <transport name="radio" plugin="libtsuji_radio.so"/>
//! </tsuji>
//! ```
//! | element | attributes |
//! |---|---|
//! | `tsuji` | `prefer`: latency, memory. `interop`: some of rtps, zenoh, ros1; or none. `engine`: cyclonedds, fastdds, both. `builtin`: on, off (then the built-in default is not below this file) |
//! | `size` | `line`: samples of so many bytes and more are large |
//! | `topic` | `pattern`; `size`: small, large; `expected`: bytes of a typical sample. Used until samples show their size; the first pattern that matches counts |
//! | `rule` | `use`: transports, the best first. Conditions: `size`, `scope` (several of intra, local, remote), `reliability`, `peer` (several of tsuji, foreign, cyclone, fast, zenoh, ros1, other), `topic`, `prefer`. `name`, and `priority`: higher ones are tried first, 0 if not given |
//! | `forbid` | as `rule`, without `priority`: flows for which the transports in `use` are never taken |
//! | `transport` | `name`; `plugin`: the library that brings a transport that tsuji does not know |
//! | `robot` | `name`: the robot that processes belong to, as `r2`. `shared`: patterns of topics that have one name on all robots. Outside of the robot all other topics of it are called by its name and theirs |
//! | `export` | `topic`: topics and services that leave the host and the robot. Without any, all do. `rate`: how often at most samples of a topic leave, in Hz; the first `export` that a topic fits counts |
//! | `set` | `key`, `value`, in a `transport`; what they mean is the transport's affair |
//!
//! Conditions must all hold; a rule without any is for every flow. In `pattern` and `topic`, `*`
//! stays within a token and `**` crosses tokens. Sizes have a unit: `921600` or `921600B`, `900KiB`,
//! `900KB`, `1MiB`, `1MB`, `1GiB`, `1GB`. Whatever else is written is refused, with its place and
//! what is allowed; all errors of a file are told, not only the first.
//!
//! A file lies over the built-in default: its rules come before those of the same priority there, and
//! a rule of the same name replaces the one there.
//!
//! # Limits
//! [`FILE_BYTES_MAX`], [`RULES_MAX`], [`ELEMENTS_MAX`], [`ATTRIBUTES_MAX`], [`DEPTH_MAX`],
//! [`ERRORS_MAX`]. A document type is refused, so there are no entities to expand.
#![forbid(unsafe_code)]

use tsuji_core::Policy;

mod builtin;
pub use builtin::{BUILTIN_NAME, BUILTIN_TEXT, builtin_default};

pub use tsuji_xml::{ERRORS_MAX, XmlError as PolicyError, XmlErrors as PolicyErrors};

mod file;
pub use file::{ATTRIBUTES_MAX, DEPTH_MAX, ELEMENTS_MAX, FILE_BYTES_MAX, PolicyFile, RULES_MAX};

mod show;
pub use show::{Row, show};

pub use tsuji_xml::spelling;

pub mod units;

mod write;
pub use write::to_xml;

/// The policy of a user's file over the built-in default.
///
/// `file` is what messages call the file, and `known` the transports that may be named without a
/// declaration: all that tsuji knows of, not only those of this build, so that one file serves
/// every build.
pub fn load(file: &str, bytes: &[u8], known: &[&str]) -> Result<Policy, PolicyErrors> {
    PolicyFile::parse(file, bytes, known)?.resolve()
}
