//! Types from the definitions that a recording has in it.

use std::collections::HashMap;

use tsuji_msg::TypeSet;

/// The line between two definitions of one schema.
const BETWEEN: char = '=';

/// The hash of the type `name`, from its definition in `ros2msg`; `None` if that is no definition.
pub(crate) fn hash(name: &str, definition: &str) -> Option<String> {
    let (own, others) = parts(definition);
    let others: HashMap<String, String> = others
        .into_iter()
        .filter_map(|(name, text)| {
            let (package, last) = (name.split('/').next()?, name.rsplit('/').next()?);
            Some((format!("{package}/msg/{last}"), text))
        })
        .collect();
    Some(TypeSet::new(others).load_text(name, &own).ok()?.hash().to_owned())
}

/// A schema as its own definition and those that follow, each with its name.
fn parts(definition: &str) -> (String, Vec<(String, String)>) {
    let mut own = String::new();
    let mut others: Vec<(String, String)> = Vec::new();
    let mut is_next = false;
    for line in definition.lines() {
        let is_rule = 3 <= line.len() && line.chars().all(|it| it == BETWEEN);
        if is_rule {
            is_next = true;
            continue;
        }
        if is_next && let Some(name) = line.strip_prefix("MSG:") {
            others.push((name.trim().to_owned(), String::new()));
            is_next = false;
            continue;
        }
        let text = others.last_mut().map_or(&mut own, |(_, text)| text);
        text.push_str(line);
        text.push('\n');
    }
    (own, others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsuji_interfaces::Shipped;

    #[test]
    fn every_shipped_type_keeps_its_hash() {
        let types = TypeSet::new(Shipped);
        let mut count = 0;
        for name in tsuji_interfaces::names().filter(|it| it.contains("/msg/")) {
            let ty = types.load(name).unwrap();
            assert_eq!(hash(name, &ty.full_text()).as_deref(), Some(ty.hash()), "{name}");
            count += 1;
        }
        assert!(100 < count, "{count}");
    }

    #[test]
    fn what_is_no_definition_has_no_hash() {
        assert_eq!(hash("std_msgs/msg/String", "string"), None);
        assert_eq!(hash("nonsense", "string data\n"), None);
        assert_eq!(hash("a/msg/B", "other/C c\n"), None);
    }
}
