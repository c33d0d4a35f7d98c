//! The detector: looks for the robot in each picture, and publishes where it is.

use std::sync::Arc;

use tsuji::component::ComponentOptions;
use tsuji_interfaces::geometry_msgs::msg::PointStamped;
use tsuji_interfaces::sensor_msgs::msg::Image;

use super::{Part, header, kept, point};
use crate::orders::{Orders, retry};
use crate::picture;
use crate::robot::{DETECTOR, PICTURES, PICTURES_KEPT, SPOTS};
use crate::sequence::Sequence;
use crate::tally::{End, Tally};

pub(crate) fn new(options: &ComponentOptions, _orders: &Orders) -> tsuji::Result<Part> {
    let node = options.node("detector")?;
    let pictures_received = Tally::new(PICTURES, DETECTOR, End::Received);
    let spots_sent = Tally::new(SPOTS, DETECTOR, End::Sent);
    let tallies = vec![Arc::clone(&pictures_received), Arc::clone(&spots_sent)];
    let spots = node.create_publisher::<PointStamped>(SPOTS, kept(PICTURES_KEPT))?;
    let mut order = Sequence::from_first(1);
    let pictures =
        node.create_subscription::<Image>(PICTURES, kept(PICTURES_KEPT), move |received| {
            let image = received.view();
            pictures_received.note_latency(received.info(), image.data.len());
            let place = picture::to_world(picture::find_car(image.data).unwrap_or_default());
            // With the stamp of its picture, by which the viewer finds the two together.
            let spot =
                PointStamped { header: header(image.header.stamp, "map"), point: point(place) };
            spots_sent.add(retry(|| spots.publish(&spot)));
            pictures_received.add(order.next("sample", received.info().sequence));
        })?;
    Ok(Part::new(node, tallies, pictures))
}
