//! The messages and the service, with the hashes that ROS 2 gives them.

use hiroz::entity::{TypeHash, TypeInfo};
use hiroz::msg::{SerdeCdrSerdes, ZMessage, ZService};
use hiroz::ros_msg::{MessageTypeInfo, ServiceTypeInfo, WithTypeInfo};
use serde::{Deserialize, Serialize};

/// `std_msgs/msg/String`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Text {
    pub(crate) data: String,
}

impl MessageTypeInfo for Text {
    fn type_name() -> &'static str {
        "std_msgs::msg::dds_::String_"
    }

    fn type_hash() -> TypeHash {
        hash("df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18")
    }
}

impl WithTypeInfo for Text {}

impl ZMessage for Text {
    type Serdes = SerdeCdrSerdes<Self>;
}

/// The request of `example_interfaces/srv/AddTwoInts`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AddTwoIntsRequest {
    pub(crate) a: i64,
    pub(crate) b: i64,
}

impl MessageTypeInfo for AddTwoIntsRequest {
    fn type_name() -> &'static str {
        "example_interfaces::srv::dds_::AddTwoInts_Request_"
    }

    /// Of no use: what is announced is the hash of the service.
    fn type_hash() -> TypeHash {
        TypeHash::zero()
    }
}

impl WithTypeInfo for AddTwoIntsRequest {}

impl ZMessage for AddTwoIntsRequest {
    type Serdes = SerdeCdrSerdes<Self>;
}

/// Its response.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AddTwoIntsResponse {
    pub(crate) sum: i64,
}

impl MessageTypeInfo for AddTwoIntsResponse {
    fn type_name() -> &'static str {
        "example_interfaces::srv::dds_::AddTwoInts_Response_"
    }

    /// Of no use: what is announced is the hash of the service.
    fn type_hash() -> TypeHash {
        TypeHash::zero()
    }
}

impl WithTypeInfo for AddTwoIntsResponse {}

impl ZMessage for AddTwoIntsResponse {
    type Serdes = SerdeCdrSerdes<Self>;
}

/// `example_interfaces/srv/AddTwoInts`.
pub(crate) struct AddTwoInts;

impl ServiceTypeInfo for AddTwoInts {
    fn service_type_info() -> TypeInfo {
        let hash = hash("e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a");
        TypeInfo::new("example_interfaces::srv::dds_::AddTwoInts_", hash)
    }
}

impl ZService for AddTwoInts {
    type Request = AddTwoIntsRequest;
    type Response = AddTwoIntsResponse;
}

fn hash(digits: &str) -> TypeHash {
    TypeHash::from_rihs_string(&format!("RIHS01_{digits}")).unwrap_or_else(TypeHash::zero)
}
