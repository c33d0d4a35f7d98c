//! What others ask of a container.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::{EndpointKind, Error, ErrorKind, Graph, Node, Qos, Result, ServiceType};
use tsuji_interfaces::composition_interfaces::srv::{
    ListNodes, ListNodesRequest, LoadNode, LoadNodeRequest, UnloadNode, UnloadNodeRequest,
};

use crate::asking::{Asked, Services};
use crate::parameter::Parameter;

/// Loads components into a container, of tsuji or of rclcpp, and unloads them. Each service is met when it is first
/// needed.
///
/// Every call waits for at most its `timeout`, first for the service and then for the answer, and fails as
/// [`Client::call`](crate::Client::call) does, but a text that is not UTF-8 comes with U+FFFD for what is not; with Invalid, and the container's own words, where the container
/// refuses, and where two containers of one name are there, which would both load.
#[derive(Debug)]
pub struct ContainerClient {
    services: Services,
    container: String,
    load: Asked<LoadNode>,
    unload: Asked<UnloadNode>,
    list: Asked<ListNodes>,
}

/// What is asked of a container: a component, and how it is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadRequest {
    /// The package, such as `composition`.
    pub package: String,
    /// The component in it, such as `composition::Talker`.
    pub plugin: String,
    /// The node's name; that which the component gives itself where this is empty.
    pub node_name: String,
    /// The node's namespace, in the same way.
    pub node_namespace: String,
    /// 0 for the default, else 10 (debug), 20 (info), 30 (warn), 40 (error) or 50 (fatal). As in rclcpp it has no
    /// effect.
    pub log_level: u8,
    /// Such as `chatter:=talk`.
    pub remap_rules: Vec<String>,
    /// Values in the place of defaults.
    pub parameters: Vec<Parameter>,
    /// Such as `use_intra_process_comms`, which must be a truth value. It has no effect in a container of tsuji, whose
    /// policy chooses the link.
    pub extra_arguments: Vec<Parameter>,
}

impl LoadRequest {
    /// This component, made as it is by default.
    pub fn new(package: impl Into<String>, plugin: impl Into<String>) -> Self {
        Self { package: package.into(), plugin: plugin.into(), ..Self::default() }
    }
}

impl From<LoadRequest> for LoadNodeRequest {
    fn from(request: LoadRequest) -> Self {
        let messages = |all: Vec<Parameter>| all.into_iter().map(Into::into).collect();
        Self {
            package_name: request.package,
            plugin_name: request.plugin,
            node_name: request.node_name,
            node_namespace: request.node_namespace,
            log_level: request.log_level,
            remap_rules: request.remap_rules,
            parameters: messages(request.parameters),
            extra_arguments: messages(request.extra_arguments),
        }
    }
}

/// A component that a container has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedComponent {
    /// What names it in its container; never given twice.
    pub id: u64,
    /// The full name of its node.
    pub node: String,
}

impl ContainerClient {
    /// A client under the node `asking`, for the container whose node has this full name.
    pub fn new(asking: &Node, container: &str) -> Self {
        Self {
            services: Services::new(
                asking,
                format!("{container}{PART}"),
                Qos::DEFAULT,
                format!("container {container}"),
            ),
            container: container.to_owned(),
            load: Asked::new(),
            unload: Asked::new(),
            list: Asked::new(),
        }
    }

    /// The full name of the container's node.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// Loads a component.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`], with the reason, if the container refuses, or several of this name are there; else
    /// those of [`Client::call`](crate::Client::call). Where it fails with [`ErrorKind::Timeout`] the component may be loaded all
    /// the same.
    pub fn load(&self, request: LoadRequest, timeout: Duration) -> Result<LoadedComponent> {
        let answer = self.services.call(&self.load, "load_node", request.into(), timeout)?;
        match answer.success {
            true => Ok(LoadedComponent { id: answer.unique_id, node: answer.full_node_name }),
            false => Err(self.refused("load", &answer.error_message)),
        }
    }

    /// Unloads the component of this id.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load).
    pub fn unload(&self, id: u64, timeout: Duration) -> Result<()> {
        let request = UnloadNodeRequest { unique_id: id };
        let answer = self.services.call(&self.unload, "unload_node", request, timeout)?;
        match answer.success {
            true => Ok(()),
            false => Err(self.refused("unload", &answer.error_message)),
        }
    }

    /// Asks for the components that the container has, by their ids.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load).
    pub fn list(&self, timeout: Duration) -> Result<Vec<LoadedComponent>> {
        let answer =
            self.services.call(&self.list, "list_nodes", ListNodesRequest::default(), timeout)?;
        let (ids, nodes) = (answer.unique_ids, answer.full_node_names);
        if ids.len() != nodes.len() {
            let why = format!("{} ids for {} nodes", ids.len(), nodes.len());
            return Err(self.refused("list", &why));
        }
        let mut all: Vec<LoadedComponent> =
            ids.into_iter().zip(nodes).map(|(id, node)| LoadedComponent { id, node }).collect();
        all.sort_by_key(|it| it.id);
        Ok(all)
    }

    fn refused(&self, operation: &str, why: &str) -> Error {
        Error::new(ErrorKind::Invalid, format!("{operation}: {}: {why}", self.container))
    }
}

/// The full names of the nodes that load components.
pub fn containers(graph: &Graph) -> BTreeSet<String> {
    let servers = graph.services.iter().filter(|it| it.kind == EndpointKind::Server);
    let loading = servers.filter(|it| it.type_name == LoadNode::TYPE_NAME);
    loading.filter_map(|it| Some(it.topic.strip_suffix(LOAD)?.to_owned())).collect()
}

/// Between the name of a container and those of its services.
const PART: &str = "/_container";
const LOAD: &str = "/_container/load_node";
