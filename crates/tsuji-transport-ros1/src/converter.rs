//! Messages of ROS 1 as CDR, in memory that is used again: what is new has to be mapped page by page.
#![allow(unsafe_code, reason = "the bytes that others hold are those of a vector here")]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};

use tsuji_transport::{Bytes, LEAD, Owner};

use crate::types::Message;

/// What is kept to be used again: so many messages, of at most so many bytes.
const KEPT_MAX: usize = 3;
const KEPT_BYTES_MAX: usize = 16 << 20;

type Kept = Mutex<Vec<Vec<u8>>>;

/// Converts messages of one connection.
#[derive(Debug, Default)]
pub(crate) struct Converter {
    kept: Arc<Kept>,
}

impl Converter {
    /// A message of ROS 1 as CDR; or what is wrong with it.
    pub(crate) fn to_cdr(&self, message: &Message, bytes: &[u8]) -> Result<Bytes, String> {
        let mut cdr = crate::lock(&self.kept).pop().unwrap_or_default();
        cdr.clear();
        cdr.resize(LEAD, 0);
        let converted = message.plan.to_cdr(bytes, &mut cdr).map_err(|error| error.to_string());
        let held = Held { cdr, kept: Arc::downgrade(&self.kept) };
        // On an error the memory goes back as it does later.
        converted?;
        Ok(held.into_bytes())
    }
}

/// A message that somebody holds, whose memory goes back when nobody does any more.
struct Held {
    cdr: Vec<u8>,
    kept: Weak<Kept>,
}

impl Held {
    fn into_bytes(self) -> Bytes {
        let body = &self.cdr[LEAD..];
        // An allocator may give less than all do.
        if !(body.as_ptr() as usize).wrapping_add(4).is_multiple_of(8) {
            return Bytes::copy_from(body);
        }
        let (start, length) = (NonNull::from(body).cast(), body.len());
        // SAFETY: they are bytes of a vector that the owner keeps and nobody changes, in memory that does not move with it. The
        // owner lives as long as there is a clone of what is made here.
        unsafe { Bytes::from_owner(Arc::new(self), start, length) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(kept) = self.kept.upgrade().filter(|_| self.cdr.capacity() <= KEPT_BYTES_MAX)
        else {
            return;
        };
        // A child may have been forked while another thread held it, so nobody waits for it.
        if let Ok(mut kept) = kept.try_lock()
            && kept.len() < KEPT_MAX
        {
            kept.push(std::mem::take(&mut self.cdr));
        }
    }
}

impl Owner for Held {
    fn retain(&self) {}

    fn release(&self) {}

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use tsuji_ros1::mapping::Mapping;

    use super::*;
    use crate::types::Types;

    #[test]
    fn memory_is_used_again_once_nobody_holds_it() {
        let types = Types::new(Mapping::builtin());
        let text = types.message("std_msgs/msg/String").unwrap();
        let converter = Converter::default();
        let hello = b"\x05\0\0\0hello";
        let first = converter.to_cdr(&text, hello).unwrap();
        assert_eq!(first[..], *b"\0\x01\0\0\x06\0\0\0hello\0");
        assert!((first.as_ptr() as usize + 4).is_multiple_of(8));
        let (at, second) = (first.as_ptr(), converter.to_cdr(&text, hello).unwrap());
        assert_ne!(second.as_ptr(), at);
        let clone = first.clone();
        drop(first);
        assert_eq!(clone[8..13], *b"hello");
        drop(clone);
        assert_eq!(converter.to_cdr(&text, hello).unwrap().as_ptr(), at);
        // What is cut off is told, and loses no memory.
        assert!(converter.to_cdr(&text, &hello[..6]).is_err());
        assert_eq!(converter.to_cdr(&text, hello).unwrap().as_ptr(), at);
        drop(converter);
        assert_eq!(second[8..13], *b"hello");
    }
}
