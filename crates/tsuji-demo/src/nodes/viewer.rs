//! The viewer: checks each picture where it lies, and that the robot was found where the picture has it; makes small pictures
//! for the terminal.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tsuji::component::ComponentOptions;
use tsuji::{Publisher, PublisherOptions};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::geometry_msgs::msg::PointStamped;
use tsuji_interfaces::sensor_msgs::msg::Image;

use super::{Part, kept, place};
use crate::lock::lock;
use crate::orders::{Orders, retry};
use crate::picture::{self, FOUND_WITHIN, TINY};
use crate::robot::{
    PICTURES, PICTURES_KEPT, SMALL_PICTURES, SMALL_PICTURES_KEPT, SPOTS, VIEWER, age,
};
use crate::sequence::Sequence;
use crate::tally::{End, Tally};
use crate::world::Place;

/// Every third picture is made small.
const SMALL_EVERY: u64 = 3;

pub(crate) fn new(options: &ComponentOptions, _orders: &Orders) -> tsuji::Result<Part> {
    let node = options.node("viewer")?;
    // A picture, but a small one, which nobody could tell from its type.
    let smalls = node.create_publisher::<Image>(
        SMALL_PICTURES,
        PublisherOptions::default()
            .qos(kept(SMALL_PICTURES_KEPT))
            .expected_size(TINY.bytes() as u64),
    )?;
    let smalls_sent = Tally::new(SMALL_PICTURES, VIEWER, End::Sent);
    let pictures_received = Tally::new(PICTURES, VIEWER, End::Received);
    let spots_received = Tally::new(SPOTS, VIEWER, End::Received);
    let tallies =
        vec![Arc::clone(&smalls_sent), Arc::clone(&pictures_received), Arc::clone(&spots_received)];
    let pairs = Arc::new(Mutex::new(Pairs::default()));

    // Before the pictures: with the first of these the detector begins to publish.
    let (spot_pairs, spot_tally) = (Arc::clone(&pairs), Arc::clone(&spots_received));
    let mut spot_order = Sequence::from_first(1);
    let spots =
        node.create_subscription::<PointStamped>(SPOTS, kept(PICTURES_KEPT), move |received| {
            let spot = received.view();
            let paired = lock(&spot_pairs).add(Side::Found, spot.header.stamp, place(&spot.point));
            paired.unwrap_or_else(|why| spot_tally.note_trouble(why));
            spot_tally.add(spot_order.next("spot", received.info().sequence));
        })?;
    let (mut order, mut count) = (Sequence::from_first(0), 0);
    let pictures =
        node.create_subscription::<Image>(PICTURES, kept(PICTURES_KEPT), move |received| {
            let image = received.view();
            pictures_received.note_age(age(image.header.stamp));
            pictures_received.note_latency(received.info(), image.data.len());
            let frame = picture::verify(image.data);
            if count % SMALL_EVERY == 0 {
                send_small(&smalls, &smalls_sent, image.data);
            }
            count += 1;
            if let Ok(frame) = &frame {
                let car = (f64::from(frame.car.0), f64::from(frame.car.1));
                let drawn = picture::to_world(car);
                let paired = lock(&pairs).add(Side::Drawn, image.header.stamp, drawn);
                paired.unwrap_or_else(|why| spots_received.note_trouble(why));
            }
            pictures_received.add(frame.and_then(|frame| order.next("frame", frame.number)));
        })?;
    Ok(Part::new(node, tallies, (pictures, spots)))
}

fn send_small(smalls: &Publisher<Image>, tally: &Tally, data: &[u8]) {
    // Nobody need look.
    if smalls.matched() == 0 {
        return;
    }
    let small = Image {
        height: TINY.height as u32,
        width: TINY.width as u32,
        encoding: "rgb8".into(),
        step: TINY.step() as u32,
        data: picture::shrink(data),
        ..Image::default()
    };
    tally.add(retry(|| smalls.publish(&small)));
}

/// Where the robot is in pictures, and where it was found in them. A picture and its spot come by two topics, either of them
/// first, and have one stamp.
///
/// At most [`UNPAIRED_MAX`] wait for their counterpart. When that is full, the oldest is dropped and told as wrong.
#[derive(Debug, Default)]
struct Pairs {
    unpaired: VecDeque<(Side, Time, Place)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Where the picture has it.
    Drawn,
    /// Where the detector has found it.
    Found,
}

impl Pairs {
    /// Takes a place of the picture of `stamp`.
    ///
    /// # Errors
    /// What is wrong: its counterpart is elsewhere, or the oldest of those that wait has none.
    fn add(&mut self, side: Side, stamp: Time, place: Place) -> Result<(), String> {
        let counterpart = self.unpaired.iter().position(|it| it.0 != side && it.1 == stamp);
        if let Some((_, _, other)) = counterpart.and_then(|at| self.unpaired.remove(at)) {
            let (drawn, found) = match side {
                Side::Drawn => (place, other),
                Side::Found => (other, place),
            };
            if drawn.distance(found) <= APART_MAX {
                return Ok(());
            }
            return Err(format!(
                "found at {:.2}, {:.2} instead of {:.2}, {:.2}",
                found.x, found.y, drawn.x, drawn.y
            ));
        }
        self.unpaired.push_back((side, stamp, place));
        if self.unpaired.len() <= UNPAIRED_MAX {
            return Ok(());
        }
        match self.unpaired.pop_front() {
            Some((Side::Drawn, ..)) => Err("no spot came for a picture".to_owned()),
            _ => Err("no picture came for a spot".to_owned()),
        }
    }
}

/// Metres of the pixels within which it is found.
const APART_MAX: f64 = FOUND_WITHIN * std::f64::consts::SQRT_2 / picture::PIXELS_PER_METRE;
/// As many as wait in both queues of a viewer that gets no processor.
const UNPAIRED_MAX: usize = 2 * PICTURES_KEPT as usize;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f64) -> Place {
        Place { x, y: 0.0 }
    }

    fn stamp(nanosec: u32) -> Time {
        Time { sec: 7, nanosec }
    }

    #[test]
    fn a_picture_and_its_spot_are_found_by_their_stamp() {
        let mut pairs = Pairs::default();
        // The second picture has no spot, and the third spot comes before its picture.
        for (side, nanosec, x) in [
            (Side::Drawn, 1, 1.0),
            (Side::Drawn, 2, 2.0),
            (Side::Found, 1, 1.0),
            (Side::Found, 3, 3.0),
            (Side::Drawn, 3, 3.0),
        ] {
            assert_eq!(pairs.add(side, stamp(nanosec), at(x)), Ok(()));
        }
        assert_eq!(pairs.unpaired, [(Side::Drawn, stamp(2), at(2.0))]);
        let why = "found at 2.50, 0.00 instead of 2.00, 0.00".to_owned();
        assert_eq!(pairs.add(Side::Found, stamp(2), at(2.5)), Err(why));
        assert!(pairs.unpaired.is_empty());
    }

    #[test]
    fn what_has_no_counterpart_is_dropped_and_told() {
        let mut pairs = Pairs::default();
        assert_eq!(pairs.add(Side::Found, stamp(0), at(0.0)), Ok(()));
        for nanosec in 1..UNPAIRED_MAX as u32 {
            assert_eq!(pairs.add(Side::Drawn, stamp(nanosec), at(0.0)), Ok(()));
        }
        for (nanosec, expect) in
            [(1, "no picture came for a spot"), (2, "no spot came for a picture")]
        {
            let next = stamp(UNPAIRED_MAX as u32 + nanosec);
            assert_eq!(pairs.add(Side::Drawn, next, at(0.0)), Err(expect.to_owned()));
            assert_eq!(pairs.unpaired.len(), UNPAIRED_MAX);
        }
    }
}
