//! What the network namespace of this process has.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};

use crate::limit::with_limit;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Whether somebody has switched it on.
    pub is_up: bool,
    /// Whether it has what it needs for that, such as a cable with somebody at the other end.
    pub is_running: bool,
    /// Whether it leads to this host only.
    pub is_loopback: bool,
    /// Whether it carries multicast.
    pub has_multicast: bool,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

impl Interface {
    /// Returns whether it leads to other hosts by IPv4.
    pub fn leads_away(&self) -> bool {
        self.is_up && !self.is_loopback && self.addresses.iter().any(IpAddr::is_ipv4)
    }
}

/// All interfaces by name.
///
/// From the kernel itself: `/sys/class/net` shows those of the namespace that mounted it.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut first = ptr::null_mut();
    // SAFETY: on success `first` is the head of a list that is ours to free.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut interfaces = BTreeMap::<String, Interface>::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: `next` is an entry of the list, which is not freed before the end.
        let entry = unsafe { &*next };
        // SAFETY: each entry's name is a string that lives as long as the list.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
        let has = |flag: libc::c_int| entry.ifa_flags & flag as libc::c_uint != 0;
        let interface = interfaces.entry(name.clone()).or_insert_with(|| Interface {
            name,
            is_up: has(libc::IFF_UP),
            is_running: has(libc::IFF_RUNNING),
            is_loopback: has(libc::IFF_LOOPBACK),
            has_multicast: has(libc::IFF_MULTICAST),
            addresses: Vec::new(),
        });
        // SAFETY: an entry's address is null or lives as long as the list.
        interface.addresses.extend(unsafe { address(entry.ifa_addr) });
        next = entry.ifa_next;
    }
    // SAFETY: the list is ours, is freed once, and nothing points into it any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(interfaces.into_values().collect())
}

/// The IP address in a socket address, if it is one of IP.
///
/// # Safety
///
/// `address` is null or points to a whole socket address of the family that it names.
unsafe fn address(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null, so it is a socket address, of which each has a family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says that it is this; it may lie anywhere.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is this; it may lie anywhere.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// The number of an interface, by which the kernel lists them; `None` if there is none of this name.
pub fn index_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: a string that ends with a zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// WatchEvent of interfaces and of their IPv4 addresses, in this network namespace.
#[derive(Debug)]
pub struct Changes {
    fd: OwnedFd,
}

impl Changes {
    /// Listens from now on.
    pub fn new() -> io::Result<Self> {
        let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: makes a descriptor, and touches no memory.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, flags, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(with_limit(io::Error::last_os_error()));
        }
        // SAFETY: a descriptor that was just made, and that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: zeroed is a valid address of this kind.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR) as u32;
        let len = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: the address is valid and of the length that is said.
        let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
        if bound != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { fd })
    }

    /// Whether there was any since the last call. Never blocks.
    pub fn take(&self) -> bool {
        let mut buffer = [0; 8192];
        let mut is_any = false;
        loop {
            match rustix::io::read(&self.fd, &mut buffer) {
                Ok(0) => return is_any,
                // Some were lost, or are here: both are news.
                Ok(_) | Err(Errno::NOBUFS) => is_any = true,
                Err(Errno::INTR) => {}
                Err(_) => return is_any,
            }
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether a UDP port is free, or held by those only who share it with whoever shares it too.
///
/// It is taken for a moment at an address that nobody sends to, so nobody loses a datagram.
pub fn is_udp_port_shared(port: u16) -> io::Result<bool> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // A wildcard address of the others overlaps with every address.
    match bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 2), port)) {
        Ok(()) => Ok(true),
        Err(Errno::ADDRINUSE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn loopback_is_there() {
        let interfaces = interfaces().unwrap();
        let loopback = interfaces.iter().find(|it| it.is_loopback).unwrap();
        assert_eq!(loopback.name, "lo");
        let home = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert!(!loopback.is_up || loopback.addresses.contains(&home), "{loopback:?}");
        assert!(index_of("lo").is_some() && index_of("nowhere0").is_none());
        let names = interfaces.iter().map(|it| &it.name);
        assert!(names.is_sorted());
    }

    #[test]
    fn a_port_is_shared_by_those_who_say_so() {
        let alone = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        assert!(!is_udp_port_shared(alone.local_addr().unwrap().port()).unwrap());
        let sharing = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        sockopt::set_socket_reuseaddr(&sharing, true).unwrap();
        bind(&sharing, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let sharing = UdpSocket::from(sharing);
        assert!(is_udp_port_shared(sharing.local_addr().unwrap().port()).unwrap());
    }
}
