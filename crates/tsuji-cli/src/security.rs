//! `tsuji security`: SROS2 keystores, their enclaves, and what each may do.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value as Json, json};
use tsuji_core::names;
use tsuji_ros::environment::DOMAIN_MAX;
use tsuji_security::{
    AccessPolicy, Additions, Answer, Enclave, Lifetime, Maker, NewGovernance, Protection, Refused,
    Verb, enclaves, validate_enclave,
};

use crate::elsewhere;
use crate::failure::{Told, Usage};
use crate::figures::count;
use crate::output::{self, Colour, Output};
use crate::session::Globals;
use crate::table::{Cell, Column, Table};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a keystore, and enclaves with what they may do
    #[command(
        after_help = "Makes what is not there and keeps what is. A new enclave may do everything, unless --access says what; with \
        --access, permissions that are there are made anew. Nodes of ROS 2 use the keystore as one of `ros2 security`. \
        Processes of tsuji are secured by it where ROS_SECURITY_ENABLE is true.\n\nExamples:\n  \
        tsuji security create --keystore ~/keystore /talker /listener\n  \
        tsuji security create --keystore ~/keystore --access robot.xml --days 365"
    )]
    Create(Create),
    /// Check the enclaves of a keystore: files, signatures, dates, keys
    #[command(after_help = "Reads keystores, also those of `ros2 security`.\n\
        Exit code 1 if an enclave is not whole.\n\nExamples:\n  tsuji security check --keystore ~/keystore\n  \
        tsuji security check --keystore ~/keystore /talker")]
    Check(Check),
    /// Say what an enclave may do, and by which rule
    #[command(after_help = "Exit code 1 if it may not.\n\nExamples:\n  \
        tsuji security explain --keystore ~/keystore /talker publish /chatter\n  \
        tsuji security explain /arm send-goal /reach --domain-id 3")]
    Explain(Explain),
    /// Take certificates of enclaves back
    #[command(
        after_help = "Adds them to the list of revoked certificates, crl.pem of each enclave, which ROS 2 hands to \
        middlewares of DDS too. Running processes of tsuji drop whoever has them within ten seconds. Robots that have a copy of the \
        keystore need the new public/crl.pem.\n\nExamples:\n  \
        tsuji security revoke --keystore ~/keystore /talker\n  \
        tsuji security revoke --keystore ~/keystore --certificate old.cert.pem\n  \
        tsuji security revoke --keystore ~/keystore --days 365"
    )]
    Revoke(Revoke),
    /// Refused, with what takes its place
    #[command(external_subcommand)]
    Other(Vec<String>),
}

/// Where the keystore is.
#[derive(Debug, Args)]
pub(crate) struct Keystore {
    /// The keystore, instead of ROS_SECURITY_KEYSTORE
    #[arg(long, value_name = "FOLDER")]
    keystore: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The enclaves, such as /talker. Without any, those of --access
    #[arg(value_name = "ENCLAVE", value_parser = enclave_name)]
    enclaves: Vec<String>,
    #[command(flatten)]
    keystore: Keystore,
    /// What the enclaves may do: a policy of `ros2 security`
    #[arg(long, value_name = "FILE")]
    access: Option<PathBuf>,
    /// Sign this governance for all enclaves
    #[arg(long, value_name = "FILE")]
    governance: Option<PathBuf>,
    /// How many days certificates of enclaves that are made count
    #[arg(long, value_name = "N", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The enclaves, such as /talker. Without any, all
    #[arg(value_name = "ENCLAVE")]
    enclaves: Vec<String>,
    #[command(flatten)]
    keystore: Keystore,
    /// Print JSON: an array of enclaves
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The enclaves, such as /talker. Without any, the list is renewed as it is
    #[arg(value_name = "ENCLAVE", value_parser = enclave_name)]
    enclaves: Vec<String>,
    #[command(flatten)]
    keystore: Keystore,
    /// A certificate that no enclave has any more
    #[arg(long, value_name = "FILE")]
    certificate: Vec<PathBuf>,
    /// How many days the list counts; once it has expired, no process is met
    #[arg(long, value_name = "N", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The enclave, such as /talker
    #[arg(value_name = "ENCLAVE")]
    enclave: String,
    /// What it would do
    #[arg(value_name = "VERB")]
    deed: What,
    /// The full name of the topic, service or action
    #[arg(value_name = "NAME", value_parser = full_name)]
    name: String,
    #[command(flatten)]
    keystore: Keystore,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is done with a topic, a service or an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// A topic
    Publish,
    /// A topic
    Subscribe,
    /// A service, as its client
    Call,
    /// A service, as its server
    Serve,
    /// An action, as its client
    SendGoal,
    /// An action, as its server
    Execute,
}

impl What {
    fn verb(self) -> Verb {
        match self {
            Self::Publish => Verb::Publish,
            Self::Subscribe => Verb::Subscribe,
            Self::Call => Verb::Call,
            Self::Serve => Verb::Serve,
            Self::SendGoal => Verb::SendGoal,
            Self::Execute => Verb::Execute,
        }
    }

    fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned())
    }
}

pub(crate) fn run(command: &Command, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::Create(args) => create(args, globals, out),
        Command::Check(args) => check(args, out),
        Command::Explain(args) => explain(args, globals, out),
        Command::Revoke(args) => revoke(args, out),
        Command::Other(words) => {
            let verb = words.first().map_or("", String::as_str);
            elsewhere::refuse(&format!("security {verb}"))
        }
    }
}

impl Keystore {
    fn folder(&self) -> anyhow::Result<PathBuf> {
        let said = env::var_os("ROS_SECURITY_KEYSTORE").filter(|it| !it.is_empty());
        let folder = self.keystore.clone().or_else(|| said.map(PathBuf::from));
        folder.ok_or_else(|| {
            Usage(
                "no keystore is named; give --keystore FOLDER, or set ROS_SECURITY_KEYSTORE"
                    .to_owned(),
            )
            .into()
        })
    }
}

fn create(args: &Create, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let folder = args.keystore.folder()?;
    let domain = globals.domain()?;
    let policy = match &args.access {
        Some(path) => Some((path, AccessPolicy::read(path)?)),
        None => None,
    };
    let mut names: Vec<String> = Vec::new();
    for name in &args.enclaves {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    if let Some((path, policy)) = &policy {
        if names.is_empty() {
            names.extend(policy.enclaves().map(str::to_owned));
        }
        if let Some(name) = names.iter().find(|it| policy.access(it).is_none()) {
            let there: Vec<&str> = policy.enclaves().collect();
            let file = path.display();
            let there = there.join(", ");
            bail!("{file}: says nothing of the enclave {name}; it has {there}");
        }
    }
    let governance = args.governance.as_deref().map(|it| NewGovernance::read(it, domain));
    let governance = governance.transpose()?;
    let now = SystemTime::now();
    let lifetime = Lifetime::days(now, args.days);
    let is_new = Maker::make(&folder, domain, now, waits)?;
    let maker = Maker::open(&folder, now, waits)?;
    warn_of_authorities(&folder);
    if let Some(governance) = &governance {
        for name in maker.sign_governance(governance)? {
            output::warning(format_args!("{name}: has a governance of its own, which is kept"));
        }
    }
    let mut added: Vec<(Additions, Enclave)> = Vec::new();
    let mut refused = None;
    for name in &names {
        let access = policy.as_ref().and_then(|(_, it)| it.access(name));
        match maker.add_enclave(name, access, domain, lifetime, now) {
            Ok(it) => added.push(it),
            Err(why) => {
                refused = Some((name, why));
                break;
            }
        }
    }
    if added.iter().any(|(made, _)| made.key) && maker.expires_at() < lifetime.expires_at() {
        let left = maker.expires_at().duration_since(now).unwrap_or_default();
        output::warning(format_args!(
            "the authority of the keystore expires in {}, and certificates with it",
            days(left)
        ));
    }
    if args.json {
        let enclaves = added.iter().map(|(made, enclave)| {
            let mut json = enclave_json(enclave.name(), Ok(enclave));
            json["has_new_key"] = made.key.into();
            json["has_new_permissions"] = made.permissions.into();
            json
        });
        let refused = refused.iter().map(|(name, why)| enclave_json(name, Err(why)));
        let enclaves: Vec<Json> = enclaves.chain(refused).collect();
        let folder = folder.display().to_string();
        let json =
            json!({ "keystore": folder, "is_new": is_new, "domain": domain, "enclaves": enclaves });
        out.lines(serde_json::to_string_pretty(&json)?)?;
    } else {
        let state = if is_new { "made" } else { "was there" };
        out.line(format_args!("{}: {state}", folder.display()))?;
        list_made(&added, policy.is_some(), now, out)?;
    }
    if let Some((_, why)) = refused {
        return Err(why.into());
    }
    if is_new && !args.json {
        output::note(format_args!(
            "whoever has {} can make enclaves; a robot needs only public, enclaves/governance.p7s and its own enclave",
            folder.join("private").display()
        ));
    }
    Ok(())
}

fn revoke(args: &Revoke, out: &mut Output) -> anyhow::Result<()> {
    let folder = args.keystore.folder()?;
    let now = SystemTime::now();
    let maker = Maker::open(&folder, now, waits)?;
    let lifetime = Lifetime::days(now, args.days);
    let mut names = args.enclaves.clone();
    names.sort();
    names.dedup();
    let made = maker.revoke(&names, &args.certificate, lifetime, now)?;
    for name in &made.others {
        output::warning(format_args!("{name}: has a crl.pem of its own, which is kept"));
    }
    let (list, expires) = (made.path.display().to_string(), made.expires_at);
    names.extend(args.certificate.iter().map(|it| it.display().to_string()));
    if args.json {
        let expires_s = seconds_since_1970(expires);
        let json =
            json!({ "list": list, "revoked": names, "expires_s": expires_s, "kept": made.others });
        out.lines(serde_json::to_string_pretty(&json)?)?;
        return Ok(());
    }
    for name in &names {
        out.line(format_args!("{name}: revoked"))?;
    }
    let left = days(expires.duration_since(now).unwrap_or_default());
    out.line(format_args!("{list}: new, expires in {left}"))?;
    Ok(())
}

fn list_made(
    added: &[(Additions, Enclave)],
    has_policy: bool,
    now: SystemTime,
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut table = Table::new(&[
        Column::name("ENCLAVE", 12),
        Column::whole("KEY"),
        Column::whole("PERMISSIONS"),
        Column::sentence("EXPIRES", 20),
    ]);
    let word = |is_new| match is_new {
        true => Cell::new("new", Colour::Good),
        false => "kept".into(),
    };
    for (made, enclave) in added {
        let access = match (made.permissions, has_policy) {
            (true, false) => Cell::new("new: everything", Colour::Warning),
            (is_new, _) => word(is_new),
        };
        let expires = Expiry::of(enclave, now).cell();
        table.row(vec![enclave.name().into(), word(made.key), access, expires]);
    }
    if !added.is_empty() {
        for line in table.lines(out.columns(), out.paint) {
            out.line(line)?;
        }
    }
    Ok(())
}

/// When the first of its files expires.
pub(crate) struct Expiry<'a> {
    pub(crate) left: String,
    pub(crate) file: &'a str,
    /// Whether whoever renews keys should know by now.
    pub(crate) is_soon: bool,
}

impl<'a> Expiry<'a> {
    pub(crate) fn of(enclave: &'a Enclave, now: SystemTime) -> Self {
        let (at, file) = &enclave.expiries()[0];
        let left = at.duration_since(now).unwrap_or_default();
        Self { left: days(left), file, is_soon: left < SOON }
    }

    fn cell(&self) -> Cell {
        format!("in {} ({})", self.left, self.file).into()
    }
}

fn check(args: &Check, out: &mut Output) -> anyhow::Result<()> {
    let keystore = args.keystore.folder()?;
    let names = if args.enclaves.is_empty() { enclaves(&keystore) } else { args.enclaves.clone() };
    if names.is_empty() {
        bail!("there are no enclaves in {}", keystore.join("enclaves").display());
    }
    let now = SystemTime::now();
    let read: Vec<_> = names.iter().map(|it| (it, Enclave::read(&keystore, it, now))).collect();
    let refused = read.iter().filter(|(_, it)| it.is_err()).count();
    warn_of_authorities(&keystore);
    read.iter().for_each(|(name, it)| warn_of(&keystore, name, it));
    if args.json {
        let all: Vec<Json> =
            read.iter().map(|(name, it)| enclave_json(name, it.as_ref())).collect();
        out.lines(serde_json::to_string_pretty(&all)?)?;
        return if refused == 0 { Ok(()) } else { Err(Told(1).into()) };
    }
    let mut table = Table::new(&[
        Column::name("ENCLAVE", 12),
        Column::whole("STATE"),
        Column::sentence("EXPIRES", 20),
    ]);
    for (name, enclave) in &read {
        let name = enclave.as_ref().map_or(name.as_str(), Enclave::name);
        let (state, expires) = match enclave {
            Ok(it) => {
                let expiry = Expiry::of(it, now);
                let is_soon = expiry.is_soon;
                let state = if is_soon { "good, not for long" } else { "good" };
                let colour = if is_soon { Colour::Warning } else { Colour::Good };
                (Cell::new(state, colour), expiry.cell())
            }
            Err(_) => (Cell::new("refused", Colour::Error), "".into()),
        };
        table.row(vec![name.into(), state, expires]);
    }
    for line in table.lines(out.columns(), out.paint) {
        out.line(line)?;
    }
    for (_, enclave) in &read {
        if let Err(refused) = enclave {
            output::note(refused);
        }
    }
    if refused == 0 {
        return Ok(());
    }
    output::error(format_args!("{} not whole", count(refused, "enclave is", "enclaves are")));
    Err(Told(1).into())
}

/// Warns where others than its owner may read a key, and where an enclave has the certificate of another.
fn warn_of(keystore: &Path, name: &str, enclave: &Result<Enclave, Refused>) {
    warn_of_key(&keystore.join("enclaves").join(name.trim_start_matches('/')).join("key.pem"));
    let Ok(enclave) = enclave else { return };
    let list = keystore.join("public").join("crl.pem");
    if list.exists() && !enclave.folder().join("crl.pem").exists() {
        output::warning(format_args!(
            "{name}: has no crl.pem, by which ROS 2 knows of {}; `tsuji security revoke` links it",
            list.display()
        ));
    }
    // SROS2 names certificates by enclaves; others name them as they like.
    let subject = enclave.certificate().subject();
    let of = subject.strip_prefix("CN=").filter(|it| it.starts_with('/'));
    if of.is_some_and(|it| it != enclave.name()) {
        output::warning(format_args!("{}: its certificate is that of {subject}", enclave.name()));
    }
    if enclave.domains(DOMAIN_MAX).next().is_none() {
        let name = enclave.name();
        output::warning(format_args!(
            "{name}: may join no domain; its permissions and governance have none in common"
        ));
    }
}

/// Warns where others than their owner may read the keys that make enclaves.
fn warn_of_authorities(keystore: &Path) {
    let folder = keystore.join("private");
    // What nobody else may enter nobody else may read.
    if folder.metadata().is_ok_and(|it| it.permissions().mode() & 0o011 != 0) {
        let mut keys: Vec<_> = ["identity_ca.key.pem", "permissions_ca.key.pem"]
            .iter()
            .filter_map(|it| folder.join(it).canonicalize().ok())
            .collect();
        keys.dedup();
        keys.iter().for_each(|it| warn_of_key(it));
    }
}

/// Warns where others than its owner may read a key.
fn warn_of_key(path: &Path) {
    let mode = path.metadata().map_or(0, |it| it.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let path = path.display();
        output::warning(format_args!(
            "{path}: others may read this key (mode {mode:03o}); chmod 600 it"
        ));
    }
}

fn seconds_since_1970(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Says why the command does not go on yet.
fn waits() {
    output::note("another command makes something in this keystore; waiting for it");
}

fn enclave_json(name: &str, enclave: Result<&Enclave, &Refused>) -> Json {
    match enclave {
        Ok(it) => {
            let expiries = it.expiries().iter();
            let expiries: Vec<Json> = expiries
                .map(|(at, file)| json!({ "file": file, "expires_s": seconds_since_1970(*at) }))
                .collect();
            json!({ "enclave": it.name(), "is_whole": true, "subject": it.certificate().subject(), "expiries": expiries })
        }
        Err(Refused { path, why }) => {
            json!({ "enclave": name, "is_whole": false, "file": path.display().to_string(), "why": why })
        }
    }
}

/// One of the things that are to be allowed.
struct Part {
    verb: String,
    /// As DDS names it; none where the domain is to be joined.
    topic: Option<String>,
    answer: Answer,
    /// What protects its samples at least.
    samples: Option<Protection>,
}

impl Part {
    fn json(&self) -> Json {
        let Answer { is_allowed, because } = &self.answer;
        let samples = self.samples.map(|it| it.to_string());
        // To join is about no topic.
        let topic = self.topic.as_deref();
        json!({ "verb": self.verb, "topic": topic, "is_allowed": is_allowed, "because": because, "samples": samples })
    }
}

fn explain(args: &Explain, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let keystore = args.keystore.folder()?;
    let enclave = Enclave::read(&keystore, &args.enclave, SystemTime::now());
    if let (true, Err(refused)) = (args.json, &enclave) {
        let json = enclave_json(&args.enclave, Err(refused));
        out.lines(serde_json::to_string_pretty(&json)?)?;
    }
    let enclave = enclave?;
    let domain = globals.domain()?;
    let joins = enclave.may_join(domain).map(|answer| Part {
        verb: "join".to_owned(),
        topic: None,
        answer,
        samples: None,
    });
    let topics = args.deed.verb().topics(&args.name).into_iter().map(|(deed, topic)| Part {
        verb: deed.to_string(),
        answer: enclave.may(deed, domain, &topic),
        samples: enclave.protection(domain, &topic),
        topic: Some(topic),
    });
    let parts: Vec<Part> = joins.into_iter().chain(topics).collect();
    let is_allowed = parts.iter().all(|it| it.answer.is_allowed);
    if args.json {
        let parts: Vec<Json> = parts.iter().map(Part::json).collect();
        let json = json!({
            "enclave": enclave.name(), "verb": args.deed.word(), "name": args.name, "domain": domain,
            "is_allowed": is_allowed, "parts": parts,
        });
        out.lines(serde_json::to_string_pretty(&json)?)?;
    } else {
        let paint = out.paint;
        let word = |is_allowed| match is_allowed {
            true => paint.text(Colour::Good, "allowed").to_string(),
            false => paint.text(Colour::Error, "denied").to_string(),
        };
        let head = format!(
            "{} may {} {} in domain {domain}: {}",
            enclave.name(),
            args.deed.word(),
            args.name,
            word(is_allowed)
        );
        out.line(head)?;
        for Part { verb, topic, answer, samples } in &parts {
            let of = topic.clone().unwrap_or_else(|| format!("domain {domain}"));
            let samples = samples.map_or_else(String::new, |it| format!("; samples: {it}"));
            out.line(format_args!("{verb} {of}: {}{samples}", word(answer.is_allowed)))?;
            out.line(format_args!("  {}", answer.because))?;
        }
    }
    if is_allowed { Ok(()) } else { Err(Told(1).into()) }
}

/// With its slash, which may be left out.
fn enclave_name(text: &str) -> Result<String, String> {
    // A variable that is not set would name the enclave of all.
    if text.is_empty() {
        return Err("it is empty; allowed: such as /talker, and / for the one above all".to_owned());
    }
    let name = if text.starts_with('/') { text.to_owned() } else { format!("/{text}") };
    validate_enclave(&name).map(|()| name).map_err(|why| format!("it {why}"))
}

fn full_name(text: &str) -> Result<String, String> {
    names::validate_topic(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

fn days(left: Duration) -> String {
    let number = |seconds| usize::try_from(left.as_secs() / seconds).unwrap_or(usize::MAX);
    match number(86_400) {
        0 | 1 => count(number(3600), "hour", "hours"),
        days => count(days, "day", "days"),
    }
}

/// Whoever renews keys wants to know so long before.
const SOON: Duration = Duration::from_secs(30 * 86_400);

#[cfg(test)]
mod tests {
    use tsuji_ros::names::DdsTopic::{self, ServiceReply, ServiceRequest, Topic};

    use super::*;

    #[test]
    fn verbs_take_the_topics_that_nodes_make() {
        let check = |verb: Verb, topics: &[DdsTopic<'_>]| {
            let expect: Vec<_> = topics.iter().map(|it| it.mangle().unwrap()).collect();
            let found = verb.topics("/a/b").into_iter().map(|it| it.1).collect::<Vec<_>>();
            assert_eq!(found, expect, "{verb:?}");
        };
        check(Verb::Publish, &[Topic("/a/b")]);
        check(Verb::Call, &[ServiceRequest("/a/b"), ServiceReply("/a/b")]);
        let (send, cancel) = ("/a/b/_action/send_goal", "/a/b/_action/cancel_goal");
        let result = "/a/b/_action/get_result";
        check(
            Verb::Execute,
            &[
                ServiceRequest(send),
                ServiceReply(send),
                ServiceRequest(cancel),
                ServiceReply(cancel),
                ServiceRequest(result),
                ServiceReply(result),
                Topic("/a/b/_action/feedback"),
                Topic("/a/b/_action/status"),
            ],
        );
    }
}
