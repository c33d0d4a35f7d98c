//! Subscriptions, and what they hand over.

use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{self, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use tsuji_core::Qos;
use tsuji_msg::Message;
use tsuji_transport::bell::Cell;
use tsuji_transport::{Bytes, Envelope, Gid, Payload, Sample};

use crate::executor::Entity;
use crate::news::{Listener, NewsCallback};
use crate::reception::{Reception, SubscriptionCounters};
use crate::wait_list::sealed::Source;
use crate::{CallbackGroup, Error, ErrorKind, Node, Result, Waitable};

/// What is done with each sample, and the time at which it was taken.
pub(crate) type Each = Box<dyn FnMut(Sample, u64) + Send>;

/// What is known of a received message besides its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageInfo {
    /// When it was published, in nanoseconds since the Unix epoch.
    pub source_wall_ns: i64,
    /// The same on this host's monotonic clock.
    pub source_mono_ns: u64,
    /// When it was taken, on this host's monotonic clock.
    pub received_mono_ns: u64,
    /// The publisher.
    pub publisher: Gid,
    /// The publisher's number for it, from 1.
    pub sequence: u64,
}

impl MessageInfo {
    fn new(envelope: &Envelope, received_mono_ns: u64) -> Self {
        Self {
            source_wall_ns: envelope.wall_ns,
            source_mono_ns: envelope.mono_ns,
            received_mono_ns,
            publisher: envelope.gid,
            sequence: envelope.sequence,
        }
    }

    /// From publish to take.
    pub fn latency(&self) -> Duration {
        Duration::from_nanos(self.received_mono_ns.saturating_sub(self.source_mono_ns))
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
    pub(crate) fn new(sample: Sample, now_ns: u64) -> Option<Self> {
        let info = MessageInfo::new(&sample.envelope, now_ns);
        let content = match sample.payload {
            Payload::Typed(value) => Content::Value(value.downcast().ok()?),
            Payload::Bytes(bytes) => Content::Bytes(bytes),
        };
        Some(Self { info, content })
    }

    /// What is known of it besides its contents.
    pub fn info(&self) -> &MessageInfo {
        &self.info
    }

    /// The message in place, without a copy.
    pub fn view(&self) -> M::View<'_> {
        match &self.content {
            Content::Value(value) => value.view(),
            Content::Bytes(bytes) => match M::view_cdr(bytes) {
                Ok(view) => view,
                Err(error) => unreachable!("it was checked before it was handed over: {error}"),
            },
        }
    }

    /// The message as a value: the publisher's own, or a copy.
    pub fn message(&self) -> Arc<M> {
        match &self.content {
            Content::Value(value) => Arc::clone(value),
            Content::Bytes(bytes) => match M::deserialize(bytes) {
                Ok(message) => Arc::new(message),
                Err(error) => unreachable!("it was checked before it was handed over: {error}"),
            },
        }
    }

    /// The bytes in CDR, unless it came as a value.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Value(_) => None,
            Content::Bytes(bytes) => Some(bytes),
        }
    }

    /// Whether it is the publisher's own value.
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
#[derive(Clone, Debug)]
pub struct RawSample {
    /// What is known of it besides its contents.
    pub info: MessageInfo,
    /// CDR with its header of 4 bytes; not checked to be valid.
    pub bytes: Bytes,
}

impl RawSample {
    pub(crate) fn new(sample: Sample, now_ns: u64) -> Option<Self> {
        match sample.payload {
            Payload::Bytes(bytes) => {
                Some(Self { info: MessageInfo::new(&sample.envelope, now_ns), bytes })
            }
            // Publishers hand values to subscriptions of Rust types only.
            Payload::Typed(_) => None,
        }
    }
}

/// Receives messages of type `M`.
#[must_use = "it leaves the topic when it is dropped"]
pub struct Subscription<M> {
    raw: RawSubscription,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Subscription<M> {
    pub(crate) fn new(raw: RawSubscription) -> Self {
        Self { raw, message: PhantomData }
    }

    /// The oldest message that was not taken, if there is one. Never blocks.
    pub fn take(&self) -> Result<Option<Received<M>>> {
        self.raw.take_as(Received::new)
    }

    /// The next message, to be awaited. Works with any runtime. Several tasks may await at once: each
    /// message goes to one of them.
    ///
    /// A subscription that is awaited leaves the [`WaitSet`](crate::WaitSet) that it was added to, and
    /// one that is added to a wait set wakes nobody any more.
    pub fn recv(&self) -> Recv<'_, M> {
        Recv { subscription: self }
    }

    /// All messages to come, as a stream. It ends when the context is shut down.
    pub fn stream(&self) -> Messages<'_, M> {
        Messages { subscription: self }
    }

    fn poll_take(&self, context: &task::Context<'_>) -> Poll<Result<Received<M>>> {
        match self.take() {
            Ok(Some(received)) => return Poll::Ready(Ok(received)),
            Ok(None) => (),
            Err(error) => return Poll::Ready(Err(error)),
        }
        if let Err(error) = self.raw.wake_when_ready(context.waker()) {
            return Poll::Ready(Err(error));
        }
        // What came before the waker was in place rang nobody.
        match self.take().transpose() {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
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

/// The next message, when awaited.
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

/// The messages of a subscription, as a stream.
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
pub struct RawSubscription {
    node: Node,
    pub(crate) reception: Arc<Reception>,
    entities: Vec<Arc<dyn Entity>>,
    waker: Mutex<Option<Arc<WakerEntity>>>,
    listener: Listener,
}

impl RawSubscription {
    pub(crate) fn new(
        node: Node,
        reception: Arc<Reception>,
        entities: Vec<Arc<dyn Entity>>,
    ) -> Self {
        Self { node, reception, entities, waker: Mutex::default(), listener: Listener::default() }
    }

    /// The oldest message that was not taken, as bytes, if there is one. Never blocks. A value by
    /// reference has no bytes and is not answered here.
    pub fn take_bytes(&self) -> Result<Option<RawSample>> {
        self.take_as(RawSample::new)
    }

    /// The oldest of which `known` makes something.
    fn take_as<T>(&self, known: impl Fn(Sample, u64) -> Option<T>) -> Result<Option<T>> {
        self.listener.take(|| self.reception.take(), |(sample, now_ns)| known(sample, now_ns))
    }

    /// Whether there is a message to be taken; it may turn out to be invalid.
    pub fn is_ready(&self) -> bool {
        self.reception.is_ready()
    }

    /// From now on `callback` hears how many messages have come, those included that wait now; `None` ends
    /// that, and returns when it does not run any more, but for a call from inside it. It is called by a
    /// thread that the context has from the first such callback on. Whoever is told of a message asks for it
    /// once, or it will not be told of others. It must not panic; a panic is only reported.
    pub fn on_news(&self, callback: Option<NewsCallback>) -> Result<()> {
        self.check_no_callback()?;
        let inbox = Arc::<Reception>::clone(&self.reception);
        self.listener.set(self.node.context(), inbox, callback)
    }

    /// How many publishers are connected.
    pub fn matched(&self) -> usize {
        self.reception.writers()
    }

    /// Waits until at least `count` publishers are connected.
    pub fn wait_for_publishers(&self, count: usize, timeout: Duration) -> Result<()> {
        let gid = self.reception.gid;
        let waited = self
            .node
            .context()
            .host()
            .wait_for(timeout, |directory| (count <= directory.writers(gid)).then_some(()))?;
        waited.ok_or_else(|| {
            Error::new(
                ErrorKind::Timeout,
                format!(
                    "{}: {} of {count} publishers within {timeout:?}",
                    self.topic(),
                    self.matched()
                ),
            )
        })
    }

    /// The full topic name.
    pub fn topic(&self) -> &str {
        &self.reception.topic
    }

    /// The type's name.
    pub fn type_name(&self) -> &str {
        &self.reception.type_name
    }

    /// What it asks for.
    pub fn qos(&self) -> &Qos {
        &self.reception.qos
    }

    /// Its number.
    pub fn gid(&self) -> Gid {
        self.reception.gid
    }

    /// What it has seen so far.
    pub fn counters(&self) -> SubscriptionCounters {
        self.reception.counters()
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn has_callback(&self) -> bool {
        self.entities
            .iter()
            .any(|it| it.cell().is_some_and(|cell| Arc::ptr_eq(cell, &self.reception.news)))
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
        let mut known = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entity) = &*known {
            entity.add(waker);
            return Ok(());
        }
        self.check_no_callback()?;
        let entity = Arc::new(WakerEntity::new(Arc::clone(&self.reception.news)));
        entity.add(waker);
        let entity_dyn: Arc<dyn Entity> = Arc::<WakerEntity>::clone(&entity);
        self.node.context().waking()?.attach(&entity_dyn)?;
        *known = Some(entity);
        Ok(())
    }
}

impl Waitable for RawSubscription {}

impl Source for RawSubscription {
    fn cell(&self) -> &Arc<Cell> {
        &self.reception.news
    }

    fn is_ready(&self) -> bool {
        self.reception.is_ready()
    }
}

impl Drop for RawSubscription {
    fn drop(&mut self) {
        let host = self.node.context().host();
        if !host.is_current() {
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
        host.directory().remove_local(host, self.reception.gid);
        host.tell();
    }
}

impl std::fmt::Debug for RawSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("topic", &self.topic()).finish_non_exhaustive()
    }
}

/// Hands each sample of a subscription to its callback.
pub(crate) struct RawEntity {
    reception: Arc<Reception>,
    group: CallbackGroup,
    each: Mutex<Each>,
}

impl RawEntity {
    pub(crate) fn new(reception: Arc<Reception>, group: CallbackGroup, each: Each) -> Self {
        Self { reception, group, each: Mutex::new(each) }
    }
}

impl Entity for RawEntity {
    fn cell(&self) -> Option<&Arc<Cell>> {
        Some(&self.reception.news)
    }

    fn run(&self, more: &mut dyn FnMut()) {
        // An error says that it is closed; whoever closed it knows.
        if let Ok(Some((sample, now_ns))) = self.reception.take() {
            more();
            (self.each.lock().unwrap_or_else(PoisonError::into_inner))(sample, now_ns);
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
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if wakers.iter().any(|it| it.will_wake(waker)) {
            return;
        }
        let oldest = if WAKERS_MAX <= wakers.len() { wakers.pop_front() } else { None };
        wakers.push_back(waker.clone());
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
