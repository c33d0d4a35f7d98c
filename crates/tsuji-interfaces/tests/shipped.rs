//! Every shipped interface: generated types, dynamic messages and hashes known from elsewhere
//! agree.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "../../tsuji-msg/tests/support/arrays.rs"]
mod arrays;
#[path = "../../tsuji-msg/tests/support/random.rs"]
#[allow(dead_code, reason = "the definitions in it are for the tests of tsuji-msg")]
mod random;

use arrays::{check_found, check_written};
use proptest::prelude::*;
use random::Random;
use std::sync::LazyLock;
use tsuji_interfaces::{Shipped, names};
use tsuji_msg::{
    Action, ArrayLayout, CdrError, DynamicMessage, EchoStyle, InPlace, JsonStyle, Kind, Message,
    Resolver, Room, Service, Template, TypeName, TypeSet,
};

static TYPES: LazyLock<TypeSet<Shipped>> = LazyLock::new(|| TypeSet::new(Shipped));

// `each_message!(check, arguments)`, `each_service!(check)` and `each_action!(check)`, over everything that was generated.
include!(concat!(env!("OUT_DIR"), "/each.rs"));

/// What a test asks of a generated message. Only this is compiled anew for each of some hundreds, and not what compares it.
struct Generated {
    name: &'static str,
    hash: &'static str,
    definition: &'static str,
    fixed_size: Option<usize>,
    layout: fn() -> ArrayLayout,
    default: fn() -> Vec<u8>,
    read: fn(&[u8]) -> Result<Read, CdrError>,
    is_view_refused: fn(&[u8]) -> bool,
}

/// A sample that was made a value, and what both tell of it.
struct Read {
    size: usize,
    bytes: Vec<u8>,
    view_of_value: String,
    view_of_sample: String,
}

impl Generated {
    fn of<M: Message>() -> Self {
        Self {
            name: M::TYPE_NAME,
            hash: M::TYPE_HASH,
            definition: M::DEFINITION,
            fixed_size: M::FIXED_SIZE,
            layout: ArrayLayout::of::<M>,
            default: || M::default().to_vec().unwrap(),
            read: |sample| {
                let value = M::deserialize(sample)?;
                Ok(Read {
                    size: value.serialized_size(),
                    bytes: value.to_vec()?,
                    view_of_value: format!("{:?}", value.view()),
                    view_of_sample: format!("{:?}", M::view_cdr(sample)?),
                })
            },
            is_view_refused: |sample| M::view_cdr(sample).is_err(),
        }
    }

    fn all() -> Vec<Self> {
        fn add<M: Message>(all: &mut Vec<Generated>) {
            all.push(Generated::of::<M>());
        }
        let mut all = Vec::new();
        each_message!(add, &mut all);
        assert!(all.len() > 200);
        all
    }
}

#[test]
fn constants_are_what_the_dynamic_path_computes() {
    for message in Generated::all() {
        let ty = TYPES.load(message.name).unwrap();
        assert_eq!(message.hash, ty.hash(), "{}", message.name);
        assert_eq!(message.fixed_size, ty.fixed_size(), "{}", message.name);
        assert_eq!(message.definition, ty.full_text(), "{}", message.name);
    }
}

#[test]
fn services_are_what_the_dynamic_path_computes() {
    fn check<S: Service>() {
        let service = TYPES.load_service(S::TYPE_NAME).unwrap();
        assert_eq!(S::TYPE_HASH, service.hash, "{}", S::TYPE_NAME);
        assert_eq!(S::Request::TYPE_HASH, service.request.hash());
        assert_eq!(S::Response::TYPE_NAME, service.response.name().to_string());
    }
    each_service!(check);
}

#[test]
fn actions_are_what_the_dynamic_path_computes() {
    fn check<A: Action>() {
        let action = TYPES.load_action(A::TYPE_NAME).unwrap();
        assert_eq!(A::TYPE_HASH, action.hash, "{}", A::TYPE_NAME);
        assert_eq!(A::SendGoal::TYPE_HASH, action.send_goal.hash);
        assert_eq!(A::GetResult::TYPE_NAME, action.get_result.name.to_string());
        assert_eq!(A::FeedbackMessage::TYPE_HASH, action.feedback_message.hash());
        let (id, goal) = ([7; 16], A::Goal::default());
        assert_eq!(A::split_goal(&A::join_goal(id, goal.clone())), (id, &goal));
        assert_eq!(A::split_answer(&A::join_answer(true, (5, 6))), (true, (5, 6)));
        assert_eq!(A::split_asked(&A::join_asked(id)), id);
        let result = A::Result::default();
        assert_eq!(A::split_result(A::join_result(4, result.clone())), (4, result));
        let feedback = A::Feedback::default();
        assert_eq!(A::split_feedback(&A::join_feedback(id, feedback.clone())), (id, &feedback));
    }
    each_action!(check);
}

#[test]
fn hashes_known_from_elsewhere() {
    let mut count = 0;
    for line in include_str!("data/known_hashes.txt").lines().filter(|line| !line.starts_with('#'))
    {
        let (name, hash) = line.split_once(' ').unwrap();
        let parsed: TypeName = name.parse().unwrap();
        let found = if parsed.kind() == Kind::Service && names().any(|shipped| shipped == name) {
            TYPES.load_service(name).unwrap().hash
        } else {
            TYPES.load(name).unwrap().hash().to_owned()
        };
        assert_eq!(found, hash, "{name}");
        count += 1;
    }
    assert!(count > 170);
}

#[test]
fn defaults_agree() {
    for message in Generated::all() {
        let dynamic = DynamicMessage::new(TYPES.load(message.name).unwrap());
        assert_eq!((message.default)(), dynamic.encode().unwrap(), "{}", message.name);
    }
}

#[test]
fn every_name_loads() {
    assert!(names().len() > 200);
    for name in names() {
        let parsed: TypeName = name.parse().unwrap();
        match parsed.kind() {
            Kind::Service => drop(TYPES.load_service(name).unwrap()),
            Kind::Action => drop(TYPES.load_action(name).unwrap()),
            Kind::Message => drop(TYPES.load(name).unwrap()),
        }
    }
    assert!(Shipped.definition(Kind::Message, "std_msgs", "Nothing").is_none());
    assert!(Shipped.definition(Kind::Service, "std_msgs", "String").is_none());
}

#[test]
fn messages_drawn_in_place() {
    fn check<M: InPlace>() {
        let message = M::default();
        for len in [0, 7] {
            let mut rooms = [Room::new(M::ARRAY, len)];
            let mut out = vec![0; message.size_around(&mut rooms).unwrap()];
            message.serialize_around(&mut rooms, &mut out).unwrap();
            assert_eq!(rooms[0].place().len(), len * size_of::<M::Item>(), "{}", M::TYPE_NAME);
            let layout = ArrayLayout::of::<M>();
            assert_eq!(layout.locate::<M::Item>(&out, M::ARRAY).unwrap(), rooms[0].place());
            M::deserialize(&out).unwrap();
        }
    }
    use tsuji_interfaces::{nav_msgs, sensor_msgs, std_msgs};
    check::<sensor_msgs::msg::Image>();
    check::<sensor_msgs::msg::CompressedImage>();
    check::<sensor_msgs::msg::PointCloud2>();
    check::<nav_msgs::msg::OccupancyGrid>();
    check::<std_msgs::msg::UInt8MultiArray>();
    check::<std_msgs::msg::Float64MultiArray>();
    let cloud = sensor_msgs::msg::PointCloud2 { is_dense: true, ..Default::default() };
    let mut rooms = [Room::new("data", 5)];
    let mut out = vec![0xaa; cloud.size_around(&mut rooms).unwrap()];
    cloud.serialize_around(&mut rooms, &mut out).unwrap();
    let data = &out[rooms[0].place()];
    assert!(data.iter().all(|byte| *byte == 0xaa), "the caller's bytes were touched");
    assert_eq!(out.last(), Some(&1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn random_messages_agree(seed: u64) {
        for message in Generated::all() {
            let ty = TYPES.load(message.name).unwrap();
            let dynamic = Random(seed).message(&ty);
            let bytes = dynamic.encode().unwrap();
            let typed = (message.read)(&bytes).unwrap();
            assert_eq!(typed.size, bytes.len());
            assert_eq!(typed.bytes, bytes);
            assert_eq!(DynamicMessage::decode(&ty, &bytes).unwrap(), dynamic);
            assert_eq!(typed.view_of_value, typed.view_of_sample);
            check_found(&(message.layout)(), &bytes, &dynamic);
            check_written(&dynamic, &dynamic);
            let yaml = dynamic.to_yaml(EchoStyle::default());
            assert_eq!(DynamicMessage::from_yaml(&ty, &yaml).unwrap(), dynamic, "{yaml}");
            let json = dynamic.to_json(JsonStyle::default());
            assert_eq!(DynamicMessage::from_json(&ty, &json).unwrap().to_json(JsonStyle::default()), json);
        }
    }

    #[test]
    fn cut_messages_are_errors(seed: u64) {
        for message in Generated::all() {
            let ty = TYPES.load(message.name).unwrap();
            let mut random = Random(seed);
            let bytes = random.message(&ty).encode().unwrap();
            for _ in 0..10 {
                let cut = &bytes[..random.below(bytes.len())];
                assert!((message.read)(cut).is_err() && (message.is_view_refused)(cut), "{}", message.name);
            }
        }
    }
}
