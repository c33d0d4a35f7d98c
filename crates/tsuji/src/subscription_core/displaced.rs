//! How much a subscription has pushed out, and of which publishers these are still to be told.

use tsuji_transport::Gid;

use super::{FlowCount, Link, State};

/// How often at most publishers are told of what was displaced here.
const DISPLACED_TOLD_NS: u64 = 100_000_000;

impl State {
    /// Of which publishers more was displaced here than they know, and how much in all.
    pub(super) fn untold_displaced(&self) -> impl Iterator<Item = (Gid, u64)> {
        self.flows.all.iter().filter(|(_, flow)| flow.is_connected).filter_map(|(writer, flow)| {
            let total = self.displaced_in(*writer, flow);
            (flow.displaced_told < total).then_some((*writer, total))
        })
    }

    /// How much of a publisher was displaced here in all.
    pub(super) fn displaced_of(&self, writer: Gid) -> u64 {
        let flow = self.flows.all.iter().find(|(gid, _)| *gid == writer);
        flow.map_or(0, |(_, flow)| self.displaced_in(writer, flow))
    }

    pub(super) fn displaced_in(&self, writer: Gid, flow: &FlowCount) -> u64 {
        let on_links = self.links.iter().map(|link| link.reader.displaced_of(writer));
        on_links.fold(flow.displaced, u64::saturating_add)
    }

    /// When publishers are to be told of what was displaced here.
    pub(super) fn displaced_due_ns(&self) -> Option<u64> {
        let is_some = self.untold_displaced().next().is_some();
        is_some.then(|| self.displaced_told_ns.saturating_add(DISPLACED_TOLD_NS))
    }

    /// Has this thread be woken when something is displaced of a publisher that is to be told, where nothing is untold. It is
    /// woken once for each call, and what woke it may have been told already when it looks.
    pub(super) fn heed_displaced(&self) {
        if self.flows.all.iter().any(|(_, flow)| flow.is_connected)
            && self.displaced_due_ns().is_none()
        {
            self.links.iter().for_each(|link| link.reader.heed_displaced());
        }
    }

    pub(super) fn note_displaced(&mut self, now_ns: u64) {
        let mut untold: Vec<_> = self.untold_displaced().collect();
        for (writer, total) in &mut untold {
            let flow = self.flows.of(*writer);
            flow.displaced_told = *total;
            *total -= flow.displaced_before;
        }
        self.displaced_told_ns = now_ns;
        self.is_displacing = false;
        self.changing.displaced.extend(untold);
    }

    pub(super) fn displaced_now(&self) -> u64 {
        let on_links = self.links.iter().map(Link::displaced);
        on_links.fold(self.displaced, u64::saturating_add)
    }
}
