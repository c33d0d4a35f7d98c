//! Compiles a pair of types into a [`Program`].

use super::matching::{self, Pair};
use super::program::{Counts, Piece, PieceKind, Program, Run, SourceCount, Step, TargetCount};
use super::{PLAN_FIELDS_MAX, PlanError};
use crate::mapping::Mapping;
use crate::types::{self, HEADER, MessageType, Shape as Shape1};
use std::sync::Arc;
use tsuji_msg::definition::{Base, FieldType, ScalarKind, Shape};
use tsuji_msg::{Field, TypeDescription};

mod fill;
mod tree;

use tree::{Event, Node, Side};

/// Which way messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToRos1,
    ToCdr,
}

/// The program for one direction.
pub(super) fn program(
    ros1: &MessageType,
    ros2: &Arc<TypeDescription>,
    mapping: &Mapping,
    direction: Direction,
) -> Result<Program, PlanError> {
    let mut compiler = Compiler {
        direction,
        mapping,
        program: Program::default(),
        phase: Phase { modulus: 8, rest: 0 },
        barrier: 0,
        path: String::new(),
        fields_left: PLAN_FIELDS_MAX,
        top: ros2,
        depth: 0,
        is_in_top_header: ros1.name() == HEADER,
    };
    compiler.message(ros1, ros2)?;
    Ok(compiler.program)
}

/// What is known of the position in CDR: its rest modulo a power of two.
#[derive(Clone, Copy)]
struct Phase {
    modulus: usize,
    rest: usize,
}

impl Phase {
    const UNKNOWN: Self = Self { modulus: 1, rest: 0 };

    fn is_aligned(self, align: usize) -> bool {
        align <= self.modulus && self.rest.is_multiple_of(align)
    }

    fn align(&mut self, align: usize) {
        if align <= self.modulus {
            self.rest = self.rest.next_multiple_of(align) % self.modulus;
        } else {
            *self = Self { modulus: align, rest: 0 };
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = (self.rest + bytes % self.modulus) % self.modulus;
    }
}

struct Compiler<'a> {
    direction: Direction,
    mapping: &'a Mapping,
    program: Program,
    phase: Phase,
    /// Steps before this one are complete.
    barrier: usize,
    /// The field that is being compiled, as ROS 2 names it.
    path: String,
    fields_left: usize,
    top: &'a TypeDescription,
    /// Messages that are open.
    depth: usize,
    /// Whether `seq` is that of the message.
    is_in_top_header: bool,
}

/// Whether it is the time of ROS 2.
pub(super) fn is_time(ty: &TypeDescription) -> bool {
    is_builtin(ty, "Time")
}

/// Whether it is the duration of ROS 2.
pub(super) fn is_duration(ty: &TypeDescription) -> bool {
    is_builtin(ty, "Duration")
}

fn is_builtin(ty: &TypeDescription, name: &str) -> bool {
    ty.name().package() == "builtin_interfaces"
        && ty.name().name() == name
        && matches!(ty.fields(), [sec, nanosec]
            if sec.ty.base == Base::Scalar(ScalarKind::I32)
                && nanosec.ty.base == Base::Scalar(ScalarKind::U32)
                && sec.ty.shape == Shape::Single
                && nanosec.ty.shape == Shape::Single)
}

/// Whether numbers of one type can be put into the other, if the value fits.
pub(super) fn is_convertible(ros1: ScalarKind, ros2: ScalarKind) -> bool {
    let is_float = |kind| matches!(kind, ScalarKind::F32 | ScalarKind::F64);
    let is_bool = |kind| kind == ScalarKind::Bool;
    match ros1.size() == 1 && ros2.size() == 1 {
        true => true,
        false => is_float(ros1) == is_float(ros2) && !is_bool(ros1) && !is_bool(ros2),
    }
}

impl Compiler<'_> {
    fn to_ros1(&self) -> bool {
        self.direction == Direction::ToRos1
    }

    /// Takes one field, or one element without fields, from what a plan may have.
    fn spend(&mut self) -> Result<(), PlanError> {
        let too_large = || PlanError::TooLarge { ros2: self.top.name().to_string() };
        self.fields_left = self.fields_left.checked_sub(1).ok_or_else(too_large)?;
        Ok(())
    }

    fn push(&mut self, step: Step) {
        let names = &mut self.program.names;
        if names.last() != Some(&self.path) {
            names.push(self.path.clone());
        }
        // A program has fewer steps than a 32-bit number can say, see `PLAN_FIELDS_MAX`.
        self.program.names_of_steps.push((names.len() - 1) as u32);
        self.program.steps.push(step);
    }

    /// Does `inner` for a field or an element of this name.
    fn within<T>(&mut self, name: &str, inner: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if !self.path.is_empty() && !name.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(name);
        let done = inner(self);
        self.path.truncate(length);
        done
    }

    /// Adds values whose bytes are the same in both forms, to the run before if no padding can be between.
    fn run(&mut self, kind: PieceKind, count: usize) {
        if count == 0 {
            return;
        }
        let (align, bytes) = (kind.align(), kind.bytes().saturating_mul(count));
        let is_joined = self.phase.is_aligned(align);
        self.phase.align(align);
        self.phase.advance(bytes);
        let (start, end) = (self.program.pieces.len(), self.program.pieces.len() + 1);
        let is_checked = !matches!(kind, PieceKind::Raw(_));
        let last = match self.program.steps.len() {
            steps if self.barrier < steps => self.program.steps.last_mut(),
            _ => None,
        };
        if let Some(Step::Run(run)) = last
            && is_joined
            && run.pieces.end == start
        {
            run.bytes = run.bytes.saturating_add(bytes);
            run.is_checked |= is_checked;
            match self.program.pieces.last_mut() {
                Some(piece) if piece.kind == kind => piece.count += count,
                _ => {
                    run.pieces.end = end;
                    self.program.pieces.push(Piece { kind, count });
                }
            }
            return;
        }
        self.program.pieces.push(Piece { kind, count });
        self.push(Step::Run(Run { align, bytes, pieces: start..end, is_checked }));
    }

    /// Adds what `body` adds once for each element.
    fn repeat(
        &mut self,
        counts: Counts,
        body: impl FnOnce(&mut Self) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        let at = self.program.steps.len();
        self.push(Step::Loop(counts, 0));
        let has_count = match self.direction {
            Direction::ToRos1 => matches!(counts.source, SourceCount::Read { .. }),
            Direction::ToCdr => matches!(counts.target, TargetCount::Written { .. }),
        };
        let mut before = self.phase;
        if has_count {
            before.align(4);
            before.advance(4);
        }
        self.phase = Phase::UNKNOWN;
        self.barrier = at + 1;
        self.within("[]", body)?;
        self.barrier = self.program.steps.len();
        self.phase = Phase::UNKNOWN;
        // What is only one step, and has no padding between two of it, is done for all elements at once.
        let (single, bytes) = match &self.program.steps[at + 1..] {
            [Step::Run(run)] if run.bytes.is_multiple_of(run.align) => {
                (Some(Step::Runs(counts, run.clone())), run.bytes)
            }
            [Step::Skip { align, bytes }] if bytes.is_multiple_of(*align) => {
                let (align, bytes) = (*align, *bytes);
                (Some(Step::Skips { counts, align, bytes }), bytes)
            }
            _ => (None, 0),
        };
        let Some(single) = single else {
            let body = self.program.steps.len() - at - 1;
            self.program.steps[at] = Step::Loop(counts, body);
            return Ok(());
        };
        // The elements stand at a multiple of their alignment, and are there or not.
        if has_count && bytes.is_multiple_of(4) && before.is_aligned(4) {
            self.phase = Phase { modulus: 4, rest: 0 };
        }
        self.program.steps.truncate(at);
        self.program.names_of_steps.truncate(at);
        self.push(single);
        self.barrier = at + 1;
        Ok(())
    }

    /// Adds the conversion between two messages.
    fn message(
        &mut self,
        ros1: &MessageType,
        ros2: &Arc<TypeDescription>,
    ) -> Result<(), PlanError> {
        if let [field] = ros1.fields()
            && let Some(kind) = time_kind(field, ros2)
        {
            self.run(kind, 1);
            return Ok(());
        }
        self.spend()?;
        self.depth += 1;
        let pairs = matching::pairs(ros1, ros2, self.mapping)?;
        let of = (ros1, ros2);
        let (side1, side2) = (Side::Ros1(ros1), Side::Ros2(ros2));
        let (source, target) = if self.to_ros1() { (side2, side1) } else { (side1, side2) };
        let to_ros1 = self.to_ros1();
        let ends = |pair: &Pair<'_>| match to_ros1 {
            true => (pair.ros2.clone(), pair.ros1.clone()),
            false => (pair.ros1.clone(), pair.ros2.clone()),
        };
        let ends: Vec<_> = pairs.iter().map(ends).collect();
        let nodes = tree::nodes(target, &ends.iter().enumerate().collect::<Vec<_>>(), 0);
        let order = tree::order(&nodes);
        let is_in_order = order.is_sorted_by(|a, b| ends[*a].0 < ends[*b].0);
        let mut uses: Vec<(&[usize], usize)> =
            ends.iter().enumerate().map(|(at, ends)| (ends.0.as_slice(), at)).collect();
        uses.sort_unstable();
        let events = tree::events(source, &uses, 0);
        if is_in_order {
            let mut events = events.into_iter();
            self.fields(target, nodes, &pairs, of, &mut |compiler, _| {
                for event in events.by_ref() {
                    match event {
                        Event::Use(..) => break,
                        Event::Skip(skip) => compiler.skip(skip)?,
                    }
                }
                Ok(())
            })?;
            for event in events {
                if let Event::Skip(skip) = event {
                    self.skip(skip)?;
                }
            }
        } else {
            let first = self.program.slots;
            self.program.slots += pairs.len() + 1;
            for event in events {
                match event {
                    Event::Use(at, skip) => {
                        self.push(Step::Mark(first + at));
                        self.skip(skip)?;
                    }
                    Event::Skip(skip) => self.skip(skip)?,
                }
            }
            let end = first + pairs.len();
            self.push(Step::Mark(end));
            self.fields(target, nodes, &pairs, of, &mut |compiler, at| {
                compiler.seek(first + at);
                Ok(())
            })?;
            self.seek(end);
        }
        self.depth -= 1;
        Ok(())
    }

    fn seek(&mut self, slot: usize) {
        self.push(Step::Seek(slot));
        if self.to_ros1() {
            self.phase = Phase::UNKNOWN;
        }
    }

    /// Adds the fields of the target. `reach` adds the steps to where the source of a pair stands.
    fn fields(
        &mut self,
        target: Side<'_>,
        nodes: Vec<Node>,
        pairs: &[Pair<'_>],
        of: (&MessageType, &Arc<TypeDescription>),
        reach: &mut dyn FnMut(&mut Self, usize) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        if nodes.is_empty() && matches!(target, Side::Ros2(_)) {
            self.zeros(1, 1);
        }
        for (at, node) in nodes.into_iter().enumerate() {
            let was_in_header = self.is_in_top_header;
            if let Side::Ros1(ty) = target
                && self.depth == 1
                && is_header(&ty.fields()[at])
            {
                self.is_in_top_header = true;
            }
            match node {
                Node::Default => self.default(target, at)?,
                Node::Inside(nodes) => {
                    if let Some(inside) = target.inside(at) {
                        self.fields(inside, nodes, pairs, of, reach)?;
                    }
                }
                Node::Pair(pair) => {
                    reach(self, pair)?;
                    let Pair { ros1, ros2, values } = &pairs[pair];
                    if let Some((one, _)) = tree::field_of_ros1(of.0, ros1)
                        && let Some((two, name)) = tree::field_of_ros2(of.1, ros2)
                    {
                        self.within(&name, |compiler| compiler.value(one, two, *values))?;
                    }
                }
            }
            self.is_in_top_header = was_in_header;
        }
        Ok(())
    }

    /// Adds the conversion between two fields.
    fn value(
        &mut self,
        one: &types::Field,
        two: &Field,
        values: Option<&[(i64, i64)]>,
    ) -> Result<(), PlanError> {
        self.spend()?;
        let is_same = match (one.shape, two.ty.shape) {
            (Shape1::Single, Shape::Single) => return self.element(one, two, values),
            (Shape1::Single, _) | (_, Shape::Single) => false,
            (Shape1::Array(one), Shape::Array(two)) => one == two,
            _ => true,
        };
        if !is_same {
            return Err(self.mismatch(one, two));
        }
        if let (Shape1::Array(count), Shape::Array(_)) = (one.shape, two.ty.shape)
            && let Some(kind) = run_kind(&one.base, &two.ty.base).filter(|_| values.is_none())
        {
            self.run(kind, count as usize);
            return Ok(());
        }
        let (min1, min2) = (one.base.min_size(), two.ty.base.min_size());
        let counts = if self.to_ros1() {
            let source = match two.ty.shape {
                Shape::Array(count) => SourceCount::Fixed(count as usize),
                _ => SourceCount::Read { min: min2, target_min: min1 },
            };
            let target = match one.shape {
                Shape1::Array(count) => TargetCount::Fixed(count as usize),
                _ => TargetCount::Written { bound: None },
            };
            Counts { source, target }
        } else {
            let source = match one.shape {
                Shape1::Array(count) if min1 == 0 && !matches!(two.ty.shape, Shape::Array(_)) => {
                    SourceCount::Empty { count: count as usize, target_min: min2 }
                }
                Shape1::Array(count) => SourceCount::Fixed(count as usize),
                _ => SourceCount::Read { min: min1, target_min: min2 },
            };
            let target = match two.ty.shape {
                Shape::Array(count) => TargetCount::Fixed(count as usize),
                Shape::Bounded(bound) => TargetCount::Written { bound: Some(bound) },
                _ => TargetCount::Written { bound: None },
            };
            Counts { source, target }
        };
        self.repeat(counts, |compiler| compiler.element(one, two, values))
    }

    /// Adds the conversion of one element of two fields.
    fn element(
        &mut self,
        one: &types::Field,
        two: &Field,
        values: Option<&[(i64, i64)]>,
    ) -> Result<(), PlanError> {
        if values.is_none()
            && let Some(kind) = run_kind(&one.base, &two.ty.base)
        {
            self.run(kind, 1);
            return Ok(());
        }
        match (&one.base, &two.ty.base) {
            (types::Base::Scalar(kind1), Base::Scalar(kind2)) => {
                let (kind1, kind2) = (meaning_in_ros1(*kind1), meaning_in_ros2(*kind2));
                let is_integer = |kind: ScalarKind| kind.integer_range().is_some();
                let is_listed = is_integer(kind1) && is_integer(kind2);
                if !(is_convertible(kind1, kind2) && (values.is_none() || is_listed)) {
                    return Err(self.mismatch(one, two));
                }
                let values = values.map(|values| self.add_values(values));
                let (from, to) = if self.to_ros1() { (kind2, kind1) } else { (kind1, kind2) };
                self.push(Step::Number { from, to, values });
                self.phase.align(kind2.size());
                self.phase.advance(kind2.size());
                Ok(())
            }
            (types::Base::String, Base::String { bound }) => {
                let bound = bound.filter(|_| !self.to_ros1());
                self.push(Step::Text { bound });
                self.phase = Phase::UNKNOWN;
                Ok(())
            }
            (types::Base::Message(one), Base::Nested(two)) => self.message(one, two),
            _ => Err(self.mismatch(one, two)),
        }
    }

    /// Keeps numbers that mean the same, in the order of those that are read.
    fn add_values(&mut self, values: &[(i64, i64)]) -> usize {
        let mut values = values.to_vec();
        if self.to_ros1() {
            values = values.into_iter().map(|(one, two)| (two, one)).collect();
        }
        values.sort_unstable();
        self.program.values.push(values);
        self.program.values.len() - 1
    }

    fn mismatch(&self, one: &types::Field, two: &Field) -> PlanError {
        let (field, ros1) = (self.path.clone(), one.type_text());
        let base = match &two.ty.base {
            Base::Scalar(kind) => Base::Scalar(*kind),
            Base::String { bound } => Base::String { bound: *bound },
            Base::WString { bound } => Base::WString { bound: *bound },
            Base::Nested(ty) => Base::Nested(ty.name().to_string()),
        };
        let ros2 = FieldType { base, shape: two.ty.shape }.to_string();
        PlanError::Types { field, ros1, ros2 }
    }
}

/// Whether a field is the header of its message.
fn is_header(field: &types::Field) -> bool {
    field.name == "header"
        && field.shape == Shape1::Single
        && matches!(&field.base, types::Base::Message(ty) if ty.name() == HEADER)
}

/// What the values are whose bytes are the same in both forms.
fn run_kind(one: &types::Base, two: &Base<Arc<TypeDescription>>) -> Option<PieceKind> {
    match (one, two) {
        (types::Base::Scalar(one), Base::Scalar(two)) => match (one.size(), two.size()) {
            (1, 1) if [*one, *two].contains(&ScalarKind::Bool) => Some(PieceKind::Bool),
            (1, 1) => Some(PieceKind::Raw(1)),
            _ => (one == two).then(|| PieceKind::Raw(one.size())),
        },
        (types::Base::Time, Base::Nested(two)) => is_time(two).then_some(PieceKind::Time),
        (types::Base::Duration, Base::Nested(two)) => {
            is_duration(two).then_some(PieceKind::Duration)
        }
        (types::Base::Message(one), Base::Nested(two)) => match one.fields() {
            [field] => time_kind(field, two),
            _ => None,
        },
        _ => None,
    }
}

/// The number that it is in ROS 1, where `byte` has a sign.
fn meaning_in_ros1(kind: ScalarKind) -> ScalarKind {
    match kind {
        ScalarKind::Byte => ScalarKind::I8,
        kind => kind.number().unwrap_or(kind),
    }
}

fn meaning_in_ros2(kind: ScalarKind) -> ScalarKind {
    kind.number().unwrap_or(kind)
}

fn time_kind(field: &types::Field, ros2: &TypeDescription) -> Option<PieceKind> {
    let kind = match field.base {
        types::Base::Time if is_time(ros2) => PieceKind::Time,
        types::Base::Duration if is_duration(ros2) => PieceKind::Duration,
        _ => return None,
    };
    (field.shape == Shape1::Single).then_some(kind)
}
