//! Finds the compiler and linker that make BPF objects, and runs them.
//!
//! There are two routes to a BPF object, and a machine usually offers only one of them:
//!
//! - [`Route::Rustup`]: rustup's nightly with the component `rust-src`; `core` is built from source.
//! - [`Route::Debian`]: Debian's own `rustc`, which comes with `core` already built for the BPF target.
//!
//! Both end in `bpf-linker`. Build scripts call [`build`]; development tasks call [`detect`] and run what it finds.

mod compiler;
mod environment;
mod linker;
mod missing;
mod note;
mod places;
mod route;
mod script;
mod toolchain;

pub use compiler::{Compiler, CompilerPart};
pub use environment::scrub;
pub use linker::{LINKER_NAME, LINKER_VERSION, Linker, LinkerProblem, Version};
pub use missing::Missing;
pub use places::{on_path, target_root, tools_dir};
pub use route::{ROUTE_VARIABLE, Route, UnknownRoute};
pub use script::build;
pub use toolchain::{BPF_TARGET, Toolchain, detect};
