//! What one client of Foxglove says, and what is done about it: mostly what is done for clients of rosbridge.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tsuji_foxglove::{
    Binary, ClientChannel, Level, Published, Refused, Request, Subscribed, Subscription,
};
use tsuji_rosbridge::access::Act;
use tsuji_rosbridge::{
    Advertise, Body, Compression, Id, QUEUE_SIZE, Subscribe, Unadvertise, Unsubscribe,
};

use super::{Arrived, Begun, CDR_BYTES_KEPT, Session, Verdict, full};
use crate::body::{self, OwnedBody, wall_now};
use crate::connected_client::Delivery;
use crate::desk::Desk;
use crate::foxglove::{Call, Encoding, Wish, status};
use crate::hub::Order;
use crate::playback::{NOTHING_IS_PLAYED, PlaybackWish, SET_PLAYBACK, check_rate};
use crate::types::MessageType;

/// What it has asked for.
#[derive(Debug)]
pub(super) struct Foxglove {
    /// Each with its topic.
    subscribed: Subscribed<Arc<str>>,
    published: Published<ClientTopic>,
}

/// A topic that it publishes on.
#[derive(Clone, Debug)]
struct ClientTopic {
    topic: Arc<str>,
    ty: Arc<MessageType>,
    encoding: Encoding,
}

impl Foxglove {
    pub(super) fn new(desk: &Desk) -> Self {
        let max = desk.settings_ref().limits.client.names_max;
        Self { subscribed: Subscribed::new(max), published: Published::new(max) }
    }
}

impl Session {
    /// Takes a message of Foxglove's protocol.
    pub(super) fn take_foxglove(&mut self, arrived: Arrived<'_>, desk: &mut Desk) -> Verdict {
        match arrived {
            Arrived::Binary(bytes) => match Binary::parse(bytes) {
                Ok(Binary::Message { channel, data }) => {
                    return self.publish_foxglove(channel, data, desk);
                }
                Ok(Binary::Call { service, call, encoding, data }) => {
                    self.call_foxglove(service, call, encoding, data, desk);
                }
                Ok(Binary::Playback { plays, rate, seek_ns, request }) => {
                    // As it was meant: 0.1 is no number of 64 bits that begins like that of 32.
                    let rate = rate.to_string().parse().unwrap_or_else(|_| f64::from(rate));
                    let wish = PlaybackWish { plays: Some(plays), rate: Some(rate), seek_ns };
                    if let Err(why) = self.control_playback(wish, request, desk) {
                        self.tell(Level::Error, &format!("playback: {why}"));
                    }
                }
                Err(why) => self.tell(Level::Error, &format!("a message in bytes: {why}")),
            },
            Arrived::Text(text) => {
                if let Err(why) = self.take_request(text, desk) {
                    self.tell(Level::Error, &format!("a message in text: {why}"));
                }
            }
        }
        Verdict::Fine
    }

    fn take_request(&mut self, text: &[u8], desk: &mut Desk) -> Result<(), String> {
        if TEXT_BYTES_MAX < text.len() {
            return Err(format!("found {} bytes; allowed: {TEXT_BYTES_MAX}", text.len()));
        }
        let text = str::from_utf8(text).map_err(|error| error.to_string())?;
        let request = Request::parse(text).map_err(|error| error.to_string())?;
        let (count, max) = (request.count(), desk.settings_ref().limits.client.names_max);
        if max < count {
            return Err(format!("found {count} things at once; allowed: {max}"));
        }
        // Each is as much to do as a message of its own.
        let more = count.saturating_sub(1) as f64;
        if let Some(messages) = &mut self.messages {
            messages.take(desk.elapsed(), more);
        }
        self.obey_foxglove(request, text.len(), desk);
        Ok(())
    }

    fn tell(&self, level: Level, message: &str) {
        status(&self.member, level, message);
    }

    fn obey_foxglove(&mut self, request: Request<'_>, text_bytes: usize, desk: &mut Desk) {
        let wish = match request {
            Request::Subscribe { subscriptions } => {
                return subscriptions.into_iter().for_each(|it| self.begin_stream(it, desk));
            }
            Request::Unsubscribe { subscription_ids } => {
                return subscription_ids.into_iter().for_each(|it| self.end_stream(it, desk));
            }
            Request::Advertise { channels } => {
                return channels.iter().for_each(|it| self.open_channel(it, desk));
            }
            Request::Unadvertise { channel_ids } => {
                return channel_ids.into_iter().for_each(|it| self.close_channel(it, desk));
            }
            Request::GetParameters { parameter_names: names, id } => Wish::Parameters { names, id },
            Request::SetParameters { parameters, id } => {
                Wish::SetParameters { parameters, id, text_bytes }
            }
            Request::SubscribeParameterUpdates { parameter_names: names } => {
                Wish::FollowParameters { names }
            }
            Request::UnsubscribeParameterUpdates { parameter_names: names } => {
                Wish::LeaveParameters { names }
            }
            Request::SubscribeConnectionGraph => Wish::Graph { is_wanted: true },
            Request::UnsubscribeConnectionGraph => Wish::Graph { is_wanted: false },
            Request::FetchAsset { uri, request_id: request } => Wish::Asset { uri, request },
        };
        self.wish(wish, desk);
    }

    pub(super) fn wish(&self, wish: Wish, desk: &mut Desk) {
        let (member, user) = (Arc::clone(&self.member), self.user);
        desk.order(&self.member, Order::Foxglove { member, user, wish });
    }

    /// Whether it was told of a name; where it guesses, that is a line of the audit.
    fn knows(&self, act: Act, name: &str, desk: &Desk) -> bool {
        let decided = desk.settings_ref().access.decide(self.user, act, name);
        decided.inspect_err(|denial| self.member.audit(denial)).is_ok()
    }

    fn begin_stream(&mut self, asked: Subscription, desk: &mut Desk) {
        let Subscription { id, channel_id } = asked;
        // What it may not have was not advertised to it.
        let entry = desk.names.topic(channel_id);
        let entry = entry.filter(|it| self.knows(Act::Subscribe, &it.name, desk));
        let Some(entry) = entry else {
            let why = format!(
                "subscribe: channelId: found {channel_id}; expected that of a channel that is advertised"
            );
            return self.tell(Level::Warning, &why);
        };
        let Some(foxglove) = &mut self.foxglove else { return };
        if let Err(refused) = foxglove.subscribed.subscribe(asked, Arc::clone(&entry.name)) {
            let why = why(refused, id, "a subscription");
            return self.tell(Level::Error, &format!("subscribe: {}: {why}", entry.name));
        }
        let subscribe = Subscribe {
            id: Some(text_id(id)),
            topic: Cow::Borrowed(&*entry.name),
            ty: Some(Cow::Borrowed(&*entry.ty)),
            throttle_rate: Duration::ZERO,
            queue_length: 0,
            fragment_size: None,
            compression: Compression::None,
            qos: None,
        };
        if let Err(refusal) = self.subscribe(subscribe, Some(id), desk) {
            if let Some(foxglove) = &mut self.foxglove {
                foxglove.subscribed.unsubscribe(id);
            }
            self.member.refuse(&refusal);
        }
    }

    fn end_stream(&mut self, id: u32, desk: &mut Desk) {
        let ended = self.foxglove.as_mut().and_then(|it| it.subscribed.unsubscribe(id));
        let Some(topic) = ended else {
            let why = format!("unsubscribe: found {id}; expected that of a subscription");
            return self.tell(Level::Warning, &why);
        };
        let topic = Cow::Borrowed(&*topic);
        if let Err(refusal) = self.unsubscribe(Unsubscribe { id: Some(text_id(id)), topic }, desk) {
            self.member.refuse(&refusal);
        }
    }

    fn open_channel(&mut self, asked: &ClientChannel<'_>, desk: &mut Desk) {
        let ClientChannel { id, topic: said, encoding, schema_name } = asked;
        let Some(encoding) = Encoding::read(encoding) else {
            let why = format!(
                "advertise: {said}: encoding: found {encoding:?}; allowed: {}",
                Encoding::WORDS.join(", ")
            );
            return self.tell(Level::Error, &why);
        };
        if self.foxglove.as_ref().is_none_or(|it| it.published.get(*id).is_some()) {
            let why = why(Refused::Used, *id, "a channel");
            return self.tell(Level::Error, &format!("advertise: {said}: {why}"));
        }
        let topic = full(said);
        let advertise = Advertise {
            id: Some(text_id(*id)),
            topic: Cow::Borrowed(&*topic),
            ty: Cow::Borrowed(schema_name),
            latch: false,
            queue_size: QUEUE_SIZE,
            qos: None,
        };
        if let Err(refusal) = self.advertise(advertise, desk) {
            return self.member.refuse(&refusal);
        }
        let (Some(ty), Some(foxglove)) = (desk.published_type(&topic), &mut self.foxglove) else {
            return;
        };
        let opened = ClientTopic { topic: Arc::clone(&topic), ty, encoding };
        if let Err(refused) = foxglove.published.advertise(*id, opened) {
            let why = why(refused, *id, "a channel");
            self.tell(Level::Error, &format!("advertise: {said}: {why}"));
            self.take_back(*id, &topic, desk);
        }
    }

    fn close_channel(&mut self, id: u32, desk: &mut Desk) {
        match self.foxglove.as_mut().and_then(|it| it.published.unadvertise(id)) {
            Some(closed) => self.take_back(id, &closed.topic, desk),
            None => {
                let why =
                    format!("unadvertise: found {id}; expected that of a channel of this client");
                self.tell(Level::Warning, &why);
            }
        }
    }

    fn take_back(&mut self, id: u32, topic: &str, desk: &mut Desk) {
        let unadvertise = Unadvertise { id: Some(text_id(id)), topic: Cow::Borrowed(topic) };
        if let Err(refusal) = self.unadvertise(unadvertise, desk) {
            self.member.refuse(&refusal);
        }
    }

    fn publish_foxglove(&mut self, channel: u32, data: &[u8], desk: &mut Desk) -> Verdict {
        let published = self.foxglove.as_ref().and_then(|it| it.published.get(channel));
        let Some(ClientTopic { topic, ty, encoding }) = published.cloned() else {
            let why = format!(
                "a message: found channel {channel}; expected one that this client has advertised"
            );
            self.tell(Level::Error, &why);
            return Verdict::Fine;
        };
        self.cdr.clear();
        match encoding {
            Encoding::Cdr => {
                if let Err(why) = check_cdr(data) {
                    self.tell(Level::Error, &format!("a message: {topic}: {why}"));
                    return Verdict::Fine;
                }
                self.cdr.extend_from_slice(data);
            }
            Encoding::Json => {
                let read = body::read(&ty.plan, Body::Json(data), wall_now(), &mut self.cdr);
                if let Err(error) = read {
                    if CDR_BYTES_KEPT < self.cdr.capacity() {
                        self.cdr = Vec::new();
                    }
                    self.member.refuse(&body::refusal("publish", None, "data", &error));
                    return Verdict::Fine;
                }
            }
        }
        let cdr = std::mem::take(&mut self.cdr);
        self.publish_cdr(&topic, cdr, desk)
    }

    fn call_foxglove(
        &mut self,
        service: u32,
        call: u32,
        encoding: &str,
        data: &[u8],
        desk: &mut Desk,
    ) {
        let fail = |why: &str| {
            let (service_id, call_id, message) = (service, call, why);
            let failure =
                tsuji_foxglove::Message::ServiceCallFailure { service_id, call_id, message };
            crate::foxglove::tell(&self.member, &failure);
        };
        let Some(encoding) = Encoding::read(encoding) else {
            let allowed = Encoding::WORDS.join(", ");
            return fail(&format!("encoding: found {encoding:?}; allowed: {allowed}"));
        };
        let entry = desk.names.service(service);
        let entry = entry.filter(|it| self.knows(Act::CallService, &it.name, desk));
        let Some(entry) = entry else {
            return fail(&format!("found service {service}; expected one that is advertised"));
        };
        let args = match encoding {
            Encoding::Json => OwnedBody::of(Body::Json(data)),
            Encoding::Cdr => match check_cdr(data) {
                Ok(()) => OwnedBody::of_cdr(data),
                Err(why) => return fail(&why),
            },
        };
        let id = Call { service, call, encoding }.id();
        let begun = Begun {
            id: Some(&id),
            service: Arc::clone(&entry.name),
            ty: Some(entry.ty.to_string()),
            args,
            timeout: None,
            delivery: Delivery::default(),
        };
        if let Err(refusal) = self.begin_call(begun, desk) {
            self.member.refuse(&refusal);
        }
    }

    /// Has the recording that is played controlled, or says why not.
    fn control_playback(
        &self,
        wish: PlaybackWish,
        request: &str,
        desk: &mut Desk,
    ) -> Result<(), String> {
        if desk.settings_ref().playback.is_none() {
            return Err(NOTHING_IS_PLAYED.to_owned());
        }
        if REQUEST_BYTES_MAX < request.len() {
            let found = request.len();
            return Err(format!("request: found {found} bytes; allowed: {REQUEST_BYTES_MAX}"));
        }
        wish.rate.map(check_rate).transpose()?;
        if !self.knows(Act::CallService, SET_PLAYBACK, desk) {
            return Err("this client may not control it".to_owned());
        }
        self.wish(Wish::Playback { wish, request: request.to_owned() }, desk);
        Ok(())
    }
}

/// Whether these bytes begin as a message of ROS does.
fn check_cdr(data: &[u8]) -> Result<(), String> {
    match data {
        [0, 0 | 1, _, _, ..] => Ok(()),
        _ => {
            let found = &data[..data.len().min(4)];
            Err(format!(
                "found bytes that begin with {found:02x?}; expected CDR with its header, such as [00, 01, 00, 00]"
            ))
        }
    }
}

fn why(refused: Refused, id: u32, what: &str) -> String {
    match refused {
        Refused::Used => format!("id: found {id}, which {what} has already; expected another"),
        Refused::Again(there) => {
            format!("channelId: found one that subscription {there} has already; expected another")
        }
        Refused::Full(max) => format!("found one more than {max}; expected fewer of one client"),
    }
}

fn text_id(id: u32) -> Id<'static> {
    Id::Text(id.to_string().into())
}

/// What an answer is known by is no longer.
const REQUEST_BYTES_MAX: usize = 1024;

/// A message in text is no longer: values take many times their text in memory. Messages and requests come in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
