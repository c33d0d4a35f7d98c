//! What `tsuji topic echo` prints of a message, and what it refuses.

use std::time::Duration;

use tsuji::{Context, Qos, RawType};

use crate::support::World;

const TEXT: &str = "std_msgs/msg/String";

#[test]
fn a_path_that_leads_nowhere_is_refused_before_waiting() {
    let world = World::new();
    let check = |words: &[&str], expect: &str| {
        assert_eq!(
            world.run(&[&["topic", "echo", "/nobody"], words].concat()).bad(2),
            format!("error: --field {expect}\n")
        );
    };
    let array = "geometry_msgs/msg/PoseArray";
    check(
        &[TEXT, "--field", "dat"],
        "dat: std_msgs/msg/String has no field \"dat\"; allowed: data",
    );
    check(
        &[array, "--field", "poses.position"],
        "poses.position: poses is geometry_msgs/msg/Pose[] and has elements; allowed: poses[0].position and the like",
    );
    check(
        &[array, "--field", "header", "--field", "x"],
        "x: geometry_msgs/msg/PoseArray has no field \"x\"; allowed: header, poses",
    );
    // What is wrong with every type is told without one.
    check(&["--field", ".."], "..: allowed: a name such as pose.position or poses[0].x");
    check(&["--field", "a[1"], "a[1: an index is a number in brackets, such as [0]");
}

#[test]
fn a_filter_that_cannot_be_is_refused_before_waiting() {
    let world = World::new();
    let check = |words: &[&str], expect: &str| {
        let error = world.run(&[&["topic", "echo", "/nobody"], words].concat()).bad(2);
        assert!(error.starts_with(&format!("error: invalid value {expect}")), "{error}");
    };
    check(
        &["--filter", "data = 'a' AND"],
        "'data = 'a' AND' for '--filter <EXPRESSION>': column 15: found the end of the expression; expected a field,",
    );
    check(
        &["--filter", " "],
        "' ' for '--filter <EXPRESSION>': it is empty; allowed: an expression",
    );
    check(
        &[TEXT, "--filter", "m.data = 'a'"],
        "'m.data = 'a'' for '--filter <EXPRESSION>': column 1: found no field `m` in std_msgs/msg/String; expected one of \
         data; a content filter names a field alone, without `m.`\n",
    );
    check(
        &[TEXT, "--filter", "data > 5"],
        "'data > 5' for '--filter <EXPRESSION>': column 8: found `5`; expected a text in quotes such as 'left' to compare to \
         `data`, which is string\n",
    );
    check(
        &[TEXT, "--filter", "data = %0"],
        "'data = %0' for '--filter <EXPRESSION>': column 8: found `%0`; expected no parameter",
    );
    // Of a topic that has a type it is told as soon as that is known.
    let _publisher = world.start(&["topic", "pub", "-r", "50", "/x", TEXT, "{data: a}"]);
    let error = world.run(&["topic", "echo", "/x", "--filter", "date = 'a'"]).bad(2);
    assert!(error.contains("expected one of data (did you mean `data`?)"), "{error}");
}

#[test]
fn messages_that_pass_a_filter_are_printed() {
    let world = World::new();
    let point = "geometry_msgs/msg/Point";
    let _near = world.start(&["topic", "pub", "-r", "50", "/p", point, "{x: 1, y: 2.5}"]);
    let _far = world.start(&["topic", "pub", "-r", "50", "/p", point, "{x: 10, y: 0.5}"]);
    for (filter, expect) in [("x > 5", "10.0,0.5,0.0"), ("NOT (x > 5 OR y < 2)", "1.0,2.5,0.0")] {
        let mut echo = world.start(&["topic", "echo", "/p", point, "--csv", "--filter", filter]);
        (0..10).for_each(|_| _ = echo.out_line(expect));
        let ended = echo.stop();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.out.lines().all(|line| line == expect), "{filter}: {ended:?}");
    }
    let none = ["topic", "echo", "/p", point, "--filter", "z > 0", "--timeout", "0.5"];
    let error = world.run(&none).bad(1);
    assert!(error.ends_with("error: no message on /p within 0.5 s\n"), "{error}");
}

#[test]
fn what_could_not_be_printed_is_an_error() {
    let world = World::new();
    let array = "std_msgs/msg/UInt8MultiArray";
    let _publisher = world.start(&["topic", "pub", "-r", "50", "/x", array, "{data: [1, 2]}"]);
    for style in [&[][..], &["--json"], &["--csv"]] {
        let echo =
            [&["topic", "echo", "/x", array, "--once", "--field", "data[2]"], style].concat();
        let error = world.run(&echo).bad(1);
        assert!(
            error.contains("`data[2]`: found index 2; expected an index below 2")
                || error.contains("index 2"),
            "{error}"
        );
        assert!(
            error.contains("error: nothing is printed: the one message that came could not be"),
            "{error}"
        );
    }
    let context = Context::builder().isolated().runtime_dir(world.run_time()).build().unwrap();
    let node = context.node("liar").unwrap();
    let hash = tsuji_msg::load(TEXT, &tsuji_interfaces::Shipped).unwrap().hash().to_owned();
    let raw = RawType::new(TEXT).hash(hash);
    let publisher = node.create_raw_publisher("/odd", raw, Qos::DEFAULT).unwrap();
    let mut echo = world.start(&["topic", "echo", "/odd", "--once"]);
    publisher.wait_for_subscriptions(1, Duration::from_secs(100)).unwrap();
    publisher.publish_bytes(&[0, 1, 0, 0, 255, 255, 255, 127, b'x', 0]).unwrap();
    echo.err("error: nothing is printed");
    assert_eq!(echo.end().bad(1).lines().count(), 2);
}

#[test]
fn time_that_is_given_ends_it() {
    let world = World::new();
    let error = world.run(&["topic", "echo", "/x", "--timeout", "0.5"]).bad(1);
    assert!(error.ends_with("error: no message on /x within 0.5 s\n"), "{error}");
    let error = world.run(&["topic", "echo", "/x", TEXT, "--timeout", "0.5"]).bad(1);
    assert!(error.ends_with("error: no message on /x within 0.5 s\n"), "{error}");
    // Messages do not put it off, as for `ros2`.
    let _publisher = world.start(&["topic", "pub", "-r", "50", "/x", TEXT, "{data: a}"]);
    world.run_until(&["topic", "list"], |it| it.out == "/x\n");
    let out = world.run(&["topic", "echo", "/x", TEXT, "--timeout", "3"]).good();
    assert!(out.starts_with("data: a\n---\n"), "{out}");
}

#[test]
fn length_and_kind_are_cut_in_every_style() {
    let world = World::new();
    let values = "{layout: {dim: [{label: abcdef}, {label: '1, \"2\"'}]}, data: [1, 2, 3]}";
    let array = "std_msgs/msg/UInt8MultiArray";
    let _publisher = world.start(&["topic", "pub", "-r", "50", "/x", array, values]);
    let check = |words: &str, expect: &str| {
        let words: Vec<&str> = words.split(' ').filter(|it| !it.is_empty()).collect();
        let ended =
            world.run(&[&["topic", "echo", "/x", array, "--once"], words.as_slice()].concat());
        assert_eq!(ended.out, expect, "{words:?}: {ended:?}");
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    let dim = "layout.dim";
    check("--field data --no-arr", "<sequence type: uint8, length: 3>\n---\n");
    check("--field data -l 1", "[1, ...]\n---\n");
    check("--field data", "[1, 2, 3]\n---\n");
    check("--field layout.dim[0].label", "abcdef\n---\n");
    check("--field layout.dim[0].label -l 2", "ab...\n---\n");
    check("--field layout.dim[0].label -l 2 -f", "abcdef\n---\n");
    check("--field layout.dim[0].label --no-str", "<string length: <6>>\n---\n");
    check(
        &format!("--field {dim} --no-arr"),
        "<sequence type: std_msgs/msg/MultiArrayDimension, length: 2>\n---\n",
    );
    check(
        "--json --no-arr",
        "{\"data\":\"<sequence type: uint8, length: 3>\",\"layout\":{\"data_offset\":0,\"dim\":\"<sequence type: std_msgs/msg/MultiArrayDimension, length: 2>\"}}\n",
    );
    check("--json --field data -l 2", "[1,2,\"...\"]\n");
    check("--json --field layout.dim[0] -l 3", "{\"label\":\"abc...\",\"size\":0,\"stride\":0}\n");
    check("--json --field layout.dim[0].label --no-str", "\"<string length: <6>>\"\n");
    check("--json --field data", "[1,2,3]\n");
    check("--csv", "abcdef,0,0,\"1, \"\"2\"\"\",0,0,0,1,2,3\n");
    check(
        "--csv --no-arr",
        "\"<sequence type: std_msgs/msg/MultiArrayDimension, length: 2>\",0,\"<sequence type: uint8, length: 3>\"\n",
    );
    check("--csv --no-str --field layout.dim[0]", "<string length: <6>>,0,0\n");
    check("--csv -l 1", "a...,0,0,...,0,1,...\n");
    check("--csv --field data --field layout.data_offset", "1,2,3,0\n");
    check(
        "--json --field layout.data_offset --field data",
        "{\"data\":[1,2,3],\"layout.data_offset\":0}\n",
    );
    check(
        "--field layout.data_offset --field data",
        "layout.data_offset: 0\ndata: [1, 2, 3]\n---\n",
    );
    check(
        "--field layout.dim[0] --field data[0]",
        "layout.dim[0]:\n  label: abcdef\n  size: 0\n  stride: 0\ndata[0]: 1\n---\n",
    );
    check(
        "--flow-style --field layout.dim[0] --field data[0]",
        "layout.dim[0]: {label: abcdef, size: 0, stride: 0}\ndata[0]: 1\n---\n",
    );
}

#[test]
fn rows_of_csv_are_rows_of_csv() {
    let world = World::new();
    let values = serde_json::json!({ "data": "a\rb\nc\r\n\"d\"" }).to_string();
    let _publisher = world.start(&["topic", "pub", "-r", "50", "/x", TEXT, &values]);
    let output = world.command(&["topic", "echo", "/x", TEXT, "--csv", "--once"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "\"a\rb\nc\r\n\"\"d\"\"\"\n");
}
