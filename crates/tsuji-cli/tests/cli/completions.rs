//! `tsuji completions`, asked by the shells themselves.

use std::time::Instant;

use crate::support::{Ended, Running, WATCHDOG, World, is_there};

const TEXT: &str = "std_msgs/msg/String";

/// Takes the script as a user does, and presses the tab key behind the words that follow.
const TAB: &str = r#"
source <(tsuji completions bash)
[[ $(complete -p tsuji) =~ -F\ ([^ ]+) ]] || exit 9
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
"${BASH_REMATCH[1]}" tsuji "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
for word in "${COMPREPLY[@]}"; do printf '%s\n' "$word"; done
"#;

/// A program of the shell in a world where `tsuji` is found.
fn shell(world: &World, words: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = world.with_tsuji(words.iter().copied());
    Running::new(command.envs(variables.iter().copied())).end()
}

/// What bash offers behind `words`, of which the last is half typed.
fn tab(world: &World, variables: &[(&str, &str)], words: &[&str]) -> Vec<String> {
    let asked = [&["bash", "-c", TAB, "bash"], words].concat();
    shell(world, &asked, variables).good().lines().map(str::to_owned).collect()
}

/// Asks until the names are those expected: a process that does not answer in time is not offered.
#[track_caller]
fn tab_until(world: &World, variables: &[(&str, &str)], words: &[&str], expect: &[&str]) {
    let began = Instant::now();
    loop {
        let offered = names(tab(world, variables, words));
        if offered == expect {
            return;
        }
        assert!(began.elapsed() < WATCHDOG, "{words:?}: {offered:?}, not {expect:?}");
    }
}

/// Without the flags, which are offered everywhere.
fn names(offered: Vec<String>) -> Vec<String> {
    offered.into_iter().filter(|it| !it.starts_with('-')).collect()
}

#[test]
fn the_scripts_are_understood() {
    let world = World::new();
    for name in ["bash", "zsh", "fish"] {
        let script = world.run(&["completions", name]).good();
        assert!(script.contains("TSUJI_COMPLETE"), "{script}");
        if !is_there(&[name, "-c", "true"]) {
            continue;
        }
        let file = world.write(name, &script);
        shell(&world, &[name, "-n", file.to_str().unwrap()], &[]).good();
    }
    for name in ["elvish", "powershell"] {
        assert!(world.run(&["completions", name]).good().contains("TSUJI_COMPLETE"));
    }
    let error = world.run(&["completions", "tcsh"]).bad(2);
    assert!(error.contains("[possible values: bash, elvish, fish, powershell, zsh]"), "{error}");
}

#[test]
fn words_that_never_change() {
    let world = World::new();
    if !is_there(&["bash", "-c", "true"]) {
        return;
    }
    let check = |words: &[&str], expect: &[&str]| {
        assert_eq!(names(tab(&world, &[], words)), expect, "{words:?}");
    };
    check(&["tsuji", "to"], &["topic", "top"]);
    check(&["tsuji", "topi"], &["topic"]);
    let verbs = ["list", "info", "echo", "pub", "hz", "bw", "delay", "type", "find", "help"];
    check(&["tsuji", "topic", ""], &verbs);
    check(&["tsuji", "topic", "de"], &["delay"]);
    check(&["tsuji", "topic", "pub", "/x", "std_msgs/msg/Stri"], &["std_msgs/msg/String"]);
    check(&["tsuji", "interface", "show", "std_srvs/srv/Set"], &["std_srvs/srv/SetBool"]);
    check(&["tsuji", "interface", "package", "geometry"], &["geometry_msgs"]);
    check(&["tsuji", "route", ""], &["set", "auto", "replay", "help"]);
    check(&["tsuji", "route", "set", "/x", "cy"], &["cyclonedds"]);
    check(&["tsuji", "topic", "echo", "/x", "--qos-durability", "v"], &["volatile"]);
    assert_eq!(tab(&world, &[], &["tsuji", "doctor", "--js"]), ["--json"]);
    // Behind what is no command the first words are offered again.
    assert_eq!(tab(&world, &[], &["tsuji", "nonsense", ""]), tab(&world, &[], &["tsuji", ""]));
    assert!(!world.run_time().exists(), "no folder is made for a word");
}

#[test]
fn topics_and_nodes_that_are_there() {
    let world = World::new();
    if !is_there(&["bash", "-c", "true"]) {
        return;
    }
    let _talker = world.start(&["topic", "pub", "-n", "talker", "/chatter", TEXT]);
    let _hidden = world.start(&["topic", "pub", "/_private/state", TEXT]);
    let _far = world.start(&["topic", "pub", "--domain-id", "7", "/far", TEXT]);
    world.run_until(&["topic", "list", "--include-hidden-topics"], |it| {
        it.out == "/_private/state\n/chatter\n"
    });
    world.run_until(&["topic", "list", "--domain-id", "7"], |it| it.out == "/far\n");
    let check = |variables: &[(&str, &str)], words: &[&str], expect: &[&str]| {
        tab_until(&world, variables, words, expect);
    };
    for command in ["echo", "hz", "bw", "delay", "info", "type"] {
        check(&[], &["tsuji", "topic", command, ""], &["/chatter"]);
    }
    check(&[], &["tsuji", "topic", "pub", "/ch"], &["/chatter"]);
    check(&[], &["tsuji", "routes", "--topic", "/"], &["/chatter"]);
    check(&[], &["tsuji", "route", "set", "/"], &["/chatter"]);
    check(&[], &["tsuji", "route", "auto", "/"], &["/chatter"]);
    check(&[], &["tsuji", "topic", "echo", "/_"], &["/_private/state"]);
    check(&[], &["tsuji", "node", "info", "/t"], &["/talker"]);
    check(&[], &["tsuji", "topic", "echo", "--domain-id", "7", "/"], &["/far"]);
    check(&[("ROS_DOMAIN_ID", "7")], &["tsuji", "topic", "echo", "/"], &["/far"]);
    // Whatever is wrong here, the prompt stays clean.
    check(&[("TSUJI_POLICY", "/no/such.xml")], &["tsuji", "topic", "echo", "/"], &["/chatter"]);
    check(&[("ROS_SECURITY_ENABLE", "true")], &["tsuji", "topic", "echo", "/"], &["/chatter"]);
    check(&[("ROS_DOMAIN_ID", "999")], &["tsuji", "topic", "echo", "/"], &[]);
    check(&[("TSUJI_RUNTIME_DIR", "/dev/null")], &["tsuji", "topic", "echo", "/"], &[]);
}

#[test]
fn a_stopped_process_holds_no_prompt_up() {
    let world = World::new();
    if !is_there(&["bash", "-c", "true"]) {
        return;
    }
    let mut stopped = world.start(&["topic", "pub", "/stopped", TEXT]);
    stopped.out("publishing #1");
    stopped.freeze();
    let mut well = world.start(&["topic", "pub", "/well", TEXT]);
    well.out("publishing #1");
    tab_until(&world, &[], &["tsuji", "topic", "echo", ""], &["/well"]);
}
