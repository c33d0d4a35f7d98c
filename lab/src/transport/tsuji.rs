//! tsuji as a program would use it: nodes, publishers, and callbacks run by the thread that spins.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tsuji::{
    Context, Executor, History, LoanedMessage, Node, Publisher, PublisherOptions, Qos,
    RawPublisher, RawSubscription, RawType, Reliability, RouteReport, Subscription,
};
use tsuji_interfaces::geometry_msgs::msg::Inertia;
use tsuji_interfaces::sensor_msgs::msg::Image;

use crate::child::said;
use crate::picture::Pictures;
use crate::probe::Arrivals;
use crate::transport::{End, Ends, Flow, Receiver, Sender, Spec, Transport};

pub(crate) fn sender(spec: &Spec) -> Result<Box<dyn Sender>, String> {
    let context = context(spec)?;
    let node = context.node("sender").map_err(said)?;
    sending(spec, &node)
}

pub(crate) fn receiver(spec: &Spec, arrivals: Arc<Arrivals>) -> Result<Box<dyn Receiver>, String> {
    let context = context(spec)?;
    let node = context.node("receiver").map_err(said)?;
    Ok(Box::new(receiving(spec, &node, arrivals)?))
}

pub(crate) fn ends(spec: &Spec, arrivals: Arc<Arrivals>) -> Result<Ends, String> {
    let context = context(spec)?;
    let receiving_node = context.node("receiver").map_err(said)?;
    let sending_node = if spec.one_node {
        receiving_node.clone()
    } else {
        context.node("sender").map_err(said)?
    };
    let receiving = receiving(spec, &receiving_node, arrivals)?;
    Ok((sending(spec, &sending_node)?, Box::new(receiving)))
}

fn context(spec: &Spec) -> Result<Context, String> {
    spec.route.context(&spec.folder).build().map_err(said)
}

/// What the engine in the receiving process had from publishers that reach it by another transport.
pub(crate) fn doubled(spec: &Spec) -> Result<u64, String> {
    // It shares the participant of the one that receives.
    let transports = context(spec)?.transports();
    let figures = transports.iter().flat_map(|it| &it.figures);
    let doubled = figures.filter(|(name, _)| name == "doubled_samples").map(|(_, count)| count);
    Ok(doubled.sum())
}

/// As the transports beside it have it too, where they know of such things.
pub(super) fn qos(spec: &Spec) -> Qos {
    let reliability =
        if spec.is_reliable { Reliability::Reliable } else { Reliability::BestEffort };
    let history = match spec.flow {
        Flow::Paced => Qos::DEFAULT.history,
        Flow::Stream => History::KeepAll,
    };
    Qos { reliability, history, ..Qos::DEFAULT }
}

fn sending(spec: &Spec, node: &Node) -> Result<Box<dyn Sender>, String> {
    let options = || PublisherOptions::default().qos(qos(spec)).max_blocking(PATIENCE);
    let images = || {
        let options = options().expected_size(spec.size as u64);
        node.create_publisher::<Image>(&spec.name, options).map_err(said)
    };
    let bytes = || node.create_raw_publisher(&spec.name, bytes_type(), options()).map_err(said);
    Ok(match spec.transport {
        Transport::TsujiLoan => Sending::of(
            node,
            spec,
            Loans { publisher: images()?, template: image(0), loaned: None },
        ),
        Transport::TsujiPointer => {
            let frames = (0..FRAMES).map(|_| Arc::new(image(spec.size))).collect();
            Sending::of(node, spec, Pointers { publisher: images()?, frames })
        }
        Transport::TsujiTyped => {
            let publisher = node.create_publisher::<Inertia>(&spec.name, options());
            let publisher = publisher.map_err(said)?;
            Sending::of(node, spec, Typed { publisher, message: Inertia::default() })
        }
        Transport::TsujiBytes => {
            Sending::of(node, spec, Serialised { publisher: bytes()?, sample: vec![0; spec.size] })
        }
        Transport::TsujiCommand | Transport::TsujiCommandBesidePictures => {
            let publisher = bytes()?;
            let is_beside = spec.transport == Transport::TsujiCommandBesidePictures;
            let beside = is_beside.then(|| Beside::start(node, spec)).transpose()?;
            let sample = [&CDR_HEADER[..], &vec![0; spec.size]].concat();
            Sending::of(node, spec, Commands { publisher, sample, beside })
        }
        _ => Sending::of(node, spec, References { publisher: images()?, frame: image(spec.size) }),
    })
}

/// Frames in rotation; one is free again when the receiver has dropped it.
const FRAMES: usize = 4;

/// How long a publisher waits for room, or for its subscriptions.
const PATIENCE: Duration = Duration::from_secs(20);

/// What all pictures are.
pub(super) fn image(size: usize) -> Image {
    Image { encoding: "bgr8".into(), data: vec![0; size], ..Image::default() }
}

fn bytes_type() -> RawType {
    RawType::new("tsuji_lab/msg/Bytes")
}

/// CDR, little endian, before the number of a serialised sample.
const CDR_HEADER: [u8; 4] = [0, 1, 0, 0];

/// What is published, and as what it is handed over.
trait Outlet {
    fn publisher(&self) -> &RawPublisher;

    /// Takes a place for the next picture.
    fn prepare(&mut self, _: &Pictures) -> Result<(), String> {
        Ok(())
    }

    fn draw(&mut self, pictures: &Pictures, number: u64) -> Result<(), String>;

    fn publish(&mut self) -> Result<(), String>;

    /// What is sent besides is sent, or not any more.
    fn turn(&self, _: Turn) {}
}

struct Sending<O> {
    node: Node,
    pictures: Pictures,
    /// Subscriptions that are still to come.
    receivers: usize,
    outlet: O,
}

impl<O: Outlet + 'static> Sending<O> {
    fn of(node: &Node, spec: &Spec, outlet: O) -> Box<dyn Sender> {
        let (pictures, receivers) = (Pictures::new(spec.size), spec.receivers);
        Box::new(Self { node: node.clone(), pictures, receivers, outlet })
    }
}

impl<O: Outlet> Sender for Sending<O> {
    fn prepare(&mut self) -> Result<(), String> {
        let count = std::mem::take(&mut self.receivers);
        if count != 0 {
            self.outlet.publisher().wait_for_subscriptions(count, PATIENCE).map_err(said)?;
        }
        self.outlet.prepare(&self.pictures)
    }

    fn draw(&mut self, number: u64) -> Result<(), String> {
        self.outlet.draw(&self.pictures, number)
    }

    fn publish(&mut self) -> Result<(), String> {
        self.outlet.publish()
    }

    fn begin(&mut self) {
        self.outlet.turn(Turn::Send);
    }

    fn end(&mut self) {
        self.outlet.turn(Turn::Rest);
    }

    fn transport(&mut self) -> Option<String> {
        let topic = self.outlet.publisher().topic();
        let routes = self.node.context().routes(Duration::from_secs(2)).ok()?;
        let of_tsuji = |it: &RouteReport| it.subscription.vendor.is_none();
        let mut routes = routes.into_iter().filter(|it| it.topic == topic && of_tsuji(it));
        routes.find_map(|it| it.transport)
    }
}

struct Loans {
    publisher: Publisher<Image>,
    template: Image,
    loaned: Option<LoanedMessage<Image>>,
}

impl Outlet for Loans {
    fn publisher(&self) -> &RawPublisher {
        &self.publisher
    }

    fn prepare(&mut self, pictures: &Pictures) -> Result<(), String> {
        self.loaned = Some(self.publisher.loan(&self.template, pictures.size()).map_err(said)?);
        Ok(())
    }

    fn draw(&mut self, pictures: &Pictures, number: u64) -> Result<(), String> {
        let loaned = self.loaned.as_mut().ok_or("no place to draw in")?;
        pictures.draw(number, loaned.data_mut());
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        let loaned = self.loaned.take().ok_or("nothing is drawn")?;
        self.publisher.publish(loaned).map_err(said)
    }
}

struct Pointers {
    publisher: Publisher<Image>,
    frames: VecDeque<Arc<Image>>,
}

impl Outlet for Pointers {
    fn publisher(&self) -> &RawPublisher {
        &self.publisher
    }

    fn prepare(&mut self, pictures: &Pictures) -> Result<(), String> {
        self.frames.rotate_left(1);
        if Arc::get_mut(&mut self.frames[0]).is_none() {
            self.frames[0] = Arc::new(image(pictures.size()));
        }
        Ok(())
    }

    fn draw(&mut self, pictures: &Pictures, number: u64) -> Result<(), String> {
        let frame = Arc::get_mut(&mut self.frames[0]).ok_or("the frame is in use")?;
        pictures.draw(number, &mut frame.data);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        self.publisher.publish(Arc::clone(&self.frames[0])).map_err(said)
    }
}

struct References {
    publisher: Publisher<Image>,
    frame: Image,
}

impl Outlet for References {
    fn publisher(&self) -> &RawPublisher {
        &self.publisher
    }

    fn draw(&mut self, pictures: &Pictures, number: u64) -> Result<(), String> {
        pictures.draw(number, &mut self.frame.data);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        self.publisher.publish(&self.frame).map_err(said)
    }
}

/// A message of a fixed size, the number in its first field.
struct Typed {
    publisher: Publisher<Inertia>,
    message: Inertia,
}

impl Outlet for Typed {
    fn publisher(&self) -> &RawPublisher {
        &self.publisher
    }

    fn draw(&mut self, _: &Pictures, number: u64) -> Result<(), String> {
        self.message.m = f64::from_bits(number);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        self.publisher.publish(self.message).map_err(said)
    }
}

/// A sample that is serialised already, the number behind its header.
struct Serialised {
    publisher: RawPublisher,
    sample: Vec<u8>,
}

impl Outlet for Serialised {
    fn publisher(&self) -> &RawPublisher {
        &self.publisher
    }

    fn draw(&mut self, _: &Pictures, number: u64) -> Result<(), String> {
        self.sample[..4].copy_from_slice(&CDR_HEADER);
        self.sample[4..12].copy_from_slice(&number.to_le_bytes());
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        self.publisher.publish_bytes(&self.sample).map_err(said)
    }
}

/// A small serialised sample, pictures on another topic meanwhile or not.
struct Commands {
    publisher: RawPublisher,
    sample: Vec<u8>,
    beside: Option<Beside>,
}

impl Outlet for Commands {
    fn publisher(&self) -> &RawPublisher {
        &self.publisher
    }

    fn draw(&mut self, pictures: &Pictures, number: u64) -> Result<(), String> {
        pictures.draw(number, &mut self.sample[CDR_HEADER.len()..]);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        self.publisher.publish_bytes(&self.sample).map_err(said)
    }

    fn turn(&self, turn: Turn) {
        if let Some(beside) = &self.beside {
            beside.turn(turn);
        }
    }
}

/// A thread that publishes pictures at 30 Hz while it is told to.
struct Beside {
    turn: Arc<(Mutex<Turn>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Rest,
    Send,
    End,
}

/// Bytes of a picture beside, and from one to the next.
pub(crate) const BESIDE_BYTES: usize = 6_000_000;
const BESIDE_PERIOD: Duration = Duration::from_nanos(33_333_333);

fn beside_topic(spec: &Spec) -> String {
    format!("{}_beside", spec.name)
}

impl Beside {
    fn start(node: &Node, spec: &Spec) -> Result<Self, String> {
        let publisher = node
            .create_publisher::<Image>(
                &beside_topic(spec),
                PublisherOptions::default()
                    .max_blocking(PATIENCE)
                    .expected_size(BESIDE_BYTES as u64),
            )
            .map_err(said)?;
        let turn = Arc::new((Mutex::new(Turn::Rest), Condvar::new()));
        let thread = thread::Builder::new().name("beside".to_owned()).spawn({
            let turn = Arc::clone(&turn);
            move || publish_in_turns(&publisher, &turn)
        });
        Ok(Self { turn, thread: Some(thread.map_err(|error| error.to_string())?) })
    }

    fn turn(&self, to: Turn) {
        *self.turn.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
        self.turn.1.notify_all();
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.turn(Turn::End);
        if let Some(thread) = self.thread.take() {
            // It has nothing to panic of.
            let _ = thread.join();
        }
    }
}

/// What is not published leaves a gap in the numbers, which the receiver counts.
fn publish_in_turns(publisher: &Publisher<Image>, turn: &(Mutex<Turn>, Condvar)) {
    let mut frame = image(BESIDE_BYTES);
    let mut has_met = false;
    let mut number = 0_u64;
    let mut now = turn.0.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match *now {
            Turn::End => return,
            Turn::Rest => now = turn.1.wait(now).unwrap_or_else(PoisonError::into_inner),
            Turn::Send => {
                drop(now);
                let begun = Instant::now();
                has_met = has_met || publisher.wait_for_subscriptions(1, PATIENCE).is_ok();
                frame.data[..8].copy_from_slice(&number.to_le_bytes());
                let _ = publisher.publish(&frame);
                number += 1;
                now = turn.0.lock().unwrap_or_else(PoisonError::into_inner);
                let rest = BESIDE_PERIOD.saturating_sub(begun.elapsed());
                let slept = turn.1.wait_timeout_while(now, rest, |now| *now == Turn::Send);
                now = slept.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

fn receiving(spec: &Spec, node: &Node, arrivals: Arc<Arrivals>) -> Result<Receiving, String> {
    let subscription = match spec.transport {
        Transport::TsujiPointer => Kept::Images(
            node.create_subscription::<Image>(&spec.name, qos(spec), move |it| {
                arrivals.arrived(&it.message().data)
            })
            .map_err(said)?,
        ),
        Transport::TsujiTyped => Kept::Typed(
            node.create_subscription::<Inertia>(&spec.name, qos(spec), move |it| {
                arrivals.arrived(&it.view().m.to_bits().to_le_bytes())
            })
            .map_err(said)?,
        ),
        Transport::TsujiBytes => Kept::Bytes(
            node.create_raw_subscription(&spec.name, bytes_type(), qos(spec), move |it| {
                arrivals.arrived(it.bytes.get(4..).unwrap_or_default())
            })
            .map_err(said)?,
        ),
        Transport::TsujiCommand | Transport::TsujiCommandBesidePictures => {
            let beside = Arc::clone(&arrivals);
            let pictures = node
                .create_subscription::<Image>(&beside_topic(spec), Qos::DEFAULT, move |it| {
                    beside.arrived_beside(it.view().data)
                })
                .map_err(said)?;
            let pictures = Arc::new(pictures);
            let counting = Arc::downgrade(&pictures);
            arrivals.count_displaced_beside(move || {
                counting.upgrade().map_or(0, |it| it.counters().displaced)
            });
            let commands = node
                .create_raw_subscription(&spec.name, bytes_type(), qos(spec), move |it| {
                    arrivals.arrived(it.bytes.get(4..).unwrap_or_default())
                })
                .map_err(said)?;
            Kept::Commands(commands, pictures)
        }
        _ => Kept::Images(
            node.create_subscription::<Image>(&spec.name, qos(spec), move |it| {
                arrivals.arrived(it.view().data)
            })
            .map_err(said)?,
        ),
    };
    Ok(Receiving { node: node.clone(), _subscription: subscription })
}

/// A subscription lives as long as it is kept.
#[expect(dead_code, reason = "they are kept, and need nothing else")]
enum Kept {
    Images(Subscription<Image>),
    Typed(Subscription<Inertia>),
    Bytes(RawSubscription),
    Commands(RawSubscription, Arc<Subscription<Image>>),
}

struct Receiving {
    node: Node,
    _subscription: Kept,
}

impl Receiver for Receiving {
    fn run(self: Box<Self>, end: &End) -> Result<(), String> {
        let context = self.node.context().clone();
        end.on_end(move || context.shutdown());
        let mut executor = Executor::new(self.node.context()).map_err(said)?;
        executor.add(&self.node).map_err(said)?;
        executor.spin().map_err(said)
    }
}
