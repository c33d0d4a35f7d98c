//! rclcpp beside tsuji: nodes of another program, on each middleware that the sourced ROS 2 has.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;

use crate::budgets::Run;
use crate::crew::{Child, Program, Stage, Stop};
use crate::route;
use crate::transport::RCLCPP;

/// rclcpp on this machine.
#[derive(Debug)]
pub(crate) struct Rclcpp {
    /// Its nodes, in `peers/rclcpp`.
    nodes: Program,
    /// The middlewares that are installed.
    middlewares: Vec<String>,
}

impl Rclcpp {
    /// Looks for the nodes beside `own`, and for a ROS 2 that is sourced. An error says what is missing and what brings it.
    pub(crate) fn find(own: &Program) -> Result<Self, String> {
        let nodes = own.peer(NODES).ok_or_else(|| {
            format!(
                "not built: {NODES} is neither beside the laboratory nor in the folders of {}; scripts/rclcpp builds it",
                Program::PEERS
            )
        })?;
        let prefixes = prefixes()?;
        let middlewares = installed(&prefixes);
        if middlewares.is_empty() {
            let prefixes = prefixes.display();
            return Err(format!("no middleware is installed in {prefixes} ({PREFIXES})"));
        }
        Ok(Self { nodes, middlewares })
    }

    /// Starts a node on each middleware. One that cannot be loaded is skipped.
    pub(crate) fn present(&self, run: &mut Run<'_, '_>) -> Result<Vec<Middleware>, Stop> {
        let mut present = Vec::new();
        for (at, name) in self.middlewares.iter().enumerate() {
            run.screen.progress(&format!("{RCLCPP}:{name}: starting"));
            match self.start(run.stage, at, name) {
                Ok(middleware) => present.push(middleware),
                Err(Stop::Failed(why)) => {
                    run.report.skipped(run.screen, &format!("{RCLCPP}:{name}"), &why)
                }
                Err(stop) => return Err(stop),
            }
        }
        Ok(present)
    }

    fn start(&self, stage: &Stage, at: usize, name: &str) -> Result<Middleware, Stop> {
        let folder = stage.folder();
        let (range, of_this_host) = range_of_this_host();
        let domain = route::rclcpp_domain(folder, at).to_string();
        let nodes = self.nodes.clone().with_variable("RMW_IMPLEMENTATION", name);
        let nodes = nodes.with_variable("ROS_DOMAIN_ID", domain).with_variable(range, of_this_host);
        let nodes = nodes.with_variable("ROS_LOG_DIR", folder.join(RCLCPP));
        // Without it no subscription of Humble is lent anything.
        let nodes = nodes.with_variable("ROS_DISABLE_LOANED_MESSAGES", "0");
        let stage = stage.with_program(nodes);
        let answer = Child::start_with(&stage, ["--presence", "{}"])?.answer()?;
        let loaded = answer["name"].as_str().unwrap_or_default();
        if loaded != name {
            return Err(format!("this ROS 2 loads {loaded} in its place").into());
        }
        let lends = answer["lends"].as_bool().unwrap_or_default();
        Ok(Middleware { name: name.to_owned(), lends, stage })
    }
}

/// The program of the nodes.
const NODES: &str = "tsuji-lab-rclcpp";

/// The variable with the folders of the ROS 2 that is sourced.
const PREFIXES: &str = "AMENT_PREFIX_PATH";

/// The folders of the ROS 2 that is sourced. An error says that none is.
pub(crate) fn prefixes() -> Result<OsString, String> {
    env::var_os(PREFIXES).filter(|it| !it.is_empty()).ok_or_else(|| {
        format!(
            "no ROS 2 is sourced: {PREFIXES} is not set; first, for example: source /opt/ros/humble/setup.bash"
        )
    })
}

/// What keeps nodes of that ROS 2 to this host: the variable of Humble and before, or that of later ones, and its value.
pub(crate) fn range_of_this_host() -> (&'static str, &'static str) {
    match env::var("ROS_DISTRO").is_ok_and(|it| it.as_str() <= "humble") {
        true => ("ROS_LOCALHOST_ONLY", "1"),
        false => ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST"),
    }
}

/// The middlewares that are registered in any of these folders, each once.
fn installed(prefixes: &OsStr) -> Vec<String> {
    let index = "share/ament_index/resource_index/rmw_typesupport";
    let files = env::split_paths(prefixes)
        .flat_map(|it| fs::read_dir(it.join(index)).into_iter().flatten().flatten());
    let names = files.filter_map(|it| it.file_name().into_string().ok());
    let names: BTreeSet<_> = names.filter(|it| it != LEADS_ON).collect();
    names.into_iter().collect()
}

/// What is registered beside them and only leads on to one of them.
const LEADS_ON: &str = "rmw_implementation";

/// One that rclcpp has loaded.
#[derive(Debug)]
pub(crate) struct Middleware {
    /// As `RMW_IMPLEMENTATION` names it.
    pub(crate) name: String,
    /// It lends messages of a fixed size, to both ends.
    pub(crate) lends: bool,
    /// Its children are nodes on it, in a domain of their own.
    pub(crate) stage: Stage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_registered_twice_is_one_middleware() {
        let folder = env::temp_dir().join(format!("tsuji-lab-rclcpp-{}", std::process::id()));
        let mut prefixes = Vec::new();
        for (prefix, names) in [
            ("near", &["rmw_b"][..]),
            ("far", &["rmw_b", "rmw_a", "rmw_implementation"]),
            ("no", &[]),
        ] {
            let index = folder.join(prefix).join("share/ament_index/resource_index");
            fs::create_dir_all(index.join("rmw_typesupport")).unwrap();
            fs::create_dir_all(index.join("packages")).unwrap();
            fs::write(index.join("packages/rclcpp"), "").unwrap();
            for name in names {
                fs::write(index.join("rmw_typesupport").join(name), "").unwrap();
            }
            prefixes.push(folder.join(prefix));
        }
        prefixes.push(folder.join("missing"));
        let prefixes = env::join_paths(prefixes).unwrap();
        assert_eq!(installed(&prefixes), ["rmw_a", "rmw_b"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
