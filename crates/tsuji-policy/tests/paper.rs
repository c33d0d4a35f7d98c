//! The two policies made of the paper, over all twelve of its cells, and where they differ.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tsuji_core::{
    Capability, Offer, Peer, Policy, Reliability, Scope, Scopes, Size, SizeOrigin, Traits,
    TransportId, select,
};

const TEXT: &str = include_str!("../../../policies/paper-2019-text.xml");
const TABLE_3: &str = include_str!("../../../policies/paper-2019-table3.xml");

/// The cells as the paper prints them: a row for each reliability and size, a column for each scope.
fn cells(file: &str, text: &str) -> [[char; 3]; 4] {
    let policy = tsuji_policy::load(file, text.as_bytes(), &[]).unwrap();
    let rows = [
        (Reliability::BestEffort, Size::Small),
        (Reliability::BestEffort, Size::Large),
        (Reliability::Reliable, Size::Small),
        (Reliability::Reliable, Size::Large),
    ];
    rows.map(|(reliability, size)| {
        [Scope::Intra, Scope::Local, Scope::Remote]
            .map(|scope| chosen(&policy, size, scope, reliability))
    })
}

fn chosen(policy: &Policy, size: Size, scope: Scope, reliability: Reliability) -> char {
    let traits = Traits {
        size,
        size_origin: SizeOrigin::Stated,
        sample_bytes: None,
        scope,
        reliability,
        peer: Peer::Tsuji,
    };
    let capability = Capability {
        immediate: true,
        directed: true,
        whole_envelope: true,
        cdr_only: false,
        scopes: Scopes::ALL,
        reliable: true,
        loan: false,
        typed: false,
        sample_bytes_max: u64::MAX,
        readers_max: u32::MAX,
    };
    let offers = ["DDS_D", "DDS_C", "DDS_B", "DDS_A"]
        .map(|name| Offer::new(TransportId::new(name), capability));
    let choice = select(&traits, policy, "/topic", &offers).unwrap();
    assert_eq!(choice.rejected.len(), 3);
    choice.transport.as_str().chars().last().unwrap()
}

#[test]
fn the_text_orders_all_twelve_cells() {
    let expect = [['D', 'D', 'D'], ['D', 'C', 'C'], ['A', 'A', 'A'], ['A', 'C', 'B']];
    assert_eq!(cells("paper-2019-text.xml", TEXT), expect);
}

#[test]
fn table_3_is_as_printed() {
    let expect = [['D', 'D', 'D'], ['D', 'D', 'D'], ['A', 'C', 'C'], ['A', 'C', 'B']];
    assert_eq!(cells("paper-2019-table3.xml", TABLE_3), expect);
}

#[test]
fn they_differ_in_the_four_cells_that_the_files_name() {
    let (text, table) = (cells("text", TEXT), cells("table", TABLE_3));
    let mut differing = Vec::new();
    for row in 0..4 {
        for column in 0..3 {
            if text[row][column] != table[row][column] {
                differing.push((row, column));
            }
        }
    }
    assert_eq!(differing, [(1, 1), (1, 2), (2, 1), (2, 2)]);
}
