//! A sample on its way out: what its user hands over, and what is needed of that.

use std::any::Any;
use std::sync::Arc;

use tsuji_transport::{Bytes, Gid, Loan, Payload};

use super::Opening;
use super::history::Kept;
use crate::Result;

/// A sample as its user hands it over.
pub(crate) enum Outgoing<'a> {
    Shared(Arc<dyn Any + Send + Sync>),
    Borrowed(&'a (dyn Any + Send + Sync)),
    Bytes(Bytes),
    Copied(&'a [u8]),
}

/// A sample on its way out, over several tries.
pub(super) struct Attempt<'a> {
    pub(super) outgoing: &'a Outgoing<'a>,
    pub(super) mono_ns: u64,
    /// The bytes that its value takes, once that was asked.
    pub(super) len: Option<usize>,
    /// Memory for them.
    pub(super) loan: Option<Loan>,
    /// Its bytes, once they were needed.
    pub(super) bytes: Option<Payload>,
    /// The shared value, once it was needed.
    pub(super) value: Option<Payload>,
    /// What it pushed out of the history. Payloads are the user's and may do anything when dropped,
    /// so that is done when no lock is held.
    pub(super) outlived: Vec<Kept>,
    /// What is told of a request before anybody can answer it.
    pub(super) opening: Option<&'a dyn Opening>,
    /// Readers whose content filters its value does not pass, once that was asked.
    pub(super) filtered: Option<Vec<Gid>>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(outgoing: &'a Outgoing<'a>, mono_ns: u64) -> Self {
        Self {
            outgoing,
            mono_ns,
            len: None,
            loan: None,
            bytes: None,
            value: None,
            outlived: Vec::new(),
            opening: None,
            filtered: None,
        }
    }

    /// The value, unless it is bytes already.
    pub(super) fn value(&self) -> Option<&dyn Any> {
        match self.outgoing {
            Outgoing::Shared(value) => Some(&**value),
            Outgoing::Borrowed(value) => Some(*value),
            Outgoing::Bytes(_) | Outgoing::Copied(_) => None,
        }
    }

    /// Its bytes, in memory that `lend` has, or what is needed for them first.
    pub(super) fn find_bytes(
        &mut self,
        lend: impl FnOnce(usize) -> Result<Loan, tsuji_transport::Error>,
    ) -> Result<Option<Needs>, tsuji_transport::Error> {
        match self.outgoing {
            _ if self.bytes.is_some() => (),
            Outgoing::Bytes(bytes) => self.bytes = Some(Payload::Bytes(bytes.clone())),
            Outgoing::Copied(message) => {
                let mut loan = lend(message.len())?;
                loan.copy_from_slice(message);
                self.bytes = Some(Payload::Bytes(loan.freeze()));
            }
            Outgoing::Shared(_) | Outgoing::Borrowed(_) => {
                let Some(len) = self.len else { return Ok(Some(Needs::Size)) };
                self.loan = Some(lend(len)?);
                return Ok(Some(Needs::Bytes));
            }
        }
        Ok(None)
    }
}

/// What is to be asked of a value, which is the user's and may do anything: so no lock is held for it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Needs {
    Size,
    /// In the memory that was lent.
    Bytes,
    Shared,
    /// Whether it passes the content filters of readers.
    Filtering,
}

/// What became of a step that holds the lock.
pub(super) enum Step<T> {
    Done(T),
    /// It is to be taken again, with this.
    Needs(Needs),
}
