//! Messages within messages: read by the plan of their type, and kept for another thread.

use tsuji_codec::{FieldError, Now, Plan};
use tsuji_rosbridge::{Body, Id, Refusal};

/// Appends the CDR of `body`. A body that is absent is a message of defaults.
pub(crate) fn read(
    plan: &Plan,
    body: Body<'_>,
    now: Now,
    out: &mut Vec<u8>,
) -> Result<(), FieldError> {
    match body {
        Body::None => plan.cdr_from_json(b"{}", now, out),
        Body::Json(text) => plan.cdr_from_json(text, now, out),
        Body::Cbor(item) => plan.cdr_from_cbor(item, now, out),
        Body::Bson { value, .. } => plan.cdr_from_bson(value, now, out),
    }
}

/// Refuses a body that is none of its type, in the words of its error.
pub(crate) fn refusal(
    operation: &'static str,
    id: Option<&Id<'_>>,
    member: &'static str,
    error: &FieldError,
) -> Refusal {
    let found = match error.field() {
        "" => error.found().to_owned(),
        field => format!("{} in field `{field}`", error.found()),
    };
    let expected = format!("{} (byte {})", error.expected(), error.offset());
    Refusal::new(operation, id, Some(member), found, expected)
}

/// The wall clock, for stamps that a client leaves to the server.
pub(crate) fn wall_now() -> Now {
    let ns = tsuji_platform::clock::wall_ns();
    let (sec, nanosec) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    Now { sec: sec as i32, nanosec: nanosec as u32 }
}

/// The same, kept.
#[derive(Clone, Debug)]
pub(crate) struct OwnedBody {
    form: Form,
    bytes: Box<[u8]>,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    None,
    Json,
    Cbor,
    Bson(u8),
    Cdr,
}

impl OwnedBody {
    /// A copy.
    pub(crate) fn of(body: Body<'_>) -> Self {
        let (form, bytes) = match body {
            Body::None => (Form::None, &[][..]),
            Body::Json(text) => (Form::Json, text),
            Body::Cbor(item) => (Form::Cbor, item),
            Body::Bson { kind, value } => (Form::Bson(kind), value),
        };
        Self { form, bytes: bytes.into() }
    }

    /// A copy of what is CDR already.
    pub(crate) fn of_cdr(bytes: &[u8]) -> Self {
        Self { form: Form::Cdr, bytes: bytes.into() }
    }

    /// Appends its CDR. One that is absent is a message of defaults.
    pub(crate) fn read(&self, plan: &Plan, now: Now, out: &mut Vec<u8>) -> Result<(), FieldError> {
        match self.form {
            Form::Cdr => {
                out.extend_from_slice(&self.bytes);
                Ok(())
            }
            _ => read(plan, self.body(), now, out),
        }
    }

    /// None.
    pub(crate) fn none() -> Self {
        Self { form: Form::None, bytes: Box::default() }
    }

    /// The CDR of what `get_result` of an action answers, with this as its result and a status from 0 to 6. An error says what of
    /// it is none.
    pub(crate) fn wrapped(&self, status: i8, plan: &Plan, now: Now) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let read = match self.body() {
            Body::None => {
                let text = format!("{{\"status\":{status}}}");
                plan.cdr_from_json(text.as_bytes(), now, &mut out)
            }
            Body::Json(text) => {
                let begin = format!("{{\"status\":{status},\"result\":");
                plan.cdr_from_json(&[begin.as_bytes(), text, b"}"].concat(), now, &mut out)
            }
            Body::Cbor(item) => {
                // A map of two, whose texts have 6 letters; a status is less than 24.
                let begin = [&b"\xa2\x66status"[..], &[status as u8], b"\x66result"].concat();
                plan.cdr_from_cbor(&[&begin, item].concat(), now, &mut out)
            }
            Body::Bson { kind, value } => {
                let begin =
                    [&b"\x10status\0"[..], &i32::from(status).to_le_bytes(), &[kind], b"result\0"];
                let members = [&begin.concat(), value].concat();
                // The length of a document counts itself and the zero behind the members.
                let length = i32::try_from(members.len() + 5).unwrap_or(i32::MAX).to_le_bytes();
                plan.cdr_from_bson(&[&length[..], &members, b"\0"].concat(), now, &mut out)
            }
        };
        read.map(|()| out).map_err(|error| error.to_string())
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// As it came, if it is no CDR.
    pub(crate) fn body(&self) -> Body<'_> {
        match self.form {
            Form::None | Form::Cdr => Body::None,
            Form::Json => Body::Json(&self.bytes),
            Form::Cbor => Body::Cbor(&self.bytes),
            Form::Bson(kind) => Body::Bson { kind, value: &self.bytes },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;
    use crate::types::Types;
    use serde_json::json;
    use tsuji_interfaces::Shipped;

    #[test]
    fn a_result_is_wrapped_the_same_from_every_form() {
        let types = Types::new(Box::new(Shipped));
        let ty = types.action("example_interfaces/action/Fibonacci").unwrap();
        let plan = &ty.get_result.response.plan;
        let wrapped = |body| OwnedBody::of(body).wrapped(4, plan, Now { sec: 0, nanosec: 0 });
        let json = wrapped(Body::Json(br#"{"sequence":[1,2]}"#)).unwrap();
        // The status, and two numbers behind their count.
        assert_eq!(json[4..], [4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        let cbor = wrapped(Body::Cbor(b"\xa1\x68sequence\x82\x01\x02"));
        assert_eq!(cbor.unwrap(), json);
        let document = tree::bson(&json!({ "sequence": [1, 2] }));
        let bson = wrapped(Body::Bson { kind: 3, value: &document });
        assert_eq!(bson.unwrap(), json);
        assert!(wrapped(Body::Bson { kind: 2, value: b"\x02\0\0\0x\0" }).is_err());
    }
}
