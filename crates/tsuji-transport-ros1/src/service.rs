//! Services: clients of ROS 1 that connect to servers here, and servers of ROS 1 that are connected to.
//!
//! A connection carries one request after the other, each as a length and a message; an answer is a byte, which is 1 for
//! success, then a length and a message, or a text that says what failed.

use std::collections::{HashMap, VecDeque};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tsuji_engine::{Guid, Related};
use tsuji_platform::deadline::DeadlineStream;
use tsuji_ros1::header::Header;
use tsuji_ros1::uri::Uri;
use tsuji_ros1::xmlrpc::Value;
use tsuji_transport::{Bytes, Error, ErrorKind, Result};

use crate::graph::{EndpointKey, other_half};
use crate::io::{Connection, ConnectionKind};
use crate::link::{OutLink, Room, framed};
use crate::role::{Half, Role};
use crate::rpc::{self, Failure};
use crate::state::{
    Caller, Calls, ReaderCore, Shared, State, Target, WriterCore, WriterLink, is_reported,
};
use crate::topic::{AGREE_WITHIN, Accepted, read_header, write_header};
use crate::types::{ANY, Service};

/// How long a client of ROS 1 without a connection is still shown: most connect anew for each call.
pub(crate) const CALLER_STAYS: Duration = Duration::from_secs(5);

/// Requests of one client that are not answered, at most. Beyond it a request is answered with an error.
const PENDING_MAX: usize = 4096;

/// What a connection to a server waits for.
pub(crate) type Pending = Arc<Mutex<VecDeque<i64>>>;

/// Answers a client of ROS 1: with a reply, or with what failed.
fn answer(link: &OutLink, reply: std::result::Result<Vec<u8>, String>) {
    let (is_ok, frame) = match reply {
        Ok(frame) => (1, frame),
        Err(why) => {
            let text = framed(|out| {
                out.extend(why.as_bytes());
                Ok(())
            });
            (0, text.unwrap_or_default())
        }
    };
    if !link.has_room(Room::All) {
        // It does not read what it is answered.
        return link.end();
    }
    let mut bytes = Vec::with_capacity(1 + frame.len());
    bytes.push(is_ok);
    bytes.extend(frame);
    link.send(Arc::new(bytes), Room::All);
}

impl WriterCore {
    /// Writes a request to all servers that are connected, each of which answers.
    pub(crate) fn request(&self, bytes: &Bytes) -> Result<()> {
        let mut endpoint = crate::lock(&self.endpoint);
        let outs = || endpoint.links.values().filter_map(|it| it.out.as_ref());
        if outs().any(|it| !it.has_room(Room::All)) {
            let error = Error::new(ErrorKind::Busy, "write");
            return Err(error.about("a server of ROS 1 does not take what it is asked"));
        }
        endpoint.written += 1;
        let number = endpoint.written;
        let Some(service) = &self.service else { return Ok(()) };
        if endpoint.links.is_empty() {
            return Ok(());
        }
        let frame = framed(|out| {
            let plan = &service.request.plan;
            plan.to_ros1(bytes, number as u32, out).map_err(|error| error.to_string())
        });
        match frame {
            Ok(frame) => {
                let frame = Arc::new(frame);
                for link in endpoint.links.values() {
                    let Some(out) = &link.out else { continue };
                    crate::lock(&link.pending).push_back(number);
                    out.send(Arc::clone(&frame), Room::All);
                }
            }
            Err(why) => {
                endpoint.outgoing.refused += 1;
                let refused = endpoint.outgoing.refused;
                if is_reported(refused) {
                    tracing::warn!(refused, "ros1: a request is not sent to ROS 1: {why}");
                }
            }
        }
        Ok(())
    }
}

impl State {
    fn half(role: &Role) -> Option<&Half> {
        match role {
            Role::Request(half) | Role::Reply(half) => Some(half),
            Role::Topic(_) | Role::Nodes(_) | Role::Hidden => None,
        }
    }

    /// The two halves of the servers of a service of this process.
    fn servers_of(&self, service: &str) -> Vec<(Arc<ReaderCore>, Arc<WriterCore>)> {
        let readers = self.readers.values().filter(|it| {
            let half = Self::half(&it.role);
            half.is_some_and(|it| !it.is_client() && it.service.name == service)
        });
        let both = readers.filter_map(|reader| {
            let end = &Self::half(&reader.role)?.end;
            let is_its = |it: &&Arc<WriterCore>| {
                Self::half(&it.role).is_some_and(|it| it.end == *end) && it.service.is_some()
            };
            Some((Arc::clone(reader), Arc::clone(self.writers.values().find(is_its)?)))
        });
        both.collect()
    }

    /// The half for replies of a client, by its half for requests.
    fn replies_of(&self, client: &WriterCore) -> Option<Arc<ReaderCore>> {
        let end = &Self::half(&client.role)?.end;
        let is_its = |it: &&Arc<ReaderCore>| Self::half(&it.role).is_some_and(|it| it.end == *end);
        self.readers.values().find(is_its).cloned()
    }

    /// The connections to servers of ROS 1 that clients here want.
    pub(crate) fn wanted_servers(&self) -> Vec<Target> {
        let mut wanted = Vec::new();
        for writer in self.writers.values() {
            let Some(half) = Self::half(&writer.role).filter(|it| it.is_client()) else { continue };
            if writer.service.is_none() || self.replies_of(writer).is_none() {
                continue;
            }
            let service = &half.service;
            let what = EndpointKey::Serves(service.name.clone());
            for (node, _) in self.graph.names() {
                let Some((guid, named)) = self.graph.get(node, &what) else { continue };
                if named.type_name == service.type_name {
                    wanted.push(Target::Server(writer.id, service.name.clone(), guid));
                }
            }
        }
        wanted
    }

    /// A connection of a client has ended.
    pub(crate) fn lose_caller(&mut self, replies: Guid, link: &Arc<OutLink>) {
        let Some(caller) = self.callers.get_mut(&replies) else { return };
        caller.pending.retain(|_, it| !Arc::ptr_eq(it, link));
        caller.connections = caller.connections.saturating_sub(1);
        if caller.connections == 0 {
            caller.idle_since = Some(Instant::now());
            self.is_due = true;
        }
    }

    /// Clients that have not been connected for a while are gone. Answers when the next is.
    pub(crate) fn expire_callers(&mut self, calls: &mut Calls) -> Option<Instant> {
        let now = Instant::now();
        let due = |it: &Caller| it.idle_since.map(|since| since + CALLER_STAYS);
        let gone = self.callers.iter().filter(|(_, it)| due(it).is_some_and(|it| it <= now));
        let gone: Vec<Guid> = gone.map(|(guid, _)| *guid).collect();
        for replies in gone {
            self.forget_caller(replies, calls);
        }
        self.callers.values().filter_map(due).min()
    }

    fn forget_caller(&mut self, replies: Guid, calls: &mut Calls) {
        let Some(gone) = self.callers.remove(&replies) else { return };
        for (reader, writer) in self.servers_of(&gone.service) {
            crate::lock(&reader.endpoint).sources.remove(&other_half(replies));
            crate::lock(&writer.endpoint).links.remove(&replies);
            calls.matched.extend([Arc::clone(&reader.ear), Arc::clone(&writer.ear)]);
        }
        self.graph.remove(&gone.node, &EndpointKey::Calls(gone.service));
    }

    /// A connection to a server has ended.
    pub(crate) fn lose_server(&mut self, target: &Target, key: u64, calls: &mut Calls) {
        let Target::Server(id, service, _) = target else { return };
        let Some(guid) = self.connected_by(target, key) else { return };
        let mut unanswered = 0;
        if let Some(writer) = self.writers.get(id).cloned() {
            let link = crate::lock(&writer.endpoint).links.remove(&guid);
            unanswered = link.map_or(0, |it| crate::lock(&it.pending).len());
            calls.matched.push(Arc::clone(&writer.ear));
            if let Some(reader) = self.replies_of(&writer) {
                crate::lock(&reader.endpoint).sources.remove(&other_half(guid));
                calls.matched.push(Arc::clone(&reader.ear));
            }
        }
        let why = format!(
            "the connection to the server of {service} has ended with {unanswered} requests that have no answer"
        );
        self.doubt_server(service);
        self.failed(target, &why, unanswered != 0);
    }

    fn doubt_server(&mut self, service: &str) {
        let what = EndpointKey::Serves(service.to_owned());
        let nodes = self.graph.names().map(|(name, _)| name.clone());
        let nodes: Vec<String> = nodes.filter(|it| self.graph.get(it, &what).is_some()).collect();
        self.to_probe.extend(nodes);
    }
}

impl Shared {
    /// Answers a client of ROS 1 that has said this. Runs on a thread of its own.
    pub(crate) fn accept_caller(&self, stream: TcpStream, header: &Header) {
        let name = header.get("service").unwrap_or_default();
        let agreed = self.agree_with_caller(header, name);
        let Some(Accepted { stream, node, api, agreed: service }) =
            self.accept(stream, header, name, agreed)
        else {
            return;
        };
        self.change(|state, calls| {
            let servers = state.servers_of(name);
            let Some(Role::Request(half)) = servers.first().map(|(it, _)| it.role.clone()) else {
                return;
            };
            let is_there = state.meet_node(&node, &api, None);
            if state.is_leaving || !is_there {
                return;
            }
            let what = EndpointKey::Calls(name.to_owned());
            let Some(guid) = state.graph.add(&node, what, &half.service.type_name) else { return };
            let replies = other_half(guid);
            let caller = state.callers.entry(replies).or_insert_with(|| Caller {
                node: node.clone(),
                service: name.to_owned(),
                pending: HashMap::new(),
                connections: 0,
                idle_since: None,
            });
            caller.connections += 1;
            caller.idle_since = None;
            for (reader, writer) in servers {
                let mut endpoint = crate::lock(&reader.endpoint);
                let is_new = endpoint.sources.insert(guid);
                drop(endpoint);
                crate::lock(&writer.endpoint).links.entry(replies).or_insert_with(no_link);
                if is_new {
                    calls.matched.extend([Arc::clone(&reader.ear), Arc::clone(&writer.ear)]);
                }
            }
            let key = state.new_key();
            let link = Arc::new(OutLink::new(stream, Arc::clone(&self.poll), key));
            let kind = ConnectionKind::Caller { client: guid, name: name.to_owned(), service };
            state.new_connections.push(Connection::new(link, kind));
        });
    }

    fn agree_with_caller(
        &self,
        header: &Header,
        name: &str,
    ) -> std::result::Result<(Arc<Service>, Header), String> {
        let md5 = header.get("md5sum").ok_or("its header has no md5sum")?;
        let (service, caller) = {
            let state = self.lock();
            let servers = state.servers_of(name);
            let (reader, _) =
                servers.first().ok_or_else(|| format!("nobody serves {name} here"))?;
            let service = reader.service.clone().ok_or("a type that ROS 1 has not")?;
            (service, state.caller_of(reader.id))
        };
        if md5 != ANY && md5 != service.md5 {
            return Err(format!(
                "its {name} has the MD5 sum {md5}, and {} has {} here",
                service.name, service.md5
            ));
        }
        let answer = Header::new([
            ("callerid", caller.as_deref().unwrap_or("/tsuji")),
            ("md5sum", &service.md5),
            ("request_type", service.request.ros1.name()),
            ("response_type", service.response.ros1.name()),
            ("type", &service.name),
        ]);
        Ok((service, answer))
    }

    /// A client of ROS 1 has asked this.
    pub(crate) fn take_request(
        &self,
        link: &Arc<OutLink>,
        client: Guid,
        name: &str,
        request: std::result::Result<Bytes, String>,
    ) {
        let bytes = match request {
            Ok(bytes) => bytes,
            Err(why) => return answer(link, Err(why)),
        };
        let replies = other_half(client);
        let refused = self.change(|state, calls| {
            // The server that has been there longest.
            let servers = state.servers_of(name);
            let server = servers.iter().min_by_key(|(it, _)| it.id);
            let Some((reader, _)) = server else {
                return Some(format!("nobody serves {name} any more"));
            };
            let Some(caller) = state.callers.get_mut(&replies) else {
                return Some("its connection has ended".to_owned());
            };
            if PENDING_MAX <= caller.pending.len() {
                return Some(format!("more than {PENDING_MAX} requests wait for an answer"));
            }
            let related = Some(Related { name: replies, number: 0 });
            // Nobody takes and answers it before its number is noted: that needs the lock that is held here.
            let arrived = crate::lock(&reader.endpoint).arrive(client, related, bytes);
            let Some(number) = arrived else {
                return Some("it is not known here".to_owned());
            };
            caller.pending.insert(number, Arc::clone(link));
            calls.new_messages.push(Arc::clone(&reader.ear));
            None
        });
        if let Some(why) = refused {
            answer(link, Err(why));
        }
    }

    /// Writes the reply to a request of a client of ROS 1.
    pub(crate) fn reply(&self, writer: &WriterCore, bytes: &Bytes, related: Related) {
        crate::lock(&writer.endpoint).written += 1;
        let link = {
            let mut state = self.lock();
            let caller = state.callers.get_mut(&related.name);
            caller.and_then(|it| it.pending.remove(&related.number))
        };
        // Its client may have left.
        let (Some(link), Some(service)) = (link, &writer.service) else { return };
        let frame = framed(|out| {
            let plan = &service.response.plan;
            plan.to_ros1(bytes, 0, out).map_err(|error| error.to_string())
        });
        answer(&link, frame);
    }

    /// Connects a client to a server of ROS 1. Runs on a thread of its own.
    pub(crate) fn connect_server(&self, client: &Arc<WriterCore>, target: &Target) {
        let Target::Server(_, name, guid) = target else { return };
        let Some(service) = &client.service else { return };
        let stream = match self.agree_with_server(client, name, service) {
            Ok(stream) => stream,
            Err(failure) => {
                let why = format!("the server of {name}: {failure}");
                return self.change(|state, _| {
                    let is_refused = matches!(failure, Failure::Refused(_));
                    if is_refused {
                        state.doubt_server(name);
                    }
                    state.failed(target, &why, !is_refused);
                });
            }
        };
        self.change(|state, calls| {
            // Whatever comes between, it is tried again while it is wanted.
            state.failed(target, "it is not taken note of", false);
            let Some(reader) = state.replies_of(client).filter(|_| !state.is_leaving) else {
                return;
            };
            let key = state.new_key();
            if !state.writers.contains_key(&client.id) || !state.connected(target, key, *guid) {
                return;
            }
            let link = Arc::new(OutLink::new(stream, Arc::clone(&self.poll), key));
            let pending = Pending::default();
            let to = WriterLink {
                out: Some(Arc::clone(&link)),
                message: None,
                pending: Arc::clone(&pending),
            };
            crate::lock(&reader.endpoint).sources.insert(other_half(*guid));
            crate::lock(&client.endpoint).links.insert(*guid, to);
            calls.matched.extend([Arc::clone(&reader.ear), Arc::clone(&client.ear)]);
            let kind = ConnectionKind::Server {
                target: target.clone(),
                reader,
                server: other_half(*guid),
                service: Arc::clone(service),
                pending,
            };
            state.new_connections.push(Connection::new(link, kind));
        });
    }

    fn agree_with_server(
        &self,
        client: &WriterCore,
        name: &str,
        service: &Service,
    ) -> std::result::Result<TcpStream, Failure> {
        let caller = self.lock().caller_of(client.id).unwrap_or_else(|| self.caller());
        let header = Header::new([
            ("callerid", caller.as_str()),
            ("md5sum", &service.md5),
            ("persistent", "1"),
            ("service", name),
            ("type", &service.name),
        ]);
        let (stream, said) = self.talk_to_server(&caller, name, &header)?;
        let md5 = said.get("md5sum").unwrap_or(ANY);
        if md5 != ANY && md5 != service.md5 {
            let here = format!("{} has {} here", service.name, service.md5);
            return Err(Failure::Other(format!("its MD5 sum is {md5}, and {here}")));
        }
        crate::state::prepare(&stream)?;
        Ok(stream)
    }

    /// Connects to a server, says this header, and answers what it says.
    fn talk_to_server(
        &self,
        caller: &str,
        name: &str,
        header: &Header,
    ) -> std::result::Result<(TcpStream, Header), Failure> {
        let asked = vec![Value::from(caller), Value::from(name)];
        let answer = rpc::call(&self.master, "lookupService", asked)?;
        let uri: Uri = answer
            .as_str()
            .unwrap_or_default()
            .parse()
            .map_err(|error| Failure::Other(format!("{error}")))?;
        let mut stream = DeadlineStream::connect(&uri.host, uri.port, AGREE_WITHIN, AGREE_WITHIN)?;
        write_header(&mut stream, header).map_err(Failure::Other)?;
        let said = read_header(&mut stream).map_err(Failure::Other)?;
        match said.get("error") {
            Some(error) => Err(Failure::Other(format!("it says: {error}"))),
            None => Ok((stream.into_inner(), said)),
        }
    }

    /// Asks a server of what type it is, as nodes of ROS 1 do.
    pub(crate) fn type_of_service(&self, name: &str) -> std::result::Result<String, Failure> {
        let caller = self.caller();
        let header = Header::new([
            ("callerid", caller.as_str()),
            ("md5sum", ANY),
            ("probe", "1"),
            ("service", name),
        ]);
        let (_, said) = self.talk_to_server(&caller, name, &header)?;
        let ty = said.get("type").map(str::to_owned);
        ty.ok_or_else(|| Failure::Other("it does not say its type".to_owned()))
    }

    /// The name of a reader or writer of this process.
    pub(crate) fn own_name(&self, id: crate::state::Id) -> Guid {
        tsuji_ros::gid::Guid::new(self.prefix, id).0
    }

    /// A server of ROS 1 has answered.
    pub(crate) fn take_reply(
        &self,
        reader: &ReaderCore,
        server: Guid,
        number: i64,
        reply: std::result::Result<Bytes, String>,
    ) {
        let related = Some(Related { name: self.own_name(reader.id), number });
        if reader.arrive(server, related, reply, "a call has no answer") {
            reader.ear.data_available();
        }
    }
}

/// A client of ROS 1, which a reply is sent to by the connection that its request came by.
pub(crate) fn no_link() -> WriterLink {
    WriterLink { out: None, message: None, pending: Arc::default() }
}
