//! Components: nodes that are loaded into a running process, so that their flows are by pointer.
//!
//! A [`Container`] serves `~/_container/load_node`, `unload_node` and `list_nodes`, as the containers of rclcpp do. What it
//! loads is registered in the program, or comes from another [`ComponentSource`].
//!
//! ```no_run
//! use tsuji::{Context, Node, Qos, Subscription};
//! use tsuji_interfaces::std_msgs::msg::String as Text;
//! use tsuji_node::WholeNode;
//! use tsuji_node::component::{Component, ComponentOptions, Container, Registered};
//! use tsuji_node::log::Logging;
//!
//! struct Listener {
//!     _texts: Subscription<Text>,
//!     whole: WholeNode,
//! }
//!
//! impl Component for Listener {
//!     fn node(&self) -> &Node {
//!         self.whole.node()
//!     }
//! }
//!
//! fn listener(options: &ComponentOptions) -> tsuji::Result<Listener> {
//!     let whole = options.whole_node("listener").build()?;
//!     let prefix = whole.parameters().declare("prefix", "I heard".to_owned())?;
//!     let logger = whole.logger().clone();
//!     let texts = whole.node().create_subscription::<Text>("chatter", Qos::DEFAULT, move |text| {
//!         tsuji_node::info!(logger, "{prefix}: {}", text.message().data);
//!     })?;
//!     Ok(Listener { _texts: texts, whole })
//! }
//!
//! let context = Context::builder().args(std::env::args()).build()?;
//! let logging = Logging::new(&context);
//! logging.install()?;
//! let registered = Registered::new().with("my_robot", "Listener", listener);
//! Container::builder(&context, "container").source(registered).logging(&logging).build()?.spin()?;
//! # Ok::<_, tsuji::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tsuji::{Context, Node, Result};

use crate::log::Logging;
use crate::parameter::{Parameter, Parameters};
use crate::whole::{WholeNode, WholeNodeBuilder};

mod builtin;
pub use builtin::builtin;

mod client;
pub use client::{ContainerClient, LoadRequest, LoadedComponent, containers};

mod container;
pub use container::{
    COMPONENTS_MAX, CONTAINER_NAME, Container, ContainerBuilder, ContainerCounters, UNLOAD_PATIENCE,
};

mod index;
pub use index::{IndexedComponent, RCLCPP_COMPONENTS, TSUJI_COMPONENTS, indexed};

/// A node and what belongs to it. Its callbacks run on threads of its own; when it is unloaded they end, and it is
/// dropped.
pub trait Component: Send + 'static {
    /// The node, whose callbacks are run while the component is loaded.
    fn node(&self) -> &Node;

    /// How many threads run its callbacks.
    fn threads(&self) -> usize {
        1
    }
}

/// What a component is made with.
#[derive(Clone, Debug)]
pub struct ComponentOptions {
    context: Context,
    parameters: Vec<Parameter>,
    extra_arguments: Vec<Parameter>,
    logging: Logging,
    /// Whether that is the log of the program.
    is_logged: bool,
}

impl ComponentOptions {
    /// Those of a component that a program makes by itself: the names and parameters are as the arguments of its
    /// context say.
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            parameters: Vec::new(),
            extra_arguments: Vec::new(),
            logging: Logging::new(context),
            is_logged: false,
        }
    }

    /// With the log of the program, so that the component's goes to `/rosout`.
    #[must_use]
    pub fn with_logging(mut self, logging: &Logging) -> Self {
        self.logging = logging.clone();
        self.is_logged = true;
        self
    }

    /// The log of the program where the container was given it; else one of its own, which goes nowhere.
    pub fn logging(&self) -> &Logging {
        &self.logging
    }

    /// The context under which names are those that were asked for.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Begins to make a node that has parameters, over whose defaults are the values that were asked for, `/rosout` and
    /// ROS time. It is in the root namespace and has this name where nobody asked for others.
    ///
    /// Its log goes to `/rosout` where the container was given the program's, by
    /// [`ContainerBuilder::logging`].
    pub fn whole_node<'a>(&'a self, name: &'a str) -> WholeNodeBuilder<'a> {
        let whole = WholeNode::builder(&self.context, &self.logging, name);
        let whole = whole.overrides(self.overrides().iter().cloned());
        if self.is_logged { whole } else { whole.without_rosout() }
    }

    /// A node and nothing more, in the root namespace and with this name where nobody asked for others.
    pub fn node(&self, name: &str) -> Result<Node> {
        self.context.node(name)
    }

    /// The parameters of the node, over whose defaults are the values that were asked for.
    pub fn parameters(&self, node: &Node) -> Result<Parameters> {
        Parameters::builder(node).overrides(self.overrides().iter().cloned()).build()
    }

    /// The values of parameters that were asked for.
    pub fn overrides(&self) -> &[Parameter] {
        &self.parameters
    }

    /// What else was said to whoever loads it, such as `use_intra_process_comms`.
    pub fn extra_arguments(&self) -> &[Parameter] {
        &self.extra_arguments
    }
}

/// Makes a component.
pub type ComponentFactory =
    Arc<dyn Fn(&ComponentOptions) -> Result<Box<dyn Component>> + Send + Sync>;

/// What a component is called before it is loaded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentType {
    /// Such as `composition`.
    pub package: String,
    /// Such as `composition::Talker`.
    pub plugin: String,
}

impl ComponentType {
    /// The component `plugin` of `package`.
    pub fn new(package: impl Into<String>, plugin: impl Into<String>) -> Self {
        Self { package: package.into(), plugin: plugin.into() }
    }
}

/// Such as `composition composition::Talker`, as both stand on a command line.
impl fmt::Display for ComponentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package, plugin } = self;
        write!(f, "{package} {plugin}")
    }
}

/// Where components come from.
pub trait ComponentSource: Send + Sync + 'static {
    /// Those it has, as far as can be known before they are loaded.
    fn types(&self) -> Vec<ComponentType>;

    /// What makes this one; `None` where it has none of its package, else why it has not this one. It may take long and
    /// read files.
    fn find(&self, wanted: &ComponentType) -> Result<Option<ComponentFactory>, String>;
}

/// Components that are part of the program.
#[derive(Clone, Default)]
pub struct Registered {
    factories: BTreeMap<ComponentType, ComponentFactory>,
}

impl Registered {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this one too. Of two of one name the later counts.
    #[must_use]
    pub fn with<C: Component>(
        mut self,
        package: &str,
        plugin: &str,
        make: impl Fn(&ComponentOptions) -> Result<C> + Send + Sync + 'static,
    ) -> Self {
        let make: ComponentFactory =
            Arc::new(move |options| Ok(Box::new(make(options)?) as Box<dyn Component>));
        self.factories.insert(ComponentType::new(package, plugin), make);
        self
    }
}

impl ComponentSource for Registered {
    fn types(&self) -> Vec<ComponentType> {
        self.factories.keys().cloned().collect()
    }

    fn find(&self, wanted: &ComponentType) -> Result<Option<ComponentFactory>, String> {
        if let Some(make) = self.factories.get(wanted) {
            return Ok(Some(Arc::clone(make)));
        }
        let of_package = self.factories.keys().filter(|it| it.package == wanted.package);
        let plugins: Vec<&str> = of_package.map(|it| it.plugin.as_str()).collect();
        if plugins.is_empty() { Ok(None) } else { Err(no_class(wanted, &plugins)) }
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.factories.keys()).finish()
    }
}

/// A package has no component of this name. It begins as rclcpp does.
pub fn no_class(wanted: &ComponentType, plugins: &[&str]) -> String {
    let ComponentType { package, plugin } = wanted;
    format!(
        "Failed to find class with the requested plugin name: '{plugin}' of {package}; allowed: {}",
        plugins.join(", ")
    )
}
