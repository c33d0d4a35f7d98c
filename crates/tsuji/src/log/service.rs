//! The services by which others see and set levels.

use crate::{Node, Result, Service, Severity};
use tsuji_interfaces::rcl_interfaces::msg::{LoggerLevel, SetLoggerLevelsResult};
use tsuji_interfaces::rcl_interfaces::srv::{
    GetLoggerLevels, GetLoggerLevelsResponse, SetLoggerLevels, SetLoggerLevelsResponse,
};

use super::Logging;

/// Serves `~/get_logger_levels` and `~/set_logger_levels` of a node until it is dropped, as rclcpp does where
/// `enable_logger_service` is set.
///
/// They see and set the levels of all loggers of a [`Logging`], not those of the node alone, as in rclcpp. A level
/// is the number of a [`Severity`], or 0 where a logger has none of its own. The empty name is the default of all.
pub(crate) struct LoggerService {
    _get: Service<GetLoggerLevels>,
    _set: Service<SetLoggerLevels>,
}

impl LoggerService {
    /// Serves under the name of `node`, while that is spun.
    pub(crate) fn new(node: &Node, logging: &Logging) -> Result<Self> {
        let (asked, told) = (logging.clone(), logging.clone());
        let get =
            node.create_service::<GetLoggerLevels>("~/get_logger_levels", move |request| {
                let level = |name: &String| LoggerLevel {
                    name: name.clone(),
                    level: asked.own_level(name).map_or(UNSET, |it| it as u32),
                };
                GetLoggerLevelsResponse { levels: request.names.iter().map(level).collect() }
            })?;
        let set =
            node.create_service::<SetLoggerLevels>("~/set_logger_levels", move |request| {
                let results = request.levels.iter().map(|it| match set_level(&told, it) {
                    Ok(()) => SetLoggerLevelsResult { successful: true, reason: String::new() },
                    Err(reason) => SetLoggerLevelsResult { successful: false, reason },
                });
                SetLoggerLevelsResponse { results: results.collect() }
            })?;
        Ok(Self { _get: get, _set: set })
    }
}

/// The level of a logger that has none of its own.
const UNSET: u32 = LoggerLevel::LOG_LEVEL_UNKNOWN as u32;

fn set_level(logging: &Logging, to: &LoggerLevel) -> Result<(), String> {
    let level = match to.level {
        UNSET => None,
        number => Some(Severity::from_number(number).ok_or_else(|| {
            format!("{number} is no level; allowed: 0 for none of its own, 10, 20, 30, 40, 50")
        })?),
    };
    logging.core().set_level(&to.name, level)
}
