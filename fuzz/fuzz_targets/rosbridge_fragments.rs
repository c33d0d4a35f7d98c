//! Any fragments in any order at any time: never more kept than may be, and what goes out in pieces comes back whole.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tsuji_rosbridge::{Assembly, Fragment, FragmentLimits, Fragments, Id, Operation, parse_json};

fuzz_target!(|input: (Vec<(u8, u8, u8, &[u8])>, u8, &str)| {
    let limits = FragmentLimits {
        messages_max: 4,
        message_bytes_max: 500,
        bytes_max: 2000,
        pieces_max: 200,
        timeout: Duration::from_secs(3),
    };
    let (fragments, size, text) = input;
    let mut assembly = Assembly::new(limits);
    let mut now = Duration::ZERO;
    for (id, num, total, data) in fragments {
        let fragment = Fragment {
            id: Id::Integer((id % 8).into()),
            data: data.into(),
            num: num.into(),
            total: total.into(),
        };
        if let Ok(Some(whole)) = assembly.add(now, &fragment) {
            assert!(whole.len() <= limits.message_bytes_max);
        }
        assert!(assembly.held_bytes() <= limits.bytes_max);
        if id % 3 == 0 {
            now += Duration::from_secs(1);
            assembly.expire(now);
        }
    }
    assembly.expire(Duration::MAX);
    assert_eq!(assembly.held_bytes(), 0);

    let limits = FragmentLimits {
        message_bytes_max: 1 << 20,
        bytes_max: 1 << 24,
        pieces_max: 10_000,
        ..limits
    };
    let mut assembly = Assembly::new(limits);
    let Some(mut fragments) = Fragments::new(text, Id::Text(text.into()), size.into()) else {
        return;
    };
    let (mut out, mut whole) = (Vec::new(), None);
    while fragments.write_next(&mut out) {
        let Ok(incoming) = parse_json(&out) else { panic!("{}", String::from_utf8_lossy(&out)) };
        let Operation::Fragment(fragment) = incoming.operation else { panic!("no fragment") };
        assert!(whole.is_none());
        whole = assembly.add(now, &fragment).unwrap();
        out.clear();
    }
    assert_eq!(whole.as_deref(), Some(text.as_bytes()));
});
