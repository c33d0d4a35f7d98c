//! The laboratory with an allocator that counts, for the children of `tsuji lab budgets`.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::process::ExitCode;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tsuji_lab::Program;
use tsuji_platform::limit::end_file_signal;

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn allocations() -> u64 {
    let stats = COUNTING.stats();
    (stats.allocations + stats.reallocations) as u64
}

fn main() -> ExitCode {
    end_file_signal();
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Program::current() {
        Ok(program) => {
            let out = &mut std::io::stdout();
            let code = tsuji_lab::main(&words, program, Some(allocations), out);
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Err(_) => ExitCode::FAILURE,
    }
}
