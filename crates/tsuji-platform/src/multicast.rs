//! Datagrams to a multicast group of IPv4.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netdevice, recvfrom,
    sendto, socket_with, sockopt,
};

use crate::fork::Unshared;
use crate::network::interfaces;

/// Hears what is sent to a group at a port, and sends to it. No call blocks. Gone in a forked child.
///
/// The port is shared with whoever shares it too, by `SO_REUSEADDR` or, of the same user, by
/// `SO_REUSEPORT`: each of them gets each datagram. What is not sent to the group, and what comes by
/// another interface, is not heard.
#[derive(Debug)]
pub struct GroupSocket {
    fd: Unshared,
    group: SocketAddrV4,
    /// Where it is a member: the number of the interface, and its address.
    members: Vec<(u32, Ipv4Addr)>,
}

/// A datagram that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its length in bytes. What did not fit the buffer is lost.
    pub bytes: usize,
    /// Who sent it.
    pub from: SocketAddrV4,
}

impl GroupSocket {
    /// Joins `group` on the interfaces of these names, or on as many as the system lets one socket
    /// (`net.ipv4.igmp_max_memberships`, usually 20). `AddrInUse` says that somebody has the port
    /// and does not share it. What is sent goes over at most `hops_max` routers less one.
    pub fn join(group: SocketAddrV4, names: &[String], hops_max: u8) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = Unshared::new(socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?);
        sockopt::set_socket_reuseaddr(&fd, true)?;
        sockopt::set_socket_reuseport(&fd, true)?;
        hear_own_memberships_only(&fd)?;
        sockopt::set_ip_multicast_loop(&fd, true)?;
        sockopt::set_ip_multicast_ttl(&fd, hops_max.into())?;
        // At the group's address nothing else is heard.
        bind(&fd, &group)?;
        let known = interfaces()?;
        let mut members = Vec::new();
        let mut result = Err(io::Error::from(Errno::NODEV));
        for interface in known.iter().filter(|it| names.contains(&it.name)) {
            let index = netdevice::name_to_index(&fd, &interface.name)?;
            let address = interface.addresses.iter().find_map(|it| match it {
                IpAddr::V4(address) => Some(*address),
                IpAddr::V6(_) => None,
            });
            let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED);
            match sockopt::set_ip_add_membership_with_ifindex(&fd, group.ip(), &address, index) {
                Ok(()) => members.push((index, address)),
                Err(error) => result = Err(error.into()),
            }
        }
        match members.is_empty() {
            true => result,
            false => Ok(Self { fd, group, members }),
        }
    }

    /// Takes one datagram into `buffer`; `None` when there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Heard>> {
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        let (_, bytes, from) = match recvfrom(&self.fd, buffer, flags) {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let from = from.and_then(|it| SocketAddrV4::try_from(it).ok());
        let from = from.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        Ok(Some(Heard { bytes, from }))
    }

    /// Sends a datagram to the group, on each interface where this is a member. Fails if it went out
    /// on none.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut result = Ok(());
        let mut is_sent = false;
        for (index, address) in &self.members {
            let group = self.group.ip();
            let sent = sockopt::set_ip_multicast_if_with_ifindex(&self.fd, group, address, *index)
                .and_then(|()| sendto(&self.fd, bytes, SendFlags::DONTWAIT, &self.group));
            match sent {
                Ok(_) => is_sent = true,
                Err(error) => result = Err(error.into()),
            }
        }
        if is_sent { Ok(()) } else { result }
    }
}

impl AsFd for GroupSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Else it would hear the group wherever any socket of the system has joined it.
fn hear_own_memberships_only(fd: &Unshared) -> io::Result<()> {
    let no: libc::c_int = 0;
    // SAFETY: `no` is valid for reads and of the size that the option has.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_MULTICAST_ALL,
            (&raw const no).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match io::Error::last_os_error() {
        _ if result == 0 => Ok(()),
        // An emulator may not have it: then groups are heard too that others of this host have joined.
        error if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::poll::Poll;
    use std::io::Write as _;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

    /// On loopback, at a port that was free.
    fn join(port: u16) -> io::Result<GroupSocket> {
        GroupSocket::join(SocketAddrV4::new(GROUP, port), &["lo".to_owned()], 1)
    }

    /// qemu-user hands on the number of an interface in the wrong order of bytes. What runs under it says
    /// so in this variable.
    fn is_emulated() -> bool {
        let is_emulated = std::env::var_os("TSUJI_TEST_RUNNER").is_some();
        if is_emulated {
            let _ = writeln!(io::stderr(), "skipped: no multicast under the emulator");
        }
        is_emulated
    }

    fn free_port() -> u16 {
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap().local_addr().unwrap().port()
    }

    #[track_caller]
    fn check_heard(socket: &GroupSocket, expect: &[u8]) {
        let poll = Poll::new().unwrap();
        poll.add(socket, 1).unwrap();
        // The runner's watchdog ends it.
        poll.wait(None, &mut Vec::new()).unwrap();
        let mut buffer = [0; 4];
        let heard = socket.receive(&mut buffer).unwrap().unwrap();
        let kept = buffer.len().min(expect.len());
        assert_eq!((heard.bytes, &buffer[..kept]), (expect.len(), &expect[..kept]));
        assert_eq!(*heard.from.ip(), Ipv4Addr::LOCALHOST);
    }

    #[test]
    fn each_who_shares_the_port_hears_each_datagram() {
        if is_emulated() {
            return;
        }
        let port = free_port();
        let (one, two) = (join(port).unwrap(), join(port).unwrap());
        assert!(one.receive(&mut [0; 4]).unwrap().is_none());
        one.send(b"longer than the buffer").unwrap();
        check_heard(&one, b"longer than the buffer");
        check_heard(&two, b"longer than the buffer");
        // To the port, but not to the group; then to the group.
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        other.send_to(b"no", (Ipv4Addr::LOCALHOST, port)).unwrap();
        two.send(b"").unwrap();
        check_heard(&one, b"");
    }

    #[test]
    fn a_port_that_is_not_shared_is_in_use() {
        let alone = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let error = join(alone.local_addr().unwrap().port()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn no_such_interface_is_an_error() {
        let group = SocketAddrV4::new(GROUP, free_port());
        assert!(GroupSocket::join(group, &["nowhere0".to_owned()], 1).is_err());
    }

    /// As the engines do it: at any address, with both options.
    #[test]
    fn whoever_shares_may_come_first_or_last() {
        if is_emulated() {
            return;
        }
        let any = |port| {
            let fd =
                socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
                    .unwrap();
            sockopt::set_socket_reuseport(&fd, true).unwrap();
            sockopt::set_socket_reuseaddr(&fd, true).unwrap();
            bind(&fd, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).unwrap();
            fd
        };
        let port = free_port();
        let first = any(port);
        let between = join(port).unwrap();
        let last = any(port);
        between.send(b"on").unwrap();
        check_heard(&between, b"on");
        drop((first, last));
    }
}
