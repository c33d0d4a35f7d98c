//! Where the master is, and what this process is called there.

use std::env;
use std::fs;
use std::path::Path;

use tsuji_engine_abi::Asked;
use tsuji_ros1::mapping::Mapping;
use tsuji_ros1::uri::{MASTER_DEFAULT, Uri};
use tsuji_transport::{Error, ErrorKind, Result};

/// What is taken of the environment, as nodes of ROS 1 have it.
const MASTER: &str = "ROS_MASTER_URI";
const IP: &str = "ROS_IP";
const HOSTNAME: &str = "ROS_HOSTNAME";

/// A mapping file longer than this is refused.
const MAPPING_BYTES_MAX: u64 = 1 << 20;

/// Where the master is, and what others call this host.
#[derive(Clone, Debug)]
pub struct Ros1Config {
    /// The address of the master. Default `http://localhost:11311`.
    pub master: Uri,
    /// The name or address under which others reach this host. Default the address of loopback where the master is on it, else the
    /// address by which this host reaches the master.
    pub host: Option<String>,
    /// Which types are which.
    pub mapping: Mapping,
}

impl Ros1Config {
    /// Creates the configuration of a master, with everything else by default.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if that is no address of a master.
    pub fn new(master: &str) -> Result<Self> {
        let refused = |why: &str| {
            let line =
                format!("{master:?} is no address of a master{why}; allowed: http://HOST:PORT");
            Error::new(ErrorKind::Invalid, "join ROS 1").about(line)
        };
        let uri: Uri = master.parse().map_err(|error| refused(&format!(" ({error})")))?;
        if uri.scheme != "http" {
            return Err(refused(""));
        }
        Ok(Self { master: uri, host: None, mapping: Mapping::builtin() })
    }

    /// Reads what is asked for: settings of the policy, then the variables of ROS 1.
    pub(crate) fn read(asked: &Asked) -> Result<Self> {
        Self::read_with(&asked.settings, |name| env::var(name).ok().filter(|it| !it.is_empty()))
    }

    fn read_with(
        settings: &[(String, String)],
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let invalid = |line: String| Error::new(ErrorKind::Invalid, "join ROS 1").about(line);
        let (mut master, mut host, mut files) = (None, None, Vec::new());
        for (key, value) in settings {
            match key.as_str() {
                "master" => master = Some(value.clone()),
                "host" => host = Some(value.clone()),
                "mapping" => files.push(value),
                _ => {
                    let line = format!("{key:?} is no setting; allowed: master, host, mapping");
                    return Err(invalid(line));
                }
            }
        }
        let master = master.or_else(|| variable(MASTER));
        let mut config = Self::new(master.as_deref().unwrap_or(MASTER_DEFAULT))?;
        config.host = host.or_else(|| variable(HOSTNAME)).or_else(|| variable(IP));
        for file in files {
            let text = read_mapping(file).map_err(|why| invalid(format!("{file}: {why}")))?;
            config.mapping.add(file, &text).map_err(|error| invalid(error.to_string()))?;
        }
        Ok(config)
    }
}

fn read_mapping(file: &str) -> std::result::Result<String, String> {
    if !Path::new(file).is_absolute() {
        return Err("a relative path; allowed: one from the root".to_owned());
    }
    let length = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if MAPPING_BYTES_MAX < length {
        return Err(format!("{length} bytes; at most {MAPPING_BYTES_MAX}"));
    }
    fs::read_to_string(file).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<Ros1Config> {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let settings: Vec<_> = settings.collect();
        Ros1Config::read_with(&settings, |name| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn settings_win_over_variables_and_variables_over_defaults() {
        let it = read(&[], &[]).unwrap();
        assert_eq!((it.master.host.as_str(), it.master.port, it.host), ("localhost", 11311, None));
        let variables = [(MASTER, "http://robot:11312/"), (IP, "10.0.0.1"), (HOSTNAME, "desk")];
        let it = read(&[], &variables).unwrap();
        assert_eq!((it.master.host.as_str(), it.master.port), ("robot", 11312));
        assert_eq!(it.host.as_deref(), Some("desk"));
        let it = read(&[("master", "http://other:1"), ("host", "me")], &variables).unwrap();
        assert_eq!((it.master.host.as_str(), it.host.as_deref()), ("other", Some("me")));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_allowed() {
        let told = |settings| read(settings, &[]).unwrap_err().to_string();
        assert!(told(&[("master", "robot")]).contains("allowed: http://HOST:PORT"));
        assert!(told(&[("master", "rosrpc://robot:1")]).contains("allowed: http://HOST:PORT"));
        assert!(told(&[("port", "1")]).contains("\"port\" is no setting; allowed: master, host"));
        assert!(told(&[("mapping", "types.yaml")]).contains("allowed: one from the root"));
        assert!(told(&[("mapping", "/nowhere/types.yaml")]).contains("No such file"));
    }
}
