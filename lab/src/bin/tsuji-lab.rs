//! The program `tsuji-lab`, which `tsuji lab` and `tsuji tune` become.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use tsuji_lab::Program;
use tsuji_platform::limit::end_file_signal;

fn main() -> ExitCode {
    end_file_signal();
    if let Some(code) = tsuji_lab::complete() {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Program::current() {
        Ok(program) => {
            let code = tsuji_lab::main(&words, program, None, &mut std::io::stdout());
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Err(_) => ExitCode::FAILURE,
    }
}
