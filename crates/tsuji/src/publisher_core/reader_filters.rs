//! Content filters of subscriptions, looked at where their samples are sent.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use tsuji_msg::Filter;
use tsuji_transport::{Gid, Payload};

use super::attempt::{Attempt, Outgoing};
use super::history::{History, Kept};
use super::links::LinkId;
use super::{PublisherCore, ValuePasses};

/// The content filters of readers. They stay while their flows do, whatever link these take.
#[derive(Clone, Default)]
pub(super) struct ReaderFilters(Vec<(Gid, Arc<Filter>)>);

impl ReaderFilters {
    fn set(&mut self, reader: Gid, filter: Option<Arc<Filter>>) {
        self.remove(reader);
        self.0.extend(filter.map(|filter| (reader, filter)));
    }

    pub(super) fn remove(&mut self, reader: Gid) {
        self.0.retain(|(gid, _)| *gid != reader);
    }

    /// The readers for which a message is not, as `passes` tells. One that cannot be looked at is for everybody: who takes it
    /// says what is wrong with it.
    fn filtered(&self, passes: impl Fn(&Filter) -> bool) -> Vec<Gid> {
        let filtered = self.0.iter().filter(|(_, filter)| !passes(filter));
        filtered.map(|(reader, _)| *reader).collect()
    }

    /// Whether a sample of the history is for this reader.
    pub(super) fn lets_pass(&self, reader: Gid, kept: &Kept) -> bool {
        let found = self.0.iter().find(|(gid, _)| *gid == reader);
        found.is_none_or(|(_, filter)| match kept.payload(false) {
            Some(Payload::Bytes(bytes)) => filter.matches(bytes) != Ok(false),
            _ => true,
        })
    }

    /// The number of the oldest of the last so many that are for this reader.
    pub(super) fn first_of_last(
        &self,
        reader: Gid,
        history: &History,
        count: usize,
    ) -> Option<u64> {
        if self.0.iter().all(|(gid, _)| *gid != reader) {
            return history.first_of_last(count);
        }
        history.first_of_last_that(count, |kept| self.lets_pass(reader, kept))
    }

    /// The readers for which a sample is not; `None` if its value is to be asked, for which no lock may be held.
    ///
    /// Those that have two links get everything: they tell by the numbers what one of them has brought already.
    pub(super) fn filter(
        &self,
        attempt: &mut Attempt<'_>,
        trials: &HashMap<Gid, LinkId>,
    ) -> Option<Vec<Gid>> {
        if self.0.is_empty() {
            return Some(Vec::new());
        }
        let bytes: &[u8] = match (&attempt.bytes, attempt.outgoing) {
            (Some(Payload::Bytes(bytes)), _) => bytes,
            (_, Outgoing::Bytes(bytes)) => bytes,
            (_, Outgoing::Copied(bytes)) => bytes,
            (_, Outgoing::Shared(_) | Outgoing::Borrowed(_)) => {
                let mut filtered = attempt.filtered.take()?;
                filtered.retain(|reader| !trials.contains_key(reader));
                return Some(filtered);
            }
        };
        let mut filtered = self.filtered(|filter| filter.matches(bytes) != Ok(false));
        filtered.retain(|reader| !trials.contains_key(reader));
        Some(filtered)
    }

    /// The same of a value, which may do anything when it is asked.
    fn ask(&self, passes: ValuePasses, value: &dyn Any) -> Vec<Gid> {
        self.filtered(|filter| passes(filter, value) != Ok(false))
    }
}

impl PublisherCore {
    /// From now on this reader is sent only what passes its filter, where it is sent to by itself.
    pub(crate) fn set_filter(&self, reader: Gid, filter: Option<Arc<Filter>>) {
        self.lock().filters.set(reader, filter);
    }

    /// Asks a value for which readers it is not.
    pub(super) fn ask_filters(&self, value: &dyn Any) -> Vec<Gid> {
        let filters = self.lock().filters.clone();
        let passes = self.spec.codec.map(|codec| codec.passes);
        passes.map_or_else(Vec::new, |passes| filters.ask(passes, value))
    }
}
