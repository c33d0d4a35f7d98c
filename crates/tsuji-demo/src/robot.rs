//! The robot's processes: which nodes each runs, and what flows between them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tsuji::component::{ComponentOptions, Container, LoadRequest};
use tsuji::{Context, ContextBuilder, Executor};
use tsuji_interfaces::builtin_interfaces::msg::Time;

use crate::Result;
use crate::nodes::{self, Maker, Part, base, camera, detector, driver, viewer};
use crate::orders::Orders;
use crate::stage::{self, Stage};
use crate::tally::{Tallies, Tally};

/// A process of the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The nodes /camera, /detector and /guest.
    Camera,
    /// The node /viewer.
    Viewer,
    /// The node /driver.
    Driver,
    /// The node /base.
    Base,
    /// A container with all nodes but /guest, as components.
    Container,
}

impl Role {
    /// All that there are.
    pub(crate) const ALL: [Self; 5] =
        [Self::Base, Self::Viewer, Self::Driver, Self::Camera, Self::Container];
    /// Those of a robot of several processes, in which they are started.
    pub(crate) const PROCESSES: &[Self] = &[Self::Base, Self::Viewer, Self::Driver, Self::Camera];
    /// Those of a robot of components.
    pub(crate) const COMPONENTS: &[Self] = &[Self::Container];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Viewer => "viewer",
            Self::Driver => "driver",
            Self::Base => "base",
            Self::Container => "container",
        }
    }
}

pub(crate) const PICTURES: &str = "/camera/image";
pub(crate) const SPOTS: &str = "/car";
pub(crate) const SMALL_PICTURES: &str = "/viewer/small";
pub(crate) const COMMANDS: &str = "/cmd_vel";
pub(crate) const ODOMETRY: &str = "/odom";
pub(crate) const SCANS: &str = "/scan";
pub(crate) const DRIVE_TO: &str = "/drive_to";

pub(crate) const CAMERA: &str = "/camera";
pub(crate) const DRIVER: &str = "/driver";
pub(crate) const BASE: &str = "/base";
pub(crate) const OPERATOR: &str = "/operator";
pub(crate) const DETECTOR: &str = "/detector";
pub(crate) const VIEWER: &str = "/viewer";
/// The second viewer, which comes and leaves.
pub(crate) const GUEST: &str = "/guest";
/// The foreign ROS 2 node that hears the commands too.
pub(crate) const FOREIGN: &str = "/foreign";

/// Topic, publishing node, subscribed node of each flow that is counted.
pub(crate) const FLOWS: [(&str, &str, &str); 9] = [
    (PICTURES, CAMERA, DETECTOR),
    (PICTURES, CAMERA, VIEWER),
    (SPOTS, DETECTOR, VIEWER),
    (SMALL_PICTURES, VIEWER, OPERATOR),
    (COMMANDS, DRIVER, BASE),
    (COMMANDS, DRIVER, FOREIGN),
    (ODOMETRY, BASE, DRIVER),
    (ODOMETRY, BASE, CAMERA),
    (SCANS, BASE, DRIVER),
];

/// Set where the foreign node is there, whom the driver waits for.
pub(crate) const WITH_FOREIGN: &str = "TSUJI_DEMO_WITH_FOREIGN";

pub(crate) const PICTURES_KEPT: u32 = 200;
pub(crate) const COMMANDS_KEPT: u32 = 200;
pub(crate) const ODOMETRY_KEPT: u32 = 100;
pub(crate) const SCANS_KEPT: u32 = 20;
pub(crate) const SMALL_PICTURES_KEPT: u32 = 70;

/// Runs the process of a role until standard input ends.
pub(crate) fn run(role: Role) -> Result<()> {
    let orders = Orders::default();
    let done = match role {
        Role::Camera => with_stage(&orders),
        Role::Viewer => alone(&orders, viewer::new),
        Role::Driver => alone(&orders, driver::new),
        Role::Base => alone(&orders, base::new),
        Role::Container => contained(&orders),
    };
    match done {
        // The operator ended while this was still starting.
        Err(_) if orders.have_ended() => Ok(()),
        done => done,
    }
}

/// The settings of this robot, which come by the environment. What its nodes log goes to `/rosout` alone: on the terminal it
/// would stand in the middle of what is drawn.
pub(crate) fn settings() -> ContextBuilder {
    let builder = Context::builder();
    match is_warned() {
        true => builder,
        false => builder.args(["--ros-args", "--disable-stdout-logs"].map(str::to_owned)),
    }
}

/// Whether the user wants warnings of the robot's processes. Transports are cut here on purpose.
pub(crate) fn is_warned() -> bool {
    std::env::var_os(WARNINGS).is_some_and(|it| it != "off")
}

pub(crate) const WARNINGS: &str = "TSUJI_WARNINGS";

/// One node in a process.
fn alone(orders: &Orders, make: Maker) -> Result<()> {
    let context = settings().build()?;
    let part = make(&ComponentOptions::new(&context), orders)?;
    orders.start(&context, shared(&[&part], None), |_| Ok(()))?;
    Ok(tsuji::spin(&part.node)?)
}

/// The camera and the detector, and what is done to them.
fn with_stage(orders: &Orders) -> Result<()> {
    let (context, engine) = stage::context_with_faults()?;
    let options = ComponentOptions::new(&context);
    let (camera, controls) = camera::with_controls(&options, orders)?;
    let detector = detector::new(&options, orders)?;
    let mut stage = Stage::new(&context, controls, engine)?;
    let guest = stage.guest.clone();
    let tallies = shared(&[&camera, &detector], Some(&stage.guest_received));
    orders.start(&context, tallies, move |order| stage.on_order(order))?;
    let mut executor = Executor::new(&context)?.threads(3);
    executor.add(&camera.node)?.add(&detector.node)?.add(&guest)?;
    Ok(executor.spin()?)
}

/// All of them in one process, each loaded as a component.
fn contained(orders: &Orders) -> Result<()> {
    let context = settings().build()?;
    let tallies = Tallies::default();
    let container = Container::new(&context, CONTAINER, nodes::registered(orders, &tallies))?;
    orders.start(&context, tallies, |_| Ok(()))?;
    for (name, _) in nodes::COMPONENTS {
        container.load(LoadRequest::new(nodes::PACKAGE, name))?;
    }
    Ok(container.spin()?)
}

const CONTAINER: &str = "robot";

fn shared(parts: &[&Part], also: Option<&Arc<Tally>>) -> Tallies {
    let tallies = parts.iter().flat_map(|it| &it.tallies).chain(also);
    Arc::new(Mutex::new(tallies.cloned().collect()))
}

pub(crate) fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { sec: i32::try_from(now.as_secs()).unwrap_or(i32::MAX), nanosec: now.subsec_nanos() }
}

/// The time since `stamp`.
pub(crate) fn age(stamp: Time) -> Duration {
    let stamp = Duration::new(u64::try_from(stamp.sec).unwrap_or_default(), stamp.nanosec);
    SystemTime::now().duration_since(UNIX_EPOCH + stamp).unwrap_or_default()
}
