use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use tsuji_transport::ErrorKind as TransportKind;

/// The result of a call on the node API.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a call on the node API: what went wrong, about what, and what is allowed.
///
/// `{:?}` is the same sentence as `{}`, so that a `main` that returns a [`Result`] and an `unwrap()` tell it as one;
/// `{:#?}` shows the fields.
///
/// ```
/// use std::time::Duration;
/// use tsuji::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Timeout, "no map").within(Duration::from_millis(500));
/// assert_eq!(error.to_string(), "no map within 0.5 s");
/// match error.kind() {
///     ErrorKind::Busy | ErrorKind::Timeout => println!("{error}; trying again"),
///     _ => panic!("{error}"),
/// }
/// ```
pub struct Error {
    kind: ErrorKind,
    what: String,
    /// How long was waited, shown between `what` and `hint`.
    timeout: Option<Duration>,
    /// What else is known, or what to do.
    hint: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error of `kind`; `what` is a sentence that says where and what is allowed.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), timeout: None, hint: String::new(), source: None }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, what)
    }

    pub(crate) fn closed(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Closed, what)
    }

    pub(crate) fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds how long was waited, which is shown in seconds: `no reply within 0.5 s`.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same error of one step, told as that of all steps, for which the user has said `whole`.
    #[doc(hidden)]
    #[must_use]
    pub fn of_whole(mut self, whole: Duration) -> Self {
        self.timeout = self.timeout.map(|_| whole);
        self
    }

    /// Returns how long was waited for what did not happen; `None` where nothing was waited for.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the kind of the error, which is what the caller can act on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(timeout) = self.timeout {
            write!(f, " within {} s", timeout.as_secs_f64())?;
        }
        f.write_str(&self.hint)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let Self { kind, what, timeout, hint, source } = self;
        let mut fields = f.debug_struct("Error");
        fields.field("kind", kind).field("what", what).field("timeout", timeout);
        fields.field("hint", hint).field("source", source).finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<tsuji_transport::Error> for Error {
    fn from(error: tsuji_transport::Error) -> Self {
        let kind = match error.kind() {
            TransportKind::Busy => ErrorKind::Busy,
            TransportKind::Closed => ErrorKind::Closed,
            TransportKind::TooLarge => ErrorKind::TooLarge,
            TransportKind::Unsupported => ErrorKind::Unsupported,
            TransportKind::Invalid => ErrorKind::Invalid,
            TransportKind::Exhausted => ErrorKind::Exhausted,
            _ => ErrorKind::Unexpected,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<tsuji_msg::CdrError> for Error {
    fn from(error: tsuji_msg::CdrError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<tsuji_msg::ArrayError> for Error {
    fn from(error: tsuji_msg::ArrayError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// Kind of an [`Error`]: what the caller can act on. One kind per reaction, not one per cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument that can never work: a name, a QoS, a value.
    Invalid,
    /// No room now: a subscription that keeps all, or the memory, is full; a later try may succeed.
    Busy,
    /// The time-out passed before what was waited for happened. Of a call: the request was sent, and may have been
    /// or may yet be performed.
    Timeout,
    /// No server was ready, or not in time. Nothing was sent; there may be one later.
    NoServer,
    /// Every server that had the request left before it answered. It may have been performed.
    ServerLost,
    /// The context is shut down, the other end has left, or this is a forked child of the process that made the context.
    Closed,
    /// The sample is larger than any link of this publisher carries.
    TooLarge,
    /// The machine or the process has no more of something: memory, descriptors, disk, threads.
    Exhausted,
    /// The permissions of this process's enclave in the keystore do not allow it.
    PermissionDenied,
    /// The operation is not in this build, or not for this type.
    Unsupported,
    /// The system failed in a way nobody foresaw; see the source.
    Unexpected,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_sentence_where_main_returns_it() {
        let check = |error: Error, expect: &str| {
            // What the standard library prints of a `main` that fails, and of an `unwrap()`.
            assert_eq!(format!("{error:?}"), expect);
            assert_eq!(error.to_string(), expect);
            assert!(format!("{error:#?}").contains("kind: Invalid"), "{error:#?}");
        };
        check(Error::invalid("the name \"a b\" has a blank"), "the name \"a b\" has a blank");
        let late = || Error::invalid("no reply").within(Duration::from_millis(500));
        check(late(), "no reply within 0.5 s");
        check(late().hint("; it was sent"), "no reply within 0.5 s; it was sent");
        check(late().of_whole(Duration::from_secs(1)), "no reply within 1 s");
        check(Error::invalid("no").of_whole(Duration::from_secs(1)), "no");
        let cause = std::io::Error::from_raw_os_error(2);
        let why = format!("policy file robot.xml: {cause}");
        check(Error::invalid("policy file robot.xml").because(cause), &why);
    }

    /// Those of the crates below that a program meets through this one, too.
    #[test]
    fn every_error_is_a_sentence_where_main_returns_it() {
        use tsuji_core::{History, Qos, Reliability, TopicPattern};
        use tsuji_interfaces::Shipped;
        use tsuji_interfaces::std_msgs::msg::String as Text;
        use tsuji_msg::{ArrayError, DynamicMessage, Message, TypeName, TypeSet};

        use crate::Severity;
        use crate::parameter::{ParameterValue, UnknownType, parse_value};

        let types = TypeSet::new(Shipped);
        let ty = types.load("std_msgs/msg/String").unwrap();
        let cdr = || Text::deserialize(&[0]).unwrap_err();
        let no_depth = Qos { history: History::KeepLast(0), ..Qos::DEFAULT };
        let errors: [Box<dyn StdError>; 13] = [
            Box::new(types.load("no_msgs/msg/Such").unwrap_err()),
            Box::new("a b".parse::<TypeName>().unwrap_err()),
            Box::new(DynamicMessage::from_yaml(&ty, "{date: x}").unwrap_err()),
            Box::new(ArrayError::from(cdr())),
            Box::new(cdr()),
            Box::new(parse_value("{a: 1}").unwrap_err()),
            Box::new(f64::try_from(ParameterValue::Bool(true)).unwrap_err()),
            Box::new(UnknownType(12)),
            Box::new("loud".parse::<Severity>().unwrap_err()),
            Box::new(no_depth.validate().unwrap_err()),
            Box::new("so-so".parse::<Reliability>().unwrap_err()),
            Box::new("no slash".parse::<TopicPattern>().unwrap_err()),
            Box::new(tsuji_core::names::expand_topic("a b", "node", "/").unwrap_err()),
        ];
        for error in errors {
            assert_eq!(format!("{error:?}"), error.to_string());
        }
    }
}
