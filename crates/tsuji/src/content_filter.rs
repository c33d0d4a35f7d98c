//! Content filters of subscriptions: which messages of a topic one wants.

use std::any::Any;
use std::sync::Arc;

use tsuji_interfaces::Shipped;
use tsuji_msg::{CdrError, Expression, Filter, Message, TypeDescription, TypeSet, load_full_text};
use tsuji_transport::{ByteFilter, Encoding, Payload, Sample};

use crate::control::protocol::FilterRecord;
use crate::endpoint::EndpointCore;
use crate::{Error, ErrorKind, Result};

/// Content filter of a subscription, as it was set.
///
/// The language of the expression is that of DDS, as [`tsuji_msg::Expression`] describes it.
///
/// ```
/// use tsuji::ContentFilterOptions;
///
/// let hot = ContentFilterOptions::new("temperature > %0", ["35.5"]);
/// assert_eq!(hot.expression_parameters, ["35.5"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentFilterOptions {
    /// What a message must fulfil, such as `temperature > %0`. Empty: every message is wanted.
    pub filter_expression: String,
    /// Constants for `%0` to `%99`, as the expression would have them: `35.5`, `'left'`, `TRUE`.
    pub expression_parameters: Vec<String>,
}

impl ContentFilterOptions {
    /// Creates a filter of an expression and its parameters.
    pub fn new(
        filter_expression: impl Into<String>,
        expression_parameters: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            filter_expression: filter_expression.into(),
            expression_parameters: expression_parameters.into_iter().map(Into::into).collect(),
        }
    }
}

/// Whether a value of one Rust type passes.
pub(crate) type ValuePasses = fn(&Filter, &dyn Any) -> Result<bool, CdrError>;

/// Whether a message of type `M` passes. Of another there is none: publishers hand values to subscriptions of their type.
pub(crate) fn value_passes<M: Message>(filter: &Filter, value: &dyn Any) -> Result<bool, CdrError> {
    value.downcast_ref::<M>().map_or(Ok(true), |message| filter.matches_message(message))
}

/// How a subscription knows its type.
#[derive(Clone, Default)]
pub(crate) enum Described {
    /// By its name alone.
    #[default]
    Named,
    /// By what its user has said.
    Given(Arc<TypeDescription>),
    /// By its fields alone.
    Fields(Arc<TypeDescription>),
    /// By its Rust type.
    Rust { name: &'static str, definition: &'static str, passes: ValuePasses },
}

impl Described {
    /// That of the messages `M`.
    pub(crate) fn of<M: Message>() -> Self {
        Self::Rust { name: M::TYPE_NAME, definition: M::DEFINITION, passes: value_passes::<M> }
    }

    /// The description of the type of `core`.
    fn description(&self, core: &EndpointCore) -> Result<Arc<TypeDescription>> {
        let name = &core.type_name;
        let unknown = |why: String| {
            let topic = &core.topic;
            let what =
                format!("{topic}: a content filter needs the definition of {name}, and {why}");
            Error::new(ErrorKind::Unsupported, what)
        };
        let ty = match self {
            Self::Given(ty) | Self::Fields(ty) => Arc::clone(ty),
            Self::Rust { name, definition, .. } => {
                load_full_text(name, definition).map_err(|error| unknown(error.to_string()))?
            }
            Self::Named => TypeSet::new(Shipped).load(name).map_err(|_| {
                let why =
                    "tsuji does not ship it; give it by SubscriptionOptions::type_description";
                unknown(why.to_owned())
            })?,
        };
        let given = ty.name().to_string();
        if given != *name {
            return Err(Error::invalid(format!(
                "{}: the definition is that of {given}; expected that of {name}",
                core.topic
            )));
        }
        let is_compared = !core.type_hash.is_empty() && !matches!(self, Self::Fields(_));
        if is_compared && core.type_hash != ty.hash() {
            return Err(unknown(format!(
                "the one that is known is another: its hash is {}",
                ty.hash()
            )));
        }
        Ok(ty)
    }
}

/// Most bytes of a filter and the definition of its type, as publishers of other processes are told of them. One that is
/// longer is looked at where samples arrive alone.
const RECORD_BYTES_MAX: usize = 48 << 10;

/// The filter that the subscription of another process has told of, for samples of a publisher; or why there is none.
pub(crate) fn of_record(
    record: &FilterRecord,
    publisher: &EndpointCore,
) -> Result<Arc<Filter>, String> {
    let ty = load_full_text(&publisher.type_name, &record.definition)
        .map_err(|error| error.to_string())?;
    if !publisher.type_hash.is_empty() && publisher.type_hash != ty.hash() {
        return Err("the subscription has another definition of the type".to_owned());
    }
    let filter = Expression::parse(&record.expression)
        .and_then(|expression| expression.compile(&ty, &record.parameters));
    filter.map(Arc::new).map_err(|error| error.to_string())
}

/// A content filter that was compiled for the type of a subscription.
pub(crate) struct ContentFilter {
    pub(crate) options: ContentFilterOptions,
    filter: Arc<Filter>,
    passes: Option<ValuePasses>,
}

impl ContentFilter {
    /// Compiles a filter for the type of `core`; `None` where everything passes.
    pub(crate) fn compile(
        options: ContentFilterOptions,
        core: &EndpointCore,
        described: &Described,
    ) -> Result<Option<Arc<Self>>> {
        let wrong =
            |error| Error::invalid(format!("{}: content filter", core.topic)).because(error);
        let expression = Expression::parse(&options.filter_expression).map_err(wrong)?;
        if expression.is_empty() {
            return Ok(None);
        }
        let ty = described.description(core)?;
        let filter = expression.compile(&ty, &options.expression_parameters).map_err(wrong)?;
        let passes = match described {
            Described::Rust { passes, .. } => Some(*passes),
            Described::Named | Described::Given(_) | Described::Fields(_) => None,
        };
        Ok(Some(Arc::new(Self { options, filter: Arc::new(filter), passes })))
    }

    /// The filter for what arrives as bytes.
    pub(crate) fn byte_filter(&self) -> ByteFilter {
        let filter = Arc::clone(&self.filter);
        // What cannot be looked at is told where it is taken.
        Arc::new(move |bytes| filter.matches(bytes) != Ok(false))
    }

    /// The filter itself, for a publisher of this process.
    pub(crate) fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }

    /// All that a publisher of another process needs to know; `None` if that is too much to be told.
    pub(crate) fn record(&self) -> Option<FilterRecord> {
        let ty = self.filter.ty();
        let ContentFilterOptions { filter_expression, expression_parameters } = &self.options;
        let definition = ty.full_text();
        let parameters = expression_parameters.iter().map(|it| it.len() + 8);
        let bytes = definition.len() + filter_expression.len() + parameters.sum::<usize>();
        (bytes <= RECORD_BYTES_MAX).then(|| FilterRecord {
            definition,
            expression: filter_expression.clone(),
            parameters: expression_parameters.clone(),
        })
    }

    /// Whether a sample that came as bytes is filtered out. What is a value, or cannot be read, is looked at when it is taken.
    pub(crate) fn rejects(&self, sample: &Sample) -> bool {
        let is_cdr = sample.envelope.encoding == Encoding::Cdr1;
        let Payload::Bytes(bytes) = &sample.payload else { return false };
        is_cdr && self.filter.matches(bytes) == Ok(false)
    }

    /// Whether a sample passes, or why that cannot be told. Asks a value, which may do anything then.
    pub(crate) fn passes(&self, sample: &Sample) -> Result<bool, String> {
        let passes = match (&sample.payload, self.passes) {
            (Payload::Bytes(_), _) if sample.envelope.encoding != Encoding::Cdr1 => {
                return Err("not CDR".to_owned());
            }
            (Payload::Bytes(bytes), _) => self.filter.matches(bytes),
            (Payload::Typed(value), Some(passes)) => passes(&self.filter, &**value),
            (Payload::Typed(_), None) => Ok(true),
        };
        passes.map_err(|error| error.to_string())
    }
}
