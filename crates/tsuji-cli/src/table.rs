//! The one table printer.

use crate::output::{Colour, Paint, escaped};

/// Blanks between columns.
const GAP: usize = 2;

/// What stands for the part of a text that was left out.
const ELLIPSIS: char = '…';

/// Rows under titles, fitted to a width by shortening what may be shortened.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column, and what may be done to it where there is little room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    right: bool,
    shorten: Shorten,
    /// What stands behind the title, for which a character is kept free; `None` where never anything does.
    mark: Option<&'static str>,
}

/// Which part of a text is left out where there is little room.
#[derive(Clone, Copy, Debug)]
enum Shorten {
    Never,
    /// The end, down to so many characters.
    End(usize),
    /// The middle, for names whose end tells them apart, down to so many characters.
    Middle(usize),
}

impl Column {
    /// A column whose texts are never shortened.
    pub(crate) const fn whole(title: &'static str) -> Self {
        Self { title, right: false, shorten: Shorten::Never, mark: None }
    }

    /// A column of numbers.
    pub(crate) const fn number(title: &'static str) -> Self {
        Self { title, right: true, shorten: Shorten::Never, mark: None }
    }

    /// A column of sentences, shortened at the end, down to `least` characters.
    pub(crate) const fn sentence(title: &'static str, least: usize) -> Self {
        Self { title, right: false, shorten: Shorten::End(least), mark: None }
    }

    /// A column of names, shortened in the middle, down to `least` characters.
    pub(crate) const fn name(title: &'static str, least: usize) -> Self {
        Self { title, right: false, shorten: Shorten::Middle(least), mark: None }
    }

    /// The column with a character behind its title, or room for one.
    pub(crate) const fn marked(self, mark: &'static str) -> Self {
        Self { mark: Some(mark), ..self }
    }

    fn title_width(&self) -> usize {
        length(self.title) + usize::from(self.mark.is_some())
    }
}

/// A text in a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    colour: Colour,
}

impl Cell {
    /// A text in a colour.
    pub(crate) fn new(text: impl Into<String>, colour: Colour) -> Self {
        Self { text: escaped(&text.into(), ""), colour }
    }

    /// The text, which commands no terminal.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Its colour.
    pub(crate) fn colour(&self) -> Colour {
        self.colour
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Colour::Plain)
    }
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, which has a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The width at which nothing is shortened.
    pub(crate) fn natural_width(&self) -> usize {
        total(&self.natural_widths())
    }

    /// The lines of the table, titles first, at most `width` wide if that can be done.
    pub(crate) fn lines(&self, width: Option<usize>, paint: Paint) -> Vec<String> {
        let line = |cells: Vec<Padded>| {
            let mut line = String::new();
            for Padded { before, cell, after } in cells {
                line.extend([&*before, &paint.text(cell.colour, &cell.text), &after]);
                line.push_str(&" ".repeat(GAP));
            }
            line.truncate(line.trim_end().len());
            line
        };
        self.padded(width).into_iter().map(line).collect()
    }

    /// The same as texts in colours, which stand one behind the other.
    pub(crate) fn cells(&self, width: Option<usize>) -> Vec<Vec<Cell>> {
        let cell = |Padded { before, cell, after }: Padded| Cell {
            text: format!("{before}{}{after}{:GAP$}", cell.text, ""),
            colour: cell.colour,
        };
        let line = |cells: Vec<Padded>| cells.into_iter().map(cell).collect();
        self.padded(width).into_iter().map(line).collect()
    }

    /// The cells of each line, titles first, shortened and with the blanks that make them as wide as their columns.
    fn padded(&self, width: Option<usize>) -> Vec<Vec<Padded>> {
        let mut widths = self.natural_widths();
        if let Some(width) = width {
            self.fit(&mut widths, width);
        }
        let title = |it: &Column| {
            Cell::new(format!("{}{}", it.title, it.mark.unwrap_or_default()), Colour::Strong)
        };
        let titles: Vec<Cell> = self.columns.iter().map(title).collect();
        let rows = std::iter::once(&titles).chain(&self.rows);
        let padded = |cells: &Vec<Cell>| {
            let cells = cells.iter().zip(&self.columns).zip(&widths);
            cells.map(|((cell, column), width)| padded(cell, column, *width)).collect()
        };
        rows.map(padded).collect()
    }

    fn natural_widths(&self) -> Vec<usize> {
        let widest = |at: usize, title: usize| {
            let texts = self.rows.iter().filter_map(|row| row.get(at)).map(|it| length(&it.text));
            texts.chain([title]).max().unwrap_or(0)
        };
        self.columns
            .iter()
            .enumerate()
            .map(|(at, column)| widest(at, column.title_width()))
            .collect()
    }

    /// Takes from the widest column that may still shrink, one character at a time.
    fn fit(&self, widths: &mut [usize], width: usize) {
        while total(widths) > width {
            let shrinkable = widths.iter().zip(&self.columns).enumerate().filter(|(_, it)| {
                let (now, column) = *it;
                match column.shorten {
                    Shorten::Never => false,
                    Shorten::End(least) | Shorten::Middle(least) => {
                        *now > least.max(column.title_width())
                    }
                }
            });
            let Some((at, _)) = shrinkable.max_by_key(|(_, (now, _))| **now) else { return };
            widths[at] -= 1;
        }
    }
}

/// A cell with the blanks around it.
struct Padded {
    before: String,
    cell: Cell,
    after: String,
}

fn padded(cell: &Cell, column: &Column, width: usize) -> Padded {
    let text = match column.shorten {
        Shorten::Middle(_) => shorten_middle(&cell.text, width),
        _ => shorten_end(&cell.text, width),
    };
    let blanks = " ".repeat(width.saturating_sub(length(&text)));
    let (before, after) =
        if column.right { (blanks, String::new()) } else { (String::new(), blanks) };
    Padded { before, cell: Cell { text, colour: cell.colour }, after }
}

/// `text` in at most `width` characters, without its end.
pub(crate) fn shorten_end(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push(ELLIPSIS);
    short
}

/// `text` in lines of at most `width` characters, broken between words where that can be done.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let needed = length(word) + usize::from(used > 0);
        if used > 0 && used + needed > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length(word);
        }
    }
    lines
}

/// `text` in at most `width` characters, without its middle. The end keeps a little more.
pub(crate) fn shorten_middle(text: &str, width: usize) -> String {
    let all = length(text);
    if all <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let head = kept * 2 / 5;
    let tail = kept - head;
    let head = text.chars().take(head);
    head.chain([ELLIPSIS]).chain(text.chars().skip(all - tail)).collect()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(width: Option<usize>, expect: &str) {
        let mut table = Table::new(&[
            Column::name("TOPIC", 8),
            Column::number("RATE"),
            Column::sentence("REASON", 10),
        ]);
        table.row(vec![
            "/front/camera/image_raw".into(),
            "30.0".into(),
            "on this host, proved".into(),
        ]);
        table.row(vec!["/a".into(), "100.0".into(), "rule".into()]);
        assert_eq!(table.lines(width, Paint::PLAIN).join("\n"), expect);
    }

    #[test]
    fn wide_enough_is_whole() {
        let whole = "TOPIC                     RATE  REASON\n\
                     /front/camera/image_raw   30.0  on this host, proved\n\
                     /a                       100.0  rule";
        check(None, whole);
        check(Some(52), whole);
    }

    #[test]
    fn narrow_is_shortened_where_it_may_be() {
        check(
            Some(42),
            "TOPIC               RATE  REASON\n\
             /front…/image_raw   30.0  on this host, p…\n\
             /a                 100.0  rule",
        );
    }

    #[test]
    fn what_may_not_be_shortened_is_not() {
        check(
            Some(10),
            "TOPIC      RATE  REASON\n\
             /f…e_raw   30.0  on this h…\n\
             /a        100.0  rule",
        );
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable it is", 4), ["unbreakable", "it", "is"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
