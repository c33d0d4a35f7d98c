//! Fields that only one side has: passed over where they are read, and at their default values where they are written.

use super::tree::{Side, Skip};
use super::{Compiler, Counts, Phase, SourceCount, Step, TargetCount};
use crate::convert::PlanError;
use crate::types::{self, HEADER, MessageType, Shape as Shape1};
use std::sync::Arc;
use tsuji_msg::definition::{Base, Literal, ScalarKind, Shape};
use tsuji_msg::{Field, TypeDescription};

impl Compiler<'_> {
    /// Passes over a field.
    pub(super) fn skip(&mut self, skip: Skip<'_>) -> Result<(), PlanError> {
        match skip {
            Skip::Ros1(field) => self.within(&field.name, |compiler| compiler.skip_ros1(field)),
            Skip::Ros2(field) => self.within(&field.name, |compiler| compiler.skip_ros2(field)),
            Skip::Empty => {
                self.skip_bytes(1, 1);
                Ok(())
            }
        }
    }

    fn skip_ros1(&mut self, field: &types::Field) -> Result<(), PlanError> {
        self.spend()?;
        if let Some(bytes) = field.fixed_size() {
            self.skip_bytes(1, bytes);
            return Ok(());
        }
        let source = match field.shape {
            Shape1::Single => return self.skip_element_of_ros1(&field.base),
            Shape1::Array(count) => SourceCount::Fixed(count as usize),
            Shape1::Sequence => SourceCount::Read { min: field.base.min_size(), target_min: 0 },
        };
        let counts = Counts { source, target: TargetCount::Nothing };
        self.repeat(counts, |compiler| compiler.skip_element_of_ros1(&field.base))
    }

    fn skip_element_of_ros1(&mut self, base: &types::Base) -> Result<(), PlanError> {
        if let Some(bytes) = base.fixed_size() {
            self.skip_bytes(1, bytes);
            return Ok(());
        }
        match base {
            types::Base::Message(ty) => {
                self.spend()?;
                ty.fields().iter().try_for_each(|field| self.skip(Skip::Ros1(field)))
            }
            _ => {
                self.push(Step::SkipText { unit: 1 });
                Ok(())
            }
        }
    }

    fn skip_ros2(&mut self, field: &Field) -> Result<(), PlanError> {
        self.spend()?;
        let source = match field.ty.shape {
            Shape::Single => return self.skip_element_of_ros2(&field.ty.base, 1),
            Shape::Array(count) if matches!(field.ty.base, Base::Scalar(_)) => {
                return self.skip_element_of_ros2(&field.ty.base, count as usize);
            }
            Shape::Array(count) => SourceCount::Fixed(count as usize),
            Shape::Sequence | Shape::Bounded(_) => {
                SourceCount::Read { min: field.ty.base.min_size(), target_min: 0 }
            }
        };
        let counts = Counts { source, target: TargetCount::Nothing };
        self.repeat(counts, |compiler| compiler.skip_element_of_ros2(&field.ty.base, 1))
    }

    /// Passes over an element, or over so many numbers.
    fn skip_element_of_ros2(
        &mut self,
        base: &Base<Arc<TypeDescription>>,
        count: usize,
    ) -> Result<(), PlanError> {
        match base {
            Base::Scalar(kind) => self.skip_bytes(kind.size(), kind.size().saturating_mul(count)),
            Base::String { .. } => self.skip_text(1),
            Base::WString { .. } => self.skip_text(4),
            Base::Nested(ty) if ty.fields().is_empty() => self.skip_bytes(1, 1),
            Base::Nested(ty) => {
                self.spend()?;
                ty.fields().iter().try_for_each(|field| self.skip(Skip::Ros2(field)))?;
            }
        }
        Ok(())
    }

    fn skip_text(&mut self, unit: usize) {
        self.push(Step::SkipText { unit });
        if self.to_ros1() {
            self.phase = Phase::UNKNOWN;
        }
    }

    fn skip_bytes(&mut self, align: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        // Only CDR has padding, and it is read only on the way to ROS 1.
        let is_joined = !self.to_ros1() || self.phase.is_aligned(align);
        if self.to_ros1() {
            self.phase.align(align);
            self.phase.advance(bytes);
        }
        if self.barrier < self.program.steps.len()
            && is_joined
            && let Some(Step::Skip { bytes: before, .. }) = self.program.steps.last_mut()
        {
            *before = before.saturating_add(bytes);
            return;
        }
        self.push(Step::Skip { align, bytes });
    }

    /// Writes the default value of a field.
    pub(super) fn default(&mut self, target: Side<'_>, at: usize) -> Result<(), PlanError> {
        match target {
            Side::Ros1(ty) => self.default_of_ros1(ty, at),
            Side::Ros2(ty) => {
                let field = &ty.fields()[at];
                self.within(&field.name, |compiler| compiler.default_of_ros2(field))
            }
        }
    }

    /// Zero, which is also the empty string and list.
    fn default_of_ros1(&mut self, ty: &MessageType, at: usize) -> Result<(), PlanError> {
        self.spend()?;
        let field = &ty.fields()[at];
        let is_seq = ty.name() == HEADER && field.name == "seq" && field.min_size() == 4;
        if is_seq && self.is_in_top_header {
            self.push(Step::Seq);
            return Ok(());
        }
        self.within(&field.name, |compiler| compiler.zeros(1, field.min_size()));
        Ok(())
    }

    pub(super) fn zeros(&mut self, align: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let is_joined = self.to_ros1() || self.phase.is_aligned(align);
        if !self.to_ros1() {
            self.phase.align(align);
            self.phase.advance(bytes);
        }
        if self.barrier < self.program.steps.len()
            && is_joined
            && let Some(Step::Zeros { bytes: before, .. }) = self.program.steps.last_mut()
        {
            *before = before.saturating_add(bytes);
            return;
        }
        self.push(Step::Zeros { align, bytes });
    }

    fn put(&mut self, align: usize, bytes: &[u8]) {
        let start = self.program.literals.len();
        self.program.literals.extend_from_slice(bytes);
        self.push(Step::Put { align, literal: start..start + bytes.len() });
        self.phase.align(align);
        self.phase.advance(bytes.len());
    }

    fn default_of_ros2(&mut self, field: &Field) -> Result<(), PlanError> {
        self.spend()?;
        if let Some(literal) = &field.default {
            if let (Literal::List(items), Shape::Sequence | Shape::Bounded(_)) =
                (literal, field.ty.shape)
            {
                // A definition is not long enough for more elements than fit into 32 bits.
                self.put(4, &(items.len() as u32).to_le_bytes());
            }
            return self.stated(literal, &field.ty.base);
        }
        match field.ty.shape {
            Shape::Sequence | Shape::Bounded(_) => self.zeros(4, 4),
            Shape::Single => self.zero_of_ros2(&field.ty.base, 1)?,
            Shape::Array(count) if matches!(field.ty.base, Base::Scalar(_)) => {
                self.zero_of_ros2(&field.ty.base, count as usize)?;
            }
            Shape::Array(count) => {
                let source = SourceCount::Fixed(count as usize);
                let counts = Counts { source, target: TargetCount::Nothing };
                self.repeat(counts, |compiler| compiler.zero_of_ros2(&field.ty.base, 1))?;
            }
        }
        Ok(())
    }

    /// Writes the default value of an element, or of so many numbers.
    fn zero_of_ros2(
        &mut self,
        base: &Base<Arc<TypeDescription>>,
        count: usize,
    ) -> Result<(), PlanError> {
        match base {
            Base::Scalar(kind) => self.zeros(kind.size(), kind.size().saturating_mul(count)),
            Base::String { .. } => self.put(4, &[1, 0, 0, 0, 0]),
            Base::WString { .. } => self.zeros(4, 4),
            Base::Nested(ty) if ty.fields().is_empty() => self.zeros(1, 1),
            Base::Nested(ty) => {
                self.spend()?;
                for field in ty.fields() {
                    self.within(&field.name, |compiler| compiler.default_of_ros2(field))?;
                }
            }
        }
        Ok(())
    }

    /// Writes a value that a definition states.
    fn stated(
        &mut self,
        literal: &Literal,
        base: &Base<Arc<TypeDescription>>,
    ) -> Result<(), PlanError> {
        match (literal, base) {
            (Literal::List(items), _) => {
                for item in items {
                    self.spend()?;
                    self.stated(item, base)?;
                }
            }
            (Literal::Bool(value), _) => self.put(1, &[(*value).into()]),
            (Literal::Float(value), Base::Scalar(ScalarKind::F32)) => {
                self.put(4, &(*value as f32).to_le_bytes());
            }
            (Literal::Float(value), _) => self.put(8, &value.to_le_bytes()),
            (Literal::Integer(value), base) => {
                let size = match base {
                    Base::Scalar(kind) => kind.size(),
                    _ => 4,
                };
                self.put(size, &value.to_le_bytes()[..size]);
            }
            (Literal::Text(text), Base::WString { .. }) => {
                let units: Vec<u16> = text.encode_utf16().collect();
                let mut bytes = (units.len() as u32).to_le_bytes().to_vec();
                units.iter().for_each(|unit| bytes.extend(u32::from(*unit).to_le_bytes()));
                self.put(4, &bytes);
            }
            (Literal::Text(text), _) => {
                let mut bytes = (text.len() as u32 + 1).to_le_bytes().to_vec();
                bytes.extend_from_slice(text.as_bytes());
                bytes.push(0);
                self.put(4, &bytes);
            }
        }
        Ok(())
    }
}
