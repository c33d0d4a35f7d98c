//! What a process has more after a step than before it: threads and resident memory, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use tsuji_platform::process;

/// Steps that are measured now, in this process, and how many there have been.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// A step that is being measured.
#[derive(Debug)]
pub(crate) struct Gauge {
    threads: BTreeMap<u32, String>,
    resident_bytes: u64,
    /// How many had begun with this one; 0 where another was under way.
    begun: usize,
    /// What this thread is called.
    own_name: Option<String>,
}

/// What there is more since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growth {
    threads: Vec<u32>,
    pub(crate) ended_threads: usize,
    pub(crate) resident_bytes: i64,
    /// Another step was under way at the same time, and is in it too.
    pub(crate) is_shared: bool,
}

impl Gauge {
    pub(crate) fn begin() -> Self {
        let is_alone = UNDER_WAY.fetch_add(1, Ordering::AcqRel) == 0;
        let begun = BEGUN.fetch_add(1, Ordering::AcqRel) + 1;
        let begun = if is_alone { begun } else { 0 };
        let (threads, resident_bytes) = (threads(), process::resident_bytes().unwrap_or(0));
        Self { threads, resident_bytes, begun, own_name: None }
    }

    /// The same; and this thread is called `name` meanwhile, and so are the threads that it starts unless they
    /// are given a name.
    pub(crate) fn begin_named(name: &str) -> Self {
        let own_name = fs::read_to_string(OWN_NAME).ok().map(|it| it.trim_end().to_owned());
        let gauge = Self::begin();
        // A help for people, no more.
        let _ = fs::write(OWN_NAME, name);
        Self { own_name, ..gauge }
    }

    pub(crate) fn end(self) -> Growth {
        if let Some(name) = &self.own_name {
            let _ = fs::write(OWN_NAME, name);
        }
        let is_shared = self.begun != BEGUN.load(Ordering::Acquire);
        let now = threads();
        let resident = process::resident_bytes().unwrap_or(0);
        UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
        Growth {
            threads: now.keys().filter(|it| !self.threads.contains_key(it)).copied().collect(),
            ended_threads: self.threads.keys().filter(|it| !now.contains_key(it)).count(),
            resident_bytes: resident as i64 - self.resident_bytes as i64,
            is_shared,
        }
    }
}

impl Growth {
    pub(crate) fn add(&mut self, later: Self) {
        self.threads.extend(later.threads);
        self.resident_bytes += later.resident_bytes;
        self.is_shared |= later.is_shared;
    }

    /// The names of those threads that are still there.
    pub(crate) fn names(&self) -> Vec<String> {
        let now = threads();
        let mut names: Vec<String> =
            self.threads.iter().filter_map(|it| now.get(it).cloned()).collect();
        names.sort();
        names
    }
}

const OWN_NAME: &str = "/proc/thread-self/comm";

/// The threads of this process by their numbers, with their names. None where `/proc` is not to be read.
fn threads() -> BTreeMap<u32, String> {
    process::thread_names().unwrap_or_default()
}
