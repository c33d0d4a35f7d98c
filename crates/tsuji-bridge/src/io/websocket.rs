//! Messages of a WebSocket, by `tungstenite`, which reads here and answers pings and closes.

use std::io::{self, Read, Write};

use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

use super::outgoing::Outgoing;
use super::stream::Stream;

/// The state of a WebSocket whose handshake is done.
#[derive(Debug)]
pub(super) struct WebSocket {
    context: WebSocketContext,
}

/// What reading brought.
#[derive(Debug)]
pub(super) enum Read1 {
    /// A message.
    Message(Message),
    /// Nothing is there now.
    Nothing,
    /// Both sides have said that it is over, or the other one has gone.
    Over,
    /// What came breaks the protocol, or is too large. It is said with this code.
    Broken(CloseCode, String),
}

impl WebSocket {
    /// One of which `read` was read already.
    pub(super) fn new(read: Vec<u8>, message_bytes_max: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(message_bytes_max))
            .max_frame_size(Some(message_bytes_max));
        Self { context: WebSocketContext::from_partially_read(read, Role::Server, Some(config)) }
    }

    /// The next message. What has to be answered is put behind `outgoing`.
    pub(super) fn read(&mut self, stream: &mut Stream, outgoing: &mut Outgoing) -> Read1 {
        let mut both = Both { stream, outgoing };
        match self.context.read(&mut both) {
            Ok(message) => Read1::Message(message),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Read1::Nothing,
            Err(Error::Capacity(error)) => Read1::Broken(CloseCode::Size, error.to_string()),
            Err(Error::Utf8(error)) => Read1::Broken(CloseCode::Invalid, error),
            Err(Error::Protocol(
                tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            )) => Read1::Over,
            Err(Error::Protocol(error)) => Read1::Broken(CloseCode::Protocol, error.to_string()),
            Err(_) => Read1::Over,
        }
    }

    /// Asks whether the other side is there.
    pub(super) fn ping(&mut self, stream: &mut Stream, outgoing: &mut Outgoing) {
        // After a close there is nobody to ask.
        let _ =
            self.context.write(&mut Both { stream, outgoing }, Message::Ping(Vec::new().into()));
        let _ = self.context.flush(&mut Both { stream, outgoing });
    }

    /// Says that it is over, and why.
    pub(super) fn close(
        &mut self,
        code: CloseCode,
        reason: &str,
        stream: &mut Stream,
        outgoing: &mut Outgoing,
    ) {
        let frame = CloseFrame { code, reason: shortened(reason).into() };
        let _ = self.context.close(&mut Both { stream, outgoing }, Some(frame));
    }
}

/// As much of a reason as a control frame has room for.
fn shortened(reason: &str) -> &str {
    let mut end = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

/// Reads from the socket, and writes where whole frames wait to be written.
struct Both<'a> {
    stream: &'a mut Stream,
    outgoing: &'a mut Outgoing,
}

impl Read for Both<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.append(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How much is read at once. Each connection keeps a buffer so large.
const READ_BYTES: usize = 16 << 10;

/// A control frame has 125 bytes, two of which are the code.
const REASON_BYTES_MAX: usize = 123;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_ends_between_two_letters() {
        assert_eq!(shortened("short"), "short");
        let long = "ä".repeat(100);
        assert_eq!(shortened(&long).len(), 122);
    }
}
