//! What others ask of managed nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::{EndpointKind, Error, ErrorKind, Graph, Node, Qos, Result, ServiceType};
use tsuji_interfaces::lifecycle_msgs::msg;
use tsuji_interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeStateRequest, GetAvailableStates, GetAvailableStatesRequest,
    GetAvailableTransitions, GetAvailableTransitionsRequest, GetState, GetStateRequest,
};

use super::State;
use super::machine::allowed;
use crate::asking::{Asked, Services};
use crate::deadline::Deadline;

/// Asks a managed node where it stands, and changes that. Each service is met when it is first needed.
///
/// A node may have states of its own, so they are messages here. Every call waits for at most its `timeout`, first for
/// the service and then for the answer, and fails as [`Client::call`](crate::Client::call) does; with Invalid where two
/// nodes of one name are there. A text that is not UTF-8 comes with U+FFFD for what is not.
#[derive(Debug)]
pub struct LifecycleClient {
    services: Services,
    node: String,
    change: Asked<ChangeState>,
    state: Asked<GetState>,
    states: Asked<GetAvailableStates>,
    transitions: Asked<GetAvailableTransitions>,
    graph: Asked<GetAvailableTransitions>,
}

impl LifecycleClient {
    /// Creates a client under the node `asking`, for the managed node of this full name.
    pub fn new(asking: &Node, node: &str) -> Self {
        Self {
            services: Services::new(
                asking,
                node.to_owned(),
                Qos::DEFAULT,
                format!("lifecycle of {node}"),
            ),
            node: node.to_owned(),
            change: Asked::new(),
            state: Asked::new(),
            states: Asked::new(),
            transitions: Asked::new(),
            graph: Asked::new(),
        }
    }

    /// Returns the full name of the managed node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Asks for the state of the node.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`](crate::Client::call); [`ErrorKind::Invalid`] if several nodes of this name are there.
    pub fn state(&self, timeout: Duration) -> Result<msg::State> {
        let request = GetStateRequest::default();
        Ok(self.services.call(&self.state, "get_state", request, timeout)?.current_state)
    }

    /// Asks for the states there are.
    ///
    /// # Errors
    ///
    /// Those of [`state`](Self::state).
    pub fn states(&self, timeout: Duration) -> Result<Vec<msg::State>> {
        let request = GetAvailableStatesRequest::default();
        Ok(self
            .services
            .call(&self.states, "get_available_states", request, timeout)?
            .available_states)
    }

    /// Asks for the transitions that may be made now.
    ///
    /// # Errors
    ///
    /// Those of [`state`](Self::state).
    pub fn transitions(&self, timeout: Duration) -> Result<Vec<msg::TransitionDescription>> {
        let request = GetAvailableTransitionsRequest::default();
        let slot = &self.transitions;
        let answer = self.services.call(slot, "get_available_transitions", request, timeout)?;
        Ok(answer.available_transitions)
    }

    /// Asks for all transitions there are.
    ///
    /// # Errors
    ///
    /// Those of [`state`](Self::state).
    pub fn transition_graph(&self, timeout: Duration) -> Result<Vec<msg::TransitionDescription>> {
        let request = GetAvailableTransitionsRequest::default();
        Ok(self
            .services
            .call(&self.graph, "get_transition_graph", request, timeout)?
            .available_transitions)
    }

    /// Makes a transition, by its label or its number, and waits until it is made.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] if another transition is not over; [`ErrorKind::Invalid`] if it is not allowed now, with
    /// what is, or the node's callback did not succeed; else those of [`state`](Self::state). Where it fails with
    /// [`ErrorKind::Timeout`] it may be made all the same.
    pub fn change(&self, wanted: &str, timeout: Duration) -> Result<()> {
        let deadline = Deadline::after(timeout);
        let all = deadline.step(|left| self.transitions(left))?;
        // What such a state leads to is the callback's to say.
        let between = |it: &msg::State| State::from_id(it.id).is_some_and(State::is_transition);
        if let Some(it) = all.iter().find(|it| between(&it.start_state)) {
            let why = format!("another transition is not over: it is {}", it.start_state.label);
            return Err(self.error(ErrorKind::Busy, &why));
        }
        let now = all.into_iter().map(|it| it.transition);
        let now: Vec<msg::Transition> = now.collect();
        let by_label = now.iter().find(|it| it.label == wanted);
        let found = by_label.or_else(|| {
            let id: u8 = wanted.parse().ok()?;
            now.iter().find(|it| it.id == id)
        });
        let Some(found) = found else {
            let state = deadline.step(|left| self.state(left))?.label;
            let now = allowed(now.iter().map(|it| (it.label.as_str(), it.id)));
            let why = format!("transition `{wanted}` is not one of state {state}; allowed: {now}");
            return Err(self.error(ErrorKind::Invalid, &why));
        };
        let request = ChangeStateRequest { transition: found.clone() };
        let changed = deadline
            .step(|left| self.services.call(&self.change, "change_state", request, left))?;
        if changed.success {
            return Ok(());
        }
        let state = deadline.step(|left| self.state(left))?.label;
        let why = format!("transition `{}` was not made; it is {state}", found.label);
        Err(self.error(ErrorKind::Invalid, &why))
    }

    fn error(&self, kind: ErrorKind, why: &str) -> Error {
        Error::new(kind, format!("lifecycle of {}: {why}", self.node))
    }
}

/// Returns the full names of the nodes that are managed.
pub fn managed_nodes(graph: &Graph) -> BTreeSet<String> {
    let servers = graph.services.iter().filter(|it| it.kind == EndpointKind::Server);
    let telling = servers.filter(|it| it.type_name == GetState::TYPE_NAME);
    telling.filter_map(|it| Some(it.topic.strip_suffix("/get_state")?.to_owned())).collect()
}
