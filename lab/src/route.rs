//! How tsuji is measured: without foreign ROS 2 nodes, or beside them, where some topics go by cyclonedds
//! between processes of this host for which it would choose another transport, or are set to it.

use std::fs;
use std::path::Path;

use tsuji::Interop;
use tsuji::{Context, ContextBuilder};

use crate::child::told_by_word;

/// By which transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// As the built-in policy says, between processes of tsuji. No engine starts.
    Alone,
    /// Foreign ROS 2 nodes are spoken to, over loopback, so the engine starts with the context. By
    /// cyclonedds where a topic's name begins with [`BY_CYCLONE`], else as the built-in policy says.
    Rtps,
    /// As the built-in policy says, until another transport is set. No foreign node is spoken to; the engine
    /// starts, over loopback, with the first flow that is set to it.
    Settable,
    /// The same, but by cyclonedds between processes until another transport is set.
    SettableRtps,
    /// Memory is preferred, or latency, and foreign ROS 2 nodes are spoken to over loopback. By cyclonedds where a
    /// topic's name begins with [`BY_CYCLONE`], by fastdds where with [`BY_FAST`].
    Preferring(&'static str),
    /// Between processes by this transport, as far as it is to be had. No foreign node is spoken to.
    By(TsujiTransport),
    /// As the policy says that was tuned in this run, [`TUNED`]. No foreign node is spoken to.
    Tuned,
}

/// A transport between processes that a policy can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TsujiTransport {
    /// Shared memory.
    Shm,
    /// Cyclone DDS.
    CycloneDds,
    /// Fast DDS, where its plug-in is found.
    FastDds,
    /// Zenoh, where its plug-in is found.
    Zenoh,
}

impl TsujiTransport {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Shm, Self::CycloneDds, Self::FastDds, Self::Zenoh];

    /// Its name in policies and reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::CycloneDds => "cyclonedds",
            Self::FastDds => "fastdds",
            Self::Zenoh => "zenoh",
        }
    }

    fn policy_file(self) -> String {
        format!("by-{}.xml", self.word())
    }
}

impl Route {
    const ALL: [Self; 11] = [
        Self::Alone,
        Self::Rtps,
        Self::Settable,
        Self::SettableRtps,
        Self::By(TsujiTransport::Shm),
        Self::By(TsujiTransport::CycloneDds),
        Self::By(TsujiTransport::FastDds),
        Self::By(TsujiTransport::Zenoh),
        Self::Preferring("memory"),
        Self::Preferring("latency"),
        Self::Tuned,
    ];

    /// Its name between this program and its children.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Rtps => "rtps",
            Self::Settable => "settable",
            Self::SettableRtps => "settable-rtps",
            Self::By(transport) => transport.word(),
            Self::Preferring(what) => what,
            Self::Tuned => "tuned",
        }
    }

    /// The one of that name.
    pub(crate) fn of_word(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.word() == word);
        found.ok_or_else(|| format!("no transport {word}"))
    }
}

told_by_word!(Route);

impl Route {
    /// A context whose flows go this way. It lives in `folder`, that of a stage.
    pub(crate) fn context(self, folder: &Path) -> ContextBuilder {
        let builder = Context::builder().runtime_dir(folder);
        let on_loopback = |builder: ContextBuilder, name: &str| {
            builder.domain(domain(folder)).policy_file(folder.join(name))
        };
        match self {
            Self::Alone => builder.interop(Interop::NONE),
            Self::Rtps => on_loopback(builder, POLICY.0).interop(Interop::RTPS),
            Self::Settable => on_loopback(builder, POLICY.0).interop(Interop::NONE),
            Self::SettableRtps => on_loopback(builder, BETWEEN_PROCESSES.0).interop(Interop::NONE),
            Self::By(transport) => {
                on_loopback(builder, &transport.policy_file()).interop(Interop::NONE)
            }
            Self::Tuned => on_loopback(builder, TUNED).interop(Interop::NONE),
            Self::Preferring(what) => {
                on_loopback(builder, &preferring(what)).interop(Interop::RTPS)
            }
        }
    }
}

/// Begins the names of the topics that the policy sends this way.
pub(crate) const BY_CYCLONE: &str = "cyclonedds_";
pub(crate) const BY_FAST: &str = "fastdds_";

/// The file in the folder of a stage with the policy that was tuned there.
pub(crate) const TUNED: &str = "tuned.xml";

/// The DDS domain of tsuji in a run. Runs side by side mostly have different ones; where not, their
/// topics have.
pub(crate) fn domain(folder: &Path) -> u32 {
    DOMAIN_FIRST + by_run(folder)
}

/// The DDS domain of Cyclone DDS alone, where tsuji's discovery is not heard.
pub(crate) fn raw_domain(folder: &Path) -> u32 {
    DOMAIN_FIRST + DOMAINS + by_run(folder)
}

/// The ROS domain of rclcpp on one of its middlewares, whose number is `at`: none hears another, or tsuji, up to the 29th.
pub(crate) fn rclcpp_domain(folder: &Path, at: usize) -> u32 {
    DOMAIN_FIRST + (by_run(folder) + 1 + (at % DOMAINS as usize) as u32) % DOMAINS
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

/// Writes the policies of a stage.
pub(crate) fn write_policies(folder: &Path) -> Result<(), String> {
    let fixed = TsujiTransport::ALL.map(|it| {
        let text =
            BETWEEN_PROCESSES.1.replace("use=\"cyclonedds\"", &format!("use={:?}", it.word()));
        (it.policy_file(), text)
    });
    let all = fixed.iter().map(|(name, text)| (&**name, &**text));
    for (name, text) in all.chain([POLICY, BETWEEN_PROCESSES]) {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("write {}: {error}", path.display()))?;
    }
    for what in ["memory", "latency"] {
        let path = folder.join(preferring(what));
        let by_fast = format!(
            "<tsuji prefer=\"{what}\">\n  <rule name=\"by Fast DDS\" topic=\"/{BY_FAST}*\" \
             scope=\"local\" use=\"fastdds\"/>"
        );
        let text = POLICY.1.replacen("<tsuji>", &by_fast, 1);
        fs::write(&path, text).map_err(|error| format!("write {}: {error}", path.display()))?;
    }
    Ok(())
}

/// The name of the policy file that prefers this.
fn preferring(what: &str) -> String {
    format!("prefer-{what}.xml")
}

/// The name of a policy file, and what is in it.
const POLICY: (&str, &str) = (
    "cyclonedds.xml",
    r#"<tsuji>
  <rule name="by the network" topic="/cyclonedds_*" scope="local" use="cyclonedds"/>
  <transport name="cyclonedds">
    <set key="interfaces" value="lo"/>
    <set key="multicast" value="true"/>
  </transport>
</tsuji>
"#,
);

const BETWEEN_PROCESSES: (&str, &str) = (
    "between-processes.xml",
    r#"<tsuji>
  <rule name="between processes" scope="local" use="cyclonedds"/>
  <transport name="cyclonedds">
    <set key="interfaces" value="lo"/>
    <set key="multicast" value="true"/>
  </transport>
</tsuji>
"#,
);

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_policy_names_the_topics_that_are_measured() {
        assert!(POLICY.1.contains(&format!("topic=\"/{BY_CYCLONE}*\"")));
    }

    #[test]
    fn a_route_comes_back_from_its_word() {
        for route in Route::ALL {
            assert_eq!(Route::of_word(route.word()), Ok(route));
        }
    }

    #[test]
    fn no_domain_is_beyond_the_ports_that_are_free() {
        for number in 0..1000 {
            let folder = PathBuf::from(format!("/tmp/tsuji-lab-{number}-0"));
            let (ours, theirs) = (domain(&folder), raw_domain(&folder));
            assert!(ours != theirs && ours <= 101 && theirs <= 101);
            let others: HashSet<u32> = (0..29).map(|at| rclcpp_domain(&folder, at)).collect();
            assert!(others.len() == 29 && !others.contains(&ours));
            assert!(others.iter().all(|it| (42..=101).contains(it)));
        }
    }
}
