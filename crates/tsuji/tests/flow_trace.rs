//! What a process has decided of its flows is decided again from the trace that `TSUJI_TRACE` asks for.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::fs;
use std::path::Path;
use std::time::Duration;

use house::links::{Sender, Taker, ends, keep_many, process, set, settled_on};
use house::{Child, Folder, Random, Watchdog, tell};
use tsuji_core::flows::trace::{Entry, replay};
use tsuji_core::flows::{Action, Event, Note};

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "hand over" => hand_over(&mut CHANGES.into_iter()),
        "hand over for ever" => hand_over(&mut CHANGES.into_iter().cycle()),
        _ => (),
    }
}

/// A flow between two processes in one goes over to another link and back while samples flow.
fn hand_over(changes: &mut dyn Iterator<Item = &'static str>) {
    let folder = Folder::new();
    let (here, there) = (process(&folder), process(&folder));
    let (publisher, subscription) = ends(&here, &there, keep_many());
    let sending = Sender::start(publisher, Duration::from_micros(500));
    let taking = Taker::start(subscription, u64::MAX);
    for to in changes {
        set(&there, "/n", Some(to));
        settled_on(&there, "/n", to);
        taking.wait_for_more();
        tell(to);
    }
    let sent = sending.finish();
    assert_eq!(taking.finish(sent).counters().lost, 0);
    tell("handed over");
}

const CHANGES: [&str; 4] = ["cyclonedds", "shm", "cyclonedds", "shm"];

/// The traces of a child in this role, one for each of the processes that it is, once `end` has had it.
fn traces(role: &str, end: impl FnOnce(Child)) -> Vec<Vec<Entry>> {
    let (folder, kept) = (Folder::new(), Folder::new());
    fs::create_dir(&kept.0).unwrap();
    let asked = kept.0.join("trace");
    let child = Child::start_with(&folder, role, &[("TSUJI_TRACE", asked.to_str().unwrap())]);
    for to in CHANGES {
        assert_eq!(child.line(), to);
    }
    end(child);
    let files = fs::read_dir(&kept.0).unwrap().map(|it| it.unwrap().path());
    files.map(|path| read(&path)).collect()
}

/// All that was handed over.
fn whole_traces() -> Vec<Vec<Entry>> {
    traces("hand over", |child| {
        assert_eq!(child.line(), "handed over");
        child.finish();
    })
}

/// The entries of a trace; the last line of a process that was killed may be cut off.
fn read(path: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(path).unwrap();
    let whole = text.rsplit_once('\n').unwrap().0;
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// To what flows have come over, in this order.
fn came_over(entries: &[Entry]) -> Vec<String> {
    let changes = entries.iter().filter_map(|it| match it {
        Entry::Polled { action: Some(Action::Log(Note::Changed { to, .. })), .. } => Some(to),
        _ => None,
    });
    changes.map(ToString::to_string).collect()
}

#[test]
fn a_trace_is_decided_again() {
    let _watchdog = Watchdog::start("trace");
    let traces = whole_traces();
    assert_eq!(traces.len(), 2, "one for each table");
    for entries in &traces {
        let flows = replay(entries.clone()).unwrap();
        assert_eq!(flows.iter().count(), 0, "they have ended");
    }
    let came_over = traces.iter().map(|it| came_over(it)).filter(|it| !it.is_empty());
    assert_eq!(came_over.collect::<Vec<_>>(), [CHANGES], "the publisher's process decides");
}

/// Whenever it is killed, while samples flow and links change.
#[test]
fn a_killed_process_has_left_its_trace() {
    let _watchdog = Watchdog::start("trace");
    let mut random = Random(7);
    for _ in 0..10 {
        let changes = random.below(4);
        let traces = traces("hand over for ever", |child| {
            (0..changes).for_each(|_| drop(child.line()));
            child.kill();
        });
        let flows = traces.into_iter().map(|it| replay(it).unwrap().iter().count());
        assert_eq!(flows.sum::<usize>(), 1, "the flow is in the table of its publisher");
    }
}

#[test]
fn what_differs_is_found() {
    let _watchdog = Watchdog::start("trace");
    let traces = whole_traces();
    let is_cut = |it: &Entry| matches!(it, Entry::Polled { action: Some(Action::Cut { .. }), .. });
    let entries = traces.into_iter().find(|it| it.iter().any(is_cut)).unwrap();
    let cut = entries.iter().position(is_cut).unwrap();

    let mut other = entries.clone();
    let Entry::Polled { action: Some(Action::Cut { epoch, .. }), .. } = &mut other[cut] else {
        unreachable!()
    };
    *epoch += 1;
    assert_eq!(replay(other).unwrap_err().at, cut);

    // The subscription has never answered: nothing is cut to.
    let mut shorter = entries.clone();
    shorter.retain(|it| !matches!(it, Entry::Event(Event::Answered { .. })));
    assert!(replay(shorter).is_err());

    let error = replay(entries[1..].to_vec()).unwrap_err();
    assert_eq!(error.to_string(), "entry 0: the trace does not begin with Begun");
    assert!(replay([]).is_err());
}
