//! Names of the graph of ROS 1, as `rosgraph.names` reads them.

/// A name without doubled slashes and without one at its end.
pub(super) fn canonical(name: &str) -> String {
    let joined = segments(name).collect::<Vec<_>>().join("/");
    if name.starts_with('/') { format!("/{joined}") } else { joined }
}

/// The parts between slashes that are not empty.
pub(super) fn segments(name: &str) -> impl Iterator<Item = &str> {
    name.split('/').filter(|it| !it.is_empty())
}

/// The namespace of a node's name, with a slash at its end.
fn namespace(node: &str) -> &str {
    let node = node.strip_suffix('/').unwrap_or(node);
    match node.rfind('/') {
        Some(slash) => &node[..=slash],
        None => "/",
    }
}

/// A name as the caller means it: `/a` as it is, `a` in the caller's namespace, `~a` below the caller.
pub(super) fn resolve(name: &str, caller: &str) -> String {
    if name.is_empty() {
        return namespace(caller).to_owned();
    }
    let name = canonical(name);
    if name.starts_with('/') {
        name
    } else if let Some(private) = name.strip_prefix('~') {
        canonical(&format!("{caller}/{private}"))
    } else {
        format!("{}{name}", namespace(caller))
    }
}

/// A name below a namespace; a global or private one stays.
pub(super) fn join(namespace: &str, name: &str) -> String {
    if name.starts_with(['/', '~']) || namespace.is_empty() {
        name.to_owned()
    } else if namespace == "~" || namespace.ends_with('/') {
        format!("{namespace}{name}")
    } else {
        format!("{namespace}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_resolved_as_rosgraph_does() {
        for (name, caller, expected) in [
            ("", "/a/b", "/a/"),
            ("x", "/node", "/x"),
            ("x", "node", "/x"),
            ("x", "", "/x"),
            ("x", "/ns/node/", "/ns/x"),
            ("x//y/", "/ns/node", "/ns/x/y"),
            ("/x", "/ns/node", "/x"),
            ("//", "/ns/node", "/"),
            ("~x", "/ns/node", "/ns/node/x"),
            ("~", "/ns/node", "/ns/node"),
        ] {
            assert_eq!(resolve(name, caller), expected, "{name} {caller}");
        }
        assert_eq!(join("/", "a"), "/a");
        assert_eq!(join("/a", "b/c"), "/a/b/c");
        assert_eq!(join("/a", "/b"), "/b");
    }
}
