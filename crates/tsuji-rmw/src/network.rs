//! Which addresses of this host the packets of a publisher or a subscription have.

use std::ffi::c_char;
use std::net::SocketAddr;

use crate::check::{reference, reference_mut};
use crate::error::{Result, RmwError, guard};
use crate::ffi::rcutils::rcutils_allocator_t;
use crate::ffi::rmw::{
    RMW_INTERNET_PROTOCOL_IPV4, RMW_INTERNET_PROTOCOL_IPV6, RMW_TRANSPORT_PROTOCOL_UDP,
    rmw_network_flow_endpoint_array_t, rmw_network_flow_endpoint_t, rmw_publisher_t, rmw_ret_t,
    rmw_subscription_t,
};
use crate::handle::inside;
use crate::text::Batch;

/// Where packets of a publisher are sent from: to foreign nodes, and to other hosts. What goes by a pointer or by shared memory
/// has no address.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_get_network_flow_endpoints(
    publisher: *const rmw_publisher_t,
    allocator: *mut rcutils_allocator_t,
    network_flow_endpoint_array: *mut rmw_network_flow_endpoint_array_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        // SAFETY: the caller promises it.
        unsafe { fill(allocator, network_flow_endpoint_array, || publisher.network_addresses()) }
    })
}

/// Where packets for a subscription are received: from foreign nodes, and from other hosts.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_get_network_flow_endpoints(
    subscription: *const rmw_subscription_t,
    allocator: *mut rcutils_allocator_t,
    network_flow_endpoint_array: *mut rmw_network_flow_endpoint_array_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let subscription = unsafe { inside(subscription) }?;
        // SAFETY: the caller promises it.
        unsafe { fill(allocator, network_flow_endpoint_array, || subscription.network_addresses()) }
    })
}

/// Fills in what `addresses` answers.
///
/// # Safety
///
/// As [`rmw_publisher_get_network_flow_endpoints`].
unsafe fn fill(
    allocator: *mut rcutils_allocator_t,
    array: *mut rmw_network_flow_endpoint_array_t,
    addresses: impl FnOnce() -> Vec<SocketAddr>,
) -> Result {
    // SAFETY: the caller promises it, also that neither is the other.
    let (mut batch, array) = unsafe {
        let batch = Batch::new(reference("allocator", allocator)?)?;
        (batch, reference_mut("network_flow_endpoint_array", array)?)
    };
    if array.size != 0 || !array.network_flow_endpoint.is_null() {
        return Err(RmwError::error("network_flow_endpoint_array is not zero"));
    }
    let addresses = addresses();
    let endpoints = batch.zeroed::<rmw_network_flow_endpoint_t>(addresses.len())?;
    for (at, address) in addresses.iter().enumerate() {
        // SAFETY: there is room for as many.
        unsafe { endpoints.add(at).write(endpoint(address)) };
    }
    batch.keep();
    let (size, network_flow_endpoint) = (addresses.len(), endpoints);
    *array = rmw_network_flow_endpoint_array_t { size, network_flow_endpoint, allocator };
    Ok(())
}

/// An address as rmw has it. Of the flow itself nothing is known, which is 0.
fn endpoint(address: &SocketAddr) -> rmw_network_flow_endpoint_t {
    let mut internet_address = [0; _];
    for (to, byte) in internet_address.iter_mut().zip(address.ip().to_string().bytes()) {
        *to = byte as c_char;
    }
    rmw_network_flow_endpoint_t {
        transport_protocol: RMW_TRANSPORT_PROTOCOL_UDP,
        internet_protocol: match address {
            SocketAddr::V4(_) => RMW_INTERNET_PROTOCOL_IPV4,
            SocketAddr::V6(_) => RMW_INTERNET_PROTOCOL_IPV6,
        },
        transport_port: address.port(),
        flow_label: 0,
        dscp: 0,
        internet_address,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn an_address_as_rmw_has_it() {
        for (text, protocol) in [
            ("192.168.255.254:65535", RMW_INTERNET_PROTOCOL_IPV4),
            ("[1111:2222:3333:4444:5555:6666:7777:8888]:1", RMW_INTERNET_PROTOCOL_IPV6),
        ] {
            let address: SocketAddr = text.parse().unwrap();
            let endpoint = endpoint(&address);
            // SAFETY: a text of C.
            let is = unsafe { CStr::from_ptr(endpoint.internet_address.as_ptr()) };
            assert_eq!(is.to_str().unwrap(), address.ip().to_string());
            assert_eq!(endpoint.internet_protocol, protocol);
            assert_eq!(endpoint.transport_port, address.port());
        }
    }
}
