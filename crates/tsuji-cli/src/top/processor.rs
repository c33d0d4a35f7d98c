//! How much of a core each process of this host has taken between two looks.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use tsuji::ProcessInfo;
use tsuji_platform::process;

/// What processes had taken at the last look, by their tokens.
#[derive(Debug, Default)]
pub(super) struct Processor {
    before: HashMap<String, (Instant, Taken)>,
}

/// What a process has taken since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Taken {
    /// When it started, which tells it from another that had its number.
    started: u64,
    /// Time on processors, in ticks.
    ticks: u64,
}

impl Processor {
    /// The share of a core that each of these has taken since the last look, by its token: 1.0 is one whole core. Left out are those
    /// that were not there then, and those of which that is not to be had, see [`taken`]. Two that say the same number are of two
    /// namespaces, and which of them it is here nobody knows.
    pub(super) fn look<'p>(
        &mut self,
        processes: impl Iterator<Item = &'p ProcessInfo>,
    ) -> HashMap<String, f64> {
        let host = process::host_name();
        let tick_hz = tick_hz();
        let near: Vec<_> = processes.filter(|it| it.host == host).collect();
        let is_alone = |one: &ProcessInfo| near.iter().filter(|it| it.pid == one.pid).count() == 1;
        let mut before = std::mem::take(&mut self.before);
        let mut shares = HashMap::new();
        for it in near.iter().filter(|it| is_alone(it)) {
            let Some(now) = taken(it) else { continue };
            let at = Instant::now();
            if let Some((since, then)) = before.remove(&it.token)
                && let Some(share) = share(then, now, (at - since).as_secs_f64(), tick_hz)
            {
                shares.insert(it.token.clone(), share);
            }
            self.before.insert(it.token.clone(), (at, now));
        }
        shares
    }
}

/// What a process of this host has taken. Nothing where its number means another process here, or none: in another namespace of processes
/// it is counted otherwise, which its program tells, and another user's may be hidden.
fn taken(of: &ProcessInfo) -> Option<Taken> {
    let folder = format!("/proc/{}", of.pid);
    if fs::metadata(&folder).ok()?.uid() != process::user_id() {
        return None;
    }
    let words = fs::read(format!("{folder}/cmdline")).ok()?;
    let first = Path::new(OsStr::from_bytes(words.split(|it| *it == 0).next()?));
    if first.file_name()?.to_string_lossy() != *of.program {
        return None;
    }
    read(&fs::read_to_string(format!("{folder}/stat")).ok()?)
}

/// What the text of /proc/PID/stat says. The name in it may have spaces, parentheses and line breaks.
fn read(stat: &str) -> Option<Taken> {
    let (_, rest) = stat.rsplit_once(')')?;
    // The state is the third of all, proc_pid_stat(5).
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let (user, system, started) = (number(14)?, number(15)?, number(22)?);
    Some(Taken { started, ticks: user.checked_add(system)? })
}

/// Ticks a second, as the kernel tells each process when it starts, getauxval(3).
fn tick_hz() -> u64 {
    const CLOCK_TICKS: u64 = 17;
    let auxv = fs::read("/proc/self/auxv").unwrap_or_default();
    let (pairs, _) = auxv.as_chunks::<16>();
    let found = pairs.iter().find_map(|pair| {
        let (key, value) = pair.split_at(8);
        let number = |bytes: &[u8]| Some(u64::from_ne_bytes(bytes.try_into().ok()?));
        (number(key)? == CLOCK_TICKS).then(|| number(value))?
    });
    // What every system has that tsuji runs on.
    found.filter(|it| *it > 0).unwrap_or(100)
}

/// The share of a core between two looks; nothing of two processes, or of no time.
fn share(then: Taken, now: Taken, seconds: f64, tick_hz: u64) -> Option<f64> {
    if then.started != now.started || seconds <= 0.0 {
        return None;
    }
    let ticks = now.ticks.checked_sub(then.ticks)?;
    Some(ticks as f64 / tick_hz as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With what stands behind the name in the text of a process that has taken 30 and 12 ticks, started at 4711.
    fn stat(name: &str) -> String {
        format!(
            "77 ({name}) S 1 77 77 0 -1 4194560 100 0 0 0 30 12 5 6 20 0 4 0 4711 1000 200 18446744073709551615\n"
        )
    }

    #[test]
    fn a_name_may_have_anything_in_it() {
        let expect = Some(Taken { started: 4711, ticks: 42 });
        for name in ["tsuji", "a b", "a) S 1 2 3 (b", "((", ")", "a\n1 2) R", ""] {
            assert_eq!(read(&stat(name)), expect, "{name:?}");
        }
        let whole = stat("tsuji");
        for text in ["", "77 tsuji", "77 (tsuji)", &whole[..40], &whole.replace(" 12 ", " -12 ")] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_share_is_of_one_core_and_of_one_process() {
        let taken = |started, ticks| Taken { started, ticks };
        let of = |then, now, seconds| share(then, now, seconds, 100);
        assert_eq!(of(taken(1, 100), taken(1, 150), 1.0), Some(0.5));
        assert_eq!(of(taken(1, 100), taken(1, 500), 2.0), Some(2.0));
        assert_eq!(of(taken(1, 100), taken(1, 100), 1.0), Some(0.0));
        // Another that has the same number, and time that did not pass or went back.
        assert_eq!(of(taken(1, 100), taken(2, 150), 1.0), None);
        assert_eq!(of(taken(1, 100), taken(1, 150), 0.0), None);
        assert_eq!(of(taken(1, 100), taken(1, 99), 1.0), None);
    }

    #[test]
    fn this_process_is_known_and_not_by_what_it_is_not() {
        let first = std::env::args_os().next().unwrap();
        let program = Path::new(&first).file_name().unwrap().to_str().unwrap().to_owned();
        let own = |program: &str, pid, host: String| ProcessInfo {
            token: "own".to_owned(),
            pid,
            program: program.to_owned(),
            host,
        };
        let (pid, host) = (std::process::id(), process::host_name());
        let check = |it: ProcessInfo, is_known: bool| {
            let mut processor = Processor::default();
            assert!(processor.look([&it].into_iter()).is_empty(), "nothing was there before");
            let mut share = processor.look([&it].into_iter()).remove("own");
            // Ticks are far apart: some time has to pass.
            while is_known && share.is_none_or(|it| it <= 0.0) {
                share = processor.look([&it].into_iter()).remove("own");
            }
            assert_eq!(share.is_some(), is_known, "{it:?}");
        };
        // Under emulation the program that runs is another.
        if std::env::var_os("TSUJI_TEST_RUNNER").is_none() {
            check(own(&program, pid, host.clone()), true);
        }
        check(own("another", pid, host.clone()), false);
        check(own(&program, pid, "elsewhere".to_owned()), false);
        check(own(&program, u32::MAX, host.clone()), false);
        let twins = [own(&program, pid, host.clone()), own(&program, pid, host)];
        let mut processor = Processor::default();
        assert!(processor.look(twins.iter()).is_empty() && processor.look(twins.iter()).is_empty());
    }
}
