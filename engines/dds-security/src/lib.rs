//! The shared library `libtsuji_dds_security.so`: authentication, access control and cryptography of DDS Security 1.1, as Cyclone DDS
//! releases them, over OpenSSL.
//!
//! A secured process loads it, and no other. What Cyclone DDS hands to it has the layout of its version, so the names of its functions
//! have that of tsuji in them: a library of another one is refused.

// It has the functions of Cyclone DDS that the plug-ins call.
use tsuji_transport_cyclonedds as _;

use std::ffi::{c_char, c_void};

/// Begins and ends each of the plug-ins, by the names that `crates/tsuji-transport-cyclonedds/src/security.rs` gives to
/// Cyclone DDS.
macro_rules! exported {
    ($($name:literal: $init:ident $own_init:ident, $finalize:ident $own_finalize:ident;)*) => {$(
        unsafe extern "C" {
            fn $init(argument: *const c_char, context: *mut *mut c_void, domain: *mut c_void) -> i32;
            fn $finalize(context: *mut c_void) -> i32;
        }

        #[doc = concat!("Begins the plug-in for ", $name, ".")]
        ///
        /// # Safety
        /// Cyclone DDS calls it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $own_init(
            argument: *const c_char,
            context: *mut *mut c_void,
            domain: *mut c_void,
        ) -> i32 {
            // SAFETY: they are what Cyclone DDS gives.
            unsafe {
                tsuji_meet_host(domain);
                $init(argument, context, domain)
            }
        }

        #[doc = concat!("Ends the plug-in for ", $name, ".")]
        ///
        /// # Safety
        /// Cyclone DDS calls it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $own_finalize(context: *mut c_void) -> i32 {
            // SAFETY: as above.
            unsafe { $finalize(context) }
        }
    )*};
}

unsafe extern "C" {
    /// `src/host.c`.
    fn tsuji_meet_host(domain: *const c_void);
}

exported! {
    "authentication": init_authentication tsuji_0_2_0_init_authentication, finalize_authentication tsuji_0_2_0_finalize_authentication;
    "access control": init_access_control tsuji_0_2_0_init_access_control, finalize_access_control tsuji_0_2_0_finalize_access_control;
    "cryptography": init_crypto tsuji_0_2_0_init_crypto, finalize_crypto tsuji_0_2_0_finalize_crypto;
}
