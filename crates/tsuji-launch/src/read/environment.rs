//! Variables of the environment.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use tsuji_xml::{Node, Places};

use super::{Launch, Result, Scope, wrong};
use crate::substitution;
use crate::world::World;

impl<W: World + ?Sized> Launch<'_, W> {
    /// Sets what the `env` elements of a process say, and counts what it inherits.
    pub(super) fn variables<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &mut Scope,
    ) -> Result<()> {
        let env = scope.env.iter();
        let bytes = env.map(|(name, value)| name.len() + value.as_ref().map_or(0, String::len));
        self.spend_at(node, bytes.sum(), places)?;
        for env in node.children().filter(|it| it.has_tag_name("env")) {
            self.variable(env, places, scope)?;
        }
        Ok(())
    }

    /// Sets, takes away or lengthens a variable.
    pub(super) fn variable<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &mut Scope,
    ) -> Result<()> {
        let name = self.required(node, "name", places, scope)?;
        if name.is_empty() || name.contains(['=', '\0']) {
            let problem = "is not the name of a variable".to_owned();
            return Err(wrong(node, "name", &name, problem, places));
        }
        let value = match node.tag_name().name() {
            "unset_env" => None,
            "append_env" => {
                let value = self.required(node, "value", places, scope)?;
                let comes_first = self.yaml_truth(node, "prepend", places, scope)?.unwrap_or(false);
                let separator = self.optional(node, "separator", places, scope)?;
                let separator = separator.as_deref().unwrap_or(":");
                let old = substitution::variable(self.world, &scope.env, &name);
                Some(match old.map(OsString::into_string) {
                    None => value,
                    Some(Ok(old)) if comes_first => format!("{value}{separator}{old}"),
                    Some(Ok(old)) => format!("{old}{separator}{value}"),
                    Some(Err(_)) => {
                        let problem = substitution::NOT_UTF_8.to_owned();
                        return Err(wrong(node, "name", &name, problem, places));
                    }
                })
            }
            _ => Some(self.required(node, "value", places, scope)?),
        };
        self.spend_at(node, value.as_ref().map_or(0, String::len), places)?;
        Arc::make_mut(&mut scope.env).insert(name, value);
        Ok(())
    }

    /// Moves the logs of the nodes that follow, below the folder in which they would be.
    pub(super) fn log_folder<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &mut Scope,
    ) -> Result<()> {
        let said = self.required(node, "new_log_dir", places, scope)?;
        let set = |name: &str| {
            substitution::variable(self.world, &scope.env, name).filter(|it| !it.is_empty())
        };
        let base = set("ROS_LOG_DIR")
            .map(Into::into)
            .or_else(|| Some(Path::new(&set("ROS_HOME")?).join("log")))
            .or_else(|| Some(Path::new(&set("HOME")?).join(".ros/log")));
        let folder = match base {
            Some(base) => base.join(&said),
            None if said.starts_with('/') => said.into(),
            None => {
                let problem = "is below a folder that is not known: none of ROS_LOG_DIR, ROS_HOME, HOME is set";
                return Err(wrong(node, "new_log_dir", &said, problem.to_owned(), places));
            }
        };
        let folder = Some(folder.display().to_string());
        Arc::make_mut(&mut scope.env).insert("ROS_LOG_DIR".to_owned(), folder);
        Ok(())
    }
}
