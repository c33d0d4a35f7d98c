//! What the camera over the crossroads sees: the world, the robot in it, and the frame's number and checksum in its first
//! bytes. It comes in several sizes, all of the same view.

use crate::world::{
    Place, Pose, ROBOT_RADIUS, STREET_HALF, STREETS_X, STREETS_Y, blocks, nearest_street, turned,
};

/// How many pixels a picture has, three bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Across.
    pub(crate) width: usize,
    /// Down.
    pub(crate) height: usize,
}

/// What the camera sees, and sends as a rule. Places in a picture of any size are in pixels of this.
pub(crate) const FULL: Size = Size { width: 640, height: 480 };
/// What the camera sends meanwhile: every fifth pixel of every fifth line.
pub(crate) const THUMBNAIL: Size = Size { width: 128, height: 96 };
/// What is drawn on a terminal.
pub(crate) const TINY: Size = Size { width: 40, height: 30 };

/// A car is found in a thumbnail within so many pixels of a full picture.
pub(crate) const FOUND_WITHIN: f64 = 3.0;

impl Size {
    /// Bytes of a line.
    pub(crate) const fn step(self) -> usize {
        self.width * 3
    }

    /// Bytes of a picture.
    pub(crate) const fn bytes(self) -> usize {
        self.step() * self.height
    }

    /// The size of a picture of so many bytes, if it is one that the camera sends.
    fn of(bytes: usize) -> Option<Self> {
        [FULL, THUMBNAIL].into_iter().find(|size| size.bytes() == bytes)
    }

    /// Which column of a full picture stands in this column.
    const fn full_x(self, column: usize) -> usize {
        (2 * column + 1) * FULL.width / (2 * self.width)
    }

    /// Which line of a full picture stands in this line.
    const fn full_y(self, line: usize) -> usize {
        (2 * line + 1) * FULL.height / (2 * self.height)
    }
}

type Colour = [u8; 3];

const GRASS: Colour = [46, 92, 58];
const HOUSE: Colour = [142, 92, 74];
const ROOF: Colour = [168, 112, 88];
const STREET: Colour = [92, 94, 102];
const LINE: Colour = [226, 226, 214];
const WALL: Colour = [40, 42, 48];
const CAR: Colour = [255, 196, 40];
const LIGHT: Colour = [150, 146, 120];

pub(crate) const PIXELS_PER_METRE: f64 = 40.0;
/// Pixels of a full picture where the origin of the world is.
const MIDDLE: (f64, f64) = (FULL.width as f64 / 2.0, FULL.height as f64 / 2.0);
/// Pixels of a full picture that the headlights reach.
const LIGHT_REACH: f64 = 58.0;
/// Half of the angle that they light.
const LIGHT_HALF: f64 = 0.45;

/// The frame's number, the checksum of all that follows, and where the car was drawn: x and y in pixels of a full picture.
const MARK: usize = 24;

/// Draws pictures of one size. What does not move is drawn once.
#[derive(Debug)]
pub(crate) struct Painter {
    size: Size,
    ground: Vec<u8>,
}

/// What a picture says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) number: u64,
    /// Where the car is, in pixels of a full picture.
    pub(crate) car: (u32, u32),
}

impl Painter {
    pub(crate) fn new(size: Size) -> Self {
        let mut ground = vec![0; size.bytes()];
        for (at, pixel) in ground.chunks_exact_mut(3).enumerate() {
            let (column, line) = (at % size.width, at / size.width);
            pixel.copy_from_slice(&ground_at(size.full_x(column), size.full_y(line)));
        }
        Self { size, ground }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Draws frame `number` over all of `data`, with the robot where it is.
    pub(crate) fn draw(&self, number: u64, robot: &Pose, data: &mut [u8]) {
        data.copy_from_slice(&self.ground);
        let (x, y) = to_pixels(robot.place);
        let radius = ROBOT_RADIUS * PIXELS_PER_METRE;
        let reach = radius + LIGHT_REACH;
        let is_near = |at: usize, middle: f64| (at as f64 - middle).abs() <= reach;
        for (at, line) in data.chunks_exact_mut(self.size.step()).enumerate() {
            let full_y = self.size.full_y(at);
            if !is_near(full_y, y) {
                continue;
            }
            for (at, pixel) in line.chunks_exact_mut(3).enumerate() {
                let full_x = self.size.full_x(at);
                if !is_near(full_x, x) {
                    continue;
                }
                // In the picture y goes down.
                let (off_x, off_y) = (full_x as f64 + 0.5 - x, y - full_y as f64 - 0.5);
                let distance = off_x.hypot(off_y);
                if distance <= radius {
                    pixel.copy_from_slice(&CAR);
                } else if distance <= reach
                    && turned(off_y.atan2(off_x) - robot.heading).abs() <= LIGHT_HALF
                    && pixel == STREET
                {
                    pixel.copy_from_slice(&LIGHT);
                }
            }
        }
        let (mark, drawn) = data.split_at_mut(MARK);
        mark[..8].copy_from_slice(&number.to_le_bytes());
        mark[16..20].copy_from_slice(&(x as u32).to_le_bytes());
        mark[20..].copy_from_slice(&(y as u32).to_le_bytes());
        let sum = checksum(number ^ word(mark, 16), drawn);
        mark[8..16].copy_from_slice(&sum.to_le_bytes());
    }
}

/// What the picture says of itself, if it is whole.
pub(crate) fn verify(data: &[u8]) -> Result<Frame, String> {
    let size = Size::of(data.len());
    let Some((mark, drawn)) = data.split_first_chunk::<MARK>().filter(|_| size.is_some()) else {
        let (full, thumbnail) = (FULL.bytes(), THUMBNAIL.bytes());
        return Err(format!("a picture of {} bytes instead of {full} or {thumbnail}", data.len()));
    };
    let (number, place) = (word(mark, 0), word(mark, 16));
    if word(mark, 8) != checksum(number ^ place, drawn) {
        return Err(format!("frame {number}: its checksum does not fit its contents"));
    }
    Ok(Frame { number, car: (place as u32, (place >> 32) as u32) })
}

fn word(bytes: &[u8], from: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|at| bytes[from + at]))
}

/// The middle of the car, in pixels of a full picture.
pub(crate) fn find_car(data: &[u8]) -> Option<(f64, f64)> {
    let size = Size::of(data.len())?;
    let (mut found, mut sum_x, mut sum_y) = (0u64, 0u64, 0u64);
    for (y, line) in data.chunks_exact(size.step()).enumerate() {
        for (x, pixel) in line.chunks_exact(3).enumerate() {
            if pixel == CAR {
                found += 1;
                sum_x += size.full_x(x) as u64;
                sum_y += size.full_y(y) as u64;
            }
        }
    }
    // The middle of a pixel is half a pixel from its corner.
    let mean = |sum: u64| sum as f64 / found as f64 + 0.5;
    (found != 0).then(|| (mean(sum_x), mean(sum_y)))
}

/// Where a place of the world is, in pixels of a full picture.
fn to_pixels(place: Place) -> (f64, f64) {
    (MIDDLE.0 + place.x * PIXELS_PER_METRE, MIDDLE.1 - place.y * PIXELS_PER_METRE)
}

/// Which place of the world is at these pixels of a full picture.
pub(crate) fn to_world((x, y): (f64, f64)) -> Place {
    Place { x: (x - MIDDLE.0) / PIXELS_PER_METRE, y: (MIDDLE.1 - y) / PIXELS_PER_METRE }
}

/// The picture for a terminal, of one that the camera sent.
pub(crate) fn shrink(data: &[u8]) -> Vec<u8> {
    let Some(from) = Size::of(data.len()) else { return vec![0; TINY.bytes()] };
    let mut shrunk = Vec::with_capacity(TINY.bytes());
    for line in 0..TINY.height {
        let line = TINY.full_y(line) * from.height / FULL.height;
        for column in 0..TINY.width {
            let column = TINY.full_x(column) * from.width / FULL.width;
            shrunk.extend(&data[line * from.step() + column * 3..][..3]);
        }
    }
    shrunk
}

fn ground_at(x: usize, y: usize) -> Colour {
    let place = to_world((x as f64 + 0.5, y as f64 + 0.5));
    if !place.is_free(0.0) {
        return WALL;
    }
    let inside = blocks().iter().map(|it| it.depth(place)).fold(0.0, f64::max);
    match inside {
        ROOF_BEGINS.. => ROOF,
        HOUSE_BEGINS.. => HOUSE,
        0.0 => street_at(place),
        _ => GRASS,
    }
}

/// A street with a dashed line in its middle, but for where streets cross.
fn street_at(place: Place) -> Colour {
    let off = |at: f64, streets: [f64; 3]| (nearest_street(at, streets) - at).abs();
    let (off_x, off_y) = (off(place.x, STREETS_X), off(place.y, STREETS_Y));
    let is_dash = |off: f64, along: f64| off < LINE_HALF && along.rem_euclid(1.0) < 0.5;
    let is_crossing = off_x < STREET_HALF && off_y < STREET_HALF;
    match !is_crossing && (is_dash(off_x, place.y) || is_dash(off_y, place.x)) {
        true => LINE,
        false => STREET,
    }
}

/// Metres from the edge of a block to its houses, and to their roofs.
const HOUSE_BEGINS: f64 = 0.4;
const ROOF_BEGINS: f64 = 0.6;
const LINE_HALF: f64 = 0.06;

/// Tells a byte that changed or moved, and a picture of another frame.
fn checksum(number: u64, data: &[u8]) -> u64 {
    let (words, rest) = data.as_chunks::<8>();
    let words = words.iter().map(|it| u64::from_le_bytes(*it));
    let rest = rest.iter().map(|it| u64::from(*it));
    words.chain(rest).fold(number, |sum, word| (sum ^ word).wrapping_mul(PRIME).rotate_left(29))
}

const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::PLACES;

    /// Robots all over the world, in all directions.
    fn robots() -> impl Iterator<Item = Pose> {
        let places = PLACES.into_iter().map(|(_, place)| place);
        places.enumerate().map(|(at, place)| Pose { place, heading: at as f64 * 0.7 - 3.0 })
    }

    #[test]
    fn the_car_is_found_where_it_was_drawn_and_the_number_read_back() {
        for size in [FULL, THUMBNAIL] {
            let painter = Painter::new(size);
            let mut data = vec![0; size.bytes()];
            for (number, robot) in robots().enumerate() {
                painter.draw(number as u64, &robot, &mut data);
                let frame = verify(&data).unwrap();
                assert_eq!(frame.number, number as u64);
                let (found_x, found_y) = find_car(&data).unwrap();
                let (off_x, off_y) =
                    (found_x - f64::from(frame.car.0), found_y - f64::from(frame.car.1));
                let is_near = off_x.abs() <= FOUND_WITHIN && off_y.abs() <= FOUND_WITHIN;
                assert!(is_near, "{size:?} {robot:?}: {off_x}, {off_y}");
                let place = to_world((found_x, found_y));
                assert!(place.distance(robot.place) < 0.1, "{place:?} {robot:?}");
            }
        }
    }

    #[test]
    fn a_changed_picture_is_noticed() {
        for size in [FULL, THUMBNAIL] {
            let mut data = vec![0; size.bytes()];
            Painter::new(size).draw(41, &Pose::START, &mut data);
            for at in [0, 8, 16, 23, MARK, size.bytes() / 2, size.bytes() - 1] {
                data[at] ^= 1;
                assert!(verify(&data).unwrap_err().contains("checksum"), "{at}");
                data[at] ^= 1;
            }
            assert!(verify(&data[1..]).unwrap_err().contains("instead of"));
            assert_eq!(verify(&data).map(|it| it.number), Ok(41));
        }
    }

    #[test]
    fn the_tiny_picture_shows_the_car() {
        for size in [FULL, THUMBNAIL] {
            let mut data = vec![0; size.bytes()];
            Painter::new(size).draw(0, &Pose::START, &mut data);
            let tiny = shrink(&data);
            assert_eq!(tiny.len(), TINY.bytes());
            assert!(tiny.chunks_exact(3).any(|pixel| pixel == CAR));
        }
    }
}
