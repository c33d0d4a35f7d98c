//! The fields of a message as a tree, in which rules select fields of fields.

use crate::types::{self, MessageType, Shape as Shape1};
use std::sync::Arc;
use tsuji_msg::definition::Shape;
use tsuji_msg::{Field, TypeDescription};

/// A message on one side.
#[derive(Clone, Copy)]
pub(super) enum Side<'t> {
    Ros1(&'t MessageType),
    Ros2(&'t Arc<TypeDescription>),
}

impl<'t> Side<'t> {
    fn field_count(self) -> usize {
        match self {
            Self::Ros1(ty) => ty.fields().len(),
            Self::Ros2(ty) => ty.fields().len(),
        }
    }

    /// The message that a field is.
    pub(super) fn inside(self, at: usize) -> Option<Self> {
        match self {
            Self::Ros1(ty) => match ty.fields().get(at)? {
                types::Field { base: types::Base::Message(ty), shape: Shape1::Single, .. } => {
                    Some(Self::Ros1(ty))
                }
                _ => None,
            },
            Self::Ros2(ty) => {
                let field = ty.fields().get(at)?;
                let nested = field.ty.base.nested().filter(|_| field.ty.shape == Shape::Single);
                nested.map(Self::Ros2)
            }
        }
    }

    fn skip(self, at: usize) -> Skip<'t> {
        match self {
            Self::Ros1(ty) => Skip::Ros1(&ty.fields()[at]),
            Self::Ros2(ty) => Skip::Ros2(&ty.fields()[at]),
        }
    }
}

/// How a field of the target comes about.
pub(super) enum Node {
    /// From the source of the pair at this index.
    Pair(usize),
    /// It has its default value.
    Default,
    /// From what its own fields come from.
    Inside(Vec<Self>),
}

/// The way to the source of a pair, and that to its target.
pub(super) type Ends = (Vec<usize>, Vec<usize>);

/// How the fields of a message come about.
pub(super) fn nodes(target: Side<'_>, pairs: &[(usize, &Ends)], depth: usize) -> Vec<Node> {
    let node = |at| {
        let own: Vec<_> =
            pairs.iter().filter(|(_, ends)| ends.1.get(depth) == Some(&at)).copied().collect();
        match own.as_slice() {
            [] => Node::Default,
            [(pair, ends)] if ends.1.len() == depth + 1 => Node::Pair(*pair),
            own => match target.inside(at) {
                Some(inside) => Node::Inside(nodes(inside, own, depth + 1)),
                None => Node::Default,
            },
        }
    };
    (0..target.field_count()).map(node).collect()
}

/// The pairs in the order of the target.
pub(super) fn order(nodes: &[Node]) -> Vec<usize> {
    let pairs = nodes.iter().flat_map(|node| match node {
        Node::Pair(pair) => vec![*pair],
        Node::Default => Vec::new(),
        Node::Inside(nodes) => order(nodes),
    });
    pairs.collect()
}

/// What is met in the source, in its order.
pub(super) enum Event<'t> {
    /// The source of the pair at this index, and how to pass over it.
    Use(usize, Skip<'t>),
    /// What belongs to nothing in the target.
    Skip(Skip<'t>),
}

/// What can be passed over.
#[derive(Clone, Copy)]
pub(super) enum Skip<'t> {
    Ros1(&'t types::Field),
    Ros2(&'t Field),
    /// The byte that an empty message has in CDR.
    Empty,
}

/// What is met in a message. `uses` are the sources of pairs with their indices, sorted.
pub(super) fn events<'t>(
    source: Side<'t>,
    uses: &[(&[usize], usize)],
    depth: usize,
) -> Vec<Event<'t>> {
    let mut events = Vec::new();
    for at in 0..source.field_count() {
        let own: Vec<_> =
            uses.iter().filter(|(path, _)| path.get(depth) == Some(&at)).copied().collect();
        match (own.as_slice(), source.inside(at)) {
            ([(path, pair)], _) if path.len() == depth + 1 => {
                events.push(Event::Use(*pair, source.skip(at)));
            }
            (own @ [_, ..], Some(inside)) => events.extend(self::events(inside, own, depth + 1)),
            _ => events.push(Event::Skip(source.skip(at))),
        }
    }
    if events.is_empty() && matches!(source, Side::Ros2(_)) {
        events.push(Event::Skip(Skip::Empty));
    }
    events
}

/// The field at the end of a path, and the names on the way.
pub(super) fn field_of_ros1<'t>(
    ty: &'t MessageType,
    path: &[usize],
) -> Option<(&'t types::Field, String)> {
    let (first, rest) = path.split_first()?;
    let field = ty.fields().get(*first)?;
    if rest.is_empty() {
        return Some((field, field.name.clone()));
    }
    let types::Base::Message(inside) = &field.base else { return None };
    field_of_ros1(inside, rest).map(|(end, name)| (end, format!("{}.{name}", field.name)))
}

/// The field at the end of a path, and the names on the way.
pub(super) fn field_of_ros2<'t>(
    ty: &'t TypeDescription,
    path: &[usize],
) -> Option<(&'t Field, String)> {
    let (first, rest) = path.split_first()?;
    let field = ty.fields().get(*first)?;
    if rest.is_empty() {
        return Some((field, field.name.clone()));
    }
    let inside = field.ty.base.nested()?;
    field_of_ros2(inside, rest).map(|(end, name)| (end, format!("{}.{name}", field.name)))
}
