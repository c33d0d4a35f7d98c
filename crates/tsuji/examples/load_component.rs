//! How soon a component has pictures of 2.36 MB by pointer after it is loaded into the camera's process, while a viewer in
//! another has them by shared memory, at 30 a second.
//!
//! cargo run --release -p tsuji --example load_component
#![allow(clippy::print_stdout, reason = "it is what this is for")]

use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tsuji::component::{
    Component, ComponentOptions, Container, ContainerClient, LoadRequest, Registered, builtin,
};
use tsuji::interfaces::sensor_msgs::msg::Image;
use tsuji::{Context, Error, ErrorKind, MessageInfo, Node, Qos, Subscription};
use tsuji_platform::clock;

const ROUNDS: usize = 51;
const PATIENCE: Duration = Duration::from_secs(10);

type Seen = (Instant, MessageInfo);

/// Tells of each picture.
struct Viewer {
    node: Node,
    _pictures: Subscription<Image>,
}

impl Component for Viewer {
    fn node(&self) -> &Node {
        &self.node
    }
}

fn view(node: Node, seen: Sender<Seen>) -> Result<Viewer, Error> {
    let pictures = node.create_subscription::<Image>("image", Qos::DEFAULT, move |picture| {
        // Nobody listens any more when a round is over.
        let _ = seen.send((Instant::now(), *picture.info()));
    })?;
    Ok(Viewer { node, _pictures: pictures })
}

fn main() -> Result<(), Error> {
    // Each as in a process of its own.
    let context = Context::builder().args(std::env::args().skip(1)).only_ros_args();
    let context = context.isolated().build()?;
    let outside = Context::builder().isolated().build()?;
    let (sees, inner) = mpsc::channel();
    let sees = Mutex::new(sees);
    let make = move |options: &ComponentOptions| {
        let sees = sees.lock().unwrap_or_else(PoisonError::into_inner).clone();
        view(options.node("inner")?, sees)
    };
    let container = Container::builder(&context, "container")
        .source(Registered::new().with("views", "Viewer", make))
        .source(builtin())
        .build()?;
    let container_context = context.clone();
    let serving = thread::spawn(move || container.spin());
    let (sees, outer) = mpsc::channel();
    let viewer = view(outside.node("outer")?, sees)?;
    let spun = viewer.node.clone();
    let viewing = thread::spawn(move || tsuji::spin(&spun));
    let asking = outside.node("asking")?;
    let client = ContainerClient::new(&asking, "/container");
    client.load(LoadRequest::new("tsuji_components", "Camera"), PATIENCE)?;
    let nothing_comes = || Error::new(ErrorKind::Timeout, "no picture comes");
    outer.recv_timeout(PATIENCE).map_err(|_| nothing_comes())?;
    let (mut answered, mut first, mut missed, mut late) = (Vec::new(), Vec::new(), 0, 0);
    for round in 0..ROUNDS {
        // Not always as long after a picture.
        thread::sleep(Duration::from_millis(40 + (round as u64 * 7) % 33));
        let began = Instant::now();
        let loaded = client.load(LoadRequest::new("views", "Viewer"), PATIENCE)?;
        answered.push(began.elapsed());
        let answered_ns = clock::monotonic_ns();
        let (mut last, mut begins) = (None, 0);
        for _ in 0..10 {
            let (at, info) = inner.recv_timeout(PATIENCE).map_err(|_| nothing_comes())?;
            match last.replace(info.sequence) {
                None => {
                    first.push(at - began);
                    begins = info.sequence;
                }
                Some(before) => missed += info.sequence.abs_diff(before + 1),
            }
        }
        client.unload(loaded.id, PATIENCE)?;
        while inner.try_recv().is_ok() {}
        // What the other viewer has seen of those before the first, and came after the answer.
        let others = outer.try_iter().map(|(_, info)| info);
        late += others
            .filter(|it| {
                it.sequence < begins && it.source_mono_ns.is_some_and(|ns| answered_ns < ns)
            })
            .count();
    }
    for (what, mut took) in [("the answer", answered), ("the first picture", first)] {
        took.sort();
        let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
        println!("from the request to {what}: median {median:?}, longest of {ROUNDS} {longest:?}");
    }
    println!("missed between pictures: {missed}; published after the answer and missed: {late}");
    drop(viewer);
    container_context.shutdown();
    outside.shutdown();
    let _ = (serving.join(), viewing.join());
    Ok(())
}
