//! Reports as one page of HTML that needs nothing else: tables as they are, plots for its script to draw.
//!
//! All that a report says is data: it is escaped where it is markup, and the script sets text, never markup.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::figures::{self, Figure, Group, Scale, Shape};
use super::svg::{self, bytes, escaped};
use super::{Document, shown};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing is loaded from anywhere, whatever stands in a report.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The page of all `documents`.
pub(super) fn page(documents: &[Document]) -> String {
    let names: Vec<_> = documents.iter().map(|it| it.experiment()).collect();
    let title = escaped(&format!("tsuji lab: {}", names.join(", ")));
    let mut plots = Vec::new();
    let mut body = String::new();
    let columns = figures::columns(documents.iter().map(|it| &it.report));
    for (at, document) in documents.iter().enumerate() {
        section(&mut body, &format!("d{at}"), document, columns, &mut plots);
    }
    let looks: Vec<_> = (0..svg::COLOURS.len() * svg::DASHES.len())
        .map(svg::looks)
        .map(|(_, dash)| if dash == "none" { "" } else { dash })
        .collect();
    let data = json!({ "colours": svg::COLOURS.len(), "dashes": looks, "plots": plots });
    let data = within_script(&data.to_string());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<a class=\"skip\" href=\"#main\">To the figures</a>\n\
         <header><h1>{title}</h1><button id=\"scheme\" type=\"button\" hidden>Dark</button></header>\n\
         <noscript><p class=\"warn\">The plots are drawn by a script, which this browser does not run. \
         The tables are whole without it.</p></noscript>\n<main id=\"main\">\n{}{body}</main>\n\
         <footer><p>Plots draw the least and the largest value of each stretch of a long series, so every \
         outlier is there and not every sample; a plot of fewer says so. Histograms count all samples. \
         All values are in the JSON that this page was made of, and in the CSV.</p>\
         <p>Drag in a plot to zoom in, double-click or press 0 to see all of it. With the keyboard: \
         arrows move through the values, + zooms in.</p></footer>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n\
         </body>\n</html>\n",
        contents(documents)
    )
}

/// What is on a page of several: each with how its verdicts are.
fn contents(documents: &[Document]) -> String {
    if documents.len() < 2 {
        return String::new();
    }
    let mut out = "<nav aria-label=\"Experiments\"><ul>".to_owned();
    for (at, document) in documents.iter().enumerate() {
        let counts = VERDICTS.map(|it| (count(&document.report, it), it));
        let tally = match counts.iter().any(|it| it.0 != 0) {
            true => counts.map(|(count, it)| format!("{count} {it}")).join(", "),
            false => "no bars".to_owned(),
        };
        let name = escaped(document.experiment());
        let _ = write!(out, "<li><a href=\"#d{at}\">{name}</a> <small>{tally}</small></li>");
    }
    out.push_str("</ul></nav>\n");
    out
}

/// JSON that cannot end the element of the script that it stands in, nor begin a comment there.
fn within_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn section(
    out: &mut String,
    id: &str,
    document: &Document,
    columns: usize,
    plots: &mut Vec<Value>,
) {
    let report = &document.report;
    let groups = figures::groups(report, columns);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<section id=\"{id}\"><h2>{} <small>{}</small></h2>",
        escaped(document.experiment()),
        escaped(&document.name)
    );
    machine(out, &report["machine"]);
    verdicts(out, report);
    let mut parts: Vec<(&str, &str, String)> = vec![
        ("judged", "Verdicts and figures", judged(report)),
        ("plots", "Plots", drawn(&groups, plots)),
        ("rows", "Latencies", entries(report, "rows", ROWS)),
        ("matrix", "Matrix", matrix(report)),
        ("tables", "Tables", tables(report)),
        ("series", "Series", series(report)),
        ("skipped", "Not measured", entries(report, "skipped", TOLD)),
        ("absent", "Not on this machine", entries(report, "absent", TOLD)),
    ];
    parts.retain(|it| !it.2.is_empty());
    if parts.is_empty() {
        out.push_str("<p>Nothing was measured.</p>\n");
    } else {
        let _ = write!(out, "<nav aria-label=\"Parts of {}\"><ul>", escaped(document.experiment()));
        for (name, title, _) in &parts {
            let _ = write!(out, "<li><a href=\"#{id}-{name}\">{title}</a></li>");
        }
        out.push_str("</ul></nav>\n");
    }
    for (name, title, text) in parts {
        let _ = writeln!(out, "<section id=\"{id}-{name}\"><h3>{title}</h3>{text}</section>");
    }
    out.push_str("</section>\n");
}

fn list<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name].as_array().map_or(&[], Vec::as_slice)
}

/// What was measured on, and how much else ran there.
fn machine(out: &mut String, machine: &Value) {
    let Some(fields) = machine.as_object() else { return };
    if machine["optimized"] == false {
        out.push_str("<p class=\"warn\">Built without optimisation: the figures mean nothing.</p>");
    }
    for warning in crate::machine::warnings(machine) {
        let _ = write!(out, "<p class=\"warn\">{}</p>", escaped(&warning));
    }
    out.push_str("<dl class=\"machine\">");
    for (name, value) in fields {
        let (name, value) = match (name.as_str(), value) {
            ("memory_bytes", Value::Number(it)) => {
                let gib = it.as_f64().unwrap_or_default() / f64::from(1 << 30);
                ("memory", format!("{gib:.1} GiB"))
            }
            ("load", Value::Array(it)) => {
                ("load before (1, 5, 15 min)", it.iter().map(cell).collect::<Vec<_>>().join(", "))
            }
            ("clock_ns", Value::Number(it)) => ("reading of the clock", format!("{it} ns")),
            ("noise", Value::Object(it)) => {
                let (percent, longest) = (part(it, "percent"), part(it, "longest_us"));
                ("noise before", format!("{percent} % of the time, {longest} µs at most"))
            }
            ("others", Value::Object(it)) => {
                let (percent, stolen) = (part(it, "percent"), part(it, "stolen_percent"));
                ("others meanwhile", format!("{percent} % of the time, {stolen} % stolen"))
            }
            ("placement", Value::Object(it)) => ("placement", placement(it)),
            (name, value) => (name, cell(value)),
        };
        let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), escaped(&value));
    }
    out.push_str("</dl>\n");
}

/// What stands there, or that nothing does.
fn part(fields: &Map<String, Value>, name: &str) -> String {
    fields.get(name).map_or_else(|| "–".to_owned(), cell)
}

/// Who was on which processor.
fn placement(placement: &Map<String, Value>) -> String {
    let word = part(placement, "placement");
    let receivers: Vec<_> = placement
        .get("receivers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(cell)
        .collect();
    match placement.get("sender").and_then(Value::as_u64) {
        Some(sender) if !receivers.is_empty() => {
            format!("{word}: sender on {sender}, receivers on {}", receivers.join(", "))
        }
        _ => word,
    }
}

const VERDICTS: [&str; 3] = ["met", "not met", "inconclusive"];

/// How many figures have that verdict.
fn count(report: &Value, verdict: &str) -> usize {
    let all = list(report, "ratios").iter().chain(list(report, "figures"));
    all.filter(|it| it["verdict"] == verdict).count()
}

fn verdicts(out: &mut String, report: &Value) {
    let lost: u64 = list(report, "rows").iter().filter_map(|it| it["lost"].as_u64()).sum();
    out.push_str("<p class=\"summary\">");
    for verdict in VERDICTS {
        let _ = write!(out, "{} <b>{}</b> ", badge(verdict), count(report, verdict));
    }
    let _ = writeln!(
        out,
        "<span>samples lost in rows <b>{lost}</b></span> <span>not measured <b>{}</b></span></p>",
        list(report, "skipped").len()
    );
}

/// The verdict in a word, a sign and a colour.
fn badge(verdict: &str) -> String {
    let (class, sign) = match verdict {
        "met" => ("met", "✓"),
        "not met" => ("unmet", "✗"),
        "inconclusive" => ("open", "?"),
        _ => ("", ""),
    };
    format!("<span class=\"verdict {class}\">{sign} {}</span>", escaped(verdict))
}

/// Text as it is, figures with as many digits as say something.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(it) if it.is_u64() || it.is_i64() => it.to_string(),
        Value::Number(it) => shown(it.as_f64().unwrap_or(f64::NAN)),
        other => other.to_string(),
    }
}

/// A table of cells that are markup already. In `numbers`, figures stand to the right.
fn table(caption: &str, head: &[String], rows: &[Vec<String>], numbers: &[bool]) -> String {
    let mut out = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
        escaped(caption)
    );
    let class = |at: usize| if numbers.get(at) == Some(&true) { " class=\"n\"" } else { "" };
    for (at, name) in head.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(at), escaped(name));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = match at {
                0 => write!(out, "<th scope=\"row\"{}>{cell}</th>", class(at)),
                _ => write!(out, "<td{}>{cell}</td>", class(at)),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>");
    out
}

/// Names of columns, and of the fields that stand in them.
type Columns = &'static [(&'static str, &'static str)];

const ROWS: Columns = &[
    ("case", "case"),
    ("carrier", "carrier"),
    ("bytes", "size_bytes"),
    ("samples", "count"),
    ("lost", "lost"),
    ("damaged", "damaged"),
    ("mean µs", "mean_us"),
    ("median µs", "median_us"),
    ("p99 µs", "p99_us"),
    ("most µs", "max_us"),
    ("CPU µs per sample", "cpu_us_per_sample"),
    ("draw+pass median µs", "draw_and_pass_median_us"),
];

const TOLD: Columns = &[("what", "what"), ("why", "why")];

fn entries(report: &Value, kind: &str, columns: Columns) -> String {
    let all = list(report, kind);
    if all.is_empty() {
        return String::new();
    }
    let caption = match kind {
        "rows" => "From publish() to the callback, one line for each case and carrier",
        "skipped" => "Could not be measured",
        _ => "Not here, which is no failure",
    };
    let head: Vec<_> = columns.iter().map(|it| it.0.to_owned()).collect();
    let numbers: Vec<_> =
        columns.iter().map(|it| all.iter().any(|entry| entry[it.1].is_number())).collect();
    let row = |it: &Value| columns.iter().map(|(_, name)| escaped(&cell(&it[*name]))).collect();
    table(caption, &head, &all.iter().map(row).collect::<Vec<_>>(), &numbers)
}

fn judged(report: &Value) -> String {
    let all: Vec<_> = list(report, "ratios").iter().chain(list(report, "figures")).collect();
    if all.is_empty() {
        return String::new();
    }
    let head = ["what", "of", "bytes", "figure", "interval", "bar", "verdict", ""];
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|it| {
            let unit = it["unit"].as_str().unwrap_or_default();
            let interval = match (it["low"].as_f64(), it["high"].as_f64()) {
                (Some(low), Some(high)) if low != high => {
                    format!("{} – {}", shown(low), shown(high))
                }
                _ => String::new(),
            };
            let bar = match (&it["at_most"], &it["at_least"]) {
                (Value::Number(bar), _) => format!("at most {bar}"),
                (_, Value::Number(bar)) => format!("at least {bar}"),
                _ => String::new(),
            };
            let size = it["size_bytes"].as_u64().map_or(String::new(), |it| it.to_string());
            vec![
                escaped(&cell(&it["what"])),
                escaped(&cell(&it["of"])),
                size,
                escaped(&format!("{} {unit}", cell(&it["figure"]))),
                escaped(&interval),
                escaped(&bar),
                it["verdict"].as_str().map_or(String::new(), badge),
                picture(it),
            ]
        })
        .collect();
    let head = head.map(str::to_owned);
    let numbers = [false, false, true, true, true, true, false, false];
    table("Ratios and figures, with their bars", &head, &rows, &numbers)
}

/// The interval beside its bar, small.
fn picture(judged: &Value) -> String {
    let bar = judged["at_most"].as_f64().or_else(|| judged["at_least"].as_f64());
    let parts = (judged["low"].as_f64(), judged["figure"].as_f64(), judged["high"].as_f64(), bar);
    let (Some(low), Some(figure), Some(high), Some(bar)) = parts else { return String::new() };
    // Whatever is beyond twice the bar ends at the edge.
    let most = bar.max(f64::MIN_POSITIVE) * 2.0;
    let x = |it: f64| (it / most).clamp(0.0, 1.0) * 116.0 + 2.0;
    format!(
        "<svg class=\"bar\" width=\"120\" height=\"14\" viewBox=\"0 0 120 14\" aria-hidden=\"true\">\
         <path class=\"axis\" d=\"M2 7H118\"/><path class=\"limit\" d=\"M{0:.1} 0V14\"/>\
         <path class=\"span\" d=\"M{1:.1} 7H{2:.1}\"/><circle cx=\"{3:.1}\" cy=\"7\" r=\"3\"/></svg>",
        x(bar),
        x(low),
        x(high),
        x(figure)
    )
}

fn matrix(report: &Value) -> String {
    let all = list(report, "matrix");
    if all.is_empty() {
        return String::new();
    }
    let columns: &[(&str, &str)] = &[
        ("reliability", "/reliability"),
        ("size", "/size_bytes"),
        ("carrier", "/carrier"),
        ("samples", "/count"),
        ("lost", "/lost"),
        ("mean µs", "/mean_us"),
        ("median µs", "/median_us"),
        ("p99 µs", "/p99_us"),
        ("most µs", "/max_us"),
        ("10^6 bytes/s", "/throughput_mb_per_s"),
        ("sender MB", "/processes/0/vm_rss_mb"),
        ("sender threads", "/processes/0/threads"),
        ("receiver MB", "/processes/1/vm_rss_mb"),
        ("receiver threads", "/processes/1/threads"),
    ];
    let head: Vec<_> = columns.iter().map(|it| it.0.to_owned()).collect();
    let row = |it: &Value| {
        let cells = columns.iter().map(|(name, path)| match it.pointer(path) {
            Some(Value::Number(size)) if *name == "size" => {
                bytes(size.as_f64().unwrap_or_default())
            }
            value => escaped(&cell(value.unwrap_or(&Value::Null))),
        });
        cells.collect()
    };
    let numbers: Vec<_> =
        columns.iter().map(|it| !matches!(it.0, "reliability" | "carrier")).collect();
    table(
        "Every size and reliability by every transport",
        &head,
        &all.iter().map(row).collect::<Vec<_>>(),
        &numbers,
    )
}

fn tables(report: &Value) -> String {
    let mut out = String::new();
    for it in list(report, "tables") {
        let head: Vec<_> = list(it, "columns").iter().map(cell).collect();
        let rows = || list(it, "rows").iter().filter_map(Value::as_array);
        let numbers: Vec<_> = (0..head.len())
            .map(|at| rows().any(|row| row.get(at).is_some_and(Value::is_number)))
            .collect();
        let cells: Vec<Vec<_>> =
            rows().map(|row| row.iter().map(|it| escaped(&cell(it))).collect()).collect();
        out.push_str(&table(&cell(&it["title"]), &head, &cells, &numbers));
        if let Some(note) = it["note"].as_str() {
            let _ = write!(out, "<p>{}</p>", escaped(note));
        }
    }
    out
}

fn series(report: &Value) -> String {
    let all = list(report, "series");
    if all.is_empty() {
        return String::new();
    }
    let head =
        ["case", "of", "what", "unit", "values", "without", "least", "median", "p99", "most"];
    let row = |it: &Value| {
        let (count, least, most) = figures::told(it);
        let mut row: Vec<String> =
            ["case", "of", "what", "unit"].iter().map(|name| escaped(&cell(&it[*name]))).collect();
        row.push(count.to_string());
        row.push((list(it, "values").len() - count).to_string());
        let figure = |it: f64| if it.is_finite() { shown(it) } else { "–".to_owned() };
        row.extend([figure(least), quantile(&it["median"]), quantile(&it["p99"]), figure(most)]);
        row
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let numbers: Vec<_> = (0..head.len()).map(|at| 4 <= at).collect();
    table(
        "What was measured one by one; without: not finite or not measured; small: 95 % interval",
        &head.map(str::to_owned),
        &rows,
        &numbers,
    )
}

/// A quantile with its interval.
fn quantile(told: &Value) -> String {
    if told.is_null() {
        return "–".to_owned();
    }
    format!(
        "{} <small>{}–{}</small>",
        escaped(&cell(&told["figure"])),
        escaped(&cell(&told["low"])),
        escaped(&cell(&told["high"]))
    )
}

/// Places for the script to draw in. What it draws goes to `plots`.
fn drawn(groups: &[Group], plots: &mut Vec<Value>) -> String {
    let mut out = String::new();
    for group in groups {
        let _ = write!(out, "<h4>{}</h4><div class=\"plots\">", escaped(&group.title));
        for figure in &group.figures {
            let note = match figure.is_thinned() {
                true => " <small>drawn: the least and the largest of each stretch</small>",
                false => "",
            };
            let _ = write!(
                out,
                "<figure class=\"plot\" data-plot=\"{}\"><figcaption>{}{note}</figcaption></figure>",
                plots.len(),
                escaped(&figure.title)
            );
            plots.push(data(&group.title, figure));
        }
        out.push_str("</div>\n");
    }
    out
}

fn data(group: &str, figure: &Figure) -> Value {
    let scale = |it: Scale| match it {
        Scale::Linear => "linear",
        Scale::Log => "log",
        Scale::Bytes => "bytes",
    };
    let lines: Vec<_> = figure
        .lines
        .iter()
        .map(|line| {
            let points: Vec<f64> =
                line.points.iter().flat_map(|it| [it.0, it.1]).map(to_six_digits).collect();
            json!({ "name": line.name, "colour": line.colour, "values": line.values, "points": points })
        })
        .collect();
    json!({
        "title": format!("{group}: {}", figure.title),
        "x": { "name": figure.x.name, "scale": scale(figure.x.scale) },
        "y": { "name": figure.y.name, "scale": scale(figure.y.scale) },
        "shape": match figure.shape {
            Shape::Line => "line",
            Shape::Dotted => "dotted",
            Shape::Steps => "steps",
        },
        "lines": lines,
        "mark": figure.mark,
    })
}

/// More cannot be seen. Whole numbers stay what they are.
fn to_six_digits(it: f64) -> f64 {
    if it.fract() == 0.0 || !it.is_finite() {
        return it;
    }
    let by = 10f64.powi(5 - it.abs().log10().floor() as i32);
    let rounded = (it * by).round() / by;
    if rounded.is_finite() { rounded } else { it }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(report: Value) -> String {
        page(&[Document { name: "a.json".to_owned(), report }])
    }

    const EVIL: &str = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\"'&";

    #[test]
    fn a_hostile_text_stays_text_wherever_it_stands() {
        let page = page_of(json!({
            "schema": 1, "experiment": EVIL,
            "machine": { "cpu": EVIL, EVIL: EVIL, "load": [EVIL], "memory_bytes": EVIL,
                "noise": { "percent": 7.5, "longest_us": EVIL } },
            "rows": [{ "case": EVIL, "carrier": EVIL, "size_bytes": EVIL, "median_us": EVIL },
                { "case": EVIL, "carrier": EVIL, "size_bytes": 64, "median_us": 1 },
                { "case": EVIL, "carrier": EVIL, "size_bytes": 128, "median_us": 2 }],
            "ratios": [{ "what": EVIL, "of": EVIL, "unit": EVIL, "verdict": EVIL, "size_bytes": EVIL,
                "figure": EVIL, "at_most": EVIL }],
            "matrix": [{ "reliability": EVIL, "carrier": EVIL, "size_bytes": EVIL }],
            "series": [{ "case": EVIL, "of": EVIL, "what": EVIL, "unit": EVIL, "at_unit": EVIL,
                "at": EVIL, "values": [1, 2, EVIL] }],
            "tables": [{ "title": EVIL, "columns": [EVIL], "rows": [[EVIL]], "note": EVIL }],
            "skipped": [{ "what": EVIL, "why": EVIL }], "absent": [{ "what": EVIL, "why": EVIL }],
        }));
        let tags = |name: &str| page.matches(name).count();
        // The data and the page's own script.
        assert_eq!((tags("<script"), tags("</script")), (2, 2));
        assert_eq!((tags("<img"), tags("<!--")), (0, 0));
        // Within a tag nothing of it stands but escaped.
        assert!(!page.contains("\"'&"), "an attribute could be ended");
    }

    #[test]
    fn the_script_finds_in_the_data_what_was_put_there() {
        let page = page_of(json!({ "series": [{ "case": EVIL, "of": "a", "what": "passing",
            "unit": "µs", "at_unit": "turn", "values": [1.5, null] }] }));
        let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["plots"].as_array().unwrap().len(), 3);
        assert_eq!(data["plots"][0]["title"], format!("{EVIL}: passing over time"));
        assert_eq!(data["plots"][0]["lines"][0]["points"], json!([0.0, 1.5]));
    }

    #[test]
    fn verdicts_are_said_in_words() {
        let judged = |verdict| {
            json!({ "what": "w", "of": "a / b", "figure": 1.2, "low": 1.0,
            "high": 1.4, "unit": "×", "at_most": 1.3, "verdict": verdict })
        };
        let all = ["met", "not met", "inconclusive"].map(judged);
        let page = page_of(json!({ "ratios": all }));
        for said in ["✓ met</span> <b>1", "✗ not met</span> <b>1", "? inconclusive</span> <b>1"]
        {
            assert!(page.contains(said), "{said}");
        }
        assert!(page.contains("at most 1.3") && page.contains("1.00 – 1.40"));
    }

    #[test]
    fn a_page_of_several_leads_to_each() {
        let judged = json!({ "what": "w", "of": "a", "figure": 1.0, "verdict": "met" });
        let document = |report| Document { name: "a.json".to_owned(), report };
        let one = json!({ "experiment": "passing", "figures": [judged] });
        assert!(!page_of(one.clone()).contains("Experiments"));
        let both = page(&[document(one), document(json!({}))]);
        let tally = "1 met, 0 not met, 0 inconclusive";
        assert!(
            both.contains(&format!("<a href=\"#d0\">passing</a> <small>{tally}</small>")),
            "{both}"
        );
        assert!(
            both.contains("</a> <small>no bars</small>") && both.contains("<section id=\"d1\">")
        );
    }

    #[test]
    fn a_machine_is_told_in_words() {
        let page = page_of(json!({ "machine": {
            "placement": { "placement": "apart", "sender": 0, "receivers": [1, 2] },
            "others": { "percent": 0.5, "stolen_percent": 0.25 },
        } }));
        for said in ["apart: sender on 0, receivers on 1, 2", "0.50 % of the time, 0.25 % stolen"] {
            assert!(page.contains(said), "{said}");
        }
        let free = json!({ "placement": "free", "sender": null, "receivers": [] });
        assert!(page_of(json!({ "machine": { "placement": free } })).contains("<dd>free</dd>"));
    }

    #[test]
    fn an_empty_report_says_so() {
        assert!(page_of(json!({})).contains("Nothing was measured."));
    }

    #[test]
    fn a_busy_machine_is_warned_of() {
        let page =
            page_of(json!({ "machine": { "noise": { "percent": 7.5, "longest_us": 900.0 } } }));
        assert!(
            page.contains("This machine is busy") && page.contains("7.50 % of the time, 900 µs")
        );
    }

    #[test]
    fn what_was_not_measured_is_told_with_its_reason() {
        let page =
            page_of(json!({ "skipped": [{ "what": "loan-64", "why": "/dev/shm is full" }] }));
        assert!(page.contains("loan-64") && page.contains("/dev/shm is full"));
    }

    #[test]
    fn the_page_asks_for_nothing_from_elsewhere() {
        let page = page_of(json!({}));
        let refers =
            ["src=", "@import", "fetch(", "XMLHttpRequest", "innerHTML", "url(\"", "url(h"];
        refers.iter().for_each(|it| assert!(!page.contains(it), "{it}"));
        let names = page.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(page.matches("://").count(), names);
    }

    #[test]
    fn digits_that_cannot_be_seen_are_left_out() {
        assert_eq!(to_six_digits(1.234_567_89), 1.23457);
        assert_eq!(to_six_digits(1_234_567.0), 1_234_567.0);
        assert_eq!(to_six_digits(f64::MIN_POSITIVE), f64::MIN_POSITIVE);
    }
}
