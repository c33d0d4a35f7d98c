//! What is printed of an error that `main` returns, which is its `{:?}`: the sentence.

use std::fmt;

use crate::flows::TooManyPins;
use crate::flows::trace::Divergence;
use crate::names::NameError;
use crate::outward::InvalidRobot;
use crate::pattern::InvalidPattern;
use crate::policy::InvalidPolicy;
use crate::qos::InvalidQos;
use crate::rate::InvalidRate;
use crate::select::NoRoute;
use crate::words::UnknownWord;

macro_rules! sentences {
    ($($error:ty,)*) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

sentences! {
    Divergence,
    InvalidPattern,
    InvalidRate,
    InvalidRobot,
    InvalidPolicy,
    InvalidQos,
    NameError,
    NoRoute,
    TooManyPins,
    UnknownWord,
}
