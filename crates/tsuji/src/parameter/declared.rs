//! The parameters of a node: what may become of them, without I/O and without callbacks.
//!
//! A change is made in two steps, so that callbacks can refuse it in between: a plan, which has passed every check, and
//! then the change itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::{
    DescribedParameter, NAME_BYTES_MAX, PARAMETERS_MAX, Parameter, ParameterDescriptor,
    ParameterType, ParameterValue, SEPARATOR,
};

/// What is known of the parameters of a node.
#[derive(Debug, Default)]
pub(super) struct Declared {
    entries: BTreeMap<String, Entry>,
    /// Values that count in the place of the defaults.
    overrides: BTreeMap<String, ParameterValue>,
    /// What is not declared is declared by being set.
    allow_undeclared: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    /// Of static typing, that of all its values.
    ty: ParameterType,
    descriptor: ParameterDescriptor,
    value: ParameterValue,
}

/// A change that has passed every check.
#[derive(Debug)]
pub(super) struct Plan {
    declare: Option<(String, Entry)>,
    assign: Vec<Parameter>,
}

impl Plan {
    /// What callbacks are asked about.
    pub(super) fn parameters(&self) -> &[Parameter] {
        &self.assign
    }
}

/// What has become of parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) new: Vec<Parameter>,
    pub(super) changed: Vec<Parameter>,
    pub(super) deleted: Vec<Parameter>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.changed.is_empty() && self.deleted.is_empty()
    }

    pub(super) fn append(&mut self, mut later: Self) {
        self.new.append(&mut later.new);
        self.changed.append(&mut later.changed);
        self.deleted.append(&mut later.deleted);
    }
}

/// What a list of parameters answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterList {
    /// The names, in their order.
    pub names: Vec<String>,
    /// What stands before the last `.` of any of them.
    pub prefixes: Vec<String>,
}

impl Declared {
    pub(super) fn new(overrides: BTreeMap<String, ParameterValue>, allow_undeclared: bool) -> Self {
        Self { entries: BTreeMap::new(), overrides, allow_undeclared }
    }

    /// The names that overrides know.
    pub(super) fn overridden(&self) -> Vec<String> {
        self.overrides.keys().cloned().collect()
    }

    /// Plans a declaration. `ty` is for a parameter without a value.
    pub(super) fn plan_declare(
        &self,
        name: &str,
        ty: ParameterType,
        default: ParameterValue,
        descriptor: ParameterDescriptor,
    ) -> Result<Plan, String> {
        check_name(name)?;
        if self.entries.contains_key(name) {
            return Err(format!("parameter '{name}' has already been declared"));
        }
        self.check_room(1)?;
        let ty = if default == ParameterValue::NotSet { ty } else { default.ty() };
        if ty == ParameterType::NotSet && !descriptor.dynamic_typing {
            return Err(format!(
                "parameter '{name}': cannot declare a statically typed parameter with an uninitialized value; \
                 allowed: a type, a default, or dynamic typing"
            ));
        }
        if let Some(flaw) = descriptor.flaw(ty) {
            return Err(format!("parameter '{name}': {flaw}"));
        }
        let value = match self.overrides.get(name) {
            Some(value) => value.clone().fitted(ty),
            None => default,
        };
        let entry = Entry { ty, descriptor, value: ParameterValue::NotSet };
        let mut assign = Vec::new();
        if value != ParameterValue::NotSet {
            let checked = entry.descriptor.check(name, ty, &value);
            checked.map_err(|why| format!("parameter '{name}' could not be set: {why}"))?;
            assign.push(Parameter { name: name.to_owned(), value });
        }
        Ok(Plan { declare: Some((name.to_owned(), entry)), assign })
    }

    /// Plans to set all of these or none.
    pub(super) fn plan_set(&self, mut parameters: Vec<Parameter>) -> Result<Plan, String> {
        for Parameter { name, value } in &mut parameters {
            if let Some(entry) = self.entries.get(name) {
                *value = std::mem::take(value).fitted(entry.ty);
            }
        }
        let (mut undeclared, mut deleted) = (BTreeSet::new(), BTreeSet::new());
        for Parameter { name, value } in &parameters {
            if deleted.contains(name.as_str()) {
                return Err(format!("parameter '{name}' cannot be deleted and set at once"));
            }
            if *value == ParameterValue::NotSet {
                deleted.insert(name.as_str());
            }
            let Some(entry) = self.entries.get(name) else {
                if !self.allow_undeclared {
                    return Err(not_declared(name));
                }
                check_name(name)?;
                undeclared.insert(name.as_str());
                continue;
            };
            if entry.descriptor.read_only {
                return Err(format!("parameter '{name}' cannot be set because it is read-only"));
            }
            let is_deleted =
                *value == ParameterValue::NotSet && entry.value != ParameterValue::NotSet;
            if is_deleted && !entry.descriptor.dynamic_typing {
                return Err(format!(
                    "parameter '{name}': cannot undeclare a statically typed parameter"
                ));
            }
            entry.descriptor.check(name, entry.ty, value)?;
        }
        self.check_room(undeclared.len())?;
        Ok(Plan { declare: None, assign: parameters })
    }

    /// Makes a planned change. Nothing else has been changed since it was planned.
    pub(super) fn make(&mut self, plan: Plan) -> Changes {
        let mut changes = Changes::default();
        let declared = plan.declare.map(|(name, entry)| {
            self.entries.insert(name.clone(), entry);
            name
        });
        for parameter in plan.assign {
            let Parameter { name, value } = &parameter;
            let Some(entry) = self.entries.get_mut(name) else {
                if *value != ParameterValue::NotSet {
                    self.entries.insert(name.clone(), Entry::undeclared(value.clone()));
                    changes.new.push(parameter);
                }
                continue;
            };
            if *value == ParameterValue::NotSet {
                if let Some(entry) = self.entries.remove(name) {
                    changes.deleted.push(Parameter { value: entry.value, ..parameter });
                }
                continue;
            }
            entry.value = value.clone();
            match declared.as_ref() == Some(name) {
                true => changes.new.push(parameter),
                false => changes.changed.push(parameter),
            }
        }
        changes
    }

    /// Forgets a parameter.
    pub(super) fn undeclare(&mut self, name: &str) -> Result<Changes, String> {
        let Some(entry) = self.entries.get(name) else {
            return Err(format!(
                "cannot undeclare parameter '{name}' which has not yet been declared"
            ));
        };
        if entry.descriptor.read_only {
            return Err(format!("cannot undeclare parameter '{name}' because it is read-only"));
        }
        if !entry.descriptor.dynamic_typing {
            return Err(format!(
                "parameter '{name}': cannot undeclare a statically typed parameter"
            ));
        }
        let entry = self.entries.remove(name);
        let deleted = entry.map(|entry| Parameter { name: name.to_owned(), value: entry.value });
        Ok(Changes { deleted: deleted.into_iter().collect(), ..Changes::default() })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The value of a parameter; one that is not set where undeclared ones are allowed.
    pub(super) fn value(&self, name: &str) -> Option<ParameterValue> {
        let known = self.entries.get(name).map(|entry| entry.value.clone());
        known.or_else(|| self.allow_undeclared.then_some(ParameterValue::NotSet))
    }

    /// What was declared, in the same way.
    pub(super) fn describe(&self, name: &str) -> Option<DescribedParameter> {
        let described =
            |ty, descriptor| DescribedParameter { name: name.to_owned(), ty, descriptor };
        let known = self.entries.get(name).map(|entry| {
            let ty = if entry.descriptor.dynamic_typing { entry.value.ty() } else { entry.ty };
            described(ty, entry.descriptor.clone())
        });
        known.or_else(|| {
            self.allow_undeclared
                .then(|| described(ParameterType::NotSet, ParameterDescriptor::default()))
        })
    }

    /// The names under any of the prefixes, or all without one, that have fewer than `depth` separators behind their
    /// prefix; 0 for any number.
    pub(super) fn list(&self, prefixes: &[String], depth: u64) -> ParameterList {
        let is_shallow = |rest: &str| {
            depth == 0 || u64::try_from(rest.matches(SEPARATOR).count()).is_ok_and(|it| it < depth)
        };
        let mut names = BTreeSet::new();
        if prefixes.is_empty() {
            names.extend(self.entries.keys().filter(|name| is_shallow(name)));
        }
        for prefix in prefixes.iter().collect::<BTreeSet<_>>() {
            names.extend(self.entries.get_key_value(prefix).map(|(name, _)| name));
            let inner = format!("{prefix}{SEPARATOR}");
            let from = (Bound::Included(inner.as_str()), Bound::Unbounded);
            let under = self.entries.range::<str, _>(from).map(|(name, _)| name);
            let under = under.take_while(|name| name.starts_with(&inner));
            names.extend(under.filter(|name| is_shallow(&name[inner.len()..])));
        }
        let before = names.iter().filter_map(|name| Some(name.rsplit_once(SEPARATOR)?.0));
        let before: BTreeSet<&str> = before.collect();
        ParameterList {
            prefixes: before.into_iter().map(str::to_owned).collect(),
            names: names.into_iter().cloned().collect(),
        }
    }

    fn check_room(&self, more: usize) -> Result<(), String> {
        if PARAMETERS_MAX < self.entries.len() + more {
            return Err(format!("more parameters than a node may have; allowed: {PARAMETERS_MAX}"));
        }
        Ok(())
    }
}

impl Entry {
    /// What is declared by being set may take any type.
    fn undeclared(value: ParameterValue) -> Self {
        let descriptor =
            ParameterDescriptor { dynamic_typing: true, ..ParameterDescriptor::default() };
        Self { ty: value.ty(), descriptor, value }
    }
}

/// In the words of rclcpp.
pub(super) fn not_declared(name: &str) -> String {
    format!("parameter '{name}' cannot be set because it was not declared")
}

fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("parameter name must not be empty".to_owned());
    }
    if NAME_BYTES_MAX < name.len() {
        let bytes = name.len();
        return Err(format!("a parameter name of {bytes} bytes; allowed: {NAME_BYTES_MAX}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn declare(declared: &mut Declared, name: &str, default: impl Into<ParameterValue>) {
        declare_with(declared, name, default, ParameterDescriptor::default()).unwrap();
    }

    fn declare_with(
        declared: &mut Declared,
        name: &str,
        default: impl Into<ParameterValue>,
        descriptor: ParameterDescriptor,
    ) -> Result<Changes, String> {
        let plan =
            declared.plan_declare(name, ParameterType::NotSet, default.into(), descriptor)?;
        Ok(declared.make(plan))
    }

    fn set(
        declared: &mut Declared,
        name: &str,
        value: impl Into<ParameterValue>,
    ) -> Result<Changes, String> {
        let plan = declared.plan_set(vec![Parameter::new(name, value)])?;
        Ok(declared.make(plan))
    }

    #[test]
    fn an_empty_array_without_a_type_takes_that_of_its_parameter() {
        let overrides = [("a".to_owned(), ParameterValue::UNTYPED_EMPTY)];
        let mut declared = Declared::new(overrides.into(), false);
        declare(&mut declared, "a", vec![1i64]);
        assert_eq!(declared.value("a"), Some(ParameterValue::IntegerArray(Vec::new())));
        declare(&mut declared, "b", vec!["x".to_owned()]);
        set(&mut declared, "b", ParameterValue::UNTYPED_EMPTY).unwrap();
        assert_eq!(declared.value("b"), Some(ParameterValue::StringArray(Vec::new())));
        // One that has a type keeps it, and a single value takes none.
        let error = set(&mut declared, "b", Vec::<f64>::new()).unwrap_err();
        assert!(error.contains("setting it to {double_array} is not allowed"), "{error}");
        declare(&mut declared, "c", 1);
        let error = set(&mut declared, "c", ParameterValue::UNTYPED_EMPTY).unwrap_err();
        assert!(error.contains("setting it to {bool_array} is not allowed"), "{error}");
    }

    #[test]
    fn what_is_declared_can_be_set_within_its_type() {
        let mut declared = Declared::default();
        declare(&mut declared, "a", 1);
        let changes = set(&mut declared, "a", 2).unwrap();
        assert_eq!(changes.changed, [Parameter::new("a", 2)]);
        assert_eq!(
            set(&mut declared, "a", "2").unwrap_err(),
            "Wrong parameter type, parameter {a} is of type {integer}, setting it to {string} is not allowed."
        );
        assert_eq!(
            set(&mut declared, "b", 1).unwrap_err(),
            "parameter 'b' cannot be set because it was not declared"
        );
        assert_eq!(
            set(&mut declared, "a", ParameterValue::NotSet).unwrap_err(),
            "parameter 'a': cannot undeclare a statically typed parameter"
        );
        assert_eq!(declared.value("a"), Some(2.into()));
        assert_eq!(
            declare_with(&mut declared, "a", 1, ParameterDescriptor::default()).unwrap_err(),
            "parameter 'a' has already been declared"
        );
    }

    #[test]
    fn read_only_and_ranges_are_kept() {
        let mut declared = Declared::default();
        let read_only = ParameterDescriptor { read_only: true, ..Default::default() };
        declare_with(&mut declared, "fixed", "x", read_only).unwrap();
        let error = set(&mut declared, "fixed", "y").unwrap_err();
        assert_eq!(error, "parameter 'fixed' cannot be set because it is read-only");
        let error = declared.undeclare("fixed").unwrap_err();
        assert_eq!(error, "cannot undeclare parameter 'fixed' because it is read-only");
        let ranged = |range| ParameterDescriptor { range: Some(range), ..Default::default() };
        let range = ParameterRange::Integer { from: 0, to: 9, step: 3 };
        declare_with(&mut declared, "n", 3, ranged(range)).unwrap();
        assert_eq!(
            set(&mut declared, "n", 4).unwrap_err(),
            "Parameter {n} doesn't comply with integer range; allowed: 0 to 9 in steps of 3"
        );
        let error = declare_with(&mut declared, "m", 10, ranged(range)).unwrap_err();
        assert!(error.starts_with("parameter 'm' could not be set: Parameter {m}"), "{error}");
        assert!(!declared.has("m"));
    }

    #[test]
    fn overrides_count_in_the_place_of_defaults() {
        let over = [("a".to_owned(), 5.into()), ("b".to_owned(), "x".into())];
        let mut declared = Declared::new(over.into(), false);
        declare(&mut declared, "a", 1);
        assert_eq!(declared.value("a"), Some(5.into()));
        let error = declare_with(&mut declared, "b", 1, Default::default()).unwrap_err();
        assert!(error.contains("is of type {integer}, setting it to {string}"), "{error}");
        // Without a default it is not set, but of its type.
        let none = ParameterValue::NotSet;
        let plan = |declared: &Declared, ty| {
            declared.plan_declare("c", ty, none.clone(), ParameterDescriptor::default())
        };
        assert!(plan(&declared, ParameterType::NotSet).unwrap_err().contains("statically typed"));
        let plan = plan(&declared, ParameterType::Double).unwrap();
        assert!(declared.make(plan).is_empty());
        assert_eq!(declared.value("c"), Some(ParameterValue::NotSet));
        assert!(set(&mut declared, "c", 1).is_err());
        assert_eq!(set(&mut declared, "c", 1.0).unwrap().changed.len(), 1);
    }

    #[test]
    fn dynamic_typing_takes_any_type_and_can_be_undeclared() {
        let mut declared = Declared::default();
        let dynamic = ParameterDescriptor { dynamic_typing: true, ..Default::default() };
        declare_with(&mut declared, "any", 1, dynamic).unwrap();
        set(&mut declared, "any", "text").unwrap();
        assert_eq!(declared.describe("any").unwrap().ty, ParameterType::String);
        let changes = set(&mut declared, "any", ParameterValue::NotSet).unwrap();
        assert_eq!(changes.deleted, [Parameter::new("any", "text")]);
        assert!(declared.undeclare("any").unwrap_err().contains("has not yet been declared"));
    }

    #[test]
    fn undeclared_ones_are_declared_by_being_set_where_that_is_allowed() {
        let mut declared = Declared::new(BTreeMap::new(), true);
        assert_eq!(declared.value("a"), Some(ParameterValue::NotSet));
        assert_eq!(set(&mut declared, "a", 1).unwrap().new, [Parameter::new("a", 1)]);
        assert_eq!(set(&mut declared, "a", "x").unwrap().changed, [Parameter::new("a", "x")]);
        assert!(set(&mut declared, "b", ParameterValue::NotSet).unwrap().is_empty());
        assert!(!declared.has("b"));
        assert_eq!(set(&mut declared, "", 1).unwrap_err(), "parameter name must not be empty");
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        assert!(set(&mut declared, &long, 1).is_err());
    }

    #[test]
    fn all_or_none() {
        let mut declared = Declared::default();
        declare(&mut declared, "a", 1);
        let both = vec![Parameter::new("a", 2), Parameter::new("b", 1)];
        assert!(declared.plan_set(both).is_err());
        assert_eq!(declared.value("a"), Some(1.into()));
    }

    #[test]
    fn a_node_has_so_many_parameters_and_no_more() {
        let mut declared = Declared::new(BTreeMap::new(), true);
        let many = (0..PARAMETERS_MAX).map(|it| Parameter::new(it.to_string(), 1)).collect();
        let plan = declared.plan_set(many).unwrap();
        assert_eq!(declared.make(plan).new.len(), PARAMETERS_MAX);
        assert!(set(&mut declared, "0", 2).is_ok());
        let error = set(&mut declared, "one more", 1).unwrap_err();
        assert_eq!(error, "more parameters than a node may have; allowed: 65536");
        assert_eq!(declare_with(&mut declared, "x", 1, Default::default()).unwrap_err(), error);
    }

    #[test]
    fn lists_by_prefix_and_depth() {
        let mut declared = Declared::default();
        for name in ["first", "foo.first", "foo.second", "foobar", "foo.bar.third"] {
            declare(&mut declared, name, true);
        }
        let check = |prefixes: &[&str], depth, names: &[&str], before: &[&str]| {
            let prefixes: Vec<String> = prefixes.iter().map(|&it| it.to_owned()).collect();
            let listed = declared.list(&prefixes, depth);
            assert_eq!((listed.names, listed.prefixes), (owned(names), owned(before)));
        };
        let all = ["first", "foo.bar.third", "foo.first", "foo.second", "foobar"];
        check(&[], 0, &all, &["foo", "foo.bar"]);
        check(&[], 1, &["first", "foobar"], &[]);
        check(&[], 2, &["first", "foo.first", "foo.second", "foobar"], &["foo"]);
        check(&["foo"], 1, &["foo.first", "foo.second"], &["foo"]);
        check(&["foo"], 0, &["foo.bar.third", "foo.first", "foo.second"], &["foo", "foo.bar"]);
        check(&["foo.bar", "first"], 10, &["first", "foo.bar.third"], &["foo.bar"]);
        check(&["fo"], 0, &[], &[]);
    }

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|&it| it.to_owned()).collect()
    }

    /// What is asked of parameters: names and values of a few kinds, so that they meet.
    fn asked() -> impl Strategy<Value = Vec<Parameter>> {
        let value = prop_oneof![
            Just(ParameterValue::NotSet),
            (-2i64..8).prop_map(ParameterValue::Integer),
            (-2.0..3.0).prop_map(ParameterValue::Double),
            "[ab]?".prop_map(ParameterValue::String),
        ];
        let name = prop::sample::select(vec!["fixed", "ranged", "any", "text", "new", "new.er"]);
        let one = (name, value).prop_map(|(name, value)| Parameter::new(name, value));
        prop::collection::vec(one, 1..4)
    }

    proptest! {
        /// Whatever is asked: types, ranges and what is read-only stay, a refusal changes nothing, and events tell all.
        #[test]
        fn nothing_that_is_asked_breaks_what_was_declared(
            requests in prop::collection::vec(asked(), 0..20),
            allow_undeclared: bool,
        ) {
            let mut declared = Declared::new(BTreeMap::new(), allow_undeclared);
            let read_only = ParameterDescriptor { read_only: true, ..Default::default() };
            let range = Some(ParameterRange::Integer { from: 0, to: 5, step: 2 });
            let ranged = ParameterDescriptor { range, ..Default::default() };
            let dynamic = ParameterDescriptor { dynamic_typing: true, ..Default::default() };
            declare_with(&mut declared, "fixed", 1, read_only).unwrap();
            declare_with(&mut declared, "ranged", 2, ranged).unwrap();
            declare_with(&mut declared, "any", 1, dynamic).unwrap();
            declare(&mut declared, "text", "");
            let values = |declared: &Declared| -> BTreeMap<String, ParameterValue> {
                let names = declared.list(&[], 0).names.into_iter();
                names.map(|name| (name.clone(), declared.value(&name).unwrap())).collect()
            };
            let mut told = values(&declared);
            for request in requests {
                let Ok(plan) = declared.plan_set(request) else {
                    prop_assert_eq!(&values(&declared), &told);
                    continue;
                };
                let changes = declared.make(plan);
                for Parameter { name, .. } in &changes.deleted {
                    told.remove(name);
                }
                for Parameter { name, .. } in changes.new.iter().chain(&changes.changed) {
                    // The last value of a name counts.
                    if let Some(value) = declared.value(name).filter(|_| declared.has(name)) {
                        told.insert(name.clone(), value);
                    }
                }
                prop_assert_eq!(&values(&declared), &told);
                prop_assert_eq!(&told["fixed"], &1.into());
                prop_assert!(matches!(told["ranged"], ParameterValue::Integer(0 | 2 | 4 | 5)));
                prop_assert_eq!(told["text"].ty(), ParameterType::String);
            }
        }
    }

    use super::super::ParameterRange;
}
