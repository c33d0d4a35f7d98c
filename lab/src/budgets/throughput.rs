//! As fast as they are taken: pictures to many processes, and the smallest samples to one.

use crate::arguments::PICTURE_BYTES;
use crate::budgets::{Part, Parts, Run};
use crate::crew::{Stop, StreamCrew, Streamed};
use crate::rounds::{InRounds, Round};
use crate::statistics::{Bar, Interval, interval_of_median};
use crate::transport::{Flow, Spec, Transport};

/// Pictures in loans to 1, 8 and 64 processes, beside iceoryx2.
pub(crate) fn pictures(run: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    let to = |receivers: usize| -> Box<dyn Part> {
        let what = format!("throughput-{receivers}");
        let each = (run.options.count / 10 / receivers as u64).max(PICTURES_MIN);
        let transports = [Transport::TsujiLoan, Transport::IceoryxLoan];
        let streams = transports.map(|it| Stream::new(it, what.clone())).into();
        let (size, said) = (PICTURE_BYTES, Streams::tell_pictures);
        Box::new(Streams { what, size, receivers, each, streams, said })
    };
    Ok(RECEIVERS.map(to).into())
}

const RECEIVERS: [usize; 3] = [1, 8, 64];
const PICTURES_MIN: u64 = 20;

/// Samples of 64 bytes to one process, nothing lost.
pub(crate) fn small(run: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    let each = if run.options.quick { SMALL_QUICK } else { SMALL };
    let transports = [
        (Transport::TsujiBytes, "small"),
        (Transport::TsujiTyped, "small-typed"),
        (Transport::IceoryxMemcpy, "small-raw"),
    ];
    let streams = transports.map(|(transport, what)| Stream::new(transport, what.to_owned()));
    let (what, streams) = ("small".to_owned(), streams.into());
    let (size, receivers, said) = (SMALL_BYTES, 1, Streams::tell_small);
    Ok(vec![Box::new(Streams { what, size, receivers, each, streams, said })])
}

const SMALL_BYTES: usize = 64;
const SMALL: u64 = 200_000;
const SMALL_QUICK: u64 = 20_000;

/// Some transports, each as fast as it goes.
struct Streams {
    what: String,
    size: usize,
    receivers: usize,
    /// Samples of a block.
    each: u64,
    streams: Vec<Stream>,
    /// What is said of them.
    said: fn(&Self, &mut Run<'_, '_>),
}

struct Stream {
    transport: Transport,
    /// What its figures are called.
    what: String,
    /// What carries.
    name: String,
    /// One of each start.
    blocks: Vec<Streamed>,
}

impl Stream {
    fn new(transport: Transport, what: String) -> Self {
        Self { transport, what, name: String::new(), blocks: Vec::new() }
    }
}

impl InRounds for Streams {
    fn name(&self) -> String {
        self.what.clone()
    }

    /// A block of each, after one that does not count.
    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        let mut crews = Vec::new();
        for it in &self.streams {
            let mut crew = StreamCrew::start(run.stage, &self.spec(run, it, round))?;
            crew.block(self.each)?;
            crews.push(crew);
        }
        let mut fresh = vec![None; crews.len()];
        for at in round.order(crews.len()) {
            fresh[at] = Some(crews[at].block(self.each)?);
        }
        for ((it, crew), block) in self.streams.iter_mut().zip(crews).zip(fresh) {
            it.name = crew.transport().to_owned();
            it.blocks.extend(block);
        }
        Ok(())
    }
}

impl Part for Streams {
    fn tell(&mut self, run: &mut Run<'_, '_>) {
        (self.said)(self, run);
    }
}

impl Streams {
    fn spec(&self, run: &Run<'_, '_>, stream: &Stream, round: Round) -> Spec {
        let name = format!("{}_{}_{}", stream.what, stream.transport.word(), round.number);
        let own = run.spec(stream.transport, self.size, &name);
        Spec { flow: Flow::Stream, receivers: self.receivers, ..own }
    }

    fn tell_pictures(&self, run: &mut Run<'_, '_>) {
        let Self { what, each, streams, .. } = self;
        let each = *each;
        let [ours, theirs] = &**streams else { return };
        if ours.blocks.is_empty() {
            return;
        }
        let bytes = (each * PICTURE_BYTES as u64) as f64;
        let rate = |it: &Streamed| bytes / it.seconds / 1e9;
        let cpu = |it: &Streamed| {
            (it.sender_cpu_us + it.drawing_cpu_us + it.receivers_cpu_us) / each as f64
        };
        let undrawn_cpu = |it: &Streamed| (it.sender_cpu_us + it.receivers_cpu_us) / each as f64;
        for Stream { name, blocks, .. } in [ours, theirs] {
            run.judge(what, name, median(blocks, rate), "GB/s", None);
            run.judge(format!("{what} CPU/sample"), name, median(blocks, cpu), "µs", None);
            let lost: u64 = blocks.iter().map(|it| it.missing).sum();
            run.judge(format!("{what} lost"), name, lost, "", Some(Bar::AtMost(0.0)));
        }
        let ratio = |of: &dyn Fn(&Streamed) -> f64| {
            let pairs = ours.blocks.iter().zip(&theirs.blocks);
            let ratios: Vec<f64> = pairs.map(|(ours, theirs)| of(ours) / of(theirs)).collect();
            interval_of_median(&ratios)
        };
        let pair = format!("{} / {}", ours.name, theirs.name);
        let (fast, cheap) = (Some(Bar::AtLeast(0.9)), Some(Bar::AtMost(1.2)));
        run.judge(format!("{what} GB/s"), &pair, ratio(&rate), "×", fast);
        run.judge(format!("{what} CPU"), &pair, ratio(&cpu), "×", cheap);
        run.judge(format!("{what} CPU, undrawn"), pair, ratio(&undrawn_cpu), "×", None);
    }

    fn tell_small(&self, run: &mut Run<'_, '_>) {
        let each = self.each as f64;
        for Stream { transport, what, name, blocks } in &self.streams {
            if blocks.is_empty() {
                return;
            }
            let bar = |bar| transport.is_tsuji().then_some(bar);
            let rate = median(blocks, |it| each / it.seconds / 1e6);
            run.judge(what, name, rate, "M/s", bar(Bar::AtLeast(1.0)));
            let sender = median(blocks, |it| (it.sender_cpu_us + it.drawing_cpu_us) / each);
            let at_most_1 = bar(Bar::AtMost(1.0));
            run.judge(format!("{what} CPU sender"), name, sender, "µs", at_most_1);
            let receiver = median(blocks, |it| it.receivers_cpu_us / each);
            run.judge(format!("{what} CPU receiver"), name, receiver, "µs", at_most_1);
            let lost: u64 = blocks.iter().map(|it| it.missing).sum();
            run.judge(format!("{what} lost"), name, lost, "", bar(Bar::AtMost(0.0)));
        }
    }
}

fn median(blocks: &[Streamed], of: impl Fn(&Streamed) -> f64) -> Option<Interval> {
    interval_of_median(&blocks.iter().map(of).collect::<Vec<_>>())
}
