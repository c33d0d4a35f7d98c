//! How long a picture takes from `publish` to the callback of a sleeping subscriber.

use crate::arguments::{ENGINE_SIZES, Options, PICTURE_BYTES, SIZES};
use crate::budgets::Run;
use crate::crew::{Block, Crew, Crews, Stage, Stop, latencies};
use crate::matrix::ENGINE_MEDIAN_MAX;
use crate::peers::{Peers, Site};
use crate::report::{Row, Series};
use crate::ros1::Room;
use crate::rounds::{self, InRounds, Round};
use crate::route::{Route, TsujiTransport};
use crate::statistics::{Bar, Statistic, ratio};
use crate::transport::{Role, Spec, Transport, absence, absence_of_security};

mod article;

/// Some transports side by side, and what the first one has to reach against the others.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    size: usize,
    role: Role,
    one_node: bool,
    /// By which one tsuji goes.
    route: Route,
    /// tsuji first, then the one that the bars are about.
    transports: Vec<Transport>,
    bars: &'static [(Statistic, f64)],
}

/// In process by pointer, against a condition variable.
const POINTER_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.5), (Statistic::P99, 2.0)];
/// Between processes, picture in a loan, against the same of iceoryx2.
const LOAN_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.3), (Statistic::P99, 1.5)];
/// Between processes, ordinary publish, against iceoryx2 and one copy.
const PUBLISH_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.3)];
/// Between processes that are secured, by shared memory, against the same in clear.
const CONFINED_BARS: &[(Statistic, f64)] = &[(Statistic::Median, 1.05)];
/// Between processes by the transport of an engine, against the engine alone.
const ENGINE_BARS: &[(Statistic, f64)] =
    &[(Statistic::Median, ENGINE_MEDIAN_MAX), (Statistic::P99, 1.5)];

fn cases(options: &Options) -> Vec<Case> {
    use Transport::*;
    const FAST: Route = Route::By(TsujiTransport::FastDds);
    const ZENOH: Route = Route::By(TsujiTransport::Zenoh);
    const SHM: Route = Route::By(TsujiTransport::Shm);
    const PUBLISHED: &[Transport] = &[TsujiPublish, IceoryxMemcpy, UnixSocket, Rclcpp];
    let by_value: &[Transport] = &[TsujiPublish, CondvarClone, Roscpp, Rclcpp];
    let by_pointer: &[Transport] = &[TsujiPointer, Condvar, RoscppPointer, RclcppPointer];
    let between: &[Transport] = &[TsujiPublish, IceoryxMemcpy, UnixSocket, Roscpp, Rclcpp];
    let by_loan: &[Transport] = &[TsujiLoan, IceoryxLoan, RoscppPointer, RclcppLoan];
    let components: &[Transport] = &[TsujiPublish, CondvarClone, Nodelet, Rclcpp];
    let components_by_pointer: &[Transport] =
        &[TsujiPointer, Condvar, NodeletPointer, RclcppPointer];
    let patterns = [
        ("one_node", Role::Both, true, by_value, &[][..]),
        ("one_node_pointer", Role::Both, true, by_pointer, POINTER_BARS),
        ("two_nodes", Role::Sender, false, between, PUBLISH_BARS),
        ("two_nodes_pointer", Role::Sender, false, by_loan, LOAN_BARS),
        ("two_components", Role::Both, false, components, &[]),
        ("two_components_pointer", Role::Both, false, components_by_pointer, POINTER_BARS),
    ];
    let in_process: &[Transport] = &[TsujiPointer, Condvar, RclcppPointer];
    let lent: &[Transport] = &[TsujiLoan, IceoryxLoan, RclcppLoan];
    let sized: [(_, _, _, &[Transport], _); 9] = [
        ("pointer", Role::Both, Route::Alone, in_process, POINTER_BARS),
        ("loan", Role::Sender, Route::Alone, lent, LOAN_BARS),
        ("publish", Role::Sender, Route::Alone, PUBLISHED, PUBLISH_BARS),
        ("cyclonedds-loan", Role::Sender, Route::Rtps, &[TsujiLoan, CycloneInPlace], ENGINE_BARS),
        (
            "cyclonedds-publish",
            Role::Sender,
            Route::Rtps,
            &[TsujiPublish, CycloneCopy],
            ENGINE_BARS,
        ),
        ("fastdds-publish", Role::Sender, FAST, &[TsujiPublish, FastCopy], ENGINE_BARS),
        ("zenoh-publish", Role::Sender, ZENOH, &[TsujiPublish, ZenohCopy], ENGINE_BARS),
        ("secured-shm", Role::Sender, SHM, &[TsujiSecured, TsujiPublish], CONFINED_BARS),
        (
            "cyclonedds-secured",
            Role::Sender,
            Route::Rtps,
            &[TsujiSecured, CycloneSecured],
            ENGINE_BARS,
        ),
    ];
    let mut cases: Vec<Case> = patterns
        .into_iter()
        .map(|(name, role, one_node, transports, bars)| Case {
            name: name.to_owned(),
            size: PICTURE_BYTES,
            role,
            one_node,
            route: Route::Alone,
            transports: transports.to_vec(),
            bars,
        })
        .collect();
    for (name, role, route, transports, bars) in sized {
        let own = if matches!(route, Route::Alone | SHM) { &SIZES[..] } else { &ENGINE_SIZES };
        let sizes = options.sizes_or(own);
        cases.extend(sizes.iter().map(|size| Case {
            name: format!("{name}-{size}"),
            size: *size,
            role,
            one_node: false,
            route,
            transports: transports.iter().copied().filter(|it| it.carries(*size)).collect(),
            bars,
        }));
    }
    cases.retain(|it| options.wants_case(&it.name));
    cases
}

/// Measures all cases that `options` asks for.
pub(crate) fn run(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let (stage, options) = (run.stage, run.options);
    let mut cases = cases(options);
    if cases.is_empty() {
        return Err(Stop::Failed(format!("no case begins with {}", options.cases.join(" or "))));
    }
    let transports: Vec<_> = cases.iter().flat_map(|it| &it.transports).copied().collect();
    let peers = Peers::find(run, &transports)?;
    cases.retain(|case| {
        let absence = match case.route {
            Route::By(via) => absence(via),
            _ if case.transports.contains(&Transport::CycloneSecured) => absence_of_security(),
            _ => None,
        };
        absence.iter().for_each(|why| run.report.absent(run.screen, &case.name, why));
        absence.is_none()
    });
    let contest = |case| Box::new(Contest::new(case, stage, &peers));
    let mut contests: Vec<_> = cases.into_iter().map(contest).collect();
    let stopped = rounds::measure(run, Round::asked(options), &mut contests);
    contests.iter().for_each(|it| it.tell(run));
    if let Some(table) = article::table(run.report.rows()) {
        run.report.table(run.screen, table);
    }
    stopped
}

/// One transport in one case, and what it brought so far.
struct Contestant<'a> {
    /// Which of the case's.
    at: usize,
    transport: Transport,
    /// Where its children are started.
    site: Site<'a>,
    /// What carries.
    name: String,
    /// One of each start.
    blocks: Vec<Block>,
}

/// The transports of a case.
struct Contest<'a> {
    case: Case,
    contestants: Vec<Contestant<'a>>,
}

/// Samples before the measurement, for buffers to exist and memory to be mapped: one more than the ten that are kept.
const WARM_UP: u64 = 11;

impl<'a> Contest<'a> {
    /// Each transport of the case; one that is rclcpp once for each middleware, one whose peer is not here not at all.
    fn new(case: Case, stage: &'a Stage, peers: &'a Peers) -> Self {
        let sites = case.transports.iter().flat_map(|transport| {
            let sites = peers.sites(stage, *transport);
            sites.into_iter().map(|site| (*transport, site))
        });
        let contestants = sites.enumerate().map(|(at, (transport, site))| {
            let name = site.name(transport);
            Contestant { at, transport, site, name, blocks: Vec::new() }
        });
        let contestants = contestants.collect();
        Self { case, contestants }
    }

    /// Starts the processes of a contestant, and of ROS 1 the master that they need.
    fn start(
        &self,
        run: &Run<'_, '_>,
        contestant: &Contestant<'_>,
        round: Round,
    ) -> Result<(Crew, Option<Room>), Stop> {
        let Self { case, .. } = self;
        let transport = contestant.transport;
        let name = format!("{}_{}_{}", case.name, contestant.at, round.number);
        let spec = Spec {
            role: case.role,
            route: case.route,
            one_node: case.one_node,
            ..run.spec(transport, case.size, &name)
        };
        let room = contestant.site.room(&[])?;
        let stage = room.as_ref().map_or_else(|| contestant.site.stage(), |it| &it.stage);
        let mut crew = Crew::start(stage, &spec)?;
        crew.block(WARM_UP)?;
        Ok((crew, room))
    }

    /// Says what all rounds brought.
    fn tell(&self, run: &mut Run<'_, '_>) {
        let case = &self.case;
        for it in self.contestants.iter().filter(|it| !it.blocks.is_empty()) {
            run.report.row(run.screen, Row::of(&case.name, &it.name, case.size, &it.blocks));
            let starts = it.blocks.iter().map(|block| &block.latency_us);
            run.report.series(Series::latency(&case.name, &it.name, starts));
        }
        if let [ours, others @ ..] = &*self.contestants
            && ours.transport.is_tsuji()
        {
            others.iter().for_each(|theirs| judge(run, case, ours, theirs));
        }
    }
}

impl InRounds for Contest<'_> {
    fn name(&self) -> String {
        self.case.name.clone()
    }

    /// A block of each, all standing ready at once.
    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        // In this order: masters go after their nodes.
        let mut rooms = Vec::new();
        let mut crews = Crews::default();
        let mut failed = Vec::new();
        let mut names = Vec::new();
        for it in &self.contestants {
            match self.start(run, it, round) {
                Ok((crew, room)) => {
                    names.push(crew.transport.clone());
                    rooms.extend(room);
                    crews.0.push(crew);
                }
                // The others are measured all the same.
                Err(Stop::Failed(why)) if round.number == 0 => {
                    let what = format!("{} {}", self.case.name, it.name);
                    run.report.skipped(run.screen, &what, &why);
                    failed.push(it.at);
                }
                Err(stop) => return Err(stop),
            }
        }
        self.contestants.retain(|it| !failed.contains(&it.at));
        let each = round.part(run.options.count);
        let fresh = crews.in_turn(round, each)?;
        // Only whole rounds count, so that blocks stay pairs.
        for ((contestant, name), block) in self.contestants.iter_mut().zip(names).zip(fresh) {
            contestant.name = name;
            contestant.blocks.push(block);
        }
        Ok(())
    }
}

fn judge(run: &mut Run<'_, '_>, case: &Case, ours: &Contestant<'_>, theirs: &Contestant<'_>) {
    let (ours_us, theirs_us) = (latencies(&ours.blocks), latencies(&theirs.blocks));
    for statistic in [Statistic::Median, Statistic::P99] {
        let bars = if theirs.transport == case.transports[1] { case.bars } else { &[] };
        let bar = bars.iter().find(|(it, _)| *it == statistic).map(|(_, bar)| Bar::AtMost(*bar));
        let (what, of) =
            (format!("{} {statistic}", case.name), format!("{} / {}", ours.name, theirs.name));
        let figure = ratio(statistic, &ours_us, &theirs_us);
        run.judge_sized(what, of, Some(case.size), figure, "×", bar);
    }
}
