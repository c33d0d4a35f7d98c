//! What C gets to keep: texts and arrays in memory of the allocator that it names, in the shapes that
//! the `_fini` functions of rcutils and rmw give back.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_void};
use std::ptr;

use crate::abi::{Abi, InC, Shaped};
use crate::error::{Result, RmwError};
use crate::ffi::rcutils::{rcutils_allocator_t, rcutils_string_array_t};
use crate::ffi::rmw::rmw_names_and_types_t;

/// Refuses an allocator that lacks one of its functions.
pub(crate) fn check_allocator(name: &str, allocator: &rcutils_allocator_t) -> Result {
    let rcutils_allocator_t { allocate, deallocate, reallocate, zero_allocate, .. } = allocator;
    let has_all = allocate.is_some()
        && deallocate.is_some()
        && reallocate.is_some()
        && zero_allocate.is_some();
    if has_all { Ok(()) } else { Err(RmwError::invalid(format!("{name} lacks a function"))) }
}

/// Gives back what `allocator` gave; nothing for null.
///
/// # Safety
///
/// The pointer is null, or comes from this allocator and is not used any more.
pub(crate) unsafe fn free<T>(allocator: &rcutils_allocator_t, pointer: *mut T) {
    if let Some(deallocate) = allocator.deallocate
        && !pointer.is_null()
    {
        // SAFETY: the caller promises it.
        unsafe { deallocate(pointer.cast(), allocator.state) };
    }
}

/// Names, and the types of each, in order.
pub(crate) type NamesAndTypes = BTreeMap<String, BTreeSet<String>>;

/// All that is allocated for one answer. What is not kept in the end is given back, so that a caller
/// whose allocator fails midway has nothing to clear up.
pub(crate) struct Batch {
    allocator: rcutils_allocator_t,
    pieces: Vec<*mut c_void>,
}

impl Batch {
    /// Nothing yet, of this allocator.
    pub(crate) fn new(allocator: &rcutils_allocator_t) -> Result<Self> {
        check_allocator("allocator", allocator)?;
        Ok(Self { allocator: *allocator, pieces: Vec::new() })
    }

    /// It is all C's now.
    pub(crate) fn keep(mut self) {
        self.pieces.clear();
    }

    /// So many `T` of zeros; null for none.
    pub(crate) fn zeroed<T>(&mut self, count: usize) -> Result<*mut T> {
        self.zeroes(count, size_of::<T>()).map(|piece| piece.cast())
    }

    /// The same in the layout of a distribution.
    pub(crate) fn zeroed_in_c<T: Shaped>(
        &mut self,
        abi: &Abi,
        count: usize,
    ) -> Result<*mut InC<T>> {
        self.zeroes(count, T::size(abi)).map(|piece| piece.cast())
    }

    fn zeroes(&mut self, count: usize, size: usize) -> Result<*mut c_void> {
        if count == 0 {
            return Ok(ptr::null_mut());
        }
        let zero_allocate =
            self.allocator.zero_allocate.ok_or_else(|| RmwError::invalid("none"))?;
        // SAFETY: an allocator answers null, or memory of this size.
        let piece = unsafe { zero_allocate(count, size, self.allocator.state) };
        if piece.is_null() {
            let bytes = count.saturating_mul(size);
            return Err(RmwError::bad_alloc(format!("the allocator has no {bytes} bytes")));
        }
        self.pieces.push(piece);
        Ok(piece)
    }

    /// A text of C. One with a NUL in it ends there.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) -> Result<*mut c_char> {
        let bytes = text.as_ref().split(|byte| *byte == 0).next().unwrap_or_default();
        let copy = self.zeroed::<c_char>(bytes.len() + 1)?;
        // SAFETY: there is room for them and the NUL, which is there already.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), copy, bytes.len()) };
        Ok(copy)
    }

    /// An array of texts.
    pub(crate) fn texts<'a>(
        &mut self,
        texts: impl ExactSizeIterator<Item = &'a str>,
    ) -> Result<rcutils_string_array_t> {
        let size = texts.len();
        let data = self.zeroed::<*mut c_char>(size)?;
        for (at, text) in texts.take(size).enumerate() {
            let text = self.text(text)?;
            // SAFETY: there is room for as many.
            unsafe { data.add(at).write(text) };
        }
        Ok(rcutils_string_array_t { size, data, allocator: self.allocator })
    }

    /// Names, and the types of each.
    pub(crate) fn names_and_types(&mut self, all: &NamesAndTypes) -> Result<rmw_names_and_types_t> {
        let names = self.texts(all.keys().map(String::as_str))?;
        let types = self.zeroed::<rcutils_string_array_t>(all.len())?;
        for (at, of_one) in all.values().enumerate() {
            let of_one = self.texts(of_one.iter().map(String::as_str))?;
            // SAFETY: there is room for as many.
            unsafe { types.add(at).write(of_one) };
        }
        Ok(rmw_names_and_types_t { names, types })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        for piece in self.pieces.drain(..) {
            // SAFETY: it comes from this allocator, and nobody else has it.
            unsafe { free(&self.allocator, piece) };
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;
    use std::ffi::CStr;
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::ffi::rcutils::NO_ALLOCATOR;
    use crate::ffi::rmw::{RMW_RET_BAD_ALLOC, RMW_RET_INVALID_ARGUMENT};

    /// An allocator as C has one, that counts, and fails once so many were given.
    pub(crate) struct Counting {
        state: Box<Mutex<Counts>>,
    }

    #[derive(Default)]
    struct Counts {
        given: usize,
        fails_after: Option<usize>,
        sizes: HashMap<usize, usize>,
    }

    impl Counting {
        pub(crate) fn new(fails_after: Option<usize>) -> Self {
            Self { state: Box::new(Mutex::new(Counts { fails_after, ..Counts::default() })) }
        }

        pub(crate) fn allocator(&self) -> rcutils_allocator_t {
            rcutils_allocator_t {
                allocate: Some(allocate),
                deallocate: Some(deallocate),
                reallocate: Some(reallocate),
                zero_allocate: Some(zero_allocate),
                state: (&raw const *self.state).cast_mut().cast(),
            }
        }

        /// How many were given so far.
        pub(crate) fn given(&self) -> usize {
            self.counts().given
        }

        fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Drop for Counting {
        fn drop(&mut self) {
            let left = self.counts().sizes.len();
            if !std::thread::panicking() {
                assert_eq!(left, 0, "not given back");
            }
        }
    }

    unsafe extern "C" fn zero_allocate(
        count: usize,
        size: usize,
        state: *mut c_void,
    ) -> *mut c_void {
        // SAFETY: the state is that of a Counting which lives.
        let counts = unsafe { &*state.cast::<Mutex<Counts>>() };
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.fails_after.is_some_and(|most| most <= counts.given) {
            return ptr::null_mut();
        }
        counts.given += 1;
        // SAFETY: calloc takes any numbers.
        let piece = unsafe { libc::calloc(count, size) };
        counts.sizes.insert(piece as usize, count * size);
        piece
    }

    unsafe extern "C" fn allocate(size: usize, state: *mut c_void) -> *mut c_void {
        // SAFETY: the caller keeps the same promises.
        unsafe { zero_allocate(1, size, state) }
    }

    unsafe extern "C" fn reallocate(_: *mut c_void, _: usize, _: *mut c_void) -> *mut c_void {
        ptr::null_mut()
    }

    unsafe extern "C" fn deallocate(piece: *mut c_void, state: *mut c_void) {
        if piece.is_null() {
            return;
        }
        // SAFETY: the state is that of a Counting which lives.
        let counts = unsafe { &*state.cast::<Mutex<Counts>>() };
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(counts.sizes.remove(&(piece as usize)).is_some(), "not of this allocator");
        // SAFETY: it comes from calloc.
        unsafe { libc::free(piece) };
    }

    /// Gives back a string array as rcutils does.
    pub(crate) fn fini_texts(array: &rcutils_string_array_t) -> Vec<String> {
        let mut texts = Vec::new();
        for at in 0..array.size {
            // SAFETY: the array has as many.
            let text = unsafe { *array.data.add(at) };
            // SAFETY: each ends with NUL.
            texts.push(unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned());
            // SAFETY: each is of this allocator.
            unsafe { free(&array.allocator, text) };
        }
        // SAFETY: so is the array.
        unsafe { free(&array.allocator, array.data) };
        texts
    }

    /// Gives names and types back as rmw does.
    pub(crate) fn fini_names_and_types(all: &rmw_names_and_types_t) -> Vec<(String, Vec<String>)> {
        let size = all.names.size;
        // SAFETY: there are as many types as names.
        let types =
            (0..size).map(|at| fini_texts(unsafe { &*all.types.add(at) })).collect::<Vec<_>>();
        // SAFETY: it is of this allocator.
        unsafe { free(&all.names.allocator, all.types) };
        fini_texts(&all.names).into_iter().zip(types).collect()
    }

    fn some() -> NamesAndTypes {
        let types = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        NamesAndTypes::from([
            ("/b".to_owned(), types(&["std_msgs/msg/String"])),
            ("/a".to_owned(), types(&["x/msg/Z", "x/msg/Y"])),
            ("/c".to_owned(), BTreeSet::new()),
        ])
    }

    #[test]
    fn names_and_types() {
        let memory = Counting::new(None);
        let mut batch = Batch::new(&memory.allocator()).unwrap();
        let all = batch.names_and_types(&some()).unwrap();
        batch.keep();
        let text = |it: &str| it.to_owned();
        let expect = vec![
            (text("/a"), vec![text("x/msg/Y"), text("x/msg/Z")]),
            (text("/b"), vec![text("std_msgs/msg/String")]),
            (text("/c"), vec![]),
        ];
        assert_eq!(fini_names_and_types(&all), expect);
        let mut batch = Batch::new(&memory.allocator()).unwrap();
        let none = batch.names_and_types(&NamesAndTypes::new()).unwrap();
        assert!(none.types.is_null() && none.names.data.is_null());
        let cut = batch.text("a\0b").unwrap();
        // SAFETY: it ends with NUL.
        assert_eq!(unsafe { CStr::from_ptr(cut) }, c"a");
    }

    #[test]
    fn every_allocation_may_fail() {
        let enough = {
            let memory = Counting::new(None);
            let mut batch = Batch::new(&memory.allocator()).unwrap();
            batch.names_and_types(&some()).unwrap();
            memory.given()
        };
        assert!(5 < enough);
        for most in 0..enough {
            let memory = Counting::new(Some(most));
            let mut batch = Batch::new(&memory.allocator()).unwrap();
            assert_eq!(batch.names_and_types(&some()).unwrap_err().ret(), RMW_RET_BAD_ALLOC);
        }
    }

    #[test]
    fn an_allocator_has_all_four() {
        let none = Batch::new(&NO_ALLOCATOR).err().map(|error| error.ret());
        assert_eq!(none, Some(RMW_RET_INVALID_ARGUMENT));
        let memory = Counting::new(None);
        let without = rcutils_allocator_t { reallocate: None, ..memory.allocator() };
        assert!(check_allocator("allocator", &without).is_err());
    }
}
