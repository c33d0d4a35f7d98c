//! What every node of ROS 2 has beside its endpoints, each made when it is first used.

use tsuji_platform::ordered::Mutex;
use tsuji_platform::report;
use tsuji_transport::deferred;

use crate::clock::{Clock, TimeSource};
use crate::lock;
use crate::log::{Logger, LoggerService, Rosout, RosoutCounters, logger_name};
use crate::parameter::{Parameter, ParameterOptions, Parameters};
use crate::{CallbackGroup, Context, Error, ErrorKind, Node, Result};

/// Settings of a [`Node`] that is to be made.
///
/// ```no_run
/// use tsuji::parameter::Parameter;
/// use tsuji::{Context, Node};
///
/// let context = Context::builder().args(std::env::args().skip(1)).build()?;
/// let node = Node::builder("drive")
///     .namespace("/robot")
///     .parameter_overrides([Parameter::new("speed.highest", 1.5)])
///     .logger_service()
///     .build(&context)?;
/// assert_eq!(node.declare_parameter("speed.highest", 1.0)?, 1.5);
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "settings take effect in the node that is made with them"]
pub struct NodeBuilder {
    name: String,
    namespace: String,
    parameters: Option<ParameterOptions>,
    with_rosout: bool,
    with_logger_service: bool,
}

impl NodeBuilder {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: "/".to_owned(),
            parameters: Some(ParameterOptions::default()),
            with_rosout: true,
            with_logger_service: false,
        }
    }

    /// Sets the namespace, such as `/robot`. Default the root.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Adds values of parameters in the place of defaults, over those of the context's arguments.
    pub fn parameter_overrides(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameter_options().overrides.extend(parameters);
        self
    }

    /// Declares all that overrides name, with dynamic typing. Default false. The parameters are served from the
    /// beginning then.
    pub fn declare_parameter_overrides(mut self) -> Self {
        self.parameter_options().declare_overrides = true;
        self
    }

    /// Lets whoever sets a parameter that is not declared declare it by that, with dynamic typing. Default false. The
    /// parameters are served from the beginning then.
    pub fn allow_undeclared_parameters(mut self) -> Self {
        self.parameter_options().allow_undeclared = true;
        self
    }

    /// Sets the callback group of the services of parameters. Default the node's own, which is mutually exclusive.
    pub fn parameter_group(mut self, group: &CallbackGroup) -> Self {
        self.parameter_options().group = Some(group.clone());
        self
    }

    /// Has no parameters, and with them no simulated time: the node's clock is the system's. What is said of parameters
    /// later gives it some again.
    pub fn without_parameters(mut self) -> Self {
        self.parameters = None;
        self
    }

    /// Keeps the node's log from `/rosout`.
    pub fn without_rosout(mut self) -> Self {
        self.with_rosout = false;
        self
    }

    /// Serves `~/get_logger_levels` and `~/set_logger_levels` from the beginning, by which others see and set the levels
    /// of all loggers of the context. Default false, as in rclcpp.
    pub fn logger_service(mut self) -> Self {
        self.with_logger_service = true;
        self
    }

    fn parameter_options(&mut self) -> &mut ParameterOptions {
        self.parameters.get_or_insert_default()
    }

    /// Makes the node.
    ///
    /// # Errors
    ///
    /// Those of [`Context::node_in`]; with a [logger service](Self::logger_service) those of
    /// [`Node::create_service`], and where parameters are served from the beginning those of [`Node::parameters`].
    pub fn build(self, context: &Context) -> Result<Node> {
        let Self { name, namespace, parameters, with_rosout, with_logger_service } = self;
        let serves_parameters =
            parameters.as_ref().is_some_and(|it| it.allow_undeclared || it.declare_overrides);
        let parts = Parts {
            logger_service: Part::default(),
            time: Part::default(),
            parameters: Part::default(),
            log: Part::default(),
            options: parameters,
            with_rosout,
        };
        let node = Node::new(context, &name, &namespace, parts)?;
        if with_logger_service {
            node.parts()?.serve_levels(&node)?;
        }
        if serves_parameters {
            node.parameters()?;
        }
        Ok(node)
    }
}

/// What a node has when it is first asked for it.
///
/// All are of a [`Node`] without parts, which does not keep them.
pub(crate) struct Parts {
    // What is told in the log goes before the log.
    logger_service: Part<LoggerService>,
    time: Part<TimeSource>,
    parameters: Part<Parameters>,
    log: Part<Log>,
    /// `None` without parameters.
    options: Option<ParameterOptions>,
    with_rosout: bool,
}

struct Part<T>(Mutex<Option<T>>);

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Part<T> {
    /// What `read` says of the part, which `make` makes if it is not there yet. Who fails may try again.
    fn get_or_make<R>(
        &self,
        make: impl FnOnce() -> Result<T>,
        read: impl FnOnce(&T) -> R,
    ) -> Result<R> {
        // What is the user's, callbacks and layers of a log, waits until the lock is given back.
        let mut part = deferred::lock(&self.0);
        let part = match &mut *part {
            Some(part) => part,
            none => none.insert(make()?),
        };
        Ok(read(part))
    }
}

struct Log {
    logger: Logger,
    rosout: Option<Rosout>,
}

impl Parts {
    pub(crate) fn parameters(&self, node: &Node) -> Result<Parameters> {
        let Some(options) = &self.options else {
            let name = node.fully_qualified_name();
            let what = format!(
                "node {name} was made without parameters; allowed: with them, unless the builder says otherwise"
            );
            return Err(Error::new(ErrorKind::Unsupported, what));
        };
        // In a forked child a lock may be held by a thread that is not there.
        if !node.context().session().is_current() {
            node.context().session().open("use parameters")?;
        }
        self.parameters.get_or_make(|| Parameters::serve(&node.bare(), options), Clone::clone)
    }

    pub(crate) fn clock(&self, node: &Node) -> Result<Clock> {
        if self.options.is_none() {
            return Ok(Clock::system_of_ros(node.context()));
        }
        let parameters = self.parameters(node)?;
        // Callbacks of the user's may be asked about it, with no lock held.
        TimeSource::declare(&parameters)?;
        let make = || TimeSource::new(&node.bare(), &parameters);
        self.time.get_or_make(make, |it| it.clock().clone())
    }

    pub(crate) fn logger(&self, node: &Node) -> Logger {
        let logging = node.context().logging();
        let new_logger = || logging.logger(&logger_name(node));
        if !node.context().session().is_current() {
            return new_logger();
        }
        let mut trouble = None;
        let make = || {
            let is_wanted = self.with_rosout && node.context().is_ok();
            let rosout = is_wanted.then(|| logging.rosout(&node.bare())).transpose();
            let rosout = rosout.unwrap_or_else(|error| {
                trouble = Some(error);
                None
            });
            Ok(Log { logger: new_logger(), rosout: rosout.flatten() })
        };
        let made = self.log.get_or_make(make, |it| it.logger.clone());
        if let Some(error) = trouble {
            let node = node.fully_qualified_name();
            report::warn!(%error, node, "the log does not go to /rosout");
        }
        made.unwrap_or_else(|_| new_logger())
    }

    pub(crate) fn rosout_counters(&self) -> RosoutCounters {
        let log = lock(&self.log.0);
        let rosout = log.as_ref().and_then(|it| it.rosout.as_ref());
        rosout.map(Rosout::counters).unwrap_or_default()
    }

    fn serve_levels(&self, node: &Node) -> Result<()> {
        let make = || LoggerService::new(&node.bare(), node.context().logging());
        self.logger_service.get_or_make(make, |_| ())
    }
}
