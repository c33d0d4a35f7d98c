//! Putting together what has come in pieces, beside all that comes behind.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

use zenoh::sample::Sample;

use super::{SMALL_BYTES_MAX, Shared};
use crate::control::Said;

/// What has come of large samples, and behind them, and waits to be put together. Beyond either whoever receives waits,
/// and so those who send.
const UNGATHERED_BYTES_MAX: usize = 32 << 20;
const UNGATHERED_MAX: usize = 65_536;

/// Large samples that have come in pieces, which a thread of its own puts together, so that nothing that comes behind waits
/// for it. Of a reader that has had one all others go the same way, in order, and so do tokens: who is gone has not said
/// all before what it said has been taken in.
#[derive(Default)]
pub(super) struct Gatherer {
    state: Mutex<Gathering>,
    /// Something has come, or the participant leaves.
    came: Condvar,
    /// There is room.
    went: Condvar,
}

#[derive(Default)]
struct Gathering {
    queue: VecDeque<(Came, Sample)>,
    /// Of the queue, and of what is being put together.
    left: usize,
    bytes: usize,
    /// Its thread runs.
    is_helped: bool,
    is_leaving: bool,
}

/// What a sample has come for.
pub(super) enum Came {
    /// This reader, by the key of its topic.
    Topic([u8; 4]),
    /// A late joiner, by the key of this session.
    Kept(Said),
    /// A reader that is told which sample is its first. What came before that is not for it.
    Start(Said),
    Token(fn(&Shared, &Sample)),
}

impl Gatherer {
    /// Its thread ends, and nobody waits for it.
    pub(super) fn leave(&self) {
        crate::lock(&self.state).is_leaving = true;
        self.came.notify_all();
        self.went.notify_all();
    }
}

impl Shared {
    /// The body of the thread that puts large samples together, until the participant leaves.
    fn gather_all(&self) {
        let mut state = crate::lock(&self.gatherer.state);
        while !state.is_leaving {
            let Some((came, sample)) = state.queue.pop_front() else {
                let waited = self.gatherer.came.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            match came {
                Came::Topic(reader) => self.take_in(reader, &sample),
                Came::Kept(said) => self.take_kept(&said, &sample),
                Came::Start(said) => self.start(&said),
                Came::Token(see) => see(self, &sample),
            }
            state = crate::lock(&self.gatherer.state);
            state.left -= 1;
            state.bytes -= sample.payload().len();
            self.gatherer.went.notify_all();
        }
    }

    /// Leaves a large sample, and what comes behind one, to the thread for that. Answers whether it did.
    pub(super) fn leave_large(&self, id: [u8; 4], sample: &Sample, came: Came) -> bool {
        let len = sample.payload().len();
        let mut state = self.lock();
        let Some(reader) = state.readers.get_mut(&id) else { return false };
        reader.is_large |= SMALL_BYTES_MAX < len;
        if !reader.is_large {
            return false;
        }
        drop(state);
        let state = crate::lock(&self.gatherer.state);
        let waited = self.gatherer.went.wait_while(state, |it| {
            let is_full = UNGATHERED_BYTES_MAX < it.bytes + len && 0 < it.bytes;
            !it.is_leaving && (is_full || UNGATHERED_MAX <= it.left)
        });
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if !state.is_helped {
            state.is_helped = self.help("tsuji-zenoh-get", Self::gather_all);
        }
        if !state.is_helped {
            return false;
        }
        state.bytes += len;
        self.leave(&mut state, came, sample);
        true
    }

    fn leave(&self, state: &mut Gathering, came: Came, sample: &Sample) {
        state.left += 1;
        state.queue.push_back((came, sample.clone()));
        self.gatherer.came.notify_one();
    }

    /// Looks at a token, behind what has come before it.
    pub(super) fn see(&self, see: fn(&Self, &Sample), sample: &Sample) {
        let mut state = crate::lock(&self.gatherer.state);
        if 0 < state.left {
            return self.leave(&mut state, Came::Token(see), sample);
        }
        drop(state);
        see(self, sample);
    }
}
