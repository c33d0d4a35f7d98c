//! Launch files mean what they mean to ROS 2: tables that were recorded from its launch, launch_ros and rclpy.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::path::Path;

use support::machine;
use tsuji_launch::plan;

/// The variables of the tables.
const VARIABLES: &[(&str, &str)] = &[
    ("a", "A"),
    ("sp", "x y"),
    ("e", ""),
    ("one", "1"),
    ("lst", "[1, 2]"),
    ("txt", "it's"),
    ("f", "1.5"),
    ("b", "on"),
    ("tb", "a\\d"),
];

/// The words of the one process that the body asks for.
fn argv(body: &str) -> Result<Vec<String>, String> {
    let mut machine = machine();
    let escaped = |text: &str| text.replace('\\', "\\\\");
    let lets = VARIABLES
        .iter()
        .map(|(name, value)| format!("<let name=\"{name}\" value=\"{}\"/>", escaped(value)));
    let text = format!("<launch>{}{body}</launch>", lets.collect::<String>());
    machine.files.insert("/robot/t.xml".into(), text);
    let plan = plan(&machine, Path::new("/robot/t.xml"), &[]).map_err(|it| it.to_string())?;
    Ok(plan.processes.into_iter().next().unwrap().argv)
}

fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// Checks the rows of a table, but for those of which is said why they differ. All that differ are told.
fn check(
    table: &str,
    differing: &[(&str, &str)],
    found: impl Fn(&[&str]) -> (Result<String, String>, Option<String>),
) {
    let mut wrong = Vec::new();
    let mut rows = 0;
    for row in table.lines().filter(|it| !it.starts_with('#')) {
        let columns: Vec<&str> = row.split('\t').collect();
        let (found, expect) = found(&columns);
        let is_right = found.as_ref().ok() == expect.as_ref();
        let differs = differing.iter().any(|(of, why)| *of == row && !why.is_empty());
        if is_right == differs {
            wrong.push(format!("{row:?}: {found:?}"));
        }
        rows += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(20 < rows, "{rows}");
}

#[test]
fn substitutions() {
    // `let` rather than `args`, whose words are split.
    let differing = [
        (
            "$(var nope '\\\\')\trefused",
            "there a backslash at the end of quotes hides the quote, whatever stands before it",
        ),
        (
            "$(equals \"$(var e)\" '')\tis\tfalse",
            "there '' is the text [], so that this is refused rather than false",
        ),
    ];
    check(include_str!("data/substitutions.tsv"), &differing, |columns| {
        let [text, is_refused, rest @ ..] = columns else { panic!("{columns:?}") };
        let found = argv(&format!(
            "<let name=\"it\" value=\"{}\"/><node exec=\"camera\" args=\"$(var it)\"/>",
            attribute(text)
        ));
        let expect = (*is_refused == "is").then(|| rest.first().unwrap_or(&"").to_string());
        (found.map(|it| it[1].clone()), expect)
    });
}

#[test]
fn words_of_args() {
    check(include_str!("data/words.tsv"), &[], |columns| {
        let [text, expect] = columns else { panic!("{columns:?}") };
        let found = argv(&format!("<node exec=\"camera\" args=\"{}\"/>", attribute(text)));
        (found.map(|it| it[1..].join("|")), Some((*expect).to_owned()))
    });
}

#[test]
fn values_of_parameters() {
    let said =
        "what is said to be a text remains one; there the node reads a number or a truth value";
    let huge = "an integer of more than 64 bits is refused; there the node reads an inexact double";
    let empty = "an empty list has the type of the parameter";
    let differing = [
        ("'y'\t\t-\tis\ttrue", said),
        ("'1e3'\t\t-\tis\t1000.0", said),
        ("y\tstr\t-\tis\ttrue", said),
        ("1e3\tstr\t-\tis\t1000.0", said),
        ("nan\tstr\t-\tis\t.nan", said),
        ("[y, n]\tlist_of_str\t-\tis\t[true, false]", said),
        ("['y', a]\t\t-\trefused\t", said),
        (
            "[y, a]\t\t-\trefused\t",
            "words of which a node would read one as a truth value are texts",
        ),
        ("9223372036854775808\t\t-\tis\t9.223372036854776e+18", huge),
        ("100000000000000000000\t\t-\tis\t1.0e+20", huge),
        ("?\t\t-\trefused\t", "a lone question mark is a text to the reader of YAML here"),
        ("1\t'int'\t-\tis\t1", "a type has no quotes"),
        ("[]\tlist_of_int\t-\trefused\t", empty),
        ("[1, 2]\tlist_of_float\t-\trefused\t", "a whole number is a float"),
        ("[1.0, 2]\tlist_of_float\t-\trefused\t", "a whole number is a float"),
        ("$(var lst)\tlist_of_int\t-\trefused\t", "a list may come from a substitution"),
    ];
    check(include_str!("data/parameters.tsv"), &differing, |columns| {
        let [value, ty, separator, is_refused, expect] = columns else { panic!("{columns:?}") };
        let mut attributes = format!("value=\"{}\"", attribute(value));
        if !ty.is_empty() {
            attributes.push_str(&format!(" type=\"{ty}\""));
        }
        if *separator != "-" {
            attributes.push_str(&format!(" value-sep=\"{separator}\""));
        }
        let found = argv(&format!("<node exec=\"camera\"><param name=\"p\" {attributes}/></node>"));
        let found = found.map(|it| it.last().unwrap().strip_prefix("p:=").unwrap().to_owned());
        (found, (*is_refused == "is").then(|| (*expect).to_owned()))
    });
}

#[test]
fn tags_of_values_mean_what_pyyaml_makes_of_them() {
    for (value, ty, expect) in [
        ("!!str 1", "", Some("\"1\"")),
        ("!!str 1", "str", Some("\"!!str 1\"")),
        ("!!int '5'", "", Some("5")),
        ("!!float 1", "", Some("1.0")),
        ("!!bool 'on'", "", Some("true")),
        ("!!bool 'on'", "bool", Some("true")),
        ("[!!float 1, 2.5]", "", Some("[1.0, 2.5]")),
        ("[!!str 1, a]", "", Some("[\"1\", \"a\"]")),
        ("!!null x", "", None),
        // What it cannot construct is a text to launch.
        ("!foo x", "", Some("\"!foo x\"")),
        ("!!int x", "", Some("\"!!int x\"")),
        ("!!str [1]", "", Some("\"!!str [1]\"")),
    ] {
        let ty = if ty.is_empty() { String::new() } else { format!("type=\"{ty}\"") };
        let param = format!("<param name=\"p\" value=\"{}\" {ty}/>", attribute(value));
        let found = argv(&format!("<node exec=\"camera\">{param}</node>"));
        let found = found.map(|it| it.last().unwrap().strip_prefix("p:=").unwrap().to_owned());
        assert_eq!(found.as_ref().ok().map(String::as_str), expect, "{value} {ty}: {found:?}");
    }
}
