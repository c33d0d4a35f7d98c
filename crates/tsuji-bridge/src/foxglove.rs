//! What both threads know of the clients that speak Foxglove's protocol: the numbers of topics and services, and how they are
//! answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tsuji::{Context, EndpointKind};
use tsuji_foxglove::{
    self as protocol, Capability, Catalogue, Changes, Entry, Message, Parameter, Timestamp,
};
use tsuji_rosbridge::access::UserKey;
use tsuji_rosbridge::{Id, Level, Outgoing, Refusal, Values};

use crate::connected_client::ConnectedClient;
use crate::frame::{Frame, Kind};
use crate::playback::{Playback, PlaybackWish, may_control};
use crate::settings::Settings;

/// What clients know by numbers, the same for all of them.
#[derive(Debug)]
pub(crate) struct Names {
    topics: Mutex<Catalogue>,
    services: Mutex<Catalogue>,
    /// Whose numbers these are.
    session: String,
    /// Simulated time in nanoseconds; 0 while there is none.
    clock_ns: AtomicU64,
    /// What plays a recording, if anything does.
    playback: Option<Arc<dyn Playback>>,
}

impl Names {
    /// None yet.
    pub(crate) fn new(playback: Option<Arc<dyn Playback>>) -> Self {
        let session = tsuji_platform::clock::wall_ns().to_string();
        let (topics, services) = (Mutex::default(), Mutex::default());
        Self { topics, services, session, clock_ns: AtomicU64::new(0), playback }
    }

    /// Notes the simulated time; 0 for none.
    pub(crate) fn set_clock(&self, now_ns: u64) {
        self.clock_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The time for what comes now, in nanoseconds: simulated time where that is followed. What is played tells it by `/clock` too, but
    /// not to whoever follows that since it has ended.
    pub(crate) fn now_ns(&self) -> u64 {
        match (self.clock_ns.load(Ordering::Relaxed), &self.playback) {
            (0, Some(playback)) => playback.state().time_ns,
            (0, None) => u64::try_from(tsuji_platform::clock::wall_ns()).unwrap_or_default(),
            (simulated, _) => simulated,
        }
    }

    /// The topic that a channel is of.
    pub(crate) fn topic(&self, channel: u64) -> Option<Entry> {
        of(&self.topics, u32::try_from(channel).ok()?)
    }

    /// The service that has this number.
    pub(crate) fn service(&self, number: u32) -> Option<Entry> {
        of(&self.services, number)
    }

    /// Takes note of all topics that there are now, each with its type.
    pub(crate) fn update_topics<'a>(
        &self,
        all: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Changes {
        lock(&self.topics).update(all)
    }

    /// The same of services.
    pub(crate) fn update_services<'a>(
        &self,
        all: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Changes {
        lock(&self.services).update(all)
    }

    /// All topics and all services.
    pub(crate) fn all(&self) -> [Vec<Entry>; 2] {
        [&self.topics, &self.services].map(|it| lock(it).all().cloned().collect())
    }
}

fn of(catalogue: &Mutex<Catalogue>, number: u32) -> Option<Entry> {
    lock(catalogue).get(number).cloned()
}

fn lock(catalogue: &Mutex<Catalogue>) -> std::sync::MutexGuard<'_, Catalogue> {
    catalogue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How messages and requests of a client are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As ROS has them, with four bytes of header.
    Cdr,
    /// As texts.
    Json,
}

impl Encoding {
    /// Their words.
    pub(crate) const WORDS: [&str; 2] = ["cdr", "json"];

    /// What a client calls it.
    pub(crate) fn read(word: &str) -> Option<Self> {
        [Self::Cdr, Self::Json].into_iter().find(|it| it.word() == word)
    }

    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// By which a client knows a call, kept as the id that calls of other clients have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The number of the service.
    pub(crate) service: u32,
    /// That of the call.
    pub(crate) call: u32,
    /// How the response is to be written.
    pub(crate) encoding: Encoding,
}

impl Call {
    /// As an id.
    pub(crate) fn id(self) -> Id<'static> {
        let Self { service, call, encoding } = self;
        Id::Text(format!("{service}/{call}/{}", encoding.word()).into())
    }

    /// Of an id that was made so.
    pub(crate) fn read(id: &Id<'_>) -> Option<Self> {
        let Id::Text(text) = id else { return None };
        let mut parts = text.splitn(3, '/');
        let (service, call) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { service, call, encoding: Encoding::read(parts.next()?)? })
    }
}

/// What a client wants of the thread of ROS, beside what others want too.
#[derive(Debug)]
pub(crate) enum Wish {
    /// To know what there is from now on, and the time where it was told that this is simulated.
    Enter { follows_time: bool },
    /// Parameters of these names; all if there is none.
    Parameters { names: Vec<String>, id: Option<String> },
    /// Parameters to have these values.
    SetParameters { parameters: Vec<Parameter>, id: Option<String>, text_bytes: usize },
    /// To hear when parameters of these names change; all if there is none.
    FollowParameters { names: Vec<String> },
    /// To hear of these no more; of all if there is none.
    LeaveParameters { names: Vec<String> },
    /// To know who publishes, subscribes and serves, or no more.
    Graph { is_wanted: bool },
    /// A file.
    Asset { uri: String, request: u32 },
    /// The recording that is played to be as `wish` has it.
    Playback { wish: PlaybackWish, request: String },
}

impl Wish {
    /// What it takes while it waits, about.
    pub(crate) fn bytes(&self) -> usize {
        let names = |all: &[String]| all.iter().map(|it| it.len() + 64).sum();
        match self {
            Self::Enter { .. } | Self::Graph { .. } => 0,
            Self::Parameters { names: all, .. }
            | Self::FollowParameters { names: all }
            | Self::LeaveParameters { names: all } => names(all),
            Self::SetParameters { text_bytes, .. } => text_bytes * VALUE_BYTES,
            Self::Asset { uri, .. } => uri.len(),
            Self::Playback { request, .. } => request.len(),
        }
    }
}

/// What a client is told first.
pub(crate) fn greet(
    member: &ConnectedClient,
    user: Option<UserKey>,
    settings: &Settings,
    names: &Names,
    is_time_simulated: bool,
) {
    let name = concat!("tsuji bridge ", env!("CARGO_PKG_VERSION"));
    let metadata = BTreeMap::from([
        ("ROS_DISTRO", &*settings.distro),
        ("tsuji_version", env!("CARGO_PKG_VERSION")),
    ]);
    let mut capabilities = vec![
        Capability::ClientPublish,
        Capability::Parameters,
        Capability::ParametersSubscribe,
        Capability::Services,
        Capability::ConnectionGraph,
        Capability::Assets,
    ];
    let is_told = member.peer.dialect.knows_playback() && may_control(&settings.access, user);
    let playback = settings.playback.as_ref().filter(|_| is_told);
    let span = playback.map(|it| it.span_ns());
    if span.is_some() {
        capabilities.push(Capability::RangedPlayback);
    }
    // A client to which this is said has no time until it is told one.
    if is_time_simulated {
        capabilities.push(Capability::Time);
    }
    let info = protocol::ServerInfo {
        name,
        capabilities: &capabilities,
        supported_encodings: &Encoding::WORDS,
        metadata: &metadata,
        session_id: &names.session,
        data_start_time: span.map(|it| Timestamp::from_ns(it.0)),
        data_end_time: span.map(|it| Timestamp::from_ns(it.1)),
    };
    tell(member, &Message::ServerInfo(info));
}

/// Tells a client something in text.
pub(crate) fn tell(member: &ConnectedClient, message: &Message<'_>) {
    member.say(frame(message));
}

/// A text for any number of clients.
pub(crate) fn frame(message: &Message<'_>) -> Arc<Frame> {
    let text = protocol::text(message);
    written(Kind::Text, |out| out.extend_from_slice(text.as_bytes()))
}

/// A message in bytes.
pub(crate) fn written(kind: Kind, write: impl FnOnce(&mut Vec<u8>)) -> Arc<Frame> {
    let frame = Frame::encode::<std::convert::Infallible>(kind, |out| {
        write(out);
        Ok(())
    });
    match frame {
        Ok(frame) => Arc::new(frame),
        Err(never) => match never {},
    }
}

/// Tells what its user should know.
pub(crate) fn status(member: &ConnectedClient, level: protocol::Level, message: &str) {
    tell(member, &Message::Status { level, message, id: None });
}

/// What is told to other clients in their way.
pub(crate) fn answer(member: &ConnectedClient, answer: &Outgoing<'_>) {
    match *answer {
        Outgoing::ServiceResponse { id, values, result, .. } => {
            let Some(Call { service, call, encoding }) = id.and_then(Call::read) else { return };
            match values {
                Values::Encoded(data) if result => {
                    member.say(written(Kind::Binary, |out| {
                        protocol::write_response(out, service, call, encoding.word(), data);
                    }));
                }
                Values::Text(message) => {
                    let (service_id, call_id) = (service, call);
                    tell(member, &Message::ServiceCallFailure { service_id, call_id, message });
                }
                Values::Encoded(_) | Values::None => {}
            }
        }
        Outgoing::Status { level, msg, .. } => {
            let level = match level {
                Level::None | Level::Info => protocol::Level::Info,
                Level::Warning => protocol::Level::Warning,
                Level::Error => protocol::Level::Error,
            };
            status(member, level, msg);
        }
        // It serves nothing, and has no goals of its own.
        _ => {}
    }
}

/// Says why something was not done.
pub(crate) fn refuse(member: &ConnectedClient, refusal: &Refusal) {
    match refusal.operation {
        Some("call_service") => member.answer_refused(refusal),
        _ => status(member, protocol::Level::Error, &refusal.to_string()),
    }
}

/// What a value of a parameter takes for each byte of its text, about.
const VALUE_BYTES: usize = 32;

/// Whether anybody publishes simulated time.
pub(crate) fn is_time_simulated(context: &Context) -> bool {
    let ends = context.endpoints_of(CLOCK);
    ends.iter().any(|it| it.kind == EndpointKind::Publisher && it.type_name == CLOCK_TYPE)
}

/// The topic of simulated time, and its type.
pub(crate) const CLOCK: &str = "/clock";
pub(crate) const CLOCK_TYPE: &str = "rosgraph_msgs/msg/Clock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_from_its_own_id() {
        for encoding in [Encoding::Cdr, Encoding::Json] {
            let call = Call { service: 3, call: u32::MAX, encoding };
            assert_eq!(Call::read(&call.id()), Some(call));
        }
        for other in ["", "1/2", "1/2/xml", "1/2/cdr/x", "-1/2/cdr"] {
            assert_eq!(Call::read(&Id::Text(other.into())), None, "{other}");
        }
    }
}
