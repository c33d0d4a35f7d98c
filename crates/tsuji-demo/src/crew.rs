//! The robot's processes as the operator has them: started, asked, ended by their own ids.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tsuji_platform::subprocess::Subprocess;

use crate::Result;
use crate::foreign::ForeignNode;
use crate::orders::{Answer, Period, Question, answers_up_to, count_order};
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
    is_told_dead: bool,
}

/// What all have answered.
#[derive(Debug)]
pub(crate) struct Answers {
    /// The number of the question that was asked last.
    question: u64,
    /// Those to earlier questions too, if they came too late then.
    pub(crate) all: Vec<Answer>,
}

impl Answers {
    /// What was counted for the question that was asked last. Those that did not answer in time are left out.
    pub(crate) fn into_counts(self) -> Vec<Count> {
        let to_last = self.all.into_iter().filter(|it| it.question.number == self.question);
        to_last.flat_map(|it| it.counts).collect()
    }
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

    /// Asks all what they have counted. An answer that does not come in time comes with those to a later question.
    pub(crate) fn ask(&mut self, period: Period) -> Answers {
        self.questions += 1;
        let question = Question { number: self.questions, period };
        self.send(&count_order(&question));
        let give_up = Instant::now() + ANSWER_MAX;
        let answers = |it: &RobotProcess| it.answers(question.number, give_up);
        let mut all: Vec<_> = self.processes.iter().flat_map(answers).collect();
        if let Some(foreign) = &mut self.foreign {
            all.push(Answer { question, counts: vec![foreign.count()] });
        }
        Answers { question: self.questions, all }
    }

    /// Those that have ended without being told to, each once.
    pub(crate) fn dead(&mut self) -> Vec<String> {
        let foreign = self.foreign.iter_mut().filter_map(ForeignNode::dead);
        self.processes.iter_mut().filter_map(RobotProcess::dead).chain(foreign).collect()
    }

    /// Whether [`dead`](Self::dead) has told of nobody yet.
    pub(crate) fn is_whole(&self) -> bool {
        let is_dead = self.processes.iter().any(|it| it.is_told_dead);
        !is_dead && !self.foreign.as_ref().is_some_and(ForeignNode::is_told_dead)
    }

    /// Ends all, and answers what did not end as it should, but for those that [`dead`](Self::dead) has told of.
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
        let process = Subprocess::start(&mut command, Duration::ZERO)?;
        Ok(Self { role, process, is_told_dead: false })
    }

    fn send(&mut self, order: &str) {
        // One that has ended is noticed by its exit code.
        let _ = self.process.tell(order);
    }

    /// Its answers up to that to the question of this number, as far as they come in time.
    fn answers(&self, number: u64, give_up: Instant) -> Vec<Answer> {
        let left = || give_up.saturating_duration_since(Instant::now());
        answers_up_to(number, std::iter::from_fn(|| self.process.output.next(left()).ok()))
    }

    fn dead(&mut self) -> Option<String> {
        if self.is_told_dead {
            return None;
        }
        let ended = self.process.try_wait().ok()??;
        self.is_told_dead = true;
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

#[cfg(test)]
mod tests {
    use super::*;

    const HANG: Duration = Duration::from_secs(60);

    fn crew(scripts: &[&str]) -> Crew {
        let process = |script: &&str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let process = Subprocess::start(&mut command, Duration::ZERO).unwrap();
            RobotProcess { role: Role::Viewer, process, is_told_dead: false }
        };
        let processes = scripts.iter().map(process).collect();
        Crew { processes, foreign: None, page: None, questions: 0 }
    }

    #[test]
    fn a_death_is_told_once() {
        let mut crew = crew(&["kill -9 $$", "cat", "cat; exit 3"]);
        assert!(crew.processes[0].process.wait_within(HANG).is_some());
        assert!(crew.is_whole());
        let dead = crew.dead();
        assert!(dead.len() == 1 && dead[0].contains("SIGKILL"), "{dead:?}");
        assert!(!crew.is_whole());
        assert_eq!(crew.dead(), Vec::<String>::new());
        let troubles = crew.end();
        assert!(troubles.len() == 1 && troubles[0].contains("exit status: 3"), "{troubles:?}");
    }

    #[test]
    fn an_answer_that_comes_late_comes_with_the_next_and_counts_nothing() {
        let answer = |number, samples| {
            let question = Question { number, period: Period::default() };
            let counts = vec![Count { samples, ..Count::default() }];
            serde_json::json!(Answer { question, counts })
        };
        let script = format!("echo '{}'; echo '{}'; cat >/dev/null", answer(1, 10), answer(2, 20));
        let mut crew = crew(&[&script]);
        // As if the first had been waited for in vain.
        crew.questions = 1;
        let answers = crew.ask(Period::default());
        assert_eq!(answers.all.len(), 2);
        let counts = answers.into_counts();
        assert_eq!(counts.iter().map(|it| it.samples).collect::<Vec<_>>(), [20]);
    }
}
