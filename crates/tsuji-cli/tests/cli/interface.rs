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
