//! The viewer: checks each picture where it lies, and that the robot was found where the picture has it; makes small pictures
//! for the terminal.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tsuji::component::ComponentOptions;
use tsuji::{Publisher, PublisherOptions};
use tsuji_interfaces::geometry_msgs::msg::PointStamped;
use tsuji_interfaces::sensor_msgs::msg::Image;

use super::{Part, kept};
use crate::orders::{Orders, insist};
use crate::picture::{self, FOUND_WITHIN, TINY};
use crate::robot::{
    PICTURES, PICTURES_KEPT, SMALL_PICTURES, SMALL_PICTURES_KEPT, SPOTS, VIEWER, age,
};
use crate::sequence::Sequence;
use crate::tally::{End, Tally};
use crate::world::Place;

/// Every third picture is made small.
const SMALL_EVERY: u64 = 3;

/// Where the robot is in pictures, and where it was found: what has no counterpart yet. A picture and its spot come by two
/// topics, either of them first.
#[derive(Debug, Default)]
struct Pairs {
    drawn: VecDeque<Place>,
    found: VecDeque<Place>,
}

pub(crate) fn new(options: &ComponentOptions, _orders: &Orders) -> tsuji::Result<Part> {
    let node = options.node("viewer")?;
    // A picture, but a small one, which nobody could tell from its type.
    let smalls = node.create_publisher::<Image>(
        SMALL_PICTURES,
        PublisherOptions::default()
            .qos(kept(SMALL_PICTURES_KEPT))
            .expected_size(TINY.bytes() as u64),
    )?;
    let small_tally = Tally::new(SMALL_PICTURES, VIEWER, End::Sent);
    let seen = Tally::new(PICTURES, VIEWER, End::Received);
    let spots_seen = Tally::new(SPOTS, VIEWER, End::Received);
    let tallies = vec![Arc::clone(&small_tally), Arc::clone(&seen), Arc::clone(&spots_seen)];
    let pairs = Arc::new(Mutex::new(Pairs::default()));

    // Before the pictures: with the first of these the detector begins to tell.
    let (found, told) = (Arc::clone(&pairs), Arc::clone(&spots_seen));
    let mut spot_order = Sequence::from_first(1);
    let spots =
        node.create_subscription::<PointStamped>(SPOTS, kept(PICTURES_KEPT), move |received| {
            let point = received.view().point;
            let place = Place { x: point.x, y: point.y };
            judge(&told, &found, |pairs| &mut pairs.found, place);
            told.add(spot_order.next("spot", received.info().sequence));
        })?;
    let (mut order, mut count) = (Sequence::from_first(0), 0);
    let pictures =
        node.create_subscription::<Image>(PICTURES, kept(PICTURES_KEPT), move |received| {
            let image = received.view();
            seen.note_age(age(image.header.stamp));
            seen.note_latency(received.info(), image.data.len());
            let frame = picture::verify(image.data);
            if count % SMALL_EVERY == 0 {
                send_small(&smalls, &small_tally, image.data);
            }
            count += 1;
            if let Ok(frame) = &frame {
                let car = (f64::from(frame.car.0), f64::from(frame.car.1));
                judge(&spots_seen, &pairs, |pairs| &mut pairs.drawn, picture::to_world(car));
            }
            seen.add(frame.and_then(|frame| order.next("frame", frame.number)));
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
    tally.add(insist(|| smalls.publish(&small)));
}

/// Takes note of a place, and complains if it and its counterpart are there and differ.
fn judge(
    tally: &Tally,
    pairs: &Mutex<Pairs>,
    side: fn(&mut Pairs) -> &mut VecDeque<Place>,
    place: Place,
) {
    let mut pairs = pairs.lock().unwrap_or_else(PoisonError::into_inner);
    side(&mut pairs).push_back(place);
    let Pairs { drawn, found } = &mut *pairs;
    if drawn.is_empty() || found.is_empty() {
        return;
    }
    let (Some(drawn), Some(found)) = (drawn.pop_front(), found.pop_front()) else { return };
    if APART_MAX < drawn.distance(found) {
        tally.accuse(format!(
            "found at {:.2}, {:.2} instead of {:.2}, {:.2}",
            found.x, found.y, drawn.x, drawn.y
        ));
    }
}

/// Metres of the pixels within which it is found.
const APART_MAX: f64 = FOUND_WITHIN * std::f64::consts::SQRT_2 / picture::PIXELS_PER_METRE;
