//! Components in a shared library, to begin one's own from: a listener that tells whether what it hears comes by pointer, and
//! a viewer that counts pictures. Their parameters and their log on `/rosout` are those of every node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tsuji_shared::tsuji::component::{Component, ComponentOptions, Registered};
use tsuji_shared::tsuji::{self, Node, Publisher, Qos, Subscription, Timer, info};
use tsuji_shared::tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_shared::tsuji_interfaces::std_msgs::msg::{Bool, String as Text, UInt64};

tsuji_shared::export_components!(components);

fn components() -> Registered {
    Registered::new().with("example_components", "Listener", Listener::new).with(
        "example_components",
        "Viewer",
        Viewer::new,
    )
}

/// Says on `by_pointer` of each text on `chatter` whether it is the publisher's own value, and logs the text after what the
/// parameter `prefix` says.
struct Listener {
    _texts: Subscription<Text>,
    node: Node,
}

impl Listener {
    fn new(options: &ComponentOptions) -> tsuji::Result<Self> {
        let node = options.node("example_listener")?;
        let prefix = node.declare_parameter("prefix", "I heard".to_owned())?;
        let logger = node.logger();
        let says = node.create_publisher::<Bool>("by_pointer", Qos::DEFAULT)?;
        let texts = node.create_subscription::<Text>("chatter", Qos::DEFAULT, move |text| {
            info!(logger, "{prefix}: {}", text.view().data);
            say(&says, Bool { data: text.is_by_reference() });
        })?;
        Ok(Self { _texts: texts, node })
    }
}

impl Component for Listener {
    fn node(&self) -> &Node {
        &self.node
    }
}

/// Says on `seen` the number that each picture on `image` has, and logs every second how many there were.
struct Viewer {
    _pictures: Subscription<Image>,
    _timer: Timer,
    node: Node,
}

impl Viewer {
    fn new(options: &ComponentOptions) -> tsuji::Result<Self> {
        let node = options.node("example_viewer")?;
        let says = node.create_publisher::<UInt64>("seen", Qos::DEFAULT)?;
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let pictures =
            node.create_subscription::<Image>("image", Qos::DEFAULT, move |picture| {
                counted.fetch_add(1, Ordering::Relaxed);
                say(&says, UInt64 { data: picture.info().sequence });
            })?;
        let logger = node.logger();
        let timer = node.create_timer(Duration::from_secs(1), move || {
            info!(logger, "{} pictures", count.swap(0, Ordering::Relaxed));
        })?;
        Ok(Self { _pictures: pictures, _timer: timer, node })
    }
}

impl Component for Viewer {
    fn node(&self) -> &Node {
        &self.node
    }
}

fn say<M: tsuji::Message>(publisher: &Publisher<M>, message: M) {
    // Nobody need listen, and who does learns of the next.
    let _ = publisher.publish(message);
}
