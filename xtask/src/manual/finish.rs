//! What the pages that mdBook makes lack for those who read by other means than a screen and a mouse.

use std::fs;
use std::path::Path;

use super::at;

/// What stands once in each page, and what it becomes: what works as a button is one, what stands beside the text is
/// in landmarks, the title of the book is no second heading of each page, and the field of the search has a name.
const ONCE: [(&str, &str); 6] = [
    (
        r#"<label id="mdbook-sidebar-toggle" class="icon-button" for="mdbook-sidebar-toggle-anchor""#,
        r#"<button id="mdbook-sidebar-toggle" class="icon-button" type="button""#,
    ),
    // Pictures are in labels too, within lines.
    (
        "\n                        </label>\n",
        "\n                        </button>\n                    ",
    ),
    (
        r#"<div id="mdbook-menu-bar" class="menu-bar sticky">"#,
        r#"<div id="mdbook-menu-bar" class="menu-bar sticky" role="banner">"#,
    ),
    (r#"<h1 class="menu-title">tsuji</h1>"#, r#"<div class="menu-title">tsuji</div>"#),
    (
        r#"<div id="mdbook-search-wrapper" class="hidden">"#,
        r#"<div id="mdbook-search-wrapper" class="hidden" role="search">"#,
    ),
    (
        r#"<input type="search" id="mdbook-searchbar""#,
        r#"<input type="search" id="mdbook-searchbar" aria-label="Search this book""#,
    ),
];

/// What may stand anywhere: a cell without a word heads nothing.
const ANYWHERE: (&str, &str) = ("<th></th>", "<td></td>");

/// Finishes each page of the book at `folder`.
pub(crate) fn finish(folder: &Path) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        if path.is_dir() {
            finish(&path)?;
        } else if path.extension().is_some_and(|it| it == "html") {
            let text = fs::read_to_string(&path).map_err(at(&path))?;
            // Lists of files and the contents alone are none of its pages.
            if text.contains(r#"id="mdbook-content""#) {
                let text = finished(&text).map_err(|why| format!("{}: {why}", path.display()))?;
                fs::write(&path, text).map_err(at(&path))?;
            }
        }
    }
    Ok(())
}

fn finished(page: &str) -> Result<String, String> {
    let mut page = page.replace(ANYWHERE.0, ANYWHERE.1);
    for (from, to) in ONCE {
        // A page that was finished before stays as it is.
        if page.matches(to).count() == 1 {
            continue;
        }
        if page.matches(from).count() != 1 {
            return Err(format!("{from} does not stand there once; has mdBook changed?"));
        }
        page = page.replace(from, to);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_finished_once() {
        let page: String =
            ONCE.iter().map(|(from, _)| *from).chain(["<th></th><th>x</th>"]).collect();
        let expected: String =
            ONCE.iter().map(|(_, to)| *to).chain(["<td></td><th>x</th>"]).collect();
        assert_eq!(finished(&page).as_ref(), Ok(&expected));
        assert_eq!(finished(&expected), Ok(expected));
    }

    #[test]
    fn a_page_of_another_mdbook_is_refused() {
        let error = finished("<h1>tsuji</h1>").unwrap_err();
        assert!(error.ends_with("does not stand there once; has mdBook changed?"), "{error}");
    }
}
