//! Subscriptions: `rmw_create_subscription` to `rmw_take_loaned_message_with_info`.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsuji::{
    Bytes, ContentFilterOptions, MessageInfo, RawSample, RawSubscription, SubscriptionOptions,
    Waitable,
};
use tsuji_platform::clock;

use crate::abi::{self, InC, Shaped};
use crate::check;
use crate::error::{Result, RmwError, guard, guard_pointer};
use crate::events::Events;
use crate::ffi::rmw::{
    RMW_RET_BAD_ALLOC, WholeSubscription, rmw_event_callback_t, rmw_message_info_sequence_t,
    rmw_message_info_t, rmw_message_sequence_t, rmw_node_t, rmw_qos_profile_t, rmw_ret_t,
    rmw_serialized_message_t, rmw_subscription_allocation_t, rmw_subscription_options_t,
    rmw_subscription_t,
};
use crate::ffi::rosidl::rosidl_message_type_support_t;
use crate::filter;
use crate::gid::gid_of;
use crate::handle::{data_of, end_in, inside};
use crate::identity::IDENTIFIER;
use crate::message::{self, message_type};
use crate::news::callback_of;
use crate::plan::{self, Plan};
use crate::qos;
use crate::serialized;

pub(crate) struct SubscriptionImpl {
    subscription: RawSubscription,
    plan: Arc<Plan>,
    events: Arc<Events>,
    /// How many messages were handed out.
    taken: AtomicU64,
    /// Messages that a program holds, by where they are.
    loans: Mutex<HashMap<usize, Lent>>,
    /// What `rmw_subscription_t::topic_name` points to.
    _topic: CString,
}

/// What keeps a message where it is that a program holds.
#[expect(dead_code, reason = "it is held, and not looked at")]
enum Lent {
    /// The memory of its link.
    InPlace(Bytes),
    /// Memory of its own: other writers may use another byte order, or lay it down elsewhere.
    Copied(Vec<u64>),
}

/// The memory of an `rmw_subscription_t`, enough for that of every distribution.
#[repr(C)]
#[derive(Default)]
pub(crate) struct SubscriptionMemory([u64; 16]);

impl SubscriptionImpl {
    pub(crate) fn waitable(&self) -> &dyn Waitable {
        &self.subscription
    }

    pub(crate) fn network_addresses(&self) -> Vec<SocketAddr> {
        self.subscription.network_addresses()
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    pub(crate) fn content_filter(&self) -> Option<ContentFilterOptions> {
        self.subscription.content_filter()
    }

    pub(crate) fn set_content_filter(&self, filter: ContentFilterOptions) -> Result {
        let ContentFilterOptions { filter_expression, expression_parameters } = filter;
        Ok(self.subscription.set_content_filter(filter_expression, expression_parameters)?)
    }

    /// The next message of which `hand_over` makes something. What is no message of the type is dropped with
    /// a line in the log.
    fn take(
        &self,
        mut hand_over: impl FnMut(&RawSample) -> Result,
    ) -> Result<Option<rmw_message_info_t>> {
        while let Some(sample) = self.subscription.take_bytes()? {
            match hand_over(&sample) {
                Ok(()) => return Ok(Some(self.info(&sample.info))),
                Err(error) if error.ret() == RMW_RET_BAD_ALLOC => return Err(error),
                Err(error) => {
                    let topic = self.subscription.topic();
                    tracing::warn!(topic, publisher = %sample.info.publisher, %error, "an invalid sample was dropped");
                }
            }
        }
        Ok(None)
    }

    /// # Safety
    ///
    /// `message` is one of the type of this subscription.
    unsafe fn take_message(&self, message: *mut c_void) -> Result<Option<rmw_message_info_t>> {
        // SAFETY: the caller promises it.
        self.take(|sample| Ok(unsafe { self.plan.deserialize(&sample.bytes, message) }?))
    }

    /// A message where it is, or a copy where it cannot be used there; it stays until it is returned.
    fn take_loan(&self) -> Result<Option<(*mut c_void, rmw_message_info_t)>> {
        let mut message = std::ptr::null_mut();
        let info = self.take(|sample| {
            let lent = match message::in_place(&self.plan, &sample.bytes) {
                Some(body) => {
                    message = body.as_ptr().cast::<c_void>().cast_mut();
                    Lent::InPlace(sample.bytes.clone())
                }
                None => {
                    let mut copy = vec![0; self.plan.message_size().div_ceil(size_of::<u64>())];
                    message = copy.as_mut_ptr().cast();
                    // SAFETY: it is as large as a message of numbers, and as aligned; any bytes are one.
                    unsafe { self.plan.deserialize(&sample.bytes, message) }?;
                    Lent::Copied(copy)
                }
            };
            self.loans().insert(message as usize, lent);
            Ok(())
        })?;
        Ok(info.map(|info| (message, info)))
    }

    fn info(&self, info: &MessageInfo) -> rmw_message_info_t {
        rmw_message_info_t {
            source_timestamp: info.source_wall_ns,
            received_timestamp: clock::wall_ns(),
            publication_sequence_number: info.sequence,
            reception_sequence_number: self.taken.fetch_add(1, Ordering::Relaxed) + 1,
            publisher_gid: gid_of(info.publisher),
            from_intra_process: false,
        }
    }

    fn loans(&self) -> MutexGuard<'_, HashMap<usize, Lent>> {
        self.loans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SubscriptionImpl {
    fn drop(&mut self) {
        self.events.end();
    }
}

/// A subscription of a topic, of whatever type has introspection.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid, names end with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_subscription(
    node: *const rmw_node_t,
    type_support: *const rosidl_message_type_support_t,
    topic_name: *const c_char,
    qos_profile: *const rmw_qos_profile_t,
    subscription_options: *const InC<rmw_subscription_options_t>,
) -> *mut rmw_subscription_t {
    guard_pointer(|| {
        // SAFETY: the caller promises it.
        let node = &unsafe { inside(node) }?.node;
        check::not_null("type_support", type_support)?;
        // SAFETY: the caller promises it.
        let profile = unsafe { check::reference("qos_profile", qos_profile) }?;
        // SAFETY: the caller promises it.
        let topic = unsafe { check::full_name("topic_name", topic_name, profile) }?;
        check::not_null("subscription_options", subscription_options)?;
        let abi = abi::here()?;
        // SAFETY: the caller promises it.
        let options: rmw_subscription_options_t = unsafe { abi::get(abi, subscription_options) };
        check::no_unique_flow(options.require_unique_network_flow_endpoints)?;
        // SAFETY: the caller promises it.
        let plan = unsafe { plan::of_message(type_support, abi) }?;
        // SAFETY: the caller promises it.
        let of = unsafe { message_type(type_support, &plan, abi) };
        let qos = qos::of_subscription(node.context(), &topic, profile)?;
        let events = Events::new(node.context());
        let counting = Arc::clone(&events);
        let subscribing = SubscriptionOptions::default()
            .qos(qos)
            .note_events(move |event| counting.of_subscription(event))
            .ignore_local(options.ignore_local_publications);
        // SAFETY: the caller promises it.
        let subscribing =
            unsafe { filter::asked(subscribing, &options, type_support, &plan, abi) }?;
        let subscription = node.create_polled_raw_subscription(&topic, of, subscribing)?;
        let name = CString::new(subscription.topic()).unwrap_or_default();
        let made = WholeSubscription {
            implementation_identifier: IDENTIFIER.as_ptr(),
            topic_name: name.as_ptr(),
            options,
            can_loan_messages: message::loan_size(&plan).is_ok(),
            is_cft_enabled: subscription.content_filter().is_some(),
            is_cft_supported: true,
            data: data_of(SubscriptionImpl {
                subscription,
                plan,
                events,
                taken: AtomicU64::new(0),
                loans: Mutex::default(),
                _topic: name,
            }),
        };
        let mut memory = Box::new(SubscriptionMemory::default());
        // SAFETY: it is as large as that of any distribution.
        unsafe { made.write(abi, (&raw mut *memory).cast()) };
        Ok(Box::into_raw(memory).cast())
    })
}

/// Ends a subscription. Loans that are still held become invalid.
///
/// # Safety
///
/// As in rmw.h: the subscription is null, or one that was not destroyed yet and nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_subscription(
    node: *mut rmw_node_t,
    subscription: *mut rmw_subscription_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { end_in(node, subscription) })
}

/// How many publishers are connected.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_count_matched_publishers(
    subscription: *const rmw_subscription_t,
    publisher_count: *mut usize,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let subscription = unsafe { inside(subscription) }?;
        // SAFETY: the caller promises it.
        let count = unsafe { check::reference_mut("publisher_count", publisher_count) }?;
        *count = subscription.subscription.matched();
        Ok(())
    })
}

/// What it asks for.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_get_actual_qos(
    subscription: *const rmw_subscription_t,
    qos: *mut rmw_qos_profile_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let subscription = unsafe { inside(subscription) }?;
        // SAFETY: the caller promises it.
        *unsafe { check::reference_mut("qos", qos) }? =
            qos::profile(subscription.subscription.qos());
        Ok(())
    })
}

/// The subscription that is taken from. What is known of the message is wanted if there is a place for it, which
/// is not null then.
///
/// # Safety
///
/// As of [`inside`].
unsafe fn asked<'a>(
    subscription: *const rmw_subscription_t,
    info: Option<*mut InC<rmw_message_info_t>>,
) -> Result<&'a SubscriptionImpl> {
    // SAFETY: the caller promises it.
    let subscription = unsafe { inside(subscription) }?;
    info.map_or(Ok(()), |info| check::not_null("message_info", info))?;
    Ok(subscription)
}

/// Says what came of a take.
///
/// # Safety
///
/// `taken` is null or valid, and `info` as [`asked`] passed it.
unsafe fn report(
    taken: *mut bool,
    info: Option<*mut InC<rmw_message_info_t>>,
    take: impl FnOnce() -> Result<Option<rmw_message_info_t>>,
) -> Result {
    // SAFETY: the caller promises it.
    let taken = unsafe { check::reference_mut("taken", taken) }?;
    *taken = false;
    let Some(of_message) = take()? else { return Ok(()) };
    *taken = true;
    if let Some(info) = info {
        // SAFETY: it is valid for writes.
        unsafe { abi::set(abi::here()?, info, &of_message) };
    }
    Ok(())
}

/// # Safety
///
/// As [`rmw_take_with_info`].
unsafe fn take(
    subscription: *const rmw_subscription_t,
    ros_message: *mut c_void,
    taken: *mut bool,
    info: Option<*mut InC<rmw_message_info_t>>,
) -> Result {
    // SAFETY: the caller promises it.
    let subscription = unsafe { asked(subscription, info) }?;
    check::not_null("ros_message", ros_message)?;
    // SAFETY: the caller promises it.
    unsafe { report(taken, info, || subscription.take_message(ros_message)) }
}

/// The oldest message that was not taken.
///
/// # Safety
///
/// As in rmw.h: the message has the subscription's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take(
    subscription: *const rmw_subscription_t,
    ros_message: *mut c_void,
    taken: *mut bool,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { take(subscription, ros_message, taken, None) })
}

/// The oldest message that was not taken, and what is known of it.
///
/// # Safety
///
/// As in rmw.h: the message has the subscription's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_with_info(
    subscription: *const rmw_subscription_t,
    ros_message: *mut c_void,
    taken: *mut bool,
    message_info: *mut InC<rmw_message_info_t>,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { take(subscription, ros_message, taken, Some(message_info)) })
}

/// Up to `count` messages into messages that are there.
///
/// # Safety
///
/// As in rmw.h: the sequences have room for `count`, and the messages are of the subscription's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_sequence(
    subscription: *const rmw_subscription_t,
    count: usize,
    message_sequence: *mut rmw_message_sequence_t,
    message_info_sequence: *mut rmw_message_info_sequence_t,
    taken: *mut usize,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let subscription = unsafe { inside(subscription) }?;
        // SAFETY: the caller promises it.
        let messages = unsafe { check::reference_mut("message_sequence", message_sequence) }?;
        // SAFETY: the caller promises it.
        let infos =
            unsafe { check::reference_mut("message_info_sequence", message_info_sequence) }?;
        // SAFETY: the caller promises it.
        let taken = unsafe { check::reference_mut("taken", taken) }?;
        if count == 0 || messages.capacity < count || infos.capacity < count {
            return Err(RmwError::invalid(format!(
                "{count} messages into room for {} and {}; allowed: 1 to what there is room for",
                messages.capacity, infos.capacity
            )));
        }
        let abi = abi::here()?;
        (*taken, messages.size, infos.size) = (0, 0, 0);
        while *taken < count {
            // SAFETY: there is room for `count`, and each is a message.
            let info = unsafe { subscription.take_message(*messages.data.add(*taken)) }?;
            let Some(info) = info else { break };
            // SAFETY: there is room for `count`.
            unsafe { abi::set(abi, abi::element(abi, infos.data, *taken), &info) };
            *taken += 1;
            (messages.size, infos.size) = (*taken, *taken);
        }
        Ok(())
    })
}

/// # Safety
///
/// As [`rmw_take_serialized_message_with_info`].
unsafe fn take_serialized(
    subscription: *const rmw_subscription_t,
    serialized_message: *mut rmw_serialized_message_t,
    taken: *mut bool,
    info: Option<*mut InC<rmw_message_info_t>>,
) -> Result {
    // SAFETY: the caller promises it.
    let subscription = unsafe { asked(subscription, info) }?;
    // SAFETY: the caller promises it.
    let message = unsafe { check::reference_mut("serialized_message", serialized_message) }?;
    // SAFETY: the caller promises it, and that the message is one.
    unsafe {
        report(taken, info, || subscription.take(|sample| serialized::fill(message, &sample.bytes)))
    }
}

/// The oldest message that was not taken, as CDR.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_serialized_message(
    subscription: *const rmw_subscription_t,
    serialized_message: *mut rmw_serialized_message_t,
    taken: *mut bool,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { take_serialized(subscription, serialized_message, taken, None) })
}

/// The oldest message that was not taken, as CDR, and what is known of it.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_serialized_message_with_info(
    subscription: *const rmw_subscription_t,
    serialized_message: *mut rmw_serialized_message_t,
    taken: *mut bool,
    message_info: *mut InC<rmw_message_info_t>,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe {
        take_serialized(subscription, serialized_message, taken, Some(message_info))
    })
}

/// # Safety
///
/// As [`rmw_take_loaned_message_with_info`].
unsafe fn take_loaned(
    subscription: *const rmw_subscription_t,
    loaned_message: *mut *mut c_void,
    taken: *mut bool,
    info: Option<*mut InC<rmw_message_info_t>>,
) -> Result {
    // SAFETY: the caller promises it.
    let subscription = unsafe { asked(subscription, info) }?;
    message::loan_size(&subscription.plan)?;
    // SAFETY: the caller promises it.
    let place = unsafe { check::reference_mut("loaned_message", loaned_message) }?;
    if !place.is_null() {
        return Err(RmwError::invalid("*loaned_message is not null"));
    }
    let take = || {
        let taken = subscription.take_loan()?;
        Ok(taken.map(|(message, info)| {
            *place = message;
            info
        }))
    };
    // SAFETY: the caller promises it.
    unsafe { report(taken, info, take) }
}

/// The oldest message that was not taken, where it is. It must not be written to.
///
/// # Safety
///
/// As in rmw.h: `loaned_message` is null, or points to a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_loaned_message(
    subscription: *const rmw_subscription_t,
    loaned_message: *mut *mut c_void,
    taken: *mut bool,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { take_loaned(subscription, loaned_message, taken, None) })
}

/// The oldest message that was not taken, where it is, and what is known of it. It must not be written to.
///
/// # Safety
///
/// As in rmw.h: `loaned_message` is null, or points to a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_loaned_message_with_info(
    subscription: *const rmw_subscription_t,
    loaned_message: *mut *mut c_void,
    taken: *mut bool,
    message_info: *mut InC<rmw_message_info_t>,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { take_loaned(subscription, loaned_message, taken, Some(message_info)) })
}

/// Gives a message back that was taken where it was.
///
/// # Safety
///
/// As in rmw.h: nobody uses the message any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_return_loaned_message_from_subscription(
    subscription: *const rmw_subscription_t,
    loaned_message: *mut c_void,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let subscription = unsafe { inside(subscription) }?;
        message::loan_size(&subscription.plan)?;
        check::not_null("loaned_message", loaned_message)?;
        let loan = subscription.loans().remove(&(loaned_message as usize));
        loan.map(drop)
            .ok_or_else(|| RmwError::invalid("the message is not on loan from this subscription"))
    })
}

/// From now on `callback` hears how many messages have come, those included that wait now.
///
/// # Safety
///
/// As in rmw.h: the callback may be called from any thread, with `user_data`, until it is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_set_on_new_message_callback(
    subscription: *mut rmw_subscription_t,
    callback: rmw_event_callback_t,
    user_data: *const c_void,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let subscription = unsafe { inside(subscription) }?;
        // SAFETY: the caller promises it.
        let callback = unsafe { callback_of(callback, user_data) };
        Ok(subscription.subscription.on_new_message(callback)?)
    })
}
