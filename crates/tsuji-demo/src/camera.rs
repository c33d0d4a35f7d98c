//! The camera's process: a camera that draws each picture in the memory that carries it, and in the same
//! process a detector that looks at the same bytes. Most of what is done to the robot is done here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tsuji::{Context, Executor, Loan, Node, Publisher, PublisherOptions, Subscription};
use tsuji_interfaces::geometry_msgs::msg::{Point, PointStamped};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::Header;
use tsuji_transport::Transport;
use tsuji_transport::faulty::{Faults, Faulty};

use crate::Result;
use crate::acts::{ENGINE, MEMORY_MIB};
use crate::picture::{self, FULL, Painter, THUMBNAIL};
use crate::robot::{
    CUT_ENGINE, FILL_MEMORY, FREE_MEMORY, GUEST, GUEST_COMES, GUEST_LEAVES, HEAL_ENGINE, Orders,
    PICTURES, PICTURES_KEPT, SEND_FULL, SEND_THUMBNAILS, SPOTS, START_MAX, Sequence, insist, kept,
    now,
};
use crate::tally::{End, Tally};

const PICTURE_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);
const THUMBNAIL_PERIOD: Duration = Duration::from_millis(10);

/// So many loans do not fit into the memory, so one of them has to wait for some.
const HOARD: usize = (MEMORY_MIB << 20) / FULL.bytes() + 1;

/// So soon a picture is read and let go, unless the machine is busy.
const READ_MAX: Duration = Duration::from_millis(50);

/// Plays the camera until `orders` end.
pub(crate) fn play(orders: &Orders) -> Result<()> {
    let (context, engine) = context_with_faults()?;
    let camera = context.node("camera")?;
    let detector = context.node("detector")?;
    let guest = context.node(GUEST.trim_start_matches('/'))?;

    let seen = Tally::new(PICTURES, "/detector", End::Received);
    let found = Tally::new(SPOTS, "/detector", End::Sent);
    let drawn = Tally::new(PICTURES, "/camera", End::Sent);
    let shown = Tally::new(PICTURES, GUEST, End::Received);
    let _detection = detect(&detector, Arc::clone(&seen), Arc::clone(&found))?;
    let pictures = Arc::new(camera.create_publisher::<Image>(
        PICTURES,
        PublisherOptions::default().qos(kept(PICTURES_KEPT)).expected_size(FULL.bytes() as u64),
    )?);
    let sends_thumbnails = Arc::new(AtomicBool::new(false));
    let number = Arc::new(Mutex::new(0));
    let mut stage = Stage {
        pictures: Arc::clone(&pictures),
        number: Arc::clone(&number),
        sends_thumbnails: Arc::clone(&sends_thumbnails),
        engine,
        hoard: Vec::new(),
        guest: guest.clone(),
        guest_view: None,
        shown: Arc::clone(&shown),
    };
    let tallies = vec![seen, found, Arc::clone(&drawn), shown];
    orders.obey_also(&context, tallies, move |order| stage.obey(order))?;
    pictures.wait_for_subscriptions(2, START_MAX)?;

    let timer = |size, period, is_thumbnail| {
        let (painter, pictures) = (Painter::new(size), Arc::clone(&pictures));
        let (number, drawn) = (Arc::clone(&number), Arc::clone(&drawn));
        let sends_thumbnails = Arc::clone(&sends_thumbnails);
        orders.every(&camera, period, move || {
            if sends_thumbnails.load(Ordering::Relaxed) == is_thumbnail {
                let mut number = number.lock().unwrap_or_else(PoisonError::into_inner);
                drawn.add(send(&pictures, &painter, *number).inspect(|()| *number += 1));
            }
        })
    };
    let _pictures = timer(FULL, PICTURE_PERIOD, false)?;
    let _thumbnails = timer(THUMBNAIL, THUMBNAIL_PERIOD, true)?;
    let mut executor = Executor::new(&context)?.threads(3);
    executor.add(&camera)?.add(&detector)?.add(&guest)?;
    Ok(executor.spin()?)
}

/// A context whose Cyclone DDS, if it has it, can be cut.
fn context_with_faults() -> Result<(Context, Arc<OnceLock<Faulty>>)> {
    let engine = Arc::new(OnceLock::new());
    let kept = Arc::clone(&engine);
    let around = move |transport: Arc<dyn Transport>| -> Arc<dyn Transport> {
        if transport.id().as_str() != ENGINE {
            return transport;
        }
        let faulty = Faulty::in_place_of(transport, 0);
        Arc::new(kept.get_or_init(|| faulty).clone())
    };
    let builder = Context::builder();
    let context = builder.transports(move |built| built.into_iter().map(around).collect());
    Ok((context.build()?, engine))
}

/// Looks for the car in each picture, and tells where it is.
fn detect(node: &Node, seen: Arc<Tally>, found: Arc<Tally>) -> Result<Subscription<Image>> {
    let spots = node.create_publisher::<PointStamped>(SPOTS, kept(PICTURES_KEPT))?;
    let mut order = Sequence::from_first(1);
    Ok(node.create_subscription::<Image>(PICTURES, kept(PICTURES_KEPT), move |received| {
        let image = received.view();
        let (x, y) = picture::find_car(image.data).unwrap_or_default();
        let header =
            Header { stamp: image.header.stamp, frame_id: image.header.frame_id.to_owned() };
        let spot = PointStamped { header, point: Point { x, y, z: 0.0 } };
        found.add(insist(|| spots.publish(&spot)));
        seen.add(order.next("sample", received.info().sequence));
    })?)
}

/// Draws a frame and publishes it. The same one is drawn again while it is refused for a moment, so no
/// number is left out.
fn send(pictures: &Publisher<Image>, painter: &Painter, number: u64) -> tsuji::Result<()> {
    let size = painter.size();
    let template = Image {
        header: Header { stamp: now(), frame_id: "camera".into() },
        height: size.height as u32,
        width: size.width as u32,
        encoding: "rgb8".into(),
        step: size.step() as u32,
        ..Image::default()
    };
    insist(|| {
        let mut loan = pictures.loan(&template, size.bytes())?;
        painter.draw(number, loan.data_mut());
        pictures.publish(loan)
    })
}

/// What is done to this process.
struct Stage {
    pictures: Arc<Publisher<Image>>,
    /// Of the next frame. Whoever holds it keeps the camera from publishing.
    number: Arc<Mutex<u64>>,
    sends_thumbnails: Arc<AtomicBool>,
    engine: Arc<OnceLock<Faulty>>,
    /// Memory that nobody else can have.
    hoard: Vec<Loan>,
    guest: Node,
    guest_view: Option<Subscription<Image>>,
    shown: Arc<Tally>,
}

impl Stage {
    fn obey(&mut self, order: &str) -> Result<()> {
        match order {
            SEND_THUMBNAILS => self.sends_thumbnails.store(true, Ordering::Relaxed),
            SEND_FULL => self.sends_thumbnails.store(false, Ordering::Relaxed),
            FILL_MEMORY => {
                // What readers still hold would be free a moment later, and the flow return for that.
                let _number = self.number.lock().unwrap_or_else(PoisonError::into_inner);
                std::thread::sleep(READ_MAX);
                for _ in 0..HOARD {
                    self.hoard.push(insist(|| self.pictures.loan_bytes(FULL.bytes()))?);
                }
            }
            FREE_MEMORY => self.hoard.clear(),
            CUT_ENGINE => self.fault(Faults { cut: true, ..Faults::default() }),
            HEAL_ENGINE => self.fault(Faults::default()),
            GUEST_COMES => self.guest_view = Some(self.watch()?),
            GUEST_LEAVES => self.guest_view = None,
            _ => (),
        }
        Ok(())
    }

    fn fault(&self, faults: Faults) {
        if let Some(engine) = self.engine.get() {
            engine.set(faults);
        }
    }

    /// Looks at the pictures too, from the next one on.
    fn watch(&self) -> Result<Subscription<Image>> {
        let shown = Arc::clone(&self.shown);
        let mut order = Sequence::default();
        Ok(self.guest.create_subscription::<Image>(
            PICTURES,
            kept(PICTURES_KEPT),
            move |received| {
                let number = picture::verify(received.view().data);
                shown.add(number.and_then(|number| order.next("frame", number)));
            },
        )?)
    }
}
