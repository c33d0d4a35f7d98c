//! Any bytes viewed in place and read as an Image and as messages with nested sequences: both agree, and so do arrays that are
//! found by their names.
#![no_main]

#[path = "../../crates/tsuji-msg/tests/support/arrays.rs"]
mod arrays;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tsuji_interfaces::{Shipped, sensor_msgs, visualization_msgs};
use tsuji_msg::{ArrayLayout, DynamicMessage, Message, TypeSet};

static SET: LazyLock<TypeSet<Shipped>> = LazyLock::new(|| TypeSet::new(Shipped));

fn check<M: Message>(data: &[u8]) {
    match (M::view_cdr(data), M::deserialize(data)) {
        (Ok(view), Ok(message)) => {
            assert_eq!(format!("{view:?}"), format!("{:?}", message.view()));
            let ty = SET.load(M::TYPE_NAME).expect("a shipped message");
            let dynamic = DynamicMessage::decode(&ty, data).expect("what one reads the other does");
            arrays::check_found(&ArrayLayout::of::<M>(), data, &dynamic);
            arrays::check_written(&message, &dynamic);
            let bytes = message.to_vec().expect("what was read can be written");
            assert_eq!(bytes.len(), message.serialized_size());
        }
        (Err(_), Err(_)) => {
            for path in ["data", "fields[1].count", "markers[1].texture.data", "markers[2].colors"] {
                let _ = ArrayLayout::of::<M>().array::<u8>(data, path);
            }
        }
        (view, message) => panic!("view {:?}, message {:?}", view.is_ok(), message.is_ok()),
    }
}

fuzz_target!(|data: &[u8]| {
    check::<sensor_msgs::msg::Image>(data);
    check::<sensor_msgs::msg::PointCloud2>(data);
    check::<visualization_msgs::msg::MarkerArray>(data);
});
