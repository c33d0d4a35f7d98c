//! Changes of the transport under load: who takes part, what is set, and what is said of it.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use tsuji_platform::clock::monotonic_ns;

use super::member::{Changed, Counted, Look, Part, Reading, Settled};
use super::timing::{Change, FlowId, Timing};
use crate::account::Wrong;
use crate::arguments::PICTURE_BYTES;
use crate::budgets::{ForeignNode, Part as InTurn, Parts, Run, until};
use crate::crew::{Child, Stop};
use crate::placement::Place;
use crate::rounds::{InRounds, Round};
use crate::route::{self, Route, TsujiTransport};
use crate::statistics::{Bar, quantile, sorted};
use crate::transport::{Foreign, PICTURE_TYPE, absence};

/// Who sends to whom, and what is set.
pub(super) struct Scenario {
    name: String,
    members: &'static [Workload],
    /// Set one after the other, and again from the first on.
    steps: Vec<Step>,
    /// A foreign node reads too.
    has_plain: bool,
}

/// A process.
struct Workload {
    route: Route,
    publishers: u64,
    subscriptions: u64,
}

/// What is set, and by which transports all flows go then.
struct Step {
    /// Nothing: what the policy says.
    set: Option<&'static str>,
    /// Flows whose two ends are in one process.
    inside: &'static str,
    /// Other flows, by the process of the publisher.
    between: Vec<&'static str>,
}

impl Step {
    /// One flow between two processes.
    fn to(route: &'static str) -> Self {
        Self { set: Some(route), inside: "", between: vec![route] }
    }

    /// One flow inside a process.
    fn inside(route: &'static str) -> Self {
        Self { set: Some(route), inside: route, between: Vec::new() }
    }
}

const SENDS: Workload = Workload { route: Route::Settable, publishers: 1, subscriptions: 0 };
const RECEIVES: Workload = Workload { route: Route::Settable, publishers: 0, subscriptions: 1 };

/// A publisher and a subscription in two processes, by shared memory and by cyclonedds.
pub(super) fn processes() -> Scenario {
    let steps = ["cyclonedds", "shm"].map(Step::to).into();
    Scenario { name: "processes".to_owned(), members: &[SENDS, RECEIVES], steps, has_plain: false }
}

/// The same in one process, by reference and by shared memory.
pub(super) fn inside() -> Scenario {
    let steps = ["shm", "inproc"].map(Step::inside).into();
    let members = &[Workload { subscriptions: 1, ..SENDS }];
    Scenario { name: "inside".to_owned(), members, steps, has_plain: false }
}

/// Two publishers and three subscriptions, one of these in the process of a publisher. The policies of
/// the publishers differ, so that where none is set one of them goes by shared memory to the same
/// subscriptions to which the other goes by cyclonedds, and all three transports are in use at once.
pub(super) fn many() -> Scenario {
    const MEMBERS: &[Workload] = &[
        Workload { subscriptions: 1, ..SENDS },
        Workload { route: Route::SettableRtps, ..SENDS },
        RECEIVES,
        RECEIVES,
    ];
    let step =
        |set, inside, between: [&'static str; 2]| Step { set, inside, between: between.into() };
    let steps = vec![
        step(Some("shm"), "shm", ["shm", "shm"]),
        step(Some("cyclonedds"), "inproc", ["cyclonedds", "cyclonedds"]),
        step(None, "inproc", ["shm", "cyclonedds"]),
        step(Some("cyclonedds"), "inproc", ["cyclonedds", "cyclonedds"]),
        step(Some("inproc"), "inproc", ["shm", "cyclonedds"]),
    ];
    Scenario { name: "many".to_owned(), members: MEMBERS, steps, has_plain: false }
}

/// Two processes, and a foreign node that reads the same topic.
pub(super) fn plain() -> Scenario {
    let members =
        &[Workload { route: Route::Rtps, ..SENDS }, Workload { route: Route::Rtps, ..RECEIVES }];
    Scenario { name: "plain".to_owned(), members, has_plain: true, ..processes() }
}

/// A publisher and a subscription in two processes, by each two of the transports between processes that are here and asked for.
/// What fails with one pair is told, and the others follow.
pub(super) fn pairs(run: &mut Run<'_, '_>, load: Load) -> Result<Parts, Stop> {
    let (here, absent): (Vec<_>, Vec<_>) =
        asked(&run.options.transports).into_iter().partition(|it| absence(*it).is_none());
    for via in absent {
        let what = format!("pairs-{} with {}", load.name, via.word());
        run.report.absent(run.screen, &what, &absence(via).unwrap_or_default());
    }
    let mut parts = Parts::new();
    for (at, one) in here.iter().enumerate() {
        for other in &here[at + 1..] {
            let (one, other) = (one.word(), other.word());
            let (name, steps) = (format!("{one}-{other}"), [other, one].map(Step::to).into());
            parts.push(Box::new(Show::new(Scenario { name, steps, ..processes() }, load)));
        }
    }
    Ok(parts)
}

/// The transports between processes that `names` means; all if it is empty.
fn asked(names: &[String]) -> Vec<TsujiTransport> {
    let is_asked =
        |it: &TsujiTransport| names.is_empty() || names.iter().any(|name| name == it.word());
    TsujiTransport::ALL.into_iter().filter(is_asked).collect()
}

/// An error says which of these names cannot be one of a pair, and what is allowed.
pub(super) fn check_transports(names: &[String]) -> Result<(), String> {
    let known = TsujiTransport::ALL.map(TsujiTransport::word);
    if let Some(name) = names.iter().find(|it| !known.contains(&it.as_str())) {
        return Err(format!("--transports {name}: allowed are {}", known.join(", ")));
    }
    if asked(names).len() < 2 {
        return Err(format!("--transports {}: allowed are two or more", names.join(",")));
    }
    Ok(())
}

/// What is sent.
#[derive(Clone, Copy)]
pub(super) struct Load {
    name: &'static str,
    size: usize,
    period_us: u64,
    /// What is kept of a publisher: a second.
    depth: u32,
    /// From when all has settled until the transport is set again.
    rest: Duration,
    /// How long now and then nothing is changed, after [`CALM`].
    peace: Duration,
}

impl Load {
    /// How long a transport carries until all that is kept on it is there. Cyclone DDS asks for acknowledgements
    /// only where a writer pauses, and until then keeps the depth: on the heap, or in shared memory where
    /// that lent it. So the heap and the shared memory have their largest size after this.
    fn filling(&self) -> Duration {
        Duration::from_micros(self.period_us * u64::from(self.depth)) * 3 / 2
    }
}

/// 64 bytes at 1 kHz.
pub(super) const SMALL: Load = Load {
    name: "64",
    size: 64,
    period_us: 1000,
    depth: 1000,
    rest: Duration::from_millis(20),
    peace: Duration::from_millis(150),
};

/// A picture of 1024 × 768 in three colours at 30 Hz.
pub(super) const PICTURE: Load = Load {
    name: "picture",
    size: PICTURE_BYTES,
    period_us: 33_333,
    depth: 30,
    rest: Duration::from_millis(200),
    peace: Duration::from_millis(600),
};

/// A scenario and a load, and what was seen of it so far.
pub(super) struct Show {
    scenario: Scenario,
    load: Load,
    seen: Option<Trial>,
}

impl Show {
    pub(super) fn new(scenario: Scenario, load: Load) -> Self {
        Self { scenario, load, seen: None }
    }
}

/// A start has so many handovers at least, so that it meets each of its transports in peace.
const HANDOVERS_OF_A_START: u64 = 22;
const STARTS_MAX: usize = 5;

/// The starts of a case: the first has half of all handovers, where memory is watched for long; the others share the rest.
pub(super) fn starts(handovers: u64) -> impl Iterator<Item = Round> {
    let others = handovers / 2 / HANDOVERS_OF_A_START;
    Round::each(STARTS_MAX, 1 + others)
}

/// How many of `handovers` are of that start.
fn part(round: Round, handovers: u64) -> u64 {
    match (round.number, round.all as u64) {
        (_, 1) => handovers,
        (0, _) => handovers.div_ceil(2),
        (_, all) => (handovers / 2).div_ceil(all - 1),
    }
}

impl InRounds for Show {
    fn name(&self) -> String {
        format!("{}-{}", self.scenario.name, self.load.name)
    }

    /// Changes the transport as often as is asked for, or as there is time.
    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        let what = self.name();
        let all = part(round, run.options.handovers);
        let mut trial = Trial::start(run, &self.scenario, self.load, &what, round)?;
        let ended = trial.change_all(run, &self.scenario, self.load, &what, all, round.all);
        let stopped = match &ended {
            Err(Stop::Interrupted) => Ok(()),
            _ => trial.finish(),
        };
        trial.leave();
        match &mut self.seen {
            None => self.seen = Some(trial),
            Some(seen) => seen.append(trial),
        }
        ended.and(stopped)
    }
}

impl InTurn for Show {
    fn tell(&mut self, run: &mut Run<'_, '_>) {
        let what = self.name();
        if let Some(seen) = &mut self.seen {
            seen.judge(run, self.load, &what);
        }
    }
}

/// A scenario that runs.
struct Trial {
    children: Vec<Child>,
    plain: Option<ForeignNode>,
    /// Begun and settled changes of single flows.
    changes: u64,
    /// Times that the transport was set.
    set: u64,
    timing: Timing,
    /// How long each took to its cut and from there until it settled, µs, by where from and where to.
    took_us: BTreeMap<(String, String), [Vec<f64>; 2]>,
    publishing_us: f64,
    held: u64,
    wrong: Wrong,
    /// Samples that were sent after the last that came.
    missing: u64,
    refused: u64,
    refusal: Option<String>,
    sent: BTreeMap<String, u64>,
    /// How many each subscription had of each publisher.
    next: BTreeMap<(String, String), u64>,
    counted: Counted,
    /// What all processes of the first start hold, by handovers, at the end of each peace.
    memory_kib: Vec<(u64, u64)>,
    /// How many processes that are, and how many handovers there were.
    watched: (usize, u64),
    plain_missing: u64,
    /// What was wrong at the foreign node.
    plain_wrong: Option<Wrong>,
}

impl Trial {
    fn start(
        run: &mut Run<'_, '_>,
        scenario: &Scenario,
        load: Load,
        what: &str,
        round: Round,
    ) -> Result<Self, Stop> {
        let folder = run.stage.folder().to_owned();
        let topic = format!("{what}_{}", round.number).replace('-', "_");
        let topic = route::of_this_run(&folder, &topic);
        let sum = |of: fn(&Workload) -> u64| scenario.members.iter().map(of).sum::<u64>();
        let plain = Foreign {
            folder: folder.clone(),
            type_name: PICTURE_TYPE.to_owned(),
            reads: topic.clone(),
            writes: None,
            size: load.size,
            depth: load.depth,
        };
        let plain =
            scenario.has_plain.then(|| ForeignNode::start(run.stage, &plain)).transpose()?;
        let mut children = Vec::new();
        let mut receiving = 0;
        for workload in scenario.members {
            let place = match (workload.publishers, workload.subscriptions) {
                (0, _) => Place::Receiver(receiving),
                (_, 0) => Place::Sender,
                _ => Place::Both,
            };
            receiving += usize::from(workload.publishers == 0);
            let part = Part {
                folder: folder.clone(),
                route: workload.route,
                topic: topic.clone(),
                size: load.size,
                period_us: load.period_us,
                depth: load.depth,
                publishers: workload.publishers,
                subscriptions: workload.subscriptions,
                readers: sum(|it| it.subscriptions) + u64::from(scenario.has_plain),
                writers: sum(|it| it.publishers),
            };
            children.push(Child::start(&run.stage.at(place), &part)?);
        }
        for child in &mut children {
            child.answer()?;
        }
        let mut trial = Self {
            children,
            plain,
            changes: 0,
            set: 0,
            timing: Timing::new(load.period_us * 1000),
            took_us: BTreeMap::new(),
            publishing_us: 0.0,
            held: 0,
            wrong: Wrong::default(),
            missing: 0,
            refused: 0,
            refusal: None,
            sent: BTreeMap::new(),
            next: BTreeMap::new(),
            counted: Counted::default(),
            memory_kib: Vec::new(),
            watched: (scenario.members.len(), 0),
            plain_missing: 0,
            plain_wrong: None,
        };
        trial.tell_all("meet")?;
        // Subscriptions first: what a publisher sends before they look waits in them.
        for child in trial.children.iter_mut().rev() {
            child.ask("start")?;
        }
        // All transports are opened once, and memory is taken for good, before anything is measured. A look is too short
        // for what memory becomes, and later starts are not asked for it.
        let is_short = run.options.quick || round.number != 0;
        for rest in [load.rest, if is_short { load.rest } else { load.filling() }] {
            for step in &scenario.steps {
                trial.change(scenario, step)?;
                thread::sleep(rest);
            }
        }
        trial.look()?;
        trial.forget_times();
        Ok(trial)
    }

    fn forget_times(&mut self) {
        self.timing.forget();
        (self.changes, self.set, self.held) = (0, 0, 0);
        self.took_us.clear();
        self.publishing_us = 0.0;
    }

    fn tell_all(&mut self, command: &str) -> Result<(), Stop> {
        for child in &mut self.children {
            child.tell(command)?;
        }
        self.children.iter_mut().try_for_each(|child| child.answer().map(drop))
    }

    fn change_all(
        &mut self,
        run: &mut Run<'_, '_>,
        scenario: &Scenario,
        load: Load,
        what: &str,
        all: u64,
        starts: usize,
    ) -> Result<(), Stop> {
        let longest = Duration::from_secs(run.options.seconds_max) / starts as u32;
        let end = Instant::now() + longest;
        let mut steps = scenario.steps.iter().cycle();
        while self.changes < all && Instant::now() < end {
            let (done, set) = (self.changes, self.set);
            run.screen.progress(&format!("{what}: {done} of {all} handovers, set {set} times"));
            let Some(step) = steps.next() else { break };
            self.change(scenario, step)?;
            thread::sleep(load.rest);
            if self.set.is_multiple_of(LOOK_EVERY) {
                self.keep_peace(load)?;
            }
        }
        self.keep_peace(load)
    }

    /// Changes nothing for a while, and looks at what has come.
    fn keep_peace(&mut self, load: Load) -> Result<(), Stop> {
        thread::sleep(CALM);
        let calm_ns = monotonic_ns();
        thread::sleep(load.peace);
        self.timing.peace(calm_ns, monotonic_ns());
        self.look()?;
        let memory = self.children.iter().map(|it| memory_kib(it.id())).sum();
        self.memory_kib.push((self.changes, memory));
        self.timing.end_block();
        Ok(())
    }

    /// Sets the transport, and waits until all flows have settled.
    fn change(&mut self, scenario: &Scenario, step: &Step) -> Result<(), Stop> {
        let expected = self.expected(scenario, step).join(" ");
        let command = format!("change {} {expected}", step.set.unwrap_or("-"));
        match self.children[0].ask_for(&command)? {
            Settled::All { asked_ns, changes } => {
                self.set += 1;
                changes.into_iter().for_each(|it| self.note(asked_ns, it));
            }
            Settled::Not { routes, found } => {
                let (changes, set) = (self.changes, step.set.unwrap_or("nothing"));
                let error = format!(
                    "after {changes} handovers, {set} was set and not settled: expected {expected}, found {found:?}: {routes}"
                );
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// All flows as [`member`](super::member) shows them.
    fn expected(&self, scenario: &Scenario, step: &Step) -> Vec<String> {
        let (mut flows, mut senders) = (Vec::new(), 0);
        for (at, sends) in scenario.members.iter().enumerate() {
            for _ in 0..sends.publishers {
                for (other, receives) in scenario.members.iter().enumerate() {
                    let between = step.between.get(senders).copied().unwrap_or_default();
                    let via = if at == other { step.inside } else { between };
                    let (sender, receiver) = (self.children[at].id(), self.children[other].id());
                    for _ in 0..receives.subscriptions {
                        flows.push(format!("{sender}/{receiver}/{via}"));
                    }
                }
                senders += 1;
            }
        }
        flows.sort();
        flows
    }

    fn note(&mut self, asked_ns: u64, change: Changed) {
        let Changed { from, to, cut_ns, opening_us, settling_us, .. } = change;
        self.changes += 1;
        self.held = self.held.max(change.held);
        let took_us = self.took_us.entry((from.clone(), to.clone())).or_default();
        took_us[0].push(opening_us);
        took_us[1].push(settling_us);
        self.timing.changed(Change {
            flow_id: FlowId::new(change.publisher, change.subscription),
            from,
            to,
            asked_ns: asked_ns.min(cut_ns),
            cut_ns,
            settled_ns: cut_ns + (settling_us * 1e3) as u64,
        });
    }

    /// Asks all what has happened.
    fn look(&mut self) -> Result<(), Stop> {
        let looks = self.children.iter_mut().map(|child| child.ask_for("look"));
        let looks: Vec<Look> = looks.collect::<Result<_, _>>()?;
        let (mut wrong, mut counted, mut refused) = (Wrong::default(), Counted::default(), 0);
        for (gid, publisher) in looks.iter().flat_map(|it| &it.sent) {
            refused += publisher.refused;
            if let Some(refusal) = &publisher.last_refusal {
                self.refusal = Some(refusal.clone());
            }
            for [number, began_ns, done_ns] in publisher.sent.iter().copied() {
                let took_us = done_ns.saturating_sub(began_ns) as f64 / 1e3;
                self.publishing_us = self.publishing_us.max(took_us);
                self.timing.sent(gid, number, began_ns);
            }
        }
        for Reading { gid: reader, flows, counted: own } in looks.iter().flat_map(|it| &it.received)
        {
            counted = counted.and(*own);
            for (writer, flow) in flows {
                let flow_id = FlowId::new(writer.clone(), reader.clone());
                for [number, at_ns] in flow.arrived.iter().copied() {
                    self.timing.arrived(&flow_id, number, at_ns);
                }
                self.next.insert((writer.clone(), reader.clone()), flow.next);
                wrong = wrong.and(flow.wrong);
            }
        }
        (self.wrong, self.counted, self.refused) = (wrong, counted, refused);
        Ok(())
    }

    /// Sends nothing more, and waits for what is under way. What does not come then is lost.
    fn finish(&mut self) -> Result<(), Stop> {
        for child in &mut self.children {
            self.sent.extend(child.ask_for::<BTreeMap<String, u64>>("stop")?);
        }
        self.missing = until(|| {
            self.look()?;
            Ok((self.missing() == 0, self.missing()))
        })?;
        if let Some(plain) = &mut self.plain {
            let sent = self.sent.values().sum();
            let taken = plain.wait_for(sent)?;
            self.plain_missing = sent.saturating_sub(taken);
        }
        Ok(())
    }

    /// Lets all processes go.
    fn leave(&mut self) {
        self.watched.1 = self.changes;
        self.plain_wrong = self.plain.take().map(|mut plain| {
            let mut wrong = plain.wrong().unwrap_or_default();
            wrong.lost += self.plain_missing;
            wrong
        });
        self.children.iter_mut().for_each(Child::dismiss);
        self.children.clear();
    }

    /// Puts behind it what was seen of the next start. Memory is that of the first.
    fn append(&mut self, next: Self) {
        self.changes += next.changes;
        self.set += next.set;
        self.timing.append(next.timing);
        for (route, took_us) in next.took_us {
            let all = self.took_us.entry(route).or_default();
            all.iter_mut().zip(took_us).for_each(|(all, took_us)| all.extend(took_us));
        }
        self.publishing_us = self.publishing_us.max(next.publishing_us);
        self.held = self.held.max(next.held);
        self.wrong = self.wrong.and(next.wrong);
        self.missing += next.missing;
        self.refused += next.refused;
        self.refusal = self.refusal.take().or(next.refusal);
        self.counted = self.counted.and(next.counted);
        self.plain_wrong = match (self.plain_wrong, next.plain_wrong) {
            (Some(wrong), Some(next)) => Some(wrong.and(next)),
            (wrong, next) => wrong.or(next),
        };
    }

    /// Samples that were sent after the last that came.
    fn missing(&self) -> u64 {
        let missing = self.next.iter().map(|((writer, _), next)| {
            self.sent.get(writer).map_or(0, |sent| sent.saturating_sub(*next))
        });
        missing.sum()
    }

    fn judge(&mut self, run: &mut Run<'_, '_>, load: Load, what: &str) {
        let of = format!("the transport was set {} times", self.set);
        run.judge(format!("{what} handovers"), of, self.changes, "", None);
        let Counted { lost, displaced, duplicates, invalid } = self.counted;
        let own = format!(
            "the subscriptions' own count: {lost} lost, {displaced} displaced, {duplicates} dropped \
             as met, {invalid} invalid"
        );
        let mut wrong = self.wrong;
        // What a reader did not take in time is not lost: it is what it asked for, and counted. What is displaced leaves a gap.
        wrong.lost = wrong.lost.saturating_sub(displaced).max(lost) + self.missing;
        wrong.damaged += invalid;
        judge_wrong(run, what, &own, wrong);
        let of = "not taken within a second, for which the machine can be too slow";
        run.judge(format!("{what} displaced"), of, displaced, "", Some(Bar::AtMost(0.0)));
        if let Some(wrong) = self.plain_wrong {
            judge_wrong(run, what, "the foreign reader", wrong);
        }
        let refusal = self.refusal.take().unwrap_or_default();
        let none = Some(Bar::AtMost(0.0));
        run.judge(format!("{what} not published"), refusal, self.refused, "", none);
        run.report.astray(self.refused);
        self.timing.judge(run, what);
        for ((from, to), took_us) in &self.took_us {
            let of = format!("{from} to {to}, {} times", took_us[0].len());
            for (word, took_us) in ["opening", "settling"].into_iter().zip(took_us) {
                let took = sorted(took_us.clone());
                for (name, share) in [("median", 0.5), ("most", 1.0)] {
                    let figure = quantile(&took, share) / 1e3;
                    run.judge(format!("{what} {word} {name}"), &*of, figure, "ms", None);
                }
            }
        }
        let publishing_ms = self.publishing_us / 1e3;
        run.judge(format!("{what} longest publish()"), "", publishing_ms, "ms", None);
        let of = "samples of one flow at one time";
        let depth = Some(Bar::AtMost(load.depth.into()));
        run.judge(format!("{what} held"), of, self.held, "", depth);
        self.judge_memory(run, load, what);
    }

    /// The most that all processes hold early and late in the run. The most, because what is freed goes
    /// back to the system at one time and not at another, and what is needed again is had from there.
    fn judge_memory(&self, run: &mut Run<'_, '_>, load: Load, what: &str) {
        let (processes, changes) = self.watched;
        let most = |from: u64, to: u64| {
            let (from, to) = (changes * from, changes * to);
            let meant = self.memory_kib.iter().filter(|it| (from..=to).contains(&(it.0 * 100)));
            meant.map(|(_, kib)| *kib as f64 * 1024.0 / 1e6).max_by(f64::total_cmp)
        };
        let Some((early_mb, late_mb)) = most(10, 30).zip(most(80, 100)) else { return };
        let of = "all processes, what they share once; the most after 10 to 30 % of the handovers";
        run.judge(format!("{what} memory"), of, early_mb, "MB", None);
        let slack = (load.size * SAMPLES_SLACK * processes) as f64 / 1e6;
        let bar = (GROWTH_MAX_MB * processes as f64 + slack).round();
        let of = "from there to the most of the last 20 %";
        let grown = late_mb - early_mb;
        run.judge(format!("{what} memory growth"), of, grown, "MB", Some(Bar::AtMost(bar)));
    }
}

/// Each sample comes once, in order, as it was drawn.
fn judge_wrong(run: &mut Run<'_, '_>, what: &str, of: &str, wrong: Wrong) {
    let Wrong { lost, repeated, disordered, damaged } = wrong;
    let counts = [
        ("lost", lost),
        ("repeated", repeated),
        ("out of order", disordered),
        ("damaged", damaged),
    ];
    for (name, count) in counts {
        run.judge(format!("{what} {name}"), of, count, "", Some(Bar::AtMost(0.0)));
        run.report.astray(count);
    }
}

/// Changes nothing for a while, and looks at what came and what is held, after so many settings: no multiple
/// of the number of steps of a scenario, so that each transport has its peace.
const LOOK_EVERY: u64 = 11;

/// What a change may still do to samples is over by then.
const CALM: Duration = Duration::from_millis(150);

/// What a process may hold more of late than early, in MB, and in samples.
const GROWTH_MAX_MB: f64 = 2.0;
const SAMPLES_SLACK: usize = 4;

/// The process's resident memory. Of what several map each counts its part.
fn memory_kib(id: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_start_has_half_of_the_handovers() {
        let parts = |handovers| -> Vec<u64> {
            starts(handovers).map(|round| part(round, handovers)).collect()
        };
        assert_eq!(parts(180), [90, 23, 23, 23, 23]);
        assert_eq!(parts(20), [20]);
        assert_eq!(parts(90), [45, 23, 23]);
        assert_eq!(parts(10_001), [5001, 1250, 1250, 1250, 1250]);
    }
}
