//! `tsuji top`: flows and processes live in the terminal, and keys that set routes.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use anyhow::bail;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, size,
};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use tsuji_core::TopicPattern;
use tsuji_platform::terminal::{self, Keys};

use crate::completions;
use crate::output::{self, Output};
use crate::session::{Globals, Session};
use crate::terminal::{TerminalGuard, Until};

use state::{EVERY, FlowColumn, Top, Wish};
use watcher::Watcher;

#[cfg(test)]
mod fixture;
mod processor;
mod state;
mod view;
mod watcher;

/// What the keys are for, in `--help` and by `?`.
const KEYS: &str = "\
  ↑ ↓ PgUp PgDn   choose a flow or a process (also k, j)
  Home End        the first, the last (also g, G)
  Enter           show less or more of it: why it has its transport, what it had
  Tab             the other page: flows, processes and their engines
  t               set the transport of the topic
  u               take back what was set last
  a               leave the topic to the policy
  < > r           sort by another column (also s), the other way round
  /               show only what has this text in it; Esc shows all
  + - space       read more often, less often; not at all for a while
  ? q             show the keys; end (also Ctrl-C)";

pub(crate) fn examples() -> String {
    format!(
        "Keys:\n{KEYS}\n\n\
         What is set stays set, as by `tsuji route set`; the end says what that is.\n\n\
         Examples:\n  tsuji top\n  tsuji top --topic '/camera/**' -i 0.5\n  tsuji top --sort p99"
    )
}

/// How long a key is waited for before the watcher's reports and the size of the terminal are looked at.
const KEY_WAIT: Duration = Duration::from_millis(50);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only topics and services of this pattern: * is any run of characters in a token, ** any run of tokens
    #[arg(long, value_name = "PATTERN", add = completions::topics())]
    topic: Option<TopicPattern>,
    /// The time between two looks, from 0.1 to 60
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// The column that flows are sorted by: names upwards, numbers downwards
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t)]
    sort: FlowColumn,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = crate::topic::seconds(text).ok().filter(|it| (EVERY.0..=EVERY.1).contains(it));
    seconds.ok_or_else(|| "allowed: a number of seconds from 0.1 to 60".to_owned())
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    if !out.is_terminal() || !io::stdin().is_terminal() || output::is_dumb() {
        bail!(
            "top needs a terminal that can move its cursor; `tsuji routes --watch` prints lines, and with --json what programs read"
        );
    }
    let session = Session::open(globals)?;
    let mut top = Top::new(args.topic.clone(), args.interval, args.sort);
    let watcher = Watcher::start(&session.context, args.interval)?;
    let result = {
        let mut screen = Screen::take()?;
        show(&mut top, &watcher, &session, &mut screen, out)
    };
    while top.is_setting()
        && session.context.is_ok()
        && let Some(report) = watcher.last_report()
    {
        top.on_report(Instant::now(), report);
    }
    for (topic, transport) in top.set_here() {
        output::note(format_args!(
            "{topic} is still set to {transport}; `tsuji route auto {topic}` leaves it to the policy again"
        ));
    }
    result
}

fn show(
    top: &mut Top,
    watcher: &Watcher,
    session: &Session,
    screen: &mut Screen,
    out: &Output,
) -> anyhow::Result<()> {
    let mut is_changed = true;
    while session.context.is_ok() && !screen.keys.are_gone() {
        is_changed |= top.forget_message(Instant::now());
        let drawn = screen.draw(is_changed, |frame| view::draw(top, out.paint, frame));
        if let Err(error) = drawn
            && !screen.is_gone()
        {
            return Err(error.into());
        }
        is_changed = false;
        // A key that is held down is drawn once for all that has come of it.
        let mut wait = KEY_WAIT;
        while let Some(key) = screen.keys.next(wait) {
            (is_changed, wait) = (true, Duration::ZERO);
            match top.press(Instant::now(), key) {
                Wish::Nothing => {}
                Wish::End => return Ok(()),
                Wish::Order(order) => watcher.order(order),
            }
        }
        while let Some(report) = watcher.report()? {
            top.on_report(Instant::now(), report);
            is_changed = true;
        }
    }
    Ok(())
}

/// The screen and the keys of the terminal. It is as it was before when this is dropped, when a thread panics, and while the
/// process is stopped.
struct Screen {
    keys: Keys,
    canvas: Option<Canvas>,
    _guard: TerminalGuard,
}

/// What is drawn on.
struct Canvas {
    /// Not dropped where the terminal is gone: it would tell that, on the same terminal.
    terminal: Option<Terminal<CrosstermBackend<BufWriter<File>>>>,
    /// How often the screen had been taken when it was made.
    times: u64,
    /// Columns and rows.
    size: (u16, u16),
}

impl Screen {
    fn take() -> anyhow::Result<Self> {
        static ON_PANIC: Once = Once::new();
        ON_PANIC.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                // The thread that draws may be the one that panics.
                match OWNER.try_lock() {
                    Ok(mut owner) => owner.give_back(),
                    Err(TryLockError::Poisoned(owner)) => owner.into_inner().give_back(),
                    Err(TryLockError::WouldBlock) => leave(),
                }
                before(info);
            }));
        });
        // Before the screen is taken, so that no signal ends the process between.
        let guard = TerminalGuard::at_signals(give_back, resume)?;
        let Some(keys) = Keys::take() else { bail!("standard input is no terminal any more") };
        *owner() = Owner::Lent { times: 0 };
        resume();
        Ok(Self { keys, canvas: None, _guard: guard })
    }

    /// Whether the terminal has gone, with which the command ends.
    fn is_gone(&mut self) -> bool {
        // Reading notices it.
        self.keys.next(Duration::ZERO);
        self.keys.are_gone()
    }

    /// Draws, where the screen is this process's: if something `is_changed`, or others have written there, or its size is another.
    fn draw(
        &mut self,
        is_changed: bool,
        draw: impl FnOnce(&mut ratatui::Frame<'_>),
    ) -> io::Result<()> {
        // Nobody gives it back meanwhile.
        let mut owner = owner();
        owner.take_again();
        let Owner::Taken { times } = *owner else { return Ok(()) };
        let size = size()?;
        let before = self.canvas.take().filter(|it| (it.times, it.size) == (times, size));
        let is_new = before.is_none();
        let mut canvas = match before {
            Some(canvas) => canvas,
            None => Canvas { terminal: Some(blank(size)?), times, size },
        };
        if let Some(terminal) = &mut canvas.terminal
            && (is_changed || is_new)
        {
            terminal.draw(draw)?;
        }
        self.canvas = Some(canvas);
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut owner = owner();
        owner.give_back();
        *owner = Owner::Shell;
    }
}

/// The whole screen, with nothing on it. Drawing on it asks the terminal nothing, since some do not answer.
fn blank((width, height): (u16, u16)) -> io::Result<Terminal<CrosstermBackend<BufWriter<File>>>> {
    let mut screen = BufWriter::new(standard_output()?);
    execute!(screen, Clear(ClearType::All))?;
    let viewport = Viewport::Fixed(Rect { x: 0, y: 0, width, height });
    Terminal::with_options(CrosstermBackend::new(screen), TerminalOptions { viewport })
}

/// Standard output, without the buffer that all share: what a terminal that is gone does not take would stay there, and be an error
/// at the end.
fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

impl Drop for Canvas {
    fn drop(&mut self) {
        if let Some(mut terminal) = self.terminal.take()
            && terminal.show_cursor().is_err()
        {
            std::mem::forget(terminal);
        }
    }
}

/// Who has the screen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Whoever had it before, for good.
    Shell,
    /// The same until this process goes on, which is about to be stopped after it has taken it so many times.
    Away { times: u64 },
    /// The same for a while: until this process is in the foreground.
    Lent { times: u64 },
    /// This process.
    Taken { times: u64 },
}

static OWNER: Mutex<Owner> = Mutex::new(Owner::Shell);

fn owner() -> MutexGuard<'static, Owner> {
    OWNER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Owner {
    fn give_back(&mut self) {
        if let Self::Taken { times } = *self {
            leave();
            *self = Self::Lent { times };
        }
    }

    /// Takes it, unless another process has the terminal in the foreground.
    fn take_again(&mut self) {
        if let Self::Lent { times } = *self
            && terminal::take_again()
        {
            // That the terminal is gone is noticed when keys are read.
            let _ = standard_output().and_then(|mut it| execute!(it, EnterAlternateScreen));
            *self = Self::Taken { times: times + 1 };
        }
    }
}

fn leave() {
    // A terminal that is gone needs nothing.
    let _ = standard_output().and_then(|mut it| execute!(it, LeaveAlternateScreen, Show));
    terminal::give_back();
}

fn give_back(until: Until) {
    let mut owner = owner();
    owner.give_back();
    match (until, *owner) {
        (Until::Ends, _) => *owner = Owner::Shell,
        // Who draws would take it before the stop comes.
        (Until::GoesOn, Owner::Lent { times }) => *owner = Owner::Away { times },
        (Until::GoesOn, _) => {}
    }
}

/// Takes the screen anew, whatever a shell has made of it meanwhile.
fn resume() {
    let mut owner = owner();
    owner.give_back();
    if let Owner::Away { times } = *owner {
        *owner = Owner::Lent { times };
    }
    owner.take_again();
}
