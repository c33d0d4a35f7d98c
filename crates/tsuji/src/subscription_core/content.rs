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
    /// There was one at some time.
    has_filtered: bool,
    /// Samples that are missing and not lost, of publishers whose counts are kept no more.
    pub(super) gaps_explained: u64,
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

    /// Whether it has, or ever had, a content filter.
    pub(crate) fn has_filtered(&self) -> bool {
        self.lock().content.has_filtered
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
        state.content.has_filtered |= filter.is_some();
        let before = std::mem::replace(&mut state.content.filter, filter);
        state.links.iter().for_each(|link| state.set_filter(link));
        state.filter_queue();
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
    pub(super) fn set_filter(&self, link: &Link) {
        link.reader.set_filter(self.content.filter.as_ref().map(|filter| filter.byte_filter()));
    }

    /// Samples that publishers have filtered out, and links of what foreign ones sent.
    pub(super) fn filtered_now(&self) -> u64 {
        let on_links = self.links.iter().map(|link| link.reader.filtered());
        on_links.fold(self.content.filtered, u64::saturating_add)
    }

    /// Samples of each publisher that were filtered out before their numbers were looked at, there or here.
    pub(super) fn gaps(&self) -> impl Iterator<Item = u64> {
        self.flows.all.iter().map(|(writer, flow)| {
            let on_links = self.links.iter().map(|link| link.reader.filtered_of(*writer));
            on_links.fold(flow.gaps, u64::saturating_add)
        })
    }

    /// Samples that are missing because they were filtered out. What was filtered out of a flow before its first sample came is
    /// not missing there, and explains no other flow's gaps.
    pub(super) fn gaps_explained(&self) -> u64 {
        if !self.content.has_filtered {
            return 0;
        }
        let of_flows =
            self.flows.values().zip(self.gaps()).map(|(flow, gaps)| gaps.min(flow.missing));
        of_flows.fold(self.content.gaps_explained, u64::saturating_add)
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
        if flow.filtered_next.max(flow.next.unwrap_or(0)) <= sequence {
            flow.filtered_next = sequence.saturating_add(1);
            self.count_filtered(at);
        }
        true
    }

    fn count_filtered(&mut self, at: usize) {
        self.flows.all[at].1.gaps += 1;
        self.counters.filtered += 1;
    }

    /// Filters out of the queue what does not pass a filter that is new.
    fn filter_queue(&mut self) {
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
