//! What is printed of an error that `main` returns, which is its `{:?}`: the sentence.

use crate::array::ArrayError;
use crate::codegen::CodegenError;
use crate::definition::ParseError;
use crate::dynamic::ValueError;
use crate::filter::FilterError;
use crate::name::NameError;
use crate::types::{LoadError, Unreadable};

/// Prints errors by `{:?}` as they are shown: for the crates above too.
#[doc(hidden)]
#[macro_export]
macro_rules! __sentences {
    ($($error:ty,)*) => {$(
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

__sentences! {
    ArrayError,
    CodegenError,
    FilterError,
    LoadError,
    NameError,
    ParseError,
    Unreadable,
    ValueError,
}
