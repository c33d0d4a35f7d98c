//! Who publishes, subscribes and serves.

use std::collections::{BTreeMap, BTreeSet};

/// What a client has been told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionGraph {
    published: Names,
    subscribed: Names,
    served: Names,
}

type Names = BTreeMap<String, BTreeSet<String>>;

/// What has changed of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphUpdate {
    /// Topics of which other nodes publish than before.
    pub published: Vec<Provided>,
    /// Topics to which other nodes subscribe than before.
    pub subscribed: Vec<Provided>,
    /// Services that other nodes serve than before.
    pub served: Vec<Provided>,
    /// Topics that nobody publishes or subscribes to any more.
    pub removed_topics: Vec<String>,
    /// Services that nobody serves any more.
    pub removed_services: Vec<String>,
}

/// A name, and the nodes that have to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provided {
    /// The topic or service.
    pub name: String,
    /// The nodes.
    pub by: Vec<String>,
}

impl GraphUpdate {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ConnectionGraph {
    /// Notes that a node publishes a topic.
    pub fn publishes(&mut self, topic: &str, node: &str) {
        note(&mut self.published, topic, node);
    }

    /// Notes that a node subscribes to a topic.
    pub fn subscribes(&mut self, topic: &str, node: &str) {
        note(&mut self.subscribed, topic, node);
    }

    /// Notes that a node serves a service.
    pub fn serves(&mut self, service: &str, node: &str) {
        note(&mut self.served, service, node);
    }

    /// Becomes `now`, and tells what has changed.
    pub fn update(&mut self, now: Self) -> GraphUpdate {
        let before = std::mem::replace(self, now);
        let has = |graph: &Self, topic: &String| {
            graph.published.contains_key(topic) || graph.subscribed.contains_key(topic)
        };
        let topics: BTreeSet<_> = before.published.keys().chain(before.subscribed.keys()).collect();
        let removed_topics = topics.into_iter().filter(|it| !has(self, it)).cloned().collect();
        let services = before.served.keys().filter(|it| !self.served.contains_key(*it));
        GraphUpdate {
            published: changed(&before.published, &self.published, |it| has(self, it)),
            subscribed: changed(&before.subscribed, &self.subscribed, |it| has(self, it)),
            served: changed(&before.served, &self.served, |_| false),
            removed_topics,
            removed_services: services.cloned().collect(),
        }
    }
}

fn note(names: &mut Names, name: &str, node: &str) {
    match names.get_mut(name) {
        Some(nodes) => nodes.insert(node.to_owned()),
        None => names.insert(name.to_owned(), BTreeSet::from([node.to_owned()])).is_none(),
    };
}

/// Those of other nodes than before; of those that are gone, the ones of which that has to be said so.
fn changed(before: &Names, now: &Names, is_told: impl Fn(&String) -> bool) -> Vec<Provided> {
    let others = now.iter().filter(|(name, nodes)| before.get(*name) != Some(*nodes));
    let others = others.map(|(name, nodes)| (name, nodes.iter().cloned().collect()));
    let gone = before.keys().filter(|it| !now.contains_key(*it) && is_told(it));
    let gone = gone.map(|name| (name, Vec::new()));
    others.chain(gone).map(|(name, by)| Provided { name: name.clone(), by }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provided(name: &str, by: &[&str]) -> Vec<Provided> {
        vec![Provided { name: name.to_owned(), by: by.iter().map(|it| (*it).to_owned()).collect() }]
    }

    #[test]
    fn what_has_changed_is_told_once() {
        let mut told = ConnectionGraph::default();
        let mut now = ConnectionGraph::default();
        now.publishes("/t", "/b");
        now.publishes("/t", "/a");
        now.publishes("/t", "/a");
        now.subscribes("/t", "/c");
        now.serves("/s", "/a");
        let update = told.update(now.clone());
        assert_eq!(update.published, provided("/t", &["/a", "/b"]));
        assert_eq!(update.subscribed, provided("/t", &["/c"]));
        assert_eq!(update.served, provided("/s", &["/a"]));
        assert!(told.update(now).is_empty());
        // Nobody publishes it any more, and somebody still subscribes.
        let mut now = ConnectionGraph::default();
        now.subscribes("/t", "/c");
        let update = told.update(now);
        assert_eq!((update.published, update.subscribed), (provided("/t", &[]), Vec::new()));
        assert_eq!(
            (update.removed_topics, update.removed_services),
            (Vec::new(), vec!["/s".to_owned()])
        );
        let update = told.update(ConnectionGraph::default());
        assert_eq!((update.subscribed, update.removed_topics), (Vec::new(), vec!["/t".to_owned()]));
    }
}
