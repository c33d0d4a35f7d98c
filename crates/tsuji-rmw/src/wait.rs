//! Guard conditions and wait sets.

use std::ffi::c_void;
use std::slice;
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use tsuji::{GuardCondition, WaitList, Waitable};

use crate::abi::InC;
use crate::check;
use crate::client::ClientImpl;
use crate::error::{Result, RmwError, guard, guard_pointer};
use crate::events;
use crate::ffi::rmw::{
    RMW_RET_OK, RMW_RET_TIMEOUT, rmw_clients_t, rmw_context_t, rmw_events_t, rmw_guard_condition_t,
    rmw_guard_conditions_t, rmw_ret_t, rmw_services_t, rmw_subscriptions_t, rmw_time_t,
    rmw_wait_set_t,
};
use crate::handle::{data_of, end, inside};
use crate::identity::IDENTIFIER;
use crate::init::ContextImpl;
use crate::service::ServiceImpl;
use crate::subscription::SubscriptionImpl;

/// What a wait set of C holds.
pub(crate) struct WaitSetImpl(Mutex<WaitList>);

/// A guard condition for C, to be ended by [`end`].
fn new_guard_condition(
    context: *mut InC<rmw_context_t>,
    guard: GuardCondition,
) -> *mut rmw_guard_condition_t {
    Box::into_raw(Box::new(rmw_guard_condition_t {
        implementation_identifier: IDENTIFIER.as_ptr(),
        data: data_of(guard),
        context,
    }))
}

/// A guard condition that is triggered whenever the graph of the context may have changed.
pub(crate) fn new_graph_guard(
    context: *mut InC<rmw_context_t>,
    of: &ContextImpl,
) -> Result<*mut rmw_guard_condition_t> {
    Ok(new_guard_condition(context, of.context.graph_guard()?))
}

/// Something that ends a wait by hand; null in case of an error.
///
/// # Safety
///
/// As in rmw.h: the context is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_guard_condition(
    context: *mut InC<rmw_context_t>,
) -> *mut rmw_guard_condition_t {
    guard_pointer(|| {
        // SAFETY: the caller promises it.
        let found = unsafe { check::context_of(context) }?;
        Ok(new_guard_condition(context, GuardCondition::new(&found.context)?))
    })
}

/// Ends a guard condition.
///
/// # Safety
///
/// As in rmw.h: it is null, or one that was not destroyed yet and nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_guard_condition(
    guard_condition: *mut rmw_guard_condition_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        unsafe { inside(guard_condition) }?;
        // SAFETY: it is ours, and the caller promises the rest.
        unsafe { end(guard_condition) };
        Ok(())
    })
}

/// Makes it ready, until a wait has said so.
///
/// # Safety
///
/// As in rmw.h: it is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_trigger_guard_condition(
    guard_condition: *const rmw_guard_condition_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        unsafe { inside(guard_condition) }?.trigger();
        Ok(())
    })
}

/// A wait set. How much it is to hold is only a hint: it takes up to 4095.
///
/// # Safety
///
/// As in rmw.h: the context is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_wait_set(
    context: *mut InC<rmw_context_t>,
    _max_conditions: usize,
) -> *mut rmw_wait_set_t {
    guard_pointer(|| {
        // SAFETY: the caller promises it.
        let found = unsafe { check::context_of(context) }?;
        let list = WaitSetImpl(Mutex::new(WaitList::new(&found.context)?));
        Ok(Box::into_raw(Box::new(rmw_wait_set_t {
            implementation_identifier: IDENTIFIER.as_ptr(),
            guard_conditions: std::ptr::null_mut(),
            data: data_of(list),
        })))
    })
}

/// Ends a wait set.
///
/// # Safety
///
/// As in rmw.h: it is null, or one that was not destroyed yet and nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_wait_set(wait_set: *mut rmw_wait_set_t) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        unsafe { inside(wait_set) }.map_err(RmwError::or_error)?;
        // SAFETY: it is ours, and the caller promises the rest.
        unsafe { end(wait_set) };
        Ok(())
    })
}

/// The places of one of the arrays of `rmw_wait`.
///
/// # Safety
///
/// `array` is null, or has `count` places that live as long as the answer is used, and nobody else uses them.
unsafe fn places<'a>(array: *mut *mut c_void, count: usize) -> &'a mut [*mut c_void] {
    if array.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: the caller promises it.
    unsafe { slice::from_raw_parts_mut(array, count) }
}

/// Waits until one of these is ready, and makes those null that are not. Without a timeout it waits without an
/// end; when the time is up it answers `RMW_RET_TIMEOUT`.
///
/// # Safety
///
/// As in rmw.h: each array is null, or has as many places as it says, each null or the `data` of one of its
/// kind that lives as long as the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_wait(
    subscriptions: *mut rmw_subscriptions_t,
    guard_conditions: *mut rmw_guard_conditions_t,
    services: *mut rmw_services_t,
    clients: *mut rmw_clients_t,
    events: *mut rmw_events_t,
    wait_set: *mut rmw_wait_set_t,
    wait_timeout: *const rmw_time_t,
) -> rmw_ret_t {
    let mut is_any = true;
    let waited = guard(|| {
        // SAFETY: the caller promises it.
        let set = unsafe { inside(wait_set) }?;
        // SAFETY: the caller promises it.
        let [subscriptions, guard_conditions, services, clients, events] = unsafe {
            [
                subscriptions
                    .as_ref()
                    .map_or(&mut [][..], |it| places(it.subscribers, it.subscriber_count)),
                guard_conditions.as_ref().map_or(&mut [][..], |it| {
                    places(it.guard_conditions, it.guard_condition_count)
                }),
                services.as_ref().map_or(&mut [][..], |it| places(it.services, it.service_count)),
                clients.as_ref().map_or(&mut [][..], |it| places(it.clients, it.client_count)),
                events.as_ref().map_or(&mut [][..], |it| places(it.events, it.event_count)),
            ]
        };
        // SAFETY: the caller promises it.
        let timeout = unsafe { wait_timeout.as_ref() }.map(duration);
        let count = subscriptions.len()
            + guard_conditions.len()
            + services.len()
            + clients.len()
            + events.len();
        let mut entities: Vec<&dyn Waitable> = Vec::with_capacity(count);
        let there = |it: &&mut *mut c_void| !it.is_null();
        for it in subscriptions.iter_mut().filter(there) {
            // SAFETY: it is the data of a subscription that lives.
            entities.push(unsafe { &*it.cast::<SubscriptionImpl>() }.waitable());
        }
        for it in guard_conditions.iter_mut().filter(there) {
            // SAFETY: it is the data of a guard condition that lives.
            entities.push(unsafe { &*it.cast::<GuardCondition>() });
        }
        for it in services.iter_mut().filter(there) {
            // SAFETY: it is the data of a service that lives.
            entities.push(unsafe { &*it.cast::<ServiceImpl>() }.waitable());
        }
        for it in clients.iter_mut().filter(there) {
            // SAFETY: it is the data of a client that lives.
            entities.push(unsafe { &*it.cast::<ClientImpl>() }.waitable());
        }
        for it in events.iter_mut().filter(there) {
            // SAFETY: it is an event whose endpoint lives.
            entities.push(unsafe { events::waitable(it.cast()) }?);
        }
        let mut list = match set.0.try_lock() {
            Ok(list) => list,
            Err(TryLockError::Poisoned(list)) => list.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(RmwError::error("another thread waits on this wait set"));
            }
        };
        let ready = list.wait(&entities, timeout);
        // In case of an error none is.
        let mut left = ready.as_deref().unwrap_or_default();
        let all = [subscriptions, guard_conditions, services, clients, events];
        let places = all.into_iter().flatten().filter(there);
        for (at, place) in places.enumerate() {
            match left {
                [next, rest @ ..] if *next == at => left = rest,
                _ => *place = std::ptr::null_mut(),
            }
        }
        is_any = !ready?.is_empty();
        Ok(())
    });
    // It is no error, and has no text.
    if waited == RMW_RET_OK && !is_any { RMW_RET_TIMEOUT } else { waited }
}

/// How long C waits.
pub(crate) fn duration(time: &rmw_time_t) -> Duration {
    Duration::from_secs(time.sec).saturating_add(Duration::from_nanos(time.nsec))
}
