//! Components that ship with tsuji, to try a container with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{Error, ErrorKind, Node, PublisherOptions, Qos, Result, Subscription, Timer};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::String as Text;

use super::test_picture::TestPicture;
use super::{Component, ComponentOptions, Registered};
use crate::parameter::{ParameterDescriptor, ParameterRange};
use crate::stamp::time;

/// The package `tsuji_components`:
///
/// - `Talker` says hello on `chatter` once a second, and `Listener` tells what it hears there.
/// - `Camera` sends a moving test picture on `image`: `rate` a second (30), of `width` by `height` pixels (1024 by 768) in
///   `rgb8`.
///   `Viewer` takes them, and tells of the first, of a gap, and once a second how many there were.
///
/// What they tell goes to the log of their nodes, under the target of the package's name.
pub fn builtin() -> Registered {
    Registered::new()
        .with(PACKAGE, "Talker", talker)
        .with(PACKAGE, "Listener", listener)
        .with(PACKAGE, "Camera", camera)
        .with(PACKAGE, "Viewer", viewer)
}

const PACKAGE: &str = "tsuji_components";

/// A node, and what it keeps.
struct Kept<T> {
    _kept: T,
    node: Node,
}

impl<T: Send + 'static> Component for Kept<T> {
    fn node(&self) -> &Node {
        &self.node
    }
}

fn talker(options: &ComponentOptions) -> Result<Kept<Timer>> {
    let node = options.node("talker")?;
    let logger = node.logger();
    let publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT)?;
    let mut count = 0u64;
    let timer = node.create_timer(Duration::from_secs(1), move || {
        count += 1;
        let text = Text { data: format!("Hello World: {count}") };
        if let Err(error) = publisher.publish(text) {
            crate::warn!(logger, %error, "a text is not published");
        }
    })?;
    Ok(Kept { node, _kept: timer })
}

fn listener(options: &ComponentOptions) -> Result<Kept<Subscription<Text>>> {
    let node = options.node("listener")?;
    let logger = node.logger();
    let texts = node.create_subscription::<Text>("chatter", Qos::DEFAULT, move |text| {
        crate::info!(logger, target: PACKAGE, "I heard: [{}]", text.message().data);
    })?;
    Ok(Kept { node, _kept: texts })
}

const PICTURES: Qos = Qos::DEFAULT.keep_last(5);

fn camera(options: &ComponentOptions) -> Result<Kept<Timer>> {
    let node = options.node("camera")?;
    let logger = node.logger();
    let parameters = node.parameters()?;
    let fixed = |range| ParameterDescriptor {
        read_only: true,
        range: Some(range),
        ..ParameterDescriptor::default()
    };
    let side = || fixed(ParameterRange::Integer { from: 1, to: 8192, step: 0 });
    let pixels = |name: &str, default: u32| {
        let said = parameters.declare_with(name, i64::from(default), side())?;
        // The range has seen to it.
        Ok::<_, Error>(u32::try_from(said).unwrap_or(default))
    };
    let (width, height) = (pixels("width", 1024)?, pixels("height", 768)?);
    let rates = ParameterRange::FloatingPoint { from: 0.1, to: 1000.0, step: 0.0 };
    let rate = parameters.declare_with("rate", 30.0, fixed(rates))?;
    let step = width * 3;
    let bytes = step as usize * height as usize;
    let options = PublisherOptions::default().qos(PICTURES).expected_size(bytes as u64);
    let pictures = node.create_publisher::<Image>("image", options)?;
    let mut template = Image { height, width, encoding: "rgb8".into(), step, ..Image::default() };
    template.header.frame_id = "camera".into();
    let mut test_picture = TestPicture::new(width as usize, height as usize);
    let clock = node.clock()?;
    let mut send = move || {
        template.header.stamp = time(clock.now_ns());
        let mut picture = pictures.loan(&template, bytes)?;
        test_picture.draw(picture.data_mut());
        pictures.publish(picture)
    };
    let timer = node.create_timer(Duration::from_secs_f64(1.0 / rate), move || match send() {
        Ok(()) => (),
        // It is counted by the publisher, and the next picture comes soon.
        Err(error) if error.kind() == ErrorKind::Busy => (),
        Err(error) => crate::warn!(logger, %error, "a picture is not published"),
    })?;
    Ok(Kept { node, _kept: timer })
}

fn viewer(options: &ComponentOptions) -> Result<Kept<(Subscription<Image>, Timer)>> {
    let node = options.node("viewer")?;
    let logger = node.logger();
    let seen = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&seen);
    let (mut last, watching) = (None, logger.clone());
    let pictures = node.create_subscription::<Image>("image", PICTURES, move |picture| {
        counted.fetch_add(1, Ordering::Relaxed);
        let info = *picture.info();
        match last.replace((info.publisher, info.sequence)) {
            Some((publisher, before)) if publisher == info.publisher => {
                if before + 1 != info.sequence {
                    crate::warn!(watching, "picture {} comes after {before}", info.sequence);
                }
            }
            _ => crate::info!(watching, target: PACKAGE, "the first picture is number {}", info.sequence),
        }
    })?;
    let mut before = 0;
    let timer = node.create_timer(Duration::from_secs(1), move || {
        let now = seen.load(Ordering::Relaxed);
        crate::info!(logger, target: PACKAGE, "{} pictures", now - before);
        before = now;
    })?;
    Ok(Kept { node, _kept: (pictures, timer) })
}
