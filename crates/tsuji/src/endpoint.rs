//! What every endpoint has, be it of a publisher or of a subscription.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsuji_core::Qos;
use tsuji_transport::{Endpoint, Gid};

use crate::host::Host;
use crate::{Error, RawType, Result};

pub(crate) struct EndpointCore {
    pub(crate) gid: Gid,
    pub(crate) node: Gid,
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) type_hash: String,
    pub(crate) qos: Qos,
    pub(crate) host: Arc<Host>,
    is_closed: AtomicBool,
}

impl EndpointCore {
    pub(crate) fn new(host: &Arc<Host>, node: Gid, topic: String, of: RawType, qos: Qos) -> Self {
        Self {
            gid: host.new_gid(),
            node,
            topic,
            type_name: of.name,
            type_hash: of.hash,
            qos,
            host: Arc::clone(host),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Fails when the endpoint is closed, as well as when its participant is.
    pub(crate) fn open(&self, operation: &str) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed(format!("{operation} on {}: it was closed", self.topic)));
        }
        self.host.open(operation)
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// What transports are told.
    pub(crate) fn for_transport(&self) -> Endpoint {
        Endpoint {
            topic: self.topic.clone(),
            type_name: self.type_name.clone(),
            gid: self.gid,
            qos: self.qos,
            keep_all_max: self.host.keep_all_max(),
        }
    }
}
