//! What a message costs on its way through the functions of rmw: 64 bytes in one thread beside the node API, and a
//! picture of 2.36 MB between two processes, from `rmw_publish` to after `rmw_take`. The types are those of
//! `scripts/ros-types`. `cargo bench -p tsuji-rmw --bench carry`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its figures and fails as tests do"
)]

#[path = "../tests/plan/ros_types.rs"]
mod ros_types;

fn main() {
    let Some(types) = ros_types::RosTypes::find() else { return };
    if std::env::var_os(ROLE).is_some() {
        return humble::view(&types);
    }
    let folder = std::env::temp_dir().join(format!("tsuji-carry-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    humble::small(&types, &folder);
    humble::pictures(&types, &folder);
    // What the child leaves is gone a moment after it.
    let _ = std::fs::remove_dir_all(&folder);
}

const ROLE: &str = "TSUJI_CARRY_ROLE";

mod humble {
    use std::ffi::{CStr, c_void};
    use std::hint::black_box;
    use std::io::{BufRead as _, BufReader};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::ptr;
    use std::time::{Duration, Instant};

    use rmw_tsuji::abi::{self, HUMBLE, InC, Shaped};
    use rmw_tsuji::ffi::rcutils::rcutils_allocator_t;
    use rmw_tsuji::ffi::rmw::{
        NO_CONTEXT, NO_INIT_OPTIONS, RMW_RET_OK, rmw_context_t, rmw_init_options_t, rmw_node_t,
        rmw_publisher_options_t, rmw_publisher_t, rmw_qos_profile_t, rmw_subscription_options_t,
        rmw_subscription_t, rmw_subscriptions_t, rmw_time_t, rmw_wait_set_t,
    };
    use rmw_tsuji::ffi::rosidl::rosidl_message_type_support_t;
    use rmw_tsuji::{init, node, publisher, subscription, wait};
    use tsuji::{Context, Qos, RawType};
    use tsuji_interfaces::{sensor_msgs, std_msgs};
    use tsuji_msg::Message;

    use crate::ROLE;
    use crate::ros_types::RosTypes;

    /// As many as a camera sends in ten seconds, and how often it does.
    const PICTURES: usize = 300;
    const COPIES: usize = 60;
    const PERIOD: Duration = Duration::from_micros(33_333);
    const PICTURE_BYTES: usize = 1024 * 768 * 3;

    unsafe extern "C" fn allocate(size: usize, _: *mut c_void) -> *mut c_void {
        // SAFETY: any size.
        unsafe { libc::malloc(size) }
    }
    unsafe extern "C" fn deallocate(pointer: *mut c_void, _: *mut c_void) {
        // SAFETY: it is of these functions.
        unsafe { libc::free(pointer) }
    }
    unsafe extern "C" fn reallocate(
        pointer: *mut c_void,
        size: usize,
        _: *mut c_void,
    ) -> *mut c_void {
        // SAFETY: it is of these functions.
        unsafe { libc::realloc(pointer, size) }
    }
    unsafe extern "C" fn zero_allocate(count: usize, size: usize, _: *mut c_void) -> *mut c_void {
        // SAFETY: any size.
        unsafe { libc::calloc(count, size) }
    }
    const ALLOCATOR: rcutils_allocator_t = rcutils_allocator_t {
        allocate: Some(allocate),
        deallocate: Some(deallocate),
        reallocate: Some(reallocate),
        zero_allocate: Some(zero_allocate),
        state: ptr::null_mut(),
    };

    /// A value in memory that stays, as it lies in Humble.
    fn in_c<T: Shaped>(value: &T) -> *mut InC<T> {
        let memory = vec![0_u64; T::size(&HUMBLE).div_ceil(size_of::<u64>())].leak();
        let at: *mut InC<T> = memory.as_mut_ptr().cast();
        // SAFETY: there is room for it.
        unsafe { abi::set(&HUMBLE, at, value) };
        at
    }

    /// A node as rcl makes one. It lives as long as the process.
    struct Rmw {
        context: *mut InC<rmw_context_t>,
        node: *mut rmw_node_t,
    }

    impl Rmw {
        fn new(name: &CStr) -> Self {
            let (options, context) = (in_c(&NO_INIT_OPTIONS), in_c(&NO_CONTEXT));
            // SAFETY: all are valid.
            unsafe {
                assert_eq!(init::rmw_init_options_init(options, ALLOCATOR), RMW_RET_OK);
                let mut said: rmw_init_options_t = abi::get(&HUMBLE, options);
                said.enclave = libc::strdup(c"/".as_ptr());
                abi::set(&HUMBLE, options, &said);
                assert_eq!(init::rmw_init(options, context), RMW_RET_OK);
                let node = node::rmw_create_node(context, name.as_ptr(), c"/".as_ptr());
                assert!(!node.is_null());
                Self { context, node }
            }
        }

        fn publisher(
            &self,
            support: *const rosidl_message_type_support_t,
            topic: &CStr,
        ) -> *mut rmw_publisher_t {
            let options = rmw_publisher_options_t {
                rmw_specific_publisher_payload: ptr::null_mut(),
                require_unique_network_flow_endpoints: 0,
            };
            let (topic, qos) = (topic.as_ptr(), &raw const PROFILE);
            // SAFETY: all are valid.
            let made = unsafe {
                publisher::rmw_create_publisher(self.node, support, topic, qos, &raw const options)
            };
            assert!(!made.is_null());
            made
        }

        fn subscription(
            &self,
            support: *const rosidl_message_type_support_t,
            topic: &CStr,
        ) -> *mut rmw_subscription_t {
            let options = rmw_subscription_options_t {
                rmw_specific_subscription_payload: ptr::null_mut(),
                ignore_local_publications: false,
                require_unique_network_flow_endpoints: 0,
                content_filter_options: ptr::null_mut(),
                acceptable_buffer_backends: ptr::null(),
            };
            let options = in_c(&options);
            let (topic, qos) = (topic.as_ptr(), &raw const PROFILE);
            // SAFETY: all are valid.
            let made = unsafe {
                subscription::rmw_create_subscription(self.node, support, topic, qos, options)
            };
            assert!(!made.is_null());
            made
        }
    }

    /// Keep the last ten, reliable, volatile, as `rmw_qos_profile_default`.
    static PROFILE: rmw_qos_profile_t = rmw_qos_profile_t {
        history: 1,
        depth: 10,
        reliability: 1,
        durability: 2,
        deadline: rmw_time_t { sec: 0, nsec: 0 },
        lifespan: rmw_time_t { sec: 0, nsec: 0 },
        liveliness: 0,
        liveliness_lease_duration: rmw_time_t { sec: 0, nsec: 0 },
        avoid_ros_namespace_conventions: false,
    };

    /// The node API beside it speaks the formats that the library is built for.
    fn environment(folder: &Path) -> [(&'static str, &Path); 3] {
        [
            ("TSUJI_RUNTIME_DIR", folder),
            ("TSUJI_INTEROP", Path::new("none")),
            ("ROS_DISTRO", Path::new("humble")),
        ]
    }

    fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(30), "it does not happen: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn has_subscription(publisher: *const rmw_publisher_t) -> bool {
        let mut count = 0;
        // SAFETY: both are valid.
        unsafe {
            publisher::rmw_publisher_count_matched_subscriptions(publisher, &raw mut count);
        }
        count == 1
    }

    /// Publish and take of 64 bytes by one thread, with rmw and with the node API in turn.
    pub(crate) fn small(types: &RosTypes, folder: &Path) {
        for (name, value) in environment(folder) {
            // SAFETY: no other thread is there yet.
            unsafe { std::env::set_var(name, value) };
        }
        let rmw = Rmw::new(c"small");
        let support = types.message("std_msgs/msg/String", "cpp");
        let (sender, taker) = (rmw.publisher(support, c"/rmw"), rmw.subscription(support, c"/rmw"));
        let text = std_msgs::msg::String { data: "x".repeat(55) }.to_vec().unwrap();
        assert_eq!(text.len(), 64);
        let mut sent = types.make("std_msgs/msg/String", "cpp");
        sent.deserialize(&text).unwrap();
        let got = types.make("std_msgs/msg/String", "cpp");
        let context = Context::new().unwrap();
        let node = context.node("beside").unwrap();
        let of = || RawType::new("std_msgs/msg/String");
        let plain_sender = node.create_raw_publisher("plain", of(), Qos::DEFAULT).unwrap();
        let plain_taker = node.create_polled_raw_subscription("plain", of(), Qos::DEFAULT).unwrap();
        plain_sender.wait_for_subscriptions(1, Duration::from_secs(30)).unwrap();
        wait_for("they meet", || has_subscription(sender));
        let mut by_rmw = || {
            let mut taken = false;
            // SAFETY: messages of the type of both ends.
            unsafe {
                let nothing = ptr::null_mut();
                assert_eq!(
                    publisher::rmw_publish(sender, black_box(sent.at()), nothing),
                    RMW_RET_OK
                );
                let (taken, nothing) = (&raw mut taken, ptr::null_mut());
                assert_eq!(subscription::rmw_take(taker, got.at(), taken, nothing), RMW_RET_OK);
            }
            assert!(taken);
        };
        let mut by_node = || {
            plain_sender.publish_bytes(black_box(&text)).unwrap();
            assert!(plain_taker.take_bytes().unwrap().is_some());
        };
        let time = |call: &mut dyn FnMut()| {
            const CALLS: u32 = 2000;
            let start = Instant::now();
            (0..CALLS).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        };
        let mut rounds: Vec<(f64, f64)> =
            (0..101).map(|_| (time(&mut by_rmw), time(&mut by_node))).collect();
        rounds.sort_by(|a, b| (a.0 - a.1).total_cmp(&(b.0 - b.1)));
        let (rmw, plain) = rounds[rounds.len() / 2];
        let added = rmw - plain;
        println!(
            "64 bytes, publish and take: rmw {rmw:.0} ns, node API {plain:.0} ns, added {added:.0} ns"
        );
    }

    /// Pictures to another process, at the pace of a camera.
    pub(crate) fn pictures(types: &RosTypes, folder: &Path) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(ROLE, "view")
            .envs(environment(folder))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let rmw = Rmw::new(c"camera");
        let sender = rmw.publisher(types.message("sensor_msgs/msg/Image", "cpp"), c"/image");
        wait_for("they meet", || has_subscription(sender));
        let mut picture = types.make("sensor_msgs/msg/Image", "cpp");
        let bytes = sensor_msgs::msg::Image {
            data: vec![7; PICTURE_BYTES],
            encoding: "bgr8".into(),
            ..Default::default()
        };
        picture.deserialize(&bytes.to_vec().unwrap()).unwrap();
        let stamp = picture.field("header").cast::<[u32; 2]>();
        // SAFETY: a vector of libstdc++ begins with where its elements are, and nothing moves them.
        let pixels = unsafe {
            let first = picture.field("data").cast::<*mut u8>().read();
            std::slice::from_raw_parts_mut(first, PICTURE_BYTES)
        };
        let mut copy = vec![0_u8; PICTURE_BYTES];
        let mut copying = Vec::new();
        // At the same pace, and not while pictures are sent: no camera copies them besides.
        for number in 0..COPIES {
            std::thread::sleep(PERIOD);
            black_box(&mut *pixels).fill(number as u8);
            let start = Instant::now();
            black_box(&mut copy).copy_from_slice(black_box(&*pixels));
            copying.push(start.elapsed().as_nanos() as f64 / 1e3);
        }
        for number in 0..PICTURES + 10 {
            std::thread::sleep(PERIOD);
            // As a camera has just drawn it.
            black_box(&mut *pixels).fill(number as u8);
            let now = monotonic_ns();
            // SAFETY: the header begins with its time; the message has the publisher's type.
            unsafe {
                stamp.write([(now >> 32) as u32, now as u32]);
                let sent = publisher::rmw_publish(sender, picture.at(), ptr::null_mut());
                assert_eq!(sent, RMW_RET_OK);
            }
        }
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child.wait().unwrap();
        copying.sort_by(f64::total_cmp);
        println!("{} (one memcpy of it {:.0} µs)", line.trim_end(), copying[copying.len() / 2]);
    }

    /// Takes pictures by a wait set, each into a new message, as rclcpp does.
    pub(crate) fn view(types: &RosTypes) {
        let rmw = Rmw::new(c"viewer");
        let taker = rmw.subscription(types.message("sensor_msgs/msg/Image", "cpp"), c"/image");
        // SAFETY: the context is valid.
        let set = unsafe { wait::rmw_create_wait_set(rmw.context, 1) };
        let mut latencies = Vec::new();
        while latencies.len() < PICTURES + 10 {
            let message = wait_and_take(types, taker, set);
            let stamp = message.field("header").cast::<[u32; 2]>();
            // SAFETY: the header begins with its time.
            let [high, low] = unsafe { stamp.read() };
            let sent = (u64::from(high) << 32) | u64::from(low);
            latencies.push(monotonic_ns().saturating_sub(sent) as f64 / 1e3);
        }
        // The first ones open the link.
        latencies.drain(..10);
        latencies.sort_by(f64::total_cmp);
        let [median, p99] = [50, 99].map(|it| latencies[latencies.len() * it / 100]);
        println!(
            "Image {PICTURE_BYTES} bytes, publish to callback: median {median:.0} µs, p99 {p99:.0} µs"
        );
    }

    fn wait_and_take<'a>(
        types: &'a RosTypes,
        taker: *mut rmw_subscription_t,
        set: *mut rmw_wait_set_t,
    ) -> crate::ros_types::InMemory<'a> {
        // An empty one costs rclcpp next to nothing; here its type is looked for in libraries.
        let message = types.make("sensor_msgs/msg/Image", "cpp");
        loop {
            // SAFETY: all are valid, and the message has the subscription's type.
            unsafe {
                let mut place = (*taker).data;
                let mut all =
                    rmw_subscriptions_t { subscriber_count: 1, subscribers: &raw mut place };
                let (none, timeout) = (ptr::null_mut(), rmw_time_t { sec: 30, nsec: 0 });
                let waited = wait::rmw_wait(
                    &raw mut all,
                    none,
                    ptr::null_mut(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                    set,
                    &raw const timeout,
                );
                assert_eq!(waited, RMW_RET_OK);
                let mut taken = false;
                let (place, nothing) = (&raw mut taken, ptr::null_mut());
                assert_eq!(subscription::rmw_take(taker, message.at(), place, nothing), RMW_RET_OK);
                if taken {
                    return message;
                }
            }
        }
    }

    fn monotonic_ns() -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the place is valid.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}
