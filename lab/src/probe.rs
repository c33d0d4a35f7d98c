//! The two ends of a measurement: who sends waits until who receives has fallen asleep.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::iter::Sum;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tsuji_platform::clock::{monotonic_ns, process_cpu_ns, thread_cpu_ns};

use crate::picture::{self, Damaged, HANDSHAKE, Pictures};

/// Processor time of this process, without what the laboratory itself uses.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    excluded_ns: AtomicU64,
}

impl Meter {
    /// Leaves out what the calling thread does until the guard is dropped.
    pub(crate) fn exclude(&self) -> Excluded<'_> {
        Excluded { meter: self, since: thread_cpu_ns() }
    }

    /// What has been used so far. A guard of another thread that is not dropped yet is not left out,
    /// so a later figure may be smaller by what that thread has used.
    pub(crate) fn used_ns(&self) -> u64 {
        process_cpu_ns().saturating_sub(self.excluded_ns.load(Ordering::Relaxed))
    }
}

/// Ends the time that is left out.
#[must_use]
#[derive(Debug)]
pub(crate) struct Excluded<'a> {
    meter: &'a Meter,
    since: u64,
}

impl Drop for Excluded<'_> {
    fn drop(&mut self) {
        let used = thread_cpu_ns().saturating_sub(self.since);
        self.meter.excluded_ns.fetch_add(used, Ordering::Relaxed);
    }
}

/// What has arrived.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// Pictures as they should be, where each is compared and acknowledged.
    pictures: Option<(Pictures, Mutex<UnixStream>)>,
    meter: Arc<Meter>,
    paced: Mutex<Paced>,
    beside: Gaps,
    stream: Stream,
}

/// What is known of the topic beside.
#[derive(Default)]
struct Gaps {
    /// The number of its next picture.
    next: AtomicU64,
    /// What counts those that its queue has let go, and how many of them were reported.
    displaced: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>>,
    reported: AtomicU64,
}

impl fmt::Debug for Gaps {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Gaps").field("next", &self.next).finish_non_exhaustive()
    }
}

/// What arrived of one block.
#[derive(Debug, Default)]
pub(crate) struct Paced {
    /// Number and time of each right picture.
    pub(crate) arrived: Vec<(u64, u64)>,
    /// Pictures that were not as they were drawn.
    pub(crate) damaged: u64,
    /// What came on the topic beside.
    pub(crate) beside: Beside,
}

/// Pictures of another topic, which are counted and not timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Beside {
    /// How many came.
    pub(crate) came: u64,
    /// How many did not, before one that did.
    pub(crate) missing: u64,
    /// How many of them a full queue let go for newer ones.
    #[serde(default)]
    pub(crate) displaced: u64,
}

impl Beside {
    /// Those that did not come though there was room.
    pub(crate) fn lost(&self) -> u64 {
        self.missing.saturating_sub(self.displaced)
    }
}

impl Sum for Beside {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, it| Self {
            came: sum.came + it.came,
            missing: sum.missing + it.missing,
            displaced: sum.displaced + it.displaced,
        })
    }
}

#[derive(Debug, Default)]
struct Stream {
    next: AtomicU64,
    missing: AtomicU64,
    awaited: AtomicU64,
    reached_at: Mutex<Option<u64>>,
    reached: Condvar,
}

impl Arrivals {
    /// Compares each picture and acknowledges it, outside what is timed.
    pub(crate) fn paced(size: usize, acknowledge: UnixStream, meter: Arc<Meter>) -> Arc<Self> {
        let paced = Paced { arrived: Vec::with_capacity(BLOCK_MAX), ..Paced::default() };
        Arc::new(Self {
            pictures: Some((Pictures::new(size), Mutex::new(acknowledge))),
            meter,
            paced: Mutex::new(paced),
            beside: Gaps::default(),
            stream: Stream::default(),
        })
    }

    /// Only counts and looks for gaps.
    pub(crate) fn stream(meter: Arc<Meter>) -> Arc<Self> {
        Arc::new(Self {
            pictures: None,
            meter,
            paced: Mutex::default(),
            beside: Gaps::default(),
            stream: Stream::default(),
        })
    }

    /// To be called with each picture as soon as it can be read.
    pub(crate) fn arrived(&self, seen: &[u8]) {
        let Some((pictures, acknowledge)) = &self.pictures else { return self.counted(seen) };
        let at = monotonic_ns();
        let _excluded = self.meter.exclude();
        let mut paced = self.paced.lock().unwrap_or_else(PoisonError::into_inner);
        match pictures.check(seen) {
            Ok(HANDSHAKE) => (),
            Ok(number) => paced.arrived.push((number, at)),
            Err(Damaged) => paced.damaged += 1,
        }
        drop(paced);
        let number = picture::number(seen).unwrap_or(HANDSHAKE);
        let mut acknowledge = acknowledge.lock().unwrap_or_else(PoisonError::into_inner);
        // A sender that has gone needs no acknowledgement.
        let _ = acknowledge.write_all(&number.to_le_bytes());
    }

    /// To be called with each picture of the topic beside, whose numbers begin with 0.
    pub(crate) fn arrived_beside(&self, seen: &[u8]) {
        let Some(number) = picture::number(seen) else { return };
        let next = self.beside.next.swap(number + 1, Ordering::Relaxed);
        let mut paced = self.paced.lock().unwrap_or_else(PoisonError::into_inner);
        paced.beside.came += 1;
        paced.beside.missing += number.abs_diff(next);
    }

    /// `count` tells how many pictures of the topic beside a full queue has let go.
    pub(crate) fn count_displaced_beside(&self, count: impl Fn() -> u64 + Send + Sync + 'static) {
        // There is one such topic.
        let _ = self.beside.displaced.set(Box::new(count));
    }

    fn counted(&self, seen: &[u8]) {
        let number = picture::number(seen).unwrap_or(HANDSHAKE);
        let stream = &self.stream;
        if number == HANDSHAKE {
            self.reach(0);
            return;
        }
        let next = stream.next.load(Ordering::Relaxed);
        if number != next {
            stream.missing.fetch_add(number.abs_diff(next), Ordering::Relaxed);
        }
        stream.next.store(number + 1, Ordering::Release);
        if number + 1 == stream.awaited.load(Ordering::Acquire) {
            self.reach(monotonic_ns());
        }
    }

    fn reach(&self, at: u64) {
        *self.stream.reached_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        self.stream.reached.notify_all();
    }

    /// What arrived since the last call.
    pub(crate) fn take_paced(&self) -> Paced {
        let mut paced = self.paced.lock().unwrap_or_else(PoisonError::into_inner);
        let displaced = self.beside.displaced.get().map_or(0, |count| count());
        let reported = self.beside.reported.swap(displaced, Ordering::Relaxed);
        paced.beside.displaced = displaced.saturating_sub(reported);
        let fresh = Paced { arrived: Vec::with_capacity(BLOCK_MAX), ..Paced::default() };
        std::mem::replace(&mut paced, fresh)
    }

    /// Before the sender begins: the number of pictures after which it is over.
    pub(crate) fn await_count(&self, count: u64) {
        *self.stream.reached_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.stream.awaited.store(count, Ordering::Release);
    }

    /// Waits until that many have arrived, or none has come for [`SILENCE`].
    pub(crate) fn wait_for_count(&self, patience: Duration) -> Reached {
        let stream = &self.stream;
        let mut reached_at = stream.reached_at.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = stream.next.load(Ordering::Acquire);
        loop {
            let next = stream.next.load(Ordering::Acquire);
            if reached_at.is_some() {
                let missing = stream.missing.swap(0, Ordering::Relaxed);
                return Reached { at: *reached_at, missing };
            }
            let woken = stream.reached.wait_timeout(reached_at, patience);
            let (guard, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            reached_at = guard;
            let now = stream.next.load(Ordering::Acquire);
            if timeout.timed_out() && now == before && reached_at.is_none() {
                let awaited = stream.awaited.load(Ordering::Relaxed);
                stream.next.store(awaited, Ordering::Relaxed);
                let missing = stream.missing.swap(0, Ordering::Relaxed);
                return Reached { at: None, missing: missing + awaited.saturating_sub(next) };
            }
            before = now;
        }
    }
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// When the last picture came, if it came.
    pub(crate) at: Option<u64>,
    /// Pictures that did not come.
    pub(crate) missing: u64,
}

/// Samples of a block that are noted without growing a vector.
pub(crate) const BLOCK_MAX: usize = 4096;

/// After so long without a sample, what has not come is lost.
pub(crate) const SILENCE: Duration = Duration::from_secs(2);

/// How the sender learns that a picture was read, and that its reader sleeps again.
#[derive(Debug)]
pub(crate) struct Pacer {
    acknowledged: UnixStream,
    state: File,
    pause: Duration,
}

impl Pacer {
    /// The sending end for a receiver whose thread is `thread`, a path in `/proc`. After each
    /// sample it rests for at least `pause`.
    pub(crate) fn new(
        acknowledged: UnixStream,
        thread: &Path,
        pause: Duration,
    ) -> io::Result<Self> {
        acknowledged.set_read_timeout(Some(SILENCE))?;
        Ok(Self { acknowledged, state: File::open(thread.join("stat"))?, pause })
    }

    /// Returns when the receiving thread is asleep and has rested.
    pub(crate) fn wait_until_asleep(&self) -> Result<(), String> {
        let mut line = [0; 128];
        for _ in 0..NOT_ASLEEP_MAX {
            std::thread::sleep(self.pause);
            let read = self.state.read_at(&mut line, 0);
            let read = read.map_err(|error| format!("the receiver's thread: {error}"))?;
            // `pid (name) S …`, and the name may hold anything.
            let name_ends = line[..read].iter().rposition(|it| *it == b')');
            if name_ends.and_then(|at| line.get(at + 2)) == Some(&b'S') {
                return Ok(());
            }
        }
        Err("the receiver does not fall asleep".to_owned())
    }

    /// Whether the receiver has read the picture of that number, waiting up to [`SILENCE`] for it.
    pub(crate) fn is_acknowledged(&mut self, number: u64) -> bool {
        let mut bytes = [0; 8];
        while self.acknowledged.read_exact(&mut bytes).is_ok() {
            if u64::from_le_bytes(bytes) == number {
                return true;
            }
        }
        false
    }

    /// The same for the handshake, with less patience.
    pub(crate) fn is_greeted(&mut self) -> Result<bool, String> {
        let set = |it: &UnixStream, timeout| {
            it.set_read_timeout(Some(timeout)).map_err(|error| error.to_string())
        };
        set(&self.acknowledged, HANDSHAKE_PATIENCE)?;
        let greeted = self.is_acknowledged(HANDSHAKE);
        set(&self.acknowledged, SILENCE)?;
        Ok(greeted)
    }
}

/// A receiver that has not slept at so many looks has a fault.
const NOT_ASLEEP_MAX: u32 = 100_000;

const HANDSHAKE_PATIENCE: Duration = Duration::from_millis(200);

/// The thread that calls this, as a path in `/proc`.
pub(crate) fn this_thread() -> io::Result<PathBuf> {
    Ok(Path::new("/proc").join(fs::read_link("/proc/thread-self")?))
}

/// Both ends inside one process. The second is for the receiving thread to make a [`Pacer`] of.
pub(crate) fn pair() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}

/// Where a sender waits for its receiver.
pub(crate) fn listen(folder: &Path, name: &str) -> io::Result<UnixListener> {
    UnixListener::bind(folder.join(format!("{name}.acks")))
}

/// Called by the thread that will receive.
pub(crate) fn join(folder: &Path, name: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(folder.join(format!("{name}.acks")))?;
    let thread = this_thread()?;
    let thread = thread.as_os_str().as_encoded_bytes();
    stream.write_all(&(thread.len() as u64).to_le_bytes())?;
    stream.write_all(thread)?;
    Ok(stream)
}

/// The pacer of the receiver that has joined.
pub(crate) fn accept(listener: &UnixListener, pause: Duration) -> io::Result<Pacer> {
    let (mut stream, _) = listener.accept()?;
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let mut thread = vec![0; usize::try_from(u64::from_le_bytes(length)).unwrap_or(0).min(256)];
    stream.read_exact(&mut thread)?;
    let thread = String::from_utf8(thread).map_err(io::Error::other)?;
    Pacer::new(stream, Path::new(&thread), pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_noted_and_acknowledged_and_a_damaged_one_is_counted() {
        let (near, far) = pair().unwrap();
        let arrivals = Arrivals::paced(64, far, Arc::default());
        let mut pacer = Pacer::new(near, &this_thread().unwrap(), Duration::ZERO).unwrap();
        let pictures = Pictures::new(64);
        let mut canvas = vec![0; 64];
        pictures.draw(HANDSHAKE, &mut canvas);
        arrivals.arrived(&canvas);
        assert_eq!(pacer.is_greeted(), Ok(true));
        pictures.draw(5, &mut canvas);
        arrivals.arrived(&canvas);
        assert!(pacer.is_acknowledged(5));
        canvas[20] ^= 1;
        arrivals.arrived(&canvas);
        let paced = arrivals.take_paced();
        assert_eq!((paced.arrived.len(), paced.arrived[0].0, paced.damaged), (1, 5, 1));
    }

    #[test]
    fn a_gap_beside_is_counted_once() {
        let (_near, far) = pair().unwrap();
        let arrivals = Arrivals::paced(64, far, Arc::default());
        for number in [0_u64, 1, 4, 5] {
            arrivals.arrived_beside(&number.to_le_bytes());
        }
        let expect = Beside { came: 4, missing: 2, displaced: 0 };
        assert_eq!(arrivals.take_paced().beside, expect);
        assert_eq!(arrivals.take_paced().beside, Beside::default());
    }

    #[test]
    fn what_a_full_queue_let_go_beside_is_not_lost() {
        let (_near, far) = pair().unwrap();
        let arrivals = Arrivals::paced(64, far, Arc::default());
        let displaced = Arc::new(AtomicU64::new(0));
        arrivals.count_displaced_beside({
            let displaced = Arc::clone(&displaced);
            move || displaced.load(Ordering::Relaxed)
        });
        let mut blocks = Vec::new();
        for (number, let_go) in [(0_u64, 2), (3, 2), (5, 2), (6, 5)] {
            displaced.store(let_go, Ordering::Relaxed);
            arrivals.arrived_beside(&number.to_le_bytes());
            blocks.push(arrivals.take_paced().beside);
        }
        assert_eq!(blocks[0], Beside { came: 1, missing: 0, displaced: 2 });
        assert_eq!(blocks[1], Beside { came: 1, missing: 2, displaced: 0 });
        let first: Beside = blocks.iter().take(3).copied().sum();
        assert_eq!(first.lost(), 1, "one beyond what was let go");
        // What has gone leaves its gap only when a newer one comes.
        assert_eq!(blocks.into_iter().sum::<Beside>().lost(), 0);
    }

    #[test]
    fn a_gap_in_a_stream_is_counted() {
        let arrivals = Arrivals::stream(Arc::default());
        arrivals.await_count(5);
        for number in [0_u64, 1, 3, 4] {
            arrivals.arrived(&number.to_le_bytes());
        }
        let reached = arrivals.wait_for_count(SILENCE);
        assert_eq!((reached.at.is_some(), reached.missing), (true, 1));
        arrivals.await_count(9);
        arrivals.arrived(&5_u64.to_le_bytes());
        let reached = arrivals.wait_for_count(Duration::from_millis(1));
        assert_eq!(reached, Reached { at: None, missing: 3 });
    }
}
