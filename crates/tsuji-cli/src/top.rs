//! `tsuji top`: flows and processes live in the terminal, and keys that set routes.

use std::io::{self, IsTerminal, Stdout};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;
use tsuji_core::TopicPattern;
use tsuji_platform::terminal;

use crate::completions;
use crate::output::{self, Output};
use crate::session::{Globals, Session};
use crate::terminal::GivenBack;

use state::{FlowColumn, Top, Wish};
use watcher::Watcher;

#[cfg(test)]
mod fixture;
mod state;
mod view;
mod watcher;

pub(crate) const EXAMPLES: &str = "\
Keys:
  ↑ ↓ PgUp PgDn Home End   choose a flow or a process (also k, j, g, G)
  Enter                    show less or more of it: why it has its transport, what it had before
  Tab                      the other page: flows, processes and their engines
  t                        set the transport of the topic; u takes back what was set last
  a                        leave the topic to the policy
  < > r                    sort by another column, the other way round
  /                        show only what has this text in it; Esc shows all
  + - space                look more often, less often; not at all for a while
  ? q                      tell the keys; end (also Ctrl-C)

What is set stays set, as by `tsuji route set`; the end says what that is.

Examples:
  tsuji top
  tsuji top --topic '/camera/**' -i 0.5
  tsuji top --sort p99";

/// How long is waited for a key before is looked for news.
const LOOK_FOR_NEWS: Duration = Duration::from_millis(50);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only topics and services of this pattern: * is any run of characters in a token, ** any run of tokens
    #[arg(long, value_name = "PATTERN", add = completions::topics())]
    topic: Option<TopicPattern>,
    /// The time between two looks
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = crate::topic::seconds)]
    interval: Duration,
    /// The column that flows are sorted by: names upwards, numbers downwards
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t)]
    sort: FlowColumn,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|it| it == "dumb");
    if !out.is_terminal() || !io::stdin().is_terminal() || is_dumb {
        bail!(
            "top needs a terminal that can move its cursor; `tsuji routes --watch` prints lines, and with --json what programs read"
        );
    }
    let session = Session::open(globals)?;
    let mut top = Top::new(args.topic.clone(), args.interval, args.sort);
    let watcher = Watcher::start(&session.context, args.interval)?;
    let result = {
        let _screen = Screen::take()?;
        show(&mut top, &watcher, &session, out)
    };
    for (topic, transport) in top.set_here() {
        output::note(format_args!(
            "{topic} is still set to {transport}; `tsuji route auto {topic}` leaves it to the policy again"
        ));
    }
    match result {
        // Ctrl-C in the middle of asking is an end like any other.
        Err(_) if !session.context.is_ok() => Ok(()),
        result => result,
    }
}

fn show(top: &mut Top, watcher: &Watcher, session: &Session, out: &Output) -> anyhow::Result<()> {
    let mut screen = blank()?;
    let (mut drawn_since, mut is_changed) = (0, true);
    while session.context.is_ok() {
        let Held::Taken { times } = *held() else {
            std::thread::sleep(LOOK_FOR_NEWS);
            take_again();
            continue;
        };
        if times != drawn_since {
            // Others have written there meanwhile.
            screen = blank()?;
            (drawn_since, is_changed) = (times, true);
        }
        is_changed |= top.forget_message(Instant::now());
        if is_changed {
            screen.draw(|frame| view::draw(top, out.paint, frame))?;
        }
        is_changed = false;
        if event::poll(LOOK_FOR_NEWS)? {
            is_changed = true;
            match event::read()? {
                Event::Key(key) => match top.press(key) {
                    Wish::Nothing => {}
                    Wish::End => return Ok(()),
                    Wish::Stop => stop()?,
                    Wish::Order(order) => watcher.order(order),
                },
                Event::Resize(..) => screen = blank()?,
                _ => {}
            }
        }
        for news in watcher.news() {
            top.learn(news?, Instant::now());
            is_changed = true;
        }
    }
    Ok(())
}

/// The whole screen, with nothing on it. Drawing on it asks the terminal nothing, since some do not answer.
fn blank() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    let (width, height) = size()?;
    execute!(io::stdout(), Clear(ClearType::All))?;
    let viewport = Viewport::Fixed(Rect { x: 0, y: 0, width, height });
    Terminal::with_options(CrosstermBackend::new(io::stdout()), TerminalOptions { viewport })
}

/// Gives the terminal back to the shell until this process is told to go on.
fn stop() -> io::Result<()> {
    give_back();
    emulate_default_handler(SIGTSTP)
}

/// The screen and the keys of the terminal. It is as it was before when this is dropped, when a thread panics, and while the
/// process is stopped.
struct Screen {
    _signals: GivenBack,
}

impl Screen {
    fn take() -> io::Result<Self> {
        static ON_PANIC: Once = Once::new();
        ON_PANIC.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                give_back();
                before(info);
            }));
        });
        // Before the screen is taken, so that no signal ends the process between.
        let signals = GivenBack::at_signals(give_back, take_again)?;
        *held() = Held::GivenBack { times: 0 };
        take_again();
        Ok(Self { _signals: signals })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
        *held() = Held::Never;
    }
}

/// Who has the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Its owner, for good.
    Never,
    /// Its owner, for a while, after it was taken so many times.
    GivenBack { times: u64 },
    /// This process.
    Taken { times: u64 },
}

static HELD: Mutex<Held> = Mutex::new(Held::Never);

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn give_back() {
    let mut held = held();
    if let Held::Taken { times } = *held {
        // A terminal that is gone needs nothing.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        *held = Held::GivenBack { times };
    }
}

/// Takes the terminal once more, unless another process has it in the foreground.
fn take_again() {
    let mut held = held();
    if let Held::GivenBack { times } = *held
        && terminal::is_in_foreground()
        && enable_raw_mode().is_ok()
    {
        let _ = execute!(io::stdout(), EnterAlternateScreen);
        *held = Held::Taken { times: times + 1 };
    }
}
