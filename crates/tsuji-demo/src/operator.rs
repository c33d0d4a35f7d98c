//! The operator: starts the robot, watches its flows, adds up at the end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tsuji::Interop;
use tsuji::{Context, DiscoveryRange, RouteReport, Subscription, WaitSet};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_platform::signals;

use crate::acts::{self, Cue, Deed, ENGINE, Obstacle, SHM_FIRST, Schedule, Transports};
use crate::crew::{Crew, Surroundings};
use crate::guide::Guide;
use crate::nodes::kept;
use crate::orders::{HOLD, Period};
use crate::picture::TINY;
use crate::robot::{
    self, CAMERA, DETECTOR, FLOWS, GUEST, OPERATOR, PICTURES, Role, SMALL_PICTURES,
    SMALL_PICTURES_KEPT, VIEWER,
};
use crate::screen::{Moment, Screen, Thumbnail};
use crate::sequence::Sequence;
use crate::story::Story;
use crate::summary::{Summary, sum_up};
use crate::tally::{Count, End, Tally};
use crate::{Result, Settings, Show};

/// Runs the demonstration. Answers whether everything arrived, everybody lived and every act had its
/// effect.
pub(crate) fn run(settings: &Settings) -> Result<bool> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in signals::heard(&[SIGHUP, SIGINT, SIGTERM]) {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))?;
    }
    let folder = Folder::new()?;
    let policy = own_policy(&folder)?;
    let domain = Domain::claim()?;
    let mut builder = robot::settings().runtime_dir(&folder.path).domain(domain.number);
    if let Some(policy) = &policy {
        builder = builder.policy_file(policy);
    }
    let context = builder.discovery_range(DiscoveryRange::Localhost).static_peers([]).build()?;
    let foreign = foreign_program().filter(|_| context.interop().contains(Interop::RTPS));
    let surroundings = Surroundings {
        runtime_dir: folder.path.clone(),
        domain: context.domain(),
        policy,
        command: own_command(&folder, context.domain())?,
        foreign,
        roles: if settings.is_components { Role::COMPONENTS } else { Role::PROCESSES },
        port: settings.port,
    };
    let mut watch = Watch::new(&context)?;
    let mut crew = Crew::start(&surroundings)?;
    let mut guide = Guide::start(&context)?;
    let mut screen = Screen::new(settings.show);
    let mut schedule = Schedule::new(settings.time, &obstacle(settings, &context, &surroundings));
    screen.begin(&surroundings, !schedule.is_over())?;

    let mut story = Story::default();
    let mut troubles = Vec::new();
    let mut routes = Vec::new();
    let started = Instant::now();
    let mut first_picture = None;
    let mut next_update = started;
    while !is_interrupted.load(Ordering::Relaxed) {
        let now = Instant::now();
        troubles.extend(crew.dead());
        if first_picture.is_none() && START_MAX < now - started {
            troubles.push(format!("no picture came within {START_MAX:?}"));
        }
        let runs = first_picture.map_or(Duration::ZERO, |it| now - it);
        let is_over = !settings.stays && settings.time <= runs && schedule.is_over();
        if !troubles.is_empty() || is_over {
            break;
        }
        if next_update <= now {
            routes = flows_of(&context)?;
            next_update = now + UPDATE_PERIOD;
            for change in story.add_changes(&routes) {
                screen.log_change(runs, &change)?;
            }
            if let Some(address) = crew.page() {
                screen.show_page(address)?;
            }
            if let Some(why) = crew.check_page() {
                screen.drop_page(runs, &why)?;
            }
            let transports = Transports::of(&routes);
            match schedule.poll(runs, &transports) {
                Some(Cue::Came) => drop(count(&mut crew, &mut story, BTreeMap::new())),
                Some(Cue::Do(act, step)) => {
                    count(&mut crew, &mut story, pictures_by(&transports, &routes));
                    story.add_deed(act, schedule.name(act), runs, step.says);
                    let text = format!("{}: {}", schedule.title(act), step.says);
                    screen.log(runs, &text)?;
                    if let Err(why) = perform(step.deed, &context, &mut crew, &surroundings) {
                        troubles.push(format!("{text}: {why}"));
                    }
                }
                Some(Cue::Fail(why)) => troubles.push(why),
                None => (),
            }
        }
        let shown = Moment { routes: &routes, runs, of: settings.time, stays: settings.stays };
        screen.show(&shown, &guide.status(), &watch.thumbnail)?;
        if watch.wait(next_update)? {
            first_picture.get_or_insert_with(Instant::now);
        }
    }

    let tour = guide.stop();
    if first_picture.is_none() && troubles.is_empty() {
        troubles.push("it was ended before the first picture came".to_owned());
    }
    troubles.extend(crew.dead());
    let by = pictures_by(&Transports::of(&routes), &routes);
    let mut counts = count(&mut crew, &mut story, by);
    if crew.is_whole() {
        crew.send(HOLD);
        counts = watch.count_to_the_end(&mut crew, &mut story)?;
        routes = flows_of(&context)?;
        story.add_changes(&routes);
    }
    screen.leave()?;
    troubles.extend(crew.end());
    troubles.extend(trouble_of_guest(&counts, &story));
    let seconds = first_picture.map_or(0.0, |it| it.elapsed().as_secs_f64());
    let flows = sum_up(&counts, &routes, &story, crew.has_foreign());
    let left_out = schedule.left_out().map(|(name, why)| (name, why.to_owned())).collect();
    let summary = Summary { seconds, flows, story, tour, left_out, troubles };
    let mut out = io::stdout().lock();
    if settings.show == Show::Json {
        writeln!(out, "{:#}", summary.json())?;
    } else {
        screen.summary(&summary, &mut out)?;
    }
    Ok(summary.is_good())
}

/// Does what a step of an act asks for.
///
/// # Errors
/// Why that cannot have its effect.
fn perform(
    deed: Deed,
    context: &Context,
    crew: &mut Crew,
    surroundings: &Surroundings,
) -> Result<()> {
    match deed {
        Deed::Policy(large) => {
            if let Some(path) = &surroundings.policy {
                write_policy(path, large)?;
            }
        }
        Deed::Camera(order) => crew.send_to(Role::Camera, order),
        Deed::Transport(transport) => {
            let settings = context.set_route(PICTURES, transport, ANSWER_MAX)?;
            // The sender of the pictures decides. While it has not answered it may still take it.
            let camera = crew.id(Role::Camera);
            let setting = settings.into_iter().find(|it| Some(it.process.pid) == camera);
            if let Some(Err(why)) = setting.map(|it| it.outcome) {
                return Err(format!("the camera process refuses: {why}").into());
            }
        }
    }
    Ok(())
}

/// Writes the policy of the demonstration, unless the user has one.
fn own_policy(folder: &Folder) -> Result<Option<PathBuf>> {
    if has_users_policy() {
        return Ok(None);
    }
    let path = folder.path.join("policy.xml");
    write_policy(&path, SHM_FIRST)?;
    Ok(Some(path))
}

/// Makes a command of tsuji that has the variables of this robot, so that a user types one short line, if there is a command
/// beside this program or on `PATH`.
fn own_command(folder: &Folder, domain: u32) -> Result<Option<PathBuf>> {
    let Some(command) = tsuji_platform::process::companion(COMMAND) else { return Ok(None) };
    let quoted = |it: &str| format!("'{}'", it.replace('\'', r"'\''"));
    let mut variables = format!("TSUJI_RUNTIME_DIR={}", quoted(&folder.path.to_string_lossy()));
    variables += &format!(" ROS_DOMAIN_ID={domain} ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST");
    if let Ok(interop) = std::env::var("TSUJI_INTEROP") {
        variables += &format!(" TSUJI_INTEROP={}", quoted(&interop));
    }
    let command = quoted(&command.to_string_lossy());
    let text = format!(
        "#!/bin/sh\n# The command of tsuji for the robot of this demonstration.\n\
         unset ROS_STATIC_PEERS\nexport {variables}\nexec {command} \"$@\"\n"
    );
    let path = folder.path.join(COMMAND);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o700).open(&path)?.write_all(text.as_bytes())?;
    Ok(Some(path))
}

/// What the command is called.
const COMMAND: &str = "tsuji";

fn has_users_policy() -> bool {
    std::env::var_os("TSUJI_POLICY").is_some_and(|it| !it.is_empty())
}

/// Puts another file in its place, so that nobody reads half of one.
fn write_policy(path: &Path, large: &str) -> Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, acts::policy(large))?;
    Ok(std::fs::rename(&new, path)?)
}

/// The flows of the robot that are counted; beside them there are those of actions, parameters and of whoever looks on.
fn flows_of(context: &Context) -> Result<Vec<RouteReport>> {
    let is_counted = |it: &RouteReport| {
        let flow = (&*it.topic, &*it.publisher.node, &*it.subscription.node);
        FLOWS.contains(&flow) || flow == (PICTURES, CAMERA, GUEST)
    };
    let mut routes = context.routes(ANSWER_MAX)?;
    routes.retain(is_counted);
    Ok(routes)
}

/// Why the transports cannot be changed as the acts would have it, if they cannot.
fn obstacle(settings: &Settings, context: &Context, surroundings: &Surroundings) -> Obstacle {
    if settings.is_components {
        return Obstacle::ToAll("in one process every flow goes by pointer".to_owned());
    }
    no_policy(context, surroundings).map_or(Obstacle::None, Obstacle::ToPolicy)
}

fn no_policy(context: &Context, surroundings: &Surroundings) -> Option<String> {
    if surroundings.policy.is_none() {
        return Some("TSUJI_POLICY names a policy of your own".to_owned());
    }
    let trouble = |name: &str| {
        let transports = context.transports();
        let known = transports.iter().find(|it| it.name == name);
        let unknown = || Some("not in this build".to_owned());
        let trouble = known.map_or_else(unknown, |it| it.trouble.clone());
        trouble.map(|why| format!("{name} does not work here: {why}"))
    };
    trouble("shm").or_else(|| trouble(ENGINE))
}

/// Counts at all ends, and adds to the story how old and how late pictures were that came since the last count. They went by these
/// transports to these nodes.
fn count(crew: &mut Crew, story: &mut Story, transports: BTreeMap<String, String>) -> Vec<Count> {
    let chapter = story.chapters.len().checked_sub(1);
    let answers = crew.ask(Period { chapter, transports });
    answers.all.iter().for_each(|it| story.add_answer(it));
    answers.into_counts()
}

/// By which transport pictures go to which node, where that is known.
fn pictures_by(transports: &Transports, routes: &[RouteReport]) -> BTreeMap<String, String> {
    let detector = routes.iter().find(|it| it.subscription.node == DETECTOR);
    let detector = detector.and_then(|it| it.transport.as_deref());
    let known = [(VIEWER, transports.viewer()), (DETECTOR, detector)].into_iter();
    known.filter_map(|(node, by)| Some((node.to_owned(), by?.to_owned()))).collect()
}

/// What was wrong with what the second viewer saw, if it was there.
fn trouble_of_guest(counts: &[Count], story: &Story) -> Option<String> {
    let guest = counts.iter().find(|it| it.node == GUEST)?;
    let was_there = story.changes().any(|it| it.to == GUEST);
    match &guest.trouble {
        Some(trouble) => {
            Some(format!("the second viewer: {} wrong, first: {trouble}", guest.wrong))
        }
        None if was_there && guest.samples == 0 => Some("the second viewer saw nothing".to_owned()),
        None => None,
    }
}

/// The operator's own part in the robot: it looks at small pictures.
struct Watch {
    set: WaitSet,
    subscription: Subscription<Image>,
    tally: Arc<Tally>,
    order: Sequence,
    thumbnail: Thumbnail,
}

impl Watch {
    fn new(context: &Context) -> Result<Self> {
        let node = context.node("operator")?;
        let subscription =
            node.create_polled_subscription::<Image>(SMALL_PICTURES, kept(SMALL_PICTURES_KEPT))?;
        let mut set = WaitSet::new(context)?;
        set.add(&subscription)?;
        let tally = Tally::new(SMALL_PICTURES, OPERATOR, End::Received);
        let order = Sequence::from_first(1);
        Ok(Self { set, subscription, tally, order, thumbnail: Thumbnail::default() })
    }

    /// Takes what came, after waiting for it for a moment at most. Answers whether there was any.
    fn wait(&mut self, until: Instant) -> Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        self.set.wait(left.min(WAIT_MAX))?;
        let mut is_new = false;
        while let Some(received) = self.subscription.take()? {
            let data = received.view().data;
            let is_whole = data.len() == TINY.bytes();
            let whole =
                is_whole.then_some(()).ok_or_else(|| "a small picture of another size".to_owned());
            let in_order = self.order.next("small picture", received.info().sequence);
            self.tally.add(whole.and(in_order));
            if is_whole {
                self.thumbnail.pixels = data.to_vec();
            }
            is_new = true;
        }
        Ok(is_new)
    }

    /// Counts at all ends until what was sent is what was received. Gives up after a while; what
    /// is missing then is lost.
    fn count_to_the_end(&mut self, crew: &mut Crew, story: &mut Story) -> Result<Vec<Count>> {
        let give_up = Instant::now() + COUNT_MAX;
        loop {
            let mut counts = count(crew, story, BTreeMap::new());
            self.wait(Instant::now() + RETRY_PERIOD)?;
            counts.push(self.tally.count());
            let flows = sum_up(&counts, &[], story, crew.has_foreign());
            let is_all = flows.iter().all(|it| it.sent == it.received);
            if is_all || give_up <= Instant::now() {
                return Ok(counts);
            }
        }
    }
}

/// A domain of its own: what steers this robot must not steer that of whoever tries it, nor that of another demo. Ports of RTPS
/// are not ephemeral ones up to domain 101.
struct Domain {
    number: u32,
    /// Has the name of the domain among the demos of this network, for as long as this is kept.
    _claim: UnixListener,
}

impl Domain {
    fn claim() -> Result<Self> {
        let users = std::env::var("ROS_DOMAIN_ID").ok().and_then(|it| it.parse().ok());
        let first = std::process::id() % DOMAINS;
        let all = (0..DOMAINS).map(|it| DOMAIN_FIRST + (first + it) % DOMAINS);
        for number in all.filter(|it| Some(*it) != users) {
            let name = SocketAddr::from_abstract_name(format!("tsuji-demo-domain-{number}"))?;
            match UnixListener::bind_addr(&name) {
                Ok(claim) => return Ok(Self { number, _claim: claim }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => (),
                Err(error) => return Err(error.into()),
            }
        }
        Err(format!("{DOMAINS} demos run here already, one in each domain for them").into())
    }
}

const DOMAIN_FIRST: u32 = 60;
const DOMAINS: u32 = 42;

/// The program of a foreign node, which `make demo` builds.
fn foreign_program() -> Option<PathBuf> {
    let said = std::env::var_os("TSUJI_PEER_ROS2_CLIENT").map(PathBuf::from);
    said.filter(|path| path.is_file())
}

/// Where this robot's processes meet, away from the user's own. Removed at the end.
struct Folder {
    path: PathBuf,
    /// Locked for as long as the demo lives.
    _lock: File,
}

impl Folder {
    fn new() -> Result<Self> {
        // Under /tmp and short: a socket's path has at most 107 bytes.
        let path = Path::new("/tmp").join(format!("{FOLDERS}{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        // One of the same number as this process may have been killed.
        Self::sweep();
        if made.is_err() {
            let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let lock = File::create(path.join(LOCK))?;
        lock.lock()?;
        Ok(Self { path, _lock: lock })
    }

    /// Removes what demos have left that were killed.
    fn sweep() {
        for entry in std::fs::read_dir("/tmp").into_iter().flatten().flatten() {
            let is_one = entry.file_name().to_str().is_some_and(|it| it.starts_with(FOLDERS));
            // Those of others cannot be opened.
            let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
            if is_one && lock.try_lock().is_ok() {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A context that has just ended may still be taking its socket away.
        for _ in 0..REMOVALS_MAX {
            let _ = std::fs::remove_dir_all(&self.path);
            if !self.path.exists() {
                break;
            }
            std::thread::sleep(RETRY_PERIOD);
        }
    }
}

const FOLDERS: &str = "tsuji-demo-";
const LOCK: &str = "lock";
const START_MAX: Duration = Duration::from_secs(60);
const ANSWER_MAX: Duration = Duration::from_secs(1);
const COUNT_MAX: Duration = Duration::from_secs(10);
const REMOVALS_MAX: u32 = 100;
/// How soon a change is seen.
const UPDATE_PERIOD: Duration = Duration::from_millis(200);
const RETRY_PERIOD: Duration = Duration::from_millis(20);
/// How soon a signal or a death is noticed.
const WAIT_MAX: Duration = Duration::from_millis(100);
