//! Rust types of packages in folders and installed ones.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tsuji_build::{Folders, Interfaces};

/// A folder of its own that ends with its test.
struct World(PathBuf);

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let world =
            Self(std::env::temp_dir().join(format!("tsuji-build-{}-{number}", std::process::id())));
        world.write("shipped/std_msgs/msg/Header.msg", "string frame_id\n");
        world.write("shipped/std_msgs/msg/Flag.msg", "bool data\n");
        files.iter().for_each(|(name, text)| world.write(name, text));
        world
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Interfaces that know the shipped ones of this world and its prefix `ros`, without anything of the environment.
    fn interfaces(&self) -> Interfaces {
        Interfaces::new().shipped(self.0.join("shipped")).ament_prefix_path(self.0.join("ros"))
    }

    fn folder(&self, folder: &str) -> Interfaces {
        self.interfaces().folder(self.0.join(folder))
    }

    #[track_caller]
    fn refused(&self, interfaces: &Interfaces, expect: &str) {
        let error = interfaces.source().unwrap_err();
        let text = error.to_string().replace(&format!("{}/", self.0.display()), "");
        assert_eq!(text, expect);
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn check(code: &str, expect: &[&str], unexpected: &[&str]) {
    for it in expect {
        assert!(code.contains(it), "no {it} in {code}");
    }
    for it in unexpected {
        assert!(!code.contains(it), "{it} in {code}");
    }
}

#[test]
fn a_package_uses_what_ships() {
    let world = World::new(&[
        ("mine/msg/Thing.msg", "std_msgs/Header header\nInner[] inner\n"),
        ("mine/msg/Inner.msg", "int32 x\n"),
        ("mine/msg/README.md", "not a definition"),
        ("mine/srv/Do.srv", "Thing thing\n---\nbool done\n"),
        ("mine/action/Go.action", "---\n---\n"),
        ("mine/CMakeLists.txt", ""),
    ]);
    let code = world.folder("mine").source().unwrap();
    check(
        &code,
        &[
            "// A crate that includes it depends on tsuji_interfaces.\n",
            "pub mod mine {",
            "use ::tsuji_interfaces::tsuji_msg::generated as g;",
            "pub header: ::tsuji_interfaces::std_msgs::msg::Header,",
            "pub inner: g::Vec<Inner>,",
            "pub enum Do {}",
            "pub enum Go {}",
        ],
        &["pub mod std_msgs"],
    );
    let shared =
        world.folder("mine").types_at("::tsuji_shared::tsuji_interfaces").source().unwrap();
    let expect = [
        "// A crate that includes it depends on tsuji_shared.\n",
        "use ::tsuji_shared::tsuji_interfaces::tsuji_msg::generated as g;",
        "pub header: ::tsuji_shared::tsuji_interfaces::std_msgs::msg::Header,",
    ];
    check(&shared, &expect, &[]);
}

#[test]
fn the_name_of_a_package() {
    let world = World::new(&[
        ("odd-folder/package.xml", "<package><name>mine</name></package>"),
        ("odd-folder/msg/Thing.msg", "int32 x\n"),
        ("nameless/package.xml", "<package/>"),
        ("nameless/msg/Thing.msg", "int32 x\n"),
    ]);
    check(&world.folder("odd-folder").source().unwrap(), &["pub mod mine {"], &[]);
    let said = world.interfaces().folder_as("yours", world.0.join("odd-folder"));
    check(&said.source().unwrap(), &["pub mod yours {"], &["mine"]);
    world.refused(&world.folder("nameless"), "nameless/package.xml: it has no element `name`");
    fs::remove_file(world.0.join("odd-folder/package.xml")).unwrap();
    world.refused(
        &world.folder("odd-folder"),
        "odd-folder: `odd-folder` is no name of a package; allowed: small letters, digits and single _, a letter first",
    );
}

#[test]
fn what_is_installed() {
    let index = "ros/share/ament_index/resource_index/rosidl_interfaces";
    let world = World::new(&[
        (&format!("{index}/theirs"), "msg/Thing.idl\nmsg/Thing.msg\n"),
        ("ros/share/theirs/msg/Thing.msg", "std_msgs/Header header\nmore_msgs/More more\n"),
        ("ros/share/more_msgs/msg/More.msg", "int8 x\n"),
        ("ros/share/std_msgs/msg/Header.msg", "# As installed.\nstring frame_id\n"),
        ("mine/msg/Mine.msg", "theirs/Thing thing\n"),
        // Of a package in a folder nothing else counts.
        ("ros/share/mine/msg/Old.msg", "int8 x\n"),
        ("mine/msg/Old.msg", "int16 x\n"),
    ]);
    let expect = ["pub mod theirs {", "pub mod more_msgs {", ": ::tsuji_interfaces::std_msgs::"];
    check(&world.interfaces().installed("theirs").source().unwrap(), &expect, &["pub mod mine"]);
    let code = world.folder("mine").source().unwrap();
    check(&code, &expect, &["i8 x"]);
    check(&code, &["pub mod mine {", "pub x: i16,"], &[]);
    let elsewhere = world.folder("mine").external("theirs", "::theirs::theirs").source().unwrap();
    check(&elsewhere, &["pub thing: ::theirs::theirs::msg::Thing,"], &["pub mod theirs {"]);
    world.refused(
        &world.interfaces().installed("more_msgs"),
        "more_msgs: no such package with interfaces; searched AMENT_PREFIX_PATH (1 folder)",
    );
}

#[test]
fn what_ships_otherwise_is_refused_unless_named() {
    let world = World::new(&[
        ("mine/msg/Thing.msg", "std_msgs/Header header\n"),
        ("ros/share/std_msgs/msg/Header.msg", "uint32 seq\nstring frame_id\n"),
        ("ros/share/std_msgs/msg/Flag.msg", "bool data\n"),
    ]);
    world.refused(
        &world.folder("mine"),
        "std_msgs/msg/Header, which mine/msg/Thing uses, is in ros/share/std_msgs/msg/Header.msg and has another type \
         hash than that of tsuji_interfaces; to have Rust types of both, generate std_msgs as well",
    );
    let both = world.folder("mine").folder(world.0.join("ros/share/std_msgs")).source().unwrap();
    check(&both, &["pub header: super::super::std_msgs::msg::Header,", "pub seq: u32,"], &[]);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let world = World::new(&[
        ("bad/msg/Bad.msg", "int32 x\nflot y\n"),
        ("lost/msg/Lost.msg", "nowhere_msgs/Thing thing\n"),
        ("small/msg/thing.msg", "int32 x\n"),
        ("none/src/main.rs", ""),
        ("none/msg/README.md", ""),
        ("twice/mine/msg/A.msg", ""),
        ("mine/msg/B.msg", ""),
        ("broken/msg/Broken.msg/file", ""),
    ]);
    let error = world.folder("bad").source().unwrap_err().to_string();
    let expect = format!(
        "bad/msg/Bad: {}/bad/msg/Bad.msg: line 2, column 1: `flot`: not a type",
        world.0.display()
    );
    assert!(error.starts_with(&expect), "{error}");
    world.refused(
        &world.folder("lost"),
        "no definition of nowhere_msgs/msg/Thing, which lost/msg/Lost uses; searched the folders that are named, \
         AMENT_PREFIX_PATH (1 folder) and tsuji-interfaces",
    );
    world.refused(
        &world.folder("small"),
        "small/msg/thing.msg: `thing` is no name of an interface; allowed: letters and digits, a capital first",
    );
    let none = "none: no interfaces; they are looked for in its folders msg, srv and action";
    world.refused(&world.folder("none"), none);
    world.refused(
        &world.folder("nowhere"),
        "cannot read nowhere: No such file or directory (os error 2)",
    );
    world.refused(
        &world.folder("mine").folder(world.0.join("twice/mine")),
        "twice/mine: the package mine is in mine already",
    );
    world.refused(
        &world.folder("broken"),
        "broken/msg/Broken: cannot read broken/msg/Broken.msg: Is a directory (os error 21)",
    );
    world.refused(&world.interfaces(), "no packages; name one by `folder` or `installed`");
    let unknown = Interfaces::new().folder(world.0.join("mine")).source().unwrap_err();
    assert!(unknown.to_string().starts_with("tsuji-interfaces is not among"), "{unknown}");
}

#[test]
fn the_file_is_written_where_cargo_says() {
    let world = World::new(&[("mine/msg/Thing.msg", "int32 x\n")]);
    let interfaces = world.folder("mine").out_dir(&world.0);
    interfaces.generate().unwrap();
    let written = fs::read_to_string(world.0.join("interfaces.rs")).unwrap();
    assert_eq!(written, interfaces.source().unwrap());
    let nowhere = world.folder("mine").out_dir(world.0.join("nowhere"));
    let error = nowhere.generate().unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("/nowhere/interfaces.rs: "));
}

#[test]
fn idl_alone_is_an_interface() {
    let world = World::new(&[
        ("mine/msg/Far.idl", "module mine { module msg { struct Far { double far; }; }; };"),
        ("mine/msg/Near.idl", "never read"),
        ("mine/msg/Near.msg", "int8 near\n"),
    ]);
    let folders = Folders::below(world.0.join("shipped")).unwrap();
    assert_eq!(folders.names().count(), 2);
    check(&world.folder("mine").source().unwrap(), &["pub far: f64,", "pub near: i8,"], &[]);
    let mut folders = Folders::new();
    assert_eq!(folders.add(world.0.join("mine")).unwrap(), "mine");
    let files: Vec<_> = folders.names().map(|(_, file)| file.file_name().unwrap()).collect();
    assert_eq!(files, [Path::new("Far.idl"), Path::new("Near.msg")]);
}

#[test]
fn what_is_no_file_is_not_read() {
    let world = World::new(&[("a/package.xml", "<name>a</name>"), ("a/msg/Good.msg", "bool it\n")]);
    let pipe = world.0.join("a/msg/Pipe.msg");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    world.refused(&world.folder("a"), "a/msg/Pipe: cannot read a/msg/Pipe.msg: it is no file");
    fs::remove_file(&pipe).unwrap();
    symlink("/dev/zero", &pipe).unwrap();
    world.refused(&world.folder("a"), "a/msg/Pipe: cannot read a/msg/Pipe.msg: it is no file");
    fs::remove_file(&pipe).unwrap();
    symlink("nowhere", world.0.join("a/srv")).unwrap();
    world.refused(&world.folder("a"), "cannot read a/srv: No such file or directory (os error 2)");
    fs::remove_file(world.0.join("a/srv")).unwrap();
    fs::remove_file(world.0.join("a/package.xml")).unwrap();
    symlink("/dev/zero", world.0.join("a/package.xml")).unwrap();
    world.refused(&world.folder("a"), "a/package.xml: it is no file");
}
