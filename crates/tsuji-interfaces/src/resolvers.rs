use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;
use tsuji_msg::{Kind, Resolver};

/// Bytes of a definition file. A longer file is treated as missing; the parser refuses such a text
/// anyway.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The definitions that ship with tsuji, sorted by name.
static TEXTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// The definitions that ship with tsuji: the common interfaces as of ROS 2 Jazzy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shipped;

impl Resolver for Shipped {
    fn definition(&self, kind: Kind, package: &str, name: &str) -> Option<Cow<'_, str>> {
        let name = format!("{package}/{kind}/{name}");
        let index = TEXTS.binary_search_by_key(&name.as_str(), |(name, _)| name).ok()?;
        Some(Cow::Borrowed(TEXTS[index].1))
    }
}

/// The ROS names of all shipped interfaces in their order, such as `sensor_msgs/msg/Image`.
pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}

/// The definitions of an installed ROS 2 and its workspaces, read from
/// `<prefix>/share/<package>/<kind>/<Name>.<kind>` when asked for.
#[derive(Clone, Debug, Default)]
pub struct AmentIndex {
    prefixes: Vec<PathBuf>,
}

impl AmentIndex {
    /// An index over the value of `AMENT_PREFIX_PATH`: folders with colons between them, the first
    /// that has a definition wins.
    pub fn from_env_value(value: &str) -> Self {
        Self {
            prefixes: value
                .split(':')
                .filter(|prefix| !prefix.is_empty())
                .map(PathBuf::from)
                .collect(),
        }
    }

    /// The folders that are searched, in their order.
    pub fn prefixes(&self) -> &[PathBuf] {
        &self.prefixes
    }
}

impl Resolver for AmentIndex {
    fn definition(&self, kind: Kind, package: &str, name: &str) -> Option<Cow<'_, str>> {
        // Names come from messages and command lines; one with a path in it must not leave the
        // folders.
        let is_plain =
            |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if package.is_empty() || name.is_empty() || !is_plain(package) || !is_plain(name) {
            return None;
        }
        self.prefixes.iter().find_map(|prefix| {
            let file =
                prefix.join("share").join(package).join(kind.word()).join(format!("{name}.{kind}"));
            let length = fs::metadata(&file).ok()?.len();
            if length > FILE_BYTES_MAX {
                return None;
            }
            fs::read_to_string(file).ok().map(Cow::Owned)
        })
    }
}

/// Several resolvers, asked in their order.
pub struct Chain(pub Vec<Box<dyn Resolver + Send + Sync>>);

impl Resolver for Chain {
    fn definition(&self, kind: Kind, package: &str, name: &str) -> Option<Cow<'_, str>> {
        self.0.iter().find_map(|resolver| resolver.definition(kind, package, name))
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chain of {}", self.0.len())
    }
}
