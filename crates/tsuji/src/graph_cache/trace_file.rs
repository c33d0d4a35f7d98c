//! Writes what the core is told of flows, asks and decides into the file that `TSUJI_TRACE` names, so that it can be done
//! again elsewhere: an [`Entry`] a line, as JSON.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use tsuji_core::Policy;
use tsuji_core::flows::trace::Entry;
use tsuji_core::flows::{Action, WireEngines};
use tsuji_transport::deferred::told;

/// A trace that is being written.
pub(super) struct TraceFile {
    path: PathBuf,
    out: BufWriter<File>,
    bytes: u64,
}

impl TraceFile {
    /// The trace of a table of flows that is made now, if the environment asks for it.
    pub(super) fn begin(policy: &Arc<Policy>, engines: Option<&WireEngines>) -> Option<Self> {
        let asked = std::env::var_os(SETTING).filter(|it| !it.is_empty())?;
        let begun = create(&asked).and_then(|(path, file)| {
            let mut trace = Self { path, out: BufWriter::new(file), bytes: 0 };
            let (policy, engines) = (Arc::clone(policy), engines.cloned());
            trace.write(&Entry::Begun { policy, engines })?;
            Ok(trace)
        });
        match begun {
            Ok(trace) => {
                told::info!(path = %trace.path.display(), "flows are traced");
                Some(trace)
            }
            Err(error) => {
                let path = Path::new(&asked).display();
                told::warn!(%path, %error, "{SETTING}: flows are not traced");
                None
            }
        }
    }

    /// Adds an entry. Answers `false` where the trace ends, having said so.
    pub(super) fn add(&mut self, entry: &Entry) -> bool {
        let written = self.write(entry);
        if let Err(error) = &written {
            let path = self.path.display();
            told::warn!(%path, %error, "{SETTING}: the trace ends here");
        }
        written.is_ok()
    }

    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.bytes += line.len() as u64;
        if BYTES_MAX < self.bytes {
            return Err(io::Error::other(format!(
                "it has {BYTES_MAX} bytes, the most it may have"
            )));
        }
        self.out.write_all(&line)?;
        let is_last = match entry {
            // What follows may be the end of the process: an engine is called, or nothing is to be done for a while.
            Entry::Polled { action, .. } => action.as_ref().is_none_or(Action::wants_outcome),
            Entry::Begun { .. } => true,
            Entry::Event(_) => false,
        };
        if is_last {
            self.out.flush()?;
        }
        Ok(())
    }
}

/// Creates the file that is asked for with the process's number behind it, as all processes of a system may have the same
/// environment, and a second number where one process has several tables.
fn create(asked: &OsStr) -> io::Result<(PathBuf, File)> {
    let mut last = None;
    for number in 1..=FILES_MAX {
        let mut path = OsString::from(asked);
        path.push(format!(".{}", process::id()));
        if 1 < number {
            path.push(format!(".{number}"));
        }
        // It names topics, which others need not know.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path.into(), file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
}

const SETTING: &str = "TSUJI_TRACE";
/// The largest trace; what comes later is not in it.
const BYTES_MAX: u64 = 1 << 30;
/// Tables of one process that are traced.
const FILES_MAX: u32 = 1000;
