//! How tsuji is measured: without plain ROS 2 nodes, or beside them, where some topics go by cyclonedds
//! between processes of this host for which it would choose another road.

use std::fs;
use std::path::{Path, PathBuf};

use tsuji::core::Interop;
use tsuji::{Context, ContextBuilder};

/// By which road.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Road {
    /// As the built-in policy says, between processes of tsuji. No engine starts.
    Alone,
    /// Plain ROS 2 nodes are spoken to, over loopback, so the engine starts with the context. By
    /// cyclonedds where a topic's name begins with [`BY_CYCLONE`], else as the built-in policy says.
    Rtps,
}

impl Road {
    /// A context whose flows go this way. It lives in `folder`, that of a stage.
    pub(crate) fn context(self, folder: &Path) -> ContextBuilder {
        let builder = Context::builder().runtime_dir(folder);
        match self {
            Self::Alone => builder.interop(Interop::None),
            Self::Rtps => {
                let builder = builder.domain(domain(folder)).policy_file(policy(folder));
                builder.interop(Interop::Rtps)
            }
        }
    }
}

/// Begins the names of the topics that the policy sends this way.
pub(crate) const BY_CYCLONE: &str = "cyclonedds_";

/// The DDS domain of tsuji in a run. Runs side by side mostly have different ones; where not, their
/// topics have.
pub(crate) fn domain(folder: &Path) -> u32 {
    DOMAIN_FIRST + by_run(folder)
}

/// The DDS domain of Cyclone DDS alone, where tsuji's discovery is not heard.
pub(crate) fn raw_domain(folder: &Path) -> u32 {
    DOMAIN_FIRST + DOMAINS + by_run(folder)
}

/// Above those that people pick by hand. The last domain whose ports are not ephemeral is 101.
const DOMAIN_FIRST: u32 = 42;
const DOMAINS: u32 = 30;

/// `name` as no other run has it: the network is everybody's.
pub(crate) fn of_this_run(folder: &Path, name: &str) -> String {
    let run = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}_{}", run.replace('-', "_"))
}

fn by_run(folder: &Path) -> u32 {
    let name = folder.as_os_str().as_encoded_bytes();
    name.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into())) % DOMAINS
}

fn policy(folder: &Path) -> PathBuf {
    folder.join("cyclonedds.xml")
}

/// Writes the policy that makes [`Road::Rtps`] of a stage.
pub(crate) fn write_policy(folder: &Path) -> Result<(), String> {
    let path = policy(folder);
    fs::write(&path, POLICY).map_err(|error| format!("write {}: {error}", path.display()))
}

const POLICY: &str = r#"<tsuji>
  <rule name="by the network" topic="/cyclonedds_*" scope="local" use="cyclonedds"/>
  <transport name="cyclonedds">
    <set key="interfaces" value="lo"/>
    <set key="multicast" value="true"/>
  </transport>
</tsuji>
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_topics_that_are_measured() {
        assert!(POLICY.contains(&format!("topic=\"/{BY_CYCLONE}*\"")));
    }

    #[test]
    fn no_domain_is_beyond_the_ports_that_are_free() {
        for number in 0..1000 {
            let folder = PathBuf::from(format!("/tmp/tsuji-lab-{number}-0"));
            let (ours, theirs) = (domain(&folder), raw_domain(&folder));
            assert!(ours != theirs && ours <= 101 && theirs <= 101);
        }
    }
}
