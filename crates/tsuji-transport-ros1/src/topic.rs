//! Topics: subscribers of ROS 1 that connect to here, publishers of ROS 1 that are connected to, and what is written.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tsuji_engine::Guid;
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
    Calls, Id, ReaderCore, Shared, State, Subscriber, Target, WriterCore, WriterEndpoint,
    WriterLink,
};
use crate::types::{ANY, Message};

/// How long the ends of a connection have to agree.
pub(crate) const AGREE_WITHIN: Duration = Duration::from_secs(5);

impl WriterCore {
    /// The topic, of a writer of one that ROS 1 can know.
    pub(crate) fn topic(&self) -> Option<(&str, &Arc<Message>)> {
        match (&self.role, &self.message) {
            (Role::Topic(named), Some(message)) => Some((&named.name, message)),
            _ => None,
        }
    }

    /// Sends a message to all subscribers that are connected.
    pub(crate) fn publish(&self, bytes: &Bytes) -> Result<()> {
        let mut endpoint = crate::lock(&self.endpoint);
        let outs = || endpoint.links.values().filter_map(|it| it.out.as_ref());
        if outs().any(|it| !it.has_room(self.room)) {
            let error = Error::new(ErrorKind::Busy, "write");
            return Err(error.about("a subscriber of ROS 1 does not take what it is sent"));
        }
        endpoint.written += 1;
        let number = endpoint.written;
        if self.kept_max != 0 {
            endpoint.kept.push_back((number, bytes.clone()));
            while self.kept_max < endpoint.kept.len() {
                endpoint.kept.pop_front();
            }
        }
        let mut converted: Vec<(Arc<Message>, Option<Frame>)> = Vec::new();
        let links: Vec<WriterLink> = endpoint.links.values().cloned().collect();
        for WriterLink { out, message, .. } in links {
            let (Some(out), Some(message)) = (out, message) else { continue };
            let known = converted.iter().find(|(it, _)| Arc::ptr_eq(it, &message));
            let frame = match known {
                Some((_, frame)) => frame.clone(),
                None => {
                    let frame = self.frame(&mut endpoint, &message, number, bytes);
                    converted.push((message, frame.clone()));
                    frame
                }
            };
            let Some(frame) = frame else { continue };
            endpoint.dropped += out.send(frame, self.room) as u64;
        }
        self.tell_dropped(&mut endpoint);
        Ok(())
    }

    fn frame(
        &self,
        endpoint: &mut WriterEndpoint,
        message: &Message,
        number: i64,
        bytes: &Bytes,
    ) -> Option<Frame> {
        // The field of ROS 1 wraps.
        let sequence = number as u32;
        let frame = framed_in(endpoint.used(), |out| {
            out.reserve(bytes.len());
            message.plan.to_ros1(bytes, sequence, out).map_err(|error| error.to_string())
        });
        match frame {
            Ok(frame) => Some(endpoint.keep(Arc::new(frame))),
            Err(why) => {
                endpoint.refused += 1;
                if is_reported(endpoint.refused) {
                    let topic = self.topic().map_or("", |(topic, _)| topic);
                    tracing::warn!(
                        topic,
                        refused = endpoint.refused,
                        "ros1: a message is not sent to nodes of ROS 1: {why}"
                    );
                }
                None
            }
        }
    }

    fn tell_dropped(&self, endpoint: &mut WriterEndpoint) {
        let told = endpoint.dropped_told;
        if told < endpoint.dropped && (told == 0 || told.saturating_mul(10) <= endpoint.dropped) {
            endpoint.dropped_told = endpoint.dropped;
            let topic = self.topic().map_or("", |(topic, _)| topic);
            tracing::warn!(
                topic,
                dropped = endpoint.dropped,
                "ros1: a subscriber of ROS 1 does not keep up; the oldest messages are displaced"
            );
        }
    }

    /// Sends to a subscriber from now on, beginning with what is kept for late joiners.
    pub(crate) fn attach(&self, subscriber: &Subscriber) {
        let mut endpoint = crate::lock(&self.endpoint);
        let kept: Vec<(i64, Bytes)> = endpoint.kept.iter().cloned().collect();
        for (number, bytes) in kept {
            if let Some(frame) = self.frame(&mut endpoint, &subscriber.message, number, &bytes) {
                endpoint.dropped += subscriber.link.send(frame, self.room) as u64;
            }
        }
        let link = WriterLink {
            out: Some(Arc::clone(&subscriber.link)),
            message: Some(Arc::clone(&subscriber.message)),
            pending: Arc::default(),
        };
        endpoint.links.insert(subscriber.guid, link);
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

impl WriterEndpoint {
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

/// True for the first and then for each tenfold.
pub(crate) fn is_reported(count: u64) -> bool {
    count != 0 && 10_u64.pow(count.ilog10()) == count
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
        let progress = self.targets.get(target).map(|it| &it.progress);
        let Some(crate::state::Progress::Connected(of, guid)) = progress else { return };
        if *of != key {
            return;
        }
        let guid = *guid;
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

/// Reads the header that the other end begins with.
pub(crate) fn read_header(stream: &mut TcpStream) -> std::result::Result<Header, String> {
    let deadline = Instant::now() + AGREE_WITHIN;
    let (mut received, mut wanted) = (Vec::new(), 4);
    loop {
        // No byte too many: what follows is messages.
        let at = received.len();
        // As it comes, so that a length that lies takes no memory.
        received.resize(wanted.min(at + 4096), 0);
        let left = deadline.saturating_duration_since(Instant::now());
        let left = left.max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
        let read = stream.read(&mut received[at..]);
        let length = match read {
            Ok(0) => return Err("it has ended the connection".to_owned()),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Err(format!("no header within {} s", AGREE_WITHIN.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        };
        received.truncate(at + length);
        if deadline <= Instant::now() {
            return Err(format!("no header within {} s", AGREE_WITHIN.as_secs()));
        }
        if received.len() < wanted {
            continue;
        }
        if let Some((header, _)) = Header::take(&received).map_err(|error| error.to_string())? {
            return Ok(header);
        }
        if let Some(length) = received.first_chunk() {
            wanted = 4 + u32::from_le_bytes(*length) as usize;
        }
    }
}

/// Writes a header, for at most [`AGREE_WITHIN`].
pub(crate) fn write_header(
    stream: &mut TcpStream,
    header: &Header,
) -> std::result::Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    stream.set_nonblocking(false).map_err(told)?;
    stream.set_write_timeout(Some(AGREE_WITHIN)).map_err(told)?;
    stream.write_all(&header.encode()).map_err(told)
}

impl Shared {
    /// Answers a subscriber of ROS 1 that has said this. Runs on a thread of its own.
    pub(crate) fn accept_subscriber(&self, mut stream: TcpStream, header: &Header) {
        let agreed = self.agree_with_subscriber(header);
        let (topic, node) = (header.get("topic"), header.get("callerid"));
        let (topic, node) = (topic.unwrap_or_default(), node.unwrap_or_default());
        let (known, message, answer) = match agreed {
            Ok(it) => it,
            Err(why) => {
                tracing::warn!(topic, node, "ros1: a subscriber is refused: {why}");
                let _ = write_header(&mut stream, &Header::refusal(&why));
                return;
            }
        };
        let Some((name, api)) = self.introduce(node, &stream) else { return };
        if write_header(&mut stream, &answer).is_err() || crate::state::prepare(&stream).is_err() {
            return;
        }
        self.change(|state, calls| {
            let mut writers = state.writers_of(topic);
            // A topic of two types has subscribers of one of them.
            writers.retain(|it| it.message.as_ref().is_some_and(|it| Arc::ptr_eq(it, &known)));
            let ty = writers.first().and_then(|it| match &it.role {
                Role::Topic(named) => Some(named.type_name.clone()),
                _ => None,
            });
            let Some(ty) = ty.filter(|_| !state.is_leaving) else { return };
            if !state.meet_node(&name, &api, None) {
                return;
            }
            let what = EndpointKey::Subscribes(topic.to_owned());
            let Some(guid) = state.graph.add(&name, what, &ty) else { return };
            let key = state.new_key();
            let link = Arc::new(OutLink::new(stream, Arc::clone(&self.poll), key));
            let subscriber = Subscriber {
                topic: topic.to_owned(),
                node: name.clone(),
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
            Self::adopt(state, Connection::new(link, ConnectionKind::Subscriber));
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
    ) -> std::result::Result<(Arc<Message>, Arc<Message>, Header), String> {
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
        Ok((Arc::clone(known), message, answer))
    }

    /// The name and the address of a node that has connected to here; nothing for one that says no name.
    pub(crate) fn introduce(&self, node: &str, stream: &TcpStream) -> Option<(String, String)> {
        if !node.starts_with('/') {
            tracing::warn!(node, "ros1: a connection without the name of a node is refused");
            return None;
        }
        if let Some((_, known)) = self.lock().graph.names().find(|(name, _)| *name == node) {
            return Some((node.to_owned(), known.api.clone()));
        }
        let asked = vec![Value::from(self.caller()), Value::from(node)];
        let api = rpc::call(&self.master, "lookupNode", asked);
        let api = api.ok().and_then(|it| it.as_str().map(str::to_owned));
        // The master may not know it, or have ended.
        let from = || stream.peer_addr().map_or_else(|_| "?".to_owned(), |it| it.ip().to_string());
        Some((node.to_owned(), api.unwrap_or_else(|| format!("http://{}:0/", from()))))
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
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::ConnectionRefused => Failure::Refused(error.to_string()),
            _ => Failure::Other(error.to_string()),
        };
        let mut stream = rpc::connect(host, port, AGREE_WITHIN).map_err(failed)?;
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
        Ok((stream, node, message))
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
        let is_known = self.lock().graph.names().any(|(name, it)| name == node && it.api == *api);
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
            Self::adopt(state, Connection::new(link, kind));
        });
    }

    /// The process id of the node at this address.
    pub(crate) fn pid_of(&self, api: &str) -> Option<u32> {
        let uri: Uri = api.parse().ok()?;
        let pid = rpc::call(&uri, "getPid", vec![Value::from(self.caller())]).ok()?;
        u32::try_from(pid.as_int()?).ok()
    }
}
