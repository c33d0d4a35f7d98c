//! `tsuji topic echo`.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tsuji::{
    EndpointInfo, EndpointKind, Graph, RawType, SubscriptionCounters, SubscriptionOptions,
};
use tsuji_core::{Durability, Qos, Reliability};
use tsuji_msg::{DynamicMessage, Expression, TypeDescription};

use super::listener::Listener;
use crate::completions;
use crate::failure::Usage;
use crate::figures;
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::qos::QosFlags;
use crate::session::{A_WHILE, Globals, Session};

mod part;
mod printer;
pub(crate) use printer::{Printer, Style};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = super::full_name, add = completions::topics())]
    topic: String,
    /// The type, where the topic has several or nobody is there yet
    #[arg(value_name = "TYPE", add = completions::messages())]
    type_name: Option<String>,
    /// Print the first message and end
    #[arg(long)]
    once: bool,
    /// End after so many seconds; without a message by then it is an error
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds, allow_negative_numbers = true)]
    timeout: Option<Duration>,
    /// Print only this part, such as pose.position or poses[0].x; several where it is said again
    #[arg(long, value_name = "PATH")]
    field: Vec<String>,
    #[command(flatten)]
    style: Style,
    /// Print the bytes of each message as they came, in the notation of Python
    #[arg(long, conflicts_with_all = ["csv", "json", "flow_style", "field", "no_arr", "no_str", "full_length", "truncate_length"])]
    raw: bool,
    /// Clear the terminal before each message
    #[arg(short, long)]
    clear: bool,
    /// The name of the node that subscribes
    #[arg(short, long, value_name = "NAME")]
    node_name: Option<String>,
    /// Print only messages that pass a content filter of DDS, such as "range < 2.5 AND frame LIKE 'left%'"
    #[arg(long, value_name = "EXPRESSION", value_parser = filter)]
    filter: Option<Expression>,
    /// Say at once that messages were lost, and not only at the end
    #[arg(long)]
    lost_messages: bool,
    /// Do not say that messages were lost
    #[arg(long, conflicts_with = "lost_messages")]
    no_lost_messages: bool,
    #[command(flatten)]
    qos: QosFlags,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let interfaces = Interfaces::from_environment();
    // What is wrong with a path or a type is better told before waiting for the topic.
    args.field.iter().try_for_each(|it| part::check(it))?;
    let stated = args.type_name.as_deref().map(|it| interfaces.message(it)).transpose()?;
    let stated = stated.map(|it| Printer::new(&args.style, &args.field, &it)).transpose()?;
    stated.iter().try_for_each(|it| check_filter(args, &it.ty))?;
    let session = Session::open(globals)?;
    let end = args.timeout.map(|it| Instant::now() + it);
    let printer = match stated {
        Some(printer) => printer,
        None => match type_of_topic(args, &session)? {
            Some(name) => Printer::new(&args.style, &args.field, &interfaces.message(&name)?)?,
            None => return Ok(()),
        },
    };
    check_filter(args, &printer.ty)?;
    let graph = session.graph();
    if !super::is_published(&graph, &args.topic) {
        super::not_published(&args.topic);
    }
    let qos = fitting_qos(args, &graph)?;
    let ty = &printer.ty;
    let raw = RawType::new(ty.name().to_string()).hash(ty.hash());
    let node = match &args.node_name {
        Some(name) => session.context.node(name)?,
        None => session.hidden_node()?,
    };
    let mut options = SubscriptionOptions::default().qos(qos).type_description(Arc::clone(ty));
    if let Some(filter) = &args.filter {
        options = options.content_filter(filter.text(), [""; 0]);
    }
    let mut listener = Listener::of_node(&session, &node, &args.topic, raw, options)?;
    let result = echo(args, &session, &mut listener, &printer, end, out);
    if !args.no_lost_messages {
        tell_losses(&listener);
    }
    result
}

fn echo(
    args: &Args,
    session: &Session,
    listener: &mut Listener,
    printer: &Printer<'_>,
    end: Option<Instant>,
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut lost_before = 0;
    let mut heard = Heard::default();
    let left = || end.map_or(A_WHILE, |it| it.saturating_duration_since(Instant::now()));
    while session.context.is_ok() && !left().is_zero() {
        listener.wait(left())?;
        while let Some(sample) = listener.take() {
            if args.clear && out.is_terminal() {
                out.control("\x1b[H\x1b[2J")?;
            }
            let printed = if args.raw {
                printer.print_raw(&sample, out)
            } else {
                let message = DynamicMessage::decode(&printer.ty, &sample.bytes);
                let message = message.map_err(|error| {
                    let (topic, ty) = (&args.topic, &printer.ty);
                    anyhow::anyhow!("a message on {topic} was no valid {ty}: {error}")
                });
                message.and_then(|it| printer.print(&it, &sample.info, out))
            };
            heard.of(printed)?;
            if args.once || !session.context.is_ok() {
                out.flush()?;
                return heard.result();
            }
        }
        let lost = listener.counters().lost;
        if args.lost_messages && lost_before < lost {
            let change = lost - lost_before;
            // The words of `ros2`.
            out.lines(format_args!(
                "A message was lost!!!\n\ttotal count change:{change}\n\ttotal count: {lost}"
            ))?;
        }
        lost_before = lost;
        out.flush()?;
    }
    if let Some(timeout) = args.timeout
        && heard.is_nothing()
        && session.context.is_ok()
    {
        anyhow::bail!("no message on {} within {}", args.topic, figures::seconds(timeout));
    }
    heard.result()
}

/// A content filter, as far as it can be told without a type.
fn filter(text: &str) -> Result<Expression, String> {
    match Expression::parse(text) {
        Ok(filter) if filter.is_empty() => Err("it is empty; allowed: an expression".to_owned()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// Says what keeps the content filter from being one for this type.
fn check_filter(args: &Args, ty: &Arc<TypeDescription>) -> Result<(), Usage> {
    let Some(filter) = &args.filter else { return Ok(()) };
    let compiled = filter.compile(ty, &[""; 0]);
    let said = filter.text();
    compiled.map(drop).map_err(|error| {
        // What `ros2` takes there is an expression of Python about a message `m`.
        let hint = match said.contains("m.") && ty.field("m").is_none() {
            true => "; a content filter names a field alone, without `m.`",
            false => "",
        };
        Usage(format!("invalid value '{said}' for '--filter <EXPRESSION>': {error}{hint}"))
    })
}

/// What became of the messages that came.
#[derive(Default)]
struct Heard {
    printed: u64,
    unprinted: u64,
    /// Why the last one that was not printed was not.
    why: String,
}

impl Heard {
    /// Takes in what became of one. That nobody reads any more is for the caller.
    fn of(&mut self, printed: anyhow::Result<()>) -> anyhow::Result<()> {
        match printed {
            Ok(()) => self.printed += 1,
            Err(error) if error.is::<std::io::Error>() => return Err(error),
            Err(error) => {
                self.unprinted += 1;
                let why = format!("{error:#}");
                // One that repeats itself is told once.
                if why != self.why {
                    output::warning(&why);
                }
                self.why = why;
            }
        }
        Ok(())
    }

    fn is_nothing(&self) -> bool {
        self.printed + self.unprinted == 0
    }

    fn result(&self) -> anyhow::Result<()> {
        match (self.printed, self.unprinted) {
            (0, 1) => anyhow::bail!("nothing is printed: the one message that came could not be"),
            (0, unprinted @ 2..) => {
                anyhow::bail!(
                    "nothing is printed: none of the {unprinted} messages that came could be"
                )
            }
            _ => Ok(()),
        }
    }
}

fn tell_losses(listener: &Listener) {
    let SubscriptionCounters { displaced, lost, .. } = listener.counters();
    if displaced + lost > 0 {
        output::warning(format_args!(
            "not printed: {displaced} messages displaced from a full queue (--qos-depth makes it deeper), \
             {lost} lost on the way"
        ));
    }
}

/// The one type of the topic.
fn type_of_topic(args: &Args, session: &Session) -> anyhow::Result<Option<String>> {
    let topic = &args.topic;
    if super::types(&session.graph(), topic).is_empty() {
        super::not_published(topic);
    }
    super::only_type(session, topic, "echo", "; name one behind the topic", args.timeout)
}

/// What the flags say; where they leave it open, what every publisher there is can satisfy.
fn fitting_qos(args: &Args, graph: &Graph) -> anyhow::Result<Qos> {
    let open = args.qos.leaves_open();
    let publishers: Vec<&EndpointInfo> = graph
        .endpoints
        .iter()
        .filter(|it| it.kind == EndpointKind::Publisher && it.topic == args.topic)
        .collect();
    let mut qos = args.qos.over(Qos::DEFAULT)?;
    if publishers.is_empty() {
        // Whoever comes is heard: nobody offers less.
        if open.reliability {
            qos.reliability = Reliability::BestEffort;
        }
        return Ok(qos);
    }
    let all = |fits: fn(&Qos) -> bool| publishers.iter().all(|it| fits(&it.qos));
    if open.reliability && !all(|it| it.reliability == Reliability::Reliable) {
        qos.reliability = Reliability::BestEffort;
    }
    if open.durability && all(|it| it.durability == Durability::TransientLocal) {
        qos.durability = Durability::TransientLocal;
    }
    Ok(qos)
}
