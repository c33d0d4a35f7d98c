//! Pictures that are offered as JPEG too.

use serde_json::json;
use tsuji::{
    Durability, EndpointInfo, EndpointKind, Node, Publisher, Qos, Reliability, Subscription,
};
use tsuji_bridge::{Jpeg, Settings};
use tsuji_interfaces::sensor_msgs::msg::{CompressedImage, Image};

use crate::world::{World, until};

const COMPRESSED: &str = "/camera/image/compressed";

fn world() -> World {
    let topics = vec!["/camera/**".parse().unwrap()];
    let jpeg = Some(Jpeg { topics, quality: 80, bytes_per_second: None });
    World::with(Settings { jpeg, ..Settings::default() })
}

fn camera(node: &Node, topic: &str) -> Publisher<Image> {
    node.create_publisher::<Image>(topic, Qos::DEFAULT).unwrap()
}

/// 64 × 48 pixels of one colour.
fn picture(encoding: &str) -> Image {
    let (height, width, step) = (48, 64, 192);
    let (encoding, data) = (encoding.to_owned(), [200, 100, 50].repeat(64 * 48));
    Image { height, width, step, encoding, data, ..Image::default() }
}

/// Waits for what is offered there.
fn offered(world: &World) {
    until("it is offered", || {
        let names = world.node.context().graph();
        names.endpoints.iter().any(|it| it.topic == COMPRESSED).then_some(())
    });
}

/// A subscription to the pictures of a camera, compressed, once they are taken from it for that.
fn wanted(world: &World, camera: &Publisher<Image>) -> Subscription<CompressedImage> {
    let heard = world.node.create_polled_subscription(COMPRESSED, Qos::DEFAULT).unwrap();
    until("they are asked for", || (camera.matched() == 1).then_some(()));
    heard
}

#[test]
fn pictures_are_compressed_while_somebody_subscribes_to_that() {
    let world = world();
    let camera = camera(&world.node, "/camera/image");
    offered(&world);
    // Nobody wants them, so they are not asked for.
    assert_eq!(camera.matched(), 0);
    let mut client = world.client();
    client.say(&json!({ "op": "subscribe", "topic": COMPRESSED, "queue_length": 1 }));
    client.settle();
    until("they are asked for", || (camera.matched() == 1).then_some(()));
    camera.publish(picture("rgb8")).unwrap();
    let message = client.hear_of("publish")["msg"].clone();
    assert_eq!(message["format"], "rgb8; jpeg compressed bgr8");
    // How JPEG begins, in base64.
    assert!(message["data"].as_str().unwrap().starts_with("/9j/"), "{message}");
    // Other nodes have them as well.
    let heard = world.node.create_polled_subscription::<CompressedImage>(COMPRESSED, Qos::DEFAULT);
    let heard = heard.unwrap();
    heard.wait_for_publishers(1, crate::WATCHDOG).unwrap();
    client.say(&json!({ "op": "unsubscribe", "topic": COMPRESSED }));
    client.settle();
    let received = until("a picture", || {
        camera.publish(picture("rgb8")).unwrap();
        heard.take().unwrap()
    });
    let jpeg = received.view().data;
    assert!(jpeg.starts_with(&[0xff, 0xd8]) && jpeg.len() < 2000, "{}", jpeg.len());
    let decoder = zune_jpeg::zune_core::bytestream::ZCursor::new(jpeg);
    let pixels = zune_jpeg::JpegDecoder::new(decoder).decode().unwrap();
    assert!(
        (195..=205).contains(&pixels[0]) && (45..=55).contains(&pixels[2]),
        "{:?}",
        &pixels[..3]
    );
    assert!(1 < world.bridge.statistics().pictures_compressed);
    drop(heard);
    until("they are asked for no more", || (camera.matched() == 0).then_some(()));
    // What goes, goes there too.
    drop(camera);
    until("it is offered no more", || {
        let graph = world.node.context().graph();
        graph.endpoints.iter().all(|it| it.topic != COMPRESSED).then_some(())
    });
}

#[test]
fn what_somebody_else_compresses_or_nobody_means_is_left_alone() {
    let world = world();
    let own = world.node.create_publisher::<CompressedImage>(COMPRESSED, Qos::DEFAULT).unwrap();
    let _camera = camera(&world.node, "/camera/image");
    let _other = camera(&world.node, "/elsewhere/image");
    let _third = camera(&world.node, "/camera/third");
    let offers = |topic: &str| {
        let endpoints = world.node.context().endpoints_of(topic);
        endpoints.iter().filter(|it| it.node == "/bridge").count()
    };
    until("the third is offered", || (offers("/camera/third/compressed") == 1).then_some(()));
    assert_eq!((offers(COMPRESSED), offers("/elsewhere/image/compressed")), (0, 0));
    drop(own);
    until("it is offered in its place", || (offers(COMPRESSED) == 1).then_some(()));
    let _again = world.node.create_publisher::<CompressedImage>(COMPRESSED, Qos::DEFAULT).unwrap();
    until("it gives way", || (offers(COMPRESSED) == 0).then_some(()));
}

#[test]
fn what_cannot_be_compressed_is_counted() {
    let world = world();
    let camera = camera(&world.node, "/camera/image");
    let heard = wanted(&world, &camera);
    camera.publish(picture("yuv422")).unwrap();
    until("it is counted", || (world.bridge.statistics().pictures_skipped == 1).then_some(()));
    camera.publish(picture("bgr8")).unwrap();
    let received = until("the next", || heard.take().unwrap());
    assert_eq!(received.view().format, "bgr8; jpeg compressed bgr8");
}

#[test]
fn pictures_go_on_when_publishers_offer_less_and_the_last_is_kept_where_it_was() {
    let world = world();
    let first = camera(&world.node, "/camera/image");
    let heard = wanted(&world, &first);
    let qos = Qos { reliability: Reliability::BestEffort, ..Qos::DEFAULT };
    let second = world.node.create_publisher::<Image>("/camera/image", qos).unwrap();
    drop(first);
    until("a picture of the second", || {
        second.publish(picture("rgb8")).unwrap();
        heard.take().unwrap()
    });
    drop(second);
    // What is kept for late joiners is kept compressed.
    let latched = world.node.create_publisher::<Image>("/camera/image", Qos::LATCHED).unwrap();
    latched.publish(picture("bgr8")).unwrap();
    for _ in 0..2 {
        let late = until("it is offered as that", || {
            let graph = world.node.context().endpoints_of(COMPRESSED);
            let is_kept = |it: &EndpointInfo| it.qos.durability == Durability::TransientLocal;
            graph
                .iter()
                .any(|it| it.kind == EndpointKind::Publisher && is_kept(it))
                .then_some(())?;
            world.node.create_polled_subscription::<CompressedImage>(COMPRESSED, Qos::LATCHED).ok()
        });
        let received = until("the last picture", || late.take().unwrap());
        assert_eq!(received.view().format, "bgr8; jpeg compressed bgr8");
    }
}

#[test]
fn what_newer_pictures_displace_is_counted_as_that() {
    let world = world();
    let camera = camera(&world.node, "/camera/image");
    let _heard = wanted(&world, &camera);
    for _ in 0..200 {
        camera.publish(picture("rgb8")).unwrap();
    }
    until("each is counted", || {
        let done = world.bridge.statistics();
        (done.pictures_compressed + done.pictures_skipped == 200).then_some(())
    });
    assert_eq!(world.bridge.statistics().missed, 0);
}
