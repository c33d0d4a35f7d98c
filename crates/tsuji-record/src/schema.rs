//! Types from the definitions that a recording has in it.

use tsuji_msg::load_full_text;

/// The hash of the type `name`, from its definition in `ros2msg`; `None` if that is no definition.
pub(crate) fn hash(name: &str, definition: &str) -> Option<String> {
    Some(load_full_text(name, definition).ok()?.hash().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsuji_interfaces::Shipped;
    use tsuji_msg::TypeSet;

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
