//! Any bytes read as any shipped message: what is read is a sample that every format takes and gives back. One target for each
//! format that bytes are read as.

use std::sync::LazyLock;
use tsuji_codec::{Format, Now, Plan, Raw};
use tsuji_interfaces::{Shipped, names};
use tsuji_msg::{DynamicMessage, TypeSet};

static PLANS: LazyLock<Vec<Plan>> = LazyLock::new(|| {
    let set = TypeSet::new(Shipped);
    let messages = names().filter(|name| name.contains("/msg/"));
    messages.map(|name| Plan::new(&set.load(name).expect("a shipped message"))).collect()
});

const NOW: Now = Now { sec: 1, nanosec: 2 };

/// One run.
pub fn run(read_as: Format, data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let raw = Raw::new(read_as, bytes);
    if let Ok(members) = raw.members() {
        for (_, value) in members.flatten() {
            let _ =
                (value.text(), value.boolean(), value.integer(), value.float(), value.is_null());
        }
    }
    let plan = &PLANS[usize::from(*first) % PLANS.len()];
    let mut cdr = Vec::new();
    if plan.read(raw, NOW, &mut cdr).is_err() {
        assert!(cdr.is_empty(), "nothing is appended when reading fails");
        return;
    }
    let message = DynamicMessage::decode(plan.ty(), &cdr).expect("what was read is a sample");
    assert_eq!(message.encode().expect("and of its type"), cdr);
    for format in [Format::Json, Format::Cbor, Format::Bson] {
        // JSON has no infinities, and no format keeps the bits of a NaN; so what is read once more is compared.
        let once = round(plan, &cdr, format);
        assert_eq!(round(plan, &once, format), once);
    }
}

fn round(plan: &Plan, cdr: &[u8], format: Format) -> Vec<u8> {
    let (mut written, mut again) = (Vec::new(), Vec::new());
    plan.write(cdr, format, &mut written).expect("a sample can be written");
    plan.read(Raw::new(format, &written), NOW, &mut again).expect("and read");
    again
}
