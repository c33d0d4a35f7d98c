//! What nodes of rmw_zenoh ask of this process: samples kept for late joiners, and services.

use std::sync::Weak;

use tsuji_transport::Result;
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::{Query, Queryable};
use zenoh::sample::Locality;
use zenoh::time::{NTP64, Timestamp};

use crate::control::name;
use crate::engine::{Kept, Own, Shared, failed, payload_of};
use crate::format::{Announced, Attachment};

impl Shared {
    /// Gives late joiners of rmw_zenoh what is kept, as zenoh-ext's publishers do.
    pub(crate) fn keeper(
        &self,
        id: [u8; 4],
        announced: &Announced,
    ) -> Result<(Own<Queryable<()>>, Own<LivelinessToken>)> {
        let data_key = announced.data_key(self.domain);
        let key = format!("{data_key}/@adv/pub/{}/uhlc/_", self.session_name);
        let shared = Weak::clone(&self.me);
        let callback = move |query: Query| {
            if let Some(shared) = shared.upgrade() {
                shared.give_kept(id, &query, &data_key);
            }
        };
        let declare = failed("open a writer");
        let queryable = self.session().declare_queryable(&key).allowed_origin(Locality::Remote);
        let queryable = Own::new(queryable.callback(callback).wait().map_err(&declare)?);
        let token = self.session().liveliness().declare_token(key).wait().map_err(&declare)?;
        Ok((queryable, Own::new(token)))
    }

    fn give_kept(&self, id: [u8; 4], query: &Query, key: &str) {
        let max = query.parameters().get("_max").and_then(|it| it.parse::<usize>().ok());
        let kept = match self.lock().writers.get(&id) {
            Some(writer) => {
                let left_out = max.map_or(0, |max| writer.kept.len().saturating_sub(max));
                writer.kept.iter().skip(left_out).cloned().collect()
            }
            None => Vec::new(),
        };
        for Kept { number, source_ns, stamp, bytes } in kept {
            let attachment = Attachment { number, source_ns, writer: name(self.prefix, id) };
            let reply = query.reply(key, payload_of(&bytes)).attachment(attachment.to_bytes());
            if let Err(error) = reply.timestamp(stamp).wait() {
                tracing::debug!("a late joiner is not given a sample: {error}");
            }
        }
    }

    /// Answers clients of rmw_zenoh.
    pub(crate) fn queryable(&self, id: [u8; 4], key: &str) -> Result<Own<Queryable<()>>> {
        let shared = Weak::clone(&self.me);
        let callback = move |query: Query| {
            if let Some(shared) = shared.upgrade() {
                shared.asked(id, Own::new(query));
            }
        };
        let queryable = self.session().declare_queryable(key).complete(true);
        let queryable = queryable.allowed_origin(Locality::Remote).callback(callback).wait();
        Ok(Own::new(queryable.map_err(failed("open a writer"))?))
    }

    /// A time that is later than the one before.
    pub(crate) fn stamp(&self, last: Option<Timestamp>) -> Timestamp {
        let now = self.session().new_timestamp();
        match last {
            Some(last) if now.get_time() <= last.get_time() => {
                Timestamp::new(NTP64(last.get_time().as_u64() + 1), *now.get_id())
            }
            _ => now,
        }
    }
}
