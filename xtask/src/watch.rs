//! Runs a test binary and cuts it when it hangs: when it has printed nothing for a stated time.
//! There is no limit to how long it may run. libtest prints a line as each test ends, and one when a
//! test has been running for a minute.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

const SILENT_SECONDS_DEFAULT: u64 = 180;
/// How often to see whether the program ended while another process keeps its output open.
const LOOK: Duration = Duration::from_millis(50);

/// `arguments`: `--`, the program, its arguments. The time is `TSUJI_WATCH_SILENT_SECONDS`.
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(_), Some(program)) = (arguments.next().filter(|it| it == "--"), arguments.next())
    else {
        eprintln!("usage: cargo xtask watch -- PROGRAM ARGUMENT…");
        return ExitCode::from(2);
    };
    let silent = std::env::var("TSUJI_WATCH_SILENT_SECONDS").ok().and_then(|it| it.parse().ok());
    let silent = Duration::from_secs(silent.unwrap_or(SILENT_SECONDS_DEFAULT));

    let arguments: Vec<_> = arguments.collect();
    let mut command = Command::new(&program);
    command.args(&arguments);
    let mut tests = Tests::default();
    match watch(&mut command, silent, &mut Tee { tests: &mut tests, output: io::stdout() }) {
        Ok(Ended::Itself(status)) => {
            if let Some(signal) = status.signal() {
                eprintln!("watchdog: {} was ended by signal {signal}", program.display());
                let unended = tests.unended(Command::new(&program).args(&arguments));
                eprintln!("  of its tests these had not ended: {}", unended.join(", "));
            }
            exit_code(status)
        }
        Ok(Ended::Cut { report }) => {
            eprintln!(
                "watchdog: {} printed nothing for {} s and was killed",
                program.display(),
                silent.as_secs()
            );
            eprintln!("{report}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("watchdog: {}: {error}", program.display());
            ExitCode::FAILURE
        }
    }
}

/// How long a list of tests may take to begin.
const LIST_MAX: Duration = Duration::from_secs(20);
/// The most tests that are named of a program that was ended; those that ran are the first of them.
const NAMED_MAX: usize = 8;

/// Which tests have ended, by what libtest prints.
#[derive(Default)]
struct Tests {
    ended: HashSet<String>,
    line: Vec<u8>,
}

impl Tests {
    fn read(&mut self, chunk: &[u8]) {
        for &byte in chunk {
            if byte != b'\n' {
                self.line.push(byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8_lossy(&line);
            let outcome = line.strip_prefix("test ").and_then(|it| it.split_once(" ... "));
            self.ended.extend(outcome.map(|(name, _)| name.to_owned()));
        }
    }

    /// The first of those that had not ended when the program did, in the order in which libtest begins them.
    fn unended(&self, program: &mut Command) -> Vec<String> {
        let mut listed = Vec::new();
        // A program that knows no tests may do something else, which is cut.
        let _ended = watch(program.args(["--list", "--format", "terse"]), LIST_MAX, &mut listed);
        String::from_utf8_lossy(&listed)
            .lines()
            .filter_map(|it| it.strip_suffix(": test"))
            .filter(|it| !self.ended.contains(*it))
            .map(str::to_owned)
            .take(NAMED_MAX)
            .collect()
    }
}

/// Writes on what libtest prints, and reads it.
struct Tee<'a, W> {
    tests: &'a mut Tests,
    output: W,
}

impl<W: Write> Write for Tee<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.output.write(bytes)?;
        self.tests.read(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[derive(Debug)]
enum Ended {
    Itself(ExitStatus),
    Cut { report: String },
}

fn watch(command: &mut Command, silent: Duration, output: &mut impl Write) -> io::Result<Ended> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let chunks = read_on_a_thread(&mut child);
    let mut heard = Instant::now();
    loop {
        match chunks.recv_timeout(LOOK) {
            Ok(chunk) => {
                output.write_all(&chunk)?;
                output.flush()?;
                heard = Instant::now();
            }
            Err(RecvTimeoutError::Disconnected) if heard.elapsed() < silent => {
                // The output is closed, the program may still be ending.
                if let Some(status) = child.try_wait()? {
                    return Ok(Ended::Itself(status));
                }
                thread::sleep(LOOK);
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() < silent => {
                if let Some(status) = child.try_wait()? {
                    chunks.try_iter().try_for_each(|chunk| output.write_all(&chunk))?;
                    return Ok(Ended::Itself(status));
                }
            }
            Err(_) => {
                let report = kill_all(&mut child);
                return Ok(Ended::Cut { report });
            }
        }
    }
}

fn read_on_a_thread(child: &mut Child) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

/// Kills the program and what it started. Says what each was doing: libtest names a test's thread after the test.
fn kill_all(child: &mut Child) -> String {
    let mut family = vec![child.id()];
    let mut report = String::new();
    let mut next = 0;
    while let Some(&pid) = family.get(next) {
        next += 1;
        report.push_str(&describe(pid));
        family.extend(children(pid));
    }
    for pid in family.iter().skip(1) {
        // One that is gone already is what was wanted.
        let _gone = signal("KILL", *pid);
    }
    let _gone = child.kill();
    let _status = child.wait();
    report
}

/// The shell's own `kill`: the program of that name is not on every machine.
fn signal(name: &str, pid: u32) -> io::Result<ExitStatus> {
    Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status()
}

fn describe(pid: u32) -> String {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let mut text = format!("  process {pid}: {command}\n");
    for task in tasks(pid) {
        let read = |file: &str| {
            fs::read_to_string(format!("/proc/{pid}/task/{task}/{file}")).unwrap_or_default()
        };
        text.push_str(&format!(
            "    thread {}, in {}\n",
            read("comm").trim(),
            read("wchan").trim()
        ));
    }
    text
}

fn children(pid: u32) -> Vec<u32> {
    tasks(pid)
        .iter()
        .filter_map(|task| fs::read_to_string(format!("/proc/{pid}/task/{task}/children")).ok())
        .flat_map(|list| {
            list.split_whitespace().filter_map(|it| it.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

fn tasks(pid: u32) -> Vec<String> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// As a shell gives it: a signal is 128 and its number.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|it| u8::try_from(it).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, silent: Duration) -> (Ended, String) {
        let mut output = Vec::new();
        let ended = watch(Command::new("sh").args(["-c", script]), silent, &mut output).unwrap();
        (ended, String::from_utf8(output).unwrap())
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn what_ends_by_itself_keeps_its_output_and_status() {
        let (ended, output) = shell("echo one; echo two; exit 7", LONG);
        assert_eq!(output, "one\ntwo\n");
        assert!(matches!(ended, Ended::Itself(status) if status.code() == Some(7)));
    }

    #[test]
    fn of_a_program_that_crashes_the_tests_are_named_that_had_not_ended() {
        // As libtest does: what it lists, and what it prints.
        const LIBTEST: &str = r#"
            case "$*" in *--list*) printf '%s: test\n' one two three; echo 'wide: benchmark'; exit ;; esac
            printf 'test two ... ok\ntest thr'
            printf 'ee ... '
            kill -SEGV $$
        "#;
        let (mut tests, mut output) = (Tests::default(), Vec::new());
        let program = || {
            let mut program = Command::new("sh");
            program.args(["-c", LIBTEST, "sh"]);
            program
        };
        let mut tee = Tee { tests: &mut tests, output: &mut output };
        let ended = watch(&mut program(), LONG, &mut tee).unwrap();
        assert!(matches!(ended, Ended::Itself(status) if status.signal() == Some(11)));
        assert_eq!(output, b"test two ... ok\ntest three ... ");
        assert_eq!(tests.unended(&mut program()), ["one", "three"]);
    }

    #[test]
    fn a_process_left_behind_with_the_output_open_is_not_waited_for() {
        let (ended, output) = shell("sleep 1000 & echo $!", LONG);
        assert!(matches!(ended, Ended::Itself(status) if status.success()));
        assert!(signal("KILL", output.trim().parse().unwrap()).unwrap().success());
    }

    #[test]
    fn a_hang_is_cut_with_everything_it_started() {
        let (ended, output) = shell("sleep 1000 & echo $!; wait", Duration::from_secs(2));
        let Ended::Cut { report } = ended else { panic!("not cut") };
        assert!(report.contains("sleep 1000"), "{report}");
        // It is killed; when it is gone is for the kernel to say. The runner's own watchdog ends a
        // wait in vain.
        let stat = format!("/proc/{}/stat", output.trim());
        while fs::read_to_string(&stat).is_ok_and(|it| !it.contains(") Z ")) {
            thread::sleep(LOOK);
        }
    }
}
