//! A laboratory as a process, watched from outside.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tsuji_platform::child::{self, Signal};
use tsuji_platform::subprocess::Subprocess;

/// A laboratory that runs. Killed when dropped; its processes end with it.
pub(crate) struct Lab {
    pub(crate) process: Subprocess,
    json: PathBuf,
}

impl Lab {
    /// Starts one with these words, and with these variables beside those that it inherits. `name` is of one test.
    pub(crate) fn start(name: &str, words: &str, variables: &[(&str, &OsStr)]) -> Self {
        Self::start_with(name, words, variables, Stdio::null())
    }

    /// The same, and what it prints is to be read.
    pub(crate) fn start_read(name: &str, words: &str) -> Self {
        Self::start_with(name, words, &[], Stdio::piped())
    }

    fn start_with(name: &str, words: &str, variables: &[(&str, &OsStr)], out: Stdio) -> Self {
        let json = format!("tsuji-lab-running-{}-{name}.json", std::process::id());
        let json = std::env::temp_dir().join(json);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsuji-lab"));
        command.args(words.split_whitespace()).arg("--json").arg(&json).stdout(out);
        command.envs(variables.iter().copied());
        Self { process: Subprocess::start(&mut command, Duration::ZERO).unwrap(), json }
    }

    /// The folder of the run.
    pub(crate) fn folder(&self) -> PathBuf {
        std::env::temp_dir().join(format!("tsuji-lab-{}-0", self.process.id()))
    }

    /// Its processes whose words contain `word`.
    pub(crate) fn processes(&self, word: &str) -> Vec<String> {
        // All of them have it in their environment.
        let folder = self.folder().into_os_string().into_string().unwrap();
        let has = |path: PathBuf, text: &str| {
            String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).contains(text)
        };
        let processes = fs::read_dir("/proc").unwrap().flatten().filter(|it| {
            has(it.path().join("environ"), &folder) && has(it.path().join("cmdline"), word)
        });
        processes.map(|it| it.file_name().into_string().unwrap()).collect()
    }

    /// One such process, once it is there.
    pub(crate) fn process(&mut self, word: &str) -> String {
        loop {
            self.is_running();
            if let Some(process) = self.processes(word).pop() {
                return process;
            }
            std::thread::yield_now();
        }
    }

    /// The process that plays `role`, once it is there.
    pub(crate) fn role(&mut self, role: &str) -> String {
        self.process(&format!("\"role\":\"{role}\""))
    }

    #[track_caller]
    pub(crate) fn is_running(&mut self) {
        assert_eq!(self.process.try_wait().unwrap(), None, "the laboratory has ended");
    }

    /// One that sends, once it is past its warm-up.
    pub(crate) fn busy(&mut self, word: &str) -> String {
        let process = self.process(word);
        wait_for_turns(&process, 2000);
        process
    }

    /// Presses Ctrl-C, and waits for its end.
    pub(crate) fn interrupt(self) -> Value {
        assert!(self.process.signal(Signal::Interrupt));
        let (status, value) = self.end();
        assert_eq!(status.code(), Some(130), "{value}");
        value
    }

    /// Waits for its end, and reads what it wrote.
    pub(crate) fn end(mut self) -> (ExitStatus, Value) {
        let status = self.process.wait().unwrap();
        let value = serde_json::from_str(&fs::read_to_string(&self.json).unwrap()).unwrap();
        assert_eq!(self.processes(""), Vec::<String>::new());
        assert!(!self.folder().exists());
        (status, value)
    }

    /// Kills it, and waits until none of its processes is there.
    pub(crate) fn kill(mut self) {
        self.process.kill();
        while !self.processes("").is_empty() {
            std::thread::yield_now();
        }
        fs::remove_dir_all(self.folder()).unwrap();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // One that was killed leaves it too.
        let _ = fs::remove_file(&self.json);
    }
}

/// Waits until the first thread of `process` has gone to sleep so often, as it does twice a picture.
pub(crate) fn wait_for_turns(process: &str, turns: u32) {
    let thread = Path::new("/proc").join(process);
    while slept(&thread) < turns {
        assert!(thread.exists(), "the process has ended");
        std::thread::yield_now();
    }
}

/// How often a thread has slept, by its folder in `/proc`; one that has ended, never.
pub(crate) fn slept(thread: &Path) -> u32 {
    let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
    line.map_or(0, |it| it.trim().parse().unwrap())
}

/// Kills a process, by its number.
pub(crate) fn kill(process: &str) {
    assert!(child::tell(process.parse().unwrap(), Signal::Kill));
}

/// More than any test waits for, each transport having its turn after 4000.
pub(crate) const ENDLESS: &str = "--count 40000 --blocks 10";

/// The list in that field.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a Vec<Value> {
    value[field].as_array().unwrap()
}

/// What is said of why it is absent, or of why it was skipped.
pub(crate) fn told<'a>(value: &'a Value, field: &str, what: &str) -> Option<&'a str> {
    let told = list(value, field).iter().find(|it| it["what"] == what)?;
    told["why"].as_str()
}

/// Six samples of a case came whole by a transport, and stand beside tsuji's without a verdict.
pub(crate) fn check_pattern(value: &Value, case: &str, transport: &str) {
    let is_meant = |it: &&Value| it["case"] == case && it["transport"] == transport;
    let row = list(value, "rows").iter().find(is_meant);
    let row = row.unwrap_or_else(|| panic!("{case} by {transport}: {value}"));
    assert_eq!((&row["count"], &row["lost"]), (&6.into(), &0.into()), "{row}");
    assert!(0.0 < row["median_us"].as_f64().unwrap(), "{row}");
    let is_meant = |it: &&Value| {
        let of = it["of"].as_str().unwrap();
        it["what"] == format!("{case} median") && of.ends_with(&format!(" / {transport}"))
    };
    let ratio = list(value, "ratios").iter().find(is_meant).unwrap();
    assert!(ratio["figure"].is_f64() && ratio["verdict"].is_null(), "{ratio}");
}

/// The beat of the article by these transports, of which nothing is lost but what came before the subscription.
pub(crate) fn check_beat(transports: &[&str]) {
    let words = "jitter --count 300 --blocks 2 --cases jitter";
    let (status, value) = Lab::start("beat", words, &[]).end();
    assert_eq!(status.code(), Some(0), "{value}");
    let rows = list(&value["tables"][0], "rows");
    for transport in transports {
        let row = rows.iter().find(|it| it[0] == *transport);
        let row = row.unwrap_or_else(|| panic!("{transport}: {value}"));
        let [published, before, received, lost] = [2, 3, 4, 6].map(|at| row[at].as_f64().unwrap());
        assert!(published == 300.0 && row[5].is_null() && 0.0 < received, "{row}");
        // Its queues keep ten, and do not tell what they let go while the machine does other things.
        assert_eq!(before + received + lost, 300.0, "{row}");
        let series = list(&value, "series");
        assert!(series.iter().any(|it| it["of"] == *transport && it["what"] == "transmit"));
    }
}

/// A node of `transport` is killed, and that ends its case alone.
pub(crate) fn check_death_of_a_node(transport: &str) {
    let mut lab = Lab::start("killed", &format!("latency {ENDLESS} --cases one_node"), &[]);
    let node = lab.busy(&format!("\"transport\":\"{transport}\""));
    kill(&node);
    let _next = lab.busy(&format!("\"transport\":\"{transport}-pointer\""));
    let value = lab.interrupt();
    // Beside what an interrupted run did not come to.
    let what: Vec<_> = list(&value, "skipped").iter().map(|it| it["what"].as_str()).collect();
    assert_eq!(what, [Some("one_node"), Some("the rest")], "{value}");
    assert!(told(&value, "skipped", "one_node").unwrap().contains("signal: 9"), "{value}");
}
