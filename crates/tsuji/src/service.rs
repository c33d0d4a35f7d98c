//! Servers: requests that come, and the replies to them.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tsuji_core::{History, Qos};
use tsuji_msg::Service as ServiceType;
use tsuji_platform::ordered::{Mutex, MutexGuard};
use tsuji_platform::report;
use tsuji_transport::bell::Cell;
use tsuji_transport::deferred::{self, Locked};
use tsuji_transport::{Bytes, Gid, Sample};

use crate::action::feedback_topic;
use crate::arrivals::{Inbox, Listener, NewMessageCallback, Tally};
use crate::content::Content;
use crate::events::ServiceEvent;
use crate::executor::Entity;
use crate::latency::Taken;
use crate::options::EndpointOptions;
use crate::publisher_core::{Asked, Outgoing, PublisherCore, PublisherSpec};
use crate::subscription::EventEntity;
use crate::subscription_core::{SubscriptionCore, SubscriptionSpec};
use crate::wait_list::sealed::{Owner, Source};
use crate::{
    CallbackGroup, Error, MessageInfo, Node, RawPublisher, RawSample, RawSubscription, RawType,
    Received, Result, ServiceOptions, SubscriptionCounters, Waitable,
};

/// Counts of what a server has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceCounters {
    /// Requests handed to the user.
    pub received: u64,
    /// Requests that were no valid message of the type.
    pub invalid: u64,
    /// Requests whose lifespan had passed.
    pub expired: u64,
    /// Requests that never came, as may be by best effort.
    pub lost: u64,
    /// Requests pushed out by newer ones, where the [depth is kept](ServiceOptions::keep_depth).
    pub displaced: u64,
    /// Replies sent.
    pub answered: u64,
    /// Replies that could not be sent: the client had left, or took none for 100 ms.
    pub failed: u64,
    /// Requests dropped without a reply, by a callback that panicked too.
    pub unanswered: u64,
    /// Requests that the user holds now.
    pub open: u64,
}

/// Answers requests of services of type `S`. It leaves the service when it is dropped.
///
/// ```no_run
/// use tsuji::Context;
/// use tsuji::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
///
/// let node = Context::new()?.node("adder")?;
/// let _service = node.create_service::<AddTwoInts>("add_two_ints", |request| {
///     AddTwoIntsResponse { sum: request.a + request.b }
/// })?;
/// tsuji::spin(&node)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
///
/// Up to 1024 requests wait in a server, of each client in another process, and of all clients in its
/// own process together. A client that finds no room waits: whatever depth the QoS announces, a
/// reliable request is never lost without a word. The user holds at most 1024 requests at a time;
/// further ones wait until one is answered or dropped.
#[must_use = "it leaves the service when it is dropped"]
pub struct Service<S> {
    raw: RawService,
    service: PhantomData<fn() -> S>,
}

impl<S: ServiceType> Service<S> {
    pub(crate) fn create(
        node: &Node,
        options: ServiceOptions,
        callback: Option<impl FnMut(Request<S>) + Send + 'static>,
    ) -> Result<Self> {
        let specs = (SubscriptionSpec::of::<S::Request>(), PublisherSpec::of::<S::Response>());
        let each = callback.map(|mut callback| -> Each {
            Box::new(move |sample, taken, held| {
                if let Some(request) = Request::new(sample, taken, held) {
                    callback(request);
                }
            })
        });
        let raw = RawService::create(node, options, &RawType::of_service::<S>(), specs, each)?;
        Ok(Self { raw, service: PhantomData })
    }

    /// Takes the oldest request that was not taken, if there is one. Never blocks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) when the context is shut down or in a forked child,
    /// [`ErrorKind::Exhausted`](crate::ErrorKind::Exhausted) if there is no memory to map a request that came by
    /// shared memory, [`ErrorKind::Unexpected`](crate::ErrorKind::Unexpected) if an engine fails.
    pub fn take(&self) -> Result<Option<Request<S>>> {
        self.raw.take_as(Request::new)
    }
}

impl<S> Deref for Service<S> {
    type Target = RawService;

    fn deref(&self) -> &RawService {
        &self.raw
    }
}

impl<S> std::fmt::Debug for Service<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.raw.fmt(f)
    }
}

/// A request, to be answered now or later, from any thread.
///
/// Dropped without a reply it is counted, and its client waits until its time is up.
///
/// ```no_run
/// use tsuji::Context;
/// use tsuji::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
///
/// let node = Context::new()?.node("adder")?;
/// let service = node.create_polled_service::<AddTwoInts>("add_two_ints")?;
/// while let Some(request) = service.take()? {
///     let sum = request.view().a + request.view().b;
///     request.respond(AddTwoIntsResponse { sum })?;
/// }
/// # Ok::<_, tsuji::Error>(())
/// ```
pub struct Request<S: ServiceType> {
    received: Received<S::Request>,
    held: Held,
}

impl<S: ServiceType> Request<S> {
    fn new(sample: Sample, taken: Taken, held: Held) -> Option<Self> {
        Some(Self { received: Received::new(sample, taken)?, held })
    }

    /// Returns times and number of the request; its publisher is the client.
    pub fn info(&self) -> &MessageInfo {
        self.received.info()
    }

    /// Returns the request in place, without a copy.
    pub fn view(&self) -> <S::Request as tsuji_msg::wire::Wire>::View<'_> {
        self.received.view()
    }

    /// Returns the request as a value: the client's own, or a copy.
    pub fn message(&self) -> Arc<S::Request> {
        self.received.message()
    }

    /// Sends the reply, `&Response`, `Response` or `Arc<Response>`.
    ///
    /// The first reply of the service that takes an action's goals to a client waits for 200 ms at most until the client's
    /// subscription to feedback is connected.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the client has left, or the server, when the context is
    /// shut down or in a forked child; [`ErrorKind::Busy`](crate::ErrorKind::Busy) or
    /// [`ErrorKind::Exhausted`](crate::ErrorKind::Exhausted) if there is no room for it for 100 ms, by best effort
    /// at once; [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if it is larger than the link carries;
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if it breaks a limit of its type.
    pub fn respond<'r>(self, response: impl Into<Content<'r, S::Response>>) -> Result<()> {
        self.held.respond(&response.into().into())
    }
}

impl<S: ServiceType> std::fmt::Debug for Request<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("info", self.info()).finish_non_exhaustive()
    }
}

/// A request as bytes, to be answered now or later, from any thread.
///
/// Dropped without a reply it is counted, and its client waits until its time is up.
#[derive(Debug)]
pub struct RawRequest {
    sample: RawSample,
    held: Held,
}

impl RawRequest {
    fn new(sample: Sample, taken: Taken, held: Held) -> Option<Self> {
        Some(Self { sample: RawSample::new(sample, taken)?, held })
    }

    /// Returns times and number of the request; its publisher is the client.
    pub fn info(&self) -> &MessageInfo {
        &self.sample.info
    }

    /// Returns the request in CDR with its header of 4 bytes; not checked to be valid.
    pub fn bytes(&self) -> &Bytes {
        &self.sample.bytes
    }

    /// Returns the client of the request, and the request's number among those of that client.
    pub fn id(&self) -> (Gid, u64) {
        let asked = self.held.request.map(|it| (it.client, it.number.1));
        asked.unwrap_or((self.sample.info.publisher, self.sample.info.sequence))
    }

    /// Sends the reply in CDR with its header of 4 bytes.
    ///
    /// # Errors
    ///
    /// Those of [`Request::respond`]; [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if `response` is shorter
    /// than 4 bytes.
    pub fn respond_bytes(self, response: &[u8]) -> Result<()> {
        self.held.respond(&Outgoing::Copied(response))
    }
}

/// Answers serialised requests. Also what every [`Service`] derefs to.
///
/// ```no_run
/// use tsuji::Context;
///
/// let node = Context::new()?.node("motor")?;
/// let service = node.create_polled_raw_service("stop", "std_srvs/srv/Trigger")?;
/// while let Some(request) = service.take_bytes()? {
///     // The header of CDR, little endian, `success: true` and an empty message.
///     request.respond_bytes(&[0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0])?;
/// }
/// # Ok::<_, tsuji::Error>(())
/// ```
pub struct RawService {
    requests: RawSubscription,
    /// Leaves the service with the rest.
    _replies: RawPublisher,
    core: Arc<ServiceCore>,
    listener: Listener,
}

impl Waitable for RawService {}

impl Source for RawService {
    fn cell(&self) -> &Arc<Cell> {
        &self.core.subscription_core.news
    }

    fn owner(&self) -> Owner<'_> {
        Owner(&self.core.subscription_core.session)
    }

    fn is_ready(&self) -> bool {
        Inbox::waiting(&*self.core, 1) != 0
    }
}

impl Drop for RawService {
    fn drop(&mut self) {
        let session = &self.core.subscription_core.session;
        if session.is_current() {
            self.listener.end(self.requests.node().context());
            // At once, so that the graph changes once; the halves find that they have left.
            let mut graph_cache = session.graph_cache();
            graph_cache.remove_local(session, self.core.subscription_core.gid);
            graph_cache.remove_local(session, self.core.publisher_core.gid);
        }
    }
}

impl RawService {
    pub(crate) fn of_bytes(
        node: &Node,
        options: ServiceOptions,
        of: RawType,
        callback: Option<impl FnMut(RawRequest) + Send + 'static>,
    ) -> Result<Self> {
        let each = callback.map(|mut callback| -> Each {
            Box::new(move |sample, taken, held| {
                if let Some(request) = RawRequest::new(sample, taken, held) {
                    callback(request);
                }
            })
        });
        Self::create(node, options, &of, Default::default(), each)
    }

    /// The server of a service, of requests and replies as `specs` say; `each` gets the requests while the node is spun.
    pub(crate) fn create(
        node: &Node,
        options: ServiceOptions,
        of: &RawType,
        specs: (SubscriptionSpec, PublisherSpec),
        each: Option<Each>,
    ) -> Result<Self> {
        let EndpointOptions { qos, group, on_event, of_kind } = options;
        let session = node.context().session();
        let [requests, replies] = node.halves("create a service", &of_kind.name, of, qos)?;
        let publisher_core = Arc::new(PublisherCore::new(replies, specs.1)?);
        let subscription_core = Arc::new(SubscriptionCore::new(requests, specs.0)?);
        let group = group.unwrap_or_else(|| node.group().clone());
        let mut entities: Vec<Arc<dyn Entity>> = Vec::new();
        if let Some(on_event) = on_event {
            let cell = Arc::new(session.bells().claim_cell()?);
            subscription_core.events.listen(Arc::clone(&cell));
            publisher_core.events.listen(Arc::clone(&cell));
            let (requests, replies) = (Arc::clone(&subscription_core), Arc::clone(&publisher_core));
            let pop = Box::new(move || {
                let of_requests = || requests.events.find_pop(ServiceEvent::of_requests);
                of_requests().or_else(|| replies.events.find_pop(ServiceEvent::of_replies))
            });
            entities.push(Arc::new(EventEntity::new(cell, group.clone(), pop, on_event)));
        }
        let depth = match qos.history {
            History::KeepLast(depth) if of_kind.keeps_depth => Some(depth as usize),
            _ => None,
        };
        let core = Arc::new(ServiceCore {
            feedback_topic: feedback_topic(&subscription_core.topic),
            subscription_core: Arc::clone(&subscription_core),
            publisher_core: Arc::clone(&publisher_core),
            counters: Mutex::default(),
            newest: depth.map(|depth| Newest { depth, requests: Mutex::default() }),
        });
        if let Some(each) = each {
            let entity = Entry { core: Arc::clone(&core), group, each: Mutex::new(each) };
            entities.push(Arc::new(entity));
        }
        for entity in &entities {
            node.run(entity)?;
        }
        let mut graph_cache = session.graph_cache();
        graph_cache.add_publisher_core(session, &publisher_core);
        graph_cache.add_subscription_core(session, &subscription_core);
        drop(graph_cache);
        session.tell();
        Ok(Self {
            requests: RawSubscription::new(node.clone(), subscription_core, entities),
            _replies: RawPublisher::new(node.clone(), publisher_core, None),
            core,
            listener: Listener::default(),
        })
    }

    /// Takes the oldest request that was not taken, as bytes, if there is one. Never blocks.
    ///
    /// A value by reference has no bytes and is passed over.
    ///
    /// # Errors
    ///
    /// Those of [`Service::take`].
    pub fn take_bytes(&self) -> Result<Option<RawRequest>> {
        self.take_as(RawRequest::new)
    }

    /// Takes the oldest request, whatever it is.
    pub(crate) fn take_sample(&self) -> Result<Option<(Sample, Held)>> {
        self.take_as(|sample, _, held| Some((sample, held)))
    }

    /// The oldest of which `known` makes something.
    fn take_as<T>(&self, known: impl Fn(Sample, Taken, Held) -> Option<T>) -> Result<Option<T>> {
        let known = |(sample, taken, held)| known(sample, taken, held);
        self.listener.take(|| self.core.take(), known)
    }

    /// Sets a callback that hears how many requests have come since it was called last; `None` ends it.
    ///
    /// It is called as that of [`RawSubscription::on_new_message`] is.
    ///
    /// # Errors
    ///
    /// Those of [`RawSubscription::on_new_message`].
    pub fn on_new_request(&self, callback: Option<NewMessageCallback>) -> Result<()> {
        self.requests.check_no_callback()?;
        self.listener.set(
            self.requests.node().context(),
            Arc::<ServiceCore>::clone(&self.core),
            callback,
        )
    }

    /// Returns the full name of the service.
    pub fn name(&self) -> &str {
        self.requests.topic()
    }

    /// Returns the name of the service's type, such as `std_srvs/srv/SetBool`.
    pub fn type_name(&self) -> &str {
        self.requests.type_name()
    }

    /// Returns the QoS that the server offers and asks for.
    pub fn qos(&self) -> &Qos {
        self.requests.qos()
    }

    /// Returns the global identifier of the server's half for requests: 16 bytes, as in the graph.
    pub fn gid(&self) -> Gid {
        self.requests.gid()
    }

    /// Returns how many clients can send requests to the server.
    pub fn clients(&self) -> usize {
        self.requests.matched()
    }

    /// Returns what the server has done so far.
    pub fn counters(&self) -> ServiceCounters {
        // A forked child may find the lock held for ever.
        if !self.core.subscription_core.session.is_current() {
            return ServiceCounters::default();
        }
        let SubscriptionCounters { invalid, expired, lost, displaced, .. } =
            self.requests.counters();
        ServiceCounters { invalid, expired, lost: lost + displaced, ..*self.core.lock() }
    }

    /// What a wait set waits for.
    pub(crate) fn requests(&self) -> &RawSubscription {
        &self.requests
    }
}

impl std::fmt::Debug for RawService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// What is done with each request, and when it was taken.
pub(crate) type Each = Box<dyn FnMut(Sample, Taken, Held) + Send>;

/// What requests need to be answered.
struct ServiceCore {
    subscription_core: Arc<SubscriptionCore>,
    publisher_core: Arc<PublisherCore>,
    counters: Mutex<ServiceCounters>,
    /// Where no more than a depth is kept.
    newest: Option<Newest>,
    /// Of a server that takes an action's goals.
    feedback_topic: Option<String>,
}

/// The newest requests, with the time at which each was sorted in.
struct Newest {
    depth: usize,
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    waiting: VecDeque<(Sample, Taken)>,
    /// How many were among them and are not any more.
    left: u64,
}

impl Requests {
    fn pop(&mut self) -> Option<(Sample, Taken)> {
        let request = self.waiting.pop_front()?;
        self.left += 1;
        Some(request)
    }
}

impl ServiceCore {
    /// The oldest request that is kept.
    fn next(&self) -> Result<Option<(Sample, Taken)>> {
        let Some(newest) = &self.newest else { return self.subscription_core.take() };
        self.sort_in(newest)?;
        Ok(newest.lock().pop())
    }

    /// Moves what has come to the newest, and answers how many there are.
    fn sort_in(&self, newest: &Newest) -> Result<Tally> {
        // Locked throughout, so that they stay in order. What is the user's waits until that is over.
        let mut requests = newest.lock();
        let mut displaced = 0;
        while let Some(request) = self.subscription_core.take()? {
            if newest.depth <= requests.waiting.len() {
                deferred::drop_later(requests.pop());
                displaced += 1;
            }
            requests.waiting.push_back(request);
        }
        let now = Tally { waiting: requests.waiting.len(), left: requests.left, is_wrong: false };
        drop(requests);
        if displaced != 0 {
            let mut counters = self.lock();
            let is_first = counters.displaced == 0;
            counters.displaced += displaced;
            drop(counters);
            if is_first {
                let (service, depth) = (&self.subscription_core.topic, newest.depth);
                report::warn!(%service, depth, "more requests wait than the depth of the server: the oldest are dropped");
            }
        }
        Ok(now)
    }

    /// The oldest request, unless the user holds as many as may be.
    fn take(self: &Arc<Self>) -> Result<Option<(Sample, Taken, Held)>> {
        self.subscription_core.open("take a request")?;
        let mut counters = self.lock();
        if HELD_MAX <= counters.open {
            return Ok(None);
        }
        counters.open += 1;
        drop(counters);
        // From here on its place is given back when it is dropped.
        let mut held = Held { core: Arc::clone(self), request: None };
        let Some((sample, taken)) = self.next()? else { return Ok(None) };
        let envelope = &sample.envelope;
        let number = envelope.related.unwrap_or((envelope.gid, envelope.sequence));
        held.request = Some(Asked { client: envelope.gid, number });
        self.lock().received += 1;
        Ok(Some((sample, taken, held)))
    }

    /// Waits until a client that is answered for the first time can hear feedback: a goal is executed as soon as it is
    /// answered, and its client's subscription, announced before the goal was sent, may be found after it.
    fn wait_for_feedback(&self, client: Gid) {
        let Some(topic) = &self.feedback_topic else { return };
        if !self.publisher_core.has_answered(client) {
            // Where it is not to be had the client is answered all the same.
            let session = &self.subscription_core.session;
            let _ = session.wait_for(FEEDBACK_WAIT_MAX, |graph_cache| {
                (!graph_cache.awaits_feedback(session, client, topic)).then_some(())
            });
        }
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, ServiceCounters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox for ServiceCore {
    fn cell(&self) -> &Arc<Cell> {
        &self.subscription_core.news
    }

    fn waiting(&self, most: usize) -> usize {
        let places = HELD_MAX.saturating_sub(self.lock().open);
        self.tally(most).waiting.min(usize::try_from(places).unwrap_or(usize::MAX))
    }

    fn tally(&self, most: usize) -> Tally {
        match self.newest.as_ref().map(|newest| self.sort_in(newest)) {
            None => self.subscription_core.tally(most),
            // What is wrong is told to whoever takes.
            Some(now) => now.unwrap_or_else(|_| Tally { is_wrong: true, ..Tally::default() }),
        }
    }
}

impl Newest {
    fn lock(&self) -> Locked<'_, Requests> {
        deferred::lock(&self.requests)
    }
}

/// The place of a request that the user holds, to be answered.
pub(crate) struct Held {
    core: Arc<ServiceCore>,
    /// What is not answered yet.
    request: Option<Asked>,
}

impl Held {
    pub(crate) fn respond(self, response: &Outgoing<'_>) -> Result<()> {
        if let Some(asked) = &self.request {
            self.core.wait_for_feedback(asked.client);
        }
        self.respond_at_once(response)
    }

    /// The same without waiting for a client that is to hear feedback.
    pub(crate) fn respond_at_once(mut self, response: &Outgoing<'_>) -> Result<()> {
        let publisher_core = &self.core.publisher_core;
        publisher_core.open("reply")?;
        if let Outgoing::Copied(bytes) = response
            && bytes.len() < 4
        {
            return Err(Error::invalid(format!(
                "reply on {}: {} bytes; allowed: CDR with its header of 4 bytes",
                publisher_core.topic,
                bytes.len()
            )));
        }
        let Some(asked) = self.request.take() else { return Ok(()) };
        let sent = publisher_core.reply(asked, response);
        let mut counters = self.core.lock();
        match sent {
            Ok(()) => counters.answered += 1,
            Err(_) => counters.failed += 1,
        }
        drop(counters);
        sent
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.core.subscription_core.session.is_current() {
            return;
        }
        let mut counters = self.core.lock();
        let was_full = HELD_MAX <= counters.open;
        counters.open = counters.open.saturating_sub(1);
        counters.unanswered += u64::from(self.request.is_some());
        drop(counters);
        if was_full {
            self.core.subscription_core.news.ring();
        }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Held").field(&self.request).finish()
    }
}

/// Hands each request of a service to its callback.
struct Entry {
    core: Arc<ServiceCore>,
    group: CallbackGroup,
    each: Mutex<Each>,
}

impl Entity for Entry {
    fn cell(&self) -> Option<&Arc<Cell>> {
        Some(&self.core.subscription_core.news)
    }

    fn run(&self, more: &mut dyn FnMut()) {
        // An error says that it is closed; whoever closed it knows.
        if let Ok(Some((sample, taken, held))) = self.core.take() {
            more();
            (self.each.lock().unwrap_or_else(PoisonError::into_inner))(sample, taken, held);
        }
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}

/// Requests of one service that the user holds. Beyond it no more are taken.
const HELD_MAX: u64 = 1024;

/// For how long the first reply to a client of an action waits until its subscription to feedback is met. Action clients of
/// ROS 2 all have one.
const FEEDBACK_WAIT_MAX: Duration = Duration::from_millis(200);
