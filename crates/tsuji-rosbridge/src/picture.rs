//! JSON in the pixels of a picture, as rosbridge's compression `png` has it.

use std::io::Cursor;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::refusal::Refusal;

/// Appends a message of JSON as an operation `png` of JSON.
///
/// Three bytes are a pixel, the picture is about a square, and its end is filled with line breaks, which JSON passes over.
/// roslib in a browser takes each byte for a character, so the JSON is written in ASCII.
pub fn write_png(out: &mut Vec<u8>, message: &str) {
    const PIXEL: usize = 3;
    let message = crate::json::in_ascii(message);
    let pixels = message.len().div_ceil(PIXEL).max(1);
    let width = pixels.isqrt().max(1);
    let height = pixels.div_ceil(width);
    let mut picture = message.into_owned().into_bytes();
    picture.resize(width * height * PIXEL, b'\n');
    // No memory holds a text of which this is not so.
    let (Ok(width), Ok(height)) = (u32::try_from(width), u32::try_from(height)) else { return };
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let written = encoder.write_header().and_then(|mut it| it.write_image_data(&picture));
    // Memory takes whatever is written, and the picture has as many bytes as it says.
    debug_assert!(written.is_ok());
    out.extend_from_slice(b"{\"op\":\"png\",\"data\":\"");
    out.extend_from_slice(BASE64_STANDARD.encode(&file).as_bytes());
    out.extend_from_slice(b"\"}");
}

/// The message that the `data` of an operation `png` is. A picture of more than `message_bytes_max` bytes is refused before
/// it is unpacked.
pub fn read_png(data: &str, message_bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    let refuse = |found: String, expected: &'static str| {
        Err(Refusal::new("png", None, Some("data"), found, expected))
    };
    let Ok(file) = BASE64_STANDARD.decode(data) else {
        return refuse("no base64".to_owned(), "base64");
    };
    let limits = png::Limits { bytes: message_bytes_max };
    let decoder = png::Decoder::new_with_limits(Cursor::new(file), limits);
    let mut reader = match decoder.read_info() {
        Ok(reader) => reader,
        Err(error) => return refuse(error.to_string(), "a picture"),
    };
    let header = reader.info();
    if (header.color_type, header.bit_depth) != (png::ColorType::Rgb, png::BitDepth::Eight) {
        let found = format!("{:?} of {:?}", header.color_type, header.bit_depth);
        return refuse(found, "a picture of 24 bits");
    }
    let size = reader.output_buffer_size().filter(|&it| it <= message_bytes_max);
    let Some(size) = size else {
        return refuse("a larger picture".to_owned(), "a picture no larger than a message may be");
    };
    let mut message = vec![0; size];
    if let Err(error) = reader.next_frame(&mut message) {
        return refuse(error.to_string(), "a whole picture");
    }
    message.truncate(message.trim_ascii_end().len());
    Ok(message)
}
