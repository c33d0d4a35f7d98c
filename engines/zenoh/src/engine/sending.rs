//! Sending: what is sent at once, what waits, and whose turn it is.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tsuji_core::Reliability;
use tsuji_engine::Related;
use tsuji_transport::{Bytes, Error, ErrorKind, Result};
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::query::Query;
use zenoh::sample::Locality;
use zenoh::time::Timestamp;

use super::{
    ACKNOWLEDGE_AFTER, ACKNOWLEDGE_BYTES, Kept, Own, Shared, State, UNACKNOWLEDGED_BYTES_MAX,
    WriterState, payload_of,
};
use crate::control::name;
use crate::format::Attachment;
use crate::wire::Request;

/// What may be on its way, over all small writers, when a sample is still sent by whoever writes it. It
/// fits into Zenoh's queue, so that he does not wait there.
const DIRECT_BYTES_MAX: usize = 256 << 10;

/// The largest sample of a small writer.
pub(super) const SMALL_BYTES_MAX: usize = 64 << 10;

/// What nobody acknowledges and waits to be sent, over all small writers and over all large ones: 64 MiB together.
/// One sample of each writer fits always. Beyond it samples are dropped, counted and told.
const QUEUED_BYTES_MAX: [usize; 2] = [4 << 20, 60 << 20];

/// How long what waits is still sent when the participant leaves.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// What a writer is, by the largest sample that it has written: small ones go ahead of large ones, by a thread and a
/// priority of their own. A large one never becomes small again, so nothing of it overtakes what it wrote before; and what
/// it wrote while it was small is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Small,
    Large,
}

impl Class {
    pub(crate) fn priority(self) -> Priority {
        match self {
            Self::Small => Priority::InteractiveHigh,
            // As everybody has it who does not say.
            Self::Large => Priority::Data,
        }
    }
}

/// What the writers of a class have to send.
#[derive(Default)]
pub(super) struct SendQueue {
    /// The writers that have something to send which nobody is sending, in turn.
    ready: VecDeque<[u8; 4]>,
    /// What is queued or not acknowledged.
    pub(super) on_the_way_bytes: usize,
    /// What is queued and will not be acknowledged.
    pub(super) queued_bytes: usize,
    /// Its thread runs, where that is not the participant's, which begins with the first large sample.
    is_helped: bool,
    is_asleep: bool,
}

/// Something to send.
pub(crate) struct Job {
    pub(crate) writer: [u8; 4],
    pub(crate) to: To,
    pub(crate) payload: ZBytes,
    pub(crate) attachment: Vec<u8>,
    /// What counts as on its way until it is sent, where nobody acknowledges it.
    pub(crate) bytes: usize,
    pub(crate) stamp: Option<Timestamp>,
}

pub(crate) enum To {
    All(Arc<Own<Publisher<'static>>>),
    One(KeyExpr<'static>),
    /// Servers of rmw_zenoh.
    Ask(Request),
    /// A client of rmw_zenoh, and by which key it asked.
    Answer(Box<Own<Query>>, String),
}

impl Shared {
    /// Puts something behind all that its writer has to send.
    pub(crate) fn enqueue(&self, state: &mut State, job: Job) {
        let Some(writer) = state.writers.get_mut(&job.writer) else { return };
        let is_its_turn = writer.jobs.is_empty() && !writer.is_sending;
        let (id, class) = (job.writer, writer.class);
        let queue = &mut state.queues[class as usize];
        writer.queued_bytes += job.bytes;
        writer.pending_bytes += job.bytes;
        queue.queued_bytes += job.bytes;
        queue.on_the_way_bytes += job.bytes;
        writer.jobs.push_back((class, job));
        if is_its_turn {
            self.line_up(state, id, class);
        } else {
            self.find_help(state, class);
        }
    }

    /// The writer has something to send, and takes its turn among those of its class.
    fn line_up(&self, state: &mut State, writer: [u8; 4], class: Class) {
        state.queues[class as usize].ready.push_back(writer);
        self.find_help(state, class);
        self.wake(state, class);
    }

    /// Starts the thread of the large ones, if it could not be had yet.
    fn find_help(&self, state: &mut State, class: Class) {
        let queue = &mut state.queues[class as usize];
        if class == Class::Large && !queue.is_helped {
            queue.is_helped = self.help("tsuji-zenoh-big", |it| it.send_class(Class::Large));
        }
    }

    /// Whoever was sending something of the writer is done.
    fn go_on(&self, state: &mut State, id: [u8; 4]) {
        let Some(writer) = state.writers.get_mut(&id) else { return };
        writer.is_sending = false;
        let (class, has_more) = (writer.class, !writer.jobs.is_empty());
        if has_more {
            self.line_up(state, id, class);
        }
    }

    pub(super) fn wake(&self, state: &mut State, class: Class) {
        if std::mem::replace(&mut state.queues[class as usize].is_asleep, false) {
            self.work[class as usize].notify_one();
        }
    }

    /// Writes a sample, as the contract has it.
    pub(crate) fn write(
        &self,
        id: [u8; 4],
        bytes: &Bytes,
        source_ns: i64,
        related: Option<Related>,
    ) -> Result<()> {
        let closed = || Error::new(ErrorKind::Closed, "send");
        let mut state = self.lock();
        let State { writers, queues, .. } = &mut *state;
        let writer = writers.get_mut(&id).ok_or_else(closed)?;
        let waits = writer.readers.values().any(|it| it.is_reliable);
        if UNACKNOWLEDGED_BYTES_MAX <= writer.pending_bytes && waits {
            let error = Error::new(ErrorKind::Busy, "send");
            return Err(error.about("a reader has not acknowledged what it was sent"));
        }
        if SMALL_BYTES_MAX < bytes.len() {
            writer.become_large(queues);
        }
        writer.written += 1;
        let number = writer.written;
        let stamp = writer.is_stamped.then(|| self.stamp(writer.last_stamp));
        writer.last_stamp = stamp;
        if 0 < writer.kept_max {
            if writer.kept.len() == writer.kept_max {
                writer.kept.pop_front();
            }
            writer.kept.push_back(Kept { number, source_ns, stamp, bytes: bytes.clone() });
        }
        if writer.readers.is_empty() {
            return Ok(());
        }
        if self.write_foreign(&mut state, id, bytes, source_ns, number, related) {
            return Ok(());
        }
        let State { writers, queues, .. } = &mut *state;
        let writer = writers.get_mut(&id).ok_or_else(closed)?;
        let class = writer.class;
        let queue = &mut queues[class as usize];
        let is_full = QUEUED_BYTES_MAX[class as usize] < queue.queued_bytes + bytes.len();
        if is_full && !waits && 0 < writer.queued_bytes {
            writer.count_dropped();
            return Ok(());
        }
        let attachment = Attachment { number, source_ns, writer: name(self.prefix, id) };
        // Who waits for room in Zenoh's queue would wait for nodes that acknowledge nothing.
        let may_wait = writer.announced.qos.reliability == Reliability::Reliable
            && writer.readers.values().any(|it| it.is_foreign);
        let is_direct = !may_wait
            && !writer.is_sending
            && writer.jobs.is_empty()
            && class == Class::Small
            && queue.on_the_way_bytes + bytes.len() <= DIRECT_BYTES_MAX;
        if waits {
            writer.unacknowledged.push_back((number, bytes.len()));
            writer.pending_bytes += bytes.len();
            queue.on_the_way_bytes += bytes.len();
        }
        let publisher = Arc::clone(&writer.publishers[class as usize]);
        if !is_direct {
            let job = Job {
                writer: id,
                to: To::All(publisher),
                payload: payload_of(bytes),
                attachment: attachment.to_bytes_with(related),
                bytes: if waits { 0 } else { bytes.len() },
                stamp,
            };
            self.enqueue(&mut state, job);
            return Ok(());
        }
        writer.is_sending = true;
        drop(state);
        put(&publisher, ZBytes::from(&bytes[..]), &attachment.to_bytes_with(related), stamp);
        self.go_on(&mut self.lock(), id);
        Ok(())
    }

    /// Sends what waits, until the participant leaves.
    pub(super) fn send_all(&self) {
        self.send_class(Class::Small);
        self.gatherer.leave();
        let helpers = std::mem::take(&mut *crate::lock(&self.helpers));
        for helper in helpers {
            // It panics only where Zenoh does.
            let _ = helper.join();
        }
    }

    /// Starts a thread that works until the participant leaves. Answers whether it runs.
    pub(super) fn help(&self, name: &str, work: fn(&Self)) -> bool {
        let Some(shared) = self.me.upgrade() else { return false };
        match thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared)) {
            Ok(helper) => crate::lock(&self.helpers).push(helper),
            Err(error) => {
                tracing::warn!("zenoh: no thread for large samples: {error}");
                return false;
            }
        }
        true
    }

    /// The body of a thread that sends for a class, its writers in turn. Whoever sends for the small one acknowledges.
    fn send_class(&self, class: Class) {
        let mut state = self.lock();
        let mut leave_by = None;
        loop {
            let now = Instant::now();
            if state.is_leaving {
                let leave_by = *leave_by.get_or_insert(now + LEAVE_WITHIN);
                let is_done = state.queues[class as usize].ready.is_empty()
                    && (class == Class::Large || state.owed.is_empty());
                if is_done || leave_by <= now {
                    return;
                }
            }
            let is_due = |since: Instant| {
                state.is_leaving
                    || ACKNOWLEDGE_BYTES <= state.owed_bytes
                    || since + ACKNOWLEDGE_AFTER <= now
            };
            let owed_since = state.owed_since.filter(|_| class == Class::Small);
            if owed_since.is_some_and(is_due) {
                let told = state.take_owed(self.prefix);
                drop(state);
                for (key, said) in told {
                    let sent = self.session().put(key, ZBytes::new()).attachment(said.to_bytes());
                    let sent = sent.congestion_control(CongestionControl::Block).express(true);
                    let sent = sent.priority(class.priority());
                    if let Err(error) = sent.allowed_destination(Locality::Remote).wait() {
                        tracing::debug!("nothing is acknowledged: {error}");
                    }
                }
                state = self.lock();
            } else if let Some(id) = state.queues[class as usize].ready.pop_front() {
                let Some(writer) = state.writers.get_mut(&id) else { continue };
                let now_of = writer.class;
                if now_of != class {
                    self.line_up(&mut state, id, now_of);
                    continue;
                }
                // What goes before a large sample goes as it would have gone at once, or that would overtake what it needs.
                let Some((went_as, job)) = writer.jobs.pop_front() else { continue };
                writer.is_sending = true;
                drop(state);
                let Job { to, payload, attachment, bytes, stamp, .. } = job;
                let priority = went_as.priority();
                match to {
                    To::All(publisher) => put(&publisher, payload, &attachment, stamp),
                    To::Ask(request) => self.ask(request, payload, &attachment, priority),
                    To::Answer(query, key) => {
                        let reply = query.reply(key, payload).attachment(&attachment);
                        if let Err(error) = reply.wait() {
                            tracing::debug!("a client gets no answer: {error}");
                        }
                    }
                    To::One(key) => {
                        let sent = self.session().put(key, payload).attachment(&attachment);
                        let sent = sent.congestion_control(CongestionControl::Block).express(true);
                        let sent = sent.priority(priority);
                        if let Err(error) = sent.allowed_destination(Locality::Remote).wait() {
                            tracing::debug!("a reader is told nothing: {error}");
                        }
                    }
                }
                state = self.lock();
                let State { writers, queues, .. } = &mut *state;
                if let Some(writer) = writers.get_mut(&id) {
                    let queue = &mut queues[writer.class as usize];
                    writer.queued_bytes -= bytes;
                    writer.pending_bytes -= bytes;
                    queue.queued_bytes -= bytes;
                    queue.on_the_way_bytes -= bytes;
                }
                self.go_on(&mut state, id);
                self.progress.notify_all();
            } else {
                let waits = owed_since.map(|since| (since + ACKNOWLEDGE_AFTER).duration_since(now));
                // Whoever leaves, or owes its first acknowledgement, has to tell.
                state.queues[class as usize].is_asleep = true;
                let work = &self.work[class as usize];
                state = match waits {
                    Some(timeout) => {
                        let waited = work.wait_timeout(state, timeout);
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => work.wait(state).unwrap_or_else(PoisonError::into_inner),
                };
                state.queues[class as usize].is_asleep = false;
            }
        }
    }
}

impl WriterState {
    fn become_large(&mut self, queues: &mut [SendQueue; 2]) {
        if self.class == Class::Small {
            self.class = Class::Large;
            let [small, large] = queues;
            small.on_the_way_bytes -= self.pending_bytes;
            large.on_the_way_bytes += self.pending_bytes;
            small.queued_bytes -= self.queued_bytes;
            large.queued_bytes += self.queued_bytes;
        }
    }

    /// Says so at the first, the tenth, the hundredth.
    fn count_dropped(&mut self) {
        self.dropped += 1;
        if 10_u64.pow(self.dropped.ilog10()) == self.dropped {
            tracing::warn!(
                topic = self.announced.topic,
                dropped = self.dropped,
                "zenoh: too much is on its way; samples are dropped"
            );
        }
    }
}

fn put(
    publisher: &Publisher<'static>,
    payload: ZBytes,
    attachment: &[u8],
    stamp: Option<Timestamp>,
) {
    if let Err(error) = publisher.put(payload).attachment(attachment).timestamp(stamp).wait() {
        tracing::warn!("a sample is not sent: {error}");
    }
}
