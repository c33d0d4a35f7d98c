//! A node that others configure, activate and shut down.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::{
    CallbackGroupKind, Error, ErrorKind, LoanedMessage, Message, Node, Publishable, Publisher,
    PublisherOptions, Qos, Result, ServiceOptions,
};
use tsuji_interfaces::lifecycle_msgs::msg::{self, TransitionEvent};
use tsuji_interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeStateRequest, ChangeStateResponse, GetAvailableStates,
    GetAvailableStatesResponse, GetAvailableTransitions, GetAvailableTransitionsResponse, GetState,
    GetStateResponse,
};
use tsuji_msg::InPlace;
use tsuji_platform::clock;
use tsuji_platform::ordered::Mutex;

use super::machine::{Machine, Wanted};
use super::{Outcome, State, TRANSITIONS, Transition};
use crate::{lock, panic_text};

/// What a managed node does when it is told to. Each is told the state that the node comes from; a panic is an
/// [`Outcome::Error`].
///
/// It must not keep the [`LifecycleNode`] that it is shown, which keeps it.
pub trait Lifecycle: Send + 'static {
    /// Makes it ready to be activated: reads parameters, opens devices, makes publishers.
    fn on_configure(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        let _ = (node, from);
        Outcome::Success
    }

    /// Begins to work. Publishers send when it has succeeded.
    fn on_activate(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        let _ = (node, from);
        Outcome::Success
    }

    /// Ends the work. Publishers send no more when it begins.
    fn on_deactivate(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        let _ = (node, from);
        Outcome::Success
    }

    /// Undoes what [`on_configure`](Self::on_configure) has done.
    fn on_cleanup(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        let _ = (node, from);
        Outcome::Success
    }

    /// Ends all there is, from whatever state. Nothing comes after it.
    ///
    /// The last [`LifecycleNode`] must outlast it: its services leave with that, and who asked for the shutdown by
    /// one of them would wait for an answer in vain.
    fn on_shutdown(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        let _ = (node, from);
        Outcome::Success
    }

    /// Tidies up after one of the others that answered [`Outcome::Error`]. Success makes the node unconfigured again,
    /// anything else finalized.
    fn on_error(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        let _ = (node, from);
        Outcome::Failure
    }
}

/// A node under management. Clones are the same; its services leave with the last of them.
///
/// Others are answered while the node is spun. The program itself may change the state from any thread. One transition
/// is made at a time: whoever asks for another meanwhile is refused.
#[derive(Clone)]
#[must_use = "its services leave when it is dropped"]
pub struct LifecycleNode {
    core: Arc<Core>,
}

impl LifecycleNode {
    pub(crate) fn new(node: &Node, callbacks: impl Lifecycle) -> Result<Self> {
        let mut managed = node.managed();
        if managed.strong_count() != 0 {
            let node = node.fully_qualified_name();
            let why = format!("manage {node}: it is managed already; allowed: once a node");
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        let core = Arc::new(Core {
            node: node.clone(),
            steps: Mutex::default(),
            machine: Mutex::new(Machine::new()),
            callbacks: Mutex::new(Box::new(callbacks)),
            is_active: Arc::default(),
            events: node.create_publisher("~/transition_event", Qos::DEFAULT)?,
            services: OnceLock::new(),
        });
        // Nobody else has set them.
        let _ = core.services.set(serve(&core, node)?);
        *managed = Arc::downgrade(&core);
        Ok(Self { core })
    }

    /// Returns the node.
    pub fn node(&self) -> &Node {
        &self.core.node
    }

    /// Returns the state of the node.
    pub fn state(&self) -> State {
        lock(&self.core.machine).state()
    }

    /// Makes the transition of this label, such as `configure`, and returns how its callback has ended: where the
    /// node is then says [`state`](Self::state).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if that is not allowed now, with what is; [`ErrorKind::Busy`] if another transition
    /// is not over, also for a callback that asks for one.
    pub fn change(&self, transition: &str) -> Result<Outcome> {
        self.core.change(Wanted::Label(transition))
    }

    /// Creates a publisher that sends while the node is active.
    ///
    /// # Errors
    ///
    /// Those of [`Node::create_publisher`].
    pub fn create_publisher<M: Message>(
        &self,
        topic: &str,
        options: impl Into<PublisherOptions>,
    ) -> Result<LifecyclePublisher<M>> {
        Ok(self.manage(self.node().create_publisher(topic, options)?))
    }

    /// Lets a publisher of this node send while the node is active.
    pub fn manage<M: Message>(&self, publisher: Publisher<M>) -> LifecyclePublisher<M> {
        let is_active = Arc::clone(&self.core.is_active);
        LifecyclePublisher { publisher, is_active, unsent: AtomicU64::new(0) }
    }
}

impl fmt::Debug for LifecycleNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.node().fully_qualified_name();
        f.debug_struct("LifecycleNode").field("node", &node).field("state", &self.state()).finish()
    }
}

/// Publishes while its node is active. What it is given else is dropped and counted.
pub struct LifecyclePublisher<M> {
    publisher: Publisher<M>,
    is_active: Arc<AtomicBool>,
    unsent: AtomicU64,
}

impl<M: Message> LifecyclePublisher<M> {
    /// Publishes a message as [`Publisher::publish`] does, or counts it where the node is not active.
    ///
    /// # Errors
    ///
    /// Those of [`Publisher::publish`]; none where the node is not active.
    pub fn publish(&self, message: impl Publishable<M>) -> Result<()> {
        if self.is_active() {
            return self.publisher.publish(message);
        }
        self.unsent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Lends memory for a message in every state, as [`Publisher::loan`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Publisher::loan`].
    pub fn loan(&self, template: &M, elements: usize) -> Result<LoanedMessage<M>>
    where
        M: InPlace,
    {
        self.publisher.loan(template, elements)
    }

    /// Lends memory for a message in every state, as [`Publisher::loan_with`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Publisher::loan_with`].
    pub fn loan_with(&self, template: &M, arrays: &[(&str, usize)]) -> Result<LoanedMessage<M>> {
        self.publisher.loan_with(template, arrays)
    }
}

impl<M> LifecyclePublisher<M> {
    /// Whether it sends.
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Acquire)
    }

    /// Messages that were not sent, since the node was not active.
    pub fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }

    /// The publisher under it, which sends in every state.
    pub fn unmanaged(&self) -> &Publisher<M> {
        &self.publisher
    }
}

impl<M> fmt::Debug for LifecyclePublisher<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifecyclePublisher")
            .field("publisher", &self.publisher)
            .field("is_active", &self.is_active())
            .finish_non_exhaustive()
    }
}

/// A service of any type, kept so that it stays.
type AnyService = Box<dyn Any + Send + Sync>;

pub(crate) struct Core {
    node: Node,
    /// Held from a step of the machine until it is told, so that steps take effect and are told in their order.
    steps: Mutex<()>,
    machine: Mutex<Machine>,
    /// Held while one of them runs.
    callbacks: Mutex<Box<dyn Lifecycle>>,
    is_active: Arc<AtomicBool>,
    events: Publisher<TransitionEvent>,
    services: OnceLock<Vec<AnyService>>,
}

fn serve(core: &Arc<Core>, node: &Node) -> Result<Vec<AnyService>> {
    let weak = || Arc::downgrade(core);
    // Where threads are to spare, who asks is answered while a transition is made.
    let asking = node.create_callback_group(CallbackGroupKind::MutuallyExclusive);
    let (changed, state, transitions) = (weak(), weak(), weak());
    Ok(vec![
        Box::new(node.create_service::<ChangeState>("~/change_state", move |request| {
            ChangeStateResponse { success: answer_change(&changed, &request) }
        })?),
        Box::new(node.create_service::<GetState>(
            ServiceOptions::new("~/get_state").group(&asking),
            move |_| GetStateResponse { current_state: standing(&state).into() },
        )?),
        Box::new(node.create_service::<GetAvailableStates>(
            ServiceOptions::new("~/get_available_states").group(&asking),
            |_| GetAvailableStatesResponse {
                available_states: State::ALL.into_iter().map(Into::into).collect(),
            },
        )?),
        Box::new(node.create_service::<GetAvailableTransitions>(
            ServiceOptions::new("~/get_available_transitions").group(&asking),
            move |_| {
                let now = standing(&transitions).transitions();
                GetAvailableTransitionsResponse {
                    available_transitions: now.map(Into::into).collect(),
                }
            },
        )?),
        Box::new(node.create_service::<GetAvailableTransitions>(
            ServiceOptions::new("~/get_transition_graph").group(&asking),
            |_| GetAvailableTransitionsResponse {
                available_transitions: TRANSITIONS.iter().map(Into::into).collect(),
            },
        )?),
    ])
}

fn standing(core: &Weak<Core>) -> State {
    core.upgrade().map_or(State::Unknown, |it| lock(&it.machine).state())
}

/// Whether what is asked for was made. The label counts where there is one, since who fills in the label alone
/// leaves a 0 as the number.
fn answer_change(core: &Weak<Core>, request: &ChangeStateRequest) -> bool {
    let Some(core) = core.upgrade() else { return false };
    let msg::Transition { id, label } = &request.transition;
    let wanted = if label.is_empty() { Wanted::Id(*id) } else { Wanted::Label(label) };
    match core.change(wanted) {
        Ok(outcome) => outcome == Outcome::Success,
        Err(error) => {
            crate::warn!(core.node.logger(), "{error}");
            false
        }
    }
}

impl Core {
    fn change(self: &Arc<Self>, wanted: Wanted<'_>) -> Result<Outcome> {
        // Once it has begun nobody else can begin anything until the last end.
        let begun = self.begin(wanted)?;
        let outcome = self.call(begun.to, begun.from);
        if self.end(outcome) == State::ErrorProcessing {
            let tidied = self.call(State::ErrorProcessing, begun.from);
            self.end(tidied);
        }
        Ok(outcome)
    }

    fn begin(&self, wanted: Wanted<'_>) -> Result<&'static Transition> {
        let step = lock(&self.steps);
        let begun = lock(&self.machine).begin(wanted).map_err(|error| {
            Error::new(error.kind(), format!("{}: {error}", self.node.fully_qualified_name()))
        })?;
        let told = self.made(begun);
        drop(step);
        self.note_untold(told);
        Ok(begun)
    }

    /// The callback has ended; answers where the node stands then.
    fn end(&self, outcome: Outcome) -> State {
        let step = lock(&self.steps);
        let ended = lock(&self.machine).end(outcome);
        let told = ended.map_or(Ok(()), |ended| self.made(ended));
        drop(step);
        self.note_untold(told);
        ended.map_or(State::Unknown, |it| it.to)
    }

    /// Lets publishers send, or not, and tells everybody.
    fn made(&self, transition: &Transition) -> Result<()> {
        self.is_active.store(transition.to == State::Active, Ordering::Release);
        let event = TransitionEvent {
            timestamp: u64::try_from(clock::wall_ns()).unwrap_or_default(),
            transition: transition.into(),
            start_state: transition.from.into(),
            goal_state: transition.to.into(),
        };
        self.events.publish(event).map(|_| ())
    }

    /// The step itself is made, so it is no failure of whoever asked for it. Whoever takes events may ask anything, so
    /// no lock is held here.
    fn note_untold(&self, told: Result<()>) {
        if let Err(error) = told {
            crate::warn!(self.node.logger(), %error, "a transition could not be told");
        }
    }

    /// Runs the callback of a transition state.
    fn call(self: &Arc<Self>, state: State, from: State) -> Outcome {
        let node = LifecycleNode { core: Arc::clone(self) };
        let mut callbacks = lock(&self.callbacks);
        let called = catch_unwind(AssertUnwindSafe(|| match state {
            State::Configuring => callbacks.on_configure(&node, from),
            State::Activating => callbacks.on_activate(&node, from),
            State::Deactivating => callbacks.on_deactivate(&node, from),
            State::CleaningUp => callbacks.on_cleanup(&node, from),
            State::ShuttingDown => callbacks.on_shutdown(&node, from),
            _ => callbacks.on_error(&node, from),
        }));
        called.unwrap_or_else(|panic| {
            let why = panic_text(&*panic);
            crate::error!(self.node.logger(), %state, why, "a callback of the lifecycle panicked");
            Outcome::Error
        })
    }
}
