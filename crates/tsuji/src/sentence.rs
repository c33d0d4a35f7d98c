//! What is printed of an error that `main` returns, which is its `{:?}`: the sentence.

use crate::log_arguments::UnknownSeverity;
use crate::parameter::{UnknownType, WrongType, YamlError};

tsuji_msg::__sentences! {
    UnknownSeverity,
    UnknownType,
    WrongType,
    YamlError,
}
