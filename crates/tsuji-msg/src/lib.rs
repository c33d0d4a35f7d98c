//! ROS 2 interfaces: their definitions, their type hashes, and their messages as bytes, as Rust
//! types and as values whose type is only known at run time.
//!
//! This crate knows text, bytes and type descriptions. It knows no topic, no transport and no file:
//! a [`Resolver`] hands it the text of definitions.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod array;
pub mod cdr;
pub mod codegen;
pub mod definition;
mod dynamic;
pub mod filter;
pub mod generated;
mod hash;
mod message;
mod name;
pub mod path;
mod sentence;
mod types;
mod view;
pub mod wire;
pub mod yaml;

pub use array::{ArrayError, ArrayLayout, Room, Template};
pub use cdr::{CdrError, CdrProblem, Number};
pub use definition::Kind;
pub use dynamic::{
    Bytes, DECODED_BYTES_MAX, Detail, DynamicMessage, EchoStyle, JsonStyle, List, Now, Value,
    ValueError, array_summary,
};
pub use filter::{Expression, Filter, FilterError};
pub use message::{Action, InPlace, Message, Service, encode_as};
pub use name::{NameError, TypeName};
pub use types::{
    ActionDescription, Definition, Field, LoadError, NESTING_MAX, Resolver, ServiceDescription,
    TYPE_BYTES_MAX, TypeDescription, TypeSet, Unreadable, definitions_in, load, load_full_text,
};
pub use view::{ArrayView, SeqIter, SeqView};
pub use wire::{Element, WString, Wire};
