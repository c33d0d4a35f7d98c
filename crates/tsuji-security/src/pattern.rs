//! Patterns of names, as `fnmatch` of POSIX has them without flags: `*`, `?`, `[a-z]`, `[!a]` and `\`.

use std::fmt;

/// A pattern of topics or partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `*`: any text, slashes too.
    Any,
    /// `?`: one character.
    One,
    Literal(char),
    /// One character that is in one of these ranges, or in none.
    Class(bool, Vec<(char, char)>),
}

impl Pattern {
    /// Reads it. A `[` that nothing closes stands for itself.
    pub fn new(text: &str) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let (mut parts, mut at) = (Vec::new(), 0);
        while let Some(letter) = letters.get(at).copied() {
            at += 1;
            let part = match letter {
                // Several say no more than one.
                '*' if parts.last() == Some(&Part::Any) => continue,
                '*' => Part::Any,
                '?' => Part::One,
                '\\' if at < letters.len() => {
                    at += 1;
                    Part::Literal(letters[at - 1])
                }
                '[' => match class(&letters[at..]) {
                    Some((class, length)) => {
                        at += length;
                        class
                    }
                    None => Part::Literal('['),
                },
                letter => Part::Literal(letter),
            };
            parts.push(part);
        }
        Self { text: text.to_owned(), parts }
    }

    /// Whether a name fits it.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut part, mut at) = (0, 0);
        // The last `*`, and how much of the name it has taken.
        let mut any: Option<(usize, usize)> = None;
        loop {
            match (self.parts.get(part), name.get(at)) {
                (None, None) => return true,
                (Some(Part::Any), _) => {
                    any = Some((part, at));
                    part += 1;
                }
                (Some(it), Some(letter)) if it.fits(*letter) => (part, at) = (part + 1, at + 1),
                _ => match &mut any {
                    Some((star, taken)) if *taken < name.len() => {
                        *taken += 1;
                        (part, at) = (*star + 1, *taken);
                    }
                    _ => return false,
                },
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Part {
    fn fits(&self, letter: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Literal(own) => *own == letter,
            Self::Class(is_wanted, ranges) => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&letter)) == *is_wanted
            }
        }
    }
}

/// What stands behind a `[`, and how many characters it has with its `]`.
fn class(letters: &[char]) -> Option<(Part, usize)> {
    let is_wanted = !matches!(letters.first(), Some('!' | '^'));
    let begin = usize::from(!is_wanted);
    let (mut ranges, mut at) = (Vec::new(), begin);
    loop {
        let letter = *letters.get(at)?;
        // The first one is a character like others.
        if letter == ']' && at != begin {
            return Some((Part::Class(is_wanted, ranges), at + 1));
        }
        let end = letters.get(at + 2).filter(|it| letters[at + 1] == '-' && **it != ']');
        ranges.push((letter, *end.unwrap_or(&letter)));
        at += if end.is_some() { 3 } else { 1 };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_fit_as_in_posix() {
        for (pattern, fits, not) in [
            ("*", vec!["", "rt/chatter", "a"], vec![]),
            ("rt/*", vec!["rt/", "rt/a/b"], vec!["rt", "rq/a"]),
            ("rt/chatter", vec!["rt/chatter"], vec!["rt/chatter2", "rt/chatte", ""]),
            ("*/image", vec!["rt/image", "rt/left/image"], vec!["rt/image_raw", "image"]),
            ("rt/cam?", vec!["rt/cam1"], vec!["rt/cam", "rt/cam12"]),
            ("rt/cam[0-3a]", vec!["rt/cam0", "rt/cama"], vec!["rt/cam4", "rt/camb"]),
            ("rt/cam[!0-3]", vec!["rt/cam4"], vec!["rt/cam0", "rt/cam"]),
            ("[]a]", vec!["]", "a"], vec!["b", ""]),
            ("[a-]", vec!["a", "-"], vec!["b"]),
            ("[ab", vec!["[ab"], vec!["a"]),
            ("a\\*", vec!["a*"], vec!["ab"]),
            ("**a**b*", vec!["ab", "xaxbx"], vec!["ba"]),
            ("", vec![""], vec!["a"]),
        ] {
            let read = Pattern::new(pattern);
            assert_eq!(read.to_string(), pattern);
            fits.iter().for_each(|it| assert!(read.matches(it), "{pattern} {it}"));
            not.iter().for_each(|it| assert!(!read.matches(it), "{pattern} {it}"));
        }
    }

    /// The same by trying all there is.
    fn fits(parts: &[Part], name: &[char]) -> bool {
        match (parts, name) {
            ([], []) => true,
            ([Part::Any, rest @ ..], _) => (0..=name.len()).any(|it| fits(rest, &name[it..])),
            ([part, parts @ ..], [letter, name @ ..]) => part.fits(*letter) && fits(parts, name),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn what_fits_is_what_fits_when_all_is_tried(
            pattern in "([ab/]|\\*|\\?|\\[[!]?[ab]-?[b]?\\]|\\[|\\\\){0,8}",
            name in "[ab/\\[\\]*-]{0,8}",
        ) {
            let pattern = Pattern::new(&pattern);
            let letters: Vec<char> = name.chars().collect();
            prop_assert_eq!(pattern.matches(&name), fits(&pattern.parts, &letters));
        }
    }
}
