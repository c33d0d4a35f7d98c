//! What is printed of an error that `main` returns, which is its `{:?}`: the sentence.

use crate::environment::EnvironmentError;
use crate::graph_message::{GraphFull, GraphMessageError};
use crate::user_data::UserDataError;

tsuji_msg::__sentences! {
    EnvironmentError,
    GraphFull,
    GraphMessageError,
    UserDataError,
}
