//! Hosts of one network, for which processes with run-time folders of their own stand here.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use tsuji_security::Enclave;

use crate::house::{Child, Folder, Peer};
use crate::secured::{self, World};

/// Whether the library is there.
#[allow(clippy::print_stderr, reason = "says that it did not run")]
pub(crate) fn is_there() -> bool {
    let found = tsuji::dds_security_library();
    let is_required = std::env::var_os("TSUJI_DDS_SECURITY").is_some();
    assert!(found.is_ok() || !is_required, "{found:?}");
    if let Err(why) = &found {
        eprintln!("{why}: not run");
    }
    found.is_ok()
}

/// Hosts on the loopback interface, in a domain of the test's own.
pub(crate) struct Network {
    pub(crate) world: World,
    pub(crate) domain: u32,
    pub(crate) folders: Vec<Folder>,
}

#[allow(dead_code, reason = "each test binary uses its part")]
impl Network {
    pub(crate) fn new(domain: u32) -> Self {
        Self { world: World::in_domain(domain), domain, folders: Vec::new() }
    }

    fn environment(&self) -> [(&'static str, String); 3] {
        let lo = r#"<General><Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces></General>"#;
        [
            ("ROS_DOMAIN_ID", self.domain.to_string()),
            ("TSUJI_INTEROP", "rtps".to_owned()),
            ("CYCLONEDDS_URI", lo.to_owned()),
        ]
    }

    /// A process on the host whose run-time folder this is.
    pub(crate) fn start_in(&self, folder: &Path, security: &[(&str, &str)]) -> Child {
        let environment = self.environment();
        let environment = environment.iter().map(|(name, value)| (*name, value.as_str()));
        let mut command = Child::command(&[], folder, "obey");
        Child::run(command.envs(environment).envs(security.iter().copied()))
    }

    pub(crate) fn start(&mut self, security: &[(&str, &str)]) -> Child {
        let folder = Folder::new();
        let child = self.start_in(&folder.0, security);
        self.folders.push(folder);
        child
    }

    /// A process in an enclave on the host whose run-time folder this is.
    pub(crate) fn beside(&self, folder: &Path, keystore: &Path, enclave: &str) -> Child {
        let child = self.start_in(folder, &secured::environment(keystore, enclave, "Enforce"));
        child.expect("secured true ");
        child
    }

    /// A process on a host of its own, in an enclave.
    pub(crate) fn host(&mut self, keystore: &Path, enclave: &str) -> Child {
        let child = self.start(&secured::environment(keystore, enclave, "Enforce"));
        child.expect("secured true ");
        child
    }

    pub(crate) fn host_in_clear(&mut self) -> Child {
        let child = self.start(&[]);
        child.expect("secured false ");
        child
    }

    /// A node of an engine alone in an enclave, or in clear, on a topic as DDS names it.
    pub(crate) fn foreign(
        &self,
        peer: &OsString,
        what: &str,
        enclave: Option<&Enclave>,
        topic: &str,
    ) -> Peer {
        let folder = enclave.map_or_else(|| "-".into(), |it| it.folder().display().to_string());
        let mut command = Command::new(peer);
        command.args([what, &folder, &self.domain.to_string(), topic, "100"]);
        command.envs(self.environment());
        Peer::of(command)
    }
}
