//! The value of a parameter as a launch file has it, as the YAML that nodes read.

use tsuji_msg::yaml::{self, NodeKind};

/// The types that a launch file names. Without one, and as `yaml`, the value is taken for what it looks like.
pub(crate) const TYPES: &[&str] = &[
    "int",
    "float",
    "bool",
    "str",
    "list_of_int",
    "list_of_float",
    "list_of_bool",
    "list_of_str",
    "yaml",
];

/// `value` as YAML of the type; of `separator`, an array of what stands between. `Err` says what is wrong with which
/// word.
pub(crate) fn to_yaml(
    value: &str,
    ty: &str,
    separator: Option<&str>,
) -> Result<String, (String, String)> {
    let item_type = ty.strip_prefix("list_of_");
    if let Some(separator) = separator {
        let items = value.split(separator).map(|it| item(it.trim(), item_type.unwrap_or(ty)));
        return Ok(format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(", ")));
    }
    let Some(item_type) = item_type else { return item(value, ty) };
    let wrong = || (value.to_owned(), format!("is no array of {item_type}"));
    let node = yaml::parse(value).map_err(|_| wrong())?;
    let NodeKind::Sequence(nodes) = node.kind else { return Err(wrong()) };
    let items = nodes.iter().map(|node| match &node.kind {
        NodeKind::Scalar { text, .. } => item(text, item_type),
        _ => Err(wrong()),
    });
    Ok(format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(", ")))
}

fn item(text: &str, ty: &str) -> Result<String, (String, String)> {
    let wrong = |what: &str| Err((text.to_owned(), format!("is no {what}")));
    match ty {
        "int" => match yaml::integer(text).map(i64::try_from) {
            Some(Ok(value)) => Ok(value.to_string()),
            _ => wrong("int, an integer of 64 bits"),
        },
        "float" => match yaml::float(text) {
            Some(value) => Ok(yaml::float_text(value)),
            None => wrong("float"),
        },
        "bool" => match yaml::boolean(text) {
            Some(value) => Ok(value.to_string()),
            None => wrong("bool; it is true or false"),
        },
        "str" => Ok(quoted(text)),
        _ => Ok(guessed(text)),
    }
}

/// What is neither a word nor an array of words is a text, as launch takes it.
fn guessed(text: &str) -> String {
    let is_plain = yaml::parse(text).is_ok_and(|node| match &node.kind {
        NodeKind::Scalar { text, plain } => {
            !(*plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
        }
        NodeKind::Sequence(items) => {
            !items.is_empty() && items.iter().all(|it| matches!(it.kind, NodeKind::Scalar { .. }))
        }
        NodeKind::Mapping(_) => false,
    });
    if is_plain && !text.contains('\n') { text.to_owned() } else { quoted(text) }
}

/// A text that is a text whatever it looks like.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for it in text.chars() {
        match it {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            it if it.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(it))),
            it => quoted.push(it),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, ty: &str, expect: &str) {
        assert_eq!(to_yaml(value, ty, None).as_deref(), Ok(expect), "{value} {ty}");
        if let Ok(node) = yaml::parse(expect)
            && let NodeKind::Scalar { text, plain: false } = node.kind
            && ty == "str"
        {
            assert_eq!(text, value);
        }
    }

    #[test]
    fn values_become_what_their_type_says() {
        check("1", "", "1");
        check("1", "str", "\"1\"");
        check("1", "float", "1.0");
        check("yes", "bool", "true");
        check("0x10", "int", "16");
        check("a\"b\\c\nd\u{7}", "str", "\"a\\\"b\\\\c\\nd\\u0007\"");
        check("[1, 2]", "", "[1, 2]");
        check("[1, 2]", "list_of_float", "[1.0, 2.0]");
        check("[1, x]", "list_of_str", "[\"1\", \"x\"]");
        check("", "", "\"\"");
        check("{a: 1}", "", "\"{a: 1}\"");
        check("a: [", "", "\"a: [\"");
        assert_eq!(to_yaml("1;2", "int", Some(";")).as_deref(), Ok("[1, 2]"));
        assert_eq!(to_yaml("a, b", "list_of_str", Some(",")).as_deref(), Ok("[\"a\", \"b\"]"));
    }

    #[test]
    fn what_is_not_of_the_type_is_refused() {
        let refused = |value: &str, ty: &str| to_yaml(value, ty, None).unwrap_err();
        assert_eq!(refused("1.5", "int").0, "1.5");
        assert_eq!(refused("x", "float"), ("x".to_owned(), "is no float".to_owned()));
        assert_eq!(refused("[1, true]", "list_of_int").0, "true");
        assert_eq!(refused("1", "list_of_int").1, "is no array of int");
        assert_eq!(refused("2", "bool").1, "is no bool; it is true or false");
    }
}
