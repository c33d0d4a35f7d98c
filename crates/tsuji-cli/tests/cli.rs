//! The command as users run it: real processes in a run-time folder of their own.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "cli/action.rs"]
mod action;
#[path = "cli/bridge.rs"]
mod bridge;
#[path = "cli/completions.rs"]
mod completions;
#[path = "cli/component.rs"]
mod component;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/echo.rs"]
mod echo;
#[path = "cli/interface.rs"]
mod interface;
#[path = "cli/launch.rs"]
mod launch;
#[path = "cli/lifecycle.rs"]
mod lifecycle;
#[path = "cli/limits.rs"]
mod limits;
#[path = "cli/log.rs"]
mod log;
#[path = "cli/manual.rs"]
mod manual;
#[path = "cli/page.rs"]
mod page;
#[path = "cli/param.rs"]
mod param;
#[path = "cli/policy.rs"]
mod policy;
#[path = "cli/prometheus.rs"]
mod prometheus;
#[path = "cli/record.rs"]
mod record;
#[path = "cli/recordings.rs"]
mod recordings;
#[path = "cli/reference.rs"]
mod reference;
#[path = "cli/ros1_master.rs"]
mod ros1_master;
#[path = "cli/ros2.rs"]
mod ros2;
#[path = "cli/ros2_client.rs"]
mod ros2_client;
#[path = "cli/route.rs"]
mod route;
#[path = "cli/routes.rs"]
mod routes;
#[path = "cli/security.rs"]
mod security;
#[path = "cli/service.rs"]
mod service;
#[path = "cli/support.rs"]
mod support;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/time.rs"]
mod time;
#[path = "cli/top.rs"]
mod top;
#[path = "cli/topic.rs"]
mod topic;
#[path = "cli/usage.rs"]
mod usage;
#[path = "cli/web_clients.rs"]
mod web_clients;
