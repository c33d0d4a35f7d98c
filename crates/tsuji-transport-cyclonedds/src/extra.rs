//! What the user adds to the configuration, before the engine reads it: the engine ends the process
//! at a peer that it does not understand.
//!
//! It is searched as text and not read as XML. Whatever else is wrong the engine says itself.

use std::fs;
use std::path::Path;

use tsuji_transport::{Error, ErrorKind, Result};

/// The most bytes of a file that are searched. A larger one is refused.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What is in a configuration of the user's own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The addresses of peers, as they were written.
    pub(crate) peers: Vec<String>,
    /// The numbers of the domains that it is for. The engine knows a domain by another.
    pub(crate) domains: Vec<String>,
    /// Whether a transport other than UDP over IPv4 is named.
    pub(crate) is_of_another_transport: bool,
    /// The interfaces that the engine is to use, besides those of tsuji.
    pub(crate) interfaces: Vec<Chosen>,
}

/// An interface that the engine is to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Its name or address, as it was written; else the engine takes the best.
    pub(crate) which: Option<String>,
    /// Whether the engine does not start without it.
    pub(crate) is_required: bool,
}

impl Chosen {
    pub(crate) fn named(which: &str) -> Self {
        Self { which: Some(which.to_owned()), is_required: true }
    }

    pub(crate) const BEST: Self = Self { which: None, is_required: true };
}

/// Searches XML and the files that are named beside it. A file that cannot be opened is left to the
/// engine, which says so.
pub(crate) fn search(extra: &str) -> Result<Found> {
    let mut found = Found::default();
    search_text(extra, &mut found)?;
    for part in extra.split(',') {
        // A file's name may follow XML without a comma.
        let name = part.rsplit('>').next().unwrap_or_default().trim_start();
        let path = Path::new(name.strip_prefix("file://").unwrap_or(name));
        let Ok(metadata) = fs::metadata(path) else { continue };
        if !metadata.is_file() || FILE_BYTES_MAX < metadata.len() {
            let allowed = format!("{name}; allowed: a file of at most {FILE_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::Invalid, "read a file").about(allowed));
        }
        if let Ok(bytes) = fs::read(path) {
            search_text(&String::from_utf8_lossy(&bytes), &mut found)?;
        }
    }
    Ok(found)
}

fn search_text(text: &str, found: &mut Found) -> Result<()> {
    let text = without_comments(text);
    // ASCII only, so that places in one are places in the other.
    let lower = text.to_ascii_lowercase();
    for (start, end) in tags(&lower, "peer") {
        let address = attribute(&lower, &text, start, end, "address");
        let address = address.filter(|it| !it.contains(['$', '&'])).ok_or_else(|| {
            let refused = format!(
                "<Peer{}>; allowed: <Peer address=\"…\"/> with names or IPv4 addresses",
                &text[start..end]
            );
            Error::new(ErrorKind::Invalid, "look for a peer").about(refused)
        })?;
        found.peers.extend(address.split(',').map(str::to_owned));
    }
    for (start, end) in tags(&lower, "networkinterface") {
        let value = |name| attribute(&lower, &text, start, end, name).filter(|it| !it.is_empty());
        let is_optional =
            value("presence_required").is_some_and(|it| it.eq_ignore_ascii_case("false"));
        let which = value("name").or_else(|| value("address")).map(str::to_owned);
        found.interfaces.push(Chosen { which, is_required: !is_optional });
    }
    // As they were chosen before there could be several.
    for (_, end) in tags(&lower, "networkinterfaceaddress") {
        let said = text.get(end + 1..).and_then(|it| it.split('<').next()).unwrap_or_default();
        found.interfaces.extend(said.split(',').map(str::trim).map(|it| match it {
            "" | "auto" => Chosen::BEST,
            name => Chosen::named(name),
        }));
    }
    for (start, end) in tags(&lower, "domain") {
        let id = attribute(&lower, &text, start, end, "id");
        found.domains.extend(id.filter(|it| !it.eq_ignore_ascii_case("any")).map(str::to_owned));
    }
    found.is_of_another_transport |= ["udp6", "tcp", "useipv6"].iter().any(|it| lower.contains(it));
    Ok(())
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

/// Where the attributes of each tag of this name begin and end.
fn tags<'a>(lower: &'a str, name: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    lower.match_indices('<').filter_map(move |(at, _)| {
        let start = at + 1 + name.len();
        let rest = lower[at + 1..].strip_prefix(name)?;
        let next = rest.chars().next();
        let is_whole = next.is_none_or(|it| it.is_ascii_whitespace() || "/>".contains(it));
        let end = start + rest.find('>').unwrap_or(rest.len());
        is_whole.then_some((start, end))
    })
}

/// The value of an attribute between two places.
fn attribute<'a>(
    lower: &str,
    text: &'a str,
    start: usize,
    end: usize,
    name: &str,
) -> Option<&'a str> {
    let mut places = lower[start..end].match_indices(name);
    places.find_map(|(at, _)| {
        let before = lower[start..start + at].chars().next_back()?;
        let after = &text[start + at + name.len()..end];
        let value = after.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|it| "\"'".contains(*it))?;
        let (value, _) = value[1..].split_once(quote)?;
        before.is_ascii_whitespace().then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(extra: &str, peers: &[&str], domains: &[&str]) {
        let found = search(extra).unwrap();
        assert_eq!(found.peers, peers, "{extra}");
        assert_eq!(found.domains, domains, "{extra}");
        assert!(!found.is_of_another_transport, "{extra}");
    }

    #[test]
    fn what_is_searched_for_is_found() {
        check("", &[], &[]);
        check(
            "<Peers><Peer address=\"a,b\"/><peer  Address = 'c' /></Peers>",
            &["a", "b", "c"],
            &[],
        );
        check("<!-- <Peer/> --><Domain Id=\"any\"/><Domain id='7'></Domain>", &[], &["7"]);
        check(
            "<Domain><Tracing><Category>a,b</Category></Tracing></Domain>,file:///none",
            &[],
            &[],
        );
        let xml = "<Interfaces><NetworkInterface name='eth0' address=\"\"/>
            <!-- <NetworkInterface name='no'/> --><NetworkInterface autodetermine=\"true\"/>
            <networkinterface presence_required='false' Address='192.0.2.1'/></Interfaces>
            <NetworkInterfaceAddress>auto, wlan0</NetworkInterfaceAddress>";
        let optional = Chosen { is_required: false, ..Chosen::named("192.0.2.1") };
        let chosen =
            [Chosen::named("eth0"), Chosen::BEST, optional, Chosen::BEST, Chosen::named("wlan0")];
        assert_eq!(search(xml).unwrap().interfaces, chosen);
        let found = search("<General><Transport>udp6</Transport></General>").unwrap();
        assert!(found.is_of_another_transport);
    }

    #[test]
    fn what_cannot_be_checked_is_refused() {
        for peer in ["<Peer>", "<Peer/>", "<Peer address=\"${X}\"/>", "<Peer", "<Peer address=\"x"]
        {
            let error = search(peer).unwrap_err().to_string();
            assert!(error.contains("allowed: <Peer address"), "{error}");
        }
        let error = search("<General/>file:///etc").unwrap_err().to_string();
        assert!(error.contains("file:///etc; allowed: a file"), "{error}");
    }

    #[test]
    fn files_are_searched_too() {
        let name = format!("tsuji-extra-{}.xml", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, "<CycloneDDS><Discovery><Peers><Peer address=\"x\"/>").unwrap();
        check(&format!("<General/>,file://{}", path.display()), &["x"], &[]);
        check(&format!("{},<General/>", path.display()), &["x"], &[]);
        fs::remove_file(&path).unwrap();
    }
}
