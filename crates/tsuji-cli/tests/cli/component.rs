//! `tsuji component`.

use crate::support::{Running, World};

/// A process that is a container.
fn container(world: &World, name: &str) -> Running {
    let mut container = world.start(&["component", "container", "--name", name]);
    container.out(&format!("Container '/{name}'"));
    container
}

#[test]
fn components_are_loaded_listed_and_unloaded_as_ros2_does() {
    let world = World::new();
    assert_eq!(world.run(&["component", "list"]).good(), "");
    let mut eyes = container(&world, "eyes");
    let check = |arguments: &[&str], expect: &str| {
        assert_eq!(world.run(&[&["component"], arguments].concat()).good(), expect);
    };
    check(&["list"], "/eyes\n");
    check(
        &["load", "/eyes", "tsuji_components", "Talker"],
        "Loaded component 1 into '/eyes' container node as '/talker'\n",
    );
    let file =
        world.write("camera.yaml", "/left/eye:\n  ros__parameters:\n    width: 8\n    rate: 5.0\n");
    let file = file.to_str().unwrap();
    check(
        &[
            "load",
            "eyes",
            "tsuji_components",
            "Camera",
            "-n",
            "eye",
            "--node-namespace",
            "/left",
            "-r",
            "image:=picture",
            "--params-file",
            file,
            "-p",
            "rate:=50.0",
            "-e",
            "use_intra_process_comms:=true",
            "-q",
        ],
        "2  /left/eye\n",
    );
    check(&["list", "eyes"], "1  /talker\n2  /left/eye\n");
    check(&["list"], "/eyes\n  1  /talker\n  2  /left/eye\n");
    check(&["list", "--containers-only"], "/eyes\n");
    let get = |name: &str| world.run(&["param", "get", "/left/eye", name, "--hide-type"]).good();
    assert_eq!((get("width"), get("rate")), ("8\n".into(), "50.0\n".into()));
    assert!(world.run(&["topic", "list"]).good().contains("/left/picture\n"));
    let listed = world.run(&["component", "list", "--json"]).json();
    assert_eq!(listed[0]["components"][1]["node"], "/left/eye");
    check(
        &["load", "/eyes", "tsuji_components", "Listener"],
        "Loaded component 3 into '/eyes' container node as '/listener'\n",
    );
    eyes.err("I heard: [Hello World: ");
    check(
        &["unload", "/eyes", "1", "2"],
        "Unloaded component 1 from '/eyes' container node\nUnloaded component 2 from '/eyes' container node\n",
    );
    let ended = world.run(&["component", "unload", "/eyes", "1", "3"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.out, "Unloaded component 3 from '/eyes' container node\n");
    assert_eq!(
        ended.err,
        "error: Failed to unload component 1 from '/eyes' container node: unload: /eyes: No node found with unique_id: 1\n"
    );
    let json = world.run(&["component", "unload", "/eyes", "9", "--json"]);
    assert_eq!((json.code, &json.json()[0]["unloaded"]), (Some(1), &false.into()));
    check(&["list"], "/eyes\n");
    assert_eq!(eyes.stop().code, Some(0));
}

#[test]
fn what_cannot_be_loaded_is_told() {
    let world = World::new();
    let error = world.run(&["component", "load", "/nobody", "a", "b"]).bad(1);
    assert_eq!(error, "error: Unable to find container node '/nobody'; there are: none\n");
    let _eyes = container(&world, "eyes");
    let error = world.run(&["component", "unload", "/nobody", "1"]).bad(1);
    assert_eq!(error, "error: Unable to find container node '/nobody'; there are: /eyes\n");
    let load = |more: &[&str]| world.run(&[&["component", "load", "/eyes"], more].concat());
    assert_eq!(
        load(&["a", "b"]).bad(1),
        "error: load: /eyes: Could not find requested resource in ament index, nor among the components of this \
         container: package 'a'; allowed: tsuji_components\n"
    );
    let error = load(&["tsuji_components", "Cam"]).bad(1);
    assert!(
        error.contains("'Cam' of tsuji_components; allowed: Camera, Listener, Talker, Viewer"),
        "{error}"
    );
    let error = load(&["tsuji_components", "Camera", "-p", "width:=0"]).bad(1);
    assert!(error.contains("Component constructor threw an exception: "), "{error}");
    assert!(error.contains("allowed: 1 to 8192"), "{error}");
    let error = load(&["tsuji_components", "Camera", "-p", "width"]).bad(2);
    assert!(error.contains("allowed: NAME:=VALUE"), "{error}");
    let error = load(&["tsuji_components", "Camera", "--params-file", "x.yaml"]).bad(2);
    assert!(error.contains("--node-name"), "{error}");
    let error = load(&["tsuji_components", "Camera", "-n", "x", "--params-file", "x.yaml"]).bad(2);
    assert!(error.contains("x.yaml"), "{error}");
}

#[test]
fn a_container_takes_what_launch_files_tell_nodes() {
    let world = World::new();
    let ros = ["--ros-args", "-r", "__node:=box", "-r", "__ns:=/robot", "-p", "rate:=2"];
    let named = ["component", "container", "--name", "eyes", "--namespace", "/other"];
    let mut container = world.start(&[&named[..], &ros[..]].concat());
    container.out("Container '/robot/box'");
    let standalone = ["component", "standalone", "tsuji_components", "Talker", "-n", "t"];
    let mut standalone =
        world.start(&[&standalone[..], &ros[..1], &["-r", "__node:=solo"]].concat());
    standalone.out("Loaded component 1 as '/t'");
    standalone.out("Container '/solo'");
    let refused = |more: &[&str], expect: &str| {
        let error = world.run(&[&["component", "container", "--ros-args"], more].concat()).bad(2);
        assert!(error.contains(expect), "{error}");
    };
    refused(&["-r", "box"], "allowed: [node:]from:=to");
    refused(
        &["--", "more"],
        "\"more\" after the '--' of --ros-args is not an argument of a container",
    );
    // What asks a container is no node of a launch file.
    let error = world.run(&["component", "list", "--ros-args"]).bad(2);
    assert!(error.contains("--ros-args"), "{error}");
}

#[test]
fn types_are_those_that_ship_and_those_of_installed_packages() {
    let world = World::new();
    let ours = "tsuji_components\n  Camera\n  Listener\n  Talker\n  Viewer\n";
    assert_eq!(world.run(&["component", "types"]).good(), ours);
    let index = "ros/share/ament_index/resource_index/rclcpp_components/composition";
    world.write(index, "composition::Talker;lib/libtalker_component.so\n");
    let prefix = world.path("ros");
    let prefix = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    assert_eq!(
        world.run_with(&prefix, &["component", "types"]).good(),
        format!("composition\n  composition::Talker\n{ours}")
    );
    assert_eq!(
        world.run_with(&prefix, &["component", "types", "composition"]).good(),
        "composition::Talker\n"
    );
    let types = world.run_with(&prefix, &["component", "types", "composition", "--json"]).json();
    assert_eq!((types.as_array().unwrap().len(), &types[0]["container"]), (1, &"rclcpp".into()));
    let error = world.run(&["component", "types", "composition"]).bad(1);
    assert_eq!(
        error,
        "error: no components of package 'composition'; there are those of tsuji_components\n"
    );
    // A container of tsuji says who loads them.
    let arguments = ["component", "standalone", "composition", "composition::Talker"];
    let error = world.run_with(&prefix, &arguments).bad(1);
    assert!(error.contains("package 'composition' has components of rclcpp, in C++"), "{error}");
}

#[test]
fn a_viewer_that_is_loaded_beside_the_camera_has_its_pictures_by_pointer() {
    let world = World::new();
    let mut camera =
        world.start(&["component", "standalone", "tsuji_components", "Camera", "--name", "eyes"]);
    camera.out("Loaded component 1 as '/camera'");
    camera.out("Container '/eyes'");
    let mut screen = container(&world, "screen");
    let viewer = |container: &str, name: &str| {
        let load = ["component", "load", container, "tsuji_components", "Viewer", "-n", name];
        world.run(&load).good()
    };
    viewer("/screen", "outer");
    screen.err("the first picture is number ");
    let transport = |node: &str| {
        let routes = world.run_until(&["routes", "--json"], |it| {
            let flow = |it: &serde_json::Value| {
                it["subscription"]["node"] == node && it["samples"].as_u64().unwrap_or(0) > 2
            };
            it.code == Some(0) && it.json().as_array().is_some_and(|all| all.iter().any(flow))
        });
        let routes = routes.json();
        let found = routes.as_array().unwrap().iter().find(|it| it["subscription"]["node"] == node);
        found.unwrap().clone()
    };
    assert_eq!(transport("/outer")["transport"], "shm");
    viewer("/eyes", "inner");
    camera.err("the first picture is number ");
    world.run(&["component", "unload", "/screen", "1"]).good();
    let route = transport("/inner");
    assert_eq!(route["transport"], "inproc");
    assert_eq!((&route["lost"], &route["duplicates"]), (&0.into(), &0.into()));
    let told = camera.stop();
    assert_eq!(told.code, Some(0));
    assert!(!told.err.contains("comes after"), "{told:?}");
}

#[test]
fn components_of_the_command_log_on_rosout_and_have_parameters() {
    let world = World::new();
    let mut log = world.start(&["log", "--node", "/viewer"]);
    let mut eyes =
        world.start(&["component", "standalone", "tsuji_components", "Viewer", "--name", "eyes"]);
    eyes.out("Container '/eyes'");
    eyes.err("0 pictures");
    log.out("[viewer]: 0 pictures");
    // What uses parameters has them, and ROS time among them where that is used.
    let said = world.run(&["param", "list", "/viewer"]).bad(1);
    assert!(said.contains("'/viewer' has no parameter services"), "{said}");
    world.run(&["component", "load", "/eyes", "tsuji_components", "Camera"]).good();
    let parameters = world.run(&["param", "list", "/camera"]).good();
    assert!(parameters.contains("rate") && parameters.contains("use_sim_time"), "{parameters}");
    let topics = world.run(&["topic", "info", "/rosout", "-v"]).good();
    for node in ["viewer", "eyes"] {
        assert!(topics.contains(&format!("Node name: {node}")), "{topics}");
    }
    assert_eq!(eyes.stop().code, Some(0));
}
