//! Processes that do what a test says, secured by keystores that it makes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use tsuji::{Client, Context, Publisher, Service, Subscription};
use tsuji_interfaces::std_msgs::msg::{String as Text, UInt32, UInt64};
use tsuji_interfaces::std_srvs::srv::{SetBool, SetBoolRequest, SetBoolResponse};
use tsuji_security::{AccessPolicy, Lifetime, Maker};

use crate::house::{
    self, Child, DOMAIN, Folder, HANG, heard, keep_all, spun, take_until, tell, wait_until,
};

/// A node that does what the parent says, a line each, and tells what comes of it.
pub(crate) fn obey() {
    let context = match Context::new() {
        Ok(context) => context,
        Err(error) => return tell(&format!("{:?} {error}", error.kind())),
    };
    tell(&format!("secured {} {}", context.is_secured(), context.token()));
    let node = context.node("node").unwrap();
    let mut publisher: Option<Publisher<UInt64>> = None;
    let mut subscription: Option<Subscription<UInt64>> = None;
    let mut publisher32: Option<Publisher<UInt32>> = None;
    let mut subscription32: Option<Subscription<UInt32>> = None;
    let mut text_publisher: Option<Publisher<Text>> = None;
    let mut text_subscription: Option<Subscription<Text>> = None;
    let mut service: Option<Service<SetBool>> = None;
    let mut client: Option<Client<SetBool>> = None;
    let calls = Arc::new(AtomicU32::new(0));
    let said = |error: tsuji::Error| format!("{:?} {error}", error.kind());
    loop {
        let line = heard();
        let (word, name) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match word {
            "" => return,
            "publish" => node.create_publisher(name, keep_all()).map(|it| publisher = Some(it)),
            "subscribe" => {
                let made = node.create_polled_subscription(name, keep_all());
                made.map(|it| subscription = Some(it))
            }
            "serve" => {
                let calls = Arc::clone(&calls);
                let serve = move |request: Arc<SetBoolRequest>| {
                    calls.fetch_add(1, Ordering::AcqRel);
                    SetBoolResponse { success: request.data, message: "served".to_owned() }
                };
                node.create_service(name, serve).map(|it| service = Some(it))
            }
            "client" => node.create_client(name).map(|it| client = Some(it)),
            "call" => {
                let client = client.as_ref().unwrap();
                client.wait_for_service(HANG).unwrap();
                let reply = client.call(SetBoolRequest { data: true }, HANG);
                reply.map(|it| assert!(it.success))
            }
            "spin" => {
                let before = calls.load(Ordering::Acquire);
                spun(&node, || wait_until("a call", || before < calls.load(Ordering::Acquire)));
                Ok(())
            }
            "send" => {
                let publisher = publisher.as_ref().unwrap();
                publisher.wait_for_subscriptions(1, HANG).unwrap();
                publisher.publish(UInt64 { data: name.parse().unwrap() })
            }
            "take" => {
                let subscription = subscription.as_ref().unwrap();
                let data: u64 = name.parse().unwrap();
                take_until(&node, subscription, |it| it.message().data == data);
                Ok(())
            }
            "publish32" => node.create_publisher(name, keep_all()).map(|it| publisher32 = Some(it)),
            "subscribe32" => {
                let made = node.create_polled_subscription(name, keep_all());
                made.map(|it| subscription32 = Some(it))
            }
            "send32" => {
                let publisher = publisher32.as_ref().unwrap();
                publisher.publish(UInt32 { data: name.parse().unwrap() })
            }
            "take32" => {
                let subscription = subscription32.as_ref().unwrap();
                // A number, or "100.." for that or more.
                let (least, most) = match name.strip_suffix("..") {
                    Some(least) => (least.parse().unwrap(), u32::MAX),
                    None => (name.parse().unwrap(), name.parse().unwrap()),
                };
                let is_it = |it: u32| (least..=most).contains(&it);
                take_until(&node, subscription, |it| is_it(it.message().data));
                Ok(())
            }
            "publish_text" => {
                node.create_publisher(name, keep_all()).map(|it| text_publisher = Some(it))
            }
            "subscribe_text" => {
                let made = node.create_polled_subscription(name, keep_all());
                made.map(|it| text_subscription = Some(it))
            }
            "send_text" => {
                let publisher = text_publisher.as_ref().unwrap();
                publisher.wait_for_subscriptions(1, HANG).unwrap();
                publisher.publish(Text { data: "x".repeat(name.parse().unwrap()) })
            }
            "take_text" => {
                let subscription = text_subscription.as_ref().unwrap();
                let bytes: usize = name.parse().unwrap();
                take_until(&node, subscription, |it| {
                    it.message().data.len() == bytes
                        && it.message().data.bytes().all(|it| it == b'x')
                });
                Ok(())
            }
            "matched" => {
                let counts = [
                    publisher.as_ref().map(|it| it.matched()),
                    subscription.as_ref().map(|it| it.matched()),
                    publisher32.as_ref().map(|it| it.matched()),
                    subscription32.as_ref().map(|it| it.matched()),
                ];
                tell(&format!("{}", counts.into_iter().flatten().sum::<usize>()));
                continue;
            }
            "carry" => {
                house::links::set(&context, "/chatter", Some(name));
                house::links::settled_on(&context, "/chatter", name);
                Ok(())
            }
            "send_from" => {
                let publisher = publisher.as_ref().unwrap();
                let first: u64 = name.parse().unwrap();
                (first..first + SOME).try_for_each(|data| publisher.publish(UInt64 { data }))
            }
            "take_from" => {
                let subscription = subscription.as_ref().unwrap();
                let mut next: u64 = name.parse().unwrap();
                let end = next + SOME;
                take_until(&node, subscription, |it| {
                    assert_eq!(it.message().data, next, "each once and in order");
                    next += 1;
                    next == end
                });
                Ok(())
            }
            "trouble" => {
                let offered = context.transports();
                let it = offered.iter().find(|it| it.name == name).unwrap();
                tell(it.trouble.as_deref().unwrap_or_default());
                continue;
            }
            "protections" => {
                let routes = context.routes(HANG).unwrap();
                let shown = routes.iter().filter_map(|it| {
                    let (transport, protection) =
                        it.transport.as_ref().zip(it.protection.as_ref())?;
                    Some(format!("{transport}:{protection}"))
                });
                tell(&shown.collect::<Vec<_>>().join(" "));
                continue;
            }
            "routes" => {
                let by = context.routes(HANG).unwrap();
                let by = by.iter().filter_map(|it| it.transport.as_ref().map(ToString::to_string));
                tell(&by.collect::<Vec<_>>().join(" "));
                continue;
            }
            "expiries" => {
                let routes = context.routes(HANG).unwrap();
                let of = |it: &tsuji::EndReport| {
                    it.certificate.as_ref().map_or(0, |it| it.expires_wall_ns)
                };
                let ends = routes.first().map(|it| [of(&it.publisher), of(&it.subscription)]);
                tell(&ends.map_or_else(String::new, |[one, two]| format!("{one} {two}")));
                continue;
            }
            "with_args" => {
                let arguments = ["program", "--ros-args"].into_iter().chain(name.split(' '));
                let made =
                    context.with_args(arguments.filter(|it| !it.is_empty()).map(str::to_owned));
                made.map(|it| assert!(it.is_secured() && it.enclave() == context.enclave()))
            }
            "descriptors" => {
                tell(&format!("{}", house::descriptors()));
                continue;
            }
            "settle" => {
                tell(&format!("{}", context.settle(HANG).unwrap()));
                continue;
            }
            "unreachable" => {
                wait_until("somebody is not met", || !context.unreachable_peers().is_empty());
                let reasons = context.unreachable_peers().into_iter().map(|it| it.reason);
                tell(&reasons.collect::<Vec<_>>().join(" | "));
                continue;
            }
            other => panic!("{other}"),
        };
        tell(&answer.map_or_else(said, |()| "done".to_owned()));
    }
}

/// A run-time folder, and keystores beside it.
#[allow(dead_code, reason = "not every test has its processes on one host")]
pub(crate) struct World {
    pub(crate) folder: Folder,
    pub(crate) keystores: Folder,
    /// Of which the enclaves are.
    domain: u32,
}

/// So many samples are sent at once.
pub(crate) const SOME: u64 = 200;

/// What the enclaves of a keystore may do.
pub(crate) const ACCESS: &str = r#"<policy version="0.2.0"><enclaves>
  <enclave path="/talker"><profiles><profile ns="/" node="node">
    <topics publish="ALLOW"><topic>chatter</topic></topics>
    <services reply="ALLOW"><service>switch</service></services>
  </profile></profiles></enclave>
  <enclave path="/listener"><profiles><profile ns="/" node="node">
    <topics subscribe="ALLOW"><topic>chatter</topic></topics>
    <services request="ALLOW"><service>switch</service></services>
  </profile></profiles></enclave>
</enclaves></policy>"#;

/// What secures a process.
pub(crate) fn environment<'a>(
    keystore: &'a Path,
    enclave: &'a str,
    strategy: &'a str,
) -> [(&'static str, &'a str); 4] {
    [
        ("ROS_SECURITY_ENABLE", "true"),
        ("ROS_SECURITY_STRATEGY", strategy),
        ("ROS_SECURITY_KEYSTORE", keystore.to_str().unwrap()),
        ("ROS_SECURITY_ENCLAVE_OVERRIDE", enclave),
    ]
}

pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

#[allow(dead_code, reason = "as above")]
impl World {
    pub(crate) fn new() -> Self {
        Self::in_domain(DOMAIN)
    }

    pub(crate) fn in_domain(domain: u32) -> Self {
        let keystores = Folder::new();
        fs::create_dir_all(&keystores.0).unwrap();
        Self { folder: Folder::new(), keystores, domain }
    }

    pub(crate) fn domain(&self) -> u32 {
        self.domain
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.keystores.0.join(name)
    }

    /// Where the process of this number listens.
    pub(crate) fn socket(&self, token: &str) -> PathBuf {
        self.folder.0.join(format!("domain-{DOMAIN}/{token}.sock"))
    }

    /// A keystore with a talker and a listener, whose certificates count for a hundred days from `since` on.
    pub(crate) fn keystore_since(&self, name: &str, since: SystemTime) -> PathBuf {
        self.keystore_of(name, since, ACCESS)
    }

    pub(crate) fn keystore_of(&self, name: &str, since: SystemTime, text: &str) -> PathBuf {
        let keystore = self.path(name);
        Maker::make(&keystore, self.domain, since, || {}).unwrap();
        let access = self.path("access.xml");
        fs::write(&access, text).unwrap();
        let access = AccessPolicy::read(&access).unwrap();
        let maker = Maker::open(&keystore, since, || {}).unwrap();
        for enclave in ["/talker", "/listener"] {
            let lifetime = Lifetime::days(since, 100);
            maker
                .add_enclave(enclave, access.access(enclave), self.domain, lifetime, since)
                .unwrap();
        }
        keystore
    }

    pub(crate) fn keystore(&self, name: &str) -> PathBuf {
        self.keystore_since(name, now())
    }

    /// A process in an enclave, which nothing but a keystore lets start.
    pub(crate) fn start(&self, keystore: &Path, enclave: &str) -> Child {
        self.start_with(keystore, enclave, "Enforce")
    }

    pub(crate) fn start_with(&self, keystore: &Path, enclave: &str, strategy: &str) -> Child {
        Child::start_with(&self.folder, "obey", &environment(keystore, enclave, strategy))
    }

    /// The same, once it has started. Answers the number of the process too.
    pub(crate) fn secured(&self, keystore: &Path, enclave: &str) -> (Child, String) {
        let child = self.start(keystore, enclave);
        let token = child.expect("secured true ");
        (child, token)
    }

    pub(crate) fn in_clear(&self) -> Child {
        let child = Child::start(&self.folder, "obey");
        child.expect("secured false ");
        child
    }
}

pub(crate) trait Obeys {
    fn asked(&mut self, word: &str) -> String;

    fn does(&mut self, word: &str) {
        assert_eq!(self.asked(word), "done", "{word}");
    }
}

impl Obeys for Child {
    fn asked(&mut self, word: &str) -> String {
        self.say(word);
        self.line()
    }
}
