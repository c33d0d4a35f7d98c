//! Nodes: names, and what is made under them.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tsuji_core::names::{self, Remapped};
use tsuji_core::{Durability, Qos};
use tsuji_msg::{Message, Service as ServiceType, TypeName};
use tsuji_transport::Gid;

use crate::control::protocol::NodeRecord;
use crate::endpoint::EndpointCore;
use crate::events::{Note, PublisherEvent, SubscriptionEvent};
use crate::executor::{Entity, ExecutorCore};
use crate::publication::{Codec, Publication, PublicationSpec};
use crate::reception::{Reception, ReceptionSpec};
use crate::subscription::{EventEntity, RawEntity};
use crate::timer::{Periodic, TimerEntity};
use crate::{
    CallbackGroup, CallbackGroupKind, Client, ClientBuilder, Context, Error, Publisher, RawClient,
    RawPublisher, RawSample, RawServiceBuilder, RawSubscription, Received, Result, Schedule,
    ScheduledTimer, Service, ServiceBuilder, Subscription, Timer,
};

/// A node. Clones are the same node; it leaves the graph with the last of them and of what was
/// made under it.
///
/// **Liveliness.** A publisher whose liveliness is automatic is alive for as long as its process
/// exists: a process that is stopped (SIGSTOP) or hangs counts as alive, whatever the lease. To find
/// such out, ask for [`ManualByTopic`](tsuji_core::Liveliness::ManualByTopic) with a lease.
///
/// **Fork.** In a forked child everything that was made before answers Closed. If the parent has
/// other threads, such as those that spin, the child must do nothing but `exec` or `_exit`: a lock
/// that one of them held, the allocator's for example, stays locked in the child. So start processes
/// with [`std::process::Command`], or fork before the first context is made.
#[derive(Clone)]
pub struct Node {
    core: Arc<NodeCore>,
}

pub(crate) struct NodeCore {
    context: Context,
    gid: Gid,
    name: String,
    namespace: String,
    full_name: String,
    group: CallbackGroup,
    running: Mutex<Running>,
}

/// What executors run for this node.
#[derive(Default)]
struct Running {
    executor: Option<Weak<ExecutorCore>>,
    entities: Vec<Weak<dyn Entity>>,
}

impl Node {
    pub(crate) fn new(context: &Context, name: &str, namespace: &str) -> Result<Self> {
        context.host().open("create a node")?;
        let rules = context.remap_rules();
        let name = names::remap_node(rules, name).unwrap_or(name);
        let namespace = names::remap_namespace(rules, name).unwrap_or(namespace);
        let namespace = match namespace {
            "" => "/".to_owned(),
            absolute if absolute.starts_with('/') => absolute.to_owned(),
            relative => format!("/{relative}"),
        };
        names::validate_node(name).map_err(|error| Error::invalid(error.to_string()))?;
        names::validate_namespace(&namespace).map_err(|error| Error::invalid(error.to_string()))?;
        let gid = context.host().new_gid();
        let core = NodeCore {
            context: context.clone(),
            gid,
            name: name.to_owned(),
            namespace: namespace.clone(),
            full_name: crate::graph::full_name(&namespace, name),
            group: CallbackGroup::new(CallbackGroupKind::MutuallyExclusive),
            running: Mutex::default(),
        };
        let record = NodeRecord { gid: gid.0, name: name.to_owned(), namespace };
        let host = context.host();
        host.directory().add_node(host, record);
        host.tell();
        Ok(Self { core: Arc::new(core) })
    }

    /// Its name, without namespace.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Its namespace, `/` or such as `/robot`.
    pub fn namespace(&self) -> &str {
        &self.core.namespace
    }

    /// Namespace and name, such as `/robot/camera`.
    pub fn fully_qualified_name(&self) -> &str {
        &self.core.full_name
    }

    /// The context that it lives in.
    pub fn context(&self) -> &Context {
        &self.core.context
    }

    /// Begins to make a publisher of messages of type `M`.
    pub fn publisher<M: Message>(&self, topic: &str) -> PublisherBuilder<'_, Publisher<M>> {
        let raw = RawType { name: M::TYPE_NAME.to_owned(), hash: M::TYPE_HASH.to_owned() };
        let mut builder = PublisherBuilder::new(self, topic, raw);
        builder.codec = Some(Codec::of::<M>());
        builder.fixed_bytes = M::FIXED_SIZE.map(|bytes| bytes as u64);
        builder
    }

    /// Begins to make a subscription to messages of type `M`.
    pub fn subscription<M: Message>(&self, topic: &str) -> SubscriptionBuilder<'_, M> {
        let raw = RawType { name: M::TYPE_NAME.to_owned(), hash: M::TYPE_HASH.to_owned() };
        SubscriptionBuilder {
            raw: RawSubscriptionBuilder::new(self, topic, raw),
            message: PhantomData,
        }
    }

    /// A publisher with this QoS.
    pub fn create_publisher<M: Message>(&self, topic: &str, qos: Qos) -> Result<Publisher<M>> {
        self.publisher::<M>(topic).qos(qos).build()
    }

    /// A subscription with this QoS, whose samples go to `callback` while the node is spun.
    pub fn create_subscription<M: Message>(
        &self,
        topic: &str,
        qos: Qos,
        callback: impl FnMut(Received<M>) + Send + 'static,
    ) -> Result<Subscription<M>> {
        self.subscription::<M>(topic).qos(qos).callback(callback)
    }

    /// Begins to make a publisher of serialised messages, of a type known at run time only.
    pub fn raw_publisher(&self, topic: &str, of: RawType) -> PublisherBuilder<'_, RawPublisher> {
        PublisherBuilder::new(self, topic, of)
    }

    /// Begins to make a subscription to serialised messages, of a type known at run time only.
    pub fn raw_subscription(&self, topic: &str, of: RawType) -> RawSubscriptionBuilder<'_> {
        RawSubscriptionBuilder::new(self, topic, of)
    }

    /// Begins to make a server of services of type `S`.
    pub fn service<S: ServiceType>(&self, name: &str) -> ServiceBuilder<'_, S> {
        ServiceBuilder::new(self.raw_service(name, service_type::<S>()))
    }

    /// Begins to make a client of services of type `S`.
    pub fn client<S: ServiceType>(&self, name: &str) -> ClientBuilder<'_, Client<S>> {
        ClientBuilder::of_type(self, name, service_type::<S>())
    }

    /// A server with the default QoS, whose `callback` answers requests while the node is spun.
    pub fn create_service<S: ServiceType>(
        &self,
        name: &str,
        callback: impl FnMut(Arc<S::Request>) -> S::Response + Send + 'static,
    ) -> Result<Service<S>> {
        self.service::<S>(name).callback(callback)
    }

    /// A client with the default QoS.
    pub fn create_client<S: ServiceType>(&self, name: &str) -> Result<Client<S>> {
        self.client::<S>(name).build()
    }

    /// Begins to make a server of serialised messages, of a type known at run time only.
    pub fn raw_service(&self, name: &str, of: RawType) -> RawServiceBuilder<'_> {
        RawServiceBuilder::new(self, name, of)
    }

    /// Begins to make a client of serialised messages, of a type known at run time only.
    pub fn raw_client(&self, name: &str, of: RawType) -> ClientBuilder<'_, RawClient> {
        ClientBuilder::new(self, name, of)
    }

    /// Calls `callback` every `period` while the node is spun. A call that is late is made once;
    /// the ones missed meanwhile are not made up for.
    pub fn create_timer(
        &self,
        period: Duration,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer> {
        self.create_timer_in(&self.core.group, period, callback)
    }

    /// The same, in a callback group.
    pub fn create_timer_in(
        &self,
        group: &CallbackGroup,
        period: Duration,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer> {
        if period.is_zero() {
            return Err(Error::invalid("a timer's period is 0; allowed: at least 1 ns"));
        }
        let periodic = Periodic::new(period);
        let entity = Arc::new(TimerEntity::new(periodic, group.clone(), Box::new(callback)));
        let entity_dyn: Arc<dyn Entity> = Arc::<TimerEntity<Periodic>>::clone(&entity);
        self.run(&entity_dyn)?;
        Ok(Timer::new(self.clone(), entity))
    }

    /// Calls `callback` when `schedule` says so, while the node is spun: by a clock that `tsuji` does not know, for
    /// example. In the node's own callback group where none is named.
    pub fn create_scheduled_timer(
        &self,
        group: Option<&CallbackGroup>,
        schedule: Arc<dyn Schedule>,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<ScheduledTimer> {
        let group = group.unwrap_or(&self.core.group).clone();
        let entity: Arc<dyn Entity> =
            Arc::new(TimerEntity::new(schedule, group, Box::new(callback)));
        self.run(&entity)?;
        Ok(ScheduledTimer::new(self.clone(), entity))
    }

    /// A new callback group.
    pub fn create_callback_group(&self, kind: CallbackGroupKind) -> CallbackGroup {
        CallbackGroup::new(kind)
    }

    pub(crate) fn join(&self, executor: &Arc<ExecutorCore>) -> Result<()> {
        let mut running = self.running();
        if running.executor.as_ref().is_some_and(|it| 0 < it.strong_count()) {
            return Err(Error::invalid(format!(
                "node {} belongs to another executor already",
                self.core.full_name
            )));
        }
        running.executor = Some(Arc::downgrade(executor));
        running.entities.retain(|it| 0 < it.strong_count());
        let entities: Vec<_> = running.entities.iter().filter_map(Weak::upgrade).collect();
        drop(running);
        entities.iter().try_for_each(|entity| executor.attach(entity))
    }

    pub(crate) fn leave(&self) {
        self.running().executor = None;
    }

    /// Lets the node's executor run `entity`, now or when there is one.
    pub(crate) fn run(&self, entity: &Arc<dyn Entity>) -> Result<()> {
        let mut running = self.running();
        running.entities.retain(|it| 0 < it.strong_count());
        running.entities.push(Arc::downgrade(entity));
        let executor = running.executor.as_ref().and_then(Weak::upgrade);
        drop(running);
        executor.map_or(Ok(()), |executor| executor.attach(entity))
    }

    pub(crate) fn run_no_more(&self, entity: &Arc<dyn Entity>) {
        let executor = self.running().executor.as_ref().and_then(Weak::upgrade);
        if let Some(executor) = executor {
            executor.detach(entity);
        }
    }

    /// Lets the executor that runs this node look anew at what is due, because a [`Schedule`] has changed. Never
    /// waits.
    pub fn wake(&self) {
        let executor = self.running().executor.as_ref().and_then(Weak::upgrade);
        if let Some(executor) = executor {
            executor.wake();
        }
    }

    fn resolve(&self, what: Remapped, name: &str) -> Result<String> {
        let core = &self.core;
        let rules = core.context.remap_rules();
        names::resolve(rules, what, name, &core.name, &core.namespace)
            .map_err(|error| Error::invalid(error.to_string()))
    }

    /// What every endpoint under this node has, once it is sure that there may be one.
    fn endpoint(
        &self,
        operation: &str,
        what: Remapped,
        name: &str,
        of: RawType,
        qos: Qos,
    ) -> Result<EndpointCore> {
        let topic = self.resolve(what, name)?;
        let of = of.parse().map_err(|why| Error::invalid(format!("{topic}: {why}")))?;
        qos.validate().map_err(|error| Error::invalid(format!("{topic}: {error}")))?;
        let host = self.context().host();
        host.open(operation)?;
        Ok(EndpointCore::new(host, self.core.gid, topic, of, qos))
    }

    /// The two halves of a client or of a server: what its requests go through, and its replies.
    pub(crate) fn halves(
        &self,
        operation: &str,
        service: &str,
        of: &RawType,
        qos: Qos,
    ) -> Result<[EndpointCore; 2]> {
        if qos.durability == Durability::TransientLocal {
            return Err(Error::invalid(format!(
                "{service}: durability transient_local; allowed for a service: volatile, since a \
                 request is for the servers that are there"
            )));
        }
        let half = || self.endpoint(operation, Remapped::Service, service, of.clone(), qos);
        let (mut requests, mut replies) = (half()?, half()?);
        EndpointCore::pair(&mut requests, &mut replies);
        Ok([requests, replies])
    }

    /// The callback group of what names none.
    pub(crate) fn group(&self) -> &CallbackGroup {
        &self.core.group
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.core.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Node").field(&self.core.full_name).finish()
    }
}

impl Drop for NodeCore {
    fn drop(&mut self) {
        let host = self.context.host();
        if host.open("leave").is_ok() {
            host.directory().remove_node(host, self.gid);
            host.tell();
        }
    }
}

fn service_type<S: ServiceType>() -> RawType {
    RawType { name: S::TYPE_NAME.to_owned(), hash: S::TYPE_HASH.to_owned() }
}

/// A message or service type known at run time only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawType {
    /// Such as `std_msgs/msg/String` or `std_srvs/srv/SetBool`, of at most 255 bytes.
    pub name: String,
    /// `RIHS01_` and 64 hexadecimal digits; empty fits any.
    pub hash: String,
}

impl RawType {
    /// The same with the name written out, or what is wrong with it.
    fn parse(self) -> Result<Self, String> {
        let Self { name, hash } = self;
        if NAME_BYTES_MAX < name.len() {
            let len = name.len();
            return Err(format!("a type name of {len} bytes; allowed: at most {NAME_BYTES_MAX}"));
        }
        let name = name.parse::<TypeName>().map_err(|error| error.to_string())?.to_string();
        let is_hash = hash.strip_prefix("RIHS01_").is_some_and(|digits| {
            digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        if is_hash || hash.is_empty() {
            return Ok(Self { name, hash });
        }
        let shown: String = hash.chars().take(80).collect();
        Err(format!("type hash `{shown}`; allowed: RIHS01_ and 64 hexadecimal digits, or nothing"))
    }
}

/// As long as a topic's name may be.
const NAME_BYTES_MAX: usize = 255;

/// What a publisher will be.
pub struct PublisherBuilder<'a, P> {
    node: &'a Node,
    topic: String,
    raw: RawType,
    qos: Qos,
    codec: Option<Codec>,
    fixed_bytes: Option<u64>,
    expected_bytes: Option<u64>,
    max_blocking: Duration,
    on_event: Option<Box<dyn FnMut(PublisherEvent) + Send>>,
    note: Option<Note<PublisherEvent>>,
    publisher: PhantomData<P>,
}

impl<'a, P> PublisherBuilder<'a, P> {
    fn new(node: &'a Node, topic: &str, raw: RawType) -> Self {
        Self {
            node,
            topic: topic.to_owned(),
            raw,
            qos: Qos::DEFAULT,
            codec: None,
            fixed_bytes: None,
            expected_bytes: None,
            max_blocking: MAX_BLOCKING_DEFAULT,
            on_event: None,
            note: None,
            publisher: PhantomData,
        }
    }

    /// What it offers. [`Qos::DEFAULT`] if not said.
    #[must_use]
    pub fn qos(mut self, qos: Qos) -> Self {
        self.qos = qos;
        self
    }

    /// About how many bytes a sample will have, until the first ones show it.
    #[must_use]
    pub fn expected_size(mut self, bytes: u64) -> Self {
        self.expected_bytes = Some(bytes);
        self
    }

    /// How long a reliable publish or loan waits for room before it answers Busy. 100 ms if not said.
    #[must_use]
    pub fn max_blocking(mut self, at_most: Duration) -> Self {
        self.max_blocking = at_most;
        self
    }

    /// Is called with what the publisher should know, while the node is spun.
    #[must_use]
    pub fn on_event(mut self, callback: impl FnMut(PublisherEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }

    /// Is told of the same by the thread that comes upon it, spun or not, while tsuji holds locks: it may take
    /// note and trigger a [`GuardCondition`](crate::GuardCondition), and must not wait nor call anything else of
    /// tsuji.
    #[must_use]
    pub fn note_events(mut self, note: impl Fn(&PublisherEvent) + Send + Sync + 'static) -> Self {
        self.note = Some(Box::new(note));
        self
    }

    fn make(self) -> Result<RawPublisher> {
        let operation = "create a publisher";
        let core =
            self.node.endpoint(operation, Remapped::Topic, &self.topic, self.raw, self.qos)?;
        let host = self.node.context().host();
        let spec = PublicationSpec {
            codec: self.codec,
            fixed_bytes: self.fixed_bytes,
            expected_bytes: self.expected_bytes,
            max_blocking: self.max_blocking,
        };
        let publication = Arc::new(Publication::new(core, spec)?);
        if let Some(note) = self.note {
            publication.events.note(note);
        }
        let mut entity: Option<Arc<dyn Entity>> = None;
        if let Some(on_event) = self.on_event {
            let cell = Arc::new(host.bells().claim_cell()?);
            publication.events.listen(Arc::clone(&cell));
            let source = Arc::clone(&publication);
            let pop = Box::new(move || source.events.pop());
            let group = self.node.core.group.clone();
            let events: Arc<dyn Entity> = Arc::new(EventEntity::new(cell, group, pop, on_event));
            self.node.run(&events)?;
            entity = Some(events);
        }
        host.directory().add_publication(host, &publication);
        host.tell();
        if self.qos.deadline.is_some() || self.qos.liveliness_lease.is_some() {
            host.nudge.give();
        }
        Ok(RawPublisher::new(self.node.clone(), publication, entity))
    }
}

impl<M: Message> PublisherBuilder<'_, Publisher<M>> {
    /// Makes the publisher.
    pub fn build(self) -> Result<Publisher<M>> {
        Ok(Publisher::new(self.make()?))
    }
}

impl PublisherBuilder<'_, RawPublisher> {
    /// Makes the publisher.
    pub fn build(self) -> Result<RawPublisher> {
        self.make()
    }
}

/// What a subscription will be.
pub struct SubscriptionBuilder<'a, M> {
    raw: RawSubscriptionBuilder<'a>,
    message: PhantomData<M>,
}

impl<M: Message> SubscriptionBuilder<'_, M> {
    /// What it asks for. [`Qos::DEFAULT`] if not said.
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

    /// Is called with what the subscription should know, while the node is spun.
    #[must_use]
    pub fn on_event(mut self, callback: impl FnMut(SubscriptionEvent) + Send + 'static) -> Self {
        self.raw = self.raw.on_event(callback);
        self
    }

    /// Makes the subscription; `callback` gets its samples while the node is spun.
    pub fn callback(
        mut self,
        mut callback: impl FnMut(Received<M>) + Send + 'static,
    ) -> Result<Subscription<M>> {
        self.raw.spec = ReceptionSpec::of::<M>();
        let each = Box::new(move |sample, now_ns| {
            if let Some(received) = Received::new(sample, now_ns) {
                callback(received);
            }
        });
        Ok(Subscription::new(self.raw.make(Some(each))?))
    }

    /// Makes the subscription, to be asked for samples.
    pub fn build(mut self) -> Result<Subscription<M>> {
        self.raw.spec = ReceptionSpec::of::<M>();
        Ok(Subscription::new(self.raw.make(None)?))
    }
}

/// What a subscription to serialised messages will be.
pub struct RawSubscriptionBuilder<'a> {
    node: &'a Node,
    topic: String,
    raw: RawType,
    qos: Qos,
    group: CallbackGroup,
    on_event: Option<Box<dyn FnMut(SubscriptionEvent) + Send>>,
    note: Option<Note<SubscriptionEvent>>,
    spec: ReceptionSpec,
}

impl<'a> RawSubscriptionBuilder<'a> {
    fn new(node: &'a Node, topic: &str, raw: RawType) -> Self {
        Self {
            node,
            topic: topic.to_owned(),
            raw,
            qos: Qos::DEFAULT,
            group: node.core.group.clone(),
            on_event: None,
            note: None,
            spec: ReceptionSpec::default(),
        }
    }

    /// What it asks for. [`Qos::DEFAULT`] if not said.
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

    /// Is called with what the subscription should know, while the node is spun.
    #[must_use]
    pub fn on_event(mut self, callback: impl FnMut(SubscriptionEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }

    /// Is told of the same by the thread that comes upon it, spun or not, while tsuji holds locks: it may take
    /// note and trigger a [`GuardCondition`](crate::GuardCondition), and must not wait nor call anything else of
    /// tsuji.
    #[must_use]
    pub fn note_events(
        mut self,
        note: impl Fn(&SubscriptionEvent) + Send + Sync + 'static,
    ) -> Self {
        self.note = Some(Box::new(note));
        self
    }

    /// Whether it gets nothing from publishers of its own context. It does if not said.
    #[must_use]
    pub fn ignore_local(mut self, ignores: bool) -> Self {
        self.spec.ignores_local = ignores;
        self
    }

    /// Makes the subscription; `callback` gets its samples while the node is spun.
    pub fn callback(
        self,
        mut callback: impl FnMut(RawSample) + Send + 'static,
    ) -> Result<RawSubscription> {
        self.make(Some(Box::new(move |sample, now_ns| {
            if let Some(sample) = RawSample::new(sample, now_ns) {
                callback(sample);
            }
        })))
    }

    /// Makes the subscription, to be asked for samples.
    pub fn build(self) -> Result<RawSubscription> {
        self.make(None)
    }

    fn make(self, each: Option<crate::subscription::Each>) -> Result<RawSubscription> {
        let operation = "create a subscription";
        let core =
            self.node.endpoint(operation, Remapped::Topic, &self.topic, self.raw, self.qos)?;
        let host = self.node.context().host();
        let reception = Arc::new(Reception::new(core, self.spec)?);
        if let Some(note) = self.note {
            reception.events.note(note);
        }
        let mut entities: Vec<Arc<dyn Entity>> = Vec::new();
        if let Some(each) = each {
            let entity = RawEntity::new(Arc::clone(&reception), self.group.clone(), each);
            entities.push(Arc::new(entity));
        }
        if let Some(on_event) = self.on_event {
            let cell = Arc::new(host.bells().claim_cell()?);
            reception.events.listen(Arc::clone(&cell));
            let source = Arc::clone(&reception);
            let pop = Box::new(move || source.events.pop());
            entities.push(Arc::new(EventEntity::new(cell, self.group, pop, on_event)));
        }
        for entity in &entities {
            self.node.run(entity)?;
        }
        host.directory().add_reception(host, &reception);
        host.tell();
        if self.qos.deadline.is_some() {
            host.nudge.give();
        }
        Ok(RawSubscription::new(self.node.clone(), reception, entities))
    }
}

/// How long a publish waits for room where nobody says.
pub(crate) const MAX_BLOCKING_DEFAULT: Duration = Duration::from_millis(100);
