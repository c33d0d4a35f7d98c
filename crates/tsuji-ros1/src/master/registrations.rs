//! Who publishes, subscribes and serves what.

use std::collections::{BTreeMap, BTreeSet};

use super::{NODES_MAX, PAIRS_MAX, REGISTRATIONS_MAX, Refusal};
use crate::xmlrpc::Value;

/// What a node can be registered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Publisher,
    Subscriber,
    Service,
    Parameter,
}

#[derive(Debug)]
struct Node {
    api: String,
    registrations: BTreeSet<(Kind, String)>,
}

/// Names of nodes with their addresses, in the order they came.
type Providers = Vec<(String, String)>;

/// A node that another of the same name has taken the place of.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) api: String,
    /// Topics it published.
    pub(super) topics: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Registrations {
    nodes: BTreeMap<String, Node>,
    publishers: BTreeMap<String, Providers>,
    subscribers: BTreeMap<String, Providers>,
    parameters: BTreeMap<String, Providers>,
    services: BTreeMap<String, Providers>,
    /// The addresses of services, with who gave them. `None` before there was any, when texts are different.
    service_apis: Option<BTreeMap<String, (String, String)>>,
    /// Of all nodes.
    count: usize,
}

impl Registrations {
    fn of(&self, kind: Kind) -> &BTreeMap<String, Providers> {
        match kind {
            Kind::Publisher => &self.publishers,
            Kind::Subscriber => &self.subscribers,
            Kind::Service => &self.services,
            Kind::Parameter => &self.parameters,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut BTreeMap<String, Providers> {
        match kind {
            Kind::Publisher => &mut self.publishers,
            Kind::Subscriber => &mut self.subscribers,
            Kind::Service => &mut self.services,
            Kind::Parameter => &mut self.parameters,
        }
    }

    pub(super) fn node_api(&self, node: &str) -> Option<&str> {
        self.nodes.get(node).map(|it| it.api.as_str())
    }

    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn service_api(&self, service: &str) -> Option<&str> {
        self.service_apis.as_ref()?.get(service).map(|it| it.1.as_str())
    }

    pub(super) fn keys(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.of(kind).keys().map(String::as_str)
    }

    pub(super) fn providers(&self, kind: Kind, key: &str) -> &[(String, String)] {
        self.of(kind).get(key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn apis(&self, kind: Kind, key: &str) -> Vec<String> {
        self.providers(kind, key).iter().map(|it| it.1.clone()).collect()
    }

    pub(super) fn has_topic(&self, topic: &str) -> bool {
        self.publishers.contains_key(topic) || self.subscribers.contains_key(topic)
    }

    /// Each key with the names of its nodes.
    pub(super) fn state(&self, kind: Kind) -> Value {
        let entry = |(key, providers): (&String, &Providers)| {
            let names = providers.iter().map(|it| Value::from(it.0.as_str()));
            Value::Array(vec![Value::from(key.as_str()), Value::Array(names.collect())])
        };
        Value::Array(self.of(kind).iter().map(entry).collect())
    }

    /// Refuses what [`Self::register`] has no room for.
    pub(super) fn check(
        &self,
        kind: Kind,
        key: &str,
        caller: &str,
        api: &str,
    ) -> Result<(), Refusal> {
        let known = self.nodes.get(caller);
        if known.is_none() && NODES_MAX <= self.nodes.len() {
            return Err(Refusal::failure(format!("the master has at most {NODES_MAX} nodes")));
        }
        let is_same = known.is_some_and(|it| it.api == api);
        if is_same && known.is_some_and(|it| it.registrations.contains(&(kind, key.to_owned()))) {
            return Ok(());
        }
        if REGISTRATIONS_MAX <= self.count {
            let text = format!("the master has at most {REGISTRATIONS_MAX} registrations");
            return Err(Refusal::failure(text));
        }
        let other = match kind {
            Kind::Publisher => Kind::Subscriber,
            Kind::Subscriber => Kind::Publisher,
            Kind::Service | Kind::Parameter => return Ok(()),
        };
        let pairs = (self.providers(kind, key).len() + 1) * self.providers(other, key).len();
        if PAIRS_MAX < pairs {
            let text =
                format!("a topic has at most {PAIRS_MAX} pairs of a publisher and a subscriber");
            return Err(Refusal::failure(text));
        }
        Ok(())
    }

    /// Registers a node, and says whose place it took.
    pub(super) fn register(
        &mut self,
        kind: Kind,
        key: &str,
        caller: &str,
        api: &str,
        service_api: Option<&str>,
    ) -> Option<Replaced> {
        let replaced = self.replace(caller, api);
        let node = self
            .nodes
            .entry(caller.to_owned())
            .or_insert_with(|| Node { api: api.to_owned(), registrations: BTreeSet::new() });
        if node.registrations.insert((kind, key.to_owned())) {
            self.count += 1;
        }
        let provider = (caller.to_owned(), api.to_owned());
        let providers = self.of_mut(kind).entry(key.to_owned()).or_default();
        if let Some(service_api) = service_api {
            // A service has one provider: the last.
            *providers = vec![provider];
            let apis = self.service_apis.get_or_insert_default();
            apis.insert(key.to_owned(), (caller.to_owned(), service_api.to_owned()));
        } else if !providers.contains(&provider) {
            providers.push(provider);
        }
        replaced
    }

    /// Forgets the node of this name if it is elsewhere.
    fn replace(&mut self, caller: &str, api: &str) -> Option<Replaced> {
        if self.nodes.get(caller)?.api == api {
            return None;
        }
        let node = self.nodes.remove(caller)?;
        self.count -= node.registrations.len();
        let mut topics = Vec::new();
        for (kind, key) in node.registrations {
            if let Some(providers) = self.of_mut(kind).get_mut(&key) {
                providers.retain(|it| it.0 != caller);
                if providers.is_empty() {
                    self.of_mut(kind).remove(&key);
                }
            }
            match (kind, &mut self.service_apis) {
                (Kind::Publisher, _) => topics.push(key),
                (Kind::Service, Some(apis)) if apis.get(&key).is_some_and(|it| it.0 == caller) => {
                    apis.remove(&key);
                }
                _ => (),
            }
        }
        Some(Replaced { api: node.api, topics })
    }

    /// Takes a registration back. Says so, and whether there was one.
    pub(super) fn unregister(
        &mut self,
        kind: Kind,
        key: &str,
        caller: &str,
        api: &str,
    ) -> (String, bool) {
        if !self.nodes.contains_key(caller) {
            return (format!("[{caller}] is not a registered node"), false);
        }
        let (text, is_done) = match kind {
            Kind::Service => self.remove_service(key, caller, api),
            _ => self.remove(kind, key, caller, api),
        };
        if let Some(node) = self.nodes.get_mut(caller) {
            if is_done && node.registrations.remove(&(kind, key.to_owned())) {
                self.count -= 1;
            }
            if node.registrations.is_empty() {
                self.nodes.remove(caller);
            }
        }
        (text, is_done)
    }

    fn remove(&mut self, kind: Kind, key: &str, caller: &str, api: &str) -> (String, bool) {
        let all = self.of_mut(kind);
        let place = all.get_mut(key).and_then(|providers| {
            let place = providers.iter().position(|it| it.0 == caller && it.1 == api)?;
            providers.remove(place);
            Some(providers.is_empty())
        });
        match place {
            None => return (format!("[{caller}] is not a known provider of [{key}]"), false),
            Some(true) => {
                all.remove(key);
            }
            Some(false) => (),
        }
        (format!("Unregistered [{caller}] as provider of [{key}]"), true)
    }

    fn remove_service(&mut self, key: &str, caller: &str, service_api: &str) -> (String, bool) {
        let Some(apis) = &mut self.service_apis else {
            return (format!("[{caller}] is not a provider of [{key}]"), false);
        };
        if apis.get(key).is_none_or(|it| it.0 != caller || it.1 != service_api) {
            let text = "is no longer the current service api handle for";
            return (format!("[{service_api}] {text} [{key}]"), false);
        }
        apis.remove(key);
        self.services.remove(key);
        (format!("Unregistered [{caller}] as provider of [{key}]"), true)
    }
}
