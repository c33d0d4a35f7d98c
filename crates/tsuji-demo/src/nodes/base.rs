//! The base, which moves the robot: it follows commands, publishes where the robot is and what stands round it, and stands
//! still when nobody commands.

use std::f64::consts::PI;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsuji::component::ComponentOptions;
use tsuji::{MessageInfo, Qos, info, warn};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::geometry_msgs::msg::{
    Pose as PoseMessage, PoseWithCovariance, Transform, TransformStamped, Twist,
    TwistWithCovariance, Vector3,
};
use tsuji_interfaces::nav_msgs::msg::{MapMetaData, OccupancyGrid, Odometry};
use tsuji_interfaces::sensor_msgs::msg::LaserScan;
use tsuji_interfaces::std_srvs::srv::{SetBool, SetBoolResponse};
use tsuji_interfaces::tf2_msgs::msg::TFMessage;

use super::{Audience, Part, header, kept, point, rotation, twist};
use crate::lock::lock;
use crate::orders::{Orders, retry};
use crate::robot::{
    BASE, CAMERA, COMMANDS, COMMANDS_KEPT, DRIVER, ODOMETRY, ODOMETRY_KEPT, SCANS, SCANS_KEPT, now,
};
use crate::sequence::Sequence;
use crate::tally::{End, Tally};
use crate::world::{self, MAP_CELLS, MAP_HALF, MAP_RESOLUTION, Place, Pose, SIGHT, Velocity};

const PERIOD: Duration = Duration::from_millis(20);
/// Every fifth time it scans.
const SCAN_EVERY: u64 = 5;
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
    let odometry_sent = Tally::new(ODOMETRY, BASE, End::Sent);
    let scans_sent = Tally::new(SCANS, BASE, End::Sent);
    let commands_received = Tally::new(COMMANDS, BASE, End::Received);
    let tallies =
        vec![Arc::clone(&odometry_sent), Arc::clone(&scans_sent), Arc::clone(&commands_received)];

    let command = Arc::new(Mutex::new(Command::default()));
    let motors = Arc::new(AtomicBool::new(true));
    let (commanded, mut order, mut driver) = (Arc::clone(&command), Sequence::from_first(1), None);
    let commands =
        node.create_subscription::<Twist>(COMMANDS, kept(COMMANDS_KEPT), move |received| {
            let Twist { linear, angular } = *received.message();
            let velocity = Velocity { ahead: linear.x, turn: angular.z };
            *lock(&commanded) = Command { velocity, periods: 0 };
            // Others may steer too. What the driver sent is counted, who was there first.
            let MessageInfo { publisher, sequence, .. } = *received.info();
            if *driver.get_or_insert(publisher) == publisher {
                commands_received.add(order.next("command", sequence));
            }
        })?;
    let (switched, switch_logger) = (Arc::clone(&motors), logger.clone());
    let switch = node.create_service::<SetBool>("motors", move |request| {
        switched.store(request.data, Ordering::Relaxed);
        let message = if request.data { "the motors are on" } else { "the motors are off" };
        info!(switch_logger, "{message}");
        SetBoolResponse { success: true, message: message.to_owned() }
    })?;

    let map = node.create_publisher::<OccupancyGrid>("map", Qos::LATCHED)?;
    map.publish(map_message(now()))?;
    let fixed = node.create_publisher::<TFMessage>("/tf_static", Qos::LATCHED)?;
    let (fixed_frames, fixed_at) = ([("map", "odom"), ("base_link", "laser")], now());
    fixed.publish(TFMessage {
        transforms: fixed_frames
            .into_iter()
            .map(|(parent, child)| transform(fixed_at, parent, child, &Pose::default()))
            .collect(),
    })?;

    let odometry = node.create_publisher::<Odometry>(ODOMETRY, kept(ODOMETRY_KEPT))?;
    let transforms = node.create_publisher::<TFMessage>("/tf", kept(ODOMETRY_KEPT))?;
    let scans = node.create_publisher::<LaserScan>(SCANS, kept(SCANS_KEPT))?;
    let (mut pose, mut was_free, mut number) = (Pose::START, true, 0u64);
    let mut odometry_audience = Audience::of(&[DRIVER, CAMERA]);
    let mut scan_audience = Audience::of(&[DRIVER]);
    let timer_node = node.clone();
    let timer = orders.every(&node, PERIOD, move || {
        let velocity = {
            let mut command = lock(&command);
            let counts = command.periods < COMMAND_COUNTS && motors.load(Ordering::Relaxed);
            command.periods = command.periods.saturating_add(1);
            if counts { command.velocity } else { Velocity::default() }
        };
        let (moved, velocity, is_free) = pose.moved(velocity, PERIOD.as_secs_f64());
        if was_free && !is_free {
            warn!(logger, "stands before something at {:.2}, {:.2}", pose.place.x, pose.place.y);
        }
        (pose, was_free) = (moved, is_free);
        let stamp = now();
        if odometry_audience.is_there(&timer_node, &odometry) {
            odometry_sent.add(retry(|| odometry.publish(odometry_message(stamp, &pose, velocity))));
        }
        let moving = transform(stamp, "odom", "base_link", &pose);
        // Who looks at this does not count it, and the next comes soon.
        let _ = transforms.publish(TFMessage { transforms: vec![moving] });
        if number.is_multiple_of(SCAN_EVERY) && scan_audience.is_there(&timer_node, &scans) {
            scans_sent.add(retry(|| scans.publish(scan_message(stamp, &pose))));
        }
        number += 1;
    })?;
    Ok(Part::new(node, tallies, (commands, switch, map, fixed, timer)))
}

fn transform(stamp: Time, parent: &str, child: &str, pose: &Pose) -> TransformStamped {
    let translation = Vector3 { x: pose.place.x, y: pose.place.y, z: 0.0 };
    TransformStamped {
        header: header(stamp, parent),
        child_frame_id: child.to_owned(),
        transform: Transform { translation, rotation: rotation(pose.heading) },
    }
}

fn pose_message(pose: &Pose) -> PoseMessage {
    PoseMessage { position: point(pose.place), orientation: rotation(pose.heading) }
}

fn odometry_message(stamp: Time, pose: &Pose, velocity: Velocity) -> Odometry {
    Odometry {
        header: header(stamp, "odom"),
        child_frame_id: "base_link".to_owned(),
        pose: PoseWithCovariance { pose: pose_message(pose), ..PoseWithCovariance::default() },
        twist: TwistWithCovariance { twist: twist(velocity), ..TwistWithCovariance::default() },
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
        scan_time: (PERIOD * SCAN_EVERY as u32).as_secs_f32(),
        range_max: SIGHT as f32,
        ranges: (0..BEAMS).map(|beam| pose.sight(angle(beam)) as f32).collect(),
        ..LaserScan::default()
    }
}

/// Which beam of a scan looks straight ahead.
pub(crate) const AHEAD: usize = BEAMS / 2;

fn map_message(stamp: Time) -> OccupancyGrid {
    let (width, height) = MAP_CELLS;
    let south_west = Place { x: -MAP_HALF.0, y: -MAP_HALF.1 };
    OccupancyGrid {
        header: header(stamp, "map"),
        info: MapMetaData {
            map_load_time: stamp,
            resolution: MAP_RESOLUTION as f32,
            width: width as u32,
            height: height as u32,
            origin: pose_message(&Pose { place: south_west, heading: 0.0 }),
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
