//! Actions whose type is known at run time only.

use std::sync::Arc;

use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_msg::{ActionDescription, DynamicMessage, TypeDescription, Value};
use tsuji_transport::Sample;

use super::form::{Said, ServiceForm, TopicForm, sealed};
use super::{ActionForm, GoalId, GoalStatus, RawAction, RawActionType};
use crate::{Error, Result};

/// The form of an action whose goals, feedback and results are messages of a type known at run time only.
#[derive(Debug)]
pub enum DynamicAction {}

/// An action's description, for clients and servers with dynamic messages.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::Context;
/// use tsuji::dynamic::{DynamicMessage, TypeSet, Value};
/// use tsuji::interfaces::Shipped;
///
/// let description = TypeSet::new(Shipped).load_action("example_interfaces/action/Fibonacci")?;
/// let mut goal = DynamicMessage::new(description.goal.clone());
/// goal.set("order", Value::I32(5))?;
/// let node = Context::new()?.node("asking")?;
/// let client = node.create_dynamic_action_client("fibonacci", description)?;
/// let patience = Duration::from_secs(5);
/// if let Some(goal) = client.send_goal(goal, patience)? {
///     let (status, result) = goal.result(patience)?;
///     println!("{status}: {:?}", result.get("sequence")?);
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DynamicActionType {
    description: Arc<ActionDescription>,
    raw: RawActionType,
}

impl From<Arc<ActionDescription>> for DynamicActionType {
    fn from(description: Arc<ActionDescription>) -> Self {
        Self { raw: RawActionType::from(&*description), description }
    }
}

impl From<ActionDescription> for DynamicActionType {
    fn from(description: ActionDescription) -> Self {
        Arc::new(description).into()
    }
}

/// The CDR of a message, if it is of this type.
fn encode(message: &DynamicMessage, ty: &TypeDescription) -> Result<Vec<u8>> {
    if message.ty().name() != ty.name() || message.ty().hash() != ty.hash() {
        let found = message.ty().name();
        return Err(Error::invalid(format!("a {found}; allowed: a {}", ty.name())));
    }
    let encoded = message.encode();
    encoded.map_err(|error| Error::invalid(format!("it is no valid {}", ty.name())).because(error))
}

fn decode(ty: &Arc<TypeDescription>, bytes: &[u8]) -> Option<DynamicMessage> {
    DynamicMessage::decode(ty, bytes).ok()
}

impl sealed::Sealed for DynamicAction {}

impl ActionForm for DynamicAction {
    type Type = DynamicActionType;
    type Goal = DynamicMessage;
    type Feedback = DynamicMessage;
    type Result = DynamicMessage;
    type Kept = Vec<u8>;

    fn send_goal_form(ty: &DynamicActionType) -> ServiceForm {
        RawAction::send_goal_form(&ty.raw)
    }

    fn get_result_form(ty: &DynamicActionType) -> ServiceForm {
        RawAction::get_result_form(&ty.raw)
    }

    fn feedback_form(ty: &DynamicActionType) -> TopicForm {
        RawAction::feedback_form(&ty.raw)
    }

    fn join_goal(ty: &DynamicActionType, id: GoalId, goal: DynamicMessage) -> Result<Said> {
        RawAction::join_goal(&ty.raw, id, encode(&goal, &ty.description.goal)?)
    }

    fn split_goal(ty: &DynamicActionType, request: Sample) -> Option<(GoalId, DynamicMessage)> {
        let (id, goal) = RawAction::split_goal(&ty.raw, request)?;
        Some((id, decode(&ty.description.goal, &goal)?))
    }

    fn join_answer(is_accepted: bool, stamp: Time) -> Said {
        RawAction::join_answer(is_accepted, stamp)
    }

    fn split_answer(response: Sample) -> Result<(bool, Time)> {
        RawAction::split_answer(response)
    }

    fn join_asked(id: GoalId) -> Said {
        RawAction::join_asked(id)
    }

    fn split_asked(request: Sample) -> Option<GoalId> {
        RawAction::split_asked(request)
    }

    fn keep(ty: &DynamicActionType, result: DynamicMessage) -> Result<Vec<u8>> {
        encode(&result, &ty.description.result)?;
        let whole = &ty.description.get_result.response;
        let mut response = DynamicMessage::new(Arc::clone(whole));
        let set = response.set("result", Value::Message(result));
        set.map_err(|error| Error::invalid("a result").because(error))?;
        encode(&response, whole)
    }

    fn no_result(ty: &DynamicActionType) -> Vec<u8> {
        RawAction::no_result(&ty.raw)
    }

    fn join_result(status: GoalStatus, result: &Vec<u8>) -> Said {
        RawAction::join_result(status, result)
    }

    fn split_result(
        ty: &DynamicActionType,
        response: Sample,
    ) -> Result<(GoalStatus, DynamicMessage)> {
        let (status, response) = RawAction::split_result(&ty.raw, response)?;
        let whole = &ty.description.get_result.response;
        let invalid = || Error::invalid(format!("a result is no valid {}", whole.name()));
        let response =
            DynamicMessage::decode(whole, &response).map_err(|error| invalid().because(error))?;
        match response.get("result").map_err(|error| invalid().because(error))?.into_owned() {
            Value::Message(result) => Ok((status, result)),
            _ => Err(invalid()),
        }
    }

    fn join_feedback(ty: &DynamicActionType, id: GoalId, feedback: DynamicMessage) -> Result<Said> {
        RawAction::join_feedback(&ty.raw, id, encode(&feedback, &ty.description.feedback)?)
    }

    fn split_feedback(
        ty: &DynamicActionType,
        message: Sample,
        wanted: &dyn Fn(GoalId) -> bool,
    ) -> Option<(GoalId, Option<DynamicMessage>)> {
        let (id, feedback) = RawAction::split_feedback(&ty.raw, message, wanted)?;
        Some((id, feedback.and_then(|it| decode(&ty.description.feedback, &it))))
    }
}
