//! Names that generated code uses, under one roof, so that a message called `String` or `Result`
//! shadows nothing.

pub use crate::array::Seek;
pub use crate::cdr::{Bounds, Number, Reader, Sink, Writer};
pub use crate::message::{Action, InPlace, Message, Service};
pub use crate::path::Path;
pub use crate::view::{ArrayView, SeqView};
pub use crate::wire::{WString, Wire};
pub use std::borrow::Cow;
pub use std::default::Default;
pub use std::option::Option;
pub use std::string::String;
pub use std::vec::Vec;

/// What reading and writing answer.
pub type Result<T> = std::result::Result<T, crate::cdr::CdrError>;

/// The limits of a field of so many texts of so many bytes or UTF-16 code units.
pub const fn bounds(items: usize, text: usize) -> Bounds {
    Bounds { items: Some(items), text: Some(text) }
}

/// The limit of a field of so many items.
pub const fn items_max(items: usize) -> Bounds {
    Bounds { items: Some(items), text: None }
}

/// The limit of a field of texts of so many bytes or UTF-16 code units.
pub const fn text_max(text: usize) -> Bounds {
    Bounds { items: None, text: Some(text) }
}
