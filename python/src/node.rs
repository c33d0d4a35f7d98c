//! Nodes: what is made under one, and what is run while it is spun.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tsuji::action::{ActionServerOptions, GoalHandle, GoalId, RawAction};
use tsuji::{
    ClientOptions, Context, EndpointKind, Executor, Interop, PublisherEvent, PublisherOptions,
    RawRequest, RawSample, ServiceOptions, Severity, SubscriptionEvent, SubscriptionOptions,
    TimerOptions,
};

use crate::action::{ActionClient, ActionPlan, ActionServer, begun, read};
use crate::error::raised;
use crate::event::{Event, Events};
use crate::parameter::{self, OnSet, RemoteParameters};
use crate::polled::{GuardCondition, PolledActionServer, PolledService, WaitList};
use crate::qos::{Qos, qos_of, seconds};
use crate::service::{Client, Service, answer_request};
use crate::topic::{Publisher, Subscription, received};
use crate::types::{ServicePlan, plan_of};
use crate::waiting::{
    Callback, Life, Outside, attach, deadline, end_attaching, lock, step, wait_for_attachments,
};

/// A node, which has a participant of its own unless others of its domain share it.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct Node {
    node: Outside<tsuji::Node>,
    /// Keeps the context among those that are shut down before the interpreter ends.
    context: Arc<Context>,
    life: Arc<Life>,
    /// The error of a callback, which ends the spin.
    raised: Raised,
    /// Held while it is spun.
    executor: Mutex<Option<Executor>>,
}

/// The contexts of this process, one for each node, which are shut down before the interpreter ends.
static CONTEXTS: Mutex<Vec<Weak<Context>>> = Mutex::new(Vec::new());

/// What a callback raised. Of several the first is raised by the spin, and the others are told as unraisable.
type Raised = Arc<Mutex<Option<PyErr>>>;

#[pymethods]
impl Node {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are named")]
    #[pyo3(signature = (name, *, namespace = "/", domain = None, interop = None, arguments = None, runtime_dir = None, policy_file = None, robot = None))]
    fn new(
        py: Python<'_>,
        name: &str,
        namespace: &str,
        domain: Option<u32>,
        interop: Option<&str>,
        arguments: Option<Vec<String>>,
        runtime_dir: Option<std::path::PathBuf>,
        policy_file: Option<std::path::PathBuf>,
        robot: Option<String>,
    ) -> PyResult<Self> {
        let mut builder = Context::builder();
        if let Some(domain) = domain {
            builder = builder.domain(domain);
        }
        if let Some(interop) = interop {
            let interop: Interop = interop
                .parse()
                .map_err(|error| PyValueError::new_err(format!("interop: {error}")))?;
            builder = builder.interop(interop);
        }
        if let Some(arguments) = arguments {
            builder = builder.args(arguments);
        }
        if let Some(folder) = runtime_dir {
            builder = builder.runtime_dir(folder);
        }
        if let Some(file) = policy_file {
            builder = builder.policy_file(file);
        }
        if let Some(robot) = robot {
            builder = builder.robot(robot);
        }
        let node = py.detach(|| builder.build()?.node_in(name, namespace)).map_err(raised)?;
        let context = Arc::new(node.context().clone());
        let mut contexts = lock(&CONTEXTS);
        contexts.retain(|it| it.strong_count() != 0);
        contexts.push(Arc::downgrade(&context));
        drop(contexts);
        Ok(Self {
            node: Outside::new(node),
            context,
            life: Arc::default(),
            raised: Arc::default(),
            executor: Mutex::default(),
        })
    }

    /// The node's name.
    #[getter]
    fn name(&self) -> &str {
        self.node.name()
    }

    /// The name of the robot that it belongs to; None if it does to none.
    #[getter]
    fn robot(&self) -> Option<&str> {
        self.context.robot()
    }

    /// Its name with its namespace.
    #[getter]
    fn fully_qualified_name(&self) -> &str {
        self.node.fully_qualified_name()
    }

    /// Creates a publisher of messages of a type. A reliable publish waits for room for at most `max_blocking` seconds, 0.1 by
    /// default, then raises `BusyError`. `on_event` gets its events as dicts while the node is spun.
    // Where `events` is given they are kept to be taken, and it is triggered.
    #[pyo3(signature = (topic, r#type, qos = None, *, max_blocking = None, on_event = None, events = None))]
    #[expect(clippy::too_many_arguments, reason = "they are named")]
    fn publisher(
        &self,
        py: Python<'_>,
        topic: &str,
        r#type: &Bound<'_, PyAny>,
        qos: Option<&Bound<'_, PyAny>>,
        max_blocking: Option<f64>,
        on_event: Option<Py<PyAny>>,
        events: Option<&Bound<'_, GuardCondition>>,
    ) -> PyResult<Publisher> {
        self.life.check()?;
        let plan = plan_of(r#type)?;
        let mut options = PublisherOptions::default().qos(qos_of(qos)?);
        if let Some(at_most) = max_blocking {
            options = options.max_blocking(seconds(at_most)?);
        }
        let kept = Arc::<Events<PublisherEvent>>::default();
        if let Some(guard) = events {
            options = options.note_events(kept.keeper((*guard.get().0).clone()));
        }
        let on_event = on_event.map(Callback::new);
        if let Some(callback) = on_event.clone() {
            options = options.on_event(self.event_caller(callback));
        }
        let raw = py.detach(|| self.node.create_raw_publisher(topic, plan.raw(), options));
        let (life, on_event) = (Arc::clone(&self.life), on_event.unwrap_or_default());
        Ok(Publisher {
            raw: Outside::new(raw.map_err(raised)?),
            plan,
            life,
            on_event,
            events: kept,
        })
    }

    /// Creates a subscription to messages of a type. With a callback they go to it while the node is spun; without one they
    /// are taken. Its events are those of `publisher`.
    #[pyo3(signature = (topic, r#type, qos = None, callback = None, *, on_event = None, events = None))]
    #[expect(clippy::too_many_arguments, reason = "they are named")]
    fn subscription(
        &self,
        py: Python<'_>,
        topic: &str,
        r#type: &Bound<'_, PyAny>,
        qos: Option<&Bound<'_, PyAny>>,
        callback: Option<Py<PyAny>>,
        on_event: Option<Py<PyAny>>,
        events: Option<&Bound<'_, GuardCondition>>,
    ) -> PyResult<Subscription> {
        self.life.check()?;
        let plan = plan_of(r#type)?;
        let mut options = SubscriptionOptions::default().qos(qos_of(qos)?);
        let kept = Arc::<Events<SubscriptionEvent>>::default();
        if let Some(guard) = events {
            options = options.note_events(kept.keeper((*guard.get().0).clone()));
        }
        let on_event = on_event.map(Callback::new);
        if let Some(callback) = on_event.clone() {
            options = options.on_event(self.event_caller(callback));
        }
        let node = &*self.node;
        let callback = callback.map(Callback::new);
        let raw = match callback.clone() {
            None => py.detach(|| node.create_polled_raw_subscription(topic, plan.raw(), options)),
            Some(callback) => {
                let errors = Arc::clone(&self.raised);
                let of = Arc::clone(&plan);
                let each = move |sample: RawSample| {
                    call_back(&errors, &callback, |py, callback| {
                        callback.call1((received(py, &of, sample)?,)).map(drop)
                    });
                };
                py.detach(|| node.create_raw_subscription(topic, plan.raw(), options, each))
            }
        };
        let callbacks = (callback.unwrap_or_default(), on_event.unwrap_or_default());
        let (context, life) = (node.context().clone(), Arc::clone(&self.life));
        Ok(Subscription::new(context, raw.map_err(raised)?, plan, callbacks, kept, life))
    }

    /// Creates a server; `callback` gets each request and returns the response, while the node is spun.
    fn service(
        &self,
        py: Python<'_>,
        name: &str,
        r#type: &Bound<'_, PyAny>,
        callback: Py<PyAny>,
    ) -> PyResult<Service> {
        self.life.check()?;
        let plan = ServicePlan::of(r#type)?;
        let callback = Callback::new(callback);
        let errors = Arc::clone(&self.raised);
        let (of, called) = (Arc::clone(&plan), callback.clone());
        let each = move |request: RawRequest| {
            call_back(&errors, &called, |py, callback| answer_request(py, &of, request, callback));
        };
        let raw = py.detach(|| self.node.create_raw_service(name, plan.raw(), each));
        Ok(Service { raw: Outside::new(raw.map_err(raised)?), callback })
    }

    /// Creates a client of a service.
    #[pyo3(signature = (name, r#type, qos = None))]
    fn client(
        &self,
        py: Python<'_>,
        name: &str,
        r#type: &Bound<'_, PyAny>,
        qos: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Client> {
        self.life.check()?;
        let plan = ServicePlan::of(r#type)?;
        let mut options = ClientOptions::new(name);
        if qos.is_some() {
            options = options.qos(qos_of(qos)?);
        }
        let raw = py.detach(|| self.node.create_raw_client(options, plan.raw()));
        let life = Arc::clone(&self.life);
        Ok(Client { raw: Outside::new(raw.map_err(raised)?), plan, life })
    }

    /// Creates a client of an action.
    fn action_client(
        &self,
        py: Python<'_>,
        name: &str,
        r#type: &Bound<'_, PyAny>,
    ) -> PyResult<ActionClient> {
        self.life.check()?;
        let plan = ActionPlan::of(r#type)?;
        let raw = py.detach(|| self.node.create_raw_action_client(name, plan.raw()));
        let life = Arc::clone(&self.life);
        Ok(ActionClient { raw: Outside::new(raw.map_err(raised)?), plan, life })
    }

    /// Creates a server of an action. Goals are taken while the node is spun; `execute` gets each, and is to return at once.
    fn action_server(
        &self,
        py: Python<'_>,
        name: &str,
        r#type: &Bound<'_, PyAny>,
        execute: Py<PyAny>,
    ) -> PyResult<ActionServer> {
        self.life.check()?;
        let plan = ActionPlan::of(r#type)?;
        let callback = Callback::new(execute);
        let errors = Arc::clone(&self.raised);
        let (of, called) = (Arc::clone(&plan), callback.clone());
        let each = move |handle: GoalHandle<RawAction>| {
            call_back(&errors, &called, |_, callback| begun(&of, handle, callback));
        };
        let options = ActionServerOptions::<RawAction>::new(name);
        let raw = py.detach(|| self.node.create_raw_action_server(options, plan.raw(), each));
        Ok(ActionServer { raw: Outside::new(raw.map_err(raised)?), callback })
    }

    /// A server that is asked for its requests.
    #[pyo3(signature = (name, r#type, qos = None))]
    fn polled_service(
        &self,
        py: Python<'_>,
        name: &str,
        r#type: &Bound<'_, PyAny>,
        qos: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PolledService> {
        self.life.check()?;
        let plan = ServicePlan::of(r#type)?;
        let mut options = ServiceOptions::new(name);
        if qos.is_some() {
            options = options.qos(qos_of(qos)?);
        }
        let raw = py.detach(|| self.node.create_polled_raw_service(options, plan.raw()));
        let life = Arc::clone(&self.life);
        Ok(PolledService { raw: Outside::new(raw.map_err(raised)?), plan, life })
    }

    /// A server of an action that is asked for its goals. `on_goal` gets the identifier and the message of each that a client
    /// sends, and `on_cancel` the identifier of each that a client wants canceled; they answer whether that is accepted, within
    /// `take`.
    #[pyo3(signature = (name, r#type, on_goal, on_cancel, result_timeout))]
    fn polled_action_server(
        &self,
        py: Python<'_>,
        name: &str,
        r#type: &Bound<'_, PyAny>,
        on_goal: Py<PyAny>,
        on_cancel: Py<PyAny>,
        result_timeout: f64,
    ) -> PyResult<PolledActionServer> {
        self.life.check()?;
        let plan = ActionPlan::of(r#type)?;
        let errors = Raised::default();
        let callbacks = [Callback::new(on_goal), Callback::new(on_cancel)];
        let [on_goal, on_cancel] = callbacks.clone();
        let (of, kept) = (Arc::clone(&plan), Arc::clone(&errors));
        let decide_goal = move |id: GoalId, goal: &Vec<u8>| {
            decide(&kept, &on_goal, |py, callback| {
                callback.call1((id.to_string(), read(py, &of.goal, goal)?))?.is_truthy()
            })
        };
        let kept = Arc::clone(&errors);
        let decide_cancel = move |id: GoalId| {
            decide(&kept, &on_cancel, |_, callback| callback.call1((id.to_string(),))?.is_truthy())
        };
        let options = ActionServerOptions::<RawAction>::new(name)
            .on_goal(decide_goal)
            .on_cancel(decide_cancel)
            .result_timeout(seconds(result_timeout)?);
        let raw = py.detach(|| self.node.create_polled_raw_action_server(options, plan.raw()));
        let (raw, life) = (Outside::new(raw.map_err(raised)?), Arc::clone(&self.life));
        Ok(PolledActionServer { raw, plan, life, callbacks, raised: errors })
    }

    /// A condition that ends waits of a list of this node.
    fn guard_condition(&self) -> PyResult<GuardCondition> {
        GuardCondition::new(&self.context).map_err(raised)
    }

    /// A condition that is triggered whenever the graph may have changed.
    fn graph_guard_condition(&self) -> PyResult<GuardCondition> {
        let guard = self.context.graph_guard().map_err(raised)?;
        Ok(GuardCondition(Outside::new(guard)))
    }

    /// What waits for entities of this node, and of others of its participant.
    fn wait_list(&self) -> PyResult<WaitList> {
        WaitList::new(&self.context).map_err(raised)
    }

    /// Calls back every `period` seconds while the node is spun.
    fn timer(&self, py: Python<'_>, period: f64, callback: Py<PyAny>) -> PyResult<Timer> {
        self.life.check()?;
        let callback = Callback::new(callback);
        let (errors, called) = (Arc::clone(&self.raised), callback.clone());
        let each = move || call_back(&errors, &called, |_, callback| callback.call0().map(drop));
        let options = TimerOptions::new(seconds(period)?);
        let timer = py.detach(|| self.node.create_timer(options, each)).map_err(raised)?;
        Ok(Timer { timer: Outside::new(timer), callback })
    }

    /// Declares a parameter of the type of its default, and returns its value: what the arguments override, or the default. `range`
    /// is the lowest and the highest number that is allowed.
    #[pyo3(signature = (name, default = None, *, range = None, description = "", read_only = false, dynamic_typing = false))]
    #[expect(clippy::too_many_arguments, reason = "they are named")]
    fn declare_parameter<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<&Bound<'py, PyAny>>,
        range: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
        description: &str,
        read_only: bool,
        dynamic_typing: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.life.check()?;
        let default = default.map(parameter::value_of).transpose()?.unwrap_or_default();
        let descriptor =
            parameter::descriptor(&default, range, description, read_only, dynamic_typing)?;
        let value =
            py.detach(|| parameter::declare(&self.node.parameters()?, name, default, descriptor));
        parameter::to_python(py, value.map_err(raised)?)
    }

    /// The value of a parameter; None where it is not set.
    fn parameter<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let parameters = py.detach(|| self.node.parameters()).map_err(raised)?;
        parameter::get(py, &parameters, name)
    }

    /// Sets a parameter. Raises `ValueError` with the reason if the value is refused.
    fn set_parameter(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = parameter::value_of(value)?;
        py.detach(|| self.node.parameters()?.set(name, value)).map_err(raised)
    }

    /// Calls `callback` with a dict of new values before parameters are set. It refuses them by raising `ValueError`.
    fn on_set_parameters(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<OnSet> {
        self.life.check()?;
        let parameters = py.detach(|| self.node.parameters()).map_err(raised)?;
        Ok(OnSet::new(&parameters, callback))
    }

    /// The parameters of another node.
    fn parameters_of(&self, py: Python<'_>, node: &str) -> RemoteParameters {
        py.detach(|| RemoteParameters::new(&self.node, node))
    }

    /// The time of ROS, in seconds since 1970: that of the system, or the simulated one with `use_sim_time`.
    fn now(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(py.detach(|| self.node.clock()).map_err(raised)?.now_ns() as f64 / 1e9)
    }

    /// The same in whole nanoseconds, of which a float does not hold all.
    fn now_ns(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(py.detach(|| self.node.clock()).map_err(raised)?.now_ns())
    }

    /// What the arguments say of this node's parameters, as pairs of name and value; of two of one name the later counts.
    fn parameters_from_arguments<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let said = py.detach(|| self.node.parameters_from_arguments()).map_err(raised)?;
        said.into_iter().map(|it| Ok((it.name, parameter::to_python(py, it.value)?))).collect()
    }

    /// Says `text` in the log, and on `/rosout` where `logger` is the node's or below it. `severity` is 10, 20, 30, 40 or 50.
    fn log(&self, py: Python<'_>, logger: &str, severity: u32, text: &str) -> PyResult<()> {
        let severity = severity_of(severity)?;
        py.detach(|| {
            // The node's own makes its publisher when it is asked for first.
            let of_node = self.node.logger();
            let logger = match of_node.name() == logger {
                true => of_node,
                false => self.context.logging().logger(logger),
            };
            match severity {
                Severity::Debug => tsuji::debug!(logger, "{text}"),
                Severity::Info => tsuji::info!(logger, "{text}"),
                Severity::Warn => tsuji::warn!(logger, "{text}"),
                Severity::Error => tsuji::error!(logger, "{text}"),
                Severity::Fatal => tsuji::fatal!(logger, "{text}"),
            }
        });
        Ok(())
    }

    /// From which severity on a logger is heard.
    fn log_level(&self, logger: &str) -> u32 {
        self.context.logging().level(logger) as u32
    }

    /// Sets from which severity on a logger is heard; 0 leaves it to those above it.
    fn set_log_level(&self, logger: &str, severity: u32) -> PyResult<()> {
        let severity = (severity != 0).then(|| severity_of(severity)).transpose()?;
        self.context.logging().set_level(logger, severity).map_err(raised)
    }

    /// The graph: nodes with namespaces and enclaves, and the endpoints of topics and services, each with its node, kind, name,
    /// type, hash, identifier and QoS.
    fn graph(&self, py: Python<'_>) -> (Vec<(String, String, String)>, Vec<Endpoint>) {
        let graph = py.detach(|| self.node.context().graph());
        let nodes = graph.nodes.into_iter().map(|it| (it.name, it.namespace, it.enclave));
        let endpoints = graph.endpoints.into_iter().chain(graph.services).map(|it| {
            let kind = match it.kind {
                EndpointKind::Publisher => "publisher",
                EndpointKind::Subscription => "subscription",
                EndpointKind::Server => "server",
                EndpointKind::Client => "client",
            };
            let qos = Qos(it.qos);
            (it.node, kind, it.topic, it.type_name, it.type_hash, it.gid.to_string(), qos)
        });
        (nodes.collect(), endpoints.collect())
    }

    /// Runs callbacks in this thread until the node is shut down, a callback raises, Ctrl-C, or `timeout` seconds have passed.
    #[pyo3(signature = (timeout = None))]
    fn spin(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let until = deadline(timeout.map(seconds).transpose()?);
        let mut executor = self.executor.try_lock().map_err(|_| {
            PyValueError::new_err(format!("{}: it is being spun", self.node.fully_qualified_name()))
        })?;
        if executor.is_none() {
            let made = py.detach(|| -> tsuji::Result<Executor> {
                let mut executor = Executor::new(self.node.context())?;
                executor.add(&self.node)?;
                Ok(executor)
            });
            *executor = Some(made.map_err(raised)?);
        }
        let Some(executor) = executor.as_mut() else { return Ok(()) };
        loop {
            let step = step(until);
            py.detach(|| executor.spin_once(step.unwrap_or_default())).map_err(raised)?;
            let error = lock(&self.raised).take();
            if let Some(error) = error {
                return Err(error);
            }
            py.check_signals()?;
            if step.is_none() || !self.is_ok() {
                return Ok(());
            }
        }
    }

    /// Ends the node: it leaves the graph, and every wait, spin and publish of what it has made ends. Other nodes go on.
    fn shutdown(&self, py: Python<'_>) {
        if !self.life.end() {
            return;
        }
        // The participant ends with its last node.
        py.detach(|| {
            self.node.leave_graph();
            self.context.leave();
        });
        let own = Arc::as_ptr(&self.context);
        lock(&CONTEXTS).retain(|it| !std::ptr::eq(it.as_ptr(), own));
    }

    /// Makes `spin` of this node raise `error`.
    fn raise_in_spin(&self, py: Python<'_>, error: Bound<'_, PyAny>) {
        keep(py, &self.raised, PyErr::from_value(error));
    }

    /// True until the node is shut down.
    #[getter]
    fn is_ok(&self) -> bool {
        !self.life.is_over() && self.context.is_ok()
    }

    /// Full names of the nodes in the graph.
    fn nodes(&self) -> Vec<String> {
        let nodes = self.node.context().graph().nodes;
        nodes
            .iter()
            .map(|it| format!("{}/{}", it.namespace.trim_end_matches('/'), it.name))
            .collect()
    }

    /// Topics in the graph, with the types of each.
    fn topics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for endpoint in &self.node.context().graph().endpoints {
            let types = match dict.get_item(&endpoint.topic)? {
                Some(types) => types.cast_into::<PyList>()?,
                None => {
                    let types = PyList::empty(py);
                    dict.set_item(&endpoint.topic, &types)?;
                    types
                }
            };
            if !types.contains(&endpoint.type_name)? {
                types.append(&endpoint.type_name)?;
            }
        }
        Ok(dict)
    }

    /// Flows of the domain on this host: topic, transport and the reason for it.
    #[pyo3(signature = (timeout = 1.0))]
    fn routes<'py>(&self, py: Python<'py>, timeout: f64) -> PyResult<Bound<'py, PyList>> {
        let timeout = seconds(timeout)?;
        let routes = py.detach(|| self.node.context().routes(timeout)).map_err(raised)?;
        let list = PyList::empty(py);
        for route in routes {
            let dict = PyDict::new(py);
            dict.set_item("topic", route.topic)?;
            dict.set_item("type", route.type_name)?;
            dict.set_item("transport", route.transport)?;
            dict.set_item("because", route.because)?;
            dict.set_item("rejected", route.rejected)?;
            dict.set_item("mismatches", route.mismatches)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    fn __repr__(&self) -> String {
        format!("<tsuji.Node {}>", self.node.fully_qualified_name())
    }
}

impl Node {
    /// What calls `callback` with each event.
    fn event_caller<E: Event>(&self, callback: Callback) -> impl FnMut(E) + Send + use<E> {
        let errors = Arc::clone(&self.raised);
        move |event| {
            call_back(&errors, &callback, |py, callback| {
                callback.call1((event.to_python(py)?,)).map(drop)
            });
        }
    }
}

/// An endpoint of the graph: node, kind, name of the topic or service, type, hash, identifier, QoS.
type Endpoint = (String, &'static str, String, String, String, String, Qos);

fn severity_of(number: u32) -> PyResult<Severity> {
    Severity::from_number(number).ok_or_else(|| {
        PyValueError::new_err(format!("severity {number}; allowed: 10, 20, 30, 40, 50"))
    })
}

/// What a callback decides; what it raises is kept, and means no.
fn decide(
    errors: &Mutex<Option<PyErr>>,
    callback: &Callback,
    ask: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<bool>,
) -> bool {
    let mut decided = false;
    call_back(errors, callback, |py, callback| {
        decided = ask(py, callback)?;
        Ok(())
    });
    decided
}

/// Timer of a node. It stops when it is dropped.
#[pyclass(frozen, weakref, module = "tsuji")]
pub(crate) struct Timer {
    timer: Outside<tsuji::Timer>,
    callback: Callback,
}

#[pymethods]
impl Timer {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callback.traverse(visit)
    }

    fn __clear__(&self) {
        self.callback.clear();
    }

    /// Stops the timer until `reset` is called.
    fn cancel(&self) {
        self.timer.cancel();
    }

    /// Calls back no more.
    fn end(&self) {
        self.timer.cancel();
        self.callback.clear();
    }

    /// Starts the period again from now.
    fn reset(&self) {
        self.timer.reset();
    }
}

/// Calls a callback; what it raises ends the spin.
fn call_back(
    errors: &Mutex<Option<PyErr>>,
    callback: &Callback,
    call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<()>,
) {
    attach(|py| {
        let Some(callback) = callback.get(py) else { return };
        if let Err(error) = call(py, &callback) {
            keep(py, errors, error);
        }
    });
}

/// Keeps an error for the spin to raise; one beside it is told where nobody can catch it.
fn keep(py: Python<'_>, errors: &Mutex<Option<PyErr>>, error: PyErr) {
    let mut kept = lock(errors);
    let second = match *kept {
        Some(_) => Some(error),
        None => {
            *kept = Some(error);
            None
        }
    };
    // Not under the lock: what it holds may run Python.
    drop(kept);
    if let Some(error) = second {
        error.write_unraisable(py, None);
    }
}

/// Shuts all contexts down, before the interpreter ends. From then on no thread of tsuji begins to run Python, and those that do
/// are waited for.
#[pyfunction]
pub(crate) fn shut_down_all(py: Python<'_>) {
    end_attaching();
    let contexts = std::mem::take(&mut *lock(&CONTEXTS));
    py.detach(|| {
        contexts.iter().filter_map(Weak::upgrade).for_each(|it| it.shutdown());
        wait_for_attachments(ENDING_MAX);
    });
}

/// How long a callback that runs when the interpreter ends is waited for.
const ENDING_MAX: Duration = Duration::from_secs(10);
