//! The detector: looks for the robot in each picture, and tells where it is.

use std::sync::Arc;

use tsuji::component::ComponentOptions;
use tsuji_interfaces::geometry_msgs::msg::{Point, PointStamped};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::Header;

use super::{Part, kept};
use crate::orders::{Orders, insist};
use crate::picture;
use crate::robot::{PICTURES, PICTURES_KEPT, SPOTS};
use crate::sequence::Sequence;
use crate::tally::{End, Tally};

pub(crate) fn new(options: &ComponentOptions, _orders: &Orders) -> tsuji::Result<Part> {
    let node = options.node("detector")?;
    let seen = Tally::new(PICTURES, "/detector", End::Received);
    let found = Tally::new(SPOTS, "/detector", End::Sent);
    let tallies = vec![Arc::clone(&seen), Arc::clone(&found)];
    let spots = node.create_publisher::<PointStamped>(SPOTS, kept(PICTURES_KEPT))?;
    let mut order = Sequence::from_first(1);
    let pictures =
        node.create_subscription::<Image>(PICTURES, kept(PICTURES_KEPT), move |received| {
            let image = received.view();
            seen.note_latency(received.info(), image.data.len());
            let place = picture::to_world(picture::find_car(image.data).unwrap_or_default());
            let header = Header { stamp: image.header.stamp, frame_id: "map".to_owned() };
            let spot = PointStamped { header, point: Point { x: place.x, y: place.y, z: 0.0 } };
            found.add(insist(|| spots.publish(&spot)));
            seen.add(order.next("sample", received.info().sequence));
        })?;
    Ok(Part::new(node, tallies, pictures))
}
