//! `tsuji action send-goal`.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;
use tsuji::ErrorKind;
use tsuji::action::{ActionClient, CancelOutcome, ClientGoal, DynamicAction, GoalId, GoalStatus};
use tsuji_msg::{ActionDescription, DynamicMessage, EchoStyle};

use crate::completions;
use crate::failure::{Told, Usage};
use crate::interfaces::Interfaces;
use crate::output::Output;
use crate::service::{full_name, told_within};
use crate::session::{A_WHILE, Globals, LOOK_AGAIN, Session};
use crate::topic::publish::now;
use crate::topic::seconds;

/// How long a server has to say that it gives a goal up.
const CANCEL_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The action
    #[arg(value_name = "ACTION", value_parser = full_name, add = completions::actions())]
    action: String,
    /// The type, such as example_interfaces/action/Fibonacci
    #[arg(value_name = "TYPE", add = completions::action_types())]
    type_name: String,
    /// The goal, in YAML
    #[arg(
        value_name = "GOAL",
        default_value = "{}",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    goal: String,
    /// Take the goal from standard input, which is read to its end
    #[arg(long, conflicts_with = "goal")]
    stdin: bool,
    /// Print what the server says meanwhile
    #[arg(short, long)]
    feedback: bool,
    /// Give up after so many seconds if no server has decided by then
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Print one line of JSON for each feedback and one for the result, and nothing else
    #[arg(long)]
    json: bool,
}

/// Ends with exit code 1 if the goal is not reached.
pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let interfaces = Interfaces::from_environment();
    let ty = interfaces.action(&args.type_name)?;
    let said = crate::topic::publish::said(&args.goal, args.stdin)?;
    let goal = DynamicMessage::from_yaml_at(&ty.goal, &said, now())
        .map_err(|error| Usage(format!("the goal is no {}: {error}", ty.goal.name())))?;
    let session = Session::open(globals)?;
    let asker = Asker::new(args, &session, &ty)?;
    let accepted = match asker.send(goal, out) {
        // Ctrl-C, before anybody has decided.
        Err(_) if !session.context.is_ok() => return Ok(()),
        sent => sent?,
    };
    let Some(goal) = accepted else { anyhow::bail!("Goal was rejected") };
    match asker.follow(&goal, out) {
        Err(_) if !session.context.is_ok() => {}
        followed => return followed,
    }
    let id = goal.id();
    drop((goal, asker, session));
    cancel(args, globals, &ty, id, out)
}

/// Asks for a goal and hears of it.
struct Asker<'a> {
    args: &'a Args,
    client: ActionClient<DynamicAction>,
}

impl<'a> Asker<'a> {
    fn new(args: &'a Args, session: &Session, ty: &ActionDescription) -> anyhow::Result<Self> {
        let node = session.hidden_node()?;
        let client = node.create_dynamic_action_client(&args.action, ty.clone())?;
        Ok(Self { args, client })
    }

    /// Sends the goal to the one server. `None`: it is not accepted.
    fn send(
        &self,
        goal: DynamicMessage,
        out: &mut Output,
    ) -> anyhow::Result<Option<ClientGoal<DynamicAction>>> {
        let (began, whole) = (Instant::now(), self.args.timeout.unwrap_or(A_WHILE));
        let left = || whole.saturating_sub(began.elapsed());
        self.say("Waiting for an action server to become available...", out)?;
        let obstacles = || self.client.obstacles();
        let told = |error| told_within(error, obstacles, &self.args.action, self.args.timeout);
        self.client.wait_for_server(left()).map_err(told)?;
        self.say(&format!("Sending goal:\n     {}", goal.to_yaml(EchoStyle::default())), out)?;
        let goal = self.client.send_goal(goal, left()).map_err(told)?;
        if let Some(goal) = &goal {
            self.say(&format!("Goal accepted with ID: {}\n", hex(goal.id())), out)?;
        }
        Ok(goal)
    }

    /// Prints feedback until there is a result, and that.
    fn follow(&self, goal: &ClientGoal<DynamicAction>, out: &mut Output) -> anyhow::Result<()> {
        let left =
            || anyhow::anyhow!("the server of {} left before it had a result", self.args.action);
        loop {
            match goal.next_feedback(LOOK_AGAIN) {
                Ok(Some(feedback)) if self.args.feedback => self.print_feedback(&feedback, out)?,
                Ok(Some(_)) => (),
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::Timeout => (),
                Err(error) if error.kind() == ErrorKind::ServerLost => return Err(left()),
                Err(error) => return Err(error.into()),
            }
        }
        match goal.result(A_WHILE) {
            Ok((status, result)) => self.print_result(status, &result, out),
            Err(error) if error.kind() == ErrorKind::ServerLost => Err(left()),
            Err(error) => Err(error.into()),
        }
    }

    fn print_feedback(&self, feedback: &DynamicMessage, out: &mut Output) -> anyhow::Result<()> {
        match self.args.json {
            true => out.line(json!({ "feedback": feedback.to_json(Default::default()) }))?,
            false => {
                let feedback = feedback.to_yaml(EchoStyle::default());
                out.lines(format_args!("Feedback:\n    {feedback}"))?;
            }
        }
        Ok(out.flush()?)
    }

    fn print_result(
        &self,
        status: GoalStatus,
        result: &DynamicMessage,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let word = status.to_string().to_uppercase();
        match self.args.json {
            true => {
                let result = result.to_json(Default::default());
                out.line(json!({ "status": word, "result": result }))?;
            }
            false => {
                let result = result.to_yaml(EchoStyle::default());
                out.lines(format_args!("Result:\n    {result}"))?;
                out.line(format_args!("Goal finished with status: {word}"))?;
            }
        }
        if status == GoalStatus::Succeeded { Ok(()) } else { Err(Told(1).into()) }
    }

    /// Says how it stands, in the words of `ros2`, where not only JSON is wanted.
    fn say(&self, text: &str, out: &mut Output) -> anyhow::Result<()> {
        if !self.args.json {
            out.lines(text)?;
            out.flush()?;
        }
        Ok(())
    }
}

/// The id of a goal as `ros2` prints it.
fn hex(id: GoalId) -> String {
    id.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Asks for the goal to be given up, after Ctrl-C has ended the first session.
fn cancel(
    args: &Args,
    globals: &Globals,
    ty: &ActionDescription,
    id: GoalId,
    out: &mut Output,
) -> anyhow::Result<()> {
    if !args.json {
        out.line("Canceling goal...")?;
        out.flush()?;
    }
    let session = Session::open(globals)?;
    let client = session.hidden_node()?.create_dynamic_action_client(&args.action, ty.clone())?;
    match client.cancel_goal(id, CANCEL_WITHIN)? {
        CancelOutcome::Canceling if !args.json => out.line("Goal canceled.")?,
        CancelOutcome::Canceling => {}
        CancelOutcome::Ended => anyhow::bail!("the goal had ended already"),
        CancelOutcome::UnknownGoal => anyhow::bail!("the server does not know the goal"),
        CancelOutcome::Rejected => anyhow::bail!("the server does not give the goal up"),
    }
    Err(Told(1).into())
}
