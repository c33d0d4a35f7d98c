//! Random calls in one thread against a model, and random calls from many threads.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tsuji_transport::{ErrorKind, Gid, Result, Sample, Sent};

use crate::payload::{Words, assert_whole};
use crate::world::{Inlet, Keep, Outlet, World, wait};

/// With one writer, which samples a reader keeps is known exactly.
pub fn one_writer_does_as_the_model(world: World) {
    follow_the_model(&world, 1);
}

/// With several, a transport may hold its limits for each writer or for all of them together.
pub fn three_writers_do_as_the_model(world: World) {
    follow_the_model(&world, 3);
}

const READERS: usize = 3;
const CASES: u64 = 150;

fn follow_the_model(world: &World, writers: usize) {
    let config = Config {
        cases: world.rounds(CASES) as u32,
        failure_persistence: None,
        ..Config::default()
    };
    let operations = proptest::collection::vec(operation(writers), 1..120);
    let outcome = TestRunner::new(config).run(&operations, |operations| {
        let mut model = Model::new(world, writers);
        operations.into_iter().for_each(|operation| model.act(operation));
        model.end();
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Send { writer: usize, len: usize, lent: bool },
    SendTo { writer: usize, reader: usize, len: usize },
    Reserve { writer: usize },
    Cancel { writer: usize },
    Connect { writer: usize, reader: usize },
    Disconnect { writer: usize, reader: usize },
    Take { reader: usize },
    Hold { reader: usize },
    LetGo { at: usize },
    Reopen { reader: usize, keep: Keep },
    Replace { writer: usize },
}

fn operation(writers: usize) -> impl Strategy<Value = Operation> {
    let (writer, reader) = (0..writers, 0..READERS);
    let len = prop_oneof![4 => 0..200usize, 1 => 4000..6000usize];
    let keep = prop_oneof![(1..5u32).prop_map(Keep::Last), (1..5u32).prop_map(Keep::All)];
    prop_oneof![
        12 => (writer.clone(), len.clone(), any::<bool>())
            .prop_map(|(writer, len, lent)| Operation::Send { writer, len, lent }),
        3 => (writer.clone(), reader.clone(), len)
            .prop_map(|(writer, reader, len)| Operation::SendTo { writer, reader, len }),
        3 => writer.clone().prop_map(|writer| Operation::Reserve { writer }),
        2 => writer.clone().prop_map(|writer| Operation::Cancel { writer }),
        5 => (writer.clone(), reader.clone())
            .prop_map(|(writer, reader)| Operation::Connect { writer, reader }),
        2 => (writer.clone(), reader.clone())
            .prop_map(|(writer, reader)| Operation::Disconnect { writer, reader }),
        8 => reader.clone().prop_map(|reader| Operation::Take { reader }),
        3 => reader.clone().prop_map(|reader| Operation::Hold { reader }),
        2 => any::<usize>().prop_map(|at| Operation::LetGo { at }),
        1 => (reader, keep).prop_map(|(reader, keep)| Operation::Reopen { reader, keep }),
        1 => writer.prop_map(|writer| Operation::Replace { writer }),
    ]
}

struct Model<'a> {
    world: &'a World,
    writers: Vec<ModelWriter>,
    readers: Vec<ModelReader>,
    held: Vec<Sample>,
}

struct ModelWriter {
    outlet: Outlet,
    connected: [bool; READERS],
    has_reserved: bool,
}

struct ModelReader {
    inlet: Inlet,
    keep: Keep,
    /// What each writer sent, and was neither taken nor followed by something taken.
    expected: HashMap<Gid, VecDeque<u64>>,
    sent: u64,
    taken: u64,
    /// Samples that were not taken although later ones of the same writer were.
    skipped: u64,
}

impl<'a> Model<'a> {
    fn new(world: &'a World, writers: usize) -> Self {
        let keeps = [Keep::Last(2), Keep::All(3), Keep::Last(1)];
        Self {
            world,
            writers: (0..writers).map(|_| ModelWriter::new(world)).collect(),
            readers: keeps.map(|keep| ModelReader::new(world, keep)).into(),
            held: Vec::new(),
        }
    }

    fn act(&mut self, operation: Operation) {
        match operation {
            Operation::Send { writer, len, lent } => {
                let targets: Vec<usize> =
                    (0..READERS).filter(|it| self.writers[writer].connected[*it]).collect();
                let lent = lent && self.world.capability().loan;
                self.send(writer, &targets, |outlet| match lent {
                    true => outlet.try_send_loan(len),
                    false => outlet.try_send(len),
                });
            }
            Operation::SendTo { writer, reader, len } => {
                if !self.world.capability().directed {
                    return;
                }
                self.cancel(writer);
                let gid = self.readers[reader].inlet.gid;
                if self.writers[writer].connected[reader] {
                    self.send(writer, &[reader], |outlet| outlet.try_send_to(gid, len));
                    return;
                }
                let refused = self.writers[writer].outlet.try_send_to(gid, len).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Closed);
            }
            Operation::Reserve { writer } => {
                let targets: Vec<usize> =
                    (0..READERS).filter(|it| self.writers[writer].connected[*it]).collect();
                let (may, must) = self.busy(writer, &targets);
                match self.writers[writer].outlet.writer.reserve(6000) {
                    Ok(()) => {
                        assert!(!must, "reserved a place that is not there");
                        self.writers[writer].has_reserved = true;
                    }
                    Err(error) => assert!(may && error.kind() == ErrorKind::Busy, "{error}"),
                }
            }
            Operation::Cancel { writer } => self.cancel(writer),
            Operation::Connect { writer, reader } => {
                // What becomes of a reservation, and of a limit over two connections, when a
                // reader is added is not laid down.
                self.cancel(writer);
                while self.take(reader).is_some() {}
                self.writers[writer].outlet.connect(&self.readers[reader].inlet);
                self.writers[writer].connected[reader] = true;
            }
            Operation::Disconnect { writer, reader } => {
                let it = &mut self.writers[writer];
                it.outlet.writer.disconnect(self.readers[reader].inlet.gid);
                it.connected[reader] = false;
                self.readers[reader].inlet.reader.forget(it.outlet.gid);
            }
            Operation::Take { reader } => drop(self.take(reader)),
            Operation::Hold { reader } => {
                let sample = self.take(reader);
                self.held.extend(sample);
            }
            Operation::LetGo { at } if !self.held.is_empty() => {
                assert_whole(&self.held.swap_remove(at % self.held.len()));
            }
            Operation::LetGo { .. } => (),
            Operation::Reopen { reader, keep } => {
                let new = ModelReader::new(self.world, keep);
                let old = std::mem::replace(&mut self.readers[reader], new);
                let gid = old.inlet.gid;
                drop(old);
                for writer in &mut self.writers {
                    writer.outlet.writer.disconnect(gid);
                    writer.connected[reader] = false;
                }
            }
            Operation::Replace { writer } => {
                let new = ModelWriter::new(self.world);
                let old = std::mem::replace(&mut self.writers[writer], new);
                let gid = old.outlet.gid;
                drop(old);
                self.readers.iter().for_each(|reader| reader.inlet.reader.forget(gid));
            }
        }
        self.readers.iter().for_each(ModelReader::check);
        for writer in &self.writers {
            let connected = writer.connected.iter().filter(|it| **it).count();
            assert_eq!(writer.outlet.writer.readers(), connected);
        }
    }

    fn end(mut self) {
        for reader in 0..READERS {
            while self.take(reader).is_some() {}
            let reader = &self.readers[reader];
            let lost: usize = reader.expected.values().map(VecDeque::len).sum();
            assert_eq!(reader.skipped + lost as u64, reader.inlet.reader.displaced());
        }
        self.held.iter().for_each(assert_whole);
    }

    fn cancel(&mut self, writer: usize) {
        self.writers[writer].outlet.writer.cancel();
        self.writers[writer].has_reserved = false;
    }

    fn send(&mut self, writer: usize, to: &[usize], call: impl Fn(&Outlet) -> Result<Sent>) {
        let (may_be_busy, must_be_busy) = self.busy(writer, to);
        let gid = self.writers[writer].outlet.gid;
        let before: Vec<_> = to.iter().map(|it| self.readers[*it].loss(gid)).collect();
        let sent = match call(&self.writers[writer].outlet) {
            Ok(sent) => sent,
            Err(error) => {
                assert!(error.kind() == ErrorKind::Busy && may_be_busy, "{error}");
                return;
            }
        };
        assert!(!must_be_busy, "sent to a reader that was full");
        assert_eq!(sent.readers as usize, to.len());
        self.writers[writer].has_reserved = false;
        let number = self.writers[writer].outlet.sent();
        let mut displaced = 0;
        for (loss, at) in before.into_iter().zip(to) {
            let reader = &mut self.readers[*at];
            let lost = reader.inlet.reader.displaced() - loss.displaced;
            assert!(lost <= u64::from(loss.may), "lost without being full");
            assert!(u64::from(loss.must) <= lost, "kept more than its depth");
            displaced += lost;
            reader.sent += 1;
            reader.expected.entry(gid).or_default().push_back(number);
        }
        assert_eq!(u64::from(sent.displaced), displaced);
    }

    /// Whether a send may be Busy, since the readers are full of everybody's samples, and whether
    /// it must be, since one is full of this writer's own.
    fn busy(&self, writer: usize, to: &[usize]) -> (bool, bool) {
        let sender = &self.writers[writer];
        if sender.has_reserved {
            return (false, false);
        }
        let is_full = |at: &usize, own_only: bool| {
            let Keep::All(limit) = self.readers[*at].keep else { return false };
            let others = self.writers.iter().filter(|it| it.has_reserved && it.connected[*at]);
            let used = match own_only {
                true => self.readers[*at].unread_of(sender.outlet.gid),
                false => self.readers[*at].unread() + others.count() as u64,
            };
            u64::from(limit) <= used
        };
        (to.iter().any(|at| is_full(at, false)), to.iter().any(|at| is_full(at, true)))
    }

    fn take(&mut self, reader: usize) -> Option<Sample> {
        let reader = &mut self.readers[reader];
        let unread = reader.unread();
        let Some(sample) = reader.inlet.take() else {
            assert_eq!(unread, 0, "a reader has nothing, but should");
            return None;
        };
        assert_ne!(unread, 0, "a reader has {:?}, but should have nothing", sample.envelope);
        let (gid, number) = (sample.envelope.gid, sample.envelope.sequence);
        let expected = reader.expected.get_mut(&gid).expect("nobody sent that");
        let at = expected.iter().position(|it| *it == number);
        let skipped = at.unwrap_or_else(|| panic!("{number} is repeated, or late: {expected:?}"));
        expected.drain(..=skipped);
        reader.taken += 1;
        reader.skipped += skipped as u64;
        let displaced = reader.inlet.reader.displaced();
        assert!(reader.skipped <= displaced, "lost a sample without counting it");
        if reader.expected.len() == 1 {
            assert_eq!(
                reader.skipped, displaced,
                "of one writer's samples not the oldest was lost"
            );
        }
        Some(sample)
    }
}

impl ModelWriter {
    fn new(world: &World) -> Self {
        let outlet = world.writer("random");
        Self { outlet, connected: [false; READERS], has_reserved: false }
    }
}

/// What the next sample may and must push out.
struct Loss {
    displaced: u64,
    may: bool,
    must: bool,
}

impl ModelReader {
    fn new(world: &World, keep: Keep) -> Self {
        let inlet = world.reader("random", keep);
        Self { inlet, keep, expected: HashMap::new(), sent: 0, taken: 0, skipped: 0 }
    }

    fn check(&self) {
        if let Keep::All(_) = self.keep {
            assert_eq!(self.inlet.reader.displaced(), 0);
        }
    }

    fn unread(&self) -> u64 {
        self.sent - self.taken - self.inlet.reader.displaced()
    }

    /// At least so many of this writer's samples are unread; exactly so many if no other writer's
    /// can have been pushed out.
    fn unread_of(&self, writer: Gid) -> u64 {
        let unseen = self.inlet.reader.displaced() - self.skipped;
        let expected = self.expected.get(&writer).map_or(0, |it| it.len() as u64);
        expected.saturating_sub(unseen)
    }

    fn loss(&self, writer: Gid) -> Loss {
        let displaced = self.inlet.reader.displaced();
        let Keep::Last(depth) = self.keep else {
            return Loss { displaced, may: false, must: false };
        };
        let depth = u64::from(depth);
        Loss { displaced, may: depth <= self.unread(), must: depth <= self.unread_of(writer) }
    }
}

const STRESS_WRITERS: usize = 4;
const STRESS_SAMPLES: u64 = 3000;

/// Writers and readers in threads of their own, which take, hold and drop as they like, while
/// other readers come and go. Nothing is changed, repeated, or lost without being counted.
pub fn threads_under_stress(world: World) {
    let writers: Vec<_> = (0..STRESS_WRITERS).map(|_| world.writer("stress")).collect();
    let keeps = [Keep::All(8), Keep::All(1), Keep::Last(5), Keep::Last(1)];
    let readers = keeps.map(|keep| (keep, world.reader("stress", keep)));
    for writer in &writers {
        readers.iter().for_each(|(_, reader)| writer.connect(reader));
    }
    let are_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, (keep, reader)) in readers.iter().enumerate() {
            let are_done = &are_done;
            scope.spawn(move || stress_reader(reader, *keep, number as u64, are_done));
        }
        scope.spawn(|| stress_visitors(&world, &writers, &are_done));
        let sending: Vec<_> = writers
            .iter()
            .enumerate()
            .map(|(number, writer)| scope.spawn(move || stress_writer(writer, number as u64)))
            .collect();
        sending.into_iter().for_each(|it| it.join().unwrap());
        are_done.store(true, Ordering::SeqCst);
        readers.iter().for_each(|(_, reader)| reader.arrivals.ring());
    });
}

fn stress_writer(writer: &Outlet, seed: u64) {
    let (bell, mut words) = (writer.bell(), Words(seed));
    for _ in 0..STRESS_SAMPLES {
        let len_max = if words.below(10) == 0 { 20_000 } else { 300 };
        let len = words.below(len_max);
        let is_lent = words.below(2) == 0;
        if words.below(8) == 0 {
            wait(&bell, || crate::world::unless_busy(writer.writer.reserve(len)));
            if words.below(4) == 0 {
                writer.writer.cancel();
            }
        }
        wait(&bell, || {
            let sent = if is_lent { writer.try_send_loan(len) } else { writer.try_send(len) };
            match sent {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    crate::world::unless_busy(writer.try_send(len))
                }
                sent => crate::world::unless_busy(sent),
            }
        });
    }
}

fn stress_reader(reader: &Inlet, keep: Keep, seed: u64, are_done: &AtomicBool) {
    let (bell, mut words) = (reader.bell(), Words(seed));
    let (mut held, mut last) = (Vec::new(), HashMap::new());
    let mut taken = 0;
    while let Some(sample) = wait(&bell, || {
        let done = are_done.load(Ordering::SeqCst);
        reader.take().map(Some).or(done.then_some(None))
    }) {
        assert_next(&sample, &mut last, keep);
        taken += 1;
        if words.below(4) == 0 {
            held.push(sample);
        }
        if 30 < held.len() {
            assert_whole(&held.swap_remove(words.below(30)));
        }
    }
    held.iter().for_each(assert_whole);
    assert_eq!(taken + reader.reader.displaced(), STRESS_WRITERS as u64 * STRESS_SAMPLES);
}

/// Readers that connect and leave in the middle, full or not, disconnected first or not.
fn stress_visitors(world: &World, writers: &[Outlet], are_done: &AtomicBool) {
    let mut words = Words(99);
    while !are_done.load(Ordering::SeqCst) {
        let keep = if words.below(2) == 0 { Keep::All(3) } else { Keep::Last(2) };
        let visitor = world.reader("stress", keep);
        writers.iter().for_each(|writer| writer.connect(&visitor));
        let mut last = HashMap::new();
        for _ in 0..words.below(30) {
            match visitor.take() {
                Some(sample) => assert_next(&sample, &mut last, keep),
                None => std::thread::yield_now(),
            }
        }
        let gid = visitor.gid;
        let visitor = (words.below(2) == 0).then_some(visitor);
        writers.iter().for_each(|writer| writer.writer.disconnect(gid));
        if let Some(visitor) = visitor {
            while let Some(sample) = visitor.take() {
                assert_next(&sample, &mut last, keep);
            }
        }
    }
}

/// The sample follows the last of its writer, at once if all are kept.
#[track_caller]
fn assert_next(sample: &Sample, last: &mut HashMap<Gid, u64>, keep: Keep) {
    let (gid, number) = (sample.envelope.gid, sample.envelope.sequence);
    if let Some(before) = last.insert(gid, number) {
        let is_next = before + 1 == number || (matches!(keep, Keep::Last(_)) && before < number);
        assert!(is_next, "{number} after {before} of {gid}");
    }
}
