//! Components from real shared libraries, loaded by a real process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tsuji_shared::BUILD;
use tsuji_shared::tsuji::component::{ContainerClient, LoadRequest};
use tsuji_shared::tsuji::{Context, Message, Node, Qos, Subscription, WaitSet};
use tsuji_shared::tsuji_interfaces::std_msgs::msg::{Bool, UInt64};

/// Only there to end a hung test.
const HANG: Duration = Duration::from_secs(60);

/// A container in a process and folder of its own, and who asks of it.
struct World {
    client: ContainerClient,
    asking: Node,
    _container: Process,
    /// Goes last, when nobody makes anything in it any more.
    _folder: Folder,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl World {
    /// A container that looks for libraries where `fill` has put some.
    fn new(fill: impl FnOnce(&Path)) -> Self {
        static WORLDS: AtomicU64 = AtomicU64::new(0);
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let folder = format!("tsuji-components-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir(&folder).unwrap();
        fill(&folder);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsuji-container"));
        command.env("TSUJI_RUNTIME_DIR", folder.join("run")).env("TSUJI_COMPONENT_PATH", &folder);
        command.env_remove("ROS_DOMAIN_ID").env("AMENT_PREFIX_PATH", folder.join("prefix"));
        let mut container = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(container.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "Container '/ComponentManager'\n");
        let context = Context::builder().runtime_dir(folder.join("run")).domain(0).isolated();
        let asking = context.build().unwrap().node("asking").unwrap();
        let client = ContainerClient::new(&asking, "/ComponentManager");
        Self { client, asking, _container: Process(container), _folder: Folder(folder) }
    }

    fn refused(&self, package: &str, plugin: &str) -> String {
        let error = self.client.load(LoadRequest::new(package, plugin), HANG).unwrap_err();
        let error = error.to_string();
        error.strip_prefix("load: /ComponentManager: ").unwrap().to_owned()
    }

    fn subscribe<M: Message>(&self, topic: &str) -> Subscription<M> {
        self.asking.create_polled_subscription::<M>(topic, Qos::DEFAULT).unwrap()
    }

    /// The next message, however long it takes.
    fn next<M: Message>(&self, subscription: &Subscription<M>) -> Arc<M> {
        let mut set = WaitSet::new(self.asking.context()).unwrap();
        set.add(subscription).unwrap();
        loop {
            if let Some(received) = subscription.take().unwrap() {
                return received.message();
            }
            assert!(
                !set.wait(HANG).unwrap().is_empty(),
                "nothing comes on {}",
                subscription.topic()
            );
        }
    }

    fn load(&self, package: &str, plugin: &str) -> u64 {
        self.client.load(LoadRequest::new(package, plugin), HANG).unwrap().id
    }
}

/// Builds the library of the example, and answers where it is.
fn example() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--locked", "--package", "example-components"]).current_dir(root);
    assert!(build.stderr(Stdio::inherit()).status().unwrap().success());
    let program = Path::new(env!("CARGO_BIN_EXE_tsuji-container"));
    program.with_file_name("libexample_components.so")
}

/// Makes a library of a line of C.
fn library(folder: &Path, package: &str, text: &str) -> PathBuf {
    let source = folder.join(format!("{package}.c"));
    fs::write(&source, text).unwrap();
    let made = folder.join(format!("lib{package}.so"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&made).arg(&source);
    assert!(cc.status().unwrap().success());
    made
}

#[test]
fn a_component_of_a_library_has_its_flows_by_pointer() {
    let world = World::new(|_| ());
    // Beside the program, where it was built.
    drop(example());
    world.load("tsuji_components", "Talker");
    let by_pointer = world.subscribe::<Bool>("by_pointer");
    let listener = world.load("example_components", "Listener");
    assert!(world.next(&by_pointer).data, "a text was not the talker's own value");
    world.load("tsuji_components", "Camera");
    let seen = world.subscribe::<UInt64>("seen");
    world.load("example_components", "Viewer");
    let first = world.next(&seen).data;
    for number in first + 1..first + 30 {
        assert_eq!(world.next(&seen).data, number);
    }
    let routes = world.asking.context().routes(HANG).unwrap();
    let route =
        routes.iter().find(|it| it.subscription.node == "/example_viewer" && it.topic == "/image");
    let route = route.unwrap();
    assert_eq!(route.transport.as_deref(), Some("inproc"));
    assert_eq!((route.lost, route.duplicates), (0, 0));
    // It is unloaded and loaded again, from the library that is there.
    world.client.unload(listener, HANG).unwrap();
    assert!(world.client.list(HANG).unwrap().iter().all(|it| it.node != "/example_listener"));
    world.load("example_components", "Listener");
    let error = world.refused("example_components", "Lisener");
    assert_eq!(
        error,
        "Failed to find class with the requested plugin name: 'Lisener' of example_components; allowed: Listener, Viewer"
    );
}

#[test]
fn libraries_of_another_kind_are_refused() {
    let library_of = |abi: u32, build: &str| {
        format!(
            "struct {{ unsigned abi, size; char build[64]; void *copy; void *components; }} TSUJI_COMPONENT_LIBRARY = \
             {{ {abi}, 88, \"{build}\", 0, 0 }};"
        )
    };
    let world = World::new(|folder| {
        library(folder, "plain", "int nothing;");
        library(folder, "newer", &library_of(2, BUILD));
        library(folder, "other", &library_of(1, "0.0.1-rustc-1.0.0-0"));
        library(folder, "own", &library_of(1, BUILD));
        fs::write(folder.join("libtext.so"), "no library").unwrap();
        library(folder, "missing", "void absent(void); void call(void) { absent(); }");
        let open = folder.join("open");
        fs::create_dir(&open).unwrap();
        let made = library(&open, "shared", "int nothing;");
        fs::set_permissions(&made, fs::Permissions::from_mode(0o777)).unwrap();
        let index = folder.join("prefix/share/ament_index/resource_index/tsuji_components");
        fs::create_dir_all(&index).unwrap();
        fs::write(index.join("shared"), format!("Any;{}\nGone;lib/libgone.so\n", made.display()))
            .unwrap();
    });
    let check = |package: &str, expect: &str| {
        let error = world.refused(package, "Any");
        assert!(error.contains(expect), "{package}: {error}");
        assert!(error.contains(&format!("lib{package}.so")), "{package}: {error}");
    };
    check(
        "plain",
        "it exports no TSUJI_COMPONENT_LIBRARY; allowed: a library made with export_components!",
    );
    check("newer", "it has version 2 of TSUJI_COMPONENT_LIBRARY; allowed: 1");
    check("other", "it was built with tsuji 0.0.1-rustc-1.0.0-0; allowed: ");
    check("own", "it brings a copy of tsuji of its own");
    check("text", "Failed to load library: ");
    check(
        "missing",
        "undefined symbol: absent; allowed: one that is linked with libtsuji_shared.so of this build",
    );
    check("shared", "is not this user's or root's alone to write to");
    assert!(world.refused("shared", "Gone").contains("libgone.so: No such file"));
    assert!(world.refused("shared", "Other").ends_with("'Other' of shared; allowed: Any, Gone"));
    assert!(world.refused("../plain", "Any").starts_with("Could not find requested resource"));
    assert!(world.refused("nowhere", "Any").starts_with("Could not find requested resource"));
}
