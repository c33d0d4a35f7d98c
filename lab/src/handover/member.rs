//! A process at the ends of changing flows: publishers that send at a pace, and subscriptions that check
//! every number. It does what lines on its standard input say, and answers each with one line of JSON.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tsuji::{
    Context, History, Node, Publisher, PublisherOptions, Qos, RouteReport, RouteState,
    Subscription, WaitSet,
};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_platform::clock::{monotonic_ns, wall_ns};

use crate::Allocations;
use crate::account::{Account, Wrong};
use crate::child::ChildPart;
use crate::pace::sleep_until;
use crate::picture::Pictures;
use crate::placement;
use crate::route::Route;

/// What such a process is told at its start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    /// That of the stage.
    pub(super) folder: PathBuf,
    /// By which transport flows go until another is set.
    pub(super) route: Route,
    /// The topic, without `/` at its begin.
    pub(super) topic: String,
    /// Bytes of a picture.
    pub(super) size: usize,
    /// From one picture to the next.
    pub(super) period_us: u64,
    /// What publishers keep, and subscriptions of each of them.
    pub(super) depth: u32,
    /// Publishers of this process.
    pub(super) publishers: u64,
    /// Subscriptions of this process.
    pub(super) subscriptions: u64,
    /// Subscriptions that each publisher has, foreign nodes' among them.
    pub(super) readers: u64,
    /// Publishers that each subscription has.
    pub(super) writers: u64,
}

/// What such a process has seen since it was asked last.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Look {
    /// By publisher.
    pub(super) sent: BTreeMap<String, SendBook>,
    /// Of each subscription.
    pub(super) received: Vec<Reading>,
}

/// What a subscription has seen.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) gid: String,
    /// By publisher.
    pub(super) flows: BTreeMap<String, FlowRead>,
    pub(super) counted: Counted,
}

/// What came of one publisher.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FlowRead {
    /// Number and time, since it was asked last.
    pub(super) arrived: Vec<[u64; 2]>,
    /// The number that is to come.
    pub(super) next: u64,
    pub(super) wrong: Wrong,
}

/// What the counters of subscriptions say.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) lost: u64,
    pub(super) displaced: u64,
    pub(super) duplicates: u64,
    pub(super) invalid: u64,
}

impl Counted {
    /// Both together.
    pub(super) fn and(self, next: Self) -> Self {
        Self {
            lost: self.lost + next.lost,
            displaced: self.displaced + next.displaced,
            duplicates: self.duplicates + next.duplicates,
            invalid: self.invalid + next.invalid,
        }
    }
}

/// What became of a transport that was set.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Settled {
    /// All flows have come to theirs.
    All { asked_ns: u64, changes: Vec<Changed> },
    /// Not in time: the routes, and how they are shown.
    Not { routes: String, found: Vec<String> },
}

/// A flow that has come to another transport. Times are of the monotonic clock.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Changed {
    pub(super) publisher: String,
    pub(super) subscription: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) cut_ns: u64,
    pub(super) opening_us: f64,
    pub(super) settling_us: f64,
    pub(super) held: u64,
}

impl ChildPart for Part {
    const MODE: &'static str = "--member";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        run_part(self)
    }
}

fn run_part(part: Part) -> Result<(), String> {
    let context = part.route.context(&part.folder).build().map_err(super::said)?;
    let node = context.node("member").map_err(super::said)?;
    let publishers = (0..part.publishers).map(|_| publisher(&node, &part));
    let publishers: Vec<_> = publishers.collect::<Result<_, _>>()?;
    let subscriptions = (0..part.subscriptions).map(|_| subscription(&node, &part));
    let subscriptions: Vec<_> = subscriptions.collect::<Result<_, _>>()?;
    super::answer(&json!({ "open": true }));

    let mut input = io::stdin().lock();
    expect(&mut input, "meet")?;
    for publisher in &publishers {
        publisher.wait_for_subscriptions(part.readers as usize, PATIENCE).map_err(super::said)?;
    }
    for subscription in &subscriptions {
        subscription.wait_for_publishers(part.writers as usize, PATIENCE).map_err(super::said)?;
    }
    super::answer(&json!({ "met": true }));

    expect(&mut input, "start")?;
    let stop = Arc::<AtomicBool>::default();
    let mut member = Member {
        part,
        context,
        stop,
        ends: Vec::new(),
        stopped: Vec::new(),
        seen_epochs: BTreeMap::new(),
    };
    for subscription in subscriptions {
        member.receive(subscription)?;
    }
    for publisher in publishers {
        member.send(publisher);
    }
    super::answer(&json!({ "started": true }));
    drop(input);
    super::obey_each(|line| member.obey(line))?;
    // Whatever a thread waits for, nobody wants it any more.
    std::process::exit(0);
}

fn expect(input: &mut impl BufRead, command: &str) -> Result<(), String> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| error.to_string())?;
    if line.trim_end() == command { Ok(()) } else { Err(format!("{command} comes first")) }
}

fn qos(depth: u32) -> Qos {
    Qos { history: History::KeepLast(depth), ..Qos::DEFAULT }
}

fn publisher(node: &Node, part: &Part) -> Result<Publisher<Image>, String> {
    node.create_publisher::<Image>(
        &part.topic,
        PublisherOptions::default()
            .qos(qos(part.depth))
            .max_blocking(PATIENCE)
            .expected_size(part.size as u64),
    )
    .map_err(super::said)
}

fn subscription(node: &Node, part: &Part) -> Result<Subscription<Image>, String> {
    // What all publishers send in a second waits in it, and not a second of one of them.
    let writers = u32::try_from(part.writers.max(1)).unwrap_or(u32::MAX);
    let qos = qos(part.depth.saturating_mul(writers));
    node.create_polled_subscription::<Image>(&part.topic, qos).map_err(super::said)
}

/// How long a publisher waits for room, and both ends for each other.
const PATIENCE: Duration = Duration::from_secs(20);

struct Member {
    part: Part,
    context: Context,
    stop: Arc<AtomicBool>,
    ends: Vec<End>,
    /// Those that send nothing any more.
    stopped: Vec<Publisher<Image>>,
    /// The last change of each flow that was told.
    seen_epochs: BTreeMap<(String, String), u32>,
}

enum End {
    Sending {
        gid: String,
        book: Arc<Mutex<SendBook>>,
        /// Until it has ended.
        thread: Option<JoinHandle<Publisher<Image>>>,
    },
    Receiving {
        subscription: Arc<Subscription<Image>>,
        book: Arc<Mutex<ReceiveBook>>,
    },
}

/// What a publisher has done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SendBook {
    /// Number, begin and end of publish, since it was asked last.
    pub(super) sent: Vec<[u64; 3]>,
    pub(super) count: u64,
    pub(super) refused: u64,
    pub(super) last_refusal: Option<String>,
}

/// What a subscription has seen, by publisher.
#[derive(Default)]
struct ReceiveBook {
    flows: BTreeMap<String, Received>,
}

#[derive(Default)]
struct Received {
    account: Account,
    /// Number and time, since it was asked last.
    arrived: Vec<[u64; 2]>,
}

impl Member {
    fn send(&mut self, publisher: Publisher<Image>) {
        let gid = publisher.gid().to_string();
        let book = Arc::<Mutex<SendBook>>::default();
        let thread = thread::spawn({
            let (book, stop) = (Arc::clone(&book), Arc::clone(&self.stop));
            let (size, period_ns) = (self.part.size, self.part.period_us * 1000);
            move || {
                send_all(&publisher, &Pictures::new(size), period_ns, &stop, &book);
                publisher
            }
        });
        self.ends.push(End::Sending { gid, book, thread: Some(thread) });
    }

    fn receive(&mut self, subscription: Subscription<Image>) -> Result<(), String> {
        let subscription = Arc::new(subscription);
        let book = Arc::<Mutex<ReceiveBook>>::default();
        let mut set = WaitSet::new(&self.context).map_err(super::said)?;
        set.add(&subscription).map_err(super::said)?;
        thread::spawn({
            let (subscription, book) = (Arc::clone(&subscription), Arc::clone(&book));
            let pictures = Pictures::new(self.part.size);
            move || {
                placement::receive_here();
                while set.wait(PATIENCE).is_ok() {
                    take_all(&subscription, &pictures, &book);
                }
            }
        });
        self.ends.push(End::Receiving { subscription, book });
        Ok(())
    }

    fn obey(&mut self, line: &str) -> Result<Value, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match &*words {
            ["change", to, flows @ ..] => Ok(json!(self.change(to, flows)?)),
            ["look"] => Ok(json!(self.look())),
            ["stop"] => Ok(json!(self.stop()?)),
            _ => Err(format!("`{line}` is no command")),
        }
    }

    /// Sets the transport of the topic, `-` for that of the policy, and waits until all flows have come to
    /// theirs: as many as `flows` says, each as `publisher's process/subscription's process/transport`.
    fn change(&mut self, to: &str, flows: &[&str]) -> Result<Settled, String> {
        let topic = format!("/{}", self.part.topic);
        let asked_ns = monotonic_ns();
        let set = self.context.set_route(&topic, (to != "-").then_some(to), PATIENCE);
        for setting in set.map_err(super::said)? {
            let pid = setting.process.pid.to_string();
            // Others of the domain are not of this run.
            let is_meant = flows.iter().any(|flow| flow.split('/').any(|it| it == pid));
            if let Some(why) = setting.outcome.err().filter(|_| is_meant) {
                return Err(format!("{pid} refuses: {why}"));
            }
        }
        let end = Instant::now() + SETTLES;
        loop {
            thread::sleep(LOOK);
            let mut routes = self.context.routes(PATIENCE).map_err(super::said)?;
            // The transport to a foreign node is not set.
            routes.retain(|it| it.topic == topic && it.subscription.vendor.is_none());
            let mut found: Vec<String> = routes.iter().map(shown).collect();
            found.sort();
            if found == flows {
                let changes = routes.iter().flat_map(|route| self.changes(route));
                return Ok(Settled::All { asked_ns, changes: changes.collect() });
            }
            if end <= Instant::now() {
                return Ok(Settled::Not { routes: format!("{routes:?}"), found });
            }
        }
    }

    /// The changes of a flow that were not told yet.
    fn changes(&mut self, route: &RouteReport) -> Vec<Changed> {
        let flow = (route.publisher.gid.clone(), route.subscription.gid.clone());
        let seen = self.seen_epochs.entry(flow).or_default();
        let new: Vec<_> = route.changes.iter().filter(|it| *seen < it.epoch).collect();
        *seen = new.last().map_or(*seen, |it| it.epoch);
        let (mono, wall) = (monotonic_ns(), wall_ns());
        let changes = new.iter().filter_map(|change| {
            let ago_ns = u64::try_from(wall - change.wall_ns).unwrap_or(0);
            Some(Changed {
                publisher: route.publisher.gid.clone(),
                subscription: route.subscription.gid.clone(),
                from: change.from.clone()?,
                to: change.to.clone(),
                cut_ns: mono.saturating_sub(ago_ns),
                opening_us: change.opening_us,
                settling_us: change.settling_us,
                held: change.held,
            })
        });
        changes.collect()
    }

    /// What has happened since it was asked last.
    fn look(&self) -> Look {
        let mut look = Look { sent: BTreeMap::new(), received: Vec::new() };
        for end in &self.ends {
            match end {
                End::Sending { gid, book, .. } => {
                    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
                    look.sent.insert(gid.clone(), book.clone());
                    book.sent.clear();
                }
                End::Receiving { subscription, book } => {
                    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
                    let read = |(gid, flow): (&String, &mut Received)| {
                        let arrived = std::mem::take(&mut flow.arrived);
                        let (next, wrong) = (flow.account.next(), flow.account.wrong());
                        (gid.clone(), FlowRead { arrived, next, wrong })
                    };
                    let flows = book.flows.iter_mut().map(read).collect();
                    drop(book);
                    let it = subscription.counters();
                    let counted = Counted {
                        lost: it.lost,
                        displaced: it.displaced,
                        duplicates: it.duplicates,
                        invalid: it.invalid,
                    };
                    let gid = subscription.gid().to_string();
                    look.received.push(Reading { gid, flows, counted });
                }
            }
        }
        look
    }

    /// Sends nothing more. Answers how many each publisher has sent.
    fn stop(&mut self) -> Result<BTreeMap<String, u64>, String> {
        self.stop.store(true, Ordering::Release);
        let mut counts = BTreeMap::new();
        for end in &mut self.ends {
            let End::Sending { gid, book, thread } = end else { continue };
            if let Some(thread) = thread.take() {
                let publisher =
                    thread.join().map_err(|_| "a sending thread panicked".to_owned())?;
                self.stopped.push(publisher);
            }
            let count = book.lock().unwrap_or_else(PoisonError::into_inner).count;
            counts.insert(gid.clone(), count);
        }
        Ok(counts)
    }
}

/// How a flow is told to the one who set its transport, when it has come to rest.
fn shown(route: &RouteReport) -> String {
    let is_at_rest = route.state == RouteState::Active
        && route.handover_to.is_none()
        && route.changes.iter().all(|it| it.is_settled);
    let transport = route.transport.as_deref().filter(|_| is_at_rest).unwrap_or("?");
    format!("{}/{}/{transport}", route.publisher.pid, route.subscription.pid)
}

/// How often is looked whether all is settled. To look costs the processes that are measured.
const LOOK: Duration = Duration::from_millis(4);

/// A change that has not settled after so long never will.
const SETTLES: Duration = Duration::from_secs(20);

fn send_all(
    publisher: &Publisher<Image>,
    pictures: &Pictures,
    period_ns: u64,
    stop: &AtomicBool,
    book: &Mutex<SendBook>,
) {
    let blank =
        || Image { encoding: "bgr8".into(), data: vec![0; pictures.size()], ..Image::default() };
    let mut frames: Vec<Arc<Image>> = (0..FRAMES).map(|_| Arc::new(blank())).collect();
    let (mut number, mut due_ns) = (0, monotonic_ns());
    while !stop.load(Ordering::Acquire) {
        frames.rotate_left(1);
        let frame = &mut frames[0];
        if Arc::get_mut(frame).is_none() {
            *frame = Arc::new(blank());
        }
        if let Some(frame) = Arc::get_mut(frame) {
            pictures.draw(number, &mut frame.data);
        }
        due_ns = (due_ns + period_ns).max(monotonic_ns());
        sleep_until(due_ns);
        let at = monotonic_ns();
        let published = publisher.publish(Arc::clone(frame));
        let done = monotonic_ns();
        let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
        match published {
            Ok(()) => {
                book.sent.push([number, at, done]);
                number += 1;
                book.count = number;
            }
            Err(error) => {
                book.refused += 1;
                book.last_refusal = Some(error.to_string());
            }
        }
    }
}

/// Frames in rotation; one is free again when all have dropped it.
const FRAMES: usize = 4;

fn take_all(subscription: &Subscription<Image>, pictures: &Pictures, book: &Mutex<ReceiveBook>) {
    while let Ok(Some(picture)) = subscription.take() {
        let at = monotonic_ns();
        let publisher = picture.info().publisher.to_string();
        let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
        let flow = book.flows.entry(publisher).or_default();
        if let Some(number) = flow.account.enter(pictures, picture.view().data) {
            flow.arrived.push([number, at]);
        }
    }
}
