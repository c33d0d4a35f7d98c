//! Where the threads of this process stand, for whoever looks for the reason of a hang.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// One line a thread: its name, and the functions it is in, the innermost first. Where a debugger cannot tell, why not.
pub(crate) fn of_this_process() -> Vec<String> {
    let file = std::env::temp_dir().join(format!("tsuji-stacks-{}", std::process::id()));
    let told = told_to(&file);
    // It is in the temporary folder, and there may be none.
    let _ = fs::remove_file(&file);
    match told {
        Ok(told) => {
            let lines = lines(&told);
            let last = told.lines().last().unwrap_or("it said nothing");
            if lines.is_empty() { vec![format!("no stacks: gdb: {last}")] } else { lines }
        }
        Err(error) => vec![format!("no stacks: {error}")],
    }
}

/// What a debugger says of this process. It writes to a file, since it stops this process, which then reads no pipe; and
/// another program ends it when it takes too long.
fn told_to(file: &Path) -> io::Result<String> {
    let (out, pid) = (fs::File::create(file)?, std::process::id().to_string());
    let mut gdb = Command::new("timeout");
    gdb.args(["--kill-after=5", "60", "gdb", "-nx", "-batch"]);
    gdb.args(["-ex", "set pagination off", "-ex", "set print frame-arguments none"]);
    gdb.args(["-ex", "thread apply all backtrace 24", "-p", &pid]);
    gdb.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).status()?;
    fs::read_to_string(file)
}

fn lines(told: &str) -> Vec<String> {
    let mut threads: Vec<(String, Vec<&str>)> = Vec::new();
    for line in told.lines() {
        if line.starts_with("Thread ") {
            let name = line.split('"').nth(1).unwrap_or("?");
            threads.push((name.to_owned(), Vec::new()));
        } else if let (Some(function), Some((_, functions))) = (function(line), threads.last_mut())
        {
            functions.push(function);
        }
    }
    threads.iter().map(|(name, functions)| format!("{name}: {}", functions.join(" < "))).collect()
}

/// The function of a line such as `#1  0x00007f in name<T> (…) at file:7`.
fn function(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix('#')?.split_once(' ')?;
    let rest = rest.trim_start();
    let rest = match rest.split_once(" in ") {
        Some((address, rest)) if address.starts_with("0x") => rest,
        _ => rest,
    };
    let named = rest.split(" (").next().unwrap_or(rest);
    // Without the types that it was made for.
    let end = named.find('<').filter(|at| *at != 0).unwrap_or(named.len());
    Some(named[..end].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_in_a_line_each() {
        let told = "[New LWP 3]\n\nThread 2 (Thread 0x7f (LWP 3) \"recv\"):\n#0  0x00007f in __futex (x=...) at a.c:1\n\
            #1  wait<u8> () at b.rs:2\n\nThread 1 (LWP 2):\n#0  main () at c.rs:3\n";
        assert_eq!(lines(told), ["recv: __futex < wait", "?: main"]);
        assert_eq!(function("warning: no file"), None);
    }
}
