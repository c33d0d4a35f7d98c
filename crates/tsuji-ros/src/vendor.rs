//! Who made the RTPS implementation of a participant.
//!
//! The Object Management Group assigns the numbers. They are listed in Wireshark,
//! `epan/dissectors/packet-rtps.c`, and up to Cyclone DDS in Cyclone DDS, `ddsi__vendor.h`; RustDDS
//! states its own in `src/messages/vendor_id.rs`. Zenoh is no RTPS and has none: its number here is one that
//! nobody was assigned, and so has ROS 1.

use std::fmt;

use tsuji_core::Vendor;

/// The two bytes in the header of every RTPS message and in a participant's announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VendorId(pub [u8; 2]);

impl VendorId {
    /// Eclipse Cyclone DDS.
    pub const CYCLONE: Self = Self([0x01, 0x10]);

    /// eProsima Fast DDS.
    pub const FAST: Self = Self([0x01, 0x0f]);

    /// RTI Connext DDS.
    pub const CONNEXT: Self = Self([0x01, 0x01]);

    /// RustDDS.
    pub const RUST: Self = Self([0x01, 0x12]);

    /// Eclipse Zenoh.
    pub const ZENOH: Self = Self([0xff, 0x7a]);

    /// None: the node is one of ROS 1.
    pub const ROS1: Self = Self([0xff, 0x01]);

    /// The name of the product, if it is a known one.
    pub fn name(self) -> Option<&'static str> {
        KNOWN.iter().find(|(id, _)| *id == self.0).map(|(_, name)| *name)
    }

    /// Whether its services are taken to be as those of `rmw_cyclonedds_cpp`, with a header in the
    /// payload: those of Cyclone DDS are, and those of ros2-client on RustDDS can be. Fast DDS and
    /// Connext relate replies to requests outside the payload.
    pub fn has_services_of_cyclone(self) -> bool {
        [Self::CYCLONE, Self::RUST].contains(&self)
    }

    /// Whether its services are taken to be as those of `rmw_fastrtps_cpp`, related to each other outside
    /// the payload: those of Fast DDS are, those of rmw_zenoh, as tsuji's engine over it shows them, those of ROS 1 likewise, and those of
    /// ros2-client on RustDDS can be. Those of Connext are by their specification, which nobody has tried.
    pub fn has_services_of_fast(self) -> bool {
        [Self::FAST, Self::RUST, Self::ZENOH, Self::ROS1, Self::CONNEXT].contains(&self)
    }

    /// The vendor as a condition of a policy names it.
    pub fn vendor(self) -> Vendor {
        match self {
            Self::CYCLONE => Vendor::Cyclone,
            Self::FAST => Vendor::Fast,
            Self::ZENOH => Vendor::Zenoh,
            Self::ROS1 => Vendor::Ros1,
            _ => Vendor::Other,
        }
    }
}

/// The name of the product, else `vendor xx.yy` in hexadecimal.
impl fmt::Display for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor] = self.0;
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "vendor {major:02x}.{minor:02x}"),
        }
    }
}

const KNOWN: &[([u8; 2], &str)] = &[
    (VendorId::CONNEXT.0, "RTI Connext DDS"),
    ([0x01, 0x02], "OpenSplice"),
    ([0x01, 0x03], "OpenDDS"),
    ([0x01, 0x06], "CoreDX DDS"),
    ([0x01, 0x0a], "RTI Connext DDS Micro"),
    (VendorId::FAST.0, "Fast DDS"),
    (VendorId::CYCLONE.0, "Cyclone DDS"),
    ([0x01, 0x11], "GurumDDS"),
    (VendorId::RUST.0, "RustDDS"),
    (VendorId::ZENOH.0, "Zenoh"),
    (VendorId::ROS1.0, "ROS 1"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_have_names() {
        let check = |id, expect: &str, vendor| {
            assert_eq!(VendorId(id).to_string(), expect);
            assert_eq!(VendorId(id).vendor(), vendor);
        };
        check([1, 0x10], "Cyclone DDS", Vendor::Cyclone);
        check([1, 0x0f], "Fast DDS", Vendor::Fast);
        check([1, 0x01], "RTI Connext DDS", Vendor::Other);
        check([1, 0x12], "RustDDS", Vendor::Other);
        check([0xff, 0x7a], "Zenoh", Vendor::Zenoh);
        check([0xff, 0x01], "ROS 1", Vendor::Ros1);
        check([0, 0], "vendor 00.00", Vendor::Other);
        check([0x01, 0xff], "vendor 01.ff", Vendor::Other);
    }
}
