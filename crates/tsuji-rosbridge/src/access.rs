//! Who may do what.

use std::fmt;
use std::sync::Arc;

use crate::limits::Rate;

mod rosauth;
pub use rosauth::{Recognised, Rejected, Rosauth};

mod token;
pub use token::Token;

/// Shell patterns of names, as Python's `fnmatch` has them: `*` is any run of characters, slashes too, `?` is one,
/// `[abc]`, `[a-z]` and `[!abc]` are one of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globs(Option<Vec<String>>);

impl Globs {
    /// Every name.
    pub const ALL: Self = Self(None);

    /// No name.
    pub const NONE: Self = Self(Some(Vec::new()));

    /// The names of these patterns; with no pattern, none.
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(Some(patterns.into_iter().map(Into::into).collect()))
    }

    /// Reads the text of a launch file: `[/a*, '/b']`, where an empty text or `None` is every name and `[]` is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text == "None" {
            return Ok(Self::ALL);
        }
        let list = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let Some(list) = list else {
            return Err(format!("{text:?}: expected a list like [/a*, /b], or nothing for all"));
        };
        let mut patterns = Vec::new();
        let mut rest = list.trim();
        while !rest.is_empty() {
            // A comma within a set belongs to the pattern.
            let mut in_set = false;
            let end = rest.find(|it| {
                in_set = match it {
                    '[' => true,
                    ']' => false,
                    _ => in_set,
                };
                it == ',' && !in_set
            });
            let (pattern, behind) = end.map_or((rest, ""), |end| (&rest[..end], &rest[end + 1..]));
            let pattern = pattern.trim().trim_matches(['\'', '"']);
            if !pattern.is_empty() {
                patterns.push(pattern.to_owned());
            }
            rest = behind;
        }
        Ok(Self(Some(patterns)))
    }

    /// The same with one pattern more; every name stays every name, and none stays none.
    pub fn and(mut self, pattern: &str) -> Self {
        if let Some(patterns) = &mut self.0
            && !patterns.is_empty()
        {
            patterns.push(pattern.to_owned());
        }
        self
    }

    /// Whether the name is one of them.
    pub fn allow(&self, name: &str) -> bool {
        match &self.0 {
            None => true,
            Some(patterns) => patterns.iter().any(|it| matches(it.as_bytes(), name.as_bytes())),
        }
    }
}

impl fmt::Display for Globs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("all"),
            Some(patterns) => write!(f, "[{}]", patterns.join(", ")),
        }
    }
}

/// Takes time in proportion to the product of the lengths at worst.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut name_at) = (0, 0);
    // The last star, and where in the name what follows it is tried.
    let mut retry = None;
    loop {
        match (pattern.get(at), name.get(name_at)) {
            (Some(b'*'), _) => {
                at += 1;
                retry = Some((at, name_at));
                continue;
            }
            (None, None) => return true,
            (Some(_), Some(&byte)) => {
                if let Some(next) = one(pattern, at, byte) {
                    (at, name_at) = (next, name_at + 1);
                    continue;
                }
            }
            _ => (),
        }
        let Some((star, tried)) = retry else { return false };
        if tried >= name.len() {
            return false;
        }
        retry = Some((star, tried + 1));
        (at, name_at) = (star, tried + 1);
    }
}

/// Behind what stands for one character, if it stands for this one. Names of ROS are ASCII, so that a byte is one.
fn one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match pattern[at] {
        b'?' => Some(at + 1),
        b'[' => {
            let negated = pattern.get(at + 1) == Some(&b'!');
            let first = at + 1 + usize::from(negated);
            // A bracket that comes first is itself in the set.
            let length = pattern.get(first + 1..)?.iter().position(|&it| it == b']');
            let Some(length) = length else { return (byte == b'[').then_some(at + 1) };
            let set = &pattern[first..first + 1 + length];
            let mut found = false;
            let mut rest = set;
            while let [low, tail @ ..] = rest {
                if let [b'-', high, tail @ ..] = tail {
                    found |= (*low..=*high).contains(&byte);
                    rest = tail;
                } else {
                    found |= *low == byte;
                    rest = tail;
                }
            }
            (found != negated).then_some(first + length + 2)
        }
        literal => (literal == byte).then_some(at + 1),
    }
}

/// What a client wants to do with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Publish or advertise a topic.
    Publish,
    /// Subscribe to a topic.
    Subscribe,
    /// Call a service.
    CallService,
    /// Serve a service.
    ServeService,
    /// Send a goal to an action.
    SendGoal,
    /// Pursue the goals of an action.
    ServeAction,
    /// Read a parameter by rosapi.
    ReadParameter,
    /// Set or delete a parameter by rosapi.
    WriteParameter,
    /// Set the transport of a topic or of a service, or take that back. It changes how a robot works for all who use that name, which
    /// nothing else here does without a message of the topic's own: so whoever may see a flow, or even publish there, need not have it.
    SetRoute,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
            Self::CallService => "call_service",
            Self::ServeService => "advertise_service",
            Self::SendGoal => "send_action_goal",
            Self::ServeAction => "advertise_action",
            Self::ReadParameter => "get_param",
            Self::WriteParameter => "set_param",
            Self::SetRoute => "set_route",
        })
    }
}

/// Somebody who may connect, and what with.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// For audit lines.
    pub name: String,
    /// What a client says to be this user; without one no token is this user's.
    pub token: Option<Token>,
    /// What it may do.
    pub may: Permissions,
    /// How much.
    pub limits: UserLimits,
    /// The enclave whose permissions hold for it as well.
    pub enclave: Option<String>,
}

impl User {
    /// One that may do what the server's own globs and limits allow.
    pub fn unrestricted(name: impl Into<String>, token: Option<Token>) -> Self {
        let (may, limits) = (Permissions::ALL, UserLimits::default());
        Self { name: name.into(), token, may, limits, enclave: None }
    }
}

/// Names that a user may use, of each [`Act`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Topics to publish.
    pub publish: Globs,
    /// Topics to subscribe to.
    pub subscribe: Globs,
    /// Services to call.
    pub call_service: Globs,
    /// Services to serve.
    pub advertise_service: Globs,
    /// Actions to send goals to.
    pub send_action_goal: Globs,
    /// Actions to serve.
    pub advertise_action: Globs,
    /// Parameters to read, see [`Access::decide`].
    pub get_param: Globs,
    /// Parameters to set and delete.
    pub set_param: Globs,
    /// Topics and services whose transport to set, of those that the user may subscribe to or call.
    pub set_route: Globs,
}

impl Permissions {
    /// Every name.
    pub const ALL: Self = Self {
        publish: Globs::ALL,
        subscribe: Globs::ALL,
        call_service: Globs::ALL,
        advertise_service: Globs::ALL,
        send_action_goal: Globs::ALL,
        advertise_action: Globs::ALL,
        get_param: Globs::ALL,
        set_param: Globs::ALL,
        set_route: Globs::ALL,
    };

    /// No name.
    pub const NONE: Self = Self {
        publish: Globs::NONE,
        subscribe: Globs::NONE,
        call_service: Globs::NONE,
        advertise_service: Globs::NONE,
        send_action_goal: Globs::NONE,
        advertise_action: Globs::NONE,
        get_param: Globs::NONE,
        set_param: Globs::NONE,
        set_route: Globs::NONE,
    };

    /// The names with which something may be done.
    pub fn names(&self, act: Act) -> &Globs {
        match act {
            Act::Publish => &self.publish,
            Act::Subscribe => &self.subscribe,
            Act::CallService => &self.call_service,
            Act::ServeService => &self.advertise_service,
            Act::SendGoal => &self.send_action_goal,
            Act::ServeAction => &self.advertise_action,
            Act::ReadParameter => &self.get_param,
            Act::WriteParameter => &self.set_param,
            Act::SetRoute => &self.set_route,
        }
    }
}

/// How much a user may have. What is absent is as the server has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UserLimits {
    /// Messages a second of one client.
    pub messages: Option<Rate>,
    /// Bytes a second of one client.
    pub bytes: Option<Rate>,
    /// Bytes that wait for one client, and as many that have come of it in pieces.
    pub memory_bytes_max: Option<usize>,
}

/// Who knows what enclaves may do.
pub trait Enclaves: fmt::Debug + Send + Sync {
    /// Why whoever is of that enclave may not do so with that name. `None` if it may, and where permissions have nothing to say of it.
    fn denial(&self, enclave: &str, act: Act, name: &str) -> Option<String>;

    /// Another number once what that enclave may do may be something else.
    fn version(&self, enclave: &str) -> u64;
}

/// Names a user among those of [`Access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserKey(usize);

/// Who may do what. What the server's own globs do not allow, nobody may.
#[derive(Clone, Debug, Default)]
pub struct Access {
    topics: Globs,
    services: Globs,
    actions: Globs,
    params: Globs,
    users: Vec<User>,
    /// Who a client is that has not said it.
    anonymous: Option<User>,
    rosauth: Option<Rosauth>,
    /// Who it is by rosauth, where its level names no user.
    stranger: Option<UserKey>,
    enclaves: Option<Arc<dyn Enclaves>>,
}

/// The globs of a server, as its parameters of these names have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerGlobs {
    /// `topics_glob`.
    pub topics: Globs,
    /// `services_glob`. Where it names some, `/rosapi/*` is allowed with them, as in rosbridge: roslib needs it.
    pub services: Globs,
    /// `actions_glob`.
    pub actions: Globs,
    /// `params_glob`.
    pub params: Globs,
}

/// What was refused, to whom and why: the line of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Who, where the client has said so.
    pub user: Option<String>,
    /// What it wanted.
    pub act: Act,
    /// With what.
    pub name: String,
    /// Why not.
    pub because: Because,
}

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// The server has users, and the client has not said which it is.
    NotAuthenticated,
    /// The server allows these names only, of that parameter.
    ServerGlob {
        /// The parameter.
        parameter: &'static str,
        /// The names.
        allowed: String,
    },
    /// The user may do so with these names only.
    UserGlob {
        /// The names.
        allowed: String,
    },
    /// The permissions of the user's enclave do not allow it.
    Enclave {
        /// The rule.
        why: String,
    },
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, act, name, because } = self;
        match user {
            Some(user) => write!(f, "{user:?} may not {act} {name:?}: ")?,
            None => write!(f, "a client may not {act} {name:?}: ")?,
        }
        match because {
            Because::NotAuthenticated => f.write_str("it has not authenticated"),
            Because::ServerGlob { parameter, allowed } => {
                write!(f, "{parameter} allows {allowed}")
            }
            Because::UserGlob { allowed } => write!(f, "this user is allowed {allowed}"),
            Because::Enclave { why } => f.write_str(why),
        }
    }
}

impl Access {
    /// With these globs for everybody, and where there are users, for those alone.
    pub fn new(globs: ServerGlobs, users: Vec<User>) -> Self {
        let ServerGlobs { topics, services, actions, params } = globs;
        let (anonymous, rosauth, stranger, enclaves) = (None, None, None, None);
        let services = services.and("/rosapi/*");
        Self { topics, services, actions, params, users, anonymous, rosauth, stranger, enclaves }
    }

    /// Lets who has not said who it is be this user. Its token is nobody's.
    #[must_use]
    pub fn with_anonymous(mut self, user: User) -> Self {
        self.anonymous = Some(user);
        self
    }

    /// Has these say what the enclaves of users may do. Without, whoever has one may do nothing.
    #[must_use]
    pub fn with_enclaves(mut self, enclaves: Arc<dyn Enclaves>) -> Self {
        self.enclaves = Some(enclaves);
        self
    }

    /// The enclaves of users.
    pub fn enclaves(&self) -> impl Iterator<Item = &str> {
        self.users.iter().chain(&self.anonymous).filter_map(|it| it.enclave.as_deref())
    }

    /// Another number once what the user may do may be something else, by its enclave. `None` for a user whose rights stay.
    pub fn version(&self, user: Option<UserKey>) -> Option<u64> {
        let enclave = self.who(user)?.enclave.as_deref()?;
        Some(self.enclaves.as_ref()?.version(enclave))
    }

    /// Whether a client may do nothing before it has said who it is.
    pub fn needs_user(&self) -> bool {
        (!self.users.is_empty() || self.rosauth.is_some()) && self.anonymous.is_none()
    }

    /// The user of that token. How long it takes does not tell how much of a token was right.
    pub fn user(&self, token: &str) -> Option<UserKey> {
        let said = Token::new(token)?;
        let mut found = None;
        for (index, user) in self.users.iter().enumerate() {
            if user.token.as_ref().is_some_and(|it| it.is(&said)) {
                found = Some(UserKey(index));
            }
        }
        found
    }

    /// How much a client may have that is that user, or has not said who it is.
    pub fn limits(&self, user: Option<UserKey>) -> UserLimits {
        self.who(user).map(|it| it.limits).unwrap_or_default()
    }

    /// The name of a user, for a log.
    pub fn name(&self, user: UserKey) -> &str {
        self.users.get(user.0).map_or("", |it| &it.name)
    }

    fn who(&self, user: Option<UserKey>) -> Option<&User> {
        user.and_then(|key| self.users.get(key.0)).or(self.anonymous.as_ref())
    }

    /// Whether the user, if the client has said who it is, may do so with that name. A parameter is `/node:name`; a glob may name it
    /// so, or its name alone on every node, as in rosbridge. Of [`Act::SetRoute`] only what the user may is looked at: the server's globs
    /// hold for what makes the name known, [`Act::Subscribe`], [`Act::CallService`] or [`Act::SendGoal`], which is to be asked for too.
    pub fn decide(&self, user: Option<UserKey>, act: Act, name: &str) -> Result<(), Box<Denial>> {
        let who = self.who(user);
        let deny = |because| {
            let user = who.map(|it| it.name.clone());
            Err(Box::new(Denial { user, act, name: name.to_owned(), because }))
        };
        if self.needs_user() && who.is_none() {
            return deny(Because::NotAuthenticated);
        }
        let (parameter, globs) = match act {
            Act::Publish | Act::Subscribe => ("topics_glob", &self.topics),
            Act::CallService | Act::ServeService => ("services_glob", &self.services),
            Act::SendGoal | Act::ServeAction => ("actions_glob", &self.actions),
            Act::ReadParameter | Act::WriteParameter => ("params_glob", &self.params),
            Act::SetRoute => ("", &Globs::ALL),
        };
        let alone = match act {
            Act::ReadParameter | Act::WriteParameter => name.split_once(':').map(|it| it.1),
            _ => None,
        };
        let allows = |globs: &Globs| globs.allow(name) || alone.is_some_and(|it| globs.allow(it));
        if !allows(globs) {
            return deny(Because::ServerGlob { parameter, allowed: globs.to_string() });
        }
        let Some(who) = who else { return Ok(()) };
        let globs = who.may.names(act);
        if !allows(globs) {
            return deny(Because::UserGlob { allowed: globs.to_string() });
        }
        let denial = |enclave: &str| match &self.enclaves {
            Some(enclaves) => enclaves.denial(enclave, act, name),
            None => Some(format!("nobody says what the enclave {enclave:?} may do")),
        };
        match who.enclave.as_deref().and_then(denial) {
            Some(why) => deny(Because::Enclave { why }),
            None => Ok(()),
        }
    }
}
