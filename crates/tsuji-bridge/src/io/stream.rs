//! The bytes of a connection, plain or through TLS.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;

use mio::net::TcpStream;
use rustls::{ServerConnection, Writer};

/// A socket that never blocks.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

/// A socket through TLS.
///
/// Not by rustls' own `Stream`: there, what writes or flushes may read too, and the system tells of what has come only once. What was
/// read so would wait until more comes. Here, only reading reads.
#[derive(Debug)]
pub(super) struct TlsStream {
    connection: ServerConnection,
    socket: TcpStream,
}

impl TlsStream {
    pub(super) fn new(connection: ServerConnection, socket: TcpStream) -> Self {
        Self { connection, socket }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            // A handshake goes on only if what it answers is sent.
            match self.send() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            let count = self.connection.read_tls(&mut self.socket)?;
            let processed = self.connection.process_new_packets();
            if let Err(error) = processed {
                // The other side is told why, if it listens.
                let _ = self.send();
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            if count == 0 && self.connection.is_handshaking() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends what TLS has ready, until the socket takes no more.
    fn send(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            if self.connection.write_tls(&mut self.socket)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Lets TLS take some, once the socket has taken what it took before.
    fn write(
        &mut self,
        take: impl FnOnce(&mut Writer<'_>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.send()?;
        let taken = take(&mut self.connection.writer())?;
        // An error comes again with what is sent next.
        let _ = self.send();
        Ok(taken)
    }
}

impl Stream {
    /// What is waited for.
    pub(super) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &mut stream.socket,
        }
    }

    /// Says that nothing more will be sent. What was sent before still arrives.
    pub(super) fn finish(&mut self) {
        if let Self::Tls(stream) = self {
            stream.connection.send_close_notify();
            // Whoever reads no more does not need to know.
            let _ = stream.send();
        }
        let _ = self.socket().shutdown(Shutdown::Write);
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(|it| it.write(bytes)),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write_vectored(slices),
            Self::Tls(stream) => stream.write(|it| it.write_vectored(slices)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.send(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use rustls::pki_types::{PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};

    use super::*;

    /// A server's end, and a client with its socket, which blocks.
    fn connected() -> (Stream, ClientConnection, std::net::TcpStream) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let connection = ServerConnection::new(Arc::new(server)).unwrap();
        let stream = TlsStream::new(connection, TcpStream::from_std(accepted));
        let name = ServerName::try_from("localhost").unwrap();
        let client = ClientConnection::new(Arc::new(client), name).unwrap();
        (Stream::Tls(Box::new(stream)), client, socket)
    }

    fn send(client: &mut ClientConnection, socket: &mut std::net::TcpStream) {
        while client.wants_write() {
            client.write_tls(socket).unwrap();
        }
    }

    /// Waits until something has come that nobody has read.
    fn wait_for_more(stream: &mut Stream) {
        while stream.socket().peek(&mut [0]).is_err() {
            std::thread::yield_now();
        }
    }

    fn is_blocked<T>(done: io::Result<T>) -> bool {
        done.is_err_and(|it| it.kind() == io::ErrorKind::WouldBlock)
    }

    /// As far as the client may send a request, which the server has not been told of.
    fn shaken() -> (Stream, ClientConnection, std::net::TcpStream) {
        let (mut stream, mut client, mut socket) = connected();
        send(&mut client, &mut socket);
        wait_for_more(&mut stream);
        assert!(is_blocked(stream.read(&mut [0; 16])), "it has answered and waits");
        while client.is_handshaking() {
            client.read_tls(&mut socket).unwrap();
            client.process_new_packets().unwrap();
        }
        client.writer().write_all(b"request").unwrap();
        (stream, client, socket)
    }

    /// The end of the handshake and the request come between reading and flushing.
    #[test]
    fn what_comes_before_a_flush_is_left_to_be_read() {
        let (mut stream, mut client, mut socket) = shaken();
        send(&mut client, &mut socket);
        wait_for_more(&mut stream);
        stream.flush().unwrap();
        assert!(stream.socket().peek(&mut [0]).is_ok(), "the system tells of it");
        let mut read = [0; 16];
        assert_eq!(stream.read(&mut read).unwrap(), 7);
        assert_eq!(&read[..7], b"request");
        assert!(is_blocked(stream.read(&mut read)));
    }

    /// More than a socket takes is written to somebody who writes and does not read.
    #[test]
    fn a_socket_that_is_full_is_not_read_by_who_writes() {
        let (mut stream, mut client, mut socket) = shaken();
        send(&mut client, &mut socket);
        wait_for_more(&mut stream);
        let mut read = [0; 16];
        assert_eq!(stream.read(&mut read).unwrap(), 7);
        while !is_blocked(stream.write(&[7; 1 << 16])) {}
        client.writer().write_all(b"more").unwrap();
        send(&mut client, &mut socket);
        wait_for_more(&mut stream);
        while !is_blocked(stream.write(&[7; 1 << 16])) {}
        let _ = stream.flush();
        assert!(stream.socket().peek(&mut [0]).is_ok(), "the system tells of it");
        assert_eq!(stream.read(&mut read).unwrap(), 4);
        assert_eq!(&read[..4], b"more");
    }

    #[test]
    fn an_end_is_told_as_what_it_is() {
        let (mut stream, mut client, mut socket) = shaken();
        client.send_close_notify();
        send(&mut client, &mut socket);
        drop(socket);
        let mut read = [0; 16];
        while is_blocked(stream.read(&mut read)) {}
        loop {
            match stream.read(&mut read) {
                Ok(count) => break assert_eq!(count, 0),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        let (mut stream, _, socket) = connected();
        drop(socket);
        let ended = loop {
            match stream.read(&mut read) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                ended => break ended,
            }
        };
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
