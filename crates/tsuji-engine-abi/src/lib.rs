//! The C ABI of `cpp/include/tsuji_transport.h`: its declarations, and by [`export!`] a shared library of
//! an engine in Rust. It loads nothing, and knows no engine.

#[doc(hidden)]
pub mod abi;
mod export;
mod log;

pub use export::{Asked, Library, table};
