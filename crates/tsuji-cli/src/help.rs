//! The texts behind the options of a help, wrapped where the terminal ends and not where the source did.

use clap::Command;

/// The command and all below it, each paragraph of whose texts is one line, for clap to wrap.
pub(crate) fn reflowed(mut command: Command) -> Command {
    if let Some(text) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(paragraphs(&text));
    }
    if let Some(text) = command.get_after_long_help().map(ToString::to_string) {
        command = command.after_long_help(paragraphs(&text));
    }
    command.mut_subcommands(reflowed)
}

/// Joins the lines of each paragraph. What is indented, such as an example, stays as it is.
fn paragraphs(text: &str) -> String {
    let goes_on = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut all = String::with_capacity(text.len());
    let mut before = "";
    for line in text.lines() {
        if !all.is_empty() {
            all.push(if goes_on(before) && goes_on(line) { ' ' } else { '\n' });
        }
        all.push_str(line);
        before = line;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let text = "One sentence that is\ncut here.\nAnother.\n\nExamples:\n  tsuji a \\\n      b\n  tsuji c";
        let joined = "One sentence that is cut here. Another.\n\nExamples:\n  tsuji a \\\n      b\n  tsuji c";
        assert_eq!(paragraphs(text), joined);
        assert_eq!(paragraphs(joined), joined);
        assert_eq!(paragraphs(""), "");
    }
}
