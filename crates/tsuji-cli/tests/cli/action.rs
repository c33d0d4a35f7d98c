//! `tsuji action`.

use tsuji::{Context, RawType};

use crate::support::World;

const FIBONACCI: &str = "example_interfaces/action/Fibonacci";

#[test]
fn actions_are_listed_as_ros2_lists_them() {
    let world = World::new();
    assert_eq!(world.run(&["action", "list"]).good(), "");
    let nobody = "Action: /fibonacci\nAction clients: 0\nAction servers: 0\n";
    let ended = world.run(&["action", "info", "/fibonacci"]);
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(1), nobody, ""));
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let context = context.unwrap();
    // What takes goals is what makes an action of it.
    let of = || RawType { name: format!("{FIBONACCI}_SendGoal"), hash: String::new() };
    let (serving, asking) = (context.node("serving").unwrap(), context.node("asking").unwrap());
    let _server = serving.raw_service("fibonacci/_action/send_goal", of()).build().unwrap();
    let _client = asking.raw_client("fibonacci/_action/send_goal", of()).build().unwrap();
    let check = |arguments: &[&str], expect: &str| {
        assert_eq!(world.run(&[&["action"], arguments].concat()).good(), expect);
    };
    check(&["list"], "/fibonacci\n");
    check(&["list", "-t"], &format!("/fibonacci [{FIBONACCI}]\n"));
    check(&["list", "-c"], "1\n");
    let both =
        "Action: /fibonacci\nAction clients: 1\n    /asking\nAction servers: 1\n    /serving\n";
    check(&["info", "fibonacci"], both);
    let both = "Action: /fibonacci\nAction clients: 1\nAction servers: 1\n";
    check(&["info", "/fibonacci", "-c"], both);
    assert!(
        world
            .run(&["action", "info", "/fibonacci", "-t"])
            .good()
            .contains(&format!("/serving [{FIBONACCI}]"))
    );
    let json = world.run(&["action", "info", "/fibonacci", "--json"]).json();
    assert_eq!(json["servers"][0]["node"], "/serving");
    assert_eq!(json["clients"][0]["type"], FIBONACCI);
    let json = world.run(&["action", "list", "--json"]).json();
    assert_eq!((&json[0]["action"], &json[0]["servers"]), (&"/fibonacci".into(), &1.into()));
}
