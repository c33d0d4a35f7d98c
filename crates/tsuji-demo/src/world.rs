//! The world that the robot drives in: a crossroads with a street all round it, seen from above, in metres.
//!
//! Nothing here reads a clock or sends a message. The origin is in the middle of the crossroads, x goes to the east and y to the
//! north; angles are in radians, from the east to the north.

use std::f64::consts::PI;

/// A place in the world.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Place {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Where the robot is, and where it looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pose {
    pub(crate) place: Place,
    pub(crate) heading: f64,
}

/// What the robot is told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Velocity {
    /// Ahead, in metres a second.
    pub(crate) ahead: f64,
    /// To the left, in radians a second.
    pub(crate) turn: f64,
}

/// Half of the world's sides; there is a wall round it.
pub(crate) const HALF_WIDTH: f64 = STREETS_X[2] + STREET_HALF;
pub(crate) const HALF_HEIGHT: f64 = STREETS_Y[2] + STREET_HALF;
/// Half of what a street has across.
pub(crate) const STREET_HALF: f64 = 0.8;
/// The middle lines of the streets from south to north, and of those from west to east.
pub(crate) const STREETS_X: [f64; 3] = [-6.4, 0.0, 6.4];
pub(crate) const STREETS_Y: [f64; 3] = [-4.4, 0.0, 4.4];
/// The robot is round.
pub(crate) const ROBOT_RADIUS: f64 = 0.4;
/// As fast as it can.
pub(crate) const FASTEST: Velocity = Velocity { ahead: 2.0, turn: 3.0 };
/// It sees so far.
pub(crate) const SIGHT: f64 = 12.0;

/// The places that it is sent to, with their names, one after the other: where streets meet.
pub(crate) const PLACES: [(&str, Place); 9] = [
    ("the bridge", Place { x: STREETS_X[1], y: STREETS_Y[0] }),
    ("the market", Place { x: STREETS_X[1], y: STREETS_Y[1] }),
    ("the baker", Place { x: STREETS_X[0], y: STREETS_Y[1] }),
    ("the park", Place { x: STREETS_X[0], y: STREETS_Y[2] }),
    ("the tower", Place { x: STREETS_X[1], y: STREETS_Y[2] }),
    ("the station", Place { x: STREETS_X[2], y: STREETS_Y[2] }),
    ("the mill", Place { x: STREETS_X[2], y: STREETS_Y[1] }),
    ("the school", Place { x: STREETS_X[2], y: STREETS_Y[0] }),
    ("the harbour", Place { x: STREETS_X[0], y: STREETS_Y[0] }),
];

/// A block of houses between the streets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

/// The four of them.
pub(crate) fn blocks() -> [Block; 4] {
    let between =
        |streets: [f64; 3], at: usize| (streets[at] + STREET_HALF, streets[at + 1] - STREET_HALF);
    std::array::from_fn(|at| {
        let ((west, east), (south, north)) =
            (between(STREETS_X, at % 2), between(STREETS_Y, at / 2));
        Block { west, east, south, north }
    })
}

impl Place {
    pub(crate) fn distance(self, other: Self) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }

    /// So far from here in that direction.
    fn ahead(self, heading: f64, distance: f64) -> Self {
        Self { x: self.x + heading.cos() * distance, y: self.y + heading.sin() * distance }
    }

    /// Whether something round has room here.
    pub(crate) fn is_free(self, radius: f64) -> bool {
        let is_inside = self.x.abs() <= HALF_WIDTH - radius && self.y.abs() <= HALF_HEIGHT - radius;
        is_inside && blocks().iter().all(|block| radius <= block.distance(self))
    }
}

impl Block {
    /// 0 for what is in it.
    fn distance(&self, place: Place) -> f64 {
        let outside = |at: f64, from: f64, to: f64| (from - at).max(at - to).max(0.0);
        outside(place.x, self.west, self.east).hypot(outside(place.y, self.south, self.north))
    }

    /// How far a place is from its edge, inside of it; 0 for what is outside.
    pub(crate) fn depth(&self, place: Place) -> f64 {
        let from_edge = |at: f64, from: f64, to: f64| (at - from).min(to - at);
        let across = from_edge(place.x, self.west, self.east);
        across.min(from_edge(place.y, self.south, self.north)).max(0.0)
    }

    /// How far it is to it from a place outside of it, if it is in that direction at all.
    fn hit(&self, from: Place, heading: f64) -> Option<f64> {
        let (mut enters, mut leaves) = (0.0f64, f64::INFINITY);
        for (at, step, least, most) in [
            (from.x, heading.cos(), self.west, self.east),
            (from.y, heading.sin(), self.south, self.north),
        ] {
            if step.abs() < f64::EPSILON {
                if at < least || most < at {
                    return None;
                }
                continue;
            }
            let (one, other) = ((least - at) / step, (most - at) / step);
            enters = enters.max(one.min(other));
            leaves = leaves.min(one.max(other));
        }
        (enters <= leaves && 0.0 < leaves).then_some(enters)
    }
}

impl Pose {
    /// Where it starts.
    pub(crate) const START: Self =
        Self { place: Place { x: STREETS_X[0], y: STREETS_Y[0] }, heading: 0.0 };

    /// What a beam meets that leaves the robot at an angle from where it looks; at most [`SIGHT`].
    pub(crate) fn sight(&self, angle: f64) -> f64 {
        let heading = self.heading + angle;
        let wall = |at: f64, step: f64, half: f64| match step {
            0.0.. => (half - at) / step,
            _ => (-half - at) / step,
        };
        let to_wall = wall(self.place.x, heading.cos(), HALF_WIDTH).min(wall(
            self.place.y,
            heading.sin(),
            HALF_HEIGHT,
        ));
        let to_blocks = blocks()
            .iter()
            .filter_map(|it| it.hit(self.place, heading))
            .fold(f64::INFINITY, f64::min);
        to_wall.min(to_blocks).clamp(0.0, SIGHT)
    }

    /// Where it is after `seconds`, what it did, and whether it could go there: it stands where it would leave the street.
    pub(crate) fn moved(&self, velocity: Velocity, seconds: f64) -> (Self, Velocity, bool) {
        let mut velocity = velocity.possible();
        let heading = turned(self.heading + velocity.turn * seconds);
        let place = self.place.ahead(heading, velocity.ahead * seconds);
        let is_free = place.is_free(ROBOT_RADIUS);
        if !is_free {
            velocity.ahead = 0.0;
        }
        (Self { place: if is_free { place } else { self.place }, heading }, velocity, is_free)
    }
}

impl Velocity {
    /// What comes nearest to it that the robot can do; what is no number is not done.
    fn possible(self) -> Self {
        let within =
            |value: f64, most: f64| if value.is_nan() { 0.0 } else { value.clamp(-most, most) };
        Self { ahead: within(self.ahead, FASTEST.ahead), turn: within(self.turn, FASTEST.turn) }
    }
}

/// The middle line that is nearest to a coordinate, of the streets of one direction.
pub(crate) fn nearest_street(at: f64, streets: [f64; 3]) -> f64 {
    let [first, others @ ..] = streets;
    let nearer =
        |one: f64, other: f64| if (other - at).abs() < (one - at).abs() { other } else { one };
    others.into_iter().fold(first, nearer)
}

/// The same angle, from -π to π.
pub(crate) fn turned(angle: f64) -> f64 {
    (angle + PI).rem_euclid(2.0 * PI) - PI
}

/// Cells of the map, row by row from the south-west: 100 for what is in the way, 0 for streets.
pub(crate) fn map() -> Vec<i8> {
    let (columns, rows) = MAP_CELLS;
    let middle = |at: usize, half: f64| (at as f64 + 0.5) * MAP_RESOLUTION - half;
    let cell = |at: usize| {
        let place =
            Place { x: middle(at % columns, MAP_HALF.0), y: middle(at / columns, MAP_HALF.1) };
        if place.is_free(0.0) && blocks().iter().all(|it| 0.0 < it.distance(place)) {
            0
        } else {
            100
        }
    };
    (0..columns * rows).map(cell).collect()
}

/// Metres of a cell.
pub(crate) const MAP_RESOLUTION: f64 = 0.1;
/// The map goes a little beyond the wall.
pub(crate) const MAP_HALF: (f64, f64) = (8.0, 6.0);
pub(crate) const MAP_CELLS: (usize, usize) = (160, 120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streets_are_free_and_blocks_are_not() {
        for (name, place) in PLACES {
            assert!(place.is_free(ROBOT_RADIUS), "{name}");
        }
        for (x, y) in [(3.2, 2.2), (-3.2, -2.2), (7.1, 0.0), (0.0, 5.1), (20.0, 0.0)] {
            assert!(!Place { x, y }.is_free(ROBOT_RADIUS), "{x}, {y}");
        }
    }

    #[test]
    fn the_nearest_street_is_found_from_both_sides_and_from_beyond() {
        for (at, expect) in
            [(-9.0, -6.4), (-3.3, -6.4), (-3.1, 0.0), (0.0, 0.0), (3.3, 6.4), (9.0, 6.4)]
        {
            assert_eq!(nearest_street(at, STREETS_X), expect, "{at}");
        }
    }

    #[test]
    fn a_beam_ends_at_what_stands_there() {
        let check = |x: f64, y: f64, degrees: f64, expect: f64| {
            let pose = Pose { place: Place { x, y }, heading: degrees.to_radians() };
            assert!((pose.sight(0.0) - expect).abs() < 1e-9, "{x}, {y}, {degrees}: {pose:?}");
        };
        // Along the streets to the walls.
        check(0.0, 0.0, 0.0, HALF_WIDTH);
        check(0.0, 0.0, 90.0, HALF_HEIGHT);
        check(0.0, 0.0, 180.0, HALF_WIDTH);
        check(-6.4, -4.4, 0.0, SIGHT);
        // Across a street to a block, from both sides.
        check(-6.4, 2.2, 0.0, STREET_HALF);
        check(0.0, 2.2, 180.0, STREET_HALF);
        check(3.2, 0.0, 90.0, STREET_HALF);
        // From the corner of two blocks, slantwise.
        check(0.0, 0.0, 45.0, STREET_HALF * 2.0f64.sqrt());
    }

    #[test]
    fn the_robot_turns_drives_and_stands_before_a_block() {
        let (pose, _, is_free) = Pose::START.moved(Velocity { ahead: 1.0, turn: 0.0 }, 0.5);
        assert!(is_free && (pose.place.x - (Pose::START.place.x + 0.5)).abs() < 1e-9);
        let (pose, done, _) = pose.moved(Velocity { ahead: 0.0, turn: 9.0 }, 1.0);
        assert_eq!(done, Velocity { turn: FASTEST.turn, ..Velocity::default() });
        assert!((pose.heading - FASTEST.turn).abs() < 1e-9, "no faster than it can");
        let (mut pose, mut bumps) =
            (Pose { place: Place { x: 3.2, y: 0.0 }, heading: PI / 2.0 }, 0);
        for _ in 0..100 {
            let (next, done, is_free) = pose.moved(Velocity { ahead: 1.0, turn: 0.0 }, 0.05);
            assert_eq!(done.ahead, f64::from(u8::from(is_free)), "what it does is told");
            bumps += u32::from(!is_free);
            pose = next;
        }
        assert!(0 < bumps && pose.place.is_free(ROBOT_RADIUS), "{pose:?}");
        let odd = Velocity { ahead: f64::NAN, turn: f64::NAN };
        assert_eq!(pose.moved(odd, 1.0).0, pose);
        assert!((turned(3.0 * PI) + PI).abs() < 1e-9);
    }

    #[test]
    fn the_map_is_that_of_the_world() {
        let map = map();
        let at = |x: f64, y: f64| {
            let cell = |at: f64, half: f64| ((at + half) / MAP_RESOLUTION) as usize;
            map[cell(y, MAP_HALF.1) * MAP_CELLS.0 + cell(x, MAP_HALF.0)]
        };
        assert_eq!(map.len(), MAP_CELLS.0 * MAP_CELLS.1);
        assert_eq!([at(0.0, 0.0), at(-6.4, -4.4), at(6.4, 0.0)], [0; 3]);
        assert_eq!([at(3.2, 2.2), at(-3.2, 2.2), at(7.9, 0.0), at(0.0, -5.9)], [100; 4]);
    }
}
