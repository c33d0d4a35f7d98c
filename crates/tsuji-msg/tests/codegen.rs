//! The text of generated code.

#[path = "support/random.rs"]
#[allow(dead_code, reason = "only the definitions are needed")]
mod random;

use random::{SHAPES, shapes};
use tsuji_msg::LoadError;
use tsuji_msg::codegen::Codegen;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/shapes.rs");

#[test]
fn the_golden_code_is_what_is_generated() {
    let code = Codegen::new(shapes()).generate(SHAPES.iter().map(|(name, _)| *name)).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(GOLDEN, &code).unwrap();
        return;
    }
    assert!(
        code == include_str!("data/shapes.rs"),
        "the code changed; look at it with UPDATE=1 and git diff"
    );
}

#[test]
fn messages_of_other_crates_are_referred_to() {
    let texts = [("a/msg/A", "b/B b\nC c\n"), ("a/msg/C", ""), ("b/msg/B", "uint8 x\n")];
    let texts: std::collections::HashMap<_, _> =
        texts.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let whole = Codegen::new(&texts).generate(["a/msg/A"]).unwrap();
    assert!(whole.contains("pub b: super::super::b::msg::B,") && whole.contains("pub mod b {"));
    assert!(whole.contains("pub c: C,"));
    let part = Codegen::new(&texts).external("b", "::other::b").generate(["a/msg/A"]).unwrap();
    assert!(part.contains("pub b: ::other::b::msg::B,") && !part.contains("pub mod b {"));
    let missing = Codegen::new(&texts).generate(["a/msg/Z"]).unwrap_err();
    assert!(matches!(missing, LoadError::Missing { .. }), "{missing}");
}
