//! Calls of XML-RPC that wait for their answer.

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use tsuji_platform::deadline::DeadlineStream;
use tsuji_ros1::http;
use tsuji_ros1::uri::Uri;
use tsuji_ros1::xmlrpc::{Call, Reply, Value};

/// How long a call of the master or of a publisher may take in all.
pub(crate) const WITHIN: Duration = Duration::from_secs(5);

/// The same, of a call that only asks whether somebody is there.
pub(crate) const PROBE_WITHIN: Duration = Duration::from_secs(1);

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody listens there, so whoever did has ended.
    Refused(String),
    /// There was an answer, and it is that this cannot be.
    SaysNo(String),
    /// Anything else, which may pass.
    Other(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }
}

impl Failure {
    /// The same, with what was done first.
    fn of(self, what: &str) -> Self {
        match self {
            Self::Refused(why) => Self::Refused(format!("{what}: {why}")),
            Self::SaysNo(why) => Self::SaysNo(format!("{what}: {why}")),
            Self::Other(why) => Self::Other(format!("{what}: {why}")),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) | Self::SaysNo(why) | Self::Other(why) => f.write_str(why),
        }
    }
}

/// Calls a method, and answers the value of a reply that says success.
pub(crate) fn call(uri: &Uri, method: &str, params: Vec<Value>) -> Result<Value, Failure> {
    call_within(uri, method, params, WITHIN)
}

/// The same, which takes so long at most.
pub(crate) fn call_within(
    uri: &Uri,
    method: &str,
    params: Vec<Value>,
    within: Duration,
) -> Result<Value, Failure> {
    let of = |failure: Failure| failure.of(&format!("{method} of {uri}"));
    let body = exchange(uri, &Call::new(method, params).encode(), within);
    let body = body.map_err(|error| of(error.into()))?;
    let reply = Reply::parse(&body).map_err(|error| of(Failure::Other(error.to_string())))?;
    reply.ros().map_err(|why| of(Failure::SaysNo(why)))
}

fn exchange(uri: &Uri, body: &str, within: Duration) -> io::Result<Vec<u8>> {
    let mut stream = DeadlineStream::connect(&uri.host, uri.port, within, within)?;
    stream.get_ref().set_nodelay(true)?;
    stream.write_all(&http::encode_request(&uri.authority(), &uri.path, body))?;
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let (mut received, mut part) = (Vec::new(), [0; 8192]);
    loop {
        let length = stream.read(&mut part)?;
        received.extend(&part[..length]);
        let response = http::take_response(&mut received, length == 0);
        match response.map_err(|error| invalid(error.to_string()))? {
            Some(response) if response.status == 200 => return Ok(response.body),
            Some(response) => return Err(invalid(format!("HTTP status {}", response.status))),
            None if length == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            None => (),
        }
    }
}
