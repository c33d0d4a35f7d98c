//! Types of ROS 1 against what Debian's packages of ROS 1 have, and the rules of the mapping.

use std::collections::HashMap;
use tsuji_interfaces::Shipped;
use tsuji_msg::{TypeSet, load_full_text};
use tsuji_ros1::convert::Plan;
use tsuji_ros1::mapping::Mapping;
use tsuji_ros1::types::{MessageType, ServiceType, TypeError};

/// MD5 sums of the messages of ROS 1 that ROS 2 has too, as Debian's packages have them.
#[rustfmt::skip]
const MESSAGES: &[(&str, &str)] = &[
    ("actionlib_msgs/GoalID", "302881f31927c1df708a2dbab0e80ee8"),
    ("actionlib_msgs/GoalStatus", "d388f9b87b3c471f784434d671988d4a"),
    ("actionlib_msgs/GoalStatusArray", "8b2b82f13216d0a8ea88bd3af735e619"),
    ("diagnostic_msgs/DiagnosticArray", "60810da900de1dd6ddd437c3503511da"),
    ("diagnostic_msgs/DiagnosticStatus", "d0ce08bc6e5ba34c7754f563a9cabaf1"),
    ("diagnostic_msgs/KeyValue", "cf57fdc6617a881a88c16e768132149c"),
    ("geometry_msgs/Accel", "9f195f881246fdfa2798d1d3eebca84a"),
    ("geometry_msgs/AccelStamped", "d8a98a5d81351b6eb0578c78557e7659"),
    ("geometry_msgs/AccelWithCovariance", "ad5a718d699c6be72a02b8d6a139f334"),
    ("geometry_msgs/AccelWithCovarianceStamped", "96adb295225031ec8d57fb4251b0a886"),
    ("geometry_msgs/Inertia", "1d26e4bb6c83ff141c5cf0d883c2b0fe"),
    ("geometry_msgs/InertiaStamped", "ddee48caeab5a966c5e8d166654a9ac7"),
    ("geometry_msgs/Point", "4a842b65f413084dc2b10fb484ea7f17"),
    ("geometry_msgs/Point32", "cc153912f1453b708d221682bc23d9ac"),
    ("geometry_msgs/PointStamped", "c63aecb41bfdfd6b7e1fac37c7cbe7bf"),
    ("geometry_msgs/Polygon", "cd60a26494a087f577976f0329fa120e"),
    ("geometry_msgs/PolygonStamped", "c6be8f7dc3bee7fe9e8d296070f53340"),
    ("geometry_msgs/Pose", "e45d45a5a1ce597b249e23fb30fc871f"),
    ("geometry_msgs/Pose2D", "938fa65709584ad8e77d238529be13b8"),
    ("geometry_msgs/PoseArray", "916c28c5764443f268b296bb671b9d97"),
    ("geometry_msgs/PoseStamped", "d3812c3cbc69362b77dc0b19b345f8f5"),
    ("geometry_msgs/PoseWithCovariance", "c23e848cf1b7533a8d7c259073a97e6f"),
    ("geometry_msgs/PoseWithCovarianceStamped", "953b798c0f514ff060a53a3498ce6246"),
    ("geometry_msgs/Quaternion", "a779879fadf0160734f906b8c19c7004"),
    ("geometry_msgs/QuaternionStamped", "e57f1e547e0e1fd13504588ffc8334e2"),
    ("geometry_msgs/Transform", "ac9eff44abf714214112b05d54a3cf9b"),
    ("geometry_msgs/TransformStamped", "b5764a33bfeb3588febc2682852579b0"),
    ("geometry_msgs/Twist", "9f195f881246fdfa2798d1d3eebca84a"),
    ("geometry_msgs/TwistStamped", "98d34b0043a2093cf9d9345ab6eef12e"),
    ("geometry_msgs/TwistWithCovariance", "1fe8a28e6890a4cc3ae4c3ca5c7d82e6"),
    ("geometry_msgs/TwistWithCovarianceStamped", "8927a1a12fb2607ceea095b2dc440a96"),
    ("geometry_msgs/Vector3", "4a842b65f413084dc2b10fb484ea7f17"),
    ("geometry_msgs/Vector3Stamped", "7b324c7325e683bf02a9b14b01090ec7"),
    ("geometry_msgs/Wrench", "4f539cf138b23283b520fd271b567936"),
    ("geometry_msgs/WrenchStamped", "d78d3cb249ce23087ade7e7d0c40cfa7"),
    ("nav_msgs/GridCells", "b9e4f5df6d28e272ebde00a3994830f5"),
    ("nav_msgs/MapMetaData", "10cfc8a2818024d3248802c00c95f11b"),
    ("nav_msgs/OccupancyGrid", "3381f2d731d4076ec5c71b0759edbe4e"),
    ("nav_msgs/Odometry", "cd5e73d190d741a2f92e81eda573aca7"),
    ("nav_msgs/Path", "6227e2b7e9cce15051f669a5e197bbf7"),
    ("rosgraph_msgs/Clock", "a9c97c1d230cfc112e270351a944ee47"),
    ("rosgraph_msgs/Log", "acffd30cd6b6de30f120938c17c593fb"),
    ("sensor_msgs/BatteryState", "4ddae7f048e32fda22cac764685e3974"),
    ("sensor_msgs/CameraInfo", "c9a58c1b0b154e0e6da7578cb991d214"),
    ("sensor_msgs/ChannelFloat32", "3d40139cdd33dfedcb71ffeeeb42ae7f"),
    ("sensor_msgs/CompressedImage", "8f7a12909da2c9d3332d540a0977563f"),
    ("sensor_msgs/FluidPressure", "804dc5cea1c5306d6a2eb80b9833befe"),
    ("sensor_msgs/Illuminance", "8cf5febb0952fca9d650c3d11a81a188"),
    ("sensor_msgs/Image", "060021388200f6f0f447d0fcd9c64743"),
    ("sensor_msgs/Imu", "6a62c6daae103f4ff57a132d6f95cec2"),
    ("sensor_msgs/JointState", "3066dcd76a6cfaef579bd0f34173e9fd"),
    ("sensor_msgs/Joy", "5a9ea5f83505693b71e785041e67a8bb"),
    ("sensor_msgs/JoyFeedback", "f4dcd73460360d98f36e55ee7f2e46f1"),
    ("sensor_msgs/JoyFeedbackArray", "cde5730a895b1fc4dee6f91b754b213d"),
    ("sensor_msgs/LaserEcho", "8bc5ae449b200fba4d552b4225586696"),
    ("sensor_msgs/LaserScan", "90c7ef2dc6895d81024acba2ac42f369"),
    ("sensor_msgs/MagneticField", "2f3b0b43eed0c9501de0fa3ff89a45aa"),
    ("sensor_msgs/MultiDOFJointState", "690f272f0640d2631c305eeb8301e59d"),
    ("sensor_msgs/MultiEchoLaserScan", "6fefb0c6da89d7c8abe4b339f5c2f8fb"),
    ("sensor_msgs/NavSatFix", "2d3a8cd499b9b4a0249fb98fd05cfa48"),
    ("sensor_msgs/NavSatStatus", "331cdbddfa4bc96ffc3b9ad98900a54c"),
    ("sensor_msgs/PointCloud", "d8e9c3f5afbdd8a130fd1d2763945fca"),
    ("sensor_msgs/PointCloud2", "1158d486dd51d683ce2f1be655c3c181"),
    ("sensor_msgs/PointField", "268eacb2962780ceac86cbd17e328150"),
    ("sensor_msgs/Range", "c005c34273dc426c67a020a87bc24148"),
    ("sensor_msgs/RegionOfInterest", "bdb633039d588fcccb441a4d43ccfe09"),
    ("sensor_msgs/RelativeHumidity", "8730015b05955b7e992ce29a2678d90f"),
    ("sensor_msgs/Temperature", "ff71b307acdbe7c871a5a6d7ed359100"),
    ("sensor_msgs/TimeReference", "fded64a0265108ba86c3d38fb11c0c16"),
    ("shape_msgs/Mesh", "1ffdae9486cd3316a121c578b47a85cc"),
    ("shape_msgs/MeshTriangle", "23688b2e6d2de3d32fe8af104a903253"),
    ("shape_msgs/Plane", "2c1b92ed8f31492f8e73f6a4a44ca796"),
    ("shape_msgs/SolidPrimitive", "d8f8cbc74c5ff283fca29569ccefb45d"),
    ("std_msgs/Bool", "8b94c1b53db61fb6aed406028ad6332a"),
    ("std_msgs/Byte", "ad736a2e8818154c487bb80fe42ce43b"),
    ("std_msgs/ByteMultiArray", "70ea476cbcfd65ac2f68f3cda1e891fe"),
    ("std_msgs/Char", "1bf77f25acecdedba0e224b162199717"),
    ("std_msgs/ColorRGBA", "a29a96539573343b1310c73607334b00"),
    ("std_msgs/Duration", "3e286caf4241d664e55f3ad380e2ae46"),
    ("std_msgs/Empty", "d41d8cd98f00b204e9800998ecf8427e"),
    ("std_msgs/Float32", "73fcbf46b49191e672908e50842a83d4"),
    ("std_msgs/Float32MultiArray", "6a40e0ffa6a17a503ac3f8616991b1f6"),
    ("std_msgs/Float64", "fdb28210bfa9d7c91146260178d9a584"),
    ("std_msgs/Float64MultiArray", "4b7d974086d4060e7db4613a7e6c3ba4"),
    ("std_msgs/Header", "2176decaecbce78abc3b96ef049fabed"),
    ("std_msgs/Int16", "8524586e34fbd7cb1c08c5f5f1ca0e57"),
    ("std_msgs/Int16MultiArray", "d9338d7f523fcb692fae9d0a0e9f067c"),
    ("std_msgs/Int32", "da5909fbe378aeaf85e547e830cc1bb7"),
    ("std_msgs/Int32MultiArray", "1d99f79f8b325b44fee908053e9c945b"),
    ("std_msgs/Int64", "34add168574510e6e17f5d23ecc077ef"),
    ("std_msgs/Int64MultiArray", "54865aa6c65be0448113a2afc6a49270"),
    ("std_msgs/Int8", "27ffa0c9c4b8fb8492252bcad9e5c57b"),
    ("std_msgs/Int8MultiArray", "d7c1af35a1b4781bbe79e03dd94b7c13"),
    ("std_msgs/MultiArrayDimension", "4cd0c83a8683deae40ecdac60e53bfa8"),
    ("std_msgs/MultiArrayLayout", "0fed2a11c13e11c5571b4e2a995a91a3"),
    ("std_msgs/String", "992ce8a1687cec8c8bd883ec73ca41d1"),
    ("std_msgs/Time", "cd7166c74c552c311fbcc2fe5a7bc289"),
    ("std_msgs/UInt16", "1df79edf208b629fe6b81923a544552d"),
    ("std_msgs/UInt16MultiArray", "52f264f1c973c4b73790d384c6cb4484"),
    ("std_msgs/UInt32", "304a39449588c7f8ce2df6e8001c5fce"),
    ("std_msgs/UInt32MultiArray", "4d6a180abc9be191b96a7eda6c8a233d"),
    ("std_msgs/UInt64", "1b2a79973e8bf53d7b53acb71299cb57"),
    ("std_msgs/UInt64MultiArray", "6088f127afb1d6c72927aa1247e945af"),
    ("std_msgs/UInt8", "7c8164229e7d2c17eb95e9231617fdee"),
    ("std_msgs/UInt8MultiArray", "82373f1612381bb6ee473b5cd6f5d89c"),
    ("stereo_msgs/DisparityImage", "04a177815f75271039fa21f16acad8c9"),
    ("tf2_msgs/TF2Error", "bc6848fd6fd750c92e38575618a4917d"),
    ("tf2_msgs/TFMessage", "94810edda583a504dfda3829e70d7eec"),
    ("trajectory_msgs/JointTrajectory", "65b4f94a94d1ed67169da35a02f33d3f"),
    ("trajectory_msgs/JointTrajectoryPoint", "f3cd1e1c4d320c79d6985c904ae5dcd3"),
    ("trajectory_msgs/MultiDOFJointTrajectory", "ef145a45a5f47b77b7f5cdde4b16c942"),
    ("trajectory_msgs/MultiDOFJointTrajectoryPoint", "3ebe08d1abd5b65862d50e09430db776"),
    ("visualization_msgs/ImageMarker", "1de93c67ec8858b831025a08fbf1b35c"),
    ("visualization_msgs/InteractiveMarker", "dd86d22909d5a3364b384492e35c10af"),
    ("visualization_msgs/InteractiveMarkerControl", "b3c81e785788195d1840b86c28da1aac"),
    ("visualization_msgs/InteractiveMarkerFeedback", "ab0f1eee058667e28c19ff3ffc3f4b78"),
    ("visualization_msgs/InteractiveMarkerInit", "d5f2c5045a72456d228676ab91048734"),
    ("visualization_msgs/InteractiveMarkerPose", "a6e6833209a196a38d798dadb02c81f8"),
    ("visualization_msgs/InteractiveMarkerUpdate", "710d308d0a9276d65945e92dd30b3946"),
    ("visualization_msgs/Marker", "4048c9de2a16f4ae8e0538085ebf1b97"),
    ("visualization_msgs/MarkerArray", "d155b9ce5188fbaf89745847fd5882d7"),
    ("visualization_msgs/MenuEntry", "b90ec63024573de83b57aa93eb39be2d"),
];

/// Messages of ROS 1 that no package of ROS 2 has: those of actions, which ROS 2 builds otherwise, and the statistics of
/// topics, which are in `statistics_msgs` with other contents.
const ONLY_ROS1: &[&str] = &[
    "nav_msgs/GetMapAction",
    "nav_msgs/GetMapActionFeedback",
    "nav_msgs/GetMapActionGoal",
    "nav_msgs/GetMapActionResult",
    "nav_msgs/GetMapFeedback",
    "nav_msgs/GetMapGoal",
    "nav_msgs/GetMapResult",
    "rosgraph_msgs/TopicStatistics",
    "tf2_msgs/LookupTransformAction",
    "tf2_msgs/LookupTransformActionFeedback",
    "tf2_msgs/LookupTransformActionGoal",
    "tf2_msgs/LookupTransformActionResult",
    "tf2_msgs/LookupTransformFeedback",
    "tf2_msgs/LookupTransformGoal",
    "tf2_msgs/LookupTransformResult",
];

/// MD5 sums of the services.
#[rustfmt::skip]
const SERVICES: &[(&str, &str)] = &[
    ("diagnostic_msgs/AddDiagnostics", "e6ac9bbde83d0d3186523c3687aecaee"),
    ("diagnostic_msgs/SelfTest", "ac21b1bab7ab17546986536c22eb34e9"),
    ("nav_msgs/GetMap", "6cdd0a18e0aff5b0a3ca2326a89b54ff"),
    ("nav_msgs/GetPlan", "421c8ea4d21c6c9db7054b4bbdf1e024"),
    ("nav_msgs/LoadMap", "22e647fdfbe3b23c8c9f419908afaebd"),
    ("nav_msgs/SetMap", "c36922319011e63ed7784112ad4fdd32"),
    ("sensor_msgs/SetCameraInfo", "bef1df590ed75ed1f393692395e15482"),
    ("std_srvs/Empty", "d41d8cd98f00b204e9800998ecf8427e"),
    ("std_srvs/SetBool", "09fb03525b03e7ea1fd3992bafd87e16"),
    ("std_srvs/Trigger", "937c9679a518e3a18d831e57125ea522"),
    ("tf2_msgs/FrameGraph", "437ea58e9463815a0d511c7326b686b0"),
];

#[test]
fn md5_sums_of_all_messages_are_those_of_ros1() {
    let (mapping, set) = (Mapping::builtin(), TypeSet::new(Shipped));
    let mut wrong = Vec::new();
    for (name, md5) in MESSAGES {
        let ros2 = mapping.message_to_ros2(name).expect("a name");
        let ros2 = set.load(&ros2).unwrap_or_else(|error| panic!("{name}: {error}"));
        let ty = MessageType::from_ros2(&ros2, &mapping).expect(name);
        assert_eq!(ty.name(), *name);
        if ty.md5() != *md5 {
            wrong.push(format!("{name}: {} and not {md5}\n{}", ty.md5(), ty.definition()));
        }
        let again = MessageType::parse(name, ty.definition()).expect(name);
        assert_eq!(again, ty, "the definition says the same");
        assert_eq!(again.definition(), ty.definition());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn messages_of_ros1_alone_have_no_counterpart() {
    let (mapping, set) = (Mapping::builtin(), TypeSet::new(Shipped));
    for name in ONLY_ROS1 {
        assert!(set.load(&mapping.message_to_ros2(name).expect("a name")).is_err(), "{name}");
    }
}

#[test]
fn md5_sums_of_all_services_are_those_of_ros1() {
    let (mapping, set) = (Mapping::builtin(), TypeSet::new(Shipped));
    for (name, md5) in SERVICES {
        let ros2 = set.load_service(&mapping.service_to_ros2(name).expect("a name")).expect(name);
        let service = ServiceType::from_ros2(&ros2, &mapping).expect(name);
        assert_eq!((service.name.as_str(), service.md5.as_str()), (*name, *md5));
        assert_eq!(service.request.name(), format!("{name}Request"));
        assert_eq!(service.response.name(), format!("{name}Response"));
    }
    let ros2 = set.load_service("example_interfaces/srv/AddTwoInts").expect("shipped");
    let service = ServiceType::from_ros2(&ros2, &mapping).expect("a service of ROS 1 too");
    assert_eq!(service.name, "rospy_tutorials/AddTwoInts");
    assert_eq!(service.md5, "6a2e34150c00229791cc89ff309fff21");
}

#[test]
fn every_shipped_message_has_a_definition_in_ros1() {
    let (mapping, set) = (Mapping::builtin(), TypeSet::new(Shipped));
    for name in tsuji_interfaces::names().filter(|name| name.contains("/msg/")) {
        let ros2 = set.load(name).expect(name);
        match MessageType::from_ros2(&ros2, &mapping) {
            Ok(ty) => assert_eq!(ty.md5().len(), 32),
            Err(TypeError::NoCounterpart { problem, .. }) => {
                assert_eq!(problem, "ROS 1 has no wstring");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

const TRICKY: &str = "# head
Header   header # c
string TEXT= a # b = c \nint32  X = -16 # sixteen
Part[2] parts

float64[] Values
bool ON=True
duration[3] d
byte b
char c
================================================================================
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id

================================================================================
MSG: my_msgs/Part
int8 a";

#[test]
fn definitions_are_read_as_ros1_reads_them() {
    let ty = MessageType::parse("my_msgs/Tricky", TRICKY).expect("a definition");
    assert_eq!(ty.md5(), "9f7690f1ca39ca04b4985482b21e3b29");
    assert_eq!(ty.definition(), TRICKY);

    // A service has one sum for both parts.
    let text = "int64 a\nint64 b\n---\nint64 sum\n";
    let service = ServiceType::parse("rospy_tutorials/AddTwoInts", text, &|_| None).expect("one");
    assert_eq!(service.md5, "6a2e34150c00229791cc89ff309fff21");
    let find = |name: &str| (name == "my_msgs/Part").then(|| "int8 a".to_owned());
    let service = ServiceType::parse("my_msgs/Do", "---\nPart part", &find).expect("a service");
    assert!(service.response.definition().ends_with("MSG: my_msgs/Part\nint8 a"));
}

#[test]
fn bad_definitions_are_refused_with_a_reason() {
    let error = |text: &str| MessageType::parse("my_msgs/A", text).expect_err(text).to_string();
    let shown = [
        (
            "int8 a\nfoo\n",
            "my_msgs/A: line 2: `foo` is no field; allowed: TYPE NAME, TYPE NAME=VALUE, # COMMENT",
        ),
        (
            "int8 1a",
            "my_msgs/A: line 1: `1a` is not a name; allowed: a letter, then letters, digits and underscores",
        ),
        (
            "int8 a b",
            "my_msgs/A: line 1: `a b` is not a name; allowed: a letter, then letters, digits and underscores",
        ),
        (
            "int8 a\nint9 a",
            "my_msgs/A: line 2: the name `a` is there already; allowed: each name at most once",
        ),
        (
            "time X=1",
            "my_msgs/A: line 1: `time` is not a type for a constant; allowed: numbers, bool, byte, char and string",
        ),
        ("B b", "no ROS 1 definition of my_msgs/B, which my_msgs/A uses"),
        (
            "B b\n===\nMSG: my_msgs/B\nA a",
            "a message contains itself: my_msgs/A > my_msgs/B > my_msgs/A",
        ),
        (
            "int8[4000000000] a",
            "my_msgs/A: one message has at least 4000000000 bytes; allowed: at most 268435456 bytes",
        ),
    ];
    for (text, expected) in shown {
        assert_eq!(error(text), expected);
    }
    for text in [
        "int8[-1] a",
        "int8[][] a",
        "int8[a] a",
        "int8[ a",
        "int8[99999999999] a",
        "a/b/c d",
        "/ a",
    ] {
        assert!(error(text).contains("is not a type; allowed: a built-in type"), "{text}");
    }
    for name in ["", "A", "a/", "/A", "a/b/C", "a/1", "a/B c"] {
        let error = MessageType::parse(name, "int8 a").expect_err("no name");
        assert_eq!(error, TypeError::Name(name.into()));
    }
    assert!(ServiceType::parse("a/B", "int8 a", &|_| None).is_err());
    assert!(ServiceType::parse("a/B", "---\n---\n", &|_| None).is_err());
    assert!(matches!(
        MessageType::parse("a/B", &" ".repeat(2 << 20)),
        Err(TypeError::Limit { .. })
    ));

    let mut deep = "T0 a\n".to_owned();
    for at in 0..40 {
        deep.push_str(&format!("===\nMSG: my_msgs/T{at}\nT{} a\n", at + 1));
    }
    deep.push_str("===\nMSG: my_msgs/T40\nint8 a\n");
    assert!(error(&deep).contains("messages are nested deeper; allowed: at most 32 levels"));
}

/// Many uses of few types, which would be a text without end if each use were written out.
#[test]
fn a_type_that_is_used_often_is_built_once() {
    let mut text = "T0[] a\nT0[] b\n".to_owned();
    for at in 0..29 {
        text.push_str(&format!("===\nMSG: my_msgs/T{at}\nT{0}[] a\nT{0}[] b\n", at + 1));
    }
    text.push_str("===\nMSG: my_msgs/T29\nint8 a\n");
    let ty = MessageType::parse("my_msgs/A", &text).expect("a definition");
    assert_eq!(ty.definition().matches("MSG:").count(), 30);
    let ros2 = load_full_text("my_msgs/msg/A", &text).expect("a definition of ROS 2 too");
    let error = Plan::new(&ty, &ros2, &Mapping::builtin()).expect_err("too many fields");
    assert_eq!(
        error.to_string(),
        "my_msgs/msg/A: the type has too many fields; allowed: at most 65536"
    );
}

#[test]
fn what_ros1_has_not_is_named() {
    let mapping = Mapping::builtin();
    let of = |text: &str| {
        let ros2 = load_full_text("my_msgs/msg/A", text).expect("a definition");
        MessageType::from_ros2(&ros2, &mapping)
    };
    let error = of("int8 a\nwstring[] b\n").expect_err("a wstring");
    assert_eq!(error.to_string(), "my_msgs/msg/A: field `b`: ROS 1 has no wstring");
    let ty = of(
        "int8 X=0x10 # hex\nbool Z=true\nint8 N=-3\nfloat32 F=1e3\nstring Y=\"a b\"\nstring<=3[<=2] b [\"x\"]\nint8[2] c [1, 2]\n",
    );
    let ty = ty.expect("a type of ROS 1");
    assert_eq!(
        ty.definition(),
        "int8 X=16\nbool Z=True\nint8 N=-3\nfloat32 F=1e3\nstring Y=a b\nstring[] b\nint8[2] c\n"
    );
}

#[test]
fn names_belong_together() {
    let mapping = Mapping::builtin();
    let pairs = [
        ("std_msgs/String", "std_msgs/msg/String"),
        ("my_msgs/Any", "my_msgs/msg/Any"),
        ("std_msgs/Time", "builtin_interfaces/msg/Time"),
        ("std_msgs/Duration", "builtin_interfaces/msg/Duration"),
        ("rosgraph_msgs/Log", "rcl_interfaces/msg/Log"),
        ("rosgraph_msgs/Clock", "rosgraph_msgs/msg/Clock"),
        ("tf2_msgs/TFMessage", "tf2_msgs/msg/TFMessage"),
    ];
    for (ros1, ros2) in pairs {
        assert_eq!(mapping.message_to_ros2(ros1).as_deref(), Some(ros2));
        assert_eq!(mapping.message_to_ros1(ros2).as_deref(), Some(ros1));
    }
    assert_eq!(mapping.message_to_ros2("tf/tfMessage").as_deref(), Some("tf2_msgs/msg/TFMessage"));
    assert_eq!(mapping.service_to_ros2("std_srvs/Empty").as_deref(), Some("std_srvs/srv/Empty"));
    assert_eq!(mapping.service_to_ros1("std_srvs/srv/Empty").as_deref(), Some("std_srvs/Empty"));
    for name in ["", "*", "String", "a/b/c", "my_msgs/lower", "A/B", "std_msgs/msg/String"] {
        assert_eq!(mapping.message_to_ros2(name), None, "{name}");
        assert_eq!(mapping.service_to_ros2(name), None, "{name}");
    }
    for name in ["", "String", "a/b/c/d", "std_srvs/srv/Empty", "a/action/B"] {
        assert_eq!(mapping.message_to_ros1(name), None, "{name}");
    }
    assert_eq!(mapping.service_to_ros1("std_msgs/msg/String"), None);
}

#[test]
fn rules_of_users_win() {
    let mut mapping = Mapping::builtin();
    let rules = "
# As in the documentation of ros1_bridge.
-
  ros1_package_name: 'my_msgs'
  ros1_message_name: 'Grip'
  ros2_package_name: 'my_interfaces'
  ros2_message_name: 'Gripper'
  fields_1_to_2:
    maxForce: 'max_force'
-
  enable_foreign_mappings: true
  ros1_package_name: 'my_msgs'
  ros2_package_name: 'my_interfaces'
-
  ros1_package_name: 'my_msgs'
  ros1_service_name: 'Act'
  ros2_package_name: 'other_interfaces'
  ros2_service_name: 'Do'
  request_fields_1_to_2: {Force: force}
";
    mapping.add("rules.yaml", rules).expect("rules");
    let to_ros2 = |name: &str| mapping.message_to_ros2(name).expect("a name");
    assert_eq!(to_ros2("my_msgs/Grip"), "my_interfaces/msg/Gripper");
    assert_eq!(to_ros2("my_msgs/Other"), "my_interfaces/msg/Other");
    assert_eq!(
        mapping.message_to_ros1("my_interfaces/msg/Gripper").as_deref(),
        Some("my_msgs/Grip")
    );
    assert_eq!(mapping.service_to_ros2("my_msgs/Act").as_deref(), Some("other_interfaces/srv/Do"));
    assert_eq!(mapping.service_to_ros1("my_interfaces/srv/Any").as_deref(), Some("my_msgs/Any"));

    let text = "Gripper[] all\n===\nMSG: my_interfaces/Gripper\nfloat64 max_force\nint8 id\n";
    let ros2 = load_full_text("my_interfaces/msg/Pair", text).expect("a definition");
    let ty = MessageType::from_ros2(&ros2, &mapping).expect("a type of ROS 1");
    let expected = "my_msgs/Grip[] all\n\n@SEP@\nMSG: my_msgs/Grip\nfloat64 maxForce\nint8 id\n";
    assert_eq!(ty.definition(), expected.replace("@SEP@", &"=".repeat(80)));
    Plan::new(&ty, &ros2, &mapping).expect("types that convert");

    let texts = HashMap::from([(
        "other_interfaces/srv/Do".to_owned(),
        "float64 force\n---\nbool done\n".to_owned(),
    )]);
    let ros2 = TypeSet::new(texts).load_service("other_interfaces/srv/Do").expect("a service");
    let service = ServiceType::from_ros2(&ros2, &mapping).expect("a service of ROS 1");
    assert_eq!(service.name, "my_msgs/Act");
    assert_eq!(service.request.definition(), "float64 Force\n");
    Plan::new(&service.request, &ros2.request, &mapping).expect("types that convert");

    // A later file wins, and one may state what ROS 1 has.
    let rules = "
- ros1_package_name: my_msgs
  ros1_message_name: Grip
  ros2_package_name: my_interfaces
  ros2_message_name: Gripper
  fields_1_to_2: {inner.force: max_force}
";
    mapping.add("more.yaml", rules).expect("rules");
    let ros2 = load_full_text("my_interfaces/msg/Pair", text).expect("a definition");
    let error = MessageType::from_ros2(&ros2, &mapping).expect_err("a field of a field");
    assert_eq!(
        error.to_string(),
        "my_interfaces/msg/Gripper: field `max_force`: a mapping rule has `inner.force` of my_msgs/Grip for it; \
         such a rule needs the key `ros1_definition`"
    );
    let stated = format!("{rules}  ros1_definition: |\n    geometry_msgs/Wrench inner\n");
    mapping.add("more.yaml", &stated).expect("rules");
    let error = MessageType::from_ros2(&ros2, &mapping).expect_err("a type that is not there");
    assert_eq!(
        error.to_string(),
        "no ROS 1 definition of geometry_msgs/Wrench, which my_msgs/Grip uses"
    );
    mapping.add("empty.yaml", "").expect("no rules at all");
}

#[test]
fn bad_rules_are_refused_with_a_reason() {
    let mut mapping = Mapping::builtin();
    let mut error = |text: &str| mapping.add("r.yaml", text).expect_err(text).to_string();
    let both = "- ros1_package_name: a\n  ros2_package_name: b\n";
    let message = format!("{both}  ros1_message_name: A\n  ros2_message_name: B\n");
    let shown = [
        ("a: b", "r.yaml: line 1, column 1: found a mapping; allowed: a list of mapping rules"),
        ("- a", "r.yaml: line 1, column 3: found `a`; allowed: a mapping rule: a mapping of keys"),
        (
            "- ros1_package_name: a\n",
            "r.yaml: line 1, column 3: found a rule without `ros2_package_name`; allowed: rules that name both packages",
        ),
        (
            "- ros1_package_name: a\n  ros2_package_name: B\n",
            "r.yaml: line 2, column 22: found `B`; allowed: the name of a package of ROS 2",
        ),
    ];
    for (text, expected) in shown {
        assert_eq!(error(text), expected);
    }
    let shown = [
        (
            "  ros1_message_name: A\n",
            "r.yaml: line 3, column 22: found a rule with only one of `ros1_message_name` and `ros2_message_name`; \
             allowed: both or none",
        ),
        (
            "  fields_1_to_2: {a: b}\n",
            "r.yaml: line 3, column 3: found the key `fields_1_to_2`; allowed: no more than the names of the packages, \
             or the names of a message or service",
        ),
    ];
    for (text, expected) in shown {
        assert_eq!(error(&format!("{both}{text}")), expected);
    }
    let wrong = error(&format!("{both}  colour: red\n"));
    assert!(wrong.starts_with(
        "r.yaml: line 3, column 3: found the key `colour`; allowed: ros1_package_name, "
    ));
    let shown = [
        (
            "  fields_1_to_2: [a]\n",
            "found a sequence; allowed: a mapping from fields of ROS 1 to fields of ROS 2",
        ),
        (
            "  fields_1_to_2: {a.: b}\n",
            "found `a.`; allowed: a field such as `stamp` or `header.stamp`",
        ),
        (
            "  fields_1_to_2: {a: b, c: b}\n",
            "found the ROS 2 field `b` again; allowed: each field at most once",
        ),
        ("  values_1_to_2: {a: {1: x}}\n", "found `1`: `x`; allowed: for each field whole numbers"),
        (
            "  request_fields_1_to_2: {a: b}\n",
            "found the key `request_fields_1_to_2`; allowed: in this rule fields_1_to_2",
        ),
    ];
    for (text, expected) in shown {
        let wrong = error(&format!("{message}{text}"));
        assert!(wrong.contains(expected) && wrong.starts_with("r.yaml: line 5, "), "{wrong}");
    }
    assert!(error("- [").starts_with("r.yaml: line 1"));
}
