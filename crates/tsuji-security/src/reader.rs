//! What the documents of DDS Security have in common.

use std::time::{Duration, SystemTime};

use tsuji_xml::{Kind, Node, Places, name_offset};

use crate::pattern::Pattern;

/// What a document may have.
pub(crate) const fn kind(name: &'static str) -> Kind {
    Kind {
        name,
        root: "dds",
        bytes_max: 1 << 20,
        elements_max: 20_000,
        attributes_max: 16,
        depth_max: 16,
    }
}

/// Domains by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domains(Vec<(u32, u32)>);

impl Domains {
    pub(crate) fn have(&self, domain: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&domain))
    }
}

/// Goes through the elements of a document, and notes what is wrong.
pub(crate) struct Reader<'a, 'b> {
    pub(crate) places: &'b mut Places<'a>,
}

impl<'a> Reader<'a, '_> {
    pub(crate) fn line(&self, node: Node<'a, 'a>) -> u32 {
        self.places.line_of(name_offset(node))
    }

    /// The text of an element that has nothing else.
    pub(crate) fn text(&mut self, node: Node<'a, 'a>) -> &'a str {
        self.places.attributes(node, &[]);
        if let Some(child) = node.children().find(Node::is_element) {
            let problem = format!("has no place inside {:?}", node.tag_name().name());
            self.places.error(name_offset(child), child.tag_name().name(), problem, &[]);
        }
        // Else the text would end at it.
        if node.children().any(|it| it.is_comment() || it.is_pi()) {
            let name = node.tag_name().name();
            self.places.error(name_offset(node), name, "has a comment in its text".to_owned(), &[]);
        }
        node.text().unwrap_or_default().trim()
    }

    /// The same where there is to be some.
    pub(crate) fn some_text(&mut self, node: Node<'a, 'a>) -> &'a str {
        let text = self.text(node);
        if text.is_empty() {
            let name = node.tag_name().name();
            self.places.error(name_offset(node), name, "is empty".to_owned(), &[]);
        }
        text
    }

    /// Notes those of these names that stand in `node` more than once: what reads them would take one of them.
    pub(crate) fn at_most_once(&mut self, node: Node<'a, 'a>, names: &[&str]) {
        for name in names {
            let is_it = |it: &Node<'a, 'a>| it.is_element() && it.tag_name().name() == *name;
            for again in node.children().filter(is_it).skip(1) {
                self.places.error(name_offset(again), name, "stands here twice".to_owned(), &[]);
            }
        }
    }

    /// A pattern that means one thing to all who read it.
    pub(crate) fn pattern(&mut self, node: Node<'a, 'a>, text: &str) -> Pattern {
        let odd = ["\\", "[^", "[[", "[]", "[!]"].into_iter().find(|it| text.contains(it));
        let is_open = text.rfind('[').is_some_and(|at| !text[at..].contains(']'));
        if odd.is_some() || is_open {
            let what = odd.unwrap_or("a `[` without a `]`");
            let problem = format!("has {what}, of which implementations of DDS Security differ");
            self.places.error(name_offset(node), text, problem, &[]);
        }
        Pattern::new(text)
    }

    /// A text that is one of some words, and what these mean.
    pub(crate) fn word<T: Copy>(
        &mut self,
        node: Node<'a, 'a>,
        what: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(node);
        let meant = words.iter().find(|(word, _)| *word == text);
        if meant.is_none() {
            let allowed: Vec<&str> = words.iter().map(|it| it.0).collect();
            self.places.error(name_offset(node), text, format!("is not {what}"), &allowed);
        }
        meant.map(|it| it.1)
    }

    /// As XML Schema has it, and in capitals, as the specification writes it.
    pub(crate) fn boolean(&mut self, node: Node<'a, 'a>) -> Option<bool> {
        const WORDS: [(&str, bool); 6] = [
            ("true", true),
            ("false", false),
            ("1", true),
            ("0", false),
            ("TRUE", true),
            ("FALSE", false),
        ];
        self.word(node, "true or false", &WORDS)
    }

    pub(crate) fn domains(&mut self, node: Node<'a, 'a>) -> Domains {
        self.places.attributes(node, &[]);
        let mut domains = Vec::new();
        for child in self.places.elements(node) {
            match child.tag_name().name() {
                "id" => domains.extend(self.domain(child).map(|id| (id, id))),
                "id_range" => {
                    self.places.attributes(child, &[]);
                    self.at_most_once(child, &["min", "max"]);
                    let (mut first, mut last) = (0, u32::MAX);
                    let ends = self.places.elements(child);
                    if ends.is_empty() {
                        self.lacks(child, "min");
                    }
                    for end in ends {
                        match end.tag_name().name() {
                            "min" => first = self.domain(end).unwrap_or_default(),
                            "max" => last = self.domain(end).unwrap_or_default(),
                            _ => self.places.unknown_element(end, &["min", "max"]),
                        }
                    }
                    if last < first {
                        let problem = format!("ends at {last}, before it begins at {first}");
                        self.places.error(name_offset(child), "id_range", problem, &[]);
                    }
                    domains.push((first, last));
                }
                _ => self.places.unknown_element(child, &["id", "id_range"]),
            }
        }
        Domains(domains)
    }

    fn domain(&mut self, node: Node<'a, 'a>) -> Option<u32> {
        let text = self.text(node);
        let domain = text.parse().ok();
        if domain.is_none() {
            let problem = "is not the number of a domain".to_owned();
            self.places.error(name_offset(node), text, problem, &[]);
        }
        domain
    }

    /// What is between elements of one name.
    pub(crate) fn patterns(&mut self, node: Node<'a, 'a>, name: &str) -> Vec<Pattern> {
        self.places.attributes(node, &[]);
        let mut patterns = Vec::new();
        for child in self.places.elements(node) {
            if child.tag_name().name() == name {
                // The partition of those that have none has no name.
                let text =
                    if name == "partition" { self.text(child) } else { self.some_text(child) };
                patterns.push(self.pattern(child, text));
            } else {
                self.places.unknown_element(child, &[name]);
            }
        }
        patterns
    }

    /// A date and time of XML Schema, which is in UTC where it names no zone.
    pub(crate) fn time(&mut self, node: Node<'a, 'a>) -> Option<SystemTime> {
        let text = self.text(node);
        let time = time(text);
        if time.is_none() {
            let problem = "is not a date and time from 1970 on, such as 2026-11-30T12:00:00Z";
            self.places.error(name_offset(node), text, problem.to_owned(), &[]);
        }
        time
    }

    /// Notes that an element lacks another, and which.
    pub(crate) fn lacks(&mut self, node: Node<'a, 'a>, what: &str) {
        let word = node.tag_name().name();
        self.places.error(name_offset(node), word, format!("lacks the element {what:?}"), &[]);
    }
}

fn time(text: &str) -> Option<SystemTime> {
    let (date, rest) = text.split_once('T')?;
    let zone = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone);
    // A part of a second decides nothing.
    let time = match time.split_once('.') {
        Some((whole, part)) if part.bytes().all(|it| it.is_ascii_digit()) => whole,
        Some(_) => return None,
        None => time,
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    let is_date =
        1970 <= year && (1..=12).contains(&month) && 1 <= day && day <= days_of(year, month);
    if !is_time || !is_date {
        return None;
    }
    let seconds = ((days_before(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let ahead = match zone.split_at_checked(1) {
        None | Some(("Z", "")) => 0,
        Some((sign @ ("+" | "-"), zone)) => {
            let [hours, minutes] = numbers(zone, ':', [2, 2])?;
            if 14 < hours || 59 < minutes {
                return None;
            }
            let ahead = (hours * 60 + minutes) as i64 * 60;
            if sign == "+" { ahead } else { -ahead }
        }
        Some(_) => return None,
    };
    let seconds = seconds.checked_add_signed(-ahead)?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Numbers of so many digits.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(between);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|it| it.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let years = (1970..year).map(|it| 365 + u64::from(is_leap(it)));
    let months = (1..month).map(|it| days_of(year, it));
    years.chain(months).sum::<u64>() + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_schema_has_them() {
        let seconds = |text| {
            time(text).map(|it| it.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
        };
        for (text, expect) in [
            ("1970-01-01T00:00:00", 0),
            ("2026-11-30T01:02:03Z", 1_796_000_523),
            ("2026-11-30T01:02:03.25Z", 1_796_000_523),
            ("2026-11-30T03:02:03+02:00", 1_796_000_523),
            ("2026-11-29T19:32:03-05:30", 1_796_000_523),
            ("2000-02-29T00:00:00Z", 951_782_400),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
        ] {
            assert_eq!(seconds(text), Some(expect), "{text}");
        }
        for text in [
            "",
            "2026-11-30",
            "2026-11-31T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-13-01T00:00:00Z",
            "2026-11-30T24:00:00Z",
            "2026-11-30T01:02Z",
            "2026-11-30T01:02:03X",
            "2026-11-30T01:02:03+2",
            "2026-11-30T01:02:03.x",
            "26-11-30T01:02:03",
            "1970-01-01T00:00:00+01:00",
            "2026-11-30T01:02:03Z ",
            "２026-11-30T01:02:03Z",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
