//! How long the sentences of a page are: prose and lists, without code, tables and headings.

/// The words and sentences of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Length {
    pub(crate) words: usize,
    pub(crate) sentences: usize,
}

impl Length {
    /// Words a sentence; 0 where there is none.
    pub(crate) fn mean(self) -> f64 {
        if self.sentences == 0 {
            return 0.0;
        }
        // Pages are far from where a float loses a word.
        #[allow(clippy::cast_precision_loss, reason = "pages have no billions of words")]
        let (words, sentences) = (self.words as f64, self.sentences as f64);
        words / sentences
    }
}

/// Counts the words and sentences of a page. A full stop, a question mark and an exclamation mark end a sentence, and so does the
/// end of an item or a paragraph; a semicolon does not. A span of code is one word.
pub(crate) fn length(text: &str) -> Length {
    let mut length = Length::default();
    for paragraph in paragraphs(text) {
        let plain = plain(&paragraph);
        let words: Vec<&str> = plain.split_whitespace().collect();
        let mut count = 0;
        for (at, word) in words.iter().enumerate() {
            // Signs that stand alone are none.
            count += usize::from(word.chars().any(char::is_alphanumeric));
            let ends = word.trim_end_matches([')', '"', '*', '_']).ends_with(['.', '?', '!']);
            let goes_on =
                words.get(at + 1).is_some_and(|next| next.starts_with(char::is_lowercase));
            let ends = ends && !(goes_on && word.ends_with('.')) && !ABBREVIATIONS.contains(word);
            if (ends || at + 1 == words.len()) && count > 0 {
                length.words += count;
                length.sentences += 1;
                count = 0;
            }
        }
    }
    length
}

/// Words that end with a full stop within a sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "vs.", "No."];

/// The paragraphs and items of a page that are prose.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut last = 0;
    for (number, line) in crate::links::prose(text) {
        let trimmed = line.trim();
        let item = trimmed.trim_start_matches(|it: char| it.is_ascii_digit());
        let item = ["- ", "* ", ". "].iter().find_map(|it| item.strip_prefix(it));
        let is_aside =
            trimmed.starts_with(['#', '|', '<']) || (item.is_none() && trimmed.is_empty());
        if is_aside || item.is_some() || number != last + 1 {
            paragraphs.push(String::new());
        }
        last = number;
        if !is_aside {
            let paragraph = paragraphs.last_mut().expect("there is one");
            paragraph.push(' ');
            paragraph.push_str(item.unwrap_or(trimmed));
        }
    }
    paragraphs.retain(|it| !it.trim().is_empty());
    paragraphs
}

/// A paragraph as it is read: a span of code is one word, of a link its text is left.
fn plain(paragraph: &str) -> String {
    let mut text = String::new();
    for (at, part) in paragraph.split('`').enumerate() {
        text.push_str(if at % 2 == 0 { part } else { "code" });
    }
    while let Some((before, (_, after))) =
        text.split_once("](").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    {
        text = format!("{before}{after}");
    }
    text.replace(['[', ']'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, words: usize, sentences: usize) {
        assert_eq!(length(text), Length { words, sentences }, "{text}");
    }

    #[test]
    fn sentences_end_where_readers_stop() {
        check("One two three. Four five!\nSix\nseven?", 7, 3);
        check("One (two). \"Three four.\" Five", 5, 3);
        check("It is v1.2 of it, e.g. this; and that.", 9, 1);
        check("Node (tsuji 2.0) is met, …", 5, 1);
    }

    #[test]
    fn lists_and_paragraphs_end_them_too() {
        check("One two\n\n- three four\n  five\n- six\n1. seven\n", 7, 4);
    }

    #[test]
    fn what_is_no_prose_is_not_counted() {
        check("# One two\n\nThree.\n\n| a | b |\n|---|---|\n\n```sh\nfour five\n```\n", 1, 1);
        check("`a b c` is [two words](x.md#y) – and *more*.", 6, 1);
    }

    #[test]
    fn a_mean_is_of_all_sentences() {
        assert!((length("One two three. Four.").mean() - 2.0).abs() < 1e-9);
        assert!(length("").mean().abs() < 1e-9);
    }
}
