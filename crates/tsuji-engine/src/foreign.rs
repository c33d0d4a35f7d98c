//! What engines in C and C++ have in common: what they call, and what they and tsuji hold for each other.

use std::any::Any;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tsuji_platform::exit::is_exiting;
use tsuji_platform::fork::Generation;
use tsuji_transport::{Bytes, Owner};

use crate::engine::{Guid, Listener};

/// A listener as C sees it: `arg`, and functions to be called with it.
#[derive(Debug)]
#[repr(C)]
pub struct Ear {
    /// What the functions are called with.
    pub arg: *const c_void,
    /// Calls [`Listener::data_available`].
    pub on_data: unsafe extern "C" fn(*const c_void),
    /// Calls [`Listener::matched`].
    pub on_match: unsafe extern "C" fn(*const c_void),
}

/// An [`Ear`] at a place of its own. It must not be dropped while an engine may call it.
#[derive(Debug)]
pub struct EarBox(NonNull<Heard>);

struct Heard {
    ear: Ear,
    listener: Arc<dyn Listener>,
}

// SAFETY: the listener is Send and Sync; the pointers are to it and to plain functions.
unsafe impl Send for EarBox {}
// SAFETY: as above.
unsafe impl Sync for EarBox {}

impl EarBox {
    /// An ear for what is called of `listener`.
    pub fn new(listener: Arc<dyn Listener>) -> Self {
        let ear = Ear { arg: ptr::null(), on_data, on_match };
        let heard = NonNull::from(Box::leak(Box::new(Heard { ear, listener })));
        // SAFETY: nobody else knows it yet.
        unsafe { (*heard.as_ptr()).ear.arg = heard.as_ptr().cast() };
        Self(heard)
    }

    /// Where it is, until it is dropped.
    pub fn as_ptr(&self) -> *const Ear {
        // SAFETY: it is valid until dropped.
        unsafe { &raw const (*self.0.as_ptr()).ear }
    }
}

impl Drop for EarBox {
    fn drop(&mut self) {
        // SAFETY: it was leaked in `new`, and no callback runs any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

unsafe extern "C" fn on_data(heard: *const c_void) {
    // Nobody looks any more.
    if is_exiting() {
        return;
    }
    // SAFETY: `new` made it, and it is not dropped while callbacks run.
    unsafe { (*heard.cast::<Heard>()).listener.data_available() };
}

unsafe extern "C" fn on_match(heard: *const c_void) {
    if is_exiting() {
        return;
    }
    // SAFETY: as above.
    unsafe { (*heard.cast::<Heard>()).listener.matched() };
}

/// Called with `arg` and a name of 16 bytes.
pub type Each = unsafe extern "C" fn(*mut c_void, *const u8);

/// The names for which `call` calls the function that it is given, with the `arg` that it is given.
pub fn names(call: impl FnOnce(*mut c_void, Each)) -> Vec<Guid> {
    unsafe extern "C" fn add(all: *mut c_void, name: *const u8) {
        // SAFETY: `all` is the vector below, and a name has 16 bytes.
        unsafe { (*all.cast::<Vec<Guid>>()).push(name.cast::<Guid>().read()) };
    }
    let mut all: Vec<Guid> = Vec::new();
    call((&raw mut all).cast(), add);
    all
}

/// Holds bytes for an engine: the owner, for [`let_go`].
pub fn hold(bytes: &Bytes) -> *mut c_void {
    Box::into_raw(Box::new(bytes.clone())).cast()
}

/// Lets go of what [`hold`] holds.
///
/// # Safety
///
/// `owner` is of [`hold`], and this is called once for it.
pub unsafe extern "C" fn let_go(owner: *mut c_void) {
    // SAFETY: the caller promises it.
    drop(unsafe { Box::from_raw(owner.cast::<Bytes>()) });
}

/// Bytes of a sample in the memory of an engine, which `free` gives back when nobody holds them any more. A forked
/// child never does.
///
/// # Safety
///
/// `len` bytes from `start` stay readable and unchanged until `free` is called with `sample`, which it may be from any
/// thread.
pub unsafe fn bytes(
    start: NonNull<u8>,
    len: usize,
    sample: *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
) -> Bytes {
    let generation = Generation::current();
    let owner = Arc::new(Sample { sample, free, holders: AtomicUsize::new(1), generation });
    // SAFETY: the caller promises it.
    unsafe { Bytes::from_owner(owner, start, len) }
}

/// A sample in an engine's memory.
struct Sample {
    sample: *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    holders: AtomicUsize,
    generation: Generation,
}

// SAFETY: it may be freed from any thread, and is freed once.
unsafe impl Send for Sample {}
// SAFETY: as above.
unsafe impl Sync for Sample {}

impl Owner for Sample {
    fn retain(&self) {
        self.holders.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self) {
        if self.holders.fetch_sub(1, Ordering::AcqRel) == 1 && self.generation.is_current() {
            // SAFETY: the last holder is gone, and with it the last look at the bytes.
            unsafe { (self.free)(self.sample) };
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
