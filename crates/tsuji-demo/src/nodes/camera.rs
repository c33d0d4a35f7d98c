//! The camera over the crossroads, which draws each picture in the memory that carries it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsuji::component::ComponentOptions;
use tsuji::{Publisher, PublisherOptions};
use tsuji_interfaces::sensor_msgs::msg::Image;

use super::{Audience, Part, follow, header, kept};
use crate::lock::lock;
use crate::orders::{Orders, retry};
use crate::picture::{FULL, Painter, THUMBNAIL};
use crate::robot::{CAMERA, DETECTOR, PICTURES, PICTURES_KEPT, VIEWER, now};
use crate::tally::{End, Tally};
use crate::world::Pose;

const PICTURE_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);
const THUMBNAIL_PERIOD: Duration = Duration::from_millis(10);

/// What may be changed of a camera while it runs.
#[derive(Clone)]
pub(crate) struct Controls {
    pub(crate) pictures: Arc<Publisher<Image>>,
    pub(crate) sends_thumbnails: Arc<AtomicBool>,
    /// Of the next frame. Whoever holds it keeps the camera from publishing.
    pub(crate) number: Arc<Mutex<u64>>,
}

pub(crate) fn new(options: &ComponentOptions, orders: &Orders) -> tsuji::Result<Part> {
    Ok(with_controls(options, orders)?.0)
}

pub(crate) fn with_controls(
    options: &ComponentOptions,
    orders: &Orders,
) -> tsuji::Result<(Part, Controls)> {
    let node = options.node("camera")?;
    let robot = Arc::new(Mutex::new(Pose::START));
    let followed = Arc::clone(&robot);
    let (odometry, odometry_received) = follow(&node, CAMERA, move |pose| *lock(&followed) = pose)?;
    let pictures_sent = Tally::new(PICTURES, CAMERA, End::Sent);
    let controls = Controls {
        pictures: Arc::new(node.create_publisher::<Image>(
            PICTURES,
            PublisherOptions::default().qos(kept(PICTURES_KEPT)).expected_size(FULL.bytes() as u64),
        )?),
        sends_thumbnails: Arc::default(),
        number: Arc::default(),
    };
    let timer = |size, period, is_thumbnail| {
        let Controls { pictures, sends_thumbnails, number } = controls.clone();
        let (painter, robot) = (Painter::new(size), Arc::clone(&robot));
        let (pictures_sent, timer_node) = (Arc::clone(&pictures_sent), node.clone());
        let mut audience = Audience::of(&[DETECTOR, VIEWER]);
        orders.every(&node, period, move || {
            if sends_thumbnails.load(Ordering::Relaxed) != is_thumbnail
                || !audience.is_there(&timer_node, &pictures)
            {
                return;
            }
            let mut number = lock(&number);
            let robot = *lock(&robot);
            pictures_sent
                .add(send(&pictures, &painter, *number, &robot).inspect(|()| *number += 1));
        })
    };
    let pictures = timer(FULL, PICTURE_PERIOD, false)?;
    let thumbnails = timer(THUMBNAIL, THUMBNAIL_PERIOD, true)?;
    let tallies = vec![odometry_received, pictures_sent];
    Ok((Part::new(node, tallies, (odometry, pictures, thumbnails)), controls))
}

/// Draws a frame and publishes it. The same one is drawn again while it is refused for a moment, so no
/// number is left out.
fn send(
    pictures: &Publisher<Image>,
    painter: &Painter,
    number: u64,
    robot: &Pose,
) -> tsuji::Result<()> {
    let size = painter.size();
    let template = Image {
        header: header(now(), "camera"),
        height: size.height as u32,
        width: size.width as u32,
        encoding: "rgb8".into(),
        step: size.step() as u32,
        ..Image::default()
    };
    retry(|| {
        let mut loan = pictures.loan(&template, size.bytes())?;
        painter.draw(number, robot, loan.data_mut());
        pictures.publish(loan)
    })
}
