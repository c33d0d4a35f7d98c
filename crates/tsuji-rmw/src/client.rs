//! Clients: `rmw_create_client` to `rmw_take_response`.

use std::ffi::{CString, c_char, c_void};

use tsuji::{ClientOptions, RawClient, Waitable};
use tsuji_platform::clock;

use crate::abi::{self, InC};
use crate::check;
use crate::error::{Result, RmwError, guard, guard_pointer};
use crate::ffi::rmw::rmw_gid_t;
use crate::ffi::rmw::{
    rmw_client_t, rmw_event_callback_t, rmw_node_t, rmw_qos_profile_t, rmw_ret_t,
    rmw_service_info_t,
};
use crate::ffi::rosidl::rosidl_service_type_support_t;
use crate::gid::gid_of;
use crate::handle::{data_of, end_in, inside};
use crate::identity::IDENTIFIER;
use crate::message::{service_type, to_bytes};
use crate::news::callback_of;
use crate::plan::{self, ServicePlans};
use crate::qos;
use crate::service::request_id;

pub(crate) struct ClientImpl {
    client: RawClient,
    plans: ServicePlans,
    /// What `rmw_client_t::service_name` points to.
    _name: CString,
}

impl ClientImpl {
    pub(crate) fn waitable(&self) -> &dyn Waitable {
        &self.client
    }
}

/// A client of a service, of whatever type has introspection.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid, names end with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_client(
    node: *const rmw_node_t,
    type_support: *const rosidl_service_type_support_t,
    service_name: *const c_char,
    qos_policies: *const rmw_qos_profile_t,
) -> *mut rmw_client_t {
    guard_pointer(|| {
        // SAFETY: the caller promises it.
        let node = &unsafe { inside(node) }?.node;
        check::not_null("type_support", type_support)?;
        // SAFETY: the caller promises it.
        let profile = unsafe { check::reference("qos_policies", qos_policies) }?;
        // SAFETY: the caller promises it.
        let service = unsafe { check::full_name("service_name", service_name, profile) }?;
        // SAFETY: the caller promises it.
        let plans = unsafe { plan::of_service(type_support, abi::here()?) }?;
        // SAFETY: the caller promises it.
        let of = unsafe { service_type(type_support, &plans, abi::here()?) };
        let qos = qos::of_service(profile)?;
        let client =
            node.create_raw_client(ClientOptions::new(&service).qos(qos).keep_depth(), of)?;
        let name = CString::new(client.name()).unwrap_or_default();
        let made = rmw_client_t {
            implementation_identifier: IDENTIFIER.as_ptr(),
            service_name: name.as_ptr(),
            data: data_of(ClientImpl { client, plans, _name: name }),
        };
        Ok(Box::into_raw(Box::new(made)))
    })
}

/// Ends a client.
///
/// # Safety
///
/// As in rmw.h: the client is null, or one that was not destroyed yet and nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_client(
    node: *mut rmw_node_t,
    client: *mut rmw_client_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { end_in(node, client) })
}

/// Sends a request to all servers that are there, and answers its number. Where none is, it goes to nobody and
/// is not answered, as in every rmw.
///
/// # Safety
///
/// As in rmw.h: the request has the client's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_send_request(
    client: *const rmw_client_t,
    ros_request: *const c_void,
    sequence_id: *mut i64,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let client = unsafe { inside(client) }?;
        check::not_null("ros_request", ros_request)?;
        // SAFETY: the caller promises it.
        let number = unsafe { check::reference_mut("sequence_id", sequence_id) }?;
        // SAFETY: the caller promises it.
        let request = unsafe { to_bytes(&client.plans.request, ros_request) }?;
        *number = i64::try_from(client.client.post_bytes(&request)?).unwrap_or(i64::MAX);
        Ok(())
    })
}

/// The oldest reply that was not taken, and which request it answers.
///
/// # Safety
///
/// As in rmw.h: the response has the client's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_response(
    client: *const rmw_client_t,
    request_header: *mut rmw_service_info_t,
    ros_response: *mut c_void,
    taken: *mut bool,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let client = unsafe { inside(client) }?;
        // SAFETY: the caller promises it.
        let header = unsafe { check::reference_mut("request_header", request_header) }?;
        check::not_null("ros_response", ros_response)?;
        // SAFETY: the caller promises it.
        let taken = unsafe { check::reference_mut("taken", taken) }?;
        *taken = false;
        while let Some((number, sample)) = client.client.take_bytes()? {
            // SAFETY: the caller promises it.
            let read = unsafe { client.plans.response.deserialize(&sample.bytes, ros_response) };
            if let Err(error) = read {
                tracing::warn!(service = client.client.name(), %error, "an invalid reply was dropped");
                continue;
            }
            *header = rmw_service_info_t {
                source_timestamp: sample.info.source_wall_ns,
                received_timestamp: clock::wall_ns(),
                request_id: request_id(client.client.gid(), number),
            };
            *taken = true;
            break;
        }
        Ok(())
    })
}

/// Whether a server is there whose reply would find its way back.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_service_server_is_available(
    node: *const rmw_node_t,
    client: *const rmw_client_t,
    is_available: *mut bool,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let (client, is_available) = unsafe {
            inside(node).map_err(RmwError::or_error)?;
            let client = inside(client).map_err(RmwError::or_error)?;
            let is_available = check::reference_mut("is_available", is_available);
            (client, is_available.map_err(RmwError::or_error)?)
        };
        *is_available = client.client.is_ready();
        Ok(())
    })
}

/// # Safety
///
/// As [`rmw_client_request_publisher_get_actual_qos`].
unsafe fn actual_qos(client: *const rmw_client_t, qos: *mut rmw_qos_profile_t) -> Result {
    // SAFETY: the caller promises it.
    let client = unsafe { inside(client) }?;
    // SAFETY: the caller promises it.
    *unsafe { check::reference_mut("qos", qos) }? = qos::profile(client.client.qos());
    Ok(())
}

/// What the half for requests offers.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_client_request_publisher_get_actual_qos(
    client: *const rmw_client_t,
    qos: *mut rmw_qos_profile_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { actual_qos(client, qos) })
}

/// What the half for replies asks for.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_client_response_subscription_get_actual_qos(
    client: *const rmw_client_t,
    qos: *mut rmw_qos_profile_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { actual_qos(client, qos) })
}

/// Its number.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_gid_for_client(
    client: *const rmw_client_t,
    gid: *mut InC<rmw_gid_t>,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let client = unsafe { inside(client) }?;
        check::not_null("gid", gid)?;
        // SAFETY: the caller promises it.
        unsafe { abi::set(abi::here()?, gid, &gid_of(client.client.gid())) };
        Ok(())
    })
}

/// From now on `callback` hears how many replies have come, those included that wait now.
///
/// # Safety
///
/// As in rmw.h: the callback may be called from any thread, with `user_data`, until it is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_client_set_on_new_response_callback(
    client: *mut rmw_client_t,
    callback: rmw_event_callback_t,
    user_data: *const c_void,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let client = unsafe { inside(client) }?;
        // SAFETY: the caller promises it.
        let callback = unsafe { callback_of(callback, user_data) };
        Ok(client.client.on_new_response(callback)?)
    })
}
