//! What the machine has: everything that set-up decides by, looked up once.

use std::{env, fs, os::unix::fs::MetadataExt as _, process::Command};

use anyhow::{Context as _, Result};
use bpf_toolchain::{Compiler, CompilerPart, Linker, Route, on_path};

use super::needs::Need;
use crate::{process, workspace::Workspace};

/// What the machine has.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The route that the environment asks for.
    pub(crate) forced: Option<Route>,
    /// The compiler of rustup's route.
    pub(crate) rustup: CompilerFacts,
    /// The compiler of Debian's route.
    pub(crate) debian: CompilerFacts,
    /// Whether there is a usable linker.
    pub(crate) linker: bool,
    /// The host's own toolchain.
    pub(crate) host: Host,
    /// The programs that are not on the search path.
    pub(crate) absent_programs: Vec<&'static str>,
    /// What can install something.
    pub(crate) installers: Installers,
    /// Whether a package of Debian's is there.
    pub(crate) is_installed: fn(&str) -> bool,
}

/// What is known of one route's compiler.
#[derive(Clone, Debug)]
pub(crate) struct CompilerFacts {
    /// Its parts that are absent; none if it is complete.
    pub(crate) lacks: Vec<CompilerPart>,
    /// The major version of its LLVM, if a linker is to be built for it.
    pub(crate) llvm: Option<u32>,
    /// Whether it has clippy.
    pub(crate) clippy: bool,
}

/// What is known of the toolchain that compiles for the host.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) origin: Origin,
    pub(crate) clippy: bool,
    pub(crate) rustfmt: bool,
}

/// Where the host's toolchain comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The named toolchain of rustup.
    Rustup(String),
    /// Debian's packages.
    Debian,
    /// Something else.
    Unknown,
}

/// The programs that can install something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Installers {
    pub(crate) apt: bool,
    pub(crate) rustup: bool,
    pub(crate) binstall: bool,
}

impl Facts {
    pub(crate) fn look(workspace: &Workspace, needs: &[Need]) -> Result<Self> {
        let linker = Linker::find(&workspace.tools()).is_ok();
        Ok(Self {
            forced: Route::forced()?,
            rustup: CompilerFacts::look(Route::Rustup, !linker),
            debian: CompilerFacts::look(Route::Debian, !linker),
            linker,
            host: Host::look(workspace),
            absent_programs: absent_programs(needs),
            installers: Installers {
                apt: has_program("apt-get"),
                rustup: has_program("rustup"),
                binstall: has_program("cargo-binstall"),
            },
            is_installed,
        })
    }

    /// What is known of one route's compiler.
    pub(crate) fn compiler(&self, route: Route) -> &CompilerFacts {
        match route {
            Route::Rustup => &self.rustup,
            Route::Debian => &self.debian,
        }
    }
}

impl CompilerFacts {
    /// Asks for the LLVM only on demand, because that costs a process.
    fn look(route: Route, ask_for_llvm: bool) -> Self {
        let compiler = Compiler::find(route);
        Self {
            llvm: compiler
                .as_ref()
                .ok()
                .filter(|_| ask_for_llvm)
                .and_then(Compiler::llvm_major),
            lacks: compiler.err().unwrap_or_default(),
            clippy: Compiler::program_of(route, "cargo-clippy").is_some(),
        }
    }
}

impl Host {
    fn look(workspace: &Workspace) -> Self {
        let has = |name| workspace.host_program(name).is_file();
        Self {
            origin: match env::var("RUSTUP_TOOLCHAIN") {
                _ if workspace.host_program("cargo").starts_with("/usr/bin") => Origin::Debian,
                Ok(toolchain) => Origin::Rustup(toolchain),
                Err(_) => Origin::Unknown,
            },
            clippy: has("cargo-clippy") && has("clippy-driver"),
            rustfmt: has("cargo-fmt") && has("rustfmt"),
        }
    }
}

fn has_program(name: &str) -> bool {
    on_path(name).next().is_some()
}

fn absent_programs(needs: &[Need]) -> Vec<&'static str> {
    let names = needs.iter().filter_map(|need| match need {
        Need::Program(program) => Some(program.name),
        _ => None,
    });
    names.filter(|name| !has_program(name)).collect()
}

/// Whether one of Debian's packages is installed.
fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status}", package]);
    process::printed(&mut query).is_some_and(|status| status == "installed")
}

/// Whether this program runs as root: `/proc/self` belongs to the effective user.
pub(crate) fn is_root() -> Result<bool> {
    let owner = fs::metadata("/proc/self")
        .context("cannot read /proc/self, which tells the user")?
        .uid();
    Ok(owner == 0)
}
