//! Publishes numbered messages.

use std::time::Duration;

use async_io::Timer;
use futures::{StreamExt as _, stream};

use crate::arguments::Talk;
use crate::end::End;
use crate::messages::Numbered;
use crate::peer::{Peer, absolute, say};

pub(crate) async fn run<M: Numbered>(peer: &mut Peer, arguments: &Talk) -> Result<(), End> {
    let (name, text) = absolute(&arguments.endpoint.topic)?;
    let on_dds = format!("rt{text}");
    let qos = arguments.endpoint.qos();
    let topic = peer
        .node
        .create_topic(&name, M::type_name(), &qos)
        .map_err(|error| End::failed(&text, error))?;
    let publisher = peer
        .node
        .create_publisher::<M>(&topic, Some(qos))
        .map_err(|error| End::failed(&text, error))?;
    say("ready")?;

    let wanted = arguments.wait_for;
    peer.until(
        || format!("{wanted} subscriptions of {text}"),
        |it| it.readers_matched(&on_dds) >= wanted,
    )
    .await?;
    peer.hold(arguments.hold).await?;

    let mut ticks = match arguments.rate {
        0.0 => stream::repeat(()).boxed(),
        rate => {
            Timer::interval_at(std::time::Instant::now(), Duration::from_secs_f64(rate.recip()))
                .map(drop)
                .boxed()
        }
    };
    let last = arguments.count.unwrap_or(u64::MAX);
    for number in 1..=last {
        let what = || match arguments.count {
            Some(count) => format!("room for message {number} of {count} on {text}"),
            None => format!("room for message {number} on {text}"),
        };
        let message = M::numbered(number, arguments.bytes);
        let sent = peer
            .wait(what, async {
                ticks.next().await;
                publisher.async_publish(message).await
            })
            .await;
        match sent {
            Ok(sent) => sent.map_err(|error| End::Failed(format!("message {number}: {error}")))?,
            Err(End::Interrupted(_)) if arguments.count.is_none() => return Err(End::Told),
            Err(end) => return Err(end),
        }
    }
    say(format_args!("sent {last}"))?;

    // ros2-client has no way to wait for acknowledgements, and what is not acknowledged is lost when the publisher is
    // dropped. Subscriptions that leave have what they wanted.
    let endpoint = &arguments.endpoint;
    if endpoint.is_best_effort() && !endpoint.is_transient_local() {
        return Ok(());
    }
    let what = || format!("the end of all subscriptions of {text}");
    let stays = endpoint.is_transient_local();
    match peer.until(what, |it| !stays && it.readers_matched(&on_dds) == 0).await {
        Err(End::Interrupted(_)) => Err(End::Told),
        ended => ended,
    }
}
