//! `tsuji topic echo`.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tsuji::{
    EndpointInfo, EndpointKind, Graph, MessageInfo, RawSample, RawType, SubscriptionCounters,
};
use tsuji_core::{Durability, Qos, Reliability};
use tsuji_msg::{Detail, DynamicMessage, EchoStyle, List, TypeDescription, Value};

use super::listener::{Listener, received_wall_ns};
use crate::completions;
use crate::failure::Usage;
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::python;
use crate::qos::QosFlags;
use crate::session::{A_WHILE, Globals, Session};

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
    /// End after so many seconds without a message
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds)]
    timeout: Option<Duration>,
    /// Print arrays as a note of their type and length
    #[arg(long)]
    no_arr: bool,
    /// Print texts as a note of their length
    #[arg(long)]
    no_str: bool,
    /// Print all of arrays and texts
    #[arg(short, long)]
    full_length: bool,
    /// Elements and letters that are printed of an array or a text
    #[arg(short = 'l', long, value_name = "N", default_value_t = 128)]
    truncate_length: usize,
    /// Print only this part, such as pose.position or poses[0].x
    #[arg(long, value_name = "PATH")]
    field: Option<String>,
    /// Print each message as one line of values with commas between them
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print each message as one line of JSON
    #[arg(long)]
    json: bool,
    /// Print each message as one line of YAML
    #[arg(long, conflicts_with_all = ["csv", "json"])]
    flow_style: bool,
    /// Print the bytes of each message as they came, in the notation of Python
    #[arg(long, conflicts_with_all = ["csv", "json", "flow_style", "field"])]
    raw: bool,
    /// Print when each message was published and received, and its number
    #[arg(long, conflicts_with = "json")]
    include_message_info: bool,
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
    // A type that is unknown is better told before waiting for the topic.
    let stated = args.type_name.as_deref().map(|it| interfaces.message(it)).transpose()?;
    let session = Session::open(globals)?;
    let ty = match stated {
        Some(ty) => ty,
        None => match type_of_topic(&args.topic, &session)? {
            Some(name) => interfaces.message(&name)?,
            None => return Ok(()),
        },
    };
    let printer = Printer::new(args, &ty)?;
    let graph = session.graph();
    if !super::is_published(&graph, &args.topic) {
        super::not_published(&args.topic);
    }
    let qos = fitting_qos(args, &graph)?;
    let raw = RawType { name: ty.name().to_string(), hash: ty.hash().to_owned() };
    let mut listener = Listener::open(&session, &args.topic, raw, qos)?;
    let result = echo(args, &session, &mut listener, &printer, out);
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
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut heard = Instant::now();
    let mut lost_before = 0;
    while session.context.is_ok() {
        listener.wait(args.timeout.map_or(A_WHILE, |it| it.saturating_sub(heard.elapsed())))?;
        while let Some(sample) = listener.take() {
            heard = Instant::now();
            if args.raw {
                printer.print_raw(&sample, out)?;
            } else {
                match DynamicMessage::decode(&printer.ty, &sample.bytes) {
                    Ok(message) => printer.print(&message, &sample.info, out)?,
                    Err(error) => output::warning(format_args!(
                        "a message on {} was no valid {}: {error}",
                        args.topic, printer.ty
                    )),
                }
            }
            if args.once || !session.context.is_ok() {
                return Ok(out.flush()?);
            }
        }
        let lost = listener.counters().lost;
        if args.lost_messages && lost_before < lost {
            let change = lost - lost_before;
            // The words of `ros2`.
            out.line(format_args!(
                "A message was lost!!!\n\ttotal count change:{change}\n\ttotal count: {lost}"
            ))?;
        }
        lost_before = lost;
        out.flush()?;
        if let Some(timeout) = args.timeout
            && timeout <= heard.elapsed()
            && session.context.is_ok()
        {
            anyhow::bail!("no message on {} for {timeout:?}", args.topic);
        }
    }
    Ok(())
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
fn type_of_topic(topic: &str, session: &Session) -> anyhow::Result<Option<String>> {
    if super::types(&session.graph(), topic).is_empty() {
        super::not_published(topic);
    }
    super::only_type(session, topic, "echo", "; name one behind the topic")
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

/// Prints messages of one type as the flags say.
struct Printer<'a> {
    ty: Arc<TypeDescription>,
    style: EchoStyle,
    args: &'a Args,
}

impl<'a> Printer<'a> {
    fn new(args: &'a Args, ty: &Arc<TypeDescription>) -> anyhow::Result<Self> {
        let detail = |summary| if summary { Detail::Summary } else { Detail::Full };
        let style = EchoStyle {
            limit: (!args.full_length).then_some(args.truncate_length),
            arrays: detail(args.no_arr),
            strings: detail(args.no_str),
        };
        if let Some(path) = &args.field {
            check_path(path, ty)?;
        }
        Ok(Self { ty: ty.clone(), style, args })
    }

    fn print_raw(&self, sample: &RawSample, out: &mut Output) -> anyhow::Result<()> {
        self.print_info(&sample.info, out)?;
        Ok(out.line(format_args!("{}\n---", python::bytes(&sample.bytes)))?)
    }

    /// In the order of Python's YAML writer. A number of reception is unknown there too.
    fn print_info(&self, info: &MessageInfo, out: &mut Output) -> anyhow::Result<()> {
        if !self.args.include_message_info {
            return Ok(());
        }
        let (sequence, source) = (info.sequence, info.source_wall_ns);
        let received = received_wall_ns(info);
        Ok(out.line(format_args!(
            "publication_sequence_number: {sequence}\nreceived_timestamp: {received}\n\
             reception_sequence_number: null\nsource_timestamp: {source}\n---"
        ))?)
    }

    fn print(
        &self,
        message: &DynamicMessage,
        info: &MessageInfo,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let part = match &self.args.field {
            None => Value::Message(message.clone()),
            Some(path) => match message.get(path) {
                Ok(value) => value.into_owned(),
                // The path is right for the type, so an array is shorter than it asks for.
                Err(error) => {
                    output::warning(error);
                    return Ok(());
                }
            },
        };
        if self.args.json {
            return Ok(out.line(part.to_json(Default::default()))?);
        }
        if self.args.csv {
            let mut values = Vec::new();
            if self.args.include_message_info {
                let (source, sequence) = (info.source_wall_ns, info.sequence);
                values.push(format!("{source},{},{sequence},None", received_wall_ns(info)));
            }
            self.csv(&part, &mut values);
            return Ok(out.line(values.join(","))?);
        }
        self.print_info(info, out)?;
        match &part {
            Value::Message(message) if self.args.flow_style => {
                write!(out, "{}", message.to_yaml_flow(self.style))?;
            }
            Value::Message(message) => write!(out, "{}", message.to_yaml(self.style))?,
            Value::List(List::Message(items)) => {
                for item in self.limited(items) {
                    write!(out, "{}", list_item(&item.to_yaml(self.style)))?;
                }
            }
            Value::Text(text) => out.line(text)?,
            Value::List(list) => {
                let items = (0..list.len()).filter_map(|at| list.get(at)).collect::<Vec<_>>();
                let shown: Vec<String> =
                    self.limited(&items).iter().map(|it| python::scalar_repr(it, false)).collect();
                let rest = if shown.len() < items.len() { ", ..." } else { "" };
                out.line(format_args!("[{}{rest}]", shown.join(", ")))?;
            }
            value => out.line(python::scalar_repr(value, false))?,
        }
        Ok(out.line("---")?)
    }

    fn limited<'b, T>(&self, items: &'b [T]) -> &'b [T] {
        &items[..items.len().min(self.style.limit.unwrap_or(usize::MAX))]
    }

    /// The values of a message in their order, those inside others included.
    fn csv(&self, value: &Value, values: &mut Vec<String>) {
        match value {
            Value::Message(message) => {
                message.fields().for_each(|(_, value)| self.csv(value, values))
            }
            Value::List(list) if self.args.no_arr => {
                values.push(format!("<array of {}>", list.len()))
            }
            Value::List(list) => {
                let shown = list.len().min(self.style.limit.unwrap_or(usize::MAX));
                (0..shown).filter_map(|at| list.get(at)).for_each(|it| self.csv(&it, values));
                if shown < list.len() {
                    values.push("...".to_owned());
                }
            }
            Value::Text(text) if self.args.no_str => {
                values.push(format!("<string of {}>", text.len()))
            }
            Value::Text(text) if text.contains([',', '"', '\n']) => {
                values.push(format!("\"{}\"", text.replace('"', "\"\"")));
            }
            Value::Text(text) => values.push(text.clone()),
            value => values.push(python::scalar_repr(value, false)),
        }
    }
}

/// Refuses a path that no message of the type has. Indices are the messages' own affair.
fn check_path(path: &str, ty: &Arc<TypeDescription>) -> anyhow::Result<()> {
    let mut ty = ty.clone();
    let mut walked = String::new();
    for step in path.split('.') {
        let name = step.split('[').next().unwrap_or(step);
        let Some((_, field)) = ty.field(name) else {
            let names: Vec<&str> = ty.fields().iter().map(|it| it.name.as_str()).collect();
            let text = format!(
                "--field {path}: {ty} has no field \"{name}\"; allowed: {}",
                names.join(", ")
            );
            return Err(Usage(text).into());
        };
        walked.push_str(step);
        match field.ty.base.nested() {
            Some(nested) => ty = nested.clone(),
            None if walked == path => return Ok(()),
            None => {
                let text = format!("--field {path}: {walked} is {} and has no fields", field.ty);
                return Err(Usage(text).into());
            }
        }
        walked.push('.');
    }
    Ok(())
}

/// A message's lines as one element of a list.
fn list_item(yaml: &str) -> String {
    let mut text = String::new();
    for (at, line) in yaml.lines().enumerate() {
        text.push_str(if at == 0 { "- " } else { "  " });
        text.push_str(line);
        text.push('\n');
    }
    text
}
