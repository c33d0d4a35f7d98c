//! A process that films, one that watches, or both in one; each end tsuji's, or that of a peer without tsuji.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tsuji::{Context, History, Message, Node, Publisher, PublisherOptions, Qos, Received};
use tsuji_interfaces::sensor_msgs::msg::{CompressedImage, Image};
use tsuji_platform::clock::monotonic_ns;

use super::input::Input;
use super::reel::{Compressor, Frame, Reel, spot_sum};
use crate::Allocations;
use crate::child::{ChildPart, answer, obey_each, parsed, said};
use crate::pace::sleep_until;
use crate::placement;
use crate::route;
use crate::transport::{Hears, Line, PATIENCE, PICTURE_TYPE, Peer, Sends, Talker, Way};

/// What such a process is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FilmPart {
    pub(super) folder: PathBuf,
    /// `camera`, `watcher` or `both`.
    pub(super) role: String,
    pub(super) end: Way,
    pub(super) is_jpeg: bool,
    /// Bytes of a picture at most.
    pub(super) bytes_max: u64,
    /// The film, unless it is to be drawn.
    pub(super) input: Option<Input>,
    pub(super) name: String,
}

impl ChildPart for FilmPart {
    const MODE: &'static str = "--camera";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        match self.is_jpeg {
            true => Part::<CompressedImage>::take(self)?.run(),
            false => Part::<Image>::take(self)?.run(),
        }
    }
}

/// What the end that films answers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Filmed {
    pub(super) filmed: Pictures,
    pub(super) transport: Option<String>,
}

/// A message that a picture can be in.
trait Picture: Message {
    const DDS_TYPE: &'static str;

    /// Whether `frame` has to be encoded for it.
    fn is_encoded(frame: &Frame) -> bool;

    /// The picture under its number.
    fn of(frame: &Frame, number: u64, compressor: &mut Compressor) -> Result<Self, String>;

    fn data(&self) -> &[u8];

    /// `header.frame_id` and `data`.
    fn parts<'a>(view: &'a Self::View<'_>) -> (&'a str, &'a [u8]);
}

impl Picture for Image {
    const DDS_TYPE: &'static str = PICTURE_TYPE;

    fn is_encoded(_: &Frame) -> bool {
        false
    }

    fn of(frame: &Frame, number: u64, _: &mut Compressor) -> Result<Self, String> {
        let Frame::Raw(image) = frame else {
            return Err("a compressed picture is not decoded here".to_owned());
        };
        let mut image = image.clone();
        image.header.frame_id = frame_id(number, &image.data);
        Ok(image)
    }

    fn data(&self) -> &[u8] {
        &self.data
    }

    fn parts<'a>(view: &'a Self::View<'_>) -> (&'a str, &'a [u8]) {
        (view.header.frame_id, view.data)
    }
}

impl Picture for CompressedImage {
    const DDS_TYPE: &'static str = "sensor_msgs::msg::dds_::CompressedImage_";

    fn is_encoded(frame: &Frame) -> bool {
        matches!(frame, Frame::Raw(_))
    }

    fn of(frame: &Frame, number: u64, compressor: &mut Compressor) -> Result<Self, String> {
        let mut image = match frame {
            Frame::Raw(image) => {
                let (header, data) = (image.header.clone(), compressor.jpeg(image)?);
                Self { header, format: "jpeg".to_owned(), data }
            }
            Frame::Compressed(image) => image.clone(),
        };
        image.header.frame_id = frame_id(number, &image.data);
        Ok(image)
    }

    fn data(&self) -> &[u8] {
        &self.data
    }

    fn parts<'a>(view: &'a Self::View<'_>) -> (&'a str, &'a [u8]) {
        (view.header.frame_id, view.data)
    }
}

/// The number of a picture and a sum over it, where the article has the time.
fn frame_id(number: u64, data: &[u8]) -> String {
    format!("{number} {}", spot_sum(data))
}

/// The number, if the picture is the one that was sent under it.
fn number_of(frame_id: &str, data: &[u8]) -> Option<u64> {
    let (number, sum) = frame_id.split_once(' ')?;
    (sum.parse() == Ok(spot_sum(data))).then(|| number.parse().ok())?
}

/// The last ten, as ROS 2 has it unless told otherwise.
const QOS: Qos = Qos { history: History::KeepLast(10), ..Qos::DEFAULT };

/// What a process does.
struct Part<P: Picture> {
    filming: Option<Sends<P>>,
    lens: Option<Lens>,
    watching: Option<Hears<P>>,
    tsuji: Option<(Context, Node)>,
}

impl<P: Picture> Part<P> {
    fn take(told: FilmPart) -> Result<Self, String> {
        let FilmPart { folder, role, end, bytes_max, input, name, .. } = told;
        let topic = route::of_this_run(&folder, &name);
        // It takes a while, and no time counts yet.
        let lens = (role != "watcher").then(|| Lens::before(input)).transpose()?;
        let route = match end {
            Way::Alone(peer) => {
                let bytes_max = bytes_max as usize + BESIDE_PIXELS;
                let line = Line::between_two(folder, topic, P::DDS_TYPE, QOS, bytes_max);
                return Self::alone(peer, line, lens);
            }
            Way::Tsuji(route) => route,
        };
        let context = route.context(&folder).build().map_err(said)?;
        let node = context.node(&role).map_err(said)?;
        let number = |it: &Received<P>| {
            let view = it.view();
            let (frame_id, data) = P::parts(&view);
            number_of(frame_id, data)
        };
        let watching =
            (role != "camera").then(|| Hears::by_tsuji(&node, &topic, QOS, number, |_| ()));
        let filming = lens.as_ref().map(|lens| {
            let publisher = node.create_publisher::<P>(
                &topic,
                PublisherOptions::default()
                    .qos(QOS)
                    .max_blocking(PATIENCE)
                    .expected_size(lens.reel.bytes_max()),
            );
            publisher.map(Sends::Tsuji).map_err(said)
        });
        let (filming, watching) = (filming.transpose()?, watching.transpose()?);
        Ok(Self { filming, lens, watching, tsuji: Some((context, node)) })
    }

    /// One end without tsuji: the one that films if it has a lens.
    fn alone(peer: Peer, line: Line, lens: Option<Lens>) -> Result<Self, String> {
        let (mut filming, mut watching) = (None, None);
        if lens.is_some() {
            filming = Some(Sends::Alone(peer.talker(&line)?));
        } else {
            watching = Some(Hears::alone(peer, line, |sample| {
                let view = P::view_cdr(sample).ok()?;
                let (frame_id, data) = P::parts(&view);
                number_of(frame_id, data)
            })?);
        }
        Ok(Self { filming, lens, watching, tsuji: None })
    }

    fn run(mut self) -> Result<(), String> {
        if let Some((_, node)) = &self.tsuji {
            let node = node.clone();
            // It ends with the process.
            thread::spawn(move || {
                placement::receive_here();
                tsuji::spin(&node)
            });
        }
        answer(&json!({ "open": true }));
        obey_each(|line| match *line.split_whitespace().collect::<Vec<_>>() {
            ["meet"] => self.meet(),
            ["by", transport] => self.go_by(transport),
            ["film", first, count] => {
                let camera = self.filming.as_mut().zip(self.lens.as_mut());
                let (filming, lens) = camera.ok_or("no camera is here")?;
                let (first, count) = (parsed(first)?, parsed(count)?);
                let filmed = match filming {
                    Sends::Tsuji(it) => film_by::<P, _>(it, lens, first, count),
                    Sends::Alone(it) => film_by::<P, _>(it, lens, first, count),
                }?;
                Ok(json!(Filmed { filmed, transport: self.transport().0 }))
            }
            ["seen", end] => {
                let watching = self.watching.as_ref().ok_or("nobody watches here")?;
                Ok(json!(watching.heard(parsed(end)?)?))
            }
            _ => Err(format!("`{line}` is not understood")),
        })?;
        // Whatever a thread waits for, nobody wants it any more.
        std::process::exit(0);
    }

    /// Waits for the other end.
    fn meet(&mut self) -> Result<Value, String> {
        self.filming.as_mut().map_or(Ok(()), Sends::meet)?;
        self.watching.as_ref().map_or(Ok(()), Hears::meet)?;
        Ok(json!({ "met": true }))
    }

    /// Sets the transport, and waits until it carries.
    fn go_by(&self, transport: &str) -> Result<Value, String> {
        let (context, _) = self.tsuji.as_ref().ok_or("only tsuji has transports")?;
        let topic = self.topic().ok_or("only tsuji has transports")?;
        for setting in context.set_route(&topic, Some(transport), PATIENCE).map_err(said)? {
            setting.outcome.map_err(|why| format!("not by {transport}: {why}"))?;
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let (carries, rejected) = self.transport();
            if carries.as_deref() == Some(transport) {
                return Ok(json!({ "by": transport }));
            }
            if end <= Instant::now() {
                let why = rejected.into_iter().find(|it| it.0 == transport).map(|it| it.1);
                let carries = carries.unwrap_or_default();
                return Err(format!(
                    "not by {transport} but {carries}: {}",
                    why.unwrap_or_default()
                ));
            }
            thread::sleep(LOOK);
        }
    }

    fn topic(&self) -> Option<String> {
        let watched = self.watching.as_ref().and_then(Hears::topic);
        let filmed = || match &self.filming {
            Some(Sends::Tsuji(publisher)) => Some(publisher.topic()),
            _ => None,
        };
        watched.or_else(filmed).map(str::to_owned)
    }

    /// What carries now, as far as tsuji is here, and what does not and why.
    fn transport(&self) -> (Option<String>, Vec<(String, String)>) {
        let Some(((context, _), topic)) = self.tsuji.as_ref().zip(self.topic()) else {
            return (None, Vec::new());
        };
        let routes = context.routes(PATIENCE).unwrap_or_default();
        let own = routes.into_iter().find(|it| it.topic == topic);
        own.map_or((None, Vec::new()), |it| (it.transport, it.rejected))
    }
}

/// What a message has beside the pixels, at most.
const BESIDE_PIXELS: usize = 1024;

const LOOK: Duration = Duration::from_millis(10);
/// From the word to the first picture, so that it is ready when it is due.
const LEAD: Duration = Duration::from_millis(30);

/// What pictures come from.
struct Lens {
    reel: Reel,
    compressor: Compressor,
}

impl Lens {
    /// Draws the film, or reads the one of `input`.
    fn before(input: Option<Input>) -> Result<Self, String> {
        let reel = match input {
            Some(input) => input.read()?.reel,
            None => Reel::drawn(),
        };
        Ok(Self { reel, compressor: Compressor::default() })
    }
}

/// Of each picture when it was due, when its time began, when it was ready to be sent, and its bytes.
pub(super) type Pictures = Vec<[u64; 4]>;

/// What pictures are sent by.
trait Outlet<P: Picture> {
    /// A picture as it is handed over.
    type Packed;

    fn pack(message: P) -> Result<Self::Packed, String>;

    fn send(&mut self, packed: Self::Packed) -> Result<(), String>;
}

impl<P: Picture> Outlet<P> for Publisher<P> {
    type Packed = Arc<P>;

    fn pack(message: P) -> Result<Arc<P>, String> {
        Ok(Arc::new(message))
    }

    fn send(&mut self, packed: Arc<P>) -> Result<(), String> {
        self.publish(packed).map_err(said)
    }
}

impl<P: Picture> Outlet<P> for Box<dyn Talker> {
    type Packed = Vec<u8>;

    fn pack(message: P) -> Result<Vec<u8>, String> {
        message.to_vec().map_err(|error| error.to_string())
    }

    fn send(&mut self, packed: Vec<u8>) -> Result<(), String> {
        Talker::send(&mut **self, &packed)
    }
}

/// Sends each picture when it is due, whenever the one before was. Their numbers begin with `first`.
fn film_by<P: Picture, O: Outlet<P>>(
    outlet: &mut O,
    lens: &mut Lens,
    first: u64,
    count: u64,
) -> Result<Pictures, String> {
    let Lens { reel, compressor } = lens;
    let mut pack = |frame: &Frame, number| {
        let message = P::of(frame, number, compressor)?;
        let bytes = message.data().len() as u64;
        O::pack(message).map(|packed| (packed, bytes))
    };
    let mut filmed = Vec::with_capacity(count as usize);
    let begin_ns = monotonic_ns() + LEAD.as_nanos() as u64;
    for number in first..first + count {
        let frame = reel.frame(number);
        let ready = if P::is_encoded(frame) { None } else { Some(pack(frame, number)?) };
        let due_ns = begin_ns + (reel.due_us(number) - reel.due_us(first)) * 1000;
        sleep_until(due_ns);
        let at_ns = monotonic_ns();
        let (packed, bytes) = match ready {
            Some(ready) => ready,
            None => pack(frame, number)?,
        };
        let packed_ns = monotonic_ns();
        outlet.send(packed)?;
        filmed.push([due_ns, at_ns, packed_ns, bytes]);
    }
    Ok(filmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<P: Picture>() {
        let reel = Reel::drawn();
        let picture = P::of(reel.frame(42), 42, &mut Compressor::default()).unwrap();
        let bytes = picture.to_vec().unwrap();
        let view = P::view_cdr(&bytes).unwrap();
        let (frame_id, data) = P::parts(&view);
        assert_eq!(data, picture.data());
        assert_eq!(number_of(frame_id, data), Some(42));
        assert_eq!(number_of(frame_id, &data[1..]), None);
        assert_eq!(number_of("42", data), None);
    }

    #[test]
    fn a_picture_is_known_by_its_number_and_one_that_was_cut_is_not() {
        check::<Image>();
        check::<CompressedImage>();
    }
}
