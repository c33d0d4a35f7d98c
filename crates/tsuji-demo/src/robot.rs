//! The robot's processes. Each is told what to do by lines on its standard input, and ends when
//! that ends, so that none outlives the operator.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tsuji::{Context, ErrorKind, Node, PublisherOptions, Qos, Timer};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::geometry_msgs::msg::{PointStamped, Twist, Vector3};
use tsuji_interfaces::sensor_msgs::msg::Image;

use crate::picture::{self, FOUND_WITHIN, TINY};
use crate::tally::{End, Tally};
use crate::{Result, camera, complain};

/// A process of the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The nodes /camera, /detector and /guest.
    Camera,
    /// The node /viewer.
    Viewer,
    /// The node /commander.
    Commander,
    /// The node /base.
    Base,
}

impl Role {
    pub(crate) const ALL: [Self; 4] = [Self::Base, Self::Viewer, Self::Commander, Self::Camera];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Viewer => "viewer",
            Self::Commander => "commander",
            Self::Base => "base",
        }
    }
}

pub(crate) const PICTURES: &str = "/camera/image";
pub(crate) const SPOTS: &str = "/car";
pub(crate) const SMALL_PICTURES: &str = "/viewer/small";
pub(crate) const COMMANDS: &str = "/cmd_vel";

pub(crate) const VIEWER: &str = "/viewer";
/// The second viewer, which comes and leaves.
pub(crate) const GUEST: &str = "/guest";
/// The foreign ROS 2 node that hears the commands too.
pub(crate) const PLAIN: &str = "/plain_listener";

/// Topic, publishing node, subscribed node of each flow.
pub(crate) const FLOWS: [(&str, &str, &str); 6] = [
    (PICTURES, "/camera", "/detector"),
    (PICTURES, "/camera", VIEWER),
    (SPOTS, "/detector", VIEWER),
    (SMALL_PICTURES, VIEWER, "/operator"),
    (COMMANDS, "/commander", "/base"),
    (COMMANDS, "/commander", PLAIN),
];

/// Set where the foreign node is there, whom the commander waits for.
pub(crate) const WITH_PLAIN: &str = "TSUJI_DEMO_WITH_PLAIN";

/// From now on the sources publish nothing.
pub(crate) const HOLD: &str = "hold";
/// Is answered with a line: the counts as a JSON array.
pub(crate) const COUNT: &str = "count";

/// From now on the camera sends thumbnails.
pub(crate) const SEND_THUMBNAILS: &str = "send thumbnails";
/// From now on it sends what it sees.
pub(crate) const SEND_FULL: &str = "send full";
/// It takes all of its shared memory.
pub(crate) const FILL_MEMORY: &str = "fill memory";
/// It gives it back.
pub(crate) const FREE_MEMORY: &str = "free memory";
/// Its Cyclone DDS refuses everything.
pub(crate) const CUT_ENGINE: &str = "cut engine";
/// It works again.
pub(crate) const HEAL_ENGINE: &str = "heal engine";
/// The second viewer subscribes.
pub(crate) const GUEST_COMES: &str = "guest comes";
/// It does so no more.
pub(crate) const GUEST_LEAVES: &str = "guest leaves";

/// Deep enough for a reader that gets no processor for two seconds.
pub(crate) fn kept(depth: u32) -> Qos {
    Qos::DEFAULT.keep_last(depth)
}

pub(crate) const PICTURES_KEPT: u32 = 200;
pub(crate) const COMMANDS_KEPT: u32 = 200;
pub(crate) const SMALL_PICTURES_KEPT: u32 = 70;

const COMMAND_PERIOD: Duration = Duration::from_millis(10);
/// Every third picture is made small.
const SMALL_EVERY: u64 = 3;
pub(crate) const START_MAX: Duration = Duration::from_secs(60);
/// What is refused for so long is an error.
const INSIST_MAX: Duration = Duration::from_secs(10);

/// Plays a role until standard input ends.
pub(crate) fn play(role: Role) -> Result<()> {
    let orders = Orders::default();
    let played = match role {
        Role::Camera => camera::play(&orders),
        Role::Viewer => viewer(&Context::new()?, &orders),
        Role::Commander => commander(&Context::new()?, &orders),
        Role::Base => base(&Context::new()?, &orders),
    };
    match played {
        // The operator ended while this was still starting.
        Err(_) if orders.have_ended() => Ok(()),
        played => played,
    }
}

/// Checks each picture where it lies, and each spot that was found in it.
fn viewer(context: &Context, orders: &Orders) -> Result<()> {
    let node = context.node("viewer")?;
    // A picture, but a small one, which nobody could tell from its type.
    let smalls = node.create_publisher::<Image>(
        SMALL_PICTURES,
        PublisherOptions::default()
            .qos(kept(SMALL_PICTURES_KEPT))
            .expected_size(TINY.bytes() as u64),
    )?;
    let small_tally = Tally::new(SMALL_PICTURES, VIEWER, End::Sent);
    let seen = Tally::new(PICTURES, VIEWER, End::Received);
    let spots_seen = Tally::new(SPOTS, VIEWER, End::Received);
    orders.obey(
        context,
        vec![Arc::clone(&small_tally), Arc::clone(&seen), Arc::clone(&spots_seen)],
    )?;
    smalls.wait_for_subscriptions(1, START_MAX)?;

    let mut order = Sequence::from_first(0);
    let mut count = 0;
    let _pictures =
        node.create_subscription::<Image>(PICTURES, kept(PICTURES_KEPT), move |received| {
            let image = received.view();
            seen.note_age(age(image.header.stamp));
            let number = picture::verify(image.data);
            if count % SMALL_EVERY == 0 {
                let small = small(image.data);
                small_tally.add(insist(|| smalls.publish(&small)));
            }
            count += 1;
            seen.add(number.and_then(|number| order.next("frame", number)));
        })?;
    let mut number = 0;
    let _spots =
        node.create_subscription::<PointStamped>(SPOTS, kept(PICTURES_KEPT), move |received| {
            let point = received.view().point;
            let (x, y) = picture::car_at(number);
            let (off_x, off_y) = (point.x - x as f64, point.y - y as f64);
            let is_there = off_x.abs() <= FOUND_WITHIN && off_y.abs() <= FOUND_WITHIN;
            spots_seen.add(if is_there {
                Ok(())
            } else {
                Err(format!("spot {number} is at {}, {} instead of {x}, {y}", point.x, point.y))
            });
            number += 1;
        })?;
    Ok(tsuji::spin(&node)?)
}

/// Steers, a hundred times a second.
fn commander(context: &Context, orders: &Orders) -> Result<()> {
    let node = context.node("commander")?;
    let commands = node.create_publisher::<Twist>(COMMANDS, kept(COMMANDS_KEPT))?;
    let given = Tally::new(COMMANDS, "/commander", End::Sent);
    orders.obey(context, vec![Arc::clone(&given)])?;
    let listeners = if std::env::var_os(WITH_PLAIN).is_some() { 2 } else { 1 };
    commands.wait_for_subscriptions(listeners, START_MAX)?;
    let mut number = 0.0;
    let _timer = orders.every(&node, COMMAND_PERIOD, move || {
        let linear = Vector3 { x: number, ..Vector3::default() };
        let command = Twist { linear, ..Twist::default() };
        let published = insist(|| commands.publish(command));
        number += f64::from(u8::from(published.is_ok()));
        given.add(published);
    })?;
    Ok(tsuji::spin(&node)?)
}

/// Would turn wheels.
fn base(context: &Context, orders: &Orders) -> Result<()> {
    let node = context.node("base")?;
    let obeyed = Tally::new(COMMANDS, "/base", End::Received);
    orders.obey(context, vec![Arc::clone(&obeyed)])?;
    let mut order = Sequence::from_first(0);
    let _subscription =
        node.create_subscription::<Twist>(COMMANDS, kept(COMMANDS_KEPT), move |received| {
            obeyed.add(order.next("command", received.view().linear.x as u64));
        })?;
    Ok(tsuji::spin(&node)?)
}

/// What the operator wants of this process.
#[derive(Clone, Default)]
pub(crate) struct Orders {
    is_held: Arc<Mutex<bool>>,
    have_ended: Arc<AtomicBool>,
}

impl Orders {
    /// Calls back every `period` until it is held. Whoever counts after that counts all.
    pub(crate) fn every(
        &self,
        node: &Node,
        period: Duration,
        mut callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer> {
        let is_held = Arc::clone(&self.is_held);
        let timer = node.create_timer(period, move || {
            let is_held = is_held.lock().unwrap_or_else(PoisonError::into_inner);
            if !*is_held {
                callback();
            }
        })?;
        Ok(timer)
    }

    fn obey(&self, context: &Context, tallies: Vec<Arc<Tally>>) -> Result<()> {
        self.obey_also(context, tallies, |_| Ok(()))
    }

    /// Obeys the lines on standard input, on a thread of its own. `also` is told those that are not for
    /// every process.
    pub(crate) fn obey_also(
        &self,
        context: &Context,
        tallies: Vec<Arc<Tally>>,
        mut also: impl FnMut(&str) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let (context, orders) = (context.clone(), self.clone());
        std::thread::Builder::new().name("orders".into()).spawn(move || {
            for order in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
                match order.as_str() {
                    HOLD => {
                        *orders.is_held.lock().unwrap_or_else(PoisonError::into_inner) = true;
                    }
                    COUNT => {
                        let counts: Vec<_> = tallies.iter().map(|it| it.count()).collect();
                        let line = serde_json::json!(counts);
                        // Nobody listens any more: the end of standard input says so too.
                        let _ = writeln!(std::io::stdout(), "{line}");
                    }
                    order => {
                        if let Err(error) = also(order) {
                            complain(&format!("{order}: {error}\n"));
                        }
                    }
                }
            }
            orders.have_ended.store(true, Ordering::Release);
            context.shutdown();
        })?;
        Ok(())
    }

    fn have_ended(&self) -> bool {
        self.have_ended.load(Ordering::Acquire)
    }
}

/// Does again what is refused for a moment, as while a transport is being changed: it was done for nobody then.
pub(crate) fn insist<T>(mut attempt: impl FnMut() -> tsuji::Result<T>) -> tsuji::Result<T> {
    let give_up = Instant::now() + INSIST_MAX;
    loop {
        match attempt() {
            Err(error) if is_for_now(error.kind()) && Instant::now() < give_up => {
                // Most of them have waited for room themselves.
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

fn is_for_now(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::Exhausted)
}

/// Whether numbers come one after the other.
#[derive(Default)]
pub(crate) struct Sequence {
    /// `None` while any will do.
    wanted: Option<u64>,
}

impl Sequence {
    pub(crate) fn from_first(number: u64) -> Self {
        Self { wanted: Some(number) }
    }

    pub(crate) fn next(&mut self, what: &str, number: u64) -> std::result::Result<(), String> {
        match self.wanted.replace(number + 1) {
            Some(wanted) if number < wanted => {
                // It may be that one came again; those that follow are in order.
                self.wanted = Some(wanted);
                Err(format!("{what} {number} came again or too late, {wanted} was next"))
            }
            Some(wanted) if wanted < number => {
                Err(format!("{what} {number} came instead of {wanted}"))
            }
            _ => Ok(()),
        }
    }
}

fn small(data: &[u8]) -> Image {
    Image {
        height: TINY.height as u32,
        width: TINY.width as u32,
        encoding: "rgb8".into(),
        step: TINY.step() as u32,
        data: picture::shrink(data),
        ..Image::default()
    }
}

pub(crate) fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { sec: i32::try_from(now.as_secs()).unwrap_or(i32::MAX), nanosec: now.subsec_nanos() }
}

/// The time since `stamp`.
fn age(stamp: Time) -> Duration {
    let stamp = Duration::new(u64::try_from(stamp.sec).unwrap_or_default(), stamp.nanosec);
    SystemTime::now().duration_since(UNIX_EPOCH + stamp).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_order_are_told_once_each() {
        let mut order = Sequence::from_first(0);
        let mut told = Vec::new();
        for number in [0, 1, 3, 4, 4, 2, 5] {
            told.extend(order.next("frame", number).err());
        }
        assert_eq!(
            told,
            [
                "frame 3 came instead of 2",
                "frame 4 came again or too late, 5 was next",
                "frame 2 came again or too late, 5 was next",
            ]
        );
        let mut any = Sequence::default();
        assert!(any.next("frame", 7).is_ok() && any.next("frame", 9).is_err());
    }

    #[test]
    fn what_is_refused_for_a_moment_is_done_again() {
        let refused = |kind| Err(tsuji::Error::new(kind, "test"));
        let mut tries = 0;
        let done = insist(|| {
            tries += 1;
            if tries < 3 { refused(ErrorKind::Busy) } else { Ok(tries) }
        });
        assert_eq!(done.unwrap(), 3);
        let done = insist(|| refused(ErrorKind::Closed));
        assert_eq!(done.unwrap_err().kind(), ErrorKind::Closed);
    }
}
