//! The text of generated code.

#[path = "support/random.rs"]
#[allow(dead_code, reason = "only the definitions are needed")]
mod random;

use random::{SHAPES, shapes};
use std::collections::HashMap;
use tsuji_msg::LoadError;
use tsuji_msg::codegen::{Codegen, CodegenError};

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

fn texts(texts: &[(&str, &str)]) -> HashMap<String, String> {
    texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn messages_of_other_crates_are_referred_to() {
    let texts = texts(&[("a/msg/A", "b/B b\nC c\n"), ("a/msg/C", ""), ("b/msg/B", "uint8 x\n")]);
    let whole = Codegen::new(&texts).generate(["a/msg/A"]).unwrap();
    assert!(whole.contains("pub b: super::super::b::msg::B,") && whole.contains("pub mod b {"));
    assert!(whole.contains("pub c: C,"));
    assert!(whole.contains("\n// A crate that includes it depends on tsuji_msg.\n"), "{whole}");
    let part = Codegen::new(&texts).external("b", "::other::b").generate(["a/msg/A"]).unwrap();
    assert!(part.contains("pub b: ::other::b::msg::B,") && !part.contains("pub mod b {"));
    assert!(part.contains("depends on other, tsuji_msg.\n"), "{part}");
    let missing = Codegen::new(&texts).generate(["a/msg/Z"]).unwrap_err();
    assert!(matches!(missing, CodegenError::Load(LoadError::Missing { .. })), "{missing}");
}

#[test]
fn what_a_library_has_is_not_generated_again() {
    const B: (&str, &str) = ("b/msg/B", "# other words\nint32 X=1\nuint8 x\n");
    let check = |own: &[(&str, &str)], names: &[&str], expect: &[&str], unexpected: &[&str]| {
        let shipped = texts(&[("b/msg/B", "uint8 x\n"), ("b/msg/Outer", "B b\n")]);
        let code = Codegen::new(texts(own))
            .library(shipped, "::lib")
            .generate(names.iter().copied())
            .unwrap();
        for it in expect {
            assert!(code.contains(it), "no {it} in {code}");
        }
        for it in unexpected {
            assert!(!code.contains(it), "{it} in {code}");
        }
    };
    let a = ("a/msg/A", "b/B b\n");
    check(&[a, B], &["a/msg/A"], &["pub b: ::lib::b::msg::B,", "on lib, tsuji_msg."], &["mod b"]);
    // What it does not have is generated, of the same package too.
    check(
        &[("a/msg/A", "b/B b\nb/New new\nc/C c\n"), B, ("b/msg/New", "B b\n"), ("c/msg/C", "")],
        &["a/msg/A"],
        &["pub b: ::lib::b::msg::B,", "pub new: super::super::b::msg::New,", "pub mod c {"],
        &["pub struct B "],
    );
    // What is asked for by name is generated, and so is used by whoever uses it.
    check(
        &[a, ("b/msg/B", "string x\n")],
        &["a/msg/A", "b/msg/B"],
        &["pub b: super::super::b::msg::B,", "pub struct B ", "on tsuji_msg."],
        &["lib"],
    );
}

#[test]
fn another_type_than_that_of_a_library_is_refused() {
    let shipped =
        texts(&[("b/msg/B", "uint8 x\n"), ("c/msg/C", "b/B b\n"), ("c/msg/Same", "int8 x\n")]);
    let own = texts(&[
        ("a/msg/A", "c/C c\nc/Same same\n"),
        ("b/msg/B", "uint16 x\n"),
        ("c/msg/C", "b/B b\n"),
        ("c/msg/Same", "int8 x\n"),
    ]);
    let codegen = Codegen::new(&own).library(shipped, "::lib");
    let error = codegen.generate(["a/msg/A"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "b/msg/B, which a/msg/A uses, has another type hash than that of lib; to have Rust types of both, \
         generate b and c as well"
    );
    assert!(codegen.generate(["a/msg/A", "b/msg/B"]).is_err());
    assert!(codegen.generate(["a/msg/A", "b/msg/B", "c/msg/C"]).is_ok());
}

#[test]
fn comments_stay_comments() {
    let odd = "# ascii \"quoted\" \\n\n#\n# turned \u{202e}round\nuint8 x  # µs * 10 → */\n";
    let code = Codegen::new(texts(&[("a/msg/A", odd)])).generate(["a/msg/A"]).unwrap();
    for expect in [
        "/// ascii \"quoted\" \\n\n        ///\n",
        "#[doc = \" turned \\u{202e}round\"]\n",
        "/// µs * 10 → */\n",
    ] {
        assert!(code.contains(expect), "no {expect} in {code}");
    }
}

#[test]
fn a_message_may_be_called_as_the_view_of_another() {
    let texts = texts(&[("a/msg/A", "string x\n"), ("a/msg/AView", "string x\n")]);
    let code = Codegen::new(&texts).generate(["a/msg/A", "a/msg/AView"]).unwrap();
    for expect in ["struct A {", "struct A_View<'a>", "struct AView {", "struct AViewView<'a>"] {
        assert_eq!(code.matches(expect).count(), 1, "{expect} in {code}");
    }
}
