//! Resolved types: definitions with the definitions that they use, loaded through a [`Resolver`].

use crate::definition::{
    Base, Constant, FieldSpec, FieldType, Kind, Literal, MessageSpec, ParseError, Reference,
    SUFFIXES, ScalarKind, Shape, parse_action, parse_message, parse_service,
};
use crate::dynamic::{DynamicMessage, Value};
use crate::hash;
use crate::name::{NameError, TypeName};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Messages inside messages. A deeper type is refused, which also ends a definition that contains
/// itself.
pub const NESTING_MAX: usize = 32;

/// Bytes that the default value of a type may need, as CDR and as a
/// [`DynamicMessage`](crate::DynamicMessage) in memory. A type of more, such as huge fixed arrays
/// inside each other, is refused, because its default value alone would fill the memory.
pub const TYPE_BYTES_MAX: usize = 256 << 20;

/// Hands out the texts of interface definitions. Where they come from is its own business.
pub trait Resolver {
    /// Returns the text of the interface `package/kind/name` with its place, or `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if the text is there and cannot be read: where it is, and why.
    fn find(
        &self,
        kind: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable>;

    /// Returns the text alone, of an interface that can be read.
    fn definition(&self, kind: Kind, package: &str, name: &str) -> Option<Cow<'_, str>> {
        self.find(kind, package, name).ok().flatten().map(|it| it.text)
    }
}

/// The text of a definition, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// Where it is, such as the path of a file; none where a user could not look into it.
    pub place: Option<String>,
}

/// A text that is in no place where a user could look.
impl<'a> From<&'a str> for Definition<'a> {
    fn from(text: &'a str) -> Self {
        Self { text: text.into(), place: None }
    }
}

/// A definition that is there and cannot be read.
#[derive(Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Where it is, such as the path of a file.
    pub place: String,
    /// Why it cannot be read.
    pub reason: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {}: {}", self.place, self.reason)
    }
}

impl std::error::Error for Unreadable {}

macro_rules! resolve_by_what_is_inside {
    ($($holder:ty),*) => {$(
        impl<R: Resolver + ?Sized> Resolver for $holder {
            fn find(
                &self,
                kind: Kind,
                package: &str,
                name: &str,
            ) -> Result<Option<Definition<'_>>, Unreadable> {
                (**self).find(kind, package, name)
            }
        }
    )*};
}

resolve_by_what_is_inside!(&R, Box<R>, Arc<R>);

/// Texts by name, such as `pkg/msg/Name`.
impl Resolver for HashMap<String, String> {
    fn find(
        &self,
        kind: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable> {
        let text = self.get(&format!("{package}/{kind}/{name}"));
        Ok(text.map(|text| Definition::from(text.as_str())))
    }
}

/// A message type with everything that it uses.
#[derive(Debug)]
pub struct TypeDescription {
    name: TypeName,
    spec: Arc<MessageSpec>,
    fields: Vec<Field>,
    depth: usize,
    layout: Layout,
    hash: String,
}

/// A field of a [`TypeDescription`].
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: FieldType<Arc<TypeDescription>>,
    /// Its default value, if the definition states one.
    pub default: Option<Literal>,
    /// Its comment, line by line.
    pub comment: Vec<String>,
}

/// A service type.
#[derive(Clone, Debug)]
pub struct ServiceDescription {
    /// Its name.
    pub name: TypeName,
    /// What a client sends.
    pub request: Arc<TypeDescription>,
    /// What a server answers.
    pub response: Arc<TypeDescription>,
    /// What service introspection publishes.
    pub event: Arc<TypeDescription>,
    /// The type hash.
    pub hash: String,
}

/// An action type.
#[derive(Clone, Debug)]
pub struct ActionDescription {
    /// Its name.
    pub name: TypeName,
    /// What a client asks for.
    pub goal: Arc<TypeDescription>,
    /// What it gets in the end.
    pub result: Arc<TypeDescription>,
    /// What it hears meanwhile.
    pub feedback: Arc<TypeDescription>,
    /// Sends a goal.
    pub send_goal: ServiceDescription,
    /// Asks for the result.
    pub get_result: ServiceDescription,
    /// Carries the feedback.
    pub feedback_message: Arc<TypeDescription>,
    /// The type hash.
    pub hash: String,
}

impl TypeDescription {
    /// The type's name.
    pub fn name(&self) -> &TypeName {
        &self.name
    }

    /// The type's hash, `RIHS01_` and 64 hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The fields in their order. None in an empty message, although its CDR has one byte.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Position and description of a field.
    pub fn field(&self, name: &str) -> Option<(usize, &Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.name == name)
    }

    /// The constants in their order.
    pub fn constants(&self) -> &[Constant] {
        &self.spec.constants
    }

    /// The comment at the head of the definition, line by line.
    pub fn comment(&self) -> &[String] {
        &self.spec.comment
    }

    /// The definition's own text.
    pub fn text(&self) -> &str {
        &self.spec.text
    }

    /// The definition's text followed by those of the types that it uses, each under a line of `=`
    /// and a line `MSG: package/Name`: the form that bag files and debuggers call `ros2msg`.
    pub fn full_text(&self) -> String {
        let mut text = self.spec.text.clone();
        for nested in self.referenced() {
            let name = &nested.name;
            text.push_str(&"=".repeat(80));
            text.push_str(&format!(
                "\nMSG: {}/{}\n{}",
                name.package(),
                name.name(),
                nested.spec.text
            ));
        }
        text
    }

    /// Every type used, at any depth, in the order of their names.
    pub fn referenced(&self) -> Vec<&Arc<Self>> {
        let mut found = HashMap::new();
        self.collect(&mut found);
        let mut list: Vec<_> = found.into_values().collect();
        list.sort_by_cached_key(|nested| nested.name.to_string());
        list
    }

    fn collect<'a>(&'a self, found: &mut HashMap<&'a TypeName, &'a Arc<Self>>) {
        for field in &self.fields {
            if let Base::Nested(nested) = &field.ty.base
                && found.insert(&nested.name, nested).is_none()
            {
                nested.collect(found);
            }
        }
    }

    /// Bytes of every sample, header included, if all samples have the same size.
    pub fn fixed_size(&self) -> Option<usize> {
        self.layout.fixed.map(|body| body + crate::cdr::HEADER_SIZE)
    }

    /// Fewest bytes in a CDR body, padding not counted.
    pub fn min_size(&self) -> usize {
        self.layout.min
    }
}

impl PartialEq for TypeDescription {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.name == other.name && self.hash == other.hash)
    }
}

impl fmt::Display for TypeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

/// What is known of a type's bytes beforehand.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Fewest bytes, padding not counted.
    min: usize,
    /// Bytes that the fields of a default value take in memory, when it is a dynamic message.
    memory: usize,
    /// Bytes from the start of a body, if always the same.
    fixed: Option<usize>,
    /// Bytes from a position that is so much past a multiple of the largest alignment, if always
    /// the same.
    from: Option<[usize; ALIGNMENT_MAX]>,
}

const ALIGNMENT_MAX: usize = 8;

impl Layout {
    fn of(fields: &[Field]) -> Self {
        if fields.is_empty() {
            return Self { min: 1, memory: 0, fixed: Some(1), from: Some([1; ALIGNMENT_MAX]) };
        }
        let min = fields.iter().map(|field| field.ty.min_size()).fold(0, usize::saturating_add);
        let memory = fields.iter().map(Field::memory).fold(0, usize::saturating_add);
        let from = |position| {
            let end =
                fields.iter().try_fold(position, |position, field| field.ty.fixed_end(position))?;
            Some(end - position)
        };
        let mut sizes = [0; ALIGNMENT_MAX];
        let fixed = sizes
            .iter_mut()
            .enumerate()
            .all(|(position, size)| from(position).map(|s| *size = s).is_some());
        Self { min, memory, fixed: fixed.then(|| sizes[0]), from: fixed.then_some(sizes) }
    }
}

impl Field {
    /// Bytes that the default value takes in memory.
    fn memory(&self) -> usize {
        let below = match self.ty.shape {
            Shape::Single => self.ty.base.nested().map_or(0, |nested| nested.layout.memory),
            Shape::Array(count) => self.ty.base.memory().saturating_mul(count as usize),
            Shape::Sequence | Shape::Bounded(_) => 0,
        };
        let stated = self.default.as_ref().map_or(0, Literal::memory);
        size_of::<Value>().saturating_add(below).saturating_add(stated)
    }
}

impl FieldType<Arc<TypeDescription>> {
    /// Fewest bytes in a CDR body, padding not counted.
    pub fn min_size(&self) -> usize {
        match self.shape {
            Shape::Single => self.base.min_size(),
            Shape::Array(count) => self.base.min_size().saturating_mul(count as usize),
            Shape::Sequence | Shape::Bounded(_) => 4,
        }
    }

    /// Where a value that starts at `position` of a body ends, if that is always the same.
    fn fixed_end(&self, position: usize) -> Option<usize> {
        match self.shape {
            Shape::Single => self.base.fixed_end(position, 1),
            Shape::Array(count) => self.base.fixed_end(position, count as usize),
            Shape::Sequence | Shape::Bounded(_) => None,
        }
    }
}

/// Where `count` values end that start one behind the other. Padding depends on the position modulo
/// the largest alignment, so the sizes repeat after at most that many values and long arrays need
/// no walk.
fn repeat(sizes: [usize; ALIGNMENT_MAX], position: usize, count: usize) -> Option<usize> {
    let mut seen: [Option<(usize, usize)>; ALIGNMENT_MAX] = [None; ALIGNMENT_MAX];
    let mut end = position;
    let mut done = 0;
    while done < count {
        let phase = end % ALIGNMENT_MAX;
        if let Some((done_then, end_then)) = seen[phase] {
            let (values, bytes) = (done - done_then, end - end_then);
            let rounds = (count - done) / values;
            end = end.checked_add(rounds.checked_mul(bytes)?)?;
            done += rounds * values;
            if done == count {
                break;
            }
        } else {
            seen[phase] = Some((done, end));
        }
        end = end.checked_add(sizes[end % ALIGNMENT_MAX])?;
        done += 1;
    }
    Some(end)
}

impl Base<Arc<TypeDescription>> {
    /// Fewest bytes of one in a CDR body, padding not counted.
    pub fn min_size(&self) -> usize {
        match self {
            Self::Scalar(kind) => kind.size(),
            Self::String { .. } | Self::WString { .. } => 4,
            Self::Nested(nested) => nested.min_size(),
        }
    }

    /// Where `count` of it end that start at `position` of a body, if that is always the same.
    pub(crate) fn fixed_end(&self, position: usize, count: usize) -> Option<usize> {
        match self {
            _ if count == 0 => Some(position),
            Self::Scalar(kind) => {
                position.next_multiple_of(kind.size()).checked_add(kind.size().checked_mul(count)?)
            }
            Self::String { .. } | Self::WString { .. } => None,
            Self::Nested(nested) => repeat(nested.layout.from?, position, count),
        }
    }

    /// The number that it is, if it is one.
    pub(crate) fn number(&self) -> Option<ScalarKind> {
        match self {
            Self::Scalar(kind) => kind.number(),
            Self::String { .. } | Self::WString { .. } | Self::Nested(_) => None,
        }
    }

    /// Bytes of one default value as an element of a list in memory.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Scalar(kind) => kind.size(),
            Self::String { .. } | Self::WString { .. } => size_of::<String>(),
            Self::Nested(nested) => {
                size_of::<DynamicMessage>().saturating_add(nested.layout.memory)
            }
        }
    }
}

/// Loads types and keeps them, so that each is parsed once.
#[derive(Debug)]
pub struct TypeSet<R> {
    resolver: R,
    messages: Mutex<HashMap<TypeName, Arc<TypeDescription>>>,
}

/// Loads one message type. For more than one, a [`TypeSet`] keeps what they share.
///
/// # Errors
///
/// Those of [`TypeSet::load`].
pub fn load(name: &str, resolver: &dyn Resolver) -> Result<Arc<TypeDescription>, LoadError> {
    TypeSet::new(resolver).load(name)
}

/// Loads a message type from its definition and those of the types that it uses, as
/// [`TypeDescription::full_text`] and [`Message::DEFINITION`](crate::Message::DEFINITION) have them.
///
/// ```
/// let text = "Point[] points\n===\nMSG: my_msgs/Point\nfloat64 x\nfloat64 y\n";
/// let ty = tsuji_msg::load_full_text("my_msgs/msg/Line", text)?;
/// assert_eq!(tsuji_msg::load_full_text("my_msgs/msg/Line", &ty.full_text())?.hash(), ty.hash());
/// # Ok::<_, tsuji_msg::LoadError>(())
/// ```
///
/// # Errors
///
/// Those of [`TypeSet::load_text`].
pub fn load_full_text(name: &str, text: &str) -> Result<Arc<TypeDescription>, LoadError> {
    let (own, others) = split_full_text(text);
    TypeSet::new(others).load_text(name, &own)
}

/// Splits what [`load_full_text`] reads into its definitions, each by its name, such as `my_msgs/msg/Line`. That is a
/// [`Resolver`].
///
/// ```
/// let text = "Point[] points\n===\nMSG: my_msgs/Point\nfloat64 x\nfloat64 y\n";
/// let texts = tsuji_msg::definitions_in("my_msgs/msg/Line", text);
/// assert_eq!(texts["my_msgs/msg/Point"], "float64 x\nfloat64 y\n");
/// assert_eq!(tsuji_msg::load("my_msgs/msg/Line", &texts)?.fields().len(), 1);
/// # Ok::<_, tsuji_msg::LoadError>(())
/// ```
pub fn definitions_in(name: &str, text: &str) -> HashMap<String, String> {
    let (own, mut all) = split_full_text(text);
    all.insert(name.to_owned(), own);
    all
}

/// The definition that comes first in a full text, and the others by name.
fn split_full_text(text: &str) -> (String, HashMap<String, String>) {
    let (mut own, mut others) = (String::new(), Vec::<(String, String)>::new());
    let mut is_name_next = false;
    for line in text.lines() {
        if 3 <= line.len() && line.bytes().all(|it| it == b'=') {
            is_name_next = true;
            continue;
        }
        if is_name_next && let Some(name) = line.strip_prefix("MSG:") {
            let (package, last) = name.trim().split_once('/').unwrap_or_default();
            let last = last.rsplit('/').next().unwrap_or_default();
            others.push((format!("{package}/msg/{last}"), String::new()));
            is_name_next = false;
            continue;
        }
        let text = others.last_mut().map_or(&mut own, |(_, text)| text);
        text.push_str(line);
        text.push('\n');
    }
    (own, others.into_iter().collect())
}

impl<R: Resolver> TypeSet<R> {
    /// A set that asks `resolver` for what it does not have yet.
    pub fn new(resolver: R) -> Self {
        Self { resolver, messages: Mutex::default() }
    }

    /// Where the texts come from.
    pub fn resolver(&self) -> &R {
        &self.resolver
    }

    /// Loads a message by its ROS name: `pkg/msg/Name`, `pkg/Name`, or a part of a service or
    /// action such as `pkg/srv/Name_Request`.
    ///
    /// # Errors
    ///
    /// - [`LoadError::Name`] if `name`, or the name of a type that is used, is none that ROS allows.
    /// - [`LoadError::Missing`] if the resolver has no definition of the type or of one that it uses.
    /// - [`LoadError::Unreadable`] if there is a definition that the resolver cannot read.
    /// - [`LoadError::Parse`] if a definition does not parse.
    /// - [`LoadError::Kind`] if the name is that of a service or an action, and not of a message of it.
    /// - [`LoadError::Cycle`] if a message contains itself.
    /// - [`LoadError::TooDeep`] if messages are nested deeper than [`NESTING_MAX`].
    /// - [`LoadError::TooLarge`] if one value needs more than [`TYPE_BYTES_MAX`].
    pub fn load(&self, name: &str) -> Result<Arc<TypeDescription>, LoadError> {
        let name: TypeName = name.parse()?;
        self.message(&name, &mut Vec::new())
    }

    /// Takes a message whose definition is at hand instead of asking the resolver; what it uses is
    /// asked for.
    ///
    /// # Errors
    ///
    /// [`LoadError::Name`] if `name` is none; [`LoadError::Parse`] if `text` does not parse; else those of
    /// [`load`](Self::load) for what it uses, and for its depth and size.
    pub fn load_text(&self, name: &str, text: &str) -> Result<Arc<TypeDescription>, LoadError> {
        let name: TypeName = name.parse()?;
        let wrong = |error| LoadError::Parse {
            name: name.to_string(),
            place: None,
            error: Box::new(error),
        };
        let spec = parse_message(text).map_err(wrong)?;
        self.resolve(&name, spec, &mut vec![name.clone()])
    }

    /// Loads a service by its ROS name, `pkg/srv/Name`; or one of an action's, `pkg/action/Name_SendGoal` and
    /// `pkg/action/Name_GetResult`.
    ///
    /// # Errors
    ///
    /// [`LoadError::Kind`] if the name is that of a message, or of an action and not of a service of it; else those
    /// of [`load`](Self::load) for its parts.
    pub fn load_service(&self, name: &str) -> Result<ServiceDescription, LoadError> {
        let name: TypeName = name.parse()?;
        let is_service = match name.kind() {
            Kind::Message => false,
            Kind::Service => true,
            Kind::Action => ["_SendGoal", "_GetResult"].iter().any(|it| name.name().ends_with(it)),
        };
        if !is_service {
            return Err(LoadError::kind(&name, Kind::Service));
        }
        self.service(&name)
    }

    /// Loads an action by its ROS name, `pkg/action/Name`.
    ///
    /// # Errors
    ///
    /// [`LoadError::Kind`] if the name is that of a message or a service; else those of [`load`](Self::load) for
    /// its parts.
    pub fn load_action(&self, name: &str) -> Result<ActionDescription, LoadError> {
        let name: TypeName = name.parse()?;
        if name.kind() != Kind::Action {
            return Err(LoadError::kind(&name, Kind::Action));
        }
        let part = |suffix: &str| self.message(&name.with_suffix(suffix), &mut Vec::new());
        let (goal, result, feedback) = (part("_Goal")?, part("_Result")?, part("_Feedback")?);
        let send_goal = self.service(&name.with_suffix("_SendGoal"))?;
        let get_result = self.service(&name.with_suffix("_GetResult"))?;
        let feedback_message = part("_FeedbackMessage")?;
        let hash = hash::action(
            &name,
            [&goal, &result, &feedback],
            [&send_goal, &get_result],
            &feedback_message,
        );
        Ok(ActionDescription {
            name,
            goal,
            result,
            feedback,
            send_goal,
            get_result,
            feedback_message,
            hash,
        })
    }

    fn service(&self, name: &TypeName) -> Result<ServiceDescription, LoadError> {
        let part = |suffix: &str| self.message(&name.with_suffix(suffix), &mut Vec::new());
        let (request, response, event) = (part("_Request")?, part("_Response")?, part("_Event")?);
        let hash = hash::service(name, &request, &response, &event);
        Ok(ServiceDescription { name: name.clone(), request, response, event, hash })
    }

    /// Loads a message while those in `open` are being loaded.
    fn message(
        &self,
        name: &TypeName,
        open: &mut Vec<TypeName>,
    ) -> Result<Arc<TypeDescription>, LoadError> {
        if let Some(known) = self.messages.lock().unwrap_or_else(PoisonError::into_inner).get(name)
        {
            return Ok(known.clone());
        }
        if open.contains(name) {
            let path =
                open.iter().chain([name]).map(TypeName::to_string).collect::<Vec<_>>().join(" > ");
            return Err(LoadError::Cycle { path });
        }
        if open.len() >= NESTING_MAX {
            return Err(LoadError::TooDeep { name: name.to_string() });
        }
        let spec = self.spec(name, open)?;
        open.push(name.clone());
        let description = self.resolve(name, spec, open)?;
        open.pop();
        self.messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.clone(), description.clone());
        Ok(description)
    }

    fn resolve(
        &self,
        name: &TypeName,
        spec: MessageSpec,
        open: &mut Vec<TypeName>,
    ) -> Result<Arc<TypeDescription>, LoadError> {
        let mut fields = Vec::with_capacity(spec.fields.len());
        for field in &spec.fields {
            fields.push(self.resolve_field(name, field, open)?);
        }
        let depth = 1 + fields
            .iter()
            .filter_map(|field| field.ty.base.nested())
            .map(|nested| nested.depth)
            .max()
            .unwrap_or(0);
        if depth > NESTING_MAX {
            return Err(LoadError::TooDeep { name: name.to_string() });
        }
        let layout = Layout::of(&fields);
        let mut sizes = [layout.min, layout.memory].into_iter();
        if let Some(bytes) = sizes.find(|bytes| TYPE_BYTES_MAX < *bytes) {
            return Err(LoadError::TooLarge { name: name.to_string(), bytes });
        }
        let mut description = TypeDescription {
            name: name.clone(),
            spec: Arc::new(spec),
            fields,
            depth,
            layout,
            hash: String::new(),
        };
        description.hash = hash::message(&description);
        Ok(Arc::new(description))
    }

    fn resolve_field(
        &self,
        owner: &TypeName,
        field: &FieldSpec,
        open: &mut Vec<TypeName>,
    ) -> Result<Field, LoadError> {
        let base = match &field.ty.base {
            Base::Scalar(kind) => Base::Scalar(*kind),
            Base::String { bound } => Base::String { bound: *bound },
            Base::WString { bound } => Base::WString { bound: *bound },
            Base::Nested(reference) => {
                Base::Nested(self.message(&reference.resolved(owner)?, open)?)
            }
        };
        Ok(Field {
            name: field.name.clone(),
            ty: FieldType { base, shape: field.ty.shape },
            default: field.default.clone(),
            comment: field.comment.clone(),
        })
    }

    /// The definition of a message, which may be a part of a service or an action.
    fn spec(&self, name: &TypeName, open: &[TypeName]) -> Result<MessageSpec, LoadError> {
        if let Some((stem, suffix)) =
            SUFFIXES.iter().find_map(|s| Some((name.name().strip_suffix(s)?, *s)))
        {
            return self.part(name, stem, suffix, open);
        }
        match name.kind() {
            Kind::Message => self.parsed(parse_message, name, name.name(), open),
            Kind::Service | Kind::Action => Err(LoadError::kind(name, Kind::Message)),
        }
    }

    fn part(
        &self,
        name: &TypeName,
        stem: &str,
        suffix: &str,
        open: &[TypeName],
    ) -> Result<MessageSpec, LoadError> {
        match (name.kind(), suffix) {
            (Kind::Service | Kind::Action, "_Event") => Ok(event_spec(stem)),
            (Kind::Service, "_Request" | "_Response") => {
                let spec = self.parsed(parse_service, name, stem, open)?;
                Ok(if suffix == "_Request" { spec.request } else { spec.response })
            }
            (Kind::Action, "_Goal" | "_Result" | "_Feedback") => {
                let spec = self.parsed(parse_action, name, stem, open)?;
                Ok(match suffix {
                    "_Goal" => spec.goal,
                    "_Result" => spec.result,
                    _ => spec.feedback,
                })
            }
            (Kind::Action, _) => {
                action_part(stem, suffix).ok_or_else(|| LoadError::missing(name, open))
            }
            _ => Err(LoadError::missing(name, open)),
        }
    }

    /// The definition of the interface `stem`, which `name` is or is a part of.
    fn parsed<T>(
        &self,
        parse: fn(&str) -> Result<T, ParseError>,
        name: &TypeName,
        stem: &str,
        open: &[TypeName],
    ) -> Result<T, LoadError> {
        let found = self.resolver.find(name.kind(), name.package(), stem);
        let Definition { text, place } = found
            .map_err(|error| LoadError::Unreadable { name: name.to_string(), error })?
            .or_else(|| implied(name.kind(), name.package(), stem))
            .ok_or_else(|| LoadError::missing(name, open))?;
        parse(&text).map_err(|error| LoadError::Parse {
            name: name.to_string(),
            place,
            error: Box::new(error),
        })
    }
}

/// The messages that ROS puts into every service and action. A resolver need not have them.
fn implied(kind: Kind, package: &str, name: &str) -> Option<Definition<'static>> {
    if kind != Kind::Message {
        return None;
    }
    let text = match (package, name) {
        ("builtin_interfaces", "Time") => "int32 sec\nuint32 nanosec\n",
        ("service_msgs", "ServiceEventInfo") => {
            "uint8 REQUEST_SENT=0\nuint8 REQUEST_RECEIVED=1\nuint8 RESPONSE_SENT=2\nuint8 RESPONSE_RECEIVED=3\n\
             uint8 event_type\nbuiltin_interfaces/Time stamp\nchar[16] client_gid\nint64 sequence_number\n"
        }
        ("unique_identifier_msgs", "UUID") => "uint8[16] uuid\n",
        _ => return None,
    };
    Some(Definition { text: text.into(), place: None })
}

impl<N> Base<N> {
    /// The other message, if it is one.
    pub fn nested(&self) -> Option<&N> {
        match self {
            Self::Nested(nested) => Some(nested),
            _ => None,
        }
    }
}

impl Reference {
    /// The full name seen from the definition `owner`.
    fn resolved(&self, owner: &TypeName) -> Result<TypeName, NameError> {
        let package = self.package.as_deref().unwrap_or_else(|| owner.package());
        // Only the parts that ROS makes up refer to other parts of services and actions, which have
        // an underscore.
        let kind = if self.name.contains('_') { owner.kind() } else { Kind::Message };
        TypeName::new(package, kind, &self.name)
    }
}

/// What service introspection publishes, as ROS defines it for every service.
fn event_spec(stem: &str) -> MessageSpec {
    let request = nested(None, &format!("{stem}_Request"), "request", Shape::Bounded(1));
    let response = nested(None, &format!("{stem}_Response"), "response", Shape::Bounded(1));
    let info = nested(Some("service_msgs"), "ServiceEventInfo", "info", Shape::Single);
    spec_of(vec![info, request, response])
}

/// The services and messages behind an action, as ROS defines them for every action.
fn action_part(stem: &str, suffix: &str) -> Option<MessageSpec> {
    let goal_id = nested(Some("unique_identifier_msgs"), "UUID", "goal_id", Shape::Single);
    if suffix == "_FeedbackMessage" {
        let feedback = nested(None, &format!("{stem}_Feedback"), "feedback", Shape::Single);
        return Some(spec_of(vec![goal_id, feedback]));
    }
    let scalar = |kind, name: &str| FieldSpec {
        name: name.into(),
        ty: FieldType { base: Base::Scalar(kind), shape: Shape::Single },
        default: None,
        comment: Vec::new(),
    };
    use crate::definition::ScalarKind::{Bool, I8};
    if let Some(action) = stem.strip_suffix("_SendGoal") {
        let goal = nested(None, &format!("{action}_Goal"), "goal", Shape::Single);
        let stamp = nested(Some("builtin_interfaces"), "Time", "stamp", Shape::Single);
        return match suffix {
            "_Request" => Some(spec_of(vec![goal_id, goal])),
            "_Response" => Some(spec_of(vec![scalar(Bool, "accepted"), stamp])),
            _ => None,
        };
    }
    let action = stem.strip_suffix("_GetResult")?;
    let result = nested(None, &format!("{action}_Result"), "result", Shape::Single);
    match suffix {
        "_Request" => Some(spec_of(vec![goal_id])),
        "_Response" => Some(spec_of(vec![scalar(I8, "status"), result])),
        _ => None,
    }
}

fn nested(package: Option<&str>, name: &str, field: &str, shape: Shape) -> FieldSpec {
    let base =
        Base::Nested(Reference { package: package.map(str::to_owned), name: name.to_owned() });
    FieldSpec {
        name: field.into(),
        ty: FieldType { base, shape },
        default: None,
        comment: Vec::new(),
    }
}

fn spec_of(fields: Vec<FieldSpec>) -> MessageSpec {
    let text = fields.iter().map(|field| format!("{} {}\n", field.ty, field.name)).collect();
    MessageSpec { fields, text, ..MessageSpec::default() }
}

/// Why a type could not be loaded.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The name is none.
    Name(NameError),
    /// The resolver has no definition of that name.
    Missing {
        /// The name.
        name: String,
        /// The type that uses it, if another does.
        used_by: Option<String>,
    },
    /// There is a definition of that name, which cannot be read.
    Unreadable {
        /// The name.
        name: String,
        /// Where and why.
        error: Unreadable,
    },
    /// A definition does not parse.
    Parse {
        /// The type whose definition it is.
        name: String,
        /// Where the text is, such as the path of a file, if that is known.
        place: Option<String>,
        /// Where in the text and why.
        error: Box<ParseError>,
    },
    /// The name is of another kind of interface.
    Kind {
        /// The name.
        name: String,
        /// What was asked for.
        expected: Kind,
    },
    /// A message contains itself.
    Cycle {
        /// The way round.
        path: String,
    },
    /// Messages in messages beyond [`NESTING_MAX`].
    TooDeep {
        /// The type at which the limit was met.
        name: String,
    },
    /// One value needs more than [`TYPE_BYTES_MAX`].
    TooLarge {
        /// The type.
        name: String,
        /// Bytes that its default value needs.
        bytes: usize,
    },
}

impl LoadError {
    fn missing(name: &TypeName, open: &[TypeName]) -> Self {
        Self::Missing { name: name.to_string(), used_by: open.last().map(TypeName::to_string) }
    }

    fn kind(name: &TypeName, expected: Kind) -> Self {
        Self::Kind { name: name.to_string(), expected }
    }
}

impl From<NameError> for LoadError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Missing { name, used_by: None } => write!(f, "no definition of {name}"),
            Self::Missing { name, used_by: Some(user) } => {
                write!(f, "no definition of {name}, which {user} uses")
            }
            Self::Unreadable { name, error } => write!(f, "{name}: {error}"),
            Self::Parse { name, place: Some(place), error } => {
                write!(f, "{name}: {place}: {error}")
            }
            Self::Parse { name, place: None, error } => write!(f, "{name}: {error}"),
            Self::Kind { name, expected } => {
                write!(
                    f,
                    "{name} is not of the kind that is needed; allowed: package/{expected}/Name"
                )
            }
            Self::Cycle { path } => write!(f, "a message contains itself: {path}"),
            Self::TooDeep { name } => {
                write!(f, "{name}: messages nested deeper than {NESTING_MAX}")
            }
            Self::TooLarge { name, bytes } => {
                write!(
                    f,
                    "{name}: one value needs {bytes} bytes; allowed are at most {TYPE_BYTES_MAX}"
                )
            }
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Name(error) => Some(error),
            Self::Parse { error, .. } => Some(error),
            Self::Unreadable { error, .. } => Some(error),
            _ => None,
        }
    }
}
