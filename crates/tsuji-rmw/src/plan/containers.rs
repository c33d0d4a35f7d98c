//! Strings and sequences in the memory of messages, of C and of C++.

use super::code::{Element, Items, Memory, Sequence};
use super::error::PlanProblem;
use crate::ffi::rosidl::{
    rosidl_runtime_c__Sequence, rosidl_runtime_c__String, rosidl_runtime_c__U16String,
};
use std::ffi::c_void;
use std::{ptr, slice};

/// How a language keeps strings and sequences in messages.
///
/// Every function is unsafe for one reason: `at` must point to a live value of the kind that the
/// function is for, which nobody else changes meanwhile.
pub(super) trait Containers {
    /// The bytes of a string, without its terminator.
    unsafe fn text<'a>(at: *const u8) -> Result<&'a [u8], PlanProblem>;

    /// Gives a string its bytes.
    unsafe fn set_text(at: *mut u8, text: &[u8]) -> Result<(), PlanProblem>;

    /// The code units of a wide string, without its terminator.
    unsafe fn wide_text<'a>(at: *const u8) -> Result<&'a [u16], PlanProblem>;

    /// Makes a wide string `count` code units long, which the caller fills in at the answer.
    unsafe fn resize_wide_text(at: *mut u8, count: usize) -> Result<*mut u16, PlanProblem>;

    /// Where the numbers of a sequence are, and how many. The place is null for a C++
    /// `vector<bool>`.
    unsafe fn numbers(
        at: *const u8,
        sequence: &Sequence,
    ) -> Result<(*const u8, usize), PlanProblem>;

    /// Copies the values of a sequence of `bool` out, a byte each.
    unsafe fn copy_bools(at: *const u8, out: *mut u8) -> Result<(), PlanProblem>;

    /// Gives a sequence of numbers its values, `count` of them in native order.
    unsafe fn set_numbers(
        at: *mut u8,
        sequence: &Sequence,
        bytes: &[u8],
        count: usize,
    ) -> Result<(), PlanProblem>;

    /// Where the strings or messages of a sequence are, and how many.
    unsafe fn elements(
        at: *const u8,
        sequence: &Sequence,
    ) -> Result<(*const u8, usize), PlanProblem>;

    /// Makes a sequence of strings or messages `count` long and answers where they are, each a live
    /// value.
    unsafe fn resize(
        at: *mut u8,
        sequence: &Sequence,
        count: usize,
    ) -> Result<*mut u8, PlanProblem>;

    /// Bytes from one element to the next.
    fn stride(element: &Element) -> usize;
}

/// Messages in C: `rosidl_runtime_c__String` and its like.
pub(super) struct C;

impl C {
    /// # Safety
    /// `at` points to a C string or sequence of `T`.
    unsafe fn slice<'a, T>(at: *const u8) -> Result<&'a [T], PlanProblem> {
        // SAFETY: as the caller says; all of them look alike.
        let sequence = unsafe { &*at.cast::<rosidl_runtime_c__Sequence<T>>() };
        match (sequence.size, sequence.data.is_null()) {
            (0, _) => Ok(&[]),
            (_, true) => Err(PlanProblem::Null),
            // SAFETY: a sequence says its size.
            (size, false) => Ok(unsafe { slice::from_raw_parts(sequence.data, size) }),
        }
    }

    /// Where the elements of a sequence are, and how many: of all sequences these are alike.
    ///
    /// # Safety
    /// `at` points to a C sequence.
    unsafe fn place(at: *const u8) -> Result<(*const u8, usize), PlanProblem> {
        // SAFETY: as the caller says. The count is of elements, however wide they are.
        let sequence = unsafe { &*at.cast::<rosidl_runtime_c__Sequence<u8>>() };
        if sequence.size > 0 && sequence.data.is_null() {
            return Err(PlanProblem::Null);
        }
        Ok((sequence.data, sequence.size))
    }

    /// Refuses a sequence whose memory is not the processor's. What has its place in `data` is then no array.
    ///
    /// # Safety
    /// `at` points to a C sequence, `sequence` is of its field.
    unsafe fn check_memory(at: *const u8, sequence: &Sequence) -> Result<(), PlanProblem> {
        match sequence.memory {
            // SAFETY: as the caller says. A byte, as C may have written another value than a `bool` has.
            Memory::Flagged(flag) if unsafe { at.add(flag).read() } != 0 => {
                Err(PlanProblem::Elsewhere)
            }
            _ => Ok(()),
        }
    }

    /// Makes a string `count` long, which the caller fills in, and terminates it. The default
    /// allocator of rcutils, which strings in messages always have, is that of C.
    ///
    /// # Safety
    /// `at` points to a C string of `T`.
    unsafe fn resize_text<T: Default>(at: *mut u8, count: usize) -> Result<*mut T, PlanProblem> {
        // SAFETY: as the caller says.
        let text = unsafe { &mut *at.cast::<rosidl_runtime_c__Sequence<T>>() };
        if text.data.is_null() || text.capacity <= count {
            let bytes = (count + 1).checked_mul(size_of::<T>()).ok_or(PlanProblem::NoMemory)?;
            // SAFETY: the memory is null or of this allocator.
            let data = unsafe { libc::realloc(text.data.cast(), bytes) }.cast::<T>();
            if data.is_null() {
                return Err(PlanProblem::NoMemory);
            }
            text.data = data;
            text.capacity = count + 1;
        }
        text.size = count;
        // SAFETY: there is memory for more than `count`.
        unsafe { text.data.add(count).write(T::default()) };
        Ok(text.data)
    }

    /// Makes a sequence `count` long, of memory that it has or of new one.
    ///
    /// # Safety
    /// `at` points to a C sequence, `sequence` is of its field.
    unsafe fn resize_any(
        at: *mut u8,
        sequence: &Sequence,
        count: usize,
    ) -> Result<*mut u8, PlanProblem> {
        // SAFETY: as the caller says.
        let header = unsafe { &mut *at.cast::<rosidl_runtime_c__Sequence<u8>>() };
        if count <= header.capacity && (count == 0 || !header.data.is_null()) {
            // Values beyond `size` stay live up to `capacity`, and are dropped with the sequence.
            header.size = count;
            return Ok(header.data);
        }
        let resize = sequence.access.resize.ok_or(PlanProblem::Table("no resize"))?;
        // SAFETY: the field's own function.
        if !unsafe { resize(at.cast(), count) } {
            return Err(PlanProblem::NoMemory);
        }
        // SAFETY: as the caller says. Read anew, as the function has changed it.
        Ok(unsafe { (*at.cast::<rosidl_runtime_c__Sequence<u8>>()).data })
    }
}

impl Containers for C {
    unsafe fn text<'a>(at: *const u8) -> Result<&'a [u8], PlanProblem> {
        // SAFETY: as the caller says.
        unsafe { Self::slice(at) }
    }

    unsafe fn set_text(at: *mut u8, text: &[u8]) -> Result<(), PlanProblem> {
        // SAFETY: as the caller says; there is memory for the text then.
        unsafe {
            let data = Self::resize_text::<u8>(at, text.len())?;
            ptr::copy_nonoverlapping(text.as_ptr(), data, text.len());
        }
        Ok(())
    }

    unsafe fn wide_text<'a>(at: *const u8) -> Result<&'a [u16], PlanProblem> {
        // SAFETY: as the caller says.
        unsafe { Self::slice(at) }
    }

    unsafe fn resize_wide_text(at: *mut u8, count: usize) -> Result<*mut u16, PlanProblem> {
        // SAFETY: as the caller says.
        unsafe { Self::resize_text(at, count) }
    }

    unsafe fn numbers(
        at: *const u8,
        sequence: &Sequence,
    ) -> Result<(*const u8, usize), PlanProblem> {
        // SAFETY: as the caller says.
        unsafe {
            Self::check_memory(at, sequence)?;
            Self::place(at)
        }
    }

    unsafe fn copy_bools(at: *const u8, out: *mut u8) -> Result<(), PlanProblem> {
        // SAFETY: as the caller says.
        unsafe {
            let (data, count) = Self::place(at)?;
            ptr::copy_nonoverlapping(data, out, count);
        }
        Ok(())
    }

    unsafe fn set_numbers(
        at: *mut u8,
        sequence: &Sequence,
        bytes: &[u8],
        count: usize,
    ) -> Result<(), PlanProblem> {
        // SAFETY: as the caller says; there is memory for the numbers then.
        unsafe {
            Self::check_memory(at, sequence)?;
            let data = Self::resize_any(at, sequence, count)?;
            if count > 0 {
                copy(bytes.as_ptr(), data, bytes.len());
            }
        }
        Ok(())
    }

    unsafe fn elements(at: *const u8, _: &Sequence) -> Result<(*const u8, usize), PlanProblem> {
        // SAFETY: as the caller says.
        unsafe { Self::place(at) }
    }

    unsafe fn resize(
        at: *mut u8,
        sequence: &Sequence,
        count: usize,
    ) -> Result<*mut u8, PlanProblem> {
        // SAFETY: as the caller says.
        unsafe { Self::resize_any(at, sequence, count) }
    }

    fn stride(element: &Element) -> usize {
        match element {
            Element::Text { .. } => size_of::<rosidl_runtime_c__String>(),
            Element::WideText { .. } => size_of::<rosidl_runtime_c__U16String>(),
            Element::Record(block) => block.size,
            Element::Message(code) => code.size_of,
        }
    }
}

/// Messages in C++: `std::string` and its like, through `containers.cpp`.
pub(super) struct Cpp;

type Init = unsafe extern "C" fn(*mut c_void, std::ffi::c_int);
type Size = unsafe extern "C" fn(*const c_void) -> usize;
type Get = unsafe extern "C" fn(*const c_void, usize) -> *const c_void;
type Resize = unsafe extern "C" fn(*mut c_void, usize) -> bool;

unsafe extern "C" {
    safe static tsuji_rmw_text_size: usize;
    safe static tsuji_rmw_wide_text_size: usize;
    fn tsuji_rmw_text(text: *const u8, size: *mut usize) -> *const u8;
    fn tsuji_rmw_set_text(text: *mut u8, data: *const u8, size: usize) -> bool;
    fn tsuji_rmw_wide_text(text: *const u8, size: *mut usize) -> *const u16;
    fn tsuji_rmw_resize_wide_text(text: *mut u8, size: usize) -> *mut u16;
    fn tsuji_rmw_numbers(vector: *const u8, type_id: u8, count: *mut usize) -> *const u8;
    fn tsuji_rmw_copy(to: *mut u8, from: *const u8, size: usize);
    fn tsuji_rmw_copy_bools(bools: *const u8, out: *mut u8);
    fn tsuji_rmw_set_numbers(vector: *mut u8, type_id: u8, first: *const u8, count: usize) -> bool;
    fn tsuji_rmw_texts(texts: *const u8, count: *mut usize) -> *const u8;
    fn tsuji_rmw_resize_texts(texts: *mut u8, count: usize) -> bool;
    fn tsuji_rmw_wide_texts(texts: *const u8, count: *mut usize) -> *const u8;
    fn tsuji_rmw_resize_wide_texts(texts: *mut u8, count: usize) -> bool;
    fn tsuji_rmw_resize_messages(resize: Resize, vector: *mut u8, count: usize) -> bool;
    fn tsuji_rmw_buffer(
        size: Size,
        get: Get,
        buffer: *const u8,
        data: *mut *const u8,
        count: *mut usize,
    ) -> bool;
    fn tsuji_rmw_init(init: Init, message: *mut c_void);
}

/// Makes a message in memory. Where the language throws, the process ends.
///
/// # Safety
/// `init` is of the type that the memory at `message` is for.
pub(super) unsafe fn init(init: Init, message: *mut c_void) {
    // SAFETY: as the caller says.
    unsafe { tsuji_rmw_init(init, message) }
}

/// Copies numbers; what is large, past the caches.
///
/// # Safety
/// So many bytes can be read and written, and the two do not overlap.
#[inline]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    if size < LARGE {
        // SAFETY: as the caller says.
        unsafe { ptr::copy_nonoverlapping(from, to, size) };
    } else {
        // SAFETY: as the caller says.
        unsafe { tsuji_rmw_copy(to, from, size) };
    }
}

/// From here on `containers.cpp` has another way.
const LARGE: usize = 1 << 20;

/// Where the numbers of a `rosidl::Buffer` are, and how many, through the functions of its field: how it is laid out is
/// its own. They throw where its memory is not the processor's.
///
/// # Safety
/// `at` points to one, `sequence` is of its field.
unsafe fn buffer(
    at: *const u8,
    sequence: &Sequence,
    count: &mut usize,
) -> Result<*const u8, PlanProblem> {
    let (Some(size), Some(get)) = (sequence.access.size, sequence.access.get) else {
        return Err(PlanProblem::Table("no size"));
    };
    let mut data = ptr::null();
    // SAFETY: as the caller says.
    match unsafe { tsuji_rmw_buffer(size, get, at, &mut data, count) } {
        true => Ok(data),
        false => Err(PlanProblem::Elsewhere),
    }
}

fn memory(there: bool) -> Result<(), PlanProblem> {
    if there { Ok(()) } else { Err(PlanProblem::NoMemory) }
}

impl Containers for Cpp {
    unsafe fn text<'a>(at: *const u8) -> Result<&'a [u8], PlanProblem> {
        let mut size = 0;
        // SAFETY: as the caller says; a string's data is never null.
        Ok(unsafe {
            let data = tsuji_rmw_text(at, &mut size);
            slice::from_raw_parts(data, size)
        })
    }

    unsafe fn set_text(at: *mut u8, text: &[u8]) -> Result<(), PlanProblem> {
        // SAFETY: as the caller says.
        memory(unsafe { tsuji_rmw_set_text(at, text.as_ptr(), text.len()) })
    }

    unsafe fn wide_text<'a>(at: *const u8) -> Result<&'a [u16], PlanProblem> {
        let mut size = 0;
        // SAFETY: as the caller says; a string's data is never null.
        Ok(unsafe {
            let data = tsuji_rmw_wide_text(at, &mut size);
            slice::from_raw_parts(data, size)
        })
    }

    unsafe fn resize_wide_text(at: *mut u8, count: usize) -> Result<*mut u16, PlanProblem> {
        // SAFETY: as the caller says.
        let data = unsafe { tsuji_rmw_resize_wide_text(at, count) };
        if data.is_null() { Err(PlanProblem::NoMemory) } else { Ok(data) }
    }

    unsafe fn numbers(
        at: *const u8,
        sequence: &Sequence,
    ) -> Result<(*const u8, usize), PlanProblem> {
        let Items::Numbers { type_id, .. } = sequence.items else {
            return Err(PlanProblem::Table("no numbers"));
        };
        let mut count = 0;
        if sequence.memory == Memory::Buffer {
            // SAFETY: as the caller says, and the field's own functions.
            let data = unsafe { buffer(at, sequence, &mut count)? };
            return Ok((data, count));
        }
        // SAFETY: as the caller says.
        let data = unsafe { tsuji_rmw_numbers(at, type_id, &mut count) };
        Ok((data, count))
    }

    unsafe fn copy_bools(at: *const u8, out: *mut u8) -> Result<(), PlanProblem> {
        // SAFETY: as the caller says.
        unsafe { tsuji_rmw_copy_bools(at, out) };
        Ok(())
    }

    unsafe fn set_numbers(
        at: *mut u8,
        sequence: &Sequence,
        bytes: &[u8],
        count: usize,
    ) -> Result<(), PlanProblem> {
        let Items::Numbers { type_id, .. } = sequence.items else {
            return Err(PlanProblem::Table("no numbers"));
        };
        if sequence.memory == Memory::Buffer {
            let resize = sequence.access.resize.ok_or(PlanProblem::Table("no resize"))?;
            let mut there = 0;
            // SAFETY: as the caller says, and the field's own functions; then there is memory for the numbers.
            unsafe {
                // What is elsewhere cannot be resized here.
                buffer(at, sequence, &mut there)?;
                memory(tsuji_rmw_resize_messages(resize, at, count))?;
                let data = buffer(at, sequence, &mut there)?.cast_mut();
                if there != count {
                    return Err(PlanProblem::NoMemory);
                }
                if count > 0 {
                    copy(bytes.as_ptr(), data, bytes.len());
                }
            }
            return Ok(());
        }
        // SAFETY: as the caller says.
        memory(unsafe { tsuji_rmw_set_numbers(at, type_id, bytes.as_ptr(), count) })
    }

    unsafe fn elements(
        at: *const u8,
        sequence: &Sequence,
    ) -> Result<(*const u8, usize), PlanProblem> {
        let mut count = 0;
        // SAFETY: as the caller says.
        let data = unsafe {
            match (&sequence.items, sequence.access.size, sequence.access.get) {
                (Items::Elements(Element::Text { .. }), _, _) => tsuji_rmw_texts(at, &mut count),
                (Items::Elements(Element::WideText { .. }), _, _) => {
                    tsuji_rmw_wide_texts(at, &mut count)
                }
                (_, Some(size), Some(get)) => {
                    count = size(at.cast());
                    // There is no first element to be asked for in an empty vector.
                    if count == 0 { ptr::null() } else { get(at.cast(), 0).cast() }
                }
                _ => return Err(PlanProblem::Table("no size")),
            }
        };
        Ok((data, count))
    }

    unsafe fn resize(
        at: *mut u8,
        sequence: &Sequence,
        count: usize,
    ) -> Result<*mut u8, PlanProblem> {
        // SAFETY: as the caller says; the last is the field's own function.
        memory(unsafe {
            match (&sequence.items, sequence.access.resize) {
                (Items::Elements(Element::Text { .. }), _) => tsuji_rmw_resize_texts(at, count),
                (Items::Elements(Element::WideText { .. }), _) => {
                    tsuji_rmw_resize_wide_texts(at, count)
                }
                (_, Some(resize)) => tsuji_rmw_resize_messages(resize, at, count),
                _ => return Err(PlanProblem::Table("no resize")),
            }
        })?;
        // SAFETY: as the caller says.
        Ok(unsafe { Self::elements(at, sequence)? }.0.cast_mut())
    }

    fn stride(element: &Element) -> usize {
        match element {
            Element::Text { .. } => tsuji_rmw_text_size,
            Element::WideText { .. } => tsuji_rmw_wide_text_size,
            Element::Record(block) => block.size,
            Element::Message(code) => code.size_of,
        }
    }
}
