//! The parameters of a node, as the program and others use them.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::{
    CallbackGroup, Error, ErrorKind, Node, ParameterArgument, Publisher, RawService, Result,
    ServiceOptions,
};
use tsuji_interfaces::rcl_interfaces::msg::{self, ParameterEvent, SetParametersResult};
use tsuji_interfaces::rcl_interfaces::srv::{
    DescribeParameters, DescribeParametersResponse, GetParameterTypes, GetParameterTypesResponse,
    GetParameters, GetParametersResponse, ListParameters, ListParametersResponse, SetParameters,
    SetParametersAtomically, SetParametersAtomicallyResponse, SetParametersResponse,
};
use tsuji_msg::Message as _;
use tsuji_platform::clock;
use tsuji_platform::ordered::{Condvar, Mutex};
use tsuji_platform::report;

use super::declared::{Changes, Declared, Plan};
use super::{
    DescribedParameter, FILE_BYTES_MAX, Parameter, ParameterDescriptor, ParameterFile,
    ParameterKind, ParameterList, ParameterType, ParameterValue, QOS,
};
use crate::lock;
use crate::stamp::time;

/// The parameters of a node. Clones are the same; the services leave with the node and the last of them.
///
/// Others are answered while the node is spun. The program itself declares, asks and sets from any thread. Changes are made
/// one after the other, so that what a callback has agreed to is what becomes of the values that it saw: while callbacks are
/// asked about a change, other changes wait. A callback that wants one itself is refused with
/// [`ErrorKind::Invalid`]. A change of another thread, for which the callback may be waiting, is refused with
/// [`ErrorKind::Busy`] once a callback has not answered for 3 s; nothing is changed then, and it may be tried again.
#[derive(Clone)]
pub struct Parameters {
    core: Arc<Core>,
    _services: Arc<[AnyService]>,
}

impl Parameters {
    /// Serves the parameters of `node`, which the arguments of its context override.
    pub(crate) fn serve(node: &Node, options: &ParameterOptions) -> Result<Self> {
        let ParameterOptions { group, overrides, allow_undeclared, declare_overrides } = options;
        let mut over: BTreeMap<String, ParameterValue> = BTreeMap::new();
        let said = from_arguments(node)?;
        let said = said.into_iter().chain(overrides.iter().cloned());
        over.extend(said.map(|it| (it.name, it.value)));
        let core = Arc::new(Core {
            node: node.fully_qualified_name().to_owned(),
            declared: Mutex::new(Declared::new(over, *allow_undeclared)),
            turn: Mutex::default(),
            turn_is_free: Condvar::new(),
            callbacks: Mutex::default(),
            events: node.create_publisher("/parameter_events", QOS)?,
        });
        let services = core.serve(node, group.as_ref())?;
        let parameters = Self { core, _services: services.into() };
        if *declare_overrides {
            let descriptor =
                ParameterDescriptor { dynamic_typing: true, ..ParameterDescriptor::default() };
            let names = lock(&parameters.core.declared).overridden();
            for name in names {
                parameters.declare_unset(&name, ParameterType::NotSet, descriptor.clone())?;
            }
        }
        Ok(parameters)
    }

    /// Declares a parameter, of the type of its default, and returns its value: what overrides give, or else the
    /// default.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if it is declared already, what is given is not allowed, a callback refuses it, or it
    /// is called by such a callback; [`ErrorKind::Busy`] if a callback does not answer about another change.
    pub fn declare<T: ParameterKind>(&self, name: &str, default: T) -> Result<T> {
        self.declare_with(name, default, ParameterDescriptor::default())
    }

    /// Declares a parameter of the type of its default, with what is allowed of it.
    ///
    /// # Errors
    ///
    /// Those of [`declare`](Self::declare).
    pub fn declare_with<T: ParameterKind>(
        &self,
        name: &str,
        default: T,
        descriptor: ParameterDescriptor,
    ) -> Result<T> {
        self.typed(name, self.declare_as(name, T::TYPE, default.into(), descriptor)?)
    }

    /// Declares a parameter without a default: it is not set where overrides do not give it a value.
    ///
    /// # Errors
    ///
    /// Those of [`declare`](Self::declare).
    pub fn declare_unset(
        &self,
        name: &str,
        ty: ParameterType,
        descriptor: ParameterDescriptor,
    ) -> Result<ParameterValue> {
        self.declare_as(name, ty, ParameterValue::NotSet, descriptor)
    }

    fn declare_as(
        &self,
        name: &str,
        ty: ParameterType,
        default: ParameterValue,
        descriptor: ParameterDescriptor,
    ) -> Result<ParameterValue> {
        let core = &self.core;
        let declare = || {
            let changing = core.begin_change()?;
            let plan = lock(&core.declared).plan_declare(name, ty, default, descriptor)?;
            let changes = changing.carry_out(plan)?;
            core.tell(changes);
            Ok(lock(&core.declared).value(name).unwrap_or_default())
        };
        declare().map_err(|refused: Refused| core.refused("declare a parameter", &refused))
    }

    /// Forgets a parameter.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if it is not declared, is read-only or, as in rclcpp, of static typing; [`ErrorKind::Busy`] if
    /// a callback does not answer about another change.
    pub fn undeclare(&self, name: &str) -> Result<()> {
        let undeclare = || {
            let _changing = self.core.begin_change()?;
            let changes = lock(&self.core.declared).undeclare(name)?;
            self.core.tell(changes);
            Ok(())
        };
        undeclare().map_err(|refused: Refused| self.core.refused("undeclare a parameter", &refused))
    }

    /// Returns true if a parameter is declared.
    pub fn has(&self, name: &str) -> bool {
        lock(&self.core.declared).has(name)
    }

    /// Returns the value of a parameter.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if it is not declared, not set, or of another type.
    pub fn get<T: ParameterKind>(&self, name: &str) -> Result<T> {
        let value = self.value(name).ok_or_else(|| {
            let why = format!("parameter '{name}' is not declared");
            self.core.invalid("get a parameter", &why)
        })?;
        self.typed(name, value)
    }

    fn typed<T: ParameterKind>(&self, name: &str, value: ParameterValue) -> Result<T> {
        T::try_from(value).map_err(|error| {
            self.core.invalid("get a parameter", &format!("parameter '{name}': {error}"))
        })
    }

    /// Returns the value of a parameter, whatever its type; `None` where it is not declared and would have to be.
    pub fn value(&self, name: &str) -> Option<ParameterValue> {
        lock(&self.core.declared).value(name)
    }

    /// Sets a parameter.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`], with the reason, if that is refused; [`ErrorKind::Busy`] if a callback does not answer about
    /// another change.
    pub fn set(&self, name: &str, value: impl Into<ParameterValue>) -> Result<()> {
        self.set_atomically(vec![Parameter::new(name, value)])
    }

    /// Sets each of these, or says why not; callbacks are asked about one after the other.
    pub fn set_each(&self, parameters: Vec<Parameter>) -> Vec<Result<(), String>> {
        self.core.set_each(parameters.into_iter().map(Ok))
    }

    /// Sets all of these or none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`], with the reason, if any is refused; [`ErrorKind::Busy`] if a callback does not answer about
    /// another change.
    pub fn set_atomically(&self, parameters: Vec<Parameter>) -> Result<()> {
        let set = self.core.set_atomically(parameters);
        set.map_err(|refused| self.core.refused("set parameters", &refused))
    }

    /// Returns what was declared of a parameter.
    pub fn describe(&self, name: &str) -> Option<DescribedParameter> {
        lock(&self.core.declared).describe(name)
    }

    /// Returns the names under any of the prefixes, or all without one, that have fewer than `depth` dots behind their
    /// prefix; 0 for any number.
    pub fn list(&self, prefixes: &[String], depth: u64) -> ParameterList {
        lock(&self.core.declared).list(prefixes, depth)
    }

    /// Lets `callback` refuse what is about to be set or declared, with a reason, for as long as the answer is kept.
    ///
    /// Of several the last to come is asked first. One that panics refuses. It may ask for parameters, whose values are
    /// those of before, and change none. One that waits for another thread that changes one waits until that is refused, for
    /// 3 s.
    pub fn on_set(
        &self,
        callback: impl FnMut(&[Parameter]) -> Result<(), String> + Send + 'static,
    ) -> ParameterCallback {
        self.core.register(Callback::OnSet(Box::new(callback)))
    }

    /// Calls `callback` with what has been set or declared, for as long as the answer is kept. It may ask for
    /// parameters and change none.
    pub fn on_post_set(
        &self,
        callback: impl FnMut(&[Parameter]) + Send + 'static,
    ) -> ParameterCallback {
        self.core.register(Callback::PostSet(Box::new(callback)))
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters").field("node", &self.core.node).finish_non_exhaustive()
    }
}

/// Keeps a callback; it is asked about no change that begins after this is dropped.
#[must_use = "the callback is called no more when it is dropped"]
pub struct ParameterCallback {
    core: Weak<Core>,
    callback: Arc<Mutex<Callback>>,
}

impl Drop for ParameterCallback {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            lock(&core.callbacks).retain(|it| !Arc::ptr_eq(it, &self.callback));
        }
    }
}

impl fmt::Debug for ParameterCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParameterCallback").finish_non_exhaustive()
    }
}

/// What the parameters of a node will be.
#[derive(Debug, Default)]
pub(crate) struct ParameterOptions {
    /// Of the services; `None` for the node's own.
    pub(crate) group: Option<CallbackGroup>,
    /// Values in the place of defaults, over those of the arguments.
    pub(crate) overrides: Vec<Parameter>,
    /// Whoever sets a parameter that is not declared declares it by that, with dynamic typing.
    pub(crate) allow_undeclared: bool,
    /// All that overrides name is declared, with dynamic typing.
    pub(crate) declare_overrides: bool,
}

/// What the arguments of its context say of a node, in their order, so that the later counts.
pub(crate) fn from_arguments(node: &Node) -> Result<Vec<Parameter>> {
    let mut said = Vec::new();
    for argument in node.context().parameter_arguments() {
        let file = match argument {
            ParameterArgument::Assign(words) => ParameterFile::parse_argument(words)
                .map_err(|error| Error::new(ErrorKind::Invalid, format!("-p {words}: {error}")))?,
            ParameterArgument::File(path) => ParameterFile::read(path)?,
        };
        said.extend(file.for_node(node.fully_qualified_name()));
    }
    Ok(said)
}

impl ParameterFile {
    /// Reads a file of parameters.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`], with its name and the line, if it cannot be read or is not what ROS allows.
    pub fn read(path: &Path) -> Result<Self> {
        let invalid = |what: String| Error::new(ErrorKind::Invalid, what);
        let mut text = String::new();
        // One byte too many is enough to be refused.
        let bytes_max = FILE_BYTES_MAX as u64 + 1;
        File::open(path)
            .and_then(|file| file.take(bytes_max).read_to_string(&mut text))
            .map_err(|error| invalid(format!("{}: {error}", path.display())))?;
        Self::parse(&text).map_err(|error| invalid(format!("{}:{error}", path.display())))
    }
}

/// A service of any type, kept so that it stays.
type AnyService = Box<dyn std::ops::Deref<Target = RawService> + Send + Sync>;

type OnSet = dyn FnMut(&[Parameter]) -> Result<(), String> + Send;
type PostSet = dyn FnMut(&[Parameter]) + Send;

enum Callback {
    OnSet(Box<OnSet>),
    PostSet(Box<PostSet>),
}

struct Core {
    /// The node's full name.
    node: String,
    declared: Mutex<Declared>,
    /// Taken while a change is planned, agreed to, made and told.
    turn: Mutex<Turn>,
    turn_is_free: Condvar,
    /// The last to come is the first.
    callbacks: Mutex<Vec<Arc<Mutex<Callback>>>>,
    events: Publisher<ParameterEvent>,
}

/// Whose turn it is to change parameters. No lock is held meanwhile, as callbacks are the user's.
#[derive(Default)]
struct Turn {
    changer: Option<ThreadId>,
    /// Counts turns, and what callbacks are asked in each.
    questions: u64,
}

/// Why parameters were not changed.
struct Refused {
    kind: ErrorKind,
    why: String,
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self { kind: ErrorKind::Invalid, why }
    }
}

impl Core {
    fn serve(
        self: &Arc<Self>,
        node: &Node,
        group: Option<&CallbackGroup>,
    ) -> Result<Vec<AnyService>> {
        let core = || Arc::clone(self);
        let (describe, get, types, list, each, all) =
            (core(), core(), core(), core(), core(), core());
        Ok(vec![
            Box::new(node.create_service::<DescribeParameters>(
                options("describe_parameters", group),
                move |it| DescribeParametersResponse { descriptors: describe.describe(&it.names) },
            )?),
            Box::new(
                node.create_service::<GetParameters>(
                    options("get_parameters", group),
                    move |it| GetParametersResponse { values: get.values(&it.names) },
                )?,
            ),
            Box::new(node.create_service::<GetParameterTypes>(
                options("get_parameter_types", group),
                move |it| {
                    let types = types.values(&it.names).iter().map(|value| value.r#type).collect();
                    GetParameterTypesResponse { types }
                },
            )?),
            Box::new(node.create_service::<ListParameters>(
                options("list_parameters", group),
                move |it| {
                    let listed = lock(&list.declared).list(&it.prefixes, it.depth);
                    let ParameterList { names, prefixes } = listed;
                    ListParametersResponse { result: msg::ListParametersResult { names, prefixes } }
                },
            )?),
            Box::new(node.create_service::<SetParameters>(
                options("set_parameters", group),
                move |it| {
                    let parameters = it.parameters.iter().cloned().map(Parameter::try_from);
                    let parameters = parameters.map(|it| it.map_err(|error| error.to_string()));
                    let results = each.set_each(parameters).into_iter().map(outcome).collect();
                    SetParametersResponse { results }
                },
            )?),
            Box::new(node.create_service::<SetParametersAtomically>(
                options("set_parameters_atomically", group),
                move |it| {
                    let parameters = it.parameters.iter().cloned().map(Parameter::try_from);
                    let parameters: Result<Vec<_>, _> = parameters.collect();
                    let result = parameters
                        .map_err(|error| Refused::from(error.to_string()))
                        .and_then(|parameters| all.set_atomically(parameters));
                    let result = result.map_err(|refused| refused.why);
                    SetParametersAtomicallyResponse { result: outcome(result) }
                },
            )?),
        ])
    }

    /// What is known of all these parameters, or nothing where one of them is not declared, as in rclcpp.
    fn describe(&self, names: &[String]) -> Vec<msg::ParameterDescriptor> {
        let declared = lock(&self.declared);
        let all = names.iter().map(|name| Some(declared.describe(name)?.into()));
        all.collect::<Option<_>>().unwrap_or_default()
    }

    /// The values of all these parameters, or none, in the same way; none too where they are too much for one answer.
    fn values(&self, names: &[String]) -> Vec<msg::ParameterValue> {
        let declared = lock(&self.declared);
        let mut bytes = 0;
        let all = names.iter().map(|name| {
            let value = msg::ParameterValue::from(declared.value(name)?);
            bytes += value.serialized_size();
            (bytes <= ANSWER_BYTES_MAX).then_some(value)
        });
        all.collect::<Option<_>>().unwrap_or_default()
    }

    /// Sets one after the other, and tells of all in one event, or of each value of a name in another.
    fn set_each(
        &self,
        parameters: impl Iterator<Item = Result<Parameter, String>>,
    ) -> Vec<Result<(), String>> {
        let changing = match self.begin_change() {
            Ok(changing) => changing,
            Err(Refused { why, .. }) => return parameters.map(|_| Err(why.clone())).collect(),
        };
        let (mut changes, mut told) = (Changes::default(), HashSet::new());
        let set = |parameter: Result<Parameter, String>| {
            let parameter = parameter?;
            let name = parameter.name.clone();
            let plan = lock(&self.declared).plan_set(vec![parameter])?;
            let change = changing.carry_out(plan)?;
            if told.contains(&name) {
                self.tell(std::mem::take(&mut changes));
                told.clear();
            }
            told.insert(name);
            changes.append(change);
            Ok(())
        };
        let results = parameters.map(set).collect();
        self.tell(changes);
        results
    }

    fn set_atomically(&self, parameters: Vec<Parameter>) -> Result<(), Refused> {
        let changing = self.begin_change()?;
        let plan = lock(&self.declared).plan_set(parameters)?;
        let changes = changing.carry_out(plan)?;
        self.tell(changes);
        Ok(())
    }

    /// Waits until nobody else changes parameters, as long as callbacks go on answering. Refuses a callback that is asked about a
    /// change.
    fn begin_change(&self) -> Result<Changing<'_>, Refused> {
        let thread = thread::current().id();
        let mut turn = lock(&self.turn);
        if turn.changer == Some(thread) {
            let why = "a callback of parameters can not declare, set or undeclare any";
            return Err(why.to_owned().into());
        }
        let (mut question, mut since) = (turn.questions, Instant::now());
        while turn.changer.is_some() {
            if turn.questions != question {
                (question, since) = (turn.questions, Instant::now());
            }
            let left = CALLBACK_PATIENCE.saturating_sub(since.elapsed());
            if left.is_zero() {
                let why = format!(
                    "a callback of parameters has not answered for {} s about another change, and may wait for this one; \
                     nothing was changed",
                    CALLBACK_PATIENCE.as_secs()
                );
                return Err(Refused { kind: ErrorKind::Busy, why });
            }
            let waited = self.turn_is_free.wait_timeout(turn, left);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        turn.changer = Some(thread);
        turn.questions += 1;
        Ok(Changing { core: self })
    }

    fn callbacks(&self) -> Vec<Arc<Mutex<Callback>>> {
        lock(&self.callbacks).clone()
    }

    fn register(self: &Arc<Self>, callback: Callback) -> ParameterCallback {
        let callback = Arc::new(Mutex::new(callback));
        lock(&self.callbacks).insert(0, Arc::clone(&callback));
        ParameterCallback { core: Arc::downgrade(self), callback }
    }

    /// Tells everybody what has changed.
    fn tell(&self, changes: Changes) {
        if changes.is_empty() {
            return;
        }
        let messages =
            |parameters: Vec<Parameter>| parameters.into_iter().map(Into::into).collect();
        let event = ParameterEvent {
            stamp: time(clock::wall_ns()),
            node: self.node.clone(),
            new_parameters: messages(changes.new),
            changed_parameters: messages(changes.changed),
            deleted_parameters: messages(changes.deleted),
        };
        // The change itself is made, so it is no failure of whoever asked for it.
        if let Err(error) = self.events.publish(event) {
            report::warn!(%error, node = self.node, "a change of parameters could not be told");
        }
    }

    fn invalid(&self, operation: &str, why: &str) -> Error {
        self.refused(operation, &why.to_owned().into())
    }

    fn refused(&self, operation: &str, refused: &Refused) -> Error {
        Error::new(refused.kind, format!("{operation} of {}: {}", self.node, refused.why))
    }
}

/// The right to change parameters.
struct Changing<'a> {
    core: &'a Core,
}

impl Changing<'_> {
    /// Asks the callbacks, makes the change and tells them. What is planned fits, since nobody else may change
    /// anything.
    fn carry_out(&self, plan: Plan) -> Result<Changes, String> {
        let callbacks = self.core.callbacks();
        let parameters = plan.parameters().to_vec();
        if parameters.is_empty() {
            return Ok(lock(&self.core.declared).make(plan));
        }
        for callback in &callbacks {
            lock(&self.core.turn).questions += 1;
            let Callback::OnSet(ask) = &mut *lock(callback) else { continue };
            catch_unwind(AssertUnwindSafe(|| ask(&parameters)))
                .unwrap_or_else(|_| Err("the on-set callback panicked".to_owned()))?;
        }
        let changes = lock(&self.core.declared).make(plan);
        // Whoever has come meanwhile may have read what was before.
        for callback in &self.core.callbacks() {
            lock(&self.core.turn).questions += 1;
            let Callback::PostSet(tell) = &mut *lock(callback) else { continue };
            if catch_unwind(AssertUnwindSafe(|| tell(&parameters))).is_err() {
                report::warn!(node = self.core.node, "a post-set callback panicked");
            }
        }
        Ok(changes)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        lock(&self.core.turn).changer = None;
        self.core.turn_is_free.notify_one();
    }
}

/// How long a change waits for a callback that is asked about another one. What asks from elsewhere waits longer, and hears why.
const CALLBACK_PATIENCE: Duration = Duration::from_secs(3);

/// What one answer holds at most: the values of a large node, but not the same large one again and again.
const ANSWER_BYTES_MAX: usize = 64 << 20;

fn options(name: &str, group: Option<&CallbackGroup>) -> ServiceOptions {
    ServiceOptions::new(format!("~/{name}")).qos(QOS).group(group)
}

fn outcome(result: Result<(), String>) -> SetParametersResult {
    match result {
        Ok(()) => SetParametersResult { successful: true, reason: String::new() },
        Err(reason) => SetParametersResult { successful: false, reason },
    }
}
