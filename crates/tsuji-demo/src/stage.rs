//! What is done to the camera's process while the robot runs: most of the acts are played here.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tsuji::{Context, Loan, Node, Subscription};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_transport::Transport;
use tsuji_transport::faulty::{Faults, Faulty};

use crate::Result;
use crate::acts::{ENGINE, MEMORY_MIB};
use crate::lock::lock;
use crate::nodes::camera::Controls;
use crate::nodes::kept;
use crate::orders::retry;
use crate::picture::{self, FULL};
use crate::robot::{self, GUEST, PICTURES, PICTURES_KEPT};
use crate::sequence::Sequence;
use crate::tally::{End, Tally};

/// From now on the camera sends thumbnails.
pub(crate) const SEND_THUMBNAILS: &str = "send thumbnails";
/// From now on it sends what it sees.
pub(crate) const SEND_FULL: &str = "send full";
/// It takes all of its shared memory.
pub(crate) const FILL_MEMORY: &str = "fill memory";
/// It gives it back.
pub(crate) const FREE_MEMORY: &str = "free memory";
/// Its Cyclone DDS refuses everything.
pub(crate) const CUT_ENGINE: &str = "cut engine";
/// It works again.
pub(crate) const HEAL_ENGINE: &str = "heal engine";
/// The second viewer subscribes.
pub(crate) const GUEST_COMES: &str = "guest comes";
/// It does so no more.
pub(crate) const GUEST_LEAVES: &str = "guest leaves";

/// So many loans do not fit into the memory, so one of them has to wait for some.
const HOARD: usize = (MEMORY_MIB << 20) / FULL.bytes() + 1;

/// So soon a picture is read and let go, unless the machine is busy.
const READ_MAX: Duration = Duration::from_millis(50);

/// A context whose Cyclone DDS, if it has it, can be cut.
pub(crate) fn context_with_faults() -> Result<(Context, Arc<OnceLock<Faulty>>)> {
    let engine = Arc::new(OnceLock::new());
    let kept = Arc::clone(&engine);
    let around = move |transport: Arc<dyn Transport>| -> Arc<dyn Transport> {
        if transport.id().as_str() != ENGINE {
            return transport;
        }
        let faulty = Faulty::in_place_of(transport, 0);
        Arc::new(kept.get_or_init(|| faulty).clone())
    };
    let context =
        robot::settings().transports(move |built| built.into_iter().map(around).collect());
    Ok((context.build()?, engine))
}

/// The camera's process, as far as it can be disturbed.
pub(crate) struct Stage {
    controls: Controls,
    engine: Arc<OnceLock<Faulty>>,
    /// Memory that nobody else can have.
    hoard: Vec<Loan>,
    pub(crate) guest: Node,
    guest_view: Option<Subscription<Image>>,
    /// What the second viewer saw.
    pub(crate) guest_received: Arc<Tally>,
}

impl Stage {
    pub(crate) fn new(
        context: &Context,
        controls: Controls,
        engine: Arc<OnceLock<Faulty>>,
    ) -> Result<Self> {
        let guest = context.node(GUEST.trim_start_matches('/'))?;
        let guest_received = Tally::new(PICTURES, GUEST, End::Received);
        Ok(Self { controls, engine, hoard: Vec::new(), guest, guest_view: None, guest_received })
    }

    /// Does what an order asks for; one that is not for the camera's process is ignored.
    pub(crate) fn on_order(&mut self, order: &str) -> Result<()> {
        let Controls { pictures, sends_thumbnails, number } = &self.controls;
        match order {
            SEND_THUMBNAILS => sends_thumbnails.store(true, Ordering::Relaxed),
            SEND_FULL => sends_thumbnails.store(false, Ordering::Relaxed),
            FILL_MEMORY => {
                // What readers still hold would be free a moment later, and the flow return for that.
                let _number = lock(number);
                std::thread::sleep(READ_MAX);
                for _ in 0..HOARD {
                    self.hoard.push(retry(|| pictures.loan_bytes(FULL.bytes()))?);
                }
            }
            FREE_MEMORY => self.hoard.clear(),
            CUT_ENGINE => self.fault(Faults { cut: true, ..Faults::default() }),
            HEAL_ENGINE => self.fault(Faults::default()),
            GUEST_COMES => self.guest_view = Some(self.watch()?),
            GUEST_LEAVES => self.guest_view = None,
            _ => (),
        }
        Ok(())
    }

    fn fault(&self, faults: Faults) {
        if let Some(engine) = self.engine.get() {
            engine.set(faults);
        }
    }

    /// Looks at the pictures too, from the next one on.
    fn watch(&self) -> Result<Subscription<Image>> {
        let guest_received = Arc::clone(&self.guest_received);
        let mut order = Sequence::default();
        Ok(self.guest.create_subscription::<Image>(
            PICTURES,
            kept(PICTURES_KEPT),
            move |received| {
                let frame = picture::verify(received.view().data);
                guest_received.add(frame.and_then(|frame| order.next("frame", frame.number)));
            },
        )?)
    }
}
