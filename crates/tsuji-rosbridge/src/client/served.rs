use std::collections::HashMap;

use crate::operation::Id;

/// The services and actions that a client serves.
#[derive(Debug)]
pub struct Served {
    names: HashMap<(Kind, String), String>,
    names_max: usize,
    next: u64,
}

/// What a client serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A service.
    Service,
    /// An action.
    Action,
}

/// What became of `advertise_service` or `advertise_action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedName {
    /// Open a server.
    Opened,
    /// The client served it already: it is open.
    Again,
    /// The client served it with another type: close that server, end what is pending of it, and open another.
    Replaced,
    /// The client serves as many as it may.
    Full {
        /// So many.
        names_max: usize,
    },
}

impl Served {
    pub(super) fn new(names_max: usize) -> Self {
        Self { names: HashMap::new(), names_max, next: 1 }
    }

    /// Notes a server.
    pub fn advertise(&mut self, kind: Kind, name: &str, ty: &str) -> ServedName {
        let key = (kind, name.to_owned());
        if let Some(there) = self.names.get_mut(&key) {
            if there == ty {
                return ServedName::Again;
            }
            ty.clone_into(there);
            return ServedName::Replaced;
        }
        if self.names.len() >= self.names_max {
            return ServedName::Full { names_max: self.names_max };
        }
        self.names.insert(key, ty.to_owned());
        ServedName::Opened
    }

    /// Takes a server back; whether it was there.
    pub fn unadvertise(&mut self, kind: Kind, name: &str) -> bool {
        self.names.remove(&(kind, name.to_owned())).is_some()
    }

    /// The type with which the client serves it.
    pub fn ty(&self, kind: Kind, name: &str) -> Option<&str> {
        self.names.get(&(kind, name.to_owned())).map(String::as_str)
    }

    /// Everything that it serves, for when it has gone.
    pub fn names(&self) -> impl Iterator<Item = (Kind, &str)> {
        self.names.keys().map(|(kind, name)| (*kind, name.as_str()))
    }

    /// An id for the next request or goal, of the form that rosbridge gives. None comes twice, so that a late answer is never
    /// taken for that to another request.
    pub fn next_id(&mut self, kind: Kind, name: &str) -> Id<'static> {
        let number = self.next;
        self.next += 1;
        let what = match kind {
            Kind::Service => "service_request",
            Kind::Action => "action_goal",
        };
        Id::Text(format!("{what}:{name}:{number}").into())
    }
}
