//! Actions: goals that take their time, with feedback meanwhile, a result at the end, and a way to cancel.
//!
//! An action `/NAME` is the services `/NAME/_action/send_goal`, `/NAME/_action/cancel_goal` and
//! `/NAME/_action/get_result`, and the topics `/NAME/_action/feedback` and `/NAME/_action/status`, as
//! [ROS 2 has them](https://design.ros2.org/articles/actions.html).
//!
//! ```no_run
//! use std::time::Duration;
//! use tsuji::Context;
//! use tsuji::interfaces::example_interfaces::action::{Fibonacci, FibonacciGoal};
//!
//! let context = Context::builder().args(std::env::args().skip(1)).build()?;
//! let node = context.node("asking")?;
//! let client = node.create_action_client::<Fibonacci>("fibonacci")?;
//! let patience = Duration::from_secs(5);
//! client.wait_for_server(patience)?;
//! if let Some(goal) = client.send_goal(FibonacciGoal { order: 10 }, patience)? {
//!     while let Some(feedback) = goal.next_feedback(patience)? {
//!         println!("{:?}", feedback.sequence);
//!     }
//!     let (status, result) = goal.result(patience)?;
//!     println!("{status}: {:?}", result.sequence);
//! }
//! # Ok::<_, tsuji::Error>(())
//! ```

mod client;
pub use client::{ActionClient, CancelOutcome, ClientGoal, PendingCancel, PendingGoal};

mod dynamic;
pub use dynamic::{DynamicAction, DynamicActionType};

mod form;
pub use form::ActionForm;
#[doc(hidden)]
pub use form::{Said, ServiceForm, TopicForm, sealed::Sealed as SealedForm};

mod goals;
pub use goals::{GoalId, GoalStatus};

mod pursuers;

mod raw;
pub use raw::{RawAction, RawActionType};

mod server;
pub use server::{
    ActionCounters, ActionServer, ActionServerOptions, GoalHandle, ManyGoals,
    RESULT_TIMEOUT_DEFAULT,
};

use crate::Qos;

/// What is said of all goals: who comes late is told what stands.
const STATUS_QOS: Qos = Qos::LATCHED;

/// The name of a part of an action.
fn part(action: &str, part: &str) -> String {
    format!("{action}/_action/{part}")
}

/// The topic of an action's feedback, if the service is the one that takes its goals.
pub(crate) fn feedback_topic(service: &str) -> Option<String> {
    let action = service.strip_suffix("/_action/send_goal")?;
    Some(part(action, "feedback"))
}
