//! A compiled conversion in one direction: a flat list of steps, and what runs it.

use super::error::{ConvertError, ConvertProblem};
use super::state::{Number, State};
use std::ops::Range;
use tsuji_msg::definition::ScalarKind;

/// Steps in one direction.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    /// For each step the name of its field.
    pub(super) names_of_steps: Vec<u32>,
    pub(super) names: Vec<String>,
    pub(super) pieces: Vec<Piece>,
    /// Default values as CDR has them.
    pub(super) literals: Vec<u8>,
    /// Numbers that mean the same, in the order of those that are read.
    pub(super) values: Vec<Vec<(i64, i64)>>,
    /// Positions to be kept.
    pub(super) slots: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Copies bytes that are the same in both forms.
    Run(Run),
    /// Copies so many of them.
    Runs(Counts, Run),
    /// Converts a string.
    Text { bound: Option<u32> },
    /// Does the next steps for each element.
    Loop(Counts, usize),
    /// Converts a number between types.
    Number { from: ScalarKind, to: ScalarKind, values: Option<usize> },
    /// Passes over bytes of the source.
    Skip { align: usize, bytes: usize },
    /// Passes over so many of them.
    Skips { counts: Counts, align: usize, bytes: usize },
    /// Passes over a string, whose units have so many bytes.
    SkipText { unit: usize },
    /// Writes a default value.
    Put { align: usize, literal: Range<usize> },
    /// Writes zeros.
    Zeros { align: usize, bytes: usize },
    /// Writes the number of the message.
    Seq,
    /// Keeps the position in the source.
    Mark(usize),
    /// Goes on at a position that was kept.
    Seek(usize),
}

/// Bytes that are the same in both forms.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Alignment in CDR of the first byte. No padding follows behind it.
    pub(super) align: usize,
    pub(super) bytes: usize,
    /// What the bytes are.
    pub(super) pieces: Range<usize>,
    /// Whether there is anything in it whose bytes are not copied blindly.
    pub(super) is_checked: bool,
}

/// A part of a [`Run`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) kind: PieceKind,
    pub(super) count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Numbers of so many bytes.
    Raw(usize),
    Bool,
    Time,
    Duration,
}

impl PieceKind {
    pub(super) fn align(self) -> usize {
        match self {
            Self::Raw(size) => size,
            Self::Bool => 1,
            Self::Time | Self::Duration => 4,
        }
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Raw(size) => size,
            Self::Bool => 1,
            Self::Time | Self::Duration => 8,
        }
    }
}

/// How many elements a list has on either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) source: SourceCount,
    pub(super) target: TargetCount,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum SourceCount {
    Fixed(usize),
    /// There are so many, which have no bytes, and have so many each on the other side.
    Empty {
        count: usize,
        target_min: usize,
    },
    /// A count is read. An element has so many bytes at least, on either side.
    Read {
        min: usize,
        target_min: usize,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum TargetCount {
    /// There are so many, and no count is written.
    Fixed(usize),
    /// A count is written.
    Written { bound: Option<u32> },
    /// Nothing is written.
    Nothing,
}

impl Program {
    /// Converts one message: from CDR if `TO_ROS1`, else to CDR.
    pub(super) fn run<const TO_ROS1: bool>(
        &self,
        state: &mut State<'_>,
    ) -> Result<(), ConvertError> {
        self.steps::<TO_ROS1>(0..self.steps.len(), state)
    }

    fn steps<const TO_ROS1: bool>(
        &self,
        range: Range<usize>,
        state: &mut State<'_>,
    ) -> Result<(), ConvertError> {
        let mut at = range.start;
        while at < range.end {
            let step = &self.steps[at];
            let done = match step {
                Step::Loop(counts, body) => {
                    let body = at + 1..at + 1 + body;
                    self.repeat::<TO_ROS1>(counts, body.clone(), state).map(|()| body.end)
                }
                step => self.step::<TO_ROS1>(step, state).map(|()| at + 1),
            };
            at = done.map_err(|error| error.within(self.name(at)))?;
        }
        Ok(())
    }

    fn name(&self, step: usize) -> &str {
        let name = self.names_of_steps.get(step).and_then(|name| self.names.get(*name as usize));
        name.map_or("", String::as_str)
    }

    fn repeat<const TO_ROS1: bool>(
        &self,
        counts: &Counts,
        body: Range<usize>,
        state: &mut State<'_>,
    ) -> Result<(), ConvertError> {
        for _ in 0..self.count::<TO_ROS1>(counts, state)? {
            self.steps::<TO_ROS1>(body.clone(), state)?;
        }
        Ok(())
    }

    #[inline]
    fn step<const TO_ROS1: bool>(
        &self,
        step: &Step,
        state: &mut State<'_>,
    ) -> Result<(), ConvertError> {
        match step {
            Step::Run(run) => self.copy::<TO_ROS1>(run, 1, state),
            Step::Runs(counts, run) => {
                let count = self.count::<TO_ROS1>(counts, state)?;
                self.copy::<TO_ROS1>(run, count, state)
            }
            Step::Text { bound } => text::<TO_ROS1>(*bound, state),
            // Handled where the steps are walked.
            Step::Loop(..) => Ok(()),
            Step::Number { from, to, values } => {
                let mut number = {
                    if TO_ROS1 {
                        state.align_source(from.size());
                    }
                    state.number(*from)?
                };
                if let (Some(values), Number::Integer(value)) = (values, &mut number) {
                    *value = self.same(*values, *value);
                }
                if !TO_ROS1 {
                    state.align_out(to.size());
                }
                state.put_number(*to, number, *from)
            }
            Step::Skip { align, bytes } => skip::<TO_ROS1>(*align, *bytes, state),
            Step::Skips { counts, align, bytes } => {
                let count = self.count::<TO_ROS1>(counts, state)?;
                if count == 0 {
                    return Ok(());
                }
                skip::<TO_ROS1>(*align, bytes.saturating_mul(count), state)
            }
            Step::SkipText { unit } => {
                if TO_ROS1 {
                    state.align_source(4);
                }
                let length = state.count()?;
                state.take(length.saturating_mul(*unit)).map(drop)
            }
            Step::Put { align, literal } => {
                state.align_out(*align);
                state.put(self.literals.get(literal.clone()).unwrap_or_default())
            }
            Step::Zeros { align, bytes } => {
                if !TO_ROS1 {
                    state.align_out(*align);
                }
                state.zeros(*bytes)
            }
            Step::Seq => {
                let seq = state.seq.to_le_bytes();
                state.put(&seq)
            }
            Step::Mark(slot) => {
                state.slots[*slot] = state.at;
                Ok(())
            }
            Step::Seek(slot) => {
                state.at = state.slots[*slot];
                Ok(())
            }
        }
    }

    /// How many elements there are, checked and told to the target.
    #[inline]
    fn count<const TO_ROS1: bool>(
        &self,
        counts: &Counts,
        state: &mut State<'_>,
    ) -> Result<usize, ConvertError> {
        let count = match counts.source {
            SourceCount::Fixed(count) => count,
            SourceCount::Empty { count, target_min } => {
                state.expect(count, 0, target_min)?;
                count
            }
            SourceCount::Read { min, target_min } => {
                if TO_ROS1 {
                    state.align_source(4);
                }
                let count = state.count()?;
                state.expect(count, min, target_min)?;
                count
            }
        };
        match counts.target {
            TargetCount::Nothing => {}
            TargetCount::Fixed(needed) if count != needed => {
                return Err(state.error(ConvertProblem::Count { length: count, needed }));
            }
            TargetCount::Fixed(_) => {}
            TargetCount::Written { bound } => {
                if let Some(bound) = bound.map(|it| it as usize).filter(|bound| *bound < count) {
                    return Err(state.error(ConvertProblem::Bound { length: count, bound }));
                }
                if !TO_ROS1 {
                    state.align_out(4);
                }
                state.put_count(count)?;
            }
        }
        Ok(count)
    }

    /// Copies `count` runs, one behind the other.
    #[inline]
    fn copy<const TO_ROS1: bool>(
        &self,
        run: &Run,
        count: usize,
        state: &mut State<'_>,
    ) -> Result<(), ConvertError> {
        // A list without elements has no padding before them.
        if count == 0 {
            return Ok(());
        }
        if TO_ROS1 {
            state.align_source(run.align);
        } else {
            state.align_out(run.align);
        }
        let bytes = state.take(run.bytes.saturating_mul(count))?;
        let start = state.out.len();
        state.put(bytes)?;
        if run.is_checked || state.is_big {
            let pieces = self.pieces.get(run.pieces.clone()).unwrap_or_default();
            let copied = state.out.get_mut(start..).unwrap_or_default();
            if let [Piece { kind, .. }] = *pieces {
                let all = Piece { kind, count: copied.len() / kind.bytes() };
                mend::<TO_ROS1>(&[all], copied, state.is_big);
                return Ok(());
            }
            for element in copied.chunks_exact_mut(run.bytes) {
                mend::<TO_ROS1>(pieces, element, state.is_big);
            }
        }
        Ok(())
    }

    /// The number of the other side: that of the greatest listed one that is not above `value`.
    fn same(&self, values: usize, value: i128) -> i128 {
        let pairs = self.values.get(values).map(Vec::as_slice).unwrap_or_default();
        let below = pairs.iter().rev().find(|(from, _)| i128::from(*from) <= value);
        below.or_else(|| pairs.first()).map_or(value, |(_, to)| (*to).into())
    }
}

#[inline]
fn skip<const TO_ROS1: bool>(
    align: usize,
    bytes: usize,
    state: &mut State<'_>,
) -> Result<(), ConvertError> {
    if TO_ROS1 {
        state.align_source(align);
    }
    state.take(bytes).map(drop)
}

#[inline]
fn text<const TO_ROS1: bool>(
    bound: Option<u32>,
    state: &mut State<'_>,
) -> Result<(), ConvertError> {
    if TO_ROS1 {
        state.align_source(4);
        let length = state.count()?;
        let text = match state.take(length)? {
            [text @ .., 0] => text,
            // Some writers give an empty string no terminator.
            [] => &[],
            _ => return Err(state.error(ConvertProblem::Terminator)),
        };
        state.put_count(text.len())?;
        return state.put(text);
    }
    let length = state.count()?;
    if let Some(bound) = bound.map(|bound| bound as usize).filter(|bound| *bound < length) {
        return Err(state.error(ConvertProblem::Bound { length, bound }));
    }
    let text = state.take(length)?;
    state.align_out(4);
    state.put_count(length.saturating_add(1))?;
    state.put(text)?;
    state.put(&[0])
}

/// Makes copied bytes right: the order of their bytes, truth values that are neither 0 nor 1, and times that the other side
/// cannot state.
fn mend<const TO_ROS1: bool>(pieces: &[Piece], bytes: &mut [u8], is_big: bool) {
    let mut rest = bytes;
    for piece in pieces {
        let length = piece.kind.bytes().saturating_mul(piece.count).min(rest.len());
        let (own, after) = rest.split_at_mut(length);
        rest = after;
        match piece.kind {
            PieceKind::Raw(size) => {
                if is_big && 1 < size {
                    own.chunks_exact_mut(size).for_each(<[u8]>::reverse);
                }
            }
            PieceKind::Bool => own.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0)),
            PieceKind::Time | PieceKind::Duration => {
                for time in own.chunks_exact_mut(8) {
                    if is_big {
                        time.chunks_exact_mut(4).for_each(<[u8]>::reverse);
                    }
                    match piece.kind {
                        PieceKind::Time => mend_time::<TO_ROS1>(time),
                        _ => mend_duration::<TO_ROS1>(time),
                    }
                }
            }
        }
    }
}

/// Seconds and nanoseconds. ROS 1 counts seconds without a sign, ROS 2 with one.
#[inline]
fn mend_time<const TO_ROS1: bool>(time: &mut [u8]) {
    // The highest bit is the sign in ROS 2.
    if time[3] & 0x80 == 0 {
        return;
    }
    if TO_ROS1 {
        time.fill(0);
    } else {
        time[..4].copy_from_slice(&i32::MAX.to_le_bytes());
        time[4..].copy_from_slice(&(NANOSECONDS as u32 - 1).to_le_bytes());
    }
}

const NANOSECONDS: i64 = 1_000_000_000;

/// Seconds and nanoseconds. ROS 1 counts nanoseconds with a sign, ROS 2 without; they are less than a second.
#[inline]
fn mend_duration<const TO_ROS1: bool>(time: &mut [u8]) {
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word.copy_from_slice(bytes);
        u32::from_le_bytes(word)
    };
    let (seconds, nanoseconds) = (word(&time[..4]) as i32, word(&time[4..]));
    if i64::from(nanoseconds) < NANOSECONDS {
        return;
    }
    let nanoseconds: i64 = if TO_ROS1 { nanoseconds.into() } else { (nanoseconds as i32).into() };
    let (least, most) =
        (i64::from(i32::MIN) * NANOSECONDS, i64::from(i32::MAX) * NANOSECONDS + NANOSECONDS - 1);
    let all = (i64::from(seconds) * NANOSECONDS + nanoseconds).clamp(least, most);
    let (seconds, nanoseconds) = (all.div_euclid(NANOSECONDS), all.rem_euclid(NANOSECONDS));
    time[..4].copy_from_slice(&(seconds as i32).to_le_bytes());
    time[4..].copy_from_slice(&(nanoseconds as u32).to_le_bytes());
}
