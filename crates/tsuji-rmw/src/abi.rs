//! What differs between the distributions of ROS 2: where the fields of structures are in the memory of a C program, what
//! the names of enumerations stand for, and which functions are looked up. `abi/` has it as tables, which a C compiler
//! checks against the headers.
//!
//! Structures that are the same in all are in `ffi`, and are used where they lie. Of those that differ `ffi` has one that
//! has the fields of all; a pointer to one in C is a pointer to [`InC`], which is read and written field by field.

use std::ptr;

use tsuji::Distro;

use crate::distribution;
use crate::error::Result;

/// A distribution whose interface is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Of May 2022.
    Humble,
    /// Of May 2024.
    Jazzy,
    /// Of May 2025.
    Kilted,
    /// Of May 2026.
    Lyrical,
    /// What becomes the next one.
    Rolling,
}

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    reason = "the names of C, which its headers document"
)]
mod tables {
    use super::Distribution;

    include!(concat!(env!("OUT_DIR"), "/abi.rs"));
}

pub use tables::*;

impl Distribution {
    /// Every one, oldest first.
    pub const ALL: [Self; 5] =
        [Self::Humble, Self::Jazzy, Self::Kilted, Self::Lyrical, Self::Rolling];

    /// Such as `Jazzy`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Humble => "Humble",
            Self::Jazzy => "Jazzy",
            Self::Kilted => "Kilted",
            Self::Lyrical => "Lyrical",
            Self::Rolling => "Rolling",
        }
    }

    /// Its interface.
    pub fn abi(self) -> &'static Abi {
        match self {
            Self::Humble => &HUMBLE,
            Self::Jazzy => &JAZZY,
            Self::Kilted => &KILTED,
            Self::Lyrical => &LYRICAL,
            Self::Rolling => &ROLLING,
        }
    }

    /// What it says on the wire.
    pub(crate) fn distro(self) -> Distro {
        match self {
            Self::Humble => Distro::Humble,
            Self::Jazzy => Distro::Jazzy,
            Self::Kilted => Distro::Kilted,
            Self::Lyrical => Distro::Lyrical,
            Self::Rolling => Distro::Rolling,
        }
    }
}

/// The interface of the process's distribution. Another than those known is refused.
#[cfg(not(test))]
pub(crate) fn here() -> Result<&'static Abi> {
    distribution::here().map(Distribution::abi)
}

/// The unit tests pass the structures of Rust.
#[cfg(test)]
pub(crate) fn here() -> Result<&'static Abi> {
    static NATIVE: std::sync::LazyLock<Abi> = std::sync::LazyLock::new(native);
    let _: fn() -> Result<Distribution> = distribution::here;
    Ok(&NATIVE)
}

/// What can be read from and written to the memory of a C program of any distribution.
pub trait Shaped: Sized {
    /// Bytes of one.
    fn size(abi: &Abi) -> usize;

    /// The value at a place. A field that the distribution does not have is zero, null or false.
    ///
    /// # Safety
    ///
    /// There is one at `at`.
    unsafe fn read(abi: &Abi, at: *const u8) -> Self;

    /// Puts the value at a place. Fields that the distribution does not have are left out.
    ///
    /// # Safety
    ///
    /// There is room for one at `at`.
    unsafe fn write(&self, abi: &Abi, at: *mut u8);
}

/// A `T` in the memory of a C program, laid out as in the process's distribution.
#[cfg(not(test))]
#[repr(transparent)]
#[derive(Debug)]
pub struct InC<T>([u8; 0], std::marker::PhantomData<T>);

/// The unit tests pass the structures of Rust.
#[cfg(test)]
pub type InC<T> = T;

/// The value at a place.
///
/// # Safety
///
/// A `T` of this distribution is there.
pub unsafe fn get<T: Shaped>(abi: &Abi, at: *const InC<T>) -> T {
    // SAFETY: the caller promises it.
    unsafe { T::read(abi, at.cast()) }
}

/// Puts a value at a place.
///
/// # Safety
///
/// There is room for a `T` of this distribution, which nobody else uses.
pub unsafe fn set<T: Shaped>(abi: &Abi, at: *mut InC<T>, value: &T) {
    // SAFETY: the caller promises it.
    unsafe { value.write(abi, at.cast()) }
}

/// The place of the element `index` of an array that begins at `first`.
///
/// # Safety
///
/// The array has more elements than that.
pub unsafe fn element<T: Shaped>(abi: &Abi, first: *mut InC<T>, index: usize) -> *mut InC<T> {
    // SAFETY: the caller promises it.
    unsafe { first.byte_add(T::size(abi) * index) }
}

/// What is the same in every distribution.
macro_rules! plain {
    ($([$($of:ident)?] $type:ty,)*) => {$(
        impl$(<$of>)? Shaped for $type {
            fn size(_: &Abi) -> usize {
                size_of::<Self>()
            }

            unsafe fn read(_: &Abi, at: *const u8) -> Self {
                // SAFETY: the caller promises it.
                unsafe { at.cast::<Self>().read_unaligned() }
            }

            unsafe fn write(&self, _: &Abi, at: *mut u8) {
                // SAFETY: the caller promises it.
                unsafe { at.cast::<Self>().write_unaligned(*self) }
            }
        }
    )*};
}

/// What differs: the fields of the structure of Rust that has those of all.
macro_rules! shaped {
    ($($type:ident as $name:ident { $($field:ident),* $(,)? })*) => {
        $(
            impl $crate::abi::Shaped for $type {
                fn size(abi: &$crate::abi::Abi) -> usize {
                    abi.$name.SIZE
                }

                unsafe fn read(abi: &$crate::abi::Abi, at: *const u8) -> Self {
                    // SAFETY: of each of these types zeros are a value.
                    let mut value: Self = unsafe { std::mem::zeroed() };
                    $(if let Some(offset) = abi.$name.$field {
                        // SAFETY: the caller promises that the structure is there, and so its field.
                        value.$field = unsafe { $crate::abi::Shaped::read(abi, at.add(offset)) };
                    })*
                    value
                }

                unsafe fn write(&self, abi: &$crate::abi::Abi, at: *mut u8) {
                    $(if let Some(offset) = abi.$name.$field {
                        // SAFETY: the caller promises that there is room for the structure.
                        unsafe { $crate::abi::Shaped::write(&self.$field, abi, at.add(offset)) };
                    })*
                }
            }
        )*

        /// Lays these structures out as Rust does.
        #[cfg(test)]
        pub(crate) fn lay_out_as_rust(abi: &mut $crate::abi::Abi) {
            $(
                abi.$name.SIZE = size_of::<$type>();
                $(abi.$name.$field = Some(std::mem::offset_of!($type, $field));)*
            )*
        }

        /// What of these structures a distribution lacks, and what it has and is not listed.
        #[cfg(test)]
        pub(crate) const SHAPED: &[(&str, &[&str])] =
            &[$((stringify!($name), &[$(stringify!($field)),*])),*];
    };
}

pub(crate) use shaped;

use crate::ffi::rcutils::rcutils_allocator_t;
use crate::ffi::rmw::{
    GidBytes, RMW_GID_STORAGE_SIZE, rmw_discovery_options_t, rmw_qos_profile_t,
    rmw_security_options_t,
};
use crate::ffi::rosidl::{
    AssignFunction, FetchFunction, FiniFunction, GetConstFunction, GetFunction, InitFunction,
    ResizeFunction, SizeFunction, rosidl_type_hash_t,
};

plain! {
    [] bool,
    [] u8,
    [] u32,
    [] u64,
    [] usize,
    [] i64,
    [T] *const T,
    [T] *mut T,
    [] rcutils_allocator_t,
    [] rmw_security_options_t,
    [] rmw_discovery_options_t,
    [] rmw_qos_profile_t,
    [] rosidl_type_hash_t,
    [] AssignFunction,
    [] FetchFunction,
    [] FiniFunction,
    [] GetConstFunction,
    [] GetFunction,
    [] InitFunction,
    [] ResizeFunction,
    [] SizeFunction,
}

impl Shaped for GidBytes {
    fn size(abi: &Abi) -> usize {
        abi.RMW_GID_STORAGE_SIZE.map_or(0, |size| size as usize)
    }

    unsafe fn read(abi: &Abi, at: *const u8) -> Self {
        let mut value = Self([0; RMW_GID_STORAGE_SIZE]);
        // SAFETY: the caller promises that so many are there.
        unsafe { ptr::copy_nonoverlapping(at, value.0.as_mut_ptr(), Self::size(abi)) };
        value
    }

    unsafe fn write(&self, abi: &Abi, at: *mut u8) {
        // SAFETY: the caller promises that there is room for so many.
        unsafe { ptr::copy_nonoverlapping(self.0.as_ptr(), at, Self::size(abi)) };
    }
}

#[cfg(test)]
fn native() -> Abi {
    let mut abi = JAZZY;
    abi.RMW_GID_STORAGE_SIZE = Some(RMW_GID_STORAGE_SIZE as u32);
    crate::ffi::rmw::lay_out_as_rust(&mut abi);
    crate::ffi::rosidl::lay_out_as_rust(&mut abi);
    abi
}
