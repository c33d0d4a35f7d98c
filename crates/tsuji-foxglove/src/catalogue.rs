//! The numbers of topics and services.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Gives each topic, or each service, with its type a number that no other has or had.
#[derive(Debug, Default)]
pub struct Catalogue {
    numbers: BTreeMap<(Arc<str>, Arc<str>), u32>,
    entries: HashMap<u32, Entry>,
    last: u32,
}

/// A topic or a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Arc<str>,
}

/// What has come and gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Those that have come.
    pub added: Vec<Entry>,
    /// Those that are gone.
    pub removed: Vec<Entry>,
}

impl Catalogue {
    /// Takes note of all names that there are now, each with its type, and tells what has changed.
    pub fn update<'a>(&mut self, all: impl IntoIterator<Item = (&'a str, &'a str)>) -> Changes {
        let mut left = std::mem::take(&mut self.numbers);
        let mut changes = Changes::default();
        for (name, ty) in all {
            let key = (Arc::<str>::from(name), Arc::<str>::from(ty));
            if self.numbers.contains_key(&key) {
                continue;
            }
            if let Some((key, id)) = left.remove_entry(&key) {
                self.numbers.insert(key, id);
                continue;
            }
            self.last += 1;
            let entry = Entry { id: self.last, name: Arc::clone(&key.0), ty: Arc::clone(&key.1) };
            self.numbers.insert(key, entry.id);
            self.entries.insert(entry.id, entry.clone());
            changes.added.push(entry);
        }
        changes.removed = left.into_values().filter_map(|id| self.entries.remove(&id)).collect();
        changes
    }

    /// What has that number.
    pub fn get(&self, id: u32) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// All, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.numbers.values().filter_map(|id| self.entries.get(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_once() {
        let mut catalogue = Catalogue::default();
        let ids = |entries: &[Entry]| {
            entries.iter().map(|it| (it.id, it.name.to_string())).collect::<Vec<_>>()
        };
        let changes = catalogue.update([("/b", "T"), ("/a", "T"), ("/b", "T"), ("/b", "U")]);
        assert_eq!(ids(&changes.added), [(1, "/b".into()), (2, "/a".into()), (3, "/b".into())]);
        assert!(changes.removed.is_empty());
        assert_eq!(catalogue.update([("/a", "T"), ("/b", "U"), ("/b", "T")]), Changes::default());
        let changes = catalogue.update([("/a", "U"), ("/b", "T")]);
        assert_eq!(ids(&changes.added), [(4, "/a".into())]);
        assert_eq!(ids(&changes.removed), [(2, "/a".into()), (3, "/b".into())]);
        assert_eq!((catalogue.get(2), catalogue.get(4).map(|it| &*it.ty)), (None, Some("U")));
        let all: Vec<u32> = catalogue.all().map(|it| it.id).collect();
        assert_eq!(all, [4, 1]);
        // What comes again is another.
        catalogue.update([]);
        assert_eq!(catalogue.update([("/a", "T")]).added[0].id, 5);
    }
}
