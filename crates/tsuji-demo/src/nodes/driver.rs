//! The driver: drives to places that it is asked for, by the action `drive_to`, and commands the base meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsuji::action::{ActionServerOptions, GoalHandle, ManyGoals};
use tsuji::component::ComponentOptions;
use tsuji::log::Logger;
use tsuji::parameter::{ParameterDescriptor, ParameterRange};
use tsuji::{info, warn};
use tsuji_interfaces::geometry_msgs::msg::Twist;
use tsuji_interfaces::sensor_msgs::msg::LaserScan;
use tsuji_interfaces::tsuji_demo_msgs::action::{DriveTo, DriveToFeedback, DriveToResult};

use super::base::AHEAD;
use super::{Audience, Part, follow, kept, place, point, twist};
use crate::lock::lock;
use crate::orders::{Orders, retry};
use crate::pilot::{self, Pilot};
use crate::robot::{
    BASE, COMMANDS, COMMANDS_KEPT, DRIVE_TO, DRIVER, FOREIGN, SCANS, SCANS_KEPT, WITH_FOREIGN,
};
use crate::sequence::Sequence;
use crate::tally::{End, Tally};
use crate::world::{FASTEST, Place, Pose, Velocity};

const PERIOD: Duration = Duration::from_millis(10);
const FEEDBACK_PERIOD: Duration = Duration::from_millis(200);
/// Where the robot comes no nearer for so long, the goal is given up.
const PATIENCE: Duration = Duration::from_secs(20);
/// Metres a second, unless it is told otherwise.
const SPEED: f64 = 1.5;

/// What it knows, and where it drives to.
#[derive(Debug, Default)]
struct State {
    pilot: Pilot,
    /// `None` until the base has published it.
    pose: Option<Pose>,
    free_ahead: f64,
    /// Metres since the goal came.
    driven: f64,
}

type Shared = Arc<Mutex<State>>;

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

    let state = Shared::default();
    let followed = Arc::clone(&state);
    let (odometry, odometry_received) = follow(&node, DRIVER, move |pose| {
        let mut state = lock(&followed);
        let before = state.pose.replace(pose);
        state.driven += before.map_or(0.0, |it| it.place.distance(pose.place));
    })?;
    let scans_received = Tally::new(SCANS, DRIVER, End::Received);
    let (scanned, tally) = (Arc::clone(&state), Arc::clone(&scans_received));
    let mut order = Sequence::from_first(1);
    let scans =
        node.create_subscription::<LaserScan>(SCANS, kept(SCANS_KEPT), move |received| {
            let ahead = received.view().ranges.get(AHEAD);
            lock(&scanned).free_ahead = f64::from(ahead.unwrap_or_default());
            tally.add(order.next("scan", received.info().sequence));
        })?;

    let check_logger = logger.clone();
    let server = ActionServerOptions::<DriveTo>::new(DRIVE_TO)
        // Whoever asks last is driven for.
        .many_goals(ManyGoals::Preempt)
        .on_goal(move |_, goal| {
            let allowed = pilot::check(place(&goal.target));
            allowed.inspect_err(|why| warn!(check_logger, "{why}")).is_ok()
        });
    let steered = Arc::clone(&state);
    let server = node.create_action_server(server, move |goal| execute(goal, &steered, &logger))?;

    let commands = node.create_publisher::<Twist>(COMMANDS, kept(COMMANDS_KEPT))?;
    let commands_sent = Tally::new(COMMANDS, DRIVER, End::Sent);
    let tallies = vec![odometry_received, scans_received, Arc::clone(&commands_sent)];
    let with_foreign = std::env::var_os(WITH_FOREIGN).is_some();
    let mut audience = Audience::of(if with_foreign { &[BASE, FOREIGN] } else { &[BASE] });
    let timer_node = node.clone();
    let timer = orders.every(&node, PERIOD, move || {
        if !audience.is_there(&timer_node, &commands) {
            return;
        }
        let speed = parameters.get("speed").unwrap_or(SPEED);
        let command = twist(lock(&state).steer(speed));
        commands_sent.add(retry(|| commands.publish(command)));
    })?;
    Ok(Part::new(node, tallies, (odometry, scans, server, timer)))
}

impl State {
    fn steer(&mut self, speed: f64) -> Velocity {
        let Some(pose) = self.pose else { return Velocity::default() };
        self.pilot.steer(&pose, speed, self.free_ahead)
    }
}

/// Drives there with feedback of how far it still is, and ends the goal as it went.
fn execute(goal: GoalHandle<DriveTo>, state: &Shared, logger: &Logger) {
    let outcome = drive(&goal, state, place(&goal.goal().target));
    let (driven, position) = {
        let mut state = lock(state);
        state.pilot.stop();
        (state.driven, state.pose.unwrap_or_default().place)
    };
    let result = DriveToResult { position: point(position), distance: driven };
    let ended = match outcome {
        Ok(true) => {
            let Place { x, y } = position;
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
fn drive(goal: &GoalHandle<DriveTo>, state: &Shared, to: Place) -> Result<bool, String> {
    lock(state).driven = 0.0;
    let (mut nearest, mut waited) = (f64::INFINITY, Duration::ZERO);
    // The base may have to start yet.
    let from = loop {
        if let Some(pose) = lock(state).pose {
            break pose.place;
        }
        if goal.sleep(FEEDBACK_PERIOD) {
            return Ok(false);
        }
        waited += FEEDBACK_PERIOD;
        if PATIENCE <= waited {
            return Err("nobody knows where the robot is".to_owned());
        }
    };
    lock(state).pilot.set_out(from, to)?;
    loop {
        if goal.sleep(FEEDBACK_PERIOD) {
            return Ok(false);
        }
        let left = {
            let state = lock(state);
            if state.pilot.has_arrived() {
                return Ok(true);
            }
            state.pilot.distance_left(state.pose.unwrap_or_default().place)
        };
        // Whoever listens gets the next.
        let _ = goal.publish_feedback(DriveToFeedback { distance_remaining: left });
        waited = if left < nearest - NEARER { Duration::ZERO } else { waited + FEEDBACK_PERIOD };
        nearest = nearest.min(left);
        if PATIENCE <= waited {
            return Err(format!("the robot has not moved for {} s", PATIENCE.as_secs()));
        }
    }
}

/// Metres that count as coming nearer.
const NEARER: f64 = 0.01;
