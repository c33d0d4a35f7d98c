//! Readers connect, disconnect and come back.

use tsuji_transport::{ErrorKind, Gid, Sent};

use crate::world::{Keep, World, refused};

/// A second connection of the same reader replaces the first.
pub fn connecting_twice_sends_once(world: World) {
    let (writer, reader) = world.pair("twice", Keep::All(10));
    writer.connect(&reader);
    writer.connect(&reader);
    assert_eq!(writer.writer.readers(), 1);
    assert_eq!(writer.send(10), Sent { readers: 1, displaced: 0 });
    assert_eq!(reader.numbers(), [1]);
    let address = reader.reader.accept(world.one().id, writer.gid).unwrap();
    writer.writer.connect(&address).unwrap();
    writer.writer.connect(&address).unwrap();
    writer.send(10);
    assert_eq!(reader.numbers(), [2]);
    writer.writer.disconnect(reader.gid);
    assert_eq!((writer.writer.readers(), writer.send(10)), (0, Sent::default()));
}

/// Disconnecting whoever is not connected does nothing.
pub fn disconnecting_twice_is_no_error(world: World) {
    let (writer, reader) = world.pair("unconnected", Keep::All(10));
    writer.writer.disconnect(Gid([7; 16]));
    assert_eq!(writer.send(10).readers, 1);
    writer.writer.disconnect(reader.gid);
    writer.writer.disconnect(reader.gid);
    assert_eq!((writer.writer.readers(), writer.send(10)), (0, Sent::default()));
    assert_eq!(reader.numbers(), [1]);
}

/// A reader gets nothing that is sent after it was disconnected, and all that was sent before.
pub fn a_disconnected_reader_keeps_what_it_had(world: World) {
    let (writer, reader) = world.pair("kept", Keep::All(10));
    let other = world.reader("kept", Keep::All(10));
    writer.connect(&other);
    writer.send_many(3, 70_000);
    writer.writer.disconnect(reader.gid);
    writer.send_many(5, 70_000);
    assert_eq!(reader.numbers(), [1, 2, 3]);
    assert_eq!(other.numbers(), (1..=8).collect::<Vec<_>>());
}

/// A reader that was disconnected connects again, as often as it likes.
pub fn a_reader_comes_back(world: World) {
    let (writer, reader) = world.pair("back", Keep::All(2));
    for round in 0..2000 {
        writer.send(10);
        writer.writer.disconnect(reader.gid);
        writer.send(10);
        reader.reader.forget(writer.gid);
        assert_eq!(reader.numbers(), [round * 2 + 1]);
        writer.connect(&reader);
    }
    writer.send(10);
    writer.send(10);
    refused(writer.try_send(10), ErrorKind::Busy);
    assert_eq!(reader.numbers(), [4001, 4002]);
}

/// What is sent to one reader reaches no other.
pub fn send_to_reaches_only_one(world: World) {
    if !world.capability().directed {
        let (writer, reader) = world.pair("undirected", Keep::All(10));
        return refused(writer.try_send_to(reader.gid, 10), ErrorKind::Unsupported);
    }
    let (writer, reader) = world.pair("one", Keep::All(10));
    let other = world.reader("one", Keep::All(10));
    writer.connect(&other);
    for len in [10, 70_000] {
        assert_eq!(writer.try_send_to(other.gid, len).unwrap(), Sent { readers: 1, displaced: 0 });
    }
    assert_eq!((reader.numbers(), other.numbers()), (vec![], vec![1, 2]));
    writer.send(10);
    assert_eq!((reader.numbers(), other.numbers()), (vec![3], vec![3]));
}

/// Sending to a reader that is not connected is refused, and reaches nobody.
pub fn send_to_a_unknown_peer_is_refused(world: World) {
    if !world.capability().directed {
        let (writer, reader) = world.pair("undirected", Keep::All(10));
        return refused(writer.try_send_to(reader.gid, 10), ErrorKind::Unsupported);
    }
    let (writer, reader) = world.pair("unknown_peer", Keep::All(10));
    let other = world.reader("unknown_peer", Keep::All(10));
    refused(writer.try_send_to(other.gid, 10), ErrorKind::Closed);
    writer.writer.disconnect(reader.gid);
    refused(writer.try_send_to(reader.gid, 10), ErrorKind::Closed);
    assert_eq!((reader.numbers(), other.numbers()), (vec![], vec![]));
}

/// Sending to one full reader is Busy; another that is full does not matter.
pub fn send_to_is_busy_at_the_limit(world: World) {
    if !world.capability().directed {
        let (writer, reader) = world.pair("undirected", Keep::All(10));
        return refused(writer.try_send_to(reader.gid, 10), ErrorKind::Unsupported);
    }
    let (writer, reader) = world.pair("full", Keep::All(1));
    let other = world.reader("full", Keep::All(1));
    writer.connect(&other);
    writer.try_send_to(reader.gid, 10).unwrap();
    refused(writer.try_send_to(reader.gid, 10), ErrorKind::Busy);
    refused(writer.try_send(10), ErrorKind::Busy);
    writer.try_send_to(other.gid, 10).unwrap();
    assert_eq!((reader.numbers(), other.numbers()), (vec![1], vec![2]));
}

/// What is sent to some readers displaces nothing at the others, which count it, and need not have room.
pub fn what_is_filtered_reaches_the_others_and_is_counted(world: World) {
    if !world.capability().directed {
        let (writer, reader) = world.pair("undirected", Keep::All(10));
        return refused(writer.try_send_except(&[reader.gid], 10), ErrorKind::Unsupported);
    }
    let (writer, reader) = world.pair("some", Keep::Last(1));
    let (full, other) = (world.reader("some", Keep::All(1)), world.reader("some", Keep::All(10)));
    [&full, &other].into_iter().for_each(|it| writer.connect(it));
    writer.send(10);
    let filtered = [reader.gid, full.gid, Gid([9; 16])];
    for len in [10, 70_000] {
        let sent = writer.try_send_except(&filtered, len).unwrap();
        assert_eq!(sent, Sent { readers: 1, displaced: 0 });
    }
    writer.writer.note_filtered(reader.gid, &writer.envelope());
    writer.writer.note_filtered(Gid([9; 16]), &writer.envelope());
    assert_eq!(other.numbers(), [1, 2, 3]);
    assert_eq!((reader.numbers(), full.numbers()), (vec![1], vec![1]));
    let counted = [&reader, &full, &other].map(|it| {
        assert_eq!(it.reader.filtered(), it.reader.filtered_of(writer.gid));
        (it.reader.filtered(), it.reader.displaced())
    });
    assert_eq!(counted, [(3, 0), (2, 0), (0, 0)]);
    // What was reserved for all is given back where it is not used.
    writer.writer.reserve(10).unwrap();
    writer.try_send_except(&filtered, 10).unwrap();
    writer.send(10);
    assert_eq!((full.numbers(), other.numbers()), (vec![5], vec![4, 5]));
    // To nobody is no error.
    assert_eq!(
        writer.try_send_except(&[reader.gid, full.gid, other.gid], 10).unwrap(),
        Sent::default()
    );
    reader.reader.forget(writer.gid);
    assert_eq!((reader.reader.filtered(), reader.reader.filtered_of(writer.gid)), (5, 0));
}
