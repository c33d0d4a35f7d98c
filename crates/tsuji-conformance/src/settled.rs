//! Waits, after each call, until what it began has happened, and carries what transports say to
//! themselves. So the cases hold for transports that are not immediate.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tsuji_core::{Capability, TransportId};
use tsuji_transport::bell::Cell;
use tsuji_transport::{
    Address, Connected, Endpoint, Envelope, ErrorKind, Gid, Handshake, Loan, Payload, PeerId,
    Reader, Result, Sample, Sent, Transport, Writer,
};

/// What the processes of a world have in common.
#[derive(Default)]
pub(crate) struct PostOffice {
    transports: Mutex<HashMap<PeerId, Weak<dyn Transport>>>,
    readers: Mutex<HashMap<Gid, Weak<dyn Reader>>>,
    /// Which reader has accepted which writer.
    accepted: Mutex<HashSet<(Gid, Gid)>>,
    /// One delivers at a time, so that order is kept.
    delivering: Mutex<()>,
}

impl PostOffice {
    /// A transport of process `id`, which waits.
    pub(crate) fn settle(
        self: &Arc<Self>,
        id: PeerId,
        inner: Arc<dyn Transport>,
    ) -> Arc<dyn Transport> {
        lock(&self.transports).insert(id, Arc::downgrade(&inner));
        Arc::new(Settled { inner, post: Arc::clone(self) })
    }

    /// Carries all letters, and what they give rise to.
    fn deliver(&self) {
        let _one = lock(&self.delivering);
        loop {
            let all = lock(&self.transports).clone();
            let upgraded = |(id, it): (&PeerId, &Weak<dyn Transport>)| Some((*id, it.upgrade()?));
            let all: HashMap<_, _> = all.iter().filter_map(upgraded).collect();
            let mut count = 0;
            for (id, transport) in &all {
                for control_message in transport.control_messages() {
                    count += 1;
                    if let Some(to) = all.get(&control_message.to) {
                        to.receive(*id, &control_message.bytes);
                    }
                }
            }
            if count == 0 {
                return;
            }
        }
    }
}

struct Settled {
    inner: Arc<dyn Transport>,
    post: Arc<PostOffice>,
}

impl fmt::Debug for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Transport for Settled {
    fn id(&self) -> TransportId {
        self.inner.id()
    }

    fn capability(&self) -> Capability {
        self.inner.capability()
    }

    fn handshake(&self, peer: PeerId) -> Result<Handshake> {
        self.inner.handshake(peer)
    }

    fn meet(&self, peer: PeerId, handshake: Handshake) -> Result<Vec<u8>> {
        self.inner.meet(peer, handshake)
    }

    fn confirm(&self, peer: PeerId, answer: &[u8]) -> Result<()> {
        self.inner.confirm(peer, answer)
    }

    fn part(&self, peer: PeerId) {
        self.inner.part(peer);
        self.post.deliver();
    }

    fn open_writer(&self, endpoint: &Endpoint, room: Arc<Cell>) -> Result<Arc<dyn Writer>> {
        let inner = self.inner.open_writer(endpoint, room)?;
        let (gid, post) = (endpoint.gid, Arc::clone(&self.post));
        Ok(Arc::new(SettledWriter { inner: Some(inner), gid, readers: Mutex::default(), post }))
    }

    fn open_reader(&self, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Arc<dyn Reader>> {
        let inner = self.inner.open_reader(endpoint, news)?;
        let (gid, post) = (endpoint.gid, Arc::clone(&self.post));
        lock(&post.readers).insert(gid, Arc::downgrade(&inner));
        Ok(Arc::new(SettledReader { inner: Some(inner), gid, post }))
    }
}

/// A connected reader, as it was before a send.
struct Listener {
    gid: Gid,
    reader: Arc<dyn Reader>,
    newest_ns: Option<u64>,
    displaced: u64,
}

struct SettledWriter {
    inner: Option<Arc<dyn Writer>>,
    gid: Gid,
    readers: Mutex<HashSet<Gid>>,
    post: Arc<PostOffice>,
}

impl SettledWriter {
    fn inner(&self) -> &dyn Writer {
        self.inner.as_deref().unwrap()
    }

    /// The connected readers that take what is sent.
    fn listeners(&self) -> Vec<Listener> {
        let connected = lock(&self.readers).clone();
        let accepted = lock(&self.post.accepted);
        let connected = connected.into_iter().filter(|it| accepted.contains(&(*it, self.gid)));
        let readers = lock(&self.post.readers);
        let known = connected.filter_map(|gid| {
            let reader = readers.get(&gid)?.upgrade()?;
            let (newest_ns, displaced) = (reader.newest_ns(self.gid), reader.displaced());
            Some(Listener { gid, reader, newest_ns, displaced })
        });
        known.collect()
    }
}

impl fmt::Debug for SettledWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Writer for SettledWriter {
    fn loan(&self, len: usize) -> Result<Loan> {
        self.inner().loan(len)
    }

    fn reserve(&self, len: usize) -> Result<()> {
        match self.inner().reserve(len) {
            Err(error) if error.kind() == ErrorKind::Busy => {
                self.post.deliver();
                self.inner().reserve(len)
            }
            other => other,
        }
    }

    fn cancel(&self) {
        self.inner().cancel();
    }

    fn send(&self, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        let before = self.listeners();
        let mut sent = match self.inner().send(envelope, payload) {
            // Room that there is may not be known yet.
            Err(error) if error.kind() == ErrorKind::Busy => {
                self.post.deliver();
                self.inner().send(envelope, payload)?
            }
            other => other?,
        };
        self.post.deliver();
        for Listener { gid, reader, newest_ns, displaced } in before {
            // Whoever forgets the writer meanwhile gets nothing more.
            while reader.newest_ns(self.gid) == newest_ns
                && lock(&self.post.accepted).contains(&(gid, self.gid))
            {
                pause();
            }
            sent.displaced += (reader.displaced() - displaced) as u32;
        }
        Ok(sent)
    }

    fn send_to(&self, reader: Gid, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        self.inner().send_to(reader, envelope, payload)
    }

    fn connect(&self, address: &Address) -> Result<Connected> {
        lock(&self.readers).remove(&address.reader);
        while self.inner().connect(address)? == Connected::Later {
            self.post.deliver();
            pause();
        }
        lock(&self.readers).insert(address.reader);
        Ok(Connected::Now)
    }

    fn disconnect(&self, reader: Gid) {
        lock(&self.readers).remove(&reader);
        self.inner().disconnect(reader);
        self.post.deliver();
    }

    fn readers(&self) -> usize {
        self.inner().readers()
    }
}

impl Drop for SettledWriter {
    fn drop(&mut self) {
        self.inner = None;
        self.post.deliver();
    }
}

struct SettledReader {
    inner: Option<Arc<dyn Reader>>,
    gid: Gid,
    post: Arc<PostOffice>,
}

impl SettledReader {
    fn inner(&self) -> &dyn Reader {
        self.inner.as_deref().unwrap()
    }
}

impl fmt::Debug for SettledReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Reader for SettledReader {
    fn accept(&self, peer: PeerId, writer: Gid) -> Result<Address> {
        let address = self.inner().accept(peer, writer)?;
        lock(&self.post.accepted).insert((self.gid, writer));
        Ok(address)
    }

    fn forget(&self, writer: Gid) {
        lock(&self.post.accepted).remove(&(self.gid, writer));
        self.inner().forget(writer);
        self.post.deliver();
    }

    fn take(&self) -> Result<Option<Sample>> {
        let taken = self.inner().take();
        self.post.deliver();
        taken
    }

    fn displaced(&self) -> u64 {
        self.inner().displaced()
    }

    fn newest_ns(&self, writer: Gid) -> Option<u64> {
        self.inner().newest_ns(writer)
    }
}

impl Drop for SettledReader {
    fn drop(&mut self) {
        lock(&self.post.accepted).retain(|(reader, _)| *reader != self.gid);
        self.inner = None;
        self.post.deliver();
    }
}

/// Lets the transport's threads go on. How long it takes them nobody says here; a hang is cut by
/// the watchdog.
fn pause() {
    std::thread::sleep(Duration::from_micros(20));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
