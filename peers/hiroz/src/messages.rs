//! The messages, the service and the action, with the hashes that ROS 2 gives them.

use hiroz::action::ZAction;
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

/// The goal of `example_interfaces/action/Fibonacci`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FibonacciGoal {
    pub(crate) order: i32,
}

impl ZMessage for FibonacciGoal {
    type Serdes = SerdeCdrSerdes<Self>;
}

/// Its feedback.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FibonacciFeedback {
    pub(crate) sequence: Vec<i32>,
}

impl ZMessage for FibonacciFeedback {
    type Serdes = SerdeCdrSerdes<Self>;
}

/// Its result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FibonacciResult {
    pub(crate) sequence: Vec<i32>,
}

impl ZMessage for FibonacciResult {
    type Serdes = SerdeCdrSerdes<Self>;
}

/// `example_interfaces/action/Fibonacci`. What hiroz would announce by itself has neither the names nor the hashes of ROS 2.
pub(crate) struct Fibonacci;

impl ZAction for Fibonacci {
    type Goal = FibonacciGoal;
    type Result = FibonacciResult;
    type Feedback = FibonacciFeedback;

    fn name() -> &'static str {
        "example_interfaces/action/Fibonacci"
    }

    fn send_goal_type_info() -> TypeInfo {
        let hash = hash("d1a57fb2a4afe8c21e34fb10db206f16ce6729b28531141472df92277c55b557");
        TypeInfo::new("example_interfaces::action::dds_::Fibonacci_SendGoal_", hash)
    }

    fn get_result_type_info() -> TypeInfo {
        let hash = hash("1b0de0d5d29dc955d92f546706568428632771db13ec84c15ec1c1a59f424a57");
        TypeInfo::new("example_interfaces::action::dds_::Fibonacci_GetResult_", hash)
    }

    fn cancel_goal_type_info() -> TypeInfo {
        let hash = hash("573d8b0a534451d7bc2ac8c5ffde8ac14b8593b7001175d0cd6516dcbeb8689a");
        TypeInfo::new("action_msgs::srv::dds_::CancelGoal_", hash)
    }

    fn feedback_type_info() -> TypeInfo {
        let hash = hash("c1de71afd52e49a89c53d8262366884185bc0a02f78ce051c4e46b0a7fe59bb2");
        TypeInfo::new("example_interfaces::action::dds_::Fibonacci_FeedbackMessage_", hash)
    }

    fn status_type_info() -> TypeInfo {
        let hash = hash("6c1684b00f177d37438febe6e709fc4e2b0d4248dca4854946f9ed8b30cda83e");
        TypeInfo::new("action_msgs::msg::dds_::GoalStatusArray_", hash)
    }
}

fn hash(digits: &str) -> TypeHash {
    TypeHash::from_rihs_string(&format!("RIHS01_{digits}")).unwrap_or_else(TypeHash::zero)
}
