//! The robot's processes. Each is told what to do by lines on its standard input, and ends when
//! that ends, so that none outlives the operator.

use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tsuji::{Context, Executor, History, Node, Qos, Timer};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::geometry_msgs::msg::{Point, PointStamped, Twist, Vector3};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::Header;

use crate::Result;
use crate::picture::{self, Painter};
use crate::tally::{End, Tally};

/// A process of the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The nodes /camera and /detector.
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

/// The plain ROS 2 node that hears the commands too.
pub(crate) const PLAIN: &str = "/plain_listener";

/// Topic, publishing node, subscribed node of each flow.
pub(crate) const FLOWS: [(&str, &str, &str); 6] = [
    (PICTURES, "/camera", "/detector"),
    (PICTURES, "/camera", "/viewer"),
    (SPOTS, "/detector", "/viewer"),
    (SMALL_PICTURES, "/viewer", "/operator"),
    (COMMANDS, "/commander", "/base"),
    (COMMANDS, "/commander", PLAIN),
];

/// Set where the plain node is there, whom the commander waits for.
pub(crate) const WITH_PLAIN: &str = "TSUJI_DEMO_WITH_PLAIN";

/// From now on the sources publish nothing.
pub(crate) const HOLD: &str = "hold";
/// Is answered with a line: the counts as a JSON array.
pub(crate) const COUNT: &str = "count";

/// Deep enough for a reader that gets no processor for two seconds.
pub(crate) fn kept(depth: u32) -> Qos {
    Qos { history: History::KeepLast(depth), ..Qos::DEFAULT }
}

const PICTURES_KEPT: u32 = 60;
pub(crate) const COMMANDS_KEPT: u32 = 200;
pub(crate) const SMALL_PICTURES_KEPT: u32 = 20;

const PICTURE_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);
const COMMAND_PERIOD: Duration = Duration::from_millis(10);
/// Every third picture is made small.
const SMALL_EVERY: u64 = 3;
const START_MAX: Duration = Duration::from_secs(60);

/// Plays a role until standard input ends.
pub(crate) fn play(role: Role) -> Result<()> {
    let context = Context::new()?;
    let orders = Orders::default();
    let played = match role {
        Role::Camera => camera(&context, &orders),
        Role::Viewer => viewer(&context, &orders),
        Role::Commander => commander(&context, &orders),
        Role::Base => base(&context, &orders),
    };
    match played {
        // The operator ended while this was still starting.
        Err(_) if !context.is_ok() => Ok(()),
        played => played,
    }
}

/// A camera that draws each picture in the memory that carries it, and in the same process a
/// detector that looks at the same bytes.
fn camera(context: &Context, orders: &Orders) -> Result<()> {
    let camera = context.node("camera")?;
    let detector = context.node("detector")?;

    let spots = detector.publisher::<PointStamped>(SPOTS).qos(kept(PICTURES_KEPT)).build()?;
    let seen = Tally::new(PICTURES, "/detector", End::Received);
    let found = Tally::new(SPOTS, "/detector", End::Sent);
    let mut order = Sequence::default();
    let (tally, told) = (Arc::clone(&seen), Arc::clone(&found));
    let _subscription = detector
        .subscription::<Image>(PICTURES)
        .qos(kept(PICTURES_KEPT))
        .callback(move |received| {
            let image = received.view();
            let (x, y) = picture::find_car(image.data).unwrap_or_default();
            let header =
                Header { stamp: image.header.stamp, frame_id: image.header.frame_id.to_owned() };
            told.add(spots.publish(PointStamped { header, point: Point { x, y, z: 0.0 } }));
            tally.add(order.next(received.info().sequence));
        })?;

    let pictures = camera
        .publisher::<Image>(PICTURES)
        .qos(kept(PICTURES_KEPT))
        .expected_size(picture::BYTES as u64)
        .build()?;
    let drawn = Tally::new(PICTURES, "/camera", End::Sent);
    orders.obey(context, vec![seen, found, Arc::clone(&drawn)])?;
    pictures.wait_for_subscriptions(2, START_MAX)?;

    let painter = Painter::new();
    let mut template = Image {
        header: Header { frame_id: "camera".into(), ..Header::default() },
        height: picture::HEIGHT as u32,
        width: picture::WIDTH as u32,
        encoding: "rgb8".into(),
        step: picture::STEP as u32,
        ..Image::default()
    };
    let mut number = 0;
    let _timer = orders.every(&camera, PICTURE_PERIOD, move || {
        template.header.stamp = now();
        let published = pictures.loan(&template, picture::BYTES).and_then(|mut loan| {
            painter.draw(number, loan.data_mut());
            pictures.publish(loan)
        });
        number += u64::from(published.is_ok());
        drawn.add(published);
    })?;
    let mut executor = Executor::new(context)?.threads(2);
    executor.add(&camera)?.add(&detector)?;
    Ok(executor.spin()?)
}

/// Checks each picture where it lies, and each spot that was found in it.
fn viewer(context: &Context, orders: &Orders) -> Result<()> {
    let node = context.node("viewer")?;
    // A picture, but a small one, which nobody could tell from its type.
    let smalls = node
        .publisher::<Image>(SMALL_PICTURES)
        .qos(kept(SMALL_PICTURES_KEPT))
        .expected_size((picture::SMALL_WIDTH * picture::SMALL_HEIGHT * 3) as u64)
        .build()?;
    let small_tally = Tally::new(SMALL_PICTURES, "/viewer", End::Sent);
    let seen = Tally::new(PICTURES, "/viewer", End::Received);
    let spots_seen = Tally::new(SPOTS, "/viewer", End::Received);
    orders.obey(
        context,
        vec![Arc::clone(&small_tally), Arc::clone(&seen), Arc::clone(&spots_seen)],
    )?;
    smalls.wait_for_subscriptions(1, START_MAX)?;

    let mut expected = 0;
    let _pictures = node.subscription::<Image>(PICTURES).qos(kept(PICTURES_KEPT)).callback(
        move |received| {
            let image = received.view();
            let number = picture::verify(image.data);
            if expected % SMALL_EVERY == 0 {
                small_tally.add(smalls.publish(small(image.data)));
            }
            seen.add(number.and_then(|number| {
                let wanted = std::mem::replace(&mut expected, number + 1);
                is_next("frame", number, wanted)
            }));
        },
    )?;
    let mut number = 0;
    let _spots = node.subscription::<PointStamped>(SPOTS).qos(kept(PICTURES_KEPT)).callback(
        move |received| {
            let point = received.view().point;
            let (x, y) = picture::car_at(number);
            let is_there = (point.x - x as f64).abs() < 1.0 && (point.y - y as f64).abs() < 1.0;
            spots_seen.add(if is_there {
                Ok(())
            } else {
                Err(format!("spot {number} is at {}, {} instead of {x}, {y}", point.x, point.y))
            });
            number += 1;
        },
    )?;
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
        let published = commands.publish(Twist { linear, ..Twist::default() });
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
    let mut expected = 0;
    let _subscription = node.subscription::<Twist>(COMMANDS).qos(kept(COMMANDS_KEPT)).callback(
        move |received| {
            let number = received.view().linear.x as u64;
            let wanted = std::mem::replace(&mut expected, number + 1);
            obeyed.add(is_next("command", number, wanted));
        },
    )?;
    Ok(tsuji::spin(&node)?)
}

/// What the operator wants of this process.
#[derive(Clone, Default)]
struct Orders {
    is_held: Arc<Mutex<bool>>,
}

impl Orders {
    /// Calls back every `period` until it is held. Whoever counts after that counts all.
    fn every(
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

    /// Obeys the lines on standard input, on a thread of its own.
    fn obey(&self, context: &Context, tallies: Vec<Arc<Tally>>) -> Result<()> {
        let (context, is_held) = (context.clone(), Arc::clone(&self.is_held));
        std::thread::Builder::new().name("orders".into()).spawn(move || {
            for order in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
                match order.as_str() {
                    HOLD => *is_held.lock().unwrap_or_else(PoisonError::into_inner) = true,
                    COUNT => {
                        let counts: Vec<_> = tallies.iter().map(|it| it.count()).collect();
                        let line = serde_json::json!(counts);
                        // Nobody listens any more: the end of standard input says so too.
                        let _ = writeln!(std::io::stdout(), "{line}");
                    }
                    _ => (),
                }
            }
            context.shutdown();
        })?;
        Ok(())
    }
}

/// Whether numbers come one after the other.
#[derive(Default)]
struct Sequence {
    last: u64,
}

impl Sequence {
    fn next(&mut self, number: u64) -> std::result::Result<(), String> {
        let wanted = std::mem::replace(&mut self.last, number) + 1;
        is_next("sample", number, wanted)
    }
}

fn is_next(what: &str, number: u64, wanted: u64) -> std::result::Result<(), String> {
    if number == wanted {
        return Ok(());
    }
    Err(format!("{what} {number} came instead of {wanted}"))
}

fn small(data: &[u8]) -> Image {
    Image {
        height: picture::SMALL_HEIGHT as u32,
        width: picture::SMALL_WIDTH as u32,
        encoding: "rgb8".into(),
        step: picture::SMALL_WIDTH as u32 * 3,
        data: picture::shrink(data),
        ..Image::default()
    }
}

fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { sec: i32::try_from(now.as_secs()).unwrap_or(i32::MAX), nanosec: now.subsec_nanos() }
}
