//! The records of an MCAP file, one behind the other, whatever is in them.

use std::io::{self, Read, Seek, SeekFrom};

/// The numbers of the records that are looked at.
pub(crate) mod op {
    pub(crate) const FOOTER: u8 = 0x02;
    pub(crate) const SCHEMA: u8 = 0x03;
    pub(crate) const CHANNEL: u8 = 0x04;
    pub(crate) const MESSAGE: u8 = 0x05;
    pub(crate) const CHUNK: u8 = 0x06;
    pub(crate) const STATISTICS: u8 = 0x0B;
    pub(crate) const METADATA: u8 = 0x0C;
    #[cfg(feature = "write")]
    pub(crate) const DATA_END: u8 = 0x0F;
}

/// What each record begins with: its number and the bytes of its body.
pub(crate) const HEAD_BYTES: u64 = 9;

/// Where a record is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) opcode: u8,
    /// Where it begins.
    pub(crate) start: u64,
    /// Bytes of its body.
    pub(crate) len: u64,
}

impl Frame {
    pub(crate) fn body(&self) -> u64 {
        self.start + HEAD_BYTES
    }

    pub(crate) fn end(&self) -> u64 {
        self.body() + self.len
    }
}

/// What comes next in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Record(Frame),
    /// The file ends as it should.
    End,
    /// What is whole ends at this byte, and more is missing.
    Truncated(u64),
}

/// Goes from record to record. A body that nobody reads is skipped.
pub(crate) struct Frames<R> {
    source: R,
    /// Where the source stands.
    position: u64,
    at: u64,
    len: u64,
    after_footer: bool,
}

impl<R: Read + Seek> Frames<R> {
    /// `None` if it does not begin as MCAP does.
    pub(crate) fn new(mut source: R) -> io::Result<Option<Self>> {
        let len = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        let mut magic = [0; mcap::MAGIC.len()];
        match source.read_exact(&mut magic) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            result => result?,
        }
        let at = magic.len() as u64;
        let is_mcap = magic == mcap::MAGIC;
        Ok(is_mcap.then_some(Self { source, position: at, at, len, after_footer: false }))
    }

    pub(crate) fn next(&mut self) -> io::Result<Step> {
        let left = self.len - self.at;
        if self.after_footer {
            let mut magic = [0; mcap::MAGIC.len()];
            let is_whole = magic.len() as u64 <= left && {
                self.read_at(self.at, &mut magic)?;
                magic == mcap::MAGIC
            };
            return Ok(if is_whole { Step::End } else { Step::Truncated(self.at) });
        }
        if left < HEAD_BYTES {
            return Ok(Step::Truncated(self.at));
        }
        let mut head = [0; HEAD_BYTES as usize];
        self.read_at(self.at, &mut head)?;
        let [opcode, len @ ..] = head;
        let frame = Frame { opcode, start: self.at, len: u64::from_le_bytes(len) };
        if left - HEAD_BYTES < frame.len {
            return Ok(Step::Truncated(self.at));
        }
        self.at = frame.end();
        self.after_footer = opcode == op::FOOTER;
        Ok(Step::Record(frame))
    }

    /// The first bytes of a record's body, as many as fit into `bytes`, which must not be longer.
    pub(crate) fn read_at(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.go_to(at)?;
        self.source.read_exact(bytes)?;
        self.position = at + bytes.len() as u64;
        Ok(())
    }

    /// So many bytes from there on, in memory that nobody has set to zero before.
    pub(crate) fn read(&mut self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        self.go_to(at)?;
        // With room for the look whether there is more, for which it would be made larger.
        let mut bytes = Vec::with_capacity(len + 64);
        self.source.by_ref().take(len as u64).read_to_end(&mut bytes)?;
        self.position = at + bytes.len() as u64;
        match bytes.len() == len {
            true => Ok(bytes),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn go_to(&mut self, at: u64) -> io::Result<()> {
        if at != self.position {
            // Within a buffer if there is one.
            match i64::try_from(i128::from(at) - i128::from(self.position)) {
                Ok(by) => self.source.seek_relative(by)?,
                Err(_) => drop(self.source.seek(SeekFrom::Start(at))?),
            }
            self.position = at;
        }
        Ok(())
    }
}
