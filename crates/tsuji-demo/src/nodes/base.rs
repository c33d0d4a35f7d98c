//! The base, which moves the robot: it obeys commands, tells where the robot is and what stands round it, and stands still
//! when nobody commands.

use std::f64::consts::PI;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tsuji::component::ComponentOptions;
use tsuji::{MessageInfo, Qos, info, warn};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::geometry_msgs::msg::{
    Point, Pose as PoseMessage, PoseWithCovariance, Transform, TransformStamped, Twist,
    TwistWithCovariance, Vector3,
};
use tsuji_interfaces::nav_msgs::msg::{MapMetaData, OccupancyGrid, Odometry};
use tsuji_interfaces::sensor_msgs::msg::LaserScan;
use tsuji_interfaces::std_msgs::msg::Header;
use tsuji_interfaces::std_srvs::srv::{SetBool, SetBoolResponse};
use tsuji_interfaces::tf2_msgs::msg::TFMessage;

use super::{Audience, Latest, Part, kept, rotation};
use crate::orders::{Orders, insist};
use crate::robot::{COMMANDS, COMMANDS_KEPT, ODOMETRY, ODOMETRY_KEPT, SCANS, SCANS_KEPT, now};
use crate::sequence::Sequence;
use crate::tally::{End, Tally};
use crate::world::{self, MAP_CELLS, MAP_HALF, MAP_RESOLUTION, Pose, SIGHT, Velocity};

const PERIOD: Duration = Duration::from_millis(20);
/// Every fifth time it looks round.
const LOOK_EVERY: u64 = 5;
/// A command counts for so many periods: half a second.
const COMMAND_COUNTS: u32 = 25;
/// One a degree.
const BEAMS: usize = 360;

/// What it was commanded last, and how many periods ago.
#[derive(Clone, Copy, Debug, Default)]
struct Command {
    velocity: Velocity,
    periods: u32,
}

pub(crate) fn new(options: &ComponentOptions, orders: &Orders) -> tsuji::Result<Part> {
    let node = options.node("base")?;
    let logger = node.logger();
    let told = Tally::new(ODOMETRY, "/base", End::Sent);
    let looked = Tally::new(SCANS, "/base", End::Sent);
    let obeyed = Tally::new(COMMANDS, "/base", End::Received);
    let tallies = vec![Arc::clone(&told), Arc::clone(&looked), Arc::clone(&obeyed)];

    let command = Arc::new(Latest::<Command>::default());
    let motors = Arc::new(AtomicBool::new(true));
    let (commanded, mut order, mut driver) = (Arc::clone(&command), Sequence::from_first(1), None);
    let commands =
        node.create_subscription::<Twist>(COMMANDS, kept(COMMANDS_KEPT), move |received| {
            let Twist { linear, angular } = *received.message();
            commanded.set(Command {
                velocity: Velocity { ahead: linear.x, turn: angular.z },
                periods: 0,
            });
            // Others may steer too. What the driver sent is counted, who was there first.
            let MessageInfo { publisher, sequence, .. } = *received.info();
            if *driver.get_or_insert(publisher) == publisher {
                obeyed.add(order.next("command", sequence));
            }
        })?;
    let (switched, said) = (Arc::clone(&motors), logger.clone());
    let switch = node.create_service::<SetBool>("motors", move |asked| {
        switched.store(asked.data, Ordering::Relaxed);
        let message = if asked.data { "the motors are on" } else { "the motors are off" };
        info!(said, "{message}");
        SetBoolResponse { success: true, message: message.to_owned() }
    })?;

    let map = node.create_publisher::<OccupancyGrid>("map", Qos::LATCHED)?;
    map.publish(map_message(now()))?;
    let fixed = node.create_publisher::<TFMessage>("/tf_static", Qos::LATCHED)?;
    let nowhere_else = [("map", "odom"), ("base_link", "laser")];
    let fixed_at = now();
    fixed.publish(TFMessage {
        transforms: nowhere_else
            .into_iter()
            .map(|(parent, child)| transform(fixed_at, parent, child, &Pose::default()))
            .collect(),
    })?;

    let odometry = node.create_publisher::<Odometry>(ODOMETRY, kept(ODOMETRY_KEPT))?;
    let transforms = node.create_publisher::<TFMessage>("/tf", kept(ODOMETRY_KEPT))?;
    let scans = node.create_publisher::<LaserScan>(SCANS, kept(SCANS_KEPT))?;
    let (mut pose, mut was_free, mut number) = (Pose::START, true, 0u64);
    let mut audience = Audience::of(&["/driver", "/camera"]);
    let mut spectators = Audience::of(&["/driver"]);
    let spoken = node.clone();
    let timer = orders.every(&node, PERIOD, move || {
        let Command { velocity, periods } = command.value();
        let counts = periods < COMMAND_COUNTS && motors.load(Ordering::Relaxed);
        let velocity = if counts { velocity } else { Velocity::default() };
        command.update(|it| Command { periods: it.periods.saturating_add(1), ..it });
        let (moved, velocity, is_free) = pose.moved(velocity, PERIOD.as_secs_f64());
        if was_free && !is_free {
            warn!(logger, "stands before something at {:.2}, {:.2}", pose.place.x, pose.place.y);
        }
        (pose, was_free) = (moved, is_free);
        let stamp = now();
        if audience.is_there(&spoken, &odometry) {
            told.add(insist(|| odometry.publish(odometry_message(stamp, &pose, velocity))));
        }
        let moving = transform(stamp, "odom", "base_link", &pose);
        // Who looks at this does not count it, and the next comes soon.
        let _ = transforms.publish(TFMessage { transforms: vec![moving] });
        if number.is_multiple_of(LOOK_EVERY) && spectators.is_there(&spoken, &scans) {
            looked.add(insist(|| scans.publish(scan_message(stamp, &pose))));
        }
        number += 1;
    })?;
    Ok(Part::new(node, tallies, (commands, switch, map, fixed, timer)))
}

fn header(stamp: Time, frame: &str) -> Header {
    Header { stamp, frame_id: frame.to_owned() }
}

fn transform(stamp: Time, parent: &str, child: &str, pose: &Pose) -> TransformStamped {
    let translation = Vector3 { x: pose.place.x, y: pose.place.y, z: 0.0 };
    TransformStamped {
        header: header(stamp, parent),
        child_frame_id: child.to_owned(),
        transform: Transform { translation, rotation: rotation(pose.heading) },
    }
}

fn odometry_message(stamp: Time, pose: &Pose, velocity: Velocity) -> Odometry {
    let position = Point { x: pose.place.x, y: pose.place.y, z: 0.0 };
    let (linear, angular) = (
        Vector3 { x: velocity.ahead, ..Vector3::default() },
        Vector3 { z: velocity.turn, ..Vector3::default() },
    );
    Odometry {
        header: header(stamp, "odom"),
        child_frame_id: "base_link".to_owned(),
        pose: PoseWithCovariance {
            pose: PoseMessage { position, orientation: rotation(pose.heading) },
            ..PoseWithCovariance::default()
        },
        twist: TwistWithCovariance {
            twist: Twist { linear, angular },
            ..TwistWithCovariance::default()
        },
    }
}

/// From straight behind, once round to the left.
fn scan_message(stamp: Time, pose: &Pose) -> LaserScan {
    let step = 2.0 * PI / BEAMS as f64;
    let angle = |beam: usize| beam as f64 * step - PI;
    LaserScan {
        header: header(stamp, "laser"),
        angle_min: angle(0) as f32,
        angle_max: angle(BEAMS - 1) as f32,
        angle_increment: step as f32,
        scan_time: (PERIOD * LOOK_EVERY as u32).as_secs_f32(),
        range_max: SIGHT as f32,
        ranges: (0..BEAMS).map(|beam| pose.sight(angle(beam)) as f32).collect(),
        ..LaserScan::default()
    }
}

/// Which beam of a scan looks straight ahead.
pub(crate) const AHEAD: usize = BEAMS / 2;

fn map_message(stamp: Time) -> OccupancyGrid {
    let (width, height) = MAP_CELLS;
    let position = Point { x: -MAP_HALF.0, y: -MAP_HALF.1, z: 0.0 };
    OccupancyGrid {
        header: header(stamp, "map"),
        info: MapMetaData {
            map_load_time: stamp,
            resolution: MAP_RESOLUTION as f32,
            width: width as u32,
            height: height as u32,
            origin: PoseMessage { position, orientation: rotation(0.0) },
        },
        data: world::map(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_looks_ahead_in_its_middle() {
        let scan = scan_message(Time::default(), &Pose::default());
        assert_eq!(scan.ranges.len(), BEAMS);
        let angle = f64::from(scan.angle_min) + AHEAD as f64 * f64::from(scan.angle_increment);
        assert!(angle.abs() < 1e-3, "{angle}");
        assert!((f64::from(scan.ranges[AHEAD]) - world::HALF_WIDTH).abs() < 1e-6);
    }
}
