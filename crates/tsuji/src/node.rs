//! Nodes: names, and what is made under them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tsuji_core::names::{self, Remapped};
use tsuji_core::{Durability, Qos};
use tsuji_msg::{Action, Message, Service as ServiceType, TypeName};
use tsuji_platform::ordered::{Mutex, MutexGuard};
use tsuji_transport::Gid;
use tsuji_transport::deferred::{self, Locked};

use crate::action::{
    ActionClient, ActionServer, ActionServerOptions, DynamicAction, DynamicActionType, GoalHandle,
    RawAction, RawActionType,
};
use crate::clock::Clock;
use crate::control::protocol::NodeRecord;
use crate::endpoint::EndpointCore;
use crate::executor::{Entity, ExecutorCore};
use crate::lifecycle::{Lifecycle, LifecycleCore, LifecycleNode};
use crate::lock;
use crate::log::{Logger, RosoutCounters, logger_name};
use crate::parameter::{ParameterKind, Parameters};
use crate::parts::Parts;
use crate::publisher_core::PublisherSpec;
use crate::subscription;
use crate::subscription_core::SubscriptionSpec;
use crate::{
    CallbackGroup, CallbackGroupKind, Client, ClientOptions, Context, Error, NodeBuilder,
    Publisher, PublisherOptions, RawClient, RawPublisher, RawRequest, RawSample, RawService,
    RawSubscription, Received, Request, Result, Service, ServiceOptions, Subscription,
    SubscriptionOptions, Timer, TimerOptions,
};

/// A node: a name in the graph, and what is made under it.
///
/// Clones are the same node; it leaves the graph with the last of them and of what was made under it.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::{Context, Qos};
/// use tsuji::interfaces::std_msgs::msg::String as Text;
///
/// let node = Context::new()?.node_in("listener", "/robot")?;
/// assert_eq!(node.fully_qualified_name(), "/robot/listener");
/// let _subscription = node.create_subscription::<Text>("chatter", Qos::DEFAULT, |received| {
///     println!("I heard: '{}'", received.view().data);
/// })?;
/// tsuji::spin(&node)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
///
/// **Parts.** Parameters, the log on `/rosout` and ROS time are made when they are first used. They end with the last
/// clone of the node and of what was made under it; whoever drops that waits for the last lines of the log to be
/// published, for 1 s at most.
///
/// **Liveliness.** A publisher whose liveliness is automatic is alive for as long as its process
/// exists: a process that is stopped (SIGSTOP) or hangs counts as alive, whatever the lease. To find
/// such out, ask for [`ManualByTopic`](tsuji_core::Liveliness::ManualByTopic) with a lease.
///
/// **Fork.** In a forked child everything that was made before answers Closed. If the parent has
/// other threads, such as those that spin, the child must do nothing but `exec` or `_exit`: a lock
/// that one of them held, the allocator's for example, stays locked in the child. So start processes
/// with [`std::process::Command`], or fork before the first context is made.
///
/// # Errors
///
/// What is made under a node fails with [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if a name, a type or a QoS
/// is not valid, [`ErrorKind::Closed`](crate::ErrorKind::Closed) when the context is shut down or in a forked child,
/// and [`ErrorKind::Exhausted`](crate::ErrorKind::Exhausted) if the process has 65,536 endpoints and the like, or the
/// node's executor runs 4095 callbacks.
#[derive(Clone)]
pub struct Node {
    core: Arc<NodeCore>,
    /// Kept by all but those who are of the parts themselves.
    parts: Option<Arc<Parts>>,
}

pub(crate) struct NodeCore {
    /// Its name is out of the graph.
    has_left: AtomicBool,
    context: Context,
    gid: Gid,
    name: String,
    namespace: String,
    full_name: String,
    group: CallbackGroup,
    running: Mutex<Running>,
    parts: Weak<Parts>,
    /// Who has put it under management.
    managed: Mutex<Weak<LifecycleCore>>,
}

/// What executors run for this node.
#[derive(Default)]
struct Running {
    executor: Option<Weak<ExecutorCore>>,
    entities: Vec<Weak<dyn Entity>>,
}

impl Node {
    /// Begins to make the node `name`, where it is to have more or less than [`Context::node`] gives it.
    pub fn builder(name: impl Into<String>) -> NodeBuilder {
        NodeBuilder::new(name)
    }

    pub(crate) fn new(
        context: &Context,
        name: &str,
        namespace: &str,
        parts: Parts,
    ) -> Result<Self> {
        context.session().open("create a node")?;
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
        let gid = context.session().new_gid();
        let parts = Arc::new(parts);
        let core = NodeCore {
            has_left: AtomicBool::new(false),
            context: context.clone(),
            gid,
            name: name.to_owned(),
            namespace: namespace.clone(),
            full_name: crate::graph::full_name(&namespace, name),
            group: CallbackGroup::new(CallbackGroupKind::MutuallyExclusive),
            running: Mutex::default(),
            parts: Arc::downgrade(&parts),
            managed: Mutex::default(),
        };
        let enclave = context.enclave().to_owned();
        let record = NodeRecord { gid: gid.0, name: name.to_owned(), namespace, enclave };
        let session = context.session();
        session.graph_cache().add_node(session, record);
        session.tell();
        Ok(Self { core: Arc::new(core), parts: Some(parts) })
    }

    /// The same node for what is of its parts, which it does not keep.
    pub(crate) fn bare(&self) -> Self {
        Self { core: Arc::clone(&self.core), parts: None }
    }

    /// Takes the node's name out of the graph while what was made under it may live on.
    ///
    /// Dropping the last handle of a node and of all that was made under it does the same.
    pub fn leave_graph(&self) {
        self.core.leave();
    }

    pub(crate) fn parts(&self) -> Result<Arc<Parts>> {
        let left = || Error::closed(format!("node {}: it has left", self.core.full_name));
        self.parts.clone().or_else(|| self.core.parts.upgrade()).ok_or_else(left)
    }

    /// Returns the node's name, without namespace.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Returns the node's namespace, `/` or such as `/robot`.
    pub fn namespace(&self) -> &str {
        &self.core.namespace
    }

    /// Returns namespace and name, such as `/robot/camera`.
    pub fn fully_qualified_name(&self) -> &str {
        &self.core.full_name
    }

    /// Returns the context that the node lives in.
    pub fn context(&self) -> &Context {
        &self.core.context
    }

    /// Creates a publisher of messages of type `M`, with a QoS or [`PublisherOptions`].
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_publisher<M: Message>(
        &self,
        topic: &str,
        options: impl Into<PublisherOptions>,
    ) -> Result<Publisher<M>> {
        let spec = PublisherSpec::of::<M>();
        let raw = RawPublisher::create(self, topic, RawType::of::<M>(), options.into(), spec)?;
        Ok(Publisher::new(raw))
    }

    /// Creates a subscription to messages of type `M`, with a QoS or [`SubscriptionOptions`]; `callback` gets them while
    /// the node is spun.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_subscription<M: Message>(
        &self,
        topic: &str,
        options: impl Into<SubscriptionOptions>,
        mut callback: impl FnMut(Received<M>) + Send + 'static,
    ) -> Result<Subscription<M>> {
        let each = Box::new(move |sample, taken| {
            if let Some(received) = Received::new(sample, taken) {
                callback(received);
            }
        });
        self.typed_subscription(topic, options.into(), Some(each))
    }

    /// Creates a subscription to messages of type `M`, with a QoS or [`SubscriptionOptions`], that is asked for them:
    /// with a look, waiting or awaiting.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_polled_subscription<M: Message>(
        &self,
        topic: &str,
        options: impl Into<SubscriptionOptions>,
    ) -> Result<Subscription<M>> {
        self.typed_subscription(topic, options.into(), None)
    }

    fn typed_subscription<M: Message>(
        &self,
        topic: &str,
        options: SubscriptionOptions,
        each: Option<subscription::Each>,
    ) -> Result<Subscription<M>> {
        let spec = SubscriptionSpec::of::<M>();
        let raw = RawSubscription::create(self, topic, RawType::of::<M>(), options, spec, each)?;
        Ok(Subscription::new(raw))
    }

    /// Creates a publisher of serialised messages, of a type known at run time only.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_raw_publisher(
        &self,
        topic: &str,
        of: impl Into<RawType>,
        options: impl Into<PublisherOptions>,
    ) -> Result<RawPublisher> {
        RawPublisher::create(self, topic, of.into(), options.into(), PublisherSpec::default())
    }

    /// Creates a subscription to serialised messages, of a type known at run time only; `callback` gets them while the
    /// node is spun.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_raw_subscription(
        &self,
        topic: &str,
        of: impl Into<RawType>,
        options: impl Into<SubscriptionOptions>,
        mut callback: impl FnMut(RawSample) + Send + 'static,
    ) -> Result<RawSubscription> {
        let each = Box::new(move |sample, taken| {
            if let Some(sample) = RawSample::new(sample, taken) {
                callback(sample);
            }
        });
        let spec = SubscriptionSpec::default();
        RawSubscription::create(self, topic, of.into(), options.into(), spec, Some(each))
    }

    /// Creates a subscription to serialised messages, of a type known at run time only, that is asked for them.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_polled_raw_subscription(
        &self,
        topic: &str,
        of: impl Into<RawType>,
        options: impl Into<SubscriptionOptions>,
    ) -> Result<RawSubscription> {
        let spec = SubscriptionSpec::default();
        RawSubscription::create(self, topic, of.into(), options.into(), spec, None)
    }

    /// Creates a server of services of type `S`, by a name or [`ServiceOptions`]; `callback` answers each request while
    /// the node is spun. A reply that cannot be sent is counted.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors); [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) also if
    /// durability is transient local.
    pub fn create_service<S: ServiceType>(
        &self,
        options: impl Into<ServiceOptions>,
        mut callback: impl FnMut(Arc<S::Request>) -> S::Response + Send + 'static,
    ) -> Result<Service<S>> {
        self.create_deferred_service(options, move |request: Request<S>| {
            let response = callback(request.message());
            // Whoever left needs no answer; it is counted.
            let _ = request.respond(response);
        })
    }

    /// Creates a server of services of type `S`; `callback` gets each request while the node is spun, and answers it
    /// then, or gives it to whoever answers it later.
    ///
    /// # Errors
    ///
    /// Those of [`create_service`](Self::create_service).
    pub fn create_deferred_service<S: ServiceType>(
        &self,
        options: impl Into<ServiceOptions>,
        callback: impl FnMut(Request<S>) + Send + 'static,
    ) -> Result<Service<S>> {
        Service::create(self, options.into(), Some(callback))
    }

    /// Creates a server of services of type `S` that is asked for requests.
    ///
    /// # Errors
    ///
    /// Those of [`create_service`](Self::create_service).
    pub fn create_polled_service<S: ServiceType>(
        &self,
        options: impl Into<ServiceOptions>,
    ) -> Result<Service<S>> {
        Service::create(self, options.into(), None::<fn(Request<S>)>)
    }

    /// Creates a client of services of type `S`, by a name or [`ClientOptions`].
    ///
    /// # Errors
    ///
    /// Those of [`create_service`](Self::create_service).
    pub fn create_client<S: ServiceType>(
        &self,
        options: impl Into<ClientOptions>,
    ) -> Result<Client<S>> {
        Client::create(self, options.into())
    }

    /// Creates a server of serialised messages, of a type known at run time only; `callback` gets each request while the
    /// node is spun, and answers it then, or gives it to whoever answers it later.
    ///
    /// # Errors
    ///
    /// Those of [`create_service`](Self::create_service).
    pub fn create_raw_service(
        &self,
        options: impl Into<ServiceOptions>,
        of: impl Into<RawType>,
        callback: impl FnMut(RawRequest) + Send + 'static,
    ) -> Result<RawService> {
        RawService::of_bytes(self, options.into(), of.into(), Some(callback))
    }

    /// Creates a server of serialised messages, of a type known at run time only, that is asked for requests.
    ///
    /// # Errors
    ///
    /// Those of [`create_service`](Self::create_service).
    pub fn create_polled_raw_service(
        &self,
        options: impl Into<ServiceOptions>,
        of: impl Into<RawType>,
    ) -> Result<RawService> {
        RawService::of_bytes(self, options.into(), of.into(), None::<fn(RawRequest)>)
    }

    /// Creates a client of serialised messages, of a type known at run time only.
    ///
    /// # Errors
    ///
    /// Those of [`create_service`](Self::create_service).
    pub fn create_raw_client(
        &self,
        options: impl Into<ClientOptions>,
        of: impl Into<RawType>,
    ) -> Result<RawClient> {
        RawClient::of_bytes(self, options.into(), of.into())
    }

    /// Creates a timer, by a period of steady time or [`TimerOptions`], that calls `callback` while the node is spun.
    ///
    /// The first call is one period from now. A call that is late is made once; the ones missed meanwhile are not
    /// made up for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the period is 0, or by the system's clock;
    /// [`ErrorKind::Exhausted`](crate::ErrorKind::Exhausted) if the node's executor runs 4095 callbacks already.
    pub fn create_timer(
        &self,
        options: impl Into<TimerOptions>,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer> {
        Timer::create(self, options.into(), Box::new(callback))
    }

    /// Creates a server of actions of type `A`, by a name or [`ActionServerOptions`]; `pursue` is called with each goal on
    /// a thread of its own, which may have pursued others before.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_action_server<A: Action>(
        &self,
        options: impl Into<ActionServerOptions<A>>,
        pursue: impl Fn(GoalHandle<A>) + Send + Sync + 'static,
    ) -> Result<ActionServer<A>> {
        ActionServer::pursue(self, options.into(), (), pursue)
    }

    /// Creates a server of actions of type `A`; `begin` is called with each goal by the executor, or by whoever ends the
    /// one before it, and hands it to whoever pursues it. Nobody is told that the goal is being pursued before it returns.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_deferred_action_server<A: Action>(
        &self,
        options: impl Into<ActionServerOptions<A>>,
        begin: impl Fn(GoalHandle<A>) + Send + Sync + 'static,
    ) -> Result<ActionServer<A>> {
        ActionServer::begin(self, options.into(), (), begin)
    }

    /// Creates a server of actions of type `A` that is [asked](ActionServer::take) for goals.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_polled_action_server<A: Action>(
        &self,
        options: impl Into<ActionServerOptions<A>>,
    ) -> Result<ActionServer<A>> {
        ActionServer::polled(self, options.into(), ())
    }

    /// Creates a client of the action `name`, of type `A`.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_action_client<A: Action>(&self, name: &str) -> Result<ActionClient<A>> {
        ActionClient::new(self, name, ())
    }

    /// Creates a server of an action in bytes, of a type known at run time only; `pursue` is called with each goal on a
    /// thread of its own.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_raw_action_server(
        &self,
        options: impl Into<ActionServerOptions<RawAction>>,
        of: impl Into<RawActionType>,
        pursue: impl Fn(GoalHandle<RawAction>) + Send + Sync + 'static,
    ) -> Result<ActionServer<RawAction>> {
        ActionServer::pursue(self, options.into(), of.into(), pursue)
    }

    /// Creates a server of an action in bytes, of a type known at run time only, that is [asked](ActionServer::take) for
    /// goals.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_polled_raw_action_server(
        &self,
        options: impl Into<ActionServerOptions<RawAction>>,
        of: impl Into<RawActionType>,
    ) -> Result<ActionServer<RawAction>> {
        ActionServer::polled(self, options.into(), of.into())
    }

    /// Creates a client of the action `name` in bytes, of a type known at run time only.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_raw_action_client(
        &self,
        name: &str,
        of: impl Into<RawActionType>,
    ) -> Result<ActionClient<RawAction>> {
        ActionClient::new(self, name, of.into())
    }

    /// Creates a server of an action with dynamic messages, of a type known at run time only; `pursue` is called with
    /// each goal on a thread of its own.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_dynamic_action_server(
        &self,
        options: impl Into<ActionServerOptions<DynamicAction>>,
        of: impl Into<DynamicActionType>,
        pursue: impl Fn(GoalHandle<DynamicAction>) + Send + Sync + 'static,
    ) -> Result<ActionServer<DynamicAction>> {
        ActionServer::pursue(self, options.into(), of.into(), pursue)
    }

    /// Creates a client of the action `name` with dynamic messages, of a type known at run time only.
    ///
    /// # Errors
    ///
    /// Those of [what is made under a node](Self#errors).
    pub fn create_dynamic_action_client(
        &self,
        name: &str,
        of: impl Into<DynamicActionType>,
    ) -> Result<ActionClient<DynamicAction>> {
        ActionClient::new(self, name, of.into())
    }

    /// Returns the node's parameters, which are served from the first use on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the node was made
    /// [without](NodeBuilder::without_parameters); at the first use [`ErrorKind::Invalid`](crate::ErrorKind::Invalid)
    /// if an argument or a file of the context is not what ROS allows, with the line, and those of [what is made
    /// under a node](Self#errors).
    pub fn parameters(&self) -> Result<Parameters> {
        self.parts()?.parameters(self)
    }

    /// Returns what the arguments of the context say of this node's parameters, `-p` and `--params-file`, in their order: of
    /// two values of one name the later counts. For those who keep parameters by other means than
    /// [`parameters`](Self::parameters).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), with its name and the line, if a file cannot be read or is not what
    /// ROS allows.
    pub fn parameters_from_arguments(&self) -> Result<Vec<crate::parameter::Parameter>> {
        crate::parameter::from_arguments(self)
    }

    /// Declares a parameter, of the type of its default, and returns its value: what the context's arguments or the
    /// [overrides](NodeBuilder::parameter_overrides) give, or else the default.
    ///
    /// # Errors
    ///
    /// Those of [`parameters`](Self::parameters) and of [`Parameters::declare`].
    pub fn declare_parameter<T: ParameterKind>(&self, name: &str, default: T) -> Result<T> {
        self.parameters()?.declare(name, default)
    }

    /// Returns the node's clock, of ROS time, which may be [simulated](crate::clock) where the parameter `use_sim_time`
    /// says so.
    ///
    /// The parameter is declared and followed from the first use on, until the node leaves. Of a node
    /// [without parameters](NodeBuilder::without_parameters) it is the system's time.
    ///
    /// # Errors
    ///
    /// At the first use those of [`parameters`](Self::parameters); [`ErrorKind::Invalid`](crate::ErrorKind::Invalid)
    /// also if `use_sim_time` is no boolean, or a callback of parameters asks for the clock first, [`ErrorKind::Exhausted`](crate::ErrorKind::Exhausted) if the thread that
    /// listens to `/clock` cannot be started.
    pub fn clock(&self) -> Result<Clock> {
        self.parts()?.clock(self)
    }

    /// Returns the node's logger: `robot.drive` of `/robot/drive`. From the first use on its log goes to `/rosout`.
    ///
    /// With [`--disable-rosout-logs`](Context::logging), or [without](NodeBuilder::without_rosout), it goes to the
    /// terminal alone. Of two nodes of one name the later has what both say, until it goes; then nobody has.
    pub fn logger(&self) -> Logger {
        match self.parts() {
            Ok(parts) => parts.logger(self),
            Err(_) => self.context().logging().logger(&logger_name(self)),
        }
    }

    /// Returns what has become of the lines of the node's log on `/rosout`.
    pub fn rosout_counters(&self) -> RosoutCounters {
        let parts = self.parts().ok().filter(|_| self.context().session().is_current());
        parts.map(|it| it.rosout_counters()).unwrap_or_default()
    }

    /// Puts the node under management, unconfigured: whoever starts a robot [configures and
    /// activates](crate::lifecycle) it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if it is under management already; else those of [what is
    /// made under a node](Self#errors).
    pub fn manage(&self, callbacks: impl Lifecycle) -> Result<LifecycleNode> {
        LifecycleNode::new(self, callbacks)
    }

    pub(crate) fn managed(&self) -> Locked<'_, Weak<LifecycleCore>> {
        deferred::lock(&self.core.managed)
    }

    /// Creates a callback group.
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

    /// Lets the executor that runs this node look anew at what is due. Never waits.
    pub(crate) fn wake(&self) {
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
    pub(crate) fn endpoint(
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
        let session = self.context().session();
        session.open(operation)?;
        Ok(EndpointCore::new(session, self.core.gid, topic, of, qos))
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
        lock(&self.core.running)
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Node").field(&self.core.full_name).finish()
    }
}

impl NodeCore {
    /// Takes the name out of the graph, once.
    fn leave(&self) {
        let session = self.context.session();
        if !self.has_left.swap(true, Ordering::AcqRel) && session.open("leave").is_ok() {
            session.graph_cache().remove_node(session, self.gid);
            session.tell();
        }
    }
}

impl Drop for NodeCore {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A message or service type known at run time only.
///
/// ```no_run
/// use tsuji::{Context, Qos, RawType};
///
/// let node = Context::new()?.node("recorder")?;
/// let of = RawType::new("std_msgs/msg/String");
/// let subscription = node.create_polled_raw_subscription("chatter", of, Qos::SENSOR_DATA)?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawType {
    /// Name of the type, such as `std_msgs/msg/String` or `std_srvs/srv/SetBool`; at most 255 bytes.
    pub name: String,
    /// Hash of the type, `RIHS01_` and 64 hexadecimal digits; empty fits any.
    pub hash: String,
    /// Whether some of its fields are keys (`@key` of IDL). Since Kilted foreign nodes announce that, and what has keys meets
    /// nothing that has none; among processes of tsuji it changes nothing. Default false.
    pub is_keyed: bool,
}

impl RawType {
    /// Creates the type of this name, whatever its hash. A name alone will do where a type is asked for.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), hash: String::new(), is_keyed: false }
    }

    /// Sets the hash, `RIHS01_` and 64 hexadecimal digits. Default empty, which fits any.
    #[must_use]
    pub fn hash(mut self, hash: impl Into<String>) -> Self {
        self.hash = hash.into();
        self
    }

    /// Sets whether the type has keys. Default false.
    #[must_use]
    pub fn keyed(mut self, is_keyed: bool) -> Self {
        self.is_keyed = is_keyed;
        self
    }

    /// Returns the type of the messages `M`.
    pub fn of<M: Message>() -> Self {
        Self::new(M::TYPE_NAME).hash(M::TYPE_HASH)
    }

    /// Returns the type of the services `S`.
    pub fn of_service<S: ServiceType>() -> Self {
        Self::new(S::TYPE_NAME).hash(S::TYPE_HASH)
    }

    /// The same with the name written out, or what is wrong with it.
    fn parse(self) -> Result<Self, String> {
        let Self { name, hash, is_keyed } = self;
        if NAME_BYTES_MAX < name.len() {
            let len = name.len();
            return Err(format!("a type name of {len} bytes; allowed: at most {NAME_BYTES_MAX}"));
        }
        let name = name.parse::<TypeName>().map_err(|error| error.to_string())?.to_string();
        let is_hash = hash.strip_prefix("RIHS01_").is_some_and(|digits| {
            digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        if is_hash || hash.is_empty() {
            return Ok(Self { name, hash, is_keyed });
        }
        let shown: String = hash.chars().take(80).collect();
        Err(format!("type hash `{shown}`; allowed: RIHS01_ and 64 hexadecimal digits, or nothing"))
    }
}

impl From<&str> for RawType {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<&Self> for RawType {
    fn from(of: &Self) -> Self {
        of.clone()
    }
}

/// As long as a topic's name may be.
const NAME_BYTES_MAX: usize = 255;
