//! What is sent: pictures that the receiver can tell from each other and from damaged ones.

/// Bytes at the start of a picture that hold its number. The smallest picture.
pub(crate) const NUMBER_BYTES: usize = 8;

/// A picture that only finds out whether anybody is there.
pub(crate) const HANDSHAKE: u64 = u64::MAX;

/// Pictures of one size. A picture is one of a few prepared ones, with its number at its start.
#[derive(Debug)]
pub(crate) struct Pictures {
    prepared: Vec<Prepared>,
}

#[derive(Debug)]
struct Prepared {
    bytes: Vec<u8>,
    sum: u64,
}

impl Pictures {
    /// Pictures of `size` bytes, at least [`NUMBER_BYTES`].
    pub(crate) fn new(size: usize) -> Self {
        let prepared = (1..=PREPARED)
            .map(|seed| {
                let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mut bytes = vec![0; size.max(NUMBER_BYTES)];
                for byte in &mut bytes {
                    word ^= word << 13;
                    word ^= word >> 7;
                    word ^= word << 17;
                    *byte = (word >> 32) as u8;
                }
                let sum = checksum(&bytes);
                Prepared { bytes, sum }
            })
            .collect();
        Self { prepared }
    }

    /// Bytes of a picture.
    pub(crate) fn size(&self) -> usize {
        self.prepared[0].bytes.len()
    }

    /// The finished picture without its number.
    pub(crate) fn content(&self, number: u64) -> &[u8] {
        &self.of(number).bytes
    }

    /// Draws the picture of that number.
    pub(crate) fn draw(&self, number: u64, canvas: &mut [u8]) {
        canvas.copy_from_slice(self.content(number));
        canvas[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
    }

    /// The number of a picture, if the rest of it is as it was drawn.
    pub(crate) fn check(&self, seen: &[u8]) -> Result<u64, Damaged> {
        let number = number(seen).ok_or(Damaged)?;
        let right = seen.len() == self.size() && checksum(seen) == self.of(number).sum;
        if right { Ok(number) } else { Err(Damaged) }
    }

    fn of(&self, number: u64) -> &Prepared {
        &self.prepared[(number % PREPARED) as usize]
    }
}

/// A picture that is not as it was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// What a picture says its number is.
pub(crate) fn number(seen: &[u8]) -> Option<u64> {
    seen.first_chunk::<NUMBER_BYTES>().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Over all but the number. The place of a byte counts, so exchanged lines do not go unseen.
fn checksum(picture: &[u8]) -> u64 {
    let mut sums = [1_u64, 2, 3, 4];
    let (words, rest) = picture[NUMBER_BYTES..].as_chunks::<8>();
    let (groups, lone) = words.as_chunks::<4>();
    let add = |sum: u64, word: [u8; 8]| {
        (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(29)
    };
    for group in groups {
        for (sum, word) in sums.iter_mut().zip(group) {
            *sum = add(*sum, *word);
        }
    }
    let mut sum = lone.iter().fold(0, |sum, word| add(sum, *word));
    sum = rest.iter().fold(sum, |sum, byte| add(sum, [*byte; 8]));
    sums.iter().fold(sum, |sum, word| add(sum, word.to_le_bytes()))
}

const PREPARED: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_right_and_what_is_changed_is_damaged() {
        for size in [8, 9, 64, 65, 4096, 100_003] {
            let pictures = Pictures::new(size);
            let mut canvas = vec![0; size];
            for number in [0, 1, 2, 3, 77, HANDSHAKE] {
                pictures.draw(number, &mut canvas);
                assert_eq!(pictures.check(&canvas), Ok(number));
            }
            assert_eq!(pictures.check(&canvas[1..]), Err(Damaged));
            for at in [NUMBER_BYTES, size / 2, size - 1] {
                if NUMBER_BYTES <= at && at < size {
                    canvas[at] ^= 1;
                    assert_eq!(pictures.check(&canvas), Err(Damaged), "{size} bytes, byte {at}");
                    canvas[at] ^= 1;
                }
            }
        }
    }
}
