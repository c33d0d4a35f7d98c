//! Both ends of `example_interfaces/srv/AddTwoInts`.

use ros2_client::qos::{History, QosProfile, WhenFull};
use ros2_client::{ServiceMapping, ServiceTypeName};

use crate::arguments::{Call, Serve};
use crate::end::End;
use crate::messages::{AddTwoIntsRequest, AddTwoIntsResponse};
use crate::peer::{Peer, absolute, say};

fn qos() -> QosProfile {
    // rmw_qos_profile_services_default.
    QosProfile::subscription_default()
        .reliability_reliable(WhenFull::Block)
        .history(History::KeepLast { depth: 10 })
}

fn service_type() -> ServiceTypeName {
    ServiceTypeName::new("example_interfaces", "AddTwoInts")
}

pub(crate) async fn serve(peer: &mut Peer, arguments: &Serve) -> Result<(), End> {
    let (name, text) = absolute(&arguments.name)?;
    let replies = format!("rr{text}Reply");
    let mapping = ServiceMapping::from(arguments.mapping);
    let server = peer
        .node
        .create_server::<AddTwoIntsRequest, AddTwoIntsResponse>(
            mapping,
            &name,
            &service_type(),
            qos(),
            qos(),
        )
        .map_err(|error| End::failed(&text, error))?;
    say("ready")?;

    loop {
        let what = || format!("a request to {text}");
        let request = match peer.wait(what, server.async_receive_request()).await {
            Err(End::Interrupted(_)) => return Err(End::Told),
            request => request?,
        };
        let (id, request) = request.map_err(|error| End::failed("request", error))?;
        // A reply that is sent before its reader has matched is lost. In the mapping of Cyclone only the first eight
        // bytes of the client's GUID are true.
        let client = id.writer_gid.to_bytes16();
        let client = &client[..8];
        let met = peer.until(
            || format!("the client of {text} to match for its reply"),
            |view| {
                view.readers_matched_of(&replies, |it| it.starts_with(client)) > 0
                    || !view.knows_participant(client)
            },
        );
        met.await?;
        let sum = request.a.wrapping_add(request.b);
        let reply = server.async_send_response(id, AddTwoIntsResponse { sum });
        let sent = peer.wait(|| format!("room for a reply of {text}"), reply).await?;
        sent.map_err(|error| End::Failed(format!("reply: {error:?}")))?;
        say(format_args!("served {} {}", request.a, request.b))?;
    }
}

pub(crate) async fn call(peer: &mut Peer, arguments: &Call) -> Result<(), End> {
    let (name, text) = absolute(&arguments.name)?;
    let (requests, replies) = (format!("rq{text}Request"), format!("rr{text}Reply"));
    let mapping = ServiceMapping::from(arguments.mapping);
    let client = peer
        .node
        .create_client::<AddTwoIntsRequest, AddTwoIntsResponse>(
            mapping,
            &name,
            &service_type(),
            qos(),
            qos(),
        )
        .map_err(|error| End::failed(&text, error))?;
    say("ready")?;

    let met = peer.until(
        || format!("a server of {text}"),
        |view| view.readers_matched(&requests) > 0 && view.writers_matched(&replies) > 0,
    );
    met.await?;
    peer.hold(arguments.hold).await?;
    let (a, b, count) = (arguments.a, arguments.b, arguments.count);
    for number in 1..=count {
        let what = || format!("reply {number} of {count} from {text}");
        let reply = peer.wait(what, client.async_call_service(AddTwoIntsRequest { a, b })).await?;
        let sum = reply.map_err(|error| End::failed("reply", error))?.sum;
        if sum != a.wrapping_add(b) {
            return Err(End::Failed(format!("reply {number} says that {a} + {b} = {sum}")));
        }
        say(format_args!("sum {sum}"))?;
    }
    Ok(())
}
