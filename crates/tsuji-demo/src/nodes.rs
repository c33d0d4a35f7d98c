//! The robot's nodes. Each is a component: a process of the robot runs some of them, and a container any of them.

use std::any::Any;
use std::sync::Arc;

use tsuji::component::{Component, ComponentOptions, Registered};
use tsuji::{EndpointKind, Message, Node, Publisher, Qos, Subscription};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::geometry_msgs::msg::{Point, Quaternion, Twist, Vector3};
use tsuji_interfaces::nav_msgs::msg::{Odometry, OdometryView};
use tsuji_interfaces::std_msgs::msg::Header;

use crate::lock::lock;
use crate::orders::Orders;
use crate::robot::{ODOMETRY, ODOMETRY_KEPT};
use crate::sequence::Sequence;
use crate::tally::{End, Tallies, Tally};
use crate::world::{Place, Pose, Velocity};

pub(crate) mod base;
pub(crate) mod camera;
pub(crate) mod detector;
pub(crate) mod driver;
pub(crate) mod viewer;

/// The package that the components are of.
pub(crate) const PACKAGE: &str = "tsuji_demo";

/// A node, what it keeps, and what it counts.
pub(crate) struct Part {
    pub(crate) node: Node,
    pub(crate) tallies: Vec<Arc<Tally>>,
    /// Publishers, subscriptions, timers and servers, which act for as long as they are kept.
    _kept: Box<dyn Any + Send>,
}

impl Part {
    fn new(node: Node, tallies: Vec<Arc<Tally>>, kept: impl Send + 'static) -> Self {
        Self { node, tallies, _kept: Box::new(kept) }
    }
}

impl Component for Part {
    fn node(&self) -> &Node {
        &self.node
    }
}

/// Makes a node of the robot.
pub(crate) type Maker = fn(&ComponentOptions, &Orders) -> tsuji::Result<Part>;

/// The robot's nodes as components, with their names.
pub(crate) const COMPONENTS: [(&str, Maker); 5] = [
    ("Base", base::new),
    ("Driver", driver::new),
    ("Camera", camera::new),
    ("Detector", detector::new),
    ("Viewer", viewer::new),
];

/// The same for a container, which `orders` hold and which are counted in `tallies`.
pub(crate) fn registered(orders: &Orders, tallies: &Tallies) -> Registered {
    COMPONENTS.into_iter().fold(Registered::new(), |registered, (name, make)| {
        let (orders, tallies) = (orders.clone(), Arc::clone(tallies));
        registered.with(PACKAGE, name, move |options: &ComponentOptions| {
            let part = make(options, &orders)?;
            lock(&tallies).extend(part.tallies.iter().cloned());
            Ok(part)
        })
    })
}

/// Deep enough for a reader that gets no processor for two seconds.
pub(crate) const fn kept(depth: u32) -> Qos {
    Qos::DEFAULT.keep_last(depth)
}

/// Whether those nodes are there that count what they receive. Whoever was there once is waited for no more.
struct Audience {
    wanted: &'static [&'static str],
    has_come: bool,
}

impl Audience {
    fn of(wanted: &'static [&'static str]) -> Self {
        Self { wanted, has_come: false }
    }

    fn is_there<M: Message>(&mut self, node: &Node, publisher: &Publisher<M>) -> bool {
        // Cheap while somebody is missing, which others who listen do not make up for.
        if !self.has_come && self.wanted.len() <= publisher.matched() {
            let ends = node.context().endpoints_of(publisher.topic());
            let listens = |wanted: &&str| {
                ends.iter().any(|it| it.kind == EndpointKind::Subscription && it.node == **wanted)
            };
            self.has_come = self.wanted.iter().all(listens);
        }
        self.has_come
    }
}

/// Subscribes to where the robot is, as `node`, and counts what comes.
fn follow(
    node: &Node,
    name: &'static str,
    mut on_pose: impl FnMut(Pose) + Send + 'static,
) -> tsuji::Result<(Subscription<Odometry>, Arc<Tally>)> {
    let received = Tally::new(ODOMETRY, name, End::Received);
    let (tally, mut order) = (Arc::clone(&received), Sequence::from_first(1));
    let subscription =
        node.create_subscription::<Odometry>(ODOMETRY, kept(ODOMETRY_KEPT), move |received| {
            on_pose(pose_of(&received.view()));
            tally.add(order.next("odometry", received.info().sequence));
        })?;
    Ok((subscription, received))
}

fn header(stamp: Time, frame: &str) -> Header {
    Header { stamp, frame_id: frame.to_owned() }
}

fn pose_of(odometry: &OdometryView<'_>) -> Pose {
    let pose = odometry.pose.pose;
    Pose { place: place(&pose.position), heading: heading_of(&pose.orientation) }
}

pub(crate) fn point(place: Place) -> Point {
    Point { x: place.x, y: place.y, z: 0.0 }
}

fn place(point: &Point) -> Place {
    Place { x: point.x, y: point.y }
}

fn twist(velocity: Velocity) -> Twist {
    Twist {
        linear: Vector3 { x: velocity.ahead, ..Vector3::default() },
        angular: Vector3 { z: velocity.turn, ..Vector3::default() },
    }
}

/// The turn about the vertical axis.
fn rotation(heading: f64) -> Quaternion {
    Quaternion { x: 0.0, y: 0.0, z: (heading / 2.0).sin(), w: (heading / 2.0).cos() }
}

fn heading_of(rotation: &Quaternion) -> f64 {
    2.0 * rotation.z.atan2(rotation.w)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::turned;

    #[test]
    fn a_heading_is_read_back_from_its_rotation() {
        for heading in [-3.1, -1.0, 0.0, 0.5, 2.0, 3.1] {
            let read = heading_of(&rotation(heading));
            assert!(turned(read - heading).abs() < 1e-9, "{heading} {read}");
        }
    }
}
