//! Receives numbered messages and counts what is missing.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt as _;
use ros2_client::Gid;

use crate::arguments::Listen;
use crate::end::End;
use crate::messages::Numbered;
use crate::peer::{Peer, absolute, say};

pub(crate) async fn run<M: Numbered>(peer: &mut Peer, arguments: &Listen) -> Result<(), End> {
    let (name, text) = absolute(&arguments.endpoint.topic)?;
    let on_dds = format!("rt{text}");
    let qos = arguments.endpoint.qos();
    let topic = peer
        .node
        .create_topic(&name, M::type_name(), &qos)
        .map_err(|error| End::failed(&text, error))?;
    let subscription = peer
        .node
        .create_subscription::<M>(&topic, Some(qos))
        .map_err(|error| End::failed(&text, error))?;
    let mut messages = pin!(subscription.async_stream());
    say("ready")?;

    let mut tally = Tally::default();
    let publisher_seen = Cell::new(false);
    let ended = loop {
        if arguments.count.is_some_and(|count| tally.received >= count) {
            break Ok(());
        }
        let number = tally.received + 1;
        let what = || match arguments.count {
            Some(count) => format!("message {number} of {count} on {text}"),
            None => format!("message {number} on {text}"),
        };
        let next = peer.wait_or(what, messages.next(), |view| {
            let there = view.writers_matched(&on_dds) > 0;
            publisher_seen.set(publisher_seen.get() || there);
            arguments.until_gone && publisher_seen.get() && !there
        });
        match next.await {
            Ok(Some(Some(Ok((message, about))))) => {
                // Whatever has sent a message has been there, even if it came and went between two looks.
                publisher_seen.set(true);
                if let Err(end) = tally.take(&message, about.publisher_gid()) {
                    break Err(end);
                }
            }
            Ok(Some(Some(Err(error)))) => break Err(End::failed(&text, error)),
            Ok(Some(None) | None) => break Ok(()),
            Err(End::Interrupted(_)) if arguments.count.is_none() => break Err(End::Told),
            Err(end) => break Err(end),
        }
    };
    say(format_args!("done {} lost {}", tally.received, tally.lost()))?;
    ended
}

/// What came, by its numbers.
#[derive(Default)]
struct Tally {
    received: u64,
    publishers: BTreeMap<Gid, Numbers>,
}

/// The numbers that came from one publisher, in which order is kept.
struct Numbers {
    first: u64,
    last: u64,
    received: u64,
}

impl Tally {
    fn take<M: Numbered>(&mut self, message: &M, publisher: Gid) -> Result<(), End> {
        self.received += 1;
        let bytes = message.bytes();
        let Some(number) = message.number() else {
            return say(format_args!("received - {bytes}"));
        };
        if !message.is_whole(number) {
            return Err(End::Failed(format!("message {number} of {bytes} bytes is damaged")));
        }
        match self.publishers.get_mut(&publisher) {
            Some(numbers) if number <= numbers.last => {
                return Err(End::Failed(format!("message {number} came after {}", numbers.last)));
            }
            Some(numbers) => {
                numbers.last = number;
                numbers.received += 1;
            }
            None => {
                let numbers = Numbers { first: number, last: number, received: 1 };
                self.publishers.insert(publisher, numbers);
            }
        }
        say(format_args!("received {number} {bytes}"))
    }

    /// How many numbers are missing between the first and the last that came from each publisher.
    fn lost(&self) -> u64 {
        self.publishers.values().map(|it| it.last - it.first + 1 - it.received).sum()
    }
}
