//! From CDR to a message's memory.

use super::HEADER_SIZE;
use super::code::{Action, Block, Code, Element, Items, Op, Sequence};
use super::containers::Containers;
use super::error::{PlanError, PlanProblem};
use std::{ptr, slice};

/// Reads a sample in either byte order into a message. Bytes after the message are taken for
/// padding. When this fails the message is live, with what was read by then.
///
/// # Safety
/// `message` is a live one of the code's type, in the language of `L`.
pub(super) unsafe fn read<L: Containers>(
    code: &Code,
    sample: &[u8],
    message: *mut u8,
) -> Result<(), PlanError> {
    let big_endian = match *sample {
        // The last two bytes are options; some writers put the count of padding bytes there.
        [0, 0, _, _, ..] => true,
        [0, 1, _, _, ..] => false,
        [first, second, _, _, ..] => {
            return Err(PlanError::at(0, PlanProblem::Encapsulation([first, second])));
        }
        _ => {
            let left = sample.len();
            return Err(PlanError::at(0, PlanProblem::Truncated { needed: HEADER_SIZE, left }));
        }
    };
    let swap = big_endian != cfg!(target_endian = "big");
    let mut source = Source { body: &sample[HEADER_SIZE..], position: 0, big_endian, swap };
    // SAFETY: as the caller says.
    unsafe { message_from::<L>(code, &mut source, message) }
}

struct Source<'a> {
    body: &'a [u8],
    position: usize,
    big_endian: bool,
    /// Whether numbers have to be turned round.
    swap: bool,
}

impl<'a> Source<'a> {
    fn left(&self) -> usize {
        self.body.len() - self.position
    }

    /// The next `size` bytes after padding to a multiple of `align`.
    #[inline]
    fn take(&mut self, align: usize, size: usize) -> Result<&'a [u8], PlanError> {
        let padding = self.position.wrapping_neg() & (align - 1);
        let left = self.left();
        if size > left || padding > left - size {
            let needed = size.saturating_add(padding);
            return Err(self.here(PlanProblem::Truncated { needed, left }));
        }
        let start = self.position + padding;
        self.position = start + size;
        Ok(&self.body[start..start + size])
    }

    #[inline]
    fn word(&mut self) -> Result<u32, PlanError> {
        let bytes = self.take(size_of::<u32>(), size_of::<u32>())?;
        Ok(self.word_in(bytes))
    }

    #[inline]
    fn word_in(&self, bytes: &[u8]) -> u32 {
        let bytes = bytes.first_chunk().copied().unwrap_or_default();
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// A count of what takes at least `size_min` bytes each; believed only as far as the bytes that
    /// follow can justify it.
    #[inline]
    fn length(&mut self, size_min: usize) -> Result<usize, PlanError> {
        let count = self.word()? as usize;
        let left = self.left();
        match count.checked_mul(size_min) {
            Some(size) if size <= left => Ok(count),
            _ => Err(self.here(PlanProblem::Length { claimed: count, left })),
        }
    }

    #[cold]
    fn here(&self, problem: PlanProblem) -> PlanError {
        PlanError::at(self.position + HEADER_SIZE, problem)
    }
}

/// # Safety
/// As of [`read`].
unsafe fn message_from<L: Containers>(
    code: &Code,
    source: &mut Source<'_>,
    message: *mut u8,
) -> Result<(), PlanError> {
    for op in &code.ops {
        // SAFETY: as the caller says.
        if let Err(error) = unsafe { op_from::<L>(op, source, message) } {
            return Err(error.within(&op.name));
        }
    }
    Ok(())
}

/// # Safety
/// As of [`read`]; `op` is of the message's code.
#[inline]
unsafe fn op_from<L: Containers>(
    op: &Op,
    source: &mut Source<'_>,
    message: *mut u8,
) -> Result<(), PlanError> {
    // SAFETY: the code knows where the field is, and that it is what the action is for.
    unsafe {
        let at = message.add(op.offset);
        match &op.action {
            Action::Nothing => {
                source.take(1, 1)?;
                at.write(0);
                Ok(())
            }
            Action::Block(block) => block_from(block, 1, source, at),
            Action::One(element) => element_from::<L>(element, source, at),
            Action::Array { count, element } => elements_from::<L>(element, *count, source, at),
            Action::Sequence(sequence) => sequence_from::<L>(sequence, source, at),
        }
    }
}

/// # Safety
/// There is memory for `count` such blocks at `at`.
#[inline]
unsafe fn block_from(
    block: &Block,
    count: usize,
    source: &mut Source<'_>,
    at: *mut u8,
) -> Result<(), PlanError> {
    let bytes = block_bytes(block, count, source)?;
    // SAFETY: as the caller says. A block's bytes are numbers without padding, and bools were checked.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
        if source.swap {
            block.swap(slice::from_raw_parts_mut(at, bytes.len()));
        }
    }
    Ok(())
}

/// The bytes of `count` such blocks, fit to be values of their types.
#[inline]
fn block_bytes<'a>(
    block: &Block,
    count: usize,
    source: &mut Source<'a>,
) -> Result<&'a [u8], PlanError> {
    if count == 0 {
        return Ok(&[]);
    }
    let bytes = source.take(block.align, block.size.saturating_mul(count))?;
    if block.bools
        && let Some(byte) = block.bad_bool(bytes)
    {
        return Err(source.here(PlanProblem::Bool(byte)));
    }
    Ok(bytes)
}

/// # Safety
/// A live sequence of this kind is at `at`.
unsafe fn sequence_from<L: Containers>(
    sequence: &Sequence,
    source: &mut Source<'_>,
    at: *mut u8,
) -> Result<(), PlanError> {
    let size_min = match &sequence.items {
        Items::Numbers { block, .. } => block.size,
        Items::Elements(element) => element.min_size(),
    };
    let count = source.length(size_min)?;
    check_bound(count, sequence.bound, source)?;
    match &sequence.items {
        Items::Numbers { block, .. } => {
            let bytes = block_bytes(block, count, source)?;
            // SAFETY: as the caller says.
            unsafe {
                L::set_numbers(at, sequence, bytes, count)
                    .map_err(|problem| source.here(problem))?;
                if source.swap && block.size > 1 && count > 0 {
                    let (data, _) =
                        L::numbers(at, sequence).map_err(|problem| source.here(problem))?;
                    block.swap(slice::from_raw_parts_mut(data.cast_mut(), bytes.len()));
                }
            }
            Ok(())
        }
        Items::Elements(element) => {
            // SAFETY: as the caller says; then that many are there.
            unsafe {
                let data =
                    L::resize(at, sequence, count).map_err(|problem| source.here(problem))?;
                elements_from::<L>(element, count, source, data)
            }
        }
    }
}

/// # Safety
/// `count` such live elements are at `at`.
unsafe fn elements_from<L: Containers>(
    element: &Element,
    count: usize,
    source: &mut Source<'_>,
    at: *mut u8,
) -> Result<(), PlanError> {
    if count == 0 {
        return Ok(());
    }
    if let Element::Record(block) = element {
        // SAFETY: as the caller says.
        return unsafe { block_from(block, count, source, at) };
    }
    let stride = L::stride(element);
    for index in 0..count {
        // SAFETY: as the caller says.
        if let Err(error) = unsafe { element_from::<L>(element, source, at.add(index * stride)) } {
            return Err(error.within_element(index));
        }
    }
    Ok(())
}

/// # Safety
/// Such a live element is at `at`.
#[inline]
unsafe fn element_from<L: Containers>(
    element: &Element,
    source: &mut Source<'_>,
    at: *mut u8,
) -> Result<(), PlanError> {
    match element {
        Element::Text { bound } => {
            let length = source.length(1)?;
            let bytes = source.take(1, length)?;
            let text = match bytes {
                // Some writers give an empty string no terminator.
                [] => bytes,
                [text @ .., 0] => text,
                _ => return Err(source.here(PlanProblem::Terminator)),
            };
            check_bound(text.len(), *bound, source)?;
            // SAFETY: as the caller says.
            unsafe { L::set_text(at, text) }.map_err(|problem| source.here(problem))
        }
        Element::WideText { bound } => {
            let count = source.length(size_of::<u32>())?;
            check_bound(count, *bound, source)?;
            let bytes = source.take(1, count * size_of::<u32>())?;
            let words = || bytes.chunks_exact(size_of::<u32>()).map(|word| source.word_in(word));
            // Looked at before the string is touched, so that it never holds what was not written.
            if let Some(word) = words().find(|word| *word > u32::from(u16::MAX)) {
                return Err(source.here(PlanProblem::Wide(word)));
            }
            // SAFETY: as the caller says; then there is room for that many.
            unsafe {
                let out = L::resize_wide_text(at, count).map_err(|problem| source.here(problem))?;
                for (index, word) in words().enumerate() {
                    out.add(index).write(word as u16);
                }
            }
            Ok(())
        }
        // SAFETY: as the caller says.
        Element::Record(block) => unsafe { block_from(block, 1, source, at) },
        // SAFETY: as the caller says.
        Element::Message(code) => unsafe { message_from::<L>(code, source, at) },
    }
}

#[inline]
fn check_bound(length: usize, bound: usize, source: &Source<'_>) -> Result<(), PlanError> {
    if length <= bound { Ok(()) } else { Err(source.here(PlanProblem::Bound { length, bound })) }
}
