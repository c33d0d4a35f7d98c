//! What the kernel says of this network namespace.
//!
//! Read from `/proc` or tried. One datagram is sent, which never leaves this host.

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tsuji_platform::process;

/// How long the own datagram may take to come back.
const PATIENCE: Duration = Duration::from_secs(1);

/// A UDP port that somebody has.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) port: u32,
    /// Who has it, where that may be seen.
    pub(super) by: Option<Holder>,
}

/// A process.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) program: String,
    pub(super) pid: u32,
}

/// Sends a datagram to the group, by the route that there is, and says from where it came back.
pub(super) fn loop_back(group: Ipv4Addr) -> io::Result<Option<IpAddr>> {
    // At the group's address nothing else is heard, and the port is one that was free.
    let receiver = UdpSocket::bind((group, 0))?;
    receiver.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)?;
    let sender = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    sender.set_multicast_loop_v4(true)?;
    // It is not put on a wire.
    sender.set_multicast_ttl_v4(0)?;
    let token = process::random_token()?;
    sender.send_to(&token, receiver.local_addr()?)?;
    let until = Instant::now() + PATIENCE;
    let mut buffer = [0; 64];
    loop {
        let rest = until.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Ok(None);
        }
        receiver.set_read_timeout(Some(rest))?;
        match receiver.recv_from(&mut buffer) {
            Ok((bytes, from)) if buffer[..bytes] == token => return Ok(Some(from.ip())),
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
}

/// The UDP ports within a range that other processes have.
pub(super) fn held(ports: &RangeInclusive<u32>) -> Vec<Held> {
    let tables = ["/proc/net/udp", "/proc/net/udp6"];
    let texts: String = tables.iter().filter_map(|it| fs::read_to_string(it).ok()).collect();
    let sockets = texts.lines().filter_map(udp_socket).filter(|(port, _)| ports.contains(port));
    let sockets: Vec<(u32, u64)> = sockets.collect();
    if sockets.is_empty() {
        return Vec::new();
    }
    let holders = holders();
    let held =
        sockets.into_iter().map(|(port, inode)| Held { port, by: holders.get(&inode).cloned() });
    let is_other = |it: &Held| it.by.as_ref().is_none_or(|it| it.pid != std::process::id());
    held.filter(is_other).collect()
}

/// The processes that have sockets, by the inodes of these. Those of other users are missing.
fn holders() -> HashMap<u64, Holder> {
    let mut holders = HashMap::new();
    let entries = |it: PathBuf| fs::read_dir(it).into_iter().flatten().flatten();
    for process in entries(PathBuf::from("/proc")) {
        let Ok(pid) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
        let sockets = entries(process.path().join("fd")).filter_map(|it| {
            let target = fs::read_link(it.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
        });
        let sockets: Vec<u64> = sockets.collect();
        if sockets.is_empty() {
            continue;
        }
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        let program = name.trim().to_owned();
        holders
            .extend(sockets.into_iter().map(|it| (it, Holder { program: program.clone(), pid })));
    }
    holders
}

/// The port and the inode in a line of `/proc/net/udp`; `None` for its heading.
fn udp_socket(line: &str) -> Option<(u32, u64)> {
    let mut words = line.split_whitespace();
    let (_, port) = words.nth(1)?.rsplit_once(':')?;
    let port = u32::from_str_radix(port, 16).ok()?;
    Some((port, words.nth(7)?.parse().ok()?))
}

/// Datagrams that found their socket's buffer full, since the namespace was made.
pub(super) fn overruns() -> Option<u64> {
    udp_counter(&fs::read_to_string("/proc/net/snmp").ok()?, "RcvbufErrors")
}

/// A counter in `/proc/net/snmp`, where a line of names is followed by one of numbers.
fn udp_counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|it| it.strip_prefix("Udp:"));
    let at = lines.next()?.split_whitespace().position(|it| it == name)?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

/// A number below `/proc/sys/net`.
pub(super) fn setting(name: &str) -> Option<u64> {
    fs::read_to_string(format!("/proc/sys/net/{name}")).ok()?.trim().parse().ok()
}

/// A pair of numbers below `/proc/sys/net/ipv4`.
pub(super) fn range(name: &str) -> Option<RangeInclusive<u32>> {
    let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
    let mut words = text.split_whitespace().map(str::parse);
    Some(words.next()?.ok()?..=words.next()?.ok()?)
}

/// The ports that the kernel gives to nobody who does not ask for it.
pub(super) fn reserved() -> Vec<RangeInclusive<u32>> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    let ranges = text.trim().split(',').filter_map(|it| {
        let (first, last) = it.split_once('-').unwrap_or((it, it));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_sockets() {
        let heading = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert_eq!(udp_socket(heading), None);
        let line = "  395: 00000000:1CE8 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 2345 2 0 0";
        assert_eq!(udp_socket(line), Some((7400, 2345)));
        let six = " 12: 00000000000000000000000000000000:1CF2 00000000000000000000000000000000:0000 07 0:0 00:0 0 0 0 77 2 0 0";
        assert_eq!(udp_socket(six), Some((7410, 77)));
    }

    #[test]
    fn a_table_of_counters() {
        let text = "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams InErrors RcvbufErrors\nUdp: 100 7 5\nUdpLite: RcvbufErrors\nUdpLite: 0\n";
        assert_eq!(udp_counter(text, "RcvbufErrors"), Some(5));
        assert_eq!(udp_counter(text, "Nothing"), None);
        assert_eq!(udp_counter("", "RcvbufErrors"), None);
    }

    #[test]
    fn own_ports_are_nobody_elses() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = u32::from(socket.local_addr().unwrap().port());
        assert!(held(&(port..=port)).is_empty());
    }
}
