//! The keystores of SROS2: who an enclave is, what it may do by which rule, and what its messages must be protected by.
//!
//! A keystore is read once, with every signature and date in it; what is answered after that is text against patterns.
//! [`Identity`] proves to another process who this one is. Nothing here protects a message: that is the affair of transports,
//! which are told what is asked of them.
#![forbid(unsafe_code)]

#[cfg(feature = "maker")]
mod access;
#[cfg(feature = "maker")]
pub use access::{Access, AccessPolicy};

mod certificate;
pub use certificate::Certificate;

mod governance;
pub use governance::{DomainRule, Governance, Protected, Protection, TopicRule};

mod key;
mod keystore;
pub use keystore::{Enclave, Refused, enclaves};

#[cfg(feature = "maker")]
mod maker;
#[cfg(feature = "maker")]
pub use maker::{Additions, Lifetime, Maker, NewGovernance, NewRevocations, validate_enclave};

mod name;
mod pattern;
pub use pattern::Pattern;

mod permissions;
pub use permissions::{Answer, Deed, Grant, Permissions};

mod proof;
pub use proof::{Claim, End, Identity, PERMISSIONS_BYTES_MAX, Peer, Side};

mod reader;
mod revocation;
mod signed;
#[cfg(feature = "maker")]
mod signing;

mod verb;
pub use verb::Verb;
