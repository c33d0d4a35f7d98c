use tsuji_msg::{Definition, Kind, Resolver, Unreadable};

/// The definitions that ship with tsuji, sorted by name.
static TEXTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// The definitions that ship with tsuji: the common interfaces as of ROS 2 Jazzy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shipped;

impl Resolver for Shipped {
    fn find(
        &self,
        kind: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable> {
        let name = format!("{package}/{kind}/{name}");
        let index = TEXTS.binary_search_by_key(&name.as_str(), |(name, _)| name);
        Ok(index.ok().map(|index| TEXTS[index].1.into()))
    }
}

/// The ROS names of all shipped interfaces in their order, such as `sensor_msgs/msg/Image`.
pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}
