//! Turns a launch file, in ROS 2's XML, into the processes that it asks for, and decides when each is started, told to
//! end and started again.
//!
//! This crate starts nothing, reads no file and no clock: files and variables come from a [`World`], the time and what
//! happened as arguments, and what is to be done goes out as values.
//!
//! # The file
//! ```xml
//! <launch>
//!   <arg name="robot" default="arm" description="the namespace of all nodes"/>
//!   <group>
//!     <push_ros_namespace namespace="$(var robot)"/>
//!     <node pkg="demo_nodes_cpp" exec="talker" name="talker" respawn="true" respawn_delay="1.0">
//!       <param name="rate" value="2.0"/>
//!       <remap from="chatter" to="words"/>
//!     </node>
//!   </group>
//! </launch>
//! ```
//! Elements, attributes, substitutions and types of values mean what they mean to ROS 2's `launch` and `launch_ros`, as
//! far as they are here; [`ELEMENTS`] has them all, and tables that were recorded from those are the tests. Whatever else
//! is written is refused, with its place and what is allowed; so are arguments that nobody declares, and files in Python
//! and YAML. Beyond ROS 2, a `node` without `pkg` is an executable beside the file or in `PATH`. `$(command …)` and
//! `$(eval …)` are refused: a plan is made without anything being run.
//!
//! # Limits
//! [`FILE_BYTES_MAX`], [`FILES_MAX`], [`INCLUDE_DEPTH_MAX`], [`PROCESSES_MAX`], [`VALUE_BYTES_MAX`] and
//! [`PLAN_BYTES_MAX`]; what goes beyond is refused.
#![forbid(unsafe_code)]

mod elements;
pub use elements::{ELEMENTS, Element};

mod parameter;

mod plan;
pub use plan::{
    Argument, Component, Output, ParameterSource, Patience, Place, Plan, Process, Respawn,
};

mod read;
pub use read::{
    FILE_BYTES_MAX, FILES_MAX, INCLUDE_DEPTH_MAX, PLAN_BYTES_MAX, PROCESSES_MAX, declared, plan,
};

mod substitution;
pub use substitution::VALUE_BYTES_MAX;

mod supervision;
pub use supervision::{
    End, Order, RESPAWN_DELAY_MIN, Signal, Supervised, Supervision, TIMEOUT_MAX,
};

mod words;
pub use words::shell_words;

mod world;
pub use world::World;

pub use tsuji_xml::{XmlError, XmlErrors, spelling};
