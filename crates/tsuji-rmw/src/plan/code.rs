use std::ffi::c_void;

/// What to do for each field, or run of fields, of one message type, in the order of CDR.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) ops: Box<[Op]>,
    /// Bytes of the message in memory.
    pub(super) size_of: usize,
    /// Fewest bytes of the message in CDR, padding not counted; never 0. Bounds what the count of a
    /// sequence can claim.
    pub(super) min_size: usize,
}

#[derive(Debug)]
pub(super) struct Op {
    /// Path of the field, or of the first in a block.
    pub(super) name: Box<str>,
    /// Where it is in the message's memory.
    pub(super) offset: usize,
    pub(super) action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    /// The byte of an empty message, in CDR 0. In memory some generated code never gives it a value.
    Nothing,
    /// Numbers that lie in CDR as they lie in memory.
    Block(Block),
    /// One element that is no number.
    One(Element),
    /// As many elements as the type says.
    Array { count: usize, element: Element },
    /// A count and elements.
    Sequence(Sequence),
}

/// Bytes that are the same in memory and in little-endian CDR once their start is aligned.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// Bytes, without padding between them.
    pub(super) size: usize,
    /// What the first number is aligned to. That aligns the others too.
    pub(super) align: usize,
    /// The numbers, for what cannot treat them as bytes.
    pub(super) runs: Vec<Run>,
    /// Whether a run holds `bool`, whose values are checked.
    pub(super) bools: bool,
}

/// Numbers of one size in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) size: usize,
    pub(super) count: usize,
    pub(super) bools: bool,
}

/// What a field, an array or a sequence is made of, where it is not numbers.
#[derive(Debug)]
pub(super) enum Element {
    /// A string of at most `bound` bytes.
    Text { bound: usize },
    /// A string of at most `bound` UTF-16 code units.
    WideText { bound: usize },
    /// Messages that are one block without padding at their end, so that many are one block too.
    Record(Block),
    /// Any other message.
    Message(Code),
}

#[derive(Debug)]
pub(super) struct Sequence {
    /// Most elements.
    pub(super) bound: usize,
    pub(super) items: Items,
    pub(super) access: Access,
    pub(super) memory: Memory,
}

/// Whether the numbers of a sequence may be elsewhere than in the processor's memory, as since Lyrical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// They are in the processor's memory.
    Processor,
    /// In C, where the `bool` at this offset of the sequence is true.
    Flagged(usize),
    /// In C++ the field is a `rosidl::Buffer`, which knows.
    Buffer,
}

#[derive(Debug)]
pub(super) enum Items {
    /// Numbers of a type of `field_type`.
    Numbers { type_id: u8, block: Block },
    /// Strings and messages.
    Elements(Element),
}

/// How a type support reaches into a sequence. What a language needs of it is there: the compiler
/// has seen to that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) size: Option<unsafe extern "C" fn(*const c_void) -> usize>,
    pub(super) get: Option<unsafe extern "C" fn(*const c_void, usize) -> *const c_void>,
    pub(super) resize: Option<unsafe extern "C" fn(*mut c_void, usize) -> bool>,
}

impl Code {
    /// Where the message ends in CDR when it starts at `position`; none when that is not always the
    /// same.
    pub(super) fn end(&self, mut position: usize) -> Option<usize> {
        for op in &self.ops {
            position = match &op.action {
                Action::Nothing => position + 1,
                Action::Block(block) => block.end(position, 1),
                Action::Array { count, element: Element::Record(block) } => {
                    block.end(position, *count)
                }
                Action::Array { count, element: Element::Message(code) } => {
                    for _ in 0..*count {
                        position = code.end(position)?;
                    }
                    position
                }
                _ => return None,
            };
        }
        Some(position)
    }

    /// Whether the message's memory is its CDR, byte for byte, and any bytes are such a message.
    pub(super) fn is_plain(&self) -> bool {
        let mut position = 0;
        for op in &self.ops {
            let (block, count) = match &op.action {
                Action::Block(block) => (block, 1),
                Action::Array { count, element: Element::Record(block) } => (block, *count),
                _ => return false,
            };
            if op.offset != position || block.bools || !position.is_multiple_of(block.align) {
                return false;
            }
            position = block.end(position, count);
        }
        cfg!(target_endian = "little") && position == self.size_of
    }

    /// The message as a block, when many in a row are one block too.
    pub(super) fn as_record(&self) -> Option<&Block> {
        match &*self.ops {
            [Op { offset: 0, action: Action::Block(block), .. }]
                if block.size == self.size_of && block.size.is_multiple_of(block.align) =>
            {
                Some(block)
            }
            _ => None,
        }
    }
}

impl Block {
    /// Where `count` of them end that start at `position`, or after it as their alignment wants.
    fn end(&self, position: usize, count: usize) -> usize {
        position.next_multiple_of(self.align) + self.size * count
    }

    /// A byte of a `bool` that is neither 0 nor 1, in bytes of such blocks.
    pub(super) fn bad_bool(&self, bytes: &[u8]) -> Option<u8> {
        bytes.chunks_exact(self.size).find_map(|mut block| {
            self.runs.iter().find_map(|run| {
                let (numbers, rest) = block.split_at(run.size * run.count);
                block = rest;
                numbers.iter().copied().find(|byte| run.bools && *byte > 1)
            })
        })
    }

    /// Makes every `bool` 0 or 1, in bytes of such blocks. One that a program in C never set may be anything else,
    /// and counts as true.
    pub(super) fn make_bools(&self, bytes: &mut [u8]) {
        for mut block in bytes.chunks_exact_mut(self.size) {
            for run in &self.runs {
                let (numbers, rest) = block.split_at_mut(run.size * run.count);
                block = rest;
                if run.bools {
                    numbers.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
                }
            }
        }
    }

    /// Reverses the bytes of every number, in bytes of such blocks.
    pub(super) fn swap(&self, bytes: &mut [u8]) {
        for mut block in bytes.chunks_exact_mut(self.size) {
            for run in &self.runs {
                let (numbers, rest) = block.split_at_mut(run.size * run.count);
                block = rest;
                numbers.chunks_exact_mut(run.size).for_each(<[u8]>::reverse);
            }
        }
    }
}
