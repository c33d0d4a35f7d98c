//! Actions in bytes.
//!
//! The id of a goal, 16 bytes, stands first in what asks for a goal and in feedback, so what follows it is aligned as it
//! would be alone. Before a result stands one byte, its goal's status: a result alone would be aligned otherwise.

use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_msg::{Action, ActionDescription, DynamicMessage, Message, ServiceDescription};
use tsuji_transport::{Payload, Sample};

use super::form::{Said, ServiceForm, TopicForm, sealed};
use super::{ActionForm, GoalId, GoalStatus};
use crate::{Error, RawType, Result};

/// The form of an action whose goals, feedback and results are bytes: CDR with its header of 4 bytes.
///
/// A goal and feedback are the messages `NAME_Goal` and `NAME_Feedback`. A result is the message
/// `NAME_GetResult_Response`, which has the goal's status before the result; a server's is filled in. None is checked
/// to be valid.
#[derive(Debug)]
pub enum RawAction {}

/// An action's type known at run time only, for clients and servers in bytes.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::Context;
/// use tsuji::action::RawActionType;
/// use tsuji::interfaces::example_interfaces::action::Fibonacci;
///
/// let node = Context::new()?.node("asking")?;
/// let client = node.create_raw_action_client("fibonacci", RawActionType::of::<Fibonacci>())?;
/// // The header of CDR, little endian, and `order: 5`.
/// let goal = vec![0, 1, 0, 0, 5, 0, 0, 0];
/// let patience = Duration::from_secs(5);
/// if let Some(goal) = client.send_goal(goal, patience)? {
///     let (status, result) = goal.result(patience)?;
///     println!("{status}: {} bytes", result.len());
/// }
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawActionType {
    send_goal: RawType,
    get_result: RawType,
    feedback_message: RawType,
    /// A `NAME_GetResult_Response` of defaults.
    no_result: Vec<u8>,
}

impl RawActionType {
    /// Returns the type of the actions `A`.
    pub fn of<A: Action>() -> Self {
        let mut no_result = Vec::new();
        let response = A::join_result(0, A::Result::default());
        if let Err(error) = response.serialize_onto(&mut no_result) {
            unreachable!("defaults are within every limit: {error}");
        }
        Self {
            send_goal: RawType::of_service::<A::SendGoal>(),
            get_result: RawType::of_service::<A::GetResult>(),
            feedback_message: RawType::of::<A::FeedbackMessage>(),
            no_result,
        }
    }
}

impl From<&ActionDescription> for RawActionType {
    fn from(action: &ActionDescription) -> Self {
        let service =
            |it: &ServiceDescription| RawType::new(it.name.to_string()).hash(it.hash.clone());
        let feedback = &action.feedback_message;
        let no_result = DynamicMessage::new(action.get_result.response.clone()).encode();
        Self {
            send_goal: service(&action.send_goal),
            get_result: service(&action.get_result),
            feedback_message: RawType::new(feedback.name().to_string()).hash(feedback.hash()),
            no_result: no_result
                .unwrap_or_else(|error| unreachable!("defaults are within every limit: {error}")),
        }
    }
}

/// CDR begins with so many bytes, of which the second says the order of the others.
const HEADER_BYTES: usize = 4;
const BEHIND_ID: usize = HEADER_BYTES + 16;

/// The header of CDR, little endian.
const LITTLE_ENDIAN: [u8; HEADER_BYTES] = [0, 1, 0, 0];

/// Puts the id of a goal before what is said of it.
fn with_id(id: GoalId, message: &[u8], what: &str) -> Result<Vec<u8>> {
    let Some((header, body)) = message.split_at_checked(HEADER_BYTES) else {
        let len = message.len();
        let why = format!("{what}: {len} bytes; allowed: CDR with its header of 4 bytes");
        return Err(Error::invalid(why));
    };
    Ok([header, &id.0, body].concat())
}

/// The id that a message begins with.
fn id_of(message: &[u8]) -> Option<GoalId> {
    message.get(HEADER_BYTES..BEHIND_ID)?.try_into().ok().map(GoalId)
}

/// What stands behind that, as a message of its own.
fn without_id(message: &[u8]) -> Option<Vec<u8>> {
    Some([message.get(..HEADER_BYTES)?, message.get(BEHIND_ID..)?].concat())
}

/// The bytes of a sample. A value is handed to clients and servers of its own type only.
fn bytes(sample: &Sample) -> &[u8] {
    match &sample.payload {
        Payload::Bytes(bytes) => bytes,
        Payload::Typed(_) => &[],
    }
}

fn too_short(what: &str) -> Error {
    Error::invalid(format!("{what}: it ends too early"))
}

impl sealed::Sealed for RawAction {}

impl ActionForm for RawAction {
    type Type = RawActionType;
    type Goal = Vec<u8>;
    type Feedback = Vec<u8>;
    type Result = Vec<u8>;
    type Kept = Vec<u8>;

    fn send_goal_form(ty: &RawActionType) -> ServiceForm {
        ServiceForm::of_bytes(ty.send_goal.clone())
    }

    fn get_result_form(ty: &RawActionType) -> ServiceForm {
        ServiceForm::of_bytes(ty.get_result.clone())
    }

    fn feedback_form(ty: &RawActionType) -> TopicForm {
        TopicForm::of_bytes(ty.feedback_message.clone())
    }

    fn join_goal(_: &RawActionType, id: GoalId, goal: Vec<u8>) -> Result<Said> {
        with_id(id, &goal, "a goal").map(Said::Bytes)
    }

    fn split_goal(_: &RawActionType, request: Sample) -> Option<(GoalId, Vec<u8>)> {
        let request = bytes(&request);
        Some((id_of(request)?, without_id(request)?))
    }

    fn join_answer(is_accepted: bool, stamp: Time) -> Said {
        // A time is aligned to 4 bytes.
        let accepted = [u8::from(is_accepted), 0, 0, 0];
        let (sec, nanosec) = (stamp.sec.to_le_bytes(), stamp.nanosec.to_le_bytes());
        Said::Bytes([LITTLE_ENDIAN, accepted, sec, nanosec].concat())
    }

    fn split_answer(response: Sample) -> Result<(bool, Time)> {
        let response = bytes(&response);
        let word = |at: usize| <[u8; 4]>::try_from(response.get(at..at + 4)?).ok();
        let (Some([is_accepted, ..]), Some(sec), Some(nanosec)) = (word(4), word(8), word(12))
        else {
            return Err(too_short("the answer to a goal"));
        };
        let stamp = match response[1] & 1 {
            0 => Time { sec: i32::from_be_bytes(sec), nanosec: u32::from_be_bytes(nanosec) },
            _ => Time { sec: i32::from_le_bytes(sec), nanosec: u32::from_le_bytes(nanosec) },
        };
        Ok((is_accepted != 0, stamp))
    }

    fn join_asked(id: GoalId) -> Said {
        Said::Bytes([&LITTLE_ENDIAN[..], &id.0].concat())
    }

    fn split_asked(request: Sample) -> Option<GoalId> {
        id_of(bytes(&request))
    }

    fn keep(_: &RawActionType, result: Vec<u8>) -> Result<Vec<u8>> {
        if result.len() <= HEADER_BYTES {
            return Err(too_short("a result"));
        }
        Ok(result)
    }

    fn no_result(ty: &RawActionType) -> Vec<u8> {
        ty.no_result.clone()
    }

    fn join_result(status: GoalStatus, result: &Vec<u8>) -> Said {
        let mut response = result.clone();
        if let Some(place) = response.get_mut(HEADER_BYTES) {
            *place = status as u8;
        }
        Said::Bytes(response)
    }

    fn split_result(_: &RawActionType, response: Sample) -> Result<(GoalStatus, Vec<u8>)> {
        let response = bytes(&response);
        let status = response.get(HEADER_BYTES).ok_or_else(|| too_short("a result"))?;
        Ok((GoalStatus::from_number(*status as i8), response.to_vec()))
    }

    fn join_feedback(_: &RawActionType, id: GoalId, feedback: Vec<u8>) -> Result<Said> {
        with_id(id, &feedback, "feedback").map(Said::Bytes)
    }

    fn split_feedback(
        _: &RawActionType,
        message: Sample,
        wanted: &dyn Fn(GoalId) -> bool,
    ) -> Option<(GoalId, Option<Vec<u8>>)> {
        let message = bytes(&message);
        let id = id_of(message).filter(|id| wanted(*id))?;
        Some((id, without_id(message)))
    }
}
