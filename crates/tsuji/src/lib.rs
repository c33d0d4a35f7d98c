//! Nodes that exchange ROS 2 messages, each flow over the road that suits it: a pointer inside the
//! process, shared memory inside the host.
//!
//! ```no_run
//! use std::time::Duration;
//! use tsuji::{Context, Qos};
//! use tsuji_interfaces::std_msgs::msg::String as Text;
//!
//! let context = Context::new()?;
//! let node = context.node("talker")?;
//! let publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT)?;
//! let mut count = 0;
//! let _timer = node.create_timer(Duration::from_millis(500), move || {
//!     count += 1;
//!     if let Err(error) = publisher.publish(Text { data: format!("hello {count}").into() }) {
//!         eprintln!("{error}");
//!     }
//! })?;
//! tsuji::spin(&node)?;
//! # Ok::<_, tsuji::Error>(())
//! ```
//!
//! This crate knows no rmw structures, no WebSockets and no terminals. Which transports exist is
//! known to `registry.rs` alone.
#![forbid(unsafe_code)]

pub use tsuji_core as core;
pub use tsuji_core::{Durability, History, Liveliness, Qos, Reliability, Scope, Size};
pub use tsuji_msg::{InPlace, Message, Service as ServiceType};
pub use tsuji_ros::environment::DiscoveryRange;
pub use tsuji_ros::gid::Distro;
pub use tsuji_transport as transport;
pub use tsuji_transport::{Bytes, Gid, Loan};

mod announcement;

mod calls;
pub use calls::ClientCounters;

mod client;
pub use client::{Client, ClientBuilder, Pending, RawClient, RawPending};

mod content;
pub use content::Content;

mod context;
pub use context::{Context, ContextBuilder, ParameterArgument, runtime_dir};

mod control;
mod directory;
mod endpoint;

mod error;
pub use error::{Error, ErrorKind, Result};

mod events;
pub use events::{ClientEvent, PublisherEvent, ServiceEvent, SubscriptionEvent};

mod executor;
pub use executor::{CallbackGroup, CallbackGroupKind, Executor, spin};

mod engines;
pub use engines::{EngineReport, EngineState, ProcessEngines};

mod graph;
pub use graph::{
    EndReport, EndpointInfo, EndpointKind, Graph, LatencyReport, Neighbour, NodeInfo, ProcessInfo,
    Role, RouteChange, RouteReport, RouteSetting, RouteState, Stranger, TransportReport,
};

mod guard_condition;
pub use guard_condition::GuardCondition;

mod host;

mod log_arguments;
pub use log_arguments::{LogArguments, Severity, UnknownSeverity};

mod mapping;
mod network;

mod news;
pub use news::NewsCallback;

mod node;
pub use node::{Node, PublisherBuilder, RawSubscriptionBuilder, RawType, SubscriptionBuilder};

mod pacing;
mod policy_file;

mod publication;
pub use publication::PublisherCounters;

mod publisher;
pub use publisher::{LoanedMessage, Publishable, Publisher, RawPublisher};

mod reception;
pub use reception::SubscriptionCounters;

mod registry;
pub use registry::KNOWN as KNOWN_TRANSPORTS;

mod service;
pub use service::{
    RawRequest, RawService, RawServiceBuilder, Request, Service, ServiceBuilder, ServiceCounters,
};

mod statistics;

mod subscription;
pub use subscription::{
    MessageInfo, Messages, RawSample, RawSubscription, Received, Recv, Subscription,
};

mod timer;
pub use timer::{Schedule, ScheduledTimer, Timer};

mod wait_list;
pub use wait_list::{WaitList, Waitable};

mod wait_set;
pub use wait_set::WaitSet;
