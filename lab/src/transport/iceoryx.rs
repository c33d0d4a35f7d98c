//! iceoryx2 as its documentation uses it: one publish-subscribe service for the pictures, one event
//! service to wake by, the receiver asleep in a `WaitSet`.

use std::path::Path;

use iceoryx2::port::listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::sample_mut::SampleMut;
use iceoryx2::sample_mut_uninit::SampleMutUninit;
use iceoryx2::service::port_factory::{event, publish_subscribe};
use tsuji::History;

use crate::picture::{NUMBER_BYTES, Pictures};
use crate::transport::peer::{Line, Listener, Talker};
use crate::transport::{End, Flow, LOOK_AGAIN, Sender, Spec};

/// Begins the names of the files that iceoryx2 makes in `/dev/shm` for a run in `folder`.
pub(crate) fn prefix(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}_")
}

type Node = iceoryx2::node::Node<ipc::Service>;

struct Services {
    samples: publish_subscribe::PortFactory<ipc::Service, [u8], ()>,
    events: event::PortFactory<ipc::Service>,
    /// Dropped last, after what lives on it.
    _node: Node,
}

fn open(line: &Line) -> Result<Services, String> {
    set_log_level(LogLevel::Fatal);
    let mut config = Config::default();
    let root = line.folder.join("iceoryx2");
    let root = iceoryx2_path(&root)?;
    config.global.set_root_path(&root);
    config.global.prefix =
        FileName::new(prefix(&line.folder).as_bytes()).map_err(said("prefix"))?;
    let node = NodeBuilder::new()
        .config(&config)
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<ipc::Service>()
        .map_err(|error| {
            let error = said("create a node")(error);
            // iceoryx2 does not say so itself.
            match shared_memory_trouble(&line.name) {
                Some(trouble) => format!("{error} (/dev/shm cannot be written: {trouble})"),
                None => error,
            }
        })?;
    let processes = line.receivers + 2;
    let name = line.name.as_str().try_into().map_err(said("name"))?;
    let samples = node
        .service_builder(&name)
        .publish_subscribe::<[u8]>()
        .max_publishers(1)
        .max_subscribers(line.receivers)
        .max_nodes(processes)
        .subscriber_max_buffer_size(buffered(line))
        .subscriber_max_borrowed_samples(2)
        .history_size(0)
        .enable_safe_overflow(line.flow == Flow::Paced)
        .open_or_create()
        .map_err(said("open the publish-subscribe service"))?;
    let events = node
        .service_builder(&name)
        .event()
        .max_notifiers(1)
        .max_listeners(line.receivers)
        .max_nodes(processes)
        .open_or_create()
        .map_err(said("open the event service"))?;
    Ok(Services { samples, events, _node: node })
}

/// Samples that wait for a subscriber at most. Each costs the memory of a sample.
fn buffered(line: &Line) -> usize {
    match (line.flow, line.qos.history) {
        (Flow::Paced, History::KeepLast(depth)) => depth as usize,
        (Flow::Stream, _) if line.bytes_max <= SMALL => 1024,
        _ => 8,
    }
}

const SMALL: usize = 4096;

/// Why no file can be made where POSIX shared memory is.
fn shared_memory_trouble(name: &str) -> Option<std::io::Error> {
    let probe = Path::new("/dev/shm").join(format!("{name}_{}_probe", std::process::id()));
    let trouble = std::fs::write(&probe, b"x").err();
    // Where nothing was written there is nothing to remove.
    let _ = std::fs::remove_file(probe);
    trouble
}

fn iceoryx2_path(path: &Path) -> Result<iceoryx2::prelude::Path, String> {
    iceoryx2::prelude::Path::new(path.as_os_str().as_encoded_bytes()).map_err(said("root path"))
}

pub(super) fn talker(line: &Line) -> Result<Talking, String> {
    let services = open(line)?;
    let publisher = services
        .samples
        .publisher_builder()
        .initial_max_slice_len(line.bytes_max)
        .max_loaned_samples(2)
        .backpressure_strategy(match line.flow {
            Flow::Paced => BackpressureStrategy::DiscardData,
            Flow::Stream => BackpressureStrategy::RetryUntilDelivered,
        })
        .create()
        .map_err(said("create a publisher"))?;
    let notifier =
        services.events.notifier_builder().create().map_err(said("create a notifier"))?;
    Ok(Talking { publisher, notifier, services })
}

type Uninit = SampleMutUninit<ipc::Service, [std::mem::MaybeUninit<u8>], ()>;
type Drawn = SampleMut<ipc::Service, [u8], ()>;

pub(super) struct Talking {
    publisher: Publisher<ipc::Service, [u8], ()>,
    notifier: Notifier<ipc::Service>,
    services: Services,
}

impl Talking {
    fn loan(&self, bytes: usize) -> Result<Uninit, String> {
        self.publisher.loan_slice_uninit(bytes).map_err(said("loan"))
    }

    /// Answers how many have taken it.
    fn send_loaned(&self, sample: Drawn) -> Result<usize, String> {
        let taken = sample.send().map_err(said("send"))?;
        self.notifier.notify().map_err(said("notify"))?;
        Ok(taken)
    }
}

impl Talker for Talking {
    fn is_met(&mut self) -> Result<bool, String> {
        Ok(self.services.samples.dynamic_config().number_of_subscribers() != 0)
    }

    fn send(&mut self, sample: &[u8]) -> Result<(), String> {
        self.send_loaned(self.loan(sample.len())?.write_from_slice(sample)).map(drop)
    }
}

pub(super) fn listener(line: &Line) -> Result<Listening, String> {
    let services = open(line)?;
    let subscriber =
        services.samples.subscriber_builder().create().map_err(said("create a subscriber"))?;
    let listener =
        services.events.listener_builder().create().map_err(said("create a listener"))?;
    Ok(Listening { subscriber, listener, _services: services })
}

pub(super) struct Listening {
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    listener: listener::Listener<ipc::Service>,
    _services: Services,
}

impl Listening {
    fn take_all(&self, heard: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        while let Some(sample) = self.subscriber.receive().map_err(said("receive"))? {
            heard(sample.payload());
        }
        Ok(())
    }
}

impl Listener for Listening {
    fn run(self: Box<Self>, end: &End, heard: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let wait_set = WaitSetBuilder::new()
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<ipc::Service>()
            .map_err(said("create a wait set"))?;
        let _attached = wait_set.attach_notification(&self.listener).map_err(said("attach"))?;
        while !end.is_over() {
            wait_set
                .wait_and_process_once_with_timeout(|_| CallbackProgression::Continue, LOOK_AGAIN)
                .map_err(said("wait"))?;
            self.take_all(heard)?;
            // One `try_wait` a wake-up loses wake-ups for good; until 0 it does not. What was sent
            // while they were taken is looked for once more.
            while self.listener.try_wait(|_| ()).map_err(said("take events"))? != 0 {}
            self.take_all(heard)?;
        }
        Ok(())
    }
}

/// Sends pictures in the loans that they are drawn in.
pub(super) fn in_place(spec: &Spec) -> Result<Box<dyn Sender>, String> {
    let talking = talker(&Line::of(spec))?;
    let (pictures, receivers) = (Pictures::new(spec.size), spec.receivers);
    Ok(Box::new(InPlace { pictures, receivers, place: None, drawn: None, talking }))
}

struct InPlace {
    pictures: Pictures,
    receivers: usize,
    place: Option<Uninit>,
    drawn: Option<Drawn>,
    talking: Talking,
}

impl Sender for InPlace {
    fn prepare(&mut self) -> Result<(), String> {
        self.place = Some(self.talking.loan(self.pictures.size())?);
        Ok(())
    }

    fn draw(&mut self, number: u64) -> Result<(), String> {
        let place = self.place.take().ok_or("no place to draw in")?;
        let mut drawn = place.write_from_slice(self.pictures.content(number));
        drawn.payload_mut()[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
        self.drawn = Some(drawn);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        let taken = self.talking.send_loaned(self.drawn.take().ok_or("nothing is drawn")?)?;
        // A full buffer or a subscriber that has not mapped the publisher is no error to iceoryx2.
        if taken == self.receivers { Ok(()) } else { Err(format!("{taken} have taken it")) }
    }
}

fn said<E: std::fmt::Debug>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("iceoryx2: {what}: {error:?}")
}
