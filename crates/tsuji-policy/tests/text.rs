//! Reading, refusing, showing and writing policy files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use tsuji_core::{
    Conditions, DraftPolicy, Export, Interop, Origin, Peers, Policy, Prefer, Reliability, Robot,
    RtpsEngine, Rule, Scopes, Setting, Size, Sourced, StatedSize, TopicPattern, TransportId,
    TransportSettings,
};
use tsuji_policy::{PolicyErrors, PolicyFile, load, show, to_xml};

const KNOWN: [&str; 3] = ["inproc", "shm", "cyclonedds"];

const WHOLE: &str = r#"<?xml version="1.0"?>
<!-- Everything there is. -->
<tsuji prefer="memory" interop="both" engine="fastdds" builtin="off">
  <size line="128KiB"/>
  <topic pattern="/camera/**" size="large" expected="900KiB"/>
  <topic pattern="/map" expected="4MB"/>
  <rule name="b" size="large" scope="local remote" peer="tsuji foreign" topic="/camera/*"
        reliability="reliable" prefer="memory" use="shm  cyclonedds"/>
  <rule priority="10" use="radio"/>
  <forbid name="f &amp; g" peer="fast other" use="inproc"/>
  <transport name="shm"><set key="memory_bytes_max" value="1GiB"/></transport>
  <transport name="radio" plugin="libradio.so"/>
  <robot name="fleet/r2" shared="/clock  /fleet/**"/>
  <export topic="/camera/**" rate="5"/>
</tsuji>
"#;

#[test]
fn everything_is_shown_with_its_origin() {
    let policy = load("w.xml", WHOLE.as_bytes(), &KNOWN).unwrap();
    let rows: Vec<String> = show(&policy)
        .into_iter()
        .map(|row| {
            let origin = row.origin.map_or_else(|| "-".to_owned(), |origin| origin.to_string());
            let priority =
                row.priority.map_or_else(|| "-".to_owned(), |priority| priority.to_string());
            [row.kind.to_owned(), row.name, row.when, row.value, priority, origin].join(" | ")
        })
        .collect();
    let expect = [
        "set | prefer |  | memory | - | w.xml:3",
        "set | interop |  | rtps zenoh | - | w.xml:3",
        "set | engine |  | fastdds | - | w.xml:3",
        "set | size line |  | 128KiB | - | w.xml:4",
        "set | robot |  | fleet/r2, shared /clock /fleet/** | - | w.xml:13",
        "export |  | /camera/** | at most 5 Hz | - | w.xml:14",
        "topic |  | /camera/** | large, expected 900KiB | - | w.xml:5",
        "topic |  | /map | expected 4000000B | - | w.xml:6",
        "forbid | f & g | peer=fast other | inproc | - | w.xml:10",
        "rule |  | always | radio | 10 | w.xml:9",
        "rule | b | size=large, scope=local remote, reliability=reliable, peer=tsuji foreign, \
         topic=/camera/*, prefer=memory | shm cyclonedds | 0 | w.xml:7",
        "transport | shm |  | memory_bytes_max = 1GiB | - | w.xml:11",
        "transport | radio |  | plugin libradio.so | - | w.xml:12",
    ];
    assert_eq!(rows, expect);
}

#[test]
fn a_file_lies_over_the_builtin_default() {
    let policy = load("t.xml", br#"<tsuji interop="none"/>"#, &KNOWN).unwrap();
    let origins: Vec<String> = show(&policy)
        .into_iter()
        .filter_map(|row| row.origin.map(|origin| format!("{}={} {origin}", row.name, row.value)))
        .take(3)
        .collect();
    assert_eq!(origins[0], "prefer=latency builtin:default.xml:10");
    assert_eq!(origins[1], "interop=none t.xml:1");
    assert_eq!(policy.rules().len(), tsuji_policy::builtin_default().rules().len());
}

fn errors(text: &str) -> PolicyErrors {
    load("t.xml", text.as_bytes(), &KNOWN).unwrap_err()
}

#[track_caller]
fn refused(text: &str, expect: &[&str]) {
    let told = errors(text).to_string();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines, expect);
}

#[test]
fn unknown_words_are_told_with_their_place_and_what_is_allowed() {
    refused(
        "<tsuji>\n  <rule use=\"shm  sharm\"/>\n</tsuji>",
        &["t.xml:2:19: \"sharm\" is not a transport (did you mean \"shm\"?); \
           allowed: inproc, shm, cyclonedds"],
    );
    refused(
        "<tsuji>\n  <rule sise=\"large\" use=\"shm\"/>\n</tsuji>",
        &[
            "t.xml:2:9: \"sise\" is not an attribute of \"rule\" (did you mean \"size\"?); allowed: \
           name, priority, use, size, scope, reliability, peer, topic, prefer",
        ],
    );
    refused(
        "<tsuji><rul use=\"shm\"/></tsuji>",
        &["t.xml:1:9: \"rul\" is not an element here (did you mean \"rule\"?); \
           allowed: size, topic, rule, forbid, transport, robot, export"],
    );
    refused("<policy/>", &["t.xml:1:2: \"policy\" is not an element here; allowed: tsuji"]);
    refused(
        "<tsuji prefer=\"speed\" interop=\"dds\" engine=\"fast\" builtin=\"no\"/>",
        &[
            "t.xml:1:16: \"speed\" is not a preference; allowed: latency, memory",
            "t.xml:1:32: \"dds\" is not a kind of interop; allowed: rtps, zenoh, ros1, both, none",
            "t.xml:1:45: \"fast\" is not a known engine; allowed: cyclonedds, fastdds, both",
            "t.xml:1:60: \"no\" is not a switch; allowed: on, off",
        ],
    );
    refused(
        "<tsuji><rule size=\"huge\" scope=\"local wide\" reliability=\"Reliable\" peer=\"dds\" \
         use=\"shm\"/></tsuji>",
        &[
            "t.xml:1:20: \"huge\" is not a size; allowed: small, large",
            "t.xml:1:39: \"wide\" is not a scope; allowed: intra, local, remote",
            "t.xml:1:58: \"Reliable\" is not a reliability (did you mean \"reliable\"?); \
             allowed: best_effort, reliable",
            "t.xml:1:74: \"dds\" is not a peer; \
             allowed: foreign, tsuji, cyclone, fast, zenoh, ros1, other",
        ],
    );
}

#[test]
fn columns_count_characters() {
    refused(
        "<tsuji><!-- 辻 --><rule use=\"はし\"/></tsuji>",
        &["t.xml:1:29: \"はし\" is not a transport; allowed: inproc, shm, cyclonedds"],
    );
}

#[test]
fn what_is_missing_empty_twice_or_out_of_range() {
    refused("<tsuji><rule/></tsuji>", &["t.xml:1:9: \"rule\" lacks the attribute \"use\""]);
    refused(
        "<tsuji><rule use=\" \"/></tsuji>",
        &["t.xml:1:14: \"use\" is empty; leave it out, or name at least one"],
    );
    refused("<tsuji><rule use=\"shm shm\"/></tsuji>", &["t.xml:1:23: \"shm\" is named twice"]);
    refused(
        "<tsuji><size line=\"64 kib\"/><size line=\"0\"/></tsuji>",
        &[
            "t.xml:1:20: \"64 kib\" is not a size; it is a whole number and one of \
             B, KiB, KB, MiB, MB, GiB, GB",
            "t.xml:1:41: \"0\" is no line; it is at least 1B",
        ],
    );
    refused(
        "<tsuji><size line=\"1\"/><size line=\"2\"/></tsuji>",
        &["t.xml:1:25: \"size\" is written twice"],
    );
    refused(
        "<tsuji><rule priority=\"high\" use=\"shm\"/></tsuji>",
        &["t.xml:1:24: \"high\" is not a priority; it is -2147483648 to 2147483647"],
    );
    refused(
        "<tsuji><rule name=\"a\" use=\"shm\"/>\n<rule name=\"a\" use=\"shm\"/></tsuji>",
        &["t.xml:2:13: \"a\" is the name of the rule in line 1 already"],
    );
    refused(
        "<tsuji><robot name=\"r-2\" shared=\"/a /b//c\"/><robot/><export/>\n<robot name=\"a\" shared=\" \"/><robot name=\"b\"/></tsuji>",
        &[
            "t.xml:1:21: \"r-2\" is no name of a robot; allowed: letters, digits and '_', not beginning with a digit, in \
             parts with '/' between, at most 100 characters",
            "t.xml:1:40: \"/b//c\" is not a topic pattern, character 4: a token is missing here",
            "t.xml:1:46: \"robot\" lacks the attribute \"name\"",
            "t.xml:1:54: \"export\" lacks the attribute \"topic\"",
            "t.xml:2:17: \"shared\" is empty; leave it out, or name at least one",
            "t.xml:2:30: \"robot\" is written twice",
        ],
    );
    refused(
        "<tsuji><export topic=\"/a\" rate=\"0\"/><export topic=\"/a\" rate=\"5 Hz\" to=\"all\"/></tsuji>",
        &[
            "t.xml:1:33: \"0\" is no rate; allowed: 0.001 to 1000, in Hz, with three digits behind the point at most",
            "t.xml:1:62: \"5 Hz\" is no rate; allowed: 0.001 to 1000, in Hz, with three digits behind the point at most",
            "t.xml:1:68: \"to\" is not an attribute of \"export\"; allowed: topic, rate",
        ],
    );
    refused(
        "<tsuji><topic pattern=\"/a//b\" size=\"large\"/><topic pattern=\"/a\"/></tsuji>",
        &[
            "t.xml:1:27: \"/a//b\" is not a topic pattern, character 4: a token is missing here",
            "t.xml:1:46: \"topic\" states nothing; give it one of the attributes; \
             allowed: size, expected",
        ],
    );
    refused("<tsuji>rules\n</tsuji>", &["t.xml:1:8: \"rules\" is text, which has no place here"]);
    refused(
        "<tsuji><rule use=\"shm\"><size/></rule></tsuji>",
        &["t.xml:1:25: \"size\" has no place inside \"rule\""],
    );
}

#[test]
fn transports_and_plugins() {
    refused(
        "<tsuji><transport name=\"radio\"/></tsuji>",
        &["t.xml:1:25: \"radio\" is not a transport; allowed: inproc, shm, cyclonedds"],
    );
    refused(
        "<tsuji><transport name=\"shm\" plugin=\"x.so\"/></tsuji>",
        &["t.xml:1:30: \"plugin\" has no place here, shm is tsuji's own"],
    );
    refused(
        "<tsuji><transport name=\"a b\" plugin=\"x.so\"/></tsuji>",
        &["t.xml:1:25: \"a b\" is not a name for a transport; it is a letter, then letters, \
           digits, '_' and '-', at most 200"],
    );
    refused(
        "<tsuji><transport name=\"shm\"/><transport name=\"shm\">\
         <set key=\"k\" value=\"1\"/><set key=\"k\" value=\"2\"/><set key=\"\"/></transport></tsuji>",
        &[
            "t.xml:1:32: \"shm\" is written twice",
            "t.xml:1:78: \"k\" is written twice",
            "t.xml:1:102: \"set\" lacks the attribute \"value\"",
            "t.xml:1:106: \"key\" has 0 characters; it has 1 to 200",
        ],
    );
}

#[test]
fn what_is_not_xml() {
    refused(
        "",
        &["t.xml:1:1: \"end of file\" comes too early: an element is not closed, or there is none"],
    );
    refused(
        "<tsuji>\n  <rule",
        &["t.xml:2:8: \"end of file\" comes too early: an element is not closed, or there is none"],
    );
    let told = errors("<tsuji>\n  <rule use=shm/>\n</tsuji>").to_string();
    assert!(told.starts_with("t.xml:2:13: \"shm\" is not well-formed XML: "), "{told}");
    let told = errors("<tsuji>\n</tsuij>").to_string();
    assert!(told.starts_with("t.xml:2:"), "{told}");
    let told = load("t.xml", b"<tsuji>\n \xff</tsuji>", &KNOWN).unwrap_err().to_string();
    assert_eq!(told, "t.xml:2:2: \"\\\\xff\" is not UTF-8");
}

#[test]
fn limits_hold_against_hostile_files() {
    let bomb = "<!DOCTYPE tsuji [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>\n\
                <tsuji>&b;</tsuji>";
    refused(bomb, &["t.xml:1:1: \"<!DOCTYPE\" is refused: a policy file has no document type"]);
    let deep = "<a>".repeat(300_000);
    refused(&deep, &["t.xml:1:50: \"a\" is nested too deep; the most is 16 levels"]);
    let wide: String = (0..100_000).map(|n| format!(" a{n}=''")).collect();
    let wide = format!("<tsuji{}/>", &wide[..900_000]);
    refused(&wide, &["t.xml:1:2: \"tsuji\" has more than 256 attributes"]);
    let large = " ".repeat((1 << 20) + 1);
    refused(
        &large,
        &["t.xml:1:1: \"1048577\" bytes are too many; a policy file has at most 1048576"],
    );
    let elements = format!("<tsuji>{}</tsuji>", "<x/>".repeat(100_000));
    refused(&elements, &["t.xml:1:1: \"tsuji\" has more than 20000 elements, comments and texts"]);
    let rules = format!("<tsuji>{}</tsuji>", "<rule use='shm'/>\n".repeat(1001));
    refused(&rules, &["t.xml:1001:2: \"rule\" is one too many; a file has at most 1000 rules"]);
    let many = errors(&format!("<tsuji>{}</tsuji>", "<x/>".repeat(90)));
    assert_eq!((many.errors.len(), many.omitted), (50, 40));
    let long = errors(&format!("<tsuji><rule use='{}'/></tsuji>", "x".repeat(500_000)));
    assert!(long.to_string().len() < 300);
    // The parser keeps the lengths around a value in few bits.
    let wide =
        format!("<tsuji prefer{}=\n'辻'><{}='1'/></tsuji>", " ".repeat(70_000), "x".repeat(70_000));
    assert!(load("t.xml", wide.as_bytes(), &KNOWN).is_err());
    let gap = format!("<tsuji><size {}\n=\n'1辻'/></tsuji>", "辻".repeat(70_000));
    assert!(load("t.xml", gap.as_bytes(), &KNOWN).is_err());
    let gap = format!("<tsuji><rule use{}=\n'辻 shm 辻'/></tsuji>", " ".repeat(255));
    assert!(check_places(&gap, &errors(&gap)).is_ok());
    let fits = format!("<tsuji>{}</tsuji>", "<rule use='shm'/>".repeat(1000));
    assert!(load("t.xml", fits.as_bytes(), &KNOWN).is_ok());
}

#[test]
fn no_error_text_is_lost_in_a_comment_or_an_instruction() {
    assert!(load("t.xml", b"<tsuji><!-- a='b' <x> --><?pi <y> ?></tsuji>", &KNOWN).is_ok());
}

/// What a policy says, without where it says it.
fn meaning(policy: &Policy) -> DraftPolicy {
    let origin = Origin { file: "".into(), line: 0 };
    let mut draft = policy.parts().clone();
    draft.prefer.origin = None;
    draft.interop.origin = None;
    draft.engine.origin = None;
    draft.size_line_bytes.origin = None;
    for rule in draft.rules.iter_mut().chain(&mut draft.forbids) {
        rule.origin = origin.clone();
    }
    for stated in &mut draft.stated_sizes {
        stated.origin = origin.clone();
    }
    if let Some(robot) = &mut draft.robot {
        robot.origin = None;
    }
    for export in &mut draft.exports {
        export.origin = origin.clone();
    }
    for transport in &mut draft.transports {
        transport.origin = origin.clone();
        for setting in &mut transport.settings {
            setting.origin = origin.clone();
        }
    }
    draft
}

fn any_word<T: Clone + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

fn any_interop() -> impl Strategy<Value = Interop> {
    any::<[bool; 3]>().prop_map(|is_in| {
        let wires = [Interop::RTPS, Interop::ZENOH, Interop::ROS1];
        let wires = wires.into_iter().zip(is_in).filter(|(_, is_in)| *is_in);
        wires.fold(Interop::NONE, |all, (wire, _)| all.and(wire))
    })
}

fn any_peers() -> impl Strategy<Value = Peers> {
    any::<[bool; 6]>().prop_filter("a list is not empty", |all| all.contains(&true)).prop_map(
        |[tsuji, cyclone, fast, zenoh, ros1, other]| Peers {
            tsuji,
            cyclone,
            fast,
            zenoh,
            ros1,
            other,
        },
    )
}

fn any_scopes() -> impl Strategy<Value = Scopes> {
    any::<[bool; 3]>()
        .prop_filter("a list is not empty", |all| all.contains(&true))
        .prop_map(|[intra, local, remote]| Scopes { intra, local, remote })
}

fn any_conditions() -> impl Strategy<Value = Conditions> {
    (
        prop::option::of(any_word(Size::ALL)),
        prop::option::of(any_scopes()),
        prop::option::of(any_word(Reliability::ALL)),
        prop::option::of(any_peers()),
        prop::option::of("(/[a-z*_]{1,3}[a-z]){1,3}".prop_filter("**", |it| !it.contains("**"))),
        prop::option::of(any_word(Prefer::ALL)),
    )
        .prop_map(|(size, scope, reliability, peer, topic, prefer)| {
            let topic = topic.map(|topic| topic.parse().unwrap());
            Conditions { size, scope, reliability, peer, topic, prefer }
        })
}

fn origin() -> Origin {
    Origin { file: "p".into(), line: 1 }
}

fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
    let transports = prop::sample::subsequence(&["inproc", "shm", "cyclonedds", "radio"], 1..=4);
    let rule = (any::<i32>(), any::<Option<()>>(), any_conditions(), transports.prop_shuffle());
    prop::collection::vec(rule, 0..6).prop_map(|rules| {
        let rules = rules.into_iter().enumerate();
        rules
            .map(|(at, (priority, named, conditions, transports))| Rule {
                name: named.map(|()| format!("\"<&>'\n\t {at}").into()),
                priority,
                conditions,
                transports: transports.into_iter().map(TransportId::new).collect(),
                origin: origin(),
            })
            .collect()
    })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let value = "[ -~\t\n\r辻]{0,8}";
    (
        (any_word(Prefer::ALL), any_interop(), any_word(RtpsEngine::ALL), 1..=u64::MAX),
        any_rules(),
        any_rules(),
        prop::collection::vec((any_word(Size::ALL), any::<Option<u64>>()), 0..3),
        prop::collection::vec(value, 0..3),
        (prop::option::of("[a-z]{1,3}(/[A-Z_]{1,3})?"), 0..3usize, 0..3usize),
    )
        .prop_map(
            |((prefer, interop, engine, line), rules, mut forbids, stated, values, robot)| {
                let (robot, shared, exports) = robot;
                let pattern = |at: usize| format!("/t{at}/**").parse::<TopicPattern>().unwrap();
                let robot = robot.map(|name| Sourced {
                    value: Robot::new(&name, (0..shared).map(pattern).collect()).unwrap(),
                    origin: None,
                });
                let exports = (0..exports).map(|at| Export {
                    topic: pattern(at),
                    rate: (at % 2 == 1).then(|| "7.5".parse().unwrap()),
                    origin: origin(),
                });
                for rule in &mut forbids {
                    rule.priority = 0;
                    rule.name = None;
                }
                let stated_sizes = stated
                    .into_iter()
                    .map(|(size, expected_bytes)| StatedSize {
                        topic: "/a/**".parse().unwrap(),
                        size: Some(size),
                        expected_bytes,
                        origin: origin(),
                    })
                    .collect();
                let settings = values
                    .into_iter()
                    .enumerate()
                    .map(|(at, value)| Setting {
                        key: format!("k{at}").into(),
                        value: value.into(),
                        origin: origin(),
                    })
                    .collect();
                let radio = TransportSettings {
                    transport: TransportId::new("radio"),
                    plugin: Some("libradio.so".into()),
                    settings,
                    origin: origin(),
                };
                Policy::new(DraftPolicy {
                    prefer: Sourced { value: prefer, origin: None },
                    interop: Sourced { value: interop, origin: None },
                    engine: Sourced { value: engine, origin: None },
                    size_line_bytes: Sourced { value: line, origin: None },
                    rules,
                    forbids,
                    stated_sizes,
                    transports: vec![radio],
                    robot,
                    exports: exports.collect(),
                })
                .unwrap()
            },
        )
}

/// Every error stands at a character of the text or just past the end of one of its lines.
fn check_places(text: &str, errors: &PolicyErrors) -> Result<(), TestCaseError> {
    prop_assert!(!errors.errors.is_empty());
    let lines: Vec<&str> = text.split('\n').collect();
    for error in &errors.errors {
        let line = lines.get(error.line as usize - 1);
        prop_assert!(line.is_some(), "{error}");
        let columns = line.map_or(0, |line| line.chars().count()) + 1;
        prop_assert!((1..=columns).contains(&(error.column as usize)), "{error}");
    }
    Ok(())
}

#[test]
fn shipped_files_read_back_as_written() {
    for (known, text) in [
        (&KNOWN[..], WHOLE),
        (&["inproc", "shm", "cyclonedds", "fastdds", "zenoh", "ros1"], tsuji_policy::BUILTIN_TEXT),
    ] {
        let policy = load("t.xml", text.as_bytes(), known).unwrap();
        let again = load("u.xml", to_xml(&policy).as_bytes(), known).unwrap();
        assert_eq!(meaning(&again), meaning(&policy));
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(policy in any_policy()) {
        let text = to_xml(&policy);
        match load("p.xml", text.as_bytes(), &KNOWN) {
            Ok(again) => prop_assert_eq!(meaning(&again), meaning(&policy)),
            Err(errors) => prop_assert!(false, "{}\n{}", errors, text),
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        drop(load("t.xml", &bytes, &KNOWN));
    }

    #[test]
    fn random_markup_is_refused_inside(text in "(<tsuji>)?([<>/=\"'&;!?\\[\\]a-f辻 \n-]|<rule |use=|<!--|-->|<\\?|<!\\[CDATA\\[){0,40}(</tsuji>)?") {
        if let Err(errors) = load("t.xml", text.as_bytes(), &KNOWN) {
            check_places(&text, &errors)?;
        }
    }

    #[test]
    fn a_mutated_file_is_read_or_refused_inside(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0_u8..4, prop::sample::select(vec![
                "<", ">", "\"", "&", "/", " ", "\n", "=", "x", "辻", "<rule ", "</tsuji>", "&amp;", "0",
            ])),
            1..6,
        ),
    ) {
        let mut chars: Vec<char> = WHOLE.chars().collect();
        for (at, kind, word) in changes {
            // Only an earlier change can have left nothing.
            if chars.is_empty() {
                break;
            }
            let at = at.index(chars.len());
            match kind {
                0 => drop(chars.remove(at)),
                1 => drop(chars.splice(at..at, word.chars())),
                2 => drop(chars.splice(at..=at, word.chars())),
                _ => chars.truncate(at.max(1)),
            }
        }
        let text: String = chars.into_iter().collect();
        if let Err(errors) = load("t.xml", text.as_bytes(), &KNOWN) {
            check_places(&text, &errors)?;
        }
    }
}

#[test]
fn words_of_older_files_are_understood_with_a_warning() {
    let load = |peer: &str| {
        let text = format!("<tsuji>\n<rule use=\"shm\" peer=\"{peer}\"/></tsuji>");
        PolicyFile::parse("robot.xml", text.as_bytes(), &["shm"]).unwrap()
    };
    let (old, new) = (load("plain"), load("foreign"));
    assert_eq!(old.warnings(), ["robot.xml:2: \"plain\" is \"foreign\" now"]);
    assert!(new.warnings().is_empty());
    assert_eq!(old.resolve(), new.resolve());
}
