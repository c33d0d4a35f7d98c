//! Subscriptions, and what they hand over.

use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{self, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use tsuji_core::Qos;
use tsuji_core::names::Remapped;
use tsuji_msg::{ArrayLayout, ArrayView, Message, Number};
use tsuji_platform::ordered::Mutex;
use tsuji_transport::bell::Cell;
use tsuji_transport::{Bytes, Envelope, Gid, Payload, Sample};

use crate::arrivals::{Listener, NewMessageCallback};
use crate::content_filter::Described;
use crate::executor::Entity;
use crate::latency::{Latency, Taken};
use crate::options::EndpointOptions;
use crate::subscription_core::{SubscriptionCore, SubscriptionCounters, SubscriptionSpec};
use crate::wait_list::sealed::{Owner, Source};
use crate::{
    CallbackGroup, ContentFilterOptions, Error, ErrorKind, Node, RawType, Result,
    SubscriptionOptions, Waitable,
};

/// What is done with each sample, and when it was taken.
pub(crate) type Each = Box<dyn FnMut(Sample, Taken) + Send>;

/// Times, publisher and number of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageInfo {
    /// Time of publishing, in nanoseconds since the Unix epoch, by the publisher's clock. 0 or less
    /// where it does not say.
    pub source_wall_ns: i64,
    /// Time of publishing on this process's monotonic clock, in nanoseconds. `None` where that is not known: what
    /// comes by an engine does not carry it, and processes of two time namespaces have two such clocks.
    pub source_mono_ns: Option<u64>,
    /// Time of taking on this host's monotonic clock, in nanoseconds.
    pub received_mono_ns: u64,
    /// Global identifier of the publisher.
    pub publisher: Gid,
    /// Number of the message among those of its publisher, from 1.
    pub sequence: u64,
    latency: Option<Latency>,
}

impl MessageInfo {
    fn new(envelope: &Envelope, taken: Taken) -> Self {
        Self {
            source_wall_ns: envelope.wall_ns,
            source_mono_ns: Some(envelope.mono_ns).filter(|ns| *ns != 0),
            received_mono_ns: taken.mono_ns,
            publisher: envelope.gid,
            sequence: envelope.sequence,
            latency: taken.latency,
        }
    }

    /// Returns the time from publish to take, with the clock that measured it.
    ///
    /// That is the monotonic clock where both ends share it, else the wall clocks. `None` where a publisher that is not
    /// tsuji's says no time.
    pub fn latency(&self) -> Option<Latency> {
        self.latency
    }
}

/// A received message: the publisher's own value when it is in this process, else its bytes, in
/// place. The memory is lent until this is dropped.
pub struct Received<M> {
    info: MessageInfo,
    content: Content<M>,
}

enum Content<M> {
    Value(Arc<M>),
    /// Checked to be a valid message.
    Bytes(Bytes),
}

impl<M: Message> Received<M> {
    /// Bytes must have been checked to be a valid message. `None` for a value of another type.
    pub(crate) fn new(sample: Sample, taken: Taken) -> Option<Self> {
        let info = MessageInfo::new(&sample.envelope, taken);
        let content = match sample.payload {
            Payload::Typed(value) => Content::Value(value.downcast().ok()?),
            Payload::Bytes(bytes) => Content::Bytes(bytes),
        };
        Some(Self { info, content })
    }

    /// Returns times, publisher and number of the message.
    pub fn info(&self) -> &MessageInfo {
        &self.info
    }

    /// Returns the message in place, without a copy.
    pub fn view(&self) -> M::View<'_> {
        match &self.content {
            Content::Value(value) => value.view(),
            Content::Bytes(bytes) => match M::view_cdr(bytes) {
                Ok(view) => view,
                Err(error) => unreachable!("it was checked before it was handed over: {error}"),
            },
        }
    }

    /// Returns the array of numbers at `path`, such as `ranges` or `channels[2].values`, in place.
    ///
    /// Of a message that came as bytes no more is read than what stands before the array, where
    /// [`view`](Self::view) reads all. [`ArrayView::as_slice`] gives the array as a slice wherever it lies aligned and
    /// in this machine's byte order, as in all that tsuji has sent; the rest of the view works in every case.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the message has no such array, or one of other numbers.
    ///
    /// ```no_run
    /// use tsuji::interfaces::sensor_msgs::msg::LaserScan;
    /// use tsuji::{Received, Result};
    ///
    /// fn nearest(scan: &Received<LaserScan>) -> Result<f32> {
    ///     Ok(scan.array::<f32>("ranges")?.iter().fold(f32::INFINITY, f32::min))
    /// }
    /// ```
    pub fn array<T: Number>(&self, path: &str) -> Result<ArrayView<'_, T>> {
        Ok(match &self.content {
            Content::Value(value) => value.array(path)?.into(),
            Content::Bytes(bytes) => ArrayLayout::of::<M>().array(bytes, path)?,
        })
    }

    /// Returns the message as a value: the publisher's own, or a copy.
    pub fn message(&self) -> Arc<M> {
        match &self.content {
            Content::Value(value) => Arc::clone(value),
            Content::Bytes(bytes) => match M::deserialize(bytes) {
                Ok(message) => Arc::new(message),
                Err(error) => unreachable!("it was checked before it was handed over: {error}"),
            },
        }
    }

    /// Returns the bytes in CDR with their header of 4 bytes; `None` if the message came as a value.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Value(_) => None,
            Content::Bytes(bytes) => Some(bytes),
        }
    }

    /// Returns true if it is the publisher's own value.
    pub fn is_by_reference(&self) -> bool {
        matches!(self.content, Content::Value(_))
    }
}

impl<M: Message> std::fmt::Debug for Received<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Received").field("info", &self.info).finish_non_exhaustive()
    }
}

/// A received message as bytes.
///
/// Where its arrays of numbers lie is known to an [`ArrayLayout`] of its type:
///
/// ```no_run
/// use tsuji::dynamic::TypeSet;
/// use tsuji::interfaces::Shipped;
/// use tsuji::{ArrayLayout, Context, Qos};
///
/// let ty = TypeSet::new(Shipped).load("sensor_msgs/msg/LaserScan")?;
/// let layout = ArrayLayout::from(ty);
/// let node = Context::new()?.node("nearest")?;
/// let scans = node.create_polled_raw_subscription("scan", "sensor_msgs/msg/LaserScan", Qos::DEFAULT)?;
/// while let Some(sample) = scans.take_bytes()? {
///     let ranges = layout.array::<f32>(&sample.bytes, "ranges")?;
///     println!("nearest: {} m", ranges.iter().fold(f32::INFINITY, f32::min));
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RawSample {
    /// Times, publisher and number of the message.
    pub info: MessageInfo,
    /// The message in CDR with its header of 4 bytes; not checked to be valid.
    pub bytes: Bytes,
}

impl RawSample {
    pub(crate) fn new(sample: Sample, taken: Taken) -> Option<Self> {
        match sample.payload {
            Payload::Bytes(bytes) => {
                Some(Self { info: MessageInfo::new(&sample.envelope, taken), bytes })
            }
            // Publishers hand values to subscriptions of Rust types only.
            Payload::Typed(_) => None,
        }
    }
}

/// Receives messages of type `M`. It leaves the topic when it is dropped.
///
/// Messages go to a callback, as in the example of [`SubscriptionOptions`](crate::SubscriptionOptions), or are
/// asked for:
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::{Context, Qos};
/// use tsuji::interfaces::std_msgs::msg::String as Text;
///
/// let node = Context::new()?.node("listener")?;
/// let subscription = node.create_polled_subscription::<Text>("chatter", Qos::DEFAULT)?;
/// subscription.wait_for_publishers(1, Duration::from_secs(5))?;
/// while let Some(received) = subscription.take()? {
///     println!("I heard: '{}'", received.view().data);
/// }
/// # Ok::<_, tsuji::Error>(())
/// ```
///
/// or awaited, by any runtime:
///
/// ```no_run
/// use tsuji::Subscription;
/// use tsuji::interfaces::std_msgs::msg::String as Text;
///
/// async fn listen(subscription: &Subscription<Text>) -> tsuji::Result<()> {
///     loop {
///         println!("I heard: '{}'", subscription.recv().await?.view().data);
///     }
/// }
/// ```
#[must_use = "it leaves the topic when it is dropped"]
pub struct Subscription<M> {
    raw: RawSubscription,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Subscription<M> {
    pub(crate) fn new(raw: RawSubscription) -> Self {
        Self { raw, message: PhantomData }
    }

    /// Takes the oldest message that was not taken, if there is one. Never blocks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child, [`ErrorKind::Exhausted`] if there
    /// is no memory to map a message that came by shared memory, [`ErrorKind::Unexpected`] if an engine fails.
    pub fn take(&self) -> Result<Option<Received<M>>> {
        self.raw.take_as(Received::new)
    }

    /// Awaits the next message, with any runtime. The future fails as [`take`](Self::take) does.
    ///
    /// Several tasks may await at once: each message goes to one of them.
    ///
    /// It may be awaited, be in [`WaitSet`](crate::WaitSet)s and have a callback of
    /// [`on_new_message`](RawSubscription::on_new_message) at once: all are woken, and whoever takes first gets the
    /// message. The future fails with [`ErrorKind::Invalid`] where messages go to a callback of the subscription.
    pub fn recv(&self) -> Recv<'_, M> {
        Recv { subscription: self }
    }

    /// Returns all messages to come, as a stream. It ends when [`recv`](Self::recv) would fail, as when the context
    /// is shut down.
    pub fn stream(&self) -> Messages<'_, M> {
        Messages { subscription: self }
    }

    fn poll_take(&self, context: &task::Context<'_>) -> Poll<Result<Received<M>>> {
        self.raw.poll_by(context, || self.take())
    }
}

impl<M> Deref for Subscription<M> {
    type Target = RawSubscription;

    fn deref(&self) -> &RawSubscription {
        &self.raw
    }
}

impl<M> std::fmt::Debug for Subscription<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.raw.fmt(f)
    }
}

/// Future of the next message, made by [`Subscription::recv`].
#[derive(Debug)]
pub struct Recv<'a, M> {
    subscription: &'a Subscription<M>,
}

impl<M: Message> Future for Recv<'_, M> {
    type Output = Result<Received<M>>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.subscription.poll_take(context)
    }
}

/// Stream of the messages of a subscription, made by [`Subscription::stream`].
#[derive(Debug)]
pub struct Messages<'a, M> {
    subscription: &'a Subscription<M>,
}

impl<M: Message> Stream for Messages<'_, M> {
    type Item = Received<M>;

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        self.subscription.poll_take(context).map(Result::ok)
    }
}

/// Receives serialised messages. Also what every [`Subscription`] derefs to.
///
/// ```no_run
/// use tsuji::{Context, Qos};
///
/// let node = Context::new()?.node("recorder")?;
/// let of = "std_msgs/msg/String";
/// let subscription = node.create_polled_raw_subscription("chatter", of, Qos::DEFAULT)?;
/// while let Some(sample) = subscription.take_bytes()? {
///     println!("{} bytes, {:?}", sample.bytes.len(), sample.info.latency());
/// }
/// # Ok::<_, tsuji::Error>(())
/// ```
pub struct RawSubscription {
    node: Node,
    pub(crate) subscription_core: Arc<SubscriptionCore>,
    entities: Vec<Arc<dyn Entity>>,
    waker: Mutex<Option<Arc<WakerEntity>>>,
    listener: Listener,
}

impl RawSubscription {
    pub(crate) fn new(
        node: Node,
        subscription_core: Arc<SubscriptionCore>,
        entities: Vec<Arc<dyn Entity>>,
    ) -> Self {
        Self {
            node,
            subscription_core,
            entities,
            waker: Mutex::default(),
            listener: Listener::default(),
        }
    }

    /// The subscription to a topic, to messages as `spec` says, which `each` gets while the node is spun.
    pub(crate) fn create(
        node: &Node,
        topic: &str,
        of: RawType,
        options: SubscriptionOptions,
        spec: SubscriptionSpec,
        each: Option<Each>,
    ) -> Result<Self> {
        let EndpointOptions { qos, group, on_event, of_kind } = options;
        let core = node.endpoint("create a subscription", Remapped::Topic, topic, of, qos)?;
        let session = node.context().session();
        let described = match spec.described {
            Described::Named => of_kind.described,
            described => described,
        };
        let spec = SubscriptionSpec { ignores_local: of_kind.ignores_local, described, ..spec };
        let subscription_core = Arc::new(SubscriptionCore::new(core, spec)?);
        subscription_core.set_content_filter(of_kind.content_filter)?;
        if let Some(note) = of_kind.note {
            subscription_core.events.note(note);
        }
        let group = group.unwrap_or_else(|| node.group().clone());
        let mut entities: Vec<Arc<dyn Entity>> = Vec::new();
        if let Some(each) = each {
            let entity = RawEntity::new(Arc::clone(&subscription_core), group.clone(), each);
            entities.push(Arc::new(entity));
        }
        if let Some(on_event) = on_event {
            let cell = Arc::new(session.bells().claim_cell()?);
            subscription_core.events.listen(Arc::clone(&cell));
            let source = Arc::clone(&subscription_core);
            let pop = Box::new(move || source.events.pop());
            entities.push(Arc::new(EventEntity::new(cell, group, pop, on_event)));
        }
        for entity in &entities {
            node.run(entity)?;
        }
        session.graph_cache().add_subscription_core(session, &subscription_core);
        session.tell();
        if qos.deadline.is_some() {
            session.waker.give();
        }
        Ok(Self::new(node.clone(), subscription_core, entities))
    }

    /// Takes the oldest message that was not taken, as bytes, if there is one. Never blocks.
    ///
    /// A value by reference has no bytes and is passed over.
    ///
    /// # Errors
    ///
    /// Those of [`Subscription::take`].
    pub fn take_bytes(&self) -> Result<Option<RawSample>> {
        self.take_as(RawSample::new)
    }

    /// The oldest of which `known` makes something.
    pub(crate) fn take_as<T>(
        &self,
        known: impl Fn(Sample, Taken) -> Option<T>,
    ) -> Result<Option<T>> {
        self.listener.take(|| self.subscription_core.take(), |(sample, taken)| known(sample, taken))
    }

    /// Takes the oldest message as bytes, or lets the task be woken when there may be one or the context is shut down.
    ///
    /// # Errors
    ///
    /// Those of [`take_bytes`](Self::take_bytes); [`ErrorKind::Invalid`] if a callback gets the messages;
    /// [`ErrorKind::Exhausted`] if the thread that wakes cannot be started.
    pub fn poll_bytes(&self, context: &mut task::Context<'_>) -> Poll<Result<RawSample>> {
        self.poll_by(context, || self.take_bytes())
    }

    /// Takes by `take`, or lets the task be woken.
    fn poll_by<T>(
        &self,
        context: &task::Context<'_>,
        take: impl Fn() -> Result<Option<T>>,
    ) -> Poll<Result<T>> {
        if let Some(taken) = take().transpose() {
            return Poll::Ready(taken);
        }
        self.wake_when_ready(context.waker())?;
        // What came before the waker was in place rang nobody.
        take().transpose().map_or(Poll::Pending, Poll::Ready)
    }

    /// Returns true if there is a message to be taken; it may turn out to be invalid.
    pub fn is_ready(&self) -> bool {
        self.subscription_core.is_ready()
    }

    /// Sets a callback that hears how many messages have come since it was called last; `None` ends it.
    ///
    /// Those are included that wait now, and those that others take or newer ones push out before it runs. `None`
    /// returns when it does not run any more, but for a call from inside it. It is called by a thread that the
    /// context has from the first such callback on. Where all is kept it hears of at most 64 ahead of what is
    /// taken. It must not panic; a panic is only reported.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if messages go to a callback of the subscription; [`ErrorKind::Exhausted`] if the
    /// thread cannot be started, or has 4095 callbacks already; [`ErrorKind::Closed`] if it would be started in a
    /// forked child.
    pub fn on_new_message(&self, callback: Option<NewMessageCallback>) -> Result<()> {
        self.check_no_callback()?;
        let inbox = Arc::<SubscriptionCore>::clone(&self.subscription_core);
        self.listener.set(self.node.context(), inbox, callback)
    }

    /// Returns how many publishers are connected.
    pub fn matched(&self) -> usize {
        self.subscription_core.writers()
    }

    /// Waits until at least `count` publishers are connected.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if there are fewer after `timeout`, [`ErrorKind::Closed`] when the context is shut
    /// down or in a forked child.
    pub fn wait_for_publishers(&self, count: usize, timeout: Duration) -> Result<()> {
        let gid = self.subscription_core.gid;
        let waited =
            self.node.context().session().wait_for(timeout, |graph_cache| {
                (count <= graph_cache.writers(gid)).then_some(())
            })?;
        waited.ok_or_else(|| {
            let what = format!("{}: {} of {count} publishers", self.topic(), self.matched());
            Error::new(ErrorKind::Timeout, what).within(timeout)
        })
    }

    /// Returns the addresses of this host to which foreign nodes and other hosts send what it subscribes to.
    ///
    /// They are those of Cyclone DDS, one of each interface that it uses; other engines do not tell theirs. Nothing while the
    /// network is not joined.
    pub fn network_addresses(&self) -> Vec<SocketAddr> {
        let session = self.node.context().session();
        if session.is_current() { session.network_addresses().receives } else { Vec::new() }
    }

    /// Replaces the content filter; an empty expression ends it, and every message comes again.
    ///
    /// Whatever is taken after this returns passes the new filter. Messages that wait and do not pass it are filtered out;
    /// those that were filtered out before do not come back. Where it fails, the filter stays as it was.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the expression or a parameter does not read, names a field that the type does not have,
    /// or compares it to what is not of its kind; [`ErrorKind::Unsupported`] if the type's definition is not known, as
    /// [`SubscriptionOptions::type_description`] says; [`ErrorKind::Closed`] when the context is shut down or in a forked
    /// child.
    ///
    /// ```no_run
    /// use tsuji::interfaces::sensor_msgs::msg::Temperature;
    /// use tsuji::{Context, Qos};
    ///
    /// let node = Context::new()?.node("alarm")?;
    /// let heat = node.create_polled_subscription::<Temperature>("heat", Qos::DEFAULT)?;
    /// heat.set_content_filter("temperature > %0", ["35.5"])?;
    /// # Ok::<_, tsuji::Error>(())
    /// ```
    pub fn set_content_filter(
        &self,
        filter_expression: impl Into<String>,
        expression_parameters: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<()> {
        let options = ContentFilterOptions::new(filter_expression, expression_parameters);
        self.subscription_core.set_content_filter(options)?;
        let session = self.node.context().session();
        session.graph_cache().filter_changed(session, &self.subscription_core);
        session.tell();
        Ok(())
    }

    /// Returns the content filter; `None` if there is none, so that every message comes.
    pub fn content_filter(&self) -> Option<ContentFilterOptions> {
        self.subscription_core.content_filter()
    }

    /// Returns true if there is a content filter.
    pub fn is_content_filtered(&self) -> bool {
        self.content_filter().is_some()
    }

    /// Returns the full topic name.
    pub fn topic(&self) -> &str {
        &self.subscription_core.topic
    }

    /// Returns the name of the type, such as `std_msgs/msg/String`.
    pub fn type_name(&self) -> &str {
        &self.subscription_core.type_name
    }

    /// Returns the QoS that the subscription asks for.
    pub fn qos(&self) -> &Qos {
        &self.subscription_core.qos
    }

    /// Returns the global identifier of this subscription: 16 bytes, as in the graph.
    pub fn gid(&self) -> Gid {
        self.subscription_core.gid
    }

    /// Returns what the subscription has seen so far.
    pub fn counters(&self) -> SubscriptionCounters {
        self.subscription_core.counters()
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn has_callback(&self) -> bool {
        self.entities
            .iter()
            .any(|it| it.cell().is_some_and(|cell| Arc::ptr_eq(cell, &self.subscription_core.news)))
    }

    /// Refuses to hand to others what goes to a callback.
    pub(crate) fn check_no_callback(&self) -> Result<()> {
        if !self.has_callback() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{}: what comes goes to a callback; build() it to be awaited or asked",
            self.topic()
        )))
    }

    /// Wakes `waker` when there may be a message. The first call starts the context's thread for
    /// this, which sleeps while nothing comes.
    fn wake_when_ready(&self, waker: &Waker) -> Result<()> {
        self.waker_entity()?.add(waker);
        Ok(())
    }

    fn waker_entity(&self) -> Result<Arc<WakerEntity>> {
        let mut known = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entity) = &*known {
            return Ok(Arc::clone(entity));
        }
        self.check_no_callback()?;
        let entity = Arc::new(WakerEntity::new(Arc::clone(&self.subscription_core.news)));
        let entity_dyn: Arc<dyn Entity> = Arc::<WakerEntity>::clone(&entity);
        self.node.context().waking()?.attach(&entity_dyn)?;
        *known = Some(Arc::clone(&entity));
        Ok(entity)
    }
}

impl Waitable for RawSubscription {}

impl Source for RawSubscription {
    fn cell(&self) -> &Arc<Cell> {
        &self.subscription_core.news
    }

    fn owner(&self) -> Owner<'_> {
        Owner(&self.subscription_core.session)
    }

    fn is_ready(&self) -> bool {
        self.subscription_core.is_ready()
    }
}

impl Drop for RawSubscription {
    fn drop(&mut self) {
        let session = self.node.context().session();
        if !session.is_current() {
            return;
        }
        self.entities.iter().for_each(|entity| self.node.run_no_more(entity));
        self.listener.end(self.node.context());
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(entity) = waker {
            let entity: Arc<dyn Entity> = entity;
            if let Ok(waking) = self.node.context().waking() {
                waking.detach(&entity);
            }
        }
        session.graph_cache().remove_local(session, self.subscription_core.gid);
        session.tell();
    }
}

impl std::fmt::Debug for RawSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("topic", &self.topic()).finish_non_exhaustive()
    }
}

/// Hands each sample of a subscription to its callback.
pub(crate) struct RawEntity {
    subscription_core: Arc<SubscriptionCore>,
    group: CallbackGroup,
    each: Mutex<Each>,
}

impl RawEntity {
    pub(crate) fn new(
        subscription_core: Arc<SubscriptionCore>,
        group: CallbackGroup,
        each: Each,
    ) -> Self {
        Self { subscription_core, group, each: Mutex::new(each) }
    }
}

impl Entity for RawEntity {
    fn cell(&self) -> Option<&Arc<Cell>> {
        Some(&self.subscription_core.news)
    }

    fn run(&self, more: &mut dyn FnMut()) {
        // An error says that it is closed; whoever closed it knows.
        if let Ok(Some((sample, taken))) = self.subscription_core.take() {
            more();
            (self.each.lock().unwrap_or_else(PoisonError::into_inner))(sample, taken);
        }
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}

/// Hands each event of an endpoint to its callback.
pub(crate) struct EventEntity<E> {
    cell: Arc<Cell>,
    group: CallbackGroup,
    pop: Box<dyn Fn() -> Option<E> + Send + Sync>,
    on_event: Mutex<Box<dyn FnMut(E) + Send>>,
}

impl<E> EventEntity<E> {
    pub(crate) fn new(
        cell: Arc<Cell>,
        group: CallbackGroup,
        pop: Box<dyn Fn() -> Option<E> + Send + Sync>,
        on_event: Box<dyn FnMut(E) + Send>,
    ) -> Self {
        Self { cell, group, pop, on_event: Mutex::new(on_event) }
    }
}

impl<E> Entity for EventEntity<E> {
    fn cell(&self) -> Option<&Arc<Cell>> {
        Some(&self.cell)
    }

    fn run(&self, more: &mut dyn FnMut()) {
        if let Some(event) = (self.pop)() {
            more();
            (self.on_event.lock().unwrap_or_else(PoisonError::into_inner))(event);
        }
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}

/// Wakes all who await a subscription.
struct WakerEntity {
    cell: Arc<Cell>,
    group: CallbackGroup,
    /// Who awaits, the longest ago first; at most [`WAKERS_MAX`]. When full, the oldest is woken to
    /// ask again.
    wakers: Mutex<VecDeque<Waker>>,
}

const WAKERS_MAX: usize = 64;

impl WakerEntity {
    fn new(cell: Arc<Cell>) -> Self {
        let group = CallbackGroup::new(crate::CallbackGroupKind::Reentrant);
        Self { cell, group, wakers: Mutex::default() }
    }

    fn add(&self, waker: &Waker) {
        // A waker is the user's, and may do anything when it is copied or dropped.
        let waker = waker.clone();
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if wakers.iter().any(|it| it.will_wake(&waker)) {
            drop(wakers);
            return;
        }
        let oldest = if WAKERS_MAX <= wakers.len() { wakers.pop_front() } else { None };
        wakers.push_back(waker);
        drop(wakers);
        if let Some(oldest) = oldest {
            oldest.wake();
        }
    }
}

impl Entity for WakerEntity {
    fn cell(&self) -> Option<&Arc<Cell>> {
        Some(&self.cell)
    }

    fn run(&self, _more: &mut dyn FnMut()) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = std::mem::take(&mut *wakers);
        drop(wakers);
        woken.into_iter().for_each(Waker::wake);
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}
