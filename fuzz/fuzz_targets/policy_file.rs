//! Any bytes read as a policy file: no panic, and every error names a place in it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(errors) = tsuji_policy::load("fuzz.xml", bytes, &["inproc", "shm"]) {
        assert!(errors.to_string().contains("fuzz.xml"), "{errors}");
    }
});
