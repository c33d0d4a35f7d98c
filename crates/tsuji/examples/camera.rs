//! Draws pictures in the memory that carries them: a viewer in another process sees these very
//! bytes, and nothing is copied on the way.
//!
//! ```sh
//! cargo run --example camera
//! cargo run --example viewer
//! ```
//!
//! Ctrl-C ends it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use std::time::Duration;

use tsuji::interfaces::sensor_msgs::msg::Image;
use tsuji::{Context, PublisherOptions, Qos};

const WIDTH: usize = 640;
const HEIGHT: usize = 480;

fn main() -> tsuji::Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args().build()?;
    context.shutdown_on_signals()?;
    let node = context.node("camera")?;
    let publisher = node.create_publisher::<Image>(
        "camera/image",
        PublisherOptions::default().qos(Qos::SENSOR_DATA).expected_size((WIDTH * HEIGHT) as u64),
    )?;
    // Everything about a picture but its pixels.
    let template = Image {
        width: WIDTH as u32,
        height: HEIGHT as u32,
        step: WIDTH as u32,
        encoding: "mono8".into(),
        ..Image::default()
    };
    let mut shift = 0;
    let mut draw = move || {
        let mut loan = publisher.loan(&template, WIDTH * HEIGHT)?;
        for (at, pixel) in loan.data_mut().iter_mut().enumerate() {
            *pixel = (at % WIDTH + shift) as u8;
        }
        shift += 1;
        publisher.publish(loan)
    };
    let _timer = node.create_timer(Duration::from_millis(33), move || {
        if let Err(error) = draw() {
            eprintln!("{error}");
        }
    })?;
    tsuji::spin(&node)
}
