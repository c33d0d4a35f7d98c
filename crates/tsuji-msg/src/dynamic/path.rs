use super::{DynamicMessage, List, Value, ValueError};
use crate::definition::{Base, Shape};
use crate::path::{Path, Step};
use std::borrow::Cow;

impl DynamicMessage {
    /// The value at a path such as `poses[3].position.x`.
    ///
    /// # Errors
    ///
    /// A [`ValueError`] if the path does not read, names a field that the message does not have, has an index that
    /// the list does not have, or goes on behind a value without fields or elements.
    pub fn get(&self, path: &str) -> Result<Cow<'_, Value>, ValueError> {
        let steps = steps(path)?;
        let mut message = self;
        let mut found: Option<&Value> = None;
        for (position, step) in steps.iter().enumerate() {
            let last = position + 1 == steps.len();
            match step {
                Step::Field(name) => {
                    if let Some(value) = found {
                        let Value::Message(inner) = value else {
                            return Err(no_fields(path, name));
                        };
                        message = inner;
                    }
                    found = Some(message.field_value(path, name)?);
                }
                Step::Element(index) => {
                    let Some(Value::List(list)) = found else { return Err(no_elements(path)) };
                    let outside = || outside(path, *index, list.len());
                    match list {
                        List::Message(items) if !last => {
                            message = items.get(*index).ok_or_else(outside)?;
                            found = None;
                        }
                        _ if last => return list.get(*index).map(Cow::Owned).ok_or_else(outside),
                        _ => return Err(no_fields(path, "")),
                    }
                }
            }
        }
        found.map(Cow::Borrowed).ok_or_else(|| no_elements(path))
    }

    /// Puts a value at a path such as `poses[3].position.x`. It must be of the type that is there.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get); a [`ValueError`] if `value` is of another type, or a list of a length that the
    /// type does not allow. Texts are not measured here, but when they are written.
    pub fn set(&mut self, path: &str, value: Value) -> Result<(), ValueError> {
        let steps = steps(path)?;
        self.set_steps(path, &steps, value)
    }

    fn set_steps(
        &mut self,
        path: &str,
        steps: &[Step<'_>],
        value: Value,
    ) -> Result<(), ValueError> {
        let [Step::Field(name), rest @ ..] = steps else { return Err(no_elements(path)) };
        self.field_value(path, name)?;
        let ty = self.ty.clone();
        let Some((position, field)) = ty.field(name) else { return Err(no_fields(path, name)) };
        let slot = &mut self.values[position];
        match (rest, slot) {
            ([], slot) => {
                let wrong =
                    || ValueError::new(path, "a value of another type", field.ty.to_string());
                if !fits(&value, &field.ty.base, field.ty.shape) {
                    return Err(wrong());
                }
                *slot = value;
                Ok(())
            }
            ([Step::Field(_), ..], Value::Message(inner)) => inner.set_steps(path, rest, value),
            ([Step::Element(index)], Value::List(list)) => {
                let length = list.len();
                match list.replace(*index, value) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(outside(path, *index, length)),
                    Err(_) => Err(ValueError::new(
                        path,
                        "a value of another type",
                        field.ty.base.to_string(),
                    )),
                }
            }
            ([Step::Element(index), rest @ ..], Value::List(List::Message(items))) => {
                let length = items.len();
                let item = items.get_mut(*index).ok_or_else(|| outside(path, *index, length))?;
                item.set_steps(path, rest, value)
            }
            ([Step::Field(name), ..], _) => Err(no_fields(path, name)),
            ([Step::Element(_), ..], _) => Err(no_elements(path)),
        }
    }

    fn field_value(&self, path: &str, name: &str) -> Result<&Value, ValueError> {
        match self.ty.field(name) {
            Some((position, _)) => Ok(&self.values[position]),
            None => Err(ValueError::unknown_field(path, name, &self.ty)),
        }
    }
}

impl List {
    /// Puts a value at `index`: whether there is such an element, or the value back if it is of
    /// another type.
    fn replace(&mut self, index: usize, value: Value) -> Result<bool, Value> {
        fn put<T>(items: &mut [T], index: usize, value: T) -> bool {
            items.get_mut(index).map(|slot| *slot = value).is_some()
        }
        Ok(match (self, value) {
            (Self::Bool(items), Value::Bool(value)) => put(items, index, value),
            (Self::U8(items), Value::U8(value)) => put(items, index, value),
            (Self::I8(items), Value::I8(value)) => put(items, index, value),
            (Self::U16(items), Value::U16(value)) => put(items, index, value),
            (Self::I16(items), Value::I16(value)) => put(items, index, value),
            (Self::U32(items), Value::U32(value)) => put(items, index, value),
            (Self::I32(items), Value::I32(value)) => put(items, index, value),
            (Self::U64(items), Value::U64(value)) => put(items, index, value),
            (Self::I64(items), Value::I64(value)) => put(items, index, value),
            (Self::F32(items), Value::F32(value)) => put(items, index, value),
            (Self::F64(items), Value::F64(value)) => put(items, index, value),
            (Self::Text(items), Value::Text(value)) => put(items, index, value),
            (Self::Message(items), Value::Message(value)) => {
                if items.first().is_some_and(|item| item.ty != value.ty) {
                    return Err(Value::Message(value));
                }
                put(items, index, value)
            }
            (_, value) => return Err(value),
        })
    }
}

/// Whether a value is of a type. Limits of texts are left to the writer.
fn fits(value: &Value, base: &Base<std::sync::Arc<crate::TypeDescription>>, shape: Shape) -> bool {
    match (value, shape) {
        (Value::List(list), Shape::Array(_) | Shape::Bounded(_) | Shape::Sequence) => {
            let length = match shape {
                Shape::Array(count) => list.len() == count as usize,
                Shape::Bounded(bound) => list.len() <= bound as usize,
                _ => true,
            };
            let elements = match (list, base) {
                (List::Message(items), Base::Nested(nested)) => {
                    items.iter().all(|item| item.ty == *nested)
                }
                _ => std::mem::discriminant(list) == std::mem::discriminant(&List::empty(base)),
            };
            length && elements
        }
        (Value::Message(message), Shape::Single) => {
            base.nested().is_some_and(|nested| message.ty == *nested)
        }
        (Value::List(_), Shape::Single) => false,
        (value, Shape::Single) => {
            // Only scalars and texts are left, whose default is cheap.
            base.nested().is_none()
                && std::mem::discriminant(value) == std::mem::discriminant(&Value::zero(base))
        }
        _ => false,
    }
}

fn steps(path: &str) -> Result<Vec<Step<'_>>, ValueError> {
    let (mut rest, mut steps) = (Path::new(path), Vec::new());
    while let Some((step, behind)) = rest.step() {
        steps.push(step);
        rest = behind;
    }
    if rest.is_end() && matches!(steps.first(), Some(Step::Field(_))) {
        return Ok(steps);
    }
    Err(ValueError::new(
        path,
        "a path that does not read",
        "field names with `.` between them and `[index]` behind",
    ))
}

fn no_fields(path: &str, name: &str) -> ValueError {
    ValueError::new(
        path,
        format!("`{name}` behind a value without fields"),
        "a path that ends there",
    )
}

fn no_elements(path: &str) -> ValueError {
    ValueError::new(path, "an index behind a value without elements", "a path that ends there")
}

fn outside(path: &str, index: usize, length: usize) -> ValueError {
    ValueError::new(path, format!("index {index}"), format!("an index below {length}"))
}
