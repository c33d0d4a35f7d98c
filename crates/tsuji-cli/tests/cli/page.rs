//! The page of the bridge in a real browser, used as people use it. Where `TSUJI_WEB_CLIENTS` does not name the folder that has
//! what drives the browser (`scripts/web-clients`), or `TSUJI_CHROMIUM` no browser, this test does nothing.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tsuji::{Context, Node, Publisher, Qos};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::Header;

use crate::bridge::numbers;
use crate::support::{Running, WATCHDOG, World, spun};

/// One that the page has to find at another path, as a page that is not among the origins, with a token, and where messages are
/// deflated.
const GUARDED: &str =
    "--port 0 --token sesame --url-path /ws --origin https://robot.example --use-compression";

/// Everybody may look, and do nothing.
const VIEWERS: &str = "anonymous: {subscribe: all, call_service: ['/rosapi/*']}";

#[test]
fn the_page_does_what_it_offers_in_a_real_browser() {
    let named = |variable: &str| env::var(variable).ok().filter(|it| !it.is_empty());
    let Some(folder) = named("TSUJI_WEB_CLIENTS") else { return };
    let Some(browser) = named("TSUJI_CHROMIUM") else { return };
    let world = World::new();
    let (first, port) = bridge(&world, "--port 0");
    let (_guarded, guarded_port) = bridge(&world, &format!("{GUARDED} {}", by_tls(&world)));
    let viewers = world.write("viewers.yaml", VIEWERS);
    let (_viewers, viewer_port) =
        bridge(&world, &format!("--port 0 --users {}", viewers.display()));
    // What is played there is nobody's here.
    let apart = World::new();
    numbers(&apart, "numbers.mcap", 101);
    let (_playing, played_port) = bridge(&apart, "--port 0 --play numbers.mcap --start-paused");
    let wave = world.write("wave.yaml", &wave());
    let quietly = ["topic", "pub", "-p", "0", "-r"];
    let publish = |rest: &[&str]| world.start(&[&quietly[..], rest].concat());
    let _talker = publish(&["10", "/chatter", "std_msgs/msg/String", "{data: hello}"]);
    let wave = wave.to_str().unwrap();
    let _wave = publish(&["50", "--yaml-file", wave, "/wave", "geometry_msgs/msg/Vector3"]);
    let _hz = world.start(&["topic", "hz", "/chatter"]);
    let _hz_of_wave = world.start(&["topic", "hz", "/wave"]);
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("page-shots");
    filmed(&world, || {
        let mut echo = world.start(&["topic", "echo", "/cmd_vel", "geometry_msgs/msg/Twist"]);
        let driver = format!("{folder}/page.mjs");
        let shots = shots.to_str().unwrap();
        let ports = [&*port, &guarded_port, &viewer_port, &played_port];
        let words = [&["node", &driver, &*browser][..], &ports, &[shots]].concat();
        let mut driver = Running::new(&mut world.foreign(words));
        driver.out("published on /cmd_vel");
        echo.out("x: 1.5");
        driver.out("the bridge may go");
        assert_eq!(first.stop().code, Some(0));
        driver.out("it is seen to have gone");
        let (again, _) = bridge(&world, &format!("--port {port}"));
        let said = driver.end().good();
        assert!(said.ends_with("\nall done\n"), "{said}");
        assert_eq!(again.stop().code, Some(0));
    });
}

#[test]
fn where_the_page_is_is_said_and_none_is_served_that_is_not_wanted() {
    let world = World::new();
    let mut with = world.start(&["bridge", "--port", "0"]);
    let line = with.out_line("page at ");
    let place = line.trim_start_matches("page at http://").trim_end_matches('/').to_owned();
    assert!(get(&place).starts_with("HTTP/1.1 200 OK\r\n"), "{line}");
    assert_eq!(with.stop().code, Some(0));
    let (without, port) = bridge(&world, "--port 0 --no-page");
    assert!(get(&format!("127.0.0.1:{port}")).starts_with("HTTP/1.1 404 Not Found\r\n"));
    assert_eq!(without.stop().code, Some(0));
}

/// What is at the root there.
fn get(place: &str) -> String {
    let mut stream = TcpStream::connect(place).unwrap();
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    told
}

/// Starts one, and tells its port.
fn bridge(world: &World, words: &str) -> (Running, String) {
    let words: Vec<_> = ["bridge", "--json"].into_iter().chain(words.split(' ')).collect();
    let mut bridge = world.start(&words);
    let told: Value = serde_json::from_str(&bridge.out_line("listening")).unwrap();
    (bridge, told["listening"][0]["port"].to_string())
}

/// What has a bridge served by TLS.
fn by_tls(world: &World) -> String {
    let [certificate, key] = world.certify();
    format!("--certfile {} --keyfile {}", certificate.display(), key.display())
}

/// Two seconds of a wave, for fifty messages a second.
fn wave() -> String {
    let angle = |at: u32| f64::from(at) / 100.0 * std::f64::consts::TAU;
    let one = |at: u32| {
        let (sin, cos) = angle(at).sin_cos();
        format!("{{x: {sin:.6}, y: {:.6}, z: 1.0}}\n", cos * 0.5)
    };
    (0..100).map(one).collect::<Vec<_>>().join("---\n")
}

/// A node of this process that has cameras and adds two numbers, while `body` runs.
fn filmed(world: &World, body: impl FnOnce()) {
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = context.unwrap().node("robot").unwrap();
    let add = |it: Arc<AddTwoIntsRequest>| AddTwoIntsResponse { sum: it.a + it.b };
    let _add = node.create_service::<AddTwoInts>("add", add).unwrap();
    let cameras = Cameras::new(&node);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0.. {
                if is_over.load(Ordering::Acquire) {
                    return;
                }
                cameras.publish(at);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let ends = Ends(&is_over);
        spun(&node, body);
        drop(ends);
    });
}

/// Ends the cameras, also when the test has failed.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

struct Cameras {
    colour: Publisher<Image>,
    depth: Publisher<Image>,
    odd: Publisher<Image>,
}

impl Cameras {
    fn new(node: &Node) -> Self {
        let camera = |topic: &str| node.create_publisher::<Image>(topic, Qos::DEFAULT).unwrap();
        Self {
            colour: camera("/camera/image"),
            depth: camera("/camera/depth"),
            odd: camera("/camera/odd"),
        }
    }

    fn publish(&self, at: u32) {
        let data = (0..HEIGHT).flat_map(|y| (0..WIDTH).flat_map(move |x| scene(x, y, at)));
        // Nobody needs to be there.
        let _ = self.colour.publish(image("bgr8", WIDTH, HEIGHT, data.collect()));
        let millimetres = |x: u32| u16::try_from(500 + 100 * x).unwrap();
        let depth = (0..24).flat_map(|_| (0..32).flat_map(|x| millimetres(x).to_le_bytes()));
        let _ = self.depth.publish(image("16UC1", 32, 24, depth.collect()));
        let _ = self.odd.publish(image("bayer_rggb8", 2, 2, vec![0; 4]));
    }
}

fn image(encoding: &str, width: u32, height: u32, data: Vec<u8>) -> Image {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let stamp = Time { sec: now.as_secs() as i32, nanosec: now.subsec_nanos() };
    Image {
        header: Header { stamp, frame_id: "camera".to_owned() },
        height,
        width,
        encoding: encoding.to_owned(),
        is_bigendian: 0,
        step: u32::try_from(data.len()).unwrap() / height,
        data,
    }
}

const WIDTH: u32 = 320;
const HEIGHT: u32 = 240;

/// Blue, green and red of a pixel: two transports that cross, and something that drives on one of them.
fn scene(x: u32, y: u32, at: u32) -> [u8; 3] {
    let car = (4 * at) % (WIDTH + 40);
    let is_car = (110..130).contains(&y) && x + 40 >= car && x + 10 < car;
    let is_line = (y == 120 && x % 24 < 12) || (x == 200 && y % 24 < 12);
    match (x, y) {
        _ if is_car => [60, 70, 220],
        _ if is_line => [235, 235, 235],
        (_, 100..140) | (180..220, _) => [95, 88, 84],
        _ => [(70 + x / 8) as u8, (110 + y / 4) as u8, 70],
    }
}
