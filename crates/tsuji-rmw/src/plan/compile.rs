//! From introspection to code.

use super::Language;
use super::code::{Access, Action, Block, Code, Element, Items, Memory, Op, Run, Sequence};
use super::error::{PlanError, PlanProblem};
use super::support::{self, text};
use crate::abi::{self, Abi, InC};
use crate::ffi::rosidl::{MessageMember, MessageMembers, field_type};

/// Messages within messages. Deeper than any, and far from the end of the stack.
pub(super) const DEPTH_MAX: usize = 64;

/// The one field of an empty message, which generated code adds for the sake of C.
pub(super) const EMPTY_FIELD: &str = "structure_needs_at_least_one_member";

/// Reads the tables of a message and of all that it holds.
///
/// # Safety
/// `members` is such a table, whole.
pub(super) unsafe fn compile(
    members: *const InC<MessageMembers>,
    language: Language,
    abi: &Abi,
) -> Result<Code, PlanError> {
    // A sample starts aligned to whatever a number can want.
    let start = Place { modulus: 8, residue: 0 };
    // SAFETY: as the caller says.
    unsafe { compile_from(members, language, abi, start, 0) }
}

/// # Safety
/// As of [`compile`].
unsafe fn compile_from(
    members: *const InC<MessageMembers>,
    language: Language,
    abi: &Abi,
    start: Place,
    depth: usize,
) -> Result<Code, PlanError> {
    // SAFETY: as the caller says.
    let Some(table) = (unsafe { support::members_at(members, abi) }) else {
        return Err(contradiction("no table"));
    };
    let mut compiler = Compiler { language, abi, ops: Vec::new(), min_size: 0, place: start };
    // SAFETY: as the caller says.
    unsafe { compiler.message(&table, 0, "", depth)? };
    Ok(Code {
        ops: compiler.ops.into_boxed_slice(),
        size_of: table.size_of_,
        min_size: compiler.min_size,
    })
}

/// What is known of a position in CDR before any message is seen: its remainder by a power of two.
#[derive(Clone, Copy)]
struct Place {
    modulus: usize,
    residue: usize,
}

impl Place {
    const ANYWHERE: Self = Self { modulus: 1, residue: 0 };

    /// Goes to where `count` numbers of this size end; whether they need no padding, for certain.
    fn pass(&mut self, size: usize, count: usize) -> bool {
        let known = self.modulus.is_multiple_of(size);
        let padding = if known { self.residue.wrapping_neg() & (size - 1) } else { 0 };
        if !known {
            *self = Self { modulus: size, residue: 0 };
        }
        self.residue = (self.residue + padding + size * count) % self.modulus;
        known && padding == 0
    }
}

struct Compiler<'a> {
    language: Language,
    abi: &'a Abi,
    ops: Vec<Op>,
    min_size: usize,
    place: Place,
}

impl Compiler<'_> {
    /// Adds the fields of a message that lies at `base` of the outermost one.
    ///
    /// # Safety
    /// `table` is whole.
    unsafe fn message(
        &mut self,
        table: &MessageMembers,
        base: usize,
        path: &str,
        depth: usize,
    ) -> Result<(), PlanError> {
        if depth > DEPTH_MAX {
            return Err(contradiction("messages without end within messages"));
        }
        if table.members_.is_null() || table.member_count_ == 0 {
            return Err(contradiction("a message without fields"));
        }
        // SAFETY: the table is whole.
        for member in unsafe { support::fields(table, self.abi) } {
            // SAFETY: names in a table are C strings.
            let name = unsafe { text(member.name_) };
            let path = if path.is_empty() { name } else { format!("{path}.{name}") };
            let whole = table.size_of_;
            // SAFETY: as the caller says.
            unsafe { self.field(&member, whole, base, &path, depth) }.map_err(|error| {
                // Inner fields have named themselves already.
                if error.field().is_empty() { error.within(&path) } else { error }
            })?;
        }
        Ok(())
    }

    /// # Safety
    /// `member` is of a whole table.
    unsafe fn field(
        &mut self,
        member: &MessageMember,
        whole: usize,
        base: usize,
        path: &str,
        depth: usize,
    ) -> Result<(), PlanError> {
        let count = match (member.is_array_, member.is_upper_bound_, member.array_size_) {
            (false, _, _) => 1,
            (true, false, count @ 1..) => count,
            (true, bounded, bound) => {
                let bound = if bounded { bound } else { usize::MAX };
                // SAFETY: as the caller says.
                let items = unsafe { self.items(member, depth)? };
                let memory = self.memory(member, &items);
                let extent = match memory {
                    Memory::Processor => size_of::<[usize; 3]>(),
                    Memory::Flagged(_) => self.abi.rosidl_runtime_c__uint8__Sequence.SIZE,
                    // It holds a pointer.
                    Memory::Buffer => size_of::<usize>(),
                };
                check_extent(member, whole, extent, align_of::<usize>())?;
                return self.sequence(member, base, path, bound, items, memory);
            }
        };
        let offset = base + member.offset_ as usize;
        if path.ends_with(EMPTY_FIELD) && member.type_id_ == field_type::UINT8 {
            check_extent(member, whole, 1, 1)?;
            self.min_size = self.min_size.saturating_add(1);
            self.place.pass(1, 1);
            self.ops.push(Op { name: path.into(), offset, action: Action::Nothing });
            return Ok(());
        }
        if let Some(size) = number_size(member.type_id_) {
            check_extent(member, whole, size.saturating_mul(count), size)?;
            let run = Run { size, count, bools: member.type_id_ == field_type::BOOLEAN };
            self.numbers(offset, path, run);
            return Ok(());
        }
        if member.type_id_ == field_type::MESSAGE && !member.is_array_ {
            // SAFETY: as the caller says.
            let table = unsafe { abi::get::<MessageMembers>(self.abi, self.nested(member)?) };
            check_extent(member, whole, table.size_of_, 1)?;
            // SAFETY: as the caller says.
            return unsafe { self.message(&table, offset, path, depth + 1) };
        }
        // SAFETY: as the caller says.
        let element = unsafe { self.element(member, depth)? };
        let extent = self.language.stride(&element).saturating_mul(count);
        check_extent(member, whole, extent, 1)?;
        // Numbers that lie in messages of their own are numbers in a row.
        if let Element::Record(Block { runs, .. }) = &element
            && let [run] = runs[..]
        {
            self.numbers(offset, path, Run { count: run.count * count, ..run });
            return Ok(());
        }
        self.min_size = self.min_size.saturating_add(element.min_size().saturating_mul(count));
        self.place = Place::ANYWHERE;
        let action =
            if member.is_array_ { Action::Array { count, element } } else { Action::One(element) };
        self.ops.push(Op { name: path.into(), offset, action });
        Ok(())
    }

    /// Adds numbers, to the block before them when they continue it in memory and in CDR alike.
    fn numbers(&mut self, offset: usize, path: &str, run: Run) {
        let Run { size, count, bools } = run;
        let bytes = size * count;
        self.min_size = self.min_size.saturating_add(bytes);
        let follows = self.place.pass(size, count);
        if follows
            && let Some(Op { offset: start, action: Action::Block(block), .. }) =
                self.ops.last_mut()
            && *start + block.size == offset
        {
            block.size += bytes;
            block.bools |= bools;
            match block.runs.last_mut() {
                Some(last) if last.size == size && last.bools == bools => last.count += count,
                _ => block.runs.push(run),
            }
            return;
        }
        let block = Block { size: bytes, align: size, runs: vec![run], bools };
        self.ops.push(Op { name: path.into(), offset, action: Action::Block(block) });
    }

    fn sequence(
        &mut self,
        member: &MessageMember,
        base: usize,
        path: &str,
        bound: usize,
        items: Items,
        memory: Memory,
    ) -> Result<(), PlanError> {
        let access = Access {
            size: member.size_function,
            get: member.get_const_function,
            resize: member.resize_function,
        };
        if access.resize.is_none() {
            return Err(contradiction("a sequence that cannot be resized"));
        }
        let is_looked_into = matches!(items, Items::Elements(_)) || memory == Memory::Buffer;
        if is_looked_into && (access.size.is_none() || access.get.is_none()) {
            return Err(contradiction("a sequence that cannot be looked into"));
        }
        self.min_size = self.min_size.saturating_add(size_of::<u32>());
        self.place = match &items {
            // After the count, or after numbers that the count has aligned or that aligned themselves.
            Items::Numbers { block, .. } => {
                Place { modulus: block.align.min(size_of::<u32>()), residue: 0 }
            }
            Items::Elements(_) => Place::ANYWHERE,
        };
        let offset = base + member.offset_ as usize;
        let action = Action::Sequence(Sequence { bound, items, access, memory });
        self.ops.push(Op { name: path.into(), offset, action });
        Ok(())
    }

    /// Where a sequence's numbers may be.
    fn memory(&self, member: &MessageMember, items: &Items) -> Memory {
        let flag = self.abi.rosidl_runtime_c__uint8__Sequence.is_rosidl_buffer;
        match (self.language, flag) {
            (Language::C, Some(flag)) if matches!(items, Items::Numbers { .. }) => {
                Memory::Flagged(flag)
            }
            (Language::Cpp, _) if member.is_rosidl_buffer_ => Memory::Buffer,
            _ => Memory::Processor,
        }
    }

    /// # Safety
    /// `member` is of a whole table.
    unsafe fn items(&self, member: &MessageMember, depth: usize) -> Result<Items, PlanError> {
        let Some(size) = number_size(member.type_id_) else {
            // SAFETY: as the caller says.
            return unsafe { self.element(member, depth) }.map(Items::Elements);
        };
        let bools = member.type_id_ == field_type::BOOLEAN;
        let run = Run { size, count: 1, bools };
        let block = Block { size, align: size, runs: vec![run], bools };
        Ok(Items::Numbers { type_id: member.type_id_, block })
    }

    /// # Safety
    /// `member` is of a whole table.
    unsafe fn element(&self, member: &MessageMember, depth: usize) -> Result<Element, PlanError> {
        let bound = match member.string_upper_bound_ {
            0 => usize::MAX,
            bound => bound,
        };
        match member.type_id_ {
            field_type::STRING => return Ok(Element::Text { bound }),
            field_type::WSTRING => return Ok(Element::WideText { bound }),
            field_type::MESSAGE => {}
            field_type::LONG_DOUBLE => return Err(unsupported("long double")),
            field_type::WCHAR => return Err(unsupported("wchar")),
            _ => return Err(contradiction("an unknown type of field")),
        }
        // SAFETY: as the caller says.
        let table = unsafe { self.nested(member)? };
        // SAFETY: as the caller says.
        let code =
            unsafe { compile_from(table, self.language, self.abi, Place::ANYWHERE, depth + 1)? };
        Ok(match code.as_record() {
            Some(block) => Element::Record(block.clone()),
            None => Element::Message(code),
        })
    }

    /// The table of the message that a field holds.
    ///
    /// # Safety
    /// `member` is of a whole table.
    unsafe fn nested(
        &self,
        member: &MessageMember,
    ) -> Result<*const InC<MessageMembers>, PlanError> {
        // SAFETY: as the caller says.
        let table = unsafe { member.members_.as_ref() }.map(|support| support.data.cast());
        table
            .filter(|table: &*const InC<MessageMembers>| !table.is_null())
            .ok_or_else(|| contradiction("a field's message without a table"))
    }
}

impl Element {
    /// Fewest bytes of one in CDR, padding not counted.
    pub(super) fn min_size(&self) -> usize {
        match self {
            // The count; what some writers put for an empty string.
            Self::Text { .. } | Self::WideText { .. } => size_of::<u32>(),
            Self::Record(block) => block.size,
            Self::Message(code) => code.min_size,
        }
    }
}

/// Bytes of a number in CDR and in memory; none for what is no number.
fn number_size(type_id: u8) -> Option<usize> {
    use field_type::*;
    Some(match type_id {
        BOOLEAN | OCTET | CHAR | UINT8 | INT8 => 1,
        UINT16 | INT16 => 2,
        FLOAT | UINT32 | INT32 => 4,
        DOUBLE | UINT64 | INT64 => 8,
        _ => return None,
    })
}

/// Tables of another ROS distribution show here, before they are believed.
fn check_extent(
    member: &MessageMember,
    whole: usize,
    bytes: usize,
    align: usize,
) -> Result<(), PlanError> {
    let offset = member.offset_ as usize;
    if offset.checked_add(bytes).is_none_or(|end| end > whole) {
        return Err(contradiction("a field beyond the message's end"));
    }
    if offset.is_multiple_of(align) {
        Ok(())
    } else {
        Err(contradiction("a field that is not aligned"))
    }
}

fn contradiction(what: &'static str) -> PlanError {
    PlanError::new(PlanProblem::Table(what))
}

fn unsupported(what: &'static str) -> PlanError {
    PlanError::new(PlanProblem::Type(what))
}
