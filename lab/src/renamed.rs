//! Words of the command that were others once: they are still taken, with a line that says the new one; and the same in reports
//! that were written then.

use serde_json::Value;

/// Experiments, each as it was and as it is.
const EXPERIMENTS: [(&str, &str); 3] =
    [("passing", "latency"), ("cadence", "jitter"), ("limits", "budgets")];

const FLAGS: [(&str, &str); 1] = [("--roads", "--transports")];

/// Cases, whose names begin so.
const CASES: [(&str, &str); 2] = [("cadence", "jitter"), ("newcomer", "late-joiner")];

/// The words as they are now, and what is to be said of those that were others.
pub(crate) fn renew(words: &[String]) -> (Vec<String>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut note = |old: &str, new: &str| {
        let warning = format!("warning: {old:?} is {new:?} now");
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    };
    let mut renewed: Vec<String> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let is_experiment = at == 0 || at == 1 && words[0] == "help";
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (&**word, None),
        };
        let of_case = renewed.last().is_some_and(|it| it == "--cases");
        let word = if is_experiment {
            exactly(&EXPERIMENTS, word, &mut note)
        } else if of_case {
            cases(word, &mut note)
        } else {
            match (exactly(&FLAGS, name, &mut note), value) {
                (name, Some(value)) if name == "--cases" => {
                    format!("{name}={}", cases(value, &mut note))
                }
                (name, Some(value)) => format!("{name}={value}"),
                (name, None) => name,
            }
        };
        renewed.push(word);
    }
    (renewed, warnings)
}

fn exactly(known: &[(&str, &str)], word: &str, note: &mut impl FnMut(&str, &str)) -> String {
    let Some((old, new)) = known.iter().find(|it| it.0 == word) else { return word.to_owned() };
    note(old, new);
    (*new).to_owned()
}

fn cases(words: &str, note: &mut impl FnMut(&str, &str)) -> String {
    let each = words.split(',').map(|word| match begins(word) {
        Some((old, new)) => {
            note(old, new);
            word.replacen(old, new, 1)
        }
        None => word.to_owned(),
    });
    each.collect::<Vec<_>>().join(",")
}

/// The old and the new begin of the name of a case.
fn begins(word: &str) -> Option<(&'static str, &'static str)> {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['-', ' ']);
    CASES.into_iter().find(|(old, _)| word.strip_prefix(old).is_some_and(ends))
}

/// A report of schema 1 in the words of schema 2.
pub(crate) fn renew_report(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(transport) = fields.remove("carrier") {
                fields.insert("transport".to_owned(), transport);
            }
            fields.values_mut().for_each(renew_report);
        }
        Value::Array(values) => values.iter_mut().for_each(renew_report),
        Value::String(word) => {
            let whole = EXPERIMENTS.into_iter().chain([("road", "transport")]);
            if let Some((_, new)) = whole.into_iter().find(|it| it.0 == word) {
                *word = new.to_owned();
            } else if let Some((old, new)) = begins(word) {
                *word = word.replacen(old, new, 1);
            }
        }
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(words: &str, expect: &str, warned: &[&str]) {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let (renewed, warnings) = renew(&words);
        assert_eq!(
            (renewed.join(" ").as_str(), warnings),
            (expect, warned.iter().map(|it| (*it).to_owned()).collect())
        );
    }

    #[test]
    fn old_words_are_taken_and_told() {
        check("latency --quick", "latency --quick", &[]);
        check("passing --quick", "latency --quick", &[r#"warning: "passing" is "latency" now"#]);
        check("help limits", "help budgets", &[r#"warning: "limits" is "budgets" now"#]);
        let both = [
            r#"warning: "cadence" is "jitter" now"#,
            r#"warning: "--roads" is "--transports" now"#,
        ];
        let words = "cadence --cases cadence,queue --roads shm";
        check(words, "jitter --cases jitter,queue --transports shm", &both);
        let told = [r#"warning: "--roads" is "--transports" now"#];
        check("matrix --roads=shm", "matrix --transports=shm", &told);
        let told = [r#"warning: "newcomer" is "late-joiner" now"#];
        check("handover --cases=newcomer,single", "handover --cases=late-joiner,single", &told);
        check("report passing limits.json", "report passing limits.json", &[]);
    }

    #[test]
    fn old_reports_are_read_in_the_new_words() {
        let mut report = json!({ "experiment": "cadence", "rows": [{ "carrier": "tsuji:shm" }],
            "figures": [{ "what": "newcomer-rtps from its start median" }],
            "series": [{ "case": "cadence-inproc", "what": "passing", "values": [1, 2] }],
            "tables": [{ "columns": ["road", "mean µs"] }] });
        renew_report(&mut report);
        let expect = json!({ "experiment": "jitter", "rows": [{ "transport": "tsuji:shm" }],
            "figures": [{ "what": "late-joiner-rtps from its start median" }],
            "series": [{ "case": "jitter-inproc", "what": "latency", "values": [1, 2] }],
            "tables": [{ "columns": ["transport", "mean µs"] }] });
        assert_eq!(report, expect);
    }
}
