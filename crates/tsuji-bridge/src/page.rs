//! The page that browsers are served: files that are built in. It is a client of the bridge like any other, so that nothing is
//! told to it by HTTP but the files themselves, which are no secret.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

use crate::settings::Settings;

/// The files of the page; none where it is not served.
#[derive(Debug, Default)]
pub(crate) struct Page {
    files: Vec<File>,
    /// The path of WebSockets, below which the page is too: for a proxy that hands paths on as they are.
    prefix: String,
    /// What is at its root there.
    below: Option<File>,
}

/// A file that is served.
#[derive(Debug)]
pub(crate) struct File {
    path: &'static str,
    /// Its media type.
    pub(crate) media_type: &'static str,
    /// Names what is in it, so that a browser that has it need not get it again.
    pub(crate) tag: String,
    /// What is in it.
    pub(crate) bytes: Cow<'static, [u8]>,
}

impl File {
    fn new(path: &'static str, media_type: &'static str, bytes: Cow<'static, [u8]>) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        Self { path, media_type, tag: format!("\"{:016x}\"", hasher.finish()), bytes }
    }
}

impl Page {
    /// What `settings` says is served.
    pub(crate) fn new(settings: &Settings) -> Self {
        if !settings.page || settings.bson_only {
            return Self::default();
        }
        let index = |websockets: &str| {
            let index = INDEX
                .replace("{{websockets}}", &escaped(websockets))
                .replace("{{version}}", env!("CARGO_PKG_VERSION"));
            File::new("/", "text/html; charset=utf-8", index.into_bytes().into())
        };
        // Relative to the page, which may be anywhere for the browser.
        let prefix = settings.url_path.trim_matches('/');
        let below = (!prefix.is_empty()).then(|| index("./"));
        let others = FILES.iter().map(|(path, bytes)| {
            let media_type = match path.rsplit('.').next() {
                Some("js") => "text/javascript; charset=utf-8",
                Some("css") => "text/css; charset=utf-8",
                Some("svg") => "image/svg+xml",
                _ => "text/plain; charset=utf-8",
            };
            File::new(path, media_type, Cow::Borrowed(*bytes))
        });
        let files = std::iter::once(index(&format!("./{prefix}"))).chain(others).collect();
        Self { files, prefix: format!("/{prefix}"), below }
    }

    /// The file at a path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        let at = |path: &str| self.files.iter().find(|it| it.path == path);
        let below = || match (path.strip_prefix(&*self.prefix)?, &self.below) {
            ("/", Some(index)) => Some(index),
            (rest, Some(_)) => at(rest),
            (_, None) => None,
        };
        at(path).or_else(below)
    }

    /// Where else the page is for whoever asks for this path, relative to it.
    pub(crate) fn moved(&self, path: &str) -> Option<String> {
        let is_it = self.below.is_some() && path == self.prefix;
        is_it.then(|| format!("./{}/", path.rsplit('/').next().unwrap_or_default()))
    }
}

/// A text that stands for itself in an attribute of HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Where `{{websockets}}` and `{{version}}` are put in.
const INDEX: &str = include_str!("../page/index.html");

/// A table of files of `page`, each by its path there.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$((concat!("/", $name), include_bytes!(concat!("../page/", $name)).as_slice())),*]
    };
}

const FILES: &[(&str, &[u8])] = &files![
    "bridge.js",
    "call.js",
    "chart.js",
    "dom.js",
    "engines.js",
    "format.js",
    "icon.svg",
    "main.js",
    "message.js",
    "picture.js",
    "pixels.js",
    "playback.js",
    "plot.js",
    "publish.js",
    "routes.js",
    "spark.js",
    "style.css",
    "system.js",
    "tabs.js",
    "topics.js",
    "transport.js",
    "vendor/LICENSES.txt",
    "vendor/roslib.js",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn text(page: &Page, path: &str) -> String {
        String::from_utf8(page.file(path).unwrap().bytes.to_vec()).unwrap()
    }

    #[test]
    fn the_page_knows_where_websockets_are() {
        let settings = Settings { url_path: "/a\"><b>&".to_owned(), ..Settings::default() };
        let index = text(&Page::new(&settings), "/");
        assert!(index.contains("\"./a&quot;>&lt;b>&amp;\""), "{index}");
        assert!(!index.contains("{{"), "{index}");
    }

    /// A proxy may leave its path away or hand it on.
    #[test]
    fn the_page_is_below_the_path_of_websockets_too() {
        for url_path in ["/robots/one", "/robots/one/", "robots/one"] {
            let page =
                Page::new(&Settings { url_path: url_path.to_owned(), ..Settings::default() });
            assert!(text(&page, "/").contains("content=\"./robots/one\""));
            assert!(text(&page, "/robots/one/").contains("content=\"./\""));
            assert_eq!(text(&page, "/robots/one/main.js"), text(&page, "/main.js"));
            assert_eq!(page.moved("/robots/one").as_deref(), Some("./one/"));
            for nothing in
                ["/robots/one", "/robots/", "/robots/onemain.js", "/robots/one//", "/other/"]
            {
                assert!(page.file(nothing).is_none(), "{nothing}");
            }
        }
        let page = Page::new(&Settings::default());
        assert!(text(&page, "/").contains("content=\"./\""));
        assert!(page.file("//").is_none() && page.moved("/").is_none());
    }

    #[test]
    fn no_page_is_served_that_is_not_wanted_or_could_not_speak() {
        for settings in [
            Settings { page: false, ..Settings::default() },
            Settings { bson_only: true, ..Settings::default() },
        ] {
            assert!(Page::new(&settings).file("/").is_none());
        }
    }

    #[test]
    fn a_tag_names_what_is_in_a_file() {
        let page = Page::new(&Settings::default());
        let tags: std::collections::BTreeSet<_> = page.files.iter().map(|it| &it.tag).collect();
        assert_eq!(tags.len(), page.files.len());
        let again = Page::new(&Settings::default());
        assert_eq!(page.file("/").unwrap().tag, again.file("/").unwrap().tag);
    }

    /// All that modules and the page name is there, and nothing that nobody names.
    #[test]
    fn what_files_name_is_served_and_nothing_else() {
        let page = Page::new(&Settings::default());
        let mut named = std::collections::BTreeSet::from(["/".to_owned()]);
        for file in page.files.iter().filter(|it| !it.path.starts_with("/vendor/")) {
            let text = text(&page, file.path);
            for begin in ["from './", "import './", "src=\"./", "href=\"./"] {
                for rest in text.split(begin).skip(1) {
                    named.insert(format!("/{}", rest.split(['\'', '"']).next().unwrap()));
                }
            }
        }
        let served: std::collections::BTreeSet<_> =
            page.files.iter().map(|it| it.path.to_owned()).collect();
        assert_eq!(named, served);
    }
}
