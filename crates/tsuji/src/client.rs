//! Clients: requests that are sent, and the replies that come.

use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use tsuji_core::{History, Qos};
use tsuji_msg::{Message, Service as ServiceType};
use tsuji_platform::clock;
use tsuji_transport::bell::Cell;
use tsuji_transport::{Bytes, Gid, Payload, Sample};

use crate::arrivals::{Inbox, Listener, NewMessageCallback};
use crate::calls::{Calls, ClientCounters};
use crate::content::Content;
use crate::events::ClientEvent;
use crate::executor::Entity;
use crate::latency::Taken;
use crate::options::{EndpointOptions, Texts};
use crate::pacing::after;
use crate::publisher_core::{MAX_BLOCKING_DEFAULT, Outgoing, PublisherCore, PublisherSpec};
use crate::subscription::EventEntity;
use crate::subscription_core::{SubscriptionCore, SubscriptionSpec};
use crate::wait_list::sealed::{Owner, Source};
use crate::{
    ClientOptions, Error, ErrorKind, Node, RawPublisher, RawSample, RawSubscription, RawType,
    Result, Waitable,
};

/// Sends requests to servers of services of type `S`.
///
/// Clones are the same client; it leaves the service with the last of them and of its [`Pending`] requests.
///
/// A request goes to every server that is ready, which is one whose reply will find its way back. The
/// first reply counts; those of further servers are counted as late.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::Context;
/// use tsuji::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
///
/// let node = Context::new()?.node("caller")?;
/// let client = node.create_client::<AddTwoInts>("add_two_ints")?;
/// let reply = client.call(AddTwoIntsRequest { a: 20, b: 22 }, Duration::from_secs(5))?;
/// assert_eq!(reply.sum, 42);
/// # Ok::<_, tsuji::Error>(())
/// ```
pub struct Client<S> {
    raw: RawClient,
    texts: Texts,
    service: PhantomData<fn() -> S>,
}

impl<S: ServiceType> Client<S> {
    pub(crate) fn create(node: &Node, options: ClientOptions) -> Result<Self> {
        // Whether a reply is valid is found, and told, where it is handed over.
        let replies = SubscriptionSpec { check: None, ..SubscriptionSpec::of::<S::Response>() };
        let specs = (PublisherSpec::of::<S::Request>(), replies);
        let texts = options.of_kind.texts;
        let raw = RawClient::create(node, options, &RawType::of_service::<S>(), specs)?;
        Ok(Self { raw, texts, service: PhantomData })
    }

    /// Sends a request, `&Request`, `Request` or `Arc<Request>`, and waits for the reply, first for a
    /// server if none is ready, for at most `timeout` in all.
    ///
    /// Nobody has to spin for it, and several threads may call at once. In a callback it keeps the
    /// callback's thread and group, so a server that needs just these cannot answer.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NoServer`] if no server is ready within `timeout`.
    /// - [`ErrorKind::ServerLost`] at once if every server that has the request leaves or dies.
    /// - [`ErrorKind::Timeout`] if no reply has come within `timeout`.
    /// - [`ErrorKind::Busy`] if there is no room to send it, or 1024 requests are open; [`ErrorKind::Exhausted`] if
    ///   memory or the means to wait are used up.
    /// - [`ErrorKind::Invalid`] if the request breaks a limit of its type, or the reply is no valid message, as one with a
    ///   text that is not UTF-8, unless [that is replaced](ClientOptions::replace_invalid_text).
    /// - [`ErrorKind::TooLarge`] if the request is larger than a link carries.
    /// - [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn call<'r>(
        &self,
        request: impl Into<Content<'r, S::Request>>,
        timeout: Duration,
    ) -> Result<S::Response> {
        response::<S>(self.raw.call(&request.into().into(), timeout)?, self.texts)
    }

    /// Sends a request and does not wait for the reply, nor for a server. Where servers have no room it waits for
    /// at most 100 ms.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call) that come before the reply: [`ErrorKind::NoServer`] at once if no server is ready.
    pub fn send<'r>(&self, request: impl Into<Content<'r, S::Request>>) -> Result<Pending<S>> {
        let raw = self.raw.send(&request.into().into(), MAX_BLOCKING_DEFAULT)?;
        Ok(Pending { raw, texts: self.texts, service: PhantomData })
    }
}

impl<S> Clone for Client<S> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), texts: self.texts, service: PhantomData }
    }
}

impl<S> Deref for Client<S> {
    type Target = RawClient;

    fn deref(&self) -> &RawClient {
        &self.raw
    }
}

impl<S> std::fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.raw.fmt(f)
    }
}

/// The response in a reply: the server's own value if it keeps none, else a copy.
pub(crate) fn response<S: ServiceType>(reply: Sample, texts: Texts) -> Result<S::Response> {
    let read = match texts {
        Texts::Checked => <S::Response as Message>::deserialize,
        Texts::Replaced => <S::Response as Message>::deserialize_lossy,
    };
    match reply.payload {
        Payload::Typed(value) => match value.downcast::<S::Response>() {
            Ok(value) => Ok(Arc::unwrap_or_clone(value)),
            Err(_) => unreachable!("values are sent to takers of their type only"),
        },
        Payload::Bytes(bytes) => read(&bytes).map_err(|error| {
            Error::invalid(format!("a reply is no valid {}", S::TYPE_NAME)).because(error)
        }),
    }
}

/// A request that was sent. Its reply is waited for or awaited; dropped it is forgotten.
///
/// Awaiting fails as [`Client::call`] does, but has no time-out of its own.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::Context;
/// use tsuji::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
///
/// let node = Context::new()?.node("caller")?;
/// let client = node.create_client::<AddTwoInts>("add_two_ints")?;
/// client.wait_for_service(Duration::from_secs(5))?;
/// let pending = client.send(AddTwoIntsRequest { a: 20, b: 22 })?;
/// // Something else is done meanwhile.
/// println!("{}", pending.wait(Duration::from_secs(1))?.sum);
/// # Ok::<_, tsuji::Error>(())
/// ```
#[must_use = "its reply is dropped with it"]
pub struct Pending<S> {
    raw: RawPending,
    texts: Texts,
    service: PhantomData<fn() -> S>,
}

impl<S: ServiceType> Pending<S> {
    /// Waits for the reply for at most `timeout`; then the request is forgotten.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if no reply has come by then; else as [`wait_for`](Self::wait_for).
    pub fn wait(self, timeout: Duration) -> Result<S::Response> {
        response::<S>(self.raw.wait_for_sample(timeout)?, self.texts)
    }

    /// Waits for the reply for at most `timeout`; `None` where it has not come by then, and it may be asked again.
    ///
    /// After a reply or a failure nothing more comes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ServerLost`] if every server that has the request left or died, [`ErrorKind::Invalid`] if the
    /// reply is no valid message, [`ErrorKind::Exhausted`] if the means to wait are used up, [`ErrorKind::Closed`]
    /// when the context is shut down or in a forked child.
    pub fn wait_for(&self, timeout: Duration) -> Result<Option<S::Response>> {
        let reply = self.raw.try_wait(timeout)?;
        reply.map(|reply| response::<S>(reply, self.texts)).transpose()
    }
}

impl<S: ServiceType> Future for Pending<S> {
    type Output = Result<S::Response>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.raw.poll_reply(context).map(|reply| response::<S>(reply?, self.texts))
    }
}

impl<S> std::fmt::Debug for Pending<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.raw.fmt(f)
    }
}

/// A request in bytes that was sent. As [`Pending`], for bytes.
#[must_use = "its reply is dropped with it"]
pub struct RawPending {
    core: Arc<ClientCore>,
    number: u64,
}

impl RawPending {
    /// Waits for the reply for at most `timeout`; then the request is forgotten.
    ///
    /// # Errors
    ///
    /// Those of [`RawClient::call_bytes`] once the request is sent.
    pub fn wait(self, timeout: Duration) -> Result<Bytes> {
        bytes(self.wait_for_sample(timeout)?)
    }

    /// Waits for the reply for at most `timeout`; then the request is forgotten.
    pub(crate) fn wait_for_sample(&self, timeout: Duration) -> Result<Sample> {
        self.wait_for_reply(after(clock::monotonic_ns(), timeout), timeout)
    }

    /// Waits for the reply for at most `timeout`; `None` where it has not come by then, and it may be asked again.
    pub(crate) fn try_wait(&self, timeout: Duration) -> Result<Option<Sample>> {
        self.core.calls.wait(self.number, after(clock::monotonic_ns(), timeout))
    }

    /// Returns the number of the request among those of its client.
    pub fn sequence(&self) -> u64 {
        self.number
    }

    /// Waits until `give_up_ns`, which the user knows as `timeout`.
    fn wait_for_reply(&self, give_up_ns: u64, timeout: Duration) -> Result<Sample> {
        let calls = &self.core.calls;
        calls.wait(self.number, give_up_ns)?.ok_or_else(|| {
            calls.forget(self.number, |counters| counters.timed_out += 1);
            let what = format!("call {}: no reply", calls.publisher_core.topic);
            Error::new(ErrorKind::Timeout, what)
                .within(timeout)
                .hint("; the request was sent, and may be performed")
        })
    }

    pub(crate) fn poll_reply(&self, context: &task::Context<'_>) -> Poll<Result<Sample>> {
        match self.core.calls.poll(self.number, context.waker()).transpose() {
            Some(reply) => Poll::Ready(reply),
            None => Poll::Pending,
        }
    }
}

impl Future for RawPending {
    type Output = Result<Bytes>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.poll_reply(context).map(|reply| bytes(reply?))
    }
}

impl Drop for RawPending {
    fn drop(&mut self) {
        if self.core.calls.publisher_core.session.is_current() {
            self.core.calls.forget(self.number, |counters| counters.forgotten += 1);
        }
    }
}

impl std::fmt::Debug for RawPending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let service = &self.core.calls.publisher_core.topic;
        f.debug_struct("Pending").field("service", service).field("number", &self.number).finish()
    }
}

fn bytes(reply: Sample) -> Result<Bytes> {
    match reply.payload {
        Payload::Bytes(bytes) => Ok(bytes),
        Payload::Typed(_) => Err(Error::new(
            ErrorKind::Unsupported,
            "the reply of a server in this process is no bytes to a client with a type; allowed: a \
             raw client, or its call()",
        )),
    }
}

/// Sends serialised requests. Also what every [`Client`] derefs to.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::Context;
///
/// let node = Context::new()?.node("caller")?;
/// let client = node.create_raw_client("motor", "std_srvs/srv/SetBool")?;
/// // The header of CDR, little endian, and `data: true`.
/// let reply = client.call_bytes(&[0, 1, 0, 0, 1], Duration::from_secs(5))?;
/// println!("{} bytes", reply.len());
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Clone)]
pub struct RawClient {
    core: Arc<ClientCore>,
}

struct ClientCore {
    requests: RawPublisher,
    replies: RawSubscription,
    calls: Arc<Calls>,
    listener: Listener,
}

impl Waitable for RawClient {}

/// Ready when there is a reply for [`RawClient::take_bytes`].
impl Source for RawClient {
    fn cell(&self) -> &Arc<Cell> {
        &self.core.calls.subscription_core.news
    }

    fn owner(&self) -> Owner<'_> {
        Owner(&self.core.calls.subscription_core.session)
    }

    fn is_ready(&self) -> bool {
        Inbox::waiting(&*self.core.calls, 1) != 0
    }
}

impl Drop for ClientCore {
    fn drop(&mut self) {
        if self.calls.publisher_core.session.is_current() {
            self.listener.end(self.replies.node().context());
            self.calls.close();
            // At once, so that the graph changes once; the halves find that they have left.
            let (publisher_core, subscription_core) =
                (&self.calls.publisher_core, &self.calls.subscription_core);
            let mut graph_cache = publisher_core.session.graph_cache();
            graph_cache.remove_local(&publisher_core.session, publisher_core.gid);
            graph_cache.remove_local(&publisher_core.session, subscription_core.gid);
        }
    }
}

impl RawClient {
    pub(crate) fn of_bytes(node: &Node, options: ClientOptions, of: RawType) -> Result<Self> {
        Self::create(node, options, &of, Default::default())
    }

    /// The client of a service, of requests and replies as `specs` say.
    pub(crate) fn create(
        node: &Node,
        options: ClientOptions,
        of: &RawType,
        specs: (PublisherSpec, SubscriptionSpec),
    ) -> Result<Self> {
        let EndpointOptions { qos, group, on_event, of_kind } = options;
        let session = node.context().session();
        let [requests, replies] = node.halves("create a client", &of_kind.name, of, qos)?;
        let publisher_core = Arc::new(PublisherCore::new(requests, specs.0)?);
        let subscription_core = Arc::new(SubscriptionCore::new(replies, specs.1)?);
        let mut events: Option<Arc<dyn Entity>> = None;
        if let Some(on_event) = on_event {
            let cell = Arc::new(session.bells().claim_cell()?);
            publisher_core.events.listen(Arc::clone(&cell));
            subscription_core.events.listen(Arc::clone(&cell));
            let (requests, replies) = (Arc::clone(&publisher_core), Arc::clone(&subscription_core));
            let pop = Box::new(move || {
                let of_requests = || requests.events.find_pop(ClientEvent::of_requests);
                of_requests().or_else(|| replies.events.find_pop(ClientEvent::of_replies))
            });
            let group = group.unwrap_or_else(|| node.group().clone());
            let entity: Arc<dyn Entity> = Arc::new(EventEntity::new(cell, group, pop, on_event));
            node.run(&entity)?;
            events = Some(entity);
        }
        let depth = match qos.history {
            History::KeepLast(depth) if of_kind.keeps_depth => Some(depth),
            _ => None,
        };
        let (requests, replies) = (Arc::clone(&publisher_core), Arc::clone(&subscription_core));
        let calls = Calls::new(node.clone(), requests, replies, depth);
        let mut graph_cache = session.graph_cache();
        graph_cache.add_subscription_core(session, &subscription_core);
        graph_cache.add_publisher_core(session, &publisher_core);
        drop(graph_cache);
        session.tell();
        let core = ClientCore {
            requests: RawPublisher::new(node.clone(), publisher_core, events),
            replies: RawSubscription::new(node.clone(), subscription_core, Vec::new()),
            calls,
            listener: Listener::default(),
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// Sends a request in CDR with its header of 4 bytes and waits for the reply, as [`Client::call`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`], but the reply is not checked to be valid; [`ErrorKind::Invalid`] if the request
    /// is shorter than 4 bytes; [`ErrorKind::Unsupported`] if a client with a type gets the reply of a server of
    /// that type in its own process, which is no bytes.
    pub fn call_bytes(&self, request: &[u8], timeout: Duration) -> Result<Bytes> {
        bytes(self.call(&self.copied(request)?, timeout)?)
    }

    /// Sends a request in CDR with its header of 4 bytes, as [`Client::send`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Client::send`]; [`ErrorKind::Invalid`] if the request is shorter than 4 bytes.
    pub fn send_bytes(&self, request: &[u8]) -> Result<RawPending> {
        self.send(&self.copied(request)?, MAX_BLOCKING_DEFAULT)
    }

    /// Sends a request in CDR with its header of 4 bytes, whose reply [`take_bytes`](Self::take_bytes) will
    /// bring, and returns its number.
    ///
    /// Where no server is ready it goes to nobody, and has no reply. Where 1024 requests are open, the oldest of
    /// this kind is forgotten, and counted.
    ///
    /// # Errors
    ///
    /// Those of [`send_bytes`](Self::send_bytes), but never [`ErrorKind::NoServer`].
    pub fn post_bytes(&self, request: &[u8]) -> Result<u64> {
        self.core.calls.post(&self.copied(request)?, MAX_BLOCKING_DEFAULT)
    }

    /// Takes the oldest reply to a request of [`post_bytes`](Self::post_bytes), with the request's number, if there
    /// is one. Never blocks.
    ///
    /// A request that no server can answer any more has none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn take_bytes(&self) -> Result<Option<(u64, RawSample)>> {
        self.core.listener.take(
            || self.core.calls.collect(),
            |(number, sample)| {
                let taken = Taken::now(&sample.envelope);
                Some((number, RawSample::new(sample, taken)?))
            },
        )
    }

    /// Sets a callback that hears how many replies have come to requests of [`post_bytes`](Self::post_bytes);
    /// `None` ends it.
    ///
    /// It is called as that of [`RawSubscription::on_new_message`] is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exhausted`] if the thread that calls it cannot be started, or has 4095 callbacks already;
    /// [`ErrorKind::Closed`] if it would be started in a forked child.
    pub fn on_new_response(&self, callback: Option<NewMessageCallback>) -> Result<()> {
        let inbox = Arc::<Calls>::clone(&self.core.calls);
        self.core.listener.set(self.core.replies.node().context(), inbox, callback)
    }

    /// Returns true if a server is ready.
    pub fn is_ready(&self) -> bool {
        self.servers() != 0
    }

    /// Returns how many servers are ready.
    pub fn servers(&self) -> usize {
        self.core.requests.matched()
    }

    /// Waits until a server is ready.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoServer`] if there is none within `timeout`, with the [`obstacles`](Self::obstacles);
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn wait_for_service(&self, timeout: Duration) -> Result<()> {
        let calls = &self.core.calls;
        let gid = calls.publisher_core.gid;
        let session = &calls.publisher_core.session;
        let is_ready = session
            .wait_for(timeout, |graph_cache| (graph_cache.readers(gid) != 0).then_some(()))?;
        is_ready.ok_or_else(|| calls.no_server().within(timeout))
    }

    /// Returns what of type or QoS keeps servers that are there from answering this client, with the name of
    /// each server's node.
    pub fn obstacles(&self) -> Vec<String> {
        self.core.calls.obstacles()
    }

    /// Returns the full name of the service.
    pub fn name(&self) -> &str {
        self.core.requests.topic()
    }

    /// Returns the name of the service's type, such as `std_srvs/srv/SetBool`.
    pub fn type_name(&self) -> &str {
        self.core.requests.type_name()
    }

    /// Returns the QoS that the client offers and asks for.
    pub fn qos(&self) -> &Qos {
        self.core.requests.qos()
    }

    /// Returns the global identifier of the client's half for requests: 16 bytes, as in the graph.
    pub fn gid(&self) -> Gid {
        self.core.requests.gid()
    }

    /// Returns what the client has done so far.
    pub fn counters(&self) -> ClientCounters {
        self.core.calls.counters()
    }

    fn copied<'r>(&self, request: &'r [u8]) -> Result<Outgoing<'r>> {
        if 4 <= request.len() {
            return Ok(Outgoing::Copied(request));
        }
        Err(Error::invalid(format!(
            "call {}: {} bytes; allowed: CDR with its header of 4 bytes",
            self.name(),
            request.len()
        )))
    }

    /// Sends a request. Where servers have no room it waits for at most `patience`.
    pub(crate) fn send(&self, request: &Outgoing<'_>, patience: Duration) -> Result<RawPending> {
        let number = self.core.calls.send(request, patience)?;
        Ok(RawPending { core: Arc::clone(&self.core), number })
    }

    /// Fails in a forked child and after the end.
    pub(crate) fn open(&self, operation: &str) -> Result<()> {
        self.core.calls.publisher_core.open(operation)
    }

    fn call(&self, request: &Outgoing<'_>, timeout: Duration) -> Result<Sample> {
        let give_up_ns = after(clock::monotonic_ns(), timeout);
        let left = || Duration::from_nanos(give_up_ns.saturating_sub(clock::monotonic_ns()));
        loop {
            match self.send(request, left()) {
                Err(error) if error.kind() == ErrorKind::NoServer => {
                    // A server that leaves just then leaves time for the next.
                    self.wait_for_service(left()).map_err(|error| match error.kind() {
                        ErrorKind::NoServer => error.within(timeout),
                        _ => error,
                    })?;
                }
                sent => return sent?.wait_for_reply(give_up_ns, timeout),
            }
        }
    }
}

impl std::fmt::Debug for RawClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("name", &self.name()).finish_non_exhaustive()
    }
}
