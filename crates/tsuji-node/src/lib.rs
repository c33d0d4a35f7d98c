//! What ROS 2 users take for granted of a node, over the node API of tsuji: actions, parameters, log, time,
//! components and lifecycles.
//!
//! This crate carries and decides nothing: what it says goes by the services and topics of `tsuji`, under the
//! names and types that every ROS 2 node has for it.
#![forbid(unsafe_code)]

pub mod action;
pub mod clock;
pub mod component;
pub mod lifecycle;
pub mod log;
pub mod parameter;

mod asking;
mod changes;
mod deadline;

mod whole;
pub use whole::{WholeNode, WholeNodeBuilder};

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tsuji_interfaces::builtin_interfaces::msg::Time;

/// Whoever panics while holding a lock of this crate leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no words".to_owned())
}

/// Nanoseconds since 1970 as ROS writes them.
fn time(ns: i64) -> Time {
    let (sec, nanosec) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    Time {
        sec: i32::try_from(sec).unwrap_or(i32::MAX),
        nanosec: u32::try_from(nanosec).unwrap_or_default(),
    }
}
