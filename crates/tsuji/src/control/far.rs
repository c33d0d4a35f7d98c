//! Control channels beyond the host: a topic of the wire for each process, which it alone reads.
//!
//! What is written before both ends have matched is lost. So both knock, each with a random number
//! of its own, until they hear their number from the other; from then on nothing is lost until the
//! engine gives the other up. Another number means that the other end begins anew.

use std::time::Duration;

use tsuji_core::{History, Qos};
use tsuji_msg::cdr::{ByteOrder, Reader, Writer};
use tsuji_platform::process;
use tsuji_transport::wire::{ChannelSpec, Inlet, Outlet, Wire};
use tsuji_transport::{PeerId, Result};

use crate::pacing::Backoff;

/// One end of a channel.
#[derive(Debug)]
pub(crate) struct FarLine {
    outlet: Box<dyn Outlet>,
    own: PeerId,
    mine: u64,
    theirs: Option<u64>,
    knocks: Option<Backoff>,
}

/// What a frame that arrived makes of a channel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It is no frame for this end, or of before.
    Nothing,
    /// Both ends hear each other from now on.
    Up,
    /// The other end says something.
    Said,
    /// The other end has begun anew: so must this one.
    Anew,
}

impl FarLine {
    /// Opens the channel to `peer`.
    pub(crate) fn open(wire: &dyn Wire, own: PeerId, peer: PeerId) -> Result<Self> {
        let outlet = wire.open_outlet(&spec(peer))?;
        // Zero stands for a number that is not known.
        let mine = process::random_token().map_or(1, |token| u64::from_le_bytes(first(token)) | 1);
        let mut knocks = Backoff::new(KNOCK_FIRST, KNOCK_LAST);
        knocks.later();
        Ok(Self { outlet, own, mine, theirs: None, knocks: Some(knocks) })
    }

    /// Whether what is sent arrives.
    pub(crate) fn is_up(&self) -> bool {
        self.knocks.is_none()
    }

    pub(crate) fn send(&self, body: &[u8]) -> Result<()> {
        let (from, mine, yours) = (self.own, self.mine, self.theirs.unwrap_or(0));
        self.outlet.write(&FarFrame { from, mine, yours, body }.to_bytes())
    }

    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.knocks.as_ref()?.due_ns()
    }

    /// Knocks, if it is time.
    pub(crate) fn on_time(&mut self, now_ns: u64) {
        if self.knocks.as_ref().is_some_and(|it| it.is_due(now_ns)) {
            // What is lost is said again.
            let _ = self.send(&[]);
            self.knocks.iter_mut().for_each(Backoff::later);
        }
    }

    pub(crate) fn hear(&mut self, frame: &FarFrame<'_>) -> Heard {
        if self.theirs.is_some_and(|theirs| theirs != frame.mine) {
            return Heard::Anew;
        }
        let is_first = self.theirs.replace(frame.mine).is_none();
        if frame.yours != self.mine {
            if is_first || frame.yours == 0 {
                let _ = self.send(&[]);
            }
            return Heard::Nothing;
        }
        match self.knocks.take() {
            Some(_) => {
                // The other end may not have heard its number yet.
                let _ = self.send(&[]);
                Heard::Up
            }
            None if frame.body.is_empty() => Heard::Nothing,
            None => Heard::Said,
        }
    }
}

/// Opens the topic that this process reads.
pub(crate) fn open_inlet(wire: &dyn Wire, own: PeerId) -> Result<Box<dyn Inlet>> {
    wire.open_inlet(&spec(own))
}

fn spec(reader: PeerId) -> ChannelSpec {
    ChannelSpec {
        topic: format!("tsuji_control/{reader}"),
        type_name: "tsuji::Control".to_owned(),
        qos: Qos { history: History::KeepAll, ..Qos::DEFAULT },
        user_data: Vec::new(),
    }
}

/// What goes over the topic: a sequence of bytes, for whoever looks at the wire.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FarFrame<'a> {
    pub(crate) from: PeerId,
    mine: u64,
    yours: u64,
    pub(crate) body: &'a [u8],
}

impl<'a> FarFrame<'a> {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.body.len());
        bytes.extend(MAGIC);
        bytes.extend(self.from.0);
        bytes.extend(self.mine.to_le_bytes());
        bytes.extend(self.yours.to_le_bytes());
        bytes.extend(self.body);
        let written = Writer::new(Vec::new(), ByteOrder::Little).and_then(|mut writer| {
            writer.length(bytes.len())?;
            writer.scalars(&bytes)?;
            Ok(writer.into_sink())
        });
        // Only a length beyond 32 bits fails, and frames are far shorter.
        written.unwrap_or_default()
    }

    pub(crate) fn from_bytes(sample: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(sample).ok()?;
        let len = reader.length(1).ok()?;
        let bytes = reader.scalar_bytes::<u8>(len).ok()?;
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (from, rest) = rest.split_first_chunk()?;
        let (mine, rest) = rest.split_first_chunk()?;
        let (yours, body) = rest.split_first_chunk()?;
        let (mine, yours) = (u64::from_le_bytes(*mine), u64::from_le_bytes(*yours));
        (mine != 0).then_some(Self { from: PeerId(*from), mine, yours, body })
    }
}

fn first([a, b, c, d, e, f, g, h, ..]: [u8; 16]) -> [u8; 8] {
    [a, b, c, d, e, f, g, h]
}

const MAGIC: [u8; 4] = *b"tsjf";
const HEAD: usize = 4 + 16 + 8 + 8;
const KNOCK_FIRST: Duration = Duration::from_millis(20);
const KNOCK_LAST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tsuji_transport::Gid;

    use super::*;

    #[derive(Debug, Default, Clone)]
    struct Kept(Arc<Mutex<Vec<Vec<u8>>>>);

    impl Outlet for Kept {
        fn name(&self) -> Gid {
            Gid::default()
        }

        fn write(&self, bytes: &[u8]) -> Result<()> {
            self.0.lock().unwrap().push(bytes.to_vec());
            Ok(())
        }
    }

    fn line(mine: u64) -> (FarLine, Kept) {
        let kept = Kept::default();
        let mut knocks = Backoff::new(KNOCK_FIRST, KNOCK_LAST);
        knocks.later();
        let own = PeerId([mine as u8; 16]);
        let outlet = Box::new(kept.clone());
        (FarLine { outlet, own, mine, theirs: None, knocks: Some(knocks) }, kept)
    }

    /// Hands what one end wrote to the other.
    fn carry(from: &Kept, to: &mut FarLine) -> Vec<Heard> {
        let written = std::mem::take(&mut *from.0.lock().unwrap());
        let frames = written.iter().map(|it| FarFrame::from_bytes(it).unwrap());
        frames.map(|frame| to.hear(&frame)).collect()
    }

    #[test]
    fn two_ends_come_up_whatever_is_lost_before() {
        for lost in 0..4 {
            let ((mut a, from_a), (mut b, from_b)) = (line(1), line(3));
            for round in 0..10 {
                a.on_time(u64::MAX);
                b.on_time(u64::MAX);
                if round < lost {
                    from_a.0.lock().unwrap().clear();
                } else {
                    carry(&from_a, &mut b);
                }
                carry(&from_b, &mut a);
            }
            assert!(a.is_up() && b.is_up(), "{lost}");
            a.send(b"hello").unwrap();
            assert_eq!(carry(&from_a, &mut b).last(), Some(&Heard::Said));
        }
    }

    #[test]
    fn an_end_that_begins_anew_is_noticed() {
        let ((mut a, from_a), (mut b, from_b)) = (line(1), line(3));
        for _ in 0..5 {
            a.on_time(u64::MAX);
            carry(&from_a, &mut b);
            b.on_time(u64::MAX);
            carry(&from_b, &mut a);
        }
        let (mut again, from_again) = line(5);
        again.on_time(u64::MAX);
        assert_eq!(carry(&from_again, &mut b), [Heard::Anew]);
    }

    #[test]
    fn what_is_no_frame_is_not_read() {
        let frame = FarFrame { from: PeerId([1; 16]), mine: 7, yours: 0, body: b"x" };
        let bytes = frame.to_bytes();
        assert_eq!(FarFrame::from_bytes(&bytes), Some(frame));
        for len in 0..bytes.len() {
            assert_eq!(FarFrame::from_bytes(&bytes[..len]), None, "{len}");
        }
        let other = FarFrame { from: PeerId([1; 16]), mine: 0, yours: 0, body: b"" };
        assert_eq!(FarFrame::from_bytes(&other.to_bytes()), None);
    }
}
