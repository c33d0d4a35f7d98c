//! From a message's memory to CDR.

use super::code::{Action, Block, Code, Element, Items, Op, Sequence};
use super::containers::{Containers, copy};
use super::error::{PlanError, PlanProblem};
use super::{HEADER, HEADER_SIZE};

/// Bytes of a message in CDR, header included.
///
/// # Safety
/// `message` is a live one of the code's type, in the language of `L`.
pub(super) unsafe fn count<L: Containers>(
    code: &Code,
    message: *const u8,
) -> Result<usize, PlanError> {
    let mut sink = Count(0);
    // SAFETY: as the caller says.
    unsafe { message_to::<L, _>(code, message, &mut sink)? };
    Ok(sink.0 + HEADER_SIZE)
}

/// Writes a message with its header, and answers the bytes.
///
/// # Safety
/// As of [`count`].
pub(super) unsafe fn write<L: Containers>(
    code: &Code,
    message: *const u8,
    out: &mut [u8],
) -> Result<usize, PlanError> {
    let left = out.len();
    let Some((header, body)) = out.split_first_chunk_mut() else {
        return Err(PlanError::at(0, PlanProblem::NoRoom { needed: HEADER_SIZE, left }));
    };
    *header = HEADER;
    let mut sink = Body { bytes: body, position: 0 };
    // SAFETY: as the caller says.
    unsafe { message_to::<L, _>(code, message, &mut sink)? };
    Ok(sink.position + HEADER_SIZE)
}

/// Where the body of a sample goes.
trait Sink {
    /// Whether bytes are only counted, and the memory of numbers is not looked at.
    const COUNTS: bool;

    /// Bytes of the body so far.
    fn position(&self) -> usize;

    /// Pads to a multiple of `align` and gives room for the next `size` bytes, all of which the
    /// caller writes. Empty where bytes are only counted.
    fn room(&mut self, align: usize, size: usize) -> Result<&mut [u8], PlanError>;
}

struct Count(usize);

impl Sink for Count {
    const COUNTS: bool = true;

    fn position(&self) -> usize {
        self.0
    }

    #[inline]
    fn room(&mut self, align: usize, size: usize) -> Result<&mut [u8], PlanError> {
        self.0 = self.0.next_multiple_of(align).saturating_add(size);
        Ok(&mut [])
    }
}

struct Body<'a> {
    bytes: &'a mut [u8],
    position: usize,
}

impl Sink for Body<'_> {
    const COUNTS: bool = false;

    fn position(&self) -> usize {
        self.position
    }

    #[inline]
    fn room(&mut self, align: usize, size: usize) -> Result<&mut [u8], PlanError> {
        let padding = self.position.wrapping_neg() & (align - 1);
        let left = self.bytes.len() - self.position;
        if size > left || padding > left - size {
            let needed = size.saturating_add(padding);
            let at = self.position + HEADER_SIZE;
            return Err(PlanError::at(at, PlanProblem::NoRoom { needed, left }));
        }
        let start = self.position + padding;
        self.bytes[self.position..start].fill(0);
        self.position = start + size;
        Ok(&mut self.bytes[start..start + size])
    }
}

/// # Safety
/// As of [`count`].
unsafe fn message_to<L: Containers, S: Sink>(
    code: &Code,
    message: *const u8,
    sink: &mut S,
) -> Result<(), PlanError> {
    for op in &code.ops {
        // SAFETY: as the caller says.
        if let Err(error) = unsafe { op_to::<L, S>(op, message, sink) } {
            return Err(error.within(&op.name));
        }
    }
    Ok(())
}

/// # Safety
/// As of [`count`]; `op` is of the message's code.
#[inline]
unsafe fn op_to<L: Containers, S: Sink>(
    op: &Op,
    message: *const u8,
    sink: &mut S,
) -> Result<(), PlanError> {
    // SAFETY: the code knows where the field is, and that it is what the action is for.
    unsafe {
        let at = message.add(op.offset);
        match &op.action {
            Action::Nothing => {
                sink.room(1, 1)?.fill(0);
                Ok(())
            }
            Action::Block(block) => block_to(block, 1, at, sink),
            Action::One(element) => element_to::<L, S>(element, at, sink),
            Action::Array { count, element } => elements_to::<L, S>(element, at, *count, sink),
            Action::Sequence(sequence) => sequence_to::<L, S>(sequence, at, sink),
        }
    }
}

/// # Safety
/// `count` such blocks are at `at`.
#[inline]
unsafe fn block_to<S: Sink>(
    block: &Block,
    count: usize,
    at: *const u8,
    sink: &mut S,
) -> Result<(), PlanError> {
    let size = block.size * count;
    if size == 0 {
        return Ok(());
    }
    let out = sink.room(block.align, size)?;
    if S::COUNTS {
        return Ok(());
    }
    // SAFETY: as the caller says, and the room is as large. Between the numbers of a block is no padding, so all is
    // initialised.
    unsafe { copy(at, out.as_mut_ptr(), size) };
    to_little_endian(block, out);
    if block.bools {
        block.make_bools(out);
    }
    Ok(())
}

#[inline]
fn to_little_endian(block: &Block, bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        block.swap(bytes);
    }
}

/// # Safety
/// A sequence of this kind is at `at`.
unsafe fn sequence_to<L: Containers, S: Sink>(
    sequence: &Sequence,
    at: *const u8,
    sink: &mut S,
) -> Result<(), PlanError> {
    match &sequence.items {
        Items::Numbers { block, .. } => {
            // SAFETY: as the caller says.
            let (data, count) = unsafe { L::numbers(at, sequence) }.map_err(here(sink))?;
            length_to(count, count, sequence.bound, sink)?;
            if !data.is_null() {
                // SAFETY: the sequence says so.
                return unsafe { block_to(block, count, data, sink) };
            }
            if count == 0 {
                return Ok(());
            }
            let out = sink.room(1, count)?;
            if S::COUNTS {
                return Ok(());
            }
            // SAFETY: the room is as large.
            unsafe { L::copy_bools(at, out.as_mut_ptr()) }.map_err(here(sink))
        }
        Items::Elements(element) => {
            // SAFETY: as the caller says.
            let (data, count) = unsafe { L::elements(at, sequence) }.map_err(here(sink))?;
            length_to(count, count, sequence.bound, sink)?;
            // SAFETY: the sequence says so.
            unsafe { elements_to::<L, S>(element, data, count, sink) }
        }
    }
}

/// # Safety
/// `count` such elements are at `at`.
unsafe fn elements_to<L: Containers, S: Sink>(
    element: &Element,
    at: *const u8,
    count: usize,
    sink: &mut S,
) -> Result<(), PlanError> {
    if let Element::Record(block) = element {
        // SAFETY: as the caller says.
        return unsafe { block_to(block, count, at, sink) };
    }
    let stride = L::stride(element);
    for index in 0..count {
        // SAFETY: as the caller says.
        if let Err(error) = unsafe { element_to::<L, S>(element, at.add(index * stride), sink) } {
            return Err(error.within_element(index));
        }
    }
    Ok(())
}

/// # Safety
/// Such an element is at `at`.
#[inline]
unsafe fn element_to<L: Containers, S: Sink>(
    element: &Element,
    at: *const u8,
    sink: &mut S,
) -> Result<(), PlanError> {
    match element {
        Element::Text { bound } => {
            // SAFETY: as the caller says.
            let text = unsafe { L::text(at) }.map_err(here(sink))?;
            length_to(text.len().saturating_add(1), text.len(), *bound, sink)?;
            let out = sink.room(1, text.len() + 1)?;
            if let [out @ .., end] = out {
                out.copy_from_slice(text);
                *end = 0;
            }
            Ok(())
        }
        Element::WideText { bound } => {
            // SAFETY: as the caller says.
            let text = unsafe { L::wide_text(at) }.map_err(here(sink))?;
            length_to(text.len(), text.len(), *bound, sink)?;
            let out = sink.room(1, text.len().saturating_mul(size_of::<u32>()))?;
            for (out, unit) in out.chunks_exact_mut(size_of::<u32>()).zip(text) {
                out.copy_from_slice(&u32::from(*unit).to_le_bytes());
            }
            Ok(())
        }
        // SAFETY: as the caller says.
        Element::Record(block) => unsafe { block_to(block, 1, at, sink) },
        // SAFETY: as the caller says.
        Element::Message(code) => unsafe { message_to::<L, S>(code, at, sink) },
    }
}

/// Writes a count, of what is `length` long by the bound's measure.
#[inline]
fn length_to<S: Sink>(
    count: usize,
    length: usize,
    bound: usize,
    sink: &mut S,
) -> Result<(), PlanError> {
    if length > bound {
        return Err(here(sink)(PlanProblem::Bound { length, bound }));
    }
    let Ok(count) = u32::try_from(count) else {
        return Err(here(sink)(PlanProblem::TooLong(length)));
    };
    let out = sink.room(size_of::<u32>(), size_of::<u32>())?;
    if !S::COUNTS {
        out.copy_from_slice(&count.to_le_bytes());
    }
    Ok(())
}

fn here<S: Sink>(sink: &S) -> impl Fn(PlanProblem) -> PlanError + use<S> {
    let offset = sink.position() + HEADER_SIZE;
    move |problem| PlanError::at(offset, problem)
}
