//! The laboratory alone, without the command `tsuji`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use tsuji_lab::Program;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Program::current(&[]) {
        Ok(program) => {
            let code = tsuji_lab::main(&words, program, None, &mut std::io::stdout());
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Err(_) => ExitCode::FAILURE,
    }
}
