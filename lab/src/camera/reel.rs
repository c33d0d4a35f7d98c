//! What the camera sees, and how it is compressed.

use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use tsuji_interfaces::sensor_msgs::msg::{CompressedImage, Image};

const WIDTH: usize = 640;
const HEIGHT: usize = 480;
const COLOURS: usize = 3;
/// A picture that is drawn.
pub(super) const DRAWN_BYTES: u64 = (WIDTH * HEIGHT * COLOURS) as u64;
/// Of the article, from 1 to 100.
const QUALITY: u8 = 30;

/// The beat of the article.
pub(super) const PERIOD_US: u64 = 30_000;

/// A short film that goes round. It is there beforehand, so that neither drawing nor reading is in any figure.
pub(super) struct Reel {
    frames: Vec<Frame>,
    /// When each is due, since the first, and when the film begins again.
    due_us: Vec<u64>,
    round_us: u64,
}

/// A picture of a film.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    Raw(Image),
    Compressed(CompressedImage),
}

impl Frame {
    pub(super) fn data(&self) -> &[u8] {
        match self {
            Self::Raw(image) => &image.data,
            Self::Compressed(image) => &image.data,
        }
    }
}

const PICTURES: usize = 16;

impl Reel {
    /// Draws discs that move over stripes and a gradient, each point with noise of its own, as a sensor has it.
    pub(super) fn drawn() -> Self {
        Self::evenly((0..PICTURES).map(|it| Frame::Raw(picture(draw(it)))).collect())
    }

    /// A film of `frames`, of which there is one at least, at the beat of the article.
    pub(super) fn evenly(frames: Vec<Frame>) -> Self {
        let due_us = (0..frames.len() as u64).map(|it| it * PERIOD_US).collect();
        let round_us = frames.len() as u64 * PERIOD_US;
        Self { frames, due_us, round_us }
    }

    /// A film of `frames`, of which there is one at least, each as long after the first as `due_us` says. From the last to the
    /// first it is as long as from one to the next in the mean.
    pub(super) fn at_beat(frames: Vec<Frame>, due_us: Vec<u64>) -> Self {
        let last_us = due_us.last().copied().unwrap_or_default();
        let gap_us = last_us.checked_div(due_us.len() as u64 - 1).unwrap_or_default();
        let gap_us = if gap_us == 0 { PERIOD_US } else { gap_us };
        Self { frames, due_us, round_us: last_us + gap_us }
    }

    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The picture of that number, which counts on as the film goes round.
    pub(super) fn frame(&self, number: u64) -> &Frame {
        &self.frames[self.place(number)]
    }

    /// When it is due, since picture 0.
    pub(super) fn due_us(&self, number: u64) -> u64 {
        let rounds = number / self.frames.len() as u64;
        rounds.saturating_mul(self.round_us).saturating_add(self.due_us[self.place(number)])
    }

    /// From one picture to the next in the mean.
    pub(super) fn period_us(&self) -> f64 {
        self.round_us as f64 / self.frames.len() as f64
    }

    /// The largest picture.
    pub(super) fn bytes_max(&self) -> u64 {
        self.frames.iter().map(|it| it.data().len() as u64).max().unwrap_or_default()
    }

    fn place(&self, number: u64) -> usize {
        (number % self.frames.len() as u64) as usize
    }
}

fn picture(data: Vec<u8>) -> Image {
    let (width, height) = (WIDTH as u32, HEIGHT as u32);
    let (step, encoding) = (3 * width, "bgr8".to_owned());
    Image { height, width, encoding, step, data, ..Image::default() }
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
    /// The encoder wants red first, and no room between rows.
    points: Vec<u8>,
}

impl Compressor {
    /// The picture as JPEG.
    pub(super) fn jpeg(&mut self, image: &Image) -> Result<Vec<u8>, String> {
        let layout = Layout::of(image)?;
        self.points.clear();
        for row in image.data.chunks(image.step as usize).take(image.height as usize) {
            let row = &row[..layout.row_bytes];
            match layout.kind {
                Kind::Bgr => {
                    let (points, _) = row.as_chunks::<COLOURS>();
                    self.points.extend(points.iter().flat_map(|[b, g, r]| [*r, *g, *b]));
                }
                Kind::Rgb | Kind::Mono => self.points.extend_from_slice(row),
            }
        }
        let kind = match layout.kind {
            Kind::Mono => ExtendedColorType::L8,
            Kind::Bgr | Kind::Rgb => ExtendedColorType::Rgb8,
        };
        let mut jpeg = Vec::with_capacity(self.points.len() / 8);
        let encoder = &mut JpegEncoder::new_with_quality(&mut jpeg, QUALITY);
        let encoded = encoder.encode(&self.points, image.width, image.height, kind);
        encoded.map_err(|error| format!("make JPEG: {error}"))?;
        Ok(jpeg)
    }
}

/// How the points of a picture lie that JPEG can be made of.
struct Layout {
    kind: Kind,
    /// Of a row, without what fills it up.
    row_bytes: usize,
}

#[derive(Clone, Copy)]
enum Kind {
    Bgr,
    Rgb,
    Mono,
}

impl Layout {
    /// What keeps JPEG from being made is the error.
    fn of(image: &Image) -> Result<Self, String> {
        let (kind, colours) = match image.encoding.as_str() {
            "bgr8" => (Kind::Bgr, COLOURS),
            "rgb8" => (Kind::Rgb, COLOURS),
            "mono8" => (Kind::Mono, 1),
            other => {
                return Err(format!("JPEG is made of bgr8, rgb8 and mono8, not of \"{other}\""));
            }
        };
        let (width, height, step) =
            (image.width as usize, image.height as usize, image.step as usize);
        let row_bytes = width * colours;
        let sides = 1..=usize::from(u16::MAX);
        if !sides.contains(&width) || !sides.contains(&height) {
            return Err(format!(
                "JPEG has sides of 1 to {} points, not {width} × {height}",
                u16::MAX
            ));
        }
        if step < row_bytes || image.data.len() < step * (height - 1) + row_bytes {
            return Err(format!(
                "{width} × {height} points in rows of {step} bytes do not fit into {} bytes",
                image.data.len()
            ));
        }
        Ok(Self { kind, row_bytes })
    }
}

/// Why JPEG cannot be made of a picture, if so.
pub(super) fn no_jpeg(image: &Image) -> Option<String> {
    Layout::of(image).err()
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
        let image = picture(draw(3));
        let raw = &image.data;
        assert_eq!(raw.len(), WIDTH * HEIGHT * COLOURS);
        let jpeg = Compressor::default().jpeg(&image).unwrap();
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
    fn the_picture_moves() {
        let reel = Reel::drawn();
        assert_ne!(reel.frame(0), reel.frame(1));
        assert_eq!(reel.frame(1), reel.frame(1 + PICTURES as u64));
        let number = 3 * PICTURES as u64 + 5;
        assert_eq!((reel.due_us(number), reel.period_us()), (number * PERIOD_US, 30_000.0));
    }

    #[test]
    fn a_recorded_beat_goes_round() {
        let frames = |count| vec![Frame::Raw(Image::default()); count];
        let reel = Reel::at_beat(frames(3), vec![0, 10_000, 50_000]);
        let due: Vec<u64> = (0..7).map(|it| reel.due_us(it)).collect();
        assert_eq!(due, [0, 10_000, 50_000, 75_000, 85_000, 125_000, 150_000]);
        // Where the times say nothing, the beat is the article's.
        assert_eq!(Reel::at_beat(frames(1), vec![0]).due_us(2), 2 * PERIOD_US);
        assert_eq!(Reel::at_beat(frames(2), vec![0, 0]).due_us(2), PERIOD_US);
    }

    #[test]
    fn every_layout_that_jpeg_is_made_of_comes_back() {
        for (encoding, grey, colour) in [
            ("mono8", true, vec![200]),
            ("rgb8", false, vec![220, 60, 40]),
            ("bgr8", false, vec![40, 60, 220]),
        ] {
            // Rows that are filled up with what is no point.
            let row = [colour.repeat(32), vec![255; 5]].concat();
            let image = Image {
                height: 16,
                width: 32,
                encoding: encoding.to_owned(),
                step: row.len() as u32,
                data: row.repeat(16),
                ..Image::default()
            };
            let jpeg = Compressor::default().jpeg(&image).unwrap();
            let seen = image::load_from_memory(&jpeg).unwrap().into_rgb8();
            let expect = if grey { [200; 3] } else { [220, 60, 40] };
            for point in seen.pixels() {
                assert!(
                    point.0.iter().zip(expect).all(|(a, b)| a.abs_diff(b) < 12),
                    "{encoding} {point:?}"
                );
            }
        }
    }

    #[test]
    fn what_jpeg_cannot_be_made_of_is_said() {
        let check = |change: fn(&mut Image), expect: &str| {
            let mut image = picture(draw(0));
            change(&mut image);
            let why = no_jpeg(&image).unwrap();
            assert!(why.contains(expect), "{why}");
            assert!(Compressor::default().jpeg(&image).is_err());
        };
        check(|it| it.encoding = "16UC1".to_owned(), "not of \"16UC1\"");
        check(|it| it.width = 0, "not 0 × 480");
        check(|it| it.height = 70_000, "not 640 × 70000");
        check(|it| it.step = 100, "rows of 100 bytes do not fit");
        check(|it| it.data.truncate(1000), "do not fit into 1000 bytes");
    }

    #[test]
    fn a_picture_that_was_cut_or_is_another_has_another_sum() {
        let whole = &draw(0)[..];
        assert_ne!(spot_sum(whole), spot_sum(&whole[..whole.len() - 1]));
        assert_ne!(spot_sum(whole), spot_sum(&draw(1)));
    }
}
