//! The robot's page for browsers: the bridge of the command, as a process beside the robot.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tsuji_platform::child::{self, Signal};
use tsuji_platform::subprocess::Subprocess;

use crate::Result;

/// The process that serves it, to this host alone. It is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Page {
    command: PathBuf,
    process: Subprocess,
    port: u16,
    address: Option<String>,
}

impl Page {
    /// Starts it by `command`, which is that of this robot.
    pub(crate) fn start(command: &Path, port: u16) -> Result<Self> {
        let process = bridge(command, port)?;
        Ok(Self { command: command.to_owned(), process, port, address: None })
    }

    /// Where a browser finds it, once it is served.
    pub(crate) fn address(&mut self) -> Option<&str> {
        if self.address.is_none() {
            let line = self.process.output.try_next()?;
            let said: Value = serde_json::from_str(&line).ok()?;
            let port = said["listening"][0]["port"].as_u64()?;
            self.address = Some(format!("http://127.0.0.1:{port}/"));
        }
        self.address.as_deref()
    }

    /// What is wrong if it has ended without being told to. One that ended before it served, as where its port is taken, is
    /// started again with any port that is free.
    pub(crate) fn check(&mut self) -> Option<String> {
        let ended = self.process.try_wait().ok()??;
        if self.port != 0 && self.address.is_none() {
            self.port = 0;
            match bridge(&self.command, self.port) {
                Ok(process) => self.process = process,
                Err(error) => return Some(error.to_string()),
            }
            return None;
        }
        let why = format!("its process ({}) has ended: {ended}", self.process.id());
        Some(self.process.with_errors(&why))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.process.signal(Signal::Terminate);
    }
}

fn bridge(command: &Path, port: u16) -> Result<Subprocess> {
    let mut bridge = Command::new(command);
    bridge
        .args(["bridge", "--json", "--address", "127.0.0.1", "--port", &port.to_string()])
        // What a user has for another bridge is not for this one.
        .env_remove("TSUJI_BRIDGE_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    child::bind(&mut bridge);
    Ok(Subprocess::start(&mut bridge, END_MAX)?)
}

/// How long it may take to end once it is told to.
const END_MAX: Duration = Duration::from_secs(5);
