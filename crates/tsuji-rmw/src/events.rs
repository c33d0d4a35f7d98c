//! Events of publishers and subscriptions: what came of their QoS, and who matches.
//!
//! Each endpoint counts its events from its beginning. What C asks for is told by how much the counts have
//! changed since it asked last.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tsuji::{Context, GuardCondition, PublisherEvent, SubscriptionEvent, Waitable};

use crate::abi::{self, Abi};
use crate::check;
use crate::error::{Result, RmwError, guard};
use crate::ffi::rmw::{
    RMW_QOS_POLICY_DEADLINE, RMW_QOS_POLICY_DURABILITY, RMW_QOS_POLICY_INVALID,
    RMW_QOS_POLICY_LIVELINESS, RMW_QOS_POLICY_RELIABILITY, rmw_event_callback_t, rmw_event_t,
    rmw_event_type_t, rmw_incompatible_type_status_t, rmw_liveliness_changed_status_t,
    rmw_matched_status_t, rmw_message_lost_status_t, rmw_offered_deadline_missed_status_t,
    rmw_publisher_t, rmw_qos_incompatible_event_status_t, rmw_qos_policy_kind_t, rmw_ret_t,
    rmw_subscription_t,
};
use crate::handle::{inside, ours};
use crate::identity::IDENTIFIER;
use crate::news::callback_of;

/// What an endpoint has counted. It lives as long as the endpoint, and so do the events of C that point here.
pub(crate) struct Events {
    context: Context,
    counts: Mutex<Counts>,
    /// By [`Kind`], triggered until C takes the event. Made when C asks for it.
    guards: [OnceLock<GuardCondition>; KINDS],
}

/// What is counted apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    LivelinessChanged,
    DeadlineMissed,
    QosIncompatible,
    MessageLost,
    TypeIncompatible,
    Matched,
    LivelinessLost,
}

const KINDS: usize = 7;

struct Counts {
    now: [Count; KINDS],
    /// As of when C asked last.
    told: [Count; KINDS],
    /// How many events there were since.
    unread: [u64; KINDS],
    last_policy: rmw_qos_policy_kind_t,
}

impl Default for Counts {
    fn default() -> Self {
        let nothing = [Count::default(); KINDS];
        let last_policy = RMW_QOS_POLICY_INVALID;
        Self { now: nothing, told: nothing, unread: [0; KINDS], last_policy }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    /// How often so far.
    total: u64,
    /// How many match, or are alive.
    current: i64,
    /// How many are not alive.
    not_alive: i64,
}

impl Counts {
    fn of(&mut self, kind: Kind) -> &mut Count {
        &mut self.now[kind as usize]
    }

    fn match_now(&mut self, current: usize) {
        let matched = self.of(Kind::Matched);
        let current = i64::try_from(current).unwrap_or(i64::MAX);
        matched.total += u64::try_from(current - matched.current).unwrap_or(0);
        matched.current = current;
    }

    fn refuse(&mut self, mismatches: &[String]) {
        self.of(Kind::QosIncompatible).total += 1;
        let policy = mismatches.first().and_then(|it| it.split(':').next());
        self.last_policy = match policy {
            Some("reliability") => RMW_QOS_POLICY_RELIABILITY,
            Some("durability") => RMW_QOS_POLICY_DURABILITY,
            Some("deadline") => RMW_QOS_POLICY_DEADLINE,
            Some("liveliness" | "liveliness_lease") => RMW_QOS_POLICY_LIVELINESS,
            _ => RMW_QOS_POLICY_INVALID,
        };
    }
}

impl Events {
    pub(crate) fn new(context: &Context) -> Arc<Self> {
        let (context, counts) = (context.clone(), Mutex::default());
        Arc::new(Self { context, counts, guards: Default::default() })
    }

    pub(crate) fn of_publisher(&self, event: &PublisherEvent) {
        self.note(|counts| {
            Some(match event {
                PublisherEvent::Matched { current } => {
                    counts.match_now(*current);
                    Kind::Matched
                }
                PublisherEvent::IncompatibleQos { mismatches, .. } => {
                    counts.refuse(mismatches);
                    Kind::QosIncompatible
                }
                PublisherEvent::IncompatibleType { .. } => {
                    counts.of(Kind::TypeIncompatible).total += 1;
                    Kind::TypeIncompatible
                }
                PublisherEvent::DeadlineMissed { total } => {
                    counts.of(Kind::DeadlineMissed).total = *total;
                    Kind::DeadlineMissed
                }
                PublisherEvent::LivelinessLost => {
                    counts.of(Kind::LivelinessLost).total += 1;
                    Kind::LivelinessLost
                }
                _ => return None,
            })
        });
    }

    pub(crate) fn of_subscription(&self, event: &SubscriptionEvent) {
        self.note(|counts| {
            Some(match event {
                SubscriptionEvent::Matched { current } => {
                    counts.match_now(*current);
                    Kind::Matched
                }
                SubscriptionEvent::IncompatibleQos { mismatches, .. } => {
                    counts.refuse(mismatches);
                    Kind::QosIncompatible
                }
                SubscriptionEvent::IncompatibleType { .. } => {
                    counts.of(Kind::TypeIncompatible).total += 1;
                    Kind::TypeIncompatible
                }
                SubscriptionEvent::DeadlineMissed { total } => {
                    counts.of(Kind::DeadlineMissed).total = *total;
                    Kind::DeadlineMissed
                }
                SubscriptionEvent::LivelinessChanged { alive, not_alive } => {
                    let count = counts.of(Kind::LivelinessChanged);
                    let of = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
                    (count.current, count.not_alive) = (of(*alive), of(*not_alive));
                    Kind::LivelinessChanged
                }
                SubscriptionEvent::MessageLost { total } => {
                    counts.of(Kind::MessageLost).total = *total;
                    Kind::MessageLost
                }
                _ => return None,
            })
        });
    }

    /// Counts what came, and tells whoever waits for it. Nothing of the user runs here: the thread that comes upon
    /// an event may hold locks.
    fn note(&self, count: impl FnOnce(&mut Counts) -> Option<Kind>) {
        let mut counts = self.counts();
        let before = counts.now;
        let Some(kind) = count(&mut counts) else { return };
        let (before, now) = (before[kind as usize], counts.now[kind as usize]);
        if before == now {
            return;
        }
        // Deadlines that were missed one after the other may come as one. What is lost, and who is alive, is one event
        // whatever the number.
        let events = match kind {
            Kind::DeadlineMissed => now.total.saturating_sub(before.total).max(1),
            _ => 1,
        };
        counts.unread[kind as usize] += events;
        if let Some(guard) = self.guards[kind as usize].get() {
            guard.trigger_times(events);
        }
    }

    /// The condition of an event, triggered as long as there is something to be taken.
    fn guard(&self, kind: Kind) -> Result<&GuardCondition> {
        let place = &self.guards[kind as usize];
        if let Some(guard) = place.get() {
            return Ok(guard);
        }
        let made = GuardCondition::lasting(&self.context)?;
        // Under the lock, so that each event is either told here or by whoever notes it.
        let counts = self.counts();
        let mut is_new = false;
        let guard = place.get_or_init(|| {
            is_new = true;
            made
        });
        if is_new {
            guard.trigger_times(counts.unread[kind as usize]);
        }
        Ok(guard)
    }

    /// The counts of an event now, and by how much they have changed since this was asked last.
    fn take(&self, kind: Kind) -> (Count, Count, rmw_qos_policy_kind_t) {
        let mut counts = self.counts();
        let (now, before) = (counts.now[kind as usize], counts.told[kind as usize]);
        counts.told[kind as usize] = now;
        counts.unread[kind as usize] = 0;
        if let Some(guard) = self.guards[kind as usize].get() {
            guard.clear();
        }
        (now, before, counts.last_policy)
    }

    /// The endpoint ends: no callback runs any more.
    pub(crate) fn end(&self) {
        for guard in self.guards.iter().filter_map(OnceLock::get) {
            // It fails where the context has ended, and with it the callback.
            let _ = guard.on_trigger(&self.context, None);
        }
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a publisher's event counts; `None` if it is none of a publisher's.
fn kind_of_publisher(abi: &Abi, event_type: rmw_event_type_t) -> Option<Kind> {
    kind_in(
        event_type,
        &[
            (abi.RMW_EVENT_LIVELINESS_LOST, Kind::LivelinessLost),
            (abi.RMW_EVENT_OFFERED_DEADLINE_MISSED, Kind::DeadlineMissed),
            (abi.RMW_EVENT_OFFERED_QOS_INCOMPATIBLE, Kind::QosIncompatible),
            (abi.RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE, Kind::TypeIncompatible),
            (abi.RMW_EVENT_PUBLICATION_MATCHED, Kind::Matched),
        ],
    )
}

/// What a subscription's event counts; `None` if it is none of a subscription's.
fn kind_of_subscription(abi: &Abi, event_type: rmw_event_type_t) -> Option<Kind> {
    kind_in(
        event_type,
        &[
            (abi.RMW_EVENT_LIVELINESS_CHANGED, Kind::LivelinessChanged),
            (abi.RMW_EVENT_REQUESTED_DEADLINE_MISSED, Kind::DeadlineMissed),
            (abi.RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE, Kind::QosIncompatible),
            (abi.RMW_EVENT_MESSAGE_LOST, Kind::MessageLost),
            (abi.RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE, Kind::TypeIncompatible),
            (abi.RMW_EVENT_SUBSCRIPTION_MATCHED, Kind::Matched),
        ],
    )
}

fn kind_in(event_type: rmw_event_type_t, known: &[(Option<u32>, Kind)]) -> Option<Kind> {
    known.iter().find(|(number, _)| *number == Some(event_type)).map(|(_, kind)| *kind)
}

/// What an event of either end counts; `None` if the distribution has no such event.
fn kind_of(abi: &Abi, event_type: rmw_event_type_t) -> Option<Kind> {
    kind_of_publisher(abi, event_type).or_else(|| kind_of_subscription(abi, event_type))
}

/// Whether there are events of this type: all that a distribution names. Looked up since March 2025.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_event_type_is_supported(event_type: rmw_event_type_t) -> bool {
    abi::here().is_ok_and(|abi| kind_of(abi, event_type).is_some())
}

/// # Safety
///
/// The event is null, zero, or was made here, and its endpoint lives as long as the answer is used.
unsafe fn event_of<'a>(event: *const rmw_event_t) -> Result<(&'a Events, Kind)> {
    // SAFETY: the caller promises it.
    let event = unsafe { ours(event) }?;
    let kind = kind_of(abi::here()?, event.event_type);
    let kind = kind.ok_or_else(|| RmwError::invalid("rmw_event has no event type"))?;
    // SAFETY: as above.
    Ok((unsafe { inside(event) }?, kind))
}

/// What a wait waits for.
///
/// # Safety
///
/// As of [`event_of`].
pub(crate) unsafe fn waitable<'a>(event: *const rmw_event_t) -> Result<&'a dyn Waitable> {
    // SAFETY: the caller promises it.
    let (events, kind) = unsafe { event_of(event) }?;
    Ok(events.guard(kind)?)
}

/// # Safety
///
/// `place` is null or valid, and `events` lives as long as the event is used.
unsafe fn make(
    place: *mut rmw_event_t,
    events: &Events,
    abi: &Abi,
    kind: Option<Kind>,
    event_type: rmw_event_type_t,
) -> Result {
    // SAFETY: the caller promises it.
    let place = unsafe { check::reference_mut("rmw_event", place) }?;
    if !place.implementation_identifier.is_null() {
        return Err(RmwError::invalid("rmw_event is initialised already"));
    }
    if kind_of(abi, event_type).is_none() {
        return Err(RmwError::invalid(format!("{event_type} is no event type")));
    }
    let Some(kind) = kind else {
        let what = format!("event type {event_type} of such an endpoint");
        return Err(RmwError::unsupported(what));
    };
    events.guard(kind)?;
    *place = rmw_event_t {
        implementation_identifier: IDENTIFIER.as_ptr(),
        data: std::ptr::from_ref(events).cast_mut().cast(),
        event_type,
    };
    Ok(())
}

/// An event of a publisher. It ends with the publisher.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_event_init(
    rmw_event: *mut rmw_event_t,
    publisher: *const rmw_publisher_t,
    event_type: rmw_event_type_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        unsafe {
            let events = inside(publisher)?.events();
            let abi = abi::here()?;
            make(rmw_event, events, abi, kind_of_publisher(abi, event_type), event_type)
        }
    })
}

/// An event of a subscription. It ends with the subscription.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_event_init(
    rmw_event: *mut rmw_event_t,
    subscription: *const rmw_subscription_t,
    event_type: rmw_event_type_t,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        unsafe {
            let events = inside(subscription)?.events();
            let abi = abi::here()?;
            make(rmw_event, events, abi, kind_of_subscription(abi, event_type), event_type)
        }
    })
}

/// What an event has counted, and by how much that has changed since it was asked last.
///
/// # Safety
///
/// As in rmw.h: `event_info` is null, or has room for the status of this event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_event(
    event_handle: *const rmw_event_t,
    event_info: *mut c_void,
    taken: *mut bool,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let (events, kind) = unsafe { event_of(event_handle) }?;
        check::not_null("event_info", event_info)?;
        // SAFETY: the caller promises it.
        let taken = unsafe { check::reference_mut("taken", taken) }?;
        let (now, before, last_policy_kind) = events.take(kind);
        // SAFETY: the caller promises that it has room for the status of this kind.
        unsafe { write_status(event_info, kind, now, before, last_policy_kind) };
        *taken = true;
        Ok(())
    })
}

/// # Safety
///
/// `place` has room for the status of this kind.
unsafe fn write_status(
    place: *mut c_void,
    kind: Kind,
    now: Count,
    before: Count,
    last_policy_kind: rmw_qos_policy_kind_t,
) {
    let small = |number: i64| number.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    let total_count = small(i64::try_from(now.total).unwrap_or(i64::MAX));
    let new = now.total - before.total;
    let total_count_change = small(i64::try_from(new).unwrap_or(i64::MAX));
    // SAFETY: the caller promises it.
    unsafe {
        match kind {
            Kind::LivelinessChanged => {
                place.cast::<rmw_liveliness_changed_status_t>().write(
                    rmw_liveliness_changed_status_t {
                        alive_count: small(now.current),
                        not_alive_count: small(now.not_alive),
                        alive_count_change: small(now.current - before.current),
                        not_alive_count_change: small(now.not_alive - before.not_alive),
                    },
                );
            }
            Kind::QosIncompatible => place.cast::<rmw_qos_incompatible_event_status_t>().write(
                rmw_qos_incompatible_event_status_t {
                    total_count,
                    total_count_change,
                    last_policy_kind,
                },
            ),
            Kind::MessageLost => {
                place.cast::<rmw_message_lost_status_t>().write(rmw_message_lost_status_t {
                    total_count: now.total as usize,
                    total_count_change: new as usize,
                })
            }
            // These three have one shape.
            Kind::DeadlineMissed | Kind::LivelinessLost => place
                .cast::<rmw_offered_deadline_missed_status_t>()
                .write(rmw_offered_deadline_missed_status_t { total_count, total_count_change }),
            Kind::TypeIncompatible => place
                .cast::<rmw_incompatible_type_status_t>()
                .write(rmw_incompatible_type_status_t { total_count, total_count_change }),
            Kind::Matched => place.cast::<rmw_matched_status_t>().write(rmw_matched_status_t {
                total_count: now.total as usize,
                total_count_change: new as usize,
                current_count: usize::try_from(now.current).unwrap_or(0),
                current_count_change: small(now.current - before.current),
            }),
        }
    }
}

/// From now on `callback` hears how many events there are, those included that were not taken yet.
///
/// # Safety
///
/// As in rmw.h: the callback may be called from any thread, with `user_data`, until it is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_event_set_callback(
    rmw_event: *mut rmw_event_t,
    callback: rmw_event_callback_t,
    user_data: *const c_void,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let (events, kind) = unsafe { event_of(rmw_event) }?;
        // SAFETY: the caller promises it.
        let callback = unsafe { callback_of(callback, user_data) };
        Ok(events.guard(kind)?.on_trigger(&events.context, callback)?)
    })
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::ffi::rmw::RMW_RET_INVALID_ARGUMENT;

    fn events() -> Arc<Events> {
        Events::new(&Context::builder().isolated().build().unwrap_or_else(|it| panic!("{it}")))
    }

    #[test]
    fn what_is_told_is_the_change_since_it_was_asked_for_last() {
        let events = events();
        let of = |kind| {
            let (now, before, policy) = events.take(kind);
            (now.total, now.total - before.total, now.current - before.current, policy)
        };
        for current in [1, 2, 1, 3] {
            events.of_publisher(&PublisherEvent::Matched { current });
        }
        let none = RMW_QOS_POLICY_INVALID;
        assert_eq!(of(Kind::Matched), (4, 4, 3, none));
        assert_eq!(of(Kind::Matched), (4, 0, 0, none));
        assert_eq!(of(Kind::QosIncompatible), (0, 0, 0, none), "it never happened");
        let mismatches = vec!["durability: offered volatile, requested transient_local".to_owned()];
        let subscription = tsuji::Gid::default();
        events.of_publisher(&PublisherEvent::IncompatibleQos { subscription, mismatches });
        assert_eq!(of(Kind::QosIncompatible), (1, 1, 0, RMW_QOS_POLICY_DURABILITY));
        events.of_publisher(&PublisherEvent::DeadlineMissed { total: 7 });
        assert_eq!(of(Kind::DeadlineMissed), (7, 7, 0, RMW_QOS_POLICY_DURABILITY));
    }

    #[test]
    fn an_event_is_ready_as_long_as_something_is_new() {
        let events = events();
        let mut list = tsuji::WaitList::new(&events.context).unwrap_or_else(|it| panic!("{it}"));
        let mut is_ready = || {
            let guard = events.guard(Kind::MessageLost).unwrap_or_else(|it| panic!("{it}"));
            let ready = list.wait(&[guard], Some(std::time::Duration::ZERO));
            !ready.unwrap_or_else(|it| panic!("{it}")).is_empty()
        };
        assert!(!is_ready());
        events.of_subscription(&SubscriptionEvent::MessageLost { total: 3 });
        assert!(is_ready() && is_ready());
        assert_eq!(events.take(Kind::MessageLost).0.total, 3);
        assert!(!is_ready());
        events.of_subscription(&SubscriptionEvent::MessageLost { total: 3 });
        assert!(!is_ready());
    }

    #[test]
    fn what_is_not_an_event_is_refused() {
        let (nothing, mut taken) = (ptr::null_mut(), false);
        // SAFETY: null is allowed.
        let rets = unsafe {
            [
                rmw_publisher_event_init(ptr::null_mut(), ptr::null(), 0),
                rmw_subscription_event_init(ptr::null_mut(), ptr::null(), 0),
                rmw_take_event(ptr::null(), nothing, &raw mut taken),
                rmw_event_set_callback(ptr::null_mut(), None, nothing),
            ]
        };
        assert_eq!(rets, [RMW_RET_INVALID_ARGUMENT; 4]);
    }
}
