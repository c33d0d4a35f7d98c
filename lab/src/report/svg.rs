//! A plot as SVG, for slides and papers: no script, no fonts, dark on white.

use std::fmt::Write as _;

use super::figures::{Axis, Figure, Line, Scale, Shape};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 48.0;
/// Below the plot are the axis and the names of the lines.
const BOTTOM: f64 = 64.0;
const LEGEND_HEIGHT: f64 = 22.0;
/// Of a row of ranges: its name, and its line below.
const ROW_HEIGHT: f64 = 38.0;
const LEGEND_COLUMNS: usize = 3;

/// Told apart also by those who see fewer colours; lines of the same colour differ in their dashes.
pub(super) const COLOURS: [&str; 7] =
    ["#0060a8", "#c14b00", "#007a5a", "#a8397f", "#8a6d00", "#2b8fc4", "#444444"];
pub(super) const DASHES: [&str; 3] = ["none", "8 4", "2 4"];

/// `figure` under `title`.
pub(super) fn svg(title: &str, figure: &Figure) -> String {
    if figure.shape == Shape::Ranges {
        return ranges_svg(title, figure);
    }
    let legend = figure.lines.len().div_ceil(LEGEND_COLUMNS) as f64 * LEGEND_HEIGHT;
    let (inner_width, inner_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let (xs, ys) = ranges(figure);
    let x = |it: f64| LEFT + xs.share(it) * inner_width;
    let y = |it: f64| TOP + (1.0 - ys.share(it)) * inner_height;
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let height = HEIGHT + legend;
    let mut out = opened(&format!("{title}: {}", figure.title), height);
    // Writing to a string cannot fail.
    upright(&mut out, figure, &xs, bottom);
    for (at, label) in ys.ticks() {
        let at = y(at);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#dddddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 8.0,
            at + 5.0
        );
    }
    let middle = TOP + inner_height / 2.0;
    let _ = writeln!(
        out,
        "<text transform=\"translate(22 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escaped(&figure.y.name),
    );
    for (at, line) in figure.lines.iter().enumerate() {
        let (colour, dash) = looks(line.colour);
        let mut path = String::new();
        let mut before = None;
        let mut dots = String::new();
        for point in line.points.iter().filter(|it| xs.holds(it.0) && ys.holds(it.1)) {
            let (px, py) = (x(point.0), y(point.1));
            let _ = match (before, figure.shape) {
                (None, _) => write!(path, "M{px:.1} {py:.1}"),
                (Some(()), Shape::Steps) => write!(path, "H{px:.1}V{py:.1}"),
                (Some(()), _) => write!(path, "L{px:.1} {py:.1}"),
            };
            if figure.shape == Shape::Dotted || line.points.len() == 1 {
                let _ = write!(
                    dots,
                    "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3.5\" fill=\"{colour}\"/>"
                );
            }
            before = Some(());
        }
        let stroke = format!("stroke=\"{colour}\" stroke-dasharray=\"{dash}\" fill=\"none\"");
        let _ = writeln!(out, "<path d=\"{path}\" {stroke} stroke-width=\"1.8\"/>{dots}");
        named(&mut out, at, line, HEIGHT);
    }
    out.push_str("</svg>\n");
    out
}

/// The begin of a file of that height, with its title.
fn opened(title: &str, height: f64) -> String {
    let title = escaped(title);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
         width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"14\" fill=\"#222222\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"28\" font-size=\"18\" font-weight=\"600\">{title}</text>\n"
    )
}

/// The upright lines of a plot that ends at `bottom`, its mark, and what the axis below it is of.
fn upright(out: &mut String, figure: &Figure, xs: &Range, bottom: f64) {
    let inner_width = WIDTH - LEFT - RIGHT;
    let x = |it: f64| LEFT + xs.share(it) * inner_width;
    // Writing to a string cannot fail.
    for (at, label) in xs.ticks() {
        let at = x(at);
        let _ = writeln!(
            out,
            "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#dddddd\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            bottom + 20.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        LEFT + inner_width / 2.0,
        bottom + 46.0,
        escaped(&figure.x.name),
    );
    if let Some((at, name)) = figure.mark
        && xs.holds(at)
    {
        let at = x(at);
        let _ = writeln!(
            out,
            "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#222222\" stroke-dasharray=\"6 4\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            at + 6.0,
            TOP + 16.0,
            escaped(name)
        );
    }
}

/// The name of the line of that number below a plot.
fn named(out: &mut String, at: usize, line: &Line, below: f64) {
    let (colour, dash) = looks(line.colour);
    let column = (at % LEGEND_COLUMNS) as f64 * (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS as f64;
    let (left, top) = (LEFT + column, below + 8.0 + (at / LEGEND_COLUMNS) as f64 * LEGEND_HEIGHT);
    let _ = writeln!(
        out,
        "<path d=\"M{left:.1} {top:.1}h28\" stroke=\"{colour}\" stroke-dasharray=\"{dash}\" stroke-width=\"3\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        left + 36.0,
        top + 5.0,
        escaped(&line.name)
    );
}

/// Each row under its name.
fn ranges_svg(title: &str, figure: &Figure) -> String {
    let bottom = TOP + figure.rows.len() as f64 * ROW_HEIGHT;
    let below = bottom + BOTTOM;
    let legend = figure.lines.len().div_ceil(LEGEND_COLUMNS) as f64 * LEGEND_HEIGHT;
    let mut out = opened(&format!("{title}: {}", figure.title), below + legend);
    let all = figure.lines.iter().flat_map(|line| {
        let middles = line.points.iter().map(|it| it.0);
        middles.chain(line.spans.iter().flat_map(|it| [it.0, it.1]))
    });
    let all = all.chain(figure.mark.map(|it| it.0));
    let xs = Range::of(all, &figure.x, figure.x.scale == Scale::Linear);
    upright(&mut out, figure, &xs, bottom);
    // What is 0 lies on the edge of a logarithmic axis.
    let x = |it: f64| LEFT + xs.share(it.clamp(xs.low, xs.high)) * (WIDTH - LEFT - RIGHT);
    // Writing to a string cannot fail.
    for (at, row) in figure.rows.iter().enumerate() {
        let top = TOP + at as f64 * ROW_HEIGHT + 15.0;
        let _ =
            writeln!(out, "<text x=\"{:.1}\" y=\"{top:.1}\">{}</text>", LEFT + 4.0, escaped(row));
    }
    for (at, line) in figure.lines.iter().enumerate() {
        let (colour, _) = looks(line.colour);
        for (point, span) in line.points.iter().zip(&line.spans) {
            let y = TOP + (point.1 + 1.0) * ROW_HEIGHT - 10.0;
            let _ = writeln!(
                out,
                "<path d=\"M{:.1} {y:.1}H{:.1}\" stroke=\"{colour}\" stroke-width=\"4\" opacity=\"0.5\"/>\
                 <circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"{colour}\"/>",
                x(span.0),
                x(span.1),
                x(point.0)
            );
        }
        named(&mut out, at, line, below);
    }
    out.push_str("</svg>\n");
    out
}

/// The colour and the dashes of a line.
pub(super) fn looks(colour: usize) -> (&'static str, &'static str) {
    (COLOURS[colour % COLOURS.len()], DASHES[colour / COLOURS.len() % DASHES.len()])
}

/// Text that is text in HTML and XML, between tags and in attributes. What XML has no place for is left out.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => (),
            it if it.is_control() => (),
            it => out.push(it),
        }
    }
    out
}

/// From where to where an axis goes.
struct Range {
    low: f64,
    high: f64,
    scale: Scale,
}

fn ranges(figure: &Figure) -> (Range, Range) {
    let points = || figure.lines.iter().flat_map(|it| &it.points);
    let x = Range::of(points().map(|it| it.0), &figure.x, false);
    // A share or a load is read from zero.
    (x, Range::of(points().map(|it| it.1), &figure.y, true))
}

impl Range {
    fn of(values: impl Iterator<Item = f64>, axis: &Axis, from_zero: bool) -> Self {
        let is_log = axis.scale != Scale::Linear;
        let values = values.filter(|it| it.is_finite() && (!is_log || 0.0 < *it));
        let bounds = values.fold(None, |bounds: Option<(f64, f64)>, it| {
            Some(bounds.map_or((it, it), |(low, high)| (low.min(it), high.max(it))))
        });
        let (mut low, mut high) = bounds.unwrap_or((1.0, 10.0));
        match (is_log, from_zero) {
            (true, true) => (low, high) = (low / 1.15, high * 1.15),
            (true, false) if low == high => (low, high) = (low / 2.0, high * 2.0),
            (false, true) => {
                (low, high) = (low.min(0.0), high + (high - low.min(0.0)) * 0.05);
                if low == high {
                    high = low + 1.0;
                }
            }
            (false, false) if low == high => (low, high) = (low - 0.5, high + 0.5),
            _ => (),
        }
        Self { low, high, scale: axis.scale }
    }

    fn holds(&self, it: f64) -> bool {
        (self.low..=self.high).contains(&it)
    }

    fn share(&self, it: f64) -> f64 {
        match self.scale {
            Scale::Linear => (it - self.low) / (self.high - self.low),
            Scale::Log | Scale::Bytes => (it / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => self.even(),
            Scale::Log => {
                let decades = (self.high / self.low).log10();
                let steps: &[f64] = if decades < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
                let stride = (decades / 8.0).ceil().max(1.0) as usize;
                let ticks: Vec<_> = powers
                    .step_by(stride)
                    .flat_map(|power| steps.iter().map(move |it| it * 10f64.powi(power)))
                    .filter(|it| self.holds(*it))
                    .map(|it| (it, number(it)))
                    .collect();
                // Between two powers of ten and their halves there may be nothing.
                if ticks.len() < 2 { self.even() } else { ticks }
            }
            Scale::Bytes => {
                let powers = self.low.log2().ceil() as i32..=self.high.log2().floor() as i32;
                let stride = (self.high / self.low).log2() / 8.0;
                powers
                    .step_by(stride.ceil().max(1.0) as usize)
                    .map(|power| (2f64.powi(power), bytes(2f64.powi(power))))
                    .collect()
            }
        }
    }

    fn even(&self) -> Vec<(f64, String)> {
        let rough = (self.high - self.low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|it| it * power).into_iter().find(|it| rough <= *it);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        // A range that the steps do not divide, as of numbers beyond 2^53, has no ticks.
        (0..=20)
            .map(|it| (first.saturating_add(it)) as f64 * step)
            .take_while(|it| *it <= self.high)
            .map(|it| (it, number(it)))
            .collect()
    }
}

/// As it stands beside an axis.
fn number(it: f64) -> String {
    let text = if 1e6 <= it.abs() || (it != 0.0 && it.abs() < 1e-3) {
        format!("{it:.1e}")
    } else {
        format!("{it:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if text == "-0" { "0".to_owned() } else { text }
}

/// Bytes as a person says them.
pub(super) fn bytes(it: f64) -> String {
    let (unit, by) = match it {
        it if f64::from(1 << 20) <= it => ("MiB", f64::from(1 << 20)),
        it if 1024.0 <= it => ("KiB", 1024.0),
        _ => ("B", 1.0),
    };
    let shown = it / by;
    if shown.fract() == 0.0 { format!("{shown} {unit}") } else { format!("{shown:.2} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(scale: Scale, points: Vec<(f64, f64)>) -> Figure {
        Figure {
            title: "a < b & c".to_owned(),
            x: Axis { name: "\u{1}size".to_owned(), scale },
            y: Axis { name: "µs".to_owned(), scale: Scale::Linear },
            shape: Shape::Dotted,
            lines: vec![Line {
                name: "\"'><script>".to_owned(),
                colour: 9,
                values: points.len(),
                spans: points.iter().map(|it| (it.0 / 2.0, it.0)).collect(),
                points,
            }],
            rows: vec!["\"'><script>".to_owned()],
            mark: Some((65_536.0, "64 KiB")),
        }
    }

    fn check(scale: Scale, points: &[(f64, f64)], dots: usize) {
        check_figure(&figure(scale, points.to_vec()), dots);
    }

    fn check_figure(figure: &Figure, dots: usize) {
        let text = svg("loan", figure);
        let document = roxmltree::Document::parse(&text).unwrap();
        let named = |name| document.descendants().filter(|it| it.has_tag_name(name)).count();
        let name = ("http://www.w3.org/2000/svg", "circle");
        assert_eq!(document.descendants().filter(|it| it.has_tag_name(name)).count(), dots);
        assert_eq!(named(("http://www.w3.org/2000/svg", "script")), 0);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn a_plot_is_well_formed_whatever_is_in_it() {
        check(Scale::Bytes, &[(64.0, 1.0), (4_194_304.0, 2.0)], 2);
        check(Scale::Linear, &[(0.0, 0.0)], 1);
        check(Scale::Log, &[(5.0, 5.0)], 1);
        check(Scale::Log, &[(0.0, 5.0), (7.0, -3.0)], 1);
        check(Scale::Linear, &[], 0);
        check(Scale::Linear, &[(1e18, 1e-30), (1e18 + 256.0, 1e30)], 2);
        let ranges = |scale, points: &[(f64, f64)]| Figure {
            shape: Shape::Ranges,
            ..figure(scale, points.to_vec())
        };
        check_figure(&ranges(Scale::Log, &[(0.0, 0.0), (90.0, 1.0)]), 2);
        check_figure(&ranges(Scale::Linear, &[(0.0, 0.0)]), 1);
        check_figure(&ranges(Scale::Linear, &[]), 0);
    }

    #[test]
    fn sizes_are_told_as_bytes() {
        assert_eq!(bytes(64.0), "64 B");
        assert_eq!(bytes(65_536.0), "64 KiB");
        assert_eq!(bytes(2_359_296.0), "2.25 MiB");
    }

    #[test]
    fn ticks_are_round() {
        let range = Range { low: 0.0, high: 1.0, scale: Scale::Linear };
        let labels: Vec<_> = range.ticks().into_iter().map(|it| it.1).collect();
        assert_eq!(labels, ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        let range = Range { low: 64.0, high: 4_194_304.0, scale: Scale::Bytes };
        let labels: Vec<_> = range.ticks().into_iter().map(|it| it.1).collect();
        assert!(labels.contains(&"64 KiB".to_owned()), "{labels:?}");
    }
}
