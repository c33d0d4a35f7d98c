//! What a content filter leaves out of a subscription.

use std::sync::Arc;

use tsuji_transport::Sample;

use super::{State, SubscriptionCore};
use crate::Result;
use crate::content_filter::{ContentFilter, ContentFilterOptions};

/// The content filter of a subscription, and what it has left out.
#[derive(Default)]
pub(super) struct Content {
    pub(super) filter: Option<Arc<ContentFilter>>,
    /// Samples that were left out before their numbers were looked at: each is missing there, and not lost.
    pub(super) gaps: u64,
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

    /// Replaces the content filter. What waits and does not pass it is left out; nothing comes back.
    pub(crate) fn set_content_filter(&self, options: ContentFilterOptions) -> Result<()> {
        self.open("set a content filter")?;
        let filter = ContentFilter::compile(options, &self.core, &self.described)?;
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.content.filter, filter);
        state.sift_queue();
        self.discard(state);
        drop(before);
        Ok(())
    }

    /// A sample that was about to be handed out does not pass.
    pub(super) fn leave_out(&self, sample: &Sample) {
        let mut state = self.lock();
        state.unbook(sample);
        state.counters.filtered += 1;
    }
}

impl State {
    /// Whether a sample that is about to be queued is left out, which is counted.
    pub(super) fn is_left_out(&mut self, at: usize, sample: &Sample) -> bool {
        let Some(filter) = &self.content.filter else { return false };
        if !filter.leaves_out(sample) {
            return false;
        }
        self.count_left_out(at, sample.envelope.sequence);
        true
    }

    fn count_left_out(&mut self, at: usize, sequence: u64) {
        let flow = &mut self.flows.all[at].1;
        self.counters.filtered += 1;
        flow.sifted_next = flow.sifted_next.max(sequence.saturating_add(1));
        // One that came before already leaves no gap.
        if flow.next.is_none_or(|next| next <= sequence) {
            flow.gaps += 1;
            self.content.gaps += 1;
        }
    }

    /// Leaves out of the queue what does not pass a filter that is new.
    fn sift_queue(&mut self) {
        let Some(filter) = self.content.filter.clone() else { return };
        let queue = std::mem::take(&mut self.queue);
        for (order_ns, sample) in queue {
            if !filter.leaves_out(&sample) {
                self.queue.push_back((order_ns, sample));
                continue;
            }
            let at = self.flows.place_of(sample.envelope.gid);
            self.count_left_out(at, sample.envelope.sequence);
            // Whoever was told of it finds that it has left.
            self.handed_out += 1;
            self.discarded.push(sample);
        }
    }
}
