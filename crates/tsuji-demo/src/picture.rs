//! The test picture: a crossroads, a car that drives along it, and the frame's number and checksum
//! in its first bytes.

/// Across, in pixels.
pub(crate) const WIDTH: usize = 640;
/// Down, in pixels.
pub(crate) const HEIGHT: usize = 480;
/// Bytes of a line of pixels, three each.
pub(crate) const STEP: usize = WIDTH * 3;
/// Bytes of the picture.
pub(crate) const BYTES: usize = STEP * HEIGHT;

/// Across the small picture.
pub(crate) const SMALL_WIDTH: usize = 40;
/// Down the small picture.
pub(crate) const SMALL_HEIGHT: usize = 30;

type Colour = [u8; 3];

const GRASS: Colour = [46, 92, 58];
const FIELD: Colour = [58, 110, 66];
const ROAD: Colour = [92, 94, 102];
const LINE: Colour = [226, 226, 214];
const CAR: Colour = [255, 196, 40];

const ROAD_HALF: usize = 44;
const CAR_HALF: usize = 26;
/// Frames from the crossing to the end of a road and back.
const TRIP: u64 = 60;

/// The frame's number, then the checksum of all that follows.
const MARK: usize = 16;

/// Draws pictures. What does not move is drawn once.
#[derive(Debug)]
pub(crate) struct Painter {
    ground: Vec<u8>,
}

impl Painter {
    pub(crate) fn new() -> Self {
        let mut ground = vec![0; BYTES];
        for (at, pixel) in ground.chunks_exact_mut(3).enumerate() {
            pixel.copy_from_slice(&ground_at(at % WIDTH, at / WIDTH));
        }
        Self { ground }
    }

    /// Draws frame `number` over all of `data`.
    pub(crate) fn draw(&self, number: u64, data: &mut [u8]) {
        data.copy_from_slice(&self.ground);
        let (x, y) = car_at(number);
        for line in data.chunks_exact_mut(STEP).skip(y - CAR_HALF).take(2 * CAR_HALF) {
            for pixel in line[(x - CAR_HALF) * 3..(x + CAR_HALF) * 3].chunks_exact_mut(3) {
                pixel.copy_from_slice(&CAR);
            }
        }
        let (mark, drawn) = data.split_at_mut(MARK);
        mark[..8].copy_from_slice(&number.to_le_bytes());
        mark[8..].copy_from_slice(&checksum(number, drawn).to_le_bytes());
    }
}

/// The number of the frame, if the picture is whole.
pub(crate) fn verify(data: &[u8]) -> Result<u64, String> {
    let Some((mark, drawn)) = data.split_first_chunk::<MARK>().filter(|_| data.len() == BYTES)
    else {
        return Err(format!("a picture of {} bytes instead of {BYTES}", data.len()));
    };
    let word = |from: usize| u64::from_le_bytes(std::array::from_fn(|at| mark[from + at]));
    let number = word(0);
    if word(8) != checksum(number, drawn) {
        return Err(format!("frame {number}: its checksum does not fit its contents"));
    }
    Ok(number)
}

/// The middle of the car, in pixels.
pub(crate) fn find_car(data: &[u8]) -> Option<(f64, f64)> {
    let (mut found, mut sum_x, mut sum_y) = (0u64, 0u64, 0u64);
    for (y, line) in data.chunks_exact(STEP).enumerate() {
        for (x, pixel) in line.chunks_exact(3).enumerate() {
            if pixel == CAR {
                found += 1;
                sum_x += x as u64;
                sum_y += y as u64;
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
    let (x, y) = (WIDTH as f64 / 2.0, HEIGHT as f64 / 2.0);
    let (reach_x, reach_y) = (out * (x - 40.0), out * (y - 40.0));
    let (x, y) = match number / TRIP % 4 {
        0 => (x + reach_x, y),
        1 => (x, y - reach_y),
        2 => (x - reach_x, y),
        _ => (x, y + reach_y),
    };
    (x.round() as usize, y.round() as usize)
}

/// Every sixteenth pixel of every sixteenth line.
pub(crate) fn shrink(data: &[u8]) -> Vec<u8> {
    let (every_x, every_y) = (WIDTH / SMALL_WIDTH, HEIGHT / SMALL_HEIGHT);
    let lines = data.chunks_exact(STEP).skip(every_y / 2).step_by(every_y);
    lines
        .flat_map(|line| line.chunks_exact(3).skip(every_x / 2).step_by(every_x).flatten())
        .copied()
        .collect()
}

fn ground_at(x: usize, y: usize) -> Colour {
    let (off_x, off_y) = (x.abs_diff(WIDTH / 2), y.abs_diff(HEIGHT / 2));
    let (is_up, is_across) = (off_x < ROAD_HALF, off_y < ROAD_HALF);
    let is_dash = |off: usize, along: usize| off < 8 && along % 64 < 32;
    match (is_up, is_across) {
        (true, true) => ROAD,
        (true, false) if is_dash(off_x, y) => LINE,
        (false, true) if is_dash(off_y, x) => LINE,
        (true, false) | (false, true) => ROAD,
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
        let painter = Painter::new();
        let mut data = vec![0; BYTES];
        for number in (0..4 * TRIP).step_by(7) {
            painter.draw(number, &mut data);
            assert_eq!(verify(&data), Ok(number));
            let (x, y) = car_at(number);
            assert_eq!(find_car(&data), Some((x as f64, y as f64)), "{number}");
        }
    }

    #[test]
    fn a_changed_picture_is_noticed() {
        let mut data = vec![0; BYTES];
        Painter::new().draw(41, &mut data);
        for at in [0, 8, MARK, BYTES / 2, BYTES - 1] {
            data[at] ^= 1;
            assert!(verify(&data).unwrap_err().contains("checksum"), "{at}");
            data[at] ^= 1;
        }
        assert!(verify(&data[1..]).unwrap_err().contains("instead of"));
        assert_eq!(verify(&data), Ok(41));
    }

    #[test]
    fn the_small_picture_shows_the_car() {
        let mut data = vec![0; BYTES];
        Painter::new().draw(0, &mut data);
        let small = shrink(&data);
        assert_eq!(small.len(), SMALL_WIDTH * SMALL_HEIGHT * 3);
        assert!(small.chunks_exact(3).any(|pixel| pixel == CAR));
    }
}
