//! Child processes: started, asked, ended.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tsuji_platform::subprocess::{Silence, Subprocess};

use crate::child::ChildPart;
use crate::interrupt::Interrupt;
use crate::placement::{Place, Places, RECEIVES_ON};
use crate::probe::Beside;
use crate::rounds::Round;
use crate::route::{self, Route};
use crate::transport::{Flow, Role, Spec};

/// Why something was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The user wants it to end.
    Interrupted,
    /// It did not work.
    Failed(String),
}

impl Stop {
    /// The same, saying who it was that failed.
    pub(crate) fn of(self, who: &str) -> Self {
        match self {
            Self::Failed(why) => Self::Failed(format!("{who}: {why}")),
            Self::Interrupted => Self::Interrupted,
        }
    }
}

impl From<String> for Stop {
    fn from(error: String) -> Self {
        Self::Failed(error)
    }
}

/// How this program starts itself as a child.
#[derive(Clone, Debug)]
pub struct Program {
    words: Vec<OsString>,
    /// What its children find in their environment besides.
    variables: Vec<(&'static str, OsString)>,
}

impl Program {
    /// The program that runs now.
    pub fn current() -> std::io::Result<Self> {
        Ok(Self { words: vec![env::current_exe()?.into_os_string()], variables: Vec::new() })
    }

    /// Another program in the same folder.
    pub(crate) fn beside(&self, name: &str) -> Option<Self> {
        Self::in_folder(Path::new(&self.words[0]).parent()?, name)
    }

    /// The variable with folders, colons between, of programs that are measured beside tsuji.
    pub(crate) const PEERS: &str = "TSUJI_LAB_PEERS";

    /// Such a program: in the same folder, or in the first of [`PEERS`](Self::PEERS) that has it.
    pub(crate) fn peer(&self, name: &str) -> Option<Self> {
        let folders = env::var_os(Self::PEERS).unwrap_or_default();
        // A relative one would be another for each working directory.
        let mut folders = env::split_paths(&folders).filter(|it| it.is_absolute());
        self.beside(name).or_else(|| folders.find_map(|it| Self::in_folder(&it, name)))
    }

    /// The program of that name in a folder.
    pub(crate) fn in_folder(folder: &Path, name: &str) -> Option<Self> {
        let path = folder.join(name);
        let words = vec![path.clone().into_os_string()];
        path.is_file().then_some(Self { words, variables: Vec::new() })
    }

    /// The same, with more words before those of a child.
    pub(crate) fn with_words(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(OsString::from));
        self
    }

    /// The same, with a variable in the environment of its children.
    pub(crate) fn with_variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }
}

/// What all children of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// How children are started.
    pub(crate) program: Program,
    /// The user's wish to end.
    pub(crate) interrupt: Interrupt,
    /// Who runs on which processor.
    pub(crate) places: Places,
    /// Where children sit that are started now.
    place: Place,
    folder: Arc<Folder>,
}

impl Stage {
    /// A stage with a folder of its own, which goes when the last clone does.
    pub(crate) fn new(
        program: Program,
        interrupt: Interrupt,
        places: Places,
    ) -> Result<Self, String> {
        static STAGES: AtomicU32 = AtomicU32::new(0);
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let name = format!("tsuji-lab-{}-{number}", process::id());
        let path = env::temp_dir().join(name);
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| format!("create {}: {error}", path.display()))?;
        route::write_policies(&path)?;
        let (place, folder) = (Place::Anywhere, Arc::new(Folder(path)));
        Ok(Self { program, interrupt, places, place, folder })
    }

    /// The same stage for children of another program.
    pub(crate) fn with_program(&self, program: Program) -> Self {
        Self { program, ..self.clone() }
    }

    /// The same stage for children that sit there.
    pub(crate) fn at(&self, place: Place) -> Self {
        Self { place, ..self.clone() }
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder.0
    }
}

#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // iceoryx2 leaves files when its process is killed, and a few when it is not.
        let prefix = crate::transport::shared_memory_prefix(&self.0);
        for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One child process. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Child {
    process: Subprocess,
    interrupt: Interrupt,
}

impl Child {
    /// Starts one that plays `part`, and waits until it stands.
    pub(crate) fn open<P: ChildPart>(stage: &Stage, part: &P) -> Result<Self, Stop> {
        let mut child = Self::start(stage, part)?;
        child.answer().map(|_| child)
    }

    /// Starts one that plays `part`.
    pub(crate) fn start<P: ChildPart>(stage: &Stage, part: &P) -> Result<Self, Stop> {
        let text = serde_json::to_string(part).map_err(|error| error.to_string())?;
        Self::start_with(stage, [P::MODE, &text])
    }

    /// Starts one with these words.
    pub(crate) fn start_with(stage: &Stage, words: [&str; 2]) -> Result<Self, Stop> {
        let [program, lead @ ..] = &*stage.program.words else {
            return Err("no program".to_owned().into());
        };
        let mut command = Command::new(program);
        for variable in NOT_INHERITED {
            command.env_remove(variable);
        }
        command
            .args(lead)
            .args(words)
            .env("TSUJI_RUNTIME_DIR", stage.folder())
            .envs(stage.program.variables.iter().map(|(name, value)| (name, value)))
            .envs(stage.places.variable(stage.place))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the parent, which ends its children in order.
            .process_group(0);
        let place = stage.places.take(stage.place);
        let place = place.map_err(|error| format!("take a processor: {error}"))?;
        let process = command.spawn();
        // What listens to it sits where the laboratory does.
        drop(place);
        let process = process.and_then(|it| Subprocess::of(it, ENDS));
        let process = process.map_err(|error| format!("start {}: {error}", program.display()))?;
        Ok(Self { process, interrupt: stage.interrupt.clone() })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Tells it to do something without waiting for the answer.
    pub(crate) fn tell(&mut self, command: &str) -> Result<(), Stop> {
        // Why it has gone is in its last answer.
        if self.process.tell(command).is_err() { self.answer().map(drop) } else { Ok(()) }
    }

    /// Tells it to do something, and waits for the answer.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Value, Stop> {
        self.tell(command)?;
        self.answer()
    }

    /// The same where both know what the answer is made of.
    pub(crate) fn ask_for<A: DeserializeOwned>(&mut self, command: &str) -> Result<A, Stop> {
        let answer = self.ask(command)?;
        Ok(serde_json::from_value(answer).map_err(|error| format!("{command}: {error}"))?)
    }

    /// Waits for an answer.
    pub(crate) fn answer(&mut self) -> Result<Value, Stop> {
        let begin = Instant::now();
        let line = loop {
            if self.interrupt.is_set() {
                return Err(Stop::Interrupted);
            }
            match self.process.output.next(LOOK) {
                Ok(line) => break line,
                Err(Silence::Quiet(_)) if begin.elapsed() < HANGS => (),
                Err(Silence::Quiet(_)) => {
                    return Err(self.process.explain(Silence::Quiet(HANGS)).into());
                }
                Err(Silence::Over) => return Err(self.process.explain(Silence::Over).into()),
            }
        };
        let value: Value = serde_json::from_str(&line)
            .map_err(|error| format!("`{line}` is no answer: {error}"))?;
        match value["failed"].as_str() {
            Some(error) => Err(self.process.with_errors(error).into()),
            None => Ok(value),
        }
    }

    /// What is to be said of its end, if it has ended or does within `patience`.
    pub(crate) fn end(&mut self, patience: Duration) -> Option<String> {
        self.process.end_within(patience)
    }

    /// Kills it and leaves to others what it leaves.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    /// Says that it shall end, without waiting for it.
    pub(crate) fn dismiss(&mut self) {
        self.process.close_input();
    }
}

/// What would make the children something else than what is to be measured.
const NOT_INHERITED: &[&str] = &[
    "TSUJI_POLICY",
    "TSUJI_INTEROP",
    "TSUJI_RTPS_ENGINE",
    "ROS_DOMAIN_ID",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_STATIC_PEERS",
    "ROS_LOCALHOST_ONLY",
    "CYCLONEDDS_URI",
    "ROS_HOSTNAME",
    "ROS_IPV6",
    "ROS_NAMESPACE",
    "ROSCONSOLE_CONFIG_FILE",
    "ROS_DISCOVERY_SERVER",
    "ROS_SECURITY_ENABLE",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "RMW_FASTRTPS_PUBLICATION_MODE",
    "RMW_FASTRTPS_USE_QOS_FROM_XML",
    RECEIVES_ON,
];

/// How often a wish to end is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// An error where a flow of `count` would last so long that a child that plays it would seem to hang.
pub(crate) fn check_length(count: u64, what: &str, lasts_us: u64) -> Result<(), Stop> {
    let seconds = lasts_us / 1_000_000;
    if FLOW_SECONDS_MAX < seconds {
        return Err(Stop::Failed(format!(
            "{count} {what} at this beat take {seconds} s; allowed: {FLOW_SECONDS_MAX} s, by --count N"
        )));
    }
    Ok(())
}

const FLOW_SECONDS_MAX: u64 = 90;

/// A child that has not answered for so long hangs.
const HANGS: Duration = Duration::from_secs(120);

/// A child that has not ended after so long is killed.
const ENDS: Duration = Duration::from_secs(4);

/// The children of one flow at a time.
#[derive(Debug)]
pub(crate) struct Crew {
    /// The name of what carries.
    pub(crate) transport: String,
    sender: Child,
    receivers: Vec<Child>,
}

/// What one block brought.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// From the sending to the arrival, µs, of all that arrived.
    pub(crate) latency_us: Vec<f64>,
    /// From the begin of the drawing to the arrival, µs, of the same.
    pub(crate) whole_us: Vec<f64>,
    /// What the sending itself took, µs, of the same.
    pub(crate) sending_us: Vec<f64>,
    /// Samples that should have been sent.
    pub(crate) count: u64,
    /// Samples that did not arrive as they were sent.
    pub(crate) lost: u64,
    /// Those of them that arrived damaged.
    pub(crate) damaged: u64,
    /// Processor time of the sending side.
    pub(crate) sender_cpu_us: f64,
    /// Processor time of both sides.
    pub(crate) cpu_us: f64,
    /// Allocations of both sides, where they are counted.
    pub(crate) allocations: Option<u64>,
    /// What came meanwhile on a topic beside.
    pub(crate) beside: Beside,
}

/// What who sends answers of a block; nodes of others leave out what they do not know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Number, begin of the drawing, begin and end of the sending.
    pub(crate) sent: Vec<[u64; 4]>,
    #[serde(default)]
    pub(crate) cpu_ns: u64,
    #[serde(default)]
    pub(crate) allocations: Option<u64>,
}

/// What who receives answers of a block. A process that sends too has told what both took.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The number of each that came, and when.
    pub(crate) arrived: Vec<(u64, u64)>,
    #[serde(default)]
    pub(crate) damaged: u64,
    #[serde(default)]
    pub(crate) beside: Beside,
    #[serde(default)]
    pub(crate) cpu_ns: Option<u64>,
    #[serde(default)]
    pub(crate) allocations: Option<u64>,
}

/// From the sending to the arrival, µs, of all that arrived in each block.
pub(crate) fn latencies(blocks: &[Block]) -> Vec<Vec<f64>> {
    blocks.iter().map(|it| it.latency_us.clone()).collect()
}

impl Crew {
    /// Starts the children of a flow, and returns when a picture has come through.
    pub(crate) fn start(stage: &Stage, spec: &Spec) -> Result<Self, Stop> {
        let start = |role, place| {
            let spec = Spec { role, ..spec.clone() };
            // Streams to many would queue where one thread at a time is timed.
            let place = if spec.flow == Flow::Paced { place } else { Place::Anywhere };
            Child::open(&stage.at(place), &spec)
        };
        let (place, count) = match spec.role {
            Role::Both => (Place::Both, 0),
            Role::Sender | Role::Receiver => (Place::Sender, spec.receivers),
        };
        let mut sender = start(spec.role, place)?;
        let receivers = (0..count).map(|number| start(Role::Receiver, Place::Receiver(number)));
        let receivers: Vec<_> = receivers.collect::<Result<_, _>>()?;
        sender.ask("greet")?;
        let mut crew = Self { transport: spec.transport.to_string(), sender, receivers };
        crew.name_transport()?;
        if let (Route::By(via), true) = (spec.route, spec.transport.is_tsuji())
            && spec.flow == Flow::Paced
            && crew.transport != format!("{}:{}", spec.transport, via.word())
        {
            return Err(format!("it goes by {}", crew.transport).into());
        }
        Ok(crew)
    }

    fn name_transport(&mut self) -> Result<(), Stop> {
        let answer = self.sender.ask("transport")?;
        if let Some(transport) = answer["transport"].as_str() {
            self.transport = transport.to_owned();
        }
        Ok(())
    }

    /// The processes: the one that sends first.
    pub(crate) fn ids(&self) -> Vec<u32> {
        let receivers = self.receivers.iter().map(Child::id);
        [self.sender.id()].into_iter().chain(receivers).collect()
    }

    /// Sends `count` pictures one at a time.
    pub(crate) fn block(&mut self, count: u64) -> Result<Block, Stop> {
        self.begin(count)?;
        let sent = self.sender.answer()?;
        self.brought(count, sent)
    }

    fn begin(&mut self, count: u64) -> Result<(), Stop> {
        self.sender.tell(&format!("block {count}"))
    }

    /// What came of `count` pictures of which the sender said `sent`.
    fn brought(&mut self, count: u64, sent: Value) -> Result<Block, Stop> {
        let receiver = self.receivers.first_mut().unwrap_or(&mut self.sender);
        let received: Report = receiver.ask_for("report")?;
        let sent: Sent = serde_json::from_value(sent).map_err(|error| error.to_string())?;
        let arrived: HashMap<u64, u64> = received.arrived.into_iter().collect();
        let mut block = Block { count, ..Block::default() };
        for [number, begun, at, done] in sent.sent {
            if let Some(arrived) = arrived.get(&number) {
                block.latency_us.push(arrived.saturating_sub(at) as f64 / 1000.0);
                block.whole_us.push(arrived.saturating_sub(begun) as f64 / 1000.0);
                block.sending_us.push(done.saturating_sub(at) as f64 / 1000.0);
            }
        }
        block.lost = count - block.latency_us.len() as u64;
        block.damaged = received.damaged;
        block.beside = received.beside;
        block.sender_cpu_us = sent.cpu_ns as f64 / 1000.0;
        block.cpu_us = (sent.cpu_ns + received.cpu_ns.unwrap_or(0)) as f64 / 1000.0;
        block.allocations = sent.allocations.map(|it| it + received.allocations.unwrap_or(0));
        Ok(block)
    }

    /// Samples that came to the receiving processes twice, by two transports.
    pub(crate) fn doubled(&mut self) -> Result<u64, Stop> {
        let mut doubled = 0;
        for receiver in &mut self.receivers {
            doubled += receiver.ask("doubled")?["doubled"].as_u64().unwrap_or(0);
        }
        Ok(doubled)
    }
}

/// What one block of a stream brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streamed {
    /// From the first sending to the last arrival.
    pub(crate) seconds: f64,
    /// Samples that did not come, of all receivers.
    pub(crate) missing: u64,
    /// Processor time of the sender but for the drawing.
    pub(crate) sender_cpu_us: f64,
    /// Processor time of the drawing.
    pub(crate) drawing_cpu_us: f64,
    /// Processor time of all receivers.
    pub(crate) receivers_cpu_us: f64,
}

/// The children of a stream.
#[derive(Debug)]
pub(crate) struct StreamCrew {
    crew: Crew,
    sent: u64,
}

impl StreamCrew {
    /// Starts the children of a stream, and returns when a picture has come through to all.
    pub(crate) fn start(stage: &Stage, spec: &Spec) -> Result<Self, Stop> {
        let mut crew = Crew::start(stage, spec)?;
        for receiver in &mut crew.receivers {
            for attempt in 0.. {
                if receiver.ask("greeted")?["greeted"] == true {
                    break;
                }
                if HANDSHAKES_MAX <= attempt {
                    return Err("nothing arrives".to_owned().into());
                }
                crew.sender.ask("greet")?;
            }
        }
        crew.name_transport()?;
        Ok(Self { crew, sent: 0 })
    }

    /// The name of what carries.
    pub(crate) fn transport(&self) -> &str {
        &self.crew.transport
    }

    /// Sends `count` samples as fast as they are taken, and waits until all have them.
    pub(crate) fn block(&mut self, count: u64) -> Result<Streamed, Stop> {
        self.sent += count;
        for receiver in &mut self.crew.receivers {
            receiver.ask(&format!("await {}", self.sent))?;
        }
        let sent = self.crew.sender.ask(&format!("stream {count}"))?;
        let number = |value: &Value, field: &str| value[field].as_u64().unwrap_or(0);
        let began = number(&sent, "began");
        let drawing = number(&sent, "drawing_ns");
        let mut streamed = Streamed {
            seconds: 0.0,
            missing: 0,
            sender_cpu_us: number(&sent, "cpu_ns").saturating_sub(drawing) as f64 / 1000.0,
            drawing_cpu_us: drawing as f64 / 1000.0,
            receivers_cpu_us: 0.0,
        };
        for receiver in &mut self.crew.receivers {
            receiver.tell("reached")?;
        }
        for receiver in &mut self.crew.receivers {
            let reached = receiver.answer()?;
            streamed.missing += number(&reached, "missing");
            streamed.receivers_cpu_us += number(&reached, "cpu_ns") as f64 / 1000.0;
            let took = number(&reached, "at").saturating_sub(began) as f64 / 1e9;
            streamed.seconds = streamed.seconds.max(took);
        }
        Ok(streamed)
    }
}

impl Crew {
    /// Says to all that they shall end, without waiting for it.
    fn dismiss(&mut self) {
        self.sender.dismiss();
        self.receivers.iter_mut().for_each(Child::dismiss);
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // All at once, so that many end as fast as one.
        self.dismiss();
    }
}

/// Crews that end together, which takes no longer than one does.
#[derive(Debug, Default)]
pub(crate) struct Crews(pub(crate) Vec<Crew>);

impl Crews {
    /// A block of `each` pictures of every crew, one crew after the other in the order of the round.
    pub(crate) fn in_turn(&mut self, round: Round, each: u64) -> Result<Vec<Block>, Stop> {
        let mut blocks = vec![Block::default(); self.0.len()];
        for at in round.order(blocks.len()) {
            blocks[at] = self.0[at].block(each)?;
        }
        Ok(blocks)
    }

    /// Lets the crews `which` send `count` pictures each, all in the same time, each one's beat `apart` behind the one before.
    pub(crate) fn blocks(
        &mut self,
        which: &[usize],
        apart: Duration,
        count: u64,
    ) -> Vec<Result<Block, Stop>> {
        let first = Instant::now();
        let mut due = Duration::ZERO;
        let mut begin = |at: usize| {
            thread::sleep(due.saturating_sub(first.elapsed()));
            due += apart;
            self.0[at].begin(count)
        };
        let begun: Vec<_> = which.iter().map(|at| begin(*at)).collect();
        // Nobody is asked what came while another still sends.
        let ended = which.iter().zip(begun);
        let ended = ended.map(|(at, begun)| begun.and_then(|()| self.0[*at].sender.answer()));
        let ended: Vec<_> = ended.collect();
        let brought = which.iter().zip(ended);
        brought.map(|(at, sent)| self.0[*at].brought(count, sent?)).collect()
    }
}

impl Drop for Crews {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(Crew::dismiss);
    }
}

const HANDSHAKES_MAX: u32 = 50;
