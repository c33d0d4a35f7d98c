//! Nodes.

use std::ffi::{CString, c_char};
use std::fmt;

use tsuji::Node;
use tsuji_core::names::{validate_namespace, validate_node};

use crate::abi::InC;
use crate::check::{context_of, text};
use crate::error::{RmwError, guard, guard_pointer};
use crate::ffi::rmw::{rmw_context_t, rmw_guard_condition_t, rmw_node_t, rmw_ret_t};
use crate::handle::{end, inside};
use crate::identity::IDENTIFIER;
use crate::init::NodeCount;
use crate::wait::new_graph_guard;

/// What is behind an `rmw_node_t`.
pub(crate) struct NodeImpl {
    pub(crate) node: Node,
    graph_guard: *mut rmw_guard_condition_t,
    /// What the `rmw_node_t` points to.
    name: CString,
    namespace: CString,
    _count: NodeCount,
}

impl fmt::Debug for NodeImpl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeImpl").field(&self.node).finish()
    }
}

impl Drop for NodeImpl {
    fn drop(&mut self) {
        // Whatever was made under it: rclpy leaves a service of each node to the end of the process.
        self.node.leave_graph();
        // SAFETY: it was made for this node, with which its users end.
        unsafe { end(self.graph_guard) };
    }
}

/// Makes a node; null where the name or the namespace is not allowed, or the context is shut down.
///
/// # Safety
///
/// The context is null, zero, or of `rmw_init`, and outlives the node; the texts are null or end with
/// NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_node(
    context: *mut InC<rmw_context_t>,
    name: *const c_char,
    namespace_: *const c_char,
) -> *mut rmw_node_t {
    guard_pointer(|| {
        // SAFETY: the caller promises it.
        let of = unsafe { context_of(context) }?;
        of.check_open()?;
        // SAFETY: the caller promises it.
        let (name, namespace) = unsafe { (text("name", name)?, text("namespace_", namespace_)?) };
        validate_node(name).map_err(|error| RmwError::invalid(error.to_string()))?;
        validate_namespace(namespace).map_err(|error| RmwError::invalid(error.to_string()))?;
        let as_c = |text: &str| CString::new(text).map_err(|_| RmwError::invalid("a NUL"));
        let (name, namespace) = (as_c(name)?, as_c(namespace)?);
        let node = of.context.node_in(&name.to_string_lossy(), &namespace.to_string_lossy())?;
        let graph_guard = new_graph_guard(context, of)?;
        let made =
            Box::new(NodeImpl { node, graph_guard, name, namespace, _count: of.count_node() });
        let node = rmw_node_t {
            implementation_identifier: IDENTIFIER.as_ptr(),
            name: made.name.as_ptr(),
            namespace_: made.namespace.as_ptr(),
            data: Box::into_raw(made).cast(),
            context,
        };
        Ok(Box::into_raw(Box::new(node)))
    })
}

/// Ends a node: it leaves the graph.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and nobody uses it nor what was made under it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_node(node: *mut rmw_node_t) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        unsafe { inside(node) }?;
        // SAFETY: `rmw_create_node` made it so, and it is used no more.
        unsafe { end(node) };
        Ok(())
    })
}

/// What is triggered when the graph changes. It lives as long as the node.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_node_get_graph_guard_condition(
    node: *const rmw_node_t,
) -> *const rmw_guard_condition_t {
    guard_pointer(|| {
        // SAFETY: the caller promises it.
        let node = unsafe { inside(node) }?;
        Ok(node.graph_guard)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::CStr;
    use std::ptr;

    use super::*;
    use crate::error::tests::told;
    use crate::ffi::rmw::{
        NO_CONTEXT, RMW_RET_INCORRECT_RMW_IMPLEMENTATION, RMW_RET_INVALID_ARGUMENT, RMW_RET_OK,
    };
    use crate::init::rmw_shutdown;
    use crate::init::tests::Begun;

    #[test]
    fn create_and_destroy() {
        let mut begun = Begun::new();
        let context: *mut _ = &mut *begun.context;
        let (name, namespace) = (c"my_node".as_ptr(), c"/my_ns".as_ptr());
        let refused = |context: *mut InC<rmw_context_t>, name, namespace, expect: &str| {
            // SAFETY: all are valid or null.
            let node = unsafe { rmw_create_node(context, name, namespace) };
            assert!(node.is_null());
            assert_eq!(told(), expect);
        };
        let mut zero = NO_CONTEXT;
        refused(ptr::null_mut(), name, namespace, "context is null");
        refused(&mut zero, name, namespace, "context is not initialised");
        refused(context, ptr::null(), namespace, "name is null");
        refused(context, name, ptr::null(), "namespace_ is null");
        let text = "node name \"foo bar\": character 4, ' ': allowed: letters, digits and '_'";
        refused(context, c"foo bar".as_ptr(), namespace, text);
        let text = "namespace \"my_ns\": character 1, 'm': a full name is needed; allowed: '/'";
        refused(context, name, c"my_ns".as_ptr(), text);
        // SAFETY: all are valid.
        unsafe {
            (*context).implementation_identifier = c"rmw_x".as_ptr();
            let text = "context is of the rmw \"rmw_x\"; allowed: those of rmw_tsuji";
            refused(context, name, namespace, text);
            (*context).implementation_identifier = IDENTIFIER.as_ptr();
            let node = rmw_create_node(context, name, namespace);
            assert_eq!(CStr::from_ptr((*node).name), c"my_node");
            assert_eq!(CStr::from_ptr((*node).namespace_), c"/my_ns");
            assert_eq!((*node).context, context);
            assert!(!rmw_node_get_graph_guard_condition(node).is_null());
            assert!(rmw_node_get_graph_guard_condition(ptr::null()).is_null());
            (*node).implementation_identifier = c"rmw_x".as_ptr();
            assert_eq!(rmw_destroy_node(node), RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
            assert!(rmw_node_get_graph_guard_condition(node).is_null());
            (*node).implementation_identifier = IDENTIFIER.as_ptr();
            assert_eq!(rmw_shutdown(context), RMW_RET_OK);
            told();
            refused(context, name, namespace, "context is shut down");
            assert_eq!(rmw_destroy_node(node), RMW_RET_OK);
            assert_eq!(rmw_destroy_node(ptr::null_mut()), RMW_RET_INVALID_ARGUMENT);
        }
    }
}
