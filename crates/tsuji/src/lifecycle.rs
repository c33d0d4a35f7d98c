//! Managed nodes: whoever starts a robot configures, activates and shuts down its nodes, in the order that it needs.
//!
//! A node `/NAME` answers by the services `/NAME/change_state`, `get_state`, `get_available_states`,
//! `get_available_transitions` and `get_transition_graph`, and tells of each step on `/NAME/transition_event`, as
//! rclcpp_lifecycle does. Names and numbers are those of `lifecycle_msgs` and rcl.
//!
//! ```no_run
//! use tsuji::{Context, Qos};
//! use tsuji::interfaces::std_msgs::msg::String as Text;
//! use tsuji::lifecycle::{Lifecycle, LifecycleNode, LifecyclePublisher, Outcome, State};
//!
//! #[derive(Default)]
//! struct Talker {
//!     publisher: Option<LifecyclePublisher<Text>>,
//! }
//!
//! impl Lifecycle for Talker {
//!     fn on_configure(&mut self, node: &LifecycleNode, _from: State) -> Outcome {
//!         self.publisher = node.create_publisher("chatter", Qos::DEFAULT).ok();
//!         if self.publisher.is_some() { Outcome::Success } else { Outcome::Failure }
//!     }
//! }
//!
//! let context = Context::builder().args(std::env::args().skip(1)).build()?;
//! let node = context.node("talker")?;
//! let _managed = node.manage(Talker::default())?;
//! tsuji::spin(&node)?;
//! # Ok::<_, tsuji::Error>(())
//! ```

mod client;
pub use client::{LifecycleClient, managed_nodes};

mod machine;
pub use machine::{Outcome, State, TRANSITIONS, Transition};

mod node;
pub(crate) use node::Core as LifecycleCore;
pub use node::{Lifecycle, LifecycleNode, LifecyclePublisher};
