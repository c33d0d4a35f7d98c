//! Memory lent by a writer. Where `loan` is not declared there is none: see `refusal`.
//!
//! These cases ask for heap memory instead where the transport lends none, since a node does the
//! same: whatever is filled in place must arrive.

use tsuji_transport::{Envelope, LEAD, Loan, Payload};

use crate::payload::{bytes, fill, is_pattern, seed};
use crate::world::{Keep, Outlet, World};

#[track_caller]
fn loan(world: &World, writer: &Outlet, len: usize) -> Loan {
    if world.capability().loan { writer.writer.loan(len).unwrap() } else { Loan::on_heap(len) }
}

/// What is written into a loan is what the reader sees; inside one process it is the same memory.
pub fn a_loan_arrives_as_it_was_filled(world: World) {
    let (writer, reader) = world.pair("loans", Keep::All(1));
    let lens = [0, 1, 63, 64, 65, 4096, 100_000, 3 << 20].map(|len| writer.carried(len));
    for (sequence, len) in (1..).zip(lens) {
        let mut loan = loan(&world, &writer, len);
        assert_eq!(loan.len(), len);
        let envelope = Envelope { sequence, ..writer.envelope() };
        fill(&mut loan, seed(&envelope));
        let address = loan.as_ptr();
        writer.writer.send(&envelope, &Payload::Bytes(loan.freeze())).unwrap();
        let sample = reader.take().unwrap();
        assert_eq!(bytes(&sample).len(), len);
        if world.is_shared() && world.capability().loan {
            assert_eq!(bytes(&sample).as_ptr(), address, "a loan was copied");
        }
    }
}

/// The body behind a CDR header of 4 bytes is aligned to 16.
pub fn a_loan_is_aligned_for_cdr(world: World) {
    let writer = world.writer("aligned");
    let loans: Vec<_> = [0, 1, 4, 5, 63, 64, 65, 4095, 4096, 4097, 1 << 20]
        .map(|it| loan(&world, &writer, it))
        .into();
    for loan in &loans {
        assert_eq!(loan.as_ptr().addr() % 16, LEAD, "{loan:?}");
    }
}

/// A loan that was made shorter arrives at its new length.
pub fn a_truncated_loan_arrives_short(world: World) {
    let (writer, reader) = world.pair("truncated", Keep::All(1));
    for len in [0, 1, 77, 1000].map(|len| writer.carried(len)) {
        let mut loan = loan(&world, &writer, 1000);
        fill(&mut loan, 3);
        loan.truncate(len);
        loan.truncate(2000);
        writer.writer.send(&writer.envelope(), &Payload::Bytes(loan.freeze())).unwrap();
        let sample = reader.reader.take().unwrap().unwrap();
        assert_eq!(bytes(&sample).len(), len);
        assert!(is_pattern(bytes(&sample), 3));
    }
}

/// Loans held at the same time are different memory, and are sent in any order.
pub fn two_loans_at_once_are_apart(world: World) {
    let (writer, reader) = world.pair("two", Keep::All(2));
    let (mut one, mut two) = (loan(&world, &writer, 5000), loan(&world, &writer, 5000));
    fill(&mut one, 1);
    fill(&mut two, 2);
    for loan in [two, one] {
        writer.writer.send(&writer.envelope(), &Payload::Bytes(loan.freeze())).unwrap();
    }
    for seed in [2, 1] {
        let sample = reader.reader.take().unwrap().unwrap();
        assert!(is_pattern(bytes(&sample), seed));
    }
}

/// Loans that are dropped, frozen or not, do not use up what can be lent.
pub fn loans_given_back_are_lent_again(world: World) {
    let (writer, reader) = world.pair("given_back", Keep::All(1));
    for round in 0..10_000 {
        let len = if round % 100 == 0 { 8 << 20 } else { round };
        let loan = loan(&world, &writer, len);
        if round % 2 == 0 {
            drop(loan.freeze());
        }
    }
    writer.send(100);
    assert_eq!(reader.numbers(), [1]);
}

/// A loan of one writer is sent by another, of the same process.
pub fn a_loan_goes_by_another_writer(world: World) {
    let lender = world.writer("lender");
    let (writer, reader) = world.pair("sender", Keep::All(2));
    let mut loan = loan(&world, &lender, 70_000);
    fill(&mut loan, 9);
    let bytes_lent = loan.freeze();
    for _ in 0..2 {
        writer.writer.send(&writer.envelope(), &Payload::Bytes(bytes_lent.clone())).unwrap();
    }
    drop((bytes_lent, lender));
    for _ in 0..2 {
        let sample = reader.reader.take().unwrap().unwrap();
        assert!(is_pattern(bytes(&sample), 9));
    }
}

/// A loan stays what it is when its writer is dropped, and can still be sent by another.
pub fn a_loan_outlives_its_writer(world: World) {
    let lender = world.writer("lender");
    let (mut sent, mut dropped) = (loan(&world, &lender, 5000), loan(&world, &lender, 5000));
    drop(lender);
    // Whatever comes now must not get the memory of either.
    let others: Vec<_> = (0..10).map(|_| world.writer("other")).collect();
    let more: Vec<_> = others.iter().map(|other| loan(&world, other, 5000)).collect();
    fill(&mut sent, 4);
    fill(&mut dropped, 5);
    drop(more);
    assert!(is_pattern(&dropped, 5));
    drop(dropped);
    let (writer, reader) = world.pair("sender", Keep::All(1));
    writer.writer.send(&writer.envelope(), &Payload::Bytes(sent.freeze())).unwrap();
    assert!(is_pattern(bytes(&reader.reader.take().unwrap().unwrap()), 4));
}

/// The bytes of one loan go out many times, to readers that come and go.
pub fn a_loan_is_sent_again_and_again(world: World) {
    let writer = world.writer("again");
    let mut loan = loan(&world, &writer, 70_000);
    fill(&mut loan, 6);
    let lent = loan.freeze();
    let mut views = Vec::new();
    for _ in 0..20 {
        let reader = world.reader("again", Keep::All(2));
        writer.connect(&reader);
        writer.writer.send(&writer.envelope(), &Payload::Bytes(lent.clone())).unwrap();
        writer.writer.send(&writer.envelope(), &Payload::Bytes(lent.clone())).unwrap();
        views.push(reader.reader.take().unwrap().unwrap());
        writer.writer.disconnect(reader.gid);
    }
    drop(lent);
    for _ in 0..100 {
        drop(self::loan(&world, &writer, 70_000));
        writer.send(70_000);
    }
    assert!(views.iter().all(|view| is_pattern(bytes(view), 6)));
}

/// The bytes of one loan that go out more than once are as many samples, under their own envelopes,
/// and each is held by itself.
pub fn a_loan_sent_twice_is_two_samples(world: World) {
    for len in [100, 70_000] {
        let (writer, reader) = world.pair("twice", Keep::All(4));
        let mut loan = loan(&world, &writer, len);
        fill(&mut loan, 8);
        let lent = Payload::Bytes(loan.freeze());
        let envelope = |sequence| Envelope { sequence, ..writer.envelope() };
        // The same sample twice is two as well, as for a transport that repeats.
        let twice = if world.capability().whole_envelope { [1, 2, 2] } else { [1, 2, 3] };
        let last = twice[2] + 1;
        for sequence in twice {
            writer.writer.send(&envelope(sequence), &lent).unwrap();
        }
        if world.capability().directed {
            writer.writer.send_to(reader.gid, &envelope(last), &lent).unwrap();
        } else {
            writer.writer.send(&envelope(last), &lent).unwrap();
        }
        drop(lent);
        for sequence in twice.into_iter().chain([last]) {
            let sample = reader.reader.take().unwrap().unwrap();
            let arrived_ns = sample.envelope.arrived_ns;
            assert_eq!(sample.envelope, Envelope { arrived_ns, ..envelope(sequence) });
            assert!(is_pattern(bytes(&sample), 8), "sample {sequence}");
            drop(sample);
            // Whatever is lent now is not what is still to be taken.
            let others: Vec<_> = (0..20).map(|_| self::loan(&world, &writer, len)).collect();
            others.into_iter().for_each(|mut other| fill(&mut other, 9));
        }
    }
}
