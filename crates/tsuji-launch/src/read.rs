//! A launch file and those that it includes, read from top to bottom as ROS 2's launch does them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component as PathPart, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::names::{self, RemapRule};
use tsuji_msg::yaml::{python_float, python_integer};
use tsuji_xml::{Attribute, Kind, Node, Places, XmlError, XmlErrors, name_offset};

use crate::elements;
use crate::parameter::{Reader, Value};
use crate::plan::{
    Argument, Component, Output, ParameterSource, Patience, Place, Plan, Process, Respawn,
};
use crate::substitution::{
    self, Piece, Problem, Source, TRUTHS, YAML_TRUTHS, truth, unescaped, yaml_truth,
};
use crate::supervision::TIMEOUT_MAX;
use crate::words;
use crate::world::World;

mod environment;
mod foreign;
mod parameters;

/// The most bytes of a file.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// The most files of a launch, each counted as often as it is included.
pub const FILES_MAX: usize = 256;

/// The deepest that files include each other.
pub const INCLUDE_DEPTH_MAX: usize = 16;

/// The most processes and components of a launch.
pub const PROCESSES_MAX: usize = 1000;

/// The most bytes that all values of a launch have together.
pub const PLAN_BYTES_MAX: usize = 16 << 20;

const KIND: Kind = Kind {
    name: "a launch file",
    root: "launch",
    bytes_max: FILE_BYTES_MAX,
    elements_max: 20_000,
    attributes_max: 64,
    depth_max: 32,
};

/// Arguments that are settings of the launch itself, which no file needs to declare.
const SETTINGS: &[&str] =
    &["launch-prefix", "launch-prefix-filter", "sigkill_timeout", "sigterm_timeout"];

/// What the file at `file` asks for, where `arguments` are given, names with values.
///
/// All errors of a file are told, as far as they do not follow from each other.
pub fn plan<W: World + ?Sized>(
    world: &W,
    file: &Path,
    arguments: &[(String, String)],
) -> Result<Plan, XmlErrors> {
    let bytes = read_file(world, file)?;
    let mut launch = Launch {
        world,
        plan: Plan::default(),
        files: vec![file.to_path_buf()],
        files_read: 1,
        bytes: 0,
        containers: BTreeMap::new(),
        declared: vec![BTreeSet::new()],
        token: world.token(),
    };
    let mut scope =
        Scope { variables: Arc::new(arguments.iter().cloned().collect()), ..Scope::default() };
    tsuji_xml::read(&KIND, &file.display().to_string(), &bytes, |root, places| {
        launch.root(root, places, &mut scope);
        let declared = &launch.declared[0];
        let is_known = |name: &String| declared.contains(name) || SETTINGS.contains(&name.as_str());
        for (name, _) in arguments.iter().filter(|(name, _)| !is_known(name)) {
            // Where something was not read, what it declares is not known.
            if places.is_good() {
                let allowed: Vec<&str> = declared.iter().map(String::as_str).collect();
                let problem = "is not an argument of this file".to_owned();
                places.error(name_offset(root), name, problem, &allowed);
            }
        }
    })?;
    Ok(launch.plan)
}

/// The arguments that a file declares, as they are written there; those of files that it includes are not among them.
pub fn declared<W: World + ?Sized>(world: &W, file: &Path) -> Result<Vec<Argument>, XmlErrors> {
    let bytes = read_file(world, file)?;
    tsuji_xml::read(&KIND, &file.display().to_string(), &bytes, |root, places| {
        elements::check(root, places);
        let own = root.descendants().filter(|it| {
            it.has_tag_name("arg") && !it.parent().is_some_and(|it| it.has_tag_name("include"))
        });
        let said = |node: Node<'_, '_>, name: &str| node.attribute(name).map(str::to_owned);
        let mut arguments = Vec::new();
        for node in own {
            let Some(name) = places.required(node, "name") else { continue };
            let choices = node.children().filter_map(|it| said(it, "value"));
            arguments.push(Argument {
                name: unescaped(name.value()),
                default: said(node, "default"),
                description: unescaped(&said(node, "description").unwrap_or_default()),
                choices: choices.map(|it| unescaped(&it)).collect(),
            });
        }
        arguments
    })
}

/// The bytes of a launch file, unless it is in another language.
fn read_file<W: World + ?Sized>(world: &W, file: &Path) -> Result<Vec<u8>, XmlErrors> {
    let whole = |word: &str, problem: String| {
        XmlErrors::new(vec![XmlError {
            file: file.display().to_string().into(),
            line: 1,
            column: 1,
            word: word.to_owned(),
            problem,
            allowed: Vec::new(),
        }])
    };
    let name = file.file_name().map_or_else(|| "launch".into(), |it| it.to_string_lossy());
    let bytes =
        world.read(file).map_err(|why| whole("launch", format!("cannot be read: {why}")))?;
    match foreign::language(file, &bytes) {
        Some(language) => Err(whole(&name, foreign::problem(language))),
        None => Ok(bytes),
    }
}

/// The error is among those of the file.
struct Noted;

type Result<T, E = Noted> = std::result::Result<T, E>;

/// What a group may change for what is inside it.
#[derive(Clone, Debug, Default)]
struct Scope {
    // Shared with the scopes around it until one of them changes.
    variables: Arc<BTreeMap<String, String>>,
    env: Arc<BTreeMap<String, Option<String>>>,
    /// Empty, or beginning with a slash.
    namespace: String,
    remappings: Arc<Vec<String>>,
    parameters: Arc<Vec<Inherited>>,
}

/// A parameter that is set for all nodes.
#[derive(Clone, Debug)]
pub(crate) enum Inherited {
    Value(String, Value, Place),
    File(PathBuf, Place),
}

struct Launch<'w, W: World + ?Sized> {
    world: &'w W,
    plan: Plan,
    /// The file that is being read, below those that include it.
    files: Vec<PathBuf>,
    files_read: usize,
    bytes: usize,
    /// The full names of containers, and where they are.
    containers: BTreeMap<String, Place>,
    /// The arguments that each of these files declares, and those that it includes.
    declared: Vec<BTreeSet<String>>,
    token: String,
}

impl<W: World + ?Sized> Launch<'_, W> {
    fn root<'a>(&mut self, root: Node<'a, 'a>, places: &mut Places<'a>, scope: &mut Scope) {
        elements::check(root, places);
        if let Some(why) = root.attribute("deprecated") {
            let text = format!("this launch file is deprecated: {why}");
            self.plan.messages.push((text, place(root, places)));
        }
        // What is not understood is not acted on, not even in part.
        if places.is_good() {
            self.actions(root, places, scope);
        }
    }

    fn actions<'a>(&mut self, node: Node<'a, 'a>, places: &mut Places<'a>, scope: &mut Scope) {
        for child in node.children().filter(Node::is_element) {
            // What is wrong is noted, and the next may be right.
            let _ = self.action(child, places, scope);
        }
    }

    fn action<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &mut Scope,
    ) -> Result<()> {
        if !self.applies(node, places, scope)? {
            return Ok(());
        }
        match node.tag_name().name() {
            "arg" => self.argument(node, places, scope),
            "let" => {
                let name = self.required(node, "name", places, scope)?;
                let value = self.required(node, "value", places, scope)?;
                Arc::make_mut(&mut scope.variables).insert(name, value);
                Ok(())
            }
            "group" => self.group(node, places, scope),
            "reset" => self.reset(node, places, scope),
            "reset_env" => {
                scope.env = Arc::default();
                Ok(())
            }
            "log" => {
                let text = self.required(node, "message", places, scope)?;
                self.plan.messages.push((text, place(node, places)));
                Ok(())
            }
            "include" => self.include(node, places, scope),
            "push_ros_namespace" | "push-ros-namespace" => {
                let pushed = self.required(node, "namespace", places, scope)?;
                scope.namespace = self.namespace(node, &pushed, places, scope)?;
                Ok(())
            }
            "set_env" | "unset_env" | "append_env" => self.variable(node, places, scope),
            "set_ros_log_dir" => self.log_folder(node, places, scope),
            "set_remap" => {
                let rule = self.remapping(node, places, scope)?;
                Arc::make_mut(&mut scope.remappings).push(rule);
                Ok(())
            }
            "set_parameter" | "set_parameters_from_file" => {
                self.set_parameters(node, places, scope)
            }
            "node" => self.node(node, places, scope).map(drop),
            "node_container" => {
                let container = self.node(node, places, scope)?;
                let Some(container) = container else {
                    let problem = "needs a name, by which its components find it";
                    places.error(
                        name_offset(node),
                        "node_container",
                        problem.to_owned(),
                        &["name"],
                    );
                    return Err(Noted);
                };
                let here = place(node, places);
                if let Some(other) = self.containers.insert(container.clone(), here) {
                    let problem = format!(
                        "is a second container of this name, of which components would go into either; the first is at {other}"
                    );
                    return Err(wrong(node, "name", &container, problem, places));
                }
                self.components(node, &container, places, scope)
            }
            "load_composable_node" => {
                let target = self.required(node, "target", places, scope)?;
                // As launch has it, a namespace that is pushed says nothing of it.
                let container = match target.starts_with('/') {
                    true => target,
                    false => format!("/{target}"),
                };
                if let Err(error) = names::validate_topic(&container) {
                    return Err(wrong(
                        node,
                        "target",
                        &container,
                        format!("is refused: {error}"),
                        places,
                    ));
                }
                self.components(node, &container, places, scope)
            }
            "executable" => self.executable(node, places, scope),
            _ => Ok(()),
        }
    }

    fn group<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &mut Scope,
    ) -> Result<()> {
        let is_scoped = self.yaml_truth(node, "scoped", places, scope)?.unwrap_or(true);
        let forwards = self.yaml_truth(node, "forwarding", places, scope)?.unwrap_or(true);
        let around = is_scoped.then(|| scope.clone());
        let kept = self.kept(node, places, scope)?;
        if is_scoped && !forwards {
            *scope = Scope::default();
        }
        Arc::make_mut(&mut scope.variables).extend(kept);
        for child in node.children().filter(|it| it.is_element() && !it.has_tag_name("keep")) {
            // What is wrong is noted, and the next may be right.
            let _ = self.action(child, places, scope);
        }
        if let Some(around) = around {
            *scope = around;
        }
        Ok(())
    }

    /// Forgets all variables, and what is set for all nodes, which are variables to ROS 2 too.
    fn reset<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &mut Scope,
    ) -> Result<()> {
        let kept = self.kept(node, places, scope)?;
        let env = Arc::clone(&scope.env);
        let variables = Arc::new(kept.into_iter().collect());
        *scope = Scope { env, variables, ..Scope::default() };
        Ok(())
    }

    /// The variables of the `keep` elements of a group or a reset.
    fn kept<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Vec<(String, String)>> {
        let keeps = node.children().filter(|it| it.has_tag_name("keep"));
        let kept = keeps.map(|keep| {
            let name = self.required(keep, "name", places, scope)?;
            Ok((name, self.required(keep, "value", places, scope)?))
        });
        kept.collect()
    }

    fn argument<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &mut Scope,
    ) -> Result<()> {
        // Neither its name nor its choices have substitutions, as there.
        let name = unescaped(places.required(node, "name").ok_or(Noted)?.value());
        for declared in &mut self.declared {
            declared.insert(name.clone());
        }
        if !scope.variables.contains_key(&name) {
            let Some(default) = self.optional(node, "default", places, scope)? else {
                let problem = "is an argument without a default, and is not given";
                return Err(wrong(node, "name", &name, problem.to_owned(), places));
            };
            Arc::make_mut(&mut scope.variables).insert(name.clone(), default);
        }
        let mut choices = Vec::new();
        for choice in node.children().filter(Node::is_element) {
            choices.push(unescaped(places.required(choice, "value").ok_or(Noted)?.value()));
        }
        match scope.variables.get(&name) {
            Some(value) if !choices.is_empty() && !choices.contains(value) => {
                let allowed: Vec<&str> = choices.iter().map(String::as_str).collect();
                let problem = format!("is not a choice of the argument {name:?}");
                places.error(name_offset(node), value, problem, &allowed);
                Err(Noted)
            }
            _ => Ok(()),
        }
    }

    fn include<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &mut Scope,
    ) -> Result<()> {
        let said = self.required(node, "file", places, scope)?;
        let mut given = Vec::new();
        for child in node.children().filter(Node::is_element) {
            let name = self.required(child, "name", places, scope)?;
            let value = self.required(child, "value", places, scope)?;
            given.push((child, name.clone()));
            Arc::make_mut(&mut scope.variables).insert(name, value);
        }
        let path = plain(Path::new(&said));
        if let Some(at) = self.files.iter().position(|it| *it == path) {
            let circle = self.files[at..].iter().chain([&path]);
            let circle: Vec<String> = circle.map(|it| it.display().to_string()).collect();
            let problem = format!("includes itself: {}", circle.join(" → "));
            return Err(wrong(node, "file", &said, problem, places));
        }
        if INCLUDE_DEPTH_MAX <= self.files.len() {
            let problem = format!("is included too deep; the most is {INCLUDE_DEPTH_MAX} files");
            return Err(wrong(node, "file", &said, problem, places));
        }
        if FILES_MAX <= self.files_read {
            let problem = format!("is one file too many; a launch has at most {FILES_MAX}");
            return Err(wrong(node, "file", &said, problem, places));
        }
        let bytes = match self.world.read(&path) {
            Ok(bytes) => bytes,
            Err(why) => {
                return Err(wrong(node, "file", &said, format!("cannot be read: {why}"), places));
            }
        };
        if let Some(language) = foreign::language(&path, &bytes) {
            return Err(wrong(node, "file", &said, foreign::problem(language), places));
        }
        self.files_read += 1;
        self.files.push(path.clone());
        self.declared.push(BTreeSet::new());
        let read = tsuji_xml::read(&KIND, &path.display().to_string(), &bytes, |root, places| {
            self.root(root, places, scope);
        });
        self.files.pop();
        let declared = self.declared.pop().unwrap_or_default();
        if let Err(errors) = read {
            places.others(errors);
            return Err(Noted);
        }
        for (child, name) in given.iter().filter(|(_, name)| !declared.contains(name)) {
            let allowed: Vec<&str> = declared.iter().map(String::as_str).collect();
            let problem = format!("is not an argument of {}", path.display());
            places.error(name_offset(*child), name, problem, &allowed);
        }
        Ok(())
    }

    fn remapping<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<String> {
        let from = self.required(node, "from", places, scope)?;
        let to = self.required(node, "to", places, scope)?;
        let rule = format!("{from}:={to}");
        match rule.parse::<RemapRule>() {
            Ok(_) => Ok(rule),
            Err(error) => {
                Err(wrong(node, "from", &rule, format!("is no remapping: {error}"), places))
            }
        }
    }

    /// A `node` or `node_container`. Gives its full name if the file names it.
    fn node<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Option<String>> {
        let mut scope = scope.clone();
        let scope = &mut scope;
        self.variables(node, places, scope)?;
        let package = self.optional(node, "pkg", places, scope)?;
        let executable = self.required(node, "exec", places, scope)?;
        let program = match package {
            None => self.program(node, "exec", &executable, places, scope)?,
            Some(package) => {
                let prefix = substitution::package_prefix(self.world, &scope.env, &package);
                let prefix = prefix.map_err(|why| wrong(node, "pkg", &package, why, places))?;
                let folder = prefix.join("lib").join(&package);
                let program = folder.join(&executable);
                let is_plain = !executable.contains('/');
                if !is_plain || !self.world.is_executable(&program) {
                    let problem = format!("is not an executable in {}", folder.display());
                    return Err(wrong(node, "exec", &executable, problem, places));
                }
                program
            }
        };
        let mut argv = vec![program.display().to_string()];
        argv.extend(self.words(node, "args", places, scope)?);
        let mut ros = Vec::new();
        let name = self.optional(node, "name", places, scope)?;
        if let Some(name) = &name {
            if let Err(error) = names::validate_node(name) {
                return Err(wrong(node, "name", name, format!("is refused: {error}"), places));
            }
            ros.extend(["-r".to_owned(), format!("__node:={name}")]);
        }
        if let Some(pushed) = self.optional(node, "namespace", places, scope)? {
            scope.namespace = self.namespace(node, &pushed, places, scope)?;
        }
        if !scope.namespace.is_empty() {
            ros.extend(["-r".to_owned(), format!("__ns:={}", scope.namespace)]);
        }
        let parameters = self.parameters(node, places, scope)?;
        for source in &parameters {
            ros.extend(match source {
                ParameterSource::Assign(words, _) => ["-p".to_owned(), words.clone()],
                ParameterSource::File(path, _) => {
                    ["--params-file".to_owned(), path.display().to_string()]
                }
            });
        }
        self.spend_at(node, scope.remappings.iter().map(String::len).sum(), places)?;
        for remap in node.children().filter(|it| it.has_tag_name("remap")) {
            let rule = self.remapping(remap, places, scope)?;
            Arc::make_mut(&mut scope.remappings).push(rule);
        }
        for rule in scope.remappings.iter() {
            ros.extend(["-r".to_owned(), rule.clone()]);
        }
        // What stands in the file as words comes first, as there: of two remappings the first counts, of two values of a
        // parameter the last. It may end with "--".
        for words in [self.words(node, "ros_args", places, scope)?, ros] {
            if !words.is_empty() {
                argv.push("--ros-args".to_owned());
                argv.extend(words);
            }
        }
        let full_name = name.map(|name| match scope.namespace.as_str() {
            "/" | "" => format!("/{name}"),
            namespace => format!("{namespace}/{name}"),
        });
        let base = Path::new(&executable).file_name();
        let base = base.map_or_else(String::new, |it| it.to_string_lossy().into_owned());
        let label = self.optional(node, "exec_name", places, scope)?.unwrap_or(base);
        let mut process = self.process(node, &label, argv, places, scope)?;
        process.node.clone_from(&full_name);
        process.parameters = parameters;
        self.add(node, process, places)?;
        Ok(full_name)
    }

    fn executable<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<()> {
        let mut scope = scope.clone();
        self.variables(node, places, &mut scope)?;
        let scope = &scope;
        let argv = if self.yaml_truth(node, "shell", places, scope)?.unwrap_or(false) {
            vec!["/bin/sh".to_owned(), "-c".to_owned(), self.required(node, "cmd", places, scope)?]
        } else {
            places.required(node, "cmd").ok_or(Noted)?;
            let mut argv = self.words(node, "cmd", places, scope)?;
            let Some(first) = argv.first_mut() else {
                return Err(wrong(node, "cmd", "cmd", "names no program".to_owned(), places));
            };
            let program = self.program(node, "cmd", first, places, scope)?;
            *first = program.display().to_string();
            argv
        };
        let name = self.optional(node, "name", places, scope)?;
        let base = Path::new(&argv[0]).file_name().map(|it| it.to_string_lossy().into_owned());
        let process =
            self.process(node, &name.or(base).unwrap_or_default(), argv, places, scope)?;
        self.add(node, process, places)
    }

    /// A program that is not a package's: by a path beside the file, or in `PATH`.
    fn program<'a>(
        &self,
        node: Node<'a, 'a>,
        attribute: &str,
        said: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<PathBuf> {
        let folder = self.files.last().and_then(|it| it.parent()).unwrap_or_else(|| Path::new(""));
        let beside = folder.join(said);
        // A path without a slash would be looked for in PATH when it is run.
        let beside = match beside.parent() {
            Some(parent) if parent == Path::new("") => Path::new(".").join(beside),
            _ => beside,
        };
        let beside = Some(beside).filter(|it| !said.is_empty() && self.world.is_executable(it));
        let found = beside.or_else(|| {
            let is_name = !said.contains('/');
            is_name.then(|| substitution::in_path(self.world, &scope.env, said)).flatten()
        });
        found.ok_or_else(|| {
            let problem = match said.contains('/') {
                true => "is not an executable".to_owned(),
                false => format!("is not an executable beside {} or in PATH", places.file()),
            };
            wrong(node, attribute, said, problem, places)
        })
    }

    /// What all processes have.
    fn process<'a>(
        &mut self,
        node: Node<'a, 'a>,
        label: &str,
        mut argv: Vec<String>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Process> {
        let mut prefix = self.prefix(node, places, scope)?;
        if let Some(first) = prefix.first_mut() {
            let program = self.program(node, "launch-prefix", first, places, scope)?;
            *first = program.display().to_string();
            argv.splice(0..0, prefix);
        }
        let said = self.optional(node, "output", places, scope)?;
        // As `ros2 launch --show-all-subprocesses-output` sets it.
        let output =
            substitution::variable(self.world, &scope.env, "OVERRIDE_LAUNCH_PROCESS_OUTPUT");
        let output = output.map(|it| it.to_string_lossy().into_owned());
        let output = match output.or(said).as_deref() {
            None => Output::default(),
            Some("screen") => Output::Screen,
            Some("log") => Output::Log,
            Some("both") => Output::Both,
            Some(word) => {
                let offset = attribute_offset(node, "output");
                places.error(offset, word, "is not an output".to_owned(), Output::WORDS);
                return Err(Noted);
            }
        };
        if self.yaml_truth(node, "emulate_tty", places, scope)? == Some(true) {
            let problem = "is not supported: what processes print goes through a pipe; \
                           RCUTILS_COLORIZED_OUTPUT=1 keeps the colours of nodes";
            return Err(wrong(node, "emulate_tty", "true", problem.to_owned(), places));
        }
        let respawns = self.yaml_truth(node, "respawn", places, scope)?.unwrap_or(false);
        let delay = self.seconds(node, "respawn_delay", places, scope)?;
        let retries_max = match self.optional(node, "respawn_max_retries", places, scope)? {
            None => None,
            Some(word) => match python_integer(&word) {
                Some(-1) => None,
                Some(number) if u32::try_from(number).is_ok() => u32::try_from(number).ok(),
                _ => {
                    let problem =
                        "is not a number of retries; it is 0 or more, or -1 for any number";
                    let problem = problem.to_owned();
                    return Err(wrong(node, "respawn_max_retries", &word, problem, places));
                }
            },
        };
        let shuts_down = match self.optional(node, "on_exit", places, scope)?.as_deref() {
            None => false,
            Some("shutdown") => true,
            Some(word) => {
                let offset = attribute_offset(node, "on_exit");
                places.error(offset, word, "is not an end".to_owned(), &["shutdown"]);
                return Err(Noted);
            }
        };
        let default = Patience::default();
        let until_terminate = self.timeout(node, "sigterm_timeout", places, scope)?;
        let until_kill = self.timeout(node, "sigkill_timeout", places, scope)?;
        let label: String = label.chars().filter(|it| !it.is_control()).take(100).collect();
        Ok(Process {
            label: format!("{label}-{}", self.plan.processes.len() + 1),
            argv,
            env: (*scope.env).clone(),
            cwd: self.optional(node, "cwd", places, scope)?.map(PathBuf::from),
            output,
            respawn: respawns.then(|| Respawn { delay: delay.unwrap_or_default(), retries_max }),
            shuts_down,
            patience: Patience {
                until_terminate: until_terminate.unwrap_or(default.until_terminate),
                until_kill: until_kill.unwrap_or(default.until_kill),
            },
            node: None,
            parameters: Vec::new(),
            place: place(node, places),
        })
    }

    fn add<'a>(
        &mut self,
        node: Node<'a, 'a>,
        process: Process,
        places: &mut Places<'a>,
    ) -> Result<()> {
        if PROCESSES_MAX <= self.plan.processes.len() {
            let problem =
                format!("is one too many; a launch has at most {PROCESSES_MAX} processes");
            places.error(name_offset(node), node.tag_name().name(), problem, &[]);
            return Err(Noted);
        }
        if process.argv.iter().any(|it| it.contains('\0')) {
            let problem = "has a zero byte in an argument".to_owned();
            places.error(name_offset(node), node.tag_name().name(), problem, &[]);
            return Err(Noted);
        }
        self.spend_at(node, process.argv.iter().map(String::len).sum(), places)?;
        self.plan.processes.push(process);
        Ok(())
    }

    fn components<'a>(
        &mut self,
        node: Node<'a, 'a>,
        container: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<()> {
        for child in node.children().filter(|it| it.has_tag_name("composable_node")) {
            if self.applies(child, places, scope)? {
                self.component(child, container, places, scope)?;
            }
        }
        Ok(())
    }

    fn component<'a>(
        &mut self,
        node: Node<'a, 'a>,
        container: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<()> {
        let package = self.required(node, "pkg", places, scope)?;
        let plugin = self.required(node, "plugin", places, scope)?;
        let name = self.optional(node, "name", places, scope)?.unwrap_or_default();
        if !name.is_empty()
            && let Err(error) = names::validate_node(&name)
        {
            return Err(wrong(node, "name", &name, format!("is refused: {error}"), places));
        }
        let namespace = match self.optional(node, "namespace", places, scope)? {
            Some(pushed) => self.namespace(node, &pushed, places, scope)?,
            None => scope.namespace.clone(),
        };
        let parameters = self.parameters(node, places, scope)?;
        self.spend_at(node, scope.remappings.iter().map(String::len).sum(), places)?;
        let mut remappings = (*scope.remappings).clone();
        let mut extra = Vec::new();
        for child in node.children() {
            match child.tag_name().name() {
                "remap" => remappings.push(self.remapping(child, places, scope)?),
                "extra_arg" => {
                    let (name, value) = self.parameter(child, places, scope)?;
                    let assigned = format!("{name}:={}", value.to_yaml(Reader::Container));
                    extra.push((assigned, place(child, places)));
                }
                _ => {}
            }
        }
        if PROCESSES_MAX <= self.plan.components.len() {
            let problem =
                format!("is one too many; a launch has at most {PROCESSES_MAX} components");
            places.error(name_offset(node), "composable_node", problem, &[]);
            return Err(Noted);
        }
        let (container, place) = (container.to_owned(), place(node, places));
        self.plan.components.push(Component {
            container,
            package,
            plugin,
            name,
            namespace,
            remappings,
            parameters,
            extra,
            place,
        });
        Ok(())
    }

    /// `pushed` below the namespace that is in force, or in its place if it begins with a slash.
    fn namespace<'a>(
        &self,
        node: Node<'a, 'a>,
        pushed: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<String> {
        let shortened = pushed.trim_end_matches('/');
        let full = match shortened {
            "" if pushed.is_empty() && !scope.namespace.is_empty() => {
                return Ok(scope.namespace.clone());
            }
            "" => return Ok("/".to_owned()),
            pushed if pushed.starts_with('/') => pushed.to_owned(),
            pushed => format!("{}/{pushed}", scope.namespace.trim_end_matches('/')),
        };
        match names::validate_namespace(&full) {
            Ok(()) => Ok(full),
            Err(error) => {
                Err(wrong(node, "namespace", pushed, format!("is refused: {error}"), places))
            }
        }
    }

    fn applies<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<bool> {
        if node.has_attribute("if") && node.has_attribute("unless") {
            let problem = "has no place beside \"if\"".to_owned();
            return Err(wrong(node, "unless", "unless", problem, places));
        }
        let holds = self.truth(node, "if", places, scope)?.unwrap_or(true);
        let hinders = self.truth(node, "unless", places, scope)?.unwrap_or(false);
        Ok(holds && !hinders)
    }

    fn truth<'a>(
        &mut self,
        node: Node<'a, 'a>,
        name: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Option<bool>> {
        let Some(word) = self.optional(node, name, places, scope)? else { return Ok(None) };
        let value = truth(&word);
        if value.is_none() {
            let problem = "is not a truth value".to_owned();
            places.error(attribute_offset(node, name), &word, problem, &TRUTHS);
            return Err(Noted);
        }
        Ok(value)
    }

    /// A truth value that is not a condition's, which YAML reads.
    fn yaml_truth<'a>(
        &mut self,
        node: Node<'a, 'a>,
        name: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Option<bool>> {
        let Some(word) = self.optional(node, name, places, scope)? else { return Ok(None) };
        let value = yaml_truth(&word);
        if value.is_none() {
            let problem = "is not a truth value".to_owned();
            places.error(attribute_offset(node, name), &word, problem, &YAML_TRUTHS);
            return Err(Noted);
        }
        Ok(value)
    }

    /// What stands before the words of a process: that of its element, or else of the variable of this name.
    fn prefix<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Vec<String>> {
        let said = match self.optional(node, "launch-prefix", places, scope)? {
            Some(said) => said,
            None => {
                if scope.variables.get("launch-prefix-filter").is_some_and(|it| !it.is_empty()) {
                    let problem = "is a variable that is not supported; launch-prefix can stand at each element";
                    places.error(
                        name_offset(node),
                        "launch-prefix-filter",
                        problem.to_owned(),
                        &[],
                    );
                    return Err(Noted);
                }
                scope.variables.get("launch-prefix").cloned().unwrap_or_default()
            }
        };
        // Here a substitution may give several words, as there.
        words::split(&[Piece::Text(said)]).map_err(|quote| {
            let problem = "is a quote that is not closed".to_owned();
            wrong(node, "launch-prefix", &quote.to_string(), problem, places)
        })
    }

    /// A time of an element, or else of the variable of this name.
    fn timeout<'a>(
        &mut self,
        node: Node<'a, 'a>,
        name: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Option<Duration>> {
        match self.seconds(node, name, places, scope)? {
            Some(seconds) => Ok(Some(seconds)),
            None => {
                let said = scope.variables.get(name);
                said.map(|said| duration(node, name, said, places)).transpose()
            }
        }
    }

    fn seconds<'a>(
        &mut self,
        node: Node<'a, 'a>,
        name: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Option<Duration>> {
        let Some(word) = self.optional(node, name, places, scope)? else { return Ok(None) };
        duration(node, name, &word, places).map(Some)
    }

    fn required<'a>(
        &mut self,
        node: Node<'a, 'a>,
        name: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<String> {
        let attribute = places.required(node, name).ok_or(Noted)?;
        Ok(substitution::joined(&self.pieces(attribute, places, scope)?))
    }

    fn optional<'a>(
        &mut self,
        node: Node<'a, 'a>,
        name: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Option<String>> {
        let Some(attribute) = node.attribute_node(name) else { return Ok(None) };
        Ok(Some(substitution::joined(&self.pieces(attribute, places, scope)?)))
    }

    /// A value split as a shell splits it; none if it is not there.
    fn words<'a>(
        &mut self,
        node: Node<'a, 'a>,
        name: &str,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Vec<String>> {
        let Some(attribute) = node.attribute_node(name) else { return Ok(Vec::new()) };
        let pieces = self.pieces(attribute, places, scope)?;
        words::split(&pieces).map_err(|quote| {
            let problem = "is a quote that is not closed".to_owned();
            wrong(node, name, &quote.to_string(), problem, places)
        })
    }

    fn source<'s>(&'s self, scope: &'s Scope) -> Source<'s, W> {
        Source {
            world: self.world,
            variables: &scope.variables,
            env: &scope.env,
            parameters: &scope.parameters,
            file: self.files.last().map_or_else(|| Path::new(""), PathBuf::as_path),
            token: &self.token,
        }
    }

    /// A text with its substitutions made.
    fn substituted(&mut self, text: &str, scope: &Scope) -> Result<String, Problem> {
        let pieces = substitution::pieces(text, &self.source(scope))?;
        let text = substitution::joined(&pieces);
        self.spend(text.len()).map_err(|problem| Problem {
            at: 0,
            word: "value".to_owned(),
            problem,
            allowed: Vec::new(),
        })?;
        Ok(text)
    }

    fn pieces<'a>(
        &mut self,
        attribute: Attribute<'a, 'a>,
        places: &mut Places<'a>,
        scope: &Scope,
    ) -> Result<Vec<Piece>> {
        let pieces = substitution::pieces(attribute.value(), &self.source(scope));
        let pieces = pieces.and_then(|pieces| {
            let bytes = substitution::joined(&pieces).len();
            let word = attribute.name().to_owned();
            self.spend(bytes).map_err(|problem| Problem {
                at: 0,
                word,
                problem,
                allowed: Vec::new(),
            })?;
            Ok(pieces)
        });
        pieces.map_err(|Problem { at, word, problem, allowed }| {
            let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
            let offset = places.inside(attribute, at);
            places.error(offset, &word, problem, &allowed);
            Noted
        })
    }

    /// Counts what is written out for an element.
    fn spend_at<'a>(
        &mut self,
        node: Node<'a, 'a>,
        bytes: usize,
        places: &mut Places<'a>,
    ) -> Result<()> {
        self.spend(bytes).map_err(|problem| {
            places.error(name_offset(node), node.tag_name().name(), problem, &[]);
            Noted
        })
    }

    /// Counts what values take.
    fn spend(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes <= PLAN_BYTES_MAX {
            true => Ok(()),
            false => Err(format!(
                "is where the values of the launch have more than {PLAN_BYTES_MAX} bytes"
            )),
        }
    }
}

/// Seconds, as Python reads a number.
fn duration<'a>(
    node: Node<'a, 'a>,
    name: &str,
    word: &str,
    places: &mut Places<'a>,
) -> Result<Duration> {
    let duration = python_float(word).and_then(|it| Duration::try_from_secs_f64(it).ok());
    duration.filter(|it| *it <= TIMEOUT_MAX).ok_or_else(|| {
        let problem = format!("is not a time; it is 0 to {} seconds", TIMEOUT_MAX.as_secs());
        wrong(node, name, word, problem, places)
    })
}

/// Notes that the value of an attribute is wrong.
fn wrong<'a>(
    node: Node<'a, 'a>,
    attribute: &str,
    word: &str,
    problem: String,
    places: &mut Places<'a>,
) -> Noted {
    places.error(attribute_offset(node, attribute), word, problem, &[]);
    Noted
}

fn attribute_offset(node: Node<'_, '_>, name: &str) -> usize {
    node.attribute_node(name).map_or_else(|| name_offset(node), |it| it.range_value().start)
}

fn place<'a>(node: Node<'a, 'a>, places: &Places<'a>) -> Place {
    Place { file: places.file().clone(), line: places.line_of(name_offset(node)) }
}

/// A path without `.` and, as far as that needs no look at the disk, without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            PathPart::CurDir => {}
            PathPart::ParentDir
                if matches!(plain.components().next_back(), Some(PathPart::Normal(_))) =>
            {
                plain.pop();
            }
            _ => plain.push(part),
        }
    }
    plain
}
