//! The guide, who sends the robot from place to place by its action, as anybody's program would.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use tsuji::action::{ActionClient, GoalStatus};
use tsuji::{Context, ErrorKind, Qos, Subscription};
use tsuji_interfaces::action_msgs::msg::{GoalStatus as Status, GoalStatusArray};
use tsuji_interfaces::tsuji_demo_msgs::action::{DriveTo, DriveToGoal};

use crate::Result;
use crate::lock::lock;
use crate::nodes::point;
use crate::robot::DRIVE_TO;
use crate::world::{PLACES, Place};

/// Where the robot was driven.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Tour {
    /// Places that it came to.
    pub(crate) places: u32,
    /// Metres that it drove to them.
    pub(crate) metres: f64,
    /// Goals that ended otherwise, as when somebody else sends the robot away.
    pub(crate) missed: u32,
}

/// Sends the robot about, on a thread of its own, until this is dropped.
pub(crate) struct Guide {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    is_over: AtomicBool,
    tour: Mutex<Tour>,
    /// What the robot is doing, for people.
    status: Mutex<String>,
}

impl Guide {
    pub(crate) fn start(context: &Context) -> Result<Self> {
        let node = context.node("guide")?;
        let client = node.create_action_client::<DriveTo>(DRIVE_TO)?;
        let mut others = Others {
            statuses: node
                .create_polled_subscription(&format!("{DRIVE_TO}/_action/status"), Qos::LATCHED)?,
            is_driven: false,
        };
        let shared = Arc::new(Shared {
            is_over: AtomicBool::new(false),
            tour: Mutex::default(),
            status: Mutex::new("waits for its driver".to_owned()),
        });
        let guided = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("guide".into()).spawn(move || {
            let mut at = 0;
            // Who sends the robot elsewhere has it for as long as that takes.
            while !guided.is_over() {
                if others.drive_it() {
                    "is driven by somebody else".clone_into(&mut lock(&guided.status));
                    std::thread::sleep(CHECK_PERIOD);
                    continue;
                }
                let (name, place) = PLACES[at];
                match send(&client, name, place, &guided) {
                    Ok(outcome) => {
                        let mut tour = lock(&guided.tour);
                        match outcome {
                            Some(metres) => {
                                tour.places += 1;
                                tour.metres += metres;
                            }
                            None => tour.missed += u32::from(!guided.is_over()),
                        }
                        at = (at + 1) % PLACES.len();
                    }
                    // The driver is still being started or has gone, or there are two.
                    Err(_) => std::thread::sleep(CHECK_PERIOD),
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// What the robot is doing, such as `drives to the market, 3.2 m to go`.
    pub(crate) fn status(&self) -> String {
        lock(&self.shared.status).clone()
    }

    /// Sends it nowhere any more.
    pub(crate) fn stop(&mut self) -> Tour {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It panics nowhere, and if it did the tour would be shorter.
            let _ = thread.join();
        }
        lock(&self.shared.tour).clone()
    }
}

impl Drop for Guide {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The goals of others.
struct Others {
    statuses: Subscription<GoalStatusArray>,
    is_driven: bool,
}

impl Others {
    /// Whether the robot is on its way for somebody; asked for when it is not for the guide.
    fn drive_it(&mut self) -> bool {
        while let Ok(Some(received)) = self.statuses.take() {
            let goals = &received.message().status_list;
            self.is_driven = goals.iter().any(|it| {
                let status = it.status;
                [Status::STATUS_ACCEPTED, Status::STATUS_EXECUTING, Status::STATUS_CANCELING]
                    .contains(&status)
            });
        }
        self.is_driven
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Sends the robot to a place, and answers how many metres it drove; `None` where it did not come there.
fn send(
    client: &ActionClient<DriveTo>,
    name: &str,
    place: Place,
    shared: &Shared,
) -> tsuji::Result<Option<f64>> {
    let Some(goal) = client.send_goal(DriveToGoal { target: point(place) }, ANSWER_MAX)? else {
        return Ok(None);
    };
    let give_up = Instant::now() + DRIVE_MAX;
    loop {
        if shared.is_over() || give_up < Instant::now() {
            goal.start_cancel()?;
            return Ok(None);
        }
        match goal.next_feedback(CHECK_PERIOD) {
            Ok(Some(feedback)) => {
                let left = feedback.distance_remaining;
                *lock(&shared.status) = format!("drives to {name}, {left:.1} m to go");
            }
            Ok(None) => break,
            Err(error) if error.kind() == ErrorKind::Timeout => (),
            Err(error) => return Err(error),
        }
    }
    let (status, result) = goal.result(ANSWER_MAX)?;
    Ok((status == GoalStatus::Succeeded).then_some(result.distance))
}

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long it may take to any place: as slowly as it can be told to, to the next is 130 s.
const DRIVE_MAX: Duration = Duration::from_secs(300);
const CHECK_PERIOD: Duration = Duration::from_millis(100);
