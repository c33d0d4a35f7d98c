//! A process that publishes texts at set times, one that notes when they come, or both in one; by tsuji, or by a peer without.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tsuji::{Context, History, Message, Node, Qos};
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_platform::clock::monotonic_ns;

use super::TEXT;
use crate::Allocations;
use crate::child::{ChildPart, answer, obey_each, parsed, said};
use crate::pace::sleep_until;
use crate::placement;
use crate::transport::{Hears, Line, Peer, Sends, Way};

/// What such a process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BeatPart {
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

impl ChildPart for BeatPart {
    const MODE: &'static str = "--speaker";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        let mut part = Part::take(self)?;
        answer(&json!({ "open": true }));
        obey_each(|line| part.obey(line))?;
        if let Some(context) = part.context {
            context.shutdown();
        }
        // A thread that still listens ends with the process.
        Ok(())
    }
}

/// What a process does.
struct Part {
    speaking: Option<Sends<Text>>,
    listening: Option<Hears<Text>>,
    text: String,
    /// From which number on the callback takes how long, once.
    pause: Arc<Mutex<Option<(u64, Duration)>>>,
    /// What carries where it is not tsuji.
    peer: Option<Peer>,
    context: Option<Context>,
}

impl Part {
    fn take(told: BeatPart) -> Result<Self, String> {
        let BeatPart { folder, way, role, name, topic, bytes, depth } = told;
        let qos = Qos { history: History::KeepLast(depth), ..Qos::DEFAULT };
        let text = TEXT.chars().cycle().take(bytes).collect();
        let pause = Arc::<Mutex<Option<(u64, Duration)>>>::default();
        let (speaks, listens) = (role != "listener", role != "speaker");
        let (mut peer, mut context) = (None, None);
        let (speaking, listening) = match way {
            Way::Alone(alone) => {
                peer = Some(alone);
                let line = Line::between_two(folder, topic, TYPE_NAME, qos, bytes + BESIDE_TEXT);
                let speaking = speaks.then(|| alone.talker(&line).map(Sends::Alone)).transpose()?;
                // What has no number did not come as it was sent, and is missing.
                let listening = listens.then(|| Hears::alone(alone, line, number_of));
                (speaking, listening.transpose()?)
            }
            Way::Tsuji(route) => {
                let own = context.insert(route.context(&folder).build().map_err(said)?);
                let node = own.node(&format!("{name}_{role}")).map_err(said)?;
                let listens = listens.then(|| listening(&node, &topic, qos, &pause)).transpose()?;
                let speaks = speaks.then(|| node.create_publisher(&topic, qos)).transpose();
                // It ends with the process.
                thread::spawn(move || {
                    placement::receive_here();
                    tsuji::spin(&node)
                });
                (speaks.map_err(said)?.map(Sends::Tsuji), listens)
            }
        };
        Ok(Self { speaking, listening, text, pause, peer, context })
    }

    fn obey(&mut self, line: &str) -> Result<Value, String> {
        match (&*line.split_whitespace().collect::<Vec<_>>(), &mut self.speaking, &self.listening) {
            (["meet"], Some(it), _) => it.meet().map(|()| json!({ "met": true })),
            (["speak", count, period_us], Some(it), _) => {
                speak_by(it, &self.text, parsed(count)?, parsed(period_us)?)
            }
            (["pause", at, ms], _, Some(_)) => {
                let pause = (parsed(at)?, Duration::from_millis(parsed(ms)?));
                *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = Some(pause);
                Ok(json!({ "pause": true }))
            }
            (["heard", count], _, Some(it)) => {
                let mut came = it.heard(parsed(count)?)?;
                let peer = || self.peer.map(|it| it.word().to_owned());
                came.transport = came.transport.map(|it| format!("tsuji:{it}")).or_else(peer);
                Ok(json!(came))
            }
            _ => Err(format!("`{line}` is not understood")),
        }
    }
}

/// What DDS calls the type of a text.
const TYPE_NAME: &str = "std_msgs::msg::dds_::String_";

/// What a text has beside itself in CDR, its number included, at most.
const BESIDE_TEXT: usize = 64;

/// Notes texts by their sequence, and stands still where that is wanted.
fn listening(
    node: &Node,
    topic: &str,
    qos: Qos,
    pause: &Arc<Mutex<Option<(u64, Duration)>>>,
) -> Result<Hears<Text>, String> {
    let pause = Arc::clone(pause);
    let stand_still = move |number| {
        let mut pause = pause.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = pause.take_if(|(from, _)| *from <= number);
        drop(pause);
        if let Some((_, pause)) = taken {
            thread::sleep(pause);
        }
    };
    Hears::by_tsuji(node, topic, qos, |it| Some(it.info().sequence - 1), stand_still)
}

fn speak_by(
    end: &mut Sends<Text>,
    text: &str,
    count: u64,
    period_us: u64,
) -> Result<Value, String> {
    let published = match end {
        Sends::Tsuji(publisher) => publish_each(
            count,
            period_us,
            |_| Ok(Text { data: text.to_owned() }),
            |message| publisher.publish(message).map_err(said),
        ),
        Sends::Alone(talker) => publish_each(
            count,
            period_us,
            |number| numbered(text, number),
            |sample| talker.send(&sample),
        ),
    };
    Ok(json!({ "published": published? }))
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
