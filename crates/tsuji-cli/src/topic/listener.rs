//! Receiving whatever type a topic has.

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use tsuji::{
    Executor, MessageInfo, RawSample, RawSubscription, RawType, SubscriptionCounters,
    SubscriptionEvent,
};
use tsuji_core::{History, Qos, Reliability};
use tsuji_platform::clock;

use crate::output;
use crate::session::Session;

/// A subscription, and the samples that came.
pub(crate) struct Listener {
    executor: Executor,
    subscription: RawSubscription,
    samples: Receiver<RawSample>,
}

impl Listener {
    /// Subscribes. Publishers that do not fit are told on standard error.
    pub(crate) fn open(
        session: &Session,
        topic: &str,
        of: RawType,
        qos: Qos,
    ) -> anyhow::Result<Self> {
        let node = session.hidden_node()?;
        // What a turn of the executor brings is taken before the next, so this stays short.
        let (sender, samples) = mpsc::channel();
        let name = topic.to_owned();
        let subscription = node
            .raw_subscription(topic, of)
            .qos(qos)
            .on_event(move |event| tell(&name, event))
            .callback(move |sample| {
                // The receiver is gone only when the command ends.
                let _ = sender.send(sample);
            })?;
        let mut executor = Executor::new(&session.context)?;
        executor.add(&node)?;
        Ok(Self { executor, subscription, samples })
    }

    /// Subscribes to a topic whose messages are measured and not read, once it has a type; `None`
    /// when the command is to end before.
    pub(super) fn of_any_type(session: &Session, topic: &str) -> anyhow::Result<Option<Self>> {
        let Some(name) = type_to_measure(session, topic)? else { return Ok(None) };
        // Any version of the type will do.
        Self::measuring(session, topic, RawType { name, hash: String::new() }).map(Some)
    }

    /// Subscribes to a topic whose messages are measured, of any reliability.
    pub(super) fn measuring(session: &Session, topic: &str, of: RawType) -> anyhow::Result<Self> {
        let qos = Qos {
            reliability: Reliability::BestEffort,
            history: History::KeepLast(MEASURED_DEPTH),
            ..Qos::DEFAULT
        };
        Self::open(session, topic, of, qos)
    }

    /// Waits until something happened, at most so long.
    pub(crate) fn wait(&mut self, at_most: Duration) -> anyhow::Result<()> {
        Ok(self.executor.spin_once(at_most)?)
    }

    /// The oldest sample that was not taken.
    pub(crate) fn take(&self) -> Option<RawSample> {
        self.samples.try_recv().ok()
    }

    /// What the subscription has seen so far.
    pub(crate) fn counters(&self) -> SubscriptionCounters {
        self.subscription.counters()
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
    super::only_type(session, topic, "measure", "")
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
