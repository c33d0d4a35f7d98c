//! The test picture: a crossroads, a car that drives along it, and the frame's number and checksum
//! in its first bytes. It comes in several sizes, all of the same scene.

/// How many pixels a picture has, three bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Across.
    pub(crate) width: usize,
    /// Down.
    pub(crate) height: usize,
}

/// What the camera sees, and sends as a rule. Places in the scene are told in its pixels.
pub(crate) const FULL: Size = Size { width: 640, height: 480 };
/// What the camera sends meanwhile: every fifth pixel of every fifth line.
pub(crate) const THUMBNAIL: Size = Size { width: 128, height: 96 };
/// What is drawn on a terminal.
pub(crate) const TINY: Size = Size { width: 40, height: 30 };

/// A car is found in a thumbnail within so many pixels of the scene.
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

    /// Which pixel of the scene stands in this column.
    const fn scene_x(self, column: usize) -> usize {
        (2 * column + 1) * FULL.width / (2 * self.width)
    }

    /// Which line of the scene stands in this line.
    const fn scene_y(self, line: usize) -> usize {
        (2 * line + 1) * FULL.height / (2 * self.height)
    }
}

type Colour = [u8; 3];

const GRASS: Colour = [46, 92, 58];
const FIELD: Colour = [58, 110, 66];
const TRANSPORT: Colour = [92, 94, 102];
const LINE: Colour = [226, 226, 214];
const CAR: Colour = [255, 196, 40];

const TRANSPORT_HALF: usize = 44;
const CAR_HALF: usize = 26;
/// Frames from the crossing to the end of a transport and back.
const TRIP: u64 = 60;

/// The frame's number, then the checksum of all that follows.
const MARK: usize = 16;

/// Draws pictures of one size. What does not move is drawn once.
#[derive(Debug)]
pub(crate) struct Painter {
    size: Size,
    ground: Vec<u8>,
}

impl Painter {
    pub(crate) fn new(size: Size) -> Self {
        let mut ground = vec![0; size.bytes()];
        for (at, pixel) in ground.chunks_exact_mut(3).enumerate() {
            let (column, line) = (at % size.width, at / size.width);
            pixel.copy_from_slice(&ground_at(size.scene_x(column), size.scene_y(line)));
        }
        Self { size, ground }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Draws frame `number` over all of `data`.
    pub(crate) fn draw(&self, number: u64, data: &mut [u8]) {
        data.copy_from_slice(&self.ground);
        let (x, y) = car_at(number);
        let is_car =
            |at: usize, middle: usize| (middle - CAR_HALF..middle + CAR_HALF).contains(&at);
        for (at, line) in data.chunks_exact_mut(self.size.step()).enumerate() {
            if !is_car(self.size.scene_y(at), y) {
                continue;
            }
            for (at, pixel) in line.chunks_exact_mut(3).enumerate() {
                if is_car(self.size.scene_x(at), x) {
                    pixel.copy_from_slice(&CAR);
                }
            }
        }
        let (mark, drawn) = data.split_at_mut(MARK);
        mark[..8].copy_from_slice(&number.to_le_bytes());
        mark[8..].copy_from_slice(&checksum(number, drawn).to_le_bytes());
    }
}

/// The number of the frame, if the picture is whole.
pub(crate) fn verify(data: &[u8]) -> Result<u64, String> {
    let size = Size::of(data.len());
    let Some((mark, drawn)) = data.split_first_chunk::<MARK>().filter(|_| size.is_some()) else {
        let (full, thumbnail) = (FULL.bytes(), THUMBNAIL.bytes());
        return Err(format!("a picture of {} bytes instead of {full} or {thumbnail}", data.len()));
    };
    let word = |from: usize| u64::from_le_bytes(std::array::from_fn(|at| mark[from + at]));
    let number = word(0);
    if word(8) != checksum(number, drawn) {
        return Err(format!("frame {number}: its checksum does not fit its contents"));
    }
    Ok(number)
}

/// The middle of the car in the scene.
pub(crate) fn find_car(data: &[u8]) -> Option<(f64, f64)> {
    let size = Size::of(data.len())?;
    let (mut found, mut sum_x, mut sum_y) = (0u64, 0u64, 0u64);
    for (y, line) in data.chunks_exact(size.step()).enumerate() {
        for (x, pixel) in line.chunks_exact(3).enumerate() {
            if pixel == CAR {
                found += 1;
                sum_x += size.scene_x(x) as u64;
                sum_y += size.scene_y(y) as u64;
            }
        }
    }
    // The middle of a pixel is half a pixel from its corner.
    let mean = |sum: u64| sum as f64 / found as f64 + 0.5;
    (found != 0).then(|| (mean(sum_x), mean(sum_y)))
}

/// Where the middle of the car is in frame `number`.
pub(crate) fn car_at(number: u64) -> (usize, usize) {
    let phase = (number % TRIP) as f64 / TRIP as f64;
    let out = (phase * std::f64::consts::PI).sin();
    let (x, y) = (FULL.width as f64 / 2.0, FULL.height as f64 / 2.0);
    let (reach_x, reach_y) = (out * (x - 40.0), out * (y - 40.0));
    let (x, y) = match number / TRIP % 4 {
        0 => (x + reach_x, y),
        1 => (x, y - reach_y),
        2 => (x - reach_x, y),
        _ => (x, y + reach_y),
    };
    (x.round() as usize, y.round() as usize)
}

/// The picture for a terminal, of one that the camera sent.
pub(crate) fn shrink(data: &[u8]) -> Vec<u8> {
    let Some(from) = Size::of(data.len()) else { return vec![0; TINY.bytes()] };
    let mut shrunk = Vec::with_capacity(TINY.bytes());
    for line in 0..TINY.height {
        let line = TINY.scene_y(line) * from.height / FULL.height;
        for column in 0..TINY.width {
            let column = TINY.scene_x(column) * from.width / FULL.width;
            shrunk.extend(&data[line * from.step() + column * 3..][..3]);
        }
    }
    shrunk
}

fn ground_at(x: usize, y: usize) -> Colour {
    let (off_x, off_y) = (x.abs_diff(FULL.width / 2), y.abs_diff(FULL.height / 2));
    let (is_up, is_across) = (off_x < TRANSPORT_HALF, off_y < TRANSPORT_HALF);
    let is_dash = |off: usize, along: usize| off < 8 && along % 64 < 32;
    match (is_up, is_across) {
        (true, true) => TRANSPORT,
        (true, false) if is_dash(off_x, y) => LINE,
        (false, true) if is_dash(off_y, x) => LINE,
        (true, false) | (false, true) => TRANSPORT,
        (false, false) if (x / 64 + y / 64).is_multiple_of(2) => GRASS,
        (false, false) => FIELD,
    }
}

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

    #[test]
    fn the_car_is_found_where_it_was_drawn_and_the_number_read_back() {
        for (size, within) in [(FULL, 0.0), (THUMBNAIL, FOUND_WITHIN)] {
            let painter = Painter::new(size);
            let mut data = vec![0; size.bytes()];
            for number in 0..4 * TRIP {
                painter.draw(number, &mut data);
                assert_eq!(verify(&data), Ok(number));
                let (x, y) = car_at(number);
                let (found_x, found_y) = find_car(&data).unwrap();
                let (off_x, off_y) = (found_x - x as f64, found_y - y as f64);
                assert!(off_x.abs() <= within && off_y.abs() <= within, "{size:?} {number}");
            }
        }
    }

    #[test]
    fn a_changed_picture_is_noticed() {
        for size in [FULL, THUMBNAIL] {
            let mut data = vec![0; size.bytes()];
            Painter::new(size).draw(41, &mut data);
            for at in [0, 8, MARK, size.bytes() / 2, size.bytes() - 1] {
                data[at] ^= 1;
                assert!(verify(&data).unwrap_err().contains("checksum"), "{at}");
                data[at] ^= 1;
            }
            assert!(verify(&data[1..]).unwrap_err().contains("instead of"));
            assert_eq!(verify(&data), Ok(41));
        }
    }

    #[test]
    fn the_tiny_picture_shows_the_car() {
        for size in [FULL, THUMBNAIL] {
            let mut data = vec![0; size.bytes()];
            Painter::new(size).draw(0, &mut data);
            let tiny = shrink(&data);
            assert_eq!(tiny.len(), TINY.bytes());
            assert!(tiny.chunks_exact(3).any(|pixel| pixel == CAR));
        }
    }
}
