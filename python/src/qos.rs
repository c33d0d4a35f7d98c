//! Quality of service.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tsuji::{Durability, History, Liveliness, Reliability};

/// Quality of service, with the names and defaults of ROS 2. Times are in seconds; `None` is infinite.
#[pyclass(frozen, eq, name = "QoS", module = "tsuji", from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Qos(pub(crate) tsuji::Qos);

#[pymethods]
impl Qos {
    #[new]
    #[pyo3(signature = (depth = 10, *, history = "keep_last", reliability = "reliable", durability = "volatile",
        deadline = None, lifespan = None, liveliness = "automatic", liveliness_lease_duration = None))]
    #[expect(clippy::too_many_arguments, reason = "they are named")]
    fn new(
        depth: u32,
        history: &str,
        reliability: &str,
        durability: &str,
        deadline: Option<f64>,
        lifespan: Option<f64>,
        liveliness: &str,
        liveliness_lease_duration: Option<f64>,
    ) -> PyResult<Self> {
        let qos = tsuji::Qos {
            history: match history {
                "keep_last" => History::KeepLast(depth),
                "keep_all" => History::KeepAll,
                other => return Err(unknown("history", other, "keep_last, keep_all")),
            },
            reliability: match reliability {
                "reliable" => Reliability::Reliable,
                "best_effort" => Reliability::BestEffort,
                other => return Err(unknown("reliability", other, "reliable, best_effort")),
            },
            durability: match durability {
                "volatile" => Durability::Volatile,
                "transient_local" => Durability::TransientLocal,
                other => return Err(unknown("durability", other, "volatile, transient_local")),
            },
            deadline: deadline.map(seconds).transpose()?,
            lifespan: lifespan.map(seconds).transpose()?,
            liveliness: match liveliness {
                "automatic" => Liveliness::Automatic,
                "manual_by_topic" => Liveliness::ManualByTopic,
                other => return Err(unknown("liveliness", other, "automatic, manual_by_topic")),
            },
            liveliness_lease: liveliness_lease_duration.map(seconds).transpose()?,
        };
        qos.validate().map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(qos))
    }

    #[classattr]
    const DEFAULT: Self = Self(tsuji::Qos::DEFAULT);

    #[classattr]
    const SENSOR_DATA: Self = Self(tsuji::Qos::SENSOR_DATA);

    #[classattr]
    const LATCHED: Self = Self(tsuji::Qos::LATCHED);

    /// How many messages are kept; 0 where all are.
    #[getter]
    fn depth(&self) -> u32 {
        match self.0.history {
            History::KeepLast(depth) => depth,
            History::KeepAll => 0,
        }
    }

    /// Whether messages that were lost are sent again: `reliable`, or `best_effort`.
    #[getter]
    fn reliability(&self) -> String {
        self.0.reliability.to_string()
    }

    /// Whether a subscription that comes later gets what was published before: `transient_local`, or `volatile`.
    #[getter]
    fn durability(&self) -> String {
        self.0.durability.to_string()
    }

    /// Whether the newest `depth` messages are kept, or all: `keep_last`, or `keep_all`.
    #[getter]
    fn history(&self) -> &'static str {
        match self.0.history {
            History::KeepLast(_) => "keep_last",
            History::KeepAll => "keep_all",
        }
    }

    /// The longest time between two messages, in seconds; None is infinite.
    #[getter]
    fn deadline(&self) -> Option<f64> {
        self.0.deadline.map(|it| it.as_secs_f64())
    }

    /// How long a message may be received after it was published, in seconds; None is for ever.
    #[getter]
    fn lifespan(&self) -> Option<f64> {
        self.0.lifespan.map(|it| it.as_secs_f64())
    }

    /// How a publisher shows that it is alive: `automatic`, or `manual_by_topic` with `assert_liveliness`.
    #[getter]
    fn liveliness(&self) -> &'static str {
        match self.0.liveliness {
            Liveliness::Automatic => "automatic",
            Liveliness::ManualByTopic => "manual_by_topic",
        }
    }

    /// How long a publisher counts as alive after it last showed it, in seconds; None is for ever.
    #[getter]
    fn liveliness_lease_duration(&self) -> Option<f64> {
        self.0.liveliness_lease.map(|it| it.as_secs_f64())
    }

    fn __repr__(&self) -> String {
        let history = match self.0.history {
            History::KeepLast(depth) => format!("depth={depth}"),
            History::KeepAll => "history='keep_all'".to_owned(),
        };
        format!(
            "QoS({history}, reliability='{}', durability='{}')",
            self.0.reliability, self.0.durability
        )
    }
}

/// What a program may say for a QoS: one, or a depth; nothing is the default.
pub(crate) fn qos_of(said: Option<&Bound<'_, PyAny>>) -> PyResult<tsuji::Qos> {
    let Some(said) = said else { return Ok(tsuji::Qos::DEFAULT) };
    match said.extract::<u32>() {
        Ok(depth) => {
            let qos = tsuji::Qos::DEFAULT.keep_last(depth);
            qos.validate().map_err(|error| PyValueError::new_err(error.to_string()))?;
            Ok(qos)
        }
        Err(_) => Ok(said.cast::<Qos>()?.get().0),
    }
}

/// A time of a program.
pub(crate) fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{seconds} s; allowed: 0 or more")))
}

fn unknown(what: &str, said: &str, allowed: &str) -> PyErr {
    PyValueError::new_err(format!("{what}: {said:?} is none; allowed: {allowed}"))
}
