//! How much can be recorded: images of 6 MB at 100 Hz from another process, beside what the disk takes of plain writes, and the
//! processor time that both take for it.
//!
//! `cargo run --release -p tsuji-record --example recording_speed FOLDER [SECONDS]` writes some gigabytes to the folder
//! and removes them.
#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tsuji::{Context, Qos};
use tsuji_interfaces::Shipped;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_platform::clock;
use tsuji_record::{RecordOptions, Recorder, TopicFilter};

const IMAGE_BYTES: usize = 6_000_000;
const PERIOD: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["camera", seconds] => camera(seconds.parse()?),
        [folder] => measure(Path::new(folder), 8),
        [folder, seconds] => measure(Path::new(folder), seconds.parse()?),
        _ => Err("allowed: FOLDER [SECONDS]".into()),
    }
}

/// Publishes images, as a camera does, whoever listens.
fn camera(seconds: u64) -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.node("camera")?;
    let publisher = node.create_publisher::<Image>("/recorded/image", Qos::DEFAULT)?;
    publisher.wait_for_subscriptions(1, Duration::from_secs(60))?;
    let template = Image { height: 1500, width: 2000, step: 4000, ..Image::default() };
    let (mut sent, mut unsent) = (0, 0);
    let mut next = Instant::now();
    let end = next + Duration::from_secs(seconds);
    while next < end {
        let published = publisher.loan(&template, IMAGE_BYTES).and_then(|mut image| {
            image.data_mut().fill(sent as u8);
            publisher.publish(image)
        });
        if published.is_ok() {
            sent += 1
        } else {
            unsent += 1
        }
        next += PERIOD;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    println!("published {sent} images; {unsent} found no room");
    publisher.wait_for_acknowledgements(Duration::from_secs(5))?;
    Ok(())
}

fn measure(folder: &Path, seconds: u64) -> Result<(), Box<dyn Error>> {
    let image = vec![7_u8; IMAGE_BYTES];
    let images = seconds * 1000 / PERIOD.as_millis() as u64;
    plain(folder, &image, images)?;
    record(folder, seconds)?;
    plain(folder, &image, images)
}

fn plain(folder: &Path, image: &[u8], images: u64) -> Result<(), Box<dyn Error>> {
    let path = folder.join("plain.bin");
    let mut file = File::create(&path)?;
    let began = Began::now();
    (0..images).try_for_each(|_| file.write_all(image))?;
    let written = began.so_far();
    file.sync_all()?;
    tell("plain writes", images * image.len() as u64, &written, &began.so_far());
    Ok(fs::remove_file(path)?)
}

fn record(folder: &Path, seconds: u64) -> Result<(), Box<dyn Error>> {
    let path = folder.join("recorded.mcap");
    let context = Context::new()?;
    let node = context.node("recorder")?;
    let options = RecordOptions {
        topics: TopicFilter { wanted: vec!["/recorded/image".parse()?], ..TopicFilter::default() },
        replace: true,
        ..RecordOptions::default()
    };
    let mut recorder = Recorder::create(&node, &path, options, Box::new(Shipped))?;
    let mut camera =
        Command::new(std::env::current_exe()?).args(["camera", &seconds.to_string()]).spawn()?;
    while recorder.progress().messages == 0 && camera.try_wait()?.is_none() {
        recorder.turn(Duration::from_millis(100))?;
    }
    let began = Began::now();
    while camera.try_wait()?.is_none() {
        recorder.turn(Duration::from_millis(100))?;
    }
    let progress = recorder.finish()?;
    let written = began.so_far();
    File::open(&path)?.sync_all()?;
    tell("recorded", progress.bytes, &written, &began.so_far());
    println!("{} images in the file, {} missing", progress.messages, progress.missing());
    Ok(fs::remove_file(path)?)
}

/// When something began.
struct Began {
    at: Instant,
    cpu_ns: u64,
}

/// What it has taken since, the processor time being of this thread, which does all of it.
struct Taken {
    time: Duration,
    cpu: Duration,
}

impl Began {
    fn now() -> Self {
        Self { at: Instant::now(), cpu_ns: clock::thread_cpu_ns() }
    }

    fn so_far(&self) -> Taken {
        let cpu = Duration::from_nanos(clock::thread_cpu_ns() - self.cpu_ns);
        Taken { time: self.at.elapsed(), cpu }
    }
}

fn tell(what: &str, bytes: u64, written: &Taken, synced: &Taken) {
    let rate = |taken: &Taken| bytes as f64 / 1e6 / taken.time.as_secs_f64();
    println!(
        "{what}: {:.2} GB, {:.0} MB/s to the kernel, {:.0} MB/s to the disk, {:.2} s of a processor for each GB",
        bytes as f64 / 1e9,
        rate(written),
        rate(synced),
        written.cpu.as_secs_f64() / (bytes as f64 / 1e9)
    );
}
