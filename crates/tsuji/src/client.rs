//! Clients: requests that are sent, and the replies that come.

use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use tsuji_core::Qos;
use tsuji_msg::{Message, Service as ServiceType};
use tsuji_platform::clock;
use tsuji_transport::bell::Cell;
use tsuji_transport::{Bytes, Gid, Payload, Sample};

use crate::calls::{Calls, ClientCounters};
use crate::content::Content;
use crate::events::ClientEvent;
use crate::executor::Entity;
use crate::news::{Inbox, Listener, NewsCallback};
use crate::node::MAX_BLOCKING_DEFAULT;
use crate::pacing::after;
use crate::publication::{Codec, Outgoing, Publication, PublicationSpec};
use crate::reception::{Reception, ReceptionSpec};
use crate::subscription::EventEntity;
use crate::wait_list::sealed::Source;
use crate::{
    CallbackGroup, Error, ErrorKind, Node, RawPublisher, RawSample, RawSubscription, RawType,
    Result, Waitable,
};

/// Sends requests to servers of services of type `S`. Clones are the same client; it leaves the
/// service with the last of them and of its [`Pending`] requests.
///
/// A request goes to every server that is ready, which is one whose reply will find its way back. The
/// first reply counts; those of further servers are counted as late.
pub struct Client<S> {
    raw: RawClient,
    service: PhantomData<fn() -> S>,
}

impl<S: ServiceType> Client<S> {
    /// Sends a request, `&Request`, `Request` or `Arc<Request>`, and waits for the reply, first for a
    /// server if none is ready, for at most `timeout` in all.
    ///
    /// Nobody has to spin for it, and several threads may call at once. In a callback it keeps the
    /// callback's thread and group, so a server that needs just these cannot answer.
    ///
    /// Fails with [`NoServer`](ErrorKind::NoServer) when no server was ready in time,
    /// [`ServerLost`](ErrorKind::ServerLost) when every server that has the request leaves or dies,
    /// at once, [`Timeout`](ErrorKind::Timeout) when no reply came, [`Busy`](ErrorKind::Busy) when
    /// there was no room to send it, or 1024 requests are open, [`Closed`](ErrorKind::Closed) when the
    /// context is shut down or in a forked child.
    pub fn call<'r>(
        &self,
        request: impl Into<Content<'r, S::Request>>,
        timeout: Duration,
    ) -> Result<S::Response> {
        response::<S>(self.raw.call(&request.into().into(), timeout)?)
    }

    /// Sends a request and does not wait for the reply, nor for a server: without one it answers
    /// [`NoServer`](ErrorKind::NoServer). Where servers have no room it waits for at most 100 ms.
    pub fn send<'r>(&self, request: impl Into<Content<'r, S::Request>>) -> Result<Pending<S>> {
        let raw = self.raw.send(&request.into().into(), MAX_BLOCKING_DEFAULT)?;
        Ok(Pending { raw, service: PhantomData })
    }
}

impl<S> Clone for Client<S> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), service: PhantomData }
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
fn response<S: ServiceType>(reply: Sample) -> Result<S::Response> {
    match reply.payload {
        Payload::Typed(value) => match value.downcast::<S::Response>() {
            Ok(value) => Ok(Arc::unwrap_or_clone(value)),
            Err(_) => unreachable!("values are sent to takers of their type only"),
        },
        Payload::Bytes(bytes) => <S::Response as Message>::deserialize(&bytes).map_err(|error| {
            Error::invalid(format!("a reply is no valid {}", S::TYPE_NAME)).because(error)
        }),
    }
}

/// A request that was sent. Its reply is waited for or awaited; dropped it is forgotten.
///
/// Awaiting fails as [`Client::call`] does, but has no time-out of its own.
#[must_use = "its reply is dropped with it"]
pub struct Pending<S> {
    raw: RawPending,
    service: PhantomData<fn() -> S>,
}

impl<S: ServiceType> Pending<S> {
    /// Waits for the reply for at most `timeout`; then the request is forgotten.
    pub fn wait(self, timeout: Duration) -> Result<S::Response> {
        response::<S>(self.raw.wait_for_reply(after(clock::monotonic_ns(), timeout), timeout)?)
    }

    /// The same, but where no reply has come by then it answers `None`, and may be asked again. After a reply or a failure
    /// nothing more comes.
    pub fn wait_for(&self, timeout: Duration) -> Result<Option<S::Response>> {
        let RawPending { core, number } = &self.raw;
        let reply = core.calls.wait(*number, after(clock::monotonic_ns(), timeout))?;
        reply.map(response::<S>).transpose()
    }
}

impl<S: ServiceType> Future for Pending<S> {
    type Output = Result<S::Response>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.raw.poll_reply(context).map(|reply| response::<S>(reply?))
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
    pub fn wait(self, timeout: Duration) -> Result<Bytes> {
        bytes(self.wait_for_reply(after(clock::monotonic_ns(), timeout), timeout)?)
    }

    /// The number of the request among those of its client.
    pub fn sequence(&self) -> u64 {
        self.number
    }

    /// Waits until `give_up_ns`, which the user knows as `timeout`.
    fn wait_for_reply(&self, give_up_ns: u64, timeout: Duration) -> Result<Sample> {
        let calls = &self.core.calls;
        calls.wait(self.number, give_up_ns)?.ok_or_else(|| {
            calls.forget(self.number, |counters| counters.timed_out += 1);
            Error::new(
                ErrorKind::Timeout,
                format!(
                    "call {}: no reply within {timeout:?}; the request was sent, and may be \
                     performed",
                    calls.publication.topic
                ),
            )
        })
    }

    fn poll_reply(&self, context: &task::Context<'_>) -> Poll<Result<Sample>> {
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
        if self.core.calls.publication.host.is_current() {
            self.core.calls.forget(self.number, |counters| counters.forgotten += 1);
        }
    }
}

impl std::fmt::Debug for RawPending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let service = &self.core.calls.publication.topic;
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
        &self.core.calls.reception.news
    }

    fn is_ready(&self) -> bool {
        Inbox::waiting(&*self.core.calls, 1) != 0
    }
}

impl Drop for ClientCore {
    fn drop(&mut self) {
        if self.calls.publication.host.is_current() {
            self.listener.end(self.replies.node().context());
            self.calls.close();
        }
    }
}

impl RawClient {
    /// As [`Client::call`], with a request in CDR with its header of 4 bytes. A client with a type is
    /// refused the reply of a server of that type in its own process, which is no bytes.
    pub fn call_bytes(&self, request: &[u8], timeout: Duration) -> Result<Bytes> {
        bytes(self.call(&self.copied(request)?, timeout)?)
    }

    /// As [`Client::send`], with a request in CDR with its header of 4 bytes.
    pub fn send_bytes(&self, request: &[u8]) -> Result<RawPending> {
        self.send(&self.copied(request)?, MAX_BLOCKING_DEFAULT)
    }

    /// Sends a request in CDR with its header of 4 bytes, whose reply [`take_bytes`](Self::take_bytes) will
    /// bring, and answers its number. Where no server is ready it goes to nobody, and has no reply. Where 1024
    /// requests are open, the oldest of this kind is forgotten, and counted. Else it fails as [`Client::send`]
    /// does.
    pub fn post_bytes(&self, request: &[u8]) -> Result<u64> {
        self.core.calls.post(&self.copied(request)?, MAX_BLOCKING_DEFAULT)
    }

    /// The oldest reply to a request of [`post_bytes`](Self::post_bytes), with the request's number, if there
    /// is one. Never blocks. A request that no server can answer any more has none.
    pub fn take_bytes(&self) -> Result<Option<(u64, RawSample)>> {
        self.core.listener.take(
            || self.core.calls.collect(),
            |(number, sample)| Some((number, RawSample::new(sample, clock::monotonic_ns())?)),
        )
    }

    /// From now on `callback` hears how many replies have come to requests of
    /// [`post_bytes`](Self::post_bytes), as [`RawSubscription::on_news`] says.
    pub fn on_news(&self, callback: Option<NewsCallback>) -> Result<()> {
        let inbox = Arc::<Calls>::clone(&self.core.calls);
        self.core.listener.set(self.core.replies.node().context(), inbox, callback)
    }

    /// Whether a server is ready.
    pub fn is_ready(&self) -> bool {
        self.servers() != 0
    }

    /// How many servers are ready.
    pub fn servers(&self) -> usize {
        self.core.requests.matched()
    }

    /// Waits until a server is ready. [`NoServer`](ErrorKind::NoServer) when there is none in time,
    /// with the [`obstacles`](Self::obstacles).
    pub fn wait_for_service(&self, timeout: Duration) -> Result<()> {
        let calls = &self.core.calls;
        let gid = calls.publication.gid;
        let host = &calls.publication.host;
        let is_ready =
            host.wait_for(timeout, |directory| (directory.readers(gid) != 0).then_some(()))?;
        is_ready.ok_or_else(|| calls.no_server(&format!("within {timeout:?}")))
    }

    /// What of type or QoS keeps servers that are there from answering this client, with the name of
    /// each server's node.
    pub fn obstacles(&self) -> Vec<String> {
        self.core.calls.obstacles()
    }

    /// The full name of the service.
    pub fn name(&self) -> &str {
        self.core.requests.topic()
    }

    /// The type's name.
    pub fn type_name(&self) -> &str {
        self.core.requests.type_name()
    }

    /// What it offers and asks for.
    pub fn qos(&self) -> &Qos {
        self.core.requests.qos()
    }

    /// Its number, that of its half for requests.
    pub fn gid(&self) -> Gid {
        self.core.requests.gid()
    }

    /// What it has done so far.
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

    fn send(&self, request: &Outgoing<'_>, patience: Duration) -> Result<RawPending> {
        let number = self.core.calls.send(request, patience)?;
        Ok(RawPending { core: Arc::clone(&self.core), number })
    }

    fn call(&self, request: &Outgoing<'_>, timeout: Duration) -> Result<Sample> {
        let give_up_ns = after(clock::monotonic_ns(), timeout);
        let left = || Duration::from_nanos(give_up_ns.saturating_sub(clock::monotonic_ns()));
        loop {
            match self.send(request, left()) {
                Err(error) if error.kind() == ErrorKind::NoServer => {
                    // A server that leaves just then leaves time for the next.
                    self.wait_for_service(left()).map_err(|error| match error.kind() {
                        ErrorKind::NoServer => {
                            self.core.calls.no_server(&format!("within {timeout:?}"))
                        }
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

/// What a client will be.
pub struct ClientBuilder<'a, C> {
    node: &'a Node,
    name: String,
    of: RawType,
    qos: Qos,
    group: CallbackGroup,
    on_event: Option<Box<dyn FnMut(ClientEvent) + Send>>,
    codec: Option<Codec>,
    fixed_bytes: Option<u64>,
    spec: ReceptionSpec,
    client: PhantomData<C>,
}

impl<'a, C> ClientBuilder<'a, C> {
    pub(crate) fn new(node: &'a Node, name: &str, of: RawType) -> Self {
        Self {
            node,
            name: name.to_owned(),
            of,
            qos: Qos::DEFAULT,
            group: node.group().clone(),
            on_event: None,
            codec: None,
            fixed_bytes: None,
            spec: ReceptionSpec::default(),
            client: PhantomData,
        }
    }

    /// What it offers and asks for: [`Qos::DEFAULT`] if not said, as every client of ROS 2 does.
    /// Durability must be volatile. Its history is announced only: all requests and replies are kept,
    /// up to 1024, and whoever finds no room waits. By best effort the oldest goes instead.
    #[must_use]
    pub fn qos(mut self, qos: Qos) -> Self {
        self.qos = qos;
        self
    }

    /// The callback group of [`on_event`](Self::on_event). The node's own if not said.
    #[must_use]
    pub fn group(mut self, group: &CallbackGroup) -> Self {
        self.group = group.clone();
        self
    }

    /// Is called with what the client should know, while the node is spun.
    #[must_use]
    pub fn on_event(mut self, callback: impl FnMut(ClientEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }

    fn make(self) -> Result<RawClient> {
        let host = self.node.context().host();
        let [requests, replies] =
            self.node.halves("create a client", &self.name, &self.of, self.qos)?;
        let spec = PublicationSpec {
            codec: self.codec,
            fixed_bytes: self.fixed_bytes,
            expected_bytes: None,
            max_blocking: MAX_BLOCKING_DEFAULT,
        };
        let publication = Arc::new(Publication::new(requests, spec)?);
        let reception = Arc::new(Reception::new(replies, self.spec)?);
        let mut events: Option<Arc<dyn Entity>> = None;
        if let Some(on_event) = self.on_event {
            let cell = Arc::new(host.bells().claim_cell()?);
            publication.events.listen(Arc::clone(&cell));
            reception.events.listen(Arc::clone(&cell));
            let (requests, replies) = (Arc::clone(&publication), Arc::clone(&reception));
            let pop = Box::new(move || {
                let of_requests = || requests.events.find_pop(ClientEvent::of_requests);
                of_requests().or_else(|| replies.events.find_pop(ClientEvent::of_replies))
            });
            let entity: Arc<dyn Entity> =
                Arc::new(EventEntity::new(cell, self.group, pop, on_event));
            self.node.run(&entity)?;
            events = Some(entity);
        }
        let calls = Calls::new(self.node.clone(), Arc::clone(&publication), Arc::clone(&reception));
        let mut directory = host.directory();
        directory.add_reception(host, &reception);
        directory.add_publication(host, &publication);
        drop(directory);
        host.tell();
        let core = ClientCore {
            requests: RawPublisher::new(self.node.clone(), publication, events),
            replies: RawSubscription::new(self.node.clone(), reception, Vec::new()),
            calls,
            listener: Listener::default(),
        };
        Ok(RawClient { core: Arc::new(core) })
    }
}

impl<'a, S: ServiceType> ClientBuilder<'a, Client<S>> {
    pub(crate) fn of_type(node: &'a Node, name: &str, of: RawType) -> Self {
        let mut builder = Self::new(node, name, of);
        builder.codec = Some(Codec::of::<S::Request>());
        builder.fixed_bytes = <S::Request as Message>::FIXED_SIZE.map(|bytes| bytes as u64);
        // Whether it is valid is found, and told, where the reply is handed over.
        builder.spec = ReceptionSpec { check: None, ..ReceptionSpec::of::<S::Response>() };
        builder
    }

    /// Makes the client.
    pub fn build(self) -> Result<Client<S>> {
        Ok(Client { raw: self.make()?, service: PhantomData })
    }
}

impl ClientBuilder<'_, RawClient> {
    /// Makes the client.
    pub fn build(self) -> Result<RawClient> {
        self.make()
    }
}
