//! Components in a shared library, to begin one's own from: a listener that tells whether what it hears comes by pointer, and
//! a viewer that counts pictures.

use tsuji_shared::tsuji::{self, Node, Publisher, Qos, Subscription};
use tsuji_shared::tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_shared::tsuji_interfaces::std_msgs::msg::{Bool, String as Text, UInt64};
use tsuji_shared::tsuji_node::component::{Component, ComponentOptions, Registered};

tsuji_shared::export_components!(components);

fn components() -> Registered {
    Registered::new().with("example_components", "Listener", Listener::new).with(
        "example_components",
        "Viewer",
        Viewer::new,
    )
}

/// Says on `by_pointer` of each text on `chatter` whether it is the publisher's own value.
struct Listener {
    node: Node,
    _texts: Subscription<Text>,
}

impl Listener {
    fn new(options: &ComponentOptions) -> tsuji::Result<Self> {
        let node = options.node("example_listener")?;
        let says = node.create_publisher::<Bool>("by_pointer", Qos::DEFAULT)?;
        let texts = node.create_subscription::<Text>("chatter", Qos::DEFAULT, move |text| {
            say(&says, Bool { data: text.is_by_reference() });
        })?;
        Ok(Self { node, _texts: texts })
    }
}

impl Component for Listener {
    fn node(&self) -> &Node {
        &self.node
    }
}

/// Says on `seen` the number that each picture on `image` has.
struct Viewer {
    node: Node,
    _pictures: Subscription<Image>,
}

impl Viewer {
    fn new(options: &ComponentOptions) -> tsuji::Result<Self> {
        let node = options.node("example_viewer")?;
        let says = node.create_publisher::<UInt64>("seen", Qos::DEFAULT)?;
        let pictures =
            node.create_subscription::<Image>("image", Qos::DEFAULT, move |picture| {
                say(&says, UInt64 { data: picture.info().sequence });
            })?;
        Ok(Self { node, _pictures: pictures })
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
