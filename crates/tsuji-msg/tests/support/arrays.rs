//! Arrays that are read and written in place against messages that are decoded and encoded whole.

use tsuji_msg::{ArrayLayout, DynamicMessage, List, Number, Room, Template, Value};

/// Does the same for a list of numbers of every type.
macro_rules! each_number {
    ($list:expr, $items:ident => $result:expr, else $other:expr) => {
        match $list {
            List::U8($items) => $result,
            List::I8($items) => $result,
            List::U16($items) => $result,
            List::I16($items) => $result,
            List::U32($items) => $result,
            List::I32($items) => $result,
            List::U64($items) => $result,
            List::I64($items) => $result,
            List::F32($items) => $result,
            List::F64($items) => $result,
            List::Bool(_) | List::Text(_) | List::Message(_) => $other,
        }
    };
}

/// In a sample of the message its arrays of numbers are found, and no other lists.
pub(crate) fn check_found(layout: &ArrayLayout, sample: &[u8], message: &DynamicMessage) {
    for (path, list) in lists(message) {
        each_number!(list, items => found(layout, sample, &path, items), else {
            assert!(layout.array::<u8>(sample, &path).is_err(), "{layout:?}: {path}");
        });
    }
}

fn found<T: Number>(layout: &ArrayLayout, sample: &[u8], path: &str, items: &[T]) {
    let view = layout.array::<T>(sample, path);
    let view = view.unwrap_or_else(|error| panic!("{layout:?}: {path}: {error}"));
    // Compared as text: a NaN is not equal to itself.
    let expected = format!("{items:?}");
    assert_eq!(format!("{view:?}"), expected, "{layout:?}: {path}");
    if let Some(slice) = view.as_slice() {
        assert_eq!(format!("{slice:?}"), expected, "{layout:?}: {path}");
    }
}

/// A sample that is written around all arrays of numbers of a message, which are written then, is
/// its sample.
#[allow(dead_code, reason = "not for those who only read")]
pub(crate) fn check_written(template: &impl Template, message: &DynamicMessage) {
    let lists = lists(message);
    let numbers =
        || lists.iter().filter(|(_, list)| each_number!(list, _items => true, else false));
    let mut rooms: Vec<_> = numbers().map(|(path, list)| Room::new(path, list.len())).collect();
    let size = template.size_around(&mut rooms).expect("arrays that are there");
    let mut memory = vec![0xaa; size + 16];
    let start = (0..16).find(|at| (memory.as_ptr().addr() + at) % 16 == 12).expect("one of 16");
    let sample = &mut memory[start..start + size];
    template.serialize_around(&mut rooms, sample).expect("a message of its type");
    let layout = template.layout();
    for (room, (path, list)) in rooms.iter().zip(numbers()) {
        each_number!(list, items => written(&layout, sample, room, path, items), else unreachable!());
    }
    assert_eq!(sample, message.encode().expect("a message of its type"), "{layout:?}");
}

fn written<T: Number>(
    layout: &ArrayLayout,
    sample: &mut [u8],
    room: &Room<'_>,
    path: &str,
    items: &[T],
) {
    assert_eq!(layout.locate::<T>(sample, path), Ok(room.place()), "{layout:?}: {path}");
    let array = layout.array_mut::<T>(sample, path);
    array.unwrap_or_else(|error| panic!("{layout:?}: {path}: {error}")).copy_from_slice(items);
}

/// All lists of a message with their paths.
fn lists(message: &DynamicMessage) -> Vec<(String, &List)> {
    let mut found = Vec::new();
    collect(message, "", &mut found);
    found
}

fn collect<'a>(message: &'a DynamicMessage, within: &str, found: &mut Vec<(String, &'a List)>) {
    for (field, value) in message.fields() {
        let path = format!("{within}{}", field.name);
        match value {
            Value::Message(inner) => collect(inner, &format!("{path}."), found),
            Value::List(list) => {
                if let List::Message(items) = list {
                    for (index, item) in items.iter().enumerate() {
                        collect(item, &format!("{path}[{index}]."), found);
                    }
                }
                found.push((path, list));
            }
            _ => (),
        }
    }
}
