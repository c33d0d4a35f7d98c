use tsuji_xml::{Node, Places};

/// What an element may have.
#[derive(Debug)]
pub struct Element {
    /// Its name.
    pub name: &'static str,
    /// The elements in which it means this; any action's place if empty.
    pub inside: &'static [&'static str],
    /// Its attributes.
    pub attributes: &'static [&'static str],
    /// The elements inside it.
    pub children: &'static [&'static str],
}

/// Where actions stand.
const ACTIONS: &[&str] = &[
    "append_env",
    "arg",
    "executable",
    "group",
    "include",
    "let",
    "load_composable_node",
    "log",
    "node",
    "node_container",
    "push-ros-namespace",
    "push_ros_namespace",
    "reset",
    "reset_env",
    "set_env",
    "set_parameter",
    "set_parameters_from_file",
    "set_remap",
    "set_ros_log_dir",
    "unset_env",
];

/// What a group may have inside.
const GROUP: &[&str] = &[
    "append_env",
    "arg",
    "executable",
    "group",
    "include",
    "keep",
    "let",
    "load_composable_node",
    "log",
    "node",
    "node_container",
    "push-ros-namespace",
    "push_ros_namespace",
    "reset",
    "reset_env",
    "set_env",
    "set_parameter",
    "set_parameters_from_file",
    "set_remap",
    "set_ros_log_dir",
    "unset_env",
];

const NODE: &[&str] = &[
    "pkg",
    "exec",
    "exec_name",
    "name",
    "namespace",
    "args",
    "ros_args",
    "output",
    "respawn",
    "respawn_delay",
    "respawn_max_retries",
    "cwd",
    "launch-prefix",
    "sigterm_timeout",
    "sigkill_timeout",
    "emulate_tty",
    "on_exit",
    "if",
    "unless",
];

const EXECUTABLE: &[&str] = &[
    "cmd",
    "name",
    "shell",
    "output",
    "respawn",
    "respawn_delay",
    "respawn_max_retries",
    "cwd",
    "launch-prefix",
    "sigterm_timeout",
    "sigkill_timeout",
    "emulate_tty",
    "on_exit",
    "if",
    "unless",
];

const PARAM: &[&str] = &["name", "value", "value-sep", "type", "from", "allow_substs"];

/// Everything that a launch file may have.
pub const ELEMENTS: &[Element] = &[
    Element {
        name: "launch",
        inside: &[],
        attributes: &["version", "deprecated"],
        children: ACTIONS,
    },
    Element { name: "arg", inside: &["include"], attributes: &["name", "value"], children: &[] },
    Element { name: "let", inside: &["include"], attributes: &["name", "value"], children: &[] },
    Element {
        name: "arg",
        inside: &[],
        attributes: &["name", "default", "description", "if", "unless"],
        children: &["choice"],
    },
    Element { name: "choice", inside: &[], attributes: &["value"], children: &[] },
    Element {
        name: "let",
        inside: &[],
        attributes: &["name", "value", "if", "unless"],
        children: &[],
    },
    Element { name: "node", inside: &[], attributes: NODE, children: &["env", "param", "remap"] },
    Element {
        name: "node_container",
        inside: &[],
        attributes: NODE,
        children: &["composable_node", "env", "param", "remap"],
    },
    Element { name: "executable", inside: &[], attributes: EXECUTABLE, children: &["env"] },
    Element {
        name: "load_composable_node",
        inside: &[],
        attributes: &["target", "if", "unless"],
        children: &["composable_node"],
    },
    Element {
        name: "composable_node",
        inside: &[],
        attributes: &["pkg", "plugin", "name", "namespace", "if", "unless"],
        children: &["extra_arg", "param", "remap"],
    },
    Element {
        name: "group",
        inside: &[],
        attributes: &["scoped", "forwarding", "if", "unless"],
        children: GROUP,
    },
    Element { name: "keep", inside: &[], attributes: &["name", "value"], children: &[] },
    Element { name: "reset", inside: &[], attributes: &["if", "unless"], children: &["keep"] },
    Element { name: "reset_env", inside: &[], attributes: &["if", "unless"], children: &[] },
    Element { name: "log", inside: &[], attributes: &["message", "if", "unless"], children: &[] },
    Element {
        name: "include",
        inside: &[],
        attributes: &["file", "if", "unless"],
        children: &["arg", "let"],
    },
    Element {
        name: "push_ros_namespace",
        inside: &[],
        attributes: &["namespace", "if", "unless"],
        children: &[],
    },
    Element {
        name: "push-ros-namespace",
        inside: &[],
        attributes: &["namespace", "if", "unless"],
        children: &[],
    },
    Element {
        name: "set_remap",
        inside: &[],
        attributes: &["from", "to", "if", "unless"],
        children: &[],
    },
    Element {
        name: "set_parameter",
        inside: &[],
        attributes: &["name", "value", "type", "value-sep", "if", "unless"],
        children: &[],
    },
    Element {
        name: "set_parameters_from_file",
        inside: &[],
        attributes: &["filename", "if", "unless"],
        children: &[],
    },
    Element {
        name: "set_ros_log_dir",
        inside: &[],
        attributes: &["new_log_dir", "if", "unless"],
        children: &[],
    },
    Element {
        name: "append_env",
        inside: &[],
        attributes: &["name", "value", "prepend", "separator", "if", "unless"],
        children: &[],
    },
    Element {
        name: "set_env",
        inside: &[],
        attributes: &["name", "value", "if", "unless"],
        children: &[],
    },
    Element {
        name: "unset_env",
        inside: &[],
        attributes: &["name", "if", "unless"],
        children: &[],
    },
    Element { name: "env", inside: &[], attributes: &["name", "value"], children: &[] },
    Element { name: "remap", inside: &[], attributes: &["from", "to"], children: &[] },
    Element { name: "param", inside: &[], attributes: PARAM, children: &["param"] },
    Element {
        name: "extra_arg",
        inside: &[],
        attributes: &["name", "value", "type"],
        children: &[],
    },
];

/// Notes every element and attribute below `node` that has no place there, also where a condition would leave it out.
pub(crate) fn check<'a>(node: Node<'a, 'a>, places: &mut Places<'a>) {
    let parent = node.parent().map_or("", |it| it.tag_name().name());
    let of_name = || ELEMENTS.iter().filter(|it| it.name == node.tag_name().name());
    let meant = of_name().find(|it| it.inside.contains(&parent));
    let Some(element) = meant.or_else(|| of_name().find(|it| it.inside.is_empty())) else { return };
    places.attributes(node, element.attributes);
    for child in places.elements(node) {
        if element.children.contains(&child.tag_name().name()) {
            check(child, places);
        } else {
            places.unknown_element(child, element.children);
        }
    }
}
