//! The contract of the transport seam, as tests that every transport runs.
//!
//! This crate knows the seam and no implementation. What a transport declares must work, what it
//! does not declare must be refused; no case is skipped. Two lines enrol an implementation, in a
//! file of its `tests/`:
//!
//! ```
//! use tsuji_conformance::World;
//! use tsuji_transport::inproc::InProcess;
//!
//! tsuji_conformance::suite!(inproc, || World::shared(InProcess::new()));
//! # fn main() {}
//! ```
//!
//! The cases ask for reliable endpoints throughout, so the suite is for transports that declare
//! [`reliable`](tsuji_core::Capability::reliable); for another it would have to grow.
//!
//! Waiting is done on a bell, without a time limit. A case that hangs is cut by a watchdog.
#![forbid(unsafe_code)]
// A case asserts; what cannot go wrong in it is unwrapped, as in any other test.
#![allow(clippy::unwrap_used, reason = "this crate is tests")]

pub mod cases;

mod library;
pub use library::{compile, example_transport, repository};

mod life;
pub use life::life;
mod payload;
mod settled;

mod stacks;

mod watchdog;
#[doc(hidden)]
pub use watchdog::{cut, remember_panics, run, watched};

mod world;
pub use world::{Inlet, Keep, Outlet, Process, World, endpoint};

/// Runs every case against the worlds that `$world` makes, as tests in a module called `$name`.
#[macro_export]
macro_rules! suite {
    ($name:ident, $world:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "`$world` names what its file imports")]
            use super::*;

            fn world() -> $crate::World {
                ($world)()
            }

            $crate::__every_case!();
        }
    };
}

/// Every case, by the module that holds it.
#[doc(hidden)]
#[macro_export]
macro_rules! __every_case {
    () => {
        $crate::__tests!(
            arrival:
                bytes_arrive_unchanged
                the_envelope_arrives_unchanged
                the_sender_may_reuse_what_it_sent
                ten_thousand_samples_arrive_once_and_in_order
                several_writers_keep_their_own_order
                one_writer_reaches_64_readers
                readers_are_limited_as_declared
                topics_do_not_mix
                both_ways_at_once
                a_process_reaches_itself_or_is_refused
                without_readers_nothing_is_sent
                the_newest_arrival_is_known_before_it_is_taken
                each_writer_has_its_own_newest_arrival
        );
        $crate::__tests!(
            loans:
                a_loan_arrives_as_it_was_filled
                a_loan_is_aligned_for_cdr
                a_truncated_loan_arrives_short
                two_loans_at_once_are_apart
                loans_given_back_are_lent_again
                a_loan_goes_by_another_writer
                a_loan_outlives_its_writer
                a_loan_is_sent_again_and_again
                a_loan_sent_twice_is_two_samples
        );
        $crate::__tests!(
            views:
                views_outlive_everything
                views_stay_while_a_thousand_samples_pass
                fifty_views_are_held_while_a_thousand_samples_pass
                a_view_is_sent_on
                held_views_make_busy_not_harm
        );
        $crate::__tests!(
            history:
                keep_last_keeps_the_newest
                keep_last_counts_for_each_reader
                keep_all_is_busy_at_its_limit
                keep_all_rings_when_there_is_room
                keep_all_beside_keep_last
                send_to_counts_as_a_sample
        );
        $crate::__tests!(
            reservation:
                a_reserved_send_is_not_busy
                cancel_gives_the_place_back
                the_last_place_goes_to_one
                the_last_place_goes_to_one_of_two_threads
                reserving_twice_is_once
                cancel_without_reservation_is_nothing
                a_dropped_writer_gives_its_place_back
                a_reservation_survives_unknown_peers
                a_reservation_survives_readers_that_leave
        );
        $crate::__tests!(
            connection:
                connecting_twice_sends_once
                disconnecting_twice_is_no_error
                a_disconnected_reader_keeps_what_it_had
                a_reader_comes_back
                send_to_reaches_only_one
                send_to_a_unknown_peer_is_refused
                send_to_is_busy_at_the_limit
                what_is_filtered_reaches_the_others_and_is_counted
        );
        $crate::__tests!(
            life:
                a_forgotten_writers_samples_are_delivered
                a_forgotten_writer_comes_back
                a_dropped_writers_samples_are_delivered
                a_dropped_reader_makes_room
                readers_come_and_go_without_leaving_memory
                writers_come_and_go_without_leaving_memory
                a_reader_that_never_takes_keeps_its_depth_of_those_that_left
                a_reader_that_keeps_all_keeps_what_those_that_left_sent
                the_dead_leave_no_more_than_the_depth
                a_dead_readers_views_are_free_again
                a_dead_writers_samples_are_delivered
                a_unknown_peer_that_parts_changes_nothing
        );
        $crate::__tests!(
            refusal:
                typed_is_carried_or_refused
                a_typed_value_may_do_anything_when_dropped
                a_loan_is_lent_or_refused
                too_large_is_refused
                garbage_addresses_are_refused
                a_address_of_a_dropped_reader_is_refused
                garbage_handshakes_are_refused
                garbage_answers_are_refused
        );
        $crate::__tests!(
            waking:
                an_arrival_rings_and_is_drained_once
                an_arrival_wakes_a_sleeper
                a_cell_rings_the_bells_that_it_is_attached_to
                one_hundred_thousand_times_ping_pong
        );
        $crate::__tests!(
            random:
                one_writer_does_as_the_model
                three_writers_do_as_the_model
                threads_under_stress
        );
    };
}

/// One test for each case of one module.
#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ($module:ident: $($case:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $case() {
                    let name = concat!(stringify!($module), "::", stringify!($case));
                    $crate::run(name, super::world, $crate::cases::$module::$case);
                }
            )+
        }
    };
}

#[cfg(test)]
mod tests {
    const MODULES: &[(&str, &str)] = &[
        ("arrival", include_str!("cases/arrival.rs")),
        ("connection", include_str!("cases/connection.rs")),
        ("history", include_str!("cases/history.rs")),
        ("life", include_str!("cases/life.rs")),
        ("loans", include_str!("cases/loans.rs")),
        ("random", include_str!("cases/random.rs")),
        ("refusal", include_str!("cases/refusal.rs")),
        ("reservation", include_str!("cases/reservation.rs")),
        ("views", include_str!("cases/views.rs")),
        ("waking", include_str!("cases/waking.rs")),
    ];

    /// `fork` is not here: it needs a `fork` that the enrolling crate brings.
    #[test]
    fn every_case_is_enrolled() {
        let enrolled = include_str!("lib.rs");
        for (module, text) in MODULES {
            let cases = text.lines().filter_map(|line| line.strip_prefix("pub fn "));
            for case in cases.filter_map(|line| line.split_once('(')).map(|(name, _)| name) {
                let line = format!("\n                {case}\n");
                assert!(enrolled.contains(&line), "{module}::{case} is not enrolled");
            }
        }
    }
}
