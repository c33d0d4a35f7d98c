//! Components: nodes that are loaded into a running process, so that their flows are by pointer.
//!
//! A [`Container`] serves `~/_container/load_node`, `unload_node` and `list_nodes`, as the containers of rclcpp do. What it
//! loads is registered in the program, or comes from another [`ComponentSource`].
//!
//! ```no_run
//! use tsuji::component::{Component, ComponentOptions, Container, Registered};
//! use tsuji::interfaces::std_msgs::msg::String as Text;
//! use tsuji::{Context, Node, Qos, Subscription};
//!
//! struct Listener {
//!     _texts: Subscription<Text>,
//!     node: Node,
//! }
//!
//! impl Component for Listener {
//!     fn node(&self) -> &Node {
//!         &self.node
//!     }
//! }
//!
//! fn listener(options: &ComponentOptions) -> tsuji::Result<Listener> {
//!     let node = options.node("listener")?;
//!     let prefix = node.declare_parameter("prefix", "I heard".to_owned())?;
//!     let logger = node.logger();
//!     let texts = node.create_subscription::<Text>("chatter", Qos::DEFAULT, move |text| {
//!         tsuji::info!(logger, "{prefix}: {}", text.message().data);
//!     })?;
//!     Ok(Listener { _texts: texts, node })
//! }
//!
//! let context = Context::builder().args(std::env::args().skip(1)).build()?;
//! let registered = Registered::new().with("my_robot", "Listener", listener);
//! Container::builder(&context, "container").source(registered).build()?.spin()?;
//! # Ok::<_, tsuji::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{Context, Node, NodeBuilder, Result};

use crate::parameter::Parameter;

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

mod test_picture;

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
}

impl ComponentOptions {
    /// Those of a component that a program makes by itself: the names and parameters are as the arguments of its
    /// context say.
    pub fn new(context: &Context) -> Self {
        Self { context: context.clone(), parameters: Vec::new(), extra_arguments: Vec::new() }
    }

    /// The context under which names are those that were asked for.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Creates the component's node, over the defaults of whose parameters are the values that were asked for. It is in
    /// the root namespace and has this name where nobody asked for others.
    ///
    /// # Errors
    ///
    /// Those of [`Context::node`].
    pub fn node(&self, name: &str) -> Result<Node> {
        self.node_builder(name).build(&self.context)
    }

    /// Begins to make that node, where it is to have more or less; [`build`](NodeBuilder::build) it in the
    /// [`context`](Self::context).
    pub fn node_builder(&self, name: &str) -> NodeBuilder {
        Node::builder(name).parameter_overrides(self.parameters.iter().cloned())
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

    /// Returns what makes this component; `None` where the source has none of its package. It may take long and
    /// read files.
    ///
    /// # Errors
    ///
    /// The reason why the source has its package and not this component.
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
