//! Who is connected, as rosbridge_server publishes it: how many, and each with its address and since when.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::json;
use tsuji::{Node, Qos, RawPublisher};

use crate::body::{self, wall_now};
use crate::plain::Plain;
use crate::types::Types;
use tsuji_codec::Now;
use tsuji_interfaces::Shipped;
use tsuji_rosbridge::Body;

/// Publishes who is connected whenever that changes.
pub(crate) struct Clients {
    count: Option<Outlet>,
    connected: Option<Outlet>,
    all: BTreeMap<u64, (IpAddr, Now)>,
    has_changed: bool,
}

struct Outlet {
    raw: RawPublisher,
    plan: tsuji_codec::Plan,
}

impl Clients {
    /// Without any yet. A topic that cannot be published on is left out, and the log says so.
    pub(crate) fn new(node: &Node) -> Self {
        // These are always there, and always the same.
        let types = Types::new(Box::new(Shipped));
        let open = |topic: &str, ty: &str| {
            let opened = types.message(ty).and_then(|ty| {
                let raw = node.create_raw_publisher(topic, ty.raw(), Qos::LATCHED);
                raw.map_err(|error| error.to_string())
                    .map(|raw| Outlet { raw, plan: ty.plan.clone() })
            });
            opened.inspect_err(|why| tracing::warn!(topic, why = %Plain(why), "not published")).ok()
        };
        Self {
            count: open("client_count", "std_msgs/msg/Int32"),
            connected: open("connected_clients", "rosbridge_msgs/msg/ConnectedClients"),
            all: BTreeMap::new(),
            has_changed: true,
        }
    }

    /// Notes that one has come.
    pub(crate) fn enter(&mut self, number: u64, address: IpAddr) {
        self.all.insert(number, (address, wall_now()));
        self.has_changed = true;
    }

    /// Notes that it has gone.
    pub(crate) fn leave(&mut self, number: u64) {
        self.has_changed |= self.all.remove(&number).is_some();
    }

    /// Publishes what has changed since the last time.
    pub(crate) fn publish(&mut self) {
        if !std::mem::take(&mut self.has_changed) {
            return;
        }
        let since = |(address, since): &(IpAddr, Now)| {
            let connection_time = json!({ "sec": since.sec, "nanosec": since.nanosec });
            json!({ "ip_address": address.to_string(), "connection_time": connection_time })
        };
        let clients: Vec<_> = self.all.values().map(since).collect();
        let messages = [
            (&self.count, json!({ "data": clients.len() })),
            (&self.connected, json!({ "clients": clients })),
        ];
        for (outlet, message) in messages {
            let Some(Outlet { raw, plan }) = outlet else { continue };
            let (mut cdr, text) = (Vec::new(), message.to_string());
            let written = body::read(plan, Body::Json(text.as_bytes()), wall_now(), &mut cdr);
            let published = written
                .map_err(|error| error.to_string())
                .and_then(|()| raw.publish_bytes(&cdr).map_err(|error| error.to_string()));
            if let Err(why) = published {
                tracing::warn!(topic = raw.topic(), why = %Plain(why), "not published");
            }
        }
    }
}
