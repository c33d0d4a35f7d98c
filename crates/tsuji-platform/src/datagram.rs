//! Datagrams in batches: many are taken by one call, and what the kernel dropped is known.

use std::io;
use std::mem::{size_of, size_of_val};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// The longest datagram that UDP carries is shorter.
pub const DATAGRAM_BYTES_MAX: usize = 65_536;

/// So many are taken by one call at most.
pub const BATCH_MAX: usize = 32;

/// Room for what one call takes. Pages of it are used only where datagrams are long.
#[derive(Debug)]
pub struct Batch {
    room: Vec<u8>,
    /// How long each is that was taken, and who sent it.
    taken: Vec<(usize, SocketAddr)>,
}

impl Default for Batch {
    fn default() -> Self {
        let room = vec![0; BATCH_MAX * DATAGRAM_BYTES_MAX];
        Self { room, taken: Vec::with_capacity(BATCH_MAX) }
    }
}

impl Batch {
    /// Takes what waits at a UDP socket, in place of what was taken before; how many datagrams that were.
    /// `WouldBlock` says that none waits. Never blocks.
    pub fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        self.taken.clear();
        // SAFETY: all bytes zero are a valid value: of no family.
        let mut names: [libc::sockaddr_storage; BATCH_MAX] = unsafe { std::mem::zeroed() };
        let mut parts = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH_MAX];
        // SAFETY: as above: no name, no parts, no control messages.
        let mut heads: [libc::mmsghdr; BATCH_MAX] = unsafe { std::mem::zeroed() };
        let rooms = self.room.chunks_exact_mut(DATAGRAM_BYTES_MAX);
        for (((head, part), name), room) in
            heads.iter_mut().zip(&mut parts).zip(&mut names).zip(rooms)
        {
            *part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            head.msg_hdr.msg_name = ptr::from_mut(name).cast();
            head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            head.msg_hdr.msg_iov = part;
            head.msg_hdr.msg_iovlen = 1;
        }
        let count = loop {
            // SAFETY: each head names a part of `room` of its own, a name of its own, both writable and of the
            // lengths that it says, and all live until the call is over. No head has a timeout or control messages.
            let count = unsafe {
                libc::recvmmsg(
                    socket.as_fd().as_raw_fd(),
                    heads.as_mut_ptr(),
                    BATCH_MAX as libc::c_uint,
                    libc::MSG_DONTWAIT,
                    ptr::null_mut(),
                )
            };
            match usize::try_from(count) {
                Ok(count) => break count,
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        };
        for (head, name) in heads.iter().zip(&names).take(count) {
            let bytes = head.msg_len as usize;
            self.taken.push((bytes.min(DATAGRAM_BYTES_MAX), address(name)));
        }
        Ok(count)
    }

    /// A datagram that the last call took, and who sent it.
    pub fn datagram(&self, at: usize) -> Option<(&[u8], SocketAddr)> {
        let (bytes, from) = self.taken.get(at)?;
        let begin = at * DATAGRAM_BYTES_MAX;
        Some((&self.room[begin..begin + bytes], *from))
    }
}

/// Who sent it. What is neither IPv4 nor IPv6 is nobody.
fn address(name: &libc::sockaddr_storage) -> SocketAddr {
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says what it is, and a storage is as long and aligned for every kind.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in>() };
            let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            SocketAddr::V4(SocketAddrV4::new(address, u16::from_be(name.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in6>() };
            let address = Ipv6Addr::from(name.sin6_addr.s6_addr);
            let port = u16::from_be(name.sin6_port);
            SocketAddr::V6(SocketAddrV6::new(address, port, name.sin6_flowinfo, name.sin6_scope_id))
        }
        _ => SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)),
    }
}

/// Lets a socket keep `bytes` of what came and was not taken, the kernel's own bookkeeping not counted. What it keeps now:
/// less where `net.core.rmem_max` is less and this process may not exceed it.
pub fn set_receive_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<usize> {
    use rustix::net::sockopt;
    // What may exceed the limit of the system is `CAP_NET_ADMIN`.
    if sockopt::set_socket_recv_buffer_size_force(socket, bytes).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, bytes)?;
    }
    // The kernel doubles what was asked for, to have room for its bookkeeping, and tells the double.
    Ok(sockopt::socket_recv_buffer_size(socket)? / 2)
}

/// How many datagrams the kernel has dropped at a socket since it was made, since there was no room or the checksum was wrong. The
/// counter begins anew after 2^32. `Unsupported` under an emulator that does not know the option.
///
/// A control message with each datagram (`SO_RXQ_OVFL`) tells the same, but of the last drops only when one more datagram comes.
pub fn dropped(socket: &impl AsFd) -> io::Result<u32> {
    let mut counters = [0_u32; libc::SK_MEMINFO_DROPS as usize + 1];
    let mut len = size_of_val(&counters) as libc::socklen_t;
    // SAFETY: `counters` and `len` are valid for writes, and the kernel writes no more than `len` says.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            counters.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // An emulator that does not know the option answers with one number.
    if (len as usize) < size_of_val(&counters) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(counters[libc::SK_MEMINFO_DROPS as usize])
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::UdpSocket;

    use super::*;
    use crate::poll::Poll;

    fn pair(any: &str) -> (UdpSocket, UdpSocket) {
        let (one, two) = (UdpSocket::bind(any).unwrap(), UdpSocket::bind(any).unwrap());
        one.connect(two.local_addr().unwrap()).unwrap();
        (one, two)
    }

    #[test]
    fn many_come_at_once_with_their_lengths_and_senders() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let (one, two) = pair(any);
            let lengths = [0, 1, 1400, 60_000];
            for len in lengths {
                one.send(&vec![len as u8; len]).unwrap();
            }
            let mut batch = Batch::default();
            let mut heard = Vec::new();
            let poll = Poll::new().unwrap();
            poll.add(&two, 1).unwrap();
            while heard.len() < lengths.len() {
                // The runner's watchdog ends it.
                poll.wait(None, &mut Vec::new()).unwrap();
                for at in 0..batch.receive(&two).unwrap() {
                    let (bytes, from) = batch.datagram(at).unwrap();
                    assert!(bytes.iter().all(|it| *it == bytes.len() as u8));
                    assert_eq!(from, one.local_addr().unwrap());
                    heard.push(bytes.len());
                }
            }
            assert_eq!(heard, lengths);
            let none = batch.receive(&two).unwrap_err();
            assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
            assert!(batch.datagram(0).is_none());
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let (one, two) = pair("127.0.0.1:0");
        let small = set_receive_buffer(&two, 1).unwrap();
        assert!(small < 100_000, "{small}");
        match dropped(&two) {
            Ok(dropped) => assert_eq!(dropped, 0),
            Err(error) => {
                let _ = writeln!(io::stderr(), "skipped: {error}");
                return;
            }
        }
        const SENT: u32 = 1000;
        for _ in 0..SENT {
            one.send(&[7; 1000]).unwrap();
        }
        let mut batch = Batch::default();
        let mut came = 0;
        loop {
            match batch.receive(&two) {
                Ok(count) => came += count as u32,
                Err(_) if came + dropped(&two).unwrap() == SENT => break,
                // The runner's watchdog ends it.
                Err(_) => std::thread::yield_now(),
            }
        }
        assert!(0 < came && came < SENT, "{came}");
        assert!(small < set_receive_buffer(&two, 100_000).unwrap());
    }
}
