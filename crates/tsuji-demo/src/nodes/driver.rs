//! The driver: drives to places that it is asked for, by the action `drive_to`, and commands the base meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsuji::action::{ActionServerOptions, GoalHandle, ManyGoals};
use tsuji::component::ComponentOptions;
use tsuji::log::Logger;
use tsuji::parameter::{ParameterDescriptor, ParameterRange};
use tsuji::{info, warn};
use tsuji_interfaces::geometry_msgs::msg::{Point, Twist, Vector3};
use tsuji_interfaces::sensor_msgs::msg::LaserScan;
use tsuji_interfaces::tsuji_demo_msgs::action::{DriveTo, DriveToFeedback, DriveToResult};

use super::base::AHEAD;
use super::{Audience, Part, follow, kept};
use crate::orders::{Orders, insist};
use crate::pilot::{self, Pilot};
use crate::robot::{COMMANDS, COMMANDS_KEPT, DRIVE_TO, FOREIGN, SCANS, SCANS_KEPT, WITH_FOREIGN};
use crate::sequence::Sequence;
use crate::tally::{End, Tally, lock};
use crate::world::{FASTEST, Place, Pose, Velocity};

const PERIOD: Duration = Duration::from_millis(10);
const TELL_EVERY: Duration = Duration::from_millis(200);
/// Where the robot comes no nearer for so long, the goal is given up.
const PATIENCE: Duration = Duration::from_secs(20);
/// Metres a second, unless it is told otherwise.
const SPEED: f64 = 1.5;

/// What it knows, and where it drives to.
#[derive(Debug, Default)]
struct Wheel {
    pilot: Pilot,
    /// `None` until the base has told.
    pose: Option<Pose>,
    free_ahead: f64,
    /// Metres since the goal came.
    driven: f64,
}

type Shared = Arc<Mutex<Wheel>>;

pub(crate) fn new(options: &ComponentOptions, orders: &Orders) -> tsuji::Result<Part> {
    let node = options.node("driver")?;
    let logger = node.logger();
    let parameters = node.parameters()?;
    let descriptor = ParameterDescriptor {
        description: "how fast it drives at most, in metres a second".to_owned(),
        range: Some(ParameterRange::FloatingPoint { from: 0.1, to: FASTEST.ahead, step: 0.0 }),
        ..ParameterDescriptor::default()
    };
    parameters.declare_with("speed", SPEED, descriptor)?;

    let wheel = Shared::default();
    let followed = Arc::clone(&wheel);
    let (odometry, heard) = follow(&node, "/driver", move |pose| {
        let mut wheel = lock(&followed);
        let before = wheel.pose.replace(pose);
        wheel.driven += before.map_or(0.0, |it| it.place.distance(pose.place));
    })?;
    let seen = Tally::new(SCANS, "/driver", End::Received);
    let (looked, tally) = (Arc::clone(&wheel), Arc::clone(&seen));
    let mut order = Sequence::from_first(1);
    let scans =
        node.create_subscription::<LaserScan>(SCANS, kept(SCANS_KEPT), move |received| {
            let ahead = received.view().ranges.get(AHEAD);
            lock(&looked).free_ahead = f64::from(ahead.unwrap_or_default());
            tally.add(order.next("scan", received.info().sequence));
        })?;

    let (asked, refused) = (Arc::clone(&wheel), logger.clone());
    let server = ActionServerOptions::<DriveTo>::new(DRIVE_TO)
        // Whoever asks last is driven for.
        .many_goals(ManyGoals::Preempt)
        .on_goal(move |_, goal| {
            let allowed = pilot::check(place(&goal.target));
            allowed.inspect_err(|why| warn!(refused, "{why}")).is_ok()
        });
    let said = logger.clone();
    let server = node.create_action_server(server, move |goal| pursue(goal, &asked, &said))?;

    let commands = node.create_publisher::<Twist>(COMMANDS, kept(COMMANDS_KEPT))?;
    let given = Tally::new(COMMANDS, "/driver", End::Sent);
    let tallies = vec![heard, seen, Arc::clone(&given)];
    let with_foreign = std::env::var_os(WITH_FOREIGN).is_some();
    let mut audience = Audience::of(if with_foreign { &["/base", FOREIGN] } else { &["/base"] });
    let spoken = node.clone();
    let timer = orders.every(&node, PERIOD, move || {
        if !audience.is_there(&spoken, &commands) {
            return;
        }
        let speed = parameters.get("speed").unwrap_or(SPEED);
        let velocity = lock(&wheel).steer(speed);
        let command = Twist {
            linear: Vector3 { x: velocity.ahead, ..Vector3::default() },
            angular: Vector3 { z: velocity.turn, ..Vector3::default() },
        };
        given.add(insist(|| commands.publish(command)));
    })?;
    Ok(Part::new(node, tallies, (odometry, scans, server, timer)))
}

impl Wheel {
    fn steer(&mut self, speed: f64) -> Velocity {
        let Some(pose) = self.pose else { return Velocity::default() };
        self.pilot.steer(&pose, speed, self.free_ahead)
    }
}

/// Drives there, tells how far it still is, and says how it went.
fn pursue(goal: GoalHandle<DriveTo>, wheel: &Shared, logger: &Logger) {
    let to = place(&goal.goal().target);
    let outcome = drive(&goal, wheel, to);
    let (driven, position) = {
        let mut wheel = lock(wheel);
        wheel.pilot.stop();
        (wheel.driven, wheel.pose.unwrap_or_default().place)
    };
    let Place { x, y } = position;
    let result = DriveToResult { position: Point { x, y, z: 0.0 }, distance: driven };
    let ended = match outcome {
        Ok(true) => {
            info!(logger, "has come to {x:.1}, {y:.1} after {driven:.1} m");
            goal.succeed(result)
        }
        Ok(false) => goal.canceled(result),
        Err(why) => {
            warn!(logger, "gives up: {why}");
            goal.abort(result)
        }
    };
    if let Err(error) = ended {
        warn!(logger, %error, "a goal has ended otherwise");
    }
}

/// Whether it has come there, or was told to give up.
fn drive(goal: &GoalHandle<DriveTo>, wheel: &Shared, to: Place) -> Result<bool, String> {
    lock(wheel).driven = 0.0;
    let (mut nearest, mut waited) = (f64::INFINITY, Duration::ZERO);
    // The base may have to start yet.
    let from = loop {
        if let Some(pose) = lock(wheel).pose {
            break pose.place;
        }
        if goal.sleep(TELL_EVERY) {
            return Ok(false);
        }
        waited += TELL_EVERY;
        if PATIENCE <= waited {
            return Err("nobody knows where the robot is".to_owned());
        }
    };
    lock(wheel).pilot.set_out(from, to)?;
    loop {
        if goal.sleep(TELL_EVERY) {
            return Ok(false);
        }
        let left = {
            let wheel = lock(wheel);
            if wheel.pilot.has_arrived() {
                return Ok(true);
            }
            wheel.pilot.distance_left(wheel.pose.unwrap_or_default().place)
        };
        // Whoever listens gets the next.
        let _ = goal.publish_feedback(DriveToFeedback { distance_remaining: left });
        waited = if left < nearest - NEARER { Duration::ZERO } else { waited + TELL_EVERY };
        nearest = nearest.min(left);
        if PATIENCE <= waited {
            return Err(format!("the robot has not moved for {} s", PATIENCE.as_secs()));
        }
    }
}

/// Metres that count as coming nearer.
const NEARER: f64 = 0.01;

fn place(point: &Point) -> Place {
    Place { x: point.x, y: point.y }
}
