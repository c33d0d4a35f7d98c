//! Commands of `ros2` that tsuji does not have: a line that says what takes their place.

use crate::failure::Usage;

/// What follows the name of such a command, which is not looked at.
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

/// The commands, each with what takes its place.
const PLACES: &[(&str, &str)] = &[
    (
        "daemon",
        "there is no daemon: every command hears what processes are there by itself, and nothing is to be started or stopped",
    ),
    (
        "security",
        "`tsuji security create` makes keystores, enclaves and permissions, and `tsuji security check` lists enclaves and checks them",
    ),
    (
        "test",
        "launch tests are run by `ros2 test` or `launch_test`; `tsuji launch` starts launch files in XML",
    ),
    ("extensions", "tsuji has no extensions in Python; `tsuji --help` lists all commands"),
    ("extension_points", "tsuji has no extensions in Python; `tsuji --help` lists all commands"),
    (
        "plugin",
        "`tsuji component types` lists components; other plug-ins are listed by `ros2 plugin`",
    ),
    (
        "trace",
        "tracing is done by `ros2 trace`; `tsuji routes` and `tsuji topic delay` show where time goes",
    ),
    (
        "control",
        "controllers are managed by `ros2 control`; `tsuji service call` calls the services of a controller manager",
    ),
    (
        "pkg create",
        "tsuji builds no packages; `ros2 pkg create` makes one, and `cargo new` a program for tsuji",
    ),
    (
        "action echo",
        "hidden topics carry what an action says: `tsuji topic echo ACTION/_action/feedback` and `tsuji topic echo ACTION/_action/status`",
    ),
];

/// Refuses a command, such as `daemon` or `pkg create`, with exit code 2. Where the table has nothing for its verb, it is what is said
/// of all verbs.
pub(crate) fn refuse(command: &str) -> anyhow::Result<()> {
    let of = |name: &str| PLACES.iter().find(|(it, _)| *it == name).map(|(_, place)| *place);
    let without_verb = || command.split_once(' ').and_then(|(name, _)| of(name));
    let place = of(command).or_else(without_verb).unwrap_or_default();
    Err(Usage(format!("tsuji has no command `{command}`: {place}")).into())
}
