//! Users, and what they may do, from a file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::result;

use tsuji_msg::yaml::{self, Node, NodeKind};
use tsuji_rosbridge::Rate;
use tsuji_rosbridge::access::{Globs, Permissions, Rosauth, Token, User, UserLimits};

use crate::{Error, Result};

/// The users of a file, which is YAML.
///
/// ```
/// let text = "
/// users:
///   operator:
///     token: correct horse battery staple
///     publish: [/cmd_vel, '/arm/*']
///     subscribe: all
///     limits: {messages_per_second: 100}
/// anonymous:
///   subscribe: [/map]
/// ";
/// let users = tsuji_bridge::Users::parse(text)?;
/// assert_eq!(users.named[0].name, "operator");
/// assert!(users.anonymous.is_some());
/// # Ok::<_, String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Users {
    /// Those who can be named, in the order of the file.
    pub named: Vec<User>,
    /// Who a client is that has not said it, if that is anybody.
    pub anonymous: Option<User>,
}

impl Users {
    /// Reads the users of the file at `path`.
    ///
    /// A file that others can read is warned of.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the file cannot be read, is larger than 1 MiB or is not
    /// UTF-8; else those of [`parse`](Self::parse), in a sentence that names file, line, column and what is
    /// allowed.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_secret(path)?;
        Self::parse(&text).map_err(|error| Error::invalid(format!("{}:{error}", path.display())))
    }

    /// Reads the users of a text.
    ///
    /// # Errors
    ///
    /// A sentence that begins with line and column, if the text is no YAML, names nobody, has a word or a value
    /// that is not allowed, or gives two users one token.
    pub fn parse(text: &str) -> result::Result<Self, String> {
        let root = yaml::parse(text).map_err(|error| {
            let (line, column) = error.place.unwrap_or((1, 1));
            format!("{line}:{column}: found {}; allowed: {}", error.found, error.expected)
        })?;
        let mut users = Self::default();
        for (key, node) in members(&root, "")? {
            match key.as_str() {
                "users" => {
                    for (name, node) in members(node, "users")? {
                        let user = read_user(name, node, true)?;
                        let is_same = |it: &&User| it.token.is_some() && it.token == user.token;
                        if let Some(other) = users.named.iter().find(is_same) {
                            let found = format!("the token of {}", other.name);
                            return Err(refused(node, name, &found, "a token of its own"));
                        }
                        users.named.push(user);
                    }
                }
                "anonymous" => users.anonymous = Some(read_user(key, node, false)?),
                _ => return Err(refused(node, "", &format!("`{key}`"), "users and anonymous")),
            }
        }
        if users == Self::default() {
            // With nobody named everybody could do everything.
            return Err(refused(&root, "", "nobody", "users, anonymous or both"));
        }
        Ok(users)
    }
}

/// What is needed to check hashes of rosauth, with the secret that is the first line of the file at `path`.
///
/// # Errors
///
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the file cannot be read, is larger than 1 MiB or is not
/// UTF-8, or its first line has fewer than 16 letters.
pub fn read_rosauth(path: &Path) -> Result<Rosauth> {
    let text = read_secret(path)?;
    let secret = text.lines().next().unwrap_or_default();
    let letters = secret.chars().count();
    if letters < SECRET_LETTERS_MIN {
        let shown = path.display();
        let allowed =
            format!("at least {SECRET_LETTERS_MIN}; rosauth itself takes {SECRET_LETTERS_MIN}");
        return Err(Error::invalid(format!(
            "{shown}:1: found {letters} letters; allowed: {allowed}"
        )));
    }
    Ok(Rosauth::new(secret))
}

/// The text of a file that only its owner, and perhaps a group, should read.
fn read_secret(path: &Path) -> Result<String> {
    let shown = path.display();
    let failed = |error: std::io::Error| Error::invalid(format!("{shown}: {error}"));
    let metadata = fs::metadata(path).map_err(failed)?;
    if FILE_BYTES_MAX < metadata.len() {
        let bytes = metadata.len();
        let why = format!("{shown}: found {bytes} bytes; allowed: at most {FILE_BYTES_MAX}");
        return Err(Error::invalid(why));
    }
    if metadata.permissions().mode() & OTHERS != 0 {
        tracing::warn!(file = %shown, "everybody on this machine can read or change this file of secrets; chmod o-rwx helps");
    }
    fs::read_to_string(path).map_err(failed)
}

fn read_user(name: &str, node: &Node, may_have_token: bool) -> result::Result<User, String> {
    let allowed = if may_have_token { USER_WORDS } else { ANONYMOUS_WORDS };
    let mut user = User { may: Permissions::NONE, ..User::unrestricted(name, None) };
    let entries = members(node, name)?;
    if entries.iter().any(|(key, _)| key == "enclave") {
        // Its permissions say the rest. Routes are not in them.
        user.may = Permissions { set_route: Globs::NONE, ..Permissions::ALL };
    }
    for (key, node) in entries {
        let path = format!("{name}.{key}");
        let may = &mut user.may;
        let globs = match key.as_str() {
            "publish" => &mut may.publish,
            "subscribe" => &mut may.subscribe,
            "call_service" => &mut may.call_service,
            "advertise_service" => &mut may.advertise_service,
            "send_action_goal" => &mut may.send_action_goal,
            "advertise_action" => &mut may.advertise_action,
            "get_param" => &mut may.get_param,
            "set_param" => &mut may.set_param,
            "set_route" => &mut may.set_route,
            "enclave" => {
                user.enclave = Some(read_enclave(node, &path)?);
                continue;
            }
            "limits" => {
                user.limits = read_limits(node, &path)?;
                continue;
            }
            "token" | "token_sha256" if may_have_token && user.token.is_none() => {
                user.token = Some(read_token(key == "token", node, &path)?);
                continue;
            }
            "token" | "token_sha256" if may_have_token => {
                return Err(refused(node, &path, "a second token", "one of both"));
            }
            _ => return Err(refused(node, name, &format!("`{key}`"), allowed)),
        };
        *globs = read_globs(node, &path)?;
    }
    Ok(user)
}

/// What stands there is not repeated: it may be a token with a slip in it.
fn read_token(is_plain: bool, node: &Node, path: &str) -> result::Result<Token, String> {
    let NodeKind::Scalar { text, .. } = &node.kind else {
        return Err(refused(node, path, &node.describe(), "a text"));
    };
    match is_plain {
        true => Token::new(text).ok_or_else(|| refused(node, path, "nothing", "a text")),
        false => Token::from_sha256(text).ok_or_else(|| {
            refused(node, path, "something else", "a SHA-256, 64 digits of hexadecimal")
        }),
    }
}

fn read_enclave(node: &Node, path: &str) -> result::Result<String, String> {
    match &node.kind {
        NodeKind::Scalar { text, .. } if text.starts_with('/') => Ok(text.clone()),
        _ => {
            Err(refused(node, path, &node.describe(), "the name of an enclave, such as /operator"))
        }
    }
}

fn read_globs(node: &Node, path: &str) -> result::Result<Globs, String> {
    let refuse = |node: &Node| Err(refused(node, path, &node.describe(), GLOBS));
    match &node.kind {
        NodeKind::Scalar { text, .. } if text == "all" => Ok(Globs::ALL),
        NodeKind::Scalar { text, .. } if text == "none" => Ok(Globs::NONE),
        NodeKind::Sequence(items) => {
            let mut patterns = Vec::new();
            for item in items {
                match &item.kind {
                    NodeKind::Scalar { text, .. } if !text.is_empty() => patterns.push(text),
                    _ => return refuse(item),
                }
            }
            Ok(Globs::new(patterns))
        }
        _ => refuse(node),
    }
}

fn read_limits(node: &Node, path: &str) -> result::Result<UserLimits, String> {
    let mut limits = UserLimits::default();
    for (key, node) in members(node, path)? {
        let path = format!("{path}.{key}");
        match key.as_str() {
            "messages_per_second" => {
                limits.messages = Some(Rate::steady(number(node, &path, 0.001)?))
            }
            "bytes_per_second" => limits.bytes = Some(Rate::steady(number(node, &path, 1.0)?)),
            "memory_bytes" => {
                limits.memory_bytes_max = Some(number(node, &path, MEMORY_BYTES_MIN)? as usize);
            }
            _ => return Err(refused(node, &path, &format!("`{key}`"), LIMITS_WORDS)),
        }
    }
    Ok(limits)
}

fn number(node: &Node, path: &str, min: f64) -> result::Result<f64, String> {
    let value = match &node.kind {
        NodeKind::Scalar { text, plain: true } => yaml::float(text),
        _ => None,
    };
    value
        .filter(|it| (min..=NUMBER_MAX).contains(it))
        .ok_or_else(|| refused(node, path, &node.describe(), &format!("{min} to {NUMBER_MAX}")))
}

/// The members of a mapping; none of nothing.
fn members<'n>(node: &'n Node, path: &str) -> result::Result<&'n [(String, Node)], String> {
    match &node.kind {
        NodeKind::Mapping(entries) => Ok(entries),
        NodeKind::Scalar { text, plain: true } if text.is_empty() => Ok(&[]),
        _ => Err(refused(node, path, &node.describe(), "a mapping")),
    }
}

fn refused(node: &Node, path: &str, found: &str, allowed: &str) -> String {
    let (line, column) = node.place;
    let joint = if path.is_empty() { "" } else { ": " };
    format!("{line}:{column}: {path}{joint}found {found}; allowed: {allowed}")
}

/// The permissions of a file that are everybody's.
const OTHERS: u32 = 0o007;

const FILE_BYTES_MAX: u64 = 1 << 20;

const SECRET_LETTERS_MIN: usize = 16;

/// With less a client would be cut off that only asks for much at once.
const MEMORY_BYTES_MIN: f64 = 1_000_000.0;

/// As many as fit a float whole.
const NUMBER_MAX: f64 = (1_u64 << 53) as f64;

const USER_WORDS: &str = "token or token_sha256, enclave, publish, subscribe, call_service, advertise_service, \
    send_action_goal, advertise_action, get_param, set_param, set_route, limits";
const ANONYMOUS_WORDS: &str = "enclave, publish, subscribe, call_service, advertise_service, \
    send_action_goal, advertise_action, get_param, set_param, set_route, limits; a token is of users";
const LIMITS_WORDS: &str = "messages_per_second, bytes_per_second, memory_bytes";
const GLOBS: &str = "a list like [/a, '/b/*'], all or none";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_a_user_may_not() {
        let text = "
users:
  arm:
    token: 0x10
    publish: [/arm, '/hand/*']
    subscribe: all
    call_service: none
    limits: {messages_per_second: 0.5, bytes_per_second: 1e6, memory_bytes: 1000000}
  guest:
anonymous: {subscribe: [/map]}
";
        let users = Users::parse(text).unwrap();
        let [arm, guest] = users.named.as_slice() else { panic!("{users:?}") };
        assert_eq!(arm.token, Token::new("0x10"));
        let publish = Globs::new(["/arm", "/hand/*"]);
        let expected = Permissions { publish, subscribe: Globs::ALL, ..Permissions::NONE };
        assert_eq!(arm.may, expected);
        let limits = UserLimits {
            messages: Some(Rate { per_second: 0.5, burst: 1.0 }),
            bytes: Some(Rate { per_second: 1e6, burst: 1e6 }),
            memory_bytes_max: Some(1_000_000),
        };
        assert_eq!(arm.limits, limits);
        assert_eq!((&*guest.name, &guest.token, &guest.may), ("guest", &None, &Permissions::NONE));
        assert_eq!(users.anonymous.unwrap().may.subscribe, Globs::new(["/map"]));
    }

    #[test]
    fn what_an_enclave_allows_is_narrowed_by_what_is_named() {
        let text = "users: {a: {token: x, enclave: /arm, publish: [/cmd_vel]}, b: {enclave: /}}";
        let users = Users::parse(text).unwrap();
        let [a, b] = users.named.as_slice() else { panic!("{users:?}") };
        assert_eq!([a.enclave.as_deref(), b.enclave.as_deref()], [Some("/arm"), Some("/")]);
        let all = Permissions { set_route: Globs::NONE, ..Permissions::ALL };
        assert_eq!(a.may, Permissions { publish: Globs::new(["/cmd_vel"]), ..all.clone() });
        assert_eq!(b.may, all);
    }

    #[test]
    fn the_examples_of_the_guides_are_some() {
        let guide = include_str!("../../../docs/bridge.md");
        let (_, users) = guide.split_once("\n## Users\n").unwrap();
        let example = users.split("```yaml\n").nth(1).and_then(|it| it.split("```").next());
        let users = Users::parse(example.unwrap()).unwrap();
        let [operator, viewer] = users.named.as_slice() else { panic!("{users:?}") };
        assert_eq!(operator.may.subscribe, Globs::ALL);
        assert_eq!(viewer.token, Token::new("sesame"));
        assert_eq!(viewer.limits.memory_bytes_max, Some(4_000_000));
        assert!(users.anonymous.is_some());
        let guide = include_str!("../../../docs/how-to/keystores.md");
        let example = guide.split("```yaml\n").nth(1).and_then(|it| it.split("```").next());
        let users = Users::parse(example.unwrap()).unwrap();
        assert_eq!(users.named[0].token, Token::new("sesame"));
        assert_eq!(users.named[0].enclave.as_deref(), Some("/operator"));
    }

    #[test]
    fn a_hash_is_as_good_as_its_token() {
        // By `printf sesame | sha256sum`.
        let hash = "d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272";
        let text = format!("users: {{a: {{token_sha256: {hash}}}}}");
        let users = Users::parse(&text).unwrap();
        assert_eq!(users.named[0].token, Token::new("sesame"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, expected) in [
            ("", "1:1: found nobody; allowed: users, anonymous or both"),
            ("users:", "1:1: found nobody"),
            ("[a]", "1:1: found a sequence; allowed: a mapping"),
            ("user: {}", "1:7: found `user`; allowed: users and anonymous"),
            ("users:\n  a: {publisher: all}", "2:18: a: found `publisher`; allowed: token or"),
            ("anonymous: {token: x}", "1:20: anonymous: found `token`; allowed: enclave, publish"),
            ("users: {a: {publish: /x}}", "1:22: a.publish: found `/x`; allowed: a list like"),
            ("users: {a: {publish: [[]]}}", "1:23: a.publish: found a sequence; allowed"),
            ("users: {a: {enclave: a}}", "1:22: a.enclave: found `a`; allowed: the name of an"),
            ("users: {a: {enclave: [/a]}}", "1:22: a.enclave: found a sequence; allowed"),
            ("users: {a: {publish: [*]}}", "; allowed: "),
            ("users: {a: {token: ''}}", "1:20: a.token: found nothing; allowed: a text"),
            ("users: {a: {token_sha256: 12}}", "a.token_sha256: found something else; allowed: a"),
            (
                "users: {a: {token: x, token_sha256: y}}",
                "found a second token; allowed: one of both",
            ),
            ("users: {a: {token: x}, b: {token: x}}", "b: found the token of a; allowed: a token"),
            ("users: {a: {}, a: {}}", "the name `a` again"),
            (
                "users: {a: {limits: {memory_bytes: 10}}}",
                "1:36: a.limits.memory_bytes: found `10`; allowed: 1000000 to",
            ),
            ("users: {a: {limits: {bytes_per_second: -1}}}", "found `-1`; allowed: 1 to"),
            ("users: {a: {limits: {cpu: 1}}}", "found `cpu`; allowed: messages_per_second"),
        ] {
            let error = Users::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
