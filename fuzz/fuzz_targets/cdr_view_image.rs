//! Any bytes viewed in place and read as an Image and as messages with nested sequences: both agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_interfaces::{sensor_msgs, visualization_msgs};
use tsuji_msg::Message;

fn check<M: Message>(data: &[u8]) {
    match (M::view_cdr(data), M::deserialize(data)) {
        (Ok(view), Ok(message)) => {
            assert_eq!(format!("{view:?}"), format!("{:?}", message.view()));
            let bytes = message.to_vec().expect("what was read can be written");
            assert_eq!(bytes.len(), message.serialized_size());
        }
        (Err(_), Err(_)) => {}
        (view, message) => panic!("view {:?}, message {:?}", view.is_ok(), message.is_ok()),
    }
}

fuzz_target!(|data: &[u8]| {
    check::<sensor_msgs::msg::Image>(data);
    check::<sensor_msgs::msg::PointCloud2>(data);
    check::<visualization_msgs::msg::MarkerArray>(data);
});
