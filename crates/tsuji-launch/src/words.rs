//! A line split into words, as a shell does.

use crate::substitution::Piece;

/// Splits a line into words, as a shell does with quotes and backslashes and nothing else.
///
/// # Errors
/// A quote that is not closed.
pub fn shell_words(line: &str) -> Result<Vec<String>, char> {
    split(&[Piece::Text(line.to_owned())])
}

/// Splits what is written; what a substitution gave is not split, and stays within its word, which is an empty one if it
/// gave nothing. `Err` is a quote that is not closed.
pub(crate) fn split(pieces: &[Piece]) -> Result<Vec<String>, char> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for piece in pieces {
        let text = match piece {
            Piece::Text(text) => text,
            Piece::Value(value) => {
                word.get_or_insert_default().push_str(value);
                continue;
            }
        };
        let mut characters = text.chars().peekable();
        while let Some(it) = characters.next() {
            match (it, quote) {
                (_, Some(open)) if it == open => quote = None,
                ('\\', Some('"')) if matches!(characters.peek(), Some('"' | '\\')) => {
                    word.get_or_insert_default().extend(characters.next());
                }
                (_, Some(_)) => word.get_or_insert_default().push(it),
                ('\'' | '"', None) => {
                    quote = Some(it);
                    word.get_or_insert_default();
                }
                ('\\', None) => word.get_or_insert_default().push(characters.next().unwrap_or(it)),
                (_, None) if it.is_whitespace() => words.extend(word.take()),
                (_, None) => word.get_or_insert_default().push(it),
            }
        }
    }
    if let Some(open) = quote {
        return Err(open);
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[Piece], expect: Result<&[&str], char>) {
        let words = split(pieces);
        let words = words.as_ref().map(|it| it.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(words.as_deref().map_err(|it| **it), expect);
    }

    #[test]
    fn what_is_written_is_split_and_values_are_not() {
        let text = |it: &str| Piece::Text(it.to_owned());
        let value = |it: &str| Piece::Value(it.to_owned());
        check(&[], Ok(&[]));
        check(&[text("  a b\tc ")], Ok(&["a", "b", "c"]));
        check(&[text(r#"'a b' "c \" d" e\ f ''"#)], Ok(&["a b", "c \" d", "e f", ""]));
        check(&[text("--name="), value("a b"), text(" c")], Ok(&["--name=a b", "c"]));
        check(&[text("a "), value(""), text(" b")], Ok(&["a", "", "b"]));
        check(&[text("'a "), value("b c"), text("' d")], Ok(&["a b c", "d"]));
        check(&[text("a 'b")], Err('\''));
    }
}
