//! A plug-in's engine without tsuji: for measuring what tsuji adds, and for nothing else.
//!
//! The same library, with the same settings and samples of the same raw CDR, by the same functions in C. What they give goes
//! straight to the thread that wants the samples, which sleeps meanwhile. Nothing here finds endpoints of tsuji or tells
//! the other side anything.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tsuji_core::Qos;
use tsuji_engine::{EndpointSpec, EngineReader, EngineWriter, Listener, Participant as _, Tap};
use tsuji_platform::clock;
use tsuji_platform::ordered::{Condvar, Mutex};
use tsuji_transport::{Bytes, ErrorKind, Result};

use crate::library::Plugin;
use crate::{PluginConfig, engine};

/// One participant.
#[derive(Debug)]
pub struct Participant(engine::Participant);

impl Participant {
    /// Loads the transport `name` from `path`, and joins `domain` with others of this host, as tsuji does where no foreign
    /// node is spoken to.
    pub fn join_on_host(name: &str, path: &Path, domain: u32) -> Result<Self> {
        let plugin = Plugin::load(path, name)?;
        let config = PluginConfig {
            interfaces: vec!["lo".to_owned()],
            host_only: true,
            ..PluginConfig::new(plugin.about().clone(), path.to_owned(), domain)
        };
        engine::Participant::join(plugin, &config).map(Self)
    }

    /// A writer on a topic of the network.
    pub fn writer(&self, topic: &str, type_name: &str, qos: &Qos) -> Result<Writer> {
        self.0.writer(&spec(topic, type_name, qos)).map(Writer)
    }

    /// A reader on a topic of the network.
    pub fn reader(&self, topic: &str, type_name: &str, qos: &Qos) -> Result<Reader> {
        let mut engine = self.0.reader(&spec(topic, type_name, qos))?;
        let news = Arc::<News>::default();
        engine.listen(Arc::clone(&news) as Arc<dyn Listener>)?;
        let tap = engine.tap();
        Ok(Reader { news, tap, _engine: engine })
    }
}

fn spec<'a>(topic: &'a str, type_name: &'a str, qos: &'a Qos) -> EndpointSpec<'a> {
    EndpointSpec { topic, type_name, is_keyed: false, qos, keep_all_max: 1, user_data: &[] }
}

/// Writes samples.
pub struct Writer(Box<dyn EngineWriter>);

impl Writer {
    /// Writes a copy of CDR with its header of 4 bytes, as tsuji serialises what is published by reference. Where too much is
    /// not acknowledged it waits for that, for some seconds at most.
    pub fn write_copy(&self, sample: &[u8]) -> Result<()> {
        let sample = Bytes::copy_from(sample);
        for _ in 0..WAITS_MAX {
            match self.0.write(&sample, clock::wall_ns()) {
                Err(error) if error.kind() == ErrorKind::Busy => {
                    self.0.wait_for_acknowledgements(WAIT);
                }
                written => return written,
            }
        }
        self.0.write(&sample, clock::wall_ns())
    }

    /// How many readers match.
    pub fn matched(&self) -> usize {
        self.0.peep().matches().len()
    }
}

/// How long a writer waits for room at once, and how often.
const WAIT: Duration = Duration::from_millis(50);
const WAITS_MAX: u32 = 400;

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

/// Sleeps until samples are there, and takes them.
pub struct Reader {
    news: Arc<News>,
    tap: Arc<dyn Tap>,
    _engine: Box<dyn EngineReader>,
}

impl Reader {
    /// Sleeps until something has come since the last call, or for `timeout`.
    pub fn wait(&self, timeout: Duration) {
        let has_news = self.news.has_come.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.news.comes.wait_timeout_while(has_news, timeout, |has_news| !*has_news);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// The next sample, if there is one.
    pub fn take(&self) -> Result<Option<impl Deref<Target = [u8]>>> {
        Ok(self.tap.take()?.map(|arrived| arrived.bytes))
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// Wakes whoever waits. The library's own thread calls this.
#[derive(Debug, Default)]
struct News {
    has_come: Mutex<bool>,
    comes: Condvar,
}

impl Listener for News {
    fn data_available(&self) {
        *self.has_come.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.comes.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tsuji_engine::{Arrived, Guid, Peep};
    use tsuji_transport::Error;

    use super::*;

    #[test]
    fn what_is_refused_for_want_of_room_is_written_later() {
        /// Has room once somebody has waited for that.
        #[derive(Clone, Default)]
        struct Full {
            waited: Arc<AtomicU32>,
            written: Arc<AtomicU32>,
        }
        impl EngineWriter for Full {
            fn guid(&self) -> Guid {
                [0; 16]
            }
            fn listen(&mut self, _listener: Arc<dyn Listener>) -> Result<()> {
                Ok(())
            }
            fn write(&self, _bytes: &Bytes, _source_ns: i64) -> Result<()> {
                if self.waited.load(Ordering::Relaxed) == 0 {
                    return Err(Error::new(ErrorKind::Busy, "send"));
                }
                self.written.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            fn is_acknowledged(&self) -> bool {
                false
            }
            fn wait_for_acknowledgements(&self, _timeout: Duration) {
                self.waited.fetch_add(1, Ordering::Relaxed);
            }
            fn peep(&self) -> Arc<dyn Peep> {
                unreachable!("nobody asks who matches")
            }
        }
        let full = Full::default();
        Writer(Box::new(full.clone())).write_copy(&[0; 4]).unwrap();
        assert_eq!(full.written.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn news_that_came_before_the_wait_is_not_waited_for() {
        struct Empty;
        impl Tap for Empty {
            fn matches(&self) -> Vec<Guid> {
                Vec::new()
            }
            fn take(&self) -> Result<Option<Arrived>> {
                Ok(None)
            }
        }
        impl EngineReader for Empty {
            fn guid(&self) -> Guid {
                [0; 16]
            }
            fn listen(&mut self, _listener: Arc<dyn Listener>) -> Result<()> {
                Ok(())
            }
            fn tap(&self) -> Arc<dyn Tap> {
                Arc::new(Self)
            }
        }
        let news = Arc::<News>::default();
        let reader =
            Reader { news: Arc::clone(&news), tap: Arc::new(Empty), _engine: Box::new(Empty) };
        news.data_available();
        // This would never end if it were.
        reader.wait(Duration::MAX);
        assert!(!*news.has_come.lock().unwrap());
        assert!(reader.take().unwrap().is_none());
    }
}
