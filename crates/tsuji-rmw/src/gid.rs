//! The numbers of endpoints as rmw has them.

use tsuji::Gid;

use crate::ffi::rmw::{GidBytes, RMW_GID_STORAGE_SIZE, rmw_gid_t};
use crate::identity::IDENTIFIER;

/// The number of an endpoint.
pub(crate) fn gid_of(gid: Gid) -> rmw_gid_t {
    rmw_gid_t { implementation_identifier: IDENTIFIER.as_ptr(), data: bytes_of(gid) }
}

/// Its bytes; where a distribution has room for more, with zeros behind.
pub(crate) fn bytes_of(gid: Gid) -> GidBytes {
    let mut data = [0; RMW_GID_STORAGE_SIZE];
    data[..gid.0.len()].copy_from_slice(&gid.0);
    GidBytes(data)
}
