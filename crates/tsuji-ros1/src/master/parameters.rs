//! The parameters of a master: a tree of namespaces.

use std::collections::BTreeMap;

use super::names::{canonical, join, segments};
use super::{PARAMETER_BYTES_MAX, PARAMETER_LEVELS_MAX, Refusal};
use crate::xmlrpc::Value;

type Space = BTreeMap<String, Entry>;

#[derive(Debug)]
enum Entry {
    Value(Value),
    Space(Space),
}

/// What a subscriber of `subscription` is to be told.
pub(super) struct Update {
    /// What it subscribes to, as [`subscribed`] writes it.
    pub(super) subscription: String,
    /// What has changed.
    pub(super) key: String,
    pub(super) value: Value,
    /// True if the caller is told nothing, who knows.
    pub(super) is_known_to_caller: bool,
}

#[derive(Debug, Default)]
pub(super) struct Parameters {
    root: Space,
    /// What all parameters take, as [`bytes_of`] counts.
    bytes: usize,
}

/// What a parameter takes beside its name and its value.
const ENTRY_BYTES: usize = 64;

/// The bytes of a value, as limits count them.
pub(super) fn bytes_of(value: &Value) -> usize {
    ENTRY_BYTES
        + match value {
            Value::String(text) | Value::DateTime(text) => text.len(),
            Value::Base64(bytes) => bytes.len(),
            Value::Array(values) => values.iter().map(bytes_of).sum(),
            Value::Struct(members) => {
                members.iter().map(|(name, it)| name.len() + bytes_of(it)).sum()
            }
            Value::Int(_) | Value::Bool(_) | Value::Double(_) | Value::Nil => 0,
        }
}

fn levels_of(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(levels_of).max().unwrap_or_default(),
        Value::Struct(members) => {
            1 + members.iter().map(|it| levels_of(&it.1)).max().unwrap_or_default()
        }
        _ => 0,
    }
}

fn has_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::Array(values) => values.iter().any(has_nil),
        Value::Struct(members) => members.iter().any(|it| has_nil(&it.1)),
        _ => false,
    }
}

impl Entry {
    fn new(value: Value) -> Self {
        match value {
            Value::Struct(members) => {
                Self::Space(members.into_iter().map(|(name, it)| (name, Self::new(it))).collect())
            }
            other => Self::Value(other),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Value(value) => bytes_of(value),
            Self::Space(space) => {
                ENTRY_BYTES + space.iter().map(|(name, it)| name.len() + it.bytes()).sum::<usize>()
            }
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Space(space) => space_to_value(space),
        }
    }

    fn as_space(&self) -> Option<&Space> {
        if let Self::Space(space) = self { Some(space) } else { None }
    }
}

fn space_to_value(space: &Space) -> Value {
    Value::Struct(space.iter().map(|(name, it)| (name.clone(), it.to_value())).collect())
}

impl Parameters {
    fn find(&self, key: &str) -> Option<&Entry> {
        let mut segments = segments(key);
        let first = self.root.get(segments.next()?)?;
        segments.try_fold(first, |it, segment| it.as_space()?.get(segment))
    }

    pub(super) fn has(&self, key: &str) -> bool {
        segments(key).next().is_none() || self.find(key).is_some()
    }

    /// The bytes of what [`Self::value`] would hand over.
    pub(super) fn value_bytes(&self, key: &str) -> usize {
        if segments(key).next().is_none() {
            return self.bytes;
        }
        self.find(key).map_or(0, Entry::bytes)
    }

    pub(super) fn value(&self, key: &str) -> Option<Value> {
        if segments(key).next().is_none() {
            return Some(space_to_value(&self.root));
        }
        self.find(key).map(Entry::to_value)
    }

    /// Refuses what [`Self::set`] could not set.
    pub(super) fn check(&self, key: &str, value: &Value) -> Result<(), Refusal> {
        let depth = segments(key).count();
        if depth == 0 && !matches!(value, Value::Struct(_)) {
            let text = "cannot set root of parameter tree to non-dictionary";
            return Err(Refusal::error(format!("Error: invalid arguments: {text}")));
        }
        if has_nil(value) {
            return Err(Refusal::error("ERROR: parameter [value] has a nil in it".to_owned()));
        }
        if PARAMETER_LEVELS_MAX < depth + levels_of(value) {
            let text = format!("parameters have at most {PARAMETER_LEVELS_MAX} levels");
            return Err(Refusal::failure(text));
        }
        let old = self.value_bytes(key);
        let names: usize = segments(key).map(|it| it.len() + ENTRY_BYTES).sum();
        if PARAMETER_BYTES_MAX < (self.bytes - old.min(self.bytes)) + names + bytes_of(value) {
            let text = format!("parameters have at most {PARAMETER_BYTES_MAX} bytes in all");
            return Err(Refusal::failure(text));
        }
        Ok(())
    }

    /// Sets what [`Self::check`] has found good. A value that stands where a namespace must be is replaced by one.
    pub(super) fn set(&mut self, key: &str, value: Value) {
        let mut segments: Vec<&str> = segments(key).collect();
        let Some(last) = segments.pop() else {
            if let Entry::Space(space) = Entry::new(value) {
                self.root = space;
                self.bytes = self.root.iter().map(|(name, it)| name.len() + it.bytes()).sum();
            }
            return;
        };
        let mut space = &mut self.root;
        for segment in segments {
            let entry = space.entry(segment.to_owned()).or_insert_with(|| {
                self.bytes += segment.len() + ENTRY_BYTES;
                Entry::Space(Space::new())
            });
            if let Entry::Value(old) = entry {
                self.bytes = self.bytes + ENTRY_BYTES - bytes_of(old);
                *entry = Entry::Space(Space::new());
            }
            let Entry::Space(inner) = entry else { return };
            space = inner;
        }
        let entry = Entry::new(value);
        self.bytes += last.len() + entry.bytes();
        if let Some(old) = space.insert(last.to_owned(), entry) {
            self.bytes -= last.len() + old.bytes();
        }
    }

    /// False if there was nothing to delete. The root stays.
    pub(super) fn delete(&mut self, key: &str) -> bool {
        let mut segments: Vec<&str> = segments(key).collect();
        let Some(last) = segments.pop() else { return false };
        let mut space = &mut self.root;
        for segment in segments {
            let Some(Entry::Space(inner)) = space.get_mut(segment) else { return false };
            space = inner;
        }
        let Some(old) = space.remove(last) else { return false };
        self.bytes -= last.len() + old.bytes();
        true
    }

    pub(super) fn names(&self) -> Vec<String> {
        fn collect(space: &Space, key: &str, names: &mut Vec<String>) {
            for (name, entry) in space {
                let name = join(key, name);
                match entry.as_space() {
                    Some(space) => collect(space, &name, names),
                    None => names.push(name),
                }
            }
        }
        let mut names = Vec::new();
        collect(&self.root, "/", &mut names);
        names
    }

    /// The parameter that `key` means in the namespace nearest to the caller that has its first part.
    pub(super) fn search(&self, caller: &str, key: &str) -> Result<Option<String>, Refusal> {
        if key.starts_with('~') {
            return Err(Refusal::failure("Internal failure: invalid key".to_owned()));
        }
        if !caller.starts_with('/') {
            let text = "Internal failure: namespace must be global";
            return Err(Refusal::failure(text.to_owned()));
        }
        if key.starts_with('/') {
            return Ok(self.has(key).then(|| key.to_owned()));
        }
        let first = segments(key).next().unwrap_or(key);
        if self.has(&join(caller, first)) {
            return Ok(Some(join(caller, key)));
        }
        let around: Vec<&str> = segments(caller).collect();
        for kept in (0..around.len()).rev() {
            let path = |last| format!("/{}", [&around[..kept], &[last]].concat().join("/"));
            if self.has(&path(first)) {
                return Ok(Some(path(key)));
            }
        }
        Ok(None)
    }
}

/// A key as subscriptions have it: with a slash at its end.
pub(super) fn subscribed(key: &str) -> String {
    if key == "/" { key.to_owned() } else { format!("{}/", canonical(key)) }
}

/// Who is to be told what when `key` becomes `value`; an empty struct stands for a parameter that is deleted.
///
/// `subscriptions` are in order, and as [`subscribed`] writes them.
pub(super) fn updates<'a>(
    subscriptions: impl Iterator<Item = &'a str>,
    key: &str,
    value: &Value,
) -> Vec<Update> {
    let key = subscribed(key);
    let mut updates = Vec::new();
    let mut exact = Vec::new();
    for subscription in subscriptions {
        let told = |key: &str, value: &Value, is_known_to_caller| Update {
            subscription: subscription.to_owned(),
            key: key.to_owned(),
            value: value.clone(),
            is_known_to_caller,
        };
        if key.starts_with(subscription) {
            updates.push(told(&key, value, true));
        } else if let Some(rest) = subscription.strip_prefix(&key)
            && let Value::Struct(_) = value
        {
            match segments(rest).try_fold(value, |it, segment| it.member(segment)) {
                Some(inner) => exact.push(told(subscription, inner, false)),
                None => updates.push(told(subscription, &Value::Struct(Vec::new()), false)),
            }
        }
    }
    updates.extend(exact);
    updates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(members: &[(&str, Value)]) -> Value {
        Value::Struct(members.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect())
    }

    fn set(parameters: &mut Parameters, key: &str, value: Value) {
        parameters.check(key, &value).unwrap();
        parameters.set(key, value);
        let counted: usize = parameters.root.iter().map(|(name, it)| name.len() + it.bytes()).sum();
        assert_eq!(parameters.bytes, counted);
    }

    #[test]
    fn parameters_are_a_tree() {
        let mut tree = Parameters::default();
        set(&mut tree, "/a/b/c", Value::Int(1));
        set(&mut tree, "/a/d", space(&[("e", Value::Int(2)), ("f", space(&[]))]));
        assert_eq!(tree.names(), ["/a/b/c", "/a/d/e"]);
        assert_eq!(tree.value("/a/b"), Some(space(&[("c", Value::Int(1))])));
        assert_eq!(tree.value("/a/b/c/d"), None);
        // A value makes room for a namespace, and the other way round.
        set(&mut tree, "/a/b/c/d", Value::Int(3));
        assert_eq!(tree.names(), ["/a/b/c/d", "/a/d/e"]);
        set(&mut tree, "/a", Value::Int(4));
        assert_eq!(tree.names(), ["/a"]);
        assert!(!tree.delete("/a/b") && !tree.delete("/") && !tree.delete("/b"));
        assert!(tree.delete("/a"));
        assert_eq!((tree.value("/"), tree.bytes), (Some(space(&[])), 0));
        set(&mut tree, "/", space(&[("x", Value::Int(1))]));
        assert_eq!(tree.names(), ["/x"]);
        assert!(tree.check("/", &Value::Int(1)).is_err());
    }

    #[test]
    fn limits_of_parameters_are_refused() {
        let mut tree = Parameters::default();
        let deep = "/a".repeat(PARAMETER_LEVELS_MAX);
        tree.check(&deep, &Value::Int(1)).unwrap();
        assert!(tree.check(&deep, &space(&[])).is_err());
        assert!(tree.check("/a", &Value::from(vec![Value::Nil])).is_err());
        let large = Value::Base64(vec![0; PARAMETER_BYTES_MAX / 2]);
        set(&mut tree, "/a", large.clone());
        assert!(tree.check("/b", &large).is_err());
        // It may be replaced, since that takes no more.
        set(&mut tree, "/a", large);
    }

    #[test]
    fn a_search_goes_upwards() {
        let mut tree = Parameters::default();
        set(&mut tree, "/robot/arm", Value::Int(1));
        set(&mut tree, "/pr2/robot/base", Value::Int(1));
        let search = |caller: &str, key: &str| tree.search(caller, key).ok().flatten();
        assert_eq!(search("/pr2/foo", "robot/arm").as_deref(), Some("/pr2/robot/arm"));
        assert_eq!(search("/other/foo", "robot/arm").as_deref(), Some("/robot/arm"));
        assert_eq!(search("/pr2", "robot").as_deref(), Some("/pr2/robot"));
        assert_eq!(search("/pr2", "/robot/base"), None);
        assert_eq!(search("/pr2", "arm"), None);
        assert!(tree.search("/pr2", "~x").is_err() && tree.search("pr2", "x").is_err());
    }

    #[test]
    fn subscribers_are_told_what_concerns_them() {
        let told = |key: &str, value: &Value| -> Vec<(String, String, Value)> {
            let subscriptions = ["/", "/a/", "/a/b/", "/a/c/", "/d/"];
            let updates = updates(subscriptions.into_iter(), key, value);
            updates.into_iter().map(|it| (it.subscription, it.key, it.value)).collect()
        };
        let of = |all: &[(&str, &str, Value)]| -> Vec<(String, String, Value)> {
            all.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), c.clone())).collect()
        };
        let one = Value::Int(1);
        let within = [
            ("/", "/a/b/", one.clone()),
            ("/a/", "/a/b/", one.clone()),
            ("/a/b/", "/a/b/", one.clone()),
        ];
        assert_eq!(told("/a/b", &one), of(&within));
        let tree = space(&[("b", one.clone())]);
        let around = [
            ("/", "/a/", tree.clone()),
            ("/a/", "/a/", tree.clone()),
            ("/a/c/", "/a/c/", space(&[])),
            ("/a/b/", "/a/b/", one.clone()),
        ];
        assert_eq!(told("/a", &tree), of(&around));
        assert_eq!(told("/e", &one), of(&[("/", "/e/", one.clone())]));
        assert_eq!(told("/a", &one), of(&[("/", "/a/", one.clone()), ("/a/", "/a/", one)]));
    }
}
