//! The article's own clients, in Python with its libraries, where these are here.

use std::env;
use std::process::{Command, Stdio};

use tsuji_bridge::Protocol;

use crate::crew::Program;

/// Who plays them.
const PYTHON: &str = "python3";

/// The library that the article's client by WebSocket is made with.
const AUTOBAHN: &str = "autobahn";

/// A Python with what its client by `protocol` needs. An error says what is missing, and why.
pub(super) fn find(protocol: Protocol) -> Result<Program, (&'static str, String)> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folder = env::split_paths(&path).find(|it| it.is_absolute() && it.join(PYTHON).is_file());
    let missing = || (PYTHON, format!("not installed: {PYTHON} is not on PATH"));
    let folder = folder.ok_or_else(missing)?;
    if protocol == Protocol::WebSocket {
        let mut import = Command::new(folder.join(PYTHON));
        import.args(["-c", "import autobahn.asyncio.websocket"]);
        import.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !import.status().is_ok_and(|it| it.success()) {
            let why = format!("not installed: {PYTHON} has no {AUTOBAHN}; pip install {AUTOBAHN}");
            return Err((AUTOBAHN, why));
        }
    }
    let program = Program::in_folder(&folder, PYTHON).ok_or_else(missing)?;
    Ok(program.with_words(&["-c", include_str!("clients.py")]))
}
