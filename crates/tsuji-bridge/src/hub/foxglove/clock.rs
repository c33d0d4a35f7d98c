//! Simulated time, for clients that were told that there is one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tsuji::{Context, Node, Qos, RawSubscription, RawType, Waitable};
use tsuji_foxglove::write_time;

use crate::connected_client::ConnectedClient;
use crate::foxglove::{CLOCK, CLOCK_TYPE, Names, is_time_simulated, written};
use crate::frame::Kind;
use crate::plain::Plain;

/// What publishes the time, while somebody follows it.
#[derive(Default)]
pub(super) struct Clock {
    subscription: Option<RawSubscription>,
    /// When the time was told last.
    told: Option<Instant>,
}

impl Clock {
    /// Follows the time while somebody wants it and anybody tells it.
    pub(super) fn follow(
        &mut self,
        is_wanted: bool,
        node: &Node,
        context: &Context,
        names: &Names,
    ) {
        if !is_wanted || !is_time_simulated(context) {
            self.subscription = None;
            names.set_clock(0);
        } else if self.subscription.is_none() {
            let ty = RawType::new(CLOCK_TYPE);
            let opened = node.create_polled_raw_subscription(CLOCK, ty, Qos::CLOCK);
            match opened {
                Ok(subscription) => self.subscription = Some(subscription),
                Err(error) => {
                    tracing::warn!(topic = CLOCK, error = %Plain(error), "the time is not followed");
                }
            }
        }
    }

    pub(super) fn waitables(&self) -> impl Iterator<Item = &dyn Waitable> {
        self.subscription.iter().map(|it| it as &dyn Waitable)
    }

    /// Tells the newest time that has come, not too often.
    pub(super) fn drain<'a>(
        &mut self,
        names: &Names,
        followers: impl Iterator<Item = &'a Arc<ConnectedClient>>,
    ) {
        let Some(subscription) = &self.subscription else { return };
        let mut newest = None;
        while let Ok(Some(sample)) = subscription.take_bytes() {
            newest = time_ns(&sample.bytes).or(newest);
        }
        let Some(newest) = newest else { return };
        names.set_clock(newest);
        let now = Instant::now();
        if self.told.is_some_and(|it| now < it + EVERY) {
            return;
        }
        self.told = Some(now);
        let frame = written(Kind::Binary, |out| write_time(out, newest));
        followers.for_each(|it| it.say(Arc::clone(&frame)));
    }
}

/// The time in `rosgraph_msgs/msg/Clock`, in nanoseconds.
fn time_ns(cdr: &[u8]) -> Option<u64> {
    let numbers = cdr.get(4..12)?.as_chunks::<4>().0;
    let number = |at: usize| match cdr[1] {
        0 => u32::from_be_bytes(numbers[at]),
        _ => u32::from_le_bytes(numbers[at]),
    };
    let seconds = u64::try_from(number(0).cast_signed()).ok()?;
    Some(seconds * 1_000_000_000 + u64::from(number(1)))
}

/// The time is told no more often, however often it is published.
const EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_in_both_byte_orders() {
        assert_eq!(time_ns(&[0, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]), Some(2_000_000_003));
        assert_eq!(time_ns(&[0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3]), Some(2_000_000_003));
        assert_eq!(
            time_ns(&[0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
            None,
            "before it began"
        );
        assert_eq!(time_ns(&[0, 1, 0, 0, 1]), None);
    }
}
