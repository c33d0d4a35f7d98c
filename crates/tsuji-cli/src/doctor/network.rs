//! What RTPS between hosts needs: buffers, interfaces, multicast, ports.
//!
//! Here is judged what [`facts`] finds.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use tsuji_platform::network::{self, Interface};

use self::facts::{Held, Holder};
use super::{Finding, State};

mod facts;

/// The receive buffer with which samples of some megabytes come through whole.
const BUFFER_WANTED: u64 = 4 << 20;

/// The largest UDP datagram, which is cut into parts for a link.
const DATAGRAM_BYTES_MAX: u64 = 1 << 16;

/// Room and time for datagrams whose parts have not all come, as ROS 2 advises for links with
/// losses.
const FRAGMENTS_WANTED: u64 = 128 << 20;
const FRAGMENT_SECONDS_WANTED: u64 = 3;

/// Where RTPS participants tell of themselves.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

/// The ports of a domain by RTPS 2.2, 9.6.1: PB = 7400, DG = 250, and the two of multicast at the
/// offsets d0 = 0 and d2 = 1. From d1 = 10 on each participant has two of its own.
const PORT_BASE: u32 = 7400;
const DOMAIN_GAIN: u32 = 250;
const MULTICAST_OFFSETS: u32 = 1;

const UNICAST_OFFSET: u32 = 10;
const PORTS_OF_INDEX: u32 = 2;
/// As many have ports of their own; the last domain has fewer.
const INDICES: u32 = 120;

/// Holders of ports that are named. Further ones are counted.
const HOLDERS_SHOWN_MAX: usize = 4;

/// `speaks_rtps` is whether tsuji does; else nothing here is in its way.
pub(super) fn examine(domain: Option<u32>, speaks_rtps: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !speaks_rtps {
        let text = "tsuji speaks RTPS to nobody else here; what follows is for other RTPS programs on this host";
        findings.push(finding("used by", State::Note, text));
    }
    findings.push(buffer(
        facts::setting("core/rmem_max"),
        facts::setting("core/rmem_default"),
        facts::overruns(),
    ));
    match network::interfaces() {
        Ok(interfaces) => {
            findings.extend(fragments(
                &interfaces,
                facts::setting("ipv4/ipfrag_high_thresh"),
                facts::setting("ipv4/ipfrag_time"),
            ));
            findings.extend(links(&interfaces));
            findings.push(multicast(facts::loop_back(GROUP), &interfaces));
        }
        Err(error) => {
            findings.push(finding("interfaces", State::Note, format!("cannot be read: {error}")));
        }
    }
    if let Some(domain) = domain {
        let held = facts::held(&ports_of(domain));
        findings.push(ports(domain, &held, |port| network::is_udp_port_shared(port).ok()));
        findings.extend(clients(domain, facts::range("ip_local_port_range"), &facts::reserved()));
    }
    if !speaks_rtps {
        for it in findings.iter_mut().filter(|it| it.state == State::Warning) {
            it.state = State::Note;
        }
    }
    findings
}

/// The largest receive buffer that a socket is given, and how often one was too small.
fn buffer(most: Option<u64>, default: Option<u64>, overruns: Option<u64>) -> Finding {
    const WHAT: &str = "receive buffer";
    let Some(most) = most else {
        return finding(WHAT, State::Note, "net.core.rmem_max is not shown in this namespace");
    };
    let mut found = format!("net.core.rmem_max {most}");
    if let Some(default) = default {
        found.push_str(&format!(", {default} for who asks for none"));
    }
    if let Some(overruns) = overruns.filter(|it| *it > 0) {
        found.push_str(&format!("; datagrams lost in full ones so far: {overruns}"));
    }
    if most >= BUFFER_WANTED {
        return finding(WHAT, State::Good, found);
    }
    let text = format!(
        "{found}; below {BUFFER_WANTED} (4 MiB) a sample of some megabytes overruns it, and waits for what is sent again"
    );
    let mend = lasting("rmem", &[("net.core.rmem_max", BUFFER_WANTED)]);
    finding(WHAT, State::Warning, text).mend(mend)
}

/// The room for datagrams that are larger than the packets of a link. Nothing is cut on loopback.
fn fragments(interfaces: &[Interface], room: Option<u64>, seconds: Option<u64>) -> Option<Finding> {
    let (room, seconds) = (room?, seconds?);
    interfaces.iter().find(|it| it.is_up && !it.is_loopback)?;
    let found = format!("net.ipv4.ipfrag_time {seconds} s, ipfrag_high_thresh {room}");
    if seconds <= FRAGMENT_SECONDS_WANTED || room >= FRAGMENTS_WANTED {
        return Some(finding("fragments", State::Good, found));
    }
    let text = format!(
        "{found}: where a link loses packets, such as Wi-Fi, {} datagrams of 64 KiB that lost a part fill the room \
         for {seconds} s, and no other of more than one packet comes through",
        room / DATAGRAM_BYTES_MAX
    );
    let settings = [
        ("net.ipv4.ipfrag_time", FRAGMENT_SECONDS_WANTED),
        ("net.ipv4.ipfrag_high_thresh", FRAGMENTS_WANTED),
    ];
    Some(finding("fragments", State::Note, text).mend(lasting("ipfrag", &settings)))
}

/// The command that sets kernel settings now and at each start.
fn lasting(name: &str, settings: &[(&str, u64)]) -> String {
    let settings: Vec<String> =
        settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!(
        "as root, on the host of a container: sysctl -w {} && printf '%s\\n' {} > /etc/sysctl.d/60-tsuji-{name}.conf",
        settings.join(" "),
        settings.join(" ")
    )
}

/// Each interface that is up, and what it lacks.
fn links(interfaces: &[Interface]) -> Vec<Finding> {
    let is_alone = is_loopback_alone(interfaces);
    let mut findings = Vec::new();
    if is_alone {
        let text = "none is up but loopback: RTPS reaches only programs in this network namespace until another is, which \
                    running processes join then; a container reaches further with the network of its host";
        let mend = "docker run --network host, or ip link set INTERFACE up";
        findings.push(finding("interfaces", State::Note, text).mend(mend));
    }
    for interface in interfaces.iter().filter(|it| it.is_up || it.is_loopback) {
        findings.push(if interface.is_loopback {
            loopback(interface, is_alone)
        } else {
            link(interface)
        });
    }
    findings
}

fn link(interface: &Interface) -> Finding {
    let Interface { name, has_multicast, .. } = interface;
    let addresses = addresses(interface);
    if *has_multicast {
        return finding(name, State::Good, format!("{addresses}; multicast"));
    }
    let text = format!("{addresses}; no multicast, by which RTPS programs find each other");
    finding(name, State::Warning, text).mend(format!("as root: ip link set {name} multicast on"))
}

fn loopback(interface: &Interface, is_alone: bool) -> Finding {
    let Interface { name, is_up, has_multicast, .. } = interface;
    if !is_up {
        let text =
            "down: programs of this host that speak IP, RTPS ones too, do not reach each other";
        return finding(name, State::Warning, text).mend(format!("as root: ip link set {name} up"));
    }
    let addresses = addresses(interface);
    if *has_multicast {
        return finding(name, State::Good, format!("{addresses}; multicast"));
    }
    let command = multicast_over_loopback(name);
    if is_alone {
        let text = format!(
            "{addresses}; no multicast, and RTPS programs have no other interface to find each other"
        );
        return finding(name, State::Warning, text).mend(command);
    }
    let text = format!(
        "{addresses}; no multicast, as usual: RTPS that is kept to loopback finds nobody by it. The route that \
         mends it takes multicast away from the other interfaces"
    );
    finding(name, State::Note, text).mend(command)
}

fn multicast_over_loopback(name: &str) -> String {
    format!("as root: ip link set {name} up multicast on && ip route add 224.0.0.0/4 dev {name}")
}

fn is_loopback_alone(interfaces: &[Interface]) -> bool {
    !interfaces.iter().any(|it| it.is_up && !it.is_loopback)
}

fn addresses(interface: &Interface) -> String {
    match interface.addresses.as_slice() {
        [] => "no address".to_owned(),
        some => some.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// What came of the own datagram.
fn multicast(result: io::Result<Option<IpAddr>>, interfaces: &[Interface]) -> Finding {
    const WHAT: &str = "multicast";
    const WHY: &str =
        "RTPS programs find each other by it; without it only those that ROS_STATIC_PEERS names";
    let trouble = match result {
        Ok(Some(from)) => {
            // Over loopback it may have no sender.
            let sender =
                if from.is_unspecified() { String::new() } else { format!(", from {from}") };
            return finding(WHAT, State::Good, format!("a datagram to {GROUP} came back{sender}"));
        }
        Ok(None) => {
            let text = format!("a datagram to {GROUP} was sent and did not come back: {WHY}");
            let mend = format!("as root: nft list ruleset, and let UDP to {GROUP} through");
            return finding(WHAT, State::Warning, text).mend(mend);
        }
        Err(error) => format!("{GROUP} cannot be reached ({error}): {WHY}"),
    };
    let mut able = interfaces.iter().filter(|it| it.is_up && !it.is_loopback && it.has_multicast);
    let mend = match able.next() {
        Some(Interface { name, .. }) => format!("as root: ip route add 224.0.0.0/4 dev {name}"),
        None => multicast_over_loopback("lo"),
    };
    finding(WHAT, State::Warning, trouble).mend(mend)
}

fn ports_of(domain: u32) -> RangeInclusive<u32> {
    let first = PORT_BASE + DOMAIN_GAIN * domain;
    // The last domain has fewer.
    first..=(first + DOMAIN_GAIN - 1).min(u32::from(u16::MAX))
}

/// Whether the ports of the domain are there for RTPS. That participants have some is as it should
/// be, if they share those of multicast.
fn ports(domain: u32, held: &[Held], is_shared: impl Fn(u16) -> Option<bool>) -> Finding {
    let what = format!("ports of domain {domain}");
    let all = ports_of(domain);
    let (first, last) = (*all.start(), *all.end());
    let formula = format!("{first} to {last}, 7400 + 250 × domain (RTPS 2.2, 9.6.1)");
    if held.is_empty() {
        return finding(what, State::Good, format!("{formula}: all free"));
    }
    let multicast = first..=first + MULTICAST_OFFSETS;
    let alone = held.iter().find(|it| {
        let port = u16::try_from(it.port).ok().filter(|_| multicast.contains(&it.port));
        port.is_some_and(|port| is_shared(port) == Some(false))
    });
    let Some(alone) = alone else {
        if INDICES <= indices_taken(first, held) {
            let text = format!(
                "{formula}: all {INDICES} participants that the domain has on a host are there; further ones take \
                 ports that the system chooses, and whoever looks for them by their address, as with \
                 ROS_STATIC_PEERS, does not find them; held by {}",
                holders(held)
            );
            return finding(what, State::Warning, text)
                .mend("take another ROS_DOMAIN_ID for some of them");
        }
        let text =
            format!("{formula}: held by {}, as by RTPS programs of this domain", holders(held));
        return finding(what, State::Good, text);
    };
    let text = format!(
        "{formula}: {} is held by {}, which does not share it, so RTPS programs of this domain cannot begin",
        alone.port,
        holders(std::slice::from_ref(alone))
    );
    let mend = match &alone.by {
        Some(holder) => format!("kill {}, or take another ROS_DOMAIN_ID everywhere", holder.pid),
        None => format!(
            "as root: ss -lunp 'sport = {}' names it; or take another ROS_DOMAIN_ID everywhere",
            alone.port
        ),
    };
    finding(what, State::Warning, text).mend(mend)
}

/// How many participants have ports by their index.
fn indices_taken(first: u32, held: &[Held]) -> u32 {
    let index = |it: &Held| Some(it.port.checked_sub(first + UNICAST_OFFSET)? / PORTS_OF_INDEX);
    let taken: BTreeSet<u32> = held.iter().filter_map(index).filter(|it| *it < INDICES).collect();
    taken.len() as u32
}

fn holders(held: &[Held]) -> String {
    let mut names: Vec<String> = held
        .iter()
        .map(|it| match &it.by {
            Some(Holder { program, pid }) => format!("{program} (pid {pid})"),
            None => "a process that this user may not look at".to_owned(),
        })
        .collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(HOLDERS_SHOWN_MAX);
    names.truncate(HOLDERS_SHOWN_MAX);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Whether the kernel may give the ports of the domain to any client.
fn clients(
    domain: u32,
    given: Option<RangeInclusive<u32>>,
    reserved: &[RangeInclusive<u32>],
) -> Option<Finding> {
    let (ports, given) = (ports_of(domain), given?);
    let is_kept = reserved.iter().any(|it| it.start() <= ports.start() && ports.end() <= it.end());
    if is_kept || ports.end() < given.start() || given.end() < ports.start() {
        return None;
    }
    let text = format!(
        "net.ipv4.ip_local_port_range {} to {}: the kernel gives ports of domain {domain} to any client, and then an \
         RTPS program cannot have them",
        given.start(),
        given.end()
    );
    let mend = format!(
        "as root: sysctl -w net.ipv4.ip_local_reserved_ports={}-{}; or take a ROS_DOMAIN_ID from 0 to 100",
        ports.start(),
        ports.end()
    );
    Some(finding("ports of clients", State::Warning, text).mend(mend))
}

fn finding(what: impl Into<String>, state: State, found: impl Into<String>) -> Finding {
    Finding::new("network", what, state, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: &Finding, state: State, text: &str, mend: Option<&str>) {
        assert_eq!(found.state, state, "{found:?}");
        assert!(found.found.contains(text), "{found:?}");
        assert_eq!(found.mend.as_deref(), mend, "{found:?}");
    }

    fn interface(name: &str, has_multicast: bool) -> Interface {
        Interface {
            name: name.to_owned(),
            is_up: true,
            is_running: true,
            is_loopback: name == "lo",
            has_multicast,
            addresses: vec![IpAddr::from([192, 0, 2, 1])],
        }
    }

    #[test]
    fn receive_buffers() {
        let small = buffer(Some(212_992), Some(212_992), Some(3));
        let mend = "as root, on the host of a container: sysctl -w net.core.rmem_max=4194304 && printf '%s\\n' \
                    net.core.rmem_max=4194304 > /etc/sysctl.d/60-tsuji-rmem.conf";
        check(&small, State::Warning, "net.core.rmem_max 212992, 212992 for", Some(mend));
        assert!(small.found.contains("so far: 3; below 4194304"), "{small:?}");
        check(&buffer(Some(BUFFER_WANTED), None, Some(0)), State::Good, "rmem_max 4194304", None);
        check(&buffer(None, None, None), State::Note, "not shown", None);
    }

    #[test]
    fn fragments_matter_where_there_is_a_link() {
        let lo = interface("lo", false);
        assert!(fragments(std::slice::from_ref(&lo), Some(4 << 20), Some(30)).is_none());
        let both = [interface("eth0", true), lo];
        let small = fragments(&both, Some(4 << 20), Some(30)).unwrap();
        let mend = "as root, on the host of a container: sysctl -w net.ipv4.ipfrag_time=3 \
                    net.ipv4.ipfrag_high_thresh=134217728 && printf '%s\\n' net.ipv4.ipfrag_time=3 \
                    net.ipv4.ipfrag_high_thresh=134217728 > /etc/sysctl.d/60-tsuji-ipfrag.conf";
        check(&small, State::Note, "64 datagrams of 64 KiB", Some(mend));
        check(&fragments(&both, Some(4 << 20), Some(3)).unwrap(), State::Good, "3 s", None);
        assert!(fragments(&both, None, Some(30)).is_none());
    }

    #[test]
    fn interfaces_and_what_they_lack() {
        let route = "as root: ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo";
        let alone = links(&[interface("lo", false)]);
        check(&alone[0], State::Note, "none is up but loopback", alone[0].mend.as_deref());
        check(&alone[1], State::Warning, "no multicast", Some(route));
        let both = links(&[interface("eth0", false), interface("lo", false)]);
        let on = "as root: ip link set eth0 multicast on";
        check(&both[0], State::Warning, "192.0.2.1; no multicast", Some(on));
        check(&both[1], State::Note, "takes multicast away", Some(route));
        let well = links(&[interface("eth0", true), interface("lo", true)]);
        assert!(well.iter().all(|it| it.state == State::Good), "{well:?}");
        let down = Interface { is_up: false, ..interface("lo", false) };
        check(&links(&[down])[1], State::Warning, "down", Some("as root: ip link set lo up"));
    }

    #[test]
    fn multicast_that_comes_back_or_not() {
        let both = [interface("eth0", true), interface("lo", false)];
        let lost = || Err(io::Error::from(io::ErrorKind::NetworkUnreachable));
        check(&multicast(Ok(Some([192, 0, 2, 1].into())), &both), State::Good, "192.0.2.1", None);
        let wall = "as root: nft list ruleset, and let UDP to 239.255.0.1 through";
        check(&multicast(Ok(None), &both), State::Warning, "did not come back", Some(wall));
        let route = "as root: ip route add 224.0.0.0/4 dev eth0";
        check(&multicast(lost(), &both), State::Warning, "cannot be reached", Some(route));
        let loopback = "as root: ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo";
        check(&multicast(lost(), &both[1..]), State::Warning, "ROS_STATIC_PEERS", Some(loopback));
    }

    #[test]
    fn ports_of_a_domain() {
        assert_eq!(ports_of(0), 7400..=7649);
        assert_eq!(ports_of(232), 65_400..=65_535);
        let held = |port, pid| {
            let by = Some(Holder { program: "talker".to_owned(), pid });
            Held { port, by }
        };
        let shared = |_| Some(true);
        let alone = |_| Some(false);
        check(&ports(7, &[], alone), State::Good, "9150 to 9399, 7400 + 250 × domain", None);
        let two = [held(7400, 5), held(7410, 5), held(7411, 5), held(7400, 6)];
        check(
            &ports(0, &two, shared),
            State::Good,
            "held by talker (pid 5), talker (pid 6), as",
            None,
        );
        check(
            &ports(0, &two, alone),
            State::Warning,
            "7400 is held by talker (pid 5), which does not share it",
            Some("kill 5, or take another ROS_DOMAIN_ID everywhere"),
        );
        // A participant need not share its own.
        check(&ports(0, &two[1..3], alone), State::Good, "held by talker (pid 5), as", None);
        let hidden = [Held { port: 7401, by: None }];
        let mend =
            "as root: ss -lunp 'sport = 7401' names it; or take another ROS_DOMAIN_ID everywhere";
        check(&ports(0, &hidden, alone), State::Warning, "may not look at", Some(mend));
    }

    #[test]
    fn a_domain_with_all_its_participants() {
        let held = |count: u32| -> Vec<Held> {
            (0..count).map(|it| Held { port: 7410 + 2 * it, by: None }).collect()
        };
        let shared = |_| Some(true);
        assert_eq!(ports(0, &held(119), shared).state, State::Good);
        let mend = "take another ROS_DOMAIN_ID for some of them";
        check(&ports(0, &held(120), shared), State::Warning, "all 120 participants", Some(mend));
    }

    #[test]
    fn ports_that_any_client_may_be_given() {
        let given = || Some(32_768..=60_999);
        for domain in [0, 100, 215] {
            assert!(clients(domain, given(), &[]).is_none(), "{domain}");
        }
        let mend = "as root: sysctl -w net.ipv4.ip_local_reserved_ports=32900-33149; or take a ROS_DOMAIN_ID from 0 to 100";
        let finding = clients(102, given(), &[]).unwrap();
        check(&finding, State::Warning, "32768 to 60999", Some(mend));
        let kept = [1..=2, 32_000..=34_000];
        assert!(clients(102, given(), &kept).is_none());
        assert!(clients(102, None, &[]).is_none());
    }
}
