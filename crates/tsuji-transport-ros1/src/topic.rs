//! Topics: subscribers of ROS 1 that connect to here, publishers of ROS 1 that are connected to, and what is written.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use tsuji_engine::Guid;
use tsuji_platform::deadline::DeadlineStream;
use tsuji_ros1::header::Header;
use tsuji_ros1::uri::Uri;
use tsuji_ros1::xmlrpc::Value;
use tsuji_transport::{Bytes, Error, ErrorKind, Result};

use crate::graph::EndpointKey;
use crate::io::{Connection, ConnectionKind};
use crate::link::{Frame, OutLink, framed_in};
use crate::role::Role;
use crate::rpc::{self, Failure};
use crate::state::{
    Calls, Id, Outgoing, ReaderCore, Shared, State, Subscriber, Target, WriterCore, WriterEndpoint,
    WriterLink, is_reported,
};
use crate::types::{ANY, Message};

/// How long the ends of a connection have to agree.
pub(crate) const AGREE_WITHIN: Duration = Duration::from_secs(5);

/// A subscriber for which whoever keeps all has to wait may take nothing for so long; then its connection is ended.
const STALLED_MAX: Duration = Duration::from_secs(10);

/// What is read at once of a header.
pub(crate) const HEADER_READ_BYTES: usize = 4 << 10;

impl WriterCore {
    /// The topic, of a writer of one that ROS 1 can know.
    pub(crate) fn topic(&self) -> Option<(&str, &Arc<Message>)> {
        match (&self.role, &self.message) {
            (Role::Topic(named), Some(message)) => Some((&named.name, message)),
            _ => None,
        }
    }

    /// Whether it writes messages of this type: a topic of two types has subscribers of one of them.
    pub(crate) fn is_of(&self, message: &Arc<Message>) -> bool {
        self.message.as_ref().is_some_and(|it| Arc::ptr_eq(it, message))
    }

    /// Sends a message to all subscribers that are connected.
    pub(crate) fn publish(&self, bytes: &Bytes) -> Result<()> {
        let mut endpoint = crate::lock(&self.endpoint);
        self.make_room(&endpoint)?;
        let WriterEndpoint { written, kept, links, outgoing } = &mut *endpoint;
        *written += 1;
        let number = *written;
        if self.kept_max != 0 {
            kept.push_back((number, bytes.clone()));
            while self.kept_max < kept.len() {
                kept.pop_front();
            }
        }
        let mut converted: Vec<(&Arc<Message>, Option<Frame>)> = Vec::new();
        for WriterLink { out, message, .. } in links.values() {
            let (Some(out), Some(message)) = (out, message) else { continue };
            let known = converted.iter().find(|(it, _)| Arc::ptr_eq(it, message));
            let frame = match known {
                Some((_, frame)) => frame.clone(),
                None => {
                    let frame = self.frame(outgoing, message, number, bytes);
                    converted.push((message, frame.clone()));
                    frame
                }
            };
            let Some(frame) = frame else { continue };
            outgoing.dropped += out.send(frame, self.room) as u64;
        }
        self.tell_dropped(outgoing);
        Ok(())
    }

    /// Busy while a subscriber for which all is kept has too much waiting. One that takes nothing is not waited for without end.
    fn make_room(&self, endpoint: &WriterEndpoint) -> Result<()> {
        let outs = endpoint.links.values().filter_map(|it| it.out.as_ref());
        let mut full = outs.filter(|it| !it.has_room(self.room)).peekable();
        if full.peek().is_none() {
            return Ok(());
        }
        for _ in full.filter(|it| it.end_if_stalled(STALLED_MAX)) {
            tracing::warn!(
                topic = self.role.name(),
                "ros1: a subscriber has taken nothing for {} s while all is kept for it; its connection is ended",
                STALLED_MAX.as_secs()
            );
        }
        let error = Error::new(ErrorKind::Busy, "write");
        Err(error.about("a subscriber of ROS 1 does not take what it is sent"))
    }

    fn frame(
        &self,
        outgoing: &mut Outgoing,
        message: &Message,
        number: i64,
        bytes: &Bytes,
    ) -> Option<Frame> {
        // The field of ROS 1 wraps.
        let sequence = number as u32;
        let frame = framed_in(outgoing.used(), |out| {
            out.reserve(bytes.len());
            message.plan.to_ros1(bytes, sequence, out).map_err(|error| error.to_string())
        });
        match frame {
            Ok(frame) => Some(outgoing.keep(Arc::new(frame))),
            Err(why) => {
                outgoing.refused += 1;
                if is_reported(outgoing.refused) {
                    tracing::warn!(
                        topic = self.role.name(),
                        refused = outgoing.refused,
                        "ros1: a message is not sent to nodes of ROS 1: {why}"
                    );
                }
                None
            }
        }
    }

    fn tell_dropped(&self, outgoing: &mut Outgoing) {
        let told = outgoing.dropped_told;
        if told < outgoing.dropped && (told == 0 || told.saturating_mul(10) <= outgoing.dropped) {
            outgoing.dropped_told = outgoing.dropped;
            tracing::warn!(
                topic = self.role.name(),
                dropped = outgoing.dropped,
                "ros1: a subscriber of ROS 1 does not keep up; the oldest messages are displaced"
            );
        }
    }

    /// Sends to a subscriber from now on, beginning with what is kept for late joiners.
    pub(crate) fn attach(&self, subscriber: &Subscriber) {
        let mut endpoint = crate::lock(&self.endpoint);
        let WriterEndpoint { kept, links, outgoing, .. } = &mut *endpoint;
        for (number, bytes) in kept.iter() {
            if let Some(frame) = self.frame(outgoing, &subscriber.message, *number, bytes) {
                outgoing.dropped += subscriber.link.send(frame, self.room) as u64;
            }
        }
        let link = WriterLink {
            out: Some(Arc::clone(&subscriber.link)),
            message: Some(Arc::clone(&subscriber.message)),
            pending: Arc::default(),
        };
        links.insert(subscriber.guid, link);
    }

    /// Sends to this connection no more. Answers whether it did.
    pub(crate) fn detach(&self, guid: &Guid, link: &Arc<OutLink>) -> bool {
        let mut endpoint = crate::lock(&self.endpoint);
        let is_it = |it: &WriterLink| it.out.as_ref().is_some_and(|it| Arc::ptr_eq(it, link));
        let is_attached = endpoint.links.get(guid).is_some_and(is_it);
        if is_attached {
            endpoint.links.remove(guid);
        }
        is_attached
    }
}

/// What was sent is kept to be used again, for so many messages of at most so many bytes.
const SENT_MAX: usize = 2;
const SENT_BYTES_MAX: usize = 16 << 20;

impl Outgoing {
    /// Memory of a message that all have been sent, if there is some.
    fn used(&mut self) -> Vec<u8> {
        let at = self.sent.iter().position(|it| Arc::strong_count(it) == 1);
        let free = at.and_then(|it| self.sent.remove(it));
        free.and_then(Arc::into_inner).unwrap_or_default()
    }

    fn keep(&mut self, frame: Frame) -> Frame {
        if frame.capacity() <= SENT_BYTES_MAX {
            self.sent.push_back(Arc::clone(&frame));
            if SENT_MAX < self.sent.len() {
                self.sent.pop_front();
            }
        }
        frame
    }
}

impl ReaderCore {
    pub(crate) fn topic(&self) -> Option<(&str, &Arc<Message>)> {
        match (&self.role, &self.message) {
            (Role::Topic(named), Some(message)) => Some((&named.name, message)),
            _ => None,
        }
    }
}

impl State {
    /// The writers of a topic.
    pub(crate) fn writers_of(&self, topic: &str) -> Vec<Arc<WriterCore>> {
        let is_it = |it: &&Arc<WriterCore>| it.topic().is_some_and(|(it, _)| it == topic);
        self.writers.values().filter(is_it).cloned().collect()
    }

    /// Under which name this node of the process is registered.
    pub(crate) fn registered_name<'a>(&'a self, node: &'a str) -> &'a str {
        self.aliases.get(node).map_or(node, String::as_str)
    }

    /// The name that an endpoint has with the master, once it is known whose it is.
    pub(crate) fn caller_of(&self, id: Id) -> Option<String> {
        let node = self.owners.get(&id)?;
        Some(self.registered_name(node).to_owned())
    }

    /// A connection of a subscriber has ended.
    pub(crate) fn lose_subscriber(&mut self, link: &Arc<OutLink>, calls: &mut Calls) {
        let at = self.subscribers.iter().position(|it| Arc::ptr_eq(&it.link, link));
        let Some(at) = at else { return };
        let gone = self.subscribers.swap_remove(at);
        for writer in self.writers_of(&gone.topic) {
            if writer.detach(&gone.guid, link) {
                calls.matched.push(Arc::clone(&writer.ear));
            }
        }
        self.to_probe.insert(gone.node);
        self.is_due = true;
    }

    /// A connection to a publisher has ended.
    pub(crate) fn lose_source(&mut self, target: &Target, key: u64, calls: &mut Calls) {
        let Target::Publisher(id, api) = target else { return };
        let Some(guid) = self.connected_by(target, key) else { return };
        if let Some(reader) = self.readers.get(id) {
            crate::lock(&reader.endpoint).sources.remove(&guid);
            calls.matched.push(Arc::clone(&reader.ear));
        }
        if let Some(node) = self.graph.at(api).map(str::to_owned) {
            self.to_probe.insert(node);
        }
        self.failed(target, &format!("the connection to a publisher at {api} has ended"), false);
    }
}

/// A connection on which both ends are to agree in time.
pub(crate) fn agreeing(stream: TcpStream) -> std::io::Result<DeadlineStream> {
    DeadlineStream::new(stream, AGREE_WITHIN)
}

/// Reads the header that the other end begins with, and no byte more: what follows is messages.
pub(crate) fn read_header(stream: &mut DeadlineStream) -> std::result::Result<Header, String> {
    let mut received = Vec::new();
    loop {
        if let Some((header, _)) = Header::take(&received).map_err(|error| error.to_string())? {
            return Ok(header);
        }
        let at = received.len();
        // As it comes, so that a length that lies takes no memory.
        received.resize(Header::wanted(&received).min(at + HEADER_READ_BYTES), 0);
        let length = stream.read(&mut received[at..]).map_err(|error| error.to_string())?;
        if length == 0 {
            return Err("it has ended the connection".to_owned());
        }
        received.truncate(at + length);
    }
}

/// Writes a header.
pub(crate) fn write_header(
    stream: &mut DeadlineStream,
    header: &Header,
) -> std::result::Result<(), String> {
    stream.write_all(&header.encode()).map_err(|error| error.to_string())
}

/// The type of a topic here, and as both ends of a connection have agreed.
type AgreedTypes = (Arc<Message>, Arc<Message>);

/// Who has connected to here, what it is called and where, and what both ends have agreed on.
pub(crate) struct Accepted<T> {
    pub(crate) stream: TcpStream,
    pub(crate) node: String,
    pub(crate) api: String,
    pub(crate) agreed: T,
}

impl Shared {
    /// Answers a subscriber of ROS 1 that has said this. Runs on a thread of its own.
    pub(crate) fn accept_subscriber(&self, stream: TcpStream, header: &Header) {
        let topic = header.get("topic").unwrap_or_default();
        let agreed = self.agree_with_subscriber(header);
        let Some(Accepted { stream, node, api, agreed }) =
            self.accept(stream, header, topic, agreed)
        else {
            return;
        };
        let (known, message) = agreed;
        self.change(|state, calls| {
            let mut writers = state.writers_of(topic);
            writers.retain(|it| it.is_of(&known));
            if writers.is_empty() || state.is_leaving || !state.meet_node(&node, &api, None) {
                return;
            }
            let key = EndpointKey::Subscribes(topic.to_owned());
            let Some(guid) = state.graph.add(&node, key, &known.ros2_name()) else { return };
            let key = state.new_key();
            let link = Arc::new(OutLink::new(stream, Arc::clone(&self.poll), key));
            let subscriber = Subscriber {
                topic: topic.to_owned(),
                node,
                guid,
                link: Arc::clone(&link),
                known,
                message,
            };
            // One that connects again has left the connection of before.
            let before = state.subscribers.iter().filter(|it| it.guid == guid);
            let before: Vec<u64> = before.map(|it| it.link.key()).collect();
            state.to_close.extend(before);
            // Before anything is sent: what is sent watches for room.
            state.new_connections.push(Connection::new(link, ConnectionKind::Subscriber));
            for writer in writers {
                writer.attach(&subscriber);
                calls.matched.push(Arc::clone(&writer.ear));
            }
            state.subscribers.push(subscriber);
        });
    }

    /// The type that both ends agree on, and what is answered; or why not.
    fn agree_with_subscriber(
        &self,
        header: &Header,
    ) -> std::result::Result<(AgreedTypes, Header), String> {
        let topic = header.get("topic").unwrap_or_default();
        let md5 = header.get("md5sum").ok_or("its header has no md5sum")?;
        let writers = self.lock().writers_of(topic);
        let writer = writers.first().ok_or_else(|| format!("nobody publishes {topic} here"))?;
        let known = writer.message.as_ref().ok_or("a type that ROS 1 has not")?;
        let said = header.get("type").filter(|it| *it != ANY && !it.is_empty());
        if let Some(said) = said.filter(|it| *it != known.ros1.name() && md5 == ANY) {
            return Err(format!("{topic} is of {} here, not {said}", known.ros1.name()));
        }
        let definition = header.get("message_definition");
        let message = self.types.message_of_peer(known, said, md5, definition)?;
        let latching = writers.iter().any(|it| it.kept_max != 0);
        let caller = self.lock().caller_of(writer.id).unwrap_or_else(|| "/tsuji".to_owned());
        let answer = Header::new([
            ("callerid", caller.as_str()),
            ("latching", if latching { "1" } else { "0" }),
            ("md5sum", message.ros1.md5()),
            ("message_definition", message.ros1.definition()),
            ("topic", topic),
            ("type", message.ros1.name()),
        ]);
        Ok(((Arc::clone(known), message), answer))
    }

    /// Answers whoever has said this to a topic or service of here: with what was agreed, or why not. Nothing where that is all
    /// that is to be said.
    pub(crate) fn accept<T>(
        &self,
        stream: TcpStream,
        header: &Header,
        name: &str,
        agreed: std::result::Result<(T, Header), String>,
    ) -> Option<Accepted<T>> {
        let node = header.get("callerid").unwrap_or_default();
        let mut stream = agreeing(stream).ok()?;
        let (agreed, answer) = match agreed {
            Ok(it) => it,
            Err(why) => {
                tracing::warn!(name, node, "ros1: a connection is refused: {why}");
                let _ = write_header(&mut stream, &Header::refusal(&why));
                return None;
            }
        };
        if header.is_set("probe") {
            let _ = write_header(&mut stream, &answer);
            return None;
        }
        if !node.starts_with('/') {
            tracing::warn!(node, "ros1: a connection without the name of a node is refused");
            return None;
        }
        write_header(&mut stream, &answer).ok()?;
        let stream = stream.into_inner();
        // Only now: a master that does not answer takes as long as a node has to agree.
        let api = self.api_of(node, &stream);
        crate::state::prepare(&stream).ok()?;
        Some(Accepted { stream, node: node.to_owned(), api, agreed })
    }

    /// The address of a node that has connected to here.
    fn api_of(&self, node: &str, stream: &TcpStream) -> String {
        if let Some(known) = self.lock().graph.api_of(node) {
            return known.to_owned();
        }
        let asked = vec![Value::from(self.caller()), Value::from(node)];
        let api = rpc::call(&self.master, "lookupNode", asked);
        let api = api.ok().and_then(|it| it.as_str().map(str::to_owned));
        // The master may not know it, or have ended.
        let from = || stream.peer_addr().map_or_else(|_| "?".to_owned(), |it| it.ip().to_string());
        api.unwrap_or_else(|| format!("http://{}:0/", from()))
    }

    /// The name that this process has where no node of it speaks.
    pub(crate) fn caller(&self) -> String {
        format!("/tsuji_{}", std::process::id())
    }

    /// Connects a reader to a publisher of ROS 1. Runs on a thread of its own.
    pub(crate) fn connect_publisher(&self, reader: &Arc<ReaderCore>, api: &str) {
        let target = Target::Publisher(reader.id, api.to_owned());
        let Some((topic, known)) = reader.topic() else { return };
        match self.agree_with_publisher(reader, topic, known, api) {
            Ok((stream, node, message)) => {
                self.adopt_publisher(&target, stream, &node, topic, message);
            }
            Err(failure) => {
                let why = format!("{topic} of the publisher at {api}: {failure}");
                self.change(|state, _| {
                    let is_refused = matches!(failure, Failure::Refused(_));
                    if is_refused && let Some(node) = state.graph.at(api).map(str::to_owned) {
                        state.to_probe.insert(node);
                    }
                    state.failed(&target, &why, !is_refused);
                });
            }
        }
    }

    fn agree_with_publisher(
        &self,
        reader: &ReaderCore,
        topic: &str,
        known: &Arc<Message>,
        api: &str,
    ) -> std::result::Result<(TcpStream, String, Arc<Message>), Failure> {
        let other = Failure::Other;
        let uri: Uri = api.parse().map_err(|error| other(format!("{error}")))?;
        let caller = self.lock().caller_of(reader.id).unwrap_or_else(|| self.caller());
        let protocols = Value::from(vec![Value::from(vec![Value::from("TCPROS")])]);
        let asked = vec![Value::from(caller.as_str()), Value::from(topic), protocols];
        let answer = rpc::call(&uri, "requestTopic", asked)?;
        let said = answer.as_array();
        let Some([protocol, host, port, ..]) = said else {
            return Err(other("it offers no TCPROS".to_owned()));
        };
        let port = port.as_int().and_then(|it| u16::try_from(it).ok());
        let (Some("TCPROS"), Some(host), Some(port)) = (protocol.as_str(), host.as_str(), port)
        else {
            return Err(other("it offers no TCPROS".to_owned()));
        };
        let mut stream = DeadlineStream::connect(host, port, AGREE_WITHIN, AGREE_WITHIN)?;
        // Any sum: whether messages can be converted is decided by the publisher's definition.
        let header = Header::new([
            ("callerid", caller.as_str()),
            ("md5sum", ANY),
            ("message_definition", known.ros1.definition()),
            ("tcp_nodelay", "1"),
            ("topic", topic),
            ("type", known.ros1.name()),
        ]);
        write_header(&mut stream, &header).map_err(Failure::Other)?;
        let said = read_header(&mut stream).map_err(Failure::Other)?;
        if let Some(error) = said.get("error") {
            return Err(other(format!("it says: {error}")));
        }
        let md5 = said.get("md5sum").unwrap_or(ANY);
        let definition = said.get("message_definition");
        let ty = said.get("type");
        let message = self.types.message_of_peer(known, ty, md5, definition).map_err(other)?;
        let node = said.get("callerid").unwrap_or_default().to_owned();
        Ok((stream.into_inner(), node, message))
    }

    fn adopt_publisher(
        &self,
        target: &Target,
        stream: TcpStream,
        node: &str,
        topic: &str,
        message: Arc<Message>,
    ) {
        let Target::Publisher(id, api) = target else { return };
        let is_known = self.lock().graph.api_of(node) == Some(api);
        let pid = if is_known { None } else { self.pid_of(api) };
        if let Err(error) = crate::state::prepare(&stream) {
            self.change(|state, _| state.failed(target, &error.to_string(), true));
            return;
        }
        self.change(|state, calls| {
            let Some(reader) = state.readers.get(id).cloned() else { return };
            let Role::Topic(named) = &reader.role else { return };
            // Whatever comes between, it is tried again while it is wanted.
            state.failed(
                target,
                &format!("{topic} of the publisher at {api}: it is not taken note of"),
                false,
            );
            let node = match node.starts_with('/') {
                true => node.to_owned(),
                // One that does not say its name is called by its address.
                false => format!("/{}", api.replace(|it: char| !it.is_ascii_alphanumeric(), "_")),
            };
            if state.is_leaving || !state.meet_node(&node, api, pid) {
                return;
            }
            let what = EndpointKey::Publishes(topic.to_owned());
            let Some(guid) = state.graph.add(&node, what, &named.type_name) else { return };
            let key = state.new_key();
            if !state.connected(target, key, guid) {
                return;
            }
            crate::lock(&reader.endpoint).sources.insert(guid);
            calls.matched.push(Arc::clone(&reader.ear));
            let link = Arc::new(OutLink::new(stream, Arc::clone(&self.poll), key));
            let kind = ConnectionKind::Source { target: target.clone(), reader, guid, message };
            state.new_connections.push(Connection::new(link, kind));
        });
    }

    /// The process id of the node at this address.
    pub(crate) fn pid_of(&self, api: &str) -> Option<u32> {
        let uri: Uri = api.parse().ok()?;
        let pid = rpc::call(&uri, "getPid", vec![Value::from(self.caller())]).ok()?;
        u32::try_from(pid.as_int()?).ok()
    }
}
