//! Any bytes as what a peer says over RTPS: user data, graph messages, headers of services, connect attempts. What
//! reads must write the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_msg::cdr::ByteOrder;
use tsuji_ros::discovery::{HEADER_BYTES, Heard};
use tsuji_ros::gid::Distro;
use tsuji_ros::graph_message::{Graph, ParticipantEntitiesInfo};
use tsuji_ros::names::{DdsTopic, DdsType};
use tsuji_ros::service::RequestHeader;
use tsuji_ros::user_data::{EndpointUserData, ParticipantUserData};

fuzz_target!(|data: &[u8]| {
    let Some((first, data)) = data.split_first() else { return };
    match first % 6 {
        0 => {
            let Ok(said) = ParticipantUserData::parse(data) else { return };
            let written = said.write().expect("what was read can be written");
            assert_eq!(ParticipantUserData::parse(&written), Ok(said));
        }
        1 => {
            let Ok(said) = EndpointUserData::parse(data) else { return };
            let written = said.write().expect("what was read can be written");
            assert_eq!(EndpointUserData::parse(&written), Ok(said));
        }
        2 => {
            let distro = Distro::ALL[data.len() % Distro::ALL.len()];
            let Ok(said) = ParticipantEntitiesInfo::decode(data, distro) else { return };
            let written = said.encode(distro, ByteOrder::Little).expect("as above");
            assert_eq!(ParticipantEntitiesInfo::decode(&written, distro), Ok(said.clone()));
            let mut graph = Graph::default();
            let participant = said.participant;
            if graph.update(said).is_ok() {
                assert!(graph.remove(participant));
            }
            assert_eq!(graph.nodes().count(), 0);
        }
        3 => {
            let Ok((header, encapsulation, body)) = RequestHeader::split(data) else { return };
            let plain = [&encapsulation, body].concat();
            assert_eq!(header.join(&plain).expect("as above"), data);
        }
        4 => {
            let given = &data[..data.len().min(HEADER_BYTES)];
            let _ = Heard::read(given, data.len());
        }
        _ => {
            let Ok(text) = std::str::from_utf8(data) else { return };
            let topic = DdsTopic::demangle(text);
            if let Ok(name) = topic.mangle() {
                assert_eq!(name, text);
            }
            assert_eq!(DdsType::demangle(text).to_string(), text);
        }
    }
});
