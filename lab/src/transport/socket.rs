//! A Unix stream socket as a user would tune one: a sample is its length and its bytes, gathered by one system call into a
//! large send buffer; the receiver sleeps in `read`, which takes both at once where they fit.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use tsuji_platform::socket::set_send_buffer;

use super::peer::{Line, Listener, Talker};
use super::{End, LOOK_AGAIN};

/// What is asked of the kernel for samples on their way. It gives as much as `net.core.wmem_max` allows.
const SEND_BUFFER_BYTES: usize = 4 << 20;

/// A reader that takes nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(10);

fn path(line: &Line) -> PathBuf {
    line.folder.join(format!("{}.socket", line.name))
}

fn said(error: io::Error) -> String {
    format!("Unix socket: {error}")
}

/// The end that listens may come later. What is sent before that goes nowhere.
pub(super) fn talker(line: &Line) -> Result<Talking, String> {
    let path = path(line);
    let door = UnixListener::bind(&path)
        .map_err(|error| format!("Unix socket: bind {}: {error}", path.display()))?;
    door.set_nonblocking(true).map_err(said)?;
    Ok(Talking { door, stream: None })
}

/// Has one reader.
pub(super) struct Talking {
    door: UnixListener,
    stream: Option<UnixStream>,
}

impl Talker for Talking {
    fn is_met(&mut self) -> Result<bool, String> {
        if self.stream.is_none() {
            let stream = match self.door.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(said(error)),
            };
            set_send_buffer(&stream, SEND_BUFFER_BYTES).map_err(said)?;
            stream.set_write_timeout(Some(PATIENCE)).map_err(said)?;
            self.stream = Some(stream);
        }
        Ok(true)
    }

    fn send(&mut self, sample: &[u8]) -> Result<(), String> {
        self.is_met()?;
        let Some(stream) = &mut self.stream else { return Ok(()) };
        write(stream, sample).map_err(|error| {
            // What follows would be read as the rest of this one.
            self.stream = None;
            said(error)
        })
    }
}

/// Writes a sample behind its length, a [`Length`].
fn write(stream: &mut impl Write, sample: &[u8]) -> io::Result<()> {
    let length = (sample.len() as u64).to_le_bytes();
    let mut parts = [IoSlice::new(&length), IoSlice::new(sample)];
    let mut left = &mut parts[..];
    while !left.is_empty() {
        match stream.write_vectored(left) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn listener(line: &Line) -> Result<Listening, String> {
    let path = path(line);
    let stream = UnixStream::connect(&path)
        .map_err(|error| format!("Unix socket: connect to {}: {error}", path.display()))?;
    stream.set_read_timeout(Some(LOOK_AGAIN)).map_err(said)?;
    Ok(Listening { samples: Samples::of(stream, line.bytes_max) })
}

pub(super) struct Listening {
    samples: Samples<UnixStream>,
}

impl Listener for Listening {
    fn run(mut self: Box<Self>, end: &End, heard: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        while !end.is_over() {
            match self.samples.next() {
                Ok(Some(sample)) => heard(sample),
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                Err(error) => return Err(said(error)),
            }
        }
        Ok(())
    }
}

/// Bytes before a sample that hold its length, little endian.
type Length = [u8; 8];

const LENGTH_BYTES: usize = size_of::<Length>();

/// So much is read at once at first. Where a sample is longer, the buffer grows to hold it.
const BUFFER_BYTES: usize = 64 << 10;

/// The samples in a stream of bytes.
struct Samples<R> {
    stream: R,
    bytes_max: usize,
    buffer: Vec<u8>,
    /// What was read and not handed out is between these two.
    begin: usize,
    end: usize,
}

impl<R: Read> Samples<R> {
    fn of(stream: R, bytes_max: usize) -> Self {
        Self { stream, bytes_max, buffer: vec![0; BUFFER_BYTES], begin: 0, end: 0 }
    }

    /// The next sample; nothing where the stream ended behind the last one. After an error of the stream, such as a
    /// time-out, it can be called again, and nothing is missing.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let length = loop {
            let length = self.length()?;
            let needed = LENGTH_BYTES + length.unwrap_or_default();
            match length {
                Some(length) if needed <= self.end - self.begin => break length,
                _ if self.fill(needed)? != 0 => (),
                _ if self.begin == self.end => return Ok(None),
                _ => return Err(io::Error::new(ErrorKind::UnexpectedEof, "ended in a sample")),
            }
        };
        let from = self.begin + LENGTH_BYTES;
        self.begin = from + length;
        Ok(Some(&self.buffer[from..self.begin]))
    }

    /// The length of the sample that comes first, once that has been read.
    fn length(&self) -> io::Result<Option<usize>> {
        let Some(length) = self.buffer[self.begin..self.end].first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u64::from_le_bytes(*length);
        let allowed = usize::try_from(length).ok().filter(|it| *it <= self.bytes_max);
        let refused = || {
            let why = format!("a sample of {length} bytes; allowed are {}", self.bytes_max);
            io::Error::new(ErrorKind::InvalidData, why)
        };
        allowed.map(Some).ok_or_else(refused)
    }

    /// Reads what there is into a buffer with room for `needed` bytes from the begin on. 0 is the end of the stream.
    fn fill(&mut self, needed: usize) -> io::Result<usize> {
        if self.begin == self.end || self.buffer.len() < self.begin + needed {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
        loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
                Ok(read) => {
                    self.end += read;
                    return Ok(read);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A stream that comes in these pieces, with a time-out where one is empty.
    struct Pieces(VecDeque<Vec<u8>>);

    impl Pieces {
        fn of(bytes: &[u8], size: usize) -> Self {
            Self(bytes.chunks(size).flat_map(|it| [it.to_vec(), Vec::new()]).collect())
        }
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(mut piece) = self.0.pop_front() else { return Ok(0) };
            if piece.is_empty() {
                return Err(ErrorKind::WouldBlock.into());
            }
            let read = (&piece[..]).read(buffer)?;
            if read < piece.len() {
                self.0.push_front(piece.split_off(read));
            }
            Ok(read)
        }
    }

    const BYTES_MAX: usize = 3 * BUFFER_BYTES;

    /// What comes out of these bytes in pieces of `size`, and how it ends.
    fn check(bytes: &[u8], size: usize, expect: &[Vec<u8>], expect_end: Result<(), &str>) {
        let mut samples = Samples::of(Pieces::of(bytes, size), BYTES_MAX);
        let mut found = Vec::new();
        let end = loop {
            match samples.next() {
                Ok(Some(sample)) => found.push(sample.to_vec()),
                Ok(None) => break Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                Err(error) => break Err(error.to_string()),
            }
        };
        assert!(found == expect, "{} samples in pieces of {size}", found.len());
        assert_eq!(end, expect_end.map_err(str::to_owned));
    }

    fn written(samples: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        samples.iter().for_each(|it| write(&mut bytes, it).unwrap());
        bytes
    }

    #[test]
    fn samples_come_out_whole_however_the_stream_is_cut() {
        let samples = [vec![1; 5], vec![], vec![2; 1000], vec![3; 7]];
        for size in [1, 3, 8, 9, 13, 500, 5000] {
            check(&written(&samples), size, &samples, Ok(()));
        }
    }

    #[test]
    fn a_sample_longer_than_the_buffer_makes_it_grow() {
        let samples = [vec![1; 60_000], vec![2; BYTES_MAX], vec![3; 10], vec![4; BUFFER_BYTES]];
        for size in [1000, BUFFER_BYTES, usize::MAX] {
            check(&written(&samples), size, &samples, Ok(()));
        }
    }

    #[test]
    fn a_stream_that_ends_in_a_sample_is_an_error_and_what_was_whole_is_handed_out() {
        let samples = [vec![1; 5], vec![2; 100]];
        let bytes = written(&samples);
        for missing in [1, 99, 100, 101, 107] {
            let bytes = &bytes[..bytes.len() - missing];
            check(bytes, 64, &samples[..1], Err("ended in a sample"));
        }
    }

    #[test]
    fn a_length_that_is_not_allowed_is_refused() {
        let why = format!("a sample of {} bytes; allowed are {BYTES_MAX}", BYTES_MAX + 1);
        check(&written(&[vec![0; BYTES_MAX + 1]]), 64, &[], Err(&why));
        let why = format!("a sample of {} bytes; allowed are {BYTES_MAX}", u64::MAX);
        check(&[0xff; 8], 64, &[], Err(&why));
    }

    #[test]
    fn a_stream_that_takes_little_at_once_gets_all() {
        struct Narrow(Vec<u8>);
        impl Write for Narrow {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let taken = bytes.len().min(3);
                self.0.extend(&bytes[..taken]);
                Ok(taken)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let sample: Vec<u8> = (0..100).collect();
        let mut narrow = Narrow(Vec::new());
        write(&mut narrow, &sample).unwrap();
        check(&narrow.0, 64, &[sample], Ok(()));
    }

    #[test]
    fn a_reader_that_has_gone_is_an_error_and_one_that_has_not_come_is_none() {
        let folder = std::env::temp_dir().join(format!("tsuji-lab-socket-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let line = Line {
            folder: folder.clone(),
            name: "gone".to_owned(),
            type_name: "",
            qos: tsuji::Qos::DEFAULT,
            flow: super::super::Flow::Paced,
            bytes_max: 100,
            receivers: 1,
        };
        let mut talking = talker(&line).unwrap();
        assert_eq!(talking.send(&[1; 10]), Ok(()));
        assert_eq!(talking.is_met(), Ok(false));
        let mut listening = listener(&line).unwrap();
        assert_eq!(talking.is_met(), Ok(true));
        assert_eq!(talking.send(&[2; 100]), Ok(()));
        assert_eq!(listening.samples.next().unwrap(), Some(&[2; 100][..]));
        drop(listening);
        assert!(talking.send(&[3; 10]).unwrap_err().contains("Broken pipe"));
        assert!(listener(&Line { name: "nobody".to_owned(), ..line }).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
