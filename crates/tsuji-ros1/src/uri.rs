//! The addresses of ROS 1: `http://host:port/path` of a node or master, `rosrpc://host:port` of a service.

use std::fmt;
use std::str::FromStr;

/// The address at which nodes look for a master if nothing else is said.
pub const MASTER_DEFAULT: &str = "http://localhost:11311";

/// The port of [`MASTER_DEFAULT`].
pub const MASTER_PORT: u16 = 11311;

/// An address of ROS 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Uri {
    /// What stands before `://`, in lower case.
    pub scheme: String,
    /// A host name or an IP address. An IPv6 address stands here without its brackets.
    pub host: String,
    /// The port, never 0.
    pub port: u16,
    /// What follows the port: empty, or a text that begins with `/`.
    pub path: String,
}

/// The longest address that is taken, in bytes.
pub const URI_BYTES_MAX: usize = 2048;

/// A text that is no address of ROS 1.
#[derive(Clone, PartialEq, Eq)]
pub struct UriError {
    problem: &'static str,
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; allowed: http://HOST:PORT/ or rosrpc://HOST:PORT", self.problem)
    }
}

impl std::error::Error for UriError {}

impl Uri {
    /// Host and port, as the field `Host` of an HTTP request has them.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority(), self.path)
    }
}

impl FromStr for Uri {
    type Err = UriError;

    /// Reads an address. Without a port, `http` means 80, as everywhere.
    fn from_str(text: &str) -> Result<Self, UriError> {
        let refused = |problem| Err(UriError { problem });
        if URI_BYTES_MAX < text.len() {
            return refused("the address is too long");
        }
        // Such a character could end the line of an HTTP request that the address is written into.
        if !text.bytes().all(|it| it.is_ascii_graphic()) {
            return refused("the address has a blank or a character that is not ASCII");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return refused("the address has no scheme");
        };
        let scheme = scheme.to_ascii_lowercase();
        if scheme.is_empty() || !scheme.bytes().all(|it| it.is_ascii_alphanumeric()) {
            return refused("the address has no scheme");
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((host, after)) if host.parse::<std::net::Ipv6Addr>().is_ok() => (host, after),
                _ => return refused("there is no IPv6 address between the brackets"),
            },
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        if host.is_empty() || host.contains(['@', '?', '#', '[', ']', '"', '\\', '<', '>']) {
            return refused("the address has no host, or one that cannot be");
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() && scheme == "http" => Some(80),
            // `parse` would take a sign as well.
            Some(digits) if digits.bytes().all(|it| it.is_ascii_digit()) => digits.parse().ok(),
            _ => None,
        };
        let Some(port) = port.filter(|it| *it != 0) else {
            return refused("the address has no port of 1 to 65535");
        };
        Ok(Self { scheme, host: host.to_owned(), port, path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, u16, String) {
        let uri: Uri = text.parse().unwrap();
        assert_eq!(uri.to_string(), text);
        (uri.scheme, uri.host, uri.port, uri.path)
    }

    fn of(scheme: &str, host: &str, port: u16, path: &str) -> (String, String, u16, String) {
        (scheme.to_owned(), host.to_owned(), port, path.to_owned())
    }

    #[test]
    fn addresses_come_apart_and_together() {
        assert_eq!(parts("http://robot:11311/"), of("http", "robot", 11311, "/"));
        assert_eq!(parts("http://127.0.0.1:40001"), of("http", "127.0.0.1", 40001, ""));
        assert_eq!(parts("rosrpc://robot.local:5"), of("rosrpc", "robot.local", 5, ""));
        assert_eq!(parts("http://[fe80::1]:80/RPC2"), of("http", "fe80::1", 80, "/RPC2"));
    }

    #[test]
    fn http_has_a_port_of_its_own() {
        let uri: Uri = "HTTP://robot/a".parse().unwrap();
        assert_eq!((uri.port, uri.to_string().as_str()), (80, "http://robot:80/a"));
    }

    #[test]
    fn others_are_refused() {
        for text in [
            "",
            "robot:11311",
            "://robot:1",
            "http://:11311",
            "http://robot:0",
            "http://robot:65536",
            "http://robot:+1",
            "http://robot:",
            "http://robot:1x/",
            "rosrpc://robot",
            "http://[::1:80",
            "http://[robot]:80",
            "http://[::1]80",
            "http://me@robot:80",
            "http://robot:80/a b",
            "http://robot:80/\r\nHost: other",
            "http://röbot:80/",
        ] {
            assert!(text.parse::<Uri>().is_err(), "{text:?}");
        }
        assert!(format!("http://r:80/{}", "a".repeat(URI_BYTES_MAX)).parse::<Uri>().is_err());
    }
}
