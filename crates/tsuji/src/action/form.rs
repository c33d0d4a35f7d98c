//! What goals, feedback and results are to a client or a server of an action: values of Rust types, messages of a type
//! known at run time, or bytes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_msg::{Action, Message};
use tsuji_transport::{Payload, Sample};

use super::{GoalId, GoalStatus};
use crate::client::response;
use crate::options::Texts;
use crate::publisher_core::{Outgoing, PublisherSpec};
use crate::subscription_core::SubscriptionSpec;
use crate::{RawType, Result, ServiceType};

/// What goals, feedback and results are to a client or a server of an action.
///
/// Every [`Action`] is a form of its own: they are values of its Rust types. [`DynamicAction`](super::DynamicAction)
/// has messages of a type known at run time only, [`RawAction`](super::RawAction) bytes. There are no others.
pub trait ActionForm: sealed::Sealed + Sized + 'static {
    /// What is known of the action's type at run time: nothing where Rust knows it.
    type Type: fmt::Debug + Send + Sync + 'static;
    /// The goal that a client requests.
    type Goal: Send + 'static;
    /// The feedback that a server publishes while it executes a goal.
    type Feedback: Send + 'static;
    /// The result of a goal that has ended.
    type Result: Send + 'static;
    /// A result as a server keeps it for whoever asks.
    #[doc(hidden)]
    type Kept: Send + Sync + 'static;

    #[doc(hidden)]
    fn send_goal_form(ty: &Self::Type) -> ServiceForm;
    #[doc(hidden)]
    fn get_result_form(ty: &Self::Type) -> ServiceForm;
    #[doc(hidden)]
    fn feedback_form(ty: &Self::Type) -> TopicForm;

    /// Asks for a goal.
    #[doc(hidden)]
    fn join_goal(ty: &Self::Type, id: GoalId, goal: Self::Goal) -> Result<Said>;
    /// The goal that is asked for; `None` if it cannot be read.
    #[doc(hidden)]
    fn split_goal(ty: &Self::Type, request: Sample) -> Option<(GoalId, Self::Goal)>;
    /// Whether a goal is accepted, and when.
    #[doc(hidden)]
    fn join_answer(is_accepted: bool, stamp: Time) -> Said;
    #[doc(hidden)]
    fn split_answer(response: Sample) -> Result<(bool, Time)>;
    /// Asks for the result of a goal.
    #[doc(hidden)]
    fn join_asked(id: GoalId) -> Said;
    #[doc(hidden)]
    fn split_asked(request: Sample) -> Option<GoalId>;
    /// Takes a result to be kept.
    #[doc(hidden)]
    fn keep(ty: &Self::Type, result: Self::Result) -> Result<Self::Kept>;
    /// The result of a goal that has none.
    #[doc(hidden)]
    fn no_result(ty: &Self::Type) -> Self::Kept;
    /// The result of a goal that ended so.
    #[doc(hidden)]
    fn join_result(status: GoalStatus, result: &Self::Kept) -> Said;
    #[doc(hidden)]
    fn split_result(ty: &Self::Type, response: Sample) -> Result<(GoalStatus, Self::Result)>;
    /// What is said of a goal.
    #[doc(hidden)]
    fn join_feedback(ty: &Self::Type, id: GoalId, feedback: Self::Feedback) -> Result<Said>;
    /// What is said of a goal, if it is one of the `wanted`; nothing of it if it cannot be read.
    #[doc(hidden)]
    fn split_feedback(
        ty: &Self::Type,
        message: Sample,
        wanted: &dyn Fn(GoalId) -> bool,
    ) -> Option<(GoalId, Option<Self::Feedback>)>;
}

pub(super) mod sealed {
    /// Keeps the forms to those of this crate.
    pub trait Sealed {}
}

/// A message that is to be sent.
pub enum Said {
    /// A value, which reaches the same process by reference.
    Value(Arc<dyn Any + Send + Sync>),
    /// CDR with its header of 4 bytes.
    Bytes(Vec<u8>),
}

impl Said {
    fn value<M: Message>(message: M) -> Self {
        Self::Value(Arc::new(message))
    }

    pub(crate) fn outgoing(&self) -> Outgoing<'_> {
        match self {
            Self::Value(value) => Outgoing::Shared(Arc::clone(value)),
            Self::Bytes(bytes) => Outgoing::Copied(bytes),
        }
    }
}

/// A service of an action, seen from both ends.
pub struct ServiceForm {
    pub(crate) of: RawType,
    /// As a client sends and takes.
    pub(crate) asks: (PublisherSpec, SubscriptionSpec),
    /// As a server takes and sends.
    pub(crate) answers: (SubscriptionSpec, PublisherSpec),
}

impl ServiceForm {
    fn of<S: ServiceType>() -> Self {
        // Whether one is valid is found where it is taken apart, so that a request that is not has an answer all the same.
        let replies = SubscriptionSpec { check: None, ..SubscriptionSpec::of::<S::Response>() };
        let requests = SubscriptionSpec { check: None, ..SubscriptionSpec::of::<S::Request>() };
        Self {
            of: RawType::of_service::<S>(),
            asks: (PublisherSpec::of::<S::Request>(), replies),
            answers: (requests, PublisherSpec::of::<S::Response>()),
        }
    }

    pub(super) fn of_bytes(of: RawType) -> Self {
        Self { of, asks: Default::default(), answers: Default::default() }
    }
}

/// The topic of an action's feedback, seen from both ends.
pub struct TopicForm {
    pub(crate) of: RawType,
    pub(crate) publishes: PublisherSpec,
    pub(crate) subscribes: SubscriptionSpec,
}

impl TopicForm {
    fn of<M: Message>() -> Self {
        let (publishes, subscribes) = (PublisherSpec::of::<M>(), SubscriptionSpec::of::<M>());
        Self { of: RawType::of::<M>(), publishes, subscribes }
    }

    pub(super) fn of_bytes(of: RawType) -> Self {
        Self { of, publishes: PublisherSpec::default(), subscribes: SubscriptionSpec::default() }
    }
}

/// The message in a sample: the sender's own value, or a copy. What cannot be read was refused where it came.
fn message<M: Message>(sample: Sample) -> Option<Arc<M>> {
    match sample.payload {
        Payload::Typed(value) => value.downcast().ok(),
        Payload::Bytes(bytes) => M::deserialize(&bytes).ok().map(Arc::new),
    }
}

impl<A: Action> sealed::Sealed for A {}

impl<A: Action> ActionForm for A {
    type Type = ();
    type Goal = A::Goal;
    type Feedback = A::Feedback;
    type Result = A::Result;
    type Kept = A::Result;

    fn send_goal_form((): &()) -> ServiceForm {
        ServiceForm::of::<A::SendGoal>()
    }

    fn get_result_form((): &()) -> ServiceForm {
        ServiceForm::of::<A::GetResult>()
    }

    fn feedback_form((): &()) -> TopicForm {
        TopicForm::of::<A::FeedbackMessage>()
    }

    fn join_goal((): &(), id: GoalId, goal: A::Goal) -> Result<Said> {
        Ok(Said::value(A::join_goal(id.0, goal)))
    }

    fn split_goal((): &(), request: Sample) -> Option<(GoalId, A::Goal)> {
        let request = message(request)?;
        let (id, goal) = A::split_goal(&request);
        Some((GoalId(id), goal.clone()))
    }

    fn join_answer(is_accepted: bool, stamp: Time) -> Said {
        Said::value(A::join_answer(is_accepted, (stamp.sec, stamp.nanosec)))
    }

    fn split_answer(answer: Sample) -> Result<(bool, Time)> {
        let answer = response::<A::SendGoal>(answer, Texts::Checked)?;
        let (is_accepted, (sec, nanosec)) = A::split_answer(&answer);
        Ok((is_accepted, Time { sec, nanosec }))
    }

    fn join_asked(id: GoalId) -> Said {
        Said::value(A::join_asked(id.0))
    }

    fn split_asked(request: Sample) -> Option<GoalId> {
        Some(GoalId(A::split_asked(&*message(request)?)))
    }

    fn keep((): &(), result: A::Result) -> Result<A::Result> {
        Ok(result)
    }

    fn no_result((): &()) -> A::Result {
        A::Result::default()
    }

    fn join_result(status: GoalStatus, result: &A::Result) -> Said {
        Said::value(A::join_result(status.number(), result.clone()))
    }

    fn split_result((): &(), answer: Sample) -> Result<(GoalStatus, A::Result)> {
        let answer = response::<A::GetResult>(answer, Texts::Checked)?;
        let (status, result) = A::split_result(answer);
        Ok((GoalStatus::from_number(status), result))
    }

    fn join_feedback((): &(), id: GoalId, feedback: A::Feedback) -> Result<Said> {
        Ok(Said::value(A::join_feedback(id.0, feedback)))
    }

    fn split_feedback(
        (): &(),
        sample: Sample,
        wanted: &dyn Fn(GoalId) -> bool,
    ) -> Option<(GoalId, Option<A::Feedback>)> {
        let message = message(sample)?;
        let (id, feedback) = A::split_feedback(&message);
        wanted(GoalId(id)).then(|| (GoalId(id), Some(feedback.clone())))
    }
}
