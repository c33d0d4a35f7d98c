//! Hosts of their own on a network of their own: network namespaces that live as long as a child
//! process that holds them, and have no names that could be left behind.

use std::io::Write;
use std::process::{Command, Stdio};

use super::relay::LinkSpec;
use super::{Child, Folder};

/// A host: a network namespace and a run-time folder.
pub(crate) struct Machine {
    holder: Child,
    pub(crate) folder: Folder,
    /// Its address, while nobody has changed it.
    pub(crate) address: &'static str,
}

/// The name of the interface of a [`Machine`].
pub(crate) const LINK: &str = "eth0";

impl Machine {
    fn start(address: &'static str) -> Self {
        let folder = Folder::new();
        let holder = Child::start_in(&["unshare", "-n"], &folder.0, "hold", &[]);
        Self { holder, folder, address }
    }

    /// Switches its network on.
    fn set_up(&self) {
        let address = self.address;
        self.run(&format!(
            "ip link set lo up; ip addr add {address}/24 dev {LINK}; ip link set {LINK} up"
        ));
    }

    /// Runs a line of the shell on this host.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) {
        let pid = self.holder.pid.to_string();
        let mut command = Command::new("nsenter");
        let done = command.args(["-t", &pid, "-n", "sh", "-ec", line]).output().unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// A process of this host, which speaks RTPS.
    pub(crate) fn start_process(&self, role: &str, environment: &[(&str, &str)]) -> Child {
        self.start_process_in(&self.folder, role, environment)
    }

    /// The same, with another run-time folder.
    pub(crate) fn start_process_in(
        &self,
        folder: &Folder,
        role: &str,
        environment: &[(&str, &str)],
    ) -> Child {
        let pid = self.holder.pid.to_string();
        let environment = [&[("TSUJI_INTEROP", "rtps")], environment].concat();
        Child::start_in(&["nsenter", "-t", &pid, "-n"], &folder.0, role, &environment)
    }
}

/// Two hosts with a cable between them; `None` where the machine does not allow it, which is said.
pub(crate) fn two_machines() -> Option<(Machine, Machine)> {
    if !is_allowed("ip link set lo up && ip link add eth0 type veth peer name eth1") {
        return None;
    }
    let (one, two) = (Machine::start("10.77.0.1"), Machine::start("10.77.0.2"));
    let there = two.holder.pid;
    one.run(&format!("ip link add {LINK} type veth peer name {LINK} netns {there}"));
    for machine in [&one, &two] {
        machine.set_up();
    }
    Some((one, two))
}

/// A link between two hosts that is as it is told to be. As long as it is held it is there.
pub(crate) struct Link(Child);

/// Two hosts with such a link between them, which is a good one at first. The role `relay` is the link.
pub(crate) fn two_machines_with_a_link() -> Option<(Machine, Machine, Link)> {
    if !is_allowed("ip link set lo up && ip tuntap add dev eth0 mode tap") {
        return None;
    }
    let (one, two) = (Machine::start("10.77.0.1"), Machine::start("10.77.0.2"));
    let mut relay = one.start_process("relay", &[]);
    relay.say(&two.holder.pid.to_string());
    relay.expect("ready");
    for machine in [&one, &two] {
        machine.set_up();
    }
    Some((one, two, Link(relay)))
}

impl Link {
    /// It is so from now on. Answers how many frames it has passed on and lost so far.
    #[track_caller]
    pub(crate) fn set(&mut self, spec: LinkSpec) -> [u64; 2] {
        self.0.say(&spec.words());
        let said = self.0.line();
        let numbers: Vec<u64> = said.split(' ').filter_map(|it| it.parse().ok()).collect();
        numbers.try_into().unwrap()
    }
}

/// Whether the shell may do this in a network of its own.
fn is_allowed(tried: &str) -> bool {
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", tried]).stdout(Stdio::null()).stderr(Stdio::null());
    let is_allowed = command.status().is_ok_and(|status| status.success());
    if !is_allowed {
        // SAFETY: it only asks.
        let is_root = unsafe { libc::geteuid() } == 0;
        assert!(!is_root || std::env::var_os("CI").is_none(), "not allowed here: {tried}");
        let _ = writeln!(std::io::stderr(), "skipped: not allowed here: unshare -n, {tried}");
    }
    is_allowed
}
