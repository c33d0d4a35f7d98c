//! Measures tsuji beside the raw transports: a mutex with a condition variable, iceoryx2, a Unix socket, and the
//! engines alone; and beside ROS 1, rclcpp and rosbridge_server, where they are.
//!
//! It measures through tsuji's public interface, so a number here is a number that a user can have.
//! It asserts nothing: it prints what it found, and says of each bar whether it was met. How it
//! measures, and what its figures do not say, is in `docs/lab.md`.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;

use clap_complete::CompleteEnv;

mod account;
mod arguments;
mod bridge;
mod budgets;
mod camera;
mod child;
mod crew;
mod handover;
mod interrupt;
mod jitter;
mod latency;
mod machine;
mod matrix;
mod pace;
mod peers;
mod picture;
mod placement;
mod probe;
mod rclcpp;
mod renamed;
mod report;
mod ros1;
mod rounds;
mod route;
mod secured;
mod statistics;
mod transport;
mod tune;

pub use crew::Program;

use arguments::Options;
use budgets::Run;
use crew::{Stage, Stop};
use interrupt::{INTERRUPTED, Interrupt};
use machine::Watch;
use placement::Places;
use report::{Document, Outputs, Report, Screen};

/// Tells how many allocations this process has made, where a program counts them.
pub type Allocations = fn() -> u64;

/// Does what `tsuji lab` followed by `words` asks, printing to `out`. The answer is the exit code.
///
/// `program` is how to start this same program again, as the child processes that it measures.
/// `allocations` is given by `tsuji-lab-alloc` alone.
pub fn main(
    words: &[String],
    program: Program,
    allocations: Option<Allocations>,
    out: &mut dyn Write,
) -> i32 {
    let is_child = matches!(words, [mode, _] if mode.starts_with("--"));
    let caller = std::env::var_os(CALLER).filter(|_| !is_child);
    if let Some(caller) = caller.filter(|it| it != VERSION) {
        let caller = caller.to_string_lossy();
        complain("lab", &format!("warning: tsuji is of version {caller}, tsuji-lab of {VERSION}"));
    }
    let (words, warnings) = match is_child {
        true => (words.to_vec(), Vec::new()),
        false => renamed::renew(words),
    };
    for warning in warnings {
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    obey(&words, program, allocations, out, None)
}

/// In which `tsuji` tells its version when it hands over.
const CALLER: &str = "TSUJI_LAB_CALLER";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The same; without an interrupt, what measures listens for one of its own.
fn obey(
    words: &[String],
    program: Program,
    allocations: Option<Allocations>,
    out: &mut dyn Write,
    interrupt: Option<&Interrupt>,
) -> i32 {
    if let [mode, text] = words
        && let Some(code) = PARTS.iter().find_map(|play| play(mode, text, allocations))
    {
        return code;
    }
    let (name, options) = match arguments::parse(words) {
        Ok(asked) => asked,
        Err(help) if !help.use_stderr() => {
            // A reader that has gone needs no help.
            let _ = writeln!(out, "{}", help.to_string().trim_end());
            return 0;
        }
        Err(_) => return refuse(words),
    };
    match name {
        "all" => return all(&options, &program, allocations, out),
        "report" => return code_of(show(&options, out)),
        "compare" => return code_of(compare(&options, out)),
        "tune" => {
            if let Some(error) = tune::is_in_the_way(&options) {
                complain("tune", &error);
                return 1;
            }
        }
        _ => (),
    }
    let Some(experiment) = EXPERIMENTS.into_iter().find(|it| it.0 == name) else { return 2 };
    // Of all experiments together it is said once, when all have ended.
    let is_alone = interrupt.is_none();
    let interrupt = interrupt.cloned().unwrap_or_else(Interrupt::listen);
    measure(&options, program, interrupt, out, experiment, is_alone)
}

/// Plays a part if it is the one that is meant; see [`child::play`].
type Play = fn(&str, &str, Option<Allocations>) -> Option<i32>;

/// What this program plays as a child of its own.
const PARTS: [Play; 11] = [
    child::play::<transport::Spec>,
    child::play::<transport::Foreign>,
    child::play::<budgets::Stand>,
    child::play::<budgets::First>,
    child::play::<budgets::NodePart>,
    child::play::<jitter::BeatPart>,
    child::play::<camera::FilmPart>,
    child::play::<bridge::BridgePart>,
    child::play::<handover::Member>,
    child::play::<handover::Joiner>,
    child::play::<handover::Single>,
];

/// What measures: each under its name.
const EXPERIMENTS: [(&str, Measure); 8] = [
    ("latency", latency::run),
    ("jitter", jitter::run),
    ("camera", camera::run),
    ("bridge", bridge::run),
    ("budgets", budgets::run),
    ("handover", handover::run),
    ("matrix", matrix::run),
    ("tune", tune::run),
];

/// Says what is wrong with the words. The answer is the exit code.
fn refuse(words: &[String]) -> i32 {
    // Read again with escapes, so that what a user wrote commands no terminal and is not taken for a colour.
    let words: Vec<String> = words.iter().map(|it| escaped(it)).collect();
    if let Err(error) = arguments::parse(&words) {
        let _ = write!(std::io::stderr(), "{error}");
    }
    2
}

/// Answers a shell that asks for the words of `tsuji lab` and `tsuji tune`; nothing in an ordinary run. An error has no place
/// at a prompt, so nothing is said of it.
pub fn complete() -> Option<i32> {
    let env = CompleteEnv::with_factory(arguments::command).var(COMPLETE).bin("tsuji");
    let current = std::env::current_dir().ok();
    match env.try_complete(std::env::args_os(), current.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(0),
        Err(_) => Some(1),
    }
}

/// In which a script of `tsuji completions` names its shell.
const COMPLETE: &str = "TSUJI_COMPLETE";

/// The exit code, with what failed on the standard error output.
fn code_of(result: Result<(), String>) -> i32 {
    let Err(error) = result else { return 0 };
    complain("lab", &error);
    1
}

/// Says what went wrong on the standard error output. Words of the user and of files in it command no terminal.
fn complain(command: &str, error: &str) {
    // A reader that has gone needs no help.
    let _ = writeln!(std::io::stderr(), "tsuji {command}: {}", escaped(error));
}

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        // The marks that turn the direction of what follows are no control characters.
        let turns = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match letter {
            '\n' | '\t' => shown.push(letter),
            _ if letter < ' ' => shown.push_str(&format!("\\x{:02x}", u32::from(letter))),
            _ if turns || letter.is_control() => {
                shown.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// The experiments in the order in which they are run one after the other.
const ALL: [&str; 7] = ["latency", "jitter", "camera", "bridge", "budgets", "handover", "matrix"];

/// Every experiment, and one page of all. What fails keeps none of the others from being measured; after Ctrl-C the page
/// shows what there is.
fn all(
    options: &Options,
    program: &Program,
    allocations: Option<Allocations>,
    out: &mut dyn Write,
) -> i32 {
    let folder = &*options.output;
    if !options.force && folder.read_dir().is_ok_and(|mut it| it.next().is_some()) {
        let folder = folder.display();
        return code_of(Err(format!(
            "{folder} has files in it already; allowed: --force, or --output with another folder"
        )));
    }
    if let Err(error) = std::fs::create_dir_all(folder) {
        return code_of(Err(format!(
            "create the folder {}: {error}; allowed: --output with a folder that can be made",
            folder.display()
        )));
    }
    let interrupt = Interrupt::listen();
    let mut worst = 0;
    let mut documents = Vec::new();
    for (at, experiment) in ALL.iter().enumerate() {
        if interrupt.is_set() {
            worst = INTERRUPTED;
            documents.push(Document::unmeasured(experiment, "interrupted before it began"));
            continue;
        }
        let _ = writeln!(out, "\n== [{}/{}] {experiment}", at + 1, ALL.len());
        let file = folder.join(format!("{experiment}.json"));
        // What an earlier run left is not of this one.
        let _ = std::fs::remove_file(&file);
        let mut words = vec![(*experiment).to_owned(), "--json".to_owned()];
        words.push(file.to_string_lossy().into_owned());
        words.extend(options.quick.then(|| "--quick".to_owned()));
        words.push(format!("--placement={}", options.placement.word()));
        let code = obey(&words, program.clone(), allocations, out, Some(&interrupt));
        worst = worst.max(code);
        match Document::read(&file) {
            Ok(document) => documents.push(document),
            Err(error) => {
                documents.push(Document::unmeasured(experiment, &error));
                worst = worst.max(code_of(Err(error)));
            }
        }
    }
    report::summary(&documents, None, &mut Screen::new(out));
    let outputs = Options { html: Some(folder.join("report.html")), ..options.clone() };
    let written = Outputs::new(&outputs, "all").write(&documents);
    worst.max(code_of(written.map(|paths| told(&paths, out))))
}

/// Writes what earlier runs measured as a page, plots and tables.
fn show(options: &Options, out: &mut dyn Write) -> Result<(), String> {
    let documents =
        options.files.iter().map(|it| Document::read(it)).collect::<Result<Vec<_>, _>>()?;
    let outputs = Outputs::new(options, "report").or_page(&options.files);
    told(&outputs.write(&documents)?, out);
    Ok(())
}

/// Says what was written.
fn told(paths: &[PathBuf], out: &mut dyn Write) {
    for path in paths {
        // A reader that has gone needs no help.
        let _ = writeln!(out, "{}", path.display());
    }
}

/// Says which figures of two runs agree.
fn compare(options: &Options, out: &mut dyn Write) -> Result<(), String> {
    let [first, second] = &*options.files else { return Err("it takes two files".to_owned()) };
    let [first, second] = [first, second].map(|it| Document::read(it));
    let told = Document::new(report::compare(&first?, &second?, &mut Screen::new(out))?);
    options.json.as_ref().map_or(Ok(()), |path| told.write_json(path))?;
    Outputs::new(options, report::COMPARE).write(&[told]).map(drop)
}

/// What an experiment that ends early has not measured.
const REST: &str = "the rest";

type Measure = fn(&mut Run<'_, '_>) -> Result<(), Stop>;

fn measure(
    options: &Options,
    program: Program,
    interrupt: Interrupt,
    out: &mut dyn Write,
    (experiment, measure): (&'static str, Measure),
    is_alone: bool,
) -> i32 {
    let complain = |error: &str| complain("lab", error);
    let outputs = Outputs::new(options, experiment);
    let json = options.json.as_deref();
    if let Err(error) = outputs.check().and_then(|()| json.map_or(Ok(()), report::check_writable)) {
        complain(&error);
        return 1;
    }
    let places = Places::new(options.placement);
    let stage = match Stage::new(program, interrupt, places) {
        Ok(stage) => stage,
        Err(error) => {
            complain(&error);
            return 1;
        }
    };
    let mut machine = machine::describe();
    machine["placement"] = stage.places.to_json();
    let mut screen = Screen::new(out);
    screen.line(&machine::line(&machine));
    screen.line(&stage.places.to_string());
    machine::warnings(&machine).iter().for_each(|it| screen.line(it));
    let mut report = Report::new(experiment);
    let watch = Watch::start();
    let mut run = Run { stage: &stage, options, screen: &mut screen, report: &mut report };
    let ended = measure(&mut run);
    machine["others"] = watch.to_json();
    machine::others(&machine).iter().for_each(|it| screen.line(it));
    match &ended {
        Ok(()) => (),
        Err(Stop::Interrupted) => report.skipped(&mut screen, REST, "interrupted"),
        Err(Stop::Failed(why)) => report.skipped(&mut screen, REST, why),
    }
    let documents = [Document::new(report.to_json(&machine))];
    if is_alone {
        report::summary(&documents, Some(&report), &mut screen);
    }
    let json = json.map_or(Ok(()), |path| documents[0].write_json(path));
    let others = outputs.write(&documents);
    if let Err(error) = json.and(others) {
        complain(&error);
        return 1;
    }
    match ended {
        Ok(()) => i32::from(!report.is_whole()),
        Err(Stop::Interrupted) => {
            complain("interrupted; what is above was measured");
            INTERRUPTED
        }
        Err(Stop::Failed(error)) => {
            complain(&error);
            1
        }
    }
}
