//! Memory for samples where a transport has none of its own: the heap's, and what a publisher keeps of it.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};

use crate::{Loan, Owner};

/// Where the payload begins behind 16-byte alignment: a CDR header of 4 bytes then ends at 16.
pub const LEAD: usize = 12;

/// What a [`HeapReserve`] keeps at most: one that is being filled follows one that is not yet acknowledged.
const KEPT_MAX: usize = 2;

/// Memory below this the allocator itself keeps at hand.
const KEPT_BYTES_MIN: usize = 64 * 1024;

/// Memory beyond this is given back to the system after each sample.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Heap memory of large samples that is used again for the next ones.
///
/// An allocator may give such memory back to the system with every sample, and each page of it is
/// then zeroed and mapped anew for the next. Memory for two samples of 64 KiB to 16 MiB
/// is kept, until the reserve is dropped or the next such sample is of another size.
#[derive(Debug, Default)]
pub struct HeapReserve {
    kept: Arc<Mutex<Vec<HeapBlocks>>>,
}

impl HeapReserve {
    /// A loan of `len` bytes on the heap, with the alignment of a CDR body. They are zeroes, or of an earlier sample.
    pub fn loan(&self, len: usize) -> Loan {
        if !is_kept(count_for(len)) {
            return lend(allocate(len), len, None);
        }
        lend(self.find(len).unwrap_or_else(|| allocate(len)), len, Some(Arc::downgrade(&self.kept)))
    }

    fn find(&self, len: usize) -> Option<HeapBlocks> {
        let count = count_for(len);
        // A child may have been forked while another thread held it, so nobody waits for it.
        let mut kept = self.kept.try_lock().ok()?;
        // Of what is too short or far too long nothing is of use any more.
        let misfits: Vec<_> =
            kept.extract_if(.., |it| it.count < count || 2 * count < it.count).collect();
        let found = kept.pop();
        drop(kept);
        drop(misfits);
        found
    }
}

/// Memory for `len` bytes behind the lead, zeroed.
pub(crate) fn allocate(len: usize) -> HeapBlocks {
    vec![Block([0; 16]); count_for(len)].into_boxed_slice().into()
}

/// The first `len` bytes behind the lead of `blocks`, which go to the reserve afterwards, if there is one.
pub(crate) fn lend(blocks: HeapBlocks, len: usize, reserve: Option<Reserve>) -> Loan {
    assert!(LEAD + len <= blocks.count * size_of::<Block>());
    let memory = HeapMemory { blocks: Some(blocks), reserve };
    let start = memory.start();
    // SAFETY: `start` is followed by at least `len` initialised bytes that the owner keeps, and
    // nobody else knows of them: they are new, or were given back by their last holder.
    unsafe { Loan::from_owner(Arc::new(memory), start, len) }
}

fn count_for(len: usize) -> usize {
    (LEAD + len).div_ceil(size_of::<Block>())
}

fn is_kept(count: usize) -> bool {
    (KEPT_BYTES_MIN..=KEPT_BYTES_MAX).contains(&(count * size_of::<Block>()))
}

type Reserve = Weak<Mutex<Vec<HeapBlocks>>>;

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Block([u8; 16]);

/// Heap memory, kept as a raw pointer because holders write through pointers into it.
#[derive(Debug)]
pub(crate) struct HeapBlocks {
    base: NonNull<Block>,
    count: usize,
}

// SAFETY: plain memory, written only through a unique `Loan`.
unsafe impl Send for HeapBlocks {}
// SAFETY: as above.
unsafe impl Sync for HeapBlocks {}

impl From<Box<[Block]>> for HeapBlocks {
    fn from(blocks: Box<[Block]>) -> Self {
        let count = blocks.len();
        let base = NonNull::from(Box::leak(blocks)).cast();
        Self { base, count }
    }
}

impl Drop for HeapBlocks {
    fn drop(&mut self) {
        let slice = std::ptr::slice_from_raw_parts_mut(self.base.as_ptr(), self.count);
        // SAFETY: the slice was leaked from a box of just this shape, and is dropped once.
        drop(unsafe { Box::from_raw(slice) });
    }
}

/// The memory of one sample, while somebody holds it.
struct HeapMemory {
    blocks: Option<HeapBlocks>,
    reserve: Option<Reserve>,
}

impl HeapMemory {
    fn start(&self) -> NonNull<u8> {
        let base = self.blocks.as_ref().map_or(NonNull::dangling(), |blocks| blocks.base);
        // SAFETY: there is at least one block, and it is longer than the lead.
        unsafe { base.cast::<u8>().add(LEAD) }
    }
}

impl Drop for HeapMemory {
    fn drop(&mut self) {
        let Some(kept) = self.reserve.take().and_then(|reserve| reserve.upgrade()) else { return };
        if let Ok(mut kept) = kept.try_lock()
            && kept.len() < KEPT_MAX
        {
            kept.extend(self.blocks.take());
        }
    }
}

impl Owner for HeapMemory {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 1024 * 1024;

    #[test]
    fn memory_is_used_again_once_nobody_holds_it() {
        let reserve = HeapReserve::default();
        let mut loan = reserve.loan(LARGE);
        loan.fill(7);
        let first = loan.freeze();
        let (address, second_holder) = (first.as_ptr(), first.clone());
        drop(first);
        let other = reserve.loan(LARGE);
        assert_ne!(other.as_ptr(), address, "somebody holds it still");
        assert_eq!(*second_holder, [7; LARGE]);
        drop(second_holder);
        let again = reserve.loan(LARGE - 5);
        assert_eq!(again.as_ptr(), address);
        assert_eq!(again.len(), LARGE - 5);
        assert_eq!(again.as_ptr() as usize % 16, LEAD);
    }

    #[test]
    fn only_two_are_kept_and_none_that_does_not_fit() {
        let reserve = HeapReserve::default();
        let kept = || reserve.kept.lock().unwrap().len();
        drop([(); 3].map(|()| reserve.loan(LARGE)));
        assert_eq!(kept(), 2);
        drop(reserve.loan(LARGE + 16));
        assert_eq!(kept(), 1, "what is too short is let go");
        drop(reserve.loan(LARGE / 4));
        assert_eq!(kept(), 1, "and what is far too long");
        assert_eq!(reserve.kept.lock().unwrap()[0].count, count_for(LARGE / 4));
    }

    #[test]
    fn small_and_huge_memory_is_not_kept() {
        let reserve = HeapReserve::default();
        for len in [0, 1, 4096, KEPT_BYTES_MIN - 32, KEPT_BYTES_MAX, 3 * KEPT_BYTES_MAX] {
            assert_eq!(reserve.loan(len).len(), len);
            assert_eq!(reserve.kept.lock().unwrap().len(), 0, "{len} bytes");
        }
    }

    #[test]
    fn samples_outlive_the_reserve() {
        let reserve = HeapReserve::default();
        let mut loan = reserve.loan(LARGE);
        drop(reserve);
        loan.fill(3);
        assert_eq!(loan[LARGE - 1], 3);
    }
}
