//! Control channels beyond the host: a topic of the wire for each process, which it alone reads.
//!
//! What is written before both ends have matched is lost. So both try to connect, each with a number of its
//! own, until they hear their number from the other; from then on nothing is lost until the engine
//! gives the other up. A higher number means that the other end begins anew, a lower one is of
//! before: what an end wrote that was given up may come after what its successor wrote. What is said
//! is counted, for an end that does not listen for long loses the oldest, and then begins anew.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tsuji_core::{History, Qos};
use tsuji_msg::cdr::{ByteOrder, Reader, Writer};
use tsuji_platform::clock;
use tsuji_transport::wire::{ChannelSpec, Inlet, Outlet, Wire};
use tsuji_transport::{PeerId, Result};

use crate::pacing::Backoff;

/// One end of a channel.
#[derive(Debug)]
pub(crate) struct RemoteChannel {
    outlet: Box<dyn Outlet>,
    own: PeerId,
    mine: u64,
    theirs: Option<u64>,
    /// How much was said, and heard.
    said: u64,
    heard: u64,
    connect_attempts: Option<Backoff>,
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
    /// The other process ends.
    Ended,
    /// The other end has begun anew, or was not heard for a while: so must this one.
    Anew,
}

impl RemoteChannel {
    /// Opens the channel to `peer`.
    pub(crate) fn open(wire: &dyn Wire, own: PeerId, peer: PeerId) -> Result<Self> {
        let outlet = wire.open_outlet(&spec(peer))?;
        let mine = LINES.fetch_add(1, Ordering::Relaxed);
        let mut connect_attempts = Backoff::new(CONNECT_ATTEMPT_FIRST, CONNECT_ATTEMPT_LAST);
        connect_attempts.later(clock::monotonic_ns());
        Ok(Self {
            outlet,
            own,
            mine,
            theirs: None,
            said: 0,
            heard: 0,
            connect_attempts: Some(connect_attempts),
        })
    }

    /// Whether what is sent arrives.
    pub(crate) fn is_up(&self) -> bool {
        self.connect_attempts.is_none()
    }

    /// Says something, or tries to connect where there is nothing to say.
    pub(crate) fn send(&mut self, body: &[u8]) -> Result<()> {
        let (from, mine, yours) = (self.own, self.mine, self.theirs.unwrap_or(0));
        let count = self.said + u64::from(!body.is_empty());
        self.outlet.write(&RemoteFrame { from, mine, yours, count, body }.to_bytes())?;
        self.said = count;
        Ok(())
    }

    /// Says that this process ends: nothing else on the wire does before its participant goes.
    pub(crate) fn end(&self) {
        if self.is_up() {
            let (from, mine, yours) = (self.own, self.mine, self.theirs.unwrap_or(0));
            let frame = RemoteFrame { from, mine, yours, count: COUNT_AT_END, body: &[] };
            // Whoever does not hear it sees the participant go.
            let _ = self.outlet.write(&frame.to_bytes());
        }
    }

    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.connect_attempts.as_ref()?.due_ns()
    }

    /// ConnectAttempts, if it is time.
    pub(crate) fn on_time(&mut self, now_ns: u64) {
        if self.connect_attempts.as_ref().is_some_and(|it| it.is_due(now_ns)) {
            // What is lost is said again.
            let _ = self.send(&[]);
            self.connect_attempts.iter_mut().for_each(|it| it.later(now_ns));
        }
    }

    pub(crate) fn hear(&mut self, frame: &RemoteFrame<'_>) -> Heard {
        match self.theirs {
            Some(theirs) if frame.mine < theirs => return Heard::Nothing,
            // An end that nobody has heard yet need not begin anew.
            Some(theirs) if theirs < frame.mine && self.is_up() => return Heard::Anew,
            _ => {}
        }
        let is_first = self.theirs.replace(frame.mine) != Some(frame.mine);
        if frame.yours != self.mine {
            if is_first || frame.yours == 0 {
                let _ = self.send(&[]);
            }
            return Heard::Nothing;
        }
        if frame.count == COUNT_AT_END {
            return Heard::Ended;
        }
        if frame.count != self.heard + u64::from(!frame.body.is_empty()) {
            return Heard::Anew;
        }
        self.heard = frame.count;
        match self.connect_attempts.take() {
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
pub(crate) struct RemoteFrame<'a> {
    pub(crate) from: PeerId,
    mine: u64,
    yours: u64,
    /// How much was said before this, and with it, or [`COUNT_AT_END`].
    count: u64,
    pub(crate) body: &'a [u8],
}

impl<'a> RemoteFrame<'a> {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.body.len());
        bytes.extend(MAGIC);
        bytes.extend(self.from.0);
        bytes.extend(self.mine.to_le_bytes());
        bytes.extend(self.yours.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
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
        let (yours, rest) = rest.split_first_chunk()?;
        let (count, body) = rest.split_first_chunk()?;
        let [mine, yours, count] = [mine, yours, count].map(|it| u64::from_le_bytes(*it));
        (mine != 0).then_some(Self { from: PeerId(*from), mine, yours, count, body })
    }
}

/// The numbers of this process's channels. Zero stands for one that is not known.
static LINES: AtomicU64 = AtomicU64::new(1);
const MAGIC: [u8; 4] = *b"tsjf";
const HEAD: usize = 4 + 16 + 8 + 8 + 8;
const COUNT_AT_END: u64 = u64::MAX;
const CONNECT_ATTEMPT_FIRST: Duration = Duration::from_millis(20);
const CONNECT_ATTEMPT_LAST: Duration = Duration::from_secs(1);

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

    fn line(mine: u64) -> (RemoteChannel, Kept) {
        let kept = Kept::default();
        let mut connect_attempts = Backoff::new(CONNECT_ATTEMPT_FIRST, CONNECT_ATTEMPT_LAST);
        connect_attempts.later(clock::monotonic_ns());
        let own = PeerId([mine as u8; 16]);
        let outlet = Box::new(kept.clone());
        let connect_attempts = Some(connect_attempts);
        (
            RemoteChannel { outlet, own, mine, theirs: None, said: 0, heard: 0, connect_attempts },
            kept,
        )
    }

    /// Hands what one end wrote to the other.
    fn carry(from: &Kept, to: &mut RemoteChannel) -> Vec<Heard> {
        let written = std::mem::take(&mut *from.0.lock().unwrap());
        let frames = written.iter().map(|it| RemoteFrame::from_bytes(it).unwrap());
        frames.map(|frame| to.hear(&frame)).collect()
    }

    /// Lets two ends try to connect until they hear each other.
    fn come_up((a, from_a): (&mut RemoteChannel, &Kept), (b, from_b): (&mut RemoteChannel, &Kept)) {
        for _ in 0..5 {
            a.on_time(u64::MAX);
            carry(from_a, b);
            b.on_time(u64::MAX);
            carry(from_b, a);
        }
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
        come_up((&mut a, &from_a), (&mut b, &from_b));
        let (mut again, from_again) = line(5);
        again.on_time(u64::MAX);
        assert_eq!(carry(&from_again, &mut b), [Heard::Anew]);
        // The new end of the other is up in the end, whatever of the old ones comes late.
        a.send(b"late").unwrap();
        let ((mut b, from_b), late) = (line(7), from_a.0.lock().unwrap().clone());
        for _ in 0..5 {
            for it in &late {
                assert_eq!(b.hear(&RemoteFrame::from_bytes(it).unwrap()), Heard::Nothing);
            }
            again.on_time(u64::MAX);
            carry(&from_again, &mut b);
            b.on_time(u64::MAX);
            carry(&from_b, &mut again);
        }
        assert!(again.is_up() && b.is_up());
    }

    #[test]
    fn the_end_is_told() {
        let ((mut a, from_a), (mut b, from_b)) = (line(1), line(3));
        a.end();
        assert!(from_a.0.lock().unwrap().is_empty(), "nobody listens yet");
        come_up((&mut a, &from_a), (&mut b, &from_b));
        a.end();
        assert_eq!(carry(&from_a, &mut b).last(), Some(&Heard::Ended));
    }

    #[test]
    fn what_is_not_heard_is_noticed() {
        let ((mut a, from_a), (mut b, from_b)) = (line(1), line(3));
        come_up((&mut a, &from_a), (&mut b, &from_b));
        a.send(b"heard").unwrap();
        assert_eq!(carry(&from_a, &mut b), [Heard::Said]);
        a.send(b"not heard").unwrap();
        from_a.0.lock().unwrap().clear();
        a.send(b"heard").unwrap();
        assert_eq!(carry(&from_a, &mut b), [Heard::Anew]);
    }

    #[test]
    fn what_is_no_frame_is_not_read() {
        let frame = RemoteFrame { from: PeerId([1; 16]), mine: 7, yours: 0, count: 1, body: b"x" };
        let bytes = frame.to_bytes();
        assert_eq!(RemoteFrame::from_bytes(&bytes), Some(frame));
        for len in 0..bytes.len() {
            assert_eq!(RemoteFrame::from_bytes(&bytes[..len]), None, "{len}");
        }
        let other = RemoteFrame { from: PeerId([1; 16]), mine: 0, yours: 0, count: 0, body: b"" };
        assert_eq!(RemoteFrame::from_bytes(&other.to_bytes()), None);
    }
}
