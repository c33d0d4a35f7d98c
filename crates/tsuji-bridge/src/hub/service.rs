//! Services, both ways: what clients call, and what they serve.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tsuji::{Context, EndpointKind, ErrorKind, Node, RawClient, RawRequest, RawService, Waitable};
use tsuji_rosbridge::access::{Act, UserKey};
use tsuji_rosbridge::client::Kind;
use tsuji_rosbridge::{Body, Encoding, Id, Outgoing, Refusal, Values};

use super::rosapi::{self, World};
use crate::body::{self, OwnedBody, wall_now};
use crate::member::Member;
use crate::settings::Settings;
use crate::types::{MessageType, ServiceType, Types};

/// What a client calls.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) member: Arc<Member>,
    /// By which the client's state knows it.
    pub(crate) key: u64,
    pub(crate) service: Arc<str>,
    pub(crate) ty: Option<String>,
    pub(crate) args: OwnedBody,
    /// Who asks, for what rosapi shows.
    pub(crate) user: Option<UserKey>,
}

/// A call whose response has not come.
#[derive(Debug)]
struct Open {
    member: Arc<Member>,
    key: u64,
}

impl Open {
    /// Tells the client what became of it, unless it has waited for too long.
    fn end(&self, values: Values<'_>, result: bool) {
        let ended = self.member.lock().client.asking.end(self.key);
        let Some(ended) = ended else { return };
        let (id, service) = (ended.id.as_ref(), &*ended.name);
        self.member.answer(&Outgoing::ServiceResponse { id, service, values, result });
    }

    fn fail(&self, why: &str) {
        self.end(Values::Text(why), false);
    }

    /// Whether the client has not been told yet that it took too long.
    fn is_waited_for(&self) -> bool {
        self.member.lock().client.asking.context(self.key).is_some()
    }
}

/// Everything that clients call.
pub(super) struct Callers {
    node: Node,
    types: Arc<Types>,
    settings: Arc<Settings>,
    all: Vec<Caller>,
}

/// One service that clients call.
struct Caller {
    name: Arc<str>,
    ty: Arc<ServiceType>,
    client: RawClient,
    /// Until a server is ready, but not for long.
    waiting: Vec<(Vec<u8>, Open, Instant)>,
    sent: HashMap<u64, Open>,
}

impl Callers {
    pub(super) fn new(node: Node, types: Arc<Types>, settings: Arc<Settings>) -> Self {
        Self { node, types, settings, all: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.all.iter().map(|it| &it.client as &dyn Waitable)
    }

    /// Whether somebody waits for a server.
    pub(super) fn waits(&self) -> bool {
        self.all.iter().any(|it| !it.waiting.is_empty())
    }

    /// Sends a request, or answers it where it is one of rosapi's.
    pub(super) fn call(&mut self, call: Call, context: &Context) {
        let Call { member, key, service, ty, args, user } = call;
        let open = Open { member, key };
        if let Some(short) = rosapi::service_of(&service) {
            return self.answer(short, &args, &open, user, context);
        }
        let begun = self.caller(&service, ty.as_deref(), context).and_then(|caller| {
            let mut request = Vec::new();
            let plan = &caller.ty.request.plan;
            let read = body::read(plan, args.body(), wall_now(), &mut request);
            read.map(|()| (caller, request)).map_err(|error| format!("args: {error}"))
        });
        match begun {
            Ok((caller, request)) => caller.send(request, open, Instant::now() + SERVER_PATIENCE),
            Err(why) => open.fail(&why),
        }
    }

    fn caller(
        &mut self,
        service: &Arc<str>,
        ty: Option<&str>,
        context: &Context,
    ) -> Result<&mut Caller, String> {
        let wanted = ty.map(|it| self.types.service(it)).transpose()?;
        let is_it = |it: &Caller| {
            it.name == *service && wanted.as_ref().is_none_or(|wanted| wanted.raw == it.ty.raw)
        };
        if let Some(at) = self.all.iter().position(is_it) {
            return Ok(&mut self.all[at]);
        }
        let found = || {
            let graph = context.graph();
            let mut servers = graph.services.into_iter();
            servers
                .find(|it| it.kind == EndpointKind::Server && it.topic == **service)
                .map(|it| it.type_name)
        };
        let ty = ty.map(str::to_owned).or_else(found);
        let ty = ty.ok_or_else(|| format!("service {service} does not exist"))?;
        let ty = self.types.service(&ty)?;
        if CALLERS_MAX <= self.all.len() {
            self.all.retain(|it| !it.is_idle());
        }
        if CALLERS_MAX <= self.all.len() {
            return Err(format!("{CALLERS_MAX} services are being called; one more is not"));
        }
        let client = self.node.raw_client(service, ty.raw.clone()).build();
        let client = client.map_err(|error| error.to_string())?;
        let (name, waiting, sent) = (Arc::clone(service), Vec::new(), HashMap::new());
        self.all.push(Caller { name, ty, client, waiting, sent });
        let at = self.all.len() - 1;
        Ok(&mut self.all[at])
    }

    fn answer(
        &self,
        short: &'static str,
        args: &OwnedBody,
        open: &Open,
        user: Option<UserKey>,
        context: &Context,
    ) {
        let args = match args.body() {
            Body::None => Value::Null,
            _ if ROSAPI_BYTES_MAX < args.bytes() => {
                return open.fail("args: too long; rosapi takes 64 KB at most");
            }
            Body::Json(text) => serde_json::from_slice(text).unwrap_or(Value::Null),
            _ => return open.fail("rosapi takes JSON alone"),
        };
        let access = &self.settings.access;
        let graph = context.graph();
        let world = World {
            graph: &graph,
            types: &self.types,
            shows_topic: &|topic| access.decide(user, Act::Subscribe, topic).is_ok(),
            shows_service: &|service| access.decide(user, Act::CallService, service).is_ok(),
            now_ns: tsuji_platform::clock::wall_ns(),
            distro: &self.settings.distro,
        };
        match rosapi::answer(short, &args, &world) {
            Ok(value) if open.member.encoding == Encoding::Json => {
                open.end(Values::Encoded(value.to_string().as_bytes()), true);
            }
            Ok(_) => open.fail("rosapi answers in JSON alone"),
            Err(why) => open.fail(&why),
        }
    }

    /// Hands on the replies that have come.
    pub(super) fn drain(&mut self, place: usize) {
        let Some(caller) = self.all.get_mut(place) else { return };
        loop {
            match caller.client.take_bytes() {
                Ok(Some((number, sample))) => {
                    if let Some(open) = caller.sent.remove(&number) {
                        finish(&open, &caller.ty.response, &sample.bytes);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(service = &*caller.name, %error, "a reply could not be taken");
                    return;
                }
            }
        }
    }

    /// Sends what has waited for a server.
    pub(super) fn look(&mut self) {
        for caller in self.all.iter_mut().filter(|it| !it.waiting.is_empty()) {
            let now = Instant::now();
            if caller.client.is_ready() {
                for (request, open, until) in std::mem::take(&mut caller.waiting) {
                    caller.send(request, open, until);
                }
                continue;
            }
            let name = &caller.name;
            let obstacles = caller.client.obstacles();
            caller.waiting.retain(|(_, open, until)| {
                let waits = now < *until;
                if !waits && obstacles.is_empty() {
                    open.fail(&format!("service {name} does not exist"));
                } else if !waits {
                    open.fail(&format!("service {name}: {}", obstacles.join("; ")));
                }
                waits
            });
        }
    }

    /// Forgets what a client has called.
    pub(super) fn gone(&mut self, member: u64) {
        for caller in &mut self.all {
            caller.waiting.retain(|(_, open, _)| open.member.number != member);
            caller.sent.retain(|_, open| open.member.number != member);
        }
    }
}

impl Caller {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }

    fn send(&mut self, request: Vec<u8>, open: Open, until: Instant) {
        if !self.client.is_ready() {
            self.waiting.push((request, open, until));
            return;
        }
        match self.client.post_bytes(&request) {
            Ok(number) => {
                self.sent.insert(number, open);
                if SENT_MANY < self.sent.len() {
                    self.sent.retain(|_, it| it.is_waited_for());
                }
            }
            Err(error) if error.kind() == ErrorKind::NoServer => {
                self.waiting.push((request, open, until));
            }
            Err(error) => open.fail(&error.to_string()),
        }
    }
}

fn finish(open: &Open, ty: &MessageType, cdr: &[u8]) {
    match ty.written(cdr, open.member.encoding) {
        Ok(values) => open.end(Values::Encoded(&values), true),
        Err(why) => open.fail(&format!("the response is none of its type: {why}")),
    }
}

/// Everything that clients serve.
pub(super) struct Servers {
    node: Node,
    all: Vec<Server>,
    /// Requests that clients have and have not answered.
    open: HashMap<u64, (RawRequest, Arc<ServiceType>, u64)>,
    next: u64,
}

struct Server {
    member: Arc<Member>,
    name: Arc<str>,
    ty: Arc<ServiceType>,
    service: RawService,
}

impl Servers {
    pub(super) fn new(node: Node) -> Self {
        Self { node, all: Vec::new(), open: HashMap::new(), next: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.all.iter().map(|it| &it.service as &dyn Waitable)
    }

    /// Lets a client serve.
    pub(super) fn open(
        &mut self,
        member: Arc<Member>,
        name: Arc<str>,
        ty: Arc<ServiceType>,
        id: Option<Id<'static>>,
    ) {
        let is_taken = self.all.iter().any(|it| it.name == name);
        let service = match is_taken {
            true => Err("another client serves it".to_owned()),
            false => {
                self.node.raw_service(&name, ty.raw.clone()).build().map_err(|it| it.to_string())
            }
        };
        match service {
            Ok(service) => self.all.push(Server { member, name, ty, service }),
            Err(why) => {
                member.lock().client.served.unadvertise(Kind::Service, &name);
                let expected = "a service that can be served";
                member.refuse(&Refusal::new(
                    "advertise_service",
                    id.as_ref(),
                    Some("service"),
                    why,
                    expected,
                ));
            }
        }
    }

    /// A client serves no more.
    pub(super) fn close(&mut self, member: u64, name: &str) {
        self.all.retain(|it| it.member.number != member || *it.name != *name);
    }

    /// A client has gone.
    pub(super) fn gone(&mut self, member: u64) {
        self.all.retain(|it| it.member.number != member);
        self.open.retain(|_, (.., of)| *of != member);
    }

    /// A request that no client will answer.
    pub(super) fn forget(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// Hands on the requests that have come.
    pub(super) fn drain(&mut self, place: usize, now: Duration) {
        let Some(server) = self.all.get(place) else { return };
        loop {
            let request = match server.service.take_bytes() {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(service = &*server.name, %error, "a request could not be taken");
                    return;
                }
            };
            let Server { member, name, ty, .. } = server;
            let args = match ty.request.written(request.bytes(), member.encoding) {
                Ok(args) => args,
                Err(why) => {
                    tracing::warn!(service = &**name, why, "a request that is none of its type");
                    continue;
                }
            };
            let number = self.next;
            self.next += 1;
            let mut state = member.lock();
            let id = state.client.served.next_id(Kind::Service, name);
            let begun = state.client.asked.begin(
                Some(id.borrowed()),
                name,
                Some(now + ANSWER_PATIENCE),
                number,
            );
            drop(state);
            if begun.is_err() {
                tracing::warn!(service = &**name, "a request was dropped: its client has too many");
                continue;
            }
            self.open.insert(number, (request, Arc::clone(ty), member.number));
            let args = Values::Encoded(&args);
            member.answer(&Outgoing::CallService { id: &id, service: name, args });
        }
    }

    /// Sends what a client has answered.
    pub(super) fn respond(
        &mut self,
        member: &Member,
        number: u64,
        id: Option<&Id<'_>>,
        values: &OwnedBody,
        result: bool,
    ) {
        let Some((request, ty, _)) = self.open.remove(&number) else { return };
        let refuse = |field, found: String, expected: &'static str| {
            member.refuse(&Refusal::new("service_response", id, Some(field), found, expected));
        };
        if !result {
            // ROS has no word for a failure: whoever asked waits until its time is up.
            tracing::warn!(service = %ty.raw.name, "a client says that its service has failed");
            return;
        }
        let mut response = Vec::new();
        match body::read(&ty.response.plan, values.body(), wall_now(), &mut response) {
            Ok(()) => {
                if let Err(error) = request.respond_bytes(&response) {
                    refuse("id", error.to_string(), "a client that still waits");
                }
            }
            Err(error) => refuse("values", error.to_string(), "a response of its type"),
        }
    }
}

/// A client that serves has so long to answer; then the request is forgotten.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// Open calls beyond which it is looked which of them are waited for.
const SENT_MANY: usize = 1024;

/// What rosapi is asked is a name or two.
const ROSAPI_BYTES_MAX: usize = 64 << 10;

/// How long a server may take to appear.
pub(super) const SERVER_PATIENCE: Duration = Duration::from_secs(1);

/// Services that are kept ready to be called. Beyond that, those that nobody waits for go.
const CALLERS_MAX: usize = 256;
