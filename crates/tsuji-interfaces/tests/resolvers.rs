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
