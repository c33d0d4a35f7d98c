//! What a process takes: memory, threads, descriptors, the time to its first sample, and wake-ups
//! when nothing happens.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tsuji::{Executor, Node, Publisher, Qos, Subscription};
use tsuji_interfaces::geometry_msgs::msg::Inertia;
use tsuji_platform::clock::{monotonic_ns, process_cpu_ns};

use crate::Allocations;
use crate::budgets::plain::{ForeignNode, until};
use crate::budgets::{Parts, Run, case};
use crate::child::{ChildPart, answer, said};
use crate::crew::{Child, Stage, Stop};
use crate::route::{self, BY_CYCLONE, BY_FAST, Route};
use crate::statistics::{Bar, over_clusters};
use crate::transport::Foreign;

/// Memory, threads and descriptors.
pub(crate) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let intra = Group::start(run.stage, Scope::Intra, 1)?;
    let what = "footprint-inproc";
    figures(run, what, &intra, [Some(6.0), Some(2.0), None])?;
    drop(intra);
    let one = Group::start(run.stage, Scope::Shm, 1)?;
    figures(run, "footprint-shm-1", &one, [Some(10.0), Some(4.0), None])?;
    drop(one);
    let what = "footprint-shm-cyclonedds";
    let measured = footprint_of_both(run, what);
    run.part(what, measured)?;
    let many = Group::start(run.stage, Scope::Shm, TOPICS)?;
    let what = format!("footprint-shm-{TOPICS}");
    figures(run, &what, &many, [Some(60.0), None, Some(1000.0)])
}

/// With flows by shared memory and by both DDS, where memory or latency is preferred.
pub(crate) fn of_both_engines(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    for (what, megabytes) in [("memory", 40.0), ("latency", 110.0)] {
        let name = format!("footprint-prefer-{what}");
        let measured = footprint_preferring(run, &name, Route::Preferring(what), megabytes);
        run.part(&name, measured)?;
    }
    Ok(())
}

fn footprint_preferring(
    run: &mut Run<'_, '_>,
    name: &str,
    route: Route,
    megabytes: f64,
) -> Result<(), Stop> {
    let context = route.context(run.stage.folder()).isolated().build().map_err(said)?;
    let mut offered = context.transports().into_iter();
    let fast = offered.find(|it| it.name == "fastdds");
    drop(context);
    let fast = fast.ok_or_else(|| "fastdds is not in this build".to_owned())?;
    match fast.trouble {
        Some(why) if !fast.is_installed => {
            run.report.absent(run.screen, name, &why);
            return Ok(());
        }
        Some(why) => return Err(why.into()),
        None => {}
    }
    let all = Group::start(run.stage, Scope::BothEngines(route), 1)?;
    figures(run, name, &all, [Some(megabytes), Some(22.0), None])
}

/// With one topic by shared memory and one by Cyclone DDS.
fn footprint_of_both(run: &mut Run<'_, '_>, what: &str) -> Result<(), Stop> {
    let both = Group::start(run.stage, Scope::ShmAndCyclone, 1)?;
    figures(run, what, &both, [Some(16.0), Some(11.0), None])
}

/// Topics of a process with many.
const TOPICS: usize = 200;

/// Resident MB, threads and descriptors, each with its bar.
fn figures(
    run: &mut Run<'_, '_>,
    what: &str,
    group: &Group,
    bars: [Option<f64>; 3],
) -> Result<(), Stop> {
    let id = group.children[0].id();
    let status = Status::of(id)?;
    let names = ["RSS", "threads", "descriptors"];
    let units = ["MB", "", ""];
    let resident = status.kib("VmRSS:") as f64 * 1024.0 / 1e6;
    // One of the threads is the laboratory's own.
    let threads = status.kib("Threads:").saturating_sub(1) as f64;
    let descriptors = fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count) as f64;
    let of = format!(
        "of it {:.1} MB of files, {:.1} MB shared",
        status.kib("RssFile:") as f64 * 1024.0 / 1e6,
        status.kib("RssShmem:") as f64 * 1024.0 / 1e6
    );
    let of = format!("{of}, address space {:.0} MB", status.kib("VmSize:") as f64 * 1024.0 / 1e6);
    for (at, figure) in [resident, threads, descriptors].into_iter().enumerate() {
        let bar = bars[at].map(Bar::AtMost);
        let of = if at == 0 { of.clone() } else { String::new() };
        run.judge(format!("{what} {}", names[at]), of, figure, units[at], bar);
    }
    Ok(())
}

/// From the start of two processes to the first sample, beside what killed ones left.
pub(crate) fn startup(_: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    let measure = |run: &mut Run<'_, '_>, _| {
        let (mut clean, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            clean.push(first_sample_ms(run.stage, Route::Alone)?);
            let group = Group::start(run.stage, Scope::Shm, TOPICS)?;
            group.children.into_iter().for_each(Child::kill);
            beside.push(first_sample_ms(run.stage, Route::Alone)?);
        }
        Ok((clean, beside))
    };
    let say = |run: &mut Run<'_, '_>, took_ms: Vec<(Vec<f64>, Vec<f64>)>| {
        let (clean, beside): (Vec<_>, Vec<_>) = took_ms.into_iter().unzip();
        let clean = over_clusters(&clean, 0.5);
        run.judge("startup, nothing left over", "", clean, "ms", None);
        let bar = Some(Bar::AtMost(100.0));
        let what = format!("startup beside {TOPICS} leftovers");
        run.judge(what, "both processes killed", over_clusters(&beside, 0.5), "ms", bar);
    };
    Ok(vec![case("startup", measure, say)])
}

/// From the start of the later process to the first sample by Cyclone DDS.
pub(crate) fn startup_by_cyclone(_: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    const WHAT: &str = "startup-cyclonedds";
    let measure = |run: &mut Run<'_, '_>, _| {
        (0..STARTS).map(|_| first_sample_ms(run.stage, Route::Rtps)).collect()
    };
    let say = |run: &mut Run<'_, '_>, took_ms: Vec<Vec<f64>>| {
        let bar = Some(Bar::AtMost(300.0));
        run.judge(WHAT, "the publisher stood there", over_clusters(&took_ms, 0.5), "ms", bar);
    };
    Ok(vec![case(WHAT, measure, say)])
}

/// Starts of a round: one after the other they meet the machine alike, so rounds are drawn whole.
const STARTS: usize = 2;

/// By the transport that tsuji chooses both processes start together; by Cyclone DDS the receiver starts
/// when the publisher is there.
fn first_sample_ms(stage: &Stage, route: Route) -> Result<f64, Stop> {
    let by_cyclonedds = route == Route::Rtps;
    let start = |sends: bool| {
        let folder = stage.folder().to_owned();
        Child::start(stage, &First { folder, sends, by_cyclonedds })
    };
    let mut begin = monotonic_ns();
    let (mut receiver, mut sender);
    if by_cyclonedds {
        sender = start(true)?;
        sender.answer()?;
        begin = monotonic_ns();
        receiver = start(false)?;
    } else {
        receiver = start(false)?;
        sender = start(true)?;
        sender.answer()?;
    }
    let arrived = receiver.answer()?["at"].as_u64().ok_or_else(|| "no time".to_owned())?;
    let sent = sender.answer()?;
    if by_cyclonedds && !carries(&sent, &["cyclonedds"]) {
        return Err(format!("it went by {}", sent["transports"]).into());
    }
    Ok(arrived.saturating_sub(begin) as f64 / 1e6)
}

/// Wake-ups of a process that has nothing to do.
pub(crate) fn idle(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let group = Group::start(run.stage, Scope::Shm, TOPICS)?;
    let ids: Vec<u32> = group.children.iter().map(Child::id).collect();
    let wait = if run.options.quick { IDLE_QUICK } else { IDLE };
    let woken = woken(run, "idle", &ids, wait)?;
    let what = format!("wake-ups in {} s", wait.as_secs());
    let of = format!("{TOPICS} publishers and {TOPICS} subscriptions");
    run.judge(what, of, woken, "", Some(Bar::AtMost(0.0)));
    Ok(())
}

/// How often the threads of a process went to sleep or were put aside while nothing happened for so long; the most of `ids`.
pub(crate) fn woken(
    run: &mut Run<'_, '_>,
    what: &str,
    ids: &[u32],
    wait: Duration,
) -> Result<u64, Stop> {
    thread::sleep(SETTLED);
    let all = || -> Result<Vec<u64>, Stop> {
        ids.iter().map(|id| switches(*id, &[VOLUNTARY, INVOLUNTARY])).collect()
    };
    let before = all()?;
    stand_by(run, what, wait)?;
    let woken = all()?.into_iter().zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(woken.max().unwrap_or_default())
}

/// Processor time of a process with few endpoints that foreign nodes see, when nothing happens.
pub(crate) fn idle_beside_plain(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let what = "idle-rtps";
    let mut group = Group::start(run.stage, Scope::ShmAndRtps, FEW)?;
    let folder = run.stage.folder();
    let mut plain = ForeignNode::start(
        run.stage,
        &Foreign {
            folder: folder.to_owned(),
            type_name: "geometry_msgs::msg::dds_::Inertia_".to_owned(),
            reads: topic(folder, "there", 0),
            writes: Some(topic(folder, "back", 0)),
            size: 0,
            depth: 10,
        },
    )?;
    plain.wait_for_reader()?;
    let child = &mut group.children[0];
    let met = until(|| {
        let seen = child.ask("transports")?;
        Ok((carries(&seen, &["cyclonedds", "shm"]), seen))
    })?;
    if !carries(&met, &["cyclonedds", "shm"]) {
        return Err(format!("its transports are {}", met["transports"]).into());
    }
    stand_by(run, what, MET)?;
    let wait = if run.options.quick { IDLE_QUICK } else { IDLE_LONG };
    let before = usages(&mut group)?;
    let begin = Instant::now();
    stand_by(run, what, wait)?;
    let after = usages(&mut group)?;
    let seconds = begin.elapsed().as_secs_f64();
    let (mut cpu_percent, mut woken_hz) = (0.0_f64, 0.0_f64);
    for (before, after) in before.iter().zip(after) {
        cpu_percent = cpu_percent.max((after.cpu_ns - before.cpu_ns) as f64 / 1e7 / seconds);
        woken_hz = woken_hz.max((after.woken - before.woken) as f64 / seconds);
    }
    let of = format!("{FEW} publishers and {FEW} subscriptions, seen by a foreign node");
    let bar = Some(Bar::AtMost(0.5));
    run.judge(format!("{what} CPU"), of, cpu_percent, "% of a core", bar);
    run.judge(format!("{what} wake-ups"), "of all threads", woken_hz, "/s", None);
    Ok(())
}

/// Publishers, and subscriptions, of a node as they mostly are.
const FEW: usize = 10;

/// For those who have met to have told each other all.
const MET: Duration = Duration::from_secs(4);
const IDLE_LONG: Duration = Duration::from_secs(20);

/// What a process has used up to now.
struct Usage {
    cpu_ns: u64,
    /// How often its threads have gone to sleep.
    woken: u64,
}

fn usages(group: &mut Group) -> Result<Vec<Usage>, Stop> {
    let usage = |child: &mut Child| {
        let cpu_ns = child.ask("cpu")?["cpu_ns"].as_u64().unwrap_or(0);
        Ok(Usage { cpu_ns, woken: switches(child.id(), &[VOLUNTARY])? })
    };
    group.children.iter_mut().map(usage).collect()
}

/// Waits, unless the user wants it to end.
fn stand_by(run: &mut Run<'_, '_>, what: &str, wait: Duration) -> Result<(), Stop> {
    let begin = Instant::now();
    while begin.elapsed() < wait {
        if run.stage.interrupt.is_set() {
            return Err(Stop::Interrupted);
        }
        run.screen.progress(&format!("{what}: {} s", begin.elapsed().as_secs()));
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// For what follows the last sample, such as acknowledgements, to have happened.
const SETTLED: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(10);
const IDLE_QUICK: Duration = Duration::from_secs(1);

const VOLUNTARY: &str = "voluntary_ctxt_switches:";
const INVOLUNTARY: &str = "nonvoluntary_ctxt_switches:";

/// How often the threads of a process have gone to sleep or been put aside, as `kinds` name it.
fn switches(id: u32, kinds: &[&str]) -> Result<u64, Stop> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).map_err(|error| error.to_string())?;
    let mut sum = 0;
    for task in tasks.flatten() {
        let status = Status::read(&task.path().join("status"))?;
        sum += kinds.iter().map(|kind| status.kib(kind)).sum::<u64>();
    }
    Ok(sum)
}

/// What the system says of a process.
pub(crate) struct Status(String);

impl Status {
    /// Of a process.
    pub(crate) fn of(id: u32) -> Result<Self, Stop> {
        Self::read(Path::new(&format!("/proc/{id}/status")))
    }

    fn read(path: &Path) -> Result<Self, Stop> {
        let text = fs::read_to_string(path);
        Ok(Self(text.map_err(|error| format!("{}: {error}", path.display()))?))
    }

    /// The number behind `field`, in KiB where it is an amount of memory.
    pub(crate) fn kib(&self, field: &str) -> u64 {
        let line = self.0.lines().find_map(|line| line.strip_prefix(field));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Intra,
    Shm,
    ShmAndCyclone,
    /// By shared memory, and foreign nodes are spoken to.
    ShmAndRtps,
    /// By shared memory and by both DDS, and foreign nodes are spoken to.
    BothEngines(Route),
}

/// The processes of a footprint, after each topic has brought samples.
struct Group {
    children: Vec<Child>,
}

impl Group {
    fn start(stage: &Stage, scope: Scope, topics: usize) -> Result<Self, Stop> {
        let (route, engines): (_, &[&str]) = match scope {
            Scope::Intra | Scope::Shm => (Route::Alone, &[]),
            Scope::ShmAndRtps => (Route::Rtps, &[]),
            Scope::ShmAndCyclone => (Route::Rtps, &[BY_CYCLONE]),
            Scope::BothEngines(route) => (route, &[BY_CYCLONE, BY_FAST]),
        };
        let start = |sends: &str, receives: &str| {
            let stand = Stand {
                folder: stage.folder().to_owned(),
                route,
                topics,
                sends: sends.to_owned(),
                receives: receives.to_owned(),
                also_by: engines.iter().map(|it| (*it).to_owned()).collect(),
            };
            Child::start(stage, &stand)
        };
        let mut children = match scope {
            Scope::Intra => vec![start("here", "here")?],
            Scope::Shm | Scope::ShmAndCyclone | Scope::ShmAndRtps | Scope::BothEngines(_) => {
                vec![start("there", "back")?, start("back", "there")?]
            }
        };
        let expected: &[&str] = match scope {
            Scope::Intra => &["inproc"],
            Scope::Shm | Scope::ShmAndRtps => &["shm"],
            Scope::ShmAndCyclone => &["cyclonedds", "shm"],
            Scope::BothEngines(_) => &["cyclonedds", "fastdds", "shm"],
        };
        for child in &mut children {
            let stands = child.answer()?;
            if !carries(&stands, expected) {
                return Err(format!("its transports are {}", stands["transports"]).into());
            }
        }
        Ok(Self { children })
    }
}

/// A process with some topics, which sends and receives on each of them and then only stands there.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stand {
    folder: PathBuf,
    route: Route,
    topics: usize,
    /// How the topics that it sends on begin, and those that it receives on.
    sends: String,
    receives: String,
    /// How the topics begin that it has besides, one each way.
    also_by: Vec<String>,
}

impl ChildPart for Stand {
    const MODE: &'static str = "--stand";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        standing(self)
    }
}

fn standing(stand: Stand) -> Result<(), String> {
    let Stand { folder, route, topics, sends, receives, also_by } = stand;
    let context = route.context(&folder).build().map_err(said)?;
    let node = context.node(&format!("sends_{sends}")).map_err(said)?;
    let arrived = Arc::new(AtomicUsize::new(0));
    let mut kept: Vec<(Publisher<Inertia>, Subscription<Inertia>)> = Vec::new();
    let mut names: Vec<(String, String)> =
        (0..topics).map(|at| (topic(&folder, &sends, at), topic(&folder, &receives, at))).collect();
    for begin in also_by {
        let also = |it: &str| route::of_this_run(&folder, &format!("{begin}{it}"));
        names.push((also(&sends), also(&receives)));
    }
    for (sends, receives) in &names {
        let arrived = Arc::clone(&arrived);
        let each = move |_| {
            arrived.fetch_add(1, Ordering::Relaxed);
        };
        kept.push((
            node.create_publisher::<Inertia>(sends, Qos::DEFAULT).map_err(said)?,
            node.create_subscription::<Inertia>(receives, Qos::DEFAULT, each).map_err(said)?,
        ));
    }
    for (publisher, subscription) in &kept {
        publisher.wait_for_subscriptions(1, PATIENCE).map_err(said)?;
        subscription.wait_for_publishers(1, PATIENCE).map_err(said)?;
    }
    for _ in 0..SAMPLES {
        for (publisher, _) in &kept {
            publisher.publish(Inertia::default()).map_err(said)?;
        }
    }
    let mut executor = Executor::new(&context).map_err(said)?;
    executor.add(&node).map_err(said)?;
    let expected = SAMPLES * names.len();
    executor.spin_until(|| expected <= arrived.load(Ordering::Relaxed)).map_err(said)?;
    answer(&json!({ "transports": transports(&node)? }));
    let ending = context.clone();
    thread::spawn(move || {
        let mut line = String::new();
        let mut input = io::stdin().lock();
        while let Ok(1..) = input.read_line(&mut line) {
            let transports =
                if line.trim_end() == "transports" { transports(&node).ok() } else { None };
            answer(&json!({ "transports": transports, "cpu_ns": process_cpu_ns() }));
            line.clear();
        }
        ending.shutdown();
    });
    executor.spin().map_err(said)
}

/// Samples on each topic: fewer than a subscription keeps.
const SAMPLES: usize = 5;

const PATIENCE: Duration = Duration::from_secs(30);

/// A process that sends or receives one sample and says when.
#[derive(Serialize, Deserialize)]
pub(crate) struct First {
    folder: PathBuf,
    sends: bool,
    by_cyclonedds: bool,
}

impl ChildPart for First {
    const MODE: &'static str = "--first";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        one_sample(self)
    }
}

fn one_sample(First { folder, sends, by_cyclonedds }: First) -> Result<(), String> {
    let route = if by_cyclonedds { Route::Rtps } else { Route::Alone };
    let topic = if by_cyclonedds { network_topic(&folder, "first") } else { "first".to_owned() };
    let context = route.context(&folder).build().map_err(said)?;
    if sends {
        let node = context.node("first_sender").map_err(said)?;
        let publisher = node.create_publisher::<Inertia>(&topic, Qos::DEFAULT).map_err(said)?;
        answer(&json!({ "stands": true }));
        publisher.wait_for_subscriptions(1, PATIENCE).map_err(said)?;
        publisher.publish(Inertia::default()).map_err(said)?;
        answer(&json!({ "transports": transports(&node)? }));
        // Until the receiver has it and the parent says so.
        let _ = io::stdin().lock().read_line(&mut String::new());
        return Ok(());
    }
    let node = context.node("first_receiver").map_err(said)?;
    let arrived = Arc::new(AtomicUsize::new(0));
    let _subscription = node
        .create_subscription::<Inertia>(&topic, Qos::DEFAULT, {
            let arrived = Arc::clone(&arrived);
            move |_| {
                answer(&json!({ "at": monotonic_ns() }));
                arrived.store(1, Ordering::Relaxed);
            }
        })
        .map_err(said)?;
    let mut executor = Executor::new(&context).map_err(said)?;
    executor.add(&node).map_err(said)?;
    executor.spin_until(|| arrived.load(Ordering::Relaxed) != 0).map_err(said)?;
    // The sender still looks which transport it went.
    let _ = io::stdin().lock().read_line(&mut String::new());
    Ok(())
}

/// One of the topics of a process with some.
fn topic(folder: &Path, name: &str, at: usize) -> String {
    route::of_this_run(folder, &format!("{name}_{at}"))
}

/// A topic that the policy sends by Cyclone DDS.
fn network_topic(folder: &Path, name: &str) -> String {
    route::of_this_run(folder, &format!("{BY_CYCLONE}{name}"))
}

/// What carries the flows of the domain.
fn transports(node: &Node) -> Result<BTreeSet<String>, String> {
    let routes = node.context().routes(Duration::from_secs(2)).map_err(said)?;
    Ok(routes.into_iter().filter_map(|it| it.transport).collect())
}

fn carries(answer: &Value, expected: &[&str]) -> bool {
    answer["transports"] == json!(expected)
}
