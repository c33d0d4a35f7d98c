use std::collections::VecDeque;
use std::time::Duration;

use crate::plan::{Patience, Respawn};

/// The least time from the end of a process to its next start, so that one that cannot live keeps no processor busy.
pub const RESPAWN_DELAY_MIN: Duration = Duration::from_millis(100);

/// The longest time that a launch file may name.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(86_400);

/// What is said of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supervised {
    /// Whether it is started again when it ends.
    pub respawn: Option<Respawn>,
    /// Its end is that of all.
    pub shuts_down: bool,
    /// How long it may take to end.
    pub patience: Patience,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// What processes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT
    Interrupt,
    /// SIGTERM
    Terminate,
    /// SIGKILL
    Kill,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start this process.
    Start(usize),
    /// Tell this process, and all of its group.
    Tell(usize, Signal),
    /// This process is started again after a time.
    Respawn(usize, Duration),
    /// This process is not started again: it has been as often as it may.
    GiveUp(usize),
    /// All are told to end from now on, because this process has ended.
    ShutDown(usize),
}

/// Which processes run, and what becomes of them.
///
/// A process is a group: it is over when its first process has ended and no other is left of the group. What such a
/// process leaves behind is told to end as all are at the end. The time is that since any moment before all others.
///
/// ```
/// use std::time::Duration;
/// use tsuji_launch::{End, Order, Signal, Supervised, Supervision};
///
/// let mut all = Supervision::new(vec![Supervised::default()]);
/// assert_eq!(all.poll(Duration::ZERO), Some(Order::Start(0)));
/// all.stop(Duration::from_secs(1));
/// assert_eq!(all.poll(Duration::from_secs(1)), Some(Order::Tell(0, Signal::Interrupt)));
/// assert_eq!(all.timeout(), Some(Duration::from_secs(6)));
/// all.ended(Duration::from_secs(2), 0, End::Exited(0), false);
/// assert!(all.is_over());
/// ```
#[derive(Clone, Debug)]
pub struct Supervision {
    processes: Vec<Member>,
    orders: VecDeque<Order>,
    is_stopping: bool,
    failed: usize,
}

#[derive(Clone, Debug)]
struct Member {
    what: Supervised,
    state: State,
    respawned: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// It is started at this time.
    Waiting(Duration),
    /// It runs, and may have been told to end.
    Running(Option<Told>),
    /// It has ended, others of its group have not.
    Leaving(End, Told),
    Over,
}

/// What a process is told, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    at: Duration,
    next: Option<Signal>,
}

impl Supervision {
    /// Processes that are all to be started.
    pub fn new(processes: Vec<Supervised>) -> Self {
        let processes = processes.into_iter().map(|what| Member {
            what,
            state: State::Waiting(Duration::ZERO),
            respawned: 0,
        });
        Self {
            processes: processes.collect(),
            orders: VecDeque::new(),
            is_stopping: false,
            failed: 0,
        }
    }

    /// What is to be done now; to be asked until there is nothing.
    pub fn poll(&mut self, now: Duration) -> Option<Order> {
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        for (number, member) in self.processes.iter_mut().enumerate() {
            let patience = member.what.patience;
            match &mut member.state {
                State::Waiting(at) if *at <= now => {
                    member.state = State::Running(None);
                    return Some(Order::Start(number));
                }
                State::Running(Some(told)) | State::Leaving(_, told) if told.at <= now => {
                    let Some(signal) = told.next else { continue };
                    *told = match signal {
                        Signal::Interrupt => Told {
                            at: now + patience.until_terminate,
                            next: Some(Signal::Terminate),
                        },
                        Signal::Terminate => {
                            Told { at: now + patience.until_kill, next: Some(Signal::Kill) }
                        }
                        Signal::Kill => Told { at: now, next: None },
                    };
                    return Some(Order::Tell(number, signal));
                }
                _ => {}
            }
        }
        None
    }

    /// When to ask again if nothing happens before.
    pub fn timeout(&self) -> Option<Duration> {
        if !self.orders.is_empty() {
            return Some(Duration::ZERO);
        }
        let times = self.processes.iter().filter_map(|it| match it.state {
            State::Waiting(at) => Some(at),
            State::Running(Some(told)) | State::Leaving(_, told) => told.next.map(|_| told.at),
            State::Running(None) | State::Over => None,
        });
        times.min()
    }

    /// The first process of a group has ended; whether others of it are left.
    pub fn ended(&mut self, now: Duration, process: usize, end: End, group_is_left: bool) {
        let Some(member) = self.processes.get_mut(process) else { return };
        let State::Running(told) = member.state else { return };
        if group_is_left {
            let told = told.unwrap_or(Told { at: now, next: Some(Signal::Terminate) });
            member.state = State::Leaving(end, told);
        } else {
            self.finish(now, process, end);
        }
    }

    /// Nothing is left of a group.
    pub fn emptied(&mut self, now: Duration, process: usize) {
        if let Some(State::Leaving(end, _)) = self.processes.get(process).map(|it| &it.state) {
            self.finish(now, process, *end);
        }
    }

    /// A process that could not be started. All are told to end.
    pub fn not_started(&mut self, now: Duration, process: usize) {
        if let Some(member) = self.processes.get_mut(process) {
            member.state = State::Over;
            self.failed += 1;
            if !self.is_stopping {
                self.stop(now);
            }
        }
    }

    /// All are told to end; asked again, the next step of each comes at once.
    pub fn stop(&mut self, now: Duration) {
        for member in &mut self.processes {
            match &mut member.state {
                State::Waiting(_) => member.state = State::Over,
                State::Running(told) => match told {
                    Some(told) => told.at = now,
                    None => *told = Some(Told { at: now, next: Some(Signal::Interrupt) }),
                },
                State::Leaving(_, told) => {
                    if self.is_stopping {
                        told.at = now;
                    }
                }
                State::Over => {}
            }
        }
        self.is_stopping = true;
    }

    /// Whether all are told to end.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Whether no process runs, and none will.
    pub fn is_over(&self) -> bool {
        self.orders.is_empty() && self.processes.iter().all(|it| it.state == State::Over)
    }

    /// Whether a process does not run, and will not.
    pub fn is_process_over(&self, process: usize) -> bool {
        self.processes.get(process).is_none_or(|it| it.state == State::Over)
    }

    /// The processes whose first has ended while others of their group are left.
    pub fn leaving(&self) -> impl Iterator<Item = usize> {
        let all = self.processes.iter().enumerate();
        all.filter(|(_, it)| matches!(it.state, State::Leaving(..))).map(|(number, _)| number)
    }

    /// How many processes ended otherwise than with exit code 0, without being told to and without being started again.
    pub fn failed(&self) -> usize {
        self.failed
    }

    fn finish(&mut self, now: Duration, process: usize, end: End) {
        let Some(member) = self.processes.get_mut(process) else { return };
        member.state = State::Over;
        if self.is_stopping {
            return;
        }
        if let Some(Respawn { delay, retries_max }) = member.what.respawn {
            if retries_max.is_none_or(|max| member.respawned < max) {
                let delay = delay.max(RESPAWN_DELAY_MIN);
                member.respawned = member.respawned.saturating_add(1);
                member.state = State::Waiting(now + delay);
                self.orders.push_back(Order::Respawn(process, delay));
                return;
            }
            self.orders.push_back(Order::GiveUp(process));
        }
        let shuts_down = member.what.shuts_down;
        self.failed += usize::from(end != End::Exited(0));
        if shuts_down {
            self.orders.push_back(Order::ShutDown(process));
            self.stop(now);
        }
    }
}
