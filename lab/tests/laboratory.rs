//! The laboratory whole, with counts too small to mean anything: rows come out and nothing is lost.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it wants and why it did not run"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tsuji::{Context, Durability, Message, Node, Publisher, Qos};
use tsuji_interfaces::Shipped;
use tsuji_interfaces::sensor_msgs::msg::{CompressedImage, Image};
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_platform::child::Signal;
use tsuji_record::{RecordOptions, Recorder};

#[path = "support/running.rs"]
mod running;

use running::{Lab, kill, slept};

/// Only there to end a hung test.
const HANG: Duration = Duration::from_secs(600);

/// What has a row where its plug-in is found, and a reason where not.
const PLUGINS: [&str; 2] = ["fastdds", "zenoh"];

/// Those of [`PLUGINS`] that were not found. What was found is measured.
fn absent(value: &Value) -> Vec<&'static str> {
    let all = value["absent"].as_array().unwrap();
    let is_absent = |name: &&str| all.iter().any(|it| it["what"].as_str().unwrap().contains(name));
    for it in all {
        let missing = match it["what"].as_str() {
            Some("ros1") => "scripts/ros1 builds it",
            Some("rclcpp") => "scripts/rclcpp builds it",
            Some(what) if what.starts_with("cyclonedds-secured") => "libtsuji_dds_security",
            _ => "libtsuji_transport_",
        };
        assert!(it["why"].as_str().unwrap().contains(missing), "{it}");
    }
    PLUGINS.into_iter().filter(|it| is_absent(it)).collect()
}

/// Whether the laboratory cannot be run here, which is said.
fn is_emulated() -> bool {
    let is_emulated = std::env::var_os("TSUJI_TEST_RUNNER").is_some_and(|it| !it.is_empty());
    if is_emulated {
        println!("not run: under emulation the laboratory cannot start itself");
    }
    is_emulated
}

/// Runs it with these words, and reads the JSON that it wrote.
fn check(words: &str) -> Option<(Value, String)> {
    check_with(words, &[])
}

/// The same, with these variables.
fn check_with(words: &str, variables: &[(&str, &OsStr)]) -> Option<(Value, String)> {
    let (value, text, ended) = run(words, variables)?;
    ended.unwrap_or_else(|complaints| panic!("{text}\n{complaints}"));
    Some((value, text))
}

/// The same, with what it complained of where it says that something was not measured or is lost.
fn run(words: &str, variables: &[(&str, &OsStr)]) -> Option<(Value, String, Result<(), String>)> {
    if is_emulated() {
        return None;
    }
    let json = json_path(words);
    let output = Command::new(env!("CARGO_BIN_EXE_tsuji-lab"))
        .args(words.split_whitespace())
        .arg("--json")
        .arg(&json)
        // What is measured with peers is in `ros1.rs` and `rclcpp.rs`.
        .env_remove("TSUJI_LAB_PEERS")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let [text, complaints] =
        [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    let ended = match output.status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(complaints),
        _ => panic!("{text}\n{complaints}"),
    };
    let value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    fs::remove_file(json).unwrap();
    Some((value, text, ended))
}

fn json_path(words: &str) -> PathBuf {
    let name: String = words.chars().filter(|it| it.is_ascii_alphanumeric()).collect();
    std::env::temp_dir().join(format!("tsuji-lab-test-{}-{name}.json", std::process::id()))
}

#[test]
fn every_pattern_and_every_way_brings_rows_and_loses_nothing() {
    let words = "latency --quick --count 6 --blocks 2 --sizes 64,70000";
    let Some((value, text)) = check(words) else { return };
    let rows = value["rows"].as_array().unwrap();
    let absent = absent(&value);
    let is_missing = |it: &Value| it["what"].as_str().unwrap().starts_with("cyclonedds-secured");
    let is_secured = !value["absent"].as_array().unwrap().iter().any(is_missing);
    // Six patterns, and six ways and those by plug-ins in two sizes; each by two transports. What is published between two
    // processes by shared memory goes by a socket too.
    let ways = 6 + usize::from(is_secured) + PLUGINS.len() - absent.len();
    assert_eq!(rows.len(), (6 + ways * 2) * 2 + 3, "{text}");
    for row in rows {
        assert_eq!(row["lost"], 0, "{row}");
        assert_eq!(row["count"], 6, "{row}");
        for field in ["case", "transport"] {
            assert!(row[field].is_string(), "{row}");
        }
        for field in ["mean_us", "median_us", "p99_us", "max_us", "cpu_us_per_sample"] {
            assert!(row[field].is_f64(), "{field} of {row}");
        }
    }
    let carried = |case: &str, transport: &str| {
        rows.iter().any(|it| it["case"] == case && it["transport"] == transport)
    };
    assert!(carried("one_node_pointer", "tsuji:inproc"), "{text}");
    assert!(carried("two_nodes_pointer", "tsuji:shm"), "{text}");
    assert!(carried("loan-70000", "raw:iceoryx2-loan"), "{text}");
    for case in ["two_nodes", "publish-64", "publish-70000"] {
        assert!(carried(case, "raw:unix-socket"), "{case}: {text}");
    }
    assert!(carried("secured-shm-64", "tsuji-secured:shm"), "{text}");
    if is_secured {
        assert!(carried("cyclonedds-secured-70000", "tsuji-secured:cyclonedds"), "{text}");
        assert!(carried("cyclonedds-secured-70000", "raw:cyclonedds-secured"), "{text}");
    }
    for way in ["loan", "publish"] {
        assert!(carried(&format!("cyclonedds-{way}-70000"), "tsuji:cyclonedds"), "{text}");
    }
    for name in PLUGINS.iter().filter(|it| !absent.contains(it)) {
        for transport in [format!("tsuji:{name}"), format!("raw:{name}-copy")] {
            assert!(carried(&format!("{name}-publish-70000"), &transport), "{transport}: {text}");
        }
    }
    assert!(carried("cyclonedds-loan-64", "raw:cyclonedds-in-place"), "{text}");
    assert!(carried("cyclonedds-publish-64", "raw:cyclonedds-copy"), "{text}");
    // Once, and not with each pattern.
    for peer in ["ros1", "rclcpp"] {
        let own = value["absent"].as_array().unwrap().iter().filter(|it| it["what"] == peer);
        assert_eq!(own.count(), 1, "{text}");
    }
    let article = &value["tables"][0]["rows"];
    assert_eq!((&article[5][0], &article[5][4]), (&"two_components_pointer".into(), &Value::Null));
    assert_ne!(value["machine"]["cpu"], Value::Null);
    let ratios = value["ratios"].as_array().unwrap();
    assert!(ratios.iter().any(|it| it["what"] == "loan-64 median" && it["verdict"].is_string()));
    let of_socket = "tsuji:shm / raw:unix-socket";
    let told: Vec<_> = ratios.iter().filter(|it| it["of"] == of_socket).collect();
    assert_eq!(told.len(), 3 * 2, "{text}");
    // It is there to compare with, and nothing has to be reached.
    assert!(told.iter().all(|it| it["verdict"].is_null()), "{told:?}");
}

#[test]
fn the_matrix_has_a_cell_for_every_transport_size_and_reliability() {
    let csv = json_path("matrix").with_extension("csv");
    let transports = "inproc,shm,cyclonedds,raw:cyclonedds,raw:fastdds,raw:zenoh,raw:unix-socket";
    let words = format!(
        "matrix --quick --count 4 --blocks 2 --sizes 256,70000 --transports {transports} --csv {}",
        csv.display()
    );
    let Some((value, text)) = check(&words) else { return };
    let cells = value["matrix"].as_array().unwrap();
    let alone = PLUGINS.len() - absent(&value).len();
    assert_eq!(cells.len(), (5 + alone) * 2 * 2, "{text}");
    let ratios = value["ratios"].as_array().unwrap();
    for size in [256, 70_000] {
        for what in ["cyclonedds reliable median", "cyclonedds best effort median"] {
            let is_meant = |it: &Value| it["what"] == what && it["size_bytes"] == size;
            let judged = ratios.iter().find(|it| is_meant(it)).unwrap();
            assert_eq!(judged["at_most"], 1.15, "{judged}");
            assert_eq!(judged["of"], "tsuji:cyclonedds / raw:cyclonedds-copy", "{judged}");
        }
    }
    for transport in
        ["tsuji:inproc", "tsuji:shm", "tsuji:cyclonedds", "raw:cyclonedds-copy", "raw:unix-socket"]
    {
        let own: Vec<_> = cells.iter().filter(|it| it["transport"] == transport).collect();
        assert_eq!(own.len(), 4, "{transport}: {text}");
        for cell in own {
            assert_eq!(cell["count"], 4, "{cell}");
            assert!(cell["reliability"] == "best_effort" || cell["lost"] == 0, "{cell}");
            let is_stream =
                ["tsuji:shm", "tsuji:cyclonedds", "raw:unix-socket"].contains(&transport);
            let has_stream = is_stream && cell["reliability"] == "reliable";
            assert_eq!(cell["throughput_mb_per_s"].is_f64(), has_stream, "{cell}");
            let processes = cell["processes"].as_array().unwrap();
            assert_eq!(processes.len(), if transport == "tsuji:inproc" { 1 } else { 2 }, "{cell}");
            assert!(processes.iter().all(|it| it["vm_rss_mb"].as_f64() > Some(1.0)), "{cell}");
        }
    }
    let table = fs::read_to_string(&csv).unwrap();
    fs::remove_file(csv).unwrap();
    assert_eq!(table.lines().count(), 1 + cells.len(), "{table}");
}

#[test]
fn tuning_writes_a_policy_that_cites_what_was_measured() {
    let policy = json_path("tuned").with_extension("xml");
    let words = format!("tune --quick --count 4 --blocks 2 --output {}", policy.display());
    let Some((_, text)) = check(&words) else { return };
    let written = fs::read_to_string(&policy).unwrap();
    let rules = written.matches("<rule name=\"tuned, ").count();
    assert_eq!(rules, 4, "{written}");
    assert!(written.contains("use=\"shm cyclonedds") || written.contains("use=\"cyclonedds shm"));
    assert!(text.contains("is written. TSUJI_POLICY="), "{text}");
    let loaded = tsuji_policy::load("tuned", written.as_bytes(), tsuji::KNOWN_TRANSPORTS);
    assert_eq!(&*loaded.unwrap().parts().rules[0].origin.file, "tuned");
    // Once more, it does not take the place of what is there.
    let again = Command::new(env!("CARGO_BIN_EXE_tsuji-lab"))
        .args(["tune", "--output"])
        .arg(&policy)
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&policy).unwrap(), written);
    fs::remove_file(policy).unwrap();
}

#[test]
fn the_other_figures_come_out() {
    let words = "budgets --quick --count 20 --blocks 2 --cases small,allocations,footprint,startup,idle,echo,probe";
    let Some((value, text)) = check(words) else { return };
    let figures = value["figures"].as_array().unwrap();
    let figure = |what: &str| {
        let found = figures.iter().find(|it| it["what"] == what);
        found.unwrap_or_else(|| panic!("{what} in {text}"))["figure"].as_f64().unwrap()
    };
    for what in ["small lost", "echo lost", "echo doubled"] {
        assert_eq!(figure(what), 0.0, "{what}");
    }
    for what in [
        "small",
        "allocations-loan",
        "footprint-shm-cyclonedds RSS",
        "footprint-shm-cyclonedds threads",
        "footprint-shm-200 RSS",
        "startup-cyclonedds",
        "wake-ups in 1 s",
        "idle-rtps CPU",
        "idle-rtps wake-ups",
        "echo CPU/sample",
        "probe",
    ] {
        assert!(0.0 <= figure(what));
    }
    let added = figures.iter().find(|it| it["of"] == "what readings at both ends add to it");
    assert!(added.unwrap()["verdict"].is_string(), "{text}");
    let ratios = value["ratios"].as_array().unwrap();
    for what in ["echo p99, less one send", "echo CPU, less one send"] {
        assert!(ratios.iter().any(|it| it["what"] == what && it["verdict"].is_string()), "{what}");
    }
}

#[test]
fn flows_that_change_their_transport_lose_nothing() {
    let words =
        "handover --quick --handovers 6 --cases processes,inside,many,plain,late-joiner,single";
    let Some((value, text)) = check(words) else { return };
    let figures = value["figures"].as_array().unwrap();
    let figure = |what: &str| {
        let found = figures.iter().find(|it| it["what"] == what);
        found.unwrap_or_else(|| panic!("{what} in {text}"))["figure"].as_f64().unwrap()
    };
    for scenario in ["processes", "inside", "many", "plain"] {
        for load in ["64", "picture"] {
            let what = |word: &str| format!("{scenario}-{load} {word}");
            assert!(6.0 <= figure(&what("handovers")), "{text}");
            for word in ["lost", "repeated", "out of order", "damaged", "not published"] {
                assert_eq!(figure(&what(word)), 0.0, "{} in {text}", what(word));
            }
            let ratios = value["ratios"].as_array().unwrap();
            let is_there = |word: &str| ratios.iter().any(|it| it["what"] == what(word));
            // A machine that is too slow for a load has none in peace to compare with, and says what it could not take.
            let is_too_slow = 0.0 < figure(&what("displaced"));
            assert!(is_too_slow || (is_there("median") && is_there("p99")), "{text}");
        }
    }
    assert!(0.0 < figure("late-joiner from its start median"));
    assert!(0.0 < figure("single-thread CPU/sample"));
}

#[test]
fn every_two_transports_between_processes_join_without_loss() {
    let Some((value, text)) = check("handover --quick --handovers 4 --cases pairs-64") else {
        return;
    };
    let absent = absent(&value);
    let here = ["shm", "cyclonedds", "fastdds", "zenoh"];
    let here: Vec<_> = here.into_iter().filter(|it| !absent.contains(it)).collect();
    let figures = value["figures"].as_array().unwrap();
    for (at, one) in here.iter().enumerate() {
        for other in &here[at + 1..] {
            let figures_of = |word: &str| -> Vec<&Value> {
                let what = format!("{one}-{other}-64 {word}");
                figures.iter().filter(|it| it["what"] == *what).collect()
            };
            for word in ["lost", "repeated", "out of order", "damaged", "not published"] {
                let found = figures_of(word);
                assert_eq!((found.len(), &found[0]["figure"]), (1, &0.0.into()), "{text}");
            }
            // Both ways.
            let opening = figures_of("opening median");
            for (from, to) in [(one, other), (other, one)] {
                let way = format!("{from} to {to}, ");
                let is_meant = |it: &&Value| it["of"].as_str().unwrap().starts_with(&way);
                assert!(opening.iter().any(is_meant), "{way}: {text}");
            }
        }
    }
}

#[test]
fn a_command_beside_pictures_and_the_tuned_choice_are_judged() {
    let words = "budgets --quick --count 20 --blocks 2 --sizes 64,70000 --cases command,choice";
    let Some((value, text, ended)) = run(words, &[]) else { return };
    let all = |field: &str| value[field].as_array().unwrap().clone();
    let (figures, ratios) = (all("figures"), all("ratios"));
    // A machine with more to do takes pictures of 6 MB by an engine that is not optimised more slowly than they come. Then nothing can be
    // said of that, and it is not said.
    for skipped in all("skipped") {
        let what = skipped["what"].as_str().unwrap();
        assert!(what.starts_with("command-cyclonedds"), "{text}");
        assert_eq!(skipped["why"], "the receiver does not fall asleep", "{text}");
    }
    assert_eq!(ended.is_ok(), all("skipped").is_empty(), "{text}\n{ended:?}");
    let figure = |what: &str| {
        let found = figures.iter().find(|it| it["what"] == what);
        found.unwrap_or_else(|| panic!("{what} in {text}"))["figure"].as_f64().unwrap()
    };
    assert_eq!((figure("command lost"), figure("command pictures lost")), (0.0, 0.0), "{text}");
    // Without them it would be a command beside nothing.
    assert!(0.0 < figure("command pictures"), "{text}");
    let p99 = ratios.iter().find(|it| it["what"] == "command p99").unwrap();
    assert_eq!((&p99["at_most"], p99["verdict"].is_string()), (&2.0.into(), true), "{p99}");
    for size in [64, 70_000] {
        for what in ["choice reliable", "choice best effort"] {
            let is_meant = |it: &&Value| it["what"] == what && it["size_bytes"] == size;
            let choice = ratios.iter().find(is_meant).unwrap_or_else(|| panic!("{what}: {text}"));
            assert_eq!(choice["at_most"], 1.1, "{choice}");
            assert!(choice["of"].as_str().unwrap().starts_with("its own"), "{choice}");
        }
    }
}

#[test]
fn a_beat_is_told_of_by_every_transport_and_every_peer_and_loses_nothing() {
    let Some((value, text)) = check("jitter --count 300 --blocks 2 --cases jitter") else {
        return;
    };
    let (table, absent) = (&value["tables"][0], absent(&value));
    let mut expected = vec!["tsuji:inproc", "tsuji:shm", "tsuji:cyclonedds", "raw:cyclonedds"];
    for (name, transports) in
        PLUGINS.into_iter().zip([["tsuji:fastdds", "raw:fastdds"], ["tsuji:zenoh", "raw:zenoh"]])
    {
        if !absent.contains(&name) {
            expected.extend(transports);
        }
    }
    expected.extend(["raw:iceoryx2", "raw:unix-socket", "raw:unix-socket"]);
    expected.sort_unstable();
    // The last is of the article.
    let [rows @ .., _] = &table["rows"].as_array().unwrap()[..] else { panic!("{text}") };
    let mut transports: Vec<_> = rows.iter().map(|it| it[0].as_str().unwrap()).collect();
    transports.sort_unstable();
    assert_eq!(transports, expected, "{text}");
    for row in rows {
        let of = |column: &str| cell(table, row, column).as_f64().unwrap();
        assert_eq!(of("published"), 300.0, "{row}");
        let displaced = cell(table, row, "displaced").as_f64();
        let told = of("before the subscription") + of("received") + of("lost");
        // What was displaced before the first came to the callback is of those before the subscription, too.
        assert!(told <= 300.0 && 300.0 <= told + displaced.unwrap_or(0.0), "{row}");
        // The queue of an engine alone keeps ten, and does not tell what it lets go while the machine does other things.
        let may_let_go = displaced.is_none() && row[0] != "raw:unix-socket";
        assert!(may_let_go || of("lost") == 0.0, "{row}");
        assert_eq!(displaced.is_some(), row[0].as_str().unwrap().starts_with("tsuji:"), "{row}");
        if row[0] == "raw:unix-socket" && row[1] == "early" {
            assert_eq!(of("before the subscription"), 0.0, "{row}");
        }
        assert!(of("median µs") <= of("p99 µs") && of("p99 µs") <= of("max µs"), "{row}");
    }
    for (case, transport) in [
        ("jitter-inproc", "tsuji:inproc"),
        ("jitter-raw:cyclonedds", "raw:cyclonedds"),
        ("jitter-raw:iceoryx2", "raw:iceoryx2"),
        ("jitter-raw:unix-socket-early", "raw:unix-socket"),
    ] {
        let is_meant = |it: &&Value| {
            it["case"] == case && it["what"] == "transmit" && it["at_unit"] == "number"
        };
        let transmit = value["series"].as_array().unwrap().iter().find(is_meant).unwrap();
        let is_early = case.ends_with("early") || case.ends_with("inproc");
        let row =
            rows.iter().find(|it| it[0] == transport && (it[1] == "early") == is_early).unwrap();
        let values = transmit["values"].as_array().unwrap().len() as f64;
        assert_eq!(Some(values), cell(table, row, "received").as_f64(), "{case}: {text}");
    }
}

#[test]
fn pictures_come_by_every_peer_alone() {
    let peers = ["raw:fastdds", "raw:zenoh", "raw:iceoryx2", "raw:unix-socket"];
    let words = format!("camera --count 8 --transports {}", peers.join(","));
    let Some((value, text)) = check(&words) else { return };
    let (table, absent) = (&value["tables"][0], absent(&value));
    let is_here = |it: &&str| !absent.iter().any(|absent| it.contains(absent));
    let here: Vec<_> = peers.into_iter().filter(is_here).collect();
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * here.len(), "{text}");
    for (row, (peer, picture)) in
        rows.iter().zip(here.iter().flat_map(|it| [(it, "raw"), (it, "jpeg")]))
    {
        assert_eq!(
            (&row[0], &row[1], &row[2]),
            (&picture.into(), &(*peer).into(), &(*peer).into())
        );
        let of = |column: &str| cell(table, row, column).as_f64().unwrap();
        assert_eq!((of("filmed"), of("received")), (8.0, 8.0), "{row}");
        let case = format!("{picture}-{peer}");
        let is_meant = |it: &&Value| it["case"] == *case && it["what"] == "to the callback";
        let took = value["series"].as_array().unwrap().iter().find(is_meant).unwrap();
        assert_eq!(took["values"].as_array().unwrap().len(), 8, "{case}: {text}");
    }
}

#[test]
fn a_short_queue_keeps_the_newest_while_the_callback_stands_still() {
    let Some((value, text)) = check("jitter --count 40 --blocks 2 --cases queue") else { return };
    // Ten of each start come meanwhile.
    let row = &value["tables"][0]["rows"][0];
    assert_eq!((&row[0], &row[1]), (&"tsuji:shm".into(), &1.0.into()), "{text}");
    let [published, received, displaced, lost] = [2, 3, 4, 5].map(|at| row[at].as_f64().unwrap());
    assert_eq!((published, received + displaced, lost), (40.0, 40.0, 0.0), "{text}");
    assert!(0.0 < displaced, "{text}");
}

#[test]
fn a_log_of_ros_1_is_read_in_any_language() {
    let log = std::env::temp_dir().join(format!("tsuji-lab-test-{}.log", std::process::id()));
    let mut text = b"\n\n1571234567.000000001  Node Startup\n".to_vec();
    text.extend(b"1571234567.05 INFO /\x83\x8d\x83O [/a.cpp:1(main)] [topics: /rosout] \xff\xfe publish\xe3\n");
    for (at, node, word) in [(100, "publisher", "publish"), (100_300, "subscriber", "subscribe")] {
        let at = 1_571_234_567_000_000_u64 + at;
        let (seconds, micros) = (at / 1_000_000, at % 1_000_000);
        let line = format!(
            "{seconds}.{micros:06}000 INFO /test_{node} [/a.cpp:1(main)] [topics: /rosout] {word}: Test msg\n"
        );
        text.extend(line.into_bytes());
    }
    fs::write(&log, text).unwrap();
    let found = check(&format!("jitter --rosout {}", log.display()));
    fs::remove_file(&log).unwrap();
    let Some((value, text)) = found else { return };
    let row = &value["tables"][0]["rows"][0];
    assert_eq!((&row[1], &row[2]), (&2.0.into(), &1.0.into()), "{text}");
}

#[test]
fn a_log_in_which_nothing_is_said_of_messages_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_tsuji-lab"))
        .args(["jitter", "--rosout", "/dev/null"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/dev/null: 0 lines say \"publish\""), "{said}");
}

/// The cell under `column`, of which there may be several.
fn cell<'a>(table: &Value, row: &'a Value, column: &str) -> &'a Value {
    let columns = table["columns"].as_array().unwrap();
    &row[columns.iter().position(|it| it == column).unwrap()]
}

#[test]
fn pictures_of_a_camera_come_between_all_kinds_of_ends() {
    let cases = "raw-inproc,raw-inside,jpeg-shm,raw-cyclonedds,raw-plain,jpeg-plain-plain";
    let Some((value, text)) = check(&format!("camera --count 8 --cases {cases}")) else { return };
    let [pictures, used] = [0, 1].map(|at| &value["tables"][at]);
    let rows = pictures["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|it| it[1].as_str().unwrap()).collect();
    let expected = ["inproc", "inside-shm", "shm", "cyclonedds", "cyclonedds-plain"];
    assert_eq!(names[..5], expected, "{text}");
    assert_eq!(names[5..], ["plain-cyclonedds", "plain-plain", "plain-plain"], "{text}");
    for row in rows {
        let of = |column: &str| cell(pictures, row, column).as_f64().unwrap();
        assert_eq!((of("filmed"), of("received")), (8.0, 8.0), "{row}");
        assert!(0.0 < of("mean µs") && of("mean µs") <= of("max µs"), "{row}");
        let is_jpeg = row[0] == "jpeg";
        assert_eq!(of("bytes") < 921_600.0 / 8.0, is_jpeg, "{row}");
        let is_plain = row[1] == "plain-plain";
        assert_eq!(row[2] == "raw:cyclonedds", is_plain, "{row}");
        // What the article says stands behind.
        assert!(row.as_array().unwrap().last().unwrap().is_f64(), "{row}");
    }
    let series = value["series"].as_array().unwrap();
    let of = |case: &str, what: &str| {
        let own = series.iter().filter(|it| it["case"] == case && it["what"] == what);
        own.map(|it| it["values"].as_array().unwrap().len()).collect::<Vec<_>>()
    };
    assert_eq!(of("jpeg-shm", "to the callback"), [8]);
    assert_eq!((of("jpeg-shm", "encoding"), of("raw-inproc", "encoding")), (vec![8], vec![]));
    // Of both processes and of the machine.
    for what in ["user", "system", "context switches"] {
        assert!(of("jpeg-shm", what).len() == 3 && !of("jpeg-shm", what).contains(&0), "{text}");
    }
    let used = used["rows"].as_array().unwrap();
    assert!(used.iter().any(|it| it[1] == "shm" && it[2] == "watcher" && it[5].is_f64()), "{text}");
}

/// A recording that goes with its test.
struct Recorded(PathBuf);

impl Recorded {
    /// Nothing yet.
    fn new(name: &str) -> Self {
        let name = format!("tsuji-lab-test-{}-{name}.mcap", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// Records all that was published by what `publish` makes, which is `count` messages.
    fn with<P>(name: &str, count: u64, publish: impl FnOnce(&Node) -> P) -> Self {
        let recorded = Self::new(name);
        // Those of other tests are not seen from there.
        let context = Context::builder().runtime_dir(recorded.run_time()).isolated();
        let node = context.build().unwrap().node("robot").unwrap();
        let options = RecordOptions::default();
        let definitions = Box::new(Shipped);
        let _publishers = publish(&node);
        let mut recorder = Recorder::create(&node, &recorded.0, options, definitions).unwrap();
        while recorder.progress().messages < count {
            recorder.turn(Duration::from_secs(1)).unwrap();
        }
        recorder.finish().unwrap();
        recorded
    }

    fn run_time(&self) -> PathBuf {
        self.0.with_extension("run")
    }

    fn words(&self, more: &str) -> String {
        format!("camera --input {} {more}", self.0.display())
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_dir_all(self.run_time());
    }
}

/// Publishes messages that whoever comes later has too, as long as the publisher is there.
fn publish<M: Message + 'static>(node: &Node, topic: &str, messages: Vec<M>) -> Publisher<M> {
    let qos = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
    let publisher = node.create_publisher::<M>(topic, qos).unwrap();
    messages.into_iter().for_each(|it| publisher.publish(it).unwrap());
    publisher
}

fn image(encoding: &str, width: u32, value: u8) -> Image {
    let step = width * if encoding == "16UC1" { 2 } else { 3 };
    let data = vec![value; (step * 24) as usize];
    let encoding = encoding.to_owned();
    Image { height: 24, width, encoding, step, data, ..Image::default() }
}

/// A JPEG as a camera's driver sends it.
fn compressed(format: &str, value: u8) -> CompressedImage {
    let mut data = Vec::new();
    let points = vec![value; 48 * 32];
    let encoder = image::codecs::jpeg::JpegEncoder::new(&mut data);
    image::ImageEncoder::write_image(encoder, &points, 48, 32, image::ExtendedColorType::L8)
        .unwrap();
    CompressedImage { format: format.to_owned(), data, ..CompressedImage::default() }
}

/// What is said of a recording that cannot be filmed.
fn refusal(words: &str) -> String {
    let words = words.split_whitespace();
    let output = Command::new(env!("CARGO_BIN_EXE_tsuji-lab")).args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn pictures_of_a_recording_are_filmed_raw_and_as_jpeg() {
    let recorded = Recorded::with("raw", 4, |node| {
        let left = [image("bgr8", 32, 10), image("bgr8", 32, 200), image("rgb8", 48, 90)];
        (publish(node, "/left", left.to_vec()), publish(node, "/words", vec![Text::default()]))
    });
    let cases = "--count 7 --cases raw-inproc,jpeg-shm,raw-plain-cyclonedds";
    let Some((value, text)) = check(&recorded.words(cases)) else { return };
    let [film, pictures] = [0, 1].map(|at| &value["tables"][at]);
    assert!(film["title"].as_str().unwrap().contains("/left of "), "{text}");
    assert!(
        film["note"]
            .as_str()
            .unwrap()
            .starts_with("3 of 3 pictures, which go round; one every 30.0 ms")
    );
    let ty = "sensor_msgs/msg/Image";
    let expect = serde_json::json!([
        [ty, "32 × 24", "bgr8", 2.0, 2304.0],
        [ty, "48 × 24", "rgb8", 1.0, 3456.0]
    ]);
    assert_eq!(film["rows"], expect, "{text}");
    let rows = pictures["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{text}");
    for row in rows {
        let of = |column: &str| cell(pictures, row, column).as_f64().unwrap();
        assert_eq!((of("filmed"), of("received")), (7.0, 7.0), "{row}");
        // Five of the small ones and two of the large one.
        let is_raw = row[0] == "raw";
        assert_eq!(
            of("bytes") == ((5 * 2304 + 2 * 3456) as f64 / 7.0 * 1000.0).round() / 1000.0,
            is_raw,
            "{row}"
        );
    }
}

#[test]
fn pictures_that_cannot_be_had_in_one_way_are_filmed_in_the_other() {
    let words = "--count 5 --cases raw-inproc,jpeg-inproc,jpeg-shm";
    let deep = Recorded::with("deep", 2, |node| {
        publish(node, "/depth", vec![image("16UC1", 32, 1), image("16UC1", 32, 2)])
    });
    let jpeg = Recorded::with("jpeg", 4, |node| {
        let pictures = ["jpeg", "png", "bgr8; jpeg compressed bgr8"].map(|it| compressed(it, 50));
        let mut pictures = pictures.to_vec();
        pictures[1].data = b"\x89PNG".to_vec();
        (publish(node, "/left", pictures), publish(node, "/depth", vec![image("bgr8", 32, 1)]))
    });
    for (recorded, more, absent, why, cases) in [
        (&deep, "", "jpeg", "JPEG is made of bgr8, rgb8 and mono8, not of \"16UC1\"", 1),
        (&jpeg, "--topic /left --recorded-beat", "raw", "which is not decoded here", 2),
    ] {
        let Some((value, text)) = check(&recorded.words(&format!("{words} {more}"))) else {
            return;
        };
        let [told] = &value["absent"].as_array().unwrap()[..] else { panic!("{text}") };
        assert_eq!(told["what"], absent, "{text}");
        assert!(told["why"].as_str().unwrap().contains(why), "{text}");
        let rows = value["tables"][1]["rows"].as_array().unwrap();
        assert!(rows.len() == cases && rows.iter().all(|it| it[0] != absent), "{text}");
    }
    let Some((value, text)) = check(&jpeg.words("--topic /left --count 5 --cases jpeg-shm")) else {
        return;
    };
    let [film, pictures] = [0, 1].map(|at| &value["tables"][at]);
    let note = film["note"].as_str().unwrap();
    assert!(
        note.contains("2 of 3 pictures")
            && note.contains("1 are left out; the first is no JPEG but \"png\""),
        "{text}"
    );
    assert!(film["rows"].as_array().unwrap().iter().all(|it| it[1] == "48 × 32"), "{text}");
    // As it was recorded: nothing is encoded here.
    let bytes = compressed("jpeg", 50).data.len() as f64;
    assert_eq!(cell(pictures, &pictures["rows"][0], "bytes").as_f64(), Some(bytes), "{text}");
}

#[test]
fn a_recording_that_is_cut_off_is_filmed_as_far_as_it_is_whole() {
    let recorded = Recorded::with("cut", 3, |node| {
        publish(node, "/left", (0..3).map(|it| image("mono8", 32, it)).collect())
    });
    let whole = fs::read(&recorded.0).unwrap();
    fs::write(&recorded.0, &whole[..whole.len() - 100]).unwrap();
    let Some((value, text)) = check(&recorded.words("--count 4 --cases raw-shm")) else { return };
    let note = value["tables"][0]["note"].as_str().unwrap();
    assert!(
        note.contains("3 of 3 pictures") && note.contains("the file ends here, in the middle"),
        "{text}"
    );
    assert_eq!(
        cell(&value["tables"][1], &value["tables"][1]["rows"][0], "received"),
        4.0,
        "{text}"
    );
}

#[test]
fn what_cannot_be_filmed_is_said() {
    let check = |recorded: &Recorded, more: &str, expect: &str| {
        let said = refusal(&recorded.words(more));
        assert!(said.contains(expect), "{said}");
    };
    let missing = Recorded::new("missing");
    check(&missing, "", "No such file");
    fs::write(&missing.0, "nothing of the kind").unwrap();
    check(&missing, "", "is no MCAP file: it does not begin as one");
    let words = Recorded::with("words", 1, |node| publish(node, "/words", vec![Text::default()]));
    check(
        &words,
        "",
        "has no pictures, which are sensor_msgs/msg/Image or sensor_msgs/msg/CompressedImage; it has /words (std_msgs/msg/String)",
    );
    let both = Recorded::with("both", 2, |node| {
        (
            publish(node, "/left", vec![image("bgr8", 8, 1)]),
            publish(node, "/right", vec![compressed("png", 1)]),
        )
    });
    check(&both, "", "has pictures on /left, /right; --topic chooses one");
    check(&both, "--topic /up", "--topic /up: ");
    check(&both, "--topic /left --count 100000", "100000 pictures at this beat take 3000 s");
    let none =
        Recorded::with("none", 1, |node| publish(node, "/left", vec![CompressedImage::default()]));
    check(&none, "", "/left has no picture that can be filmed: 1 are no JPEG but \"\"");
}

/// How often all threads of a process have slept.
fn all_slept(process: &Path) -> u32 {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads.map(|it| slept(&it.path())).sum()
}

/// Kills the process that plays `listens` in the first of two cases of `words`, once that which plays `speaks` is at work.
/// Answers what the laboratory wrote in the end.
fn check_death(words: &str, speaks: &str, listens: &str) -> Option<Value> {
    if is_emulated() {
        return None;
    }
    let name: String = words.chars().filter(|it| it.is_ascii_alphanumeric()).collect();
    let mut lab = Lab::start(&name, words, &[]);
    let (listener, speaker) = (lab.role(listens), lab.role(speaks));
    let in_proc = |process: &str| Path::new("/proc").join(process);
    // Once both have slept so often, one speaks and the other listens.
    while slept(&in_proc(&speaker)) <= 30 || all_slept(&in_proc(&listener)) <= 30 {
        lab.is_running();
        std::thread::yield_now();
    }
    kill(&listener);
    let (status, value) = lab.end();
    assert_eq!(status.code(), Some(1), "{value}");
    assert_eq!(value["skipped"].as_array().unwrap().len(), 1, "{value}");
    Some(value)
}

#[test]
fn a_peer_that_dies_is_told_and_the_rest_goes_on() {
    let words = "camera --count 200 --blocks 2 --cases raw-shm,raw-plain-plain";
    let Some(value) = check_death(words, "camera", "watcher") else { return };
    let skipped = &value["skipped"][0];
    assert_eq!(skipped["what"], "raw-shm", "{value}");
    let why = skipped["why"].as_str().unwrap();
    assert!(why.contains("the watcher: it ended (signal: 9"), "{why}");
    assert_eq!(value["tables"][0]["rows"][0][1], "plain-plain", "{value}");
}

/// What a figure is of a server, which begins what it is told of.
fn figure_of<'a>(value: &'a Value, field: &str, what: &str, of: &str) -> &'a Value {
    let is_meant = |it: &&Value| it["what"] == what && it["of"].as_str().unwrap().starts_with(of);
    let found = value[field].as_array().unwrap().iter().find(is_meant);
    found.unwrap_or_else(|| panic!("{what} of {of} in {value}"))
}

#[test]
fn web_clients_are_measured_and_nothing_is_lost() {
    let cases = "in,out,trips,image,many-cbor-raw,connects";
    let words = format!("bridge --quick --count 600 --blocks 2 --cases {cases}");
    // No rosbridge_server and no Python.
    let variables =
        ["AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "PATH"].map(|it| (it, OsStr::new("")));
    let Some((value, text)) = check_with(&words, &variables) else { return };
    let figure =
        |what: &str| figure_of(&value, "figures", what, "tsuji bridge")["figure"].as_f64().unwrap();
    for client in ["", "-article"] {
        for transport in ["in-websocket", "in-tcp-65536", "in-tcp-1024"] {
            for what in ["lost", "altered", "repeated"] {
                assert_eq!(figure(&format!("{transport}{client} {what}")), 0.0, "{text}");
            }
            assert!(0.0 < figure(&format!("{transport}{client}")), "{text}");
            assert!(0.0 < figure(&format!("{transport}{client} CPU/message")), "{text}");
        }
        assert_eq!(figure(&format!("in-udp{client} altered")), 0.0, "{text}");
        assert!(figure(&format!("in-udp{client} lost")) < 1200.0, "{text}");
    }
    for what in ["out lost", "out altered", "image-json lost", "image-cbor-raw lost"] {
        assert_eq!(figure(what), 0.0, "{what}: {text}");
    }
    for what in [
        "out",
        "out CPU/message",
        "trips",
        "trips p99",
        "image-json CPU",
        "image-cbor p99",
        "many-cbor-raw p99",
        "many-cbor-raw RSS",
        "connects",
        "connects RSS",
    ] {
        assert!(0.0 < figure(what), "{what}: {text}");
    }
    for (what, bar) in [("in-websocket", 200.0 * 0.006), ("in-tcp-1024", 220.0 * 0.006)] {
        let judged = figure_of(&value, "figures", what, "tsuji bridge, fast client");
        let told = judged["at_most"].as_f64().unwrap();
        assert!((told - bar).abs() < 1e-6 && judged["verdict"].is_string(), "{judged}");
    }
    let idle = figure_of(&value, "figures", "connects wake-ups in 2 s", "tsuji bridge, 10 clients");
    assert!(idle["verdict"].is_string(), "{text}");
    let [inward, article] = [0, 1].map(|at| &value["tables"][at]);
    let rows = inward["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4 * 2, "{text}");
    for row in rows {
        let of = |column: &str| cell(inward, row, column).as_f64();
        assert_eq!(of("messages"), Some(600.0), "{row}");
        assert!(0.0 < of("sent ms").unwrap() && 0.0 < of("all there ms").unwrap(), "{row}");
        let published = match row[0].as_str().unwrap() {
            "in-tcp-1024" | "in-tcp-1024-article" => Some(11.87),
            "in-tcp-65536" | "in-tcp-65536-article" => Some(255.79),
            "in-udp" | "in-udp-article" => None,
            _ => Some(6.17),
        };
        assert_eq!(of("article all there s"), published, "{row}");
    }
    assert_eq!(article["rows"][0][2], 9922.59, "{text}");
    let values = |case: &str, of: &str, what: &str| {
        let is_meant = |it: &&Value| it["case"] == case && it["of"] == of && it["what"] == what;
        let series = value["series"].as_array().unwrap().iter().find(is_meant).unwrap();
        series["values"].as_array().unwrap().len()
    };
    // A fifth of what is published, and eight pictures but for the first three, in both starts.
    assert_eq!(values("trips", "tsuji bridge", "latency"), 240, "{text}");
    assert_eq!(values("image", "cbor", "latency"), 10, "{text}");
    assert!(0 < values("many", "cbor-raw", "memory"), "{text}");
    assert!(0 < values("connects", "tsuji bridge", "memory"), "{text}");
    let absent = value["absent"].as_array().unwrap();
    let absent: Vec<_> = absent
        .iter()
        .map(|it| (it["what"].as_str().unwrap(), it["why"].as_str().unwrap()))
        .collect();
    let [(ros2, of_ros2), (ros1, of_ros1), (python, _)] = absent[..] else { panic!("{text}") };
    let names = ("rosbridge_server", "rosbridge_server of ROS 1", "python3");
    assert_eq!((ros2, ros1, python), names, "{text}");
    assert!(of_ros2.contains("no ROS 2 is sourced"), "{of_ros2}");
    assert!(of_ros1.contains("no rosbridge_server/rosbridge_tcp of ROS 1"), "{of_ros1}");
}

/// A folder that goes with its test.
struct Prefix(PathBuf);

impl Drop for Prefix {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_rosbridge_server_of_a_sourced_ros_2_stands_beside() {
    let name = format!("tsuji-lab-test-{}-prefix", std::process::id());
    let prefix = Prefix(std::env::temp_dir().join(name));
    let folder = prefix.0.join("lib/rosbridge_server");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("rosbridge_websocket");
    // One that takes the same words, since the real one is mostly not here.
    let script = format!(
        "#!/bin/sh\nfor word in \"$@\"; do case \"$word\" in port:=*) port=\"${{word#port:=}}\";; esac; done\n\
         exec '{}' --bridge-part \"{{\\\"role\\\": \\\"bridge\\\", \\\"folder\\\": \\\"$TSUJI_RUNTIME_DIR\\\", \\\"port\\\": $port}}\"\n",
        env!("CARGO_BIN_EXE_tsuji-lab")
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let words = "bridge --count 600 --blocks 2 --cases in-websocket,in-udp,out";
    let variables = [
        ("AMENT_PREFIX_PATH", prefix.0.as_os_str()),
        ("ROS_DISTRO", OsStr::new("jazzy")),
        ("PATH", OsStr::new("")),
    ];
    let Some((value, text)) = check_with(words, &variables) else { return };
    let absent = value["absent"].as_array().unwrap();
    let others = ["python3", "rosbridge_server of ROS 1"];
    assert!(absent.iter().all(|it| others.iter().any(|other| it["what"] == *other)), "{text}");
    for what in ["in-websocket", "in-websocket-article", "out"] {
        let theirs = figure_of(&value, "figures", what, "rosbridge_server, ");
        assert_eq!(theirs["verdict"], Value::Null, "{theirs}");
        let lost = figure_of(&value, "figures", &format!("{what} lost"), "rosbridge_server, ");
        assert_eq!(lost["figure"], 0.0, "{lost}");
        let ratio = figure_of(&value, "ratios", what, "tsuji bridge / rosbridge_server");
        assert!(0.0 < ratio["figure"].as_f64().unwrap(), "{ratio}");
    }
    let rows = value["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|it| it[1] == "rosbridge_server").count(), 2, "{text}");
}

#[test]
fn the_articles_clients_publish_as_they_did() {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&paths).any(|it| it.join("python3").is_file()) {
        println!("not run: python3 is not on PATH");
        return;
    }
    let words = "bridge --count 600 --blocks 2 --cases in-websocket,in-tcp-1024";
    let Some((value, text)) = check(words) else { return };
    let absent = value["absent"].as_array().unwrap();
    let has_autobahn = absent.iter().all(|it| it["what"] != "autobahn");
    let cases = [("in-tcp-1024-python", true), ("in-websocket-python", has_autobahn)];
    for (case, _) in cases.into_iter().filter(|it| it.1) {
        for what in ["lost", "altered", "repeated"] {
            let figure = figure_of(&value, "figures", &format!("{case} {what}"), "tsuji bridge, ");
            assert_eq!(figure["figure"], 0.0, "{text}");
        }
        let took = figure_of(&value, "figures", case, "tsuji bridge, the article's client");
        assert!(0.0 < took["figure"].as_f64().unwrap() && took["verdict"].is_null(), "{took}");
    }
}

#[test]
fn a_bridge_that_dies_ends_its_case_alone() {
    let words = "bridge --count 60000 --blocks 2 --cases image-json,image-cbor-raw";
    let Some(value) = check_death(words, "speaker", "bridge") else { return };
    assert_eq!(value["skipped"][0]["what"], "image-json", "{value}");
    let why = value["skipped"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("the bridge: it ended (signal: 9"), "{why}");
    let cpu = figure_of(&value, "figures", "image-cbor-raw CPU", "tsuji bridge, one client");
    assert!(0.0 < cpu["figure"].as_f64().unwrap(), "{value}");
}

#[test]
#[ignore = "endurance"]
fn soak_a_million_clients_leave_no_memory_at_the_bridge() {
    let seconds = std::env::var("TSUJI_SOAK_SECONDS").ok().and_then(|it| it.parse().ok());
    let seconds = seconds.unwrap_or(60).min(600);
    let words =
        format!("bridge --cases connects --count 1000000 --blocks 1 --seconds-max {seconds}");
    let Some((value, text)) = check(&words) else { return };
    for what in ["connects growth", "connects wake-ups in 10 s"] {
        assert_eq!(figure_of(&value, "figures", what, "tsuji bridge")["verdict"], "met", "{text}");
    }
}

/// The processors that a thread may run on, by its folder in `/proc`; nothing of one that has ended.
fn allowed(thread: &Path) -> Option<String> {
    let status = fs::read_to_string(thread.join("status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("Cpus_allowed_list:"));
    line.map(|it| it.trim().to_owned())
}

/// All of a process, its first thread included.
fn allowed_of_all(process: &Path) -> Vec<String> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads.filter_map(|it| allowed(&it.path())).collect()
}

/// The thread of that name.
fn thread_of(process: &Path, name: &str) -> Option<PathBuf> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads
        .map(|it| it.path())
        .find(|it| fs::read_to_string(it.join("comm")).is_ok_and(|comm| comm.trim_end() == name))
}

/// Runs one case, and checks that who sends and who receives are on these processors.
fn check_places(placement: &str, sender: &str, receiver: &str) {
    let words = format!("latency --count 4000 --blocks 1 --placement {placement} --sizes 64");
    let start = |case: &str| {
        Lab::start(&format!("{placement}-{case}"), &format!("{words} --cases {case}"), &[])
    };
    let mut lab = start("loan");
    for (role, expect) in [("receiver", receiver), ("sender", sender)] {
        let process = Path::new("/proc").join(lab.role(role));
        // Its threads have it from the first.
        let found = allowed_of_all(&process);
        assert!(!found.is_empty() && found.iter().all(|it| it == expect), "{role}: {found:?}");
    }
    assert!(lab.end().0.success());
    let mut lab = start("pointer");
    let process = Path::new("/proc").join(lab.role("both"));
    assert_eq!(allowed(&process).as_deref(), Some(sender));
    // It goes to its place as its first act.
    loop {
        let thread = thread_of(&process, "receiver");
        if thread.and_then(|it| allowed(&it)).is_some_and(|it| it == receiver) {
            break;
        }
        lab.is_running();
        std::thread::yield_now();
    }
    assert!(lab.end().0.success());
}

#[test]
fn everybody_runs_where_the_placement_says() {
    if is_emulated() {
        return;
    }
    let all = tsuji_platform::processor::allowed().unwrap();
    let first = all[0].to_string();
    let second = all.get(1).unwrap_or(&all[0]).to_string();
    check_places("apart", &first, &second);
    check_places("together", &first, &first);
    let any = allowed(Path::new("/proc/self")).unwrap();
    check_places("free", &any, &any);
}

#[test]
fn every_start_is_told_of_and_in_the_interval() {
    let words = "jitter --count 15 --blocks 3 --cases payload --sizes 16";
    let Some((value, text)) = check(words) else { return };
    assert!(text.contains("start 3 of 3 is measured"), "{text}");
    assert_eq!(value["machine"]["placement"]["placement"], "apart");
    let series = value["series"].as_array().unwrap();
    let transmit: Vec<_> = series.iter().filter(|it| it["what"] == "transmit").collect();
    assert_eq!(transmit.len(), 2, "{text}");
    for it in transmit {
        assert_eq!((&it["starts"], &it["at"][14]), (&serde_json::json!([5, 5, 5]), &14.into()));
        let [low, figure, high] = ["low", "figure", "high"].map(|at| it["median"][at].as_f64());
        assert!(low <= figure && figure <= high, "{it}");
    }
}

#[test]
fn one_processor_is_enough_and_is_told() {
    if is_emulated() {
        return;
    }
    let words = "latency --count 8 --blocks 2 --cases one_node,loan --sizes 64";
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|it| it.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = allowed.trim().split([',', '-']).next().unwrap();
    let mut bound = Command::new("taskset");
    bound.args(["-c", first, env!("CARGO_BIN_EXE_tsuji-lab")]).args(words.split_whitespace());
    let output = bound.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("There is one processor for all"), "{text}");
    assert!(text.contains("tsuji:shm") && text.contains("samples lost: 0"), "{text}");
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_anything_is_measured() {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_tsuji-lab"));
    let output = lab.args(["latency", "--json", "/nowhere/a.json"]).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("write /nowhere/a.json: No such file"), "{complaint}");
}

#[test]
fn a_peer_without_tsuji_that_dies_ends_its_case_alone() {
    for (transports, skipped, says, goes_on) in [
        (
            "raw:cyclonedds,raw:iceoryx2",
            "jitter-raw:cyclonedds",
            "the listener: it ended (signal: 9",
            "raw:iceoryx2",
        ),
        // Its speaker notices by itself. It is measured a second time.
        (
            "raw:unix-socket",
            "jitter-raw:unix-socket",
            "the speaker: Unix socket: Broken pipe",
            "raw:unix-socket",
        ),
    ] {
        let words =
            format!("jitter --count 1000 --blocks 2 --cases jitter --transports {transports}");
        let Some(value) = check_death(&words, "speaker", "listener") else { return };
        assert_eq!(value["skipped"][0]["what"], skipped, "{value}");
        let why = value["skipped"][0]["why"].as_str().unwrap();
        assert!(why.contains(says), "{why}");
        // Behind it stands the row of the article.
        let rows = value["tables"][0]["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0][0]), (2, &goes_on.into()), "{value}");
    }
}

#[test]
fn wrong_usage_is_said_with_what_is_allowed() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tsuji-lab")).args(["latency", "--fast"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("unexpected argument '--fast'"));
}

#[test]
fn an_interrupt_keeps_what_is_measured_and_leaves_nothing() {
    if is_emulated() {
        return;
    }
    let words = "latency --blocks 2 --count 4";
    let lab = Lab::start_read("interrupt", words);
    // The machine, who is where, perhaps a warning, what is absent, and then what is whole.
    lab.process.output.find(HANG, |it| it == "start 1 of 2 is measured").unwrap();
    assert!(lab.process.signal(Signal::Interrupt));
    let last = lab.process.output.rest(HANG).unwrap();
    let (status, value) = lab.end();
    assert_eq!(status.code(), Some(130));
    assert!(
        last.iter().any(|it| it.starts_with("Bars: ") && it.ends_with("not measured: 1.")),
        "{last:?}"
    );
    assert!(!value["rows"].as_array().unwrap().is_empty());
    assert_eq!(value["skipped"].to_string(), r#"[{"what":"the rest","why":"interrupted"}]"#);
}
