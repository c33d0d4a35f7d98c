//! A laboratory as a process, watched from outside.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;

/// A laboratory that runs.
pub(crate) struct Lab {
    pub(crate) process: Child,
    json: PathBuf,
}

impl Lab {
    /// Starts one with these words, and with these variables beside those that it inherits. `name` is of one test.
    pub(crate) fn start(name: &str, words: &str, variables: &[(&str, &OsStr)]) -> Self {
        let json = format!("tsuji-lab-running-{}-{name}.json", std::process::id());
        let json = std::env::temp_dir().join(json);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsuji-lab"));
        command.args(words.split_whitespace()).arg("--json").arg(&json).stdout(Stdio::null());
        command.envs(variables.iter().copied());
        Self { process: command.spawn().unwrap(), json }
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
            assert_eq!(self.process.try_wait().unwrap(), None, "the laboratory has ended");
            if let Some(process) = self.processes(word).pop() {
                return process;
            }
            std::thread::yield_now();
        }
    }

    /// One that sends, once it is past its warm-up.
    pub(crate) fn busy(&mut self, word: &str) -> String {
        let process = self.process(word);
        wait_for_turns(&process, 2000);
        process
    }

    /// Waits for its end, and reads what it wrote.
    pub(crate) fn end(mut self) -> (ExitStatus, Value) {
        let status = self.process.wait().unwrap();
        let value = serde_json::from_str(&fs::read_to_string(&self.json).unwrap()).unwrap();
        assert_eq!(self.processes(""), Vec::<String>::new());
        assert!(!self.folder().exists());
        (status, value)
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
    while slept(process) < turns {
        std::thread::yield_now();
    }
}

/// How often that thread has gone to sleep.
pub(crate) fn slept(process: &str) -> u32 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// Sends it a signal, as `kill` names it.
pub(crate) fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().unwrap().success());
}

/// More than any test waits for, each transport having its turn after 4000.
pub(crate) const ENDLESS: &str = "--count 40000 --blocks 10";

/// The list in that field.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a Vec<Value> {
    value[field].as_array().unwrap()
}
