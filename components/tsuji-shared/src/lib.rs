//! tsuji as one shared library, and components from other shared libraries that are linked with it.
//!
//! In one process flows go by pointer among those who share one loaded copy of tsuji, since what it knows of the process are
//! its statics, and a message's type is known by its identity in that copy. So a container and its components are linked with
//! this library and not with copies of their own. Rust promises no layout: both must come of the same sources, compiler and
//! flags, which [`BUILD`] stands for. What is of another is refused.
//!
//! A library of components is a `cdylib` that depends on this crate, is built with `-C prefer-dynamic`, and says what it
//! has by [`export_components!`]:
//!
//! ```ignore
//! use tsuji_shared::tsuji::component::Registered;
//!
//! fn components() -> Registered {
//!     Registered::new().with("my_robot", "Listener", listener)
//! }
//! tsuji_shared::export_components!(components);
//! ```
//!
//! It carries nothing itself.

pub use {tsuji, tsuji_interfaces, tsuji_msg};

mod libraries;
pub use libraries::{Libraries, PATH_VARIABLE};

mod library;
pub use library::{ABI, ComponentLibrary};

use tsuji::component::{CONTAINER_NAME, Container, builtin};
use tsuji::{Context, Result};

/// Of which build this library is: its version, the compiler's, and a number that is another for other sources or flags.
pub const BUILD: &str = env!("TSUJI_BUILD");

/// Is a container, with the arguments of the program, until it is told to end: of the components that ship with tsuji, and
/// of those in shared libraries. Their log goes to the terminal and to `/rosout`.
pub fn run_container() -> Result<()> {
    let context = Context::builder().args(std::env::args().skip(1)).build()?;
    context.shutdown_on_signals()?;
    context.logging().install()?;
    let container = Container::builder(&context, CONTAINER_NAME)
        .source(builtin())
        .source(Libraries::new())
        .build()?;
    println!("Container '{}'", container.node().fully_qualified_name());
    container.spin()
}
