//! `tsuji interface`.

use crate::support::World;

#[test]
fn show_puts_what_is_used_underneath() {
    let world = World::new();
    assert_eq!(
        world.run(&["interface", "show", "std_msgs/Header", "--no-comments"]).good(),
        "builtin_interfaces/Time stamp\n\tint32 sec\n\tuint32 nanosec\nstring frame_id\n"
    );
    assert_eq!(
        world.run(&["interface", "show", "std_srvs/srv/SetBool", "--no-comments"]).good(),
        "bool data\n---\nbool success\nstring message\n"
    );
}

#[test]
fn comments_are_shown_as_asked() {
    let world = World::new();
    world.write("ros/share/mine/msg/Inner.msg", "# inner\nint32 x  # how far\n");
    world.write(
        "ros/share/mine/msg/Outer.msg",
        "# outer\n\nstring NAME=\"a#b\"\nInner[] inner  # all of them\n",
    );
    let prefix = world.path("ros");
    let environment = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    let show = |flags: &[&str]| {
        world
            .run_with(&environment, &[&["interface", "show", "mine/msg/Outer"], flags].concat())
            .good()
    };
    assert_eq!(
        show(&[]),
        "# outer\n\nstring NAME=\"a#b\"\nInner[] inner  # all of them\n\tint32 x\n"
    );
    assert_eq!(
        show(&["--all-comments"]),
        "# outer\n\nstring NAME=\"a#b\"\nInner[] inner  # all of them\n\t# inner\n\tint32 x  # how far\n"
    );
    assert_eq!(show(&["--no-comments"]), "string NAME=\"a#b\"\nInner[] inner\n\tint32 x\n");
}

#[test]
fn an_installed_ros_comes_before_what_ships() {
    let world = World::new();
    world.write("ros/share/std_msgs/msg/String.msg", "string data\nint32 more\n");
    world.write("ros/share/mine/msg/Only.msg", "int32 x\n");
    world.write(
        "ros/share/ament_index/resource_index/rosidl_interfaces/mine",
        "msg/Only.idl\nmsg/Only.msg\n",
    );
    let prefix = world.path("ros");
    let environment = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    let run = |arguments: &[&str]| world.run_with(&environment, arguments);
    assert_eq!(
        run(&["interface", "show", "std_msgs/msg/String"]).good(),
        "string data\nint32 more\n"
    );
    assert_eq!(run(&["interface", "package", "mine"]).good(), "mine/msg/Only\n");
    assert!(run(&["interface", "packages"]).good().contains("\nmine\n"));
    assert!(run(&["interface", "list", "-m"]).good().contains("\n    mine/msg/Only\n"));
}

/// What cannot be read is never taken for absent, with an older one of an underlay in its place.
#[test]
fn files_that_cannot_be_read_are_told() {
    use std::fs;
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.write("under/share/mine/msg/Thing.msg", "int32 older\n");
    let thing = world.path("over/share/mine/msg/Thing.msg");
    let path = format!("{}:{}", world.path("over").display(), world.path("under").display());
    let ros = [("AMENT_PREFIX_PATH", path.as_str())];
    let show = |expect: &str| {
        for command in [
            &["interface", "show", "mine/msg/Thing"][..],
            &["topic", "echo", "/x", "mine/msg/Thing"],
            &["topic", "pub", "/x", "mine/msg/Thing"],
        ] {
            let error = world.run_with(&ros, command).bad(1);
            assert!(
                error.contains(&format!("cannot read {}", thing.display()))
                    && error.contains(expect),
                "{error}"
            );
        }
    };
    assert_eq!(
        world.run_with(&ros, &["interface", "show", "mine/msg/Thing"]).good(),
        "int32 older\n"
    );
    world.write("over/share/mine/msg/Thing.msg/file", "");
    show("Is a directory");
    fs::remove_dir_all(&thing).unwrap();
    symlink("../nowhere.msg", &thing).unwrap();
    show("it is a link to ../nowhere.msg, which is not there");
    fs::remove_file(&thing).unwrap();
    fs::write(&thing, b"int32 x\n# \xff\n").unwrap();
    show("it is not UTF-8 from byte 11 on");
    fs::write(&thing, "#".repeat((1 << 20) + 1)).unwrap();
    show("it has 1048577 bytes; at most 1048576 are read");
    fs::write(&thing, "int32 newer\n").unwrap();
    assert_eq!(
        world.run_with(&ros, &["interface", "show", "mine/msg/Thing"]).good(),
        "int32 newer\n"
    );
    // The folder's place is taken by a file.
    fs::remove_dir_all(world.path("over/share/mine")).unwrap();
    world.write("over/share/mine", "");
    show("Not a directory");
    // A path need not be UTF-8.
    let odd = world.path("odd").into_os_string().into_string().unwrap().into_bytes();
    let odd: std::ffi::OsString =
        std::os::unix::ffi::OsStringExt::from_vec([&odd[..], b"\xff"].concat());
    fs::create_dir_all(std::path::Path::new(&odd).join("share/odd/msg")).unwrap();
    fs::write(std::path::Path::new(&odd).join("share/odd/msg/Odd.msg"), "int32 odd\n").unwrap();
    let mut command = world.command(&["interface", "show", "odd/msg/Odd"]);
    let shown = crate::support::Running::new(command.env("AMENT_PREFIX_PATH", &odd)).end();
    assert_eq!(shown.good(), "int32 odd\n");
    // A prefix that is none has nothing.
    let file = world.write("file", "");
    let path = format!("{}:/nowhere:{}", file.display(), world.path("under").display());
    let shown =
        world.run_with(&[("AMENT_PREFIX_PATH", &path)], &["interface", "show", "mine/msg/Thing"]);
    assert_eq!(shown.good(), "int32 older\n");
}

#[test]
fn an_index_that_cannot_be_read_is_told() {
    let world = World::new();
    let index = "ros/share/ament_index/resource_index/rosidl_interfaces";
    world.write(&format!("{index}/good"), "msg/Only.idl\nmsg/Only.msg\n");
    world.write(&format!("{index}/folder/file"), "");
    std::fs::write(world.path(index).join("bytes"), b"\xff").unwrap();
    std::os::unix::fs::symlink("nowhere", world.path(index).join("link")).unwrap();
    let prefix = world.path("ros");
    let ros = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    let listed = world.run_with(&ros, &["interface", "packages"]);
    assert!(listed.code == Some(0) && listed.out.contains("\ngood\n"), "{listed:?}");
    for (name, why) in [("folder", "Is a directory"), ("bytes", "UTF-8"), ("link", "No such file")]
    {
        let line = listed.err.lines().find(|it| it.contains(&format!("{index}/{name}: ")));
        assert!(
            line.is_some_and(|it| it.starts_with("WARNING: cannot read ") && it.contains(why)),
            "{listed:?}"
        );
    }
    std::fs::remove_dir_all(world.path(index)).unwrap();
    world.write(index, "");
    let told = world.run_with(&ros, &["interface", "show", "mine/msg/Nothing"]).bad(2);
    assert!(told.contains("rosidl_interfaces: Not a directory"), "{told}");
}

#[test]
fn proto_is_what_pub_takes() {
    let world = World::new();
    let proto = world.run(&["interface", "proto", "geometry_msgs/msg/Vector3"]).good();
    assert_eq!(proto, "\"x: 0.0\ny: 0.0\nz: 0.0\n\"\n");
    let proto = world.run(&["interface", "proto", "geometry_msgs/msg/Twist", "--no-quotes"]).good();
    world.run(&["topic", "pub", "-1", "-w", "0", "/x", "geometry_msgs/msg/Twist", &proto]).good();
}

#[test]
fn what_is_unknown() {
    let world = World::new();
    let error = world.run(&["interface", "show", "geometry_msgs/msg/Imag"]).bad(2);
    assert!(error.contains("did you mean sensor_msgs/msg/Image?"), "{error}");
    let error = world.run(&["interface", "show", "Imag"]).bad(2);
    assert!(error.contains("did you mean sensor_msgs/msg/Image?"), "{error}");
    let error = world.run(&["interface", "package", "nix"]).bad(2);
    assert!(error.contains("unknown package \"nix\""), "{error}");
    world.write("ros/share/mine/msg/Bad.msg", "int32 x\nflot y\n");
    let prefix = world.path("ros");
    let environment = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    let error = world.run_with(&environment, &["interface", "show", "mine/msg/Bad"]).bad(1);
    assert!(error.contains("mine/msg/Bad"), "{error}");
}

#[test]
fn rust_types_are_those_of_a_build_script() {
    let world = World::new();
    let share = "ros/share/mine";
    world.write(
        &format!("{share}/msg/Thing.msg"),
        "# A thing.\nstd_msgs/Header header\nmore_msgs/More more\n",
    );
    world.write(&format!("{share}/srv/Do.srv"), "Thing thing\n---\nbool done\n");
    world.write(&format!("{share}/action/Go.action"), "int32 far\n---\n---\n");
    world.write("ros/share/more_msgs/msg/More.msg", "int8[<=3] x\n");
    let index = "ros/share/ament_index/resource_index/rosidl_interfaces";
    world.write(&format!("{index}/mine"), "msg/Thing.msg\nsrv/Do.srv\naction/Go.action\n");
    world.write(&format!("{index}/more_msgs"), "msg/More.msg\n");
    let prefix = world.path("ros");
    let ros = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    let run =
        |arguments: &[&str]| world.run_with(&ros, &[&["interface", "rust"], arguments].concat());
    let built = |packages: &[&str]| {
        let interfaces = tsuji_build::Interfaces::new()
            .shipped(concat!(env!("CARGO_MANIFEST_DIR"), "/../tsuji-interfaces/share"))
            .ament_prefix_path(&prefix);
        let interfaces = packages.iter().fold(interfaces, |it, package| it.installed(*package));
        interfaces.source().unwrap()
    };
    let printed = run(&["mine"]).good();
    for expect in [
        "// A crate that includes it depends on tsuji_interfaces.\n",
        "        /// A thing.\n",
        "pub header: ::tsuji_interfaces::std_msgs::msg::Header,",
        "pub mod more_msgs {",
        "pub enum Do {}",
        "pub enum Go {}",
    ] {
        assert!(printed.contains(expect), "no {expect} in {printed}");
    }
    assert!(printed == built(&["mine"]) && printed == built(&["mine", "more_msgs"]), "{printed}");
    let file = world.path("mine.rs");
    for flag in ["-o", "--output"] {
        let _ = std::fs::remove_file(&file);
        assert_eq!(run(&["mine", "more_msgs", flag, file.to_str().unwrap()]).good(), "");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), printed);
    }
    // What ships is printed when it is asked for.
    assert!(run(&["std_msgs"]).good().contains("pub struct Header {"));
}

#[test]
fn rust_types_that_cannot_be_made() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.write("ros/share/mine/msg/Thing.msg", "int32 x\nflot y\n");
    world.write("ros/share/ament_index/resource_index/rosidl_interfaces/mine", "msg/Thing.msg\n");
    world.write("ros/share/ament_index/resource_index/packages/tools", "");
    let prefix = world.path("ros");
    let ros = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    let file = world.path("made.rs");
    let bad = |package: &str, code: i32, expect: &str| {
        let arguments = ["interface", "rust", package, "-o", file.to_str().unwrap()];
        let error = world.run_with(&ros, &arguments).bad(code);
        assert!(error.contains(expect), "{error}");
        assert!(!file.exists());
    };
    let thing = world.path("ros/share/mine/msg/Thing.msg");
    let place = thing.display();
    bad("mine", 1, &format!("{place}: line 2, column 1: `flot`: not a type"));
    let unknown = "`tsuji interface packages` lists those that have interfaces";
    bad("nix", 2, &format!("unknown package \"nix\"; {unknown}"));
    // It is there, and has no interfaces.
    bad("tools", 2, &format!("unknown package \"tools\"; {unknown}"));
    world.write("ros/share/mine/msg/Thing.msg", "nix_msgs/Nix nix\n");
    bad("mine", 1, "no definition of nix_msgs/msg/Nix, which mine/msg/Thing uses");
    world.write("ros/share/mine/msg/Thing.msg", "std_msgs/Header header\n");
    world.write("ros/share/std_msgs/msg/Header.msg", "string frame_id\n");
    bad("mine", 1, "Header.msg and has another type hash than that of tsuji_interfaces");
    std::fs::remove_file(&thing).unwrap();
    symlink("nowhere.msg", &thing).unwrap();
    bad("mine", 1, &format!("cannot read {place}: it is a link to nowhere.msg"));
    let nowhere = world.path("nowhere/made.rs");
    let nowhere = nowhere.to_str().unwrap();
    let error = world.run(&["interface", "rust", "std_srvs", "-o", nowhere]).bad(1);
    assert!(error.contains(&format!("cannot write {nowhere}: No such file")), "{error}");
    let error = world.run(&["interface", "rust"]).bad(2);
    assert!(error.contains("<PACKAGE>"), "{error}");
}
