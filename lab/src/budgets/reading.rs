//! What the laboratory's own readings of the clock add to the times that it tells.

use std::hint::black_box;

use tsuji::Client;
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_platform::clock::monotonic_ns;

use crate::budgets::node::{PATIENCE, start, take};
use crate::budgets::{Parts, Run, case};
use crate::child::said;
use crate::crew::Stop;
use crate::route::Route;
use crate::statistics::{Bar, over_clusters};

/// Calls between two processes by shared memory, in turn with readings of the clock at both ends of each pass and
/// without any. Two readings around all calls of a block say how long they took.
pub(crate) fn measure(_: &mut Run<'_, '_>) -> Result<Parts, Stop> {
    Ok(vec![case(WHAT, |run: &mut Run<'_, '_>, _| blocks(run), tell)])
}

/// How long a pass takes without readings, and what they add to it, in ns, of the blocks of a start.
type Blocks = [Vec<f64>; 2];

const WHAT: &str = "probe";

fn blocks(run: &mut Run<'_, '_>) -> Result<Blocks, Stop> {
    let (_server, mut client) = start(run, WHAT, Route::Alone)?;
    let each = run.options.count.div_ceil(run.options.blocks as u64).max(1) * CALLS;
    let each = each.min(CALLS_MAX);
    // Of one pass, which is half a call.
    let mut pass_ns = |word: &str| -> Result<f64, Stop> {
        let took_us: f64 = take(&mut client, word, each)?.iter().sum();
        Ok(took_us * 1000.0 / (2 * each) as f64)
    };
    pass_ns(BARE)?;
    let (mut bare, mut added) = (Vec::new(), Vec::new());
    for block in 0..BLOCKS {
        let mut order = [READ, BARE];
        order.rotate_left(block % 2);
        let mut taken = [0.0; 2];
        for word in order {
            taken[usize::from(word == READ)] = pass_ns(word)?;
        }
        bare.push(taken[0]);
        added.push(taken[1] - taken[0]);
    }
    Ok([bare, added])
}

fn tell(run: &mut Run<'_, '_>, starts: Vec<Blocks>) {
    let all = |at: usize| starts.iter().map(|it| it[at].as_slice()).collect::<Vec<_>>();
    let [bare, added] = [0, 1].map(|it| over_clusters(&all(it), 0.5));
    let bar = bare.map(|it| Bar::AtMost((it.middle * SHARE_MAX).max(ADDED_MAX_NS)));
    run.judge(WHAT, "a pass without readings", bare, "ns", None);
    run.judge(WHAT, "what readings at both ends add to it", added, "ns", bar);
}

/// The words for a block of calls, without readings of the clock and with them.
pub(super) const BARE: &str = "bare";
pub(super) const READ: &str = "read";

/// The readings may add so much of a pass, or so many nanoseconds.
const SHARE_MAX: f64 = 0.01;
const ADDED_MAX_NS: f64 = 100.0;

/// What is looked for is small: so many blocks in a start, and so many times as many calls in a block as samples elsewhere.
const BLOCKS: usize = 10;
const CALLS: u64 = 20;

/// In a block; a child has to answer in time.
const CALLS_MAX: u64 = 100_000;

/// What a request adds where the server is to read the clock.
const IS_READ: i64 = -1;

/// Answers calls, and notes the time at the begin and the end of those that say so.
pub(super) fn answering() -> impl FnMut(&AddTwoIntsRequest) -> AddTwoIntsResponse {
    let mut noted = Vec::with_capacity(NOTED_MAX);
    move |request| {
        let is_read = request.b == IS_READ;
        if is_read {
            if NOTED_MAX < noted.len() + 2 {
                black_box(&noted);
                noted.clear();
            }
            noted.push(monotonic_ns());
        }
        let sum = request.a.wrapping_add(request.b);
        if is_read {
            noted.push(monotonic_ns());
        }
        AddTwoIntsResponse { sum }
    }
}

const NOTED_MAX: usize = 1 << 16;

/// Calls `count` times, with readings around each or without, and says how long all took, in ns.
pub(super) fn call(client: &Client<AddTwoInts>, count: u64, is_read: bool) -> Result<u64, String> {
    let mut noted = Vec::with_capacity(NOTED_MAX.max(2 * count as usize));
    let began = monotonic_ns();
    for round in 0..count as i64 {
        if is_read {
            noted.push(monotonic_ns());
        }
        let request = AddTwoIntsRequest { a: round, b: i64::from(is_read) * IS_READ };
        client.call(request, PATIENCE).map_err(said)?;
        if is_read {
            noted.push(monotonic_ns());
        }
    }
    let took = monotonic_ns() - began;
    black_box(noted);
    Ok(took)
}
