//! One client, as both threads know it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tsuji_rosbridge::client::{Client, ClientLimits};
use tsuji_rosbridge::{Encoding, Level, Outgoing, Refusal, write_refusal};

use crate::Counters;
use crate::frame::{Frame, Kind};
use crate::wake::Wake;

/// One client. What waits for it is put here by any thread, and taken by that of the connections.
#[derive(Debug)]
pub(crate) struct Member {
    /// No other client has or had it.
    pub(crate) number: u64,
    /// How it wants to be spoken to.
    pub(crate) encoding: Encoding,
    place: usize,
    wake: Arc<Wake>,
    counters: Arc<Counters>,
    answers_bytes_max: usize,
    /// What was asked of the thread of ROS for it and is not done.
    ordered_bytes: AtomicUsize,
    state: Mutex<State>,
}

/// What a client asked for, and what waits for it.
#[derive(Debug)]
pub(crate) struct State {
    /// What it asked for, and the samples that wait.
    pub(crate) client: Client<Arc<Frame>, u64>,
    /// What comes before all samples, and is never dropped.
    answers: VecDeque<Arc<Frame>>,
    answers_bytes: usize,
    /// The thread of the connections knows that something waits.
    is_told: bool,
    /// It has left, or does not take its answers.
    is_gone: bool,
}

impl Member {
    pub(crate) fn new(
        number: u64,
        place: usize,
        encoding: Encoding,
        limits: ClientLimits,
        wake: Arc<Wake>,
        counters: Arc<Counters>,
    ) -> Self {
        let state = State {
            client: Client::new(limits),
            answers: VecDeque::new(),
            answers_bytes: 0,
            is_told: false,
            is_gone: false,
        };
        let answers_bytes_max = limits.queue.bytes_max;
        Self {
            number,
            encoding,
            place,
            wake,
            counters,
            answers_bytes_max,
            ordered_bytes: AtomicUsize::new(0),
            state: Mutex::new(state),
        }
    }

    /// Its state, for as long as the guard lives. Whoever puts something there to be sent calls [`tell`](Self::tell).
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the thread of the connections look at it, once for all that waits.
    pub(crate) fn tell(&self, mut state: MutexGuard<'_, State>) {
        if !std::mem::replace(&mut state.is_told, true) {
            drop(state);
            self.wake.dirty(self.place);
        }
    }

    /// Sends an answer. A client that lets too many wait is cut off.
    pub(crate) fn answer(&self, answer: &Outgoing<'_>) {
        self.send(|out| answer.write(out, self.encoding));
    }

    /// Sends what `write` appends, before all samples.
    pub(crate) fn send(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let frame = Frame::encode::<std::convert::Infallible>(self.kind(), |out| {
            write(out);
            Ok(())
        });
        let frame = match frame {
            Ok(frame) => frame,
            Err(never) => match never {},
        };
        let mut state = self.lock();
        if state.is_gone {
            return;
        }
        state.answers_bytes += frame.cost_bytes();
        if self.answers_bytes_max < state.answers_bytes {
            // It asks and does not listen.
            state.is_gone = true;
            state.answers.clear();
        } else {
            state.answers.push_back(Arc::new(frame));
        }
        self.tell(state);
    }

    /// Says why something was not done, where the client wants to know.
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        self.counters.refusals.fetch_add(1, Ordering::Relaxed);
        if self.lock().client.level.tells(Level::Error) {
            self.send(|out| write_refusal(out, self.encoding, refusal));
        }
    }

    /// Takes about `bytes` of what waits, answers first.
    pub(crate) fn take(&self, bytes: usize, now: Duration, mut each: impl FnMut(Arc<Frame>)) {
        let mut state = self.lock();
        state.is_told = false;
        let mut taken = 0;
        while taken < bytes {
            let frame = match state.answers.pop_front() {
                Some(frame) => {
                    state.answers_bytes -= frame.cost_bytes();
                    frame
                }
                None => match state.client.subscriptions.take(now) {
                    Some((_, frame)) => frame,
                    None => break,
                },
            };
            taken += frame.cost_bytes();
            let more = frame.more().to_vec();
            each(frame);
            more.into_iter().for_each(&mut each);
        }
    }

    /// Nothing more is put here.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.is_gone = true;
        state.answers = VecDeque::new();
    }

    /// Whether it has left, or does not take its answers.
    pub(crate) fn is_gone(&self) -> bool {
        self.lock().is_gone
    }

    /// Notes that the thread of ROS has so much more to do for it.
    pub(crate) fn ordered(&self, bytes: usize) {
        self.ordered_bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Notes that it is done.
    pub(crate) fn obeyed(&self, bytes: usize) {
        self.ordered_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Whether that thread has so much to do for it that it has to wait.
    pub(crate) fn is_ahead(&self) -> bool {
        ORDERED_BYTES_MAX < self.ordered_bytes.load(Ordering::Acquire)
    }

    /// What its messages are to a WebSocket.
    pub(crate) fn kind(&self) -> Kind {
        match self.encoding {
            Encoding::Json => Kind::Text,
            Encoding::Cbor | Encoding::Bson => Kind::Binary,
        }
    }
}

/// With more than that asked of the thread of ROS and not done, nothing more is read of a client.
const ORDERED_BYTES_MAX: usize = 256 << 10;
