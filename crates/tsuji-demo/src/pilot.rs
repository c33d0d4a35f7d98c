//! The way along the streets, and how the robot is steered along it.
//!
//! Nothing here reads a clock or sends a message: the driver says where the robot is, and gets what it is to do.

use std::collections::VecDeque;

use crate::world::{
    FASTEST, Place, Pose, ROBOT_RADIUS, STREET_HALF, STREETS_X, STREETS_Y, Velocity,
    nearest_street, turned,
};

/// Steers the robot from place to place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pilot {
    /// The places that are still to come.
    way: VecDeque<Place>,
}

impl Pilot {
    /// Sets out for a place.
    ///
    /// # Errors
    /// Why the robot cannot stand there.
    pub(crate) fn set_out(&mut self, from: Place, to: Place) -> Result<(), String> {
        check(to)?;
        self.way = way(from, to);
        Ok(())
    }

    /// Goes no further.
    pub(crate) fn stop(&mut self) {
        self.way.clear();
    }

    pub(crate) fn has_arrived(&self) -> bool {
        self.way.is_empty()
    }

    /// How far it still is, along the streets.
    pub(crate) fn distance_left(&self, from: Place) -> f64 {
        length(from, &self.way)
    }

    /// What is to be done at `pose`, at no more than `speed`, with so much free street ahead.
    pub(crate) fn steer(&mut self, pose: &Pose, speed: f64, free_ahead: f64) -> Velocity {
        while let Some(next) = self.way.front() {
            let near = if self.way.len() == 1 { ARRIVED } else { PASSED };
            if near < pose.place.distance(*next) {
                break;
            }
            self.way.pop_front();
        }
        let Some(next) = self.way.front() else { return Velocity::default() };
        let direction = (next.y - pose.place.y).atan2(next.x - pose.place.x);
        let off = turned(direction - pose.heading);
        let turn = (TURN_GAIN * off).clamp(-FASTEST.turn, FASTEST.turn);
        if TURN_FIRST < off.abs() || free_ahead < ROBOT_RADIUS + GAP {
            return Velocity { ahead: 0.0, turn };
        }
        let distance = pose.place.distance(*next);
        let ahead = (speed * off.cos()).min(SLOW_DOWN * distance + SLOWEST).min(speed);
        Velocity { ahead, turn }
    }
}

/// Whether the robot can stand there.
///
/// # Errors
/// Why not.
pub(crate) fn check(place: Place) -> Result<(), String> {
    let Place { x, y } = place;
    // What is no number is nowhere.
    if place.is_free(ROOM) {
        return Ok(());
    }
    Err(format!(
        "the robot cannot stand at {x}, {y}; allowed: on a street, up to {:.1} m beside its middle; the streets are at \
         x {STREETS_X:?} and y {STREETS_Y:?}",
        STREET_HALF - ROOM
    ))
}

/// The places on the way along the streets, the last of them `to`: the shortest over the junctions.
fn way(from: Place, to: Place) -> VecDeque<Place> {
    let (begins, ends) = (on_street(from), on_street(to));
    let mut best = VecDeque::new();
    if is_one_street(begins, ends) {
        best.extend([begins, ends]);
    } else {
        // Two turns lead from any street to any other.
        let corners = || STREETS_X.iter().flat_map(|x| STREETS_Y.map(|y| Place { x: *x, y }));
        let mut shortest = f64::INFINITY;
        for one in corners().filter(|it| is_one_street(begins, *it)) {
            for other in corners().filter(|it| is_one_street(one, *it) && is_one_street(*it, ends))
            {
                let tried = VecDeque::from([begins, one, other, ends]);
                let length = length(from, &tried);
                if length < shortest - SAME {
                    (shortest, best) = (length, tried);
                }
            }
        }
    }
    best.push_back(to);
    best
}

/// The nearest place in the middle of a street.
fn on_street(place: Place) -> Place {
    let (x, y) = (nearest_street(place.x, STREETS_X), nearest_street(place.y, STREETS_Y));
    let within = |at: f64, streets: [f64; 3]| at.clamp(streets[0], streets[2]);
    if (x - place.x).abs() < (y - place.y).abs() {
        Place { x, y: within(place.y, STREETS_Y) }
    } else {
        Place { x: within(place.x, STREETS_X), y }
    }
}

/// Whether both are in the middle of one street.
fn is_one_street(one: Place, other: Place) -> bool {
    let is_on = |at: f64, beside: f64, streets: [f64; 3]| {
        (at - beside).abs() < SAME && streets.iter().any(|it| (it - at).abs() < SAME)
    };
    is_on(one.x, other.x, STREETS_X) || is_on(one.y, other.y, STREETS_Y)
}

fn length(from: Place, way: &VecDeque<Place>) -> f64 {
    let before = std::iter::once(&from).chain(way);
    before.zip(way).map(|(one, other)| one.distance(*other)).sum()
}

/// The last place is reached so near to it, those before it are passed.
const ARRIVED: f64 = 0.06;
const PASSED: f64 = 0.15;
/// Beyond this angle it turns where it stands.
const TURN_FIRST: f64 = 0.5;
const TURN_GAIN: f64 = 3.0;
/// Metres a second for each metre that is left.
const SLOW_DOWN: f64 = 2.5;
const SLOWEST: f64 = 0.1;
/// It stops so far before what stands there, and is sent to no place where it would have to.
const GAP: f64 = 0.05;
const ROOM: f64 = ROBOT_RADIUS + 2.0 * GAP;
const SAME: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::PLACES;

    const PERIOD: f64 = 0.02;

    /// Drives there, and answers how many seconds that took.
    fn drive(pose: &mut Pose, to: Place) -> f64 {
        let mut pilot = Pilot::default();
        pilot.set_out(pose.place, to).unwrap();
        let mut steps = 0;
        while !pilot.has_arrived() {
            let velocity = pilot.steer(pose, 1.5, pose.sight(0.0));
            let (next, _, is_free) = pose.moved(velocity, PERIOD);
            assert!(is_free, "{pose:?} on the way to {to:?}");
            *pose = next;
            steps += 1;
            assert!(steps < 3000, "{pose:?} does not come to {to:?}, {pilot:?}");
        }
        f64::from(steps) * PERIOD
    }

    #[test]
    fn it_drives_from_everywhere_to_everywhere_and_bumps_into_nothing() {
        let mut pose = Pose::START;
        for (_, from) in PLACES {
            for (_, to) in PLACES {
                drive(&mut pose, from);
                let took = drive(&mut pose, to);
                assert!(pose.place.distance(to) <= ARRIVED, "{pose:?} {to:?}");
                assert!(took < 30.0, "{took} s from {from:?} to {to:?}");
            }
        }
        // Beside the middle, and from there to beside the middle of another street.
        drive(&mut pose, Place { x: 3.0, y: 0.3 });
        drive(&mut pose, Place { x: -6.7, y: 2.0 });
    }

    #[test]
    fn the_way_is_the_shortest_along_the_streets() {
        let check = |from: (f64, f64), to: (f64, f64), expect: f64| {
            let place = |(x, y)| Place { x, y };
            let got = length(place(from), &way(place(from), place(to)));
            assert!((got - expect).abs() < 1e-6, "{from:?} {to:?}: {got}");
        };
        check((0.0, 0.0), (6.4, 0.0), 6.4);
        check((-6.4, -4.4), (6.4, 4.4), 12.8 + 8.8);
        check((-3.0, 0.0), (3.0, 0.0), 6.0);
        // Round a block, by its nearer side.
        check((2.0, 0.0), (2.0, 4.4), 2.0 + 4.4 + 2.0);
        check((5.0, 0.0), (5.0, 4.4), 1.4 + 4.4 + 1.4);
        check((0.0, 2.0), (6.4, -2.0), 2.0 + 6.4 + 2.0);
        check((0.0, 0.0), (0.0, 0.0), 0.0);
    }

    #[test]
    fn a_place_off_the_street_is_refused_with_what_is_allowed() {
        for (x, y) in [(3.2, 2.2), (0.0, 9.0), (f64::NAN, 0.0), (0.0, f64::INFINITY)] {
            let why = Pilot::default().set_out(Pose::START.place, Place { x, y }).unwrap_err();
            assert!(why.contains("allowed: on a street"), "{why}");
        }
    }

    #[test]
    fn it_stops_before_what_stands_there_and_when_it_is_told_to() {
        let mut pilot = Pilot::default();
        pilot.set_out(Pose::START.place, Place { x: 0.0, y: -4.4 }).unwrap();
        assert!(0.0 < pilot.steer(&Pose::START, 1.0, 5.0).ahead);
        assert_eq!(pilot.steer(&Pose::START, 1.0, 0.3).ahead, 0.0);
        pilot.stop();
        assert_eq!(pilot.steer(&Pose::START, 1.0, 5.0), Velocity::default());
    }
}
