//! Publishers.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::{Qos, Reliability};
use tsuji_msg::{InPlace, Message};
use tsuji_platform::clock;
use tsuji_transport::{Bytes, Gid, Loan};

use crate::executor::Entity;
use crate::pacing::after;
use crate::publication::{Outgoing, Publication, PublisherCounters};
use crate::{Error, ErrorKind, Node, Result};

/// Publishes messages of type `M`. Shared between threads by reference.
///
/// A reliable publish that finds no room (a subscription that keeps all and is full, or memory
/// that is all in use) waits for at most the publisher's `max_blocking`, then answers Busy. One of
/// best effort gives the sample up and counts it; to its subscriptions it is lost. A loan that finds
/// no memory waits likewise; by best effort it answers Busy at once.
///
/// A message that this one pushes out of a full subscription in the same process may be dropped in
/// the middle of publishing: its `Drop` must not call its publisher.
pub struct Publisher<M> {
    raw: RawPublisher,
    message: PhantomData<fn(M)>,
}

impl<M: Message> Publisher<M> {
    pub(crate) fn new(raw: RawPublisher) -> Self {
        Self { raw, message: PhantomData }
    }

    /// Publishes a message: `M` or `Arc<M>` reach subscriptions in this process by reference, `&M`
    /// is copied if there are such, a [`LoanedMessage`] goes as it stands. For other processes a
    /// message is serialised once, straight into the memory that carries it.
    pub fn publish(&self, message: impl Publishable<M>) -> Result<()> {
        message.publish_by(self)
    }

    /// Lends memory for a message whose long array has `elements`. All but the array's contents is
    /// taken from `template`. Waits for memory as a publish does: whoever holds all of it in loans of
    /// its own waits in vain.
    pub fn loan(&self, template: &M, elements: usize) -> Result<LoanedMessage<M>>
    where
        M: InPlace,
    {
        let mut loan = self.raw.loan(template.in_place_size(elements))?;
        let data = template.serialize_in_place(elements, &mut loan)?;
        Ok(LoanedMessage { loan, data, message: PhantomData })
    }
}

impl<M> Deref for Publisher<M> {
    type Target = RawPublisher;

    fn deref(&self) -> &RawPublisher {
        &self.raw
    }
}

impl<M> std::fmt::Debug for Publisher<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.raw.fmt(f)
    }
}

/// What [`Publisher::publish`] takes.
pub trait Publishable<M> {
    /// Publishes itself.
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()>;
}

impl<M: Message> Publishable<M> for M {
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()> {
        // A subscription in this process wants it shared; others only look at it.
        if publisher.raw.publication.has_readers_by_value() {
            return publisher.raw.publication.publish(&Outgoing::Shared(Arc::new(self)));
        }
        publisher.raw.publication.publish(&Outgoing::Borrowed(&self))
    }
}

impl<M: Message> Publishable<M> for &M {
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()> {
        publisher.raw.publication.publish(&Outgoing::Borrowed(self))
    }
}

impl<M: Message> Publishable<M> for Arc<M> {
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()> {
        let shared: Arc<dyn Any + Send + Sync> = self;
        publisher.raw.publication.publish(&Outgoing::Shared(shared))
    }
}

impl<M: Message> Publishable<M> for LoanedMessage<M> {
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()> {
        publisher.raw.publish_loan(self.loan)
    }
}

/// A message in the memory that will carry it. Dropping it unpublished gives the memory back.
///
/// The memory holds an old sample until it is drawn over.
#[derive(Debug)]
pub struct LoanedMessage<M> {
    loan: Loan,
    data: Range<usize>,
    message: PhantomData<fn(M)>,
}

impl<M> LoanedMessage<M> {
    /// The bytes of the long array, little endian, to be drawn.
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.loan[self.data.clone()]
    }

    /// The whole message, serialised.
    pub fn bytes(&self) -> &[u8] {
        &self.loan
    }
}

impl<M> Deref for LoanedMessage<M> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.loan[self.data.clone()]
    }
}

impl<M> DerefMut for LoanedMessage<M> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.data_mut()
    }
}

/// Publishes serialised messages. Also what every [`Publisher`] derefs to.
pub struct RawPublisher {
    node: Node,
    pub(crate) publication: Arc<Publication>,
    entity: Option<Arc<dyn Entity>>,
}

impl RawPublisher {
    pub(crate) fn new(
        node: Node,
        publication: Arc<Publication>,
        entity: Option<Arc<dyn Entity>>,
    ) -> Self {
        Self { node, publication, entity }
    }

    /// Publishes a message in CDR with its header of 4 bytes. It is copied once.
    pub fn publish_bytes(&self, message: &[u8]) -> Result<()> {
        self.check_length(message)?;
        self.publication.publish(&Outgoing::Copied(message))
    }

    /// Lends memory of the road that will carry the sample, and waits for it as a publish does.
    /// Write CDR with its header there.
    pub fn loan_bytes(&self, len: usize) -> Result<Loan> {
        self.loan(len)
    }

    /// Publishes a loan.
    pub fn publish_loan(&self, loan: Loan) -> Result<()> {
        self.check_length(&loan)?;
        self.publish_frozen(loan.freeze())
    }

    /// Publishes bytes that somebody shares, such as those of a received sample.
    pub fn publish_frozen(&self, bytes: Bytes) -> Result<()> {
        self.publication.publish(&Outgoing::Bytes(bytes))
    }

    /// How many subscriptions are connected.
    pub fn matched(&self) -> usize {
        self.publication.readers()
    }

    /// Waits until at least `count` subscriptions are connected.
    pub fn wait_for_subscriptions(&self, count: usize, timeout: Duration) -> Result<()> {
        let gid = self.publication.gid;
        let waited = self
            .node
            .context()
            .host()
            .wait_for(timeout, |directory| (count <= directory.readers(gid)).then_some(()))?;
        waited.ok_or_else(|| {
            Error::new(
                ErrorKind::Timeout,
                format!(
                    "{}: {} of {count} subscriptions within {timeout:?}",
                    self.topic(),
                    self.matched()
                ),
            )
        })
    }

    /// Waits until all that was published has come to every subscription, for at most `timeout`; then it answers
    /// [`Timeout`](ErrorKind::Timeout). Best effort waits for nothing.
    pub fn wait_for_acknowledgements(&self, timeout: Duration) -> Result<()> {
        let give_up_ns = after(clock::monotonic_ns(), timeout);
        let mut pause = Duration::from_micros(100);
        while self.qos().reliability == Reliability::Reliable
            && !self.publication.is_acknowledged()?
        {
            let left_ns = give_up_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 {
                let what = format!("{}: not all is acknowledged within {timeout:?}", self.topic());
                return Err(Error::new(ErrorKind::Timeout, what));
            }
            // Engines tell nobody, so they are asked.
            std::thread::sleep(pause.min(Duration::from_nanos(left_ns)));
            pause = (2 * pause).min(Duration::from_millis(10));
        }
        Ok(())
    }

    /// The full topic name.
    pub fn topic(&self) -> &str {
        &self.publication.topic
    }

    /// The type's name.
    pub fn type_name(&self) -> &str {
        &self.publication.type_name
    }

    /// What it offers.
    pub fn qos(&self) -> &Qos {
        &self.publication.qos
    }

    /// Its number.
    pub fn gid(&self) -> Gid {
        self.publication.gid
    }

    /// What it has done so far.
    pub fn counters(&self) -> PublisherCounters {
        self.publication.counters()
    }

    /// Shows that it is alive, where its liveliness is manual.
    pub fn assert_liveliness(&self) -> Result<()> {
        let host = self.node.context().host();
        host.open("assert liveliness")?;
        self.publication.assert_liveliness();
        host.directory().assert_alive(self.publication.gid);
        Ok(())
    }

    fn loan(&self, len: usize) -> Result<Loan> {
        self.publication.loan(len)
    }

    fn check_length(&self, message: &[u8]) -> Result<()> {
        if 4 <= message.len() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "publish on {}: {} bytes; allowed: CDR with its header of 4 bytes",
            self.topic(),
            message.len()
        )))
    }
}

impl Drop for RawPublisher {
    fn drop(&mut self) {
        let host = self.node.context().host();
        if !host.is_current() {
            return;
        }
        if let Some(entity) = &self.entity {
            self.node.run_no_more(entity);
        }
        host.directory().remove_local(host, self.publication.gid);
        host.tell();
    }
}

impl std::fmt::Debug for RawPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").field("topic", &self.topic()).finish_non_exhaustive()
    }
}
