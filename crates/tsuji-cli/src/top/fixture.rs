//! Reports for tests, and what is shown of them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tsuji::{
    EndReport, EngineReport, EngineState, LatencyReport, ProcessEngines, ProcessInfo, Role,
    RouteChange, RouteReport, RouteSetting, RouteState,
};
use tsuji_platform::terminal::Key;

use super::state::{FlowColumn, Top, Wish};
use super::watcher::{Report, Snapshot};

/// What is shown of these flows, sorted by topic.
pub(super) fn top(flows: Vec<RouteReport>) -> Top {
    let mut top = Top::new(None, Duration::from_secs(1), FlowColumn::Topic);
    top.on_report(Instant::now(), Report::Snapshot(snapshot(flows)));
    top
}

pub(super) fn press(top: &mut Top, key: Key) -> Wish {
    top.press(Instant::now(), key)
}

pub(super) fn snapshot(flows: Vec<RouteReport>) -> Snapshot {
    let (shares, others) = (HashMap::new(), vec![info("tsuji", 7)]);
    Snapshot { flows, processes: None, shares, others }
}

fn info(program: &str, pid: u32) -> ProcessInfo {
    let (program, host) = (program.to_owned(), "robot".to_owned());
    ProcessInfo { token: format!("{program}{pid}"), pid, program, host }
}

pub(super) fn answer(outcome: Result<u32, &str>) -> RouteSetting {
    RouteSetting { process: info("tsuji", 7), outcome: outcome.map_err(str::to_owned) }
}

/// A flow by shared memory at 30 Hz.
pub(super) fn flow(topic: &str, number: u32) -> RouteReport {
    let end = |node: &str| EndReport {
        gid: format!("{node}{number}"),
        node: format!("/{node}{number}"),
        pid: 100 + number,
        program: "tsuji".to_owned(),
        host: "robot".to_owned(),
        vendor: None,
        certificate: None,
    };
    let change = RouteChange {
        wall_ns: 1_800_000_000_000_000_000,
        epoch: 1,
        from: None,
        to: "shm".to_owned(),
        why: "the two ends have met".to_owned(),
        because: "rule".to_owned(),
        opening_us: 300.0,
        settling_us: 0.0,
        held: 0,
        is_settled: true,
    };
    let latency = LatencyReport {
        median_us: 20.0,
        p99_us: 90.0,
        max_us: 200.0,
        sum_us: 20_000.0,
        counts: Vec::new(),
        clock: "monotonic".to_owned(),
    };
    RouteReport {
        topic: topic.to_owned(),
        role: Role::Topic,
        type_name: "std_msgs/msg/String".to_owned(),
        publisher: end("talker"),
        subscription: end("listener"),
        state: RouteState::Active,
        transport: Some("shm".to_owned()),
        handover_to: None,
        pinned: None,
        protection: None,
        changes: vec![change],
        because: "rule \"on this host\"; small, local".to_owned(),
        rejected: ["cyclonedds", "fastdds"]
            .map(|it| (it.to_owned(), "shm comes first".to_owned()))
            .to_vec(),
        mismatches: Vec::new(),
        size: "small".to_owned(),
        size_origin: "what was really sent".to_owned(),
        sample_bytes: Some(14),
        scope: "local".to_owned(),
        reliability: "reliable".to_owned(),
        peer: "tsuji".to_owned(),
        epoch: 1,
        since_wall_ns: 1_800_000_000_000_000_000,
        sent: 300,
        is_counted: true,
        samples: 300,
        bytes: 4200,
        rate_hz: 30.0,
        bytes_per_s: 420.0,
        latency: Some(latency),
        displaced: 0,
        expired: 0,
        invalid: 0,
        lost: 0,
        duplicates: 0,
    }
}

pub(super) fn process(program: &str, pid: u32) -> ProcessEngines {
    let engine = EngineReport {
        transport: "cyclonedds".to_owned(),
        state: EngineState::Running,
        because: "a foreign node".to_owned(),
        threads: vec!["recv".to_owned()],
        users: 2,
        ..EngineReport::default()
    };
    ProcessEngines {
        process: info(program, pid),
        threads: 6,
        resident_bytes: 27_000_000,
        virtual_bytes: 90_000_000,
        engines: vec![engine],
    }
}
