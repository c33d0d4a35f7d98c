//! Services, both ways: what clients call, and what they serve.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tsuji::{
    Context, EndpointKind, ErrorKind, Gid, Node, RawClient, RawRequest, RawSample, RawService,
    Waitable,
};
use tsuji_rosbridge::access::{Act, UserKey};
use tsuji_rosbridge::client::Kind;
use tsuji_rosbridge::{Body, Encoding, Id, Outgoing, Refusal, Values};

use super::foxglove::Question;
use super::overview::{self, Overview};
use super::parameter::{self, Asked, Gathering, Next, Step, Wanted};
use super::rosapi::{self, World};
use crate::body::{self, OwnedBody, wall_now};
use crate::connected_client::{ConnectedClient, Delivery, Dialect, Kept};
use crate::foxglove;
use crate::plain::Plain;
use crate::settings::Settings;
use crate::tree;
use crate::types::{ServiceType, Types};

/// What a client calls.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) member: Arc<ConnectedClient>,
    /// By which the client's state knows it.
    pub(crate) key: u64,
    pub(crate) service: Arc<str>,
    pub(crate) ty: Option<String>,
    pub(crate) args: OwnedBody,
    /// Who asks, for what rosapi shows.
    pub(crate) user: Option<UserKey>,
    /// How the response is to be sent.
    pub(crate) delivery: Delivery,
}

/// Whether a client that calls this service is answered by the bridge itself, with what its user may know or by what it may do.
pub(crate) fn tells(service: &str) -> bool {
    match overview::question(service) {
        Some(question) => question != overview::Question::SetPlayback,
        None => rosapi::service_of(service).is_some(),
    }
}

/// A call whose response has not come.
#[derive(Debug)]
struct Open {
    asking: Asking,
    then: Then,
}

/// A client that waits for a response.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) member: Arc<ConnectedClient>,
    key: u64,
    delivery: Delivery,
}

/// What is done with a response.
#[derive(Debug)]
enum Then {
    /// It is the client's.
    Tell,
    /// It says something of a parameter that the client asked this service of rosapi for.
    Parameter(&'static str, Box<Asked>),
    /// It is what this node has of what is gathered.
    Names(u64, Arc<str>),
    /// A client of Foxglove has the node asked, which knows it by that ticket.
    Foxglove(u64),
}

impl Asking {
    /// Tells the client what became of it, unless it has waited for too long.
    pub(super) fn end(&self, values: Values<'_>, result: bool) {
        let ended = self.member.lock().client.asking.end(self.key);
        let Some(ended) = ended else { return };
        let (id, service) = (ended.id.as_ref(), &*ended.name);
        let response = Outgoing::ServiceResponse { id, service, values, result };
        self.member.answer_by(self.delivery, &response);
    }

    pub(super) fn fail(&self, why: &str) {
        self.end(Values::Text(why), false);
    }

    /// Answers what is of rosapi.
    pub(super) fn answer(&self, value: &Value) {
        let written = match self.member.encoding {
            Encoding::Bson => tree::bson(value),
            Encoding::Json | Encoding::Cbor => value.to_string().into_bytes(),
        };
        self.end(Values::Encoded(&written), true);
    }

    /// The same of what is written already, in JSON.
    pub(super) fn answer_json(&self, text: &str) {
        match self.member.encoding {
            Encoding::Bson => self.answer(&serde_json::from_str(text).unwrap_or_default()),
            Encoding::Json | Encoding::Cbor => self.end(Values::Encoded(text.as_bytes()), true),
        }
    }

    /// Whether the client wants a response as it comes.
    fn wants_cdr(&self) -> bool {
        let call = match self.member.peer.dialect {
            Dialect::Rosbridge => None,
            Dialect::Foxglove { .. } => {
                self.member.lock().client.asking.id(self.key).and_then(foxglove::Call::read)
            }
        };
        call.is_some_and(|it| it.encoding == foxglove::Encoding::Cdr)
    }

    /// Whether the client has not been told yet that it took too long.
    fn is_waited_for(&self) -> bool {
        self.member.lock().client.asking.context(self.key).is_some()
    }
}

/// Everything that clients call.
pub(super) struct Callers {
    node: Node,
    node_name: String,
    types: Arc<Types>,
    settings: Arc<Settings>,
    overview: Overview,
    all: Vec<Caller>,
    /// What is to be asked next of nodes for clients, which may change places among `all`.
    steps: Vec<(Step, Open)>,
    gathered: HashMap<u64, (Asking, Option<UserKey>, Gathering)>,
    /// What nodes have answered to what they were asked for clients of Foxglove.
    answers: Vec<(u64, Option<Value>)>,
    next: u64,
}

/// One service that clients call.
struct Caller {
    name: Arc<str>,
    ty: Arc<ServiceType>,
    client: RawClient,
    /// Until a server is ready, but not for long.
    waiting: Vec<(Kept, Open, Instant)>,
    sent: HashMap<u64, Open>,
}

impl Callers {
    pub(super) fn new(
        node: Node,
        types: Arc<Types>,
        settings: Arc<Settings>,
        overview: Overview,
    ) -> Self {
        let (all, steps, gathered, answers) = (Vec::new(), Vec::new(), HashMap::new(), Vec::new());
        let node_name = node.fully_qualified_name().to_owned();
        let next = 0;
        Self { node, node_name, types, settings, overview, all, steps, gathered, answers, next }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.all.iter().map(|it| &it.client as &dyn Waitable)
    }

    /// Whether somebody waits for a server, or for nodes of which some may never answer.
    pub(super) fn waits(&self) -> bool {
        let is_asking = !self.steps.is_empty() || !self.gathered.is_empty();
        is_asking || self.all.iter().any(|it| !it.waiting.is_empty())
    }

    /// Sends a request, or answers it where it is one of rosapi's.
    pub(super) fn call(&mut self, call: Call, context: &Context) {
        let Call { member, key, service, ty, args, user, delivery } = call;
        let asking = Asking { member, key, delivery };
        if let Some(question) = overview::question(&service) {
            return self.overview.ask(question, &args, asking, user);
        }
        if let Some(short) = rosapi::service_of(&service) {
            return match self.answer(short, &args, &asking, user, context) {
                Ok(Some(value)) => asking.answer(&value),
                Ok(None) => {}
                Err(why) => asking.fail(&why),
            };
        }
        let open = Open { asking, then: Then::Tell };
        self.begin(&service, ty.as_deref(), &args, open, context);
    }

    fn begin(
        &mut self,
        service: &Arc<str>,
        ty: Option<&str>,
        args: &OwnedBody,
        open: Open,
        context: &Context,
    ) {
        let begun = self.caller(service, ty, context).and_then(|caller| {
            let mut request = Vec::new();
            let plan = &caller.ty.request.plan;
            let read = args.read(plan, wall_now(), &mut request);
            read.map(|()| (caller, request)).map_err(|error| format!("args: {error}"))
        });
        let failed = match begun {
            Ok((caller, request)) => {
                let request = open.asking.member.keep(request);
                caller.send(request, open, Instant::now() + SERVER_PATIENCE)
            }
            Err(why) => Err((open, why)),
        };
        if let Err((open, why)) = failed {
            self.fail(open, &why);
        }
    }

    /// Says that there is no response.
    fn fail(&mut self, open: Open, why: &str) {
        match open.then {
            Then::Tell => open.asking.fail(why),
            Then::Parameter(service, asked) => open.asking.answer(&asked.failed(service, why)),
            Then::Names(number, node) => self.note(number, &node, None),
            Then::Foxglove(ticket) => self.answers.push((ticket, None)),
        }
    }

    /// Asks a node for a client of Foxglove.
    pub(super) fn ask_for(&mut self, question: Question, context: &Context) {
        let Question { ticket, client: member, step } = question;
        // No call of the client's own waits for it.
        let asking = Asking { member, key: u64::MAX, delivery: Delivery::default() };
        self.step(step, Open { asking, then: Then::Foxglove(ticket) }, context);
    }

    /// What nodes have answered since the last time; nothing where one will not.
    pub(super) fn take_answers(&mut self) -> Vec<(u64, Option<Value>)> {
        std::mem::take(&mut self.answers)
    }

    fn note(&mut self, number: u64, node: &str, reply: Option<&Value>) {
        if let Some((.., gathering)) = self.gathered.get_mut(&number) {
            gathering.note(node, reply);
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
        let servers = context.graph().services.into_iter();
        let mut served = servers
            .filter(|it| it.kind == EndpointKind::Server && it.topic == **service)
            .map(|it| it.type_name)
            .peekable();
        let ty = match wanted {
            // A client of another type would wait for nothing, and show in the graph.
            Some(wanted) => match served.peek().cloned() {
                Some(other) if !served.any(|it| it == wanted.raw.name) => {
                    return Err(format!("service {service} is of type {other}"));
                }
                _ => wanted,
            },
            None => {
                let ty = served.next();
                let ty = ty.ok_or_else(|| format!("service {service} does not exist"))?;
                self.types.service(&ty)?
            }
        };
        if CALLERS_MAX <= self.all.len() {
            self.all.retain(|it| !it.is_idle());
        }
        if CALLERS_MAX <= self.all.len() {
            return Err(format!("{CALLERS_MAX} services are being called; one more is not"));
        }
        let client = self.node.create_raw_client(&**service, ty.raw.clone());
        let client = client.map_err(|error| error.to_string())?;
        let (name, waiting, sent) = (Arc::clone(service), Vec::new(), HashMap::new());
        self.all.push(Caller { name, ty, client, waiting, sent });
        let at = self.all.len() - 1;
        Ok(&mut self.all[at])
    }

    /// What rosapi answers at once; nothing where nodes have to be asked.
    fn answer(
        &mut self,
        short: &'static str,
        args: &OwnedBody,
        asking: &Asking,
        user: Option<UserKey>,
        context: &Context,
    ) -> Result<Option<Value>, String> {
        let args = read_args(args)?;
        if parameter::SERVICES.contains(&short) {
            self.ask(short, parameter::wanted(short, &args)?, asking, user, context)?;
            return Ok(None);
        }
        let access = &self.settings.access;
        let graph = context.graph();
        let world = World {
            graph: &graph,
            types: &self.types,
            shows_topic: &|topic| access.decide(user, Act::Subscribe, topic).is_ok(),
            shows_service: &|service| access.decide(user, Act::CallService, service).is_ok(),
            now_ns: tsuji_platform::clock::wall_ns(),
            settings: &self.settings,
            node: &self.node_name,
        };
        rosapi::answer(short, &args, &world).map(Some)
    }

    /// Asks nodes for what a client wants of parameters.
    fn ask(
        &mut self,
        short: &'static str,
        wanted: Wanted,
        asking: &Asking,
        user: Option<UserKey>,
        context: &Context,
    ) -> Result<(), String> {
        match wanted {
            Wanted::One(asked) => {
                let decided = self.settings.access.decide(user, asked.act(), &asked.whole());
                if let Err(denial) = decided {
                    asking.member.audit(&denial);
                    return Err(denial.to_string());
                }
                let step = asked.begin();
                let then = Then::Parameter(short, Box::new(asked));
                self.steps.push((step, Open { asking: asking.clone(), then }));
            }
            Wanted::Names { last } => {
                if GATHERED_MAX <= self.gathered.len() {
                    self.gathered.retain(|_, (asking, ..)| asking.is_waited_for());
                }
                if GATHERED_MAX <= self.gathered.len() {
                    return Err("too many ask for all parameters at a time; ask later".to_owned());
                }
                let gathering = Gathering::new(&context.graph(), last);
                self.next += 1;
                self.gathered.insert(self.next, (asking.clone(), user, gathering));
            }
        }
        self.go_on(context);
        Ok(())
    }

    /// Asks what is to be asked next, and answers what is gathered.
    fn go_on(&mut self, context: &Context) {
        for (step, open) in std::mem::take(&mut self.steps) {
            self.step(step, open, context);
        }
        let mut numbers: Vec<u64> = self.gathered.keys().copied().collect();
        numbers.sort_unstable();
        // The others wait: each asks every node.
        for number in numbers.into_iter().take(GATHERED_AT_ONCE) {
            while let Some((asking, _, gathering)) = self.gathered.get_mut(&number)
                && let Some((node, step)) = gathering.next(Instant::now())
            {
                let (asking, then) = (asking.clone(), Then::Names(number, node));
                self.step(step, Open { asking, then }, context);
            }
            let is_over = self.gathered.get(&number).is_some_and(|it| it.2.is_over(Instant::now()));
            if is_over && let Some((asking, user, gathering)) = self.gathered.remove(&number) {
                let access = &self.settings.access;
                let may_know = |it: &str| access.decide(user, Act::ReadParameter, it).is_ok();
                asking.answer(&gathering.answer(may_know));
            }
        }
    }

    fn step(&mut self, step: Step, open: Open, context: &Context) {
        let Step { service, ty, request } = step;
        let request = OwnedBody::of(Body::Json(request.as_bytes()));
        self.begin(&service, Some(ty), &request, open, context);
    }

    /// Hands on the replies that have come.
    pub(super) fn drain(&mut self, place: usize) {
        while let Some((open, ty, sample)) = self.reply(place) {
            self.finish(open, &ty, &sample.bytes);
        }
    }

    /// The next reply to a call that is waited for.
    fn reply(&mut self, place: usize) -> Option<(Open, Arc<ServiceType>, RawSample)> {
        let caller = self.all.get_mut(place)?;
        loop {
            match caller.client.take_bytes() {
                Ok(Some((number, sample))) => {
                    if let Some(open) = caller.sent.remove(&number) {
                        return Some((open, Arc::clone(&caller.ty), sample));
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(service = %Plain(&caller.name), error = %Plain(error), "a reply could not be taken");
                    return None;
                }
            }
        }
    }

    fn finish(&mut self, open: Open, ty: &ServiceType, cdr: &[u8]) {
        let encoding = match open.then {
            Then::Tell if open.asking.wants_cdr() => {
                return open.asking.end(Values::Encoded(cdr), true);
            }
            Then::Tell => open.asking.member.encoding,
            Then::Parameter(..) | Then::Names(..) | Then::Foxglove(_) => Encoding::Json,
        };
        let values = match ty.response.written(cdr, encoding) {
            Ok(values) => values,
            Err(why) => {
                return self.fail(open, &format!("the response is none of its type: {why}"));
            }
        };
        let Open { asking, then } = open;
        match then {
            Then::Tell => asking.end(Values::Encoded(&values), true),
            Then::Parameter(service, asked) => match asked.go_on(service, &read(&values), cdr) {
                Next::Answer(value) => asking.answer(&value),
                Next::Ask(asked, step) => {
                    let then = Then::Parameter(service, Box::new(asked));
                    self.steps.push((step, Open { asking, then }));
                }
            },
            Then::Names(number, node) => self.note(number, &node, Some(&read(&values))),
            Then::Foxglove(ticket) => self.answers.push((ticket, Some(read(&values)))),
        }
    }

    /// Sends what has waited for a server, and asks what is to be asked next.
    pub(super) fn look(&mut self, context: &Context) {
        let mut failed = Vec::new();
        for caller in self.all.iter_mut().filter(|it| !it.waiting.is_empty()) {
            caller.look(&mut failed);
        }
        for (open, why) in failed {
            self.fail(open, &why);
        }
        self.go_on(context);
    }

    /// Tells a client whose call will have no response.
    pub(super) fn end_unanswered(&mut self, unanswered: Unanswered) {
        let Unanswered { client, number, why } = unanswered;
        let caller = self.all.iter_mut().find(|it| it.client.gid() == client);
        if let Some(open) = caller.and_then(|it| it.sent.remove(&number)) {
            self.fail(open, &why);
        }
    }

    /// Tells the clients whose calls no server can answer any more.
    pub(super) fn end_lost(&mut self) {
        let mut lost = Vec::new();
        for caller in self.all.iter_mut().filter(|it| !it.sent.is_empty()) {
            // What has been answered and not taken is open too.
            if caller.client.counters().open == 0 {
                let why = said_of(&caller.name, GONE);
                lost.extend(caller.sent.drain().map(|(_, open)| (open, why.clone())));
            }
        }
        for (open, why) in lost {
            self.fail(open, &why);
        }
    }

    /// Forgets what a client has called.
    pub(super) fn gone(&mut self, member: u64) {
        for caller in &mut self.all {
            caller.waiting.retain(|(_, open, _)| open.asking.member.number != member);
            caller.sent.retain(|_, open| open.asking.member.number != member);
        }
        self.steps.retain(|(_, open)| open.asking.member.number != member);
        self.gathered.retain(|_, (asking, ..)| asking.member.number != member);
    }
}

impl Caller {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }

    /// Sends what has waited for a server; what has waited for too long has `failed`.
    fn look(&mut self, failed: &mut Vec<(Open, String)>) {
        let now = Instant::now();
        if self.client.is_ready() {
            for (request, open, until) in std::mem::take(&mut self.waiting) {
                failed.extend(self.send(request, open, until).err());
            }
            return;
        }
        let obstacles = self.client.obstacles();
        for (_, open, _) in self.waiting.extract_if(.., |(.., until)| *until <= now) {
            let why = match obstacles.is_empty() {
                true => format!("service {} does not exist", self.name),
                false => format!("service {}: {}", self.name, obstacles.join("; ")),
            };
            failed.push((open, why));
        }
    }

    /// Sends a request, or lets it wait for a server. What can be neither is given back, with the reason.
    fn send(&mut self, request: Kept, open: Open, until: Instant) -> Result<(), (Open, String)> {
        if !self.client.is_ready() {
            self.waiting.push((request, open, until));
            return Ok(());
        }
        match self.client.post_bytes(&request) {
            Ok(number) => {
                self.sent.insert(number, open);
                if SENT_MANY < self.sent.len() {
                    let is_waited_for = |it: &Open| {
                        matches!(it.then, Then::Foxglove(_)) || it.asking.is_waited_for()
                    };
                    self.sent.retain(|_, it| is_waited_for(it));
                }
            }
            Err(error) if error.kind() == ErrorKind::NoServer => {
                self.waiting.push((request, open, until));
            }
            Err(error) => return Err((open, error.to_string())),
        }
        Ok(())
    }
}

/// What a service of rosapi is asked with.
pub(super) fn read_args(args: &OwnedBody) -> Result<Value, String> {
    if ROSAPI_BYTES_MAX < args.bytes() {
        return Err("args: too long; rosapi takes 64 KB at most".to_owned());
    }
    tree::read(args.body()).map_err(|error| format!("args: {error}"))
}

/// A message as the codec has written it.
fn read(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap_or_default()
}

/// Everything that clients serve.
pub(super) struct Servers {
    node: Node,
    all: Vec<Server>,
    /// Requests that clients have and have not answered.
    open: HashMap<u64, Request>,
    unanswered: Vec<Unanswered>,
    next: u64,
}

/// A request that a client has.
struct Request {
    raw: RawRequest,
    name: Arc<str>,
    ty: Arc<ServiceType>,
    member: u64,
}

/// A request that will have no answer. ROS has no word for that, but whoever called through this bridge is told.
pub(super) struct Unanswered {
    client: Gid,
    number: u64,
    why: String,
}

impl Unanswered {
    fn new(request: &RawRequest, why: String) -> Self {
        let (client, number) = request.id();
        Self { client, number, why }
    }
}

struct Server {
    member: Arc<ConnectedClient>,
    name: Arc<str>,
    ty: Arc<ServiceType>,
    service: RawService,
}

impl Servers {
    pub(super) fn new(node: Node) -> Self {
        let (all, open, unanswered) = (Vec::new(), HashMap::new(), Vec::new());
        Self { node, all, open, unanswered, next: 0 }
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
        member: Arc<ConnectedClient>,
        name: Arc<str>,
        ty: Arc<ServiceType>,
        id: Option<Id<'static>>,
    ) {
        let is_taken = self.all.iter().any(|it| it.name == name);
        let service = match is_taken {
            true => Err("another client serves it".to_owned()),
            false => self
                .node
                .create_polled_raw_service(&*name, ty.raw.clone())
                .map_err(|it| it.to_string()),
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
        self.remove(|it| it.member.number == member && *it.name == *name);
    }

    /// A client has gone.
    pub(super) fn gone(&mut self, member: u64) {
        self.remove(|it| it.member.number == member);
        let had = self.open.extract_if(|_, it| it.member == member);
        let unanswered = had.map(|(_, it)| Unanswered::new(&it.raw, said_of(&it.name, GONE)));
        self.unanswered.extend(unanswered);
    }

    /// Ends services, with the requests that nobody has taken.
    fn remove(&mut self, is_it: impl Fn(&Server) -> bool) {
        for Server { name, service, .. } in self.all.extract_if(.., |it| is_it(it)) {
            while let Ok(Some(request)) = service.take_bytes() {
                self.unanswered.push(Unanswered::new(&request, said_of(&name, GONE)));
            }
        }
    }

    /// A request that no client will answer, and why.
    pub(super) fn forget(&mut self, number: u64, why: &str) {
        if let Some(Request { raw, name, .. }) = self.open.remove(&number) {
            self.unanswered.push(Unanswered::new(&raw, said_of(&name, why)));
        }
    }

    /// The requests that will have no answer, since the last time.
    pub(super) fn take_unanswered(&mut self) -> Vec<Unanswered> {
        std::mem::take(&mut self.unanswered)
    }

    /// Hands on the requests that have come.
    pub(super) fn drain(&mut self, place: usize, now: Duration) {
        let Some(server) = self.all.get(place) else { return };
        loop {
            let request = match server.service.take_bytes() {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(service = %Plain(&server.name), error = %Plain(error), "a request could not be taken");
                    return;
                }
            };
            let Server { member, name, ty, .. } = server;
            let args = match ty.request.written(request.bytes(), member.encoding) {
                Ok(args) => args,
                Err(why) => {
                    tracing::warn!(service = %Plain(name), why = %Plain(&why), "a request that is none of its type");
                    let why = format!("the request is none of its type: {why}");
                    self.unanswered.push(Unanswered::new(&request, why));
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
                tracing::warn!(service = %Plain(name), "a request was dropped: its client has too many");
                self.unanswered.push(Unanswered::new(&request, said_of(name, TOO_MANY)));
                continue;
            }
            let (name, ty) = (Arc::clone(name), Arc::clone(ty));
            let open = Request { raw: request, name, ty, member: member.number };
            self.open.insert(number, open);
            let args = Values::Encoded(&args);
            member.answer(&Outgoing::CallService { id: &id, service: &server.name, args });
        }
    }

    /// Sends what a client has answered.
    pub(super) fn respond(
        &mut self,
        member: &ConnectedClient,
        number: u64,
        id: Option<&Id<'_>>,
        values: &OwnedBody,
        result: bool,
    ) {
        let Some(Request { raw, name, ty, .. }) = self.open.remove(&number) else { return };
        if !result {
            // ROS has no word for a failure: who asked by other ways than this bridge waits until its time is up.
            tracing::warn!(service = %Plain(&name), "a client says that its service has failed");
            let why = tree::text(values.body()).unwrap_or_else(|| said_of(&name, FAILED));
            return self.unanswered.push(Unanswered::new(&raw, why));
        }
        let mut response = Vec::new();
        match body::read(&ty.response.plan, values.body(), wall_now(), &mut response) {
            Ok(()) => {
                if let Err(error) = raw.respond_bytes(&response) {
                    let (found, expected) = (error.to_string(), "a client that still waits");
                    let operation = "service_response";
                    member.refuse(&Refusal::new(operation, id, Some("id"), found, expected));
                }
            }
            Err(error) => {
                let refusal = body::refusal("service_response", id, "values", &error);
                let why = format!("the response is none of its type: {error}");
                self.unanswered.push(Unanswered::new(&raw, why));
                member.refuse(&refusal);
            }
        }
    }
}

/// What is said of the server of a service.
fn said_of(name: &str, what: &str) -> String {
    format!("the server of {name} {what}")
}

/// Of a server that has left, or serves no more.
pub(crate) const GONE: &str = "has gone";

/// Of one that was asked and says nothing.
pub(crate) const LATE: &str = "has not answered in time";

const TOO_MANY: &str = "has too many requests";
const FAILED: &str = "says that it has failed";

/// A client that serves has so long to answer; then the request is forgotten.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// Open calls beyond which it is looked which of them are waited for.
const SENT_MANY: usize = 1024;

/// What rosapi is asked is a name or two.
const ROSAPI_BYTES_MAX: usize = 64 << 10;

/// How long a server may take to appear.
pub(super) const SERVER_PATIENCE: Duration = Duration::from_secs(1);

/// Lists of parameters that are gathered at a time.
const GATHERED_AT_ONCE: usize = 4;

/// Services that are kept ready to be called. Beyond that, those that nobody waits for go.
/// Clients that ask for all parameters at a time, while nodes are asked for theirs.
const GATHERED_MAX: usize = 256;

const CALLERS_MAX: usize = 256;
