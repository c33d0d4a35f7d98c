//! A moving test picture, which costs hardly more than copying it.

/// Pictures in `rgb8`, one after the other: colour bars that go to the left, a grey ramp below them, a white square that goes
/// from wall to wall.
pub(super) struct TestPicture {
    width: usize,
    height: usize,
    /// A row of bars, twice, so that every shift of it is in one piece.
    bars: Vec<u8>,
    ramp: Vec<u8>,
    drawn: usize,
}

impl TestPicture {
    pub(super) fn new(width: usize, height: usize) -> Self {
        let bar = |at: usize| BARS[at % width * BARS.len() / width];
        let grey = |at: usize| [(at * 256 / width) as u8; 3];
        let bars = (0..2 * width).flat_map(bar).collect();
        let ramp = (0..width).flat_map(grey).collect();
        Self { width, height, bars, ramp, drawn: 0 }
    }

    /// Draws the next picture into `pixels`, which hold a whole one.
    pub(super) fn draw(&mut self, pixels: &mut [u8]) {
        let Self { width, height, .. } = *self;
        let step = width * PIXEL_BYTES;
        let shift = self.drawn * BARS_SPEED % width * PIXEL_BYTES;
        for (y, row) in pixels.chunks_exact_mut(step).enumerate() {
            let is_ramp = height - height / 4 <= y;
            row.copy_from_slice(if is_ramp { &self.ramp } else { &self.bars[shift..][..step] });
        }
        let side = (width.min(height) / 6).max(1);
        let [left, top] = [(width, SQUARE_SPEED.0), (height, SQUARE_SPEED.1)]
            .map(|(room, speed)| to_and_fro(self.drawn * speed, room - side));
        for row in pixels.chunks_exact_mut(step).skip(top).take(side) {
            row[left * PIXEL_BYTES..][..side * PIXEL_BYTES].fill(u8::MAX);
        }
        self.drawn = (self.drawn + 1) % DRAWN_MAX;
    }
}

const PIXEL_BYTES: usize = 3;
/// After so many, a year at a hundred a second, all begins anew: nothing overflows before.
const DRAWN_MAX: usize = 1 << 28;
/// Pixels from one picture to the next.
const BARS_SPEED: usize = 2;
/// To the right and down.
const SQUARE_SPEED: (usize, usize) = (7, 5);
/// As a television station shows them.
const BARS: [[u8; PIXEL_BYTES]; 8] = [
    [191, 191, 191],
    [191, 191, 0],
    [0, 191, 191],
    [0, 191, 0],
    [191, 0, 191],
    [191, 0, 0],
    [0, 0, 191],
    [0, 0, 0],
];

/// Where something is that has gone so far between two walls.
fn to_and_fro(gone: usize, room: usize) -> usize {
    let at = gone % (2 * room).max(1);
    if at <= room { at } else { 2 * room - at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_bars_a_ramp_and_a_square_that_move() {
        let (width, height) = (64, 48);
        let mut picture = TestPicture::new(width, height);
        let mut drawn = || {
            let mut pixels = vec![7; width * height * PIXEL_BYTES];
            picture.draw(&mut pixels);
            pixels
        };
        let (first, second) = (drawn(), drawn());
        let pixel = |pixels: &[u8], x: usize, y: usize| -> [u8; PIXEL_BYTES] {
            std::array::from_fn(|at| pixels[(y * width + x) * PIXEL_BYTES + at])
        };
        assert_eq!(pixel(&first, 0, 0), [255; 3]);
        assert_eq!((pixel(&second, 0, 0), pixel(&second, 7, 5)), (BARS[0], [255; 3]));
        assert_eq!((pixel(&first, 20, 20), pixel(&first, 63, 20)), (BARS[2], BARS[7]));
        // Two pixels further to the left.
        assert_eq!((pixel(&first, 23, 20), pixel(&second, 23, 20)), (BARS[2], BARS[3]));
        assert_eq!((pixel(&first, 0, 47), pixel(&second, 63, 47)), ([0; 3], [252; 3]));
    }

    #[test]
    fn pictures_of_any_size_are_drawn_for_ever() {
        for (width, height) in [(1, 1), (1, 9), (9, 1), (2, 2), (5, 3), (33, 100)] {
            let mut picture = TestPicture::new(width, height);
            let mut pixels = vec![7; width * height * PIXEL_BYTES];
            for _ in 0..300 {
                picture.draw(&mut pixels);
                assert!(pixels.chunks_exact(PIXEL_BYTES).any(|it| it == [255; 3]));
            }
            picture.drawn = DRAWN_MAX - 1;
            picture.draw(&mut pixels);
        }
        assert_eq!([0, 3, 4, 7, 8].map(|it| to_and_fro(it, 4)), [0, 3, 4, 1, 0]);
    }
}
