//! What one client says, and what is done about it.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tsuji_rosbridge::access::{Act, UserKey};
use tsuji_rosbridge::client::{
    Advertised, Kind, ServedName, Subscribed, Unadvertised, Unsubscribed,
};
use tsuji_rosbridge::{
    ActionFeedback, ActionResult, Advertise, AdvertiseAction, AdvertiseService, Auth, Bucket,
    CallService, CancelActionGoal, Compression, Encoding, Fault, Fragment, Garbage, Id, Incoming,
    Level, Operation, Outgoing, Png, Publish, Refusal, SendActionGoal, ServiceResponse,
    SessionOptions, Subscribe, Unadvertise, Unsubscribe, Values, parse, read_png,
};

use crate::body::{self, OwnedBody, wall_now};
use crate::connected_client::{ConnectedClient, Delivery};
use crate::desk::{self, Desk, NotPublished};
use crate::foxglove::{Wish, greet};
use crate::hub::{Call, GONE, Goal, LATE, Order, Subscription};
use crate::plain::Plain;
use crate::settings::Protocol;
use crate::types::MessageType;
use foxglove::Foxglove;

mod foxglove;

/// One client on the thread of the connections.
pub(crate) struct Session {
    member: Arc<ConnectedClient>,
    user: Option<UserKey>,
    /// When it is that user no more.
    permission_ends: Option<Duration>,
    /// What its user may do when it was looked at last, where that may become less, and when it is looked at next.
    rights: Option<(u64, Duration)>,
    /// It is that user no more, and is to go.
    is_over: bool,
    messages: Option<Bucket>,
    bytes: Option<Bucket>,
    /// A message for which there was no room, by its topic.
    waiting: Option<(Arc<str>, Vec<u8>)>,
    /// Room for what is published.
    cdr: Vec<u8>,
    /// What it published on last, which is most often what it publishes on next.
    last: Option<Published>,
    /// How often it has said a token of nobody.
    wrong_tokens: u32,
    /// Of one that speaks Foxglove's protocol.
    foxglove: Option<Box<Foxglove>>,
}

/// A call that is to begin.
struct Begun<'a> {
    id: Option<&'a Id<'a>>,
    service: Arc<str>,
    ty: Option<String>,
    args: OwnedBody,
    timeout: Option<Duration>,
    delivery: Delivery,
}

/// A topic that a client has advertised.
struct Published {
    /// As the client calls it.
    said: Box<str>,
    topic: Arc<str>,
    ty: Arc<MessageType>,
}

/// A message as it came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrived<'a> {
    /// Text, or what TCP and UDP brought.
    Text(&'a [u8]),
    /// Binary of a WebSocket.
    Binary(&'a [u8]),
}

/// What a message leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The next may come.
    Fine,
    /// Nothing more is read before that time.
    Later(Instant),
    /// The connection ends.
    End(String),
}

impl Session {
    pub(crate) fn new(
        member: Arc<ConnectedClient>,
        user: Option<UserKey>,
        desk: &mut Desk,
    ) -> Self {
        let is_foxglove = member.peer.dialect.is_foxglove();
        let mut session = Self {
            member,
            user,
            permission_ends: None,
            rights: None,
            is_over: false,
            messages: None,
            bytes: None,
            waiting: None,
            cdr: Vec::new(),
            last: None,
            wrong_tokens: 0,
            foxglove: is_foxglove.then(|| Box::new(Foxglove::new(desk))),
        };
        session.restrain(desk);
        if let Some(user) = user {
            session.tell_user(user, desk);
        }
        if is_foxglove {
            let follows_time = desk.is_time_simulated();
            greet(&session.member, user, desk.settings_ref(), &desk.names, follows_time);
            session.wish(Wish::Enter { follows_time }, desk);
        }
        session
    }

    /// Holds the client to the limits of its user from now on.
    fn restrain(&mut self, desk: &Desk) {
        let (now, settings) = (desk.elapsed(), desk.settings_ref());
        self.rights = settings.access.version(self.user).map(|it| (it, now + RIGHTS_INTERVAL));
        let limits = settings.access.limits(self.user);
        let bucket = |rate: Option<_>| rate.map(|it| Bucket::new(now, it));
        self.messages = bucket(limits.messages.or(settings.limits.messages));
        self.bytes = bucket(limits.bytes.or(settings.limits.bytes));
        let client = &settings.limits.client;
        let waiting_max = limits.memory_bytes_max.unwrap_or(client.queue.bytes_max);
        let fragments_max = limits.memory_bytes_max.unwrap_or(client.fragments.bytes_max);
        self.member.limit_bytes(waiting_max, fragments_max);
    }

    /// What waits for this client.
    pub(crate) fn member(&self) -> &Arc<ConnectedClient> {
        &self.member
    }

    /// Whether the client may do so with that name. What is refused is a line of the audit.
    fn check(
        &self,
        act: Act,
        name: &str,
        operation: &'static str,
        id: Option<&Id<'_>>,
        desk: &Desk,
    ) -> Result<(), Refusal> {
        let decided = desk.settings_ref().access.decide(self.user, act, name);
        decided.map_err(|denial| {
            self.member.audit(&denial);
            let expected = "what this client may do";
            Refusal::new(operation, id, None, denial.to_string(), expected).of(name)
        })
    }

    /// What it keeps of a message for which there was no room.
    pub(crate) fn held_bytes(&self) -> usize {
        self.waiting.as_ref().map_or(0, |it| it.1.len())
    }

    /// Takes a message.
    pub(crate) fn message(&mut self, arrived: Arrived<'_>, desk: &mut Desk) -> Verdict {
        if self.is_over {
            return Verdict::End(PERMISSION_ENDED.to_owned());
        }
        // By UDP there is no connection that could be closed.
        if WRONG_TOKENS_MAX <= self.wrong_tokens {
            return Verdict::End(WRONG_TOKENS.to_owned());
        }
        let (encoding, bytes) = match arrived {
            Arrived::Text(bytes) | Arrived::Binary(bytes) if desk.settings_ref().bson_only => {
                (Encoding::Bson, bytes)
            }
            Arrived::Text(bytes) => (Encoding::Json, bytes),
            Arrived::Binary(bytes) => (Encoding::of_binary(bytes), bytes),
        };
        // Nobody who sends datagrams can be kept waiting without all the others.
        let is_dropped = self.member.peer.protocol == Protocol::Udp;
        if is_dropped && !self.is_within_rate(bytes.len(), desk) {
            desk.counters.excess.fetch_add(1, Ordering::Relaxed);
            return Verdict::Fine;
        }
        let pause = if is_dropped { Duration::ZERO } else { self.pause(bytes.len(), desk) };
        let verdict = match self.foxglove {
            None => self.take(encoding, bytes, desk, 0),
            Some(_) => self.take_foxglove(arrived, desk),
        };
        if WRONG_TOKENS_MAX <= self.wrong_tokens {
            return Verdict::End(WRONG_TOKENS.to_owned());
        }
        match verdict {
            Verdict::Fine if self.member.is_ahead() => {
                Verdict::Later(desk.now() + pause.max(desk::BUSY))
            }
            Verdict::Fine if !pause.is_zero() => Verdict::Later(desk.now() + pause),
            verdict => verdict,
        }
    }

    /// How long to read nothing, for the client to keep to its rate.
    fn pause(&mut self, bytes: usize, desk: &Desk) -> Duration {
        if self.messages.is_none() && self.bytes.is_none() {
            return Duration::ZERO;
        }
        let now = desk.elapsed();
        let messages = self.messages.as_mut().map(|it| it.take(now, 1.0));
        let bytes = self.bytes.as_mut().map(|it| it.take(now, bytes as f64));
        messages.into_iter().chain(bytes).max().unwrap_or_default()
    }

    /// Whether the client keeps to its rate with that message.
    fn is_within_rate(&mut self, bytes: usize, desk: &Desk) -> bool {
        let now = desk.elapsed();
        let messages = self.messages.as_mut().is_none_or(|it| it.take_if(now, 1.0));
        messages && self.bytes.as_mut().is_none_or(|it| it.take_if(now, bytes as f64))
    }

    /// What stands between messages and is none.
    pub(crate) fn garbage(&mut self, garbage: Garbage) -> Verdict {
        self.refuse_bytes(garbage.to_string());
        match garbage.fault {
            // Of what is too deep nobody knows where it ends, and whether it does.
            Fault::Lost | Fault::TooDeep => Verdict::End(garbage.to_string()),
            _ => Verdict::Fine,
        }
    }

    /// A datagram ends within a message.
    pub(crate) fn cut_short(&self) {
        self.refuse_bytes("a datagram that ends within a message".to_owned());
    }

    fn refuse_bytes(&self, found: String) {
        let expected = Cow::Borrowed(match self.member.encoding {
            Encoding::Bson => "documents of BSON one behind the other",
            Encoding::Json | Encoding::Cbor => "JSON objects one behind the other",
        });
        let (operation, id, name, field) = (None, None, None, None);
        self.member.refuse(&Refusal { operation, id, name, field, found, expected });
    }

    /// Goes on where a message had to wait.
    pub(crate) fn resume(&mut self, desk: &mut Desk) -> Verdict {
        if let Some((topic, cdr)) = self.waiting.take() {
            return self.publish_cdr(&topic, cdr, desk);
        }
        if self.member.is_ahead() { Verdict::Later(desk.now() + desk::BUSY) } else { Verdict::Fine }
    }

    /// When it has to be looked at. Where nothing `can_be_sent`, what waits is no reason.
    pub(crate) fn due(&self, desk: &Desk, can_be_sent: bool) -> Option<Instant> {
        let due = self.member.lock().due(desk.elapsed(), can_be_sent);
        let rights = self.rights.map(|(_, at)| at);
        let ends = self.permission_ends;
        [due, rights, ends].into_iter().flatten().min().map(|it| desk.instant(it))
    }

    /// Does what is due.
    pub(crate) fn look(&mut self, desk: &mut Desk) {
        let now = desk.elapsed();
        let mut state = self.member.lock();
        let topics = state.client.advertisements.expire(now);
        let unanswered = state.client.asking.expire(now);
        let unasked = state.client.asked.expire(now);
        let forgotten = state.client.fragments.expire(now);
        drop(state);
        forgotten.iter().for_each(|it| self.member.refuse(it));
        if self.permission_ends.is_some_and(|it| it <= now) {
            self.permission_ends = None;
            self.cut(&PERMISSION_ENDED);
        }
        if let Some((version, at)) = self.rights
            && at <= now
        {
            self.look_at_rights(version, desk);
        }
        for topic in topics {
            self.last = None;
            desk.close_publisher(&topic);
        }
        for ended in unanswered {
            let text = format!("{}: no response in time", ended.name);
            let values = Values::Text(&text);
            let (id, service) = (ended.id.as_ref(), &*ended.name);
            self.member.answer(&Outgoing::ServiceResponse { id, service, values, result: false });
        }
        for ended in unasked {
            desk.order(&self.member, Order::Forget { number: ended.context, why: LATE });
        }
    }

    /// Ends a client that has begun what its user may do no longer.
    fn look_at_rights(&mut self, before: u64, desk: &Desk) {
        let access = &desk.settings_ref().access;
        let version = access.version(self.user);
        self.rights = version.map(|it| (it, desk.elapsed() + RIGHTS_INTERVAL));
        if version == Some(before) {
            return;
        }
        let denied = |act, name: &str| access.decide(self.user, act, name).err();
        let state = self.member.lock();
        let client = &state.client;
        let published = client.advertisements.topics().map(|it| (Act::Publish, it));
        let subscribed = client.subscriptions.streams().map(|(_, it)| (Act::Subscribe, it));
        let served = client.served.names().map(|(kind, name)| match kind {
            Kind::Service => (Act::ServeService, name),
            Kind::Action => (Act::ServeAction, name),
        });
        let mut begun = published.chain(subscribed).chain(served);
        // Calls and goals are not told apart, and no goal is a call.
        let mut asking = client.asking.names();
        let denial = begun.find_map(|(act, name)| denied(act, name)).or_else(|| {
            asking
                .find_map(|it| denied(Act::CallService, it).and_then(|_| denied(Act::SendGoal, it)))
        });
        drop((begun, asking));
        drop(state);
        if let Some(denial) = denial {
            self.cut(&denial);
        }
    }

    fn cut(&mut self, why: &dyn Display) {
        self.is_over = true;
        self.member.audit(why);
        self.member.cut(PERMISSION_ENDED);
    }

    /// The client has gone.
    pub(crate) fn end(self, desk: &mut Desk) {
        self.member.leave();
        desk.leave(self.member.number);
        let state = self.member.lock();
        let topics: Vec<String> = state.client.advertisements.topics().map(str::to_owned).collect();
        drop(state);
        for topic in topics {
            desk.leave_publisher(topic);
        }
        let member = Arc::clone(&self.member);
        desk.order(&self.member, Order::Gone { member });
    }

    fn take(&mut self, encoding: Encoding, bytes: &[u8], desk: &mut Desk, depth: usize) -> Verdict {
        let incoming = match parse(encoding, bytes, desk.settings_ref().limits.nesting_max) {
            Ok(incoming) => incoming,
            Err(refusal) => {
                self.member.refuse(&refusal);
                return Verdict::Fine;
            }
        };
        let Incoming { operation, session } = incoming;
        if session != SessionOptions::default() {
            self.member.lock().note(session);
        }
        match operation {
            Operation::Publish(publish) => self.publish(&publish, desk),
            Operation::Fragment(fragment) => self.fragment(&fragment, desk, depth),
            Operation::Png(png) => self.picture(&png, desk, depth),
            other => {
                self.obey(other, desk);
                Verdict::Fine
            }
        }
    }

    /// Does what is asked, and says so to a client that wants to know all.
    fn obey(&mut self, operation: Operation<'_>, desk: &mut Desk) {
        let tells = self.member.lock().client.level.tells(Level::Info);
        let told = tells.then(|| (operation.name(), operation.id().cloned().map(Id::into_owned)));
        match (self.done(operation, desk), told) {
            (Ok(()), Some((name, id))) => {
                self.member.remark(Level::Info, id.as_ref(), &format!("{name}: taken"));
            }
            (Ok(()), None) => {}
            (Err(refusal), _) => self.member.refuse(&refusal),
        }
    }

    fn done(&mut self, operation: Operation<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        match operation {
            Operation::Advertise(it) => self.advertise(it, desk),
            Operation::Unadvertise(it) => self.unadvertise(it, desk),
            Operation::Subscribe(it) => self.subscribe(it, None, desk),
            Operation::Unsubscribe(it) => self.unsubscribe(it, desk),
            Operation::CallService(it) => self.call(&it, desk),
            Operation::ServiceResponse(it) => self.respond(&it, desk),
            Operation::AdvertiseService(it) => self.serve(&it, desk),
            Operation::UnadvertiseService(it) => {
                let service = full(&it.service);
                if self.serves_no_more(Kind::Service, &service, desk) {
                    desk.order(
                        &self.member,
                        Order::ServeNoMore { member: self.member.number, service },
                    );
                }
                Ok(())
            }
            Operation::SetLevel(it) => {
                self.member.lock().client.level = it.level;
                Ok(())
            }
            Operation::Status(it) => {
                tracing::info!(client = %self.member.peer.address, level = it.level.word(), "{}", Plain(&it.msg));
                Ok(())
            }
            Operation::SendActionGoal(it) => self.send_goal(&it, desk),
            Operation::CancelActionGoal(it) => self.cancel_goal(&it, desk),
            Operation::AdvertiseAction(it) => self.pursue(&it, desk),
            Operation::UnadvertiseAction(it) => {
                let action = full(&it.action);
                if self.serves_no_more(Kind::Action, &action, desk) {
                    desk.order(
                        &self.member,
                        Order::PursueNoMore { member: self.member.number, action },
                    );
                }
                Ok(())
            }
            Operation::ActionFeedback(it) => self.feedback(&it, desk),
            Operation::ActionResult(it) => self.result(&it, desk),
            Operation::Auth(it) => self.authenticate(&it, desk),
            other => Err(Refusal::new(
                other.name(),
                other.id(),
                None,
                "an operation that this server does not know",
                "another",
            )),
        }
    }

    fn publish(&mut self, asked: &Publish<'_>, desk: &mut Desk) -> Verdict {
        match self.encode(asked, desk) {
            Ok(topic) => {
                let cdr = std::mem::take(&mut self.cdr);
                self.publish_cdr(&topic, cdr, desk)
            }
            Err(refusal) => {
                self.member.refuse(&refusal);
                Verdict::Fine
            }
        }
    }

    /// Writes the CDR of a message that may be published; its topic.
    fn encode(&mut self, asked: &Publish<'_>, desk: &mut Desk) -> Result<Arc<str>, Refusal> {
        let published = match self.last.take_if(|it| *it.said == *asked.topic) {
            Some(published) => published,
            None => self.published(asked, desk)?,
        };
        self.cdr.clear();
        let read = body::read(&published.ty.plan, asked.msg, wall_now(), &mut self.cdr);
        let topic = Arc::clone(&published.topic);
        self.last = Some(published);
        if read.is_err() && CDR_BYTES_KEPT < self.cdr.capacity() {
            self.cdr = Vec::new();
        }
        read.map(|()| topic)
            .map_err(|error| body::refusal("publish", asked.id.as_ref(), "msg", &error))
    }

    /// What is published on, which is advertised where it was not.
    fn published(&mut self, asked: &Publish<'_>, desk: &mut Desk) -> Result<Published, Refusal> {
        let topic = full(&asked.topic);
        let refuse = |field, found: String, expected: &'static str| {
            Refusal::new("publish", asked.id.as_ref(), Some(field), found, expected)
        };
        if self.member.lock().client.advertisements.topic(&topic).is_none() {
            self.check(Act::Publish, &topic, "publish", asked.id.as_ref(), desk)?;
            let ty = desk.type_of(&topic).ok_or_else(|| {
                refuse(
                    "topic",
                    topic.to_string(),
                    "a topic that is advertised, or whose type is known",
                )
            })?;
            let advertise = Advertise {
                id: None,
                topic: Cow::Borrowed(&*topic),
                ty: Cow::Owned(ty),
                latch: asked.latch.unwrap_or(false),
                queue_size: asked.queue_size.unwrap_or(tsuji_rosbridge::QUEUE_SIZE),
                qos: asked.qos.clone(),
            };
            self.advertise(advertise, desk)?;
        }
        let ty = desk.published_type(&topic);
        let ty =
            ty.ok_or_else(|| refuse("topic", topic.to_string(), "a topic that is advertised"))?;
        Ok(Published { said: asked.topic.as_ref().into(), topic, ty })
    }

    fn publish_cdr(&mut self, topic: &Arc<str>, cdr: Vec<u8>, desk: &mut Desk) -> Verdict {
        let verdict = match desk.publish(topic, &cdr) {
            Ok(()) => Verdict::Fine,
            Err(NotPublished::Busy) => {
                self.waiting = Some((Arc::clone(topic), cdr));
                return Verdict::Later(desk.now() + desk::BUSY);
            }
            Err(NotPublished::Refused(why)) => {
                let refusal =
                    Refusal::new("publish", None, Some("topic"), why, "one that takes it");
                self.member.refuse(&refusal);
                Verdict::Fine
            }
        };
        // Room for the next one.
        if cdr.capacity() <= CDR_BYTES_KEPT {
            self.cdr = cdr;
        }
        verdict
    }

    fn advertise(&mut self, mut asked: Advertise<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let topic = full(&asked.topic);
        self.check(Act::Publish, &topic, "advertise", asked.id.as_ref(), desk)?;
        let refuse = |asked: &Advertise<'_>, field, found: String, expected: &'static str| {
            Refusal::new("advertise", asked.id.as_ref(), Some(field), found, expected)
        };
        let ty = desk.types.message(&asked.ty);
        let ty =
            ty.map_err(|why| refuse(&asked, "type", why, "a type whose definition is here"))?;
        if let Some(other) = desk.type_of(&topic)
            && other != ty.description.name().to_string()
        {
            let found = format!("{}, and {topic} has {other}", ty.description.name());
            return Err(refuse(&asked, "type", found, "the type that the topic has"));
        }
        asked.ty = Cow::Owned(ty.description.name().to_string());
        asked.topic = Cow::Owned(topic.to_string());
        let mut state = self.member.lock();
        let advertised = state.client.advertisements.advertise(&asked)?;
        if advertised == Advertised::Joined {
            return Ok(());
        }
        let opened = match state.client.advertisements.topic(&topic) {
            Some(said) => desk.open_publisher(&topic, &ty, said),
            None => Ok(()),
        };
        opened.map_err(|why| {
            // As if it had never been asked for.
            let now = desk.elapsed();
            let unadvertise = Unadvertise { id: None, topic: Cow::Borrowed(&*topic) };
            state.client.advertisements.unadvertise(now, &unadvertise);
            state.client.advertisements.forget(&topic);
            refuse(&asked, "topic", why, "a topic that can be published on")
        })
    }

    fn unadvertise(&mut self, mut asked: Unadvertise<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        asked.topic = Cow::Owned(full(&asked.topic).to_string());
        let unadvertised =
            self.member.lock().client.advertisements.unadvertise(desk.elapsed(), &asked);
        match unadvertised {
            Unadvertised::Unknown => {
                let found = asked.topic.to_string();
                Err(Refusal::new(
                    "unadvertise",
                    asked.id.as_ref(),
                    Some("topic"),
                    found,
                    "a topic that this client has advertised",
                ))
            }
            Unadvertised::Remains | Unadvertised::Leaving { .. } => Ok(()),
        }
    }

    /// Lets the client have a topic; one of Foxglove under the number of its subscription.
    fn subscribe(
        &mut self,
        mut asked: Subscribe<'_>,
        foxglove: Option<u32>,
        desk: &mut Desk,
    ) -> Result<(), Refusal> {
        let topic = full(&asked.topic);
        self.check(Act::Subscribe, &topic, "subscribe", asked.id.as_ref(), desk)?;
        let refuse = |asked: &Subscribe<'_>, field, found: String, expected: &'static str| {
            Refusal::new("subscribe", asked.id.as_ref(), Some(field), found, expected)
        };
        let known = desk.type_of(&topic);
        let name = match (&asked.ty, &known) {
            (Some(ty), _) => ty.clone().into_owned(),
            (None, Some(known)) => known.clone(),
            (None, None) => {
                return Err(refuse(
                    &asked,
                    "type",
                    "none".to_owned(),
                    "a type, since nobody publishes the topic",
                ));
            }
        };
        let ty = desk.types.message(&name);
        let ty =
            ty.map_err(|why| refuse(&asked, "type", why, "a type whose definition is here"))?;
        if let Some(known) = known.filter(|it| *it != ty.description.name().to_string()) {
            let found = format!("{}, and {topic} has {known}", ty.description.name());
            return Err(refuse(&asked, "type", found, "the type that the topic has"));
        }
        asked.ty = Some(Cow::Owned(ty.description.name().to_string()));
        asked.topic = Cow::Owned(topic.to_string());
        let subscribed =
            self.member.lock().client.subscriptions.subscribe(desk.elapsed(), &asked)?;
        let (key, settings, is_more) = match subscribed {
            Subscribed::Opened { key, settings } => (key, settings, false),
            Subscribed::Joined { key, settings, qos_differs, is_more } => {
                if qos_differs {
                    let msg =
                        format!("{topic}: the QoS of this client's first subscription stands");
                    self.member.remark(Level::Warning, asked.id.as_ref(), &msg);
                }
                (key, settings, is_more)
            }
        };
        let subscription = Subscription {
            member: Arc::clone(&self.member),
            key,
            settings,
            topic,
            ty,
            qos: asked.qos.map(|it| *it),
            is_more,
            id: asked.id.map(Id::into_owned),
            foxglove,
        };
        desk.order(&self.member, Order::Subscribe(subscription));
        Ok(())
    }

    fn unsubscribe(&mut self, mut asked: Unsubscribe<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let topic = full(&asked.topic);
        asked.topic = Cow::Owned(topic.to_string());
        let unsubscribed =
            self.member.lock().client.subscriptions.unsubscribe(desk.elapsed(), &asked);
        let member = self.member.number;
        match unsubscribed {
            Unsubscribed::Unknown => {
                let found = topic.to_string();
                let expected = "a topic that this client has subscribed to";
                Err(Refusal::new("unsubscribe", asked.id.as_ref(), Some("topic"), found, expected))
            }
            Unsubscribed::Remains { key, settings } => {
                let member = Arc::clone(&self.member);
                desk.order(&self.member, Order::Resettle { member, key, settings });
                Ok(())
            }
            Unsubscribed::Closed { key } => {
                desk.order(&self.member, Order::Unsubscribe { member, key, topic });
                Ok(())
            }
        }
    }

    fn call(&mut self, asked: &CallService<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let (id, fragment_size) = (asked.id.as_ref(), asked.fragment_size);
        let begun = Begun {
            id,
            service: full(&asked.service),
            ty: asked.ty.clone().map(Cow::into_owned),
            args: OwnedBody::of(asked.args),
            timeout: asked.timeout,
            delivery: self.delivery("call_service", id, fragment_size, asked.compression),
        };
        self.begin_call(begun, desk)
    }

    fn begin_call(&mut self, begun: Begun<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let Begun { id, service, ty, args, timeout, delivery } = begun;
        self.check(Act::CallService, &service, "call_service", id, desk)?;
        let timeout = timeout.unwrap_or_else(|| desk.settings_ref().call_timeout);
        let expires = (!timeout.is_zero()).then(|| desk.elapsed() + timeout);
        let begun = self.member.lock().client.asking.begin(id.cloned(), &service, expires, 0);
        let key = begun.map_err(|_| {
            let expected = "fewer calls under way";
            Refusal::new("call_service", id, Some("service"), "one more call", expected)
                .of(&service)
        })?;
        let (member, user) = (Arc::clone(&self.member), self.user);
        let call = Call { member, key, service, ty, args, user, delivery };
        desk.order(&self.member, Order::Call(call));
        Ok(())
    }

    fn send_goal(&mut self, asked: &SendActionGoal<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let action = full(&asked.action);
        self.check(Act::SendGoal, &action, "send_action_goal", asked.id.as_ref(), desk)?;
        let refuse = |field, found: String, expected: &'static str| {
            Refusal::new("send_action_goal", asked.id.as_ref(), Some(field), found, expected)
                .of(&action)
        };
        let ty = desk.types.action(&asked.action_type);
        let ty =
            ty.map_err(|why| refuse("action_type", why, "an action whose definition is here"))?;
        let begun = self.member.lock().client.asking.begin(asked.id.clone(), &action, None, 0);
        let key =
            begun.map_err(|_| refuse("action", "one more goal".to_owned(), "fewer under way"))?;
        desk.order(
            &self.member,
            Order::SendGoal(Goal {
                member: Arc::clone(&self.member),
                key,
                action,
                ty,
                args: OwnedBody::of(asked.args),
                feedback: asked.feedback,
                delivery: self.delivery(
                    "send_action_goal",
                    asked.id.as_ref(),
                    asked.fragment_size,
                    asked.compression,
                ),
            }),
        );
        Ok(())
    }

    /// How an answer is sent. What of it cannot be is said to a client that wants to know.
    fn delivery(
        &self,
        operation: &str,
        id: Option<&Id<'_>>,
        fragment_size: Option<u32>,
        compression: Compression,
    ) -> Delivery {
        if Compression::Png < compression {
            let msg = format!(
                "{operation}: compression: only samples can be so; this is answered as if it were none"
            );
            self.member.remark(Level::Warning, id, &msg);
        }
        Delivery::asked(fragment_size, compression)
    }

    fn cancel_goal(
        &mut self,
        asked: &CancelActionGoal<'_>,
        desk: &mut Desk,
    ) -> Result<(), Refusal> {
        let key = self.member.lock().client.asking.key(&asked.id);
        let key = key.ok_or_else(|| {
            let (found, expected) = (asked.id.to_string(), "the id of a goal that has not ended");
            Refusal::new("cancel_action_goal", Some(&asked.id), Some("id"), found, expected)
        })?;
        desk.order(&self.member, Order::CancelGoal { member: self.member.number, key });
        Ok(())
    }

    fn serve(&mut self, asked: &AdvertiseService<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let service = full(&asked.service);
        self.check(Act::ServeService, &service, "advertise_service", asked.id.as_ref(), desk)?;
        let refuse = |field, found: String, expected: &'static str| {
            Refusal::new("advertise_service", asked.id.as_ref(), Some(field), found, expected)
        };
        let ty = desk.types.service(&asked.ty);
        let ty =
            ty.map_err(|why| refuse("type", why, "a service type whose definition is here"))?;
        let mut state = self.member.lock();
        match state.client.served.advertise(Kind::Service, &service, &ty.raw.name) {
            ServedName::Again => return Ok(()),
            ServedName::Full { names_max } => {
                let found = format!("one more than {names_max}");
                return Err(refuse("service", found, "fewer services of one client"));
            }
            ServedName::Replaced => {
                let unanswered = state.client.asked.end_all(&service);
                for it in unanswered {
                    desk.order(&self.member, Order::Forget { number: it.context, why: GONE });
                }
                let member = self.member.number;
                desk.order(
                    &self.member,
                    Order::ServeNoMore { member, service: Arc::clone(&service) },
                );
            }
            ServedName::Opened => {}
        }
        drop(state);
        let (member, id) = (Arc::clone(&self.member), asked.id.clone().map(Id::into_owned));
        desk.order(&self.member, Order::Serve { member, service, ty, id });
        Ok(())
    }

    /// Ends what waits for a client that serves no more; whether it did.
    fn serves_no_more(&self, kind: Kind, name: &str, desk: &mut Desk) -> bool {
        let mut state = self.member.lock();
        let was = state.client.served.unadvertise(kind, name);
        let unanswered = state.client.asked.end_all(name);
        drop(state);
        for it in unanswered {
            desk.order(&self.member, Order::Forget { number: it.context, why: GONE });
        }
        was
    }

    fn pursue(&mut self, asked: &AdvertiseAction<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let action = full(&asked.action);
        self.check(Act::ServeAction, &action, "advertise_action", asked.id.as_ref(), desk)?;
        let refuse = |field, found: String, expected: &'static str| {
            Refusal::new("advertise_action", asked.id.as_ref(), Some(field), found, expected)
        };
        let ty = desk.types.action(&asked.ty);
        let ty =
            ty.map_err(|why| refuse("type", why, "an action type whose definition is here"))?;
        let advertised =
            self.member.lock().client.served.advertise(Kind::Action, &action, &ty.name);
        match advertised {
            ServedName::Again => return Ok(()),
            ServedName::Full { names_max } => {
                let found = format!("one more than {names_max}");
                return Err(refuse("action", found, "fewer actions of one client"));
            }
            ServedName::Replaced => {
                for it in self.member.lock().client.asked.end_all(&action) {
                    desk.order(&self.member, Order::Forget { number: it.context, why: GONE });
                }
                let member = self.member.number;
                desk.order(
                    &self.member,
                    Order::PursueNoMore { member, action: Arc::clone(&action) },
                );
            }
            ServedName::Opened => {}
        }
        let (member, id) = (Arc::clone(&self.member), asked.id.clone().map(Id::into_owned));
        desk.order(&self.member, Order::Pursue { member, action, ty, id });
        Ok(())
    }

    fn feedback(&mut self, asked: &ActionFeedback<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let mut state = self.member.lock();
        let key = state.client.asked.key(&asked.id);
        let number = key.and_then(|key| state.client.asked.context(key)).map(|it| *it.1);
        drop(state);
        let number = number.ok_or_else(|| no_goal("action_feedback", &asked.id))?;
        let (member, values) = (Arc::clone(&self.member), OwnedBody::of(asked.values));
        desk.order(&self.member, Order::Feedback { member, number, values });
        Ok(())
    }

    fn result(&mut self, asked: &ActionResult<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let action = full(&asked.action);
        if !(SUCCEEDED..=ABORTED).contains(&asked.status) {
            let expected = "4 for succeeded, 5 for canceled or 6 for aborted";
            let found = asked.status.to_string();
            return Err(Refusal::new(
                "action_result",
                Some(&asked.id),
                Some("status"),
                found,
                expected,
            ));
        }
        let ended = self.member.lock().client.asked.answer(&asked.id, &action);
        let ended = ended.ok_or_else(|| no_goal("action_result", &asked.id))?;
        // Where there is no result, what stands there is a text that says why.
        let values = if asked.result { OwnedBody::of(asked.values) } else { OwnedBody::none() };
        let (member, number, status) = (Arc::clone(&self.member), ended.context, asked.status);
        desk.order(&self.member, Order::Result { member, number, values, status });
        Ok(())
    }

    fn respond(&mut self, asked: &ServiceResponse<'_>, desk: &mut Desk) -> Result<(), Refusal> {
        let service = full(&asked.service);
        let ended =
            asked.id.as_ref().and_then(|id| self.member.lock().client.asked.answer(id, &service));
        let ended = ended.ok_or_else(|| {
            let found = asked.id.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
            let expected = "the id of a request that waits for its response";
            Refusal::new("service_response", asked.id.as_ref(), Some("id"), found, expected)
        })?;
        let (id, number) = (asked.id.clone().map(Id::into_owned), ended.context);
        let (member, values, result) =
            (Arc::clone(&self.member), OwnedBody::of(asked.values), asked.result);
        desk.order(&self.member, Order::Respond { member, number, id, values, result });
        Ok(())
    }

    fn authenticate(&mut self, asked: &Auth<'_>, desk: &Desk) -> Result<(), Refusal> {
        let access = &desk.settings_ref().access;
        let recognised = match &asked.token {
            Some(token) => match access.user(token) {
                Some(user) => Ok((user, None)),
                None => Err(("token", "a token of nobody", "that of a user")),
            },
            None => match access.recognise(asked, wall()) {
                Ok(it) => Ok((it.user, Some(desk.elapsed() + it.remaining))),
                Err(it) => Err((it.field(), "another", it.expected())),
            },
        };
        let (user, ends) = recognised.map_err(|(field, found, expected)| {
            self.wrong_tokens += 1;
            self.member.audit(&format_args!("auth: {field}: found {found}; expected {expected}"));
            Refusal::new("auth", asked.id.as_ref(), Some(field), found, expected)
        })?;
        // The same user again has not more to spend.
        if self.user != Some(user) {
            self.user = Some(user);
            self.restrain(desk);
        }
        self.permission_ends = ends;
        self.tell_user(user, desk);
        Ok(())
    }

    fn tell_user(&self, user: UserKey, desk: &Desk) {
        let name = desk.settings_ref().access.name(user);
        tracing::info!(client = %self.member.peer.address, user = %Plain(name), "authenticated");
    }

    fn fragment(&mut self, asked: &Fragment<'_>, desk: &mut Desk, depth: usize) -> Verdict {
        if DEPTH_MAX <= depth {
            return self.too_deep("fragment", Some(&asked.id));
        }
        let whole = self.member.lock().client.fragments.add(desk.elapsed(), asked);
        match whole {
            Ok(Some(whole)) => self.take(Encoding::Json, &whole, desk, depth + 1),
            Ok(None) => Verdict::Fine,
            Err(refusal) => {
                self.member.refuse(&refusal);
                Verdict::Fine
            }
        }
    }

    fn picture(&mut self, asked: &Png<'_>, desk: &mut Desk, depth: usize) -> Verdict {
        if DEPTH_MAX <= depth {
            return self.too_deep("png", asked.id.as_ref());
        }
        let data = match self.whole_picture(asked, desk) {
            Ok(Some(data)) => data,
            Ok(None) => return Verdict::Fine,
            Err(refusal) => {
                self.member.refuse(&refusal);
                return Verdict::Fine;
            }
        };
        match read_png(&data, desk.settings_ref().limits.message_bytes_max) {
            Ok(text) => self.take(Encoding::Json, &text, desk, depth + 1),
            Err(why) => {
                let id = asked.id.clone().map(Id::into_owned);
                self.member.refuse(&Refusal { id, ..why });
                Verdict::Fine
            }
        }
    }

    /// The data of a picture, when all its pieces have come.
    fn whole_picture<'p>(
        &self,
        asked: &'p Png<'_>,
        desk: &Desk,
    ) -> Result<Option<Cow<'p, str>>, Refusal> {
        let Some(piece) = asked.fragment() else { return Ok(Some(Cow::Borrowed(&asked.data))) };
        let whole = self.member.lock().client.fragments.add(desk.elapsed(), &piece);
        match whole {
            // It was text in each piece.
            Ok(whole) => Ok(whole.map(|it| Cow::Owned(String::from_utf8_lossy(&it).into_owned()))),
            Err(refusal) => Err(Refusal { operation: Some("png"), ..refusal }),
        }
    }

    fn too_deep(&self, operation: &'static str, id: Option<&Id<'_>>) -> Verdict {
        let found = "a message within a message within a message";
        self.member.refuse(&Refusal::new(operation, id, None, found, "a message itself"));
        Verdict::Fine
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("peer", &self.member.peer).finish_non_exhaustive()
    }
}

/// The time since 1970.
fn wall() -> Duration {
    Duration::from_nanos(u64::try_from(tsuji_platform::clock::wall_ns()).unwrap_or_default())
}

fn no_goal(operation: &'static str, id: &Id<'_>) -> Refusal {
    let expected = "the id of a goal that this client pursues";
    Refusal::new(operation, Some(id), Some("id"), id.to_string(), expected)
}

/// A name from the root on.
fn full(name: &str) -> Arc<str> {
    if name.starts_with('/') { name.into() } else { format!("/{name}").into() }
}

/// How a goal may have ended, as `action_msgs/GoalStatus` numbers it.
const SUCCEEDED: i8 = 4;
const ABORTED: i8 = 6;

/// A client that has guessed so often is cut off.
const WRONG_TOKENS_MAX: u32 = 5;
const WRONG_TOKENS: &str = "tokens of nobody";

const PERMISSION_ENDED: &str = "its permission has ended";

/// How often it is looked whether a user's rights have become others.
const RIGHTS_INTERVAL: Duration = Duration::from_secs(1);

/// Room for a message that is kept for the next one.
const CDR_BYTES_KEPT: usize = 1 << 20;

/// A picture of fragments, or fragments of a picture, and no deeper.
const DEPTH_MAX: usize = 2;
