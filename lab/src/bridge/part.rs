//! The processes of a case: a bridge, who listens and who speaks in ROS, and clients.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tsuji::{Context, Node, Publisher, PublisherOptions, Subscription, WaitSet};
use tsuji::{History, Interop, Qos};
use tsuji_bridge::{Bridge, Place as Listens, Protocol, Settings};
use tsuji_interfaces::Shipped;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_platform::clock::{monotonic_ns, process_cpu_ns};

use super::client::{self, protocol_of};
use super::wire::{self, Account};
use super::{HEIGHT, PICTURE_BYTES, WIDTH};
use crate::Allocations;
use crate::child::{ChildPart, answer, obey_each, parsed, said};
use crate::pace::sleep_until;
use crate::route::Route;

/// What such a process is told, which is another thing for each `role`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BridgePart(pub(super) Value);

impl ChildPart for BridgePart {
    const MODE: &'static str = "--bridge-part";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        let Self(value) = self;
        match value["role"].as_str().unwrap_or_default() {
            "bridge" => serve(&value),
            "listener" => listen(&value),
            "speaker" => speak(&value),
            "client" => client::run(&value),
            other => Err(format!("no part `{other}`")),
        }
    }
}

/// What ends in ROS are nodes of.
fn context(value: &Value) -> Result<Context, String> {
    let folder = Path::new(value["folder"].as_str().unwrap_or_default());
    let builder = match value["is_beside_ros"] == true {
        true => Context::builder().runtime_dir(folder).interop(Interop::RTPS),
        false => Route::Alone.context(folder),
    };
    builder.build().map_err(said)
}

/// A bridge on free ports of loopback, by all protocols; with `port` the WebSockets are there.
fn serve(value: &Value) -> Result<(), String> {
    let context = context(value)?;
    let node = context.node("rosbridge_websocket").map_err(said)?;
    let port = |field: &str| {
        let port = value[field].as_u64().and_then(|it| u16::try_from(it).ok());
        Some(Listens { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: port.unwrap_or_default() })
    };
    let mut settings = Settings {
        websocket: port("port"),
        tcp: port("tcp_port"),
        udp: port("udp_port"),
        ..Settings::default()
    };
    let incoming_buffer = value["incoming_buffer"].as_u64().and_then(|it| usize::try_from(it).ok());
    settings.incoming_buffer = incoming_buffer.unwrap_or(settings.incoming_buffer);
    let bridge = Bridge::start(&node, settings, Box::new(Shipped));
    let bridge = bridge.map_err(|error| error.to_string())?;
    let mut open = json!({ "open": true });
    for it in bridge.bound() {
        open[it.protocol.word()] = it.address.to_string().into();
    }
    answer(&open);
    obey_each(|line| match line {
        "used" => Ok(json!({ "cpu_ns": process_cpu_ns() })),
        _ => Err(format!("`{line}` is not understood")),
    })
}

/// All that is said is heard, or whoever says it waits.
const KEEP_ALL: Qos = Qos { history: History::KeepAll, ..Qos::DEFAULT };

const PATIENCE: Duration = Duration::from_secs(30);

/// A node that gets what clients publish.
struct Listener {
    subscription: Subscription<Text>,
    set: WaitSet,
    protocol: Protocol,
}

fn listen(value: &Value) -> Result<(), String> {
    let context = context(value)?;
    let node = context.node("listener").map_err(said)?;
    let topic = value["topic"].as_str().unwrap_or_default();
    let subscription = node.create_polled_subscription::<Text>(topic, KEEP_ALL).map_err(said)?;
    let mut set = WaitSet::new(&context).map_err(said)?;
    set.add(&subscription).map_err(said)?;
    let protocol = protocol_of(value["protocol"].as_str().unwrap_or_default())?;
    let listener = Listener { subscription, set, protocol };
    answer(&json!({ "open": true }));
    obey_each(|line| match *line.split_whitespace().collect::<Vec<_>>() {
        ["meet"] => {
            listener.subscription.wait_for_publishers(1, PATIENCE).map_err(said)?;
            Ok(json!({ "met": true }))
        }
        ["hear", count, silent_ms] => listener.hear(parsed(count)?, parsed(silent_ms)?),
        _ => Err(format!("`{line}` is not understood")),
    })
}

impl Listener {
    /// Waits until so many have come, or nothing comes any more.
    fn hear(&self, count: u64, silent_ms: u64) -> Result<Value, String> {
        let silent = Duration::from_millis(silent_ms);
        let mut texts = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
        let (mut last_ns, mut since) = (0, Instant::now());
        while (texts.len() as u64) < count && since.elapsed() < silent {
            self.set.wait(LOOK).map_err(said)?;
            let before = texts.len();
            while let Some(text) = self.subscription.take().map_err(said)? {
                texts.push(text.view().data.to_owned());
                last_ns = monotonic_ns();
            }
            if before < texts.len() {
                since = Instant::now();
            }
        }
        let account = Account::of(texts.iter().map(String::as_str), self.protocol, count);
        Ok(account.to_json(last_ns))
    }
}

const LOOK: Duration = Duration::from_millis(20);

/// A node that publishes for clients.
enum Speaker {
    Texts(Publisher<Text>),
    Pictures(Publisher<Image>),
}

fn speak(value: &Value) -> Result<(), String> {
    let context = context(value)?;
    let node = context.node("speaker").map_err(said)?;
    let topic = value["topic"].as_str().unwrap_or_default();
    let speaker = Speaker::new(&node, topic, value["pictures"] == true)?;
    answer(&json!({ "open": true }));
    obey_each(|line| match (&*line.split_whitespace().collect::<Vec<_>>(), &speaker) {
        (["meet"], _) => speaker.meet(),
        (["say", count], Speaker::Texts(publisher)) => say(publisher, parsed(count)?),
        (["film", count, period_us], Speaker::Pictures(publisher)) => {
            film(publisher, parsed(count)?, parsed(period_us)?)
        }
        _ => Err(format!("`{line}` is not understood")),
    })
}

impl Speaker {
    fn new(node: &Node, topic: &str, has_pictures: bool) -> Result<Self, String> {
        let qos = if has_pictures { Qos::DEFAULT } else { KEEP_ALL };
        Ok(if has_pictures {
            Self::Pictures(node.create_publisher(topic, qos).map_err(said)?)
        } else {
            Self::Texts(
                node.create_publisher::<Text>(
                    topic,
                    PublisherOptions::default().qos(qos).max_blocking(PATIENCE),
                )
                .map_err(said)?,
            )
        })
    }

    fn meet(&self) -> Result<Value, String> {
        let met = match self {
            Self::Texts(it) => it.wait_for_subscriptions(1, PATIENCE),
            Self::Pictures(it) => it.wait_for_subscriptions(1, PATIENCE),
        };
        met.map_err(said)?;
        Ok(json!({ "met": true }))
    }
}

/// As fast as they are taken.
fn say(publisher: &Publisher<Text>, count: u64) -> Result<Value, String> {
    let began = monotonic_ns();
    for number in 0..count {
        let data = wire::text(Protocol::WebSocket, number);
        publisher.publish(&Text { data }).map_err(said)?;
    }
    Ok(json!({ "began": began, "sent": monotonic_ns() }))
}

/// Each when it is due, whenever the one before was. Answers when each was published.
fn film(publisher: &Publisher<Image>, count: u64, period_us: u64) -> Result<Value, String> {
    let mut image = picture();
    let mut published = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
    let begin_ns = monotonic_ns() + period_us * 1000;
    for number in 0..count {
        image.header.frame_id = wire::mark(number);
        sleep_until(begin_ns + number * period_us * 1000);
        published.push(monotonic_ns());
        publisher.publish(&image).map_err(said)?;
    }
    Ok(json!({ "published": published }))
}

/// Noise, as it is the same work for every encoding.
fn picture() -> Image {
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    Image {
        height: HEIGHT,
        width: WIDTH,
        encoding: "bgr8".to_owned(),
        step: WIDTH * 3,
        data: noise.take(PICTURE_BYTES).collect(),
        ..Image::default()
    }
}
