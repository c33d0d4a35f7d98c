//! Receiving whatever type a topic has.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use tsuji::{
    Executor, MessageInfo, Node, RawSample, RawSubscription, RawType, SubscriptionCounters,
    SubscriptionEvent, SubscriptionOptions,
};
use tsuji_core::{History, Qos, Reliability};
use tsuji_platform::clock;

use crate::output;
use crate::session::Session;

/// Subscriptions, and the samples that came.
pub(crate) struct Listener {
    executor: Executor,
    node: Node,
    subscriptions: Vec<RawSubscription>,
    sender: Sender<(usize, RawSample)>,
    samples: Receiver<(usize, RawSample)>,
}

impl Listener {
    /// Subscribes. Publishers that do not fit are told on standard error.
    pub(crate) fn open(
        session: &Session,
        topic: &str,
        of: RawType,
        qos: Qos,
    ) -> anyhow::Result<Self> {
        Self::of_node(session, &session.hidden_node()?, topic, of, qos)
    }

    /// The same by a node that others see.
    pub(super) fn of_node(
        session: &Session,
        node: &Node,
        topic: &str,
        of: RawType,
        options: impl Into<SubscriptionOptions>,
    ) -> anyhow::Result<Self> {
        let mut listener = Self::of_nothing(session, node)?;
        listener.add(topic, of, options)?;
        Ok(listener)
    }

    /// Is there for subscriptions that are added.
    pub(super) fn of_nothing(session: &Session, node: &Node) -> anyhow::Result<Self> {
        // What a turn of the executor brings is taken before the next, so this stays short.
        let (sender, samples) = mpsc::channel();
        let mut executor = Executor::new(&session.context)?;
        executor.add(node)?;
        Ok(Self { executor, node: node.clone(), subscriptions: Vec::new(), sender, samples })
    }

    /// Subscribes to one more topic.
    fn add(
        &mut self,
        topic: &str,
        of: RawType,
        options: impl Into<SubscriptionOptions>,
    ) -> anyhow::Result<()> {
        let (sender, number, name) =
            (self.sender.clone(), self.subscriptions.len(), topic.to_owned());
        let subscription = self.node.create_raw_subscription(
            topic,
            of,
            options.into().on_event(move |event| tell(&name, event)),
            move |sample| {
                // The receiver is gone only when the command ends.
                let _ = sender.send((number, sample));
            },
        )?;
        self.subscriptions.push(subscription);
        Ok(())
    }

    /// Subscribes to a topic whose messages are measured, of any reliability.
    pub(super) fn measure(&mut self, topic: &str, of: RawType) -> anyhow::Result<()> {
        let qos = Qos {
            reliability: Reliability::BestEffort,
            history: History::KeepLast(MEASURED_DEPTH),
            ..Qos::DEFAULT
        };
        self.add(topic, of, qos)
    }

    /// Waits until something happened, at most so long.
    pub(crate) fn wait(&mut self, at_most: Duration) -> anyhow::Result<()> {
        Ok(self.executor.spin_once(at_most)?)
    }

    /// The oldest sample that was not taken.
    pub(crate) fn take(&self) -> Option<RawSample> {
        self.take_numbered().map(|(_, sample)| sample)
    }

    /// The same with the number of its subscription, in the order in which they were made.
    pub(super) fn take_numbered(&self) -> Option<(usize, RawSample)> {
        self.samples.try_recv().ok()
    }

    /// What the first subscription has seen so far.
    pub(crate) fn counters(&self) -> SubscriptionCounters {
        self.subscriptions.first().map(RawSubscription::counters).unwrap_or_default()
    }
}

/// Messages that wait to be measured. When there are more, the oldest are not.
const MEASURED_DEPTH: u32 = 1000;

/// The type of a topic that is to be measured, once it has one; `None` when the command is to end
/// before.
pub(super) fn type_to_measure(session: &Session, topic: &str) -> anyhow::Result<Option<String>> {
    if !super::is_published(&session.graph(), topic) {
        super::not_published(topic);
    }
    super::only_type(session, topic, "measure", "", None)
}

/// When a sample came, in nanoseconds since the Unix epoch.
pub(super) fn received_wall_ns(info: &MessageInfo) -> i64 {
    // By this machine's clocks alone: the publisher's may be another's.
    let since_ns = clock::monotonic_ns().saturating_sub(info.received_mono_ns);
    clock::wall_ns().saturating_sub_unsigned(since_ns)
}

fn tell(topic: &str, event: SubscriptionEvent) {
    match event {
        SubscriptionEvent::IncompatibleQos { mismatches, .. } => output::warning(format_args!(
            "New publisher discovered on topic '{topic}', offering incompatible QoS. No messages will be received \
             from it. {}",
            mismatches.join("; ")
        )),
        SubscriptionEvent::IncompatibleType { mismatch, .. } => output::warning(format_args!(
            "New publisher discovered on topic '{topic}', of another type. No messages will be received from it. \
             {mismatch}"
        )),
        _ => {}
    }
}
