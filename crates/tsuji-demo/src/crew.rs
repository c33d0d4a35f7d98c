//! The robot's processes as the operator has them: started, asked, ended by their own ids.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tsuji_platform::subprocess::Subprocess;

use crate::Result;
use crate::foreign::ForeignNode;
use crate::orders::{count_order, counts_of};
use crate::page::Page;
use crate::robot::{self, Role, WITH_FOREIGN};
use crate::tally::Count;

/// All processes of the robot. Those that still run when this is dropped are killed.
#[derive(Debug)]
pub(crate) struct Crew {
    processes: Vec<RobotProcess>,
    foreign: Option<ForeignNode>,
    page: Option<Page>,
    /// How often it was asked for counts, which numbers the questions.
    questions: u64,
}

/// Where the robot's processes meet, away from the user's own.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) runtime_dir: PathBuf,
    pub(crate) domain: u32,
    /// The policy file of the demonstration, unless the user has one.
    pub(crate) policy: Option<PathBuf>,
    /// The command of tsuji for this robot, if it is there.
    pub(crate) command: Option<PathBuf>,
    /// The program of the foreign node, if there is one.
    pub(crate) foreign: Option<PathBuf>,
    /// The processes of the robot.
    pub(crate) roles: &'static [Role],
    /// The port of the page; `None` for no page.
    pub(crate) port: Option<u16>,
}

#[derive(Debug)]
struct RobotProcess {
    role: Role,
    process: Subprocess,
}

impl Crew {
    /// Starts all.
    pub(crate) fn start(surroundings: &Surroundings) -> Result<Self> {
        let foreign =
            surroundings.foreign.as_deref().map(|it| ForeignNode::start(it, surroundings.domain));
        let foreign = foreign.transpose()?;
        let mut crew = Self { processes: Vec::new(), foreign, page: None, questions: 0 };
        for role in surroundings.roles {
            crew.processes.push(RobotProcess::start(*role, surroundings)?);
        }
        if let (Some(command), Some(port)) = (&surroundings.command, surroundings.port) {
            crew.page = Some(Page::start(command, port)?);
        }
        Ok(crew)
    }

    /// Whether the foreign node is there.
    pub(crate) fn has_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// Why there is no page any more, once. The robot goes on without it.
    pub(crate) fn check_page(&mut self) -> Option<String> {
        let why = self.page.as_mut()?.check()?;
        self.page = None;
        Some(why)
    }

    /// The address of the page, once it is served.
    pub(crate) fn page(&mut self) -> Option<&str> {
        self.page.as_mut().and_then(Page::address)
    }

    /// Id of the process of a role, if it is one of these.
    pub(crate) fn id(&self, role: Role) -> Option<u32> {
        self.processes.iter().find(|it| it.role == role).map(|it| it.process.id())
    }

    /// Sends an order to the process of a role.
    pub(crate) fn send_to(&mut self, role: Role, order: &str) {
        self.processes.iter_mut().filter(|it| it.role == role).for_each(|it| it.send(order));
    }

    /// Sends an order to all.
    pub(crate) fn send(&mut self, order: &str) {
        self.processes.iter_mut().for_each(|it| it.send(order));
    }

    /// What all have counted. Those that do not answer in time are left out; an answer that comes later is dropped.
    pub(crate) fn counts(&mut self) -> Vec<Count> {
        self.questions += 1;
        self.send(&count_order(self.questions));
        let give_up = Instant::now() + ANSWER_MAX;
        let counts = |it: &RobotProcess| it.counts(self.questions, give_up);
        let foreign = self.foreign.iter_mut().map(ForeignNode::count);
        self.processes.iter().filter_map(counts).flatten().chain(foreign).collect()
    }

    /// Those that have ended without being told to.
    pub(crate) fn dead(&mut self) -> Vec<String> {
        let foreign = self.foreign.iter_mut().filter_map(ForeignNode::dead);
        self.processes.iter_mut().filter_map(RobotProcess::dead).chain(foreign).collect()
    }

    /// Ends all, and answers what did not end as it should.
    pub(crate) fn end(&mut self) -> Vec<String> {
        self.processes.iter_mut().for_each(|it| it.process.close_input());
        let give_up = Instant::now() + END_MAX;
        self.processes.iter_mut().filter_map(|it| it.wait(give_up)).collect()
    }
}

impl RobotProcess {
    fn start(role: Role, surroundings: &Surroundings) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--role", role.name()]);
        command.env("TSUJI_RUNTIME_DIR", &surroundings.runtime_dir);
        command.env("ROS_DOMAIN_ID", surroundings.domain.to_string());
        // What steers this robot must not steer another.
        command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        command.env_remove("ROS_STATIC_PEERS");
        if let Some(policy) = &surroundings.policy {
            command.env("TSUJI_POLICY", policy);
        }
        if !robot::is_warned() {
            command.env(robot::WARNINGS, "off");
        }
        if surroundings.foreign.is_some() {
            command.env(WITH_FOREIGN, "1");
        }
        // Ctrl-C is for the operator, who ends the others when all is counted.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        Ok(Self { role, process: Subprocess::start(&mut command, Duration::ZERO)? })
    }

    fn send(&mut self, order: &str) {
        // One that has ended is noticed by its exit code.
        let _ = self.process.tell(order);
    }

    /// Its answer to `question`, if that comes in time.
    fn counts(&self, question: u64, give_up: Instant) -> Option<Vec<Count>> {
        let left = || give_up.saturating_duration_since(Instant::now());
        counts_of(question, std::iter::from_fn(|| self.process.output.next(left()).ok()))
    }

    fn dead(&mut self) -> Option<String> {
        let ended = self.process.try_wait().ok()??;
        Some(format!("{} died: {ended}", self.name()))
    }

    fn wait(&mut self, give_up: Instant) -> Option<String> {
        match self.process.wait_within(give_up.saturating_duration_since(Instant::now())) {
            Some(status) if status.success() => None,
            Some(_) => self.dead(),
            None => Some(format!("{} did not end", self.name())),
        }
    }

    fn name(&self) -> String {
        format!("the {} process ({})", self.role.name(), self.process.id())
    }
}

const ANSWER_MAX: Duration = Duration::from_secs(5);
const END_MAX: Duration = Duration::from_secs(10);
