//! Asking the services of one node.

use std::sync::OnceLock;
use std::time::Duration;

use crate::{
    Client, ClientOptions, EndpointInfo, EndpointKind, Error, ErrorKind, Node, Qos, Result,
    ServiceType,
};

use crate::deadline::Deadline;

/// The services of another node, and whoever asks them.
#[derive(Debug)]
pub(crate) struct Services {
    asking: Node,
    /// Begins their names, such as `/talker`.
    prefix: String,
    qos: Qos,
    /// Begins what is said where two nodes serve one.
    about: String,
}

impl Services {
    pub(crate) fn new(asking: &Node, prefix: String, qos: Qos, about: String) -> Self {
        Self { asking: asking.clone(), prefix, qos, about }
    }

    /// Calls the one of this name, as [`Asked::call`].
    pub(crate) fn call<S: ServiceType>(
        &self,
        slot: &Asked<S>,
        service: &str,
        request: S::Request,
        timeout: Duration,
    ) -> Result<S::Response> {
        let name = format!("{}/{service}", self.prefix);
        slot.call(&self.asking, (&name, self.qos), &self.about, request, timeout)
    }
}

/// A service of another node, which is met when it is first needed.
#[derive(Debug)]
pub(crate) struct Asked<S: ServiceType>(OnceLock<Client<S>>);

impl<S: ServiceType> Asked<S> {
    pub(crate) fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Calls the service `name` under the node `asking`. Waits for at most `timeout`, first for the service and then for the
    /// answer. Invalid, in the words that `about` begins, where two serve it: both would do what is asked.
    fn call(
        &self,
        asking: &Node,
        (name, qos): (&str, Qos),
        about: &str,
        request: S::Request,
        timeout: Duration,
    ) -> Result<S::Response> {
        let deadline = Deadline::after(timeout);
        // Of two servers one may be ready before the other; whoever was met before is in the graph.
        let (client, known) = match self.0.get() {
            Some(client) => (client, 0),
            None => {
                // Whoever asks wants to see what is there: one bad text must not hide the others.
                let options = ClientOptions::new(name).qos(qos).replace_invalid_text();
                let client = asking.create_client::<S>(options)?;
                let graph = asking.context().graph();
                let is_server =
                    |it: &&EndpointInfo| it.kind == EndpointKind::Server && it.topic == name;
                (self.0.get_or_init(|| client), graph.services.iter().filter(is_server).count())
            }
        };
        deadline.step(|left| client.wait_for_service(left))?;
        let servers = client.servers().max(known);
        if 1 < servers {
            let why = format!("{about}: {servers} nodes of this name are there; allowed: one");
            return Err(Error::new(ErrorKind::Invalid, why));
        }
        deadline.step(|left| client.call(request, left))
    }
}
