//! The HTTP that XML-RPC needs, taken from what has been received so far.
//!
//! Requests and responses of HTTP/1.0 and 1.1, with a length, in chunks, or (responses) until the other end closes. No
//! compression, no upgrade, no trailers that mean anything.

use std::fmt;

/// The longest body of a request or a response. A longer one is an error.
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// The longest head: the first line and all fields. A longer one is an error.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// What the framing of chunks may take beside the body.
const FRAMING_BYTES_MAX: usize = 1 << 20;

/// A whole request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done, such as `POST`.
    pub method: String,
    /// What it is to be done to, such as `/RPC2`.
    pub path: String,
    /// The bytes behind the head.
    pub body: Vec<u8>,
    /// True if the client may send another request on this connection.
    pub keep_alive: bool,
}

/// A whole response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status, such as 200.
    pub status: u16,
    /// The bytes behind the head.
    pub body: Vec<u8>,
    /// True if the server takes another request on this connection.
    pub keep_alive: bool,
}

/// Why bytes are no request or no response. The connection is of no use afterwards.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpError {
    /// The head is not that of HTTP/1.0 or 1.1.
    Malformed,
    /// The head is longer than [`HEAD_BYTES_MAX`].
    HeadTooLarge,
    /// The body is longer than [`BODY_BYTES_MAX`], or its chunks are too many.
    BodyTooLarge,
    /// A request with a body does not say how long it is.
    NoLength,
    /// The body comes in a way that is not understood, such as compressed.
    Unsupported,
    /// The other end closed the connection before the response was whole.
    Closed,
}

impl HttpError {
    /// The status with which a server refuses such a request.
    pub fn status(self) -> u16 {
        match self {
            Self::Malformed | Self::Closed => 400,
            Self::HeadTooLarge => 431,
            Self::BodyTooLarge => 413,
            Self::NoLength => 411,
            Self::Unsupported => 501,
        }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("this is not HTTP/1.0 or HTTP/1.1"),
            Self::HeadTooLarge => write!(f, "the HTTP head is longer than {HEAD_BYTES_MAX} bytes"),
            Self::BodyTooLarge => write!(f, "the HTTP body is longer than {BODY_BYTES_MAX} bytes"),
            Self::NoLength => f.write_str("the HTTP request does not say how long its body is"),
            Self::Unsupported => f.write_str(
                "the HTTP body has a transfer encoding that is not understood; allowed: chunked",
            ),
            Self::Closed => {
                f.write_str("the connection was closed before the HTTP response was whole")
            }
        }
    }
}

impl std::error::Error for HttpError {}

/// Takes a whole request off the front of `buffer`; `None` while it is not whole.
///
/// What follows the request stays in `buffer`.
///
/// # Errors
/// `buffer` does not begin with a request, or with one that is beyond a limit.
pub fn take_request(buffer: &mut Vec<u8>) -> Result<Option<Request>, HttpError> {
    // Blank lines before a request are to be passed over.
    let blank = buffer.iter().take_while(|it| matches!(it, b'\r' | b'\n')).count();
    buffer.drain(..blank);
    let Some(head) = Head::find(buffer)? else { return Ok(None) };
    let mut words = head.first.split_ascii_whitespace();
    let (Some(method), Some(path), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(HttpError::Malformed);
    };
    let keep_alive = head.keeps_alive(version)?;
    let framing = match head.framing()? {
        Framing::Unsaid if method == "POST" || method == "PUT" => return Err(HttpError::NoLength),
        Framing::Unsaid => Framing::Length(0),
        said => said,
    };
    let Some((body, end)) = framing.body(&buffer[head.end..])? else { return Ok(None) };
    let request = Request { method: method.to_owned(), path: path.to_owned(), body, keep_alive };
    let end = head.end + end;
    buffer.drain(..end);
    Ok(Some(request))
}

/// Takes a whole response off the front of `buffer`; `None` while it is not whole.
///
/// `is_closed` says that nothing will follow what is in `buffer`.
///
/// # Errors
/// `buffer` does not begin with a response, or with one that is beyond a limit, or it is closed too early.
pub fn take_response(buffer: &mut Vec<u8>, is_closed: bool) -> Result<Option<Response>, HttpError> {
    let unfinished = if is_closed { Err(HttpError::Closed) } else { Ok(None) };
    loop {
        let Some(head) = Head::find(buffer)? else { return unfinished };
        let mut words = head.first.splitn(3, ' ');
        let (Some(version), Some(status)) = (words.next(), words.next()) else {
            return Err(HttpError::Malformed);
        };
        let status = match status.as_bytes() {
            [b'1'..=b'5', tens, ones] if tens.is_ascii_digit() && ones.is_ascii_digit() => {
                status.parse().map_err(|_| HttpError::Malformed)?
            }
            _ => return Err(HttpError::Malformed),
        };
        let mut keep_alive = head.keeps_alive(version)?;
        let start = head.end;
        if (100..200).contains(&status) {
            // Such a response announces another.
            buffer.drain(..start);
            continue;
        }
        let framing = match head.framing()? {
            _ if matches!(status, 204 | 304) => Framing::Length(0),
            Framing::Unsaid => {
                keep_alive = false;
                if BODY_BYTES_MAX < buffer.len() - start {
                    return Err(HttpError::BodyTooLarge);
                }
                if !is_closed {
                    return Ok(None);
                }
                Framing::Length(buffer.len() - start)
            }
            said => said,
        };
        let Some((body, end)) = framing.body(&buffer[start..])? else { return unfinished };
        buffer.drain(..start + end);
        return Ok(Some(Response { status, body, keep_alive }));
    }
}

/// The bytes of a `POST` with XML in it. `host` is the [`authority`](crate::uri::Uri::authority) of the address.
pub fn encode_request(host: &str, path: &str, body: &str) -> Vec<u8> {
    let path = if path.is_empty() { "/" } else { path };
    // Nodes look for "Content-length: " with that one blank.
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: tsuji\r\nContent-Type: text/xml\r\nContent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The bytes of a response with XML in it.
pub fn encode_response(status: u16, body: &str, keep_alive: bool) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Error",
    };
    let connection = if keep_alive { "keep-alive" } else { "close" };
    format!(
        "HTTP/1.1 {status} {reason}\r\nServer: tsuji\r\nConnection: {connection}\r\nContent-Type: text/xml\r\nContent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The head of a request or a response.
struct Head {
    first: String,
    fields: Vec<(String, String)>,
    /// Where the body begins.
    end: usize,
}

impl Head {
    /// The head that `bytes` begin with; `None` while its end has not come.
    fn find(bytes: &[u8]) -> Result<Option<Self>, HttpError> {
        let seen = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
        let mut lines = Vec::new();
        let mut start = 0;
        loop {
            let Some(length) = seen[start..].iter().position(|it| *it == b'\n') else {
                return if HEAD_BYTES_MAX <= bytes.len() {
                    Err(HttpError::HeadTooLarge)
                } else {
                    Ok(None)
                };
            };
            let line = &seen[start..start + length];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            start += length + 1;
            if line.is_empty() {
                break;
            }
            // A field may have bytes that are no UTF-8; those that matter have none.
            lines.push(String::from_utf8_lossy(line));
        }
        let mut lines = lines.into_iter();
        let first = lines.next().ok_or(HttpError::Malformed)?.into_owned();
        let fields = lines.map(|line| {
            let (name, value) = line.split_once(':').ok_or(HttpError::Malformed)?;
            Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        Ok(Some(Self { first, fields: fields.collect::<Result<_, _>>()?, end: start }))
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.fields.iter().filter(move |it| it.0 == name);
        named.flat_map(|it| it.1.split(',')).map(str::trim)
    }

    fn keeps_alive(&self, version: &str) -> Result<bool, HttpError> {
        let says = |word: &str| self.values("connection").any(|it| it.eq_ignore_ascii_case(word));
        match version {
            "HTTP/1.1" => Ok(!says("close")),
            "HTTP/1.0" => Ok(says("keep-alive") && !says("close")),
            _ => Err(HttpError::Malformed),
        }
    }

    fn framing(&self) -> Result<Framing, HttpError> {
        let mut length = None;
        for value in self.values("content-length") {
            let is_number = !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit());
            if !is_number || length.is_some_and(|it: &str| it != value) {
                return Err(HttpError::Malformed);
            }
            length = Some(value);
        }
        let mut encodings = self.values("transfer-encoding");
        match (encodings.next(), encodings.next(), length) {
            (None, _, None) => Ok(Framing::Unsaid),
            (None, _, Some(value)) => match value.parse() {
                Ok(bytes) if bytes <= BODY_BYTES_MAX => Ok(Framing::Length(bytes)),
                _ => Err(HttpError::BodyTooLarge),
            },
            (Some(word), None, None) if word.eq_ignore_ascii_case("chunked") => {
                Ok(Framing::Chunked)
            }
            (Some(_), _, None) => Err(HttpError::Unsupported),
            // Two lengths are how one request is smuggled within another.
            (Some(_), _, Some(_)) => Err(HttpError::Malformed),
        }
    }
}

/// How it is told where a body ends.
enum Framing {
    Length(usize),
    Chunked,
    Unsaid,
}

impl Framing {
    /// The body, and where it ends in `bytes`; `None` while it is not whole.
    fn body(&self, bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, HttpError> {
        match self {
            Self::Length(length) => Ok(bytes.get(..*length).map(|it| (it.to_vec(), *length))),
            Self::Chunked => {
                // Nothing is copied before all is there: this begins anew whenever bytes have come.
                let Some(end) = chunks(bytes, |_| ())? else { return Ok(None) };
                let mut body = Vec::new();
                chunks(bytes, |chunk| body.extend_from_slice(chunk))?;
                Ok(Some((body, end)))
            }
            Self::Unsaid => Ok(None),
        }
    }
}

/// Hands over each chunk, and says where the last one ends; `None` while it has not come.
fn chunks(bytes: &[u8], mut found: impl FnMut(&[u8])) -> Result<Option<usize>, HttpError> {
    const LINE_BYTES_MAX: usize = 256;
    let line = |start: usize| {
        let rest = &bytes[start..];
        match rest.iter().take(LINE_BYTES_MAX).position(|it| *it == b'\n') {
            Some(length) => {
                let line = &rest[..length];
                Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), start + length + 1)))
            }
            None if LINE_BYTES_MAX <= rest.len() => Err(HttpError::Malformed),
            None => Ok(None),
        }
    };
    let (mut at, mut total) = (0, 0_usize);
    loop {
        if BODY_BYTES_MAX < total || FRAMING_BYTES_MAX < at - total {
            return Err(HttpError::BodyTooLarge);
        }
        let Some((size, start)) = line(at)? else { return Ok(None) };
        let size = size.split(|it| *it == b';').next().unwrap_or_default().trim_ascii();
        if size.is_empty() || 8 < size.len() || !size.iter().all(u8::is_ascii_hexdigit) {
            return Err(HttpError::Malformed);
        }
        let size = std::str::from_utf8(size).ok().and_then(|it| usize::from_str_radix(it, 16).ok());
        let size = size.ok_or(HttpError::Malformed)?;
        if size == 0 {
            at = start;
            break;
        }
        if BODY_BYTES_MAX - total < size {
            return Err(HttpError::BodyTooLarge);
        }
        total += size;
        let Some(chunk) = bytes.get(start..start + size) else { return Ok(None) };
        let Some((rest, end)) = line(start + size)? else { return Ok(None) };
        if !rest.is_empty() {
            return Err(HttpError::Malformed);
        }
        found(chunk);
        at = end;
    }
    // Trailers, up to a blank line.
    loop {
        if FRAMING_BYTES_MAX < at - total {
            return Err(HttpError::BodyTooLarge);
        }
        let Some((trailer, end)) = line(at)? else { return Ok(None) };
        at = end;
        if trailer.is_empty() {
            return Ok(Some(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of `bytes`, however they are cut: the same when they come one by one.
    fn request(bytes: &str) -> Result<Option<Request>, HttpError> {
        let mut whole = bytes.as_bytes().to_vec();
        let expected = take_request(&mut whole);
        let mut buffer = Vec::new();
        let mut taken = Ok(None);
        for byte in bytes.bytes() {
            buffer.push(byte);
            if taken == Ok(None) {
                taken = take_request(&mut buffer);
            }
        }
        assert_eq!(taken, expected);
        if expected.is_ok() {
            assert_eq!(buffer, whole);
        }
        expected
    }

    fn response(bytes: &str, is_closed: bool) -> Result<Option<Response>, HttpError> {
        take_response(&mut bytes.as_bytes().to_vec(), is_closed)
    }

    #[test]
    fn what_is_written_is_read() {
        let text = String::from_utf8(encode_request("robot:11311", "", "<a>é</a>")).unwrap();
        let taken = request(&text).unwrap().unwrap();
        assert_eq!((taken.method.as_str(), taken.path.as_str()), ("POST", "/"));
        assert_eq!((taken.body.as_slice(), taken.keep_alive), ("<a>é</a>".as_bytes(), true));
        for keep_alive in [true, false] {
            let mut bytes = encode_response(200, "<b/>", keep_alive);
            bytes.extend(b"HTTP/1.1 2");
            let taken = take_response(&mut bytes, false).unwrap().unwrap();
            assert_eq!(taken, Response { status: 200, body: b"<b/>".to_vec(), keep_alive });
            assert_eq!(bytes, b"HTTP/1.1 2");
        }
    }

    #[test]
    fn requests_of_ros_1_are_read() {
        let roscpp = "POST / HTTP/1.1\r\nUser-Agent: XMLRPC++ 0.7\r\nHost: localhost:11311\r\n\
                      Content-Type: text/xml\r\nContent-length: 3\r\n\r\nabc";
        assert_eq!(request(roscpp).unwrap().unwrap().body, b"abc");
        let old = "\r\nPOST /RPC2 HTTP/1.0\nContent-Length:3\n\nabcPOST";
        let taken = request(old).unwrap().unwrap();
        assert_eq!((taken.path.as_str(), taken.keep_alive), ("/RPC2", false));
        let kept = "POST / HTTP/1.0\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n";
        assert!(request(kept).unwrap().unwrap().keep_alive);
        let closed = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
        let taken = request(closed).unwrap().unwrap();
        assert_eq!((taken.method.as_str(), taken.keep_alive), ("GET", false));
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nT: 1\r\n\r\n";
        assert_eq!(request(chunked).unwrap().unwrap().body, b"abc");
    }

    #[test]
    fn other_requests_are_refused() {
        for (text, error) in [
            ("hello\r\n\r\n", HttpError::Malformed),
            ("POST / HTTP/2\r\nContent-Length: 0\r\n\r\n", HttpError::Malformed),
            ("POST /a b HTTP/1.1\r\nContent-Length: 0\r\n\r\n", HttpError::Malformed),
            ("POST / HTTP/1.1\r\nno field\r\n\r\n", HttpError::Malformed),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", HttpError::Malformed),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                HttpError::Malformed,
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                HttpError::Malformed,
            ),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", HttpError::Malformed),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", HttpError::Unsupported),
            ("POST / HTTP/1.1\r\n\r\n", HttpError::NoLength),
            ("POST / HTTP/1.1\r\nContent-Length: 16777217\r\n\r\n", HttpError::BodyTooLarge),
            (
                "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                HttpError::BodyTooLarge,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
                HttpError::BodyTooLarge,
            ),
        ] {
            assert_eq!(request(text), Err(error), "{text:?}");
        }
        let mut endless = b"POST / HTTP/1.1\r\n".to_vec();
        endless.resize(HEAD_BYTES_MAX - 1, b'a');
        assert_eq!(take_request(&mut endless), Ok(None));
        endless.push(b'a');
        assert_eq!(take_request(&mut endless), Err(HttpError::HeadTooLarge));
    }

    #[test]
    fn responses_end_where_they_say() {
        let until_closed = "HTTP/1.0 200 OK\r\nContent-Type: text/xml\r\n\r\nabc";
        assert_eq!(response(until_closed, false), Ok(None));
        let taken = response(until_closed, true).unwrap().unwrap();
        assert_eq!((taken.body.as_slice(), taken.keep_alive), (b"abc".as_slice(), false));
        let short = "HTTP/1.1 200 OK\r\nContent-length: 4\r\n\r\nabc";
        assert_eq!(response(short, false), Ok(None));
        assert_eq!(response(short, true), Err(HttpError::Closed));
        assert_eq!(response("", true), Err(HttpError::Closed));
        let announced =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-length: 0\r\n\r\n";
        assert_eq!(response(announced, false).unwrap().unwrap().status, 404);
        let without_reason = "HTTP/1.1 200\r\nContent-length: 0\r\n\r\n";
        assert_eq!(response(without_reason, false).unwrap().unwrap().status, 200);
        for text in [
            "HTTP/1.1 +20 OK\r\n\r\n",
            "HTTP/1.1\r\n\r\n",
            "ICY 200 OK\r\n\r\n",
            "HTTP/1.1 999 x\r\n\r\n",
        ] {
            assert_eq!(response(text, false), Err(HttpError::Malformed), "{text:?}");
        }
        let mut endless = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        endless.resize(endless.len() + BODY_BYTES_MAX + 1, b'a');
        assert_eq!(take_response(&mut endless, false), Err(HttpError::BodyTooLarge));
    }
}
