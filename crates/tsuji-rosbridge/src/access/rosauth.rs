use std::fmt;
use std::time::Duration;

use sha2::{Digest, Sha512};

use super::token::{bytes_of_hex, same};
use super::{Access, User, UserKey};
use crate::operation::Auth;

/// What is needed to check a hash of [rosauth](https://wiki.ros.org/rosauth), which ROS 1 lets clients authenticate with.
#[derive(Clone)]
pub struct Rosauth {
    /// What both sides know and nobody says.
    pub secret: String,
    /// How far `t` may be from the server's clock.
    pub time_difference_max: Duration,
    /// Who a client is whose `level` names no user. Without one it is refused.
    pub otherwise: Option<User>,
}

impl Rosauth {
    /// rosauth's own: 5 s, and who has the right hash may do what the server's globs allow.
    pub fn new(secret: impl Into<String>) -> Self {
        let (secret, otherwise) = (secret.into(), Some(User::unrestricted("rosauth", None)));
        Self { secret, time_difference_max: Duration::from_secs(5), otherwise }
    }
}

/// Without the secret.
impl fmt::Debug for Rosauth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rosauth").field("otherwise", &self.otherwise).finish_non_exhaustive()
    }
}

/// Who a client is by rosauth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recognised {
    /// The user.
    pub user: UserKey,
    /// How long it stays.
    pub remaining: Duration,
}

/// Why a hash is none that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The server has no secret.
    NotOffered,
    /// The request is too old, or too new.
    Time,
    /// The permission has ended.
    Ended,
    /// It is another hash.
    Mac,
    /// There is no such user.
    Level,
}

impl Rejected {
    /// The member at fault.
    pub fn field(self) -> &'static str {
        match self {
            Self::NotOffered => "token",
            Self::Time => "t",
            Self::Ended => "end",
            Self::Mac => "mac",
            Self::Level => "level",
        }
    }

    /// What would have been right.
    pub fn expected(self) -> &'static str {
        match self {
            Self::NotOffered => "a token; this server knows no secret of rosauth",
            Self::Time => "the time now, by the clock of the server",
            Self::Ended => "a time that is still to come",
            Self::Mac => "SHA-512 of secret, client, dest, rand, t, level and end, in hexadecimal",
            Self::Level => "the name of a user",
        }
    }
}

impl Access {
    /// Takes the hashes of rosauth as well as tokens.
    #[must_use]
    pub fn with_rosauth(mut self, rosauth: Rosauth) -> Self {
        self.stranger = rosauth.otherwise.clone().map(|user| {
            self.users.push(user);
            UserKey(self.users.len() - 1)
        });
        self.rosauth = Some(rosauth);
        self
    }

    /// Who says this; `wall` is the time since 1970.
    ///
    /// A hash may be said again for as long as its `t` is near: whoever can hear it can be its client for some seconds, as with rosauth.
    pub fn recognise(&self, said: &Auth<'_>, wall: Duration) -> Result<Recognised, Rejected> {
        let Some(rosauth) = &self.rosauth else { return Err(Rejected::NotOffered) };
        let (now, difference_max) = (wall.as_secs_f64(), rosauth.time_difference_max.as_secs_f64());
        let is_near = (now - said.t).abs() < difference_max;
        if !is_near {
            return Err(Rejected::Time);
        }
        let remaining = said.end - now;
        let is_to_come = 0.0 < remaining;
        if !is_to_come {
            return Err(Rejected::Ended);
        }
        let is_right = bytes_of_hex(&said.mac).is_some_and(|mac| same(&mac, &hash(rosauth, said)));
        if !is_right {
            return Err(Rejected::Mac);
        }
        let named = self.users.iter().position(|it| it.name == *said.level).map(UserKey);
        let user = named.or(self.stranger).ok_or(Rejected::Level)?;
        let remaining = Duration::from_secs_f64(remaining.min(f64::from(u32::MAX)));
        Ok(Recognised { user, remaining })
    }
}

/// Of times the whole seconds count, as a time of ROS 1 has them.
fn hash(rosauth: &Rosauth, said: &Auth<'_>) -> [u8; 64] {
    let Auth { client, dest, rand, t, level, end, .. } = said;
    let text = format!("{}{client}{dest}{rand}{}{level}{}", rosauth.secret, *t as u32, *end as u32);
    Sha512::digest(text.as_bytes()).into()
}
