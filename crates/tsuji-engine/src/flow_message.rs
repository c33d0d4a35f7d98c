//! What the two ends of a flow tell each other besides samples, over the control channel.
//!
//! A writer that connects says Hello. The reader answers Heard when its engine has matched the
//! writer, or Gone. From then on the writer counts on it: Mark says which of its samples has which
//! number of the engine, and End which is the last. Credit says up to which sample a reader that
//! keeps all has taken: now and then, and when the writer asks because it finds no room.

use tsuji_transport::Gid;

use crate::engine::Guid;

/// From one end of a flow to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowMessage {
    pub(crate) writer: Gid,
    pub(crate) reader: Gid,
    /// Of the reader's address. A message of an earlier connection is not for this one.
    pub(crate) round: u32,
    pub(crate) content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// To the reader: this is how the engine names me.
    Hello(Guid),
    /// To the writer: what you write from now on arrives.
    Heard,
    /// To the writer: there is no such reader, or it has not accepted you.
    Gone,
    /// To the reader: the sample that the engine counts as `engine` is `sequence`, and so on.
    Mark { engine: u64, sequence: u64 },
    /// To the reader: what the engine counts beyond this is not for you.
    End { engine: u64 },
    /// To the writer: your samples up to this sequence number were taken.
    Credit(u64),
    /// To the reader: say up to which they were taken, as soon as there is something new.
    Ask,
}

impl FlowMessage {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN_MAX);
        let kind = match self.content {
            Content::Hello(_) => 0,
            Content::Heard => 1,
            Content::Gone => 2,
            Content::Mark { .. } => 3,
            Content::End { .. } => 4,
            Content::Credit(_) => 5,
            Content::Ask => 6,
        };
        bytes.push(kind);
        bytes.extend(self.writer.0);
        bytes.extend(self.reader.0);
        bytes.extend(self.round.to_le_bytes());
        match self.content {
            Content::Hello(guid) => bytes.extend(guid),
            Content::Heard | Content::Gone | Content::Ask => (),
            Content::Mark { engine, sequence } => {
                bytes.extend(engine.to_le_bytes());
                bytes.extend(sequence.to_le_bytes());
            }
            Content::End { engine: number } | Content::Credit(number) => {
                bytes.extend(number.to_le_bytes());
            }
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[kind], rest) = bytes.split_first_chunk()?;
        let (writer, rest) = rest.split_first_chunk()?;
        let (reader, rest) = rest.split_first_chunk()?;
        let (round, rest) = rest.split_first_chunk()?;
        let number = || Some(u64::from_le_bytes(rest.try_into().ok()?));
        let content = match kind {
            0 => Content::Hello(rest.try_into().ok()?),
            1 if rest.is_empty() => Content::Heard,
            2 if rest.is_empty() => Content::Gone,
            3 => {
                let (engine, sequence) = rest.split_first_chunk()?;
                Content::Mark {
                    engine: u64::from_le_bytes(*engine),
                    sequence: u64::from_le_bytes(sequence.try_into().ok()?),
                }
            }
            4 => Content::End { engine: number()? },
            5 => Content::Credit(number()?),
            6 if rest.is_empty() => Content::Ask,
            _ => return None,
        };
        let (writer, reader) = (Gid(*writer), Gid(*reader));
        Some(Self { writer, reader, round: u32::from_le_bytes(*round), content })
    }
}

const LEN_MAX: usize = 1 + 16 + 16 + 4 + 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_arrive_as_written_and_no_shorter() {
        let contents = [
            Content::Hello([7; 16]),
            Content::Heard,
            Content::Gone,
            Content::Mark { engine: 1, sequence: u64::MAX },
            Content::End { engine: 9 },
            Content::Credit(3),
            Content::Ask,
        ];
        for content in contents {
            let message =
                FlowMessage { writer: Gid([1; 16]), reader: Gid([2; 16]), round: 0xfffe, content };
            let bytes = message.to_bytes();
            assert!(bytes.len() <= LEN_MAX);
            assert_eq!(FlowMessage::from_bytes(&bytes), Some(message));
            for len in 0..bytes.len() {
                assert_eq!(
                    FlowMessage::from_bytes(&bytes[..len]),
                    None,
                    "{content:?} cut to {len}"
                );
            }
            assert_eq!(FlowMessage::from_bytes(&[&*bytes, &[0]].concat()), None);
        }
        assert_eq!(FlowMessage::from_bytes(&[7; 37]), None);
    }
}
