//! ROS 1 and rclcpp, as far as they are here, and where their children are started.

use crate::carrier::{Carrier, RCLCPP};
use crate::crew::{Stage, Stop};
use crate::rclcpp::{Middleware, Rclcpp};
use crate::report::{Report, Screen};
use crate::ros1::{Room, Ros1};

/// Those that some carrier is of.
pub(crate) struct Peers {
    ros1: Option<Ros1>,
    rclcpp: Vec<Middleware>,
}

impl Peers {
    /// Looks for those that `carriers` are of, and says once of each that is not here why.
    pub(crate) fn find(
        stage: &Stage,
        carriers: &[Carrier],
        screen: &mut Screen<'_>,
        report: &mut Report,
    ) -> Result<Self, Stop> {
        let has = |is_meant: fn(Carrier) -> bool| carriers.iter().any(|it| is_meant(*it));
        let mut peers = Self { ros1: None, rclcpp: Vec::new() };
        if has(Carrier::is_ros1) {
            match Ros1::find(&stage.program) {
                Ok(ros1) => peers.ros1 = Some(ros1),
                Err(why) => report.absent(screen, "ros1", &why),
            }
        }
        if has(Carrier::is_rclcpp) {
            match Rclcpp::find(&stage.program) {
                Ok(rclcpp) => peers.rclcpp = rclcpp.present(stage, screen, report)?,
                Err(why) => report.absent(screen, RCLCPP, &why),
            }
        }
        if has(|it| it == Carrier::RclcppLoan) {
            for it in peers.rclcpp.iter().filter(|it| !it.lends) {
                let what = Carrier::RclcppLoan.on(&it.name);
                report.absent(screen, &what, "it lends no message of a fixed size");
            }
        }
        Ok(peers)
    }

    /// Where the children of a carrier are started, once for each middleware; nowhere if it is not here.
    pub(crate) fn places<'a>(&'a self, stage: &'a Stage, carrier: Carrier) -> Vec<Place<'a>> {
        if carrier.is_ros1() {
            return self.ros1.iter().map(|it| Place::Ros1(it, stage)).collect();
        }
        if carrier.is_rclcpp() {
            let able = |it: &&Middleware| it.lends || carrier != Carrier::RclcppLoan;
            return self.rclcpp.iter().filter(able).map(Place::Rclcpp).collect();
        }
        vec![Place::Own(stage)]
    }
}

/// Where the children of a carrier are started.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// They are this program.
    Own(&'a Stage),
    /// They are nodes of ROS 1.
    Ros1(&'a Ros1, &'a Stage),
    /// They are nodes of rclcpp.
    Rclcpp(&'a Middleware),
}

impl<'a> Place<'a> {
    /// The name of a carrier in a row here.
    pub(crate) fn name(self, carrier: Carrier) -> String {
        match self {
            Self::Rclcpp(it) => carrier.on(&it.name),
            _ => carrier.to_string(),
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
