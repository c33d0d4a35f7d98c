//! A machine for launch files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tsuji_launch::World;

/// Files and variables of a machine that is not there.
#[derive(Clone, Default)]
pub(crate) struct Machine {
    pub(crate) files: BTreeMap<PathBuf, String>,
    pub(crate) variables: BTreeMap<String, OsString>,
}

impl World for Machine {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let text = self.files.get(path).ok_or_else(|| "no such file".to_owned())?;
        Ok(text.clone().into_bytes())
    }

    fn is_file(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    fn is_executable(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(|it| it == "program")
    }

    fn files(&self, folder: &Path) -> Vec<String> {
        let inside = self.files.keys().filter(|it| it.parent() == Some(folder));
        inside.filter_map(|it| Some(it.file_name()?.to_str()?.to_owned())).collect()
    }

    fn log_folder(&self) -> Result<PathBuf, String> {
        Ok("/logs/launch-1".into())
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
    }

    fn token(&self) -> String {
        "7".to_owned()
    }
}

pub(crate) fn machine() -> Machine {
    let mut machine = Machine::default();
    for program in [
        "/ros/lib/demo/talker",
        "/ros/lib/demo/container",
        "/bin/gdb",
        "/robot/../bin/gdb",
        "/robot/camera",
    ] {
        machine.files.insert(program.into(), "program".to_owned());
    }
    let index = "/ros/share/ament_index/resource_index/packages/demo";
    machine.files.insert(index.into(), String::new());
    machine.files.insert("/robot/p.yaml".into(), String::new());
    machine.variables.insert("AMENT_PREFIX_PATH".into(), "/none:/ros".into());
    machine.variables.insert("PATH".into(), "/sbin:/bin".into());
    machine.files.insert("/robot/words.txt".into(), "one\r\ntwo\n".to_owned());
    machine.variables.insert("ROBOT".into(), "arm".into());
    machine.variables.insert("HOME".into(), "/users/arm".into());
    machine
}
