//! Messages within messages: read by the plan of their type, and kept for another thread.

use tsuji_codec::{FieldError, Now, Plan};
use tsuji_rosbridge::Body;

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
            Body::Bson { .. } => {
                return Err("BSON, which results of actions cannot be yet".to_owned());
            }
        };
        read.map(|()| out).map_err(|error| error.to_string())
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// As it came.
    pub(crate) fn body(&self) -> Body<'_> {
        match self.form {
            Form::None => Body::None,
            Form::Json => Body::Json(&self.bytes),
            Form::Cbor => Body::Cbor(&self.bytes),
            Form::Bson(kind) => Body::Bson { kind, value: &self.bytes },
        }
    }
}
