//! What is done to the robot while it runs: acts of some steps each, and what must come of each step.
//!
//! Nothing here acts or reads a clock. The operator says how late it is and which transports there are, and
//! does what it is told.

use std::time::Duration;

use tsuji::{RouteReport, RouteState};

use crate::robot::{GUEST, PICTURES, VIEWER};
use crate::stage::{
    CUT_ENGINE, FILL_MEMORY, FREE_MEMORY, GUEST_COMES, GUEST_LEAVES, HEAL_ENGINE, SEND_FULL,
    SEND_THUMBNAILS,
};

/// Something done to the robot, and undone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Act {
    pub(crate) name: &'static str,
    steps: &'static [Step],
    /// How long it takes, with the rests between, on a machine that has nothing else to do.
    takes: Duration,
    /// It rests on what the policy of the demonstration says.
    needs_policy: bool,
}

/// One thing that is done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) says: &'static str,
    pub(crate) deed: Deed,
    then: Then,
}

/// Who does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// The operator writes the policy file: large pictures take the first of these that can.
    Policy(&'static str),
    /// The camera's process does it.
    Camera(&'static str),
    /// The operator sets the transport of the pictures, or leaves it to the policy again.
    Transport(Option<&'static str>),
}

/// What must come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The viewer's pictures take this transport.
    Viewer(&'static str),
    /// The second viewer has a transport.
    GuestIsThere,
    /// It has none.
    GuestIsGone,
}

const SHM: &str = "shm";
pub(crate) const ENGINE: &str = "cyclonedds";

/// Large pictures by shared memory as long as there is any, as the built-in policy has it.
pub(crate) const SHM_FIRST: &str = "shm cyclonedds";
const ENGINE_FIRST: &str = "cyclonedds shm";

static ACTS: [Act; 5] = [
    Act {
        name: "policy file",
        steps: &[
            Step {
                says: "the policy file is edited: large pictures by cyclonedds",
                deed: Deed::Policy(ENGINE_FIRST),
                then: Then::Viewer(ENGINE),
            },
            Step {
                says: "the policy file is edited back: by shared memory",
                deed: Deed::Policy(SHM_FIRST),
                then: Then::Viewer(SHM),
            },
        ],
        takes: Duration::from_secs(3),
        needs_policy: true,
    },
    Act {
        name: "size",
        steps: &[
            Step {
                says: "the pictures become thumbnails of 128×96, 100 a second",
                deed: Deed::Camera(SEND_THUMBNAILS),
                then: Then::Viewer(ENGINE),
            },
            Step {
                says: "the pictures have 640×480 again",
                deed: Deed::Camera(SEND_FULL),
                then: Then::Viewer(SHM),
            },
        ],
        takes: Duration::from_secs(6),
        needs_policy: true,
    },
    Act {
        name: "memory",
        steps: &[
            Step {
                says: "the camera's process takes all of its shared memory in loans",
                deed: Deed::Camera(FILL_MEMORY),
                then: Then::Viewer(ENGINE),
            },
            Step {
                says: "the camera's process gives it back",
                deed: Deed::Camera(FREE_MEMORY),
                then: Then::Viewer(SHM),
            },
        ],
        takes: Duration::from_secs(4),
        needs_policy: true,
    },
    Act {
        name: "engine",
        steps: &[
            Step {
                says: "the user sets the transport of the pictures: cyclonedds",
                deed: Deed::Transport(Some(ENGINE)),
                then: Then::Viewer(ENGINE),
            },
            Step {
                says: "the camera's cyclonedds is cut by force",
                deed: Deed::Camera(CUT_ENGINE),
                then: Then::Viewer(SHM),
            },
            Step {
                says: "it is healed",
                deed: Deed::Camera(HEAL_ENGINE),
                then: Then::Viewer(ENGINE),
            },
            Step {
                says: "the user leaves the transport to the policy again",
                deed: Deed::Transport(None),
                then: Then::Viewer(SHM),
            },
        ],
        takes: Duration::from_secs(7),
        needs_policy: true,
    },
    Act {
        name: "second viewer",
        steps: &[
            Step {
                says: "a second viewer joins, in the camera's process",
                deed: Deed::Camera(GUEST_COMES),
                then: Then::GuestIsThere,
            },
            Step {
                says: "the second viewer leaves",
                deed: Deed::Camera(GUEST_LEAVES),
                then: Then::GuestIsGone,
            },
        ],
        takes: Duration::from_secs(3),
        needs_policy: false,
    },
];

/// The policy of the demonstration, by which large pictures take the first of `large` that can.
pub(crate) fn policy(large: &str) -> String {
    format!(
        r#"<tsuji>
  <rule name="large pictures" size="large" scope="local" topic="{PICTURES}" use="{large}"/>
  <rule name="small pictures" size="small" scope="local" topic="{PICTURES}" use="{ENGINE_FIRST}"/>
  <transport name="shm"><set key="memory_bytes_max" value="{MEMORY_MIB}MiB"/></transport>
</tsuji>
"#
    )
}

/// All shared memory of a process, under the policy of the demonstration.
pub(crate) const MEMORY_MIB: usize = 128;

/// Which transports there are. Of one that is just being changed there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transports {
    viewer: Option<String>,
    guest: Option<String>,
    guest_is_known: bool,
    viewer_is_known: bool,
    /// What somebody has set for the pictures.
    set: Option<String>,
}

impl Transports {
    pub(crate) fn of(routes: &[RouteReport]) -> Self {
        let pictures_to = |node: &str| {
            routes.iter().find(|it| it.topic == PICTURES && it.subscription.node == node)
        };
        let settled = |route: &RouteReport| {
            let is_settled = route.state == RouteState::Active
                && route.handover_to.is_none()
                && route.changes.last().is_none_or(|it| it.is_settled);
            route.transport.clone().filter(|_| is_settled)
        };
        let guest = pictures_to(GUEST);
        Self {
            viewer: pictures_to(VIEWER).and_then(settled),
            guest: guest.and_then(settled),
            guest_is_known: guest.is_some(),
            viewer_is_known: pictures_to(VIEWER).is_some(),
            set: pictures_to(VIEWER).and_then(|it| it.pinned.clone()),
        }
    }

    /// That of the viewer's pictures.
    pub(crate) fn viewer(&self) -> Option<&str> {
        self.viewer.as_deref()
    }

    fn are(&self, then: Then) -> bool {
        match then {
            Then::Viewer(transport) => self.viewer.as_deref() == Some(transport),
            Then::GuestIsThere => self.guest.is_some(),
            Then::GuestIsGone => !self.guest_is_known,
        }
    }
}

/// What the operator is to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cue {
    /// This step, of the act of this number.
    Do(usize, &'static Step),
    /// A step has had its effect.
    Came,
    /// Nothing more: a step had no effect, and this says so.
    Fail(String),
}

/// The acts of a run, one after the other.
#[derive(Debug)]
pub(crate) struct Schedule {
    acts: Vec<&'static Act>,
    left_out: Vec<(&'static Act, String)>,
    /// What an act has set for the pictures.
    own: Option<&'static str>,
    /// Something else was set at the last look.
    was_odd: bool,
    /// Those that somebody has kept from having their effect.
    disturbed: Vec<&'static Act>,
    /// The act and its step that come next, or that are waited for.
    at: (usize, usize),
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    RestsUntil(Duration),
    WaitsSince(Duration),
    Over,
}

impl Schedule {
    /// Those acts that fit into `time`, the whole run, and for which there is no obstacle.
    pub(crate) fn new(time: Duration, obstacle: &Obstacle) -> Self {
        let mut left = time.saturating_sub(QUIET);
        let (mut acts, mut left_out) = (Vec::new(), Vec::new());
        for act in &ACTS {
            let why = match obstacle {
                Obstacle::None => None,
                Obstacle::ToPolicy(why) => Some(why).filter(|_| act.needs_policy),
                Obstacle::ToAll(why) => Some(why),
            };
            if let Some(why) = why {
                left_out.push((act, why.clone()));
            } else if left < act.takes {
                left_out.push((act, format!("{} s are too short", time.as_secs())));
            } else {
                left -= act.takes;
                acts.push(act);
            }
        }
        let state = if acts.is_empty() { State::Over } else { State::RestsUntil(QUIET / 2) };
        Self { acts, left_out, own: None, was_odd: false, disturbed: Vec::new(), at: (0, 0), state }
    }

    /// What is to be done after the robot has run for `now`, and its transports are so.
    pub(crate) fn poll(&mut self, now: Duration, transports: &Transports) -> Option<Cue> {
        let (act, step) = self.at;
        match self.state {
            State::RestsUntil(until) if until <= now => {
                let step = &self.acts[act].steps[step];
                (self.state, self.was_odd) = (State::WaitsSince(now), false);
                if let Deed::Transport(transport) = step.deed {
                    self.own = transport;
                }
                Some(Cue::Do(act, step))
            }
            State::WaitsSince(since) => {
                let Step { says, then, .. } = &self.acts[act].steps[step];
                if transports.are(*then) {
                    self.go_on(now);
                    return Some(Cue::Came);
                }
                let is_odd = transports.viewer_is_known && transports.set.as_deref() != self.own;
                if is_odd && self.was_odd && matches!(then, Then::Viewer(_)) {
                    // Each step is done all the same, so that what it did is undone.
                    if self.disturbed.last() != Some(&self.acts[act]) {
                        self.disturbed.push(self.acts[act]);
                    }
                    self.go_on(now);
                    return Some(Cue::Came);
                }
                // What is set here shows at the next look at the latest.
                self.was_odd = is_odd;
                if now - since < STEP_MAX {
                    return None;
                }
                self.state = State::Over;
                let (title, transport) = (self.title(act), transports.viewer.as_deref());
                let transport = transport.unwrap_or("no transport that stands");
                let wanted = match then {
                    Then::Viewer(transport) => {
                        format!("the viewer's pictures are to go by {transport}")
                    }
                    Then::GuestIsThere => "the second viewer is to have a transport".to_owned(),
                    Then::GuestIsGone => "the second viewer is to be gone".to_owned(),
                };
                Some(Cue::Fail(format!(
                    "{title}, {says}: nothing came of it within {STEP_MAX:?}; {wanted}, the viewer's go by \
                     {transport}"
                )))
            }
            State::RestsUntil(_) | State::Over => None,
        }
    }

    fn go_on(&mut self, now: Duration) {
        self.at.1 += 1;
        if self.at.1 == self.acts[self.at.0].steps.len() {
            self.at = (self.at.0 + 1, 0);
        }
        self.state =
            if self.at.0 < self.acts.len() { State::RestsUntil(now + REST) } else { State::Over };
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Such as `act 2 of 5`.
    pub(crate) fn title(&self, act: usize) -> String {
        format!("act {} of {}", act + 1, self.acts.len())
    }

    pub(crate) fn name(&self, act: usize) -> &'static str {
        self.acts[act].name
    }

    /// The names of those that are not played, or had no effect for a reason that is none of theirs, and why.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let disturbed = self.disturbed.iter().map(|act| (act.name, DISTURBED));
        self.left_out.iter().map(|(act, why)| (act.name, &**why)).chain(disturbed)
    }
}

/// Why acts cannot be played.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    None,
    /// Not those that rest on the policy of the demonstration.
    ToPolicy(String),
    /// None of them.
    ToAll(String),
}

const DISTURBED: &str = "somebody has set the transport of the pictures meanwhile";

/// Before the first act and after the last, together.
const QUIET: Duration = Duration::from_secs(4);
/// After each step, for people to see what came of it. A flow keeps a transport for a second at least.
const REST: Duration = Duration::from_millis(1200);
/// So long is waited for what a step is to bring about: tries that are made by themselves come ever more
/// rarely, up to 10 s.
const STEP_MAX: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn viewer_on(transport: &str) -> Transports {
        let viewer = Some(transport.to_owned());
        Transports { viewer, viewer_is_known: true, ..Transports::default() }
    }

    #[test]
    fn acts_that_do_not_fit_are_left_out_with_the_reason() {
        let check = |time, no_policy, expect: &[&str], left_out: &str| {
            let obstacle = match no_policy {
                Some(why) => Obstacle::ToPolicy(String::from(why)),
                None => Obstacle::None,
            };
            let schedule = Schedule::new(seconds(time), &obstacle);
            let names: Vec<_> = schedule.acts.iter().map(|act| act.name).collect();
            assert_eq!(names, expect, "{time}");
            let why: Vec<_> = schedule.left_out().map(|(_, why)| why).collect();
            assert!(why.iter().all(|it| *it == left_out), "{why:?}");
            assert_eq!(schedule.is_over(), expect.is_empty());
        };
        let all = ["policy file", "size", "memory", "engine", "second viewer"];
        check(27, None, &all, "");
        check(3600, None, &all, "");
        check(10, None, &["policy file", "second viewer"], "10 s are too short");
        check(7, None, &["policy file"], "7 s are too short");
        check(6, None, &[], "6 s are too short");
        check(30, Some("why not"), &["second viewer"], "why not");
        let schedule = Schedule::new(seconds(30), &Obstacle::ToAll("why not".to_owned()));
        assert!(schedule.is_over() && schedule.left_out().count() == all.len());
    }

    #[test]
    fn a_step_comes_after_the_one_before_has_had_its_effect() {
        let mut schedule = Schedule::new(seconds(10), &Obstacle::None);
        let (shm, engine) = (viewer_on("shm"), viewer_on("cyclonedds"));
        assert_eq!(schedule.poll(seconds(0), &shm), None);
        let Some(Cue::Do(0, first)) = schedule.poll(seconds(2), &shm) else {
            panic!("{schedule:?}")
        };
        assert_eq!(first.deed, Deed::Policy("cyclonedds shm"));
        assert_eq!(schedule.poll(seconds(3), &shm), None);
        assert_eq!(schedule.poll(seconds(4), &Transports::default()), None);
        assert_eq!(schedule.poll(seconds(5), &engine), Some(Cue::Came));
        assert_eq!(schedule.poll(seconds(6), &engine), None, "people look at it");
        let Some(Cue::Do(0, second)) = schedule.poll(seconds(7), &engine) else {
            panic!("{schedule:?}")
        };
        assert_eq!(second.deed, Deed::Policy("shm cyclonedds"));
        assert_eq!(schedule.poll(seconds(8), &shm), Some(Cue::Came));
        let Some(Cue::Do(1, third)) = schedule.poll(seconds(10), &shm) else {
            panic!("{schedule:?}")
        };
        assert_eq!(third.deed, Deed::Camera(GUEST_COMES));
        let guest =
            Transports { guest: Some("inproc".into()), guest_is_known: true, ..shm.clone() };
        assert_eq!(schedule.poll(seconds(11), &guest), Some(Cue::Came));
        assert!(matches!(schedule.poll(seconds(13), &guest), Some(Cue::Do(1, _))));
        assert_eq!(schedule.poll(seconds(14), &guest), None);
        assert!(!schedule.is_over());
        assert_eq!(schedule.poll(seconds(15), &shm), Some(Cue::Came));
        assert!(schedule.is_over());
    }

    #[test]
    fn a_step_without_effect_is_told_and_ends_it() {
        let mut schedule = Schedule::new(seconds(30), &Obstacle::None);
        let shm = viewer_on("shm");
        assert!(matches!(schedule.poll(seconds(2), &shm), Some(Cue::Do(0, _))));
        assert_eq!(schedule.poll(seconds(21), &shm), None);
        let Some(Cue::Fail(why)) = schedule.poll(seconds(22), &shm) else { panic!("{schedule:?}") };
        for word in ["act 1 of 5", "policy file", "within 20s", "by cyclonedds", "by shm"] {
            assert!(why.contains(word), "{word}: {why}");
        }
        assert!(schedule.is_over());
    }

    #[test]
    fn an_act_that_somebody_disturbs_is_undone_and_told() {
        let mut schedule = Schedule::new(seconds(7), &Obstacle::None);
        let set = Transports { set: Some("inproc".into()), ..viewer_on("shm") };
        assert!(matches!(schedule.poll(seconds(2), &set), Some(Cue::Do(0, _))));
        assert_eq!(schedule.poll(seconds(3), &set), None, "it may have been set a moment ago");
        assert_eq!(schedule.poll(seconds(3), &set), Some(Cue::Came));
        let Some(Cue::Do(0, undo)) = schedule.poll(seconds(5), &set) else {
            panic!("{schedule:?}")
        };
        assert_eq!(undo.deed, Deed::Policy("shm cyclonedds"));
        assert_eq!(schedule.poll(seconds(6), &set), Some(Cue::Came));
        assert!(schedule.is_over());
        assert!(schedule.left_out().any(|it| it == ("policy file", DISTURBED)));
        // The act of the engine sets it itself, and whoever takes that back disturbs it.
        let mut schedule = Schedule::new(seconds(30), &Obstacle::None);
        schedule.acts.retain(|act| act.name == "engine");
        let engine = Transports { set: Some(ENGINE.into()), ..viewer_on(ENGINE) };
        assert!(matches!(schedule.poll(seconds(2), &viewer_on(SHM)), Some(Cue::Do(0, _))));
        assert_eq!(schedule.poll(seconds(3), &engine), Some(Cue::Came));
        assert!(matches!(schedule.poll(seconds(5), &engine), Some(Cue::Do(0, _))));
        assert_eq!(schedule.poll(seconds(6), &engine), None);
        assert_eq!(schedule.poll(seconds(7), &engine), None);
        assert!(schedule.disturbed.is_empty());
        let taken_back = Transports { set: None, ..viewer_on(ENGINE) };
        assert_eq!(schedule.poll(seconds(8), &taken_back), None);
        assert_eq!(schedule.poll(seconds(9), &taken_back), Some(Cue::Came));
        assert_eq!(schedule.disturbed.len(), 1);
    }

    #[test]
    fn the_policies_say_what_comes_first() {
        assert!(policy(SHM_FIRST).contains(r#"use="shm cyclonedds""#));
        assert_ne!(policy(SHM_FIRST), policy(ENGINE_FIRST));
    }
}
