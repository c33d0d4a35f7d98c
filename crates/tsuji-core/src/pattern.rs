use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::names::TOPIC_LENGTH_MAX;

/// Which topics a rule is for, in fully qualified names.
///
/// A name without stars stands for itself. `*` is any run of characters, also none, inside one
/// token: `/camera*/image`. `**` is any run of whole tokens, also none: `/camera/**` is `/camera`
/// and all below it, as in the parameter files of ROS 2.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TopicPattern(Arc<str>);

impl TopicPattern {
    /// The pattern of `topic` alone, a fully qualified name. What is no such name is no error; a
    /// pattern of it matches as it stands.
    pub(crate) fn exact(topic: &str) -> Self {
        Self(topic.into())
    }

    /// Whether `topic`, a fully qualified name, is one of those meant.
    ///
    /// Takes time in proportion to the two lengths' product at worst, both of which are bounded.
    pub fn matches(&self, topic: &str) -> bool {
        let (pattern, topic) = (self.0.strip_prefix('/'), topic.strip_prefix('/'));
        let (Some(pattern), Some(topic)) = (pattern, topic) else { return false };
        let mut pattern = pattern.split('/');
        let mut tokens = topic.split('/');
        // Where to go on after the last `**` when what follows it does not fit: with that star
        // taking one token more. Earlier stars need no second thought, the last one covers them.
        let mut retry = None;
        loop {
            let here = (pattern.clone(), tokens.clone());
            match (pattern.next(), tokens.next()) {
                (None, None) => return true,
                (Some("**"), _) => {
                    tokens = here.1;
                    retry = Some((pattern.clone(), tokens.clone()));
                    continue;
                }
                (Some(want), Some(token)) if token_matches(want.as_bytes(), token.as_bytes()) => {
                    continue;
                }
                _ => {}
            }
            let Some((after_star, mut rest)) = retry.take() else { return false };
            if rest.next().is_none() {
                return false;
            }
            pattern = after_star.clone();
            tokens = rest.clone();
            retry = Some((after_star, rest));
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for TopicPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let invalid = |position, problem| Err(InvalidPattern { position, problem });
        let Some(rest) = text.strip_prefix('/') else {
            return invalid(1, "a topic pattern starts with '/'");
        };
        if text.len() > TOPIC_LENGTH_MAX {
            return invalid(TOPIC_LENGTH_MAX + 1, "a topic pattern has at most 247 characters");
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '*');
        if let Some(at) = text.chars().position(|c| !allowed(c)) {
            return invalid(at + 1, "allowed: letters, digits, '_', '/', '*' and '**'");
        }
        let mut position = 2;
        for token in rest.split('/') {
            if token.is_empty() {
                return invalid(position, "a token is missing here");
            }
            if token.starts_with(|c: char| c.is_ascii_digit()) {
                return invalid(position, "a token does not start with a digit");
            }
            if token.contains("**") && token != "**" {
                return invalid(position, "'**' stands between slashes, alone");
            }
            position += token.len() + 1;
        }
        Ok(Self(text.into()))
    }
}

/// Why a text is not a topic pattern.
#[derive(Clone, PartialEq, Eq)]
pub struct InvalidPattern {
    /// The offending character, counted from 1.
    pub position: usize,
    /// What is wrong, and what is allowed.
    pub problem: &'static str,
}

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character {}: {}", self.position, self.problem)
    }
}

impl Error for InvalidPattern {}

fn token_matches(pattern: &[u8], token: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry = None;
    while t < token.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, t));
        } else if pattern.get(p) == Some(&token[t]) {
            p += 1;
            t += 1;
        } else if let Some((after_star, taken)) = retry {
            p = after_star;
            t = taken + 1;
            retry = Some((p, t));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, topic: &str, expect: bool) {
        let got = pattern.parse::<TopicPattern>().unwrap().matches(topic);
        assert_eq!(got, expect, "{pattern} on {topic}");
    }

    #[test]
    fn exact() {
        check("/camera/image", "/camera/image", true);
        check("/camera/image", "/camera/images", false);
        check("/camera/image", "/camera", false);
        check("/camera/image", "camera/image", false);
    }

    #[test]
    fn star_stays_in_its_token() {
        check("/*/image", "/camera/image", true);
        check("/*/image", "/a/b/image", false);
        check("/cam*/image", "/camera/image", true);
        check("/cam*/image", "/cam/image", true);
        check("/*a*b*", "/xaybz", true);
        check("/*a*b*", "/xbya", false);
        check("/*", "/a", true);
        check("/*", "/a/b", false);
    }

    #[test]
    fn two_stars_cross_tokens() {
        check("/**", "/a", true);
        check("/**", "/a/b/c", true);
        check("/camera/**", "/camera", true);
        check("/camera/**", "/camera/left/image", true);
        check("/camera/**", "/cameras/left", false);
        check("/**/image", "/image", true);
        check("/**/image", "/a/b/image", true);
        check("/**/image", "/a/image/b", false);
        check("/**/a/**/b", "/x/a/y/a/z/b", true);
        check("/**/a/**/b", "/x/a/y/b/z", false);
        check("/**/a/b", "/a/a/b", true);
    }

    #[test]
    fn many_stars_cost_no_more_than_the_product() {
        let pattern = format!("{}/b", "/**/a".repeat(40));
        check(&pattern, &"/a".repeat(120), false);
        check(&format!("/{}b", "*a".repeat(100)), &format!("/{}", "a".repeat(240)), false);
    }

    #[track_caller]
    fn refused(pattern: &str, expect: &str) {
        assert_eq!(pattern.parse::<TopicPattern>().unwrap_err().to_string(), expect);
    }

    #[test]
    fn what_is_no_pattern() {
        refused("", "character 1: a topic pattern starts with '/'");
        refused("camera", "character 1: a topic pattern starts with '/'");
        refused("/", "character 2: a token is missing here");
        refused("/a//b", "character 4: a token is missing here");
        refused("/a/", "character 4: a token is missing here");
        refused("/a/b**", "character 4: '**' stands between slashes, alone");
        refused("/a?", "character 3: allowed: letters, digits, '_', '/', '*' and '**'");
        refused("/カメラ", "character 2: allowed: letters, digits, '_', '/', '*' and '**'");
        refused("/a/1b", "character 4: a token does not start with a digit");
    }
}
