//! What processes use while pictures go: processor time and context switches, ten times a second, from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// From one look to the next.
const PERIOD: Duration = Duration::from_millis(100);

/// The kernel tells processor time in hundredths of a second, on every architecture that tsuji runs on.
const TICKS_A_SECOND: f64 = 100.0;

/// Whose use is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// A process, by what it plays.
    Process(&'static str, u32),
    /// All of it, as `vmstat` tells it: 100 % are all processors.
    Machine,
}

impl Who {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Process(name, _) => name,
            Self::Machine => "machine",
        }
    }

    /// What was used until now.
    fn used(self) -> Result<Used, String> {
        match self {
            Self::Process(_, id) => Used::of_process(&PathBuf::from(format!("/proc/{id}"))),
            Self::Machine => {
                let processors = thread::available_parallelism().map_or(1, usize::from);
                let path = Path::new("/proc/stat");
                Used::of_machine(&read(path)?, processors as f64).ok_or_else(|| unread(path))
            }
        }
    }
}

/// What somebody has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Used {
    user_s: f64,
    system_s: f64,
    switches: f64,
}

impl Used {
    fn of_process(folder: &Path) -> Result<Self, String> {
        let path = folder.join("stat");
        let (user_s, system_s) = times(&read(&path)?).ok_or_else(|| unread(&path))?;
        let tasks = folder.join("task");
        let mut switches = 0.0;
        let entries = fs::read_dir(&tasks).map_err(|it| format!("{}: {it}", tasks.display()))?;
        for task in entries.flatten() {
            // A thread may have ended since; only those that are there count.
            let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
            switches += switched(&status);
        }
        Ok(Self { user_s, system_s, switches })
    }

    fn of_machine(stat: &str, processors: f64) -> Option<Self> {
        let field = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name));
        let numbers = |text: &str| -> Vec<f64> {
            text.split_whitespace().filter_map(|it| it.parse().ok()).collect()
        };
        // User, nice, system, idle, waiting, interrupts, soft interrupts.
        let cpu = numbers(field("cpu ")?);
        let [user, nice, system, _, _, interrupts, soft, ..] = *cpu else { return None };
        let switches = *numbers(field("ctxt ")?).first()?;
        let seconds = |ticks: f64| ticks / TICKS_A_SECOND / processors;
        let (user_s, system_s) = (seconds(user + nice), seconds(system + interrupts + soft));
        Some(Self { user_s, system_s, switches })
    }
}

/// Seconds of processors that all threads of a process have used so far, in steps of 10 ms.
pub(crate) fn seconds_used(id: u32) -> Result<f64, String> {
    let path = PathBuf::from(format!("/proc/{id}/stat"));
    let (user_s, system_s) = times(&read(&path)?).ok_or_else(|| unread(&path))?;
    Ok(user_s + system_s)
}

/// User's and kernel's seconds in `/proc/PID/stat`, where the name may have spaces and brackets.
fn times(stat: &str) -> Option<(f64, f64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(UTIME);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_A_SECOND);
    Some((seconds()?, seconds()?))
}

/// The place of `utime` behind the name; `stime` follows.
const UTIME: usize = 11;

/// Both kinds of context switches in `/proc/PID/task/TID/status`.
fn switched(status: &str) -> f64 {
    let of = |line: &str| -> Option<f64> {
        let (name, number) = line.split_once(':')?;
        if name.ends_with("_ctxt_switches") { number.trim().parse().ok() } else { None }
    };
    status.lines().filter_map(of).sum()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn unread(path: &Path) -> String {
    format!("{}: not as expected", path.display())
}

/// What somebody used from look to look.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Usage {
    /// When each stretch ended, since the first look.
    pub(super) seconds: Vec<f64>,
    /// Per cent of a processor.
    pub(super) user: Vec<f64>,
    /// The same in the kernel.
    pub(super) system: Vec<f64>,
    /// Context switches a second.
    pub(super) switches: Vec<f64>,
    /// The three over the whole time, if there were two looks.
    pub(super) whole: Option<[f64; 3]>,
    /// From the first look to the last.
    lasted_s: f64,
}

impl Usage {
    fn of(looks: &[(f64, Used)]) -> Self {
        let rates = |(from, before): &(f64, Used), (to, after): &(f64, Used)| {
            let rate = |before: f64, after: f64| (after - before).max(0.0) / (to - from);
            [
                100.0 * rate(before.user_s, after.user_s),
                100.0 * rate(before.system_s, after.system_s),
                rate(before.switches, after.switches),
            ]
        };
        let mut usage = Self::default();
        for pair in looks.windows(2) {
            let [user, system, switches] = rates(&pair[0], &pair[1]);
            usage.seconds.push(pair[1].0 - looks[0].0);
            usage.user.push(user);
            usage.system.push(system);
            usage.switches.push(switches);
        }
        if let [first, .., last] = looks {
            usage.whole = Some(rates(first, last));
            usage.lasted_s = last.0 - first.0;
        }
        usage
    }

    /// Puts behind it what was used next, as if no time had been between.
    fn append(&mut self, next: Self) {
        let (before_s, next_s) = (self.lasted_s, next.lasted_s);
        self.seconds.extend(next.seconds.iter().map(|it| before_s + it));
        self.user.extend(next.user);
        self.system.extend(next.system);
        self.switches.extend(next.switches);
        self.whole = match (self.whole, next.whole) {
            (Some(before), Some(next)) => Some(std::array::from_fn(|at| {
                (before[at] * before_s + next[at] * next_s) / (before_s + next_s)
            })),
            (before, next) => before.or(next),
        };
        self.lasted_s += next_s;
    }
}

/// What was used, and why no more of it is known.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) who: Who,
    pub(super) usage: Usage,
    pub(super) trouble: Option<String>,
}

impl Told {
    /// Puts behind it what the same used in the next start.
    pub(super) fn append(&mut self, next: Self) {
        self.usage.append(next.usage);
        self.trouble = self.trouble.take().or(next.trouble);
    }
}

/// A thread that looks.
pub(super) struct Sampling {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Told>>,
}

impl Sampling {
    /// Begins to look.
    pub(super) fn start(whose: Vec<Who>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let begin = Instant::now();
            let mut looks = vec![(Vec::new(), None); whose.len()];
            let mut look = || {
                for (who, (looks, trouble)) in whose.iter().zip(&mut looks) {
                    if trouble.is_none() {
                        match who.used() {
                            Ok(used) => looks.push((begin.elapsed().as_secs_f64(), used)),
                            Err(error) => *trouble = Some(error),
                        }
                    }
                }
            };
            look();
            for turn in 1.. {
                let left = (PERIOD * turn).saturating_sub(begin.elapsed());
                if stopped.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                    look();
                    continue;
                }
                if turn == 1 {
                    // A film shorter than a period has its use told all the same.
                    look();
                }
                break;
            }
            let told = whose.iter().zip(looks);
            told.map(|(who, (looks, trouble))| Told {
                who: *who,
                usage: Usage::of(&looks),
                trouble,
            })
            .collect()
        });
        Self { stop, thread }
    }

    /// Ends looking, and tells what was seen.
    pub(super) fn end(self) -> Vec<Told> {
        drop(self.stop);
        // It has nothing to panic of.
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_any_name_is_read() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 250 50 0 0";
        assert_eq!(times(&format!("7 (tsuji) {rest}")), Some((2.5, 0.5)));
        assert_eq!(times(&format!("7 (a) b (c) {rest}")), Some((2.5, 0.5)));
        assert_eq!(times("7 (tsuji) S 1"), None);
        assert_eq!(times(""), None);
    }

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Threads:\t3\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switched(status), 15.0);
        assert_eq!(switched("Threads:\t3\n"), 0.0);
    }

    #[test]
    fn the_machine_is_told_as_vmstat_does() {
        let stat = "cpu  100 20 50 900 5 1 9 0 0 0\ncpu0 1 2 3\nctxt 4567\n";
        let used = Used::of_machine(stat, 2.0).unwrap();
        assert_eq!((used.user_s, used.system_s, used.switches), (0.6, 0.3, 4567.0));
        assert_eq!(Used::of_machine("cpu  1 2\nctxt 1\n", 1.0), None);
        assert_eq!(Used::of_machine("ctxt 1\n", 1.0), None);
    }

    #[test]
    fn use_is_told_from_look_to_look_and_as_a_whole() {
        let used = |user_s, switches| Used { user_s, system_s: 0.0, switches };
        // A thread that has ended takes its switches with it.
        let looks = [(1.0, used(0.0, 50.0)), (1.5, used(0.25, 100.0)), (3.0, used(0.25, 90.0))];
        let usage = Usage::of(&looks);
        assert_eq!((usage.seconds, usage.user), (vec![0.5, 2.0], vec![50.0, 0.0]));
        assert_eq!(usage.switches, [100.0, 0.0]);
        assert_eq!(usage.whole, Some([12.5, 0.0, 20.0]));
        assert_eq!(Usage::of(&looks[..1]), Usage::default());
        let mut both = Usage::of(&looks);
        both.append(Usage::of(&[(0.0, used(0.0, 0.0)), (2.0, used(1.0, 80.0))]));
        assert_eq!((both.seconds, both.user), (vec![0.5, 2.0, 4.0], vec![50.0, 0.0, 50.0]));
        assert_eq!(both.whole, Some([31.25, 0.0, 30.0]));
    }

    #[test]
    fn this_process_is_read_and_one_that_is_gone_is_told() {
        let own = Used::of_process(Path::new("/proc/self")).unwrap();
        assert!(0.0 < own.switches);
        assert!(0.0 < Who::Machine.used().unwrap().user_s);
        // No process has this number.
        let mut told = Sampling::start(vec![Who::Process("camera", u32::MAX), Who::Machine]).end();
        let (machine, gone) = (told.pop().unwrap(), told.pop().unwrap());
        assert!(gone.trouble.unwrap().contains("/proc/4294967295/stat"));
        assert_eq!(machine.trouble, None);
    }
}
