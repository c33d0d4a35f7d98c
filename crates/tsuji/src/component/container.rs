//! The container: it makes components, runs them and lets them go.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{Context, Error, ErrorKind, Executor, Node, Result, Service};
use tsuji_interfaces::composition_interfaces::srv::{
    ListNodes, ListNodesResponse, LoadNode, LoadNodeRequest, LoadNodeResponse, UnloadNode,
    UnloadNodeResponse,
};
use tsuji_platform::ordered::{Condvar, Mutex};

use super::{
    Component, ComponentFactory, ComponentOptions, ComponentSource, ComponentType, LoadRequest,
    LoadedComponent, RCLCPP_COMPONENTS, indexed,
};
use crate::log::Logger;
use crate::parameter::{Parameter, ParameterValue, UnknownType};
use crate::{lock, panic_text};

/// The name that rclcpp gives a container.
pub const CONTAINER_NAME: &str = "ComponentManager";

/// The components that a container has at most. Further ones are refused before they are made.
///
/// Each is run by an executor of its own, which needs one of the 64 wait sets of a process; the others are left to the
/// program and to what components wait with themselves.
pub const COMPONENTS_MAX: usize = 48;

/// How long unloading waits for a callback that runs.
pub const UNLOAD_PATIENCE: Duration = Duration::from_secs(5);

/// Loads components into this process, and unloads them, while its node is spun.
///
/// Each component has threads of its own. One whose callback panics is unloaded by that, and the others go on. All are
/// unloaded when the container is dropped, or its context is shut down.
#[must_use = "its components are unloaded when it is dropped"]
pub struct Container {
    core: Arc<Core>,
    _load: Service<LoadNode>,
    _unload: Service<UnloadNode>,
    _list: Service<ListNodes>,
}

/// What a container has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerCounters {
    /// Components that were loaded.
    pub loaded: u64,
    /// Components that were asked for and refused.
    pub refused: u64,
    /// Components that are no longer there.
    pub ended: u64,
    /// Of those: a callback of it panicked, or its spin failed.
    pub failed: u64,
}

impl Container {
    /// Creates the container `name` with the components of this source.
    ///
    /// # Errors
    ///
    /// Those of [`ContainerBuilder::build`].
    pub fn new(context: &Context, name: &str, source: impl ComponentSource) -> Result<Self> {
        Self::builder(context, name).source(source).build()
    }

    /// Begins to make the container `name`, in the root namespace.
    pub fn builder<'a>(context: &'a Context, name: &str) -> ContainerBuilder<'a> {
        ContainerBuilder { context, name: name.to_owned(), sources: Vec::new() }
    }

    /// Returns the container's node, to be spun with others.
    pub fn node(&self) -> &Node {
        &self.core.node
    }

    /// Serves until the context is shut down.
    ///
    /// # Errors
    ///
    /// Those of [`spin`](crate::spin).
    pub fn spin(&self) -> Result<()> {
        crate::spin(self.node())
    }

    /// Loads a component, as by the service.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`], with the reason, if it cannot be had.
    pub fn load(&self, request: LoadRequest) -> Result<LoadedComponent> {
        let wanted = ComponentType::new(request.package.clone(), request.plugin.clone());
        self.core
            .load(request.into())
            .map_err(|why| Error::new(ErrorKind::Invalid, format!("load {wanted}: {why}")))
    }

    /// Unloads a component. When this answers, its endpoints have left and its threads have ended.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`], with the reason, if it cannot be unloaded.
    pub fn unload(&self, id: u64) -> Result<()> {
        self.core.unload(id).map_err(|why| Error::new(ErrorKind::Invalid, format!("unload: {why}")))
    }

    /// Returns the components that the container has.
    pub fn list(&self) -> Vec<LoadedComponent> {
        self.core.list()
    }

    /// Returns the components that the container can load, as far as is known.
    pub fn types(&self) -> Vec<ComponentType> {
        self.core.types()
    }

    /// Returns what the container has done so far.
    pub fn counters(&self) -> ContainerCounters {
        lock(&self.core.loaded).counters
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        for LoadedComponent { node, .. } in self.core.unload_all() {
            crate::warn!(
                self.core.logger,
                node,
                "a component goes on while its container leaves: a callback of it still runs"
            );
        }
    }
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container").field("node", &self.core.node).finish_non_exhaustive()
    }
}

/// What a container will be.
pub struct ContainerBuilder<'a> {
    context: &'a Context,
    name: String,
    sources: Vec<Box<dyn ComponentSource>>,
}

impl ContainerBuilder<'_> {
    /// With the components of this source too. Of two that have the same package and plugin the first is taken.
    #[must_use]
    pub fn source(mut self, source: impl ComponentSource) -> Self {
        self.sources.push(Box::new(source));
        self
    }

    /// Makes the container.
    ///
    /// # Errors
    ///
    /// Those of [`Context::node`] and [`Node::create_service`].
    pub fn build(self) -> Result<Container> {
        let Self { context, name, sources } = self;
        let node = context.node(&name)?;
        let core = Arc::new(Core {
            node: node.clone(),
            logger: node.logger(),
            sources,
            loaded: Mutex::new(Loaded::default()),
            ended: Condvar::new(),
        });
        let (loading, unloading, listing) =
            (Arc::clone(&core), Arc::clone(&core), Arc::clone(&core));
        let load = node.create_service::<LoadNode>("~/_container/load_node", move |request| {
            loading.answer_load(&request)
        })?;
        let unload =
            node.create_service::<UnloadNode>("~/_container/unload_node", move |request| {
                match unloading.unload(request.unique_id) {
                    Ok(()) => UnloadNodeResponse { success: true, error_message: String::new() },
                    Err(error_message) => UnloadNodeResponse { success: false, error_message },
                }
            })?;
        let list = node.create_service::<ListNodes>("~/_container/list_nodes", move |_| {
            let all = listing.list().into_iter();
            let (full_node_names, unique_ids) = all.map(|it| (it.node, it.id)).unzip();
            ListNodesResponse { full_node_names, unique_ids }
        })?;
        Ok(Container { core, _load: load, _unload: unload, _list: list })
    }
}

impl fmt::Debug for ContainerBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

struct Core {
    node: Node,
    logger: Logger,
    sources: Vec<Box<dyn ComponentSource>>,
    loaded: Mutex<Loaded>,
    /// A component is gone.
    ended: Condvar,
}

#[derive(Default)]
struct Loaded {
    components: BTreeMap<u64, Entry>,
    /// Those that run and those that are being made.
    places: usize,
    /// The container has left, and takes none any more.
    is_closed: bool,
    ids: u64,
    counters: ContainerCounters,
}

/// A component that runs on threads of its own.
struct Entry {
    node: String,
    is_ending: Arc<AtomicBool>,
    wake: Box<dyn Fn() + Send>,
    /// Until somebody unloads it and waits for its end.
    thread: Option<JoinHandle<()>>,
}

impl Core {
    fn answer_load(self: &Arc<Self>, request: &LoadNodeRequest) -> LoadNodeResponse {
        match self.load(request.clone()) {
            Ok(LoadedComponent { id, node }) => LoadNodeResponse {
                success: true,
                error_message: String::new(),
                full_node_name: node,
                unique_id: id,
            },
            Err(error_message) => {
                let LoadNodeRequest { package_name, plugin_name, .. } = request;
                crate::warn!(
                    self.logger,
                    package_name,
                    plugin_name,
                    error_message,
                    "a component is not loaded"
                );
                LoadNodeResponse { error_message, ..LoadNodeResponse::default() }
            }
        }
    }

    fn load(self: &Arc<Self>, request: LoadNodeRequest) -> Result<LoadedComponent, String> {
        // Sources, constructors and what a component says of itself are others' code.
        let loaded = catch_unwind(AssertUnwindSafe(|| self.try_load(request)))
            .unwrap_or_else(|panic| Err(format!("{THREW}: it panicked: {}", panic_text(&*panic))));
        if loaded.is_err() {
            lock(&self.loaded).counters.refused += 1;
        }
        loaded
    }

    fn try_load(self: &Arc<Self>, request: LoadNodeRequest) -> Result<LoadedComponent, String> {
        let wanted = ComponentType::new(request.package_name.clone(), request.plugin_name.clone());
        let make = self.find(&wanted)?;
        let options = self.options(request)?;
        let place = self.place()?;
        let not_run = |error| format!("{wanted}: its callbacks cannot be run: {error}");
        // First, so that what cannot be run is not made.
        let executor = Executor::new(options.context()).map_err(not_run)?;
        let component = make(&options).map_err(|error| format!("{THREW}: {error}"))?;
        self.run(place, executor, component).map_err(not_run)
    }

    /// A place for a component that is to be made.
    fn place(self: &Arc<Self>) -> Result<Place, String> {
        let mut loaded = lock(&self.loaded);
        if loaded.is_closed {
            return Err(LEAVES.to_owned());
        }
        if COMPONENTS_MAX <= loaded.places {
            return Err(format!("{COMPONENTS_MAX} components are loaded; allowed: no more"));
        }
        loaded.places += 1;
        Ok(Place { core: Arc::clone(self) })
    }

    /// What makes the component, from the first source that has its package and it.
    fn find(&self, wanted: &ComponentType) -> Result<ComponentFactory, String> {
        let mut refusal = None;
        for source in &self.sources {
            match source.find(wanted) {
                Ok(Some(make)) => return Ok(make),
                Ok(None) => (),
                Err(why) => {
                    refusal.get_or_insert(why);
                }
            }
        }
        Err(refusal.unwrap_or_else(|| self.no_package(&wanted.package)))
    }

    fn no_package(&self, package: &str) -> String {
        if indexed(RCLCPP_COMPONENTS).iter().any(|it| it.component.package == package) {
            return format!(
                "package '{package}' has components of rclcpp, in C++; allowed in a container of tsuji: components made \
                 with tsuji. A container of rclcpp loads it, on tsuji with RMW_IMPLEMENTATION=rmw_tsuji"
            );
        }
        let mut packages: Vec<String> = self.types().into_iter().map(|it| it.package).collect();
        packages.dedup();
        let packages = if packages.is_empty() { "none".to_owned() } else { packages.join(", ") };
        format!(
            "Could not find requested resource in ament index, nor among the components of this container: package \
             '{package}'; allowed: {packages}"
        )
    }

    /// How the component is to be made, as rclcpp reads it from a request.
    fn options(&self, request: LoadNodeRequest) -> Result<ComponentOptions, String> {
        let read = |all: Vec<_>| -> Result<Vec<Parameter>, String> {
            let all = all.into_iter().map(Parameter::try_from);
            all.collect::<Result<_, UnknownType>>().map_err(|error| error.to_string())
        };
        let parameters = read(request.parameters)?;
        let extra_arguments = read(request.extra_arguments)?;
        for Parameter { name, value } in &extra_arguments {
            if !BOOLEAN_ARGUMENTS.contains(&name.as_str()) {
                continue;
            }
            let ParameterValue::Bool(value) = value else {
                return Err(format!("Extra component argument '{name}' must be a boolean"));
            };
            if *value && name == FORWARD {
                return Err(format!(
                    "Extra component argument '{name}' is true; allowed: false, since a component has the names and \
                     parameters of its request alone"
                ));
            }
        }
        let named = [("__node", request.node_name), ("__ns", request.node_namespace)];
        let named = named.into_iter().filter(|(_, name)| !name.is_empty());
        let rules = request.remap_rules.into_iter();
        let rules = rules.chain(named.map(|(what, name)| format!("{what}:={name}")));
        let arguments = rules.flat_map(|rule| ["-r".to_owned(), rule]);
        let arguments = std::iter::once("--ros-args".to_owned()).chain(arguments);
        let context =
            self.node.context().with_args(arguments).map_err(|error| error.to_string())?;
        Ok(ComponentOptions { context, parameters, extra_arguments })
    }

    /// Runs the callbacks of a component on threads of its own from now on.
    fn run(
        self: &Arc<Self>,
        place: Place,
        executor: Executor,
        component: Box<dyn Component>,
    ) -> Result<LoadedComponent> {
        let mut executor = executor.threads(component.threads());
        executor.add(component.node())?;
        let node = component.node().fully_qualified_name().to_owned();
        let is_ending = Arc::new(AtomicBool::new(false));
        let mut loaded = lock(&self.loaded);
        if loaded.is_closed {
            return Err(Error::new(ErrorKind::Closed, LEAVES));
        }
        let is_second = loaded.components.values().any(|it| it.node == node);
        loaded.ids += 1;
        let id = loaded.ids;
        let entry = Entry {
            node: node.clone(),
            is_ending: Arc::clone(&is_ending),
            wake: Box::new(executor.waker()),
            thread: None,
        };
        loaded.components.insert(id, entry);
        drop(loaded);
        if is_second {
            crate::warn!(self.logger, node, "two components of this container have the same name");
        }
        let running = Running { place, id, is_failed: false };
        let spin = move || {
            let mut running = running;
            let spun = catch_unwind(AssertUnwindSafe(|| {
                let spun = executor.spin_until(|| is_ending.load(Ordering::Acquire));
                drop(executor);
                drop(component);
                spun
            }));
            let why = match spun {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(panic) => format!("it panicked: {}", panic_text(&*panic)),
            };
            running.is_failed = true;
            let logger = &running.place.core.logger;
            crate::error!(*logger, id, why, "a component has ended");
        };
        let spawned = thread::Builder::new().name("tsuji-component".to_owned()).spawn(spin);
        let thread = spawned
            .map_err(|error| Error::new(ErrorKind::Exhausted, format!("threads: {error}")))?;
        let mut loaded = lock(&self.loaded);
        loaded.counters.loaded += 1;
        // It may have ended already.
        if let Some(entry) = loaded.components.get_mut(&id) {
            entry.thread = Some(thread);
        }
        drop(loaded);
        Ok(LoadedComponent { id, node })
    }

    fn unload(&self, id: u64) -> Result<(), String> {
        let mut loaded = lock(&self.loaded);
        let Some(entry) = loaded.components.get_mut(&id) else {
            return Err(format!("No node found with unique_id: {id}"));
        };
        let node = entry.node.clone();
        let thread = entry.end();
        let (mut loaded, _) = self
            .ended
            .wait_timeout_while(loaded, UNLOAD_PATIENCE, |it| it.components.contains_key(&id))
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = loaded.components.get_mut(&id) {
            // Of two who wait for it one has it.
            if thread.is_some() {
                entry.thread = thread;
            }
            return Err(format!(
                "{node} (unique_id {id}) has a callback that still runs after {UNLOAD_PATIENCE:?}; it leaves when that ends"
            ));
        }
        drop(loaded);
        if let Some(thread) = thread {
            // It has left the table, which is the last that it does, and tells a panic before that.
            let _ = thread.join();
        }
        Ok(())
    }

    /// Unloads all, and takes none any more. Answers those whose callbacks still run after [`UNLOAD_PATIENCE`],
    /// which is for all together.
    fn unload_all(&self) -> Vec<LoadedComponent> {
        let mut loaded = lock(&self.loaded);
        loaded.is_closed = true;
        let all = loaded.components.iter_mut();
        let threads: Vec<_> = all.filter_map(|(id, it)| Some((*id, it.end()?))).collect();
        let (loaded, _) = self
            .ended
            .wait_timeout_while(loaded, UNLOAD_PATIENCE, |it| !it.components.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let left = loaded.list();
        drop(loaded);
        for (id, thread) in threads {
            if left.iter().all(|it| it.id != id) {
                let _ = thread.join();
            }
        }
        left
    }

    fn list(&self) -> Vec<LoadedComponent> {
        lock(&self.loaded).list()
    }

    fn types(&self) -> Vec<ComponentType> {
        let mut all: Vec<ComponentType> = self.sources.iter().flat_map(|it| it.types()).collect();
        all.sort();
        all.dedup();
        all
    }
}

impl Loaded {
    fn list(&self) -> Vec<LoadedComponent> {
        let all = self.components.iter();
        all.map(|(id, it)| LoadedComponent { id: *id, node: it.node.clone() }).collect()
    }
}

impl Entry {
    /// Tells it to end. The first who does may wait for its thread.
    fn end(&mut self) -> Option<JoinHandle<()>> {
        self.is_ending.store(true, Ordering::Release);
        (self.wake)();
        self.thread.take()
    }
}

/// Room for one component, from before it is made until its thread has ended.
struct Place {
    core: Arc<Core>,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.core.loaded).places -= 1;
    }
}

/// A component's part in the table, which it leaves when its thread ends, or could not begin.
struct Running {
    place: Place,
    id: u64,
    is_failed: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let core = &self.place.core;
        let mut loaded = lock(&core.loaded);
        loaded.components.remove(&self.id);
        loaded.counters.ended += 1;
        loaded.counters.failed += u64::from(self.is_failed);
        drop(loaded);
        core.ended.notify_all();
    }
}

const LEAVES: &str = "the container leaves";

/// Begins what rclcpp says of a constructor that fails.
const THREW: &str = "Component constructor threw an exception";

/// Of the extra arguments, those of rclcpp that are truth values.
const BOOLEAN_ARGUMENTS: [&str; 2] = ["use_intra_process_comms", FORWARD];
const FORWARD: &str = "forward_global_arguments";
