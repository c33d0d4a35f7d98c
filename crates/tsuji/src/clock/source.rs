//! Where ROS time comes from: the parameter `use_sim_time`, and `/clock`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use crate::{Context, Error, ErrorKind, GuardCondition, Node, Qos, Result, Subscription, WaitList};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::rosgraph_msgs;
use tsuji_platform::fork::Generation;
use tsuji_platform::ordered::Mutex;
use tsuji_platform::report;

use super::Clock;
use super::ros_time::RosTime;
use crate::lock;
use crate::parameter::{ParameterCallback, ParameterDescriptor, Parameters};

/// The parameter that says whether time is simulated.
const USE_SIM_TIME: &str = "use_sim_time";

/// Sets the ROS time of a node by its parameter `use_sim_time`, for as long as this is kept; then the time is the
/// system's.
///
/// The parameter is declared as a boolean, false by default; another type is refused. While it is true a thread
/// listens to `/clock`, spun or not.
pub(crate) struct TimeSource {
    core: Arc<Core>,
    clock: Clock,
    /// `None` when it is dropped.
    told: Option<ParameterCallback>,
    made_in: Generation,
}

impl TimeSource {
    /// Declares `use_sim_time`, if nobody has.
    pub(crate) fn declare(parameters: &Parameters) -> Result<()> {
        if parameters.has(USE_SIM_TIME) {
            return Ok(());
        }
        let description = "Use the time of /clock instead of the system's".to_owned();
        let described = ParameterDescriptor { description, ..ParameterDescriptor::default() };
        match parameters.declare_with(USE_SIM_TIME, false, described) {
            // Somebody else has meanwhile.
            Err(_) if parameters.has(USE_SIM_TIME) => Ok(()),
            declared => declared.map(|_| ()),
        }
    }

    /// Follows `use_sim_time`.
    pub(crate) fn new(node: &Node, parameters: &Parameters) -> Result<Self> {
        let core = Arc::new(Core {
            node: node.clone(),
            parameters: parameters.clone(),
            time: RosTime::new(),
            source: Mutex::new(Source::System),
        });
        let following = Arc::downgrade(&core);
        let told = parameters.on_post_set(move |parameters| {
            if parameters.iter().any(|it| it.name == USE_SIM_TIME)
                && let Some(core) = following.upgrade()
                && let Err(error) = core.follow_parameter()
            {
                report::error!(%error, node = core.node.fully_qualified_name(), "use_sim_time is not followed");
            }
        });
        let clock = Clock::ros(node.context(), &core.time);
        let source = Self { core, clock, told: Some(told), made_in: Generation::current() };
        source.core.follow_parameter()?;
        Ok(source)
    }

    /// The node's ROS time.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl Drop for TimeSource {
    fn drop(&mut self) {
        if !self.made_in.is_current() {
            // In a forked child the thread is not there, and a lock may be held by one that is not there either.
            std::mem::forget((Arc::clone(&self.core), self.told.take()));
            return;
        }
        let (ended, jump) = {
            let mut source = lock(&self.core.source);
            (std::mem::replace(&mut *source, Source::Ended), self.core.time.follow_system())
        };
        self.core.time.tell(jump);
        if let Source::Clock(listening) = ended {
            listening.end();
        }
    }
}

struct Core {
    node: Node,
    parameters: Parameters,
    time: Arc<RosTime>,
    /// Held over what the parameter says and what is done about it, but not while callbacks are told.
    source: Mutex<Source>,
}

/// Where the time comes from.
enum Source {
    System,
    Clock(Listening),
    /// From the system for ever, since the [`TimeSource`] is dropped.
    Ended,
}

impl Core {
    /// Takes the time from where the parameter says.
    fn follow_parameter(self: &Arc<Self>) -> Result<()> {
        let mut source = lock(&self.source);
        // Of two who set it, the later to come here sees what the last of them has set.
        let is_simulated = self.parameters.get::<bool>(USE_SIM_TIME)?;
        let jump = match (&*source, is_simulated) {
            (Source::System, true) => {
                // Before the first message comes.
                let jump = self.time.simulate();
                match Listening::start(self) {
                    Ok(listening) => *source = Source::Clock(listening),
                    Err(error) => {
                        // Nobody is told of the one, nor of the other.
                        let _ = self.time.follow_system();
                        return Err(error);
                    }
                }
                jump
            }
            (Source::Clock(_), false) => {
                // The thread ends by itself: it may be in a callback that waits for whoever sets parameters.
                *source = Source::System;
                self.time.follow_system()
            }
            (Source::System, false) | (Source::Clock(_), true) | (Source::Ended, _) => {
                return Ok(());
            }
        };
        drop(source);
        self.time.tell(jump);
        Ok(())
    }

    /// A message on `/clock`.
    fn hear(&self, Time { sec, nanosec }: Time) {
        if sec < 0 || NANOS_PER_SECOND <= nanosec {
            if self.time.invalid.fetch_add(1, Ordering::Relaxed) == 0 {
                let node = self.node.fully_qualified_name();
                report::warn!(sec, nanosec, node, "what is no time came on /clock, and is ignored");
            }
            return;
        }
        self.time.advance(i64::from(sec) * i64::from(NANOS_PER_SECOND) + i64::from(nanosec));
    }
}

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// The thread that listens to `/clock`, which ends when this is dropped.
struct Listening {
    guard: GuardCondition,
    /// `None` when it was waited for.
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    fn start(core: &Arc<Core>) -> Result<Self> {
        let context = core.node.context().clone();
        let guard = GuardCondition::new(&context)?;
        let clock = core.node.create_polled_subscription("/clock", Qos::CLOCK)?;
        let list = WaitList::new(&context)?;
        let (weak, ending) = (Arc::downgrade(core), guard.clone());
        let listen = move || {
            let hear = |time: Time| {
                let core = weak.upgrade();
                core.is_some_and(|core| {
                    core.hear(time);
                    true
                })
            };
            follow(&context, list, &clock, &ending, hear);
        };
        let spawned = thread::Builder::new().name("tsuji-clock".to_owned()).spawn(listen);
        let thread = spawned
            .map_err(|error| Error::new(ErrorKind::Exhausted, format!("a thread: {error}")))?;
        Ok(Self { guard, thread: Some(thread) })
    }

    /// Returns when it has ended, but for a call from inside it.
    fn end(mut self) {
        self.guard.trigger();
        let own = thread::current().id();
        if let Some(thread) = self.thread.take_if(|it| it.thread().id() != own) {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.guard.trigger();
    }
}

/// Hears each message until the context is shut down, `ending` is triggered, or nobody listens any more.
fn follow(
    context: &Context,
    mut list: WaitList,
    clock: &Subscription<rosgraph_msgs::msg::Clock>,
    ending: &GuardCondition,
    hear: impl Fn(Time) -> bool,
) {
    while context.is_ok() {
        match list.wait(&[ending, &**clock], None) {
            Ok(ready) if !ready.contains(&0) => (),
            _ => return,
        }
        while let Ok(Some(received)) = clock.take() {
            if ending.is_triggered() || !hear(received.message().clock) {
                return;
            }
        }
    }
}
