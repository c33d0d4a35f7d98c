//! Bytes that somebody owns: the heap, a transport's memory, an engine's sample.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::{Error, ErrorKind, Result, heap};

/// Whoever owns the memory behind some [`Bytes`] or a [`Loan`].
///
/// An owner is told of each holder, so that one `Arc` made once can lend the same memory again and
/// again without allocating.
pub trait Owner: Any + Send + Sync {
    /// One more value holds the memory.
    fn retain(&self) {}

    /// One value less holds the memory. At the last, the memory may be used again.
    fn release(&self) {}

    /// The owner as itself, for a transport to recognise its own memory.
    fn as_any(&self) -> &dyn Any;
}

/// Immutable bytes with shared ownership. Cloning copies no bytes.
///
/// A CDR encapsulation header stands at an address of 12 modulo 16, so that the body behind it is
/// aligned to 16 bytes, wherever tsuji allocated the memory itself.
///
/// ```
/// use tsuji_transport::Bytes;
///
/// let bytes = Bytes::copy_from(&[0, 1, 0, 0, 7, 0, 0, 0]);
/// let same = bytes.clone();
/// assert_eq!(same[4..], [7, 0, 0, 0]);
/// ```
pub struct Bytes {
    owner: Arc<dyn Owner>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the bytes are immutable while held, and the owner is Send and Sync.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Bytes that `owner` owns.
    ///
    /// # Safety
    /// `len` bytes from `start` stay readable and unchanged between this call, which does not
    /// call [`Owner::retain`], and the [`Owner::release`] of the last clone.
    pub unsafe fn from_owner(owner: Arc<dyn Owner>, start: NonNull<u8>, len: usize) -> Self {
        Self { owner, start, len }
    }

    /// A copy of `bytes` on the heap, with the alignment of a CDR body.
    pub fn copy_from(bytes: &[u8]) -> Self {
        let mut loan = Loan::on_heap(bytes.len());
        loan.copy_from_slice(bytes);
        loan.freeze()
    }

    /// The owner, for a transport to recognise its own memory.
    pub fn owner(&self) -> &dyn Any {
        self.owner.as_any()
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: guaranteed by whoever called `from_owner`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Clone for Bytes {
    fn clone(&self) -> Self {
        self.owner.retain();
        Self { owner: Arc::clone(&self.owner), start: self.start, len: self.len }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.owner.release();
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({})", self.len)
    }
}

/// Memory lent for one sample, to be filled in place. Dropping it unsent gives it back.
///
/// What it holds at first is arbitrary: old bytes of samples of this process, never memory of
/// anything else. Whatever is not written over is sent.
pub struct Loan {
    bytes: Bytes,
}

impl Loan {
    /// A loan of memory that `owner` owns.
    ///
    /// # Safety
    /// As for [`Bytes::from_owner`]; besides, the memory is initialised, writable, and nobody else
    /// reads or writes it before [`Loan::freeze`].
    pub unsafe fn from_owner(owner: Arc<dyn Owner>, start: NonNull<u8>, len: usize) -> Self {
        // SAFETY: the caller promises it.
        Self { bytes: unsafe { Bytes::from_owner(owner, start, len) } }
    }

    /// A loan of `len` zeroed bytes on the heap, with the alignment of a CDR body.
    pub fn on_heap(len: usize) -> Self {
        heap::lend(heap::allocate(len), len, None)
    }

    /// Makes the loan shorter: the sample is its first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.len = self.bytes.len.min(len);
    }

    /// The sample, no longer to be changed.
    pub fn freeze(self) -> Bytes {
        self.bytes
    }

    /// The part of the loan at `range`, or an error when it is not inside.
    pub fn part_mut(&mut self, range: Range<usize>) -> Result<&mut [u8]> {
        let len = self.len();
        self.get_mut(range.clone()).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "loan")
                .about(format!("bytes {range:?} of a loan of {len}"))
        })
    }
}

impl Deref for Loan {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::ops::DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the memory is writable and this is its only holder, as `from_owner` demands.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.start.as_ptr(), self.bytes.len) }
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({})", self.bytes.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LEAD;

    #[test]
    fn a_heap_loan_is_aligned_for_cdr_and_zeroed() {
        for len in [0, 1, 4, 5, 16, 4096, 4097] {
            let loan = Loan::on_heap(len);
            assert_eq!(loan.as_ptr() as usize % 16, LEAD);
            assert!(loan.iter().all(|byte| *byte == 0));
            assert_eq!(loan.len(), len);
        }
    }

    #[test]
    fn clones_share_the_bytes() {
        let mut loan = Loan::on_heap(3);
        loan.copy_from_slice(b"abc");
        loan.truncate(2);
        let one = loan.freeze();
        let two = one.clone();
        assert_eq!(one.as_ptr(), two.as_ptr());
        drop(one);
        assert_eq!(&*two, b"ab");
    }

    #[test]
    fn a_part_outside_the_loan_is_refused() {
        let mut loan = Loan::on_heap(3);
        assert!(loan.part_mut(1..3).is_ok());
        assert_eq!(loan.part_mut(1..4).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
