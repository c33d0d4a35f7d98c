//! Typed messages: what generated code implements and everything else uses.

use crate::array::{self, ArrayError};
use crate::cdr::{ByteOrder, CdrError, Count, Number, Reader, Sink, Slice, Writer};
use crate::path::Path;
use crate::wire::Wire;
use std::fmt::Debug;

/// A message whose Rust type was generated from its definition.
///
/// ```
/// use tsuji_msg::{CdrError, Message};
///
/// fn round_trip<M: Message>(message: &M) -> Result<(), CdrError> {
///     let bytes = message.to_vec()?;
///     let copy = M::deserialize(&bytes)?;
///     let in_place = M::view_cdr(&bytes)?;
///     assert_eq!(copy, *message);
///     assert_eq!(format!("{in_place:?}"), format!("{:?}", message.view()));
///     Ok(())
/// }
/// ```
///
/// A sample starts with the 4-byte encapsulation header. Put that header at an address that is
/// [`HEADER_OFFSET_MOD_16`](crate::cdr::HEADER_OFFSET_MOD_16) modulo 16, and every array in it is
/// aligned in place.
pub trait Message: Wire + Clone + Debug + Default + PartialEq + Send + Sync {
    /// The type's name, such as `sensor_msgs/msg/Image`.
    const TYPE_NAME: &'static str;

    /// The type's hash, `RIHS01_` and 64 hexadecimal digits.
    const TYPE_HASH: &'static str;

    /// Bytes of every sample, header included, if all samples have the same size.
    const FIXED_SIZE: Option<usize>;

    /// The definition, followed by those of the types that it uses, each under a line of `=` and a
    /// line `MSG: name`.
    const DEFINITION: &'static str;

    /// Exact bytes that this value takes, header included. Costs nothing for what is in arrays of
    /// numbers.
    #[inline]
    fn serialized_size(&self) -> usize {
        if let Some(size) = Self::FIXED_SIZE {
            return size;
        }
        // Counting does not fail; what breaks a limit of its type fails when it is written.
        encode(self, Count::default()).map_or(0, |count| count.position())
    }

    /// Writes header and body, little endian, and tells the bytes written.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::write`]; [`CdrProblem::NoRoom`](crate::CdrProblem::NoRoom) if `out` is shorter than
    /// [`serialized_size`](Self::serialized_size).
    #[inline]
    fn serialize_into(&self, out: &mut [u8]) -> Result<usize, CdrError> {
        Ok(encode(self, Slice::new(out))?.position())
    }

    /// Appends header and body, little endian.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::write`], but never [`CdrProblem::NoRoom`](crate::CdrProblem::NoRoom). `out` is then as it
    /// was.
    fn serialize_onto(&self, out: &mut Vec<u8>) -> Result<(), CdrError> {
        let start = out.len();
        let size = self.serialized_size();
        out.reserve(size);
        let mut writer = Writer::new(Appended { out, start }, ByteOrder::Little)?;
        match self.write(&mut writer) {
            Ok(()) => Ok(()),
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }

    /// Returns the sample: header and body, little endian.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::write`], but never [`CdrProblem::NoRoom`](crate::CdrProblem::NoRoom).
    fn to_vec(&self) -> Result<Vec<u8>, CdrError> {
        encode(self, Vec::with_capacity(self.serialized_size()))
    }

    /// Reads a sample of either byte order. Bytes after the message are taken for padding.
    ///
    /// # Errors
    ///
    /// Those of [`Reader::new`] for the header; those of [`Wire::read`] for the body.
    #[inline]
    fn deserialize(bytes: &[u8]) -> Result<Self, CdrError> {
        Self::read(&mut Reader::new(bytes)?)
    }

    /// Reads a sample to be shown: what in a text is not UTF-8, which CDR does not promise, or in a wide one not
    /// UTF-16, is U+FFFD. [`deserialize`](Self::deserialize) refuses such a message.
    ///
    /// # Errors
    ///
    /// Those of [`deserialize`](Self::deserialize), but never [`CdrProblem::Utf8`](crate::CdrProblem::Utf8) or
    /// [`CdrProblem::Utf16`](crate::CdrProblem::Utf16). A text counts with its U+FFFD where its type limits it.
    fn deserialize_lossy(bytes: &[u8]) -> Result<Self, CdrError> {
        Self::read(&mut Reader::lossy(bytes)?)
    }

    /// Views this value, with the type that a view of a sample has, so that a callback is written
    /// once.
    #[inline]
    fn view(&self) -> Self::View<'_> {
        self.as_view()
    }

    /// Views a sample in place, of either byte order.
    ///
    /// Every byte is checked here, so using the view cannot fail.
    ///
    /// # Errors
    ///
    /// Those of [`deserialize`](Self::deserialize).
    #[inline]
    fn view_cdr(bytes: &[u8]) -> Result<Self::View<'_>, CdrError> {
        Self::read_view(&mut Reader::new(bytes)?)
    }

    /// The array of numbers at a path such as `ranges` or `channels[2].values`. That of a sample is found by
    /// [`ArrayLayout`](crate::ArrayLayout).
    ///
    /// # Errors
    ///
    /// [`ArrayError::Array`] if there is no array at `path`, or one of other numbers.
    fn array<T: Number>(&self, path: &str) -> Result<&[T], ArrayError> {
        self.find(Path::new(path)).ok_or_else(|| array::missing::<T>(self, path))
    }
}

/// A service: a request and its response.
pub trait Service: 'static {
    /// What a client sends.
    type Request: Message;
    /// What a server answers.
    type Response: Message;

    /// The service's name, such as `std_srvs/srv/SetBool`.
    const TYPE_NAME: &'static str;

    /// The service's hash, `RIHS01_` and 64 hexadecimal digits.
    const TYPE_HASH: &'static str;
}

/// An action: a goal, what is heard while it is pursued, and a result; and how the services and the topic that
/// carry them are put together and taken apart. A goal is named by 16 bytes, a UUID.
pub trait Action: 'static {
    /// What a client asks for.
    type Goal: Message;
    /// What it gets in the end.
    type Result: Message;
    /// What it hears meanwhile.
    type Feedback: Message;
    /// The service that takes goals.
    type SendGoal: Service;
    /// The service that gives results.
    type GetResult: Service;
    /// What carries feedback.
    type FeedbackMessage: Message;

    /// The action's name, such as `example_interfaces/action/Fibonacci`.
    const TYPE_NAME: &'static str;

    /// The action's hash, `RIHS01_` and 64 hexadecimal digits.
    const TYPE_HASH: &'static str;

    /// Asks for a goal.
    fn join_goal(id: [u8; 16], goal: Self::Goal) -> <Self::SendGoal as Service>::Request;

    /// The goal that is asked for.
    fn split_goal(request: &<Self::SendGoal as Service>::Request) -> ([u8; 16], &Self::Goal);

    /// Whether a goal is accepted, and when: seconds and nanoseconds of the server's clock.
    fn join_answer(accepted: bool, stamp: (i32, u32)) -> <Self::SendGoal as Service>::Response;

    /// As [`join_answer`](Self::join_answer) has it.
    fn split_answer(response: &<Self::SendGoal as Service>::Response) -> (bool, (i32, u32));

    /// Asks for the result of a goal.
    fn join_asked(id: [u8; 16]) -> <Self::GetResult as Service>::Request;

    /// The goal whose result is asked for.
    fn split_asked(request: &<Self::GetResult as Service>::Request) -> [u8; 16];

    /// The result of a goal that ended so, by the numbers of `action_msgs/msg/GoalStatus`.
    fn join_result(status: i8, result: Self::Result) -> <Self::GetResult as Service>::Response;

    /// As [`join_result`](Self::join_result) has it.
    fn split_result(response: <Self::GetResult as Service>::Response) -> (i8, Self::Result);

    /// What is said of a goal.
    fn join_feedback(id: [u8; 16], feedback: Self::Feedback) -> Self::FeedbackMessage;

    /// As [`join_feedback`](Self::join_feedback) has it.
    fn split_feedback(message: &Self::FeedbackMessage) -> ([u8; 16], &Self::Feedback);
}

/// A message that is mostly one long array of numbers.
///
/// Implemented for every message with exactly one unbounded sequence of numbers at its top level.
pub trait InPlace: Message {
    /// What the long array holds.
    type Item: Number;

    /// The name of the long array.
    const ARRAY: &'static str;
}

/// Writes a message in either byte order into any sink.
///
/// # Errors
///
/// Those of [`Writer::new`] and of [`Wire::write`].
pub fn encode_as<M: Wire, S: Sink>(message: &M, sink: S, order: ByteOrder) -> Result<S, CdrError> {
    let mut writer = Writer::new(sink, order)?;
    message.write(&mut writer)?;
    Ok(writer.into_sink())
}

#[inline]
fn encode<M: Wire, S: Sink>(message: &M, sink: S) -> Result<S, CdrError> {
    encode_as(message, sink, ByteOrder::Little)
}

/// The end of a vector that may hold something already.
struct Appended<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl Sink for Appended<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.out.put(bytes)
    }

    #[inline]
    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.out.zeros(count)
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), CdrError> {
        self.out.skip(count)
    }

    #[inline]
    fn position(&self) -> usize {
        self.out.len() - self.start
    }
}
