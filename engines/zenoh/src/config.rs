//! How the engine is told to behave.

use std::io::ErrorKind as IoErrorKind;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::PathBuf;

use tsuji_engine_abi::Asked;
use tsuji_platform::process;
use tsuji_transport::{Error, ErrorKind, Result};

/// Where the engine talks, and with whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZenohConfig {
    /// The domain, which is the first part of every key, 0 to 232.
    pub domain: u32,
    /// How participants find each other.
    pub meeting: Meeting,
    /// What the participant says of itself, where nodes of rmw_zenoh are met; else nothing, and they are not.
    pub user_data: Vec<u8>,
}

/// How participants find each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Meeting {
    /// As rmw_zenoh does by default: by a router on this host, which tells each of all others.
    #[default]
    Router,
    /// Only with others of this host, over the loopback interface and without a router. Whoever is
    /// first listens on a port that belongs to the domain, and tells those who connect there of each
    /// other. When he is gone those who have met stay together, and the next to come takes the port.
    Loopback,
    /// By what is named, and by multicast if that is asked for.
    Endpoints(Endpoints),
    /// As a file says, in Zenoh's JSON5, which is obeyed as it is.
    File(PathBuf),
}

/// Whom a participant looks for, and where it is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Where to listen, in Zenoh's words: `tcp/0.0.0.0:0`.
    pub listen: Vec<String>,
    /// Whom to look for: `tcp/robot.local:7447`.
    pub connect: Vec<String>,
    /// Whether to look for others by multicast.
    pub multicast: bool,
    /// The interfaces for that; none leaves the choice to Zenoh.
    pub interfaces: Vec<String>,
    /// Whether all goes through the first that answers of those whom it connects to.
    pub is_client: bool,
}

impl ZenohConfig {
    /// What a policy says, or else `uri`, the value of [`URI`].
    pub(crate) fn read(asked: &Asked, uri: Option<&str>) -> Result<Self> {
        let said = Said::read(&asked.settings)?;
        let meeting = match (&said, uri) {
            (Said { config: Some(path), .. }, _) => Meeting::File(path.clone()),
            (Said { meet: Some(Meet::Host), .. }, _) => Meeting::Loopback,
            (said, Some(uri)) if !said.is_anything() && !asked.host_only => {
                Meeting::File(PathBuf::from(uri.strip_prefix("file://").unwrap_or(uri)))
            }
            (said, uri) if !said.is_anything() && asked.host_only => {
                if let Some(uri) = uri {
                    tracing::warn!(
                        "{URI}={uri}: not obeyed, since nobody of another host is to be met"
                    );
                }
                Meeting::Loopback
            }
            (said, uri) => {
                if let Some(uri) = uri {
                    tracing::warn!(
                        "{URI}={uri}: not obeyed, since the policy has settings for zenoh"
                    );
                }
                said.meeting(asked)
            }
        };
        Ok(Self { domain: asked.domain, meeting, user_data: asked.user_data.clone() })
    }

    /// Whom it connects to, by what a policy or nobody says.
    pub(crate) fn connects_to(&self) -> Vec<String> {
        match &self.meeting {
            Meeting::Router => vec![local_router()],
            Meeting::Endpoints(Endpoints { connect, .. }) => connect.clone(),
            Meeting::Loopback | Meeting::File(_) => Vec::new(),
        }
    }

    /// Only with others of this host, over the loopback interface.
    pub fn on_loopback(domain: u32) -> Self {
        Self { domain, meeting: Meeting::Loopback, user_data: Vec::new() }
    }

    /// Whether somebody is given by a name.
    pub(crate) fn names_hosts(&self) -> bool {
        match &self.meeting {
            Meeting::Router | Meeting::Loopback => false,
            Meeting::Endpoints(Endpoints { connect, listen, .. }) => {
                connect.iter().chain(listen).any(|it| !is_of_address(it))
            }
            Meeting::File(_) => true,
        }
    }

    /// In the words of Zenoh, with a name of the session by which it is told from those that are not tsuji's, unless a
    /// file gives it another.
    pub(crate) fn to_zenoh(&self) -> Result<zenoh::Config> {
        let mut config = self.without_name()?;
        let is_named = config.get_json("id").is_ok_and(|it| it != "null");
        if !is_named {
            let error = |why: &str| Error::new(ErrorKind::Unexpected, "name a session").about(why);
            let token = process::random_token().map_err(|why| error(&why.to_string()))?;
            let name = format!("{:?}", own_name(token));
            config.insert_json5("id", &name).map_err(|why| error(&why.to_string()))?;
        }
        Ok(config)
    }

    fn without_name(&self) -> Result<zenoh::Config> {
        let text = match &self.meeting {
            Meeting::File(path) => {
                return zenoh::Config::from_file(path).map_err(|error| {
                    let shown = path.display().to_string();
                    Error::new(ErrorKind::Invalid, "read Zenoh's configuration")
                        .about(shown)
                        .because(error)
                });
            }
            Meeting::Router => json(&Endpoints {
                listen: vec![LOCAL.to_owned()],
                connect: vec![local_router()],
                ..Endpoints::default()
            }),
            Meeting::Loopback => self.loopback(),
            Meeting::Endpoints(endpoints) => json(endpoints),
        };
        zenoh::Config::from_json5(&text).map_err(|error| {
            let meeting = format!("{:?}", self.meeting);
            Error::new(ErrorKind::Invalid, "configure Zenoh").about(meeting).because(error)
        })
    }

    fn loopback(&self) -> String {
        // The domain was accepted with a port that there is.
        let port = u16::try_from(u32::from(LOOPBACK_PORT) + self.domain).unwrap_or(LOOPBACK_PORT);
        let meeting_place = format!("tcp/127.0.0.1:{port}");
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Err(error) if error.kind() == IoErrorKind::AddrInUse => {
                let listen = vec!["tcp/127.0.0.1:0".to_owned()];
                json(&Endpoints { listen, connect: vec![meeting_place], ..Endpoints::default() })
            }
            // Whatever else is wrong, Zenoh will say.
            _ => json(&Endpoints { listen: vec![meeting_place], ..Endpoints::default() }),
        }
    }
}

/// What the settings of a policy say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Said {
    meet: Option<Meet>,
    connect: Option<Vec<String>>,
    listen: Option<Vec<String>>,
    multicast: Option<bool>,
    is_client: Option<bool>,
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meet {
    Router,
    Host,
}

impl Said {
    fn read(settings: &[(String, String)]) -> Result<Self> {
        let invalid =
            |text: String| Error::new(ErrorKind::Invalid, "read the settings").about(text);
        let mut said = Self::default();
        for (key, value) in settings {
            let words = || value.split_whitespace().map(str::to_owned).collect();
            match (&**key, &**value) {
                ("meet", "router") => said.meet = Some(Meet::Router),
                ("meet", "host") => said.meet = Some(Meet::Host),
                ("connect", _) => said.connect = Some(words()),
                ("listen", _) => said.listen = Some(words()),
                ("multicast", "true" | "false") => said.multicast = Some(value == "true"),
                ("mode", "peer" | "client") => said.is_client = Some(value == "client"),
                ("config", path) if path.starts_with('/') => said.config = Some(path.into()),
                _ => {
                    return Err(invalid(format!(
                        "{key}={value:?} is not a setting of zenoh; allowed: meet=router or host, \
                         connect=ENDPOINTS and listen=ENDPOINTS, as tcp/192.0.2.1:7447 and with spaces \
                         between, multicast=true or false, mode=peer or client, config=FILE, a path from \
                         the root"
                    )));
                }
            }
        }
        let rest = Self { meet: None, config: None, ..said.clone() };
        if said.config.is_some() && (said.meet.is_some() || rest.is_anything()) {
            let text = "config says all; allowed beside it: no other setting";
            return Err(invalid(text.to_owned()));
        }
        if said.meet == Some(Meet::Host) && rest.is_anything() {
            let text = "meet=\"host\" needs nobody's address; allowed beside it: no other setting";
            return Err(invalid(text.to_owned()));
        }
        Ok(said)
    }

    fn is_anything(&self) -> bool {
        *self != Self::default()
    }

    /// As it is said, and as rmw_zenoh has it where nothing is.
    fn meeting(&self, asked: &Asked) -> Meeting {
        let is_far = |it: &&String| !it.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
        let hosts: Vec<String> =
            asked.hosts.iter().filter(is_far).map(|it| router_at(it)).collect();
        let multicast = self.multicast == Some(true);
        if hosts.is_empty() && (!self.is_anything() || *self == Self::by_router()) {
            return Meeting::Router;
        }
        let mut connect = match &self.connect {
            Some(connect) => connect.clone(),
            None if multicast && self.meet.is_none() => Vec::new(),
            None => vec![local_router()],
        };
        if self.meet == Some(Meet::Router) && self.connect.is_some() {
            connect.push(local_router());
        }
        connect.extend(hosts);
        let is_client = self.is_client == Some(true);
        let listen = self.listen.clone().unwrap_or_else(|| match (is_client, multicast) {
            (true, _) => Vec::new(),
            (false, true) => vec!["tcp/0.0.0.0:0".to_owned()],
            (false, false) => vec![LOCAL.to_owned()],
        });
        let interfaces = asked.interfaces.clone();
        Meeting::Endpoints(Endpoints { listen, connect, multicast, interfaces, is_client })
    }

    fn by_router() -> Self {
        Self { meet: Some(Meet::Router), ..Self::default() }
    }
}

/// What the names of tsuji's sessions end with, as bytes; it is what they begin with as text.
const NAME_END: [u8; 4] = *b"tsuj";

/// The name of a session of tsuji, as Zenoh writes it.
fn own_name(token: [u8; 16]) -> String {
    let [token @ .., _, _, _, _] = token;
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(&token);
    bytes[12..].copy_from_slice(&NAME_END);
    format!("{:x}", u128::from_le_bytes(bytes))
}

/// Whether a session is tsuji's, by its name. Another has such a name once in four thousand million times.
pub(crate) fn is_own(name: &[u8; 16]) -> bool {
    name[12..] == NAME_END
}

/// Names a file of Zenoh's own configuration, as to rmw_zenoh.
pub(crate) const URI: &str = "ZENOH_SESSION_CONFIG_URI";

/// Where rmw_zenoh listens.
const LOCAL: &str = "tcp/localhost:0";

fn local_router() -> String {
    router_at("localhost")
}

fn router_at(host: &str) -> String {
    let is_v6 = host.parse::<IpAddr>().is_ok_and(|it| it.is_ipv6());
    if is_v6 { format!("tcp/[{host}]:{ROUTER_PORT}") } else { format!("tcp/{host}:{ROUTER_PORT}") }
}

/// The port of Zenoh's router.
const ROUTER_PORT: u16 = 7447;

/// The port of domain 0 on the loopback interface, below those that the system gives to anybody.
const LOOPBACK_PORT: u16 = 17_447;

/// Whether an endpoint of Zenoh, as `tcp/127.0.0.1:7447`, names no host.
fn is_of_address(endpoint: &str) -> bool {
    let address = endpoint.split_once('/').map_or(endpoint, |(_, address)| address);
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

/// What the system holds of a connection that has left Zenoh's queues, where nothing goes ahead of it any more: less than
/// it takes for itself, which is up to 4 MB.
const SEND_BUFFER_BYTES: u32 = 256 << 10;

/// Participants that tell each other of others, with longer queues than by default, so that nobody waits who
/// sends a little, and a short one of the system. Whoever opens a session waits for a moment for those whom it connects to.
fn json(endpoints: &Endpoints) -> String {
    let Endpoints { listen, connect, multicast, interfaces, is_client } = endpoints;
    let mode = if *is_client { "client" } else { "peer" };
    // A peer looks on while it is open. A client is not open before it is connected, and whoever opens it waits.
    let timeout_ms = if *is_client { 1000 } else { -1 };
    let interface = if interfaces.is_empty() { "auto".to_owned() } else { interfaces.join(",") };
    format!(
        r#"{{
        mode: "{mode}",
        listen: {{ endpoints: {listen:?} }},
        connect: {{ endpoints: {connect:?}, timeout_ms: {timeout_ms}, exit_on_failure: false,
                   retry: {{ period_init_ms: 250, period_max_ms: 2000, period_increase_factor: 2 }} }},
        scouting: {{
            delay: 200,
            multicast: {{ enabled: {multicast}, interface: {interface:?} }},
            gossip: {{ enabled: true,
                      autoconnect_strategy: {{ peer: {{ to_router: "always", to_peer: "greater-zid" }} }} }},
        }},
        transport: {{ link: {{ tcp: {{ so_sndbuf: {SEND_BUFFER_BYTES} }}, tx: {{ queue: {{ size: {{ interactive_high: 8, data: 8 }} }} }} }},
                     shared_memory: {{ enabled: false }} }},
        }}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_written_here_zenoh_understands() {
        let endpoints = Endpoints {
            listen: vec!["tcp/127.0.0.1:0".to_owned()],
            connect: vec!["tcp/192.0.2.1:7447".to_owned()],
            multicast: true,
            interfaces: vec!["lo".to_owned(), "eth0".to_owned()],
            is_client: true,
        };
        for meeting in [Meeting::Router, Meeting::Loopback, Meeting::Endpoints(endpoints)] {
            ZenohConfig { domain: 232, meeting, user_data: Vec::new() }.to_zenoh().unwrap();
        }
    }

    #[test]
    fn sessions_of_tsuji_are_told_by_their_names() {
        for token in [[0; 16], [255; 16]] {
            let name: zenoh::session::ZenohId = own_name(token).parse().unwrap();
            assert!(is_own(&name.to_le_bytes()));
            assert_eq!(name.to_le_bytes()[..12], token[..12]);
        }
        assert!(!is_own(&[1; 16]));
        let config = ZenohConfig::on_loopback(3).to_zenoh().unwrap();
        assert!(config.get_json("id").unwrap().starts_with("\"6a757374"));
    }

    #[test]
    fn what_is_wrong_is_shown() {
        let shown = |meeting| {
            ZenohConfig { domain: 0, meeting, user_data: Vec::new() }
                .to_zenoh()
                .unwrap_err()
                .to_string()
        };
        let missing = shown(Meeting::File(PathBuf::from("/nowhere/zenoh.json5")));
        assert!(missing.contains("/nowhere/zenoh.json5"), "{missing}");
        let listen = vec!["nonsense".to_owned()];
        let strange = shown(Meeting::Endpoints(Endpoints { listen, ..Endpoints::default() }));
        assert!(strange.contains("nonsense"), "{strange}");
    }

    #[test]
    fn a_name_is_told_from_an_address() {
        for endpoint in ["tcp/127.0.0.1:7447", "tcp/[::1]:7447"] {
            assert!(is_of_address(endpoint), "{endpoint}");
        }
        assert!(!is_of_address("tcp/robot.local:7447"));
    }

    fn asked(settings: &[(&str, &str)]) -> Asked {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Asked { domain: 7, settings: settings.collect(), ..Asked::default() }
    }

    #[test]
    fn how_participants_are_told_to_meet() {
        let words = |words: &str| words.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let check = |asked: &Asked, uri: Option<&str>, expect: Meeting| {
            let config = ZenohConfig::read(asked, uri).unwrap();
            assert_eq!(
                config,
                ZenohConfig { domain: 7, meeting: expect, user_data: Vec::new() },
                "{asked:?} {uri:?}"
            );
        };
        let (uri, file) = (Some("file:///x.json5"), Meeting::File("/x.json5".into()));
        let host_only = |of: Asked| Asked { host_only: true, ..of };
        check(&asked(&[]), None, Meeting::Router);
        check(&asked(&[("meet", "router")]), None, Meeting::Router);
        check(&asked(&[]), uri, file.clone());
        check(&asked(&[("config", "/x.json5")]), Some("/y"), file);
        check(&asked(&[("meet", "host")]), uri, Meeting::Loopback);
        check(&host_only(asked(&[])), uri, Meeting::Loopback);
        check(&host_only(asked(&[("meet", "router")])), None, Meeting::Router);
        let local = Endpoints { listen: words("tcp/localhost:0"), ..Endpoints::default() };
        let hosts = words("192.0.2.1 127.0.0.1 fe80::1");
        let connect = words("tcp/localhost:7447 tcp/192.0.2.1:7447 tcp/[fe80::1]:7447");
        let far = Meeting::Endpoints(Endpoints { connect, ..local.clone() });
        check(&Asked { hosts, ..asked(&[]) }, None, far);
        let connect = words("tcp/a:1 tcp/b:2");
        let named = Meeting::Endpoints(Endpoints { connect: connect.clone(), ..local.clone() });
        check(&asked(&[("connect", "tcp/a:1  tcp/b:2")]), uri, named);
        let client = Endpoints { listen: vec![], connect, is_client: true, ..local.clone() };
        let settings = [("connect", "tcp/a:1 tcp/b:2"), ("mode", "client")];
        check(&asked(&settings), None, Meeting::Endpoints(client));
        let interfaces = words("eth0");
        let listen = words("tcp/0.0.0.0:0");
        let many = Endpoints { listen, multicast: true, interfaces: interfaces.clone(), ..local };
        let asked = Asked { interfaces, ..asked(&[("multicast", "true")]) };
        check(&asked, None, Meeting::Endpoints(many));
    }

    #[test]
    fn settings_that_are_none_are_refused() {
        let check = |settings: &[(&str, &str)], expect: &str| {
            let error = ZenohConfig::read(&asked(settings), None).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check(
            &[("meet", "nobody")],
            "meet=\"nobody\" is not a setting of zenoh; allowed: meet=router",
        );
        check(&[("shared", "true")], "shared=\"true\" is not a setting");
        check(&[("config", "x.json5")], "config=\"x.json5\" is not");
        check(&[("config", "/x"), ("mode", "peer")], "config says all");
        check(&[("meet", "host"), ("connect", "tcp/a:1")], "meet=\"host\" needs nobody's address");
    }
}
