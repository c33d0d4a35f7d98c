//! Somebody on the loopback interface who hears every packet of a domain of RTPS, and says it again, as it was and altered.

use std::collections::VecDeque;
use std::io::Error;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::house::{Random, wait_until};

/// Attacks from its start on, until it rests or is dropped.
pub(crate) struct Attacker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    rests: AtomicBool,
    is_over: AtomicBool,
    sent: AtomicU64,
}

impl Attacker {
    /// `None` where nobody may hear the packets of others, which is said.
    #[allow(clippy::print_stderr, reason = "says that it did not run")]
    pub(crate) fn start(domain: u32) -> Option<Self> {
        let ears = match hears_all() {
            Ok(ears) => ears,
            Err(error) => {
                eprintln!("packets of others cannot be heard here: {error}: not run");
                return None;
            }
        };
        let shared = Arc::<Shared>::default();
        let first = u16::try_from(7400 + 250 * domain).unwrap();
        let mut attack = Attack {
            ears,
            mouth: mouth(),
            ports: [first, first + 250],
            heard: VecDeque::new(),
            random: Random(u64::from(domain)),
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::spawn(move || attack.run());
        Some(Self { shared, thread: Some(thread) })
    }

    /// Waits until this part of [`attacks`] was said.
    pub(crate) fn says(&self, part: f64) {
        let mut left = (part * attacks() as f64) as u64;
        while 0 < left {
            let some = left.min(1000);
            let until = self.shared.sent.load(Ordering::Acquire) + some;
            wait_until("enough was said", || until <= self.shared.sent.load(Ordering::Acquire));
            left -= some;
        }
    }

    /// Lets it rest, or go on.
    pub(crate) fn rests(&self, rests: bool) {
        self.shared.rests.store(rests, Ordering::Release);
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Its panic is the test's.
            thread.join().unwrap();
        }
    }
}

struct Attack {
    ears: OwnedFd,
    mouth: UdpSocket,
    /// Those of the domain, up to the second.
    ports: [u16; 2],
    /// What was heard last.
    heard: VecDeque<(Vec<u8>, SocketAddrV4)>,
    random: Random,
    shared: Arc<Shared>,
}

impl Attack {
    fn run(&mut self) {
        while !self.shared.is_over.load(Ordering::Acquire) {
            let fresh = self.hear();
            if self.shared.rests.load(Ordering::Acquire) {
                continue;
            }
            // Each of these as it was, and then some at random, old ones among them.
            for (packet, to) in &fresh {
                self.say(packet, *to);
            }
            for _ in 0..PER_TURN {
                let count = self.heard.len() as u64;
                if count == 0 {
                    break;
                }
                let [one, other] =
                    [0; 2].map(|_| self.heard[self.random.below(count) as usize].clone());
                let packet = match self.random.below(4) {
                    0 => one.0,
                    _ => altered(one.0, &other.0, &mut self.random),
                };
                self.say(&packet, one.1);
            }
        }
    }

    /// What comes in a millisecond or two, of which others on this interface may have much more.
    fn hear(&mut self) -> Vec<(Vec<u8>, SocketAddrV4)> {
        let own = self.mouth.local_addr().unwrap().port();
        let mut fresh = Vec::new();
        let mut bytes = vec![0; 1 << 16];
        let until = Instant::now() + Duration::from_millis(2);
        while Instant::now() < until
            && let Some(length) = receive(&self.ears, &mut bytes)
        {
            let Some((from, to, packet)) = udp(&bytes[..length]) else { continue };
            let is_of_domain = (self.ports[0]..self.ports[1]).contains(&to.port());
            if from != own && is_of_domain && packet.starts_with(b"RTPS") {
                fresh.push((packet.to_vec(), to));
                if fresh.len() == PER_TURN {
                    break;
                }
            }
        }
        self.heard.extend(fresh.iter().cloned());
        self.heard.drain(..self.heard.len().saturating_sub(KEPT));
        fresh
    }

    fn say(&self, packet: &[u8], to: SocketAddrV4) {
        // Whom it is for may have gone.
        let _ = self.mouth.send_to(packet, to);
        self.shared.sent.fetch_add(1, Ordering::AcqRel);
    }
}

/// Somewhat another packet, mostly behind the header, so that it is looked at.
fn altered(mut packet: Vec<u8>, other: &[u8], random: &mut Random) -> Vec<u8> {
    const HEADER: usize = 20;
    let length = packet.len() as u64;
    let within = |random: &mut Random| match random.below(8) {
        0 => random.below(length) as usize,
        _ => (HEADER as u64 + random.below(length.saturating_sub(HEADER as u64).max(1))) as usize,
    };
    match random.below(8) {
        0..=3 => {
            for _ in 0..=random.below(4) {
                let at = within(random);
                if let Some(byte) = packet.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
        }
        4 => {
            let at = within(random) & !3;
            let extreme = [0_u32, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX][random.below(5) as usize];
            if let Some(word) = packet.get_mut(at..at + 4) {
                word.copy_from_slice(&extreme.to_le_bytes());
            }
        }
        5 => packet.truncate(random.below(length) as usize),
        6 => packet.extend((0..random.below(300)).map(|_| random.next() as u8)),
        _ => {
            // What another has said, in this one's name.
            let from = HEADER + 4 * random.below(other.len() as u64 / 4) as usize;
            packet.truncate(HEADER.max(within(random) & !3));
            packet.extend(other.get(from..).unwrap_or_default());
            packet.truncate(65_507);
        }
    }
    packet
}

/// All packets of the loopback interface, where that is allowed.
fn hears_all() -> Result<OwnedFd, Error> {
    let protocol = u16::try_from(libc::ETH_P_IP).unwrap().to_be();
    // SAFETY: plain numbers; the descriptor is this one's alone.
    let ears = unsafe {
        let fd = libc::socket(
            libc::AF_PACKET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            i32::from(protocol),
        );
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let patience = libc::timeval { tv_sec: 0, tv_usec: 2000 };
    set(&ears, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &patience)?;
    // SAFETY: zeros are an address of it.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap();
    address.sll_protocol = protocol;
    // SAFETY: the name ends with a zero, and the address is as long as said.
    let bound = unsafe {
        address.sll_ifindex = i32::try_from(libc::if_nametoindex(c"lo".as_ptr())).unwrap();
        let length = u32::try_from(size_of_val(&address)).unwrap();
        libc::bind(ears.as_raw_fd(), (&raw const address).cast(), length)
    };
    if bound == 0 { Ok(ears) } else { Err(Error::last_os_error()) }
}

/// Says what it has to say on the loopback interface, groups too.
fn mouth() -> UdpSocket {
    let mouth = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let own = libc::in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() };
    set(&mouth, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &own).unwrap();
    mouth
}

fn set<T>(
    socket: &impl std::os::fd::AsRawFd,
    level: i32,
    name: i32,
    value: &T,
) -> Result<(), Error> {
    let length = u32::try_from(size_of::<T>()).unwrap();
    // SAFETY: the value is as long as said.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const *value).cast(), length)
    };
    if set == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// The next packet that comes in, if one does in time. Those that go out come in as well on this interface, and a socket of one protocol
/// is not told of them before.
fn receive(ears: &OwnedFd, bytes: &mut [u8]) -> Option<usize> {
    // SAFETY: the bytes are as many as said.
    let length = unsafe { libc::recv(ears.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    usize::try_from(length).ok()
}

/// The port that a packet of IPv4 and UDP is from, where it goes, and what it says. Nothing of one in pieces.
fn udp(packet: &[u8]) -> Option<(u16, SocketAddrV4, &[u8])> {
    let header = 4 * usize::from(packet.first()? & 15);
    let is_whole = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff == 0;
    if *packet.get(9)? != 17 || !is_whole {
        return None;
    }
    let to = Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(16..20)?).unwrap());
    let udp = packet.get(header..)?;
    let port = |at: usize| Some(u16::from_be_bytes([*udp.get(at)?, *udp.get(at + 1)?]));
    Some((port(0)?, SocketAddrV4::new(to, port(2)?), udp.get(8..)?))
}

/// How many packets the long tests say in vain: 10,000 unless the environment says otherwise.
fn attacks() -> u64 {
    let said = std::env::var("TSUJI_ATTACKS").ok().and_then(|it| it.parse().ok());
    said.unwrap_or(10_000)
}

/// So many packets it says in a turn beside those that it has just heard.
const PER_TURN: usize = 16;

/// So many it remembers.
const KEPT: usize = 2000;
