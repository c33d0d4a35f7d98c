//! Publishers are told which messages their subscriptions want, so that they send nothing else.

use std::sync::Arc;

use tsuji_transport::Gid;
use tsuji_transport::deferred::told;

use super::GraphCache;
use crate::content_filter;
use crate::control::protocol::{Control, FilterRecord, Flow};
use crate::session::Session;
use crate::subscription_core::SubscriptionCore;

impl GraphCache {
    /// The content filter of a subscription of this process was set, or ended.
    pub(crate) fn filter_changed(
        &mut self,
        session: &Session,
        subscription_core: &SubscriptionCore,
    ) {
        for writer in subscription_core.known_writers() {
            let flow = Flow::new(writer, subscription_core.gid);
            self.tell_filter(session, flow, subscription_core);
        }
    }

    /// Tells the publisher of a flow what its subscription wants. That it wants everything goes without saying, unless it
    /// has ever wanted less.
    pub(super) fn tell_filter(
        &mut self,
        session: &Session,
        flow: Flow,
        subscription_core: &SubscriptionCore,
    ) {
        let filter = subscription_core.filter();
        if let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) {
            let filter = filter.map(|it| Arc::clone(it.filter()));
            return publisher_core.set_filter(Gid(flow.subscription), filter);
        }
        let filter = filter.and_then(|it| it.record());
        if filter.is_some() || subscription_core.has_filtered() {
            self.say(session, flow.publisher, Control::Filter { flow, filter });
        }
    }

    /// A subscription of another process has told what it wants.
    pub(super) fn heard_filter(&self, flow: Flow, record: Option<&FilterRecord>) {
        let Some(publisher_core) = self.publisher_cores.get(&Gid(flow.publisher)) else { return };
        let filter = record.map(|record| content_filter::of_record(record, publisher_core));
        let filter = filter.and_then(|filter| {
            // It looks at what arrives itself.
            let topic = &publisher_core.topic;
            filter.inspect_err(|why| told::debug!(%topic, why, "a content filter is not used")).ok()
        });
        publisher_core.set_filter(Gid(flow.subscription), filter);
    }
}
