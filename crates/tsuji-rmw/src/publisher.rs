//! Publishers: `rmw_create_publisher` to `rmw_publish_loaned_message`.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::net::SocketAddr;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsuji::{Loan, PublisherOptions, RawPublisher};

use crate::abi::{self, InC};
use crate::check;
use crate::error::{Result, RmwError, guard, guard_pointer};
use crate::events::Events;
use crate::ffi::rmw::{
    rmw_gid_t, rmw_node_t, rmw_publisher_allocation_t, rmw_publisher_options_t, rmw_publisher_t,
    rmw_qos_profile_t, rmw_ret_t, rmw_serialized_message_t, rmw_time_t,
};
use crate::ffi::rosidl::rosidl_message_type_support_t;
use crate::gid::gid_of;
use crate::handle::{data_of, end_in, inside};
use crate::identity::IDENTIFIER;
use crate::message::{self, message_type};
use crate::plan::{self, HEADER, Plan};
use crate::qos;
use crate::wait::duration;

pub(crate) struct PublisherImpl {
    publisher: RawPublisher,
    plan: Arc<Plan>,
    events: Arc<Events>,
    /// The loans that a program holds, by where their message is.
    loans: Mutex<HashMap<usize, Loan>>,
    /// What `rmw_publisher_t::topic_name` points to.
    _topic: CString,
}

impl PublisherImpl {
    /// # Safety
    ///
    /// `message` is one of the type of this publisher.
    unsafe fn publish(&self, message: *const c_void) -> Result {
        // SAFETY: the caller promises it.
        let size = unsafe { self.plan.serialized_size(message) }?;
        let mut loan = self.publisher.loan_bytes(size)?;
        // SAFETY: the caller promises it.
        let written = unsafe { self.plan.serialize(message, &mut loan) }?;
        loan.truncate(written);
        Ok(self.publisher.publish_loan(loan)?)
    }

    pub(crate) fn network_addresses(&self) -> Vec<SocketAddr> {
        self.publisher.network_addresses()
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// A message in the memory of the link that will carry it.
    fn borrow(&self) -> Result<*mut c_void> {
        let size = message::loan_size(&self.plan)?;
        let mut loan = self.publisher.loan_bytes(size)?;
        let (header, body) = loan.split_at_mut(HEADER.len());
        header.copy_from_slice(&HEADER);
        let message: *mut c_void = body.as_mut_ptr().cast();
        // SAFETY: it is as large as a message, and as aligned: a CDR body is at a multiple of 16.
        unsafe { self.plan.init(message) };
        self.loans().insert(message as usize, loan);
        Ok(message)
    }

    fn take_back(&self, message: *const c_void) -> Result<Loan> {
        let loan = self.loans().remove(&(message as usize));
        loan.ok_or_else(|| RmwError::invalid("the message was not borrowed from this publisher"))
    }

    fn loans(&self) -> MutexGuard<'_, HashMap<usize, Loan>> {
        self.loans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PublisherImpl {
    fn drop(&mut self) {
        self.events.end();
    }
}

/// A publisher of a topic, of whatever type has introspection.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid, names end with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_publisher(
    node: *const rmw_node_t,
    type_support: *const rosidl_message_type_support_t,
    topic_name: *const c_char,
    qos_profile: *const rmw_qos_profile_t,
    publisher_options: *const rmw_publisher_options_t,
) -> *mut rmw_publisher_t {
    guard_pointer(|| {
        // SAFETY: the caller promises it.
        let node = &unsafe { inside(node) }?.node;
        check::not_null("type_support", type_support)?;
        // SAFETY: the caller promises it.
        let profile = unsafe { check::reference("qos_profile", qos_profile) }?;
        // SAFETY: the caller promises it.
        let topic = unsafe { check::full_name("topic_name", topic_name, profile) }?;
        // SAFETY: the caller promises it.
        let options = unsafe { check::reference("publisher_options", publisher_options) }?;
        check::no_unique_flow(options.require_unique_network_flow_endpoints)?;
        // SAFETY: the caller promises it.
        let plan = unsafe { plan::of_message(type_support, abi::here()?) }?;
        // SAFETY: the caller promises it.
        let of = unsafe { message_type(type_support, &plan, abi::here()?) };
        let qos = qos::of_publisher(node.context(), &topic, profile)?;
        let events = Events::new(node.context());
        let counting = Arc::clone(&events);
        let mut publishing = PublisherOptions::default()
            .qos(qos)
            .note_events(move |event| counting.of_publisher(event));
        if let Some(bytes) = plan.fixed_size() {
            publishing = publishing.expected_size(bytes as u64);
        }
        let publisher = node.create_raw_publisher(&topic, of, publishing)?;
        let name = CString::new(publisher.topic()).unwrap_or_default();
        let made = rmw_publisher_t {
            implementation_identifier: IDENTIFIER.as_ptr(),
            topic_name: name.as_ptr(),
            options: *options,
            can_loan_messages: message::loan_size(&plan).is_ok(),
            data: data_of(PublisherImpl {
                publisher,
                plan,
                events,
                loans: Mutex::default(),
                _topic: name,
            }),
        };
        Ok(Box::into_raw(Box::new(made)))
    })
}

/// Ends a publisher. Loans that are still held become invalid.
///
/// # Safety
///
/// As in rmw.h: the publisher is null, or one that was not destroyed yet and nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_publisher(
    node: *mut rmw_node_t,
    publisher: *mut rmw_publisher_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { end_in(node, publisher) })
}

/// Serialises a message into the memory of the link that carries it, and sends it.
///
/// # Safety
///
/// As in rmw.h: the message has the publisher's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publish(
    publisher: *const rmw_publisher_t,
    ros_message: *const c_void,
    _allocation: *mut rmw_publisher_allocation_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        check::not_null("ros_message", ros_message)?;
        // SAFETY: the caller promises it.
        unsafe { publisher.publish(ros_message) }
    })
}

/// Sends what is CDR already.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publish_serialized_message(
    publisher: *const rmw_publisher_t,
    serialized_message: *const rmw_serialized_message_t,
    _allocation: *mut rmw_publisher_allocation_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        // SAFETY: the caller promises it.
        let message = unsafe { check::reference("serialized_message", serialized_message) }?;
        let bytes = match message.buffer_length {
            0 => &[][..],
            // SAFETY: the caller promises that so much is there.
            length => unsafe { slice::from_raw_parts(message.buffer, length) },
        };
        Ok(publisher.publisher.publish_bytes(bytes)?)
    })
}

/// Lends a message in the memory of the link that will carry it, where the type allows it.
///
/// # Safety
///
/// As in rmw.h: `ros_message` is null, or points to a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_borrow_loaned_message(
    publisher: *const rmw_publisher_t,
    type_support: *const rosidl_message_type_support_t,
    ros_message: *mut *mut c_void,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        message::loan_size(&publisher.plan)?;
        check::not_null("type_support", type_support)?;
        // SAFETY: the caller promises it.
        let place = unsafe { check::reference_mut("ros_message", ros_message) }?;
        if !place.is_null() {
            return Err(RmwError::invalid("*ros_message is not null"));
        }
        *place = publisher.borrow()?;
        Ok(())
    })
}

/// Takes a loan back that was not published.
///
/// # Safety
///
/// As in rmw.h: nobody uses the message any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_return_loaned_message_from_publisher(
    publisher: *const rmw_publisher_t,
    loaned_message: *mut c_void,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        message::loan_size(&publisher.plan)?;
        check::not_null("loaned_message", loaned_message)?;
        publisher.take_back(loaned_message).map(drop)
    })
}

/// Sends a loan as it is.
///
/// # Safety
///
/// As in rmw.h: nobody uses the message any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publish_loaned_message(
    publisher: *const rmw_publisher_t,
    ros_message: *mut c_void,
    _allocation: *mut rmw_publisher_allocation_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        message::loan_size(&publisher.plan)?;
        check::not_null("ros_message", ros_message)?;
        Ok(publisher.publisher.publish_loan(publisher.take_back(ros_message)?)?)
    })
}

/// How many subscriptions are connected.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_count_matched_subscriptions(
    publisher: *const rmw_publisher_t,
    subscription_count: *mut usize,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        // SAFETY: the caller promises it.
        let count = unsafe { check::reference_mut("subscription_count", subscription_count) }?;
        *count = publisher.publisher.matched();
        Ok(())
    })
}

/// What it offers.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_get_actual_qos(
    publisher: *const rmw_publisher_t,
    qos_profile: *mut rmw_qos_profile_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        // SAFETY: the caller promises it.
        let profile = unsafe { check::reference_mut("qos_profile", qos_profile) }?;
        *profile = qos::profile(publisher.publisher.qos());
        Ok(())
    })
}

/// Its number.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_gid_for_publisher(
    publisher: *const rmw_publisher_t,
    gid: *mut InC<rmw_gid_t>,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        check::not_null("gid", gid)?;
        // SAFETY: the caller promises it.
        unsafe { abi::set(abi::here()?, gid, &gid_of(publisher.publisher.gid())) };
        Ok(())
    })
}

/// Shows that it is alive.
///
/// # Safety
///
/// As in rmw.h: the publisher is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_assert_liveliness(
    publisher: *const rmw_publisher_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        Ok(unsafe { inside(publisher) }?.publisher.assert_liveliness()?)
    })
}

/// Waits until all that was published has come to every subscription; best effort waits for nothing.
///
/// # Safety
///
/// As in rmw.h: the publisher is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_wait_for_all_acked(
    publisher: *const rmw_publisher_t,
    wait_timeout: rmw_time_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let publisher = unsafe { inside(publisher) }?;
        Ok(publisher.publisher.wait_for_acknowledgements(duration(&wait_timeout))?)
    })
}
