//! The types of topics and services in both worlds, and the plans between them.

use std::collections::HashMap;
use std::env;
use std::fmt;
use std::sync::{Arc, Mutex};

use tsuji_interfaces::{AmentIndex, Chain, Shipped};
use tsuji_msg::{TypeDescription, TypeSet};
use tsuji_ros1::convert::Plan;
use tsuji_ros1::mapping::Mapping;
use tsuji_ros1::types::{MessageType, ServiceType};

/// How an end of a connection says that it takes any type.
pub(crate) const ANY: &str = "*";

/// A message type as both worlds have it.
pub(crate) struct Message {
    pub(crate) ros1: MessageType,
    ros2: Arc<TypeDescription>,
    pub(crate) plan: Plan,
}

impl Message {
    /// What ROS 2 calls it.
    pub(crate) fn ros2_name(&self) -> String {
        self.ros2.name().to_string()
    }
}

/// A service type as both worlds have it.
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) md5: String,
    pub(crate) request: Message,
    pub(crate) response: Message,
}

type Known<T> = Mutex<HashMap<String, Result<Arc<T>, String>>>;

/// The types that were asked for.
pub(crate) struct Types {
    definitions: TypeSet<Chain>,
    mapping: Mapping,
    messages: Known<Message>,
    services: Known<Service>,
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Types").finish_non_exhaustive()
    }
}

impl Types {
    /// Definitions are those of `AMENT_PREFIX_PATH`, then those that tsuji ships.
    pub(crate) fn new(mapping: Mapping) -> Self {
        let installed =
            AmentIndex::from_env_value(env::var_os("AMENT_PREFIX_PATH").unwrap_or_default());
        Self {
            definitions: TypeSet::new(Chain(vec![Box::new(installed), Box::new(Shipped)])),
            mapping,
            messages: Mutex::default(),
            services: Mutex::default(),
        }
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The message type that ROS 2 calls so; or why ROS 1 has none.
    pub(crate) fn message(&self, ros2: &str) -> Result<Arc<Message>, String> {
        if let Some(known) = crate::lock(&self.messages).get(ros2) {
            return known.clone();
        }
        let made = self.derive_message(ros2).map(Arc::new);
        crate::lock(&self.messages).entry(ros2.to_owned()).or_insert(made).clone()
    }

    /// The service type that ROS 2 calls so; or why ROS 1 has none.
    pub(crate) fn service(&self, ros2: &str) -> Result<Arc<Service>, String> {
        if let Some(known) = crate::lock(&self.services).get(ros2) {
            return known.clone();
        }
        let made = self.derive_service(ros2).map(Arc::new);
        crate::lock(&self.services).entry(ros2.to_owned()).or_insert(made).clone()
    }

    fn derive_message(&self, ros2: &str) -> Result<Message, String> {
        let ros2 = self.definitions.load(ros2).map_err(|error| error.to_string())?;
        let ros1 = MessageType::from_ros2(&ros2, &self.mapping).map_err(|it| it.to_string())?;
        self.planned(ros1, ros2)
    }

    fn derive_service(&self, ros2: &str) -> Result<Service, String> {
        let ros2 = self.definitions.load_service(ros2).map_err(|error| error.to_string())?;
        let ros1 = ServiceType::from_ros2(&ros2, &self.mapping).map_err(|it| it.to_string())?;
        let ServiceType { name, md5, request, response } = ros1;
        let request = self.planned(request, ros2.request)?;
        let response = self.planned(response, ros2.response)?;
        Ok(Service { name, md5, request, response })
    }

    fn planned(&self, ros1: MessageType, ros2: Arc<TypeDescription>) -> Result<Message, String> {
        let plan = Plan::new(&ros1, &ros2, &self.mapping).map_err(|error| error.to_string())?;
        Ok(Message { ros1, ros2, plan })
    }

    /// The message type of a peer that says this of it: what is known, if the sums are the same, else what its definition says.
    pub(crate) fn message_of_peer(
        &self,
        known: &Arc<Message>,
        name: Option<&str>,
        md5: &str,
        definition: Option<&str>,
    ) -> Result<Arc<Message>, String> {
        if md5 == ANY || md5 == known.ros1.md5() {
            return Ok(Arc::clone(known));
        }
        let name = name.filter(|it| *it != ANY).unwrap_or_else(|| known.ros1.name());
        let differs = || {
            format!(
                "its {name} has the MD5 sum {md5}, and {} has {} here",
                known.ros1.name(),
                known.ros1.md5()
            )
        };
        let definition = definition
            .filter(|it| !it.is_empty())
            .ok_or_else(|| format!("{}; it does not say what is in it", differs()))?;
        let ros1 = MessageType::parse(name, definition).map_err(|error| error.to_string())?;
        if ros1.md5() != md5 {
            return Err(format!(
                "its definition of {name} has the MD5 sum {}, not {md5}",
                ros1.md5()
            ));
        }
        let made = self.planned(ros1, Arc::clone(&known.ros2));
        made.map(Arc::new).map_err(|error| format!("{}: {error}", differs()))
    }
}
