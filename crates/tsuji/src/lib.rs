//! ROS 2 nodes in Rust, without an installed ROS 2. Each flow goes by the transport that suits it: a pointer inside the
//! process, shared memory inside the host, Cyclone DDS, Fast DDS or Zenoh beyond.
//!
//! # Getting started
//!
//! A program makes a [`Context`], a [`Node`] in it, what it needs under the node, and spins:
//!
//! ```no_run
//! use std::time::Duration;
//! use tsuji::interfaces::std_msgs::msg::String as Text;
//! use tsuji::{Context, Qos};
//!
//! let context = Context::builder().args(std::env::args().skip(1)).build()?;
//! let node = context.node("talker")?;
//! let publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT)?;
//! let mut count = 0;
//! let _timer = node.create_timer(Duration::from_millis(500), move || {
//!     count += 1;
//!     if let Err(error) = publisher.publish(Text { data: format!("hello {count}") }) {
//!         eprintln!("{error}");
//!     }
//! })?;
//! tsuji::spin(&node)?;
//! # Ok::<_, tsuji::Error>(())
//! ```
//!
//! # Concepts
//!
//! | what | by | example |
//! |---|---|---|
//! | topics | [`Node::create_publisher`], [`Node::create_subscription`] | [`Publisher`], [`Subscription`] |
//! | pictures and other long arrays, without a copy | [`Publisher::loan`], [`Publisher::loan_with`] | [`LoanedMessage`] |
//! | arrays of a message by their names, in place | [`LoanedMessage::array_mut`], [`Received::array`] | [`ArrayLayout`] |
//! | only the messages that one wants, by their fields | [`SubscriptionOptions::content_filter`] | [`ContentFilterOptions`] |
//! | services | [`Node::create_service`], [`Node::create_client`] | [`Service`], [`Client`] |
//! | actions | [`Node::create_action_server`], [`Node::create_action_client`] | [`action`] |
//! | parameters | [`Node::declare_parameter`], [`Node::parameters`] | [`parameter`] |
//! | log | [`Node::logger`], [`info!`] and the like | [`log`] |
//! | time, which may be simulated | [`Node::clock`], [`Node::create_timer`] | [`clock`], [`TimerOptions`] |
//! | managed nodes | [`Node::manage`] | [`lifecycle`] |
//! | nodes in one process | [`component::Container`] | [`component`] |
//! | threads and callback groups | [`Executor`], [`CallbackGroup`] | [`Executor`] |
//! | waiting without callbacks | [`WaitSet`], [`WaitList`], `await` | [`WaitSet`] |
//! | messages of a type known at run time only | [`Node::create_raw_publisher`] and the like | [`dynamic`], [`RawPublisher`] |
//! | which transport a flow takes, and why | [`Context::routes`], [`Context::set_route`] | [`RouteReport`] |
//!
//! **Kinds of functions.** `create_…` takes a callback that is called while the node is spun, `create_polled_…` makes what is
//! asked, `create_deferred_…` what answers later. Each takes options as a value; a [`Qos`], a name or a period alone will do.
//!
//! **Parts of a node.** Parameters, `/rosout` and ROS time are made when they are first used. Until then others do not see
//! them, and the node has no endpoint and no thread for them.
//!
//! **Messages.** Those of ROS 2 are in [`interfaces`]. Messages of your own are made by the crate `tsuji-build`.
//!
//! **Errors.** An [`Error`] is one sentence, with `{}` and with `{:?}`, so that a `main` that returns a [`Result`] tells it; its
//! [`ErrorKind`] is what a program can act on.
//!
//! **Warnings.** What goes wrong beside the calls of a program, as an edit of the policy file that is no policy, is told by
//! warnings, which are events of `tracing`. Where a program has no subscriber they are lines on standard error, unless its
//! user says `TSUJI_WARNINGS=off` or `--ros-args --log-level error`.
//!
//! This crate knows no rmw structures and no WebSockets. Which transports exist is known to `registry.rs` alone.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub use tsuji_core::{
    Durability, History, Interop, Liveliness, Policy, Qos, Reliability, RtpsEngine, Scope, Size,
};
pub use tsuji_interfaces as interfaces;
pub use tsuji_msg::{ArrayLayout, ArrayView, InPlace, Message, Number, Service as ServiceType};
pub use tsuji_ros::environment::DiscoveryRange;
pub use tsuji_ros::gid::Distro;
pub use tsuji_transport::{Bytes, Gid, Loan, Transport};

pub mod action;
pub mod clock;
pub mod component;
pub mod dynamic;
pub mod lifecycle;
pub mod log;
pub mod parameter;

mod announcement;
mod asking;
mod changes;
mod deadline;
mod lock;
use lock::{lock, panic_text};

mod calls;
pub use calls::ClientCounters;

mod client;
pub use client::{Client, Pending, RawClient, RawPending};

mod content;
pub use content::Content;

mod content_filter;
pub use content_filter::ContentFilterOptions;

mod context;
pub use context::{Context, ContextBuilder, ParameterArgument, runtime_dir};

mod control;
mod enclave_permissions;
pub use enclave_permissions::EnclavePermissions;
pub use tsuji_security::Verb;

mod endpoint;
mod graph_cache;

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
    CertificateReport, EndReport, EndpointInfo, EndpointKind, Graph, LatencyReport, NodeInfo,
    PeerProcess, ProcessInfo, Role, RouteChange, RouteReport, RouteSetting, RouteState,
    TransportReport, UnreachablePeer,
};

mod guard_condition;
pub use guard_condition::GuardCondition;

mod security;
mod sentence;
mod session;

mod latency;
pub use latency::{Latency, LatencyClock};

mod log_arguments;
pub use log_arguments::{LogArguments, Severity, UnknownSeverity};

mod mapping;
mod network;

mod arrivals;
pub use arrivals::NewMessageCallback;

mod node;
pub use node::{Node, RawType};

mod options;
pub use options::{
    ClientOptions, EndpointOptions, PublisherOptions, ServiceOptions, SubscriptionOptions,
    TimerOptions,
};
#[doc(hidden)]
pub use options::{OfClient, OfPublisher, OfService, OfSubscription, sealed::Kind as OptionsKind};

mod pacing;

mod parts;
pub use parts::NodeBuilder;

mod policy_file;

mod publisher_core;
pub use publisher_core::PublisherCounters;

mod publisher;
pub use publisher::{LoanedMessage, Publishable, Publisher, RawPublisher};

mod subscription_core;
pub use subscription_core::SubscriptionCounters;

mod registry;
pub use registry::{KNOWN as KNOWN_TRANSPORTS, dds_security_library};

mod service;
pub use service::{RawRequest, RawService, Request, Service, ServiceCounters};

mod statistics;

mod stamp;

mod dirty;

mod subscription;
pub use subscription::{
    MessageInfo, Messages, RawSample, RawSubscription, Received, Recv, Subscription,
};

mod timer;
pub use timer::Timer;

mod turn;

mod wait_list;
pub use wait_list::{WaitList, Waitable};

mod wait_set;
pub use wait_set::WaitSet;

pub mod prelude {
    //! What most programs need, for `use tsuji::prelude::*`.
    //!
    //! ```no_run
    //! use tsuji::prelude::*;
    //! use tsuji::interfaces::nav_msgs::msg::OccupancyGrid;
    //!
    //! let context = Context::builder().args(std::env::args().skip(1)).build()?;
    //! let node = context.node("map_server")?;
    //! let map = node.create_publisher::<OccupancyGrid>("map", Qos::LATCHED)?;
    //! map.publish(OccupancyGrid::default())?;
    //! tsuji::spin(&node)?;
    //! # Ok::<_, tsuji::Error>(())
    //! ```
    //!
    //! [`Error`](crate::Error) and [`Result`](crate::Result) are not in it: they would hide those of the standard library.
    pub use crate::{
        Client, Context, Executor, Message, Node, Publisher, Qos, Received, Service, ServiceType,
        Subscription, Timer,
    };
}

/// The programs of tsuji in the page that compares client libraries.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/comparison.md")]
struct Comparison;

/// The program in the first thing that one reads.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
