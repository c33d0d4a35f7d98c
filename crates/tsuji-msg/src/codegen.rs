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
//! # Ok::<_, tsuji_msg::codegen::CodegenError>(())
//! ```
//!
//! The text holds one module a package with `msg`, `srv` and `action` in it, and is meant for `include!`.
//! Messages become structs, a service becomes an empty
//! enum with `NameRequest` and `NameResponse` beside it, and an action one with `NameGoal`, `NameResult`,
//! `NameFeedback` and the services and messages that carry them. A message whose samples all have the same, small size is its own view; every other
//! has a `NameView` (`Name_View` where a message has that name), whose `to_message` copies what is viewed.

use crate::definition::{Base, Constant, FieldType, Kind, Literal, ScalarKind, Shape};
use crate::name::TypeName;
use crate::types::{
    ActionDescription, Field, LoadError, Resolver, ServiceDescription, TypeDescription, TypeSet,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// Bytes up to which a message of fixed size, or a fixed array of numbers in a view, is held by
/// value.
const BY_VALUE_BYTES_MAX: usize = 1024;

/// Arrays longer than this have no `Default` in Rust.
const DEFAULT_ARRAY_MAX: u32 = 32;

/// Columns of a line of generated code, as rustfmt has them.
const COLUMNS_MAX: usize = 100;

/// Spaces before the items of a module in a package's module.
const INDENT: &str = "        ";

/// Generates Rust from definitions.
pub struct Codegen<R> {
    types: TypeSet<R>,
    external: BTreeMap<String, String>,
    library: Option<Library>,
    runtime: String,
}

/// A crate that has Rust types already.
struct Library {
    types: TypeSet<Box<dyn Resolver>>,
    path: String,
}

impl<R: Resolver> Codegen<R> {
    /// A generator that asks `resolver` for definitions.
    pub fn new(resolver: R) -> Self {
        Self {
            types: TypeSet::new(resolver),
            external: BTreeMap::new(),
            library: None,
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

    /// Refers to the types that a crate has already, such as `::tsuji_interfaces`, of the definitions in `shipped`.
    ///
    /// Packages whose types are asked for by name are generated all the same. A type that those use is the crate's
    /// where `shipped` has it, and must have the same type hash there.
    #[must_use]
    pub fn library(mut self, shipped: impl Resolver + 'static, path: &str) -> Self {
        let shipped: Box<dyn Resolver> = Box::new(shipped);
        self.library = Some(Library { types: TypeSet::new(shipped), path: path.into() });
        self
    }

    /// Where generated code finds this crate; `::tsuji_msg` unless told.
    #[must_use]
    pub fn runtime(mut self, path: &str) -> Self {
        self.runtime = path.into();
        self
    }

    /// The source text of these messages, services and actions and of every message that they use.
    ///
    /// # Errors
    ///
    /// [`CodegenError::Load`] if a name is none or a definition cannot be loaded; [`CodegenError::Differs`] if a
    /// type is another one in the crate of [`library`](Self::library).
    pub fn generate<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<String, CodegenError> {
        let names: Vec<TypeName> =
            names.into_iter().map(str::parse).collect::<Result<_, _>>().map_err(LoadError::from)?;
        let named = names.iter().map(|name| name.package().to_owned()).collect();
        let mut source = Source {
            codegen: self,
            named,
            elsewhere: HashMap::new(),
            crates: BTreeSet::from([crate_of(&self.runtime)]),
            packages: BTreeMap::new(),
        };
        for name in &names {
            source.add(name)?;
        }
        Ok(source.text())
    }

    /// The Rust path of the package of a message that another crate has.
    fn elsewhere(
        &self,
        message: &TypeDescription,
        named: &BTreeSet<String>,
    ) -> Result<Option<String>, Difference> {
        let package = message.name().package();
        if let Some(path) = self.external.get(package) {
            return Ok(Some(path.clone()));
        }
        let Some(library) = self.library.as_ref().filter(|_| !named.contains(package)) else {
            return Ok(None);
        };
        match library.types.load(&message.name().to_string()) {
            Ok(it) if it.hash() == message.hash() => {
                Ok(Some(format!("{}::{}", library.path, rust_field(package))))
            }
            Ok(_) => Err(Difference),
            Err(_) => Ok(None),
        }
    }

    /// The error that tells of messages that are others in the library.
    fn differs(&self, different: &[&TypeDescription], user: &TypeDescription) -> CodegenError {
        // One that uses others may differ by them alone.
        let innermost = different.iter().min_by_key(|it| it.referenced().len());
        let name = innermost.map(|it| it.name().clone()).unwrap_or_else(|| user.name().clone());
        let found = self.types.resolver().find(name.kind(), name.package(), name.name());
        let packages: BTreeSet<_> =
            different.iter().map(|it| it.name().package().to_owned()).collect();
        CodegenError::Differs {
            place: found.ok().flatten().and_then(|it| it.place),
            name: name.to_string(),
            used_by: user.name().to_string(),
            library: self.library.as_ref().map(|it| it.path.clone()).unwrap_or_default(),
            packages: packages.into_iter().collect(),
        }
    }
}

impl<R> fmt::Debug for Codegen<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { external, runtime, .. } = self;
        let mut shown = f.debug_struct("Codegen");
        shown.field("external", external).field("runtime", runtime).finish_non_exhaustive()
    }
}

/// A message is another one in the library.
struct Difference;

/// Why no Rust types were generated.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodegenError {
    /// A definition could not be loaded.
    Load(LoadError),
    /// A type is another one in the crate that has it already.
    Differs {
        /// The type.
        name: String,
        /// Where its definition is, such as the path of a file, if that is known.
        place: Option<String>,
        /// The type that uses it.
        used_by: String,
        /// The crate, such as `::tsuji_interfaces`.
        library: String,
        /// The packages to generate as well.
        packages: Vec<String>,
    },
}

impl From<LoadError> for CodegenError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl fmt::Display for CodegenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Differs { name, place, used_by, library, packages } => {
                write!(f, "{name}, which {used_by} uses, ")?;
                if let Some(place) = place {
                    write!(f, "is in {place} and ")?;
                }
                let library = library.trim_start_matches(':');
                let packages = packages.join(" and ");
                write!(
                    f,
                    "has another type hash than that of {library}; to have Rust types of both, generate {packages} as well"
                )
            }
        }
    }
}

impl std::error::Error for CodegenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Load(error) => error.source(),
            Self::Differs { .. } => None,
        }
    }
}

/// The source text while it is put together.
struct Source<'a, R> {
    codegen: &'a Codegen<R>,
    /// The packages that are generated whatever the library has.
    named: BTreeSet<String>,
    /// The Rust paths of the packages of messages that were looked at, where another crate has them.
    elsewhere: HashMap<TypeName, Option<String>>,
    /// The crates that the text refers to.
    crates: BTreeSet<String>,
    packages: BTreeMap<String, Package>,
}

impl<R: Resolver> Source<'_, R> {
    fn add(&mut self, name: &TypeName) -> Result<(), CodegenError> {
        let types = &self.codegen.types;
        if self.codegen.external.contains_key(name.package()) {
            return Ok(());
        }
        match name.kind() {
            Kind::Message => self.add_message(&*types.load(&name.to_string())?),
            Kind::Service => self.add_service(&types.load_service(&name.to_string())?),
            Kind::Action => {
                let action = types.load_action(&name.to_string())?;
                for part in
                    [&action.goal, &action.result, &action.feedback, &action.feedback_message]
                {
                    self.add_message(part)?;
                }
                for service in [&action.send_goal, &action.get_result] {
                    self.add_service(service)?;
                }
                let code = self.action_code(&action);
                self.items(name).insert(rust_name(name), code);
                Ok(())
            }
        }
    }

    fn add_message(&mut self, message: &TypeDescription) -> Result<(), CodegenError> {
        self.look_up(message)?;
        for message in message.referenced().into_iter().map(|it| &**it).chain([message]) {
            let name = message.name();
            let is_elsewhere = self.elsewhere.get(name).is_some_and(Option::is_some);
            if !is_elsewhere && !self.items(name).contains_key(&rust_name(name)) {
                let code = self.message_code(message);
                self.items(name).insert(rust_name(name), code);
            }
        }
        Ok(())
    }

    fn add_service(&mut self, service: &ServiceDescription) -> Result<(), CodegenError> {
        let ServiceDescription { name, request, response, hash, .. } = service;
        self.add_message(request)?;
        self.add_message(response)?;
        self.items(name).insert(rust_name(name), service_code(name, hash));
        Ok(())
    }

    /// Finds out where a message and each that it uses are.
    fn look_up(&mut self, message: &TypeDescription) -> Result<(), CodegenError> {
        let mut different = Vec::new();
        for it in message.referenced().into_iter().map(|it| &**it).chain([message]) {
            if self.elsewhere.contains_key(it.name()) {
                continue;
            }
            match self.codegen.elsewhere(it, &self.named) {
                Ok(path) => {
                    self.crates.extend(path.as_deref().map(crate_of));
                    self.elsewhere.insert(it.name().clone(), path);
                }
                Err(Difference) => different.push(it),
            }
        }
        if different.is_empty() {
            return Ok(());
        }
        Err(self.codegen.differs(&different, message))
    }

    /// The code of one kind of a package's interfaces.
    fn items(&mut self, name: &TypeName) -> &mut BTreeMap<String, String> {
        self.packages.entry(name.package().into()).or_default().items(name.kind())
    }

    fn text(self) -> String {
        let packages = self.packages.iter().filter(|(_, package)| !package.is_empty());
        let names: Vec<_> = packages.clone().map(|(name, _)| name.as_str()).collect();
        let crates: Vec<_> = self.crates.into_iter().filter(|it| !it.is_empty()).collect();
        let mut text = format!(
            "// @generated by tsuji from the interface definitions of {}.\n\
             // A crate that includes it depends on {}.\n",
            names.join(", "),
            crates.join(", ")
        );
        for (name, package) in packages {
            text.push('\n');
            text.push_str(&package.code(name, &self.codegen.runtime));
        }
        text
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
        let mut text = format!(
            "/// The action `{name}`.\n#[derive(Clone, Copy, Debug)]\npub enum {rust} {{}}\n\n\
             impl g::Action for {rust} {{\n    type Goal = {rust}Goal;\n    type Result = {rust}Result;\n    \
             type Feedback = {rust}Feedback;\n    type SendGoal = {rust}SendGoal;\n    \
             type GetResult = {rust}GetResult;\n    type FeedbackMessage = {rust}FeedbackMessage;\n    \
             const TYPE_NAME: &'static str = \"{name}\";\n{}",
            hash_code(hash)
        );
        let id = "id: [u8; 16]";
        for (name, arguments, result, body) in [
            (
                "join_goal",
                vec![id.to_owned(), format!("goal: {rust}Goal")],
                format!("{rust}SendGoalRequest"),
                format!("{rust}SendGoalRequest {{ goal_id: {uuid} {{ uuid: id }}, goal }}"),
            ),
            (
                "split_goal",
                vec![format!("request: &{rust}SendGoalRequest")],
                format!("([u8; 16], &{rust}Goal)"),
                "(request.goal_id.uuid, &request.goal)".to_owned(),
            ),
            (
                "join_answer",
                vec!["accepted: bool".to_owned(), "(sec, nanosec): (i32, u32)".to_owned()],
                format!("{rust}SendGoalResponse"),
                format!("{rust}SendGoalResponse {{ accepted, stamp: {time} {{ sec, nanosec }} }}"),
            ),
            (
                "split_answer",
                vec![format!("response: &{rust}SendGoalResponse")],
                "(bool, (i32, u32))".to_owned(),
                "(response.accepted, (response.stamp.sec, response.stamp.nanosec))".to_owned(),
            ),
            (
                "join_asked",
                vec![id.to_owned()],
                format!("{rust}GetResultRequest"),
                format!("{rust}GetResultRequest {{ goal_id: {uuid} {{ uuid: id }} }}"),
            ),
            (
                "split_asked",
                vec![format!("request: &{rust}GetResultRequest")],
                "[u8; 16]".to_owned(),
                "request.goal_id.uuid".to_owned(),
            ),
            (
                "join_result",
                vec!["status: i8".to_owned(), format!("result: {rust}Result")],
                format!("{rust}GetResultResponse"),
                format!("{rust}GetResultResponse {{ status, result }}"),
            ),
            (
                "split_result",
                vec![format!("response: {rust}GetResultResponse")],
                format!("(i8, {rust}Result)"),
                "(response.status, response.result)".to_owned(),
            ),
            (
                "join_feedback",
                vec![id.to_owned(), format!("feedback: {rust}Feedback")],
                format!("{rust}FeedbackMessage"),
                format!("{rust}FeedbackMessage {{ goal_id: {uuid} {{ uuid: id }}, feedback }}"),
            ),
            (
                "split_feedback",
                vec![format!("message: &{rust}FeedbackMessage")],
                format!("([u8; 16], &{rust}Feedback)"),
                "(message.goal_id.uuid, &message.feedback)".to_owned(),
            ),
        ] {
            text.push('\n');
            text.push_str(&function_code(name, &arguments, &result, &body));
        }
        text.push_str("}\n\n");
        text
    }

    fn message_code(&self, message: &TypeDescription) -> String {
        let fields: Vec<_> =
            message.fields().iter().map(|field| self.field(field, message)).collect();
        let name = message.name();
        let rust = rust_name(name);
        // No name in ROS 2 that is not a part's has an underscore.
        let view_of_ros = TypeName::new(name.package(), name.kind(), &format!("{rust}View"));
        let is_taken = view_of_ros.is_ok_and(|it| self.codegen.types.load(&it.to_string()).is_ok());
        let view = format!("{rust}{}", if is_taken { "_View" } else { "View" });
        let mut text = String::new();
        MessageCode { message, rust, view, plain: is_plain(message), fields }.write(&mut text);
        text
    }

    fn field<'a>(&self, field: &'a Field, owner: &TypeDescription) -> FieldCode<'a> {
        let element = match &field.ty.base {
            Base::Scalar(kind) => kind.rust_name().to_owned(),
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
        if let Some(Some(path)) = self.elsewhere.get(name) {
            return format!("{path}::{}::{rust}", name.kind());
        }
        match (name.package() == owner.name().package(), name.kind() == owner.name().kind()) {
            (true, true) => rust,
            (true, false) => format!("super::{}::{rust}", name.kind()),
            (false, _) => {
                format!("super::super::{}::{}::{rust}", rust_field(name.package()), name.kind())
            }
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

    fn is_empty(&self) -> bool {
        [&self.msg, &self.srv, &self.action].into_iter().all(BTreeMap::is_empty)
    }

    fn code(&self, name: &str, runtime: &str) -> String {
        let mut text = format!(
            "/// Interfaces of the package `{name}`.\n\
             #[allow(\n    dead_code,\n    missing_docs,\n    non_camel_case_types,\n    unnameable_types,\n    \
             unreachable_pub,\n    unused_qualifications,\n    clippy::all,\n    clippy::nursery,\n    clippy::pedantic,\n    \
             rustdoc::all,\n    reason = \"generated from interface definitions\"\n)]\n\
             pub mod {} {{\n",
            rust_field(name)
        );
        let kinds = [
            ("msg", "Messages", &self.msg),
            ("srv", "Services", &self.srv),
            ("action", "Actions", &self.action),
        ];
        let mut before = "";
        for (kind, what, items) in kinds.into_iter().filter(|(_, _, items)| !items.is_empty()) {
            let _ = writeln!(
                text,
                "{before}    /// {what} of the package `{name}`.\n    pub mod {kind} {{\n{INDENT}use {runtime}::generated as g;\n"
            );
            // No literal of the code has a line break inside.
            let code: String = items.values().map(String::as_str).collect();
            let mut lines = code.trim_end().lines().peekable();
            while let Some(line) = lines.next() {
                let closes = |next: &&str| next.starts_with('}');
                match line.is_empty() {
                    true if lines.peek().is_some_and(closes) => (),
                    true => text.push('\n'),
                    false => text.extend([INDENT, line, "\n"]),
                }
            }
            text.push_str("    }\n");
            before = "\n";
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
            Shape::Bounded(items) => Some(items),
            _ => None,
        };
        let text = match self.field.ty.base {
            Base::String { bound } | Base::WString { bound } => bound,
            _ => None,
        };
        match (items, text) {
            (None, None) => None,
            (Some(items), None) => Some(format!("g::items_max({items})")),
            (None, Some(text)) => Some(format!("g::text_max({text})")),
            (Some(items), Some(text)) => Some(format!("g::bounds({items}, {text})")),
        }
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

    fn seek_code(&self) -> String {
        let (name, owned) = (&self.field.name, &self.owned);
        match self.bounds() {
            None => format!("s.field::<{owned}>(\"{name}\")"),
            Some(bounds) => format!("s.bounded_field::<{owned}>(\"{name}\", {bounds})"),
        }
    }

    /// Whether it is an array of numbers or a message that may have one inside.
    fn has_numbers(&self) -> bool {
        let is_array = |it: &Field| it.ty.base.number().is_some() && it.ty.shape != Shape::Single;
        let inside = self.field.ty.base.nested().into_iter();
        let mut inside = inside.flat_map(|it| it.referenced().into_iter().chain([it]));
        is_array(self.field) || inside.any(|it| it.fields().iter().any(is_array))
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
    view: String,
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

    fn write_struct(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "/// `{}`", self.message.name())?;
        write_doc(text, "", self.message.comment(), true)?;
        let derive_default = if self.needs_default() { "" } else { "Default, " };
        let derive_copy = if self.plain { "Copy, " } else { "" };
        writeln!(text, "#[derive(Clone, {derive_copy}Debug, {derive_default}PartialEq)]")?;
        if self.fields.is_empty() {
            return writeln!(text, "pub struct {} {{}}\n", self.rust);
        }
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

    fn write_default(&self, text: &mut String) -> fmt::Result {
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

    fn write_constants(&self, text: &mut String) -> fmt::Result {
        if self.message.constants().is_empty() {
            return Ok(());
        }
        writeln!(text, "impl {} {{", self.rust)?;
        for Constant { name, base, value, comment } in self.message.constants() {
            write_doc(text, "    ", comment, false)?;
            let (ty, value) = match (base, value) {
                (Base::Scalar(kind), value) => (kind.rust_name(), scalar_code(value, *kind)),
                (_, Literal::Text(value)) => ("&'static str", format!("{value:?}")),
                // The parser gives a text constant no other value.
                _ => continue,
            };
            writeln!(text, "    pub const {name}: {ty} = {value};")?;
        }
        writeln!(text, "}}\n")
    }

    fn write_view_struct(&self, text: &mut String) -> fmt::Result {
        let (name, view) = (self.message.name(), &self.view);
        writeln!(
            text,
            "/// `{name}` in place.\n#[derive(Clone, Debug)]\npub struct {view}<'a> {{"
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
            "}}\n\nimpl {view}<'_> {{\n    /// A copy as a value.\n    \
             pub fn to_message(&self) -> {rust} {{\n        \
             <{rust} as g::Wire>::from_view(self)\n    }}\n}}\n"
        )
    }

    fn borrows(&self) -> bool {
        self.fields.iter().any(|field| field.view.contains("'a"))
    }

    fn write_wire(&self, text: &mut String) -> fmt::Result {
        let view = if self.plain { "Self".to_owned() } else { format!("{}<'a>", self.view) };
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

        let here = if self.plain { "Self".to_owned() } else { format!("{}<'_>", self.view) };
        writeln!(text, "    #[inline]\n    fn as_view(&self) -> {here} {{")?;
        if self.plain {
            writeln!(text, "        *self\n    }}\n")?;
        } else {
            self.write_literal(text, &self.view, |field| field.view_code(), false)?;
        }

        writeln!(
            text,
            "    #[inline]\n    fn read_view<'a>(r: &mut g::Reader<'a>) -> g::Result<{view}> {{"
        )?;
        if self.plain {
            writeln!(text, "        <Self as g::Wire>::read(r)\n    }}")?;
        } else {
            self.write_literal(text, &self.view, |field| field.read_view_code(), true)?;
        }

        writeln!(text, "    #[inline]\n    fn from_view(view: &{here}) -> Self {{")?;
        if self.plain {
            writeln!(text, "        *view\n    }}")?;
        } else {
            self.write_literal(text, "Self", |field| field.copy_code(), false)?;
        }
        self.write_arrays(text)?;
        writeln!(text, "}}\n")
    }

    /// How arrays of numbers are found by their names, if there are any.
    fn write_arrays(&self, text: &mut String) -> fmt::Result {
        let Some(last) = self.fields.iter().rposition(FieldCode::has_numbers) else {
            return Ok(());
        };
        let mut finds = String::new();
        for field in self.fields.iter().filter(|field| field.has_numbers()) {
            let (name, rust) = (&field.field.name, &field.rust);
            writeln!(finds, "            \"{name}\" => g::Wire::find(&self.{rust}, path),")?;
        }
        if !text.ends_with("\n\n") {
            text.push('\n');
        }
        writeln!(
            text,
            "    fn find<T: g::Number>(&self, path: g::Path<'_>) -> g::Option<&[T]> {{\n        \
             let (name, path) = path.field()?;\n        match name {{\n{finds}            \
             _ => g::Option::None,\n        }}\n    }}\n"
        )?;
        let lines: Vec<_> = self.fields[..=last].iter().map(FieldCode::seek_code).collect();
        writeln!(
            text,
            "    #[inline]\n    fn seek(s: &mut g::Seek<'_, '_>) -> g::Result<()> {{\n        {}\n    }}",
            lines.join("?;\n        ")
        )
    }

    /// The body of a function that makes a struct or a view, field by field.
    fn write_literal(
        &self,
        text: &mut String,
        what: &str,
        value: impl Fn(&FieldCode<'_>) -> String,
        reads: bool,
    ) -> fmt::Result {
        let (open, close) = if reads { ("::core::result::Result::Ok(", ")") } else { ("", "") };
        if reads && self.fields.is_empty() {
            writeln!(text, "        r.scalar::<u8>()?;")?;
        }
        if self.fields.is_empty() {
            return writeln!(text, "        {open}{what} {{}}{close}\n    }}\n");
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

    fn write_message(&self, text: &mut String) -> fmt::Result {
        let message = self.message;
        let fixed = match message.fixed_size() {
            Some(size) => format!("Some({size})"),
            None => "None".into(),
        };
        writeln!(text, "impl g::Message for {} {{", self.rust)?;
        writeln!(text, "    const TYPE_NAME: &'static str = \"{}\";", message.name())?;
        text.push_str(&hash_code(message.hash()));
        writeln!(text, "    const FIXED_SIZE: g::Option<usize> = g::Option::{fixed};")?;
        let definition = message.full_text();
        let lines: Vec<_> = definition.split_inclusive('\n').collect();
        match *lines {
            [] | [_] => writeln!(text, "    const DEFINITION: &'static str = {definition:?};")?,
            _ => {
                writeln!(text, "    const DEFINITION: &'static str = ::core::concat!(")?;
                for line in lines {
                    writeln!(text, "        {line:?},")?;
                }
                writeln!(text, "    );")?;
            }
        }
        writeln!(text, "}}\n")
    }

    fn write_in_place(&self, text: &mut String) -> fmt::Result {
        let Some((name, kind)) = self.long_array() else { return Ok(()) };
        writeln!(
            text,
            "impl g::InPlace for {} {{\n    type Item = {};\n    const ARRAY: &'static str = \"{name}\";\n}}\n",
            self.rust,
            kind.rust_name()
        )
    }

    /// The one unbounded sequence of numbers at the top level, if there is exactly one.
    fn long_array(&self) -> Option<(&str, ScalarKind)> {
        let mut arrays = self.fields.iter().filter_map(|field| match field.field.ty {
            FieldType { base: Base::Scalar(kind), shape: Shape::Sequence } => {
                Some((field.field.name.as_str(), kind))
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

fn service_code(name: &TypeName, hash: &str) -> String {
    let rust = rust_name(name);
    format!(
        "/// The service `{name}`.\n#[derive(Clone, Copy, Debug)]\npub enum {rust} {{}}\n\n\
         impl g::Service for {rust} {{\n    type Request = {rust}Request;\n    type Response = {rust}Response;\n    \
         const TYPE_NAME: &'static str = \"{name}\";\n{}}}\n\n",
        hash_code(hash)
    )
}

fn hash_code(hash: &str) -> String {
    format!("    const TYPE_HASH: &'static str =\n        \"{hash}\";\n")
}

/// A function of an `impl`, whose arguments have a line each where one line is too long.
fn function_code(name: &str, arguments: &[String], result: &str, body: &str) -> String {
    let mut head = format!("    fn {name}({}) -> {result} {{", arguments.join(", "));
    if COLUMNS_MAX < INDENT.len() + head.len() {
        head = format!(
            "    fn {name}(\n        {},\n    ) -> {result} {{",
            arguments.join(",\n        ")
        );
    }
    format!("{head}\n        {body}\n    }}\n")
}

fn write_doc(
    text: &mut String,
    indent: &str,
    comment: &[String],
    after_title: bool,
) -> fmt::Result {
    if after_title && !comment.is_empty() {
        writeln!(text, "{indent}///")?;
    }
    for line in comment {
        // What rustc takes for no comment, such as marks that turn the direction of the text, is escaped.
        let is_plain = line.chars().all(|it| {
            it == '\t' || !it.is_control() && (it.is_ascii() || it.escape_debug().count() == 1)
        });
        match is_plain {
            true => writeln!(text, "{indent}{}", format!("/// {line}").trim_end())?,
            false => writeln!(text, "{indent}#[doc = {:?}]", format!(" {line}"))?,
        }
    }
    Ok(())
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
        Literal::Float(value) if value.is_nan() => format!("{}::NAN", kind.rust_name()),
        Literal::Float(value) if value.is_infinite() => {
            format!("{}::{}INFINITY", kind.rust_name(), if value < 0.0 { "NEG_" } else { "" })
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

/// The crate of a Rust path such as `::tsuji_msg::generated`; empty where that is the including crate's own.
fn crate_of(path: &str) -> String {
    let first = path.trim_start_matches(':').split("::").next().unwrap_or_default();
    if ["crate", "self", "super"].contains(&first) { String::new() } else { first.to_owned() }
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
