//! ROS time of a node: the parameter that says whether it is simulated, `/clock`, timers, sleeps and jumps.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tsuji::clock::{Clock, ClockKind, JumpKind, JumpThreshold, TimeJump};
use tsuji::parameter::{Parameter, ParameterClient, Parameters};
use tsuji::{
    CallbackGroupKind, EndpointKind, ErrorKind, History, Node, Publisher, Qos, Reliability, Timer,
    TimerOptions,
};
use tsuji_interfaces::builtin_interfaces::msg::Time;
use tsuji_interfaces::rosgraph_msgs::msg::Clock as ClockMessage;

#[path = "house/world.rs"]
mod world;
use world::{Folder, HANG, spun, wait_until, with_arguments};

const SECOND: i64 = 1_000_000_000;
const MILLI: i64 = 1_000_000;

/// A node whose time may be simulated, and a simulation, each as in a process of its own.
struct World {
    clock: Clock,
    parameters: Parameters,
    node: Node,
    simulation: Simulation,
    _folder: Folder,
}

struct Simulation {
    clock: Publisher<ClockMessage>,
    client: ParameterClient,
}

impl World {
    fn new(arguments: &[&str]) -> Self {
        let folder = Folder::new();
        let node = with_arguments(&folder, arguments).node("driven").unwrap();
        let parameters = node.parameters().unwrap();
        let clock = node.clock().unwrap();
        let outside = folder.process().node("simulation").unwrap();
        let qos = Qos {
            history: History::KeepLast(1),
            reliability: Reliability::BestEffort,
            ..Qos::DEFAULT
        };
        let simulated = outside.create_publisher("/clock", qos).unwrap();
        let client = ParameterClient::new(&outside, "/driven");
        let simulation = Simulation { clock: simulated, client };
        Self { clock, parameters, node, simulation, _folder: folder }
    }

    fn simulated() -> Self {
        let world = Self::new(&["-p", "use_sim_time:=true"]);
        world.simulation.clock.wait_for_subscriptions(1, HANG).unwrap();
        world
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Publishes this time, and waits until the node has it.
    fn to(&self, now_ns: i64) {
        self.simulation.publish(now_ns);
        wait_until(|| self.clock().now_ns() == now_ns);
    }

    /// A timer that counts its calls.
    fn counting(&self, period_ms: u64) -> (Timer, Arc<AtomicU64>) {
        let calls = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&calls);
        let count = move || {
            counting.fetch_add(1, Ordering::AcqRel);
        };
        let period = Duration::from_millis(period_ms);
        let options = TimerOptions::new(period).clock(self.clock());
        (self.node.create_timer(options, count).unwrap(), calls)
    }

    /// Lets the node's executor look at all that is ready, several times.
    fn look(&self) {
        for _ in 0..3 {
            self.simulation.client.get(&["use_sim_time"], HANG).unwrap();
        }
    }
}

impl Simulation {
    fn publish(&self, now_ns: i64) {
        let sec = i32::try_from(now_ns / SECOND).unwrap();
        let clock = Time { sec, nanosec: u32::try_from(now_ns % SECOND).unwrap() };
        self.clock.publish(ClockMessage { clock }).unwrap();
    }
}

fn count(calls: &AtomicU64) -> u64 {
    calls.load(Ordering::Acquire)
}

#[test]
fn time_is_the_systems_until_the_argument_says_otherwise() {
    let world = World::new(&[]);
    assert_eq!(world.clock().kind(), ClockKind::Ros);
    assert!(!world.clock().is_simulated());
    let before_ns = Clock::system(world.node.context()).now_ns();
    assert!(before_ns <= world.clock().now_ns() && 1_500_000_000 < world.clock().now().sec);
    let listens = |world: &World| {
        let graph = world.node.context().graph();
        let mut found = graph.endpoints.iter();
        found.any(|it| it.topic == "/clock" && it.kind == EndpointKind::Subscription)
    };
    assert!(!listens(&world));
    let world = World::simulated();
    assert!(listens(&world) && world.clock().is_simulated());
    assert_eq!(world.clock().now_ns(), 0);
    world.to(7 * SECOND + 5);
    assert_eq!(world.clock().now(), Time { sec: 7, nanosec: 5 });
    // What is no time is ignored, and counted.
    for (sec, nanosec) in [(-1, 0), (3, 1_000_000_000)] {
        let before = world.clock().invalid_messages();
        let clock = Time { sec, nanosec };
        world.simulation.clock.publish(ClockMessage { clock }).unwrap();
        wait_until(|| world.clock().invalid_messages() == before + 1);
    }
    assert_eq!(world.clock().now_ns(), 7 * SECOND + 5);
}

#[test]
fn others_turn_simulated_time_on_and_off() {
    let world = World::new(&[]);
    let set = |value: bool| {
        let set = vec![Parameter::new("use_sim_time", value)];
        world.simulation.client.set(set, HANG).unwrap().remove(0).unwrap();
    };
    let subscribers = || world.simulation.clock.matched();
    spun(&world.node, || {
        let wrong = vec![Parameter::new("use_sim_time", 1)];
        let reason = world.simulation.client.set(wrong, HANG).unwrap().remove(0).unwrap_err();
        assert!(reason.contains("{use_sim_time} is of type {bool}"), "{reason}");
        for round in 1..4 {
            set(true);
            // Nothing of the simulation before counts.
            assert_eq!(world.clock().now_ns(), 0);
            world.simulation.clock.wait_for_subscriptions(1, HANG).unwrap();
            world.to(round * SECOND);
            set(false);
            assert!(!world.clock().is_simulated() && 1_500_000_000 < world.clock().now().sec);
            wait_until(|| subscribers() == 0);
        }
    });
    // What the program sets counts the same.
    world.parameters.set("use_sim_time", true).unwrap();
    assert!(world.clock().is_simulated());
    let clock = world.clock().clone();
    drop(world.node);
    assert!(!clock.is_simulated());
}

#[test]
fn a_parameter_of_another_type_is_refused() {
    let folder = Folder::new();
    let node = with_arguments(&folder, &["-p", "use_sim_time:=1"]).node("driven").unwrap();
    let error = node.clock().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let expect = "parameter {use_sim_time} is of type {bool}, setting it to {integer}";
    assert!(error.to_string().contains(expect), "{error}");
    // Who has declared it already is followed, and found out where it is no boolean.
    let node = folder.process().node("declared").unwrap();
    let parameters = node.parameters().unwrap();
    parameters.declare("use_sim_time", "yes".to_owned()).unwrap();
    let error = node.clock().unwrap_err().to_string();
    assert!(error.contains("use_sim_time") && error.contains("found string"), "{error}");
    let node = folder.process().node("true").unwrap();
    let parameters = node.parameters().unwrap();
    parameters.declare("use_sim_time", true).unwrap();
    assert!(node.clock().unwrap().is_simulated());
}

#[test]
fn a_timer_fires_as_the_clock_moves() {
    let world = World::simulated();
    let (_timer, calls) = world.counting(100);
    spun(&world.node, || {
        // As in rcl: what was made before time began is due when it does.
        world.to(100 * SECOND);
        wait_until(|| count(&calls) == 1);
        // Each period has its call, at whatever speed.
        let mut now_ns = 100 * SECOND;
        for call in 2..=101 {
            for _ in 0..4 {
                now_ns += 25 * MILLI;
                world.to(now_ns);
            }
            wait_until(|| count(&calls) == call);
        }
        assert_eq!(now_ns, 110 * SECOND);
        // A rest of the clock is a rest of the timer, and not one of the wall's.
        let wall = Arc::new(AtomicU64::new(0));
        let ticking = Arc::clone(&wall);
        let steady = Clock::steady(world.node.context());
        let tick = move || {
            ticking.fetch_add(1, Ordering::AcqRel);
        };
        let period = TimerOptions::new(Duration::from_millis(30)).clock(&steady);
        let _ticks = world.node.create_timer(period, tick).unwrap();
        wait_until(|| 5 <= count(&wall));
        assert_eq!(count(&calls), 101);
        // A long jump forward is one call, and the next on the beat.
        world.to(200 * SECOND + 10 * MILLI);
        wait_until(|| count(&calls) == 102);
        world.look();
        world.to(200 * SECOND + 99 * MILLI);
        world.look();
        assert_eq!(count(&calls), 102);
        world.to(200 * SECOND + 100 * MILLI);
        wait_until(|| count(&calls) == 103);
        // A jump back begins a period: no wait of 100 s, and no burst.
        world.to(50 * SECOND);
        world.look();
        world.to(50 * SECOND + 99 * MILLI);
        world.look();
        assert_eq!(count(&calls), 103);
        world.to(50 * SECOND + 100 * MILLI);
        wait_until(|| count(&calls) == 104);
        world.look();
        assert_eq!(count(&calls), 104);
    });
}

/// A simulation that runs at ten times the speed of the wall, whoever keeps up with it.
#[test]
fn timers_keep_to_a_clock_at_ten_times_the_speed() {
    let world = World::simulated();
    world.to(SECOND);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (seeing, clock) = (Arc::clone(&seen), world.clock().clone());
    let see = move || seeing.lock().unwrap().push(clock.now_ns());
    let period = TimerOptions::new(Duration::from_millis(200)).clock(world.clock());
    let _timer = world.node.create_timer(period, see).unwrap();
    let mut now_ns = SECOND;
    spun(&world.node, || {
        let steady = Clock::steady(world.node.context());
        let begin_ns = steady.now_ns();
        while now_ns < 11 * SECOND {
            steady.sleep_until(begin_ns + (now_ns - SECOND) / 10).unwrap();
            now_ns += 10 * MILLI;
            world.simulation.publish(now_ns);
        }
        world.simulation.publish(now_ns);
        wait_until(|| world.clock().now_ns() == now_ns);
        wait_until(|| seen.lock().unwrap().last().is_some_and(|it| now_ns - it < 200 * MILLI));
    });
    let seen = seen.lock().unwrap();
    // A machine that is busy calls late and makes nothing up for it; never too often, never before it is due.
    assert!(!seen.is_empty() && seen.len() <= 50, "{}", seen.len());
    let beats: Vec<i64> = seen.iter().map(|it| (it - SECOND) / (200 * MILLI)).collect();
    assert!(0 < beats[0] && beats.windows(2).all(|it| it[0] < it[1]), "{beats:?}");
}

#[test]
fn a_timer_is_cancelled_and_reset_by_its_clock() {
    let world = World::simulated();
    world.to(SECOND);
    let (timer, calls) = world.counting(100);
    assert_eq!(timer.period(), Duration::from_millis(100));
    spun(&world.node, || {
        timer.cancel();
        world.to(5 * SECOND);
        world.to(2 * SECOND);
        world.look();
        assert_eq!(count(&calls), 0);
        timer.reset();
        world.to(2 * SECOND + 99 * MILLI);
        world.look();
        assert_eq!(count(&calls), 0);
        world.to(2 * SECOND + 100 * MILLI);
        wait_until(|| count(&calls) == 1);
    });
    drop(timer);
    spun(&world.node, || {
        world.to(9 * SECOND);
        world.look();
    });
    assert_eq!(count(&calls), 1);
    let refused = |clock: &Clock, period| {
        let options = TimerOptions::new(period).clock(clock);
        world.node.create_timer(options, || ()).unwrap_err().to_string()
    };
    assert!(refused(world.clock(), Duration::ZERO).contains("allowed: at least 1 ns"));
    let system = Clock::system(world.node.context());
    assert!(refused(&system, HANG).contains("allowed: ROS or steady time"));
}

#[test]
fn a_timer_goes_on_by_the_wall_and_back() {
    let world = World::new(&[]);
    let (_timer, calls) = world.counting(20);
    spun(&world.node, || {
        wait_until(|| 2 <= count(&calls));
        world.parameters.set("use_sim_time", true).unwrap();
        world.look();
        let before = count(&calls);
        // Where time begins, a whole period does.
        world.simulation.clock.wait_for_subscriptions(1, HANG).unwrap();
        world.to(SECOND);
        world.to(SECOND + 19 * MILLI);
        world.look();
        assert_eq!(count(&calls), before);
        world.to(SECOND + 20 * MILLI);
        wait_until(|| count(&calls) == before + 1);
        world.parameters.set("use_sim_time", false).unwrap();
        wait_until(|| before + 4 <= count(&calls));
    });
}

#[test]
fn jumps_of_the_clock_are_told() {
    let world = World::new(&[]);
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let threshold = JumpThreshold {
        on_clock_change: true,
        min_forward: Some(Duration::from_secs(10)),
        min_backward: Some(Duration::from_secs(1)),
    };
    let kept = world.clock().on_jump(threshold, move |jump| telling.lock().unwrap().push(*jump));
    world.parameters.set("use_sim_time", true).unwrap();
    world.simulation.clock.wait_for_subscriptions(1, HANG).unwrap();
    for seconds in [9, 18, 30, 29, 29] {
        world.to(seconds * SECOND);
    }
    // Told after it has moved.
    wait_until(|| told.lock().unwrap().len() == 3);
    world.parameters.set("use_sim_time", false).unwrap();
    drop(kept);
    world.parameters.set("use_sim_time", true).unwrap();
    let jump = |kind, seconds: i64| TimeJump { kind, delta_ns: seconds * SECOND };
    let expect = [
        jump(JumpKind::Activated, 0),
        jump(JumpKind::Moved, 12),
        jump(JumpKind::Moved, -1),
        jump(JumpKind::Deactivated, 0),
    ];
    assert_eq!(*told.lock().unwrap(), expect);
}

/// The callback is in the thread that hears `/clock`, which turning simulated time off ends.
#[test]
fn a_jump_may_turn_simulated_time_off() {
    let world = World::simulated();
    let parameters = world.parameters.clone();
    let threshold = JumpThreshold {
        on_clock_change: false,
        min_forward: Some(Duration::from_secs(5)),
        min_backward: None,
    };
    let _kept = world.clock().on_jump(threshold, move |_| {
        parameters.set("use_sim_time", false).unwrap();
    });
    world.simulation.publish(9 * SECOND);
    wait_until(|| !world.clock().is_simulated());
    wait_until(|| world.simulation.clock.matched() == 0);
}

#[test]
fn sleeps_end_with_their_time_a_change_or_the_context() {
    let world = World::simulated();
    world.to(SECOND);
    thread::scope(|scope| {
        let clock = world.clock();
        let until = |ns: i64| scope.spawn(move || clock.sleep_until(ns).unwrap());
        assert!(until(SECOND).join().unwrap());
        let (soon, late) = (until(2 * SECOND), until(i64::MAX));
        world.to(SECOND / 2);
        world.to(2 * SECOND);
        assert!(soon.join().unwrap());
        // It may not have begun to sleep at the first change.
        let mut is_simulated = true;
        while !late.is_finished() {
            is_simulated = !is_simulated;
            world.parameters.set("use_sim_time", is_simulated).unwrap();
        }
        assert!(!late.join().unwrap());
        world.parameters.set("use_sim_time", false).unwrap();
        let before_ns = clock.now_ns();
        assert!(clock.sleep_for(Duration::from_millis(5)).unwrap());
        assert!(before_ns + 5 * MILLI <= clock.now_ns());
        let steady = Clock::steady(world.node.context());
        let before_ns = steady.now_ns();
        assert!(steady.sleep_for(Duration::from_millis(5)).unwrap());
        assert!(before_ns + 5 * MILLI <= steady.now_ns());
        world.parameters.set("use_sim_time", true).unwrap();
        let for_ever = [clock.clone(), steady, Clock::system(world.node.context())];
        let for_ever = for_ever.map(|it| scope.spawn(move || it.sleep_for(Duration::MAX)));
        world.node.context().shutdown();
        for sleeping in for_ever {
            assert_eq!(sleeping.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        }
    });
}

/// What a callback waits for must not need the executor that is in it.
#[test]
fn time_goes_on_while_a_callback_sleeps_by_it() {
    let world = World::simulated();
    world.to(SECOND);
    let slept = Arc::new(AtomicU64::new(0));
    let (sleeping, clock) = (Arc::clone(&slept), world.clock().clone());
    let group = world.node.create_callback_group(CallbackGroupKind::MutuallyExclusive);
    let sleep = move || {
        // Nobody moves the time for one more.
        if count(&sleeping) == 3 {
            return;
        }
        assert!(clock.sleep_for(Duration::from_millis(300)).unwrap());
        sleeping.fetch_add(1, Ordering::AcqRel);
    };
    let period = Duration::from_millis(100);
    let _timer = world
        .node
        .create_timer(TimerOptions::new(period).clock(world.clock()).group(&group), sleep)
        .unwrap();
    spun(&world.node, || {
        let mut now_ns = SECOND;
        while count(&slept) < 3 {
            now_ns += 50 * MILLI;
            world.to(now_ns);
        }
    });
}

#[test]
fn a_reset_before_time_begins_waits_a_period_of_it() {
    let world = World::simulated();
    let (timer, calls) = world.counting(100);
    timer.reset();
    spun(&world.node, || {
        world.to(100 * SECOND);
        world.to(100 * SECOND + 99 * MILLI);
        world.look();
        assert_eq!(count(&calls), 0);
        world.to(100 * SECOND + 100 * MILLI);
        wait_until(|| count(&calls) == 1);
    });
}

#[test]
fn who_sets_the_parameter_while_the_clock_comes_and_goes_is_followed() {
    let folder = Folder::new();
    let context = folder.process();
    let begin = Barrier::new(2);
    for _ in 0..50 {
        let node = context.node("driven").unwrap();
        let parameters = node.parameters().unwrap();
        parameters.declare("use_sim_time", false).unwrap();
        let set = |value: bool| parameters.set("use_sim_time", value).unwrap();
        let clock = thread::scope(|scope| {
            scope.spawn(|| {
                begin.wait();
                set(true);
            });
            begin.wait();
            node.clock().unwrap()
        });
        assert!(clock.is_simulated());
        set(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                begin.wait();
                set(true);
            });
            begin.wait();
            drop(node);
        });
        assert!(!clock.is_simulated());
    }
    // Nobody listens any more.
    let graph = || context.graph().endpoints;
    wait_until(|| graph().iter().all(|it| it.topic != "/clock"));
}

/// Whoever asks for the clock first has the parameter `use_sim_time` declared, about which callbacks are asked.
#[test]
fn a_callback_of_parameters_may_ask_for_the_clock() {
    let folder = Folder::new();
    let node = folder.process().node("driven").unwrap();
    let parameters = node.parameters().unwrap();
    let (tell, told) = mpsc::channel();
    let asking = node.clone();
    let callback = parameters.on_set(move |_| {
        tell.send(asking.clock().map(|it| it.is_simulated())).unwrap();
        Ok(())
    });
    // A callback may change nothing, and the first use declares a parameter.
    parameters.declare("speed", 1.0).unwrap();
    assert_eq!(told.recv().unwrap().unwrap_err().kind(), ErrorKind::Invalid);
    drop(callback);
    assert!(!node.clock().unwrap().is_simulated());
}

#[test]
fn threads_that_use_a_node_first_make_its_parts_once() {
    let folder = Folder::new();
    let context = with_arguments(&folder, &["-p", "use_sim_time:=true"]);
    for _ in 0..20 {
        let node = context.node("driven").unwrap();
        let begin = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    begin.wait();
                    node.logger();
                    assert!(node.clock().unwrap().is_simulated());
                    assert!(node.parameters().unwrap().get::<bool>("use_sim_time").unwrap());
                });
            }
        });
        let graph = context.graph();
        let count = |topic: &str| graph.endpoints.iter().filter(|it| it.topic == topic).count();
        assert_eq!((count("/rosout"), count("/clock"), count("/parameter_events")), (1, 1, 1));
        assert_eq!(
            graph.services.iter().filter(|it| it.topic.ends_with("get_parameters")).count(),
            1
        );
        drop(node);
        assert!(context.graph().nodes.is_empty());
    }
}
