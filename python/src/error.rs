//! Exceptions, one for each kind of error, with the library's texts.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyPermissionError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use tsuji::ErrorKind;

create_exception!(
    tsuji,
    TsujiError,
    PyException,
    "Base of the errors of tsuji that no exception of Python stands for."
);
create_exception!(
    tsuji,
    ClosedError,
    TsujiError,
    "The node was shut down, or this is a forked child process."
);
create_exception!(
    tsuji,
    BusyError,
    TsujiError,
    "A queue or a pool is full for the moment; trying again may succeed."
);
create_exception!(
    tsuji,
    ExhaustedError,
    TsujiError,
    "Memory, file descriptors or slots have run out."
);
create_exception!(
    tsuji,
    TooLargeError,
    TsujiError,
    "The message is larger than its transport can carry."
);
create_exception!(tsuji, NoServerError, TsujiError, "No server offers the service or action.");
create_exception!(tsuji, ServerLostError, TsujiError, "The server left before it answered.");
create_exception!(
    tsuji,
    UnsupportedError,
    TsujiError,
    "The transport, the engine or this system does not offer what was asked for."
);

/// Exception for an error of the library. Wrong arguments become `ValueError`, timeouts `TimeoutError`, and what a keystore does not
/// permit `PermissionError`.
pub(crate) fn raised(error: tsuji::Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Invalid => PyValueError::new_err(text),
        ErrorKind::Timeout => PyTimeoutError::new_err(text),
        ErrorKind::Closed => ClosedError::new_err(text),
        ErrorKind::Busy => BusyError::new_err(text),
        ErrorKind::Exhausted => ExhaustedError::new_err(text),
        ErrorKind::TooLarge => TooLargeError::new_err(text),
        ErrorKind::NoServer => NoServerError::new_err(text),
        ErrorKind::ServerLost => ServerLostError::new_err(text),
        ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
        ErrorKind::Unsupported => UnsupportedError::new_err(text),
        _ => TsujiError::new_err(text),
    }
}

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    for (name, exception) in [
        ("TsujiError", py.get_type::<TsujiError>()),
        ("ClosedError", py.get_type::<ClosedError>()),
        ("BusyError", py.get_type::<BusyError>()),
        ("ExhaustedError", py.get_type::<ExhaustedError>()),
        ("TooLargeError", py.get_type::<TooLargeError>()),
        ("NoServerError", py.get_type::<NoServerError>()),
        ("ServerLostError", py.get_type::<ServerLostError>()),
        ("UnsupportedError", py.get_type::<UnsupportedError>()),
    ] {
        module.add(name, exception)?;
    }
    Ok(())
}
