//! The flags of `ros2 bag` that have no place here: what takes it, or that nothing need to.

use std::path::PathBuf;

use crate::failure::Usage;

/// How files are written, of which there is one way.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Storage {
    /// How files are written: mcap
    #[arg(short, long, hide = true, value_name = "ID")]
    storage: Option<String>,
    /// Not supported
    #[arg(long, hide = true, value_name = "FILE")]
    storage_config_file: Option<PathBuf>,
}

impl Storage {
    /// Refuses what is not there.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if let Some(other) = self.storage.as_deref().filter(|it| !matches!(*it, "" | "mcap")) {
            return Err(refusal(&format!(
                "--storage {other}: recordings are of mcap here; `ros2 bag convert` makes it of others"
            )));
        }
        if self.storage_config_file.is_some() {
            return Err(refusal(
                "--storage-config-file: there are no settings but --compression zstd and --compression lz4",
            ));
        }
        Ok(())
    }
}

/// The same flags for recording and playing, which change nothing here.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NoEffect {
    /// No effect: a recorder has no keys; those of a player are left alone
    #[arg(long, hide = true)]
    pub(crate) disable_keyboard_controls: bool,
    /// No effect: what is to be told is told
    #[arg(long, hide = true, value_name = "LEVEL", value_parser = ["debug", "info", "warn", "error", "fatal"])]
    log_level: Option<String>,
}

/// The flags of `ros2 bag record` alone.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RecordOthers {
    /// How messages are serialised: cdr
    #[arg(long, hide = true, value_name = "FORMAT")]
    serialization_format: Option<String>,
    /// Settings of the storage by one name: none, fastwrite, zstd_fast or zstd_small
    #[arg(long, hide = true, value_name = "NAME", value_parser = ["none", "fastwrite", "zstd_fast", "zstd_small", ""])]
    storage_preset_profile: Option<String>,
    /// Not supported but for none
    #[arg(long, hide = true, value_name = "MODE")]
    compression_mode: Option<String>,
    /// Not supported
    #[arg(long, hide = true, value_name = "FORMAT")]
    compression_format: Option<String>,
    /// No effect: chunks are packed as they are written
    #[arg(long, hide = true, value_name = "N")]
    compression_queue_size: Option<i64>,
    /// No effect: one thread writes
    #[arg(long, hide = true, value_name = "N")]
    compression_threads: Option<i64>,
    /// No effect: one thread writes
    #[arg(long, hide = true, value_name = "N", allow_negative_numbers = true)]
    compression_threads_priority: Option<i64>,
    /// No effect: the queues of the topics are the only ones
    #[arg(long, hide = true, value_name = "BYTES")]
    max_cache_size: Option<u64>,
    /// No effect: the queues of the topics are the only ones
    #[arg(long, hide = true, value_name = "SECONDS")]
    max_cache_duration: Option<f64>,
    /// No effect: topics are joined as they appear
    #[arg(short = 'p', long, hide = true, value_name = "MS")]
    polling_interval: Option<u64>,
    /// Not supported
    #[arg(long, hide = true)]
    start_paused: bool,
    /// Not supported
    #[arg(long, hide = true)]
    use_sim_time: bool,
    /// Not supported
    #[arg(long, hide = true)]
    snapshot_mode: bool,
    /// Not supported
    #[arg(long, hide = true, value_name = "N")]
    max_bag_files: Option<u64>,
    /// Not supported
    #[arg(long, hide = true, value_name = "TOPIC", num_args = 1..)]
    repeat_transient_local: Vec<String>,
    /// Not supported
    #[arg(long, hide = true)]
    repeat_all_transient_local: bool,
    /// Not supported
    #[arg(long, hide = true, value_name = "FILE")]
    static_topics_path: Option<PathBuf>,
}

impl RecordOthers {
    /// Refuses what is not there, with what takes its place.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let format = self.serialization_format.as_deref().unwrap_or_default();
        let mode = self.compression_mode.as_deref().unwrap_or_default();
        let packs = !matches!(mode, "" | "none");
        let with_format = self.compression_format.as_ref().is_some_and(|it| !it.is_empty());
        let refused = [
            (
                !matches!(format, "" | "cdr"),
                "--serialization-format: messages are recorded as they come, which is cdr",
            ),
            (
                packs || with_format,
                "--compression-mode, --compression-format: chunks are packed, which every reader of MCAP unpacks; \
                 --compression zstd, --compression lz4",
            ),
            (
                self.start_paused,
                "--start-paused: a recording begins at once; start it when it is to begin",
            ),
            (
                self.use_sim_time,
                "--use-sim-time: messages have the time of the wall clock; record /clock too, and it is played",
            ),
            (
                self.snapshot_mode,
                "--snapshot-mode: not here; --max-bag-duration makes files of which old ones can be removed",
            ),
            (
                self.max_bag_files.is_some_and(|it| it != 0),
                "--max-bag-files: files are not removed here; those of before can be removed while it records",
            ),
            (
                !self.repeat_transient_local.is_empty() || self.repeat_all_transient_local,
                "--repeat-transient-local, --repeat-all-transient-local: a folder is played as one, so what its first file latches is there; \
                 not written again to each file",
            ),
            (
                self.static_topics_path.is_some(),
                "--static-topics-path: not here; --include-unpublished-topics has topics without publishers too",
            ),
        ];
        match refused.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, text)) => Err(refusal(text)),
            None => Ok(()),
        }
    }

    /// How chunks are packed in the preset.
    pub(crate) fn compression_of_preset(&self) -> tsuji_record::Compression {
        match self.storage_preset_profile.as_deref() {
            Some("zstd_fast" | "zstd_small") => tsuji_record::Compression::Zstd,
            _ => tsuji_record::Compression::None,
        }
    }
}

/// The error of a flag that is known and not there.
pub(crate) fn refusal(text: &str) -> anyhow::Error {
    Usage(text.to_owned()).into()
}
