//! Components, loaded into their containers by the service that every container of ROS 2 has.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use tsuji::{Client, ClientOptions, Context, ErrorKind, Node};
use tsuji_interfaces::composition_interfaces::srv::{LoadNode, LoadNodeRequest};
use tsuji_interfaces::rcl_interfaces::msg::Parameter as ParameterMessage;

use super::Loadable;
use super::report::{Level, Voice};
use crate::session::Globals;

/// How long a container may take to make one component.
const PATIENCE: Duration = Duration::from_secs(60);

/// After so long without the container it is said what is waited for, and again after as long.
const SAY_AFTER: Duration = Duration::from_secs(10);

/// How often is looked whether the container is another by now, or over.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Loads what belongs into each container, in a thread for each.
#[derive(Debug)]
pub(super) struct Loading {
    context: Context,
    containers: BTreeMap<String, Arc<Container>>,
    /// Components that could not be loaded.
    failed: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

/// What is known of a container.
#[derive(Debug, Default)]
struct Container {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// How often it was started.
    generation: u64,
    /// The last generation of which nothing is left to do.
    done: u64,
    /// It runs no more, and is not started again.
    is_over: bool,
    /// The launch ends.
    is_ending: bool,
}

impl Container {
    fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits for a start whose components are not loaded. False if the launch ends before.
    fn wait_for_start(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |it: &mut State| it.done == it.generation && !it.is_ending;
        let state = self.changed.wait_while(state, is_idle);
        let state = *state.unwrap_or_else(PoisonError::into_inner);
        state.done < state.generation
    }
}

impl Loading {
    /// `own` are the nodes that this launch starts; what goes into other containers is loaded at once.
    pub(super) fn start(
        globals: &Globals,
        components: Vec<Loadable>,
        own: &[&str],
        voice: &Voice,
    ) -> anyhow::Result<Self> {
        let context = globals.context_without_signals()?;
        let node = context.node(&format!("_tsuji_launch_{}", std::process::id()))?;
        let mut all: BTreeMap<String, Vec<Loadable>> = BTreeMap::new();
        for it in components {
            all.entry(it.what.container.clone()).or_default().push(it);
        }
        let mut loading = Self {
            context,
            containers: BTreeMap::new(),
            failed: Arc::new(AtomicUsize::new(0)),
            threads: Vec::new(),
        };
        for (name, components) in all {
            let service = format!("{name}/_container/load_node");
            let client = node.create_client(ClientOptions::new(service).replace_invalid_text())?;
            let container = Arc::new(Container::default());
            let is_own = own.contains(&name.as_str());
            let loader = Loader {
                node: node.clone(),
                client,
                name: name.clone(),
                is_own,
                container: Arc::clone(&container),
                components,
                voice: voice.clone(),
                failed: Arc::clone(&loading.failed),
            };
            let thread = thread::Builder::new().name("loading".to_owned());
            loading.threads.push(thread.spawn(move || loader.run())?);
            loading.containers.insert(name.clone(), container);
            if !is_own {
                loading.container_started(&name);
            }
        }
        Ok(loading)
    }

    /// A node has started, and its components are to be loaded if it is a container.
    pub(super) fn container_started(&self, node: &str) {
        if let Some(container) = self.containers.get(node) {
            container.change(|it| it.generation += 1);
        }
    }

    /// A node has ended and is not started again, so what it has not loaded is never loaded.
    pub(super) fn container_is_over(&self, node: &str) {
        if let Some(container) = self.containers.get(node) {
            container.change(|it| it.is_over = true);
        }
    }

    /// Whether all is loaded that was to be.
    pub(super) fn is_idle(&self) -> bool {
        self.containers.values().map(|it| it.state()).all(|it| it.done == it.generation)
    }

    /// Nothing more is loaded.
    pub(super) fn stop(&self) {
        self.context.shutdown();
    }

    /// Stops, and waits for the threads. How many components could not be loaded.
    pub(super) fn finish(self) -> usize {
        self.stop();
        for container in self.containers.values() {
            container.change(|it| it.is_ending = true);
        }
        for thread in self.threads {
            // A panic has been told by its hook.
            let _ = thread.join();
        }
        self.failed.load(Ordering::Acquire)
    }
}

/// Why a component was not loaded.
struct NotLoaded {
    /// It has left instead of an answer.
    container_has_left: bool,
    text: String,
}

struct Loader {
    node: Node,
    client: Client<LoadNode>,
    name: String,
    is_own: bool,
    container: Arc<Container>,
    components: Vec<Loadable>,
    voice: Voice,
    failed: Arc<AtomicUsize>,
}

/// Why components are not loaded one by one to the last.
enum Halt {
    /// The container is another by now, or has left.
    Again,
    /// The launch ends.
    Ending,
    /// Nothing more can be loaded.
    Failed(String),
}

/// How far it has come with which container.
#[derive(Debug, Default)]
struct Progress {
    generation: u64,
    /// The components that this generation was asked to load, and has answered for.
    settled: usize,
}

impl Loader {
    fn run(&self) {
        let mut progress = Progress::default();
        while self.container.wait_for_start() {
            match self.load_all(&mut progress) {
                Ok(()) => self.container.change(|it| it.done = progress.generation),
                Err(Halt::Again) => {}
                Err(Halt::Ending) => return,
                Err(Halt::Failed(why)) => {
                    let last = self.container.state().generation;
                    // A container that has never served has none of them.
                    let settled = if last == progress.generation { progress.settled } else { 0 };
                    for component in &self.components[settled..] {
                        self.tell_failed(component, &why);
                    }
                    self.container.change(|it| it.done = last);
                }
            }
        }
    }

    /// Loads each component once into the container that serves.
    fn load_all(&self, progress: &mut Progress) -> Result<(), Halt> {
        self.wait_for_container()?;
        // Of those that were started until now the last is the one that serves.
        let generation = self.container.state().generation;
        if generation != progress.generation {
            *progress = Progress { generation, settled: 0 };
        }
        while let Some(component) = self.components.get(progress.settled) {
            self.look()?;
            self.insist_on(generation)?;
            let result = self.load(component);
            if let Err(why) = &result {
                self.look()?;
                // Another container is asked for it again.
                self.insist_on(generation)?;
                if self.is_own && why.container_has_left {
                    return Err(Halt::Again);
                }
            }
            progress.settled += 1;
            match result {
                Ok(text) => self.tell(Level::Info, text, component, None),
                Err(why) => self.tell_failed(component, &why.text),
            }
        }
        Ok(())
    }

    fn insist_on(&self, generation: u64) -> Result<(), Halt> {
        match self.container.state().generation == generation {
            true => Ok(()),
            false => Err(Halt::Again),
        }
    }

    /// Whether there is still something to load into.
    fn look(&self) -> Result<(), Halt> {
        if self.container.state().is_over {
            return Err(Halt::Failed("the container has ended".to_owned()));
        }
        if self.node.context().is_ok() { Ok(()) } else { Err(Halt::Ending) }
    }

    fn wait_for_container(&self) -> Result<(), Halt> {
        let mut since = Instant::now();
        loop {
            self.look()?;
            match self.client.wait_for_service(LOOK_AGAIN) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::NoServer => {}
                Err(error) => {
                    self.look()?;
                    return Err(Halt::Failed(error.to_string()));
                }
            }
            if SAY_AFTER <= since.elapsed() {
                since = Instant::now();
                let service = self.client.name();
                let mut text = format!(
                    "waiting for the container '{}', which has no service {service} yet",
                    self.name
                );
                for obstacle in self.client.obstacles() {
                    text.push_str("; ");
                    text.push_str(&obstacle);
                }
                let event = json!({ "event": "waiting", "container": self.name });
                self.voice.event(Level::Warning, "launch", text, event);
            }
        }
    }

    fn load(&self, component: &Loadable) -> Result<String, NotLoaded> {
        let messages = |all: &[tsuji::parameter::Parameter]| {
            all.iter().cloned().map(ParameterMessage::from).collect()
        };
        let what = &component.what;
        let request = LoadNodeRequest {
            package_name: what.package.clone(),
            plugin_name: what.plugin.clone(),
            node_name: what.name.clone(),
            node_namespace: what.namespace.clone(),
            log_level: 0,
            remap_rules: what.remappings.clone(),
            parameters: messages(&component.parameters),
            extra_arguments: messages(&component.extra),
        };
        let response = self.client.call(request, PATIENCE).map_err(|error| {
            let container_has_left =
                matches!(error.kind(), ErrorKind::NoServer | ErrorKind::ServerLost);
            NotLoaded { container_has_left, text: error.to_string() }
        })?;
        if !response.success {
            return Err(NotLoaded { container_has_left: false, text: response.error_message });
        }
        Ok(format!("Loaded node '{}' in container '{}'", response.full_node_name, self.name))
    }

    fn tell_failed(&self, component: &Loadable, why: &str) {
        let what = &component.what;
        let node = match what.name.as_str() {
            "" => "node".to_owned(),
            name => format!("node '{name}'"),
        };
        let text = format!(
            "Failed to load {node} of type '{}' in container '{}': {why} [{}]",
            what.plugin, self.name, what.place
        );
        self.tell(Level::Error, text, component, Some(why));
        self.failed.fetch_add(1, Ordering::AcqRel);
    }

    fn tell(&self, level: Level, text: String, component: &Loadable, why: Option<&str>) {
        let what = &component.what;
        let event = match why {
            None => "loaded",
            Some(_) => "not loaded",
        };
        let event = json!({ "event": event, "container": self.name, "plugin": what.plugin,
            "name": what.name, "error": why });
        self.voice.event(level, "launch", text, event);
    }
}
