//! Measures tsuji beside the raw carriers: a mutex with a condition variable, iceoryx2, a Unix socket, and the
//! engines alone; and beside ROS 1, rclcpp and rosbridge_server, where they are.
//!
//! It measures through tsuji's public interface, so a number here is a number that a user can have.
//! It asserts nothing: it prints what it found, and says of each bar whether it was met. How it
//! measures, and what its figures do not say, is in `docs/lab.md`.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;

mod account;
mod arguments;
mod bridge;
mod cadence;
mod camera;
mod carrier;
mod child;
mod crew;
mod handover;
mod interrupt;
mod limits;
mod machine;
mod matrix;
mod pace;
mod passing;
mod peers;
mod picture;
mod placement;
mod probe;
mod rclcpp;
mod report;
mod road;
mod ros1;
mod rounds;
mod statistics;
mod tune;

pub use crew::Program;

use arguments::{Asked, HELP, Options};
use crew::{CHILD, Stage, Stop};
use interrupt::{INTERRUPTED, Interrupt};
use machine::Watch;
use placement::Seating;
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
    obey(words, program, allocations, out, None)
}

/// The same; without an interrupt, what measures listens for one of its own.
fn obey(
    words: &[String],
    program: Program,
    allocations: Option<Allocations>,
    out: &mut dyn Write,
    interrupt: Option<&Interrupt>,
) -> i32 {
    if let [mode, text] = words {
        match mode.as_str() {
            CHILD => return child::play(text, allocations),
            limits::PLAIN => return limits::plain(text),
            limits::STAND => return limits::stand(text),
            limits::NODE => return limits::node(text),
            cadence::SPEAKER => return cadence::speak(text),
            camera::CAMERA => return camera::film(text),
            bridge::PART => return bridge::part(text),
            limits::FIRST => return limits::first(text),
            handover::MEMBER => return handover::member(text),
            handover::NEWCOMER => return handover::newcomer(text),
            handover::SINGLE => return handover::single(text),
            _ => (),
        }
    }
    let mut measure = |options: &Options, program, experiment| {
        let interrupt = interrupt.cloned().unwrap_or_else(Interrupt::listen);
        measure(options, program, interrupt, out, experiment)
    };
    match arguments::parse(words) {
        Ok(Asked::Help) => {
            let _ = write!(out, "{HELP}");
            0
        }
        Ok(Asked::Passing(options)) => measure(&options, program, ("passing", passing::run)),
        Ok(Asked::Limits(options)) => measure(&options, program, ("limits", limits::run)),
        Ok(Asked::Matrix(options)) => measure(&options, program, ("matrix", matrix::run)),
        Ok(Asked::Cadence(options)) => measure(&options, program, ("cadence", cadence::run)),
        Ok(Asked::Camera(options)) => measure(&options, program, ("camera", camera::run)),
        Ok(Asked::Bridge(options)) => measure(&options, program, ("bridge", bridge::run)),
        Ok(Asked::Tune(options)) => match tune::is_in_the_way(&options) {
            Some(error) => {
                let _ = writeln!(std::io::stderr(), "tsuji tune: {error}");
                1
            }
            None => measure(&options, program, ("tune", tune::run)),
        },
        Ok(Asked::Handover(options)) => measure(&options, program, ("handover", handover::run)),
        Ok(Asked::All(options)) => all(&options, &program, allocations, out),
        Ok(Asked::Report(options)) => code_of(show(&options, out)),
        Ok(Asked::Compare(options)) => code_of(compare(&options, out)),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "tsuji lab: {error}");
            2
        }
    }
}

/// The exit code, with what failed on the standard error output.
fn code_of(result: Result<(), String>) -> i32 {
    let Err(error) = result else { return 0 };
    // A reader that has gone needs no help.
    let _ = writeln!(std::io::stderr(), "tsuji lab: {error}");
    1
}

/// The experiments in the order in which they are run one after the other.
const ALL: [&str; 7] = ["passing", "cadence", "camera", "bridge", "limits", "handover", "matrix"];

/// Every experiment, and one page of all. What fails keeps none of the others from being measured; after Ctrl-C the page
/// shows what there is.
fn all(
    options: &Options,
    program: &Program,
    allocations: Option<Allocations>,
    out: &mut dyn Write,
) -> i32 {
    let folder = options.folder();
    if !options.force && folder.read_dir().is_ok_and(|mut it| it.next().is_some()) {
        let folder = folder.display();
        return code_of(Err(format!(
            "{folder} has files in it already; allowed: --force, or --output with another folder"
        )));
    }
    if let Err(error) = std::fs::create_dir_all(folder) {
        return code_of(Err(format!("create the folder {}: {error}", folder.display())));
    }
    let interrupt = Interrupt::listen();
    let mut worst = 0;
    let mut documents = Vec::new();
    for (at, experiment) in ALL.iter().enumerate() {
        if interrupt.is_set() {
            worst = INTERRUPTED;
            break;
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
            Err(error) => worst = worst.max(code_of(Err(error))),
        }
    }
    if documents.is_empty() {
        return worst;
    }
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
    let told = report::compare(&first?, &second?, &mut Screen::new(out))?;
    options.json.as_ref().map_or(Ok(()), |path| report::write_json(&told, path))?;
    Outputs::new(options, report::COMPARE).write(&[Document::new(told)]).map(drop)
}

type Run = fn(&Stage, &Options, &mut Screen<'_>, &mut Report) -> Result<(), Stop>;

fn measure(
    options: &Options,
    program: Program,
    interrupt: Interrupt,
    out: &mut dyn Write,
    (experiment, run): (&'static str, Run),
) -> i32 {
    let complain = |error: &str| {
        let _ = writeln!(std::io::stderr(), "tsuji lab: {error}");
    };
    let outputs = Outputs::new(options, experiment);
    let json = options.json.as_deref();
    if let Err(error) = outputs.check().and_then(|()| json.map_or(Ok(()), report::check_writable)) {
        complain(&error);
        return 1;
    }
    let seating = Seating::new(options.placement);
    let stage = match Stage::new(program, interrupt, seating) {
        Ok(stage) => stage,
        Err(error) => {
            complain(&error);
            return 1;
        }
    };
    let mut machine = machine::describe();
    machine["placement"] = stage.seating.to_json();
    let mut screen = Screen::new(out);
    screen.line(&machine::line(&machine));
    screen.line(&stage.seating.to_string());
    machine::warnings(&machine).iter().for_each(|it| screen.line(it));
    let mut report = Report::new(experiment);
    let watch = Watch::start();
    let ended = run(&stage, options, &mut screen, &mut report);
    machine["others"] = watch.to_json();
    machine::others(&machine).iter().for_each(|it| screen.line(it));
    screen.line(&report.summary());
    let told = report.to_json(&machine);
    let json = json.map_or(Ok(()), |path| report::write_json(&told, path));
    let others = outputs.write(&[Document::new(told)]);
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
