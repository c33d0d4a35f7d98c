//! The few messages, by hand, each with a number in it.

use ros2_client::{Message, MessageTypeName};
use serde::{Deserialize, Serialize};

/// A message that carries a number from one end to the other.
pub(crate) trait Numbered: Message + Clone + 'static {
    /// Package and name.
    const TYPE: (&'static str, &'static str);

    /// The message of that number, with `bytes` bytes if its size can be chosen.
    fn numbered(number: u64, bytes: Option<usize>) -> Self;

    /// None if somebody else made it.
    fn number(&self) -> Option<u64>;

    /// What `--bytes` chose.
    fn bytes(&self) -> usize;

    /// Whether what surrounds the number is what [`numbered`](Self::numbered) put there.
    fn is_whole(&self, number: u64) -> bool;

    fn type_name() -> MessageTypeName {
        MessageTypeName::new(Self::TYPE.0, Self::TYPE.1)
    }
}

/// `hello N`, and the number in it.
fn hello(number: u64) -> String {
    format!("hello {number}")
}

fn number_of(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("hello ")?;
    rest.split(' ').next()?.parse().ok()
}

/// `std_msgs/msg/String`: `hello N`, then a space and as many `x` as are needed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Text {
    data: String,
}

impl Message for Text {}

impl Numbered for Text {
    const TYPE: (&'static str, &'static str) = ("std_msgs", "String");

    fn numbered(number: u64, bytes: Option<usize>) -> Self {
        let mut data = hello(number);
        if let Some(bytes) = bytes.filter(|it| *it > data.len()) {
            data.push(' ');
            data.extend(std::iter::repeat_n('x', bytes - data.len()));
        }
        Self { data }
    }

    fn number(&self) -> Option<u64> {
        number_of(&self.data)
    }

    fn bytes(&self) -> usize {
        self.data.len()
    }

    fn is_whole(&self, number: u64) -> bool {
        // Whoever greets otherwise than with `x` is not one of us, and is right.
        let rest = self.data.strip_prefix(&hello(number)).and_then(|it| it.strip_prefix(" x"));
        rest.is_none_or(|it| it.bytes().all(|it| it == b'x'))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Vector3 {
    x: f64,
    y: f64,
    z: f64,
}

/// `geometry_msgs/msg/Twist`: the number is the linear x.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Twist {
    linear: Vector3,
    angular: Vector3,
}

impl Message for Twist {}

impl Numbered for Twist {
    const TYPE: (&'static str, &'static str) = ("geometry_msgs", "Twist");

    fn numbered(number: u64, _: Option<usize>) -> Self {
        let zero = Vector3 { x: 0.0, y: 0.0, z: 0.0 };
        Self { linear: Vector3 { x: number as f64, ..zero }, angular: zero }
    }

    fn number(&self) -> Option<u64> {
        let x = self.linear.x;
        (x >= 1.0 && x.fract() == 0.0).then_some(x as u64)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }

    fn is_whole(&self, _: u64) -> bool {
        let others = [self.linear.y, self.linear.z, self.angular.x, self.angular.y, self.angular.z];
        others.iter().all(|it| *it == 0.0)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Time {
    sec: i32,
    nanosec: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Header {
    stamp: Time,
    frame_id: String,
}

/// `sensor_msgs/msg/Image`: `hello N` is the frame, and each byte of the data is the number's lowest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Image {
    header: Header,
    height: u32,
    width: u32,
    encoding: String,
    is_bigendian: u8,
    step: u32,
    // As a sequence, serde takes every byte for itself.
    #[serde(with = "serde_bytes")]
    data: Vec<u8>,
}

/// 640×480 in three colours.
const IMAGE_BYTES: usize = 921_600;
const IMAGE_STEP: usize = 1920;

impl Message for Image {}

impl Numbered for Image {
    const TYPE: (&'static str, &'static str) = ("sensor_msgs", "Image");

    fn numbered(number: u64, bytes: Option<usize>) -> Self {
        let bytes = bytes.unwrap_or(IMAGE_BYTES);
        // What does not fill rows of 640 pixels is one row of grey.
        let (encoding, width, step) = match bytes.is_multiple_of(IMAGE_STEP) {
            true => ("rgb8", IMAGE_STEP / 3, IMAGE_STEP),
            false => ("mono8", bytes, bytes),
        };
        Self {
            header: Header { stamp: Time { sec: 0, nanosec: 0 }, frame_id: hello(number) },
            height: (bytes / step) as u32,
            width: width as u32,
            encoding: encoding.to_owned(),
            is_bigendian: 0,
            step: step as u32,
            data: vec![number as u8; bytes],
        }
    }

    fn number(&self) -> Option<u64> {
        number_of(&self.header.frame_id)
    }

    fn bytes(&self) -> usize {
        self.data.len()
    }

    fn is_whole(&self, number: u64) -> bool {
        let size = u64::from(self.height) * u64::from(self.step);
        size == self.data.len() as u64 && self.data.iter().all(|it| *it == number as u8)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AddTwoIntsRequest {
    pub(crate) a: i64,
    pub(crate) b: i64,
}

impl Message for AddTwoIntsRequest {}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AddTwoIntsResponse {
    pub(crate) sum: i64,
}

impl Message for AddTwoIntsResponse {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<M: Numbered>(number: u64, bytes: Option<usize>, expect: usize) {
        let message = M::numbered(number, bytes);
        assert_eq!((message.number(), message.bytes()), (Some(number), expect));
        assert!(message.is_whole(number));
    }

    #[test]
    fn messages_carry_their_number_and_size() {
        check::<Text>(1, None, 7);
        check::<Text>(12, Some(0), 8);
        check::<Text>(1, Some(8), 8);
        check::<Text>(1, Some(100_000), 100_000);
        check::<Twist>(7, Some(1), 48);
        check::<Image>(300, None, IMAGE_BYTES);
        check::<Image>(300, Some(1921), 1921);
        check::<Image>(1, Some(0), 0);
    }

    #[test]
    fn what_others_made_has_no_number() {
        assert_eq!(number_of("Hello World: 1"), None);
        assert_eq!(number_of("hello"), None);
        assert_eq!(number_of("hello x1"), None);
    }
}
