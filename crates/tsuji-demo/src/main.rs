//! A small robot of real processes, and the transport that each of its flows takes.
//!
//! This program uses tsuji as anybody's would; only the fault of one act reaches behind the public API. Started
//! plainly it is the operator, who starts the robot's processes (itself, by a role), does this and that
//! to them, so that flows change their routes, watches, adds up what was sent and received, and ends them.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::robot::Role;

mod acts;
mod crew;
mod foreign;
mod guide;
mod lock;
mod nodes;
mod operator;
mod orders;
mod page;
mod picture;
mod pilot;
mod robot;
mod screen;
mod sequence;
mod stage;
mod story;
mod summary;
mod tally;
mod world;

fn main() -> ExitCode {
    tsuji_platform::limit::end_file_signal();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match parse(&arguments) {
        Ok(Task::Help) => write!(std::io::stdout(), "{USAGE}").map(|()| true).map_err(Into::into),
        Ok(Task::Run(role)) => robot::run(role).map(|()| true),
        Ok(Task::Operate(settings)) => operator::run(&settings),
        Err(wrong) => {
            print_error(&format!("{wrong}\n\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            print_error(&format!("tsuji-demo: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

/// What goes wrong in this program is shown, not handled.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How the operator shows the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// Drawn over again and again, with the picture.
    InPlace,
    /// A table now and then, one below the other.
    Plain,
    /// One JSON object at the end.
    Json,
}

#[derive(Debug, PartialEq, Eq)]
struct Settings {
    time: Duration,
    show: Show,
    /// It goes on after the acts, until it is interrupted.
    stays: bool,
    /// All nodes are components of one process.
    is_components: bool,
    /// The port of the page; `None` for no page.
    port: Option<u16>,
}

#[derive(Debug, PartialEq, Eq)]
enum Task {
    Help,
    Operate(Settings),
    Run(Role),
}

fn parse(arguments: &[String]) -> std::result::Result<Task, String> {
    let is_terminal = std::io::stdout().is_terminal();
    let show = if is_terminal { Show::InPlace } else { Show::Plain };
    let mut settings = Settings {
        time: TIME_DEFAULT,
        show,
        stays: false,
        is_components: false,
        port: Some(PORT_DEFAULT),
    };
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        match argument {
            "-h" | "--help" => return Ok(Task::Help),
            "--plain" => settings.show = Show::Plain,
            "--json" => settings.show = Show::Json,
            "--stay" => settings.stays = true,
            "--components" => settings.is_components = true,
            "--no-page" => settings.port = None,
            "--port" => {
                let value = arguments.next().unwrap_or_default();
                let port = value.parse();
                settings.port = Some(port.map_err(|_| {
                    format!(
                        "--port {value:?}; allowed: a whole number, 0 (any that is free) to 65535"
                    )
                })?);
            }
            "--seconds" => {
                let value = arguments.next().unwrap_or_default();
                let seconds = value.parse().ok().filter(|it| SECONDS.contains(it));
                settings.time = seconds.map(Duration::from_secs).ok_or_else(|| {
                    let (least, most) = (SECONDS.start(), SECONDS.end());
                    format!("--seconds {value:?}; allowed: a whole number, {least} to {most}")
                })?;
            }
            "--role" => {
                let value = arguments.next().unwrap_or_default();
                let role = Role::ALL.into_iter().find(|it| it.name() == value);
                return role.map(Task::Run).ok_or_else(|| format!("--role {value:?}"));
            }
            other => return Err(format!("{other:?}; allowed: the options below")),
        }
    }
    Ok(Task::Operate(settings))
}

#[expect(clippy::print_stderr, reason = "a program says what went wrong")]
fn print_error(text: &str) {
    eprint!("{text}");
}

const TIME_DEFAULT: Duration = Duration::from_secs(27);
/// As that of a bridge.
const PORT_DEFAULT: u16 = 9090;
const SECONDS: std::ops::RangeInclusive<u64> = 1..=86_400;

const USAGE: &str = "\
A small robot drives round a crossroads: real processes, and the transport that
each of their flows takes. While it drives, flows are made to change their
transports: the policy file is edited, pictures become small, shared memory runs
out, an engine is cut. Its page in a browser shows the same, and changes a
topic's transport by a click.

Usage: tsuji-demo [OPTIONS]        (or: tsuji demo [OPTIONS])

  --seconds N   how long the robot runs, and longer if an act is not over
                [default: 27]; acts that do not fit into it are left out
  --stay        go on after the acts until Ctrl-C
  --components  the same nodes as components of one process: every flow by
                pointer but that to the terminal; no acts
  --port N      the port of the page, or any that is free if it is taken
                [default: 9090]; --no-page for none
  --plain       a line for each change, a table now and then, nothing is drawn
                over; so too on no terminal
  --json        one JSON object at the end and nothing else

Try beside it, in another terminal, with the command that it names:
  tsuji routes --why          tsuji topic echo /odom
  tsuji top                   tsuji param set /driver speed 2.0
  tsuji action send-goal /drive_to tsuji_demo_msgs/action/DriveTo
    '{target: {x: 0, y: 0}}'

Exit code 1 when a sample was lost, doubled or wrong, a process died or an act
had no effect. Ctrl-C ends it early, with a summary. It takes a domain of its
own, over loopback only, so that it steers no other robot. Beside it runs a
foreign ROS 2 node if TSUJI_PEER_ROS2_CLIENT names the program of one.
Environment: TSUJI_POLICY (acts that need another policy are left out then),
TSUJI_INTEROP, TSUJI_WARNINGS, TSUJI_PEER_ROS2_CLIENT, NO_COLOR.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line() {
        let check = |line: &str, expect: std::result::Result<Task, &str>| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            match (parse(&arguments), expect) {
                (Err(got), Err(expect)) => assert!(got.contains(expect), "{got}"),
                (got, expect) => assert_eq!(got.ok(), expect.ok(), "{line}"),
            }
        };
        let settings = |seconds, show| Settings {
            time: Duration::from_secs(seconds),
            show,
            stays: false,
            is_components: false,
            port: Some(9090),
        };
        check("--plain", Ok(Task::Operate(settings(27, Show::Plain))));
        let json = settings(3, Show::Json);
        check("--json --seconds 3 --port 0", Ok(Task::Operate(Settings { port: Some(0), ..json })));
        let components =
            Settings { stays: true, is_components: true, port: None, ..settings(27, Show::Plain) };
        check("--plain --stay --components --no-page", Ok(Task::Operate(components)));
        check("--port 65536", Err("0 (any that is free) to 65535"));
        check("--help", Ok(Task::Help));
        check("--role viewer", Ok(Task::Run(Role::Viewer)));
        check("--seconds", Err("allowed: a whole number"));
        check("--seconds 0", Err("1 to 86400"));
        check("--fast", Err("\"--fast\"; allowed"));
        check("--role cook", Err("cook"));
        assert!(USAGE.lines().all(|line| line.chars().count() <= 80));
    }
}
