//! `tsuji lifecycle`.

use tsuji::Context;
use tsuji::lifecycle::{Lifecycle, LifecycleNode, Outcome, State};

use crate::support::{World, spun};

/// Is configured, and cannot be activated.
struct Stubborn;

impl Lifecycle for Stubborn {
    fn on_activate(&mut self, _node: &LifecycleNode, _from: State) -> Outcome {
        Outcome::Failure
    }
}

/// A managed node of this process, and one that is not, while `body` runs.
fn served(world: &World, body: impl FnOnce()) {
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let context = context.unwrap();
    let node = context.node_in("arm", "/robot").unwrap();
    let _plain = context.node("plain").unwrap();
    let _managed = node.manage(Stubborn).unwrap();
    spun(&node, body);
}

#[test]
fn states_are_told_and_changed_as_ros2_does() {
    let world = World::new();
    assert_eq!(world.run(&["lifecycle", "nodes"]).good(), "");
    served(&world, || {
        let check = |arguments: &[&str], expect: &str| {
            assert_eq!(world.run(&[&["lifecycle"], arguments].concat()).good(), expect);
        };
        check(&["nodes"], "/robot/arm\n");
        check(&["nodes", "-c"], "1\n");
        check(&["get"], "/robot/arm: unconfigured [1]\n");
        check(&["get", "robot/arm"], "unconfigured [1]\n");
        check(
            &["list", "/robot/arm"],
            "- configure [1]\n\tStart: unconfigured\n\tGoal: configuring\n\
             - shutdown [5]\n\tStart: unconfigured\n\tGoal: shuttingdown\n",
        );
        check(&["set", "/robot/arm", "configure"], "Transitioning successful\n");
        check(&["get", "/robot/arm"], "inactive [2]\n");
        let all = world.run(&["lifecycle", "list", "/robot/arm", "-a", "--json"]).json();
        assert_eq!(all.as_array().unwrap().len(), 25);
        assert_eq!((&all[1]["id"], &all[1]["goal"]["label"]), (&10.into(), &"inactive".into()));
        let states = world.run(&["lifecycle", "get", "--json"]).json();
        assert_eq!(
            (&states[0]["node"], &states[0]["state"]),
            (&"/robot/arm".into(), &"inactive".into())
        );
        let set = |transition: &str| world.run(&["lifecycle", "set", "/robot/arm", transition]);
        assert_eq!(
            set("activate").bad(1),
            "error: Transitioning failed: lifecycle of /robot/arm: transition `activate` was not made; it is inactive\n"
        );
        assert_eq!(
            set("configure").bad(1),
            "error: Transitioning failed: lifecycle of /robot/arm: transition `configure` is not one of state inactive; \
             allowed: cleanup [2], activate [3], shutdown [6]\n"
        );
        assert_eq!(set("6").good(), "Transitioning successful\n");
        check(&["get", "/robot/arm"], "finalized [4]\n");
    });
}

#[test]
fn nodes_that_are_not_managed_are_told() {
    let world = World::new();
    let error = world.run(&["lifecycle", "get", "/arm"]).bad(1);
    assert_eq!(
        error,
        "error: Node not found: '/arm'; `tsuji lifecycle nodes` lists those there are\n"
    );
    served(&world, || {
        let error = world.run(&["lifecycle", "set", "/plain", "configure"]).bad(1);
        assert_eq!(
            error,
            "error: '/plain' is no managed node; `tsuji lifecycle nodes` lists those there are\n"
        );
    });
}
