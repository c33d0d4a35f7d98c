//! Pictures as JPEG: beside a topic of pictures a topic of the same pictures, compressed, named as image_transport names it. It is a
//! topic like any other: clients of every protocol have it, other nodes and recordings too. While nobody subscribes to it nothing is
//! taken and nothing compressed. It has a thread of its own, so that no other message waits for a picture.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jpeg_encoder::{ColorType, Encoder};
use tsuji::{
    Context, EndpointInfo, EndpointKind, GuardCondition, Message as _, Node, Publisher, Qos,
    RawSubscription, RawType, SubscriptionCounters, WaitList, Waitable,
};
use tsuji_core::{History, TopicPattern, rxo};
use tsuji_interfaces::sensor_msgs::msg::{CompressedImage, Image};

use crate::hub::{offers, request};
use crate::plain::Plain;
use crate::{Counters, Result};

/// Which pictures are compressed, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Jpeg {
    /// The topics, of type `sensor_msgs/msg/Image`.
    pub topics: Vec<TopicPattern>,
    /// How good pictures are at most, 1 to 100. What it means is said by the quantisation tables of libjpeg.
    pub quality: u8,
    /// How much a topic may take, in bytes a second; as much as it takes if nothing is said. Quality goes down to 10 to keep it, then
    /// pictures are left out.
    pub bytes_per_second: Option<u64>,
}

/// Compresses pictures until it is told to end.
pub(crate) struct Compressor {
    context: Context,
    node: Node,
    settings: Jpeg,
    counters: Arc<Counters>,
    cameras: Vec<Camera>,
    /// Topics whose pictures somebody else compresses since, and until when it is left at that: of two who begin at the same time, and
    /// give way to each other, one is the first to look again.
    given_way: HashMap<String, Instant>,
    stop: Stop,
    graph: GuardCondition,
    waits: WaitList,
}

/// Ends it, from any thread.
#[derive(Clone)]
pub(crate) struct Stop {
    is_over: Arc<AtomicBool>,
    waker: GuardCondition,
}

impl Stop {
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
        self.waker.trigger();
    }
}

/// A topic of pictures.
struct Camera {
    topic: String,
    /// Of the same pictures, compressed.
    publisher: Publisher<CompressedImage>,
    /// Of the pictures, while somebody wants them.
    subscription: Option<Pictures>,
    budget: Budget,
    /// It was said of a picture why it cannot be compressed.
    is_told: bool,
}

/// The pictures as they come, and how many of them did not.
struct Pictures {
    subscription: RawSubscription,
    lost: u64,
    displaced: u64,
}

impl Pictures {
    /// Counts what is new of that: newer ones displace a picture before it is compressed.
    fn note(&mut self, counters: &Counters) {
        let SubscriptionCounters { lost, displaced, .. } = self.subscription.counters();
        let more = |now: u64, before: &mut u64| now.saturating_sub(std::mem::replace(before, now));
        counters.missed.fetch_add(more(lost, &mut self.lost), Ordering::Relaxed);
        let skipped = more(displaced, &mut self.displaced);
        counters.pictures_skipped.fetch_add(skipped, Ordering::Relaxed);
    }
}

impl Compressor {
    pub(crate) fn new(node: &Node, settings: Jpeg, counters: Arc<Counters>) -> Result<Self> {
        let context = node.context().clone();
        let waker = GuardCondition::new(&context)?;
        Ok(Self {
            graph: context.graph_guard()?,
            waits: WaitList::new(&context)?,
            stop: Stop { is_over: Arc::default(), waker },
            node: node.clone(),
            context,
            settings,
            counters,
            cameras: Vec::new(),
            given_way: HashMap::new(),
        })
    }

    /// What ends it.
    pub(crate) fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Compresses until it is told to end, or the context is shut down.
    pub(crate) fn run(mut self) {
        let mut looked = Instant::now();
        let mut look_at = self.look();
        while !self.stop.is_over.load(Ordering::Acquire) {
            let ready = {
                let mut entities: Vec<&dyn Waitable> = vec![&self.stop.waker, &self.graph];
                let opened = self.cameras.iter().filter_map(|it| it.subscription.as_ref());
                entities.extend(opened.map(|it| &it.subscription as &dyn Waitable));
                let patience =
                    look_at.map(|at: Instant| at.saturating_duration_since(Instant::now()));
                match self.waits.wait(&entities, patience) {
                    Ok(ready) => ready.to_vec(),
                    Err(error) => {
                        if self.context.is_ok() {
                            tracing::error!(error = %Plain(error), "pictures are not compressed any more");
                        }
                        return;
                    }
                }
            };
            if ready.contains(&1) {
                let soon = looked + LOOK_EVERY;
                look_at = Some(look_at.map_or(soon, |it| it.min(soon)));
            }
            let opened = self.cameras.iter_mut().filter(|it| it.subscription.is_some());
            for (place, camera) in opened.enumerate() {
                if ready.contains(&(place + 2)) {
                    camera.turn(&self.counters);
                }
            }
            if look_at.is_some_and(|it| it <= Instant::now()) {
                (look_at, looked) = (self.look(), Instant::now());
            }
        }
    }

    /// Looks which topics of pictures there are, and which of them somebody wants compressed. Answers when to look again, if that is
    /// to be though nothing changes.
    fn look(&mut self) -> Option<Instant> {
        let graph = self.context.graph();
        let now = Instant::now();
        let pictures: BTreeSet<&str> = graph
            .endpoints
            .iter()
            .filter(|it| it.kind == EndpointKind::Publisher && it.type_name == Image::TYPE_NAME)
            .map(|it| &*it.topic)
            .filter(|topic| self.settings.topics.iter().any(|it| it.matches(topic)))
            .collect();
        let Self { context, cameras, given_way, .. } = self;
        cameras.retain(|it| {
            if it.is_compressed_by_others(context) {
                given_way.insert(it.topic.clone(), now + it.patience());
                return false;
            }
            pictures.contains(&*it.topic)
                && it.publisher.qos().durability == offered(&it.topic, context).durability
        });
        given_way.retain(|topic, until| now < *until && pictures.contains(&**topic));
        for topic in pictures {
            if !given_way.contains_key(topic) && !cameras.iter().any(|it| it.topic == topic) {
                cameras.extend(Camera::open(topic, &self.node, &self.settings, context));
            }
        }
        for camera in cameras {
            camera.follow(&self.node, context, &self.counters);
        }
        given_way.values().min().copied()
    }
}

/// What is offered of a topic's pictures, compressed: the last one is kept for late joiners where it is of the pictures.
fn offered(topic: &str, context: &Context) -> Qos {
    let Qos { durability, .. } = request(None, offers(&context.endpoints_of(topic)), 1);
    Qos { history: History::KeepLast(1), durability, ..Qos::DEFAULT }
}

fn compressed(topic: &str) -> String {
    format!("{topic}/compressed")
}

impl Camera {
    fn open(topic: &str, node: &Node, settings: &Jpeg, context: &Context) -> Option<Self> {
        let name = compressed(topic);
        if !offers(&context.endpoints_of(&name)).is_empty() {
            return None;
        }
        match node.create_publisher(&name, offered(topic, context)) {
            Ok(publisher) => Some(Self {
                topic: topic.to_owned(),
                publisher,
                subscription: None,
                budget: Budget::new(settings, Instant::now()),
                is_told: false,
            }),
            Err(error) => {
                tracing::warn!(topic = %Plain(name), error = %Plain(error), "pictures are not compressed");
                None
            }
        }
    }

    /// Whether somebody else publishes its pictures compressed, such as a plug-in of image_transport.
    fn is_compressed_by_others(&self, context: &Context) -> bool {
        let own = self.publisher.gid();
        let is_other = |it: &EndpointInfo| it.kind == EndpointKind::Publisher && it.gid != own;
        context.endpoints_of(self.publisher.topic()).iter().any(is_other)
    }

    /// How long it gives way: not as long as another that gives way to it.
    fn patience(&self) -> Duration {
        let mut hasher = DefaultHasher::new();
        self.publisher.gid().hash(&mut hasher);
        GIVES_WAY + Duration::from_millis(hasher.finish() % 1000)
    }

    /// Subscribes to the pictures while somebody wants them, and no longer; anew where publishers offer less than before.
    fn follow(&mut self, node: &Node, context: &Context, counters: &Counters) {
        let ends = context.endpoints_of(self.publisher.topic());
        let is_wanted = ends.iter().any(|it| it.kind == EndpointKind::Subscription);
        let offers = offers(&context.endpoints_of(&self.topic));
        if let Some(pictures) = &mut self.subscription {
            let asked = pictures.subscription.qos();
            if is_wanted && offers.iter().all(|offer| rxo::check(offer, asked).is_ok()) {
                return;
            }
            pictures.note(counters);
            self.subscription = None;
        }
        if !is_wanted {
            return;
        }
        // Only the newest is of use.
        let qos = request(None, offers, 1);
        let ty = RawType::new(Image::TYPE_NAME).hash(Image::TYPE_HASH);
        match node.create_polled_raw_subscription(&self.topic, ty, qos) {
            Ok(subscription) => {
                self.subscription = Some(Pictures { subscription, lost: 0, displaced: 0 });
            }
            Err(error) => self.tell_once(&error),
        }
    }

    /// Compresses the newest picture that has come.
    fn turn(&mut self, counters: &Counters) {
        let Some(pictures) = &mut self.subscription else { return };
        let mut newest = None;
        while let Ok(Some(sample)) = pictures.subscription.take_bytes() {
            if newest.replace(sample).is_some() {
                counters.pictures_skipped.fetch_add(1, Ordering::Relaxed);
            }
        }
        pictures.note(counters);
        let Some(sample) = newest else { return };
        if !self.budget.has_room(Instant::now()) {
            counters.pictures_skipped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let published = compress(&sample.bytes, self.budget.quality).and_then(|picture| {
            self.budget.take(picture.data.len());
            self.publisher.publish(picture).map_err(|error| error.to_string())
        });
        match published {
            Ok(()) => drop(counters.pictures_compressed.fetch_add(1, Ordering::Relaxed)),
            Err(why) => {
                counters.pictures_skipped.fetch_add(1, Ordering::Relaxed);
                self.tell_once(&why);
            }
        }
    }

    fn tell_once(&mut self, why: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(topic = %Plain(&self.topic), error = %Plain(why), "pictures are not compressed");
        }
    }
}

/// A picture compressed, or why it cannot be.
fn compress(cdr: &[u8], quality: u8) -> std::result::Result<CompressedImage, String> {
    let picture = Image::view_cdr(cdr).map_err(|error| error.to_string())?;
    let (color, bytes_per_pixel, target) = match picture.encoding {
        "rgb8" => (ColorType::Rgb, 3, "bgr8"),
        "bgr8" => (ColorType::Bgr, 3, "bgr8"),
        "rgba8" => (ColorType::Rgba, 4, "bgr8"),
        "bgra8" => (ColorType::Bgra, 4, "bgr8"),
        // Channels without a name are in the order of OpenCV.
        "8UC3" => (ColorType::Bgr, 3, ""),
        "8UC4" => (ColorType::Bgra, 4, ""),
        "mono8" | "8UC1" => (ColorType::Luma, 1, ""),
        other => {
            return Err(format!(
                "encoding: found {other:?}; allowed: rgb8, bgr8, rgba8, bgra8, mono8, 8UC1, 8UC3, 8UC4"
            ));
        }
    };
    let [width, height] = [picture.width, picture.height].map(u16::try_from);
    let (Ok(width @ 1..), Ok(height @ 1..)) = (width, height) else {
        return Err(format!(
            "size: found {} × {}; allowed: 1 to 65535 each",
            picture.width, picture.height
        ));
    };
    let (row, step) = (usize::from(width) * bytes_per_pixel, picture.step as usize);
    let needed = step.checked_mul(usize::from(height) - 1).and_then(|it| it.checked_add(row));
    if step < row || needed.is_none_or(|it| picture.data.len() < it) {
        return Err(format!(
            "data: found {} bytes, {step} a row; needed are {row} a row and {height} rows",
            picture.data.len()
        ));
    }
    let mut packed = Vec::new();
    let pixels = match step == row {
        true => picture.data,
        false => {
            packed.reserve_exact(row * usize::from(height));
            let rows = picture.data.chunks(step).take(height.into());
            rows.for_each(|it| packed.extend_from_slice(&it[..row]));
            &packed
        }
    };
    let mut data = Vec::new();
    let encoder = Encoder::new(&mut data, quality);
    encoder.encode(pixels, width, height, color).map_err(|error| error.to_string())?;
    // As the plug-in `compressed` of image_transport has it.
    let format = format!("{}; jpeg compressed {target}", picture.encoding);
    Ok(CompressedImage { header: picture.header.to_message(), format, data })
}

/// What a topic may take, and how good its pictures are so that it keeps to that.
#[derive(Debug)]
struct Budget {
    quality: u8,
    quality_max: u8,
    /// Bytes a second; none if it may take any.
    rate: Option<f64>,
    /// What may be taken now, and as of when. What is taken at once may be more than there is, and is paid back.
    left: f64,
    at: Instant,
}

impl Budget {
    fn new(settings: &Jpeg, now: Instant) -> Self {
        let rate = settings.bytes_per_second.map(|it| it as f64);
        let quality = settings.quality.clamp(1, 100);
        let left = rate.unwrap_or_default() * SAVED_S;
        Self { quality, quality_max: quality, rate, left, at: now }
    }

    /// Whether a picture may be sent now; how good it is to be is decided with that.
    fn has_room(&mut self, now: Instant) -> bool {
        let Some(rate) = self.rate else { return true };
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + since * rate).min(rate * SAVED_S), now);
        let filled = self.left / (rate * SAVED_S);
        let least = QUALITY_MIN.min(self.quality_max);
        if filled < 0.5 {
            self.quality = self.quality.saturating_sub(QUALITY_DOWN).max(least);
        } else if 0.9 < filled {
            self.quality = (self.quality + QUALITY_UP).min(self.quality_max);
        }
        0.0 < self.left
    }

    /// A picture of so many bytes is sent.
    fn take(&mut self, bytes: usize) {
        self.left -= bytes as f64;
    }
}

/// For so long a topic may save what it does not take.
const SAVED_S: f64 = 0.5;

/// No picture is worse because of the rate.
const QUALITY_MIN: u8 = 10;

/// How fast quality goes down where too much is taken, and up where there is room.
const QUALITY_DOWN: u8 = 5;
const QUALITY_UP: u8 = 2;

/// For so long at least pictures are left to somebody else who compresses them.
const GIVES_WAY: Duration = Duration::from_millis(500);

/// Looking at the graph takes as long as that is, so it is not done more often.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use tsuji_interfaces::std_msgs::msg::Header;

    use super::*;

    fn picture(encoding: &str, width: u32, height: u32, step: u32, data: Vec<u8>) -> Vec<u8> {
        let header = Header { frame_id: "camera".to_owned(), ..Header::default() };
        let (encoding, is_bigendian) = (encoding.to_owned(), 0);
        let image = Image { header, height, width, encoding, is_bigendian, step, data };
        let mut bytes = Vec::new();
        image.serialize_onto(&mut bytes).unwrap();
        bytes
    }

    fn decoded(jpeg: &[u8]) -> (usize, usize, Vec<u8>) {
        let mut decoder =
            zune_jpeg::JpegDecoder::new(zune_jpeg::zune_core::bytestream::ZCursor::new(jpeg));
        let pixels = decoder.decode().unwrap();
        let (width, height) = decoder.dimensions().unwrap();
        (width, height, pixels)
    }

    #[test]
    fn colours_are_in_their_places_whatever_the_encoding() {
        let [red, green, blue] = [200, 100, 50];
        for (encoding, pixel) in [
            ("rgb8", &[red, green, blue][..]),
            ("8UC3", &[blue, green, red]),
            ("8UC4", &[blue, green, red, 9]),
            ("bgr8", &[blue, green, red]),
            ("rgba8", &[red, green, blue, 9]),
            ("bgra8", &[blue, green, red, 9]),
        ] {
            // Each row has three bytes behind it that are none of the picture.
            let (width, height) = (20, 10);
            let row = [pixel.repeat(width), vec![255; 3]].concat();
            let bytes = picture(
                encoding,
                width as u32,
                height,
                row.len() as u32,
                row.repeat(height as usize),
            );
            let made = compress(&bytes, 95).unwrap();
            let target = if encoding.starts_with('8') { "" } else { "bgr8" };
            assert_eq!(made.format, format!("{encoding}; jpeg compressed {target}"));
            assert_eq!(made.header.frame_id, "camera");
            let (found_width, found_height, pixels) = decoded(&made.data);
            assert_eq!((found_width, found_height), (width, height as usize));
            for found in pixels.as_chunks::<3>().0 {
                let near = |at: usize, to: u8| found[at].abs_diff(to) < 6;
                assert!(near(0, red) && near(1, green) && near(2, blue), "{encoding}: {found:?}");
            }
        }
        let made = compress(&picture("mono8", 8, 8, 8, vec![77; 64]), 90).unwrap();
        assert_eq!(made.format, "mono8; jpeg compressed ");
        assert!(decoded(&made.data).2.iter().all(|it| it.abs_diff(77) < 3));
    }

    #[test]
    fn the_last_row_may_end_with_its_pixels() {
        let bytes = picture("mono8", 4, 2, 6, vec![5; 10]);
        assert_eq!(decoded(&compress(&bytes, 90).unwrap().data).1, 2);
    }

    #[test]
    fn what_is_no_picture_is_told() {
        let told = |bytes: &[u8]| compress(bytes, 80).unwrap_err();
        assert!(
            told(&picture("16UC1", 2, 2, 4, vec![0; 8]))
                .starts_with("encoding: found \"16UC1\"; allowed: rgb8")
        );
        assert_eq!(
            told(&picture("mono8", 0, 2, 0, Vec::new())),
            "size: found 0 × 2; allowed: 1 to 65535 each"
        );
        assert!(
            told(&picture("mono8", 70_000, 1, 70_000, vec![0; 70_000]))
                .starts_with("size: found 70000 × 1")
        );
        let why = "data: found 7 bytes, 4 a row; needed are 4 a row and 2 rows";
        assert_eq!(told(&picture("mono8", 4, 2, 4, vec![0; 7])), why);
        assert!(
            told(&picture("rgb8", 4, 2, 4, vec![0; 24])).contains("4 a row; needed are 12 a row")
        );
        assert!(
            told(&picture("mono8", 2, 65_535, u32::MAX, vec![0; 9])).starts_with("data: found 9")
        );
        assert!(!told(&[0, 1, 0, 0, 7]).is_empty());
    }

    #[test]
    fn quality_follows_the_rate() {
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let settings =
            |bytes_per_second| Jpeg { topics: Vec::new(), quality: 80, bytes_per_second };
        let mut free = Budget::new(&settings(None), began);
        free.take(usize::MAX);
        assert!(free.has_room(at(0)) && free.quality == 80);
        // Thirty pictures a second of which each takes a thousand bytes for each point of quality, where 600 kB a second are allowed.
        let mut budget = Budget::new(&settings(Some(600_000)), began);
        let (mut sent, mut bytes) = (0, 0);
        for number in 1..=300 {
            if budget.has_room(at(number * 33)) {
                sent += 1;
                bytes += usize::from(budget.quality) * 1000;
                budget.take(usize::from(budget.quality) * 1000);
            }
        }
        // Ten seconds, and what was saved.
        assert!((5_700_000..=6_400_000).contains(&bytes), "{bytes}");
        assert!(270 < sent && (10..40).contains(&budget.quality), "{sent} {}", budget.quality);
        // What cannot be kept by quality is kept by pictures that are left out.
        let mut narrow = Budget::new(&settings(Some(60_000)), began);
        let sent = (1..=300).filter(|it| {
            let has_room = narrow.has_room(at(it * 33));
            narrow.take(if has_room { 30_000 } else { 0 });
            has_room
        });
        assert!((19..=23).contains(&sent.count()) && narrow.quality == 10);
        // It gets better again where there is room.
        for number in 0..100 {
            assert!(narrow.has_room(at(20_000 + number * 33)));
        }
        assert_eq!(narrow.quality, 80);
    }
}
