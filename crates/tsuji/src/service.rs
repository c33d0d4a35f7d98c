//! Servers: requests that come, and the replies to them.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsuji_core::Qos;
use tsuji_msg::{Message, Service as ServiceType};
use tsuji_transport::bell::Cell;
use tsuji_transport::{Bytes, Gid, Sample};

use crate::content::Content;
use crate::events::ServiceEvent;
use crate::executor::Entity;
use crate::news::{Inbox, Listener, NewsCallback};
use crate::node::MAX_BLOCKING_DEFAULT;
use crate::publication::{Asked, Codec, Outgoing, Publication, PublicationSpec};
use crate::reception::{Reception, ReceptionSpec};
use crate::subscription::EventEntity;
use crate::wait_list::sealed::Source;
use crate::{
    CallbackGroup, Error, MessageInfo, Node, RawPublisher, RawSample, RawSubscription, RawType,
    Received, Result, SubscriptionCounters, Waitable,
};

/// What a server has done so far.
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
    /// Replies sent.
    pub answered: u64,
    /// Replies that could not be sent: the client had left, or took none for 100 ms.
    pub failed: u64,
    /// Requests dropped without a reply, by a callback that panicked too.
    pub unanswered: u64,
    /// Requests that the user holds now.
    pub open: u64,
}

/// Answers requests of services of type `S`.
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
    /// The oldest request that was not taken, if there is one. Never blocks.
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
pub struct Request<S: ServiceType> {
    received: Received<S::Request>,
    held: Held,
}

impl<S: ServiceType> Request<S> {
    fn new(sample: Sample, now_ns: u64, held: Held) -> Option<Self> {
        Some(Self { received: Received::new(sample, now_ns)?, held })
    }

    /// What is known of it besides its contents: the client is its publisher.
    pub fn info(&self) -> &MessageInfo {
        self.received.info()
    }

    /// The request in place, without a copy.
    pub fn view(&self) -> <S::Request as tsuji_msg::wire::Wire>::View<'_> {
        self.received.view()
    }

    /// The request as a value: the client's own, or a copy.
    pub fn message(&self) -> Arc<S::Request> {
        self.received.message()
    }

    /// Sends the reply, `&Response`, `Response` or `Arc<Response>`. Closed when the client has left,
    /// or the server; Busy when the client takes no replies for 100 ms.
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
    fn new(sample: Sample, now_ns: u64, held: Held) -> Option<Self> {
        Some(Self { sample: RawSample::new(sample, now_ns)?, held })
    }

    /// What is known of it besides its contents: the client is its publisher.
    pub fn info(&self) -> &MessageInfo {
        &self.sample.info
    }

    /// CDR with its header of 4 bytes; not checked to be valid.
    pub fn bytes(&self) -> &Bytes {
        &self.sample.bytes
    }

    /// Its client, and its number among that one's requests.
    pub fn id(&self) -> (Gid, u64) {
        let asked = self.held.request.map(|it| (it.client, it.number.1));
        asked.unwrap_or((self.sample.info.publisher, self.sample.info.sequence))
    }

    /// Sends the reply in CDR with its header of 4 bytes. Fails as [`Request::respond`] does.
    pub fn respond_bytes(self, response: &[u8]) -> Result<()> {
        self.held.respond(&Outgoing::Copied(response))
    }
}

/// Answers serialised requests. Also what every [`Service`] derefs to.
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
        &self.core.reception.news
    }

    fn is_ready(&self) -> bool {
        Inbox::waiting(&*self.core, 1) != 0
    }
}

impl Drop for RawService {
    fn drop(&mut self) {
        if self.core.reception.host.is_current() {
            self.listener.end(self.requests.node().context());
        }
    }
}

impl RawService {
    /// The oldest request that was not taken, as bytes, if there is one. Never blocks. A value by
    /// reference has no bytes and is not answered here.
    pub fn take_bytes(&self) -> Result<Option<RawRequest>> {
        self.take_as(RawRequest::new)
    }

    /// The oldest of which `known` makes something.
    fn take_as<T>(&self, known: impl Fn(Sample, u64, Held) -> Option<T>) -> Result<Option<T>> {
        let known = |(sample, now_ns, held)| known(sample, now_ns, held);
        self.listener.take(|| self.core.take(), known)
    }

    /// From now on `callback` hears how many requests have come, as
    /// [`RawSubscription::on_news`](crate::RawSubscription::on_news) says.
    pub fn on_news(&self, callback: Option<NewsCallback>) -> Result<()> {
        self.requests.check_no_callback()?;
        self.listener.set(
            self.requests.node().context(),
            Arc::<ServiceCore>::clone(&self.core),
            callback,
        )
    }

    /// The full name of the service.
    pub fn name(&self) -> &str {
        self.requests.topic()
    }

    /// The type's name.
    pub fn type_name(&self) -> &str {
        self.requests.type_name()
    }

    /// What it offers and asks for.
    pub fn qos(&self) -> &Qos {
        self.requests.qos()
    }

    /// Its number, that of its half for requests.
    pub fn gid(&self) -> Gid {
        self.requests.gid()
    }

    /// How many clients can send it requests.
    pub fn clients(&self) -> usize {
        self.requests.matched()
    }

    /// What it has done so far.
    pub fn counters(&self) -> ServiceCounters {
        // A forked child may find the lock held for ever.
        if !self.core.reception.host.is_current() {
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

/// What a server will be.
pub struct ServiceBuilder<'a, S> {
    raw: RawServiceBuilder<'a>,
    service: PhantomData<S>,
}

impl<'a, S: ServiceType> ServiceBuilder<'a, S> {
    pub(crate) fn new(mut raw: RawServiceBuilder<'a>) -> Self {
        raw.spec = ReceptionSpec::of::<S::Request>();
        raw.codec = Some(Codec::of::<S::Response>());
        raw.fixed_bytes = <S::Response as Message>::FIXED_SIZE.map(|bytes| bytes as u64);
        Self { raw, service: PhantomData }
    }

    /// What it offers and asks for: [`Qos::DEFAULT`] if not said, as every service of ROS 2 does.
    /// Durability must be volatile. Its history is announced only: all requests and replies are kept.
    #[must_use]
    pub fn qos(mut self, qos: Qos) -> Self {
        self.raw = self.raw.qos(qos);
        self
    }

    /// The callback group. The node's own, which is mutually exclusive, if not said.
    #[must_use]
    pub fn group(mut self, group: &CallbackGroup) -> Self {
        self.raw = self.raw.group(group);
        self
    }

    /// Is called with what the server should know, while the node is spun.
    #[must_use]
    pub fn on_event(mut self, callback: impl FnMut(ServiceEvent) + Send + 'static) -> Self {
        self.raw = self.raw.on_event(callback);
        self
    }

    /// Makes the server; `callback` answers each request while the node is spun. A reply that cannot
    /// be sent is counted.
    pub fn callback(
        self,
        mut callback: impl FnMut(Arc<S::Request>) -> S::Response + Send + 'static,
    ) -> Result<Service<S>> {
        self.deferred(move |request| {
            let response = callback(request.message());
            // Whoever left needs no answer; it is counted.
            let _ = request.respond(response);
        })
    }

    /// Makes the server; `callback` gets each request while the node is spun, and answers it then, or
    /// gives it to whoever answers it later.
    pub fn deferred(
        self,
        mut callback: impl FnMut(Request<S>) + Send + 'static,
    ) -> Result<Service<S>> {
        let raw = self.raw.make(Some(Box::new(move |sample, now_ns, held| {
            if let Some(request) = Request::new(sample, now_ns, held) {
                callback(request);
            }
        })))?;
        Ok(Service { raw, service: PhantomData })
    }

    /// Makes the server, to be asked for requests.
    pub fn build(self) -> Result<Service<S>> {
        Ok(Service { raw: self.raw.make(None)?, service: PhantomData })
    }
}

/// What a server of serialised messages will be.
pub struct RawServiceBuilder<'a> {
    node: &'a Node,
    name: String,
    of: RawType,
    qos: Qos,
    group: CallbackGroup,
    on_event: Option<Box<dyn FnMut(ServiceEvent) + Send>>,
    spec: ReceptionSpec,
    codec: Option<Codec>,
    fixed_bytes: Option<u64>,
}

impl<'a> RawServiceBuilder<'a> {
    pub(crate) fn new(node: &'a Node, name: &str, of: RawType) -> Self {
        Self {
            node,
            name: name.to_owned(),
            of,
            qos: Qos::DEFAULT,
            group: node.group().clone(),
            on_event: None,
            spec: ReceptionSpec::default(),
            codec: None,
            fixed_bytes: None,
        }
    }

    /// As of [`ServiceBuilder::qos`].
    #[must_use]
    pub fn qos(mut self, qos: Qos) -> Self {
        self.qos = qos;
        self
    }

    /// The callback group. The node's own, which is mutually exclusive, if not said.
    #[must_use]
    pub fn group(mut self, group: &CallbackGroup) -> Self {
        self.group = group.clone();
        self
    }

    /// Is called with what the server should know, while the node is spun.
    #[must_use]
    pub fn on_event(mut self, callback: impl FnMut(ServiceEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }

    /// Makes the server; `callback` gets each request while the node is spun, and answers it then, or
    /// gives it to whoever answers it later.
    pub fn deferred(
        self,
        mut callback: impl FnMut(RawRequest) + Send + 'static,
    ) -> Result<RawService> {
        self.make(Some(Box::new(move |sample, now_ns, held| {
            if let Some(request) = RawRequest::new(sample, now_ns, held) {
                callback(request);
            }
        })))
    }

    /// Makes the server, to be asked for requests.
    pub fn build(self) -> Result<RawService> {
        self.make(None)
    }

    fn make(self, each: Option<Each>) -> Result<RawService> {
        let host = self.node.context().host();
        let [requests, replies] =
            self.node.halves("create a service", &self.name, &self.of, self.qos)?;
        let spec = PublicationSpec {
            codec: self.codec,
            fixed_bytes: self.fixed_bytes,
            expected_bytes: None,
            max_blocking: MAX_BLOCKING_DEFAULT,
        };
        let publication = Arc::new(Publication::new(replies, spec)?);
        let reception = Arc::new(Reception::new(requests, self.spec)?);
        let mut entities: Vec<Arc<dyn Entity>> = Vec::new();
        if let Some(on_event) = self.on_event {
            let cell = Arc::new(host.bells().claim_cell()?);
            reception.events.listen(Arc::clone(&cell));
            publication.events.listen(Arc::clone(&cell));
            let (requests, replies) = (Arc::clone(&reception), Arc::clone(&publication));
            let pop = Box::new(move || {
                let of_requests = || requests.events.find_pop(ServiceEvent::of_requests);
                of_requests().or_else(|| replies.events.find_pop(ServiceEvent::of_replies))
            });
            entities.push(Arc::new(EventEntity::new(cell, self.group.clone(), pop, on_event)));
        }
        let core = Arc::new(ServiceCore {
            reception: Arc::clone(&reception),
            publication: Arc::clone(&publication),
            counters: Mutex::default(),
        });
        if let Some(each) = each {
            let entity =
                Entry { core: Arc::clone(&core), group: self.group, each: Mutex::new(each) };
            entities.push(Arc::new(entity));
        }
        for entity in &entities {
            self.node.run(entity)?;
        }
        let mut directory = host.directory();
        directory.add_publication(host, &publication);
        directory.add_reception(host, &reception);
        drop(directory);
        host.tell();
        Ok(RawService {
            requests: RawSubscription::new(self.node.clone(), reception, entities),
            _replies: RawPublisher::new(self.node.clone(), publication, None),
            core,
            listener: Listener::default(),
        })
    }
}

/// What is done with each request, and the time at which it was taken.
type Each = Box<dyn FnMut(Sample, u64, Held) + Send>;

/// What requests need to be answered.
struct ServiceCore {
    reception: Arc<Reception>,
    publication: Arc<Publication>,
    counters: Mutex<ServiceCounters>,
}

impl ServiceCore {
    /// The oldest request, unless the user holds as many as may be.
    fn take(self: &Arc<Self>) -> Result<Option<(Sample, u64, Held)>> {
        self.reception.open("take a request")?;
        let mut counters = self.lock();
        if HELD_MAX <= counters.open {
            return Ok(None);
        }
        counters.open += 1;
        drop(counters);
        // From here on its place is given back when it is dropped.
        let mut held = Held { core: Arc::clone(self), request: None };
        let Some((sample, now_ns)) = self.reception.take()? else { return Ok(None) };
        let envelope = &sample.envelope;
        let number = envelope.related.unwrap_or((envelope.gid, envelope.sequence));
        held.request = Some(Asked { client: envelope.gid, number });
        self.lock().received += 1;
        Ok(Some((sample, now_ns, held)))
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, ServiceCounters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox for ServiceCore {
    fn cell(&self) -> &Arc<Cell> {
        &self.reception.news
    }

    fn waiting(&self, most: usize) -> usize {
        let places = HELD_MAX.saturating_sub(self.lock().open);
        self.reception.waiting(most).min(usize::try_from(places).unwrap_or(usize::MAX))
    }
}

/// The place of a request that the user holds.
struct Held {
    core: Arc<ServiceCore>,
    /// What is not answered yet.
    request: Option<Asked>,
}

impl Held {
    fn respond(mut self, response: &Outgoing<'_>) -> Result<()> {
        let publication = &self.core.publication;
        publication.open("reply")?;
        if let Outgoing::Copied(bytes) = response
            && bytes.len() < 4
        {
            return Err(Error::invalid(format!(
                "reply on {}: {} bytes; allowed: CDR with its header of 4 bytes",
                publication.topic,
                bytes.len()
            )));
        }
        let Some(asked) = self.request.take() else { return Ok(()) };
        let sent = publication.reply(asked, response);
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
        if !self.core.reception.host.is_current() {
            return;
        }
        let mut counters = self.core.lock();
        let was_full = HELD_MAX <= counters.open;
        counters.open = counters.open.saturating_sub(1);
        counters.unanswered += u64::from(self.request.is_some());
        drop(counters);
        if was_full {
            self.core.reception.news.ring();
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
        Some(&self.core.reception.news)
    }

    fn run(&self, more: &mut dyn FnMut()) {
        // An error says that it is closed; whoever closed it knows.
        if let Ok(Some((sample, now_ns, held))) = self.core.take() {
            more();
            (self.each.lock().unwrap_or_else(PoisonError::into_inner))(sample, now_ns, held);
        }
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}

/// Requests of one service that the user holds. Beyond it no more are taken.
const HELD_MAX: u64 = 1024;
