//! Any bytes read as BSON of any shipped message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_codec::Format;

fuzz_target!(|data: &[u8]| tsuji_fuzz::run(Format::Bson, data));
