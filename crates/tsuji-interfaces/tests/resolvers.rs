//! Where definitions come from.

use std::fs;
use tsuji_interfaces::{AmentIndex, Chain, Shipped};
use tsuji_msg::{Kind, Resolver, TypeSet};

#[test]
fn an_installed_ros_is_read_and_the_first_prefix_wins() {
    let root = std::env::temp_dir().join(format!("tsuji-interfaces-{}", std::process::id()));
    let (over, under) = (root.join("over"), root.join("under"));
    let put = |prefix: &std::path::Path, file: &str, text: &str| {
        let file = prefix.join("share").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    put(&over, "my_msgs/msg/Thing.msg", "std_msgs/Header header\nuint8 over\n");
    put(&under, "my_msgs/msg/Thing.msg", "uint8 under\n");
    put(&under, "my_msgs/srv/Do.srv", "---\nbool done\n");
    put(&under, "my_msgs/msg/Huge.msg", &"#".repeat((1 << 20) + 1));
    put(&root, "secret/msg/Word.msg", "uint8 x\n");

    let value = format!("{}::{}", over.display(), under.display());
    let index = AmentIndex::from_env_value(&value);
    assert_eq!(index.prefixes(), [over.clone(), under.clone()]);
    let types = TypeSet::new(Chain(vec![Box::new(index.clone()), Box::new(Shipped)]));
    let thing = types.load("my_msgs/Thing").unwrap();
    assert_eq!(thing.fields()[1].name, "over");
    assert_eq!(types.load_service("my_msgs/srv/Do").unwrap().response.fields()[0].name, "done");
    assert!(types.load("std_msgs/msg/String").is_ok());
    // What is there in IDL alone is read, and comes before what is under it.
    let idl = |package: &str, inside: &str| {
        format!("module {package} {{ module msg {{ struct Thing {{ {inside} }}; }}; }};")
    };
    put(
        &over,
        "more_msgs/msg/Thing.idl",
        &idl("more_msgs", "my_msgs::msg::Thing thing; double far;"),
    );
    put(&under, "more_msgs/msg/Thing.msg", "uint8 under\n");
    let more = types.load("more_msgs/msg/Thing").unwrap();
    assert_eq!(more.fields()[0].ty.to_string(), "my_msgs/msg/Thing");
    put(&over, "odd_msgs/msg/Thing.idl", "union Thing {};");
    let error = types.load("odd_msgs/msg/Thing").unwrap_err().to_string();
    assert!(error.contains("Thing.idl: line 1, column 1: `union`"), "{error}");
    put(&over, "odd_msgs/msg/Field.msg", "uint8 x\nfoo bar baz\n");
    put(&over, "odd_msgs/srv/Field.srv", "foo bar\n---\n");
    let wide = "module odd_msgs { module msg {\n  struct Wide { wchar x; };\n}; };";
    put(&over, "odd_msgs/msg/Wide.idl", wide);
    let share = over.join("share/odd_msgs").display().to_string();
    for (found, expect) in [
        (
            types.load("odd_msgs/msg/Field").unwrap_err(),
            format!(
                "odd_msgs/msg/Field: {share}/msg/Field.msg: line 2, column 1: `foo`: not a type"
            ),
        ),
        (
            types.load_service("odd_msgs/srv/Field").unwrap_err(),
            format!(
                "odd_msgs/srv/Field_Request: {share}/srv/Field.srv: line 1, column 1: `foo`: not a type"
            ),
        ),
        (
            types.load("odd_msgs/msg/Wide").unwrap_err(),
            format!(
                "odd_msgs/msg/Wide: cannot read {share}/msg/Wide.idl: line 2, column 17: `wchar`: not a type"
            ),
        ),
    ] {
        assert!(found.to_string().starts_with(&expect), "{found}");
    }
    put(&over, "my_msgs/msg/Huge.msg", "uint8 x\n");
    put(&over, "old_msgs/msg/Huge.msg", &"#".repeat((1 << 20) + 1));
    put(&under, "old_msgs/msg/Huge.msg", "uint8 older\n");
    let error = types.load("old_msgs/msg/Huge").unwrap_err().to_string();
    assert!(
        error.contains("old_msgs/msg/Huge.msg: it has 1048577 bytes; at most 1048576"),
        "{error}"
    );
    assert!(index.definition(Kind::Message, "old_msgs", "Huge").is_none());
    fs::remove_file(over.join("share/my_msgs/msg/Huge.msg")).unwrap();
    for (package, name) in [
        ("my_msgs", "Huge"),
        ("my_msgs", "Nothing"),
        ("../secret", "Word"),
        ("..", "Word"),
        ("", ""),
    ] {
        assert!(index.definition(Kind::Message, package, name).is_none(), "{package}/{name}");
    }
    assert!(AmentIndex::from_env_value("").prefixes().is_empty());
    fs::remove_dir_all(root).unwrap();
}
