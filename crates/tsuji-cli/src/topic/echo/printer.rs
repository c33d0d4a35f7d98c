//! Messages as `tsuji topic echo` prints them.

use std::io::Write;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use tsuji::{MessageInfo, RawSample};
use tsuji_msg::definition::{Base, FieldType, ScalarKind, Shape};
use tsuji_msg::{Detail, DynamicMessage, EchoStyle, List, TypeDescription, Value, array_summary};

use super::part::Part;
use crate::output::Output;
use crate::python;
use crate::topic::listener::received_wall_ns;

type Type = FieldType<Arc<TypeDescription>>;

/// Elements and letters that are printed of an array and a text where nothing is said of it.
const LIMIT: usize = 128;

fn length(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "allowed: a whole number from 0".to_owned())
}

/// How messages are printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Style {
    /// Print arrays as a note of their type and length
    #[arg(long)]
    no_arr: bool,
    /// Print texts as a note of their length
    #[arg(long)]
    no_str: bool,
    /// Print all of arrays and texts
    #[arg(short, long)]
    full_length: bool,
    /// Elements and letters that are printed of an array or a text; 128 if not said, but all in JSON and of a text that
    /// --field asks for
    #[arg(short = 'l', long, value_name = "N", value_parser = length, allow_negative_numbers = true)]
    truncate_length: Option<usize>,
    /// Print each message as one line of values with commas between them
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print each message as one line of JSON
    #[arg(long)]
    json: bool,
    /// Print each message as one line of YAML
    #[arg(long, conflicts_with_all = ["csv", "json"])]
    flow_style: bool,
    /// Print when each message was published and received, and its number
    #[arg(short, long, conflicts_with = "json")]
    include_message_info: bool,
}

/// Prints messages of one type as the flags say.
pub(crate) struct Printer<'a> {
    pub(crate) ty: Arc<TypeDescription>,
    parts: Vec<Part>,
    style: EchoStyle,
    args: &'a Style,
}

impl<'a> Printer<'a> {
    /// Prints messages of type `ty`, or the parts of them that the paths `fields` lead to.
    pub(crate) fn new(
        args: &'a Style,
        fields: &[String],
        ty: &Arc<TypeDescription>,
    ) -> anyhow::Result<Self> {
        let parts: Result<Vec<Part>, _> = fields.iter().map(|it| Part::new(it, ty)).collect();
        let detail = |summary| if summary { Detail::Summary } else { Detail::Full };
        let style = EchoStyle {
            limit: (!args.full_length).then_some(args.truncate_length.unwrap_or(LIMIT)),
            arrays: detail(args.no_arr),
            strings: detail(args.no_str),
        };
        Ok(Self { ty: ty.clone(), parts: parts?, style, args })
    }

    /// The same, with what is cut where nothing is said of it left whole: JSON, and a text that is asked for alone, are
    /// for programs.
    fn whole(&self) -> EchoStyle {
        EchoStyle {
            limit: self.style.limit.filter(|_| self.args.truncate_length.is_some()),
            ..self.style
        }
    }

    pub(crate) fn print_raw(&self, sample: &RawSample, out: &mut Output) -> anyhow::Result<()> {
        self.print_info(&sample.info, out)?;
        Ok(out.lines(format_args!("{}\n---", python::bytes(&sample.bytes)))?)
    }

    /// In the order of Python's YAML writer. A number of reception is unknown there too.
    fn print_info(&self, info: &MessageInfo, out: &mut Output) -> anyhow::Result<()> {
        if !self.args.include_message_info {
            return Ok(());
        }
        let (sequence, source) = (info.sequence, info.source_wall_ns);
        let received = received_wall_ns(info);
        Ok(out.lines(format_args!(
            "publication_sequence_number: {sequence}\nreceived_timestamp: {received}\n\
             reception_sequence_number: null\nsource_timestamp: {source}\n---"
        ))?)
    }

    /// Prints the message, or the parts of it that were asked for. An error is that it has not all of them, and nothing
    /// is printed.
    pub(crate) fn print(
        &self,
        message: &DynamicMessage,
        info: &MessageInfo,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        self.print_with(message, info, &|text| text, out)
    }

    /// The same, with YAML of the whole message changed by `change`.
    pub(crate) fn print_with(
        &self,
        message: &DynamicMessage,
        info: &MessageInfo,
        change: &dyn Fn(String) -> String,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let parts = self.parts.iter().map(|it| Ok((it, it.of(message)?)));
        let parts = parts.collect::<anyhow::Result<Vec<_>>>()?;
        if self.args.json {
            return Ok(out.line(self.json_of(message, &parts))?);
        }
        if self.args.csv {
            let mut values = Vec::new();
            if self.args.include_message_info {
                let (source, sequence) = (info.source_wall_ns, info.sequence);
                values.push(format!("{source},{},{sequence},None", received_wall_ns(info)));
            }
            if parts.is_empty() {
                self.csv_message(message, &mut values);
            }
            parts.iter().for_each(|(part, value)| self.csv(&part.ty, value, &mut values));
            return Ok(out.row(&values.join(","))?);
        }
        self.print_info(info, out)?;
        match parts.as_slice() {
            [] => write!(out, "{}", change(self.yaml(message)))?,
            [(part, value)] => out.lines(self.part(&part.ty, value).trim_end_matches('\n'))?,
            parts => {
                for (part, value) in parts {
                    let text = self.part(&part.ty, value);
                    let text = text.trim_end_matches('\n');
                    let is_block = matches!(value, Value::Message(_)) || text.contains('\n');
                    match is_block && !self.args.flow_style {
                        true => out.lines(format_args!("{}:\n{}", part.path, indented(text)))?,
                        false => out.lines(format_args!("{}: {text}", part.path))?,
                    }
                }
            }
        }
        Ok(out.line("---")?)
    }

    fn yaml(&self, message: &DynamicMessage) -> String {
        match self.args.flow_style {
            true => message.to_yaml_flow(self.style),
            false => message.to_yaml(self.style),
        }
    }

    /// A part alone, of one line or several.
    fn part(&self, ty: &Type, value: &Value) -> String {
        match value {
            Value::Message(message) => self.yaml(message),
            Value::List(list) if self.args.no_arr => array_summary(ty, list.len()),
            Value::List(List::Message(items)) if !self.args.flow_style => {
                let mut text: String = self
                    .limited(items)
                    .iter()
                    .map(|it| list_item(&it.to_yaml(self.style)))
                    .collect();
                if self.limited(items).len() < items.len() {
                    text.push_str("- '...'\n");
                }
                if items.is_empty() { "[]".to_owned() } else { text }
            }
            Value::List(list) => {
                let items: Vec<Value> = (0..list.len()).filter_map(|at| list.get(at)).collect();
                let item = |it: &Value| match it {
                    Value::Message(message) => {
                        message.to_yaml_flow(self.style).trim_end().to_owned()
                    }
                    Value::Text(text) => {
                        python::scalar_repr(&Value::Text(self.style.text(text).into()), false)
                    }
                    it => python::scalar_repr(it, is_byte(ty)),
                };
                let mut shown: Vec<String> = self.limited(&items).iter().map(item).collect();
                if shown.len() < items.len() {
                    shown.push("...".to_owned());
                }
                format!("[{}]", shown.join(", "))
            }
            Value::Text(text) => self.whole().text(text).into_owned(),
            value => python::scalar_repr(value, is_byte(ty)),
        }
    }

    fn limited<'b, T>(&self, items: &'b [T]) -> &'b [T] {
        &items[..items.len().min(self.style.limit.unwrap_or(usize::MAX))]
    }

    fn json_of(&self, message: &DynamicMessage, parts: &[(&Part, Value)]) -> Json {
        let style = self.whole();
        match parts {
            [] => json_message(style, message),
            [(part, value)] => json(style, &part.ty, value),
            parts => {
                let entry = |(part, value): &(&Part, Value)| {
                    (part.path.clone(), json(style, &part.ty, value))
                };
                Json::Object(parts.iter().map(entry).collect::<Map<_, _>>())
            }
        }
    }

    fn csv_message(&self, message: &DynamicMessage, values: &mut Vec<String>) {
        message.fields().for_each(|(field, value)| self.csv(&field.ty, value, values));
    }

    /// The values of a message in their order, those inside others included.
    fn csv(&self, ty: &Type, value: &Value, values: &mut Vec<String>) {
        match value {
            Value::Message(message) => self.csv_message(message, values),
            Value::List(list) if self.args.no_arr => {
                values.push(csv_text(&array_summary(ty, list.len())));
            }
            Value::List(list) => {
                let shown = list.len().min(self.style.limit.unwrap_or(usize::MAX));
                (0..shown).filter_map(|at| list.get(at)).for_each(|it| self.csv(ty, &it, values));
                if shown < list.len() {
                    values.push("...".to_owned());
                }
            }
            Value::Text(text) => values.push(csv_text(&self.style.text(text))),
            value => values.push(csv_text(&python::scalar_repr(value, is_byte(ty)))),
        }
    }
}

/// JSON of a message, cut and summed up as the flags say.
fn json_message(style: EchoStyle, message: &DynamicMessage) -> Json {
    let entry = |(field, value): (&tsuji_msg::Field, &Value)| {
        (field.name.clone(), json(style, &field.ty, value))
    };
    Json::Object(message.fields().map(entry).collect::<Map<_, _>>())
}

fn json(style: EchoStyle, ty: &Type, value: &Value) -> Json {
    match value {
        _ if style == EchoStyle::default() => value.to_json(Default::default()),
        Value::Message(message) => json_message(style, message),
        Value::List(list) if style.arrays == Detail::Summary => {
            Json::String(array_summary(ty, list.len()))
        }
        Value::List(list) => {
            let shown = list.len().min(style.limit.unwrap_or(usize::MAX));
            let one = Type { shape: Shape::Single, ..ty.clone() };
            let items = (0..shown).filter_map(|at| list.get(at));
            let mut items: Vec<Json> = items.map(|it| json(style, &one, &it)).collect();
            if shown < list.len() {
                items.push("...".into());
            }
            Json::Array(items)
        }
        Value::Text(text) => Json::String(style.text(text).into_owned()),
        value => value.to_json(Default::default()),
    }
}

/// A value of a row, in quotes where it would be taken for several values or rows.
fn csv_text(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn is_byte(ty: &Type) -> bool {
    matches!(ty.base, Base::Scalar(ScalarKind::Byte))
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

fn indented(text: &str) -> String {
    text.lines().map(|it| format!("  {it}")).collect::<Vec<_>>().join("\n")
}
