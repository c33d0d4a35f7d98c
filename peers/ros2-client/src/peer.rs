//! The node, and waiting for what the network brings while being ready to end.

use std::cell::{RefCell, RefMut};
use std::io::{Read as _, Write as _};
use std::pin::pin;
use std::thread;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use async_io::Timer;
use futures::{FutureExt, StreamExt as _, future, select_biased};
use ros2_client::dds::rustdds::{
    DomainParticipant, DomainParticipantBuilder, DomainParticipantStatusListener, RTPSEntity as _,
    StatusEvented as _,
};
use ros2_client::{Context, Name, Node, NodeName, NodeOptions};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::arguments::{Command, NodeArguments};
use crate::end::End;
use crate::view::View;

/// A node with its participant. When it is dropped, both say good-bye to the others.
pub(crate) struct Peer {
    // Dropped before the context that it belongs to.
    pub(crate) node: Node,
    pub(crate) context: Context,
    status: DomainParticipantStatusListener,
    view: RefCell<View>,
    told_to_end: Receiver<()>,
    lines: Receiver<()>,
    timeout: Option<Duration>,
}

impl Peer {
    pub(crate) fn new(arguments: &NodeArguments, command: &Command) -> Result<Self, End> {
        let (told_to_end, lines) = orders()?;
        let participant = participant(arguments)?;
        let status = participant.status_listener();
        let view = RefCell::new(View::new(participant.guid()));
        let context = Context::from_domain_participant(participant)
            .map_err(|error| End::failed("context", error))?;
        let name = match &arguments.node {
            Some(name) => node_name(name)?,
            None => node_name(&format!("peer_{}", command.name()))?,
        };
        let options = match command {
            Command::Offer(_) => crate::parameters::options(),
            _ => NodeOptions::new(),
        };
        let node = context.new_node(name, options).map_err(|error| End::failed("node", error))?;
        Ok(Self { node, context, status, view, told_to_end, lines, timeout: arguments.timeout })
    }

    /// Waits for `work`; `what` says what is waited for, should it not come.
    pub(crate) async fn wait<T>(
        &self,
        what: impl Fn() -> String,
        work: impl Future<Output = T>,
    ) -> Result<T, End> {
        let output = self.wait_or(what, work, |_| false).await?;
        output.ok_or_else(|| End::Failed("waited in vain".to_owned()))
    }

    /// Waits until the view is as it must be.
    pub(crate) async fn until(
        &self,
        what: impl Fn() -> String,
        met: impl Fn(&View) -> bool,
    ) -> Result<(), End> {
        self.wait_or(what, future::pending::<()>(), met).await.map(drop)
    }

    /// Waits for `work`, or until it has nothing to give and the view is as it must be: then None.
    pub(crate) async fn wait_or<T>(
        &self,
        what: impl Fn() -> String,
        work: impl Future<Output = T>,
        met: impl Fn(&View) -> bool,
    ) -> Result<Option<T>, End> {
        let mut work = pin!(work.fuse());
        let mut events = pin!(self.status.as_async_status_stream());
        let mut told_to_end = pin!(self.told_to_end.recv().fuse());
        let mut silence = pin!(match self.timeout {
            Some(timeout) => FutureExt::fuse(Timer::after(timeout)),
            None => FutureExt::fuse(Timer::never()),
        });
        loop {
            // All that has happened is heard before any of it counts, and however much work there is.
            while let Some(Some(event)) = events.next().now_or_never() {
                self.view.borrow_mut().apply(event);
            }
            if met(&self.view.borrow()) {
                return Ok(work.now_or_never());
            }
            select_biased! {
                _ = told_to_end => return Err(End::Interrupted(what())),
                output = work => return Ok(Some(output)),
                event = events.next() => match event {
                    Some(event) => self.view.borrow_mut().apply(event),
                    None => return Err(End::Failed("the participant has ended".to_owned())),
                },
                _ = silence => return Err(End::Silence(what())),
            }
        }
    }

    /// With `--hold`, says that all matches, and waits for a line on standard input.
    pub(crate) async fn hold(&self, hold: bool) -> Result<(), End> {
        if hold {
            say("matched")?;
            let line =
                self.wait(|| "a line on standard input".to_owned(), self.lines.recv()).await?;
            line.map_err(|_| End::Told)?;
        }
        Ok(())
    }

    pub(crate) fn view(&self) -> RefMut<'_, View> {
        self.view.borrow_mut()
    }
}

/// A context without a node: its participant has the writer that tells nodes, and that never writes. Until it is told to end.
pub(crate) async fn mute(arguments: &NodeArguments) -> Result<(), End> {
    let (told_to_end, _lines) = orders()?;
    let _context = Context::from_domain_participant(participant(arguments)?)
        .map_err(|error| End::failed("context", error))?;
    say("ready")?;
    // That nobody can tell it any more is an end as well.
    let _ = told_to_end.recv().await;
    Err(End::Told)
}

fn participant(arguments: &NodeArguments) -> Result<DomainParticipant, End> {
    let mut participant = DomainParticipantBuilder::new(arguments.domain);
    if !arguments.address.is_empty() {
        participant = participant.with_only_networks(arguments.address.iter().copied());
    }
    participant.build().map_err(|error| End::failed("participant", error))
}

/// One line on standard output, at once. When nobody reads it any more, the command ends.
pub(crate) fn say(line: impl std::fmt::Display) -> Result<(), End> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|_| End::Told)
}

/// The name of a topic or service, absolute, and the same as text.
pub(crate) fn absolute(name: &str) -> Result<(Name, String), End> {
    let text = format!("/{}", name.trim_start_matches('/'));
    let name = Name::parse(&text).map_err(|error| End::failed(&text, error))?;
    Ok((name, text))
}

fn node_name(text: &str) -> Result<NodeName, End> {
    let absolute = format!("/{}", text.trim_start_matches('/'));
    let (namespace, base) = absolute.rsplit_once('/').unwrap_or(("", &absolute));
    let namespace = if namespace.is_empty() { "/" } else { namespace };
    NodeName::new(namespace, base).map_err(|error| End::failed(text, error))
}

/// One message for the end of standard input and one for each signal that asks to end; and one for lines on standard
/// input, of which those that nobody waits for count as one.
fn orders() -> Result<(Receiver<()>, Receiver<()>), End> {
    let (end, ends) = async_channel::unbounded();
    let (line, lines) = async_channel::bounded(1);
    let mut signals =
        Signals::new([SIGTERM, SIGINT]).map_err(|error| End::failed("signal handlers", error))?;
    let tell = |whom: &Sender<()>| {
        // It has been told already, or has ended.
        let _ = whom.try_send(());
    };
    let end_by_signal = end.clone();
    let threads = [
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for _ in signals.forever() {
                tell(&end_by_signal);
            }
        }),
        thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            let mut bytes = [0; 64];
            while let Ok(count @ 1..) = std::io::stdin().read(&mut bytes) {
                if bytes[..count].contains(&b'\n') {
                    tell(&line);
                }
            }
            tell(&end);
        }),
    ];
    for thread in threads {
        thread.map_err(|error| End::failed("thread", error))?;
    }
    Ok((ends, lines))
}
