//! Any bytes as a message of any shipped type, in ROS 1's form and in CDR, with the fields of ROS 1 in their order and reversed:
//! no panic, and what was converted converts back to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tsuji_interfaces::{Shipped, names};
use tsuji_msg::TypeSet;
use tsuji_ros1::convert::{ConvertProblem, Plan};
use tsuji_ros1::mapping::Mapping;
use tsuji_ros1::types::MessageType;

static PLANS: LazyLock<Vec<Plan>> = LazyLock::new(|| {
    let (set, mapping) = (TypeSet::new(Shipped), Mapping::builtin());
    let messages = names().filter(|name| name.contains("/msg/"));
    let plans = messages.flat_map(|name| {
        let ros2 = set.load(name).expect("a shipped message");
        // A `wstring` has no counterpart.
        let Ok(ros1) = MessageType::from_ros2(&ros2, &mapping) else { return Vec::new() };
        let reversed = MessageType::parse(ros1.name(), &reversed(ros1.definition())).expect("the same fields");
        let plan = |ros1| Plan::new(ros1, &ros2, &mapping).expect("types that convert");
        vec![plan(&ros1), plan(&reversed)]
    });
    plans.collect()
});

/// The definitions of a full text, each with its lines in reverse.
fn reversed(text: &str) -> String {
    let mut blocks: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.lines() {
        if line.starts_with("===") || line.starts_with("MSG:") {
            blocks.push(vec![line]);
            blocks.push(Vec::new());
        } else if let Some(block) = blocks.last_mut() {
            block.insert(0, line);
        }
    }
    blocks.concat().join("\n")
}

fuzz_target!(|data: &[u8]| {
    let [first, second, bytes @ ..] = data else { return };
    let plan = &PLANS[usize::from(u16::from_le_bytes([*first, *second])) % PLANS.len()];
    let (mut cdr, mut ros1) = (Vec::new(), Vec::new());
    match plan.to_cdr(bytes, &mut cdr) {
        Err(_) => assert!(cdr.is_empty(), "nothing is appended when converting fails"),
        Ok(()) => {
            plan.to_ros1(&cdr, 0, &mut ros1).expect("what was converted converts back");
            let mut again = Vec::new();
            plan.to_cdr(&ros1, &mut again).expect("and there");
            assert_eq!(again, cdr);
        }
    }
    ros1.clear();
    match plan.to_ros1(bytes, 0, &mut ros1) {
        Err(_) => assert!(ros1.is_empty(), "nothing is appended when converting fails"),
        Ok(()) => {
            // Only the way to ROS 2 minds the bounds.
            if let Err(error) = plan.to_cdr(&ros1, &mut cdr) {
                assert!(matches!(error.problem(), ConvertProblem::Bound { .. }), "{error}");
            }
        }
    }
});
