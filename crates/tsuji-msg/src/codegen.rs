//! Rust source text from interface definitions, for build scripts.
//!
//! ```
//! # use std::collections::HashMap;
//! # let texts = HashMap::from([
//! #     ("my_msgs/msg/Thing".to_owned(), "std_msgs/Header header".to_owned()),
//! #     ("my_msgs/srv/Do".to_owned(), "---".to_owned()),
//! #     ("std_msgs/msg/Header".to_owned(), "string frame_id".to_owned()),
//! # ]);
//! let code = tsuji_msg::codegen::Codegen::new(&texts)
//!     .external("std_msgs", "::tsuji_interfaces::std_msgs")
//!     .generate(["my_msgs/msg/Thing", "my_msgs/srv/Do"])?;
//! assert!(code.contains("pub struct Thing"));
//! # Ok::<_, tsuji_msg::LoadError>(())
//! ```
//!
//! The text holds one module a package with `msg`, `srv` and `action` in it, and is meant for `include!`.
//! Messages become structs, a service becomes an empty
//! enum with `NameRequest` and `NameResponse` beside it, and an action one with `NameGoal`, `NameResult`,
//! `NameFeedback` and the services and messages that carry them. A message whose samples all have the same, small size is its own view; every other
//! has a `NameView`, whose `to_message` copies what is viewed.

use crate::definition::{Base, Constant, FieldType, Kind, Literal, ScalarKind, Shape};
use crate::name::TypeName;
use crate::types::{
    ActionDescription, Field, LoadError, Resolver, ServiceDescription, TypeDescription, TypeSet,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// Bytes up to which a message of fixed size, or a fixed array of numbers in a view, is held by
/// value.
const BY_VALUE_BYTES_MAX: usize = 1024;

/// Arrays longer than this have no `Default` in Rust.
const DEFAULT_ARRAY_MAX: u32 = 32;

/// Generates Rust from definitions.
#[derive(Debug)]
pub struct Codegen<R> {
    types: TypeSet<R>,
    external: BTreeMap<String, String>,
    runtime: String,
}

impl<R: Resolver> Codegen<R> {
    /// A generator that asks `resolver` for definitions.
    pub fn new(resolver: R) -> Self {
        Self {
            types: TypeSet::new(resolver),
            external: BTreeMap::new(),
            runtime: "::tsuji_msg".into(),
        }
    }

    /// Refers to the messages of `package` at a Rust path instead of generating them, such as
    /// `::tsuji_interfaces::std_msgs`.
    #[must_use]
    pub fn external(mut self, package: &str, path: &str) -> Self {
        self.external.insert(package.into(), path.into());
        self
    }

    /// Where generated code finds this crate; `::tsuji_msg` unless told.
    #[must_use]
    pub fn runtime(mut self, path: &str) -> Self {
        self.runtime = path.into();
        self
    }

    /// The source text of these messages, services and actions and of every message that they use.
    pub fn generate<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<String, LoadError> {
        let mut packages: BTreeMap<String, Package> = BTreeMap::new();
        for name in names {
            let name: TypeName = name.parse()?;
            match name.kind() {
                Kind::Message => {
                    let message = self.types.load(&name.to_string())?;
                    self.add_message(&message, &mut packages);
                }
                Kind::Service => {
                    let service = self.types.load_service(&name.to_string())?;
                    self.add_service(&service, &mut packages);
                }
                Kind::Action => {
                    let action = self.types.load_action(&name.to_string())?;
                    for part in
                        [&action.goal, &action.result, &action.feedback, &action.feedback_message]
                    {
                        self.add_message(part, &mut packages);
                    }
                    for service in [&action.send_goal, &action.get_result] {
                        self.add_service(service, &mut packages);
                    }
                    let package = packages.entry(name.package().into()).or_default();
                    package.action.insert(rust_name(&name), self.action_code(&action));
                }
            }
        }
        Ok(packages.iter().map(|(name, package)| package.code(name, &self.runtime)).collect())
    }

    fn add_message(&self, message: &TypeDescription, packages: &mut BTreeMap<String, Package>) {
        let name = message.name();
        if self.external.contains_key(name.package()) {
            return;
        }
        let items = packages.entry(name.package().into()).or_default().items(name.kind());
        let rust = rust_name(name);
        if items.contains_key(&rust) {
            return;
        }
        items.insert(rust, self.message_code(message));
        self.add_used(message, packages);
    }

    fn add_service(&self, service: &ServiceDescription, packages: &mut BTreeMap<String, Package>) {
        let ServiceDescription { name, request, response, hash, .. } = service;
        if self.external.contains_key(name.package()) {
            return;
        }
        self.add_message(request, packages);
        self.add_message(response, packages);
        let items = packages.entry(name.package().into()).or_default().items(name.kind());
        items.insert(rust_name(name), self.service_code(name, hash));
    }

    fn add_used(&self, message: &TypeDescription, packages: &mut BTreeMap<String, Package>) {
        for used in message.referenced() {
            self.add_message(used, packages);
        }
    }

    fn service_code(&self, name: &TypeName, hash: &str) -> String {
        let rust = rust_name(name);
        format!(
            "#[doc = \"The service `{name}`.\"]\n#[derive(Clone, Copy, Debug)]\npub enum {rust} {{}}\n\n\
             impl g::Service for {rust} {{\n    type Request = {rust}Request;\n    type Response = {rust}Response;\n    \
             const TYPE_NAME: &'static str = \"{name}\";\n    const TYPE_HASH: &'static str = \"{hash}\";\n}}\n\n"
        )
    }

    /// The enum that stands for an action, which puts its messages together and takes them apart.
    fn action_code(&self, action: &ActionDescription) -> String {
        let ActionDescription { name, hash, .. } = action;
        let rust = rust_name(name);
        // The two messages of ROS 2 that every action contains.
        let used = |part: &TypeDescription, field: &str| {
            let nested = part.field(field).and_then(|(_, field)| field.ty.base.nested());
            nested.map(|nested| self.path(nested, part)).unwrap_or_default()
        };
        let uuid = used(&action.feedback_message, "goal_id");
        let time = used(&action.send_goal.response, "stamp");
        format!(
            "#[doc = \"The action `{name}`.\"]\n#[derive(Clone, Copy, Debug)]\npub enum {rust} {{}}\n\n\
             impl g::Action for {rust} {{\n    type Goal = {rust}Goal;\n    type Result = {rust}Result;\n    \
             type Feedback = {rust}Feedback;\n    type SendGoal = {rust}SendGoal;\n    \
             type GetResult = {rust}GetResult;\n    type FeedbackMessage = {rust}FeedbackMessage;\n    \
             const TYPE_NAME: &'static str = \"{name}\";\n    const TYPE_HASH: &'static str = \"{hash}\";\n\n    \
             fn join_goal(id: [u8; 16], goal: {rust}Goal) -> {rust}SendGoalRequest {{\n        \
             {rust}SendGoalRequest {{ goal_id: {uuid} {{ uuid: id }}, goal }}\n    }}\n\n    \
             fn split_goal(request: &{rust}SendGoalRequest) -> ([u8; 16], &{rust}Goal) {{\n        \
             (request.goal_id.uuid, &request.goal)\n    }}\n\n    \
             fn join_answer(accepted: bool, (sec, nanosec): (i32, u32)) -> {rust}SendGoalResponse {{\n        \
             {rust}SendGoalResponse {{ accepted, stamp: {time} {{ sec, nanosec }} }}\n    }}\n\n    \
             fn split_answer(response: &{rust}SendGoalResponse) -> (bool, (i32, u32)) {{\n        \
             (response.accepted, (response.stamp.sec, response.stamp.nanosec))\n    }}\n\n    \
             fn join_asked(id: [u8; 16]) -> {rust}GetResultRequest {{\n        \
             {rust}GetResultRequest {{ goal_id: {uuid} {{ uuid: id }} }}\n    }}\n\n    \
             fn split_asked(request: &{rust}GetResultRequest) -> [u8; 16] {{\n        \
             request.goal_id.uuid\n    }}\n\n    \
             fn join_result(status: i8, result: {rust}Result) -> {rust}GetResultResponse {{\n        \
             {rust}GetResultResponse {{ status, result }}\n    }}\n\n    \
             fn split_result(response: {rust}GetResultResponse) -> (i8, {rust}Result) {{\n        \
             (response.status, response.result)\n    }}\n\n    \
             fn join_feedback(id: [u8; 16], feedback: {rust}Feedback) -> {rust}FeedbackMessage {{\n        \
             {rust}FeedbackMessage {{ goal_id: {uuid} {{ uuid: id }}, feedback }}\n    }}\n\n    \
             fn split_feedback(message: &{rust}FeedbackMessage) -> ([u8; 16], &{rust}Feedback) {{\n        \
             (message.goal_id.uuid, &message.feedback)\n    }}\n}}\n\n"
        )
    }

    fn message_code(&self, message: &TypeDescription) -> String {
        let fields: Vec<_> =
            message.fields().iter().map(|field| self.field(field, message)).collect();
        let mut text = String::new();
        MessageCode { message, rust: rust_name(message.name()), plain: is_plain(message), fields }
            .write(&mut text);
        text
    }

    fn field<'a>(&self, field: &'a Field, owner: &TypeDescription) -> FieldCode<'a> {
        let element = match &field.ty.base {
            Base::Scalar(kind) => scalar_type(*kind).to_owned(),
            Base::String { .. } => "g::String".to_owned(),
            Base::WString { .. } => "g::WString".to_owned(),
            Base::Nested(nested) => self.path(nested, owner),
        };
        let owned = match field.ty.shape {
            Shape::Single => element.clone(),
            Shape::Array(count) => format!("[{element}; {count}]"),
            Shape::Sequence | Shape::Bounded(_) => format!("g::Vec<{element}>"),
        };
        let mut code = FieldCode {
            field,
            rust: rust_field(&field.name),
            owned,
            view: String::new(),
            by_value: false,
        };
        (code.view, code.by_value) = code.view_type(&element);
        code
    }

    /// The path of a message's struct from inside the module of `owner`.
    fn path(&self, message: &TypeDescription, owner: &TypeDescription) -> String {
        let (name, rust) = (message.name(), rust_name(message.name()));
        if let Some(path) = self.external.get(name.package()) {
            return format!("{path}::{}::{rust}", name.kind());
        }
        match (name.package() == owner.name().package(), name.kind() == owner.name().kind()) {
            (true, true) => rust,
            (true, false) => format!("super::{}::{rust}", name.kind()),
            (false, _) => format!("super::super::{}::{}::{rust}", name.package(), name.kind()),
        }
    }
}

/// The code of one package, by Rust name, so that the text is the same whatever the order of the
/// names.
#[derive(Default)]
struct Package {
    msg: BTreeMap<String, String>,
    srv: BTreeMap<String, String>,
    action: BTreeMap<String, String>,
}

impl Package {
    fn items(&mut self, kind: Kind) -> &mut BTreeMap<String, String> {
        match kind {
            Kind::Message => &mut self.msg,
            Kind::Service => &mut self.srv,
            Kind::Action => &mut self.action,
        }
    }

    fn code(&self, name: &str, runtime: &str) -> String {
        let mut text = format!(
            "#[doc = \"Interfaces of the package `{name}`.\"]\n\
             #[allow(missing_docs, unused_qualifications, clippy::all, rustdoc::all, \
             reason = \"generated from interface definitions\")]\n\
             pub mod {} {{\n",
            rust_field(name)
        );
        for (kind, what, items) in [
            ("msg", "Messages", &self.msg),
            ("srv", "Services", &self.srv),
            ("action", "Actions", &self.action),
        ] {
            if items.is_empty() {
                continue;
            }
            let _ =
                writeln!(text, "#[doc = \"{what} of the package `{name}`.\"]\npub mod {kind} {{");
            let _ = writeln!(text, "use {runtime}::generated as g;\n");
            text.extend(items.values().map(String::as_str));
            text.push_str("}\n");
        }
        text.push_str("}\n");
        text
    }
}

struct FieldCode<'a> {
    field: &'a Field,
    rust: String,
    /// The type in the struct.
    owned: String,
    /// The type in the view.
    view: String,
    /// The view holds the field as the struct does.
    by_value: bool,
}

impl FieldCode<'_> {
    fn view_type(&self, element: &str) -> (String, bool) {
        let FieldType { base, shape } = &self.field.ty;
        match (base, shape) {
            (Base::Scalar(_), Shape::Single) => (self.owned.clone(), true),
            (Base::Scalar(kind), Shape::Array(count))
                if kind.size() * *count as usize <= BY_VALUE_BYTES_MAX =>
            {
                (self.owned.clone(), true)
            }
            (Base::Scalar(kind), _) if kind.size() == 1 => (format!("&'a [{element}]"), false),
            (Base::Scalar(_), _) => (format!("g::ArrayView<'a, {element}>"), false),
            (Base::String { .. }, Shape::Single) => ("&'a str".into(), false),
            (Base::WString { .. }, Shape::Single) => ("g::Cow<'a, str>".into(), false),
            (Base::Nested(nested), Shape::Single) if is_plain(nested) => (self.owned.clone(), true),
            (Base::Nested(_), Shape::Single) => {
                (format!("<{element} as g::Wire>::View<'a>"), false)
            }
            _ => (format!("g::SeqView<'a, {element}>"), false),
        }
    }

    /// The limits that the type states, as an argument, if it states any.
    fn bounds(&self) -> Option<String> {
        let items = match self.field.ty.shape {
            Shape::Bounded(bound) => format!("g::Option::Some({bound})"),
            _ => "g::Option::None".into(),
        };
        let text = match self.field.ty.base {
            Base::String { bound: Some(bound) } | Base::WString { bound: Some(bound) } => {
                format!("g::Option::Some({bound})")
            }
            _ => "g::Option::None".into(),
        };
        (items.contains("Some") || text.contains("Some"))
            .then(|| format!("g::bounds({items}, {text})"))
    }

    fn write_code(&self) -> String {
        let (name, rust) = (&self.field.name, &self.rust);
        match self.bounds() {
            None => format!("w.field(\"{name}\", &self.{rust})"),
            Some(bounds) => format!("w.bounded_field(\"{name}\", &self.{rust}, {bounds})"),
        }
    }

    fn read_code(&self) -> String {
        let name = &self.field.name;
        match self.bounds() {
            None => format!("r.field(\"{name}\")?"),
            Some(bounds) => format!("r.bounded_field(\"{name}\", {bounds})?"),
        }
    }

    fn read_view_code(&self) -> String {
        let (name, owned) = (&self.field.name, &self.owned);
        match self.bounds() {
            _ if self.by_value => self.read_code(),
            None => format!("r.view_field::<{owned}>(\"{name}\")?"),
            Some(bounds) => format!("r.bounded_view_field::<{owned}>(\"{name}\", {bounds})?"),
        }
    }

    fn view_code(&self) -> String {
        let rust = &self.rust;
        if self.by_value {
            format!("self.{rust}")
        } else {
            format!("g::Wire::as_view(&self.{rust})")
        }
    }

    fn copy_code(&self) -> String {
        let rust = &self.rust;
        if self.by_value {
            format!("view.{rust}")
        } else {
            format!("g::Wire::from_view(&view.{rust})")
        }
    }

    /// The default value, if it is not what `Default` gives anyway.
    fn default_code(&self) -> Option<String> {
        let FieldType { base, shape } = &self.field.ty;
        if let Some(default) = &self.field.default {
            return Some(literal_code(default, base, *shape));
        }
        match (base, shape) {
            (Base::Scalar(kind), Shape::Array(count)) if *count > DEFAULT_ARRAY_MAX => {
                Some(format!("[{}; {count}]", scalar_zero(*kind)))
            }
            (_, Shape::Array(count)) if *count > DEFAULT_ARRAY_MAX => {
                Some("::core::array::from_fn(|_| g::Default::default())".into())
            }
            _ => None,
        }
    }
}

struct MessageCode<'a> {
    message: &'a TypeDescription,
    rust: String,
    /// The struct is its own view.
    plain: bool,
    fields: Vec<FieldCode<'a>>,
}

impl MessageCode<'_> {
    fn write(&self, text: &mut String) {
        // Writing to a String does not fail.
        let _ = self.write_struct(text);
        let _ = self.write_default(text);
        let _ = self.write_constants(text);
        if !self.plain {
            let _ = self.write_view_struct(text);
        }
        let _ = self.write_wire(text);
        let _ = self.write_message(text);
        let _ = self.write_in_place(text);
    }

    fn write_struct(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "#[doc = \"`{}`\"]", self.message.name())?;
        write_doc(text, "", self.message.comment(), true)?;
        let derive_default = if self.needs_default() { "" } else { "Default, " };
        let derive_copy = if self.plain { "Copy, " } else { "" };
        writeln!(text, "#[derive(Clone, {derive_copy}Debug, {derive_default}PartialEq)]")?;
        writeln!(text, "pub struct {} {{", self.rust)?;
        for field in &self.fields {
            write_doc(text, "    ", &field.field.comment, false)?;
            writeln!(text, "    pub {}: {},", field.rust, field.owned)?;
        }
        writeln!(text, "}}\n")
    }

    fn needs_default(&self) -> bool {
        self.fields.iter().any(|field| field.default_code().is_some())
    }

    fn write_default(&self, text: &mut String) -> std::fmt::Result {
        if !self.needs_default() {
            return Ok(());
        }
        writeln!(
            text,
            "impl g::Default for {} {{\n    fn default() -> Self {{\n        Self {{",
            self.rust
        )?;
        for field in &self.fields {
            let value = field.default_code().unwrap_or_else(|| "g::Default::default()".into());
            writeln!(text, "            {}: {value},", field.rust)?;
        }
        writeln!(text, "        }}\n    }}\n}}\n")
    }

    fn write_constants(&self, text: &mut String) -> std::fmt::Result {
        if self.message.constants().is_empty() {
            return Ok(());
        }
        writeln!(text, "impl {} {{", self.rust)?;
        for Constant { name, base, value, comment } in self.message.constants() {
            write_doc(text, "    ", comment, false)?;
            let (ty, value) = match (base, value) {
                (Base::Scalar(kind), value) => (scalar_type(*kind), scalar_code(value, *kind)),
                (_, Literal::Text(value)) => ("&'static str", format!("{value:?}")),
                // The parser gives a text constant no other value.
                _ => continue,
            };
            writeln!(text, "    pub const {name}: {ty} = {value};")?;
        }
        writeln!(text, "}}\n")
    }

    fn write_view_struct(&self, text: &mut String) -> std::fmt::Result {
        let (name, view) = (self.message.name(), self.view_name());
        writeln!(
            text,
            "#[doc = \"`{name}` in place.\"]\n#[derive(Clone, Debug)]\npub struct {view}<'a> {{"
        )?;
        let mut borrows = false;
        for field in &self.fields {
            writeln!(text, "    pub {}: {},", field.rust, field.view)?;
            borrows |= field.view.contains("'a");
        }
        if !borrows {
            writeln!(
                text,
                "    #[doc(hidden)]\n    pub marker: ::core::marker::PhantomData<&'a ()>,"
            )?;
        }
        let rust = &self.rust;
        writeln!(
            text,
            "}}\n\nimpl {view}<'_> {{\n    #[doc = \"A copy as a value.\"]\n    \
             pub fn to_message(&self) -> {rust} {{\n        \
             <{rust} as g::Wire>::from_view(self)\n    }}\n}}\n"
        )
    }

    fn view_name(&self) -> String {
        format!("{}View", self.rust)
    }

    fn borrows(&self) -> bool {
        self.fields.iter().any(|field| field.view.contains("'a"))
    }

    fn write_wire(&self, text: &mut String) -> std::fmt::Result {
        let view = if self.plain { "Self".to_owned() } else { format!("{}<'a>", self.view_name()) };
        writeln!(text, "impl g::Wire for {} {{", self.rust)?;
        writeln!(text, "    type View<'a> = {view};")?;
        writeln!(text, "    const MIN_SIZE: usize = {};\n", self.message.min_size())?;

        writeln!(
            text,
            "    #[inline]\n    fn write<S: g::Sink>(&self, w: &mut g::Writer<S>) -> g::Result<()> {{"
        )?;
        let lines: Vec<_> = self.fields.iter().map(FieldCode::write_code).collect();
        // An empty message has one byte on the wire.
        let body =
            if lines.is_empty() { "w.scalar(0u8)".to_owned() } else { lines.join("?;\n        ") };
        writeln!(text, "        {body}\n    }}\n")?;

        writeln!(text, "    #[inline]\n    fn read(r: &mut g::Reader<'_>) -> g::Result<Self> {{")?;
        self.write_literal(text, "Self", |field| field.read_code(), true)?;

        let here = if self.plain { "Self".to_owned() } else { format!("{}<'_>", self.view_name()) };
        writeln!(text, "    #[inline]\n    fn as_view(&self) -> {here} {{")?;
        if self.plain {
            writeln!(text, "        *self\n    }}\n")?;
        } else {
            self.write_literal(text, &self.view_name(), |field| field.view_code(), false)?;
        }

        writeln!(
            text,
            "    #[inline]\n    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<{view}> {{"
        )?;
        if self.plain {
            writeln!(text, "        <Self as g::Wire>::read(r)\n    }}")?;
        } else {
            self.write_literal(text, &self.view_name(), |field| field.read_view_code(), true)?;
        }

        writeln!(text, "    #[inline]\n    fn from_view(view: &{here}) -> Self {{")?;
        if self.plain {
            writeln!(text, "        *view\n    }}")?;
        } else {
            self.write_literal(text, "Self", |field| field.copy_code(), false)?;
        }
        writeln!(text, "}}\n")
    }

    /// The body of a function that makes a struct or a view, field by field.
    fn write_literal(
        &self,
        text: &mut String,
        what: &str,
        value: impl Fn(&FieldCode<'_>) -> String,
        reads: bool,
    ) -> std::fmt::Result {
        let (open, close) = if reads { ("::core::result::Result::Ok(", ")") } else { ("", "") };
        if reads && self.fields.is_empty() {
            writeln!(text, "        r.scalar::<u8>()?;")?;
        }
        writeln!(text, "        {open}{what} {{")?;
        for field in &self.fields {
            writeln!(text, "            {}: {},", field.rust, value(field))?;
        }
        if what != "Self" && !self.borrows() {
            writeln!(text, "            marker: ::core::marker::PhantomData,")?;
        }
        writeln!(text, "        }}{close}\n    }}\n")
    }

    fn write_message(&self, text: &mut String) -> std::fmt::Result {
        let message = self.message;
        let fixed = match message.fixed_size() {
            Some(size) => format!("Some({size})"),
            None => "None".into(),
        };
        writeln!(text, "impl g::Message for {} {{", self.rust)?;
        writeln!(text, "    const TYPE_NAME: &'static str = \"{}\";", message.name())?;
        writeln!(text, "    const TYPE_HASH: &'static str = \"{}\";", message.hash())?;
        writeln!(text, "    const FIXED_SIZE: g::Option<usize> = g::Option::{fixed};")?;
        writeln!(text, "    const DEFINITION: &'static str = {:?};\n}}\n", message.full_text())
    }

    fn write_in_place(&self, text: &mut String) -> std::fmt::Result {
        let Some((index, kind)) = self.long_array() else { return Ok(()) };
        writeln!(text, "impl g::InPlace for {} {{", self.rust)?;
        writeln!(text, "    type Item = {};\n", scalar_type(kind))?;
        writeln!(
            text,
            "    fn write_around<S: g::Sink>(&self, len: usize, w: &mut g::Writer<S>) -> g::Result<g::Range<usize>> {{"
        )?;
        for (position, field) in self.fields.iter().enumerate() {
            if position == index {
                writeln!(
                    text,
                    "        w.length(len)?;\n        let range = w.room::<{}>(len)?;",
                    scalar_type(kind)
                )?;
            } else {
                writeln!(text, "        {}?;", field.write_code())?;
            }
        }
        writeln!(text, "        ::core::result::Result::Ok(range)\n    }}\n}}\n")
    }

    /// The one unbounded sequence of numbers at the top level, if there is exactly one.
    fn long_array(&self) -> Option<(usize, ScalarKind)> {
        let mut arrays =
            self.fields.iter().enumerate().filter_map(|(index, field)| match field.field.ty {
                FieldType { base: Base::Scalar(kind), shape: Shape::Sequence } => {
                    Some((index, kind))
                }
                _ => None,
            });
        let only = arrays.next()?;
        // A bool drawn in place could be neither 0 nor 1.
        if arrays.next().is_some() || only.1 == ScalarKind::Bool { None } else { Some(only) }
    }
}

/// Whether a message is its own view: always the same, small number of bytes.
fn is_plain(message: &TypeDescription) -> bool {
    message.fixed_size().is_some_and(|size| size <= BY_VALUE_BYTES_MAX)
}

fn write_doc(
    text: &mut String,
    indent: &str,
    comment: &[String],
    after_title: bool,
) -> std::fmt::Result {
    if after_title && !comment.is_empty() {
        writeln!(text, "{indent}#[doc = \"\"]")?;
    }
    for line in comment {
        writeln!(text, "{indent}#[doc = {:?}]", format!(" {line}"))?;
    }
    Ok(())
}

fn scalar_type(kind: ScalarKind) -> &'static str {
    match kind {
        ScalarKind::Bool => "bool",
        ScalarKind::Byte | ScalarKind::Char | ScalarKind::U8 => "u8",
        ScalarKind::I8 => "i8",
        ScalarKind::I16 => "i16",
        ScalarKind::U16 => "u16",
        ScalarKind::I32 => "i32",
        ScalarKind::U32 => "u32",
        ScalarKind::I64 => "i64",
        ScalarKind::U64 => "u64",
        ScalarKind::F32 => "f32",
        ScalarKind::F64 => "f64",
    }
}

fn scalar_zero(kind: ScalarKind) -> &'static str {
    match kind {
        ScalarKind::Bool => "false",
        ScalarKind::F32 | ScalarKind::F64 => "0.0",
        _ => "0",
    }
}

fn literal_code(value: &Literal, base: &Base<Arc<TypeDescription>>, shape: Shape) -> String {
    match (value, base) {
        (Literal::List(values), _) => {
            let items = values
                .iter()
                .map(|value| literal_code(value, base, Shape::Single))
                .collect::<Vec<_>>()
                .join(", ");
            match shape {
                Shape::Array(_) => format!("[{items}]"),
                _ => format!("g::Vec::from([{items}])"),
            }
        }
        (_, Base::Scalar(kind)) => scalar_code(value, *kind),
        (Literal::Text(text), Base::WString { .. }) => format!("g::WString::from({text:?})"),
        (Literal::Text(text), _) => format!("g::String::from({text:?})"),
        _ => "g::Default::default()".into(),
    }
}

fn scalar_code(value: &Literal, kind: ScalarKind) -> String {
    match *value {
        Literal::Bool(value) => value.to_string(),
        Literal::Integer(value) => value.to_string(),
        Literal::Float(value) if value.is_nan() => format!("{}::NAN", scalar_type(kind)),
        Literal::Float(value) if value.is_infinite() => {
            format!("{}::{}INFINITY", scalar_type(kind), if value < 0.0 { "NEG_" } else { "" })
        }
        // A number that only a float64 can hold is infinite as a float32, and Rust refuses such a
        // literal.
        Literal::Float(value) if kind == ScalarKind::F32 && (value as f32).is_infinite() => {
            format!("f32::{}INFINITY", if value < 0.0 { "NEG_" } else { "" })
        }
        Literal::Float(value) => format!("{value:?}"),
        Literal::Text(_) | Literal::List(_) => scalar_zero(kind).into(),
    }
}

/// The Rust name of a message: parts of services lose the underscore.
fn rust_name(name: &TypeName) -> String {
    name.name().replace('_', "")
}

/// A field or package name as a Rust identifier.
fn rust_field(name: &str) -> String {
    let words: BTreeSet<&str> = KEYWORDS.split(' ').collect();
    match name {
        // These cannot be written as raw identifiers.
        "self" | "super" | "crate" => format!("{name}_"),
        _ if words.contains(name) => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

const KEYWORDS: &str = "abstract as async await become box break const continue do dyn else enum extern false final fn \
                        for gen if impl in let loop macro match mod move mut override priv pub ref return static struct \
                        trait true try type typeof unsafe unsized use virtual where while yield";
