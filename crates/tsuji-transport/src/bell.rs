//! Waking: one doorbell for each wait set, in memory that processes share.
//!
//! A process owns one page of bells and cells. A **bell** is what a thread sleeps on. A **cell**
//! stands for one thing that can become ready, and names all the bells that it rings now; senders
//! know the cell, so its owner can attach it to bells and detach it without telling them. Ringing a
//! cell marks it ready at each of its bells, and wakes a bell only if somebody sleeps there.
//!
//! The order that loses no wake-up: a sender makes its data visible, fences, marks, fences, looks
//! whether the bell sleeps. A sleeper says that it sleeps, fences, looks at the marks, sleeps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tsuji_platform::fork::Generation;
use tsuji_platform::memory::Backing;

use crate::sync::{AtomicU32, AtomicU64, Ordering, Word, fence, futex};
use crate::{Error, ErrorKind, Result};

#[cfg(any(loom, miri))]
mod model;
#[cfg(any(loom, miri))]
use model::{Page, Share};

#[cfg(not(any(loom, miri)))]
mod shared;
#[cfg(not(any(loom, miri)))]
use shared::{Page, Share};

/// Bells of one process. Loom, which tries every interleaving, is given few of everything.
pub const BELLS_MAX: u32 = if cfg!(loom) { 2 } else { 64 };

/// Cells of one process. Memory for them is reserved in parts, as they are needed.
pub const CELLS_MAX: u32 = match () {
    () if cfg!(loom) => 4,
    // It interprets whatever is done for each of them.
    () if cfg!(miri) => 16 * 1024,
    () => 64 * 1024,
};

/// Cells whose memory is reserved together.
const CELLS_IN_PART: u32 = 4096;

/// Numbers by which the owner of a bell may call the cells attached to it.
pub const ENTITIES_MAX: u16 = if cfg!(loom) { 128 } else { 4096 };

/// Marks of a bell. A process that has more cells lets some share a mark, of which the bell then tells
/// all.
const MARKS: u32 = if cfg!(loom) { 4 } else { 4096 };

/// Marks in one word. Loom is given several words.
const MARKS_IN_WORD: u32 = if cfg!(loom) { 2 } else { 64 };

/// The bells and cells of this process.
#[derive(Debug)]
pub struct Bells {
    page: Page,
    share: Share,
    free: Mutex<Free>,
    generation: Generation,
    /// Not 0 once another process may ring here.
    is_shared: AtomicU32,
}

#[derive(Debug)]
struct Free {
    bells: Vec<u32>,
    bells_used: u32,
    cells: Vec<u32>,
    cells_used: u32,
}

impl Bells {
    /// A page of its own for this process.
    pub fn create(backing: &Backing) -> Result<Arc<Self>> {
        let failed = |error: io::Error| {
            let kind = match error.kind() {
                io::ErrorKind::StorageFull
                | io::ErrorKind::OutOfMemory
                | io::ErrorKind::FileTooLarge => ErrorKind::Exhausted,
                _ => ErrorKind::Unexpected,
            };
            Error::new(kind, "create doorbells").because(error)
        };
        let (page, share) = Page::create(backing).map_err(failed)?;
        let free = Mutex::new(Free { bells: vec![], bells_used: 0, cells: vec![], cells_used: 0 });
        let (generation, is_shared) = (Generation::current(), AtomicU32::new(0));
        Ok(Arc::new(Self { page, share, free, generation, is_shared }))
    }

    /// Makes sleepers sleep so that other processes can wake them, those included that sleep now.
    /// To be called before another process gets the page.
    pub fn share(&self) {
        if self.is_shared.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        // Whoever does not see the word above has already said how it sleeps.
        fence(Ordering::SeqCst);
        for index in 0..BELLS_MAX {
            let bell = self.page.bell(index);
            if bell.state.load(Ordering::Relaxed) == ASLEEP_PRIVATE {
                bell.wake_here();
            }
        }
    }

    /// A bell that nobody else uses.
    pub fn claim_bell(self: &Arc<Self>) -> Result<Bell> {
        self.open("create a wait set")?;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = &mut *free;
        let index = claim(&mut free.bells, &mut free.bells_used, BELLS_MAX).ok_or_else(|| {
            Error::new(ErrorKind::Exhausted, "create a wait set")
                .about(format!("at most {BELLS_MAX} a process"))
        })?;
        Ok(Bell { bells: Arc::clone(self), index, names: Names::new() })
    }

    /// A cell that nobody else uses and that rings nowhere.
    pub fn claim_cell(self: &Arc<Self>) -> Result<Cell> {
        self.open("create an endpoint")?;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = &mut *free;
        let is_next_part = free.cells.is_empty() && free.cells_used.is_multiple_of(CELLS_IN_PART);
        if is_next_part && (1..CELLS_MAX).contains(&free.cells_used) {
            self.share.reserve_cells(free.cells_used).map_err(|error| {
                Error::new(ErrorKind::Exhausted, "create an endpoint").because(error)
            })?;
        }
        let index = claim(&mut free.cells, &mut free.cells_used, CELLS_MAX).ok_or_else(|| {
            Error::new(ErrorKind::Exhausted, "create an endpoint")
                .about(format!("at most {CELLS_MAX} in a process"))
        })?;
        self.page.cell(index).store(NOWHERE, Ordering::Release);
        Ok(Cell { bells: Arc::clone(self), index })
    }

    /// Rings a cell of this process by its number.
    pub fn ring(&self, cell: u32) {
        self.page.ring(cell, From::ThisProcess);
    }

    fn open(&self, operation: &'static str) -> Result<()> {
        if self.generation.is_current() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Closed, operation).about("this is a forked child"))
    }
}

/// For another process: from here on sleepers can be woken by it.
impl AsFd for Bells {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.share();
        self.share.as_fd()
    }
}

fn claim(free: &mut Vec<u32>, used: &mut u32, max: u32) -> Option<u32> {
    if let Some(index) = free.pop() {
        return Some(index);
    }
    (*used < max).then(|| {
        *used += 1;
        *used - 1
    })
}

/// The bells and cells of another process, which can only be rung.
#[derive(Debug)]
pub struct RemoteBells {
    page: Page,
}

impl RemoteBells {
    /// Maps the page that another process sent.
    pub fn open(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { page: Page::open(fd)? })
    }

    /// Rings a cell. A number that is out of range rings nothing.
    pub fn ring(&self, cell: u32) {
        self.page.ring(cell, From::AnotherProcess);
    }
}

/// Something that can become ready. Dropping it frees its number.
#[derive(Debug)]
pub struct Cell {
    bells: Arc<Bells>,
    index: u32,
}

impl Cell {
    /// The number by which senders of any process ring it.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Whether it can ring `bell`: both are of one page.
    pub fn is_beside(&self, bell: &Bell) -> bool {
        Arc::ptr_eq(&self.bells, &bell.bells)
    }

    /// From now on it rings `bell` too, which will call it `entity`. A bell calls a cell by one number: the
    /// last that it was attached by. A number from [`ENTITIES_MAX`] on rings nothing, nor does a bell of another page.
    pub fn attach(&self, bell: &Bell, entity: u16) {
        if !self.bells.generation.is_current() || ENTITIES_MAX <= entity || !self.is_beside(bell) {
            return;
        }
        bell.names.set(self.index, entity);
        self.bells.page.cell(self.index).fetch_or(1 << bell.index, Ordering::SeqCst);
        // What became ready before has rung elsewhere only.
        fence(Ordering::SeqCst);
        self.bells.page.ring_bell(bell.index, self.index, From::ThisProcess);
    }

    /// Whether it rings `bell` as `entity`.
    pub fn is_attached(&self, bell: &Bell, entity: u16) -> bool {
        self.entity_at(bell) == Some(entity)
    }

    /// What `bell` calls it, if it rings there.
    pub fn entity_at(&self, bell: &Bell) -> Option<u16> {
        let bells = self.bells.page.cell(self.index).load(Ordering::Relaxed);
        bell.names.get(self.index).filter(|_| bells & (1 << bell.index) != 0)
    }

    /// From now on it rings nowhere.
    fn detach(&self) {
        // A forked child would move its parent's cell.
        if !self.bells.generation.is_current() {
            return;
        }
        self.bells.page.cell(self.index).store(NOWHERE, Ordering::SeqCst);
    }

    /// From now on it does not ring `bell` any more.
    pub fn detach_from(&self, bell: &Bell) {
        if !self.bells.generation.is_current() {
            return;
        }
        self.bells.page.cell(self.index).fetch_and(!(1 << bell.index), Ordering::SeqCst);
        bell.names.forget(self.index);
    }

    /// Rings it.
    pub fn ring(&self) {
        // A forked child would take its parent's sleeper for woken, and could not wake it.
        if self.bells.generation.is_current() {
            self.bells.page.ring(self.index, From::ThisProcess);
        }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if !self.bells.generation.is_current() {
            return;
        }
        self.detach();
        let mut free = self.bells.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.cells.push(self.index);
    }
}

/// What one thread at a time sleeps on. Dropping it frees its number; cells attached to it must
/// have been detached.
#[derive(Debug)]
pub struct Bell {
    bells: Arc<Bells>,
    index: u32,
    names: Names,
}

impl Bell {
    /// The page it belongs to.
    pub fn bells(&self) -> &Arc<Bells> {
        &self.bells
    }

    /// Sleeps until a cell attached here is rung or `timeout` has passed. Returns at once when one
    /// was rung since the last [`drain`](Self::drain). May return without a reason.
    ///
    /// One thread at a time may wait on a bell.
    pub fn wait(&self, timeout: Option<Duration>) {
        let bell = self.bells.page.bell(self.index);
        let is_private = self.bells.is_shared.load(Ordering::Relaxed) == 0;
        // Swaps and not stores, so that all changes of the state stand in one chain, which loom can
        // follow. Sleeping costs far more.
        bell.state.swap(if is_private { ASLEEP_PRIVATE } else { ASLEEP }, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if bell.summary.load(Ordering::Relaxed) == 0 {
            if !is_private {
                futex::wait(&bell.state, ASLEEP, timeout);
            } else if self.bells.is_shared.load(Ordering::Relaxed) == 0 {
                futex::wait_private(&bell.state, ASLEEP_PRIVATE, timeout);
            }
        }
        bell.state.swap(AWAKE, Ordering::AcqRel);
    }

    /// Whether a cell attached here was rung since the last [`drain`](Self::drain).
    pub fn is_rung(&self) -> bool {
        self.bells.page.bell(self.index).summary.load(Ordering::Acquire) != 0
    }

    /// Calls `ready` with each entity that was rung, and forgets them. One that was not rung may be among
    /// them.
    pub fn drain(&self, mut ready: impl FnMut(u16)) {
        let bell = self.bells.page.bell(self.index);
        let summary = bell.summary.swap(0, Ordering::AcqRel);
        for group in ones(summary) {
            let marks = bell.ready[group].swap(0, Ordering::AcqRel);
            fence(Ordering::SeqCst);
            for mark in ones(marks) {
                self.names.of_mark(group as u32 * MARKS_IN_WORD + mark as u32, &mut ready);
            }
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if !self.bells.generation.is_current() {
            return;
        }
        self.drain(|_| ());
        let mut free = self.bells.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.bells.push(self.index);
    }
}

fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (at < 64).then_some(at)
    })
}

/// What a bell calls the cells that are attached to it. Only its own process knows.
#[derive(Debug)]
struct Names {
    /// By the number of the cell; made for those that are near each other when the first is attached. One
    /// more than the entity, and 0 for none.
    chunks: [OnceLock<Box<[AtomicU16; CHUNK]>>; (CELLS_MAX as usize).div_ceil(CHUNK)],
}

const CHUNK: usize = 256;

impl Names {
    fn new() -> Self {
        Self { chunks: std::array::from_fn(|_| OnceLock::new()) }
    }

    fn set(&self, cell: u32, entity: u16) {
        let chunk = self.chunks[cell as usize / CHUNK]
            .get_or_init(|| Box::new(std::array::from_fn(|_| AtomicU16::new(0))));
        // The mark that follows makes it visible.
        chunk[cell as usize % CHUNK].store(entity + 1, Ordering::Relaxed);
    }

    fn get(&self, cell: u32) -> Option<u16> {
        let chunk = self.chunks[cell as usize / CHUNK].get()?;
        chunk[cell as usize % CHUNK].load(Ordering::Relaxed).checked_sub(1)
    }

    fn forget(&self, cell: u32) {
        if let Some(chunk) = self.chunks[cell as usize / CHUNK].get() {
            chunk[cell as usize % CHUNK].store(0, Ordering::Relaxed);
        }
    }

    /// Those of the cells that have this mark.
    fn of_mark(&self, mark: u32, ready: &mut impl FnMut(u16)) {
        for cell in (mark..CELLS_MAX).step_by(MARKS as usize) {
            if let Some(entity) = self.get(cell) {
                ready(entity);
            }
        }
    }
}

/// The bells of a cell that rings none: each is a bit.
const NOWHERE: u64 = 0;
/// What [`futex::clear_and_wake_one`] sets.
const AWAKE: u32 = 0;
/// Any process may wake it.
const ASLEEP: u32 = 1;
/// Only this process may: it sleeps and wakes faster so.
const ASLEEP_PRIVATE: u32 = 2;

/// One bell in the page of a process. All zero is a bell at rest.
#[derive(Debug)]
#[repr(C, align(64))]
struct BellMemory {
    /// [`AWAKE`], [`ASLEEP`] or [`ASLEEP_PRIVATE`].
    state: Word,
    /// A bit for each word of `ready` that may have a bit.
    summary: AtomicU64,
    /// A bit for each cell that was rung, by the number of the cell modulo [`MARKS`].
    ready: [AtomicU64; (MARKS / MARKS_IN_WORD) as usize],
}

/// Who rings.
#[derive(Clone, Copy)]
enum From {
    /// A thread of the process that sleeps.
    ThisProcess,
    /// A thread of another.
    AnotherProcess,
}

impl Page {
    fn ring(&self, cell: u32, from: From) {
        if CELLS_MAX <= cell {
            return;
        }
        // Before the marks are looked at, what the sender did must be visible: a mark that is
        // seen set is then one whose owner has yet to look.
        fence(Ordering::SeqCst);
        for bell in ones(self.cell(cell).load(Ordering::Relaxed)) {
            self.ring_bell(bell as u32, cell, from);
        }
    }

    /// Marks a cell at one bell, and wakes whoever sleeps there. What the sender did is visible before.
    fn ring_bell(&self, bell: u32, cell: u32, from: From) {
        if BELLS_MAX <= bell {
            return;
        }
        let bell = self.bell(bell);
        let mark = cell % MARKS;
        let (group, mark) = ((mark / MARKS_IN_WORD) as usize, 1 << (mark % MARKS_IN_WORD));
        set(&bell.ready[group], mark);
        set(&bell.summary, 1 << group);
        fence(Ordering::SeqCst);
        let state = bell.state.load(Ordering::Relaxed);
        match from {
            _ if state == AWAKE => (),
            // One step: a process killed between two would leave a sleeper that nobody wakes.
            From::AnotherProcess => futex::clear_and_wake_one(&bell.state),
            // Two are faster, and whoever dies here takes the sleeper along.
            From::ThisProcess => bell.wake_here(),
        }
    }
}

impl BellMemory {
    /// Wakes a thread of this process, if one sleeps.
    fn wake_here(&self) {
        match self.state.swap(AWAKE, Ordering::AcqRel) {
            ASLEEP => futex::wake(&self.state, 1),
            ASLEEP_PRIVATE => futex::wake_private(&self.state, 1),
            _ => (),
        }
    }
}

/// Sets a bit, without taking the cache line when it is set already.
///
/// Whoever set it may be about to set another, or dead. The acquire lets this thread see what the
/// drain before that one cleared, so that it sets the other itself.
fn set(word: &AtomicU64, bit: u64) {
    if word.load(Ordering::Acquire) & bit == 0 {
        word.fetch_or(bit, Ordering::AcqRel);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn drained(bell: &Bell) -> Vec<u16> {
        let mut all = Vec::new();
        bell.drain(|entity| all.push(entity));
        all
    }

    #[test]
    fn a_bell_tells_which_cells_were_rung_once() {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let bell = bells.claim_bell().unwrap();
        let cells: Vec<_> = (0..200).map(|_| bells.claim_cell().unwrap()).collect();
        for (entity, cell) in cells.iter().enumerate() {
            cell.attach(&bell, entity as u16 * 20);
        }
        assert_eq!(drained(&bell).len(), 200);
        cells[3].ring();
        cells[150].ring();
        cells[3].ring();
        bell.wait(None);
        assert_eq!(drained(&bell), [60, 3000]);
        assert!(!bell.is_rung());
    }

    #[test]
    fn a_cell_rings_all_the_bells_that_it_is_attached_to() {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let (one, two) = (bells.claim_bell().unwrap(), bells.claim_bell().unwrap());
        let cell = bells.claim_cell().unwrap();
        cell.ring();
        cell.attach(&one, 0);
        assert_eq!(drained(&one), [0], "what came before is told");
        cell.attach(&two, 7);
        assert_eq!((drained(&one), drained(&two)), (vec![], vec![7]), "to the new one alone");
        cell.ring();
        assert_eq!((drained(&one), drained(&two)), (vec![0], vec![7]));
        assert!(cell.is_attached(&one, 0) && cell.is_attached(&two, 7));
        cell.detach_from(&one);
        cell.ring();
        assert_eq!((drained(&one), drained(&two)), (vec![], vec![7]));
        assert_eq!((cell.entity_at(&one), cell.entity_at(&two)), (None, Some(7)));
        cell.attach(&two, 8);
        assert_eq!(drained(&two), [8], "the last number counts");
        cell.detach_from(&two);
        cell.ring();
        assert_eq!((drained(&one), drained(&two)), (vec![], vec![]));
    }

    #[test]
    fn a_cell_may_ring_every_bell_of_the_process() {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let all: Vec<_> = (0..BELLS_MAX).map(|_| bells.claim_bell().unwrap()).collect();
        let cell = bells.claim_cell().unwrap();
        for (number, bell) in all.iter().enumerate() {
            cell.attach(bell, number as u16);
            bell.drain(|_| ());
        }
        cell.ring();
        for (number, bell) in all.iter().enumerate() {
            assert_eq!(drained(bell), [number as u16]);
        }
    }

    #[test]
    fn cells_that_share_a_mark_are_told_together() {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let bell = bells.claim_bell().unwrap();
        let cells: Vec<_> = (0..CELLS_MAX).map(|_| bells.claim_cell().unwrap()).collect();
        let (one, other) = (&cells[5], &cells[5 + MARKS as usize]);
        one.attach(&bell, 1);
        other.attach(&bell, 2);
        drained(&bell);
        other.ring();
        assert_eq!(drained(&bell), [1, 2], "the one was not rung, and may be looked at in vain");
    }

    #[test]
    fn another_mapping_rings_the_same_bell() {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let bell = bells.claim_bell().unwrap();
        let cell = bells.claim_cell().unwrap();
        cell.attach(&bell, 5);
        drained(&bell);
        let remote = RemoteBells::open(bells.as_fd().try_clone_to_owned().unwrap()).unwrap();
        remote.ring(cell.index());
        remote.ring(u32::MAX);
        bell.wait(None);
        assert_eq!(drained(&bell), [5]);
    }

    #[test]
    fn memory_for_cells_comes_in_parts() {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let bell = bells.claim_bell().unwrap();
        let cells: Vec<_> = (0..=CELLS_IN_PART).map(|_| bells.claim_cell().unwrap()).collect();
        let last = cells.last().unwrap();
        last.attach(&bell, 3);
        drained(&bell);
        let remote = RemoteBells::open(bells.as_fd().try_clone_to_owned().unwrap()).unwrap();
        // Of another process, a number that nobody has and for which there is no memory yet.
        remote.ring(CELLS_MAX / 2);
        remote.ring(last.index());
        assert_eq!(drained(&bell), [3]);
        let most: Vec<_> = (cells.len() as u32..CELLS_MAX).map(|_| bells.claim_cell()).collect();
        assert!(most.iter().all(Result::is_ok));
        assert_eq!(bells.claim_cell().unwrap_err().kind(), ErrorKind::Exhausted);
        drop(most);
        assert!(bells.claim_cell().is_ok());
    }

    #[test]
    fn numbers_run_out_and_come_back() {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let all: Vec<_> = (0..BELLS_MAX).map(|_| bells.claim_bell().unwrap()).collect();
        assert_eq!(bells.claim_bell().unwrap_err().kind(), ErrorKind::Exhausted);
        drop(all);
        assert!(bells.claim_bell().is_ok());
    }

    #[test]
    fn no_wake_up_is_lost_between_two_threads() {
        const ROUNDS: u64 = 100_000;
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let ends: Vec<_> = (0..2)
            .map(|_| {
                let (bell, cell) = (bells.claim_bell().unwrap(), bells.claim_cell().unwrap());
                cell.attach(&bell, 0);
                (bell, cell)
            })
            .collect();
        let turn = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for (me, (bell, _)) in ends.iter().enumerate() {
                let (turn, other) = (&turn, &ends[1 - me].1);
                scope.spawn(move || {
                    for round in (me as u64..ROUNDS).step_by(2) {
                        while turn.load(Ordering::Relaxed) != round {
                            bell.wait(None);
                            bell.drain(|_| ());
                        }
                        turn.store(round + 1, Ordering::Relaxed);
                        other.ring();
                    }
                });
            }
        });
        assert_eq!(turn.load(Ordering::Relaxed), ROUNDS);
    }
}
