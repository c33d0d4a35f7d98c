//! A process that publishes texts at set times, one that notes when they come, or both in one.

use std::io::{self, BufRead as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji::core::{History, Qos};
use tsuji::{Node, Publisher, Subscription};
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_platform::clock::monotonic_ns;

use super::TEXT;
use crate::child::{answer, ended, said};
use crate::road::Road;

/// The hidden argument of such a process.
pub(crate) const SPEAKER: &str = "--speaker";

/// Plays one.
pub(crate) fn speak(text: &str) -> i32 {
    ended(play(text))
}

fn play(text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let word = |field: &str| value[field].as_str().unwrap_or_default();
    let number = |field: &str| value[field].as_u64().unwrap_or_default();
    let context = Road::of_word(word("road"))?.context(Path::new(word("folder")));
    let context = context.build().map_err(said)?;
    let role = word("role");
    let node = context.node(&format!("{}_{role}", word("name"))).map_err(said)?;
    let topic = crate::road::of_this_run(Path::new(word("folder")), word("name"));
    let depth = u32::try_from(number("depth")).unwrap_or(1);
    let qos = Qos { history: History::KeepLast(depth), ..Qos::DEFAULT };
    let listening = match role {
        "speaker" => None,
        _ => Some(Listening::begin(&node, &topic, qos)?),
    };
    let speaking = match role {
        "listener" => None,
        _ => Some(node.create_publisher::<Text>(&topic, qos).map_err(said)?),
    };
    let bytes = usize::try_from(number("bytes")).unwrap_or_default();
    let text = TEXT.chars().cycle().take(bytes).collect::<String>();
    let spinning = thread::spawn({
        let node = node.clone();
        move || tsuji::spin(&node)
    });
    answer(&json!({ "open": true }));
    let mut line = String::new();
    let mut input = io::stdin().lock();
    while let Ok(1..) = input.read_line(&mut line) {
        let answered = match (line.split_whitespace().collect::<Vec<_>>().as_slice(), &listening) {
            (["meet"], _) => meet(speaking.as_ref())?,
            (["speak", count, period_us], _) => {
                published(speaking.as_ref(), &text, parsed(count)?, parsed(period_us)?)?
            }
            (["pause", at, ms], Some(it)) => it.pause(parsed(at)?, parsed(ms)?),
            (["heard", count], Some(it)) => it.heard(parsed(count)?),
            _ => return Err(format!("`{}` is not understood", line.trim_end())),
        };
        answer(&answered);
        line.clear();
    }
    context.shutdown();
    // It ended because of that.
    let _ = spinning.join();
    Ok(())
}

fn parsed(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

/// Waits for the other end.
fn meet(publisher: Option<&Publisher<Text>>) -> Result<Value, String> {
    let publisher = publisher.ok_or("nobody speaks here")?;
    publisher.wait_for_subscriptions(1, PATIENCE).map_err(said)?;
    Ok(json!({ "met": true }))
}

const PATIENCE: Duration = Duration::from_secs(10);

/// Publishes each when it is due, whenever the one before was. Answers when each was due and was published.
fn published(
    publisher: Option<&Publisher<Text>>,
    text: &str,
    count: u64,
    period_us: u64,
) -> Result<Value, String> {
    let publisher = publisher.ok_or("nobody speaks here")?;
    let mut published = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
    let begin_ns = monotonic_ns() + period_us * 1000;
    for number in 0..count {
        let due_ns = begin_ns + number * period_us * 1000;
        let message = Text { data: text.to_owned() };
        while let Some(left @ 1..) = due_ns.checked_sub(monotonic_ns()) {
            thread::sleep(Duration::from_nanos(left));
        }
        let at_ns = monotonic_ns();
        publisher.publish(message).map_err(said)?;
        published.push([due_ns, at_ns]);
    }
    Ok(json!({ "published": published }))
}

/// The end that listens.
struct Listening {
    node: Node,
    subscription: Subscription<Text>,
    noted: Arc<Mutex<Noted>>,
}

#[derive(Default)]
struct Noted {
    /// The number of each that came, from 0, and when.
    received: Vec<(u64, u64)>,
    /// From which on the callback takes how long, once.
    pause: Option<(u64, Duration)>,
}

impl Listening {
    fn begin(node: &Node, topic: &str, qos: Qos) -> Result<Self, String> {
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
        Ok(Self { node: node.clone(), subscription, noted })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self, at: u64, ms: u64) -> Value {
        self.lock().pause = Some((at, Duration::from_millis(ms)));
        json!({ "pause": true })
    }

    /// Waits until the last of `count` has come, or nothing does any more, and answers what came.
    fn heard(&self, count: u64) -> Value {
        let (mut came, mut since) = (0, Instant::now());
        let received = loop {
            let noted = self.lock();
            if noted.received.len() != came {
                (came, since) = (noted.received.len(), Instant::now());
            }
            let has_last = noted.received.iter().any(|it| it.0 + 1 == count);
            if has_last || SILENT <= since.elapsed() {
                break noted.received.clone();
            }
            drop(noted);
            thread::sleep(LOOK);
        };
        let counters = self.subscription.counters();
        json!({ "received": received, "displaced": counters.displaced, "carrier": self.carrier() })
    }

    /// What carries now.
    fn carrier(&self) -> String {
        let routes = self.node.context().routes(PATIENCE).unwrap_or_default();
        let own = routes.iter().find(|it| it.topic == self.subscription.topic());
        let transport = own.and_then(|it| it.transport.as_ref());
        transport.map_or_else(|| "unknown".to_owned(), |it| format!("tsuji:{it}"))
    }
}

/// A flow in which nothing has come for so long has ended.
const SILENT: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);
