//! Parameters: named values of a node, which others can ask for and set while it runs.
//!
//! A node `/NAME` serves its parameters by the services `/NAME/describe_parameters`, `get_parameters`,
//! `get_parameter_types`, `list_parameters`, `set_parameters` and `set_parameters_atomically`, and tells of changes on
//! `/parameter_events`, as rclcpp does. Values that the command line or a file gives count in the place of the defaults
//! that the program declares.
//!
//! ```no_run
//! use tsuji::Context;
//! use tsuji::parameter::{ParameterDescriptor, ParameterRange};
//!
//! let context = Context::builder().args(std::env::args().skip(1)).build()?;
//! let node = context.node("drive")?;
//! let parameters = node.parameters()?;
//! let range = ParameterRange::FloatingPoint { from: 0.0, to: 2.0, step: 0.0 };
//! let described = ParameterDescriptor { range: Some(range), ..ParameterDescriptor::default() };
//! let speed = parameters.declare_with("speed.highest", 1.0, described)?;
//! println!("at most {speed} m/s");
//! // Refuses what the program cannot do, before it is set.
//! let _refusing = parameters.on_set(|parameters| {
//!     let is_late = parameters.iter().any(|it| it.name == "port");
//!     if is_late { Err("the port is open".to_owned()) } else { Ok(()) }
//! });
//! tsuji::spin(&node)?;
//! # Ok::<_, tsuji::Error>(())
//! ```

mod client;
pub use client::ParameterClient;

mod declared;
pub use declared::ParameterList;

mod descriptor;
pub use descriptor::{DescribedParameter, ParameterDescriptor, ParameterRange};

mod server;
pub use server::{ParameterCallback, Parameters};
pub(crate) use server::{ParameterOptions, from_arguments};

mod value;
pub use value::{Parameter, ParameterKind, ParameterType, ParameterValue, UnknownType, WrongType};

mod yaml;
pub use yaml::{
    FILE_BYTES_MAX, ParameterFile, YamlError, parse_command_value, parse_value, to_yaml,
};

use crate::Qos;

/// The parameters that a node may have. Further ones are refused.
pub const PARAMETERS_MAX: usize = 65_536;

/// The most bytes of a parameter's name.
pub const NAME_BYTES_MAX: usize = 1024;

/// What stands between the parts of a parameter's name.
const SEPARATOR: char = '.';

/// Of the services and of the events.
const QOS: Qos = Qos::PARAMETERS;
