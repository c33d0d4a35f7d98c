//! What texts are to fit: `LIKE` and `MATCH`.

use regex_lite::{Regex, RegexBuilder};

/// Most bytes of memory that a regular expression may take.
const REGEX_BYTES_MAX: usize = 256 << 10;

/// Most regular expressions of one filter: each is looked for in every message.
pub(super) const REGEXES_MAX: usize = 16;

/// Most bytes of a pattern of `LIKE`. A text is looked through at worst as many times.
const LIKE_BYTES_MAX: usize = 1 << 10;

/// What a text fits, or not.
#[derive(Clone, Debug)]
pub(super) enum Fit {
    Like(Vec<Piece>),
    Match(Regex),
}

/// What comes next in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Letter(char),
    AnyLetter,
    AnyText,
}

impl Fit {
    /// Of `LIKE`: `%` and `*` stand for any text, `_` and `?` for one character. Or why it is too much.
    pub(super) fn like(pattern: &str) -> Result<Self, String> {
        if LIKE_BYTES_MAX < pattern.len() {
            return Err(format!("of at most {LIKE_BYTES_MAX} bytes; it has {}", pattern.len()));
        }
        let mut pieces: Vec<Piece> = pattern
            .chars()
            .map(|it| match it {
                '%' | '*' => Piece::AnyText,
                '_' | '?' => Piece::AnyLetter,
                letter => Piece::Letter(letter),
            })
            .collect();
        pieces.dedup_by(|a, b| *a == Piece::AnyText && *b == Piece::AnyText);
        Ok(Self::Like(pieces))
    }

    /// Of `MATCH`: a regular expression for the whole text; or why it is none.
    pub(super) fn regex(pattern: &str) -> Result<Self, String> {
        // Alone first: what closes a group that it has not opened would be read otherwise inside one.
        let build = |pattern: &str| {
            let built = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build();
            built.map_err(|error| error.to_string())
        };
        build(pattern)?;
        build(&format!("\\A(?:{pattern})\\z")).map(Self::Match)
    }

    pub(super) fn is_fit(&self, text: &str) -> bool {
        match self {
            Self::Like(pieces) => is_like(pieces, text),
            Self::Match(regex) => regex.is_match(text),
        }
    }
}

/// Each piece is tried where it comes; where one fails, the last piece of any text takes one letter more.
fn is_like(pieces: &[Piece], text: &str) -> bool {
    let (mut piece, mut letters) = (0, text.chars());
    let mut again: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        let before = letters.clone();
        match (pieces.get(piece), letters.next()) {
            (Some(Piece::AnyText), _) => {
                piece += 1;
                letters = before;
                again = Some((piece, letters.clone()));
            }
            (None, None) => return true,
            (Some(Piece::AnyLetter), Some(_)) => piece += 1,
            (Some(Piece::Letter(wanted)), Some(letter)) if *wanted == letter => piece += 1,
            (_, None) => return false,
            _ => match &mut again {
                None => return false,
                Some((behind, from)) => {
                    from.next();
                    piece = *behind;
                    letters = from.clone();
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_is_for_the_whole_text() {
        let check = |pattern: &str, fits: &[&str], others: &[&str]| {
            let fit = Fit::like(pattern).expect("a pattern");
            fits.iter().for_each(|text| assert!(fit.is_fit(text), "{pattern} {text}"));
            others.iter().for_each(|text| assert!(!fit.is_fit(text), "{pattern} {text}"));
        };
        check("", &[""], &["a"]);
        check("%", &["", "a", "ab"], &[]);
        check("wheel", &["wheel"], &["Wheel", "wheels", "a wheel"]);
        check("wheel_%", &["wheel_1", "wheels", "wheel__"], &["wheel", "whee"]);
        check("%left%", &["left", "a left one"], &["lef t"]);
        check("a%b%c", &["abc", "aXbYc", "abbcc", "abcbc"], &["ab", "acb"]);
        check("a*c", &["ac", "abc"], &["acd"]);
        check("?_", &["ab", "äö", "🚁🚁"], &["a", "abc"]);
        check("%%a%%", &["a", "bab"], &["b"]);
        check("a.c", &["a.c"], &["abc"]);
        assert!(Fit::like(&"%".repeat(1024)).is_ok());
        assert!(Fit::like(&"a".repeat(1025)).is_err());
    }

    #[test]
    fn a_regular_expression_is_for_the_whole_text() {
        let check = |pattern: &str, fits: &[&str], others: &[&str]| {
            let fit = Fit::regex(pattern).expect("a regular expression");
            fits.iter().for_each(|text| assert!(fit.is_fit(text), "{pattern} {text}"));
            others.iter().for_each(|text| assert!(!fit.is_fit(text), "{pattern} {text}"));
        };
        check("[ab]+", &["a", "abba"], &["", "abc", "xa"]);
        check("a|bc", &["a", "bc"], &["ac", "abc"]);
        check("\\d{2}", &["42"], &["4", "421"]);
        check("(?i)a(?-i)b", &["ab", "Ab"], &["aB"]);
        for wrong in ["[", "a)(b", "(?=a)", "a{100000}{100000}", "(((\\w{99}){9}){9}){9}"] {
            assert!(Fit::regex(wrong).is_err(), "{wrong}");
        }
    }
}
