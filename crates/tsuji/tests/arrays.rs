//! Arrays of messages by their names: written in loans and read in place, by nodes of types of Rust
//! and of types known at run time, in other processes (isolated contexts) and in their own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tsuji::dynamic::{DynamicMessage, TypeSet};
use tsuji::{
    ArrayLayout, Context, ErrorKind, Loan, Message, Publisher, Qos, RawSubscription, Subscription,
    WaitSet,
};
use tsuji_interfaces::Shipped;
use tsuji_interfaces::sensor_msgs::msg::{ChannelFloat32, Image, LaserScan, PointCloud};
use tsuji_interfaces::stereo_msgs::msg::DisparityImage;

/// Only there to end a hung test.
const HANG: Duration = Duration::from_secs(60);

const SCAN: &str = "sensor_msgs/msg/LaserScan";

/// A run-time folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static FOLDERS: AtomicU64 = AtomicU64::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("tsuji-arrays-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn process(&self) -> Context {
        Context::builder().runtime_dir(&self.0).domain(7).isolated().build().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Takes a message when there is one.
fn wait<T>(context: &Context, of: &RawSubscription, take: impl Fn() -> Option<T>) -> T {
    let mut set = WaitSet::new(context).unwrap();
    set.add(of).unwrap();
    loop {
        if let Some(taken) = take() {
            return taken;
        }
        assert!(!set.wait(HANG).unwrap().is_empty(), "nothing came");
    }
}

fn pair<M: Message>(one: &Context, two: &Context, topic: &str) -> (Publisher<M>, Subscription<M>) {
    let (writer, reader) = (one.node("writer").unwrap(), two.node("reader").unwrap());
    let publisher = writer.create_publisher::<M>(topic, Qos::DEFAULT).unwrap();
    let subscription = reader.create_polled_subscription::<M>(topic, Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    (publisher, subscription)
}

fn template() -> LaserScan {
    let header =
        tsuji_interfaces::std_msgs::msg::Header { frame_id: "laser".into(), ..Default::default() };
    // What the template has in an array that is asked for is not sent.
    LaserScan { header, range_max: 30.0, ranges: vec![7.0; 9], ..LaserScan::default() }
}

#[test]
fn several_arrays_of_a_loan_are_written_and_read_by_another_process() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (publisher, subscription) = pair::<LaserScan>(&one, &two, "scan");
    for round in 0..20 {
        // Counts that move what lies behind.
        let (beams, echoes) = (360 + round, 2 * round);
        let arrays = [("intensities", echoes), ("ranges", beams)];
        let mut loan = publisher.loan_with(&template(), &arrays).unwrap();
        let [ranges, intensities] = loan.arrays_mut::<f32, 2>(["ranges", "intensities"]).unwrap();
        assert_eq!((ranges.len(), intensities.len()), (beams, echoes));
        ranges.fill(round as f32);
        intensities.fill(0.5);
        loan.array_mut::<f32>("ranges").unwrap()[0] = -1.0;
        publisher.publish(loan).unwrap();

        let received = wait(&two, &subscription, || subscription.take().unwrap());
        assert!(!received.is_by_reference());
        let ranges = received.array::<f32>("ranges").unwrap().as_slice().unwrap();
        assert_eq!((ranges.len(), ranges[0], ranges[beams - 1]), (beams, -1.0, round as f32));
        let memory = received.bytes().unwrap().as_ptr_range();
        assert!(memory.contains(&ranges.as_ptr().cast()), "it was copied");
        let intensities = received.array::<f32>("intensities").unwrap().as_slice().unwrap();
        assert_eq!(intensities, vec![0.5; echoes]);
        let view = received.view();
        assert_eq!((view.header.frame_id, view.range_max), ("laser", 30.0));
        assert_eq!(view.ranges, *ranges);
    }
    let routes = one.routes(HANG).unwrap();
    assert_eq!(routes[0].transport.as_deref(), Some("shm"));
    assert_eq!((routes[0].samples, routes[0].lost), (20, 0));
}

#[test]
fn what_the_manual_writes_is_read() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (publisher, subscription) = pair::<LaserScan>(&one, &two, "scan");
    // As docs/tutorial/camera.md has it.
    let publish = |template: LaserScan| {
        let mut scan = publisher.loan_with(&template, &[("ranges", 360), ("intensities", 360)])?;
        scan.array_mut::<f32>("ranges")?.fill(1.0);
        publisher.publish(scan)
    };
    publish(template()).unwrap();
    let received = wait(&two, &subscription, || subscription.take().unwrap());
    let ranges = received.array::<f32>("ranges").unwrap().as_slice().unwrap();
    assert_eq!(ranges, [1.0; 360]);
    assert_eq!(received.view().intensities.len(), 360);
}

#[test]
fn arrays_inside_other_messages_are_written_and_read() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (publisher, subscription) = pair::<DisparityImage>(&one, &two, "disparity");
    let mut template = DisparityImage::default();
    template.image.encoding = "32FC1".into();
    let mut loan = publisher.loan_with(&template, &[("image.data", 4 * 50)]).unwrap();
    loan.data_mut().fill(3);
    loan.array_mut::<u8>("image.data").unwrap()[0] = 4;
    publisher.publish(loan).unwrap();
    let received = wait(&two, &subscription, || subscription.take().unwrap());
    let data = received.array::<u8>("image.data").unwrap();
    assert_eq!((data.len(), data.get(0), data.get(199)), (200, Some(4), Some(3)));
    assert_eq!(received.view().image.encoding, "32FC1");

    let (publisher, subscription) = pair::<PointCloud>(&one, &two, "cloud");
    let channel = |name: &str| ChannelFloat32 { name: name.into(), ..Default::default() };
    let channels = vec![channel("intensity"), channel("ring")];
    let template = PointCloud { channels, ..PointCloud::default() };
    let arrays = [("channels[0].values", 3), ("channels[1].values", 5)];
    let mut loan = publisher.loan_with(&template, &arrays).unwrap();
    loan.array_mut::<f32>("channels[0].values").unwrap().fill(1.0);
    loan.array_mut::<f32>("channels[1].values").unwrap().fill(2.0);
    publisher.publish(loan).unwrap();
    let received = wait(&two, &subscription, || subscription.take().unwrap());
    assert_eq!(received.array::<f32>("channels[1].values").unwrap(), [2.0; 5][..]);
    assert_eq!(received.message().channels[0].values, [1.0; 3]);
    let error = received.array::<f32>("channels[2].values").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let has = "has: channels[0].values (f32), channels[1].values (f32)";
    assert!(error.to_string().contains(has), "{error}");
}

#[test]
fn a_type_known_at_run_time_is_written_and_read_in_place() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let ty = TypeSet::new(Shipped).load(SCAN).unwrap();
    let layout = ArrayLayout::from(ty.clone());
    let publisher = one.node("writer").unwrap().create_raw_publisher("scan", SCAN, Qos::DEFAULT);
    let publisher = publisher.unwrap();
    let reader = two.node("reader").unwrap();
    let raw: RawSubscription =
        reader.create_polled_raw_subscription("scan", SCAN, Qos::DEFAULT).unwrap();
    let typed = reader.create_polled_subscription::<LaserScan>("scan", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    raw.wait_for_publishers(1, HANG).unwrap();
    typed.wait_for_publishers(1, HANG).unwrap();

    let template = DynamicMessage::from_yaml(&ty, "{header: {frame_id: laser}, range_max: 30.0}");
    let template = template.unwrap();
    let mut loan = publisher.loan_with(&template, &[("ranges", 1080)]).unwrap();
    loan.array_mut::<f32>("ranges").unwrap().fill(1.5);
    publisher.publish_loan(loan).unwrap();

    let sample = wait(&two, &raw, || raw.take_bytes().unwrap());
    let ranges = layout.array::<f32>(&sample.bytes, "ranges").unwrap().as_slice().unwrap();
    assert_eq!(ranges, [1.5; 1080]);
    let received = wait(&two, &typed, || typed.take().unwrap());
    assert_eq!(received.array::<f32>("ranges").unwrap(), *ranges);
    assert_eq!(received.view().header.frame_id, "laser");
    assert_eq!(
        DynamicMessage::decode(&ty, &sample.bytes).unwrap().encode().unwrap(),
        *sample.bytes
    );

    let image = DynamicMessage::new(TypeSet::new(Shipped).load("sensor_msgs/msg/Image").unwrap());
    let error = publisher.loan_with(&image, &[("data", 10)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let expected =
        format!("loan on /scan: the template is a sensor_msgs/msg/Image; allowed: {SCAN}");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_value_of_the_own_process_has_the_same_arrays() {
    let folder = Folder::new();
    let context = folder.process();
    let (publisher, subscription) = pair::<LaserScan>(&context, &context, "scan");
    publisher.publish(LaserScan { ranges: vec![1.0, 2.0], ..template() }).unwrap();
    let received = subscription.take().unwrap().unwrap();
    assert!(received.is_by_reference());
    let ranges = received.array::<f32>("ranges").unwrap().as_slice().unwrap();
    assert_eq!(ranges, [1.0, 2.0]);
    assert_eq!(ranges.as_ptr(), received.message().ranges.as_ptr(), "it was copied");
    let by_reference = received.array::<f64>("ranges").unwrap_err().to_string();

    publisher.publish(publisher.loan_with(&template(), &[("ranges", 0)]).unwrap()).unwrap();
    let received = subscription.take().unwrap().unwrap();
    assert!(!received.is_by_reference());
    assert!(received.array::<f32>("ranges").unwrap().is_empty());
    assert_eq!(received.array::<f64>("ranges").unwrap_err().to_string(), by_reference);
}

#[test]
fn a_loan_that_cannot_be_is_refused_and_takes_no_memory() {
    const HAS: &str =
        "expected one that this sensor_msgs/msg/LaserScan has: ranges (f32), intensities (f32)";
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("writer").unwrap();
    let publisher = node.create_publisher::<LaserScan>("scan", Qos::DEFAULT).unwrap();
    let check = |arrays: &[(&str, usize)], expected: &str| {
        let error = publisher.loan_with(&template(), arrays).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), expected);
    };
    check(&[("rangez", 4)], &format!("field `rangez`: found no array of numbers; {HAS}"));
    check(
        &[("ranges", 4), ("ranges", 5)],
        &format!("field `ranges`: found the same array twice; {HAS}"),
    );
    let mut loan = publisher.loan_with(&template(), &[("ranges", 4)]).unwrap();
    let check = |error: tsuji::Error, expected: &str| {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), expected);
    };
    check(
        loan.array_mut::<u32>("ranges").unwrap_err(),
        &format!("field `ranges`: found no array of u32; {HAS}"),
    );
    check(
        loan.array_mut::<f32>("header").unwrap_err(),
        &format!("field `header`: found no array of f32; {HAS}"),
    );
    assert!(loan.arrays_mut::<f32, 2>(["ranges", "ranges"]).is_err());
    // None is asked for: the whole template is sent.
    let mut loan = publisher.loan_with(&template(), &[]).unwrap();
    assert!(loan.data_mut().is_empty());
    assert_eq!(loan.array_mut::<f32>("ranges").unwrap(), [7.0; 9]);
    let bytes: Loan = loan.into();
    assert_eq!(*bytes, template().to_vec().unwrap());
    let images = node.create_publisher::<Image>("image", Qos::DEFAULT).unwrap();
    let mut loan = images.loan(&Image::default(), 10).unwrap();
    assert_eq!(loan.array_mut::<u8>("data").unwrap().len(), 10);
}
