//! What clients of Foxglove are told of: topics and services by their numbers, who has to do with them, parameters and files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tsuji::{Context, EndpointKind, Graph, GuardCondition, Node, Waitable};
use tsuji_foxglove::{Channel, ConnectionGraph, Entry, Level, Message, Schema, Service};
use tsuji_rosbridge::access::{Access, Act, UserKey};

use super::rosapi::is_hidden;
use crate::Counters;
use crate::connected_client::ConnectedClient;
use crate::foxglove::{Encoding, Names, Wish, frame, tell};
use crate::frame::Frame;
use crate::playback::may_control;
use crate::settings::Settings;
use crate::types::Types;

mod asset;
mod clock;
mod parameters;
mod playback;

use asset::Assets;
use clock::Clock;
use parameters::Parameters;
pub(super) use parameters::Question;
use playback::Player;

/// All clients of Foxglove, as the thread of ROS knows them.
pub(super) struct Foxglove {
    settings: Arc<Settings>,
    types: Arc<Types>,
    names: Arc<Names>,
    members: Vec<Member>,
    /// Types whose definitions are not here, each with the topics and services of it.
    unknown: BTreeMap<String, BTreeSet<Name>>,
    /// When definitions were looked for that had not been there.
    retried: Instant,
    parameters: Parameters,
    node: Node,
    clock: Clock,
    assets: Assets,
    player: Option<Player>,
}

/// The name of a topic, or of a service.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    is_service: bool,
    name: String,
}

/// One client.
struct Member {
    client: Arc<ConnectedClient>,
    user: Option<UserKey>,
    /// What it was told of who has to do with what, if it wants to know.
    graph: Option<ConnectionGraph>,
    /// It was told that time is simulated.
    follows_time: bool,
}

impl Foxglove {
    pub(super) fn new(
        node: Node,
        settings: Arc<Settings>,
        types: Arc<Types>,
        counters: Arc<Counters>,
        names: Arc<Names>,
        news: GuardCondition,
    ) -> Self {
        let player = settings.playback.clone().map(|it| Player::new(it, news));
        let (told, known) = (Arc::clone(&settings), Arc::clone(&types));
        let parameters = Parameters::new(node.clone(), told, known, counters);
        Self {
            settings,
            types,
            names,
            members: Vec::new(),
            unknown: BTreeMap::new(),
            retried: Instant::now(),
            parameters,
            node,
            clock: Clock::default(),
            assets: Assets::default(),
            player,
        }
    }

    /// What comes of parameters that change, and of the time.
    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.parameters.waitables().chain(self.clock.waitables())
    }

    pub(super) fn len(&self) -> usize {
        self.waitables().count()
    }

    /// Hands on what has come.
    pub(super) fn drain(&mut self) {
        self.parameters.drain();
        self.hear_time();
    }

    /// Hands on the time, if it has come.
    pub(super) fn hear_time(&mut self) {
        let followers = self.members.iter().filter(|it| it.follows_time);
        self.clock.drain(&self.names, followers.map(|it| &it.client));
    }

    fn follow_time(&mut self, context: &Context) {
        let is_wanted = self.members.iter().any(|it| it.follows_time);
        self.clock.follow(is_wanted, &self.node, context, &self.names);
    }

    /// Whether nodes are asked of which some may never answer, or something of a recording is still to be told.
    pub(super) fn waits(&self) -> bool {
        self.parameters.waits() || self.player.as_ref().is_some_and(Player::waits)
    }

    /// What nodes are to be asked next.
    pub(super) fn questions(&mut self) -> Vec<Question> {
        self.parameters.questions()
    }

    /// What a node has answered, or nothing where it will not.
    pub(super) fn answered(&mut self, ticket: u64, reply: Option<&serde_json::Value>) {
        self.parameters.answered(ticket, reply);
    }

    /// Answers whoever has waited for long enough, and tells what has become of the recording that is played.
    pub(super) fn look(&mut self) {
        self.parameters.look();
        if let Some(player) = &mut self.player {
            player.look();
        }
    }

    /// Does what a client wants.
    pub(super) fn obey(
        &mut self,
        client: Arc<ConnectedClient>,
        user: Option<UserKey>,
        wish: Wish,
        context: &Context,
    ) {
        match wish {
            Wish::Enter { follows_time } => self.enter(client, user, follows_time, context),
            Wish::Parameters { names, id } => {
                self.parameters.get(client, user, names, id, &context.graph());
            }
            Wish::SetParameters { parameters, id, .. } => {
                self.parameters.set(client, user, parameters, id, &context.graph());
            }
            Wish::FollowParameters { names } => self.parameters.follow(client, user, names),
            Wish::LeaveParameters { names } => self.parameters.leave(client.number, &names),
            Wish::Graph { is_wanted } => {
                let member = self.members.iter_mut().find(|it| it.client.number == client.number);
                let Some(member) = member else { return };
                match is_wanted {
                    true if member.graph.is_none() => {
                        member.graph = Some(ConnectionGraph::default());
                        member.tell_graph(&context.graph(), &self.settings.access);
                    }
                    true => {}
                    false => member.graph = None,
                }
            }
            Wish::Asset { uri, request } => self.assets.fetch(client, uri, request),
            Wish::Playback { wish, request } => {
                if let Some(player) = &mut self.player {
                    player.control(&wish, &client, &request);
                }
            }
        }
    }

    /// A client has gone.
    pub(super) fn gone(&mut self, number: u64, context: &Context) {
        let before = self.members.len();
        self.members.retain(|it| it.client.number != number);
        if self.members.len() != before {
            self.parameters.gone(number);
            if let Some(player) = &mut self.player {
                player.gone(number);
            }
            self.follow_time(context);
        }
    }

    fn enter(
        &mut self,
        client: Arc<ConnectedClient>,
        user: Option<UserKey>,
        follows_time: bool,
        context: &Context,
    ) {
        let graph = context.graph();
        self.retry();
        self.update(&graph);
        let [topics, services] = self.names.all();
        let member = Member { client, user, graph: None, follows_time };
        let told = self.told(&topics, &services, member.user);
        told.into_iter().for_each(|it| member.client.say_unasked(it));
        for (ty, names) in &self.unknown {
            member.tell_unknown(ty, names, &self.settings.access);
        }
        if let Some(player) = &mut self.player
            && member.client.peer.dialect.knows_playback()
            && may_control(&self.settings.access, member.user)
        {
            player.enter(&member.client);
        }
        self.members.push(member);
        self.follow_time(context);
    }

    /// Looks once more for definitions that were not there, not too often.
    fn retry(&mut self) {
        if self.retried.elapsed() < RETRY_EVERY {
            return;
        }
        self.retried = Instant::now();
        let types = &self.types;
        let is_here = |ty: &String| types.message(ty).is_ok() || types.service(ty).is_ok();
        let come: Vec<String> = self.unknown.keys().filter(|it| is_here(it)).cloned().collect();
        if come.is_empty() {
            return;
        }
        self.unknown.retain(|ty, _| !come.contains(ty));
        let status_ids: Vec<String> = come.iter().map(|it| status_id(it)).collect();
        let frame = frame(&Message::RemoveStatus { status_ids: &status_ids });
        self.members.iter().for_each(|it| it.client.say(Arc::clone(&frame)));
    }

    /// Tells what has come and gone.
    pub(super) fn refresh(&mut self, context: &Context) {
        if self.members.is_empty() {
            return;
        }
        let graph = context.graph();
        self.update(&graph);
        self.follow_time(context);
        for member in &mut self.members {
            member.tell_graph(&graph, &self.settings.access);
        }
    }

    fn update(&mut self, graph: &Graph) {
        // Of a topic of several types it is the one that is subscribed to.
        let mut topics = BTreeMap::<&str, &str>::new();
        for it in graph.endpoints.iter().filter(|it| is_shown(&it.topic)) {
            topics.entry(&it.topic).or_insert(&it.type_name);
        }
        let services: BTreeSet<(&str, &str)> = graph
            .services
            .iter()
            .filter(|it| it.kind == EndpointKind::Server && is_shown(&it.topic))
            .map(|it| (&*it.topic, &*it.type_name))
            .collect();
        let mut unknown = BTreeMap::<String, BTreeSet<Name>>::new();
        let (types, before) = (&self.types, &self.unknown);
        let mut is_known = |is_service, name: &str, ty: &str, is_here: &dyn Fn() -> bool| {
            let is_known = !before.contains_key(ty) && !unknown.contains_key(ty) && is_here();
            if !is_known {
                let name = Name { is_service, name: name.to_owned() };
                unknown.entry(ty.to_owned()).or_default().insert(name);
            }
            is_known
        };
        let topics: Vec<_> = topics
            .into_iter()
            .filter(|(name, ty)| is_known(false, name, ty, &|| types.message(ty).is_ok()))
            .collect();
        let services: Vec<_> = services
            .into_iter()
            .filter(|(name, ty)| is_known(true, name, ty, &|| types.service(ty).is_ok()))
            .collect();
        for (ty, names) in &unknown {
            if !self.unknown.contains_key(ty) {
                let access = &self.settings.access;
                self.members.iter().for_each(|it| it.tell_unknown(ty, names, access));
            }
        }
        self.unknown = unknown;
        let topics = self.names.update_topics(topics);
        let services = self.names.update_services(services);
        let may =
            |user, act, entry: &&Entry| self.settings.access.decide(user, act, &entry.name).is_ok();
        // Most often all may know the same.
        let mut told: HashMap<Option<UserKey>, Vec<Arc<Frame>>> = HashMap::new();
        for member in &self.members {
            let user = member.user;
            let frames = told.entry(user).or_insert_with(|| {
                let gone = topics.removed.iter().filter(|it| may(user, Act::Subscribe, it));
                let gone: Vec<u64> = gone.map(|it| it.id.into()).collect();
                let ended = services.removed.iter().filter(|it| may(user, Act::CallService, it));
                let ended: Vec<u32> = ended.map(|it| it.id).collect();
                let gone =
                    (!gone.is_empty()).then(|| frame(&Message::Unadvertise { channel_ids: &gone }));
                let ended = (!ended.is_empty())
                    .then(|| frame(&Message::UnadvertiseServices { service_ids: &ended }));
                let come = self.told(&topics.added, &services.added, user);
                gone.into_iter().chain(ended).chain(come).collect()
            });
            frames.iter().for_each(|it| member.client.say_unasked(Arc::clone(it)));
        }
    }

    /// What a user is told of these topics and services.
    fn told(&self, topics: &[Entry], services: &[Entry], user: Option<UserKey>) -> Vec<Arc<Frame>> {
        let may = |act, entry: &&Entry| self.settings.access.decide(user, act, &entry.name).is_ok();
        let texts: Vec<(&Entry, String)> = topics
            .iter()
            .filter(|it| may(Act::Subscribe, it))
            .filter_map(|it| Some((it, self.types.message(&it.ty).ok()?.description.full_text())))
            .collect();
        let channels: Vec<Channel<'_>> = texts
            .iter()
            .map(|(it, schema)| Channel {
                id: it.id.into(),
                topic: &it.name,
                encoding: Encoding::Cdr.word(),
                schema_name: &it.ty,
                schema,
                schema_encoding: SCHEMAS,
            })
            .collect();
        let halves: Vec<(&Entry, [(String, String); 2])> = services
            .iter()
            .filter(|it| may(Act::CallService, it))
            .filter_map(|it| {
                let ty = self.types.service(&it.ty).ok()?;
                let half = |of: &crate::types::MessageType| {
                    (of.description.name().to_string(), of.description.full_text())
                };
                Some((it, [half(&ty.request), half(&ty.response)]))
            })
            .collect();
        let offered: Vec<Service<'_>> = halves
            .iter()
            .map(|(it, [request, response])| Service {
                id: it.id,
                name: &it.name,
                ty: &it.ty,
                request: half(request),
                response: half(response),
            })
            .collect();
        let channels =
            (!channels.is_empty()).then(|| frame(&Message::Advertise { channels: &channels }));
        let offered = (!offered.is_empty())
            .then(|| frame(&Message::AdvertiseServices { services: &offered }));
        channels.into_iter().chain(offered).collect()
    }
}

fn half((name, text): &(String, String)) -> Schema<'_> {
    let (encoding, schema_encoding) = (Encoding::Cdr.word(), SCHEMAS);
    Schema { encoding, schema_name: name, schema: text, schema_encoding }
}

impl Member {
    /// Tells what has changed of who has to do with what, if it wants to know.
    fn tell_graph(&mut self, graph: &Graph, access: &Access) {
        let Some(told) = &mut self.graph else { return };
        let mut now = ConnectionGraph::default();
        let may = |act, name: &str| access.decide(self.user, act, name).is_ok();
        let shown = graph.endpoints.iter().filter(|it| is_shown(&it.topic));
        for it in shown.filter(|it| may(Act::Subscribe, &it.topic)) {
            match it.kind {
                EndpointKind::Publisher => now.publishes(&it.topic, &it.node),
                _ => now.subscribes(&it.topic, &it.node),
            }
        }
        let servers = graph.services.iter().filter(|it| it.kind == EndpointKind::Server);
        let servers = servers.filter(|it| is_shown(&it.topic));
        for it in servers.filter(|it| may(Act::CallService, &it.topic)) {
            now.serves(&it.topic, &it.node);
        }
        let update = told.update(now);
        if !update.is_empty() {
            tell(&self.client, &Message::graph(&update));
        }
    }

    /// Tells that a type is not here, if it may know of a topic or a service of it.
    fn tell_unknown(&self, ty: &str, names: &BTreeSet<Name>, access: &Access) {
        let may = |it: &&Name| {
            let act = if it.is_service { Act::CallService } else { Act::Subscribe };
            access.decide(self.user, act, &it.name).is_ok()
        };
        let Some(Name { name, .. }) = names.iter().find(may) else { return };
        let message = format!(
            "{name} is of type {ty}, whose definition is not here; nothing of that type is offered"
        );
        let (level, id) = (Level::Warning, status_id(ty));
        tell(&self.client, &Message::Status { level, message: &message, id: Some(&id) });
    }
}

/// By which the status of a type is taken back.
fn status_id(ty: &str) -> String {
    format!("type {ty}")
}

/// Whether clients are told of a name.
fn is_shown(name: &str) -> bool {
    !is_hidden(name) || is_of_action(name)
}

/// What of an action is seen: its clients know it by its topics and services.
fn is_of_action(name: &str) -> bool {
    name.split_once("/_action/").is_some_and(|(before, behind)| {
        !is_hidden(before) && !behind.is_empty() && !is_hidden(behind)
    })
}

/// How definitions are written.
const SCHEMAS: &str = "ros2msg";

/// How often it is looked for definitions that were not there.
const RETRY_EVERY: Duration = Duration::from_secs(5);
