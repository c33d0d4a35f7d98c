//! A link between two hosts that loses, delays and is slow: a process with a network card on each of
//! them, which passes on what is sent from one to the other.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::lan::LINK;
use super::{Random, heard, tell};

/// How a link is, each way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkSpec {
    /// Of a thousand frames so many are lost.
    pub(crate) lost_per_mille: u64,
    /// How long a frame takes.
    pub(crate) delay_us: u64,
    /// Bits in a second; 0 for as many as come.
    pub(crate) rate: u64,
}

/// How long a frame may have to wait for a slow link; what would wait longer is lost, as in a switch.
const QUEUE_MAX: Duration = Duration::from_millis(50);

/// What the parent says and `play` reads.
impl LinkSpec {
    pub(crate) fn words(self) -> String {
        format!("{} {} {}", self.lost_per_mille, self.delay_us, self.rate)
    }
}

impl FromStr for LinkSpec {
    type Err = std::num::ParseIntError;

    fn from_str(words: &str) -> Result<Self, Self::Err> {
        let numbers: Result<Vec<u64>, _> = words.split_whitespace().map(str::parse).collect();
        let numbers = numbers?;
        let at = |at: usize| numbers.get(at).copied().unwrap_or_default();
        Ok(Self { lost_per_mille: at(0), delay_us: at(1), rate: at(2) })
    }
}

/// The child's part: first the process that holds the other host, then, each time, how the link is from
/// now on, which is answered with the frames passed on and lost so far.
pub(crate) fn play() {
    let there: i32 = heard().trim().parse().unwrap();
    let here = network_card(None).unwrap();
    // A thread is moved to the other host, and ends there.
    let there = thread::spawn(move || network_card(Some(there))).join().unwrap().unwrap();
    let link = Arc::new(Link::default());
    for (number, (from, to)) in [(&here, &there), (&there, &here)].into_iter().enumerate() {
        pass_on(&link, number as u64, from.try_clone().unwrap(), to.try_clone().unwrap());
    }
    tell("ready");
    loop {
        let line = heard();
        if line.is_empty() {
            return;
        }
        *link.spec.lock().unwrap() = line.parse().unwrap();
        let said = |it: &AtomicU64| it.load(Ordering::Relaxed);
        tell(&format!("passed {} lost {}", said(&link.passed), said(&link.lost)));
    }
}

#[derive(Default)]
struct Link {
    spec: Mutex<LinkSpec>,
    passed: AtomicU64,
    lost: AtomicU64,
}

/// Frames that wait until they are due.
#[derive(Default)]
struct Queue {
    frames: Mutex<VecDeque<(Instant, Vec<u8>)>>,
    is_more: Condvar,
}

fn pass_on(link: &Arc<Link>, seed: u64, mut from: File, mut to: File) {
    let queue = Arc::new(Queue::default());
    let (link, sending) = (Arc::clone(link), Arc::clone(&queue));
    thread::spawn(move || {
        loop {
            let mut frames = sending.frames.lock().unwrap();
            let (due, frame) = loop {
                match frames.pop_front() {
                    Some(first) => break first,
                    None => frames = sending.is_more.wait(frames).unwrap(),
                }
            };
            drop(frames);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            // A host whose card is down gets nothing.
            let _ = to.write_all(&frame);
        }
    });
    thread::spawn(move || {
        let mut random = Random(seed + 1);
        let mut frame = vec![0; 1 << 16];
        let mut free_from = Instant::now();
        loop {
            let len = match from.read(&mut frame) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => {
                    // The card is down.
                    thread::sleep(Duration::from_millis(10));
                    continue;
                }
            };
            let spec = *link.spec.lock().unwrap();
            let now = Instant::now();
            let mut frames = queue.frames.lock().unwrap();
            let is_full = QUEUE_MAX < free_from.saturating_duration_since(now);
            if is_full || random.below(1000) < spec.lost_per_mille {
                link.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            link.passed.fetch_add(1, Ordering::Relaxed);
            let bits = 8 * len as u64;
            let sending = bits.saturating_mul(1_000_000).checked_div(spec.rate).unwrap_or(0);
            free_from = free_from.max(now) + Duration::from_micros(sending);
            let due = free_from + Duration::from_micros(spec.delay_us);
            frames.push_back((due, frame[..len].to_vec()));
            queue.is_more.notify_one();
        }
    });
}

/// A new network card on this host or on that of a process, which is there while the file is open.
fn network_card(of: Option<i32>) -> io::Result<File> {
    if let Some(pid) = of {
        let network = File::open(format!("/proc/{pid}/ns/net"))?;
        // SAFETY: the descriptor is open.
        check(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) })?;
    }
    let card = File::options().read(true).write(true).open("/dev/net/tun")?;
    // SAFETY: all of it may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(LINK.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: it reads and writes an ifreq.
    check(unsafe { libc::ioctl(card.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    Ok(card)
}

fn check(answer: i32) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
