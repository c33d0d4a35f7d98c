//! Publishers.

use std::any::Any;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::names::Remapped;
use tsuji_core::{Qos, Reliability};
use tsuji_msg::{ArrayLayout, DynamicMessage, InPlace, Message, Number, Room, Template};
use tsuji_platform::clock;
use tsuji_transport::{Bytes, Gid, Loan};

use crate::executor::Entity;
use crate::options::EndpointOptions;
use crate::pacing::after;
use crate::publisher_core::{Outgoing, PublisherCore, PublisherCounters, PublisherSpec};
use crate::subscription::EventEntity;
use crate::{Error, ErrorKind, Node, PublisherOptions, RawType, Result};

/// Publishes messages of type `M`. Shared between threads by reference.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::{Context, Qos};
/// use tsuji::interfaces::std_msgs::msg::String as Text;
///
/// let node = Context::new()?.node("talker")?;
/// let publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT)?;
/// publisher.wait_for_subscriptions(1, Duration::from_secs(5))?;
/// publisher.publish(Text { data: "hello".into() })?;
/// publisher.wait_for_acknowledgements(Duration::from_secs(1))?;
/// # Ok::<_, tsuji::Error>(())
/// ```
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

    /// Publishes a message: `M`, `&M`, `Arc<M>` or a [`LoanedMessage`].
    ///
    /// `M` and `Arc<M>` reach subscriptions in this process by reference, `&M` is copied if there are such, a
    /// [`LoanedMessage`] goes as it stands. For other processes a message is serialised once, straight into the
    /// memory that carries it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] or [`ErrorKind::Exhausted`] if a reliable publish finds no room within `max_blocking`;
    /// [`ErrorKind::TooLarge`] if the message is larger than a link carries; [`ErrorKind::Invalid`] if it breaks a
    /// limit of its type; [`ErrorKind::Closed`] when the context is shut down, in a forked child, or if all that
    /// listened are gone when there is room.
    pub fn publish(&self, message: impl Publishable<M>) -> Result<()> {
        message.publish_by(self)
    }

    /// Lends memory for a message whose long array has `elements`.
    ///
    /// All but the array's contents is taken from `template`. Waits for memory as a publish does: whoever holds all
    /// of it in loans of its own waits in vain. For other messages than those of one long array there is
    /// [`loan_with`](Self::loan_with).
    ///
    /// # Errors
    ///
    /// Those of [`RawPublisher::loan_bytes`]; [`ErrorKind::Invalid`] if `template` breaks a limit of its type.
    pub fn loan(&self, template: &M, elements: usize) -> Result<LoanedMessage<M>>
    where
        M: InPlace,
    {
        self.raw.loan_around(template, &mut [Room::new(M::ARRAY, elements)])
    }

    /// Lends memory for a message with these arrays of numbers: the path of each, such as `ranges` or `image.data`,
    /// and how many elements it has.
    ///
    /// Their contents are for the loan's user to write; all else is taken from `template`, and so are arrays that are
    /// not named. Waits for memory as [`loan`](Self::loan) does.
    ///
    /// # Errors
    ///
    /// Those of [`RawPublisher::loan_bytes`]; [`ErrorKind::Invalid`] if the message has no array of numbers of such a
    /// path, an array may not have so many elements, or `template` breaks another limit of its type.
    ///
    /// ```no_run
    /// use tsuji::{Context, Qos};
    /// use tsuji::interfaces::sensor_msgs::msg::LaserScan;
    ///
    /// let node = Context::new()?.node("laser")?;
    /// let publisher = node.create_publisher::<LaserScan>("scan", Qos::SENSOR_DATA)?;
    /// let template = LaserScan { range_max: 30.0, ..LaserScan::default() };
    /// let mut loan = publisher.loan_with(&template, &[("ranges", 360), ("intensities", 360)])?;
    /// let [ranges, intensities] = loan.arrays_mut::<f32, 2>(["ranges", "intensities"])?;
    /// for (range, intensity) in ranges.iter_mut().zip(intensities) {
    ///     (*range, *intensity) = (1.5, 200.0);
    /// }
    /// publisher.publish(loan)?;
    /// # Ok::<_, tsuji::Error>(())
    /// ```
    pub fn loan_with(&self, template: &M, arrays: &[(&str, usize)]) -> Result<LoanedMessage<M>> {
        self.raw.loan_around(template, &mut rooms(arrays))
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

/// A value that [`Publisher::publish`] takes.
pub trait Publishable<M> {
    /// Publishes itself.
    ///
    /// # Errors
    ///
    /// Those of [`Publisher::publish`].
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()>;
}

impl<M: Message> Publishable<M> for M {
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()> {
        // A subscription in this process wants it shared; others only look at it.
        if publisher.raw.publisher_core.has_readers_by_value() {
            return publisher.raw.publisher_core.publish(&Outgoing::Shared(Arc::new(self)));
        }
        publisher.raw.publisher_core.publish(&Outgoing::Borrowed(&self))
    }
}

impl<M: Message> Publishable<M> for &M {
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()> {
        publisher.raw.publisher_core.publish(&Outgoing::Borrowed(self))
    }
}

impl<M: Message> Publishable<M> for Arc<M> {
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()> {
        let shared: Arc<dyn Any + Send + Sync> = self;
        publisher.raw.publisher_core.publish(&Outgoing::Shared(shared))
    }
}

impl<M: Message> Publishable<M> for LoanedMessage<M> {
    fn publish_by(self, publisher: &Publisher<M>) -> Result<()> {
        publisher.raw.publish_loan(self.loan)
    }
}

/// A message in the memory that will carry it. Dropping it unpublished gives the memory back.
///
/// The arrays that were asked for hold an old sample until they are written.
///
/// ```no_run
/// use tsuji::{Context, Qos};
/// use tsuji::interfaces::sensor_msgs::msg::Image;
///
/// let node = Context::new()?.node("camera")?;
/// let publisher = node.create_publisher::<Image>("image", Qos::SENSOR_DATA)?;
/// // All of a picture but its pixels.
/// let template = Image { width: 640, height: 480, step: 640, encoding: "mono8".into(), ..Image::default() };
/// let mut loan = publisher.loan(&template, 640 * 480)?;
/// loan.data_mut().fill(128);
/// publisher.publish(loan)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Debug)]
pub struct LoanedMessage<M> {
    loan: Loan,
    layout: ArrayLayout,
    data: Range<usize>,
    message: PhantomData<fn(M)>,
}

impl<M> LoanedMessage<M> {
    /// Returns the bytes of the first array that was asked for, little endian, to be written.
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.loan[self.data.clone()]
    }

    /// Returns the array of numbers at `path`, such as `ranges` or `channels[2].values`, to be written.
    ///
    /// Arrays that were not asked for are there, too, as the template has them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the message has no such array, or one of other numbers.
    pub fn array_mut<T: Number>(&mut self, path: &str) -> Result<&mut [T]> {
        Ok(self.layout.array_mut(&mut self.loan, path)?)
    }

    /// Returns several arrays of the same numbers, to be written at once.
    ///
    /// # Errors
    ///
    /// Those of [`array_mut`](Self::array_mut); [`ErrorKind::Invalid`] if an array is named twice.
    pub fn arrays_mut<T: Number, const N: usize>(
        &mut self,
        paths: [&str; N],
    ) -> Result<[&mut [T]; N]> {
        Ok(self.layout.arrays_mut(&mut self.loan, paths)?)
    }

    /// Returns the whole message, serialised.
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

impl<M> From<LoanedMessage<M>> for Loan {
    fn from(message: LoanedMessage<M>) -> Self {
        message.loan
    }
}

fn rooms<'a>(arrays: &[(&'a str, usize)]) -> Vec<Room<'a>> {
    arrays.iter().map(|(path, elements)| Room::new(path, *elements)).collect()
}

/// Publishes serialised messages. Also what every [`Publisher`] derefs to.
///
/// ```no_run
/// use tsuji::{Context, Qos};
///
/// let node = Context::new()?.node("talker")?;
/// let publisher = node.create_raw_publisher("count", "std_msgs/msg/UInt32", Qos::DEFAULT)?;
/// // The header of CDR, little endian, and the number 7.
/// publisher.publish_bytes(&[0, 1, 0, 0, 7, 0, 0, 0])?;
/// # Ok::<_, tsuji::Error>(())
/// ```
pub struct RawPublisher {
    node: Node,
    pub(crate) publisher_core: Arc<PublisherCore>,
    entity: Option<Arc<dyn Entity>>,
}

impl RawPublisher {
    pub(crate) fn new(
        node: Node,
        publisher_core: Arc<PublisherCore>,
        entity: Option<Arc<dyn Entity>>,
    ) -> Self {
        Self { node, publisher_core, entity }
    }

    /// The publisher of a topic, of messages as `spec` says.
    pub(crate) fn create(
        node: &Node,
        topic: &str,
        of: RawType,
        options: PublisherOptions,
        spec: PublisherSpec,
    ) -> Result<Self> {
        let EndpointOptions { qos, group, on_event, of_kind } = options;
        let core = node.endpoint("create a publisher", Remapped::Topic, topic, of, qos)?;
        let session = node.context().session();
        let (expected_bytes, max_blocking) = (of_kind.expected_bytes, of_kind.max_blocking);
        let spec = PublisherSpec { expected_bytes, max_blocking, ..spec };
        let publisher_core = PublisherCore::of_topic(core, spec)?;
        if let Some(note) = of_kind.note {
            publisher_core.events.note(note);
        }
        let mut entity: Option<Arc<dyn Entity>> = None;
        if let Some(on_event) = on_event {
            let cell = Arc::new(session.bells().claim_cell()?);
            publisher_core.events.listen(Arc::clone(&cell));
            let source = Arc::clone(&publisher_core);
            let pop = Box::new(move || source.events.pop());
            let group = group.unwrap_or_else(|| node.group().clone());
            let events: Arc<dyn Entity> = Arc::new(EventEntity::new(cell, group, pop, on_event));
            node.run(&events)?;
            entity = Some(events);
        }
        session.graph_cache().add_publisher_core(session, &publisher_core);
        session.tell();
        if qos.deadline.is_some() || qos.liveliness_lease.is_some() {
            session.waker.give();
        }
        Ok(Self::new(node.clone(), publisher_core, entity))
    }

    /// Publishes a message in CDR with its header of 4 bytes. It is copied once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if `message` is shorter than 4 bytes; else as [`publish_frozen`](Self::publish_frozen).
    pub fn publish_bytes(&self, message: &[u8]) -> Result<()> {
        self.check_length(message)?;
        self.publisher_core.publish(&Outgoing::Copied(message))
    }

    pub(crate) fn publish_said(&self, message: &Outgoing<'_>) -> Result<()> {
        self.publisher_core.publish(message)
    }

    /// Lends memory of `len` bytes of the link that will carry the sample, and waits for it as a publish does.
    ///
    /// Write CDR with its header of 4 bytes there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] or [`ErrorKind::Exhausted`] if there is no memory, of a reliable publisher after
    /// `max_blocking`; [`ErrorKind::TooLarge`] if the link never lends so much; [`ErrorKind::Closed`] when the
    /// context is shut down or in a forked child.
    pub fn loan_bytes(&self, len: usize) -> Result<Loan> {
        self.publisher_core.loan(len)
    }

    /// Lends memory for a message of a type known at run time, as [`Publisher::loan_with`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Publisher::loan_with`]; [`ErrorKind::Invalid`] if `template` is not of the publisher's type.
    ///
    /// ```no_run
    /// use tsuji::dynamic::{DynamicMessage, TypeSet};
    /// use tsuji::interfaces::Shipped;
    /// use tsuji::{Context, Qos};
    ///
    /// let node = Context::new()?.node("laser")?;
    /// let ty = TypeSet::new(Shipped).load("sensor_msgs/msg/LaserScan")?;
    /// let publisher = node.create_raw_publisher("scan", "sensor_msgs/msg/LaserScan", Qos::DEFAULT)?;
    /// let template = DynamicMessage::from_yaml(&ty, "range_max: 30.0")?;
    /// let mut loan = publisher.loan_with(&template, &[("ranges", 360)])?;
    /// loan.array_mut::<f32>("ranges")?.fill(1.5);
    /// publisher.publish_loan(loan)?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn loan_with(
        &self,
        template: &DynamicMessage,
        arrays: &[(&str, usize)],
    ) -> Result<LoanedMessage<DynamicMessage>> {
        let ty = template.type_name();
        if ty != self.type_name() {
            return Err(Error::invalid(format!(
                "loan on {}: the template is a {ty}; allowed: {}",
                self.topic(),
                self.type_name()
            )));
        }
        self.loan_around(template, &mut rooms(arrays))
    }

    /// Publishes a loan.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if it is shorter than 4 bytes; else as [`publish_frozen`](Self::publish_frozen).
    pub fn publish_loan(&self, loan: impl Into<Loan>) -> Result<()> {
        let loan = loan.into();
        self.check_length(&loan)?;
        self.publish_frozen(loan.freeze())
    }

    /// Publishes bytes that somebody shares, such as those of a received sample.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] or [`ErrorKind::Exhausted`] if a reliable publish finds no room within `max_blocking`;
    /// [`ErrorKind::TooLarge`] if the message is larger than a link carries; [`ErrorKind::Invalid`] if a link
    /// refuses it as no CDR; [`ErrorKind::Closed`] when the context is shut down, in a forked child, or if all that
    /// listened are gone when there is room.
    pub fn publish_frozen(&self, bytes: Bytes) -> Result<()> {
        self.publisher_core.publish(&Outgoing::Bytes(bytes))
    }

    /// Returns how many subscriptions are connected.
    pub fn matched(&self) -> usize {
        self.publisher_core.readers()
    }

    /// Waits until at least `count` subscriptions are connected.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if there are fewer after `timeout`, [`ErrorKind::Closed`] when the context is shut
    /// down or in a forked child.
    pub fn wait_for_subscriptions(&self, count: usize, timeout: Duration) -> Result<()> {
        let gid = self.publisher_core.gid;
        let waited =
            self.node.context().session().wait_for(timeout, |graph_cache| {
                (count <= graph_cache.readers(gid)).then_some(())
            })?;
        waited.ok_or_else(|| {
            let what = format!("{}: {} of {count} subscriptions", self.topic(), self.matched());
            Error::new(ErrorKind::Timeout, what).within(timeout)
        })
    }

    /// Returns the addresses of this host from which the network is sent what it publishes: to foreign nodes, and to other hosts.
    ///
    /// They are those of Cyclone DDS, one of each interface that it uses; other engines do not tell theirs. Nothing while the
    /// network is not joined: a publisher need not have any subscription there.
    pub fn network_addresses(&self) -> Vec<SocketAddr> {
        let session = self.node.context().session();
        if session.is_current() { session.network_addresses().sends } else { Vec::new() }
    }

    /// Waits until all that was published has come to every subscription. Best effort waits for nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if something is still on its way after `timeout`, [`ErrorKind::Closed`] when the
    /// context is shut down or in a forked child.
    pub fn wait_for_acknowledgements(&self, timeout: Duration) -> Result<()> {
        let give_up_ns = after(clock::monotonic_ns(), timeout);
        let mut pause = Duration::from_micros(100);
        while self.qos().reliability == Reliability::Reliable
            && !self.publisher_core.is_acknowledged()?
        {
            let left_ns = give_up_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 {
                let what = format!("{}: not all is acknowledged", self.topic());
                return Err(Error::new(ErrorKind::Timeout, what).within(timeout));
            }
            // Engines tell nobody, so they are asked.
            std::thread::sleep(pause.min(Duration::from_nanos(left_ns)));
            pause = (2 * pause).min(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Returns the full topic name.
    pub fn topic(&self) -> &str {
        &self.publisher_core.topic
    }

    /// Returns the name of the type, such as `std_msgs/msg/String`.
    pub fn type_name(&self) -> &str {
        &self.publisher_core.type_name
    }

    /// Returns the QoS that the publisher offers.
    pub fn qos(&self) -> &Qos {
        &self.publisher_core.qos
    }

    /// Returns the global identifier of this publisher: 16 bytes, as in the graph.
    pub fn gid(&self) -> Gid {
        self.publisher_core.gid
    }

    /// Returns what the publisher has done so far.
    pub fn counters(&self) -> PublisherCounters {
        self.publisher_core.counters()
    }

    /// Shows that the publisher is alive, where its liveliness is manual.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn assert_liveliness(&self) -> Result<()> {
        let session = self.node.context().session();
        session.open("assert liveliness")?;
        self.publisher_core.both().for_each(PublisherCore::assert_liveliness);
        Ok(())
    }

    fn loan_around<T: Template>(
        &self,
        template: &T,
        rooms: &mut [Room<'_>],
    ) -> Result<LoanedMessage<T>> {
        let mut loan = self.loan_bytes(template.size_around(rooms)?)?;
        template.serialize_around(rooms, &mut loan)?;
        let data = rooms.first().map(Room::place).unwrap_or_default();
        Ok(LoanedMessage { loan, layout: template.layout(), data, message: PhantomData })
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
        let session = self.node.context().session();
        if !session.is_current() {
            return;
        }
        if let Some(entity) = &self.entity {
            self.node.run_no_more(entity);
        }
        session.graph_cache().remove_local(session, self.publisher_core.gid);
        session.tell();
    }
}

impl std::fmt::Debug for RawPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").field("topic", &self.topic()).finish_non_exhaustive()
    }
}
