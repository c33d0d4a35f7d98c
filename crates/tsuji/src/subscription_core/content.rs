//! What a content filter filters out of a subscription.

use std::sync::Arc;

use tsuji_transport::{Gid, Sample};

use super::{Link, State, SubscriptionCore};
use crate::Result;
use crate::content_filter::{ContentFilter, ContentFilterOptions};

/// The content filter of a subscription, and what it has filtered out.
#[derive(Default)]
pub(super) struct Content {
    pub(super) filter: Option<Arc<ContentFilter>>,
    /// Samples that were filtered out before their numbers were looked at: each is missing there, and not lost.
    pub(super) gaps: u64,
    /// Samples that publishers filtered out of links that were closed.
    pub(super) filtered: u64,
}

impl SubscriptionCore {
    /// The content filter, as it was set.
    pub(crate) fn content_filter(&self) -> Option<ContentFilterOptions> {
        // A forked child may find the lock held for ever.
        if !self.session.is_current() {
            return None;
        }
        self.lock().content.filter.as_ref().map(|it| it.options.clone())
    }

    /// The content filter, compiled.
    pub(crate) fn filter(&self) -> Option<Arc<ContentFilter>> {
        self.lock().content.filter.clone()
    }

    /// The publishers that send to it, or are about to.
    pub(crate) fn known_writers(&self) -> Vec<Gid> {
        let state = self.lock();
        let open = state.flows.all.iter().filter(|(_, flow)| flow.is_open());
        open.map(|(writer, _)| *writer).collect()
    }

    /// Replaces the content filter. What waits and does not pass it is filtered out; nothing comes back.
    pub(crate) fn set_content_filter(&self, options: ContentFilterOptions) -> Result<()> {
        self.open("set a content filter")?;
        let filter = ContentFilter::compile(options, &self.core, &self.described)?;
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.content.filter, filter);
        state.links.iter().for_each(|link| state.sift(link));
        state.sift_queue();
        self.discard(state);
        drop(before);
        Ok(())
    }

    /// A sample that was about to be handed out does not pass.
    pub(super) fn note_filtered(&self, sample: &Sample) {
        let mut state = self.lock();
        state.unbook(sample);
        state.counters.filtered += 1;
    }
}

impl State {
    /// Tells a link what is filtered out of what foreign publishers send.
    pub(super) fn sift(&self, link: &Link) {
        link.reader.sift(self.content.filter.as_ref().map(|filter| filter.sieve()));
    }

    /// Samples that publishers have filtered out, and links of what foreign ones sent.
    pub(super) fn filtered_now(&self) -> u64 {
        let on_links = self.links.iter().map(|link| link.reader.filtered());
        on_links.fold(self.content.filtered, u64::saturating_add)
    }

    /// Samples of one publisher that are missing because they were filtered out, there or here.
    pub(super) fn gaps_of(&self, writer: Gid) -> u64 {
        let flow = self.flows.all.iter().find(|(gid, _)| *gid == writer);
        let on_links = self.links.iter().map(|link| link.reader.filtered_of(writer));
        on_links.fold(flow.map_or(0, |(_, flow)| flow.gaps), u64::saturating_add)
    }

    /// Whether a sample that is about to be queued is filtered out, which is counted.
    pub(super) fn is_filtered(&mut self, at: usize, sample: &Sample) -> bool {
        let Some(filter) = &self.content.filter else { return false };
        if !filter.rejects(sample) {
            return false;
        }
        let flow = &mut self.flows.all[at].1;
        // One that two links bring counts once.
        let sequence = sample.envelope.sequence;
        if flow.sifted_next.max(flow.next.unwrap_or(0)) <= sequence {
            flow.sifted_next = sequence.saturating_add(1);
            self.count_filtered(at);
        }
        true
    }

    fn count_filtered(&mut self, at: usize) {
        self.flows.all[at].1.gaps += 1;
        self.content.gaps += 1;
        self.counters.filtered += 1;
    }

    /// Filters out of the queue what does not pass a filter that is new.
    fn sift_queue(&mut self) {
        let Some(filter) = self.content.filter.clone() else { return };
        let queue = std::mem::take(&mut self.queue);
        for (order_ns, sample) in queue {
            if !filter.rejects(&sample) {
                self.queue.push_back((order_ns, sample));
                continue;
            }
            let at = self.flows.place_of(sample.envelope.gid);
            self.count_filtered(at);
            // Whoever was told of it finds that it has left.
            self.handed_out += 1;
            self.discarded.push(sample);
        }
    }
}
