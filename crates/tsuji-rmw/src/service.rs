//! Servers: `rmw_create_service` to `rmw_send_response`.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CString, c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tsuji::{ErrorKind, Gid, RawRequest, RawService, ServiceOptions, Waitable};
use tsuji_platform::clock;

use crate::abi;
use crate::check;
use crate::error::{Result, RmwError, guard, guard_pointer};
use crate::ffi::rmw::{
    rmw_event_callback_t, rmw_node_t, rmw_qos_profile_t, rmw_request_id_t, rmw_ret_t,
    rmw_service_info_t, rmw_service_t,
};
use crate::ffi::rosidl::rosidl_service_type_support_t;
use crate::handle::{data_of, end_in, inside};
use crate::identity::IDENTIFIER;
use crate::message::{service_type, to_bytes};
use crate::news::callback_of;
use crate::plan::{self, ServicePlans};
use crate::qos;

pub(crate) struct ServiceImpl {
    service: RawService,
    plans: ServicePlans,
    open: Mutex<Open>,
    /// What `rmw_service_t::service_name` points to.
    _name: CString,
}

/// The requests that were taken and not answered.
#[derive(Default)]
struct Open {
    requests: HashMap<RequestKey, RawRequest>,
    /// Some of those in `order` may be answered.
    order: VecDeque<RequestKey>,
}

/// A client, and a number among its requests.
type RequestKey = (Gid, u64);

impl Open {
    /// Keeps a request until it is answered. Beyond [`OPEN_MAX`] the oldest goes, which tsuji counts as
    /// unanswered. Answers what went.
    fn keep(&mut self, request: RawRequest) -> Option<RawRequest> {
        let key = request.id();
        let mut gone = None;
        if OPEN_MAX <= self.requests.len() {
            while gone.is_none()
                && let Some(oldest) = self.order.pop_front()
            {
                gone = self.requests.remove(&oldest);
            }
        }
        if 2 * OPEN_MAX <= self.order.len() {
            let Self { requests, order } = self;
            order.retain(|key| requests.contains_key(key));
        }
        self.order.push_back(key);
        self.requests.insert(key, request);
        gone
    }
}

/// Requests of one service that were taken and not answered. Less than tsuji hands out, so that it never
/// stops. A server may forget what it will not answer.
const OPEN_MAX: usize = 1000;

impl ServiceImpl {
    pub(crate) fn waitable(&self) -> &dyn Waitable {
        &self.service
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What names a request of this client.
pub(crate) fn request_id(client: Gid, number: u64) -> rmw_request_id_t {
    rmw_request_id_t {
        writer_guid: client.0,
        sequence_number: i64::try_from(number).unwrap_or(i64::MAX),
    }
}

fn key_of(id: &rmw_request_id_t) -> Result<RequestKey> {
    let client = Gid(id.writer_guid);
    let number = u64::try_from(id.sequence_number);
    Ok((client, number.map_err(|_| RmwError::invalid("a negative sequence number"))?))
}

/// A server, of whatever type has introspection.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid, names end with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_service(
    node: *const rmw_node_t,
    type_support: *const rosidl_service_type_support_t,
    service_name: *const c_char,
    qos_profile: *const rmw_qos_profile_t,
) -> *mut rmw_service_t {
    guard_pointer(|| {
        // SAFETY: the caller promises it.
        let node = &unsafe { inside(node) }?.node;
        check::not_null("type_support", type_support)?;
        // SAFETY: the caller promises it.
        let profile = unsafe { check::reference("qos_profile", qos_profile) }?;
        // SAFETY: the caller promises it.
        let service = unsafe { check::full_name("service_name", service_name, profile) }?;
        // SAFETY: the caller promises it.
        let plans = unsafe { plan::of_service(type_support, abi::here()?) }?;
        // SAFETY: the caller promises it.
        let of = unsafe { service_type(type_support, &plans, abi::here()?) };
        let qos = qos::of_service(profile)?;
        let service = node
            .create_polled_raw_service(ServiceOptions::new(&service).qos(qos).keep_depth(), of)?;
        let name = CString::new(service.name()).unwrap_or_default();
        let made = rmw_service_t {
            implementation_identifier: IDENTIFIER.as_ptr(),
            service_name: name.as_ptr(),
            data: data_of(ServiceImpl { service, plans, open: Mutex::default(), _name: name }),
        };
        Ok(Box::into_raw(Box::new(made)))
    })
}

/// Ends a server.
///
/// # Safety
///
/// As in rmw.h: the service is null, or one that was not destroyed yet and nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_service(
    node: *mut rmw_node_t,
    service: *mut rmw_service_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { end_in(node, service) })
}

/// The oldest request that was not taken, and what names it.
///
/// # Safety
///
/// As in rmw.h: the request has the server's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_request(
    service: *const rmw_service_t,
    request_header: *mut rmw_service_info_t,
    ros_request: *mut c_void,
    taken: *mut bool,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let service = unsafe { inside(service) }?;
        // SAFETY: the caller promises it.
        let header = unsafe { check::reference_mut("request_header", request_header) }?;
        check::not_null("ros_request", ros_request)?;
        // SAFETY: the caller promises it.
        let taken = unsafe { check::reference_mut("taken", taken) }?;
        *taken = false;
        while let Some(request) = service.service.take_bytes()? {
            // SAFETY: the caller promises it.
            let read = unsafe { service.plans.request.deserialize(request.bytes(), ros_request) };
            if let Err(error) = read {
                tracing::warn!(service = service.service.name(), %error, "an invalid request was dropped");
                continue;
            }
            let (client, number) = request.id();
            *header = rmw_service_info_t {
                source_timestamp: request.info().source_wall_ns,
                received_timestamp: clock::wall_ns(),
                request_id: request_id(client, number),
            };
            let gone = service.open().keep(request);
            if gone.is_some() {
                let name = service.service.name();
                tracing::warn!(
                    service = name,
                    "more than {OPEN_MAX} requests are not answered: the oldest is forgotten"
                );
            }
            *taken = true;
            break;
        }
        Ok(())
    })
}

/// Answers a request. A client that has left needs no answer.
///
/// # Safety
///
/// As in rmw.h: the response has the server's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_send_response(
    service: *const rmw_service_t,
    request_header: *mut rmw_request_id_t,
    ros_response: *mut c_void,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let service = unsafe { inside(service) }?;
        // SAFETY: the caller promises it.
        let header = unsafe { check::reference_mut("request_header", request_header) }?;
        check::not_null("ros_response", ros_response)?;
        // SAFETY: the caller promises it.
        let response = unsafe { to_bytes(&service.plans.response, ros_response) }?;
        let request = service.open().requests.remove(&key_of(header)?);
        let Some(request) = request else {
            return Err(RmwError::error(format!(
                "{}: there is no open request {} of this client",
                service.service.name(),
                header.sequence_number
            )));
        };
        match request.respond_bytes(&response) {
            Err(error) if error.kind() == ErrorKind::Closed => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::Exhausted) => {
                Err(RmwError::timeout(error.to_string()))
            }
            sent => Ok(sent?),
        }
    })
}

/// # Safety
///
/// As [`rmw_service_request_subscription_get_actual_qos`].
unsafe fn actual_qos(service: *const rmw_service_t, qos: *mut rmw_qos_profile_t) -> Result {
    // SAFETY: the caller promises it.
    let service = unsafe { inside(service) }?;
    // SAFETY: the caller promises it.
    *unsafe { check::reference_mut("qos", qos) }? = qos::profile(service.service.qos());
    Ok(())
}

/// What the half for replies offers.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_service_response_publisher_get_actual_qos(
    service: *const rmw_service_t,
    qos: *mut rmw_qos_profile_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { actual_qos(service, qos) })
}

/// What the half for requests asks for.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_service_request_subscription_get_actual_qos(
    service: *const rmw_service_t,
    qos: *mut rmw_qos_profile_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { actual_qos(service, qos) })
}

/// From now on `callback` hears how many requests have come, those included that wait now.
///
/// # Safety
///
/// As in rmw.h: the callback may be called from any thread, with `user_data`, until it is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_service_set_on_new_request_callback(
    service: *mut rmw_service_t,
    callback: rmw_event_callback_t,
    user_data: *const c_void,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let service = unsafe { inside(service) }?;
        // SAFETY: the caller promises it.
        let callback = unsafe { callback_of(callback, user_data) };
        Ok(service.service.on_new_request(callback)?)
    })
}
