//! Parameters of nodes, and those that are set for all nodes.

use std::path::Path;
use std::sync::Arc;

use tsuji_xml::{Node, Places};

use super::{Inherited, Launch, Noted, Result, Scope, attribute_offset, place, wrong};
use crate::parameter::{self, Reader, Substituted, Value};
use crate::plan::ParameterSource;
use crate::substitution::{Problem, has_substitution};
use crate::world::World;

impl<W: World + ?Sized> Launch<'_, W> {
    /// The name and the value of a `param` and the like.
    pub(super) fn parameter<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<(String, Value)> {
        let name = self.required(node, "name", places, scope)?;
        if name.is_empty() || name.contains(":=") {
            let problem = "is not the name of a parameter".to_owned();
            return Err(wrong(node, "name", &name, problem, places));
        }
        let attribute = places.required(node, "value").ok_or(Noted)?;
        let said = attribute.value();
        // Neither has substitutions, as there.
        let separator = node.attribute("value-sep");
        if separator == Some("") {
            let problem = "is empty, and separates nothing".to_owned();
            return Err(wrong(node, "value-sep", "value-sep", problem, places));
        }
        let ty = node.attribute("type").unwrap_or_default();
        if !ty.is_empty() && !parameter::TYPES.contains(&ty) {
            let offset = attribute_offset(node, "type");
            places.error(offset, ty, "is not a type".to_owned(), parameter::TYPES);
            return Err(Noted);
        }
        let is_early = node.has_tag_name("param") || !ty.is_empty() || separator.is_some();
        let read = match is_early {
            true => parameter::read(said, ty, separator, &mut |text| {
                let substituted = self.substituted(text, scope)?;
                Ok(Substituted { text: substituted, is_substituted: has_substitution(text) })
            }),
            // These read the text that is left of their substitutions.
            false => {
                let text = self.substituted(said, scope);
                text.and_then(|text| parameter::read_substituted(&text))
            }
        };
        match read {
            Ok(value) => Ok((name, value)),
            Err(Problem { at, word, problem, allowed }) => {
                let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
                places.error(places.inside(attribute, at), &word, problem, &allowed);
                Err(Noted)
            }
        }
    }

    /// What `set_parameter` and `set_parameters_from_file` set for all nodes.
    pub(super) fn set_parameters<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &mut Scope,
    ) -> Result<()> {
        let here = place(node, places);
        let set = if node.has_tag_name("set_parameter") {
            let (name, value) = self.parameter(node, places, scope)?;
            Inherited::Value(name, value, here)
        } else {
            let path = self.required(node, "filename", places, scope)?;
            if !self.world.is_file(Path::new(&path)) {
                return Err(wrong(node, "filename", &path, "is not a file".to_owned(), places));
            }
            Inherited::File(path.into(), here)
        };
        Arc::make_mut(&mut scope.parameters).push(set);
        Ok(())
    }

    /// The parameters of a node in their order, in which a later one counts: those of all nodes, and then its own.
    pub(super) fn parameters<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Vec<ParameterSource>> {
        let reader = match node.has_tag_name("composable_node") {
            true => Reader::Container,
            false => Reader::Node,
        };
        let inherited = scope.parameters.iter().map(|it| match it {
            Inherited::Value(name, value, place) => {
                let value = value.to_yaml(reader);
                ParameterSource::Assign(format!("{name}:={value}"), place.clone())
            }
            Inherited::File(path, place) => ParameterSource::File(path.clone(), place.clone()),
        });
        let mut all: Vec<ParameterSource> = inherited.collect();
        // What is inherited is written out for each, so it counts for each.
        let bytes = all.iter().map(|it| match it {
            ParameterSource::Assign(words, _) => words.len(),
            ParameterSource::File(path, _) => path.as_os_str().len(),
        });
        let bytes = bytes.sum();
        self.spend_at(node, bytes, places)?;
        for param in node.children().filter(|it| it.has_tag_name("param")) {
            match param.has_attribute("from") {
                true => all.push(self.parameter_file(param, places, scope)?),
                false => self.values(param, "", reader, places, scope, &mut all)?,
            }
        }
        Ok(all)
    }

    fn parameter_file<'a>(
        &mut self,
        param: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<ParameterSource> {
        for other in ["name", "value", "type", "value-sep"] {
            if param.has_attribute(other) {
                let problem = "has no place beside \"from\"".to_owned();
                places.error(attribute_offset(param, other), other, problem, &[]);
                return Err(Noted);
            }
        }
        if let Some(inner) = param.children().find(Node::is_element) {
            let problem = "has no place in a \"param\" with \"from\"".to_owned();
            let word = inner.tag_name().name();
            return Err(wrong(inner, "name", word, problem, places));
        }
        if self.yaml_truth(param, "allow_substs", places, scope)? == Some(true) {
            let problem = "is not supported: a file of parameters is taken as it is".to_owned();
            return Err(wrong(param, "allow_substs", "true", problem, places));
        }
        let path = self.required(param, "from", places, scope)?;
        if !self.world.is_file(Path::new(&path)) {
            return Err(wrong(param, "from", &path, "is not a file".to_owned(), places));
        }
        Ok(ParameterSource::File(path.into(), place(param, places)))
    }

    /// The values of a `param` and of those inside it; `above` is what stands before the name.
    fn values<'a>(
        &mut self,
        node: Node<'a, 'a>,
        above: &str,
        reader: Reader,
        places: &mut Places<'a>,
        scope: &Scope,
        all: &mut Vec<ParameterSource>,
    ) -> Result<()> {
        for other in ["from", "allow_substs"] {
            if node.has_attribute(other) {
                let problem =
                    "has its place in a \"param\" with \"from\" that is not inside another";
                return Err(wrong(node, other, other, problem.to_owned(), places));
            }
        }
        let mut inner = node.children().filter(Node::is_element).peekable();
        if inner.peek().is_none() {
            let (name, value) = self.parameter(node, places, scope)?;
            let assigned = format!("{above}{name}:={}", value.to_yaml(reader));
            all.push(ParameterSource::Assign(assigned, place(node, places)));
            return Ok(());
        }
        for other in ["value", "type", "value-sep"] {
            if node.has_attribute(other) {
                let problem = "has no place beside parameters inside".to_owned();
                return Err(wrong(node, other, other, problem, places));
            }
        }
        let name = self.required(node, "name", places, scope)?;
        let above = format!("{above}{name}.");
        for param in inner {
            self.values(param, &above, reader, places, scope, all)?;
        }
        Ok(())
    }
}
