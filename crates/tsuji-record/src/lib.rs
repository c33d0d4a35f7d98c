//! Recordings of topics as MCAP: [`Recorder`] writes them, [`Recording`] reads them, [`Player`] plays them, and with
//! [`RecordingWriter`] a program writes one message by message.
//!
//! This crate takes and gives messages as serialised bytes, through the public API of `tsuji`; it chooses no transport,
//! looks into no message and prints nothing.
//!
//! Without the feature `node` it needs no transport and has [`Recording`] alone, as for fuzzing, or with the feature `write`
//! [`RecordingWriter`] too.
//!
//! # The file
//! MCAP of the profile `ros2`: messages in `cdr`, schemas in `ros2msg` with all that they use, and of each topic the QoS
//! that was offered and the hash of its type, as rosbag2 writes them. The log time is when a message was received, the
//! publish time when it was published. A metadata record `tsuji` at the end counts what was received and lost.
//! A chunk is ended half a second after its first message at the latest, so that a recorder that is killed has lost no more
//! than the last second.
//!
//! # Limits
//! [`TOPICS_MAX`] topics and [`DEFINITIONS_BYTES_MAX`] of their definitions a recording, [`OFFERS_MAX`] offers a topic,
//! [`DEFINITION_BYTES_MAX`] a definition, [`RECORD_BYTES_MAX`] a record and [`CHUNK_BYTES_MAX`] an unpacked chunk or the
//! unpacked messages of one that are read; what goes beyond is refused or left out.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod chunk;
pub use chunk::CHUNK_BYTES_MAX;

mod error;
pub use error::{Error, ErrorKind, Result};

mod fields;

mod file;

#[cfg(feature = "node")]
mod filter;
#[cfg(feature = "node")]
pub use filter::{NameRegex, TopicFilter};

mod list;

mod message;
pub use message::{KEPT_TIMES_MAX, RecordedMessage};

#[cfg_attr(not(feature = "node"), expect(dead_code, reason = "only what is read is looked at"))]
mod offered;
pub use offered::{Layout, OFFERS_MAX, qos_overrides};

#[cfg(feature = "node")]
mod output;
#[cfg(feature = "node")]
pub use output::Split;

#[cfg(feature = "node")]
mod played_clock;
#[cfg(feature = "node")]
pub use played_clock::CLOCK_HZ_MAX;

#[cfg(feature = "node")]
mod player;
#[cfg(feature = "node")]
pub use player::{ControlChange, Controls, PlayOptions, Played, Player, Position, Remap};

mod read;
pub use read::{
    DEFINITION_BYTES_MAX, DEFINITIONS_BYTES_MAX, Damage, Messages, RECORD_BYTES_MAX, RecordedTopic,
    Recording, Summary, TOPICS_MAX,
};

#[cfg(feature = "node")]
mod recorder;
#[cfg(feature = "node")]
pub use recorder::{Progress, RecordOptions, Recorder, TopicCounts};

mod schema;

mod span;

#[cfg(feature = "write")]
mod write;
#[cfg(feature = "write")]
pub use write::Compression;

#[cfg(feature = "write")]
mod writer;
#[cfg(feature = "write")]
pub use writer::RecordingWriter;
