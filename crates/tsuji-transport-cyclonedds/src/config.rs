//! How the engine is told to behave: its defaults lose large samples, so tsuji sets its own.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, ToSocketAddrs};

use tsuji_platform::network::Interface;
use tsuji_transport::deferred::told;
use tsuji_transport::wire::Announcements;
use tsuji_transport::{Error, ErrorKind, Result};

use crate::DdsSecurity;
use crate::extra::{self, Chosen};

/// Where the engine talks, and with whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycloneConfig {
    /// The domain on the network, 0 to 232.
    pub domain: u32,
    /// The names of the interfaces to use; none leaves the choice to the engine.
    pub interfaces: Vec<String>,
    /// Loopback too, beside the interface that the engine chooses, for those who are on nothing else. Where there is no other
    /// the engine chooses it anyway.
    pub and_loopback: bool,
    /// Over loopback alone, with multicast, while no other interface is up and none is named.
    pub loopback_until_up: bool,
    /// Multicast also on an interface that does not say that it can, as loopback.
    pub force_multicast: bool,
    /// Names or IPv4 addresses of hosts to look for besides those that multicast finds.
    pub peers: Vec<String>,
    /// Nobody is looked for by multicast.
    pub no_multicast: bool,
    /// Nobody but tsuji is met.
    pub tsuji_only: bool,
    /// What is announced of the participant.
    pub user_data: Vec<u8>,
    /// By what of their user data participants of this host are known that may be passed over. The own ones have it too.
    pub peer_processes: Option<PeerMarks>,
    /// Configuration of the user's own, in the form of `CYCLONEDDS_URI`: XML or the names of files,
    /// with commas between. The engine reads it last: a value takes the place of that of tsuji, an
    /// interface or a peer is added.
    pub extra: Option<String>,
    /// What secures the participant. Without it, it is in clear.
    pub security: Option<DdsSecurity>,
}

/// By what the participant of a peer process of this host is known, in its user data, where it can pass over others as this one can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerMarks {
    /// What all of one host have, and no others.
    pub claim: String,
    /// What the number of its process follows, up to a semicolon.
    pub key: String,
}

impl CycloneConfig {
    /// Only with others of this host, over the loopback interface.
    pub fn on_loopback(domain: u32) -> Self {
        let interfaces = vec!["lo".to_owned()];
        Self { domain, interfaces, force_multicast: true, ..Self::default() }
    }

    /// The same with what follows from the interfaces that a host has now.
    pub fn now(&self, all: &[Interface]) -> Self {
        let is_up = all.iter().any(Interface::leads_away);
        let mut now = Self { and_loopback: self.and_loopback && is_up, ..self.clone() };
        if self.loopback_until_up && self.interfaces.is_empty() && !is_up {
            now.interfaces = vec!["lo".to_owned()];
            now.force_multicast = !self.no_multicast;
        }
        now
    }

    /// Whether a peer is given by a name.
    pub(crate) fn names_hosts(&self) -> bool {
        self.peers.iter().any(|peer| peer.parse::<IpAddr>().is_err())
    }

    /// The peers' addresses. Asking for a name may take as long as the system's resolver does. The
    /// engine ends the process when it is given one that it does not understand.
    pub(crate) fn resolve_peers(&self) -> Result<Vec<Ipv4Addr>> {
        let mut addresses = Vec::new();
        for peer in &self.peers {
            match resolve(peer) {
                Ok(found) => addresses.extend(found),
                Err(error) if error.kind() == ErrorKind::Invalid => return Err(error),
                // The others are met all the same.
                Err(error) => told::warn!("a host is not looked for: {error}"),
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }

    /// Refuses what the user adds if the engine would end the process for it. `peers` are those
    /// besides.
    pub(crate) fn check_extra(&self, peers: &[Ipv4Addr]) -> Result<()> {
        let Some(extra) = &self.extra else { return Ok(()) };
        let found = extra::search(extra)?;
        for peer in &found.peers {
            let peer = peer.strip_prefix("udp/").unwrap_or(peer);
            let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| 0 < port);
            let host = peer.rsplit_once(':').filter(|(_, port)| is_port(port));
            resolve(host.map_or(peer, |(host, _)| host))?;
        }
        if found.is_of_another_transport && !(peers.is_empty() && found.peers.is_empty()) {
            let allowed = "peers by another transport than UDP over IPv4; allowed: that one";
            return Err(Error::new(ErrorKind::Invalid, "look for a peer").about(allowed));
        }
        for domain in &found.domains {
            told::warn!(
                "CYCLONEDDS_URI: what is under <Domain Id={domain:?}> is not obeyed; allowed: any"
            );
        }
        Ok(())
    }

    /// The reason why the domain could not be joined, with what of it the user wrote.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let Some(extra) = &self.extra else { return error };
        let said = extra.chars().take(EXTRA_SHOWN_CHARS).collect::<String>();
        let explained = Error::new(error.kind(), "join the domain");
        explained.about(format!("with CYCLONEDDS_URI={said:?}")).because(error)
    }

    /// The addresses beside those of loopback that the engine takes on a host with these interfaces, of which `index` tells the
    /// order. None where it would not start: an interface that is named, maybe by the user's own configuration, is not there.
    ///
    /// Of those that nobody named none counts but the best: another that comes or goes is nothing to the engine.
    pub fn addresses(&self, all: &[Interface], index: impl Fn(&str) -> Option<u32>) -> Vec<IpAddr> {
        if self.and_loopback && self.peers == ["127.0.0.1"] {
            // It speaks to this host alone, which loopback reaches whatever becomes of the others.
            return Vec::new();
        }
        let address = |it: &Interface| it.addresses.iter().copied().find(IpAddr::is_ipv4);
        let able = || all.iter().filter(|it| it.leads_away());
        // As the engine does: of those with multicast the first.
        let best =
            || able().min_by_key(|it| (!it.has_multicast, index(&it.name))).and_then(address);
        let mut chosen: Vec<_> = self.interfaces.iter().map(|name| Chosen::named(name)).collect();
        let added = self.extra.as_ref().and_then(|it| extra::search(it).ok());
        let added = added.map(|it| it.interfaces).unwrap_or_default();
        if chosen.is_empty() && (self.and_loopback || added.is_empty()) {
            chosen.push(Chosen::BEST);
        }
        chosen.extend(added);
        let is_loopback =
            |name: &str| name == "lo" || name.parse().is_ok_and(|it: Ipv4Addr| it.is_loopback());
        let find = |name: &str| {
            let at: Option<IpAddr> = name.parse().ok();
            let found = able().find(|it| it.name == name).and_then(address);
            found.or_else(|| at.filter(|at| able().any(|it| it.addresses.contains(at))))
        };
        let addresses = chosen.iter().filter_map(|it| match it.which.as_deref() {
            Some(name) if is_loopback(name) => None,
            Some(name) => Some(find(name)).filter(|found| it.is_required || found.is_some()),
            None => Some(best()),
        });
        addresses.collect::<Option<_>>().unwrap_or_default()
    }

    /// Where others announce themselves, on a host with these interfaces; or why the engine is needed
    /// to find them.
    pub(crate) fn announcements(&self, all: &[Interface]) -> Result<Announcements, String> {
        if self.extra.is_some() {
            return Err("CYCLONEDDS_URI may say elsewhere where others are".to_owned());
        }
        if self.no_multicast {
            return Err("nobody is looked for by multicast".to_owned());
        }
        if !self.peers.is_empty() {
            return Err(format!("peers are named: {}", self.peers.join(" ")));
        }
        let is_able = |it: &&Interface| {
            let has_address = it.addresses.iter().any(IpAddr::is_ipv4);
            let has_multicast = it.has_multicast || self.force_multicast;
            it.is_up && has_address && has_multicast
        };
        let able: Vec<_> = all.iter().filter(is_able).collect();
        let interfaces: Vec<String> = match self.interfaces.as_slice() {
            // The engine will take one of them.
            [] => able.iter().filter(|it| !it.is_loopback).map(|it| it.name.clone()).collect(),
            named => {
                let is_lame = |name: &&String| !able.iter().any(|it| it.name == **name);
                if let Some(name) = named.iter().find(is_lame) {
                    return Err(format!("{name} has no multicast over IPv4"));
                }
                named.to_vec()
            }
        };
        if interfaces.is_empty() {
            return Err("no interface has multicast over IPv4".to_owned());
        }
        // The configuration was accepted with a domain whose ports there are.
        let port = u16::try_from(PORT_BASE + DOMAIN_GAIN * self.domain).unwrap_or(u16::MAX);
        let group = SocketAddrV4::new(GROUP, port);
        Ok(Announcements { group, interfaces, hops_max: HOPS_MAX })
    }

    /// The last index of a participant. The last domain has ports for fewer.
    fn index_max(&self) -> u32 {
        let first = PORT_BASE + DOMAIN_GAIN * self.domain + UNICAST_OFFSET;
        INDEX_MAX.min(u32::from(u16::MAX).saturating_sub(first) / PORTS_OF_INDEX)
    }

    /// What to say where all indices are taken.
    pub(crate) fn crowd_note(&self) -> String {
        let count = self.index_max() + 1;
        let taken = format!(
            "the ports of all {count} participants that domain {} has on a host are taken, so the system chose others",
            self.domain
        );
        if self.no_multicast || !self.peers.is_empty() {
            return format!(
                "{taken}: whoever looks for this process by its address, and is not found by it first, does not find it"
            );
        }
        taken
    }

    /// The configuration in the words of Cyclone DDS. `receive_buffer_bytes_max` is what the system
    /// allows a socket.
    ///
    /// Datagrams of nearly 64 KiB and a receive buffer that holds a whole burst of them keep a sample of
    /// megabytes from overrunning the buffer, which would cost a retransmission of a tenth of a second.
    ///
    /// Where datagrams leave the host the network cuts them into packets, and one that is lost costs all of
    /// its datagram. What has come of it fills for 30 s the little memory in which the system puts packets together
    /// (`net.ipv4.ipfrag_high_thresh`), after which no large datagram comes through at all. So fragments
    /// are as large as a packet there: the first time many go in one datagram, and again each in a packet of its own.
    pub(crate) fn to_xml(
        &self,
        peers: &[Ipv4Addr],
        receive_buffer_bytes_max: u64,
        ports: Ports,
    ) -> String {
        let mut xml = String::from("<CycloneDDS><Domain Id=\"any\"><General>");
        if !self.interfaces.is_empty() {
            xml.push_str("<Interfaces>");
            for interface in &self.interfaces {
                let multicast = if self.force_multicast { "true" } else { "default" };
                let name = escaped(interface);
                let _ = write!(xml, r#"<NetworkInterface name="{name}" multicast="{multicast}"/>"#);
            }
            xml.push_str("</Interfaces>");
        } else if self.and_loopback {
            xml.push_str(
                r#"<Interfaces><NetworkInterface autodetermine="true"/><NetworkInterface name="lo"/></Interfaces>"#,
            );
        }
        let multicast = if self.no_multicast { "false" } else { "default" };
        let stays_here = self.interfaces == ["lo"];
        let fragment_bytes = match (stays_here, self.security.is_some()) {
            (true, false) => FRAGMENT_BYTES,
            (true, true) => FRAGMENT_BYTES - SECURED_BYTES,
            (false, false) => PACKET_FRAGMENT_BYTES,
            (false, true) => PACKET_FRAGMENT_BYTES - PACKET_SECURED_BYTES,
        };
        let message_bytes = match self.security {
            Some(_) => MESSAGE_BYTES - SECURED_BYTES,
            None => MESSAGE_BYTES,
        };
        let _ = write!(
            xml,
            "<AllowMulticast>{multicast}</AllowMulticast>\
             <MaxMessageSize>{message_bytes}B</MaxMessageSize><FragmentSize>{fragment_bytes}B</FragmentSize></General>"
        );
        let _ = write!(
            xml,
            "<Discovery><ExternalDomainId>{}</ExternalDomainId>\
             <ParticipantIndex>{}</ParticipantIndex>\
             <MaxAutoParticipantIndex>{}</MaxAutoParticipantIndex>\
             <LeaseDuration>{LEASE_S}s</LeaseDuration>\
             <SPDPInterval>{ANNOUNCE_MS}ms</SPDPInterval>\
             <InitialLocatorPruneDelay>inf</InitialLocatorPruneDelay>",
            self.domain,
            match ports {
                Ports::OfIndex => "auto",
                Ports::Any => "none",
            },
            self.index_max(),
        );
        if !peers.is_empty() {
            xml.push_str("<Peers>");
            for peer in peers {
                let _ = write!(xml, r#"<Peer address="{peer}"/>"#);
            }
            xml.push_str("</Peers>");
        }
        let receive_bytes = RECEIVE_BUFFER_BYTES.min(receive_buffer_bytes_max);
        let _ = write!(
            xml,
            "</Discovery><Internal><GenerateKeyhash>true</GenerateKeyhash><SocketReceiveBufferSize min=\"{receive_bytes}B\"/>\
             <NackDelay>{NACK_DELAY_MS}ms</NackDelay>\
             <HeartbeatInterval>{HEARTBEAT_MS}ms</HeartbeatInterval><Watermarks><WhcHigh>{QUEUE_BYTES}B</WhcHigh><WhcHighInit>{QUEUE_BYTES}B</WhcHighInit>\
             <WhcAdaptive>false</WhcAdaptive></Watermarks></Internal></Domain></CycloneDDS>"
        );
        if let Some(extra) = &self.extra {
            let _ = write!(xml, ",{extra}");
        }
        xml
    }
}

/// A fragment of a large sample that stays on this host: all that a datagram has room for.
const FRAGMENT_BYTES: u32 = 65000;

/// What a datagram of UDP has room for.
const MESSAGE_BYTES: u32 = 65500;

/// What protection may add to a message, with a code for each of some receivers.
const SECURED_BYTES: u32 = 512;

/// What it adds to a fragment in a packet of its own where payload, submessage and message are encrypted.
const PACKET_SECURED_BYTES: u32 = 160;

/// One that leaves it, which fits with all that stands around it into a packet of 1500 bytes, as the engine has it
/// by default.
const PACKET_FRAGMENT_BYTES: u32 = 1344;

/// How long a reader waits before it asks for what is missing. The engine's own 100 ms are felt each
/// time a reader is new, which is told with the first sample that it missed some.
const NACK_DELAY_MS: u32 = 10;

/// How long after a sample the engine asks whether it has come, and so may let go of it. It asks in a pause
/// between samples; with its own 100 ms a camera of 30 Hz has none, and all that the depth allows is kept, though
/// it has long come.
const HEARTBEAT_MS: u32 = 30;

/// Which ports a participant has for what is sent to it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// Those of the first index that is free. Whoever looks for peers by addresses tries these.
    OfIndex,
    /// Any that the system gives. Multicast announces them.
    Any,
}

/// As many participants of a host and domain have ports of an index.
const INDEX_MAX: u32 = 119;
const UNICAST_OFFSET: u32 = 11;
const PORTS_OF_INDEX: u32 = 2;

/// Where participants announce themselves (RTPS 2.5, 9.6.2.3).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
const PORT_BASE: u32 = 7400;
const DOMAIN_GAIN: u32 = 250;

/// As far as the engine's own announcements go.
const HOPS_MAX: u8 = 32;

/// How long a participant that says nothing is taken for alive. Until then what it does not acknowledge
/// is kept for it.
const LEASE_S: u32 = 3;

/// How often a participant says that it is there: as the engine has it by default, but also to peers
/// that are named and silent, and for ever. Left alone the engine says it to those once more after
/// 30 s and then never again, so that a host that starts or returns later is not found. It costs one
/// datagram for each of the 120 ports of such a peer.
const ANNOUNCE_MS: u32 = 800 * LEASE_S;

/// How much of what the user wrote stands in an error.
const EXTRA_SHOWN_CHARS: usize = 200;

/// More than a writer lets go unacknowledged, so that the engine refuses nothing that was reserved.
const QUEUE_BYTES: u64 = 1 << 30;

/// What a burst of a sample of some megabytes needs.
pub(crate) const RECEIVE_BUFFER_BYTES: u64 = 4 << 20;

/// What there is to say where the system allows a socket so much.
pub(crate) fn buffer_warning(receive_buffer_bytes_max: u64) -> Option<String> {
    (receive_buffer_bytes_max < RECEIVE_BUFFER_BYTES).then(|| {
        format!(
            "a socket's receive buffer is limited to {receive_buffer_bytes_max} bytes, so samples of \
             some megabytes will be late; as root: sysctl -w net.core.rmem_max={RECEIVE_BUFFER_BYTES}"
        )
    })
}

/// What the system allows a socket, as far as it says.
pub(crate) fn receive_buffer_bytes_max() -> u64 {
    let said = std::fs::read_to_string("/proc/sys/net/core/rmem_max");
    said.ok().and_then(|said| said.trim().parse().ok()).unwrap_or(RECEIVE_BUFFER_BYTES)
}

/// The addresses of a host.
fn resolve(peer: &str) -> Result<Vec<Ipv4Addr>> {
    let refused = |why: String| {
        let error = Error::new(ErrorKind::Invalid, "look for a peer");
        error.about(format!("{peer}: {why}; allowed: a name or an IPv4 address"))
    };
    let is_of_a_name = |it: char| it.is_ascii_alphanumeric() || "-._".contains(it);
    if peer.is_empty() || !peer.chars().all(is_of_a_name) {
        return Err(refused("it is neither".to_owned()));
    }
    let found = (peer, 0).to_socket_addrs().map_err(|error| {
        Error::new(ErrorKind::Unexpected, "look for a peer").about(peer).because(error)
    })?;
    let addresses = found.filter_map(|it| match it.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    let addresses: Vec<_> = addresses.collect();
    if addresses.is_empty() {
        return Err(refused("it has no IPv4 address".to_owned()));
    }
    Ok(addresses)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_asked_for_is_no_larger_than_the_system_gives() {
        let config = CycloneConfig::default();
        assert!(config.to_xml(&[], 1 << 30, Ports::OfIndex).contains("min=\"4194304B\""));
        assert!(config.to_xml(&[], 212_992, Ports::OfIndex).contains("min=\"212992B\""));
    }

    #[test]
    fn a_buffer_that_is_too_small_is_told_with_what_mends_it() {
        assert_eq!(buffer_warning(RECEIVE_BUFFER_BYTES), None);
        let said = buffer_warning(212_992).unwrap();
        assert!(
            said.contains("212992 bytes") && said.contains("net.core.rmem_max=4194304"),
            "{said}"
        );
    }

    #[test]
    fn silent_peers_are_looked_for_again_and_again() {
        let xml = CycloneConfig::default().to_xml(
            &[Ipv4Addr::new(192, 0, 2, 7)],
            1 << 30,
            Ports::OfIndex,
        );
        let interval = "<SPDPInterval>2400ms</SPDPInterval>";
        let for_ever = "<InitialLocatorPruneDelay>inf</InitialLocatorPruneDelay>";
        assert!(xml.contains(interval) && xml.contains(for_ever), "{xml}");
    }

    #[test]
    fn the_last_domain_has_fewer_indices() {
        let said = |domain, ports| {
            CycloneConfig { domain, ..Default::default() }.to_xml(&[], 1 << 30, ports)
        };
        let index = |max| format!("<MaxAutoParticipantIndex>{max}</MaxAutoParticipantIndex>");
        assert!(said(231, Ports::OfIndex).contains(&index(119)));
        assert!(said(232, Ports::OfIndex).contains(&index(62)));
        assert!(said(0, Ports::Any).contains("<ParticipantIndex>none</ParticipantIndex>"));
    }

    #[test]
    fn what_the_user_adds_is_read_last() {
        let extra = Some("file:///etc/cyclone.xml,<General/>".to_owned());
        let xml =
            CycloneConfig { extra, ..Default::default() }.to_xml(&[], 1 << 30, Ports::OfIndex);
        assert!(xml.ends_with("</CycloneDDS>,file:///etc/cyclone.xml,<General/>"), "{xml}");
    }

    #[test]
    fn others_are_heard_by_multicast_or_not_at_all() {
        let interface = |name: &str, has_multicast| Interface {
            name: name.to_owned(),
            is_up: true,
            is_running: true,
            is_loopback: name == "lo",
            has_multicast,
            addresses: vec![Ipv4Addr::LOCALHOST.into()],
        };
        let all = [interface("eth0", true), interface("lo", false), interface("ppp0", false)];
        let heard = |config: &CycloneConfig| config.announcements(&all);
        let on = |names: &[&str], port| Announcements {
            group: SocketAddrV4::new(GROUP, port),
            interfaces: names.iter().map(|it| (*it).to_owned()).collect(),
            hops_max: 32,
        };
        let plain = CycloneConfig { domain: 7, ..Default::default() };
        assert_eq!(heard(&plain), Ok(on(&["eth0"], 9150)));
        assert_eq!(heard(&CycloneConfig::on_loopback(232)), Ok(on(&["lo"], 65_400)));
        let check = |config: CycloneConfig, expect: &str| {
            assert_eq!(heard(&config), Err(expect.to_owned()));
        };
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let peers = words(&["192.0.2.7", "b"]);
        check(CycloneConfig { peers, ..plain.clone() }, "peers are named: 192.0.2.7 b");
        let no_multicast = CycloneConfig { no_multicast: true, ..plain.clone() };
        check(no_multicast, "nobody is looked for by multicast");
        let extra = Some("<General/>".to_owned());
        let extra = CycloneConfig { extra, ..plain.clone() };
        check(extra, "CYCLONEDDS_URI may say elsewhere where others are");
        let interfaces = words(&["eth0", "ppp0"]);
        check(CycloneConfig { interfaces, ..plain.clone() }, "ppp0 has no multicast over IPv4");
        let down = all.map(|it| Interface { is_up: false, ..it });
        let expect = "no interface has multicast over IPv4";
        assert_eq!(plain.announcements(&down), Err(expect.to_owned()));
    }

    #[test]
    fn the_addresses_that_the_engine_takes() {
        let interface = |name: &str, last: u8, has_multicast| Interface {
            name: name.to_owned(),
            is_up: true,
            is_running: true,
            is_loopback: name == "lo",
            has_multicast,
            addresses: vec![Ipv4Addr::new(192, 0, 2, last).into()],
        };
        let all = [
            interface("docker0", 9, true),
            interface("eth0", 2, true),
            interface("lo", 1, true),
            interface("ppp0", 3, false),
        ];
        let index =
            |name: &str| ["lo", "ppp0", "eth0", "docker0"].iter().position(|it| *it == name);
        let check = |config: CycloneConfig, all: &[Interface], expect: &[u8]| {
            let found = config.addresses(all, |name| index(name).and_then(|it| it.try_into().ok()));
            let expect: Vec<IpAddr> =
                expect.iter().map(|it| Ipv4Addr::new(192, 0, 2, *it).into()).collect();
            assert_eq!(found, expect);
        };
        let plain = CycloneConfig::default;
        check(plain(), &all, &[2]);
        check(plain(), &all[..1], &[9]);
        check(plain(), &all[2..3], &[]);
        check(plain(), &all[2..], &[3]);
        check(CycloneConfig::on_loopback(0), &all, &[]);
        let named = |names: &[&str]| CycloneConfig {
            interfaces: names.iter().map(|it| (*it).to_owned()).collect(),
            ..plain()
        };
        check(named(&["ppp0", "lo"]), &all, &[3]);
        check(named(&["ppp0", "wlan0"]), &all, &[]);
        let here = CycloneConfig { peers: vec!["127.0.0.1".to_owned()], ..plain() };
        check(CycloneConfig { and_loopback: true, ..here }, &all, &[]);
        // Until one is up, loopback stands in.
        let late = CycloneConfig { loopback_until_up: true, ..plain() };
        let on_loopback =
            CycloneConfig { loopback_until_up: true, ..CycloneConfig::on_loopback(0) };
        assert_eq!((late.now(&all[2..3]), late.now(&all)), (on_loopback, late.clone()));
        check(late, &all, &[2]);
        // What the user adds is all that is used, and nothing that comes beside it counts.
        let added = |xml: &str| CycloneConfig { extra: Some(xml.to_owned()), ..plain() };
        check(added("<General/>"), &all, &[2]);
        let ppp0 = "<NetworkInterface name='ppp0'/>";
        check(added(ppp0), &all, &[3]);
        check(added(ppp0), &all[3..], &[3]);
        check(added(ppp0), &all[..3], &[]);
        check(added("<NetworkInterface address='192.0.2.3'/>"), &all, &[3]);
        check(added("<NetworkInterface address='127.0.0.1'/>"), &all, &[]);
        check(added("<NetworkInterface name='${IT}'/>"), &all, &[]);
        check(added("<NetworkInterfaceAddress>docker0</NetworkInterfaceAddress>"), &all, &[9]);
        let optional = format!("{ppp0}<NetworkInterface name='wlan0' presence_required='false'/>");
        check(added(&optional), &all, &[3]);
        check(CycloneConfig { and_loopback: true, ..added(ppp0) }, &all, &[2, 3]);
        check(CycloneConfig { extra: added(ppp0).extra, ..named(&["eth0"]) }, &all, &[2, 3]);
    }

    #[test]
    fn a_peer_is_an_address_or_a_name_that_has_one() {
        let resolved = |peer: &str| {
            let config = CycloneConfig { peers: vec![peer.to_owned()], ..Default::default() };
            config.resolve_peers()
        };
        assert_eq!(resolved("192.0.2.7").unwrap(), [Ipv4Addr::new(192, 0, 2, 7)]);
        assert_eq!(resolved("localhost").unwrap(), [Ipv4Addr::LOCALHOST]);
        assert!(resolved("no-such-host.invalid").unwrap().is_empty());
        for peer in ["", "::1", "a b", "x<y>", "192.0.2.1:80"] {
            let error = resolved(peer).unwrap_err().to_string();
            assert!(error.contains("allowed: a name or an IPv4 address"), "{error}");
        }
    }
}
