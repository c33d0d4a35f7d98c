//! Reports as one page of HTML that needs nothing else: tables as they are, plots for its script to draw.
//!
//! All that a report says is data: it is escaped where it is markup, and the script sets text, never markup.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::figures::{self, Figure, Group, Scale, Shape};
use super::summary::{self, Answer, Counts, Summary, bar_of, interval, judged, with_unit};
use super::svg::{self, bytes, escaped};
use super::{Document, list, shown};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing is loaded from anywhere, whatever stands in a report.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The page of all `documents`.
pub(super) fn page(documents: &[Document]) -> String {
    let names: Vec<_> = documents.iter().map(|it| it.experiment()).collect();
    let title = escaped(&format!("tsuji lab: {}", names.join(", ")));
    let heading = if documents.len() == 1 { &*title } else { "tsuji lab" };
    let summary = Summary::of(documents);
    let mut plots = Vec::new();
    let mut body = String::new();
    let columns = figures::columns(documents.iter().map(|it| &it.report));
    for (at, (document, answer)) in documents.iter().zip(&summary.answers).enumerate() {
        section(&mut body, &format!("d{at}"), document, answer, columns, &mut plots);
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
         <header><h1>{heading}</h1><button id=\"scheme\" type=\"button\" hidden>Dark</button></header>\n\
         <main id=\"main\">\n{}\
         <noscript><p class=\"warn\">The plots are drawn by a script, which this browser does not run. \
         The tables are whole without it.</p></noscript>\n{body}</main>\n\
         <footer><p>Plots draw the least and the largest value of each stretch of a long series, so every \
         outlier is there and not every sample; a plot of fewer says so. Histograms count all samples. \
         All values are in the JSON that this page was made of, and in the CSV.</p>\
         <p>Drag in a plot to zoom in, double-click or press 0 to see all of it. With the keyboard: \
         arrows move through the values, + zooms in.</p></footer>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n\
         </body>\n</html>\n",
        begin(documents, &summary)
    )
}

/// What is read first: the machine, all verdicts, a row for each question, and what is not here.
fn begin(documents: &[Document], summary: &Summary<'_>) -> String {
    let mut out = "<section id=\"summary\" aria-label=\"Summary\">\n".to_owned();
    // Writing to a string cannot fail.
    if let Some(machine) = summary::machine(documents) {
        let _ = writeln!(out, "<p class=\"on\">{}</p>", escaped(&machine));
    }
    warnings(&mut out, documents);
    let counts = Counts::sum(summary.answers.iter().map(|it| &it.counts));
    out.push_str("<p class=\"totals\">Bars: ");
    for (verdict, count) in counts.each() {
        let _ = write!(out, "{} <b>{count}</b> ", badge(verdict.word()));
    }
    let skipped: usize = summary.answers.iter().map(|it| it.skipped).sum();
    let _ = writeln!(
        out,
        "<span>samples lost in rows: <b>{}</b></span> <span>not measured: <b>{skipped}</b></span></p>",
        summary.lost()
    );
    out.push_str(
        "<table class=\"asked\"><thead><tr><th scope=\"col\">asked</th><th scope=\"col\">figure</th>\
         <th scope=\"col\">bar</th><th scope=\"col\">verdict</th></tr></thead><tbody>\n",
    );
    for (at, answer) in summary.answers.iter().enumerate() {
        let figure = answer.figure.as_ref().map_or_else(
            || "–".to_owned(),
            |it| {
                let interval = it.interval.as_ref().map(|it| format!(" [{}]", escaped(it)));
                format!(
                    "<b>{}</b>{} <small>{}</small>",
                    escaped(&it.figure),
                    interval.unwrap_or_default(),
                    escaped(&it.named())
                )
            },
        );
        let bar = answer.figure.as_ref().and_then(|it| it.bar.as_deref()).unwrap_or("");
        let tally = answer.counts.has_any().then(|| answer.counts.tally());
        let skipped =
            Some(answer.skipped).filter(|it| *it != 0).map(|it| format!("{it} not measured"));
        let tally: Vec<_> = tally.into_iter().chain(skipped).collect();
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><a href=\"#d{at}\">{}</a> <small>{}</small></th><td>{figure}</td>\
             <td>{}</td><td>{} <small>{}</small></td></tr>",
            escaped(answer.experiment),
            escaped(answer.asks),
            escaped(bar),
            badge(answer.verdict.word()),
            tally.join(", ")
        );
    }
    out.push_str("</tbody></table>\n");
    if let Some(absent) = summary.absent() {
        let _ =
            write!(out, "<details class=\"absent\"><summary>{}</summary><ul>", escaped(&absent));
        for it in &summary.absent {
            let _ = write!(out, "<li><b>{}</b>: {}</li>", escaped(it.name), escaped(it.why));
        }
        out.push_str("</ul></details>\n");
    }
    out.push_str("</section>\n");
    out
}

/// What is to be known before figures are believed, each once; more than one are folded.
fn warnings(out: &mut String, documents: &[Document]) {
    let machines = || documents.iter().map(|it| &it.report["machine"]);
    if machines().any(|it| it["optimized"] == false) {
        out.push_str(
            "<p class=\"warn\">Built without optimisation: the figures mean nothing.</p>\n",
        );
    }
    let mut all: Vec<String> = Vec::new();
    for warning in machines().flat_map(crate::machine::warnings) {
        if !all.contains(&warning) {
            all.push(warning);
        }
    }
    let _ = match &*all {
        [] => Ok(()),
        [one] => writeln!(out, "<p class=\"warn\">{}</p>", escaped(one)),
        several => {
            let told: Vec<_> = several.iter().map(|it| format!("<p>{}</p>", escaped(it))).collect();
            writeln!(
                out,
                "<details class=\"warn\"><summary>This machine was busy, so other runs may give other figures \
                 ({} warnings)</summary>{}</details>",
                several.len(),
                told.concat()
            )
        }
    };
}

/// JSON that cannot end the element of the script that it stands in, nor begin a comment there.
fn within_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn section(
    out: &mut String,
    id: &str,
    document: &Document,
    answer: &Answer<'_>,
    columns: usize,
    plots: &mut Vec<Value>,
) {
    let report = &document.report;
    let groups = figures::groups(report, columns);
    let telling = summary::telling(document.experiment(), &groups);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<section id=\"{id}\"><h2>{} <small>{}</small></h2><p class=\"sentence\">{} {}</p>",
        escaped(document.experiment()),
        escaped(&document.name),
        badge(answer.verdict.word()),
        escaped(&answer.sentence())
    );
    if let Some((group, figure)) = telling {
        let (group, figure) = (&groups[group], &groups[group].figures[figure]);
        out.push_str("<div class=\"telling\">");
        let title = format!("{}: {}", group.title, figure.title);
        place(out, &title, group, figure, plots);
        out.push_str("</div>\n");
    }
    let count = |kind: &str| list(report, kind).len();
    let drawn_count: usize = groups.iter().map(|it| it.figures.len()).sum();
    let skipped = entries(report, "skipped", "Could not be measured", TOLD);
    let caption = "From publish() to the callback, one line for each case and transport";
    let rows = entries(report, "rows", caption, ROWS);
    let caption = "Every size and reliability by every transport";
    let matrix = entries(report, "matrix", caption, MATRIX);
    let parts = [
        ("skipped", "Not measured", count("skipped"), skipped),
        ("judged", "Figures and bars", judged(report).count(), figures_table(report)),
        ("plots", "Plots", drawn_count, drawn(&groups, plots)),
        ("rows", "Latencies", count("rows"), rows),
        ("matrix", "Matrix", count("matrix"), matrix),
        ("tables", "Tables", count("tables"), tables(report)),
        ("series", "Series", count("series"), series(report)),
        ("machine", "Machine", 0, machine(&report["machine"])),
    ];
    for (name, title, count, text) in parts.into_iter().filter(|it| !it.3.is_empty()) {
        let count = if count == 0 { String::new() } else { format!(" <small>{count}</small>") };
        let _ = writeln!(
            out,
            "<details id=\"{id}-{name}\"><summary>{title}{count}</summary>{text}</details>"
        );
    }
    out.push_str("</section>\n");
}

/// What was measured on, and how much else ran there.
fn machine(machine: &Value) -> String {
    let Some(fields) = machine.as_object() else { return String::new() };
    let mut out = "<dl class=\"machine\">".to_owned();
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
    out
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

/// The verdict in a word, a sign and a colour.
fn badge(verdict: &str) -> String {
    let (class, sign) = match verdict {
        "met" => ("met", "✓"),
        "not met" => ("unmet", "✗"),
        "inconclusive" => ("open", "?"),
        "not measured" => ("unmet", "–"),
        _ => ("", "·"),
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

/// Names of columns, and where in an entry what they show stands, as a JSON pointer.
type Columns = &'static [(&'static str, &'static str)];

const ROWS: Columns = &[
    ("case", "/case"),
    ("transport", "/transport"),
    ("size, bytes", "/size_bytes"),
    ("sent, samples", "/count"),
    ("lost, samples", "/lost"),
    ("damaged, samples", "/damaged"),
    ("mean, µs", "/mean_us"),
    ("median, µs", "/median_us"),
    ("p99, µs", "/p99_us"),
    ("most, µs", "/max_us"),
    ("CPU per sample, µs", "/cpu_us_per_sample"),
    ("draw+pass median, µs", "/draw_and_pass_median_us"),
];

const MATRIX: Columns = &[
    ("reliability", "/reliability"),
    (SIZE, "/size_bytes"),
    ("transport", "/transport"),
    ("sent, samples", "/count"),
    ("lost, samples", "/lost"),
    ("mean, µs", "/mean_us"),
    ("median, µs", "/median_us"),
    ("p99, µs", "/p99_us"),
    ("most, µs", "/max_us"),
    ("throughput, 10^6 bytes/s", "/throughput_mb_per_s"),
    ("sender, MB", "/processes/0/vm_rss_mb"),
    ("sender threads", "/processes/0/threads"),
    ("receiver, MB", "/processes/1/vm_rss_mb"),
    ("receiver threads", "/processes/1/threads"),
];

const TOLD: Columns = &[("what", "/what"), ("why", "/why")];

/// A column of bytes as a person says them.
const SIZE: &str = "size";

fn entries(report: &Value, kind: &str, caption: &str, columns: Columns) -> String {
    let all = list(report, kind);
    if all.is_empty() {
        return String::new();
    }
    let at = |entry: &Value, place: &str| entry.pointer(place).cloned().unwrap_or_default();
    let shown = |entry: &Value, (name, place): &(&str, &str)| match at(entry, place) {
        Value::Number(size) if *name == SIZE => bytes(size.as_f64().unwrap_or_default()),
        value => escaped(&cell(&value)),
    };
    let head: Vec<_> = columns.iter().map(|it| it.0.to_owned()).collect();
    let is_number = |(_, place): &(&str, &str)| all.iter().any(|it| at(it, place).is_number());
    let numbers: Vec<_> = columns.iter().map(is_number).collect();
    let row = |entry: &Value| columns.iter().map(|it| shown(entry, it)).collect();
    table(caption, &head, &all.iter().map(row).collect::<Vec<_>>(), &numbers)
}

fn figures_table(report: &Value) -> String {
    let all: Vec<_> = judged(report).collect();
    if all.is_empty() {
        return String::new();
    }
    let head = [
        "what",
        "of",
        "size, bytes",
        "figure",
        "95 % interval",
        "bar",
        "verdict",
        "beside its bar",
    ];
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|it| {
            let unit = it["unit"].as_str().unwrap_or_default();
            let told = |text: &str| escaped(&with_unit(text, unit));
            vec![
                escaped(&cell(&it["what"])),
                escaped(&cell(&it["of"])),
                it["size_bytes"].as_u64().map_or(String::new(), |it| it.to_string()),
                told(&cell(&it["figure"])),
                interval(it).map_or(String::new(), |it| told(&it)),
                bar_of(it).map_or(String::new(), |it| escaped(&it)),
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
            place(&mut out, &figure.title, group, figure, plots);
        }
        out.push_str("</div>\n");
    }
    out
}

/// A place for one.
fn place(out: &mut String, title: &str, group: &Group, figure: &Figure, plots: &mut Vec<Value>) {
    let note = match figure.is_thinned() {
        true => " <small>drawn: the least and the largest of each stretch</small>",
        false => "",
    };
    let _ = write!(
        out,
        "<figure class=\"plot\" data-plot=\"{}\"><figcaption>{}{note}</figcaption></figure>",
        plots.len(),
        escaped(title)
    );
    plots.push(data(&group.title, figure));
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
            let spans: Vec<f64> =
                line.spans.iter().flat_map(|it| [it.0, it.1]).map(to_six_digits).collect();
            json!({ "name": line.name, "colour": line.colour, "values": line.values, "points": points,
                "spans": spans })
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
            Shape::Ranges => "ranges",
        },
        "rows": figure.rows,
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
            "schema": 2, "experiment": EVIL,
            "machine": { "cpu": EVIL, EVIL: EVIL, "load": [EVIL], "memory_bytes": EVIL,
                "noise": { "percent": 7.5, "longest_us": EVIL } },
            "rows": [{ "case": EVIL, "transport": EVIL, "size_bytes": EVIL, "median_us": EVIL },
                { "case": EVIL, "transport": EVIL, "size_bytes": 64, "median_us": 1 },
                { "case": EVIL, "transport": EVIL, "size_bytes": 128, "median_us": 2 }],
            "ratios": [{ "what": EVIL, "of": EVIL, "unit": EVIL, "verdict": EVIL, "size_bytes": EVIL,
                "figure": EVIL, "at_most": EVIL }],
            "matrix": [{ "reliability": EVIL, "transport": EVIL, "size_bytes": EVIL }],
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
        let page = page_of(json!({ "series": [{ "case": EVIL, "of": "a", "what": "latency",
            "unit": "µs", "at_unit": "turn", "values": [1.5, null] }] }));
        let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        // The first of them stands before the others too.
        assert_eq!(data["plots"].as_array().unwrap().len(), 4);
        for at in [0, 1] {
            assert_eq!(data["plots"][at]["title"], format!("{EVIL}: latency over time"));
            assert_eq!(data["plots"][at]["lines"][0]["points"], json!([0.0, 1.5]));
        }
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
        assert!(page.contains("at most 1.3 ×") && page.contains("1.00 – 1.40 ×"));
    }

    #[test]
    fn the_page_begins_with_a_row_for_each_question() {
        let judged = json!({ "what": "loan", "of": "a / b", "figure": 1.2, "low": 1.0, "high": 1.4, "unit": "×",
            "at_most": 1.3, "verdict": "inconclusive" });
        let told = json!([{ "what": "ros1", "why": "not built" }]);
        let document = |report| Document { name: "a.json".to_owned(), report };
        let latency = json!({ "experiment": "latency", "ratios": [judged], "absent": told });
        let never = Document::unmeasured("handover", "interrupted before it began");
        let both = page(&[document(latency), never]);
        let begin = both.split("<section id=\"d0\">").next().unwrap();
        for said in [
            "<a href=\"#d0\">latency</a>",
            "<b>1.20 ×</b> [1.00 – 1.40] <small>loan, a / b</small>",
            "<td>at most 1.3 ×</td>",
            "? inconclusive</span> <small>0 of 1 bars met</small>",
            "<a href=\"#d1\">handover</a>",
            "– not measured</span> <small>1 not measured</small>",
            "Not on this machine: ROS 1.",
        ] {
            assert!(begin.contains(said), "{said}: {begin}");
        }
        assert_eq!(both.matches("ROS 1").count(), 2, "in the line, and beside the reason");
        assert!(both.contains("<section id=\"d1\">") && both.contains("Nothing was measured."));
        assert!(both.contains("interrupted before it began"));
    }

    #[test]
    fn the_plot_that_tells_most_stands_before_what_is_folded() {
        let series = json!({ "case": "two_nodes", "of": "a", "what": "latency", "unit": "µs", "at_unit": "turn",
            "median": { "figure": 1.5, "low": 1.0, "high": 2.0 }, "values": [1, 2] });
        let page = page_of(json!({ "experiment": "latency", "series": [series] }));
        let before =
            page.split("<section id=\"d0\">").nth(1).unwrap().split("<details").next().unwrap();
        assert_eq!(before.matches("data-plot=").count(), 1);
        assert!(before.contains("two_nodes: latency, median and 99th percentile"), "{before}");
    }

    #[test]
    fn warnings_are_told_once_and_several_are_folded() {
        let busy = |percent: f64| json!({ "machine": { "noise": { "percent": percent, "longest_us": 900.0 } } });
        let document = |report| Document { name: "a.json".to_owned(), report };
        let same = page(&[document(busy(7.5)), document(busy(7.5))]);
        assert_eq!(same.matches("This machine is busy").count(), 1);
        assert!(!same.contains("warnings)"));
        assert!(page(&[document(busy(7.5)), document(busy(8.5))]).contains("(2 warnings)"));
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
