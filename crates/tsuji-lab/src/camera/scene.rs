//! What the camera sees, and how it is compressed.

use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;

pub(super) const WIDTH: usize = 640;
pub(super) const HEIGHT: usize = 480;
const COLOURS: usize = 3;
/// Of the article, from 1 to 100.
const QUALITY: u8 = 30;

/// A short film that goes round: discs that move over stripes and a gradient, each point with noise of its own, as a sensor has it.
/// It is drawn beforehand, so that drawing is in no figure.
pub(super) struct Reel {
    pictures: Vec<Vec<u8>>,
}

const PICTURES: usize = 16;

impl Reel {
    /// Draws all of it.
    pub(super) fn new() -> Self {
        Self { pictures: (0..PICTURES).map(draw).collect() }
    }

    /// The picture of that number, bgr8.
    pub(super) fn picture(&self, number: u64) -> &[u8] {
        &self.pictures[(number % PICTURES as u64) as usize]
    }
}

/// How much a point is off at most.
const NOISE: i32 = 6;

fn draw(number: usize) -> Vec<u8> {
    let turn = number as f64 / PICTURES as f64 * std::f64::consts::TAU;
    let disc = |radius: f64, phase: f64, size: i32, colour: [i32; COLOURS]| {
        let x = WIDTH as f64 / 2.0 + radius * (turn + phase).cos();
        let y = HEIGHT as f64 / 2.0 + radius * 0.7 * (turn + phase).sin();
        (x as i32, y as i32, size, colour)
    };
    let discs = [
        disc(200.0, 0.0, 60, [40, 60, 220]),
        disc(150.0, 2.0, 35, [200, 180, 30]),
        disc(90.0, 4.0, 80, [60, 190, 70]),
    ];
    let mut random = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut picture = Vec::with_capacity(WIDTH * HEIGHT * COLOURS);
    for y in 0..HEIGHT as i32 {
        for x in 0..WIDTH as i32 {
            let hit = discs
                .iter()
                .find(|(cx, cy, size, _)| (x - cx).pow(2) + (y - cy).pow(2) < size.pow(2));
            let stripe = if (x + y / 2 + number as i32 * 8) / 16 % 2 == 0 { 25 } else { 0 };
            let ground = [x / 4 + stripe, y / 3 + stripe, 90 + (x + y) / 12];
            for value in hit.map_or(ground, |it| it.3) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let noise = ((random >> 33) % (2 * NOISE as u64 + 1)) as i32 - NOISE;
                picture.push((value + noise).clamp(0, 255) as u8);
            }
        }
    }
    picture
}

/// Makes JPEG of pictures.
#[derive(Default)]
pub(super) struct Compressor {
    /// The encoder wants red first.
    rgb: Vec<u8>,
}

impl Compressor {
    /// The picture as JPEG.
    pub(super) fn jpeg(&mut self, bgr: &[u8]) -> Result<Vec<u8>, String> {
        self.rgb.clear();
        let (points, _) = bgr.as_chunks::<COLOURS>();
        self.rgb.extend(points.iter().flat_map(|[b, g, r]| [*r, *g, *b]));
        let mut jpeg = Vec::with_capacity(bgr.len() / 8);
        let encoder = &mut JpegEncoder::new_with_quality(&mut jpeg, QUALITY);
        let encoded =
            encoder.encode(&self.rgb, WIDTH as u32, HEIGHT as u32, ExtendedColorType::Rgb8);
        encoded.map_err(|error| format!("make JPEG: {error}"))?;
        Ok(jpeg)
    }
}

/// Over some bytes here and there: a picture that was cut, or is another one, has another.
pub(super) fn spot_sum(data: &[u8]) -> u64 {
    let spots = data.iter().step_by(SPOT_STEP);
    spots.fold(data.len() as u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()))
}

/// Prime, so that the spots are in all columns and colours.
const SPOT_STEP: usize = 997;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_costs_what_a_real_one_does_and_comes_back() {
        let reel = Reel::new();
        let raw = reel.picture(3);
        assert_eq!(raw.len(), WIDTH * HEIGHT * COLOURS);
        let jpeg = Compressor::default().jpeg(raw).unwrap();
        // Neither a blank sheet nor mere noise: photographs have 0.5 to 2 bits a point at this quality.
        let bits = jpeg.len() as f64 * 8.0 / (WIDTH * HEIGHT) as f64;
        assert!((0.4..2.5).contains(&bits), "{bits}");
        let seen = image::load_from_memory(&jpeg).unwrap().into_rgb8();
        assert_eq!(seen.dimensions(), (WIDTH as u32, HEIGHT as u32));
        let (points, _) = raw.as_chunks::<COLOURS>();
        let drawn = points.iter().flat_map(|[b, g, r]| [*r, *g, *b]);
        let off: u64 = drawn.zip(seen.as_raw()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        assert!(off / (raw.len() as u64) < 12, "{off}");
    }

    #[test]
    fn the_scene_moves() {
        let reel = Reel::new();
        assert_ne!(reel.picture(0), reel.picture(1));
        assert_eq!(reel.picture(1), reel.picture(1 + PICTURES as u64));
    }

    #[test]
    fn a_picture_that_was_cut_or_is_another_has_another_sum() {
        let reel = Reel::new();
        let whole = reel.picture(0);
        assert_ne!(spot_sum(whole), spot_sum(&whole[..whole.len() - 1]));
        assert_ne!(spot_sum(whole), spot_sum(reel.picture(1)));
    }
}
