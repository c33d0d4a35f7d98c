//! `tsuji top` at a terminal.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::support::{AtTerminal, Running, WATCHDOG, World, flow, tsuji};

/// Waits until the topic is set to `wanted`.
fn is_set(world: &World, wanted: &Json) {
    world.run_until(&["routes", "--json"], |it| it.json()[0]["pinned"] == *wanted);
}

/// What `stty -g` has said, also right behind the last that `top` has written.
fn states(shown: &str) -> Vec<&str> {
    let ends = shown.lines().filter_map(|it| it.trim().rsplit("\x1b[?25h").next());
    ends.filter(|it| 10 < it.split(':').count() && !it.contains('\x1b')).collect()
}

const LEAVES: &str = "\x1b[?1049l";

#[test]
fn a_transport_is_set_and_taken_back_by_keys() {
    let world = World::new();
    let _flow = flow(&world, &[]);
    let script = format!("stty -g; {} top -i 0.2; echo code $?; stty -g", tsuji());
    let Some(mut terminal) = AtTerminal::start(&world, &script) else { return };
    terminal.wait("/chatter");
    terminal.wait("shm");
    terminal.press("t");
    terminal.wait("carries");
    // The first is the policy, then come the transports, inproc and shm first.
    terminal.press("\x1b[H\x1b[B\x1b[B\x1b[B\r");
    terminal.wait("set to cyclonedds");
    is_set(&world, &"cyclonedds".into());
    terminal.press("u");
    // Of "left to the policy, for 1 flow" only this is new where the last message stood.
    terminal.wait("policy,");
    is_set(&world, &Json::Null);
    terminal.press("t\x1b[H\x1b[B\x1b[B\x1b[B\r");
    is_set(&world, &"cyclonedds".into());
    // Processes have memory, and so their own titles.
    terminal.press("\t");
    terminal.wait("MEMORY");
    terminal.press("q");
    terminal.wait(LEAVES);
    terminal.wait("/chatter is still set to cyclonedds; `tsuji route auto /chatter` leaves it");
    terminal.wait("code 0");
    let shown = terminal.end();
    let states = states(&shown);
    assert_eq!(states.len(), 2, "{shown}");
    assert_eq!(states[0], states[1]);
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let world = World::new();
    let _flow = flow(&world, &[]);
    for end in ["^C", "INT", "TERM", "HUP", "QUIT"] {
        let script = format!(
            "trap : INT QUIT HUP; stty -g; sh -c 'echo $$ > pid; exec {} top -i 0.1'; echo end; stty -g",
            tsuji()
        );
        let Some(mut terminal) = AtTerminal::start(&world, &script) else { return };
        terminal.wait("/chatter");
        match end {
            "^C" => terminal.press([3]),
            signal => {
                let kill = format!("kill -{signal} $(cat pid)");
                assert_eq!(
                    Running::new(&mut world.foreign(["sh", "-c", &kill])).end().code,
                    Some(0)
                );
            }
        }
        terminal.wait(LEAVES);
        terminal.wait("end");
        let shown = terminal.end();
        // Behind it nothing is drawn; the cursor is shown, perhaps twice.
        let (_, after) = shown.rsplit_once(LEAVES).unwrap();
        assert!(!after.replace("\x1b[?25h", "").contains('\x1b'), "{end}: {after:?}");
        let states = states(&shown);
        assert_eq!(states.len(), 2, "{end}: {shown}");
        assert_eq!(states[0], states[1], "{end}");
    }
}

#[test]
fn the_shell_has_the_terminal_while_it_is_stopped() {
    let world = World::new();
    let _flow = flow(&world, &[]);
    let script =
        format!("set -m; stty -g; {} top; echo stopped; stty -g; fg; stty -g; echo end", tsuji());
    let Some(mut terminal) = AtTerminal::start(&world, &script) else { return };
    terminal.wait("/chatter");
    terminal.press([0x1a]);
    terminal.wait(LEAVES);
    terminal.wait("stopped");
    // Drawn anew, whole.
    terminal.wait("/chatter");
    terminal.press("q");
    terminal.wait(LEAVES);
    terminal.wait("end");
    let shown = terminal.end();
    let states = states(&shown);
    assert_eq!(states.len(), 3, "{shown}");
    assert!(states.windows(2).all(|it| it[0] == it[1]), "{shown}");
}

/// What draws must not take the screen between its giving back and the stop, and keys that the stop throws away are not waited for.
#[test]
fn the_shell_has_the_terminal_at_each_of_many_stops() {
    const STOPS: usize = 30;
    let world = World::new();
    let _flow = flow(&world, &[]);
    let script = format!(
        "set -m; stty -g; {} top -i 0.1; for k in $(seq {STOPS}); do echo stop $k.; stty -g; fg; done; stty -g; echo end",
        tsuji()
    );
    let Some(mut terminal) = AtTerminal::start(&world, &script) else { return };
    for stop in 1..=STOPS {
        terminal.wait("/chatter");
        // For each of those that come it is drawn.
        terminal.press("<<<<");
        terminal.press([0x1a]);
        terminal.wait(&format!("stop {stop}."));
    }
    terminal.wait("/chatter");
    terminal.press("q");
    terminal.wait(LEAVES);
    terminal.wait("end");
    let shown = terminal.end();
    let states = states(&shown);
    assert_eq!(states.len(), STOPS + 2, "{shown}");
    assert!(states.windows(2).all(|it| it[0] == it[1]), "{states:#?}");
}

/// As what `ssh -t` or a window runs: no shell could make it go on.
#[test]
fn who_cannot_go_on_is_not_stopped() {
    let world = World::new();
    let _flow = flow(&world, &[]);
    let script = format!("exec {} top", tsuji());
    let Some(mut terminal) = AtTerminal::start(&world, &script) else { return };
    terminal.wait("/chatter");
    terminal.press([0x1a]);
    // It has given the screen back, and has it again.
    terminal.wait(LEAVES);
    terminal.wait("/chatter");
    terminal.press("q");
    terminal.wait(LEAVES);
    terminal.end();
}

#[test]
fn it_ends_with_its_terminal() {
    // The shell hears no hang-up; the command does, or does not.
    for hears in ["env --default-signal=HUP", ""] {
        let world = World::new();
        let _flow = flow(&world, &[]);
        // Nobody reads its errors from the terminal either.
        let script = format!("trap '' HUP; {hears} {} top; echo $? > code", tsuji());
        let Some(mut terminal) = AtTerminal::start(&world, &script) else { return };
        terminal.wait("/chatter");
        let code = world.path("code");
        assert!(!code.exists());
        terminal.hang_up();
        let began = Instant::now();
        while fs::read_to_string(&code).unwrap_or_default().is_empty() {
            assert!(began.elapsed() < WATCHDOG, "it lives on");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(fs::read_to_string(&code).unwrap(), "0\n", "{hears}");
    }
}

#[test]
fn nobody_is_there() {
    let world = World::new();
    let script = format!("{} top; echo code $?", tsuji());
    let Some(mut terminal) = AtTerminal::start(&world, &script) else { return };
    terminal.wait("flows:");
    // Keys that have nothing to act on.
    terminal.press("tau\r\r\x1b[B\x1b[F<>r/x\r");
    terminal.wait("Nothing");
    terminal.press("q");
    terminal.wait("code 0");
}

#[test]
fn without_a_terminal_it_says_what_else_there_is() {
    let world = World::new();
    let refused = world.run(&["top"]).bad(1);
    let expect = "error: top needs a terminal that can move its cursor; `tsuji routes --watch` prints lines, \
                  and with --json what programs read\n";
    assert_eq!(refused, expect);
    let wrong = world.run(&["top", "--sort", "speed"]).bad(2);
    assert!(wrong.contains("[possible values: topic, transport, rate, "), "{wrong}");
}
