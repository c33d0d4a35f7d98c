//! What the build of the library depends on, as numbers: what has the same ones is the same.

use std::error::Error;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::sources::Sources;
use crate::{OFF, c_flags};

pub(crate) struct Recipe {
    way: String,
    key: String,
}

impl Recipe {
    pub(crate) fn new(sources: &Sources) -> Result<Self, Box<dyn Error>> {
        let mut hasher = DefaultHasher::new();
        // How the flags and options are used.
        include_str!("build.rs").hash(&mut hasher);
        (OFF, c_flags()).hash(&mut hasher);
        for name in ["TARGET", "HOST"] {
            env::var(name)?.hash(&mut hasher);
        }
        let compiler = cc::Build::new().get_compiler();
        hash_program(compiler.path(), &mut hasher);
        hash_program(Path::new("cmake"), &mut hasher);
        hash_environment(&mut hasher);
        sources.keys().for_each(|path| path.hash(&mut hasher));
        let way = number(&hasher);
        sources.values().for_each(|bytes| bytes.hash(&mut hasher));
        Ok(Self { way, key: number(&hasher) })
    }

    /// How it is built: with which compiler and flags, and which files there are.
    pub(crate) fn way(&self) -> &str {
        &self.way
    }

    /// How it is built, and from what.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

fn number(hasher: &DefaultHasher) -> String {
    format!("{:016x}", hasher.finish())
}

/// A compiler can be a script that calls another one with flags, which its version does not tell.
fn hash_program(program: &Path, hasher: &mut DefaultHasher) {
    program.hash(hasher);
    fs::read(program).ok().hash(hasher);
    let version = Command::new(program).arg("--version").output();
    version.ok().map(|it| it.stdout).hash(hasher);
}

/// What the compiler and CMake, with the files that it names, are told by the environment. The flags of the compiler are known
/// already.
fn hash_environment(hasher: &mut DefaultHasher) {
    let told = ["CMAKE", "CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LDFLAGS"];
    let is_told = |name: &OsStr| {
        name.to_str().is_some_and(|it| it.starts_with("CMAKE_") || told.contains(&it))
    };
    let mut variables: Vec<_> = env::vars_os().filter(|(name, _)| is_told(name)).collect();
    variables.sort();
    for (name, value) in variables {
        fs::read(&value).ok().hash(hasher);
        (name, value).hash(hasher);
    }
}
