//! `tsuji bridge`.

use std::env;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tsuji_bridge::protocol::Rate;
use tsuji_bridge::protocol::access::{Access, Globs, ServerGlobs, Token, User};
use tsuji_bridge::{
    Bridge, ErrorKind, Jpeg, Place, Settings, Statistics, TlsFiles, Users, read_rosauth,
};
use tsuji_core::TopicPattern;
use tsuji_interfaces::{AmentIndex, Chain, Shipped};
use tsuji_msg::Resolver;
use tsuji_platform::signals;

use crate::failure::Usage;
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::session::{Globals, Session};
use crate::{record, topic};

mod recording;

use recording::PlayedRecording;

pub(crate) const EXAMPLES: &str = "\
Clients of rosbridge connect unchanged: roslibjs, roslibpy, roslibrust and others;
so do Foxglove and Lichtblick. Nobody else can connect unless --address says so. A
glob is a shell pattern, and an empty list allows nothing.

Examples:
  tsuji bridge           # ws://127.0.0.1:9090, its page http://127.0.0.1:9090
  tsuji bridge --address 0.0.0.0 --certfile cert.pem --keyfile key.pem
  tsuji bridge --tcp-port 9091 --udp-port 9092     # all three at once
  tsuji bridge --port 0 --json                     # any free port; tells which
  tsuji bridge --token sesame --topics-glob '[/camera/*, /cmd_vel]' \\
      --services-glob '[]'
  tsuji bridge --users users.yaml --max-messages-per-second 500
  tsuji bridge --play drive.mcap --start-paused    # clients control it
  tsuji bridge --jpeg '/camera/**' --jpeg-rate 500000   # for slow networks";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The port of WebSockets; 0 for any that is free
    #[arg(short, long, value_name = "PORT", default_value_t = 9090)]
    port: u16,
    /// The address of the interface to listen at, for all protocols; 0.0.0.0 or :: for all of them
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    address: IpAddr,
    /// No WebSockets
    #[arg(long)]
    no_websocket: bool,
    /// Serve TCP too, JSON objects one behind the other, on this port
    #[arg(long, value_name = "PORT")]
    tcp_port: Option<u16>,
    /// Serve UDP too, whole JSON objects in a datagram, on this port
    #[arg(long, value_name = "PORT")]
    udp_port: Option<u16>,
    /// Serve no page to browsers where WebSockets are
    #[arg(long)]
    no_page: bool,
    /// Serve no /metrics for Prometheus where WebSockets are
    #[arg(long)]
    no_metrics: bool,
    /// Publish each topic's transport and its lost samples on /diagnostics, once a second while somebody subscribes
    #[arg(long)]
    diagnostics: bool,
    /// The path of WebSockets
    #[arg(long, value_name = "PATH", default_value = "/")]
    url_path: String,
    /// The certificate of the server, PEM; WebSockets are wss then
    #[arg(long, value_name = "FILE", requires = "keyfile")]
    certfile: Option<PathBuf>,
    /// The key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "certfile")]
    keyfile: Option<PathBuf>,
    /// Pages of this origin alone may connect, such as https://robot.example, and the page of the bridge; more by more of it
    #[arg(long, value_name = "ORIGIN", action = ArgAction::Append)]
    origin: Vec<String>,
    /// Ask WebSockets so often, in seconds, whether they are there; 0 for never
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    websocket_ping_interval: Duration,
    /// How long they may take to answer
    #[arg(long, value_name = "SECONDS", value_parser = topic::seconds, default_value = "30")]
    websocket_ping_timeout: Duration,
    /// The longest message of a client, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(1000..), help_heading = LIMITS)]
    max_message_size: u32,
    /// Bytes that are read of a TCP connection at once
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    incoming_buffer: u32,
    /// How long a message in pieces may take to be whole
    #[arg(long, value_name = "SECONDS", value_parser = topic::seconds, default_value = "600")]
    fragment_timeout: Duration,
    /// When a topic goes that clients do not publish any more
    #[arg(long, value_name = "SECONDS", value_parser = topic::seconds, default_value = "10")]
    unregister_timeout: Duration,
    /// How long a service may take to answer where the client does not say; 0 or less for as long as it takes
    #[arg(long, value_name = "SECONDS", value_parser = patience, default_value = "5", allow_negative_numbers = true)]
    default_call_service_timeout: Duration,
    /// The topics that clients may use: [/a*, /b]
    #[arg(long, value_name = "GLOBS", value_parser = Globs::parse, default_value = "")]
    topics_glob: Globs,
    /// The services that clients may call and serve, beside /rosapi
    #[arg(long, value_name = "GLOBS", value_parser = Globs::parse, default_value = "")]
    services_glob: Globs,
    /// The actions that clients may use
    #[arg(long, value_name = "GLOBS", value_parser = Globs::parse, default_value = "")]
    actions_glob: Globs,
    /// The parameters that clients may read and set
    #[arg(long, value_name = "GLOBS", value_parser = Globs::parse, default_value = "")]
    params_glob: Globs,
    /// Clients may do nothing before they have said this token, unless --users says otherwise, by {"op": "auth", "token": "TOKEN"}
    #[arg(long, value_name = "TOKEN", env = "TSUJI_BRIDGE_TOKEN", hide_env_values = true, value_parser = token)]
    token: Option<Token>,
    /// Who may do what, and how much of it: a YAML file, as docs/bridge.md shows
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// Take the hashes of rosauth as well; in the file stands the secret, of at least 16 letters
    #[arg(long, value_name = "FILE")]
    rosauth_secret: Option<PathBuf>,
    /// Speak BSON, in and out
    #[arg(long)]
    bson_only_mode: bool,
    /// The least time between two messages to a client that says nothing of it
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    delay_between_messages: Duration,
    /// Let WebSockets agree on permessage-deflate
    #[arg(long)]
    use_compression: bool,
    /// Ask after so long a silence whether the other end of a connection is there; 0 for never
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    tcp_keepalive: Duration,
    /// What the system keeps of datagrams that were not read yet, in bytes, as far as it allows
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    udp_receive_buffer: u32,
    /// What may wait for all clients together, in bytes; at that, whoever has the most loses its oldest samples
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 20, value_parser = clap::value_parser!(u64).range(1 << 20..))]
    max_total_memory: u64,
    /// Clients at a time
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = LIMITS)]
    max_connections: u32,
    /// Levels of objects and lists in a message
    #[arg(long, value_name = "LEVELS", default_value_t = 64, value_parser = clap::value_parser!(u8).range(4..=128), help_heading = LIMITS)]
    max_nesting: u8,
    /// Messages a second of one client; it is read no faster, and by UDP what is more is dropped. Any if not said
    #[arg(long, value_name = "N", value_parser = per_second, help_heading = LIMITS)]
    max_messages_per_second: Option<f64>,
    /// Bytes a second of one client, in the same way
    #[arg(long, value_name = "BYTES", value_parser = per_second, help_heading = LIMITS)]
    max_bytes_per_second: Option<f64>,
    /// Bytes that wait for one client: beyond it its oldest samples are dropped, and with so many answers it is cut off
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, value_parser = clap::value_parser!(u32).range(1_000_000..), help_heading = LIMITS)]
    max_client_memory: u32,
    /// Samples that wait for one client, of a topic for which it says no queue_length
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..), help_heading = LIMITS)]
    max_queue_length: u32,
    /// Topics that one client publishes, and as many that it subscribes to, and services and actions that it serves
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = LIMITS)]
    max_names: u32,
    /// Calls and goals under way of one client, each way
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = LIMITS)]
    max_pending: u32,
    /// Messages in pieces under way of one client
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = LIMITS)]
    max_fragmented: u32,
    /// Bytes of them all; twice the longest message if not said
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1000..), help_heading = LIMITS)]
    max_fragment_memory: Option<u32>,
    /// Play this recording, an MCAP file or a folder of rosbag2, with its time on /clock; clients may pause it and seek. Given several
    /// times, it plays the files as one
    #[arg(long, value_name = "FILE", action = ArgAction::Append, help_heading = PLAYED)]
    play: Vec<PathBuf>,
    /// How many times as fast as it was recorded
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, requires = "play", allow_negative_numbers = true, help_heading = PLAYED)]
    rate: f64,
    /// Begin again at the end; without it a recording that has ended stays there until a client says otherwise
    #[arg(long = "loop", requires = "play", help_heading = PLAYED)]
    again: bool,
    /// Begin paused, until a client says otherwise
    #[arg(long, requires = "play", help_heading = PLAYED)]
    start_paused: bool,
    /// Publish the pictures of these topics, or patterns of them, as JPEG on TOPIC/compressed, while somebody subscribes
    #[arg(long, value_name = "TOPIC", value_parser = record::pattern, num_args = 1.., help_heading = PICTURES)]
    jpeg: Vec<TopicPattern>,
    /// How good these are at most, 1 to 100
    #[arg(long, value_name = "QUALITY", default_value_t = 80, value_parser = clap::value_parser!(u8).range(1..=100), requires = "jpeg", help_heading = PICTURES)]
    jpeg_quality: u8,
    /// How many bytes a second each of them may take: quality goes down to 10 to keep that, then pictures are left out
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1000..), requires = "jpeg", help_heading = PICTURES)]
    jpeg_rate: Option<u64>,
    /// Print where it listens, and at the end what it did, as JSON, and each warning as an object on standard error
    #[arg(long)]
    json: bool,
}

const LIMITS: &str = "Limits";
const PLAYED: &str = "A recording";
const PICTURES: &str = "Pictures";

/// What is not empty: with an empty one everybody could do everything.
fn token(text: &str) -> Result<Token, String> {
    Token::new(text).ok_or_else(|| "allowed: a text that is not empty".to_owned())
}

/// A number above 0.
fn per_second(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|it: &f64| it.is_finite() && 0.001 <= *it);
    number.ok_or_else(|| "allowed: a number of at least 0.001".to_owned())
}

/// A number of seconds; none and less is as long as it takes.
fn patience(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(number) if number <= 0.0 => Ok(Duration::ZERO),
        _ => topic::seconds(text),
    }
}

/// A number of seconds, which may be none.
fn seconds(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { topic::seconds(text) }
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    if args.json {
        output::warn_in_json();
    }
    // Heard from here on, so that an early Ctrl-C ends it as well.
    let mut signals = Signals::new(signals::heard(&[SIGINT, SIGTERM, SIGHUP]))?;
    let session = Session::open_without_signals(globals)?;
    let node = session.context.node("rosbridge_websocket")?;
    let ament = AmentIndex::from_env_value(env::var_os("AMENT_PREFIX_PATH").unwrap_or_default());
    let installed = Chain(vec![Box::new(ament), Box::new(Shipped)]);
    let mut played = match args.play.is_empty() {
        true => None,
        false => Some(PlayedRecording::open(args, &session, &installed)?),
    };
    // What is played is written as its own definitions say.
    let mut sources: Vec<Box<dyn Resolver + Send + Sync>> = Vec::new();
    sources.extend(played.as_mut().map(|it| it.take_definitions()));
    sources.push(Box::new(installed));
    let bridge = settings(args).and_then(|mut settings| {
        settings.playback = played.as_ref().map(PlayedRecording::playback);
        Bridge::start(&node, settings, Box::new(Chain(sources)))
    });
    let bridge = bridge.map_err(|error| match error.kind() {
        ErrorKind::Invalid => Usage(error.to_string()).into(),
        _ => anyhow::Error::from(error),
    })?;
    let url = |it: &tsuji_bridge::Bound| match it.protocol {
        tsuji_bridge::Protocol::WebSocket if args.certfile.is_some() => {
            format!("wss://{}", it.address)
        }
        tsuji_bridge::Protocol::WebSocket => format!("ws://{}", it.address),
        other => format!("{}://{}", other.word(), it.address),
    };
    if session.context.is_secured() && args.token.is_none() && args.users.is_none() {
        output::warning(
            "web clients prove nothing by the keystore, and may do all that this enclave may; allowed: --token, --users",
        );
    }
    if args.json {
        let bound = bridge.bound().iter().map(|it| {
            json!({ "protocol": it.protocol.word(), "address": it.address.ip().to_string(), "port": it.address.port() })
        });
        out.line(json!({ "listening": bound.collect::<Vec<_>>() }))?;
    } else {
        for it in bridge.bound() {
            out.line(format_args!("listening at {}", url(it)))?;
            if it.protocol == tsuji_bridge::Protocol::WebSocket
                && !args.no_page
                && !args.bson_only_mode
            {
                out.line(format_args!("page at {}/", url(it).replacen("ws", "http", 1)))?;
            }
        }
        output::note("Ctrl-C ends it");
    }
    std::io::Write::flush(out)?;
    let playing = played.map(PlayedRecording::start).transpose()?;
    let handle = signals.handle();
    bridge.when_over(move || handle.close());
    signals.forever().next();
    let (done, is_over) = (bridge.statistics(), bridge.is_over());
    drop(bridge);
    session.context.shutdown();
    let played = playing.map(recording::Playing::end);
    tell(&done, args.json, out)?;
    anyhow::ensure!(!is_over, "the bridge has ended by itself; the log says why");
    played.unwrap_or(Ok(()))
}

/// What it did.
fn tell(done: &Statistics, is_json: bool, out: &mut Output) -> anyhow::Result<()> {
    if is_json {
        return Ok(out.line(done.to_json())?);
    }
    Ok(out.line(format_args!(
        "{} connections; {} messages of clients published, {} refused; {} samples for clients",
        done.connected, done.published, done.refusals, done.received
    ))?)
}

fn settings(args: &Args) -> tsuji_bridge::Result<Settings> {
    let place = |port| Place { address: args.address, port };
    let mut settings = Settings {
        websocket: (!args.no_websocket).then(|| place(args.port)),
        tcp: args.tcp_port.map(place),
        udp: args.udp_port.map(place),
        page: !args.no_page,
        metrics: !args.no_metrics,
        diagnostics: args.diagnostics,
        url_path: args.url_path.clone(),
        tls: args
            .certfile
            .clone()
            .zip(args.keyfile.clone())
            .map(|(certificate, key)| TlsFiles { certificate, key }),
        origins: args.origin.clone(),
        ping_interval: args.websocket_ping_interval,
        ping_timeout: args.websocket_ping_timeout,
        incoming_buffer: args.incoming_buffer as usize,
        bson_only: args.bson_only_mode,
        compression: args.use_compression,
        keepalive: args.tcp_keepalive,
        udp_receive_buffer: args.udp_receive_buffer as usize,
        memory_bytes_max: usize::try_from(args.max_total_memory).unwrap_or(usize::MAX),
        call_timeout: args.default_call_service_timeout,
        distro: env::var_os("ROS_DISTRO")
            .filter(|it| !it.is_empty())
            .map_or_else(|| "jazzy".to_owned(), |it| it.to_string_lossy().into_owned()),
        interfaces: Interfaces::from_environment().names().into_iter().collect(),
        access: access(args)?,
        jpeg: (!args.jpeg.is_empty()).then(|| Jpeg {
            topics: args.jpeg.clone(),
            quality: args.jpeg_quality,
            bytes_per_second: args.jpeg_rate,
        }),
        message_interval: args.delay_between_messages,
        ..Settings::default()
    };
    let limits = &mut settings.limits;
    limits.connections_max = args.max_connections as usize;
    limits.message_bytes_max = args.max_message_size as usize;
    limits.nesting_max = args.max_nesting.into();
    limits.messages = args.max_messages_per_second.map(Rate::steady);
    limits.bytes = args.max_bytes_per_second.map(Rate::steady);
    limits.client.queue.bytes_max = args.max_client_memory as usize;
    limits.client.queue.samples_max = args.max_queue_length as usize;
    limits.client.names_max = args.max_names as usize;
    limits.client.ids_max = 2 * args.max_names as usize;
    limits.client.pending_max = args.max_pending as usize;
    limits.client.unregister_timeout = args.unregister_timeout;
    limits.client.fragments.timeout = args.fragment_timeout;
    let fragments = &mut limits.client.fragments;
    fragments.messages_max = args.max_fragmented as usize;
    fragments.message_bytes_max = args.max_message_size as usize;
    let memory = args.max_fragment_memory.map(|it| it as usize);
    fragments.bytes_max = memory.unwrap_or(2 * args.max_message_size as usize);
    Ok(settings)
}

fn access(args: &Args) -> tsuji_bridge::Result<Access> {
    let globs = ServerGlobs {
        topics: args.topics_glob.clone(),
        services: args.services_glob.clone(),
        actions: args.actions_glob.clone(),
        params: args.params_glob.clone(),
    };
    let read = args.users.as_deref().map(Users::read).transpose()?;
    let Users { mut named, anonymous } = read.unwrap_or_default();
    // Whoever says the token may do what the globs allow.
    let token = args.token.clone();
    named.extend(token.map(|token| User::unrestricted("client", Some(token))));
    let mut access = Access::new(globs, named);
    if let Some(anonymous) = anonymous {
        access = access.with_anonymous(anonymous);
    }
    if let Some(file) = &args.rosauth_secret {
        let mut rosauth = read_rosauth(file)?;
        if args.users.is_some() {
            // Its levels are the names of users then.
            rosauth.otherwise = None;
        }
        access = access.with_rosauth(rosauth);
    }
    Ok(access)
}
