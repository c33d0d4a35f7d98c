//! Connections of TCP whose every wait ends at one time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// A blocking connection on which reading and writing fail with [`io::ErrorKind::TimedOut`] from a deadline on.
#[derive(Debug)]
pub struct DeadlineStream {
    stream: TcpStream,
    deadline: Instant,
}

impl DeadlineStream {
    /// Connects to a host by its name or address within `connects`, in which each of its addresses has its part.
    /// Everything together, this included, takes at most `within`, but for resolving the name.
    ///
    /// # Errors
    ///
    /// Where the name has no address, or nobody takes the connection in time.
    pub fn connect(
        host: &str,
        port: u16,
        connects: Duration,
        within: Duration,
    ) -> io::Result<Self> {
        let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
        let start = Instant::now();
        let (connected_by, deadline) = (start + connects.min(within), start + within);
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for (at, address) in addresses.iter().enumerate() {
            let Ok(left) = left_until(connected_by) else { break };
            // One that swallows what is sent there must not take the time of the others.
            let part = left / u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
            match TcpStream::connect_timeout(address, part.max(Duration::from_millis(1))) {
                Ok(stream) => return Ok(Self { stream, deadline }),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Waits on this connection for at most so long in all.
    ///
    /// # Errors
    ///
    /// Where it cannot be made one that blocks.
    pub fn new(stream: TcpStream, within: Duration) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        Ok(Self { stream, deadline: Instant::now() + within })
    }

    /// The connection itself.
    pub fn get_ref(&self) -> &TcpStream {
        &self.stream
    }

    /// The connection itself, without the deadline; it may still have the time-outs of the last wait.
    pub fn into_inner(self) -> TcpStream {
        self.stream
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        until_done(|| {
            self.stream.set_read_timeout(Some(left_until(self.deadline)?))?;
            self.stream.read(buffer)
        })
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        until_done(|| {
            self.stream.set_write_timeout(Some(left_until(self.deadline)?))?;
            self.stream.write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

/// Does it again where a signal came between. A time-out of a socket is told as one that would block.
fn until_done(mut wait: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            done => return done,
        }
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn whoever_says_nothing_or_takes_nothing_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut silent = DeadlineStream::new(stream, SHORT).unwrap();
        let error = silent.read(&mut [0; 4]).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (io::ErrorKind::TimedOut, "it does not answer in time".to_owned())
        );
        // It is over for all that follows.
        assert_eq!(silent.write(b"x").unwrap_err().kind(), io::ErrorKind::TimedOut);
        let mut full = DeadlineStream::new(silent.into_inner(), SHORT).unwrap();
        let error = full.write_all(&vec![0; 64 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_port_that_nobody_listens_at_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // Nobody else is given it while this closed connection is remembered.
        let held = TcpStream::connect(("127.0.0.1", port)).unwrap();
        drop((listener.accept().unwrap(), held, listener));
        let error = DeadlineStream::connect("127.0.0.1", port, LONG, LONG).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        // An address that is none.
        assert!(DeadlineStream::connect("no such host", port, LONG, LONG).is_err());
    }
}
