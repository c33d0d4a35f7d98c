//! The operator: starts the robot, watches its flows, adds up at the end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tsuji::core::Interop;
use tsuji::{Context, DiscoveryRange, RouteReport, Subscription, WaitSet};
use tsuji_interfaces::sensor_msgs::msg::Image;

use crate::crew::{Crew, Place};
use crate::robot::{self, FLOWS, HOLD, PLAIN, SMALL_PICTURES, SMALL_PICTURES_KEPT};
use crate::screen::{Screen, Thumbnail};
use crate::tally::{Count, End, Tally};
use crate::{Result, Settings, Show, picture};

/// Runs the demonstration. Answers whether everything arrived and everybody lived.
pub(crate) fn run(settings: &Settings) -> Result<bool> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))?;
    }
    let folder = Folder::new();
    let builder = Context::builder().runtime_dir(&folder.path).domain(own_domain());
    let context = builder.discovery_range(DiscoveryRange::Localhost).build()?;
    let plain = plain_program().filter(|_| context.interop() == Interop::Rtps);
    let place = Place { runtime_dir: folder.path.clone(), domain: context.domain(), plain };
    let mut watch = Watch::new(&context)?;
    let mut crew = Crew::start(&place)?;
    let mut screen = Screen::new(settings.show)?;
    screen.begin(&place)?;

    let mut troubles = Vec::new();
    let mut routes = Vec::new();
    let started = Instant::now();
    let mut first_picture = None;
    let mut next_look = started;
    while !is_interrupted.load(Ordering::Relaxed) {
        let now = Instant::now();
        troubles = crew.dead();
        if first_picture.is_none() && START_MAX < now - started {
            troubles.push(format!("no picture came within {START_MAX:?}"));
        }
        let runs = first_picture.map_or(Duration::ZERO, |it| now - it);
        if !troubles.is_empty() || settings.time <= runs {
            break;
        }
        if next_look <= now {
            routes = context.routes(ANSWER_MAX)?;
            next_look = now + LOOK_EVERY;
        }
        screen.show(&routes, runs, settings.time, &watch.thumbnail)?;
        if watch.wait(next_look)? {
            first_picture.get_or_insert_with(Instant::now);
        }
    }

    let counts = if troubles.is_empty() {
        crew.tell(HOLD);
        let counts = watch.count_to_the_end(&mut crew)?;
        routes = context.routes(ANSWER_MAX)?;
        counts
    } else {
        crew.counts()
    };
    screen.leave()?;
    troubles.extend(crew.end());
    let seconds = first_picture.map_or(0.0, |it| it.elapsed().as_secs_f64());
    let flows = sum_up(&counts, &routes, place.plain.is_some());
    let summary = Summary { seconds, flows, troubles };
    let mut out = std::io::stdout().lock();
    if settings.show == Show::Json {
        writeln!(out, "{:#}", summary.json())?;
    } else {
        screen.summary(&summary, &mut out)?;
    }
    Ok(summary.is_good())
}

/// The operator's own part in the robot: it looks at small pictures.
struct Watch {
    set: WaitSet,
    subscription: Subscription<Image>,
    tally: Arc<Tally>,
    thumbnail: Thumbnail,
}

impl Watch {
    fn new(context: &Context) -> Result<Self> {
        let node = context.node("operator")?;
        let subscription = node.subscription::<Image>(SMALL_PICTURES);
        let subscription = subscription.qos(robot::kept(SMALL_PICTURES_KEPT)).build()?;
        let mut set = WaitSet::new(context)?;
        set.add(&subscription)?;
        let tally = Tally::new(SMALL_PICTURES, "/operator", End::Received);
        Ok(Self { set, subscription, tally, thumbnail: Thumbnail::default() })
    }

    /// Takes what came, after waiting for it for a moment at most. Answers whether there was any.
    fn wait(&mut self, until: Instant) -> Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        self.set.wait(left.min(WAIT_MAX))?;
        let mut is_new = false;
        while let Some(received) = self.subscription.take()? {
            let data = received.view().data;
            let expected = picture::SMALL_WIDTH * picture::SMALL_HEIGHT * 3;
            let is_whole = data.len() == expected;
            self.tally.add(is_whole.then_some(()).ok_or("a small picture of another size"));
            if is_whole {
                self.thumbnail.pixels = data.to_vec();
            }
            is_new = true;
        }
        Ok(is_new)
    }

    /// Counts at all ends until what was sent is what was received. Gives up after a while; what
    /// is missing then is lost.
    fn count_to_the_end(&mut self, crew: &mut Crew) -> Result<Vec<Count>> {
        let give_up = Instant::now() + COUNT_MAX;
        loop {
            let mut counts = crew.counts();
            self.wait(Instant::now() + LOOK_AGAIN)?;
            counts.push(self.tally.count());
            let is_all =
                sum_up(&counts, &[], crew.has_plain()).iter().all(|it| it.sent == it.received);
            if is_all || give_up <= Instant::now() {
                return Ok(counts);
            }
        }
    }
}

/// What is said at the end.
pub(crate) struct Summary {
    pub(crate) seconds: f64,
    pub(crate) flows: Vec<FlowSum>,
    pub(crate) troubles: Vec<String>,
}

/// One flow, from end to end.
pub(crate) struct FlowSum {
    pub(crate) topic: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    /// `None` when that end did not tell.
    pub(crate) sent: Option<u64>,
    pub(crate) received: Option<u64>,
    /// Samples that were not what was sent, or could not be sent.
    pub(crate) wrong: u64,
    /// What was wrong with the first.
    pub(crate) trouble: Option<String>,
    pub(crate) route: Option<RouteReport>,
}

impl Summary {
    pub(crate) fn is_good(&self) -> bool {
        self.troubles.is_empty() && self.flows.iter().all(FlowSum::is_good)
    }

    fn json(&self) -> serde_json::Value {
        let flow = |it: &FlowSum| {
            serde_json::json!({
                "topic": it.topic,
                "from": it.from,
                "to": it.to,
                "sent": it.sent,
                "received": it.received,
                "lost": it.lost(),
                "wrong": it.wrong,
                "trouble": it.trouble,
                "route": it.route,
            })
        };
        let flows: Vec<_> = self.flows.iter().map(flow).collect();
        serde_json::json!({
            "ok": self.is_good(),
            "seconds": self.seconds,
            "flows": flows,
            "troubles": self.troubles,
        })
    }
}

impl FlowSum {
    pub(crate) fn lost(&self) -> Option<u64> {
        Some(self.sent?.saturating_sub(self.received?))
    }

    pub(crate) fn is_good(&self) -> bool {
        self.lost() == Some(0) && self.wrong == 0 && self.sent != Some(0)
    }
}

fn sum_up(counts: &[Count], routes: &[RouteReport], has_plain: bool) -> Vec<FlowSum> {
    let count = |topic: &str, node: &str, is_sender: bool| {
        counts.iter().find(|it| (&*it.topic, &*it.node, it.is_sender) == (topic, node, is_sender))
    };
    let flow = |(topic, from, to): (&'static str, &'static str, &'static str)| {
        let (sender, receiver) = (count(topic, from, true), count(topic, to, false));
        let ends = [sender, receiver].into_iter().flatten();
        let is_route = |it: &&RouteReport| {
            (&*it.topic, &*it.publisher.node, &*it.subscription.node) == (topic, from, to)
        };
        FlowSum {
            topic,
            from,
            to,
            sent: sender.map(|it| it.samples),
            received: receiver.map(|it| it.samples),
            wrong: ends.clone().map(|it| it.wrong).sum(),
            trouble: ends.filter_map(|it| it.trouble.clone()).next(),
            route: routes.iter().find(is_route).cloned(),
        }
    };
    FLOWS.into_iter().filter(|(_, _, to)| has_plain || *to != PLAIN).map(flow).collect()
}

/// A domain of its own: what steers this robot must not steer that of whoever tries it. Ports of RTPS
/// are not ephemeral ones up to domain 101.
fn own_domain() -> u32 {
    60 + std::process::id() % 42
}

/// The program of a plain node, which `make demo` builds.
fn plain_program() -> Option<PathBuf> {
    let said = std::env::var_os("TSUJI_PEER_ROS2_CLIENT").map(PathBuf::from);
    said.filter(|path| path.is_file())
}

/// Where this robot's processes meet, away from the user's own. Removed at the end.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new() -> Self {
        // Under /tmp and short: a socket's path has at most 107 bytes.
        Self { path: Path::new("/tmp").join(format!("tsuji-demo-{}", std::process::id())) }
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
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

const START_MAX: Duration = Duration::from_secs(60);
const ANSWER_MAX: Duration = Duration::from_secs(1);
const COUNT_MAX: Duration = Duration::from_secs(10);
const REMOVALS_MAX: u32 = 100;
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How soon a signal or a death is noticed.
const WAIT_MAX: Duration = Duration::from_millis(100);
