//! Calls of XML-RPC that wait for their answer.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

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

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) | Self::SaysNo(why) | Self::Other(why) => f.write_str(why),
        }
    }
}

/// Connects to a host by its name or address, trying each of its addresses.
pub(crate) fn connect(host: &str, port: u16, within: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + within;
    // Names of hosts in URIs of ROS 1 are as the host calls itself; its own may resolve to nothing but loopback.
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
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
    let failed = |error: io::Error| {
        let line = format!("{method} of {uri}: {error}");
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Failure::Refused(line),
            _ => Failure::Other(line),
        }
    };
    let body = exchange(uri, &Call::new(method, params).encode(), within).map_err(failed)?;
    let other = |why: String| Failure::Other(format!("{method} of {uri}: {why}"));
    let reply = Reply::parse(&body).map_err(|error| other(error.to_string()))?;
    reply.ros().map_err(|why| Failure::SaysNo(format!("{method} of {uri}: {why}")))
}

fn exchange(uri: &Uri, body: &str, within: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + within;
    let mut stream = connect(&uri.host, uri.port, within)?;
    stream.set_nodelay(true)?;
    let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_write_timeout(Some(left()))?;
    let path = if uri.path.is_empty() { "/" } else { &uri.path };
    stream.write_all(&http::encode_request(&format!("{}:{}", uri.host, uri.port), path, body))?;
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let (mut received, mut part) = (Vec::new(), [0; 8192]);
    loop {
        stream.set_read_timeout(Some(left()))?;
        let length = match stream.read(&mut part) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        };
        received.extend(&part[..length]);
        let response = http::take_response(&mut received, length == 0);
        match response.map_err(|error| invalid(error.to_string()))? {
            Some(response) if response.status == 200 => return Ok(response.body),
            Some(response) => return Err(invalid(format!("HTTP status {}", response.status))),
            None if length == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            None if deadline <= Instant::now() => return Err(io::ErrorKind::TimedOut.into()),
            None => (),
        }
    }
}
