use tsuji_core::Policy;

use crate::PolicyFile;

/// What reasons and messages call the built-in default.
pub const BUILTIN_NAME: &str = "builtin:default.xml";

/// The text of the built-in default, `policies/default.xml`, to which a link of this folder leads.
pub const BUILTIN_TEXT: &str = include_str!("default.xml");

/// The transports that the built-in default names.
const BUILTIN_TRANSPORTS: &[&str] = &["inproc", "shm", "cyclonedds", "fastdds", "zenoh", "ros1"];

/// The policy where the user gives none.
pub fn builtin_default() -> Policy {
    match builtin_file().resolve() {
        Ok(policy) => policy,
        Err(errors) => unreachable!("the built-in default is tested to resolve: {errors}"),
    }
}

pub(crate) fn builtin_file() -> PolicyFile {
    match PolicyFile::parse(BUILTIN_NAME, BUILTIN_TEXT.as_bytes(), BUILTIN_TRANSPORTS) {
        Ok(file) => file.alone(),
        Err(errors) => unreachable!("the built-in default is tested to parse: {errors}"),
    }
}
