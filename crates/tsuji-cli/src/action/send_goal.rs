//! `tsuji action send-goal`.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;
use tsuji::action::{GoalId, GoalStatus};
use tsuji::{RawClient, RawSubscription, RawType, WaitList, Waitable};
use tsuji_core::Qos;
use tsuji_interfaces::action_msgs::msg::GoalInfo;
use tsuji_interfaces::action_msgs::srv::{CancelGoal, CancelGoalRequest, CancelGoalResponse};
use tsuji_interfaces::unique_identifier_msgs::msg::UUID;
use tsuji_msg::{ActionDescription, DynamicMessage, EchoStyle, List, ServiceDescription, Value};
use tsuji_platform::process;

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
    let id = GoalId(process::random_token()?);
    let session = Session::open(globals)?;
    let asker = Asker::new(args, &session, &ty, id)?;
    let accepted = match asker.send(&goal, out) {
        // Ctrl-C, before anybody has decided.
        Err(_) if !session.context.is_ok() => return Ok(()),
        sent => sent?,
    };
    if !accepted {
        anyhow::bail!("Goal was rejected");
    }
    match asker.follow(out) {
        Err(_) if !session.context.is_ok() => {}
        followed => return followed,
    }
    drop(asker);
    drop(session);
    cancel(args, globals, id, out)
}

/// Asks for a goal and hears of it.
struct Asker<'a> {
    args: &'a Args,
    session: &'a Session,
    ty: &'a ActionDescription,
    id: GoalId,
    send_goal: RawClient,
    get_result: RawClient,
    feedback: Option<RawSubscription>,
}

impl<'a> Asker<'a> {
    fn new(
        args: &'a Args,
        session: &'a Session,
        ty: &'a ActionDescription,
        id: GoalId,
    ) -> anyhow::Result<Self> {
        let node = session.hidden_node()?;
        let part = |part: &str| format!("{}/_action/{part}", args.action);
        let of =
            |it: &ServiceDescription| RawType { name: it.name.to_string(), hash: it.hash.clone() };
        let message = &ty.feedback_message;
        let heard = RawType { name: message.name().to_string(), hash: message.hash().to_owned() };
        let feedback =
            || node.create_polled_raw_subscription(&part("feedback"), heard, Qos::DEFAULT);
        Ok(Self {
            args,
            session,
            ty,
            id,
            send_goal: node.create_raw_client(part("send_goal"), of(&ty.send_goal))?,
            get_result: node.create_raw_client(part("get_result"), of(&ty.get_result))?,
            feedback: args.feedback.then(feedback).transpose()?,
        })
    }

    /// Sends the goal to the one server. Answers whether it is accepted.
    fn send(&self, goal: &DynamicMessage, out: &mut Output) -> anyhow::Result<bool> {
        let began = Instant::now();
        let left = || self.args.timeout.map_or(A_WHILE, |it| it.saturating_sub(began.elapsed()));
        self.say("Waiting for an action server to become available...", out)?;
        let told =
            |error| told_within(error, &self.send_goal, &self.args.action, self.args.timeout);
        self.send_goal.wait_for_service(left()).map_err(told)?;
        self.get_result.wait_for_service(left()).map_err(told)?;
        if let Some(feedback) = &self.feedback {
            let whole = self.args.timeout.unwrap_or(A_WHILE);
            feedback.wait_for_publishers(1, left()).map_err(|error| error.of_whole(whole))?;
        }
        // Of two servers one may be ready before the other.
        let known = super::actions(&self.session.graph()).remove(&self.args.action);
        let servers = self.send_goal.servers().max(known.map_or(0, |it| it.servers.len()));
        if 1 < servers {
            anyhow::bail!(
                "send a goal to {}: {servers} servers are there; allowed: one",
                self.args.action
            );
        }
        self.say(&format!("Sending goal:\n     {}", goal.to_yaml(EchoStyle::default())), out)?;
        let mut request = self.request(&self.ty.send_goal)?;
        request.set("goal", Value::Message(goal.clone()))?;
        let reply = self.send_goal.call_bytes(&request.encode()?, left()).map_err(told)?;
        let response = DynamicMessage::decode(&self.ty.send_goal.response, &reply)?;
        let is_accepted = *response.get("accepted")? == Value::Bool(true);
        if is_accepted {
            self.say(&format!("Goal accepted with ID: {}\n", self.hex_id()), out)?;
        }
        Ok(is_accepted)
    }

    /// Prints feedback until there is a result, and that.
    fn follow(&self, out: &mut Output) -> anyhow::Result<()> {
        self.get_result.post_bytes(&self.request(&self.ty.get_result)?.encode()?)?;
        let mut list = WaitList::new(&self.session.context)?;
        let mut sources: Vec<&dyn Waitable> = vec![&self.get_result];
        sources.extend(self.feedback.as_ref().map(|it| it as &dyn Waitable));
        loop {
            list.wait(&sources, Some(LOOK_AGAIN))?;
            let result = self.get_result.take_bytes()?;
            self.print_feedback(out)?;
            if let Some((_, result)) = result {
                return self.print_result(&result.bytes, out);
            }
            if !self.get_result.is_ready() {
                anyhow::bail!("the server of {} left before it had a result", self.args.action);
            }
        }
    }

    fn print_feedback(&self, out: &mut Output) -> anyhow::Result<()> {
        let Some(feedback) = &self.feedback else { return Ok(()) };
        while let Some(sample) = feedback.take_bytes()? {
            let message = DynamicMessage::decode(&self.ty.feedback_message, &sample.bytes)?;
            if *message.get("goal_id.uuid")? != self.uuid() {
                continue;
            }
            let Value::Message(feedback) = message.get("feedback")?.into_owned() else { continue };
            match self.args.json {
                true => out.line(json!({ "feedback": feedback.to_json(Default::default()) }))?,
                false => out.lines(format_args!(
                    "Feedback:\n    {}",
                    feedback.to_yaml(EchoStyle::default())
                ))?,
            }
        }
        Ok(out.flush()?)
    }

    fn print_result(&self, reply: &[u8], out: &mut Output) -> anyhow::Result<()> {
        let response = DynamicMessage::decode(&self.ty.get_result.response, reply)?;
        let number = match *response.get("status")? {
            Value::I8(number) => number,
            _ => 0,
        };
        let status = GoalStatus::from_number(number);
        let word = status.to_string().to_uppercase();
        if let Value::Message(result) = response.get("result")?.into_owned() {
            match self.args.json {
                true => {
                    let result = result.to_json(Default::default());
                    out.line(json!({ "status": word, "result": result }))?;
                }
                false => {
                    out.lines(format_args!(
                        "Result:\n    {}",
                        result.to_yaml(EchoStyle::default())
                    ))?;
                    out.line(format_args!("Goal finished with status: {word}"))?;
                }
            }
        }
        if status == GoalStatus::Succeeded { Ok(()) } else { Err(Told(1).into()) }
    }

    /// A request about the goal.
    fn request(&self, service: &ServiceDescription) -> anyhow::Result<DynamicMessage> {
        let mut request = DynamicMessage::new(service.request.clone());
        request.set("goal_id.uuid", self.uuid())?;
        Ok(request)
    }

    fn uuid(&self) -> Value {
        Value::List(List::U8(self.id.0.to_vec()))
    }

    fn hex_id(&self) -> String {
        self.id.0.iter().map(|byte| format!("{byte:02x}")).collect()
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

/// Asks for the goal to be given up, after Ctrl-C has ended the first session.
fn cancel(args: &Args, globals: &Globals, id: GoalId, out: &mut Output) -> anyhow::Result<()> {
    if !args.json {
        out.line("Canceling goal...")?;
        out.flush()?;
    }
    let session = Session::open(globals)?;
    let name = format!("{}/_action/cancel_goal", args.action);
    let client = session.hidden_node()?.create_client::<CancelGoal>(&name)?;
    let goal_info = GoalInfo { goal_id: UUID { uuid: id.0 }, ..GoalInfo::default() };
    let response = client.call(CancelGoalRequest { goal_info }, CANCEL_WITHIN)?;
    match response.return_code {
        CancelGoalResponse::ERROR_NONE if !args.json => out.line("Goal canceled.")?,
        CancelGoalResponse::ERROR_NONE => {}
        CancelGoalResponse::ERROR_GOAL_TERMINATED => anyhow::bail!("the goal had ended already"),
        CancelGoalResponse::ERROR_UNKNOWN_GOAL_ID => {
            anyhow::bail!("the server does not know the goal")
        }
        _ => anyhow::bail!("the server does not give the goal up"),
    }
    Err(Told(1).into())
}
