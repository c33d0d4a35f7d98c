//! A node with all that ROS 2 users take for granted.

use std::time::Duration;

use tsuji::{Context, Node, Result, Timer};

use crate::clock::{Clock, ClockTimer, TimeSource};
use crate::log::{Logger, LoggerService, Logging, Rosout};
use crate::parameter::{Parameter, Parameters};

/// A node with parameters, `/rosout` and ROS time, as rclcpp's nodes are from their making.
///
/// ```no_run
/// use std::time::Duration;
///
/// use tsuji::Context;
/// use tsuji_node::WholeNode;
/// use tsuji_node::log::Logging;
///
/// let context = Context::builder().args(std::env::args()).build()?;
/// let logging = Logging::new(&context);
/// logging.install()?;
/// let whole = WholeNode::builder(&context, &logging, "drive").namespace("/robot").build()?;
/// let (clock, logger) = (whole.clock().clone(), whole.logger().clone());
/// let _timer = whole.create_timer(Duration::from_secs(1), move || {
///     tsuji_node::info!(logger, "it is {} ns", clock.now_ns());
/// })?;
/// tsuji::spin(whole.node())?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "what it serves leaves when it is dropped"]
pub struct WholeNode {
    // What is told in the log goes before the log.
    _logger_service: Option<LoggerService>,
    time: TimeSource,
    parameters: Parameters,
    logger: Logger,
    rosout: Rosout,
    node: Node,
}

impl WholeNode {
    /// Begins to make the node `name`.
    pub fn builder<'a>(
        context: &'a Context,
        logging: &'a Logging,
        name: &'a str,
    ) -> WholeNodeBuilder<'a> {
        WholeNodeBuilder {
            context,
            logging,
            name,
            namespace: "/",
            overrides: Vec::new(),
            rosout: true,
            logger_service: false,
        }
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Its parameters, `use_sim_time` among them.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Its ROS time.
    pub fn clock(&self) -> &Clock {
        self.time.clock()
    }

    /// What sets its ROS time.
    pub fn time_source(&self) -> &TimeSource {
        &self.time
    }

    /// Its logger.
    pub fn logger(&self) -> &Logger {
        &self.logger
    }

    /// What takes its log to `/rosout`.
    pub fn rosout(&self) -> &Rosout {
        &self.rosout
    }

    /// Calls `callback` every `period` of ROS time while the node is spun, as [`Clock::create_timer`] does.
    pub fn create_timer(
        &self,
        period: Duration,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<ClockTimer> {
        self.clock().create_timer(&self.node, period, callback)
    }

    /// Calls `callback` every `period` whatever is simulated, while the node is spun.
    pub fn create_wall_timer(
        &self,
        period: Duration,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer> {
        self.node.create_timer(period, callback)
    }
}

/// What a whole node will be.
#[derive(Debug)]
pub struct WholeNodeBuilder<'a> {
    context: &'a Context,
    logging: &'a Logging,
    name: &'a str,
    namespace: &'a str,
    overrides: Vec<Parameter>,
    rosout: bool,
    logger_service: bool,
}

impl<'a> WholeNodeBuilder<'a> {
    /// Its namespace, such as `/robot`. The root if not said.
    #[must_use]
    pub fn namespace(mut self, namespace: &'a str) -> Self {
        self.namespace = namespace;
        self
    }

    /// Values of parameters in the place of defaults, over those of the arguments.
    #[must_use]
    pub fn overrides(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.overrides.extend(parameters);
        self
    }

    /// Keeps its log from `/rosout`.
    #[must_use]
    pub fn without_rosout(mut self) -> Self {
        self.rosout = false;
        self
    }

    /// Serves `~/get_logger_levels` and `~/set_logger_levels`.
    #[must_use]
    pub fn logger_service(mut self) -> Self {
        self.logger_service = true;
        self
    }

    /// Makes the node.
    pub fn build(self) -> Result<WholeNode> {
        let Self { context, logging, name, namespace, overrides, rosout, logger_service } = self;
        let node = context.node_in(name, namespace)?;
        // First, so that what follows can be told.
        let rosout = if rosout { logging.rosout(&node)? } else { Rosout::disabled() };
        let logger = logging.node_logger(&node);
        let parameters = Parameters::builder(&node).overrides(overrides).build()?;
        let time = TimeSource::new(&node, &parameters)?;
        let service = match logger_service {
            true => Some(LoggerService::new(&node, logging, None)?),
            false => None,
        };
        Ok(WholeNode { _logger_service: service, time, parameters, logger, rosout, node })
    }
}
