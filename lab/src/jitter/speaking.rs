//! A process that publishes texts at set times, one that notes when they come, or both in one; by tsuji, or by a peer without.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tsuji::{Context, Message, Node, Publisher, Subscription};
use tsuji::{History, Qos};
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_platform::clock::monotonic_ns;

use super::TEXT;
use crate::child::{answer, obey_each, parsed, play, said};
use crate::pace::{sleep_until, until_last};
use crate::placement;
use crate::transport::{self, Failure, Line, Peer, Talker, Way};

/// The hidden argument of such a process.
pub(crate) const SPEAKER: &str = "--speaker";

/// Plays one.
pub(crate) fn speak(text: &str) -> i32 {
    play(text, run_part)
}

/// What such a process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BeatPart {
    pub(super) folder: PathBuf,
    pub(super) way: Way,
    /// `speaker`, `listener` or `both`.
    pub(super) role: String,
    pub(super) name: String,
    pub(super) topic: String,
    /// Letters of a text.
    pub(super) bytes: usize,
    /// How many texts the subscription keeps.
    pub(super) depth: u32,
}

fn run_part(told: BeatPart) -> Result<(), String> {
    let mut part = Part::take(told)?;
    answer(&json!({ "open": true }));
    obey_each(|line| part.obey(line))?;
    if let Some(context) = part.context {
        context.shutdown();
    }
    // A thread that still listens ends with the process.
    Ok(())
}

/// What a process does.
struct Part {
    speaking: Option<Speaking>,
    listening: Option<Listening>,
    text: String,
    context: Option<Context>,
}

impl Part {
    fn take(told: BeatPart) -> Result<Self, String> {
        let BeatPart { folder, way, role, name, topic, bytes, depth } = told;
        let qos = Qos { history: History::KeepLast(depth), ..Qos::DEFAULT };
        let text = TEXT.chars().cycle().take(bytes).collect();
        match way {
            Way::Alone(peer) => {
                let line = Line::between_two(folder, topic, TYPE_NAME, qos, bytes + BESIDE_TEXT);
                Self::alone(peer, line, &role, text)
            }
            Way::Tsuji(route) => {
                let context = route.context(&folder).build().map_err(said)?;
                let node = context.node(&format!("{name}_{role}")).map_err(said)?;
                Self::by_tsuji(context, &node, &topic, qos, &role, text)
            }
        }
    }

    fn by_tsuji(
        context: Context,
        node: &Node,
        topic: &str,
        qos: Qos,
        role: &str,
        text: String,
    ) -> Result<Self, String> {
        let listening = match role {
            "speaker" => None,
            _ => Some(Listening::by_tsuji(node, topic, qos)?),
        };
        let speaking = match role {
            "listener" => None,
            _ => Some(Speaking::Tsuji(node.create_publisher(topic, qos).map_err(said)?)),
        };
        let node = node.clone();
        // It ends with the process.
        thread::spawn(move || {
            placement::receive_here();
            tsuji::spin(&node)
        });
        Ok(Self { speaking, listening, text, context: Some(context) })
    }

    fn alone(peer: Peer, line: Line, role: &str, text: String) -> Result<Self, String> {
        let (mut speaking, mut listening) = (None, None);
        if role == "listener" {
            listening = Some(Listening::alone(peer, line)?);
        } else {
            speaking = Some(Speaking::Alone(peer.talker(&line)?));
        }
        Ok(Self { speaking, listening, text, context: None })
    }

    fn obey(&mut self, line: &str) -> Result<Value, String> {
        match (&*line.split_whitespace().collect::<Vec<_>>(), &mut self.speaking, &self.listening) {
            (["meet"], Some(it), _) => it.meet(),
            (["speak", count, period_us], Some(it), _) => {
                it.speak(&self.text, parsed(count)?, parsed(period_us)?)
            }
            (["pause", at, ms], _, Some(it)) => Ok(it.pause(parsed(at)?, parsed(ms)?)),
            (["heard", count], _, Some(it)) => it.heard(parsed(count)?),
            _ => Err(format!("`{line}` is not understood")),
        }
    }
}

/// What DDS calls the type of a text.
const TYPE_NAME: &str = "std_msgs::msg::dds_::String_";

/// What a text has beside itself in CDR, its number included, at most.
const BESIDE_TEXT: usize = 64;

/// The end that speaks.
enum Speaking {
    Tsuji(Publisher<Text>),
    Alone(Box<dyn Talker>),
}

impl Speaking {
    /// Waits for the other end.
    fn meet(&mut self) -> Result<Value, String> {
        match self {
            Self::Tsuji(it) => it.wait_for_subscriptions(1, PATIENCE).map_err(said)?,
            Self::Alone(it) => transport::meet(&mut **it)?,
        }
        Ok(json!({ "met": true }))
    }

    fn speak(&mut self, text: &str, count: u64, period_us: u64) -> Result<Value, String> {
        let published = match self {
            Self::Tsuji(publisher) => publish_each(
                count,
                period_us,
                |_| Ok(Text { data: text.to_owned() }),
                |message| publisher.publish(message).map_err(said),
            ),
            Self::Alone(talker) => publish_each(
                count,
                period_us,
                |number| numbered(text, number),
                |sample| talker.send(&sample),
            ),
        };
        Ok(json!({ "published": published? }))
    }
}

/// A text in CDR, its number behind it: nothing else gives it one.
fn numbered(text: &str, number: u64) -> Result<Vec<u8>, String> {
    let text = Text { data: format!("{text} {number}") };
    text.to_vec().map_err(|error| error.to_string())
}

/// The number of such a text.
fn number_of(sample: &[u8]) -> Option<u64> {
    Text::view_cdr(sample).ok()?.data.rsplit_once(' ')?.1.parse().ok()
}

const PATIENCE: Duration = Duration::from_secs(10);

/// Publishes what was made of each number when it is due, whenever the one before was. Answers when each was due and was
/// published.
fn publish_each<T>(
    count: u64,
    period_us: u64,
    make: impl Fn(u64) -> Result<T, String>,
    mut publish: impl FnMut(T) -> Result<(), String>,
) -> Result<Vec<[u64; 2]>, String> {
    let mut published = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
    let begin_ns = monotonic_ns() + period_us * 1000;
    for number in 0..count {
        let due_ns = begin_ns + number * period_us * 1000;
        let message = make(number)?;
        sleep_until(due_ns);
        let at_ns = monotonic_ns();
        publish(message)?;
        published.push([due_ns, at_ns]);
    }
    Ok(published)
}

/// The end that listens.
struct Listening {
    end: ListeningEnd,
    noted: Arc<Mutex<Noted>>,
}

enum ListeningEnd {
    Tsuji(Node, Subscription<Text>),
    Alone(Peer, Failure),
}

#[derive(Default)]
struct Noted {
    /// The number of each that came, from 0, and when.
    received: Vec<(u64, u64)>,
    /// From which on the callback takes how long, once.
    pause: Option<(u64, Duration)>,
}

impl Listening {
    fn by_tsuji(node: &Node, topic: &str, qos: Qos) -> Result<Self, String> {
        let noted = Arc::<Mutex<Noted>>::default();
        let noting = Arc::clone(&noted);
        let subscription = node.create_subscription::<Text>(topic, qos, move |received| {
            let at_ns = monotonic_ns();
            let number = received.info().sequence - 1;
            let mut noted = noting.lock().unwrap_or_else(PoisonError::into_inner);
            noted.received.push((number, at_ns));
            if let Some((_, pause)) = noted.pause.take_if(|(from, _)| *from <= number) {
                drop(noted);
                thread::sleep(pause);
            }
        });
        let subscription = subscription.map_err(said)?;
        Ok(Self { end: ListeningEnd::Tsuji(node.clone(), subscription), noted })
    }

    fn alone(peer: Peer, line: Line) -> Result<Self, String> {
        let noted = Arc::<Mutex<Noted>>::default();
        let noting = Arc::clone(&noted);
        let failure = transport::listen(peer, line, move |sample| {
            let at_ns = monotonic_ns();
            // What has no number did not come as it was sent, and is missing.
            if let Some(number) = number_of(sample) {
                let mut noted = noting.lock().unwrap_or_else(PoisonError::into_inner);
                noted.received.push((number, at_ns));
            }
        })?;
        Ok(Self { end: ListeningEnd::Alone(peer, failure), noted })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self, at: u64, ms: u64) -> Value {
        self.lock().pause = Some((at, Duration::from_millis(ms)));
        json!({ "pause": true })
    }

    /// Waits until the last of `count` has come, or nothing does any more, and answers what came.
    fn heard(&self, count: u64) -> Result<Value, String> {
        until_last(|| {
            let received = &self.lock().received;
            (received.len(), received.iter().any(|it| it.0 + 1 == count))
        });
        let received = self.lock().received.clone();
        let displaced = match &self.end {
            ListeningEnd::Tsuji(_, subscription) => Some(subscription.counters().displaced),
            ListeningEnd::Alone(_, failure) => {
                failure.get().map_or(Ok(None), |it| Err(it.clone()))?
            }
        };
        let transport = self.transport();
        Ok(json!({ "received": received, "displaced": displaced, "transport": transport }))
    }

    /// What carries now.
    fn transport(&self) -> String {
        let (node, subscription) = match &self.end {
            ListeningEnd::Tsuji(node, subscription) => (node, subscription),
            ListeningEnd::Alone(peer, _) => return peer.word().to_owned(),
        };
        let routes = node.context().routes(PATIENCE).unwrap_or_default();
        let own = routes.iter().find(|it| it.topic == subscription.topic());
        let transport = own.and_then(|it| it.transport.as_ref());
        transport.map_or_else(|| "unknown".to_owned(), |it| format!("tsuji:{it}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_tsuji_is_known_by_its_number() {
        let sample = numbered("Test msg", 1234).unwrap();
        assert!(sample.len() <= "Test msg".len() + BESIDE_TEXT);
        assert_eq!(number_of(&sample), Some(1234));
        assert_eq!(number_of(&sample[..sample.len() - 2]), None);
        assert_eq!(number_of(&Text { data: "Test msg".to_owned() }.to_vec().unwrap()), None);
    }
}
