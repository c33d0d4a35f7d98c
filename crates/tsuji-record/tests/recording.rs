//! Recordings, written and read and played by nodes of this process.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tsuji::{Context, Durability, History, Node, Qos, RawType, Reliability};
use tsuji_interfaces::Shipped;
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::rosgraph_msgs::msg::Clock;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_msg::Message;
use tsuji_record::{
    Compression, ControlChange, ErrorKind, Layout, PlayOptions, Player, RecordOptions, Recorder,
    Recording, Split, TopicFilter,
};

/// Cuts a hang. Nothing is expected to take any part of it.
const WATCHDOG: Duration = Duration::from_secs(120);

const KEEP_ALL: Qos = Qos { history: History::KeepAll, ..Qos::DEFAULT };

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = tsuji_platform::process::temporary_path("tsuji-record-test");
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options(compression: Compression) -> RecordOptions {
    RecordOptions { compression, depth: 1000, ..RecordOptions::default() }
}

/// A node that those of other tests do not see: its run-time folder is beside the recording.
fn node(recording: &Path) -> Node {
    let run_time = recording.with_extension("run");
    let context = Context::builder().runtime_dir(run_time).domain(0).isolated().build().unwrap();
    context.node("robot").unwrap()
}

fn text(number: usize) -> Text {
    Text { data: format!("number {number}") }
}

/// Turns until `messages` are written.
fn turn_until(recorder: &mut Recorder, messages: u64) {
    let began = Instant::now();
    while recorder.progress().messages < messages {
        assert!(began.elapsed() < WATCHDOG, "{:?}", recorder.progress());
        recorder.turn(Duration::from_secs(1)).unwrap();
    }
}

#[test]
fn what_came_is_in_the_file_before_a_chunk_is_full() {
    let folder = Folder::new();
    for compression in [Compression::None, Compression::Zstd] {
        let path = folder.path(&format!("{compression:?}.mcap"));
        let node = node(&path);
        let words = node.create_publisher::<Text>("/words", KEEP_ALL).unwrap();
        let shipped = Box::new(Shipped);
        let mut recorder = Recorder::create(&node, &path, options(compression), shipped).unwrap();
        words.wait_for_subscriptions(1, WATCHDOG).unwrap();
        let began = Instant::now();
        for count in 1..=2 {
            words.publish(text(count)).unwrap();
            // No further message wakes it; what would be killed here has them all the same.
            while Recording::open(&path).unwrap().summary().messages < count as u64 {
                assert!(began.elapsed() < WATCHDOG, "{:?}", recorder.progress());
                recorder.turn(WATCHDOG).unwrap();
            }
        }
        drop(recorder.finish().unwrap());
        let mut whole = Recording::open(&path).unwrap();
        whole.check().unwrap();
        assert_eq!((whole.summary().messages, &*whole.summary().damages), (2, &[][..]));
    }
}

/// Of a recorder that is killed no more than the last second is lost, however long a chunk could wait to be full.
#[test]
fn what_came_a_second_ago_is_in_the_file() {
    const SECOND: Duration = Duration::from_secs(1);
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    let node = node(&path);
    let words = node.create_publisher::<Text>("/words", KEEP_ALL).unwrap();
    let shipped = Box::new(Shipped);
    let mut recorder = Recorder::create(&node, &path, options(Compression::None), shipped).unwrap();
    words.wait_for_subscriptions(1, WATCHDOG).unwrap();
    for count in 1..=2 {
        words.publish(text(count)).unwrap();
        turn_until(&mut recorder, count as u64);
        let came = Instant::now();
        while came.elapsed() < SECOND {
            recorder.turn(SECOND.saturating_sub(came.elapsed())).unwrap();
        }
        // One that begins now, since the last may have ended long ago.
        recorder.turn(Duration::ZERO).unwrap();
        assert_eq!(Recording::open(&path).unwrap().summary().messages, count as u64);
    }
    drop(recorder.finish().unwrap());
}

/// Records `count` texts on /words, and as many images on /images.
fn record(path: &Path, count: usize, compression: Compression) {
    let node = node(path);
    let latched = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
    let words = node.create_publisher::<Text>("/words", latched).unwrap();
    let images = node.create_publisher::<Image>("/images", Qos::SENSOR_DATA).unwrap();
    let mut recorder =
        Recorder::create(&node, path, options(compression), Box::new(Shipped)).unwrap();
    for number in 0..count {
        words.publish(text(number)).unwrap();
        let data = vec![number as u8; 1000];
        images.publish(Image { height: 1, width: 1000, data, ..Image::default() }).unwrap();
        turn_until(&mut recorder, 2 * (number as u64 + 1));
    }
    assert_eq!(recorder.warnings(), [""; 0]);
    let progress = recorder.finish().unwrap();
    assert_eq!((progress.messages, progress.missing()), (2 * count as u64, 0));
}

#[test]
fn what_is_recorded_is_read() {
    let folder = Folder::new();
    for (name, compression) in
        [("none", Compression::None), ("zstd", Compression::Zstd), ("lz4", Compression::Lz4)]
    {
        let path = folder.path(name);
        record(&path, 5, compression);
        let mut recording = Recording::open(&path).unwrap();
        recording.check().unwrap();
        let summary = recording.summary();
        assert_eq!((summary.messages, &summary.damages), (10, &vec![]));
        assert_eq!(summary.bytes, fs::metadata(&path).unwrap().len());
        assert!(0 < summary.first_ns && summary.first_ns < summary.last_ns);
        let counts = &summary.metadata["tsuji"];
        assert_eq!(
            (counts["/words received"].as_str(), counts["/words lost"].as_str()),
            ("5", "0")
        );
        let [images, words] = recording.topics() else { panic!("{:?}", recording.topics()) };
        assert_eq!((images.name.as_str(), images.messages), ("/images", 5));
        assert_eq!(images.type_name, "sensor_msgs/msg/Image");
        assert_eq!(images.offered[0].reliability, Reliability::BestEffort);
        assert!(images.definition().unwrap().contains("MSG: std_msgs/Header"));
        assert_eq!(words.offered[0].durability, Durability::TransientLocal);
        assert_eq!(words.type_hash, Text::TYPE_HASH);
    }
}

#[test]
fn what_is_recorded_is_played() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    record(&path, 20, Compression::Lz4);
    let node = node(&path);
    let words = node.create_polled_subscription::<Text>("/said", KEEP_ALL).unwrap();
    let images = node
        .create_polled_subscription::<Image>(
            "/images",
            Qos { reliability: Reliability::BestEffort, ..KEEP_ALL },
        )
        .unwrap();
    let options = PlayOptions {
        rate: 1000.0,
        remap: vec!["/words:=/said".parse().unwrap()],
        ..PlayOptions::default()
    };
    let mut player = Player::new(&node, Recording::open(&path).unwrap(), options).unwrap();
    words.wait_for_publishers(1, WATCHDOG).unwrap();
    images.wait_for_publishers(1, WATCHDOG).unwrap();
    // What is played twice comes twice.
    for _ in 0..2 {
        let played = player.play().unwrap();
        assert_eq!((played.messages, played.refused), (40, 0));
        for number in 0..20 {
            let word = take(|| words.take().unwrap());
            assert_eq!(*word.message(), text(number));
            let image = take(|| images.take().unwrap());
            assert_eq!(image.message().data, vec![number as u8; 1000]);
        }
    }
}

/// Writes a file as other recorders do: one channel for each of `offers` on `topic`, with the texts of `words` on the first,
/// a millisecond apart, packed by `pack`.
fn foreign(path: &Path, topic: &str, offers: &[&str], words: &[&str], pack: fn(&[u8]) -> Vec<u8>) {
    let mut writer = mcap::Writer::new(fs::File::create(path).unwrap()).unwrap();
    let schema = writer.add_schema("std_msgs/msg/String", "ros2msg", b"string data").unwrap();
    let mut channels = Vec::new();
    for (number, offered) in offers.iter().enumerate() {
        let metadata = BTreeMap::from([
            ("offered_qos_profiles".to_owned(), (*offered).to_owned()),
            ("number".to_owned(), number.to_string()),
        ]);
        channels.push(writer.add_channel(schema, topic, "cdr", &metadata).unwrap());
    }
    for (number, word) in words.iter().enumerate() {
        let data = pack(&serialised(word));
        let at = 1_700_000_000_000_000_000 + number as u64 * 1_000_000;
        let header = mcap::records::MessageHeader {
            channel_id: channels[0],
            sequence: 0,
            log_time: at,
            publish_time: at,
        };
        writer.write_to_known_channel(&header, &data).unwrap();
    }
    writer.finish().unwrap();
}

fn serialised(word: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    Text { data: word.to_owned() }.serialize_onto(&mut bytes).unwrap();
    bytes
}

const AS_IT_IS: fn(&[u8]) -> Vec<u8> = <[u8]>::to_vec;

/// Plays a recording, and answers the words that a subscription with `qos` has that comes after it.
fn played_to_late_joiner(path: &Path, topic: &str, qos: Qos, words: usize) -> Vec<String> {
    let node = node(path);
    let mut player =
        Player::new(&node, Recording::open(path).unwrap(), PlayOptions::default()).unwrap();
    player.play().unwrap();
    let late = node.create_polled_subscription::<Text>(topic, qos).unwrap();
    (0..words).map(|_| take(|| late.take().unwrap()).message().data.clone()).collect()
}

const LATCHED: Qos =
    Qos { durability: Durability::TransientLocal, history: History::KeepLast(1), ..Qos::DEFAULT };

/// What a late joiner asks for who wants all that is latched.
const ALL_LATCHED: Qos = Qos { history: History::KeepAll, ..LATCHED };

#[test]
fn what_several_publishers_latched_is_there_for_late_joiners() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    let robot = node(&path);
    let publish = |word: &str| {
        let publisher = robot.create_publisher::<Text>("/frames", LATCHED).unwrap();
        publisher.publish(Text { data: word.to_owned() }).unwrap();
        publisher
    };
    let mut publishers = vec![publish("one"), publish("two")];
    let options = options(Compression::None);
    let mut recorder = Recorder::create(&robot, &path, options, Box::new(Shipped)).unwrap();
    turn_until(&mut recorder, 2);
    // It is there when the topic is recorded already.
    publishers.push(publish("three"));
    turn_until(&mut recorder, 3);
    recorder.finish().unwrap();
    drop(publishers);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.topics()[0].offered, [LATCHED; 3]);
    let mut words = played_to_late_joiner(&path, "/frames", ALL_LATCHED, 3);
    words.sort();
    assert_eq!(words, ["one", "three", "two"]);
}

#[test]
fn channels_of_one_topic_are_publishers_of_it() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    // As Humble writes it.
    let latched = "- history: 1\n  depth: 1\n  reliability: 1\n  durability: 1\n";
    foreign(&path, "/frames", &[latched, latched], &["one", "two"], AS_IT_IS);
    assert_eq!(played_to_late_joiner(&path, "/frames", ALL_LATCHED, 2), ["one", "two"]);
}

/// A folder with one file, and a list with `more` lines in it.
fn folder_of_rosbag2(path: &Path, words: &[&str], more: &str, pack: fn(&[u8]) -> Vec<u8>) {
    fs::create_dir(path).unwrap();
    foreign(&path.join("a_0.mcap"), "/frames", &[""], words, pack);
    let list = format!(
        "rosbag2_bagfile_information:\n  storage_identifier: mcap\n  relative_file_paths:\n    - a_0.mcap\n{more}"
    );
    fs::write(path.join("metadata.yaml"), list).unwrap();
}

#[test]
fn qos_that_the_list_alone_has_is_offered() {
    let folder = Folder::new();
    for (name, version, offered) in [
        (
            "jazzy",
            9,
            "\n          - history: keep_last\n            depth: 2\n            durability: transient_local\n",
        ),
        ("humble", 5, " \"- history: 1\\n  depth: 2\\n  reliability: 1\\n  durability: 1\"\n"),
    ] {
        let path = folder.path(name);
        let more = format!(
            "  version: {version}\n  topics_with_message_count:\n    - topic_metadata:\n        name: /frames\n        \
             type: std_msgs/msg/String\n        serialization_format: cdr\n        offered_qos_profiles:{offered}      \
             message_count: 3\n  ros_distro: {name}\n"
        );
        folder_of_rosbag2(&path, &["one", "two", "three"], &more, AS_IT_IS);
        assert_eq!(played_to_late_joiner(&path, "/frames", ALL_LATCHED, 2), ["two", "three"]);
        assert_eq!(Recording::open(&path).unwrap().summary().distro, name);
    }
}

#[test]
fn messages_that_are_packed_one_by_one_are_unpacked() {
    let folder = Folder::new();
    let zstd = |data: &[u8]| zstd::bulk::compress(data, 1).unwrap();
    let words = ["one", "two", "three"];
    let mode = "  compression_mode: MESSAGE\n  compression_format: zstd\n";
    folder_of_rosbag2(&folder.path("listed"), &words, mode, zstd);
    // A file by itself has lost its list.
    foreign(&folder.path("a.mcap"), "/frames", &[""], &words, zstd);
    for name in ["listed", "a.mcap"] {
        let mut recording = Recording::open(&folder.path(name)).unwrap();
        let read: Vec<_> = recording.messages(0).map(|it| it.unwrap().data().to_vec()).collect();
        assert_eq!(read, words.map(serialised), "{name}");
        assert_eq!(recording.summary().damages, [], "{name}");
    }
    let bent = |data: &[u8]| {
        let mut packed = zstd::bulk::compress(data, 1).unwrap();
        packed.truncate(packed.len() - 3);
        packed
    };
    foreign(&folder.path("bent.mcap"), "/frames", &[""], &words, bent);
    let mut recording = Recording::open(&folder.path("bent.mcap")).unwrap();
    recording.check().unwrap();
    let [damage] = &recording.summary().damages[..] else { panic!("{:?}", recording.summary()) };
    assert!(
        damage.what.contains("3 messages are left out: they are packed each by itself"),
        "{damage}"
    );

    let other = mode.replace("zstd", "bzip");
    folder_of_rosbag2(&folder.path("other"), &words, &other, AS_IT_IS);
    let error = Recording::open(&folder.path("other")).unwrap_err().to_string();
    assert!(error.contains("each message is packed by \"bzip\"; unpacked: zstd"), "{error}");
}

#[test]
fn what_is_packed_as_a_whole_is_refused_with_what_unpacks_it() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    foreign(&path, "/frames", &[""], &["one"], AS_IT_IS);
    let packed = folder.path("a.mcap.zstd");
    fs::write(&packed, zstd::bulk::compress(&fs::read(&path).unwrap(), 1).unwrap()).unwrap();
    let error = Recording::open(&packed).unwrap_err().to_string();
    assert!(error.contains("is packed as a whole; unpack it, such as by `zstd -d`"), "{error}");
    let sqlite = folder.path("a.db3");
    fs::write(&sqlite, b"SQLite format 3\0and more").unwrap();
    let error = Recording::open(&sqlite).unwrap_err().to_string();
    assert!(error.contains("`ros2 bag convert`"), "{error}");
}

#[test]
fn names_without_a_slash_are_chosen_and_remapped() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    foreign(&path, "words", &[""], &["one"], AS_IT_IS);
    let node = node(&path);
    let heard = node.create_polled_subscription::<Text>("/other", KEEP_ALL).unwrap();
    let topics = TopicFilter { wanted: vec!["/words".parse().unwrap()], ..TopicFilter::default() };
    let remap = vec!["words:=/other".parse().unwrap()];
    let qos = BTreeMap::from([("/words".to_owned(), LATCHED)]);
    let options = PlayOptions { topics, remap, qos, ..PlayOptions::default() };
    let mut player = Player::new(&node, Recording::open(&path).unwrap(), options).unwrap();
    assert_eq!(player.play().unwrap().messages, 1);
    assert_eq!(take(|| heard.take().unwrap()).message().data, "one");
    // What is offered is what was asked for by the recorded name.
    let late = node.create_polled_subscription::<Text>("/other", LATCHED).unwrap();
    assert_eq!(take(|| late.take().unwrap()).message().data, "one");
}

#[test]
fn a_list_for_tools_of_humble_has_what_these_read() {
    let folder = Folder::new();
    let path = folder.path("drive");
    let node = node(&path);
    let words = node.create_publisher::<Text>("/words", LATCHED).unwrap();
    words.publish(text(1)).unwrap();
    let split = Split { bytes_max: Some(1000), ..Split::default() };
    let options = RecordOptions {
        split,
        layout: Layout::Humble,
        distro: "humble".into(),
        ..options(Compression::None)
    };
    let mut recorder = Recorder::create(&node, &path, options, Box::new(Shipped)).unwrap();
    turn_until(&mut recorder, 1);
    recorder.finish().unwrap();
    let list = fs::read_to_string(path.join("metadata.yaml")).unwrap();
    assert!(list.contains("  version: 5\n"), "{list}");
    assert!(
        list.contains("offered_qos_profiles: |\n          - history: 1\n            depth: 1\n"),
        "{list}"
    );
    for newer in ["type_description_hash", "custom_data", "ros_distro", "transient_local"] {
        assert!(!list.contains(newer), "{newer}: {list}");
    }
    let file = fs::read(path.join("drive_0.mcap")).unwrap();
    assert!(file.windows(12).any(|it| it == b"- history: 1"));
    assert_eq!(Recording::open(&path).unwrap().topics()[0].offered, [LATCHED]);
}

#[test]
fn what_is_played_is_paused_and_goes_on() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    foreign(&path, "/words", &[""], &["one", "two", "three", "four"], AS_IT_IS);
    let node = node(&path);
    let heard = node.create_polled_subscription::<Text>("/words", KEEP_ALL).unwrap();
    let next = || take(|| heard.take().unwrap()).message().data.clone();
    let options = PlayOptions { paused: true, rate: 0.5, ..PlayOptions::default() };
    let mut player = Player::new(&node, Recording::open(&path).unwrap(), options).unwrap();
    let controls = player.controls();
    assert!(controls.position().waits);
    let playing = thread::spawn(move || player.play().unwrap().messages);
    for word in ["one", "two"] {
        assert!(controls.play_next());
        assert_eq!(next(), word);
    }
    let position = controls.position();
    assert_eq!((position.at_ns, position.paused), (1_700_000_000_001_000_000, true));
    // It stands there until it is told to go on.
    assert!(heard.take().unwrap().is_none() && !playing.is_finished());
    controls.set_rate(f64::NAN);
    assert_eq!(controls.position().rate, 0.5);
    controls.set_rate(-1.0);
    assert_eq!(controls.position().rate, 0.01);
    controls.toggle_paused();
    assert!(!controls.play_next());
    assert_eq!([next(), next()], ["three", "four"]);
    assert_eq!(playing.join().unwrap(), 4);
}

#[test]
fn what_is_played_goes_to_another_time() {
    const FIRST_NS: u64 = 1_700_000_000_000_000_000;
    let at = |number: u64| FIRST_NS + number * 1_000_000;
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    foreign(&path, "/words", &[""], &["one", "two", "three", "four"], AS_IT_IS);
    let node = node(&path);
    let heard = node.create_polled_subscription::<Text>("/words", KEEP_ALL).unwrap();
    let next = || take(|| heard.take().unwrap()).message().data.clone();
    let options = PlayOptions { paused: true, ..PlayOptions::default() };
    let mut player = Player::new(&node, Recording::open(&path).unwrap(), options).unwrap();
    let controls = player.controls();
    assert_eq!(controls.span_ns(), (at(0), at(3)));
    let changes = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&changes);
    controls.when_changed(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let playing = thread::spawn(move || {
        let mut messages = player.play().unwrap().messages;
        while player.wait_for_seek(None).unwrap() {
            messages += player.play().unwrap().messages;
        }
        messages
    });
    let steps = |to: u64, words: &[&str]| {
        controls.seek(to);
        // Where it is is known at once, whatever is still on its way.
        assert_eq!(controls.position().at_ns, to.clamp(at(0), at(3)));
        until(|| !controls.position().waits);
        for word in words {
            assert!(controls.play_next());
            assert_eq!(&next(), word);
        }
    };
    until(|| !controls.position().waits);
    let before = changes.load(Ordering::Relaxed);
    steps(at(2) + 1, &["four"]);
    until(|| controls.position().ended);
    assert_eq!(controls.position().at_ns, at(3));
    // What has ended goes back as well, and to times that the recording has not.
    steps(at(1), &["two", "three"]);
    steps(0, &["one"]);
    steps(u64::MAX, &["four"]);
    until(|| controls.position().ended);
    assert_eq!(controls.position().jumps, 4);
    assert!(before + 8 <= changes.load(Ordering::Relaxed));
    // To go on there is to begin again.
    controls.set_paused(false);
    assert_eq!([next(), next(), next(), next()], ["one", "two", "three", "four"]);
    until(|| controls.position().ended);
    assert_eq!(controls.position().jumps, 5);
    node.context().shutdown();
    assert_eq!(playing.join().unwrap(), 9);
}

#[test]
fn what_goes_to_its_end_ends_there_however_fast_that_is() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    foreign(&path, "/words", &[""], &["one", "two"], AS_IT_IS);
    let node = node(&path);
    let options = PlayOptions { paused: true, rate: 1e300, ..PlayOptions::default() };
    let mut player = Player::new(&node, Recording::open(&path).unwrap(), options).unwrap();
    let controls = player.controls();
    assert_eq!(controls.position().rate, 1e6);
    let playing = thread::spawn(move || {
        let mut rounds = vec![player.play().unwrap().messages];
        while player.wait_for_seek(None).unwrap() {
            rounds.push(player.play().unwrap().messages);
        }
        rounds
    });
    // As a client says it that drags to the end: to go there and to be played are one wish.
    let (paused, seek_ns) = (Some(false), Some(u64::MAX));
    for round in 1..=300 {
        controls.set(&ControlChange { paused, seek_ns, rate: None });
        until(|| controls.position().ended);
        assert_eq!(controls.position().jumps, round, "it has gone back to its beginning");
    }
    node.context().shutdown();
    // The last message alone, but for where the first round was not over.
    assert!(playing.join().unwrap().iter().all(|it| *it == 1));
}

fn until(is_so: impl Fn() -> bool) {
    take(|| is_so().then_some(()));
}

#[test]
fn a_part_is_played() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    foreign(&path, "/words", &[""], &["one", "two", "three", "four"], AS_IT_IS);
    let node = node(&path);
    let played = |options| {
        let recording = Recording::open(&path).unwrap();
        Player::new(&node, recording, options).unwrap().play().unwrap().messages
    };
    let until_ns = Some(1_700_000_000_002_000_000);
    assert_eq!(played(PlayOptions { until_ns, ..PlayOptions::default() }), 3);
    let start_offset = Duration::from_micros(1500);
    assert_eq!(played(PlayOptions { until_ns, start_offset, ..PlayOptions::default() }), 1);
    // Each message of a topic tells the time before it.
    let told = node
        .create_polled_subscription::<Clock>(
            "/clock",
            Qos { reliability: Reliability::BestEffort, ..KEEP_ALL },
        )
        .unwrap();
    let clock_topics = vec!["/words".parse().unwrap()];
    assert_eq!(played(PlayOptions { clock_topics, ..PlayOptions::default() }), 4);
    for number in 0..4 {
        let expect = Time { sec: 1_700_000_000, nanosec: number * 1_000_000 };
        assert_eq!(take(|| told.take().unwrap()).message().clock, expect);
    }
}

/// Records `count` texts of 89 bytes on /words, and answers what is in the folder then.
fn split(folder: &Path, count: usize, split: Split) -> Vec<String> {
    let node = node(folder);
    let words = node.create_publisher::<Text>("/words", Qos::DEFAULT).unwrap();
    let options = RecordOptions { split, ..options(Compression::None) };
    let mut recorder = Recorder::create(&node, folder, options, Box::new(Shipped)).unwrap();
    for number in 0..count {
        words.publish(Text { data: format!("{number:0>80}") }).unwrap();
        turn_until(&mut recorder, number as u64 + 1);
    }
    let progress = recorder.finish().unwrap();
    assert_eq!((progress.messages, progress.bytes), (count as u64, 89 * count as u64));
    let names =
        fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_recording_is_split_by_size_and_is_one_again_as_it_is_read() {
    let folder = Folder::new();
    let path = folder.path("drive's");
    let by_size = Split { bytes_max: Some(300), ..Split::default() };
    // Three of 89 bytes fit.
    let expect = ["drive's_0.mcap", "drive's_1.mcap", "drive's_2.mcap", "metadata.yaml"];
    assert_eq!(split(&path, 8, by_size), expect);
    for (name, count) in [("drive's_0.mcap", 3), ("drive's_1.mcap", 3), ("drive's_2.mcap", 2)] {
        let part = Recording::open(&path.join(name)).unwrap();
        assert_eq!((part.summary().messages, &part.summary().damages), (count, &vec![]));
    }
    let mut whole = Recording::open(&path).unwrap();
    assert_eq!(whole.summary().metadata["tsuji"]["/words received"], "8");
    assert_eq!((whole.topics().len(), whole.topics()[0].messages), (1, 8));
    let texts = whole.messages(0).map(|it| Text::deserialize(it.unwrap().data()).unwrap().data);
    assert_eq!(
        texts.collect::<Vec<_>>(),
        (0..8).map(|it| format!("{it:0>80}")).collect::<Vec<_>>()
    );
    assert_eq!(whole.summary().damages, []);
    let list = fs::read_to_string(path.join("metadata.yaml")).unwrap();
    assert!(
        list.contains("  message_count: 8\n") && list.contains("type_description_hash: RIHS01_"),
        "{list}"
    );
}

#[test]
fn a_recording_is_split_by_time() {
    let folder = Folder::new();
    let path = folder.path("drive");
    let each = Split { duration_max: Some(Duration::from_nanos(1)), ..Split::default() };
    assert_eq!(split(&path, 4, each).len(), 5);
    let never = Split { duration_max: Some(Duration::from_secs(3600)), ..Split::default() };
    assert_eq!(split(&folder.path("once"), 4, never), ["metadata.yaml", "once_0.mcap"]);
}

#[test]
fn a_recording_of_many_files_has_one_open() {
    let folder = Folder::new();
    let path = folder.path("drive");
    let each = Split { bytes_max: Some(1), ..Split::default() };
    assert_eq!(split(&path, 9, each).len(), 10);
    let mut recording = Recording::open(&path).unwrap();
    let is_of_it = |it: PathBuf| fs::read_link(it).is_ok_and(|it| it.starts_with(&path));
    let files_open = || {
        let all = fs::read_dir("/proc/self/fd").unwrap();
        all.filter(|it| is_of_it(it.as_ref().unwrap().path())).count()
    };
    assert_eq!(files_open(), 1);
    recording.check().unwrap();
    assert_eq!((recording.summary().messages, recording.summary().damage_count), (9, 0));
    assert_eq!(files_open(), 1);
}

#[test]
fn a_split_recording_that_was_killed_is_listed_and_played() {
    let folder = Folder::new();
    let path = folder.path("drive");
    let node = node(&path);
    let split = Split { bytes_max: Some(1), ..Split::default() };
    let options = RecordOptions { split, ..options(Compression::None) };
    let mut recorder = Recorder::create(&node, &path, options.clone(), Box::new(Shipped)).unwrap();
    let latched = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
    let words = node.create_publisher::<Text>("/words", latched).unwrap();
    for number in 0..3 {
        words.publish(text(number)).unwrap();
        turn_until(&mut recorder, number as u64 + 1);
        let list = fs::read_to_string(path.join("metadata.yaml")).unwrap();
        assert!(list.contains("        name: /words\n"), "{list}");
        assert!(!list.contains("nanoseconds_since_epoch: 0\n"), "{list}");
        assert!(list.contains(&format!("    - 'drive_{number}.mcap'\n")), "{list}");
    }
    // As it is on the disk now, the last file without an end.
    let recording = Recording::open(&path).unwrap();
    let summary = recording.summary();
    assert_eq!((summary.messages, summary.damages.len()), (2, 1), "{summary:?}");
    assert!(summary.damages[0].file.ends_with("drive_2.mcap"), "{summary:?}");
    let refused = Recorder::create(&node, &path, options, Box::new(Shipped)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    recorder.finish().unwrap();
}

#[test]
fn the_time_of_a_recording_is_told_as_it_is_played() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    record(&path, 20, Compression::None);
    let recording = Recording::open(&path).unwrap();
    let [first_ns, last_ns] = [recording.summary().first_ns, recording.summary().last_ns];
    let node = node(&path);
    let qos = Qos { reliability: Reliability::BestEffort, ..KEEP_ALL };
    let told = node.create_polled_subscription::<Clock>("/clock", qos).unwrap();
    // So slowly that it takes 200 ms.
    let rate = (last_ns - first_ns) as f64 / 2e8;
    let options = PlayOptions { rate, clock_hz: Some(100.0), ..PlayOptions::default() };
    let mut player = Player::new(&node, recording, options).unwrap();
    told.wait_for_publishers(1, WATCHDOG).unwrap();
    // From the beginning each time.
    for _ in 0..2 {
        assert_eq!(player.play().unwrap().messages, 40);
        let mut times = Vec::new();
        while let Some(time) = told.take().unwrap() {
            let Time { sec, nanosec } = time.message().clock;
            times.push(sec as u64 * 1_000_000_000 + u64::from(nanosec));
        }
        assert_eq!(times.first(), Some(&first_ns), "{times:?}");
        assert!(times.is_sorted() && 2 <= times.len(), "{times:?}");
        assert!(times.iter().all(|it| (first_ns..=last_ns).contains(it)), "{last_ns}: {times:?}");
    }
    for hz in [0.0, -1.0, f64::NAN, 1e9] {
        let recording = Recording::open(&path).unwrap();
        let options = PlayOptions { clock_hz: Some(hz), ..PlayOptions::default() };
        let refused = Player::new(&node, recording, options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{hz}: {refused}");
    }
}

#[test]
fn a_recorded_clock_gives_way_to_that_of_the_player() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    let node = node(&path);
    let latched = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
    let clock = node.create_publisher::<Clock>("/clock", latched).unwrap();
    clock.publish(Clock::default()).unwrap();
    let mut recorder =
        Recorder::create(&node, &path, options(Compression::None), Box::new(Shipped)).unwrap();
    turn_until(&mut recorder, 1);
    recorder.finish().unwrap();
    for (clock_hz, messages) in [(None, 1), (Some(40.0), 0)] {
        let options = PlayOptions { clock_hz, ..PlayOptions::default() };
        let mut player = Player::new(&node, Recording::open(&path).unwrap(), options).unwrap();
        assert_eq!(player.matched(), if messages == 0 { usize::MAX } else { 0 });
        assert_eq!(player.play().unwrap().messages, messages);
        assert_eq!(player.skipped().len() as u64, 1 - messages, "{:?}", player.skipped());
    }
}

fn take<T>(mut take: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = take() {
            return found;
        }
        assert!(began.elapsed() < WATCHDOG, "nothing came");
        thread::yield_now();
    }
}

#[test]
fn a_type_that_nobody_knows_here_is_played_from_its_definition() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    let node = node(&path);
    let mut types = std::collections::HashMap::new();
    types.insert("own/msg/Pair".to_owned(), "own/Half left\nown/Half right\n".to_owned());
    types.insert("own/msg/Half".to_owned(), "int32 number\n".to_owned());
    let raw = RawType::new("own/msg/Pair");
    let publisher = node.create_raw_publisher("/pairs", raw, Qos::DEFAULT).unwrap();
    let mut recorder =
        Recorder::create(&node, &path, options(Compression::None), Box::new(types)).unwrap();
    let sample = [0, 1, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0];
    publisher.publish_bytes(&sample).unwrap();
    turn_until(&mut recorder, 1);
    recorder.finish().unwrap();
    let recording = Recording::open(&path).unwrap();
    let topic = recording.topics()[0].clone();
    assert!(topic.type_hash.starts_with("RIHS01_"), "{topic:?}");
    let raw = RawType::new(topic.type_name).hash(topic.type_hash);
    let heard = node.create_polled_raw_subscription("/again", raw, Qos::DEFAULT).unwrap();
    let remap = vec!["/pairs:=/again".parse().unwrap()];
    let mut player =
        Player::new(&node, recording, PlayOptions { remap, ..PlayOptions::default() }).unwrap();
    heard.wait_for_publishers(1, WATCHDOG).unwrap();
    player.play().unwrap();
    assert_eq!(&*take(|| heard.take_bytes().unwrap()).bytes, &sample);
}

#[test]
fn topics_that_come_later_are_joined() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    let node = node(&path);
    let mut recorder =
        Recorder::create(&node, &path, options(Compression::None), Box::new(Shipped)).unwrap();
    let raw = RawType::new("nobody/msg/Knows");
    let _unknown = node.create_raw_publisher("/unknown", raw, Qos::DEFAULT).unwrap();
    let words = node.create_publisher::<Text>("/late", Qos::DEFAULT).unwrap();
    let began = Instant::now();
    while words.matched() == 0 {
        assert!(began.elapsed() < WATCHDOG);
        recorder.turn(Duration::from_secs(1)).unwrap();
    }
    words.publish(text(1)).unwrap();
    while recorder.progress().messages == 0 {
        assert!(began.elapsed() < WATCHDOG);
        recorder.turn(Duration::from_secs(1)).unwrap();
    }
    let news = recorder.warnings();
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(news[0].starts_with("/unknown is not recorded: "), "{news:?}");
    assert!(news[0].contains("nobody/msg/Knows"), "{news:?}");
    recorder.finish().unwrap();
}

#[test]
fn what_is_displaced_is_counted() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    let node = node(&path);
    let words = node.create_publisher::<Text>("/words", Qos::DEFAULT).unwrap();
    let options = RecordOptions { depth: 3, ..options(Compression::None) };
    let mut recorder = Recorder::create(&node, &path, options, Box::new(Shipped)).unwrap();
    recorder.turn(Duration::ZERO).unwrap();
    let began = Instant::now();
    while words.matched() == 0 {
        assert!(began.elapsed() < WATCHDOG);
        thread::yield_now();
    }
    (0..10).for_each(|number| words.publish(text(number)).unwrap());
    let progress = recorder.finish().unwrap();
    assert_eq!((progress.messages, progress.missing()), (3, 7), "{progress:?}");
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.summary().metadata["tsuji"]["/words displaced"], "7");
}

#[test]
fn a_file_that_exists_is_kept() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    fs::write(&path, "precious").unwrap();
    let node = node(&path);
    let refused = Recorder::create(&node, &path, options(Compression::None), Box::new(Shipped));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let replacing = RecordOptions { replace: true, ..options(Compression::None) };
    Recorder::create(&node, &path, replacing, Box::new(Shipped)).unwrap().finish().unwrap();
    assert_eq!(Recording::open(&path).unwrap().summary().messages, 0);
}

#[test]
fn a_file_that_is_cut_anywhere_gives_what_is_whole() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    record(&path, 3, Compression::Zstd);
    let whole = fs::read(&path).unwrap();
    let mut best = 0;
    for len in 0..whole.len() {
        match Recording::read(whole[..len].to_vec()) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Format, "{len}: {error}");
                assert!(len < 8, "{len}: {error}");
            }
            Ok(mut recording) => {
                recording.check().unwrap();
                let summary = recording.summary();
                let [damage] = &summary.damages[..] else { panic!("{len}: {summary:?}") };
                assert!(damage.at <= len as u64 && damage.what.starts_with("the file ends here"));
                assert!(best <= summary.messages, "{len}: {summary:?}");
                best = summary.messages;
            }
        }
    }
    assert_eq!(best, 6);
}

#[test]
fn a_flipped_bit_anywhere_is_survived() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    record(&path, 3, Compression::Lz4);
    let whole = fs::read(&path).unwrap();
    let mut told = 0;
    for at in 0..whole.len() {
        let mut bent = whole.clone();
        bent[at] ^= 1 << (at % 8);
        if let Ok(mut recording) = Recording::read(bent) {
            recording.check().unwrap();
            assert!(recording.summary().damages.len() < 10, "{at}: {:?}", recording.summary());
            told += usize::from(!recording.summary().damages.is_empty());
        }
    }
    // What is flipped in messages is always found.
    assert!(whole.len() / 10 < told, "{told} of {}", whole.len());
}

#[test]
fn lengths_that_lie_are_survived() {
    let folder = Folder::new();
    for (name, compression) in
        [("none", Compression::None), ("zstd", Compression::Zstd), ("lz4", Compression::Lz4)]
    {
        let path = folder.path(name);
        record(&path, 2, compression);
        let whole = fs::read(&path).unwrap();
        for at in 8..whole.len() - 8 {
            for bytes in
                [&[0xFF; 8][..], &[0; 8], &[0xFF, 0xFF, 0xFF, 0x7F], &[4, 0, 0, 0, 0, 0, 0, 0]]
            {
                let mut bent = whole.clone();
                bent[at..at + bytes.len()].copy_from_slice(bytes);
                if let Ok(mut recording) = Recording::read(bent) {
                    recording.check().unwrap();
                }
            }
        }
    }
}

#[test]
fn a_damaged_chunk_is_left_out_and_told() {
    let folder = Folder::new();
    let path = folder.path("a.mcap");
    record(&path, 3, Compression::None);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(8).position(|it| it == b"number 1").unwrap();
    bytes[at] ^= 1;
    let mut recording = Recording::read(bytes).unwrap();
    recording.check().unwrap();
    let [damage] = &recording.summary().damages[..] else { panic!("{:?}", recording.summary()) };
    assert!(damage.what.contains("CRC"), "{damage}");
}
