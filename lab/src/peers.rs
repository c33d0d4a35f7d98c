//! ROS 1 and rclcpp, as far as they are here, and what is secured: where their children are started.

use crate::budgets::Run;
use crate::crew::{Stage, Stop};
use crate::rclcpp::{Middleware, Rclcpp};
use crate::ros1::{Room, Ros1};
use crate::secured::Secured;
use crate::transport::{RCLCPP, Transport};

/// Those that some transport is of.
pub(crate) struct Peers {
    ros1: Option<Ros1>,
    rclcpp: Vec<Middleware>,
    secured: Option<Secured>,
}

impl Peers {
    /// Looks for those that `transports` are of, and says once of each that is not here why.
    pub(crate) fn find(run: &mut Run<'_, '_>, transports: &[Transport]) -> Result<Self, Stop> {
        let has = |is_meant: fn(Transport) -> bool| transports.iter().any(|it| is_meant(*it));
        let mut peers = Self { ros1: None, rclcpp: Vec::new(), secured: None };
        if has(Transport::is_secured) {
            peers.secured = Some(Secured::set_up(run.stage)?);
        }
        if has(Transport::is_ros1) {
            match Ros1::find(&run.stage.program) {
                Ok(ros1) => peers.ros1 = Some(ros1),
                Err(why) => run.report.absent(run.screen, "ros1", &why),
            }
        }
        if has(Transport::is_rclcpp) {
            match Rclcpp::find(&run.stage.program) {
                Ok(rclcpp) => peers.rclcpp = rclcpp.present(run)?,
                Err(why) => run.report.absent(run.screen, RCLCPP, &why),
            }
        }
        if has(|it| it == Transport::RclcppLoan) {
            for it in peers.rclcpp.iter().filter(|it| !it.lends) {
                let what = Transport::RclcppLoan.on(&it.name);
                run.report.absent(run.screen, &what, "it lends no message of a fixed size");
            }
        }
        Ok(peers)
    }

    /// Where the children of a transport are started, once for each middleware; nowhere if it is not here.
    pub(crate) fn sites<'a>(&'a self, stage: &'a Stage, transport: Transport) -> Vec<Site<'a>> {
        if transport.is_ros1() {
            return self.ros1.iter().map(|it| Site::Ros1(it, stage)).collect();
        }
        if transport.is_rclcpp() {
            let able = |it: &&Middleware| it.lends || transport != Transport::RclcppLoan;
            return self.rclcpp.iter().filter(able).map(Site::Rclcpp).collect();
        }
        let secured = self.secured.as_ref().filter(|_| transport.is_secured());
        vec![Site::Own(secured.map_or(stage, |it| it.stage(transport)))]
    }
}

/// Where the children of a transport are started.
#[derive(Clone, Copy)]
pub(crate) enum Site<'a> {
    /// They are this program.
    Own(&'a Stage),
    /// They are nodes of ROS 1.
    Ros1(&'a Ros1, &'a Stage),
    /// They are nodes of rclcpp.
    Rclcpp(&'a Middleware),
}

impl<'a> Site<'a> {
    /// The name of a transport in a row here.
    pub(crate) fn name(self, transport: Transport) -> String {
        match self {
            Self::Rclcpp(it) => transport.on(&it.name),
            _ => transport.to_string(),
        }
    }

    /// What they share, unless they are in a room.
    pub(crate) fn stage(self) -> &'a Stage {
        match self {
            Self::Own(stage) | Self::Ros1(_, stage) => stage,
            Self::Rclcpp(it) => &it.stage,
        }
    }

    /// A master that they need for themselves, of nodes that are started with `words` before their own.
    pub(crate) fn room(self, words: &[&str]) -> Result<Option<Room>, Stop> {
        match self {
            Self::Ros1(it, stage) => it.room(stage, words).map(Some),
            _ => Ok(None),
        }
    }
}
