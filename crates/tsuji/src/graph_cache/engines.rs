//! What this process shows of its engines.

use tsuji_platform::process;
use tsuji_transport::Transport;
use tsuji_transport::engines::{EngineRun, EngineStatus, Need};

use super::GraphCache;
use crate::control::listening::JoinState;
use crate::engines::{EngineReport, EngineState, ProcessEngines};
use crate::registry::{Absence, Failed};
use crate::session::Session;

impl GraphCache {
    /// The transports of this process, and what their engines are doing.
    pub(crate) fn engines(&self, session: &Session) -> ProcessEngines {
        let works = session.transports().iter().map(|it| self.engine(&**it));
        let fails = session.failed().iter().map(failed);
        ProcessEngines {
            process: session.info.clone(),
            threads: process::threads().unwrap_or(0),
            resident_bytes: process::resident_bytes().unwrap_or(0),
            virtual_bytes: process::virtual_bytes().unwrap_or(0),
            engines: works.chain(fails).collect(),
        }
    }

    fn engine(&self, transport: &dyn Transport) -> EngineReport {
        let report = |state, because: String| EngineReport {
            transport: transport.id().to_string(),
            state,
            because,
            is_loaded: true,
            ..EngineReport::default()
        };
        let Some(status) = transport.engine() else {
            return report(EngineState::BuiltIn, "a part of tsuji, without threads".to_owned());
        };
        let join_state = self.join_states.get(&transport.id());
        let (state, because) = state_of(&status, join_state);
        let report = report(state, because);
        let run = status.run.as_ref().filter(|it| it.left_wall_ns.is_none());
        EngineReport {
            is_loaded: status.is_loaded,
            library: status.library.as_ref().map(|it| it.display().to_string()),
            version: status.version,
            since_wall_ns: status
                .run
                .as_ref()
                .map(|it| it.left_wall_ns.unwrap_or(it.since_wall_ns)),
            starts: status.joins,
            users: run.map_or(0, |it| it.users as u64),
            threads: run.map_or_else(Vec::new, |it| it.threads.clone()),
            resident_bytes: run.map(|it| it.resident_bytes),
            is_shared: run.is_some_and(|it| it.is_shared),
            idle_seconds: status.idle.map(|it| it.as_secs_f64()),
            ..report
        }
    }
}

/// How an engine stands, and why.
fn state_of(status: &EngineStatus, join_state: Option<&JoinState>) -> (EngineState, String) {
    let Some(run) = &status.run else {
        return match join_state {
            Some(JoinState::Listens) => {
                let why = "only listened to: nobody else was heard, and no flow needs it";
                (EngineState::ListenedTo, why.to_owned())
            }
            _ => (EngineState::NotStarted, "no flow needs it".to_owned()),
        };
    };
    let first = first_need(run, join_state);
    let after = status.idle.map(|it| format!("{} s", it.as_secs_f64()));
    match (run.left_wall_ns, after) {
        (Some(_), after) => {
            let after = after.unwrap_or_else(|| "a while".to_owned());
            let why = format!("no flow has needed it for {after}; it was started for {first}");
            (EngineState::ShutDown, why)
        }
        (None, Some(after)) if run.users == 0 && !run.is_on_the_wire => {
            let why =
                format!("{first}; no flow needs it now: it is shut down {after} after the last");
            (EngineState::Running, why)
        }
        (None, _) => (EngineState::Running, first),
    }
}

/// What it was started for.
fn first_need(run: &EngineRun, join_state: Option<&JoinState>) -> String {
    match (&run.need, join_state) {
        (Need::Writer(topic), _) => format!("a publisher on {topic}"),
        (Need::Reader(topic), _) => format!("a subscription to {topic}"),
        (Need::Wire, None | Some(JoinState::Listens)) => {
            "foreign ROS 2 nodes and other hosts, who are spoken to".to_owned()
        }
        (Need::Wire, Some(join_state)) => {
            format!("foreign ROS 2 nodes and other hosts: {join_state}")
        }
    }
}

fn failed(failed: &Failed) -> EngineReport {
    let state = match failed.absence {
        Absence::Broken => EngineState::Failed,
        Absence::NotInstalled => EngineState::NotInstalled,
        Absence::LeftOut => EngineState::LeftOut,
    };
    EngineReport {
        transport: failed.transport.to_string(),
        state,
        because: failed.reason.clone(),
        ..EngineReport::default()
    }
}
