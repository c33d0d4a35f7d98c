//! The policy file of a context: read when the context is made, and again when the file changes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tsuji_core::{Policy, TransportSettings};
use tsuji_platform::ordered::Mutex;
use tsuji_policy::FILE_BYTES_MAX;

use crate::{Error, Result, registry};
use tsuji_transport::deferred::{self, Locked, told};

/// Where the policy of a participant comes from.
#[derive(Debug)]
pub(crate) struct PolicyFile {
    /// As the user wrote it, which is how messages call it.
    name: String,
    path: PathBuf,
    /// It can be read again: a pipe cannot.
    is_regular: bool,
    told: Mutex<Told>,
}

/// What was said of the file, so that it is said once.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// It was bad when it was read last, and may just be written.
    in_doubt: bool,
    trouble: Option<String>,
    restart: Vec<String>,
}

impl PolicyFile {
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |error| Error::invalid(format!("policy file {name}")).because(error);
        let is_regular = path.metadata().map_err(failed)?.is_file();
        let path = std::path::absolute(path).map_err(failed)?;
        Ok(Self { name, path, is_regular, told: Mutex::default() })
    }

    /// The policy that the file says now.
    pub(crate) fn load(&self) -> Result<Policy> {
        let bytes = self
            .read()
            .map_err(|error| Error::invalid(format!("policy file {}", self.name)).because(error))?;
        let refused = |errors: tsuji_policy::PolicyErrors| Error::invalid(errors.to_string());
        let file = tsuji_policy::PolicyFile::parse(&self.name, &bytes, registry::KNOWN);
        let file = file.map_err(refused)?;
        file.warnings().iter().for_each(|it| told::warn!("{it}"));
        file.resolve().map_err(refused)
    }

    /// The policy that the file says now, if a context could start with it.
    pub(crate) fn load_again(&self) -> Result<Policy> {
        // Whoever opened a pipe would wait until somebody writes.
        if self.path.metadata().is_ok_and(|it| !it.is_file()) {
            return Err(Error::invalid(format!("policy file {}: it is no file", self.name)));
        }
        let policy = self.load()?;
        registry::check_settings(&policy)?;
        Ok(policy)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One byte more, so that it is seen to be too large.
        File::open(&self.path)?.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Where the file is, if it can change.
    pub(crate) fn followed(&self) -> Option<&Path> {
        self.is_regular.then_some(&self.path)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.is_regular && self.path == other.path
    }

    /// One reader at a time, so that nobody puts an older policy in the place of a newer one.
    pub(crate) fn lock(&self) -> Locked<'_, Told> {
        deferred::lock(&self.told)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Told {
    /// The file cannot be the policy. That is told if it is so twice: whoever reads while somebody
    /// writes finds half of it. Answers whether this was the first time.
    pub(crate) fn trouble(&mut self, error: &Error) -> bool {
        let text = full(error);
        if self.trouble.as_ref() == Some(&text) {
            self.in_doubt = false;
            return false;
        }
        self.in_doubt = !self.in_doubt;
        if !self.in_doubt {
            told::warn!("{text}; the policy in force stays");
            self.trouble = Some(text);
        }
        self.in_doubt
    }

    /// The file is good. Answers whether it was not before.
    pub(crate) fn good(&mut self) -> bool {
        self.in_doubt = false;
        self.trouble.take().is_some()
    }

    /// These parts of the policy are not those that the process started with.
    pub(crate) fn restart(&mut self, file: &str, parts: Vec<String>) {
        if parts != self.restart && !parts.is_empty() {
            let parts = parts.join(", ");
            told::warn!("{file}: what it says of {parts} is taken at the next start");
        }
        self.restart = parts;
    }
}

/// An error with its cause.
fn full(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) if !error.to_string().contains(&cause.to_string()) => {
            format!("{error}: {cause}")
        }
        _ => error.to_string(),
    }
}

/// The parts in which two policies differ and that count only when a process starts.
pub(crate) fn parts_of_the_start(one: &Policy, other: &Policy) -> Vec<String> {
    let mut parts = Vec::new();
    if one.interop() != other.interop() {
        parts.push("interop".to_owned());
    }
    if one.engine() != other.engine() {
        parts.push("engine".to_owned());
    }
    let (seen, other_seen) = (one.outward(), other.outward());
    if seen.robot() != other_seen.robot() {
        parts.push("robot".to_owned());
    }
    if seen.exports() != other_seen.exports() {
        parts.push("export".to_owned());
    }
    if one.prefer() != other.prefer() {
        parts.push(
            "prefer (of joining the network and showing subscriptions; rules obey it now)"
                .to_owned(),
        );
    }
    let both = one.transports().iter().chain(other.transports());
    for transport in both.map(|it| &it.transport) {
        let part = format!("transport {transport}");
        if said(one.settings(transport)) != said(other.settings(transport))
            && !parts.contains(&part)
        {
            parts.push(part);
        }
    }
    parts
}

/// What is said of a transport, wherever it stands.
fn said(settings: Option<&TransportSettings>) -> (Option<&str>, Vec<(&str, &str)>) {
    let plugin = settings.and_then(|it| it.plugin.as_deref());
    let all = settings.into_iter().flat_map(|it| &it.settings);
    let mut all: Vec<_> = all.map(|it| (&*it.key, &*it.value)).collect();
    all.sort_unstable();
    (plugin, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_start() {
        let policy =
            |text: &str| tsuji_policy::load("p", text.as_bytes(), registry::KNOWN).unwrap();
        let check = |one: &str, other: &str, expect: &[&str]| {
            assert_eq!(parts_of_the_start(&policy(one), &policy(other)), expect, "{one} {other}");
        };
        let shm = r#"<tsuji><transport name="shm"><set key="memory_bytes_max" value="1GiB"/></transport></tsuji>"#;
        check("<tsuji/>", "<tsuji><size line=\"1MiB\"/></tsuji>", &[]);
        check(shm, &shm.replace("<transport", "\n\n<transport"), &[]);
        check(shm, "<tsuji/>", &["transport shm"]);
        check(shm, &shm.replace('1', "2"), &["transport shm"]);
        let both = [
            "interop",
            "prefer (of joining the network and showing subscriptions; rules obey it now)",
        ];
        check("<tsuji/>", r#"<tsuji prefer="memory" interop="none"/>"#, &both);
        check("<tsuji/>", r#"<tsuji engine="fastdds"/>"#, &["engine"]);
        let robot = r#"<tsuji><robot name="r2"/><export topic="/a"/></tsuji>"#;
        check(robot, "<tsuji/>", &["robot", "export"]);
        check(robot, &robot.replace("<robot", "\n<robot"), &[]);
    }
}
