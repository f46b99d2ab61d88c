//! A compiler and a linker together, and the commands that they make.

use std::{fmt, path::Path, process::Command};

use crate::{Compiler, Linker, Missing, Route, scrub};

/// The target triple of BPF objects: 64-bit, little-endian.
pub const BPF_TARGET: &str = "bpfel-unknown-none";

/// The package that holds the BPF programs.
const PACKAGE: &str = "limiter-ebpf";

/// A complete toolchain for BPF objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    compiler: Compiler,
    linker: Linker,
}

/// Looks for a complete toolchain: rustup's first, then Debian's, or the one route that is `forced`.
///
/// `tools` is the directory of the project's own tools, see [`tools_dir`](crate::tools_dir).
///
/// # Errors
///
/// When no route is complete: what each lacks.
pub fn detect(tools: &Path, forced: Option<Route>) -> Result<Toolchain, Missing> {
    let linker = Linker::find(tools);
    let mut compilers = Vec::new();
    for route in Route::ALL
        .into_iter()
        .filter(|route| forced.is_none_or(|forced| forced == *route))
    {
        match (Compiler::find(route), &linker) {
            (Ok(compiler), Ok(linker)) => {
                return Ok(Toolchain {
                    compiler,
                    linker: linker.clone(),
                });
            }
            (Ok(_), Err(_)) => compilers.push((route, Vec::new())),
            (Err(parts), _) => compilers.push((route, parts)),
        }
    }
    Err(Missing {
        compilers,
        linker: linker.err(),
    })
}

impl Toolchain {
    /// The compiler.
    #[must_use]
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// The linker.
    #[must_use]
    pub fn linker(&self) -> &Linker {
        &self.linker
    }

    /// One line: which compiler and which linker, their versions and where they come from.
    #[must_use]
    pub fn describe(&self) -> String {
        self.to_string()
    }

    /// The command that builds one of the BPF programs below `target_dir`.
    #[must_use]
    pub fn build_command(&self, workspace: &Path, target_dir: &Path, bin: &str) -> Command {
        let mut command = self.command("cargo", "build", workspace, target_dir);
        command.args(["--bin", bin]);
        command
    }

    /// The command that runs clippy on all BPF programs.
    #[must_use]
    pub fn clippy_command(&self, workspace: &Path, target_dir: &Path) -> Command {
        // Started directly: `cargo clippy` prefers a cargo-clippy in cargo's home, which may be another toolchain's.
        let mut command = self.command("cargo-clippy", "clippy", workspace, target_dir);
        command
            .env("CARGO", self.compiler.program("cargo"))
            .arg("--bins");
        command
    }

    fn command(
        &self,
        program: &str,
        subcommand: &str,
        workspace: &Path,
        target_dir: &Path,
    ) -> Command {
        let mut command = Command::new(self.compiler.program(program));
        scrub(&mut command)
            .current_dir(workspace)
            .env("RUSTC", self.compiler.program("rustc"))
            .env("CARGO_ENCODED_RUSTFLAGS", rustflags(self.linker.path()))
            .args([
                subcommand,
                "--release",
                "--locked",
                "--package",
                PACKAGE,
                "--target",
                BPF_TARGET,
            ])
            .arg("--target-dir")
            .arg(target_dir);
        match self.compiler.route() {
            Route::Rustup => command.arg("-Zbuild-std=core"),
            // A stable compiler refuses the unstable features that any BPF program needs.
            Route::Debian => command.env("RUSTC_BOOTSTRAP", "1"),
        };
        command
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.compiler, self.linker)
    }
}

/// The flags of every BPF program, in cargo's encoding.
fn rustflags(linker: &Path) -> String {
    [
        &*format!("-Clinker={}", linker.display()),
        // The instruction set of kernel 5.1, which has the 32-bit ALU and the atomics.
        "-Ctarget-cpu=v3",
        // BTF is made from the debug information.
        "-Cdebuginfo=2",
        "-Clink-arg=--btf",
        // Packets are not aligned, and the kernel allows misaligned loads where this runs.
        "-Clink-arg=--cpu-features=+alu32,+allows-misaligned-mem-access",
    ]
    .join("\x1f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_name_the_linker_and_are_separated_for_cargo() {
        let flags = rustflags(Path::new("/a directory/bpf-linker"));
        let mut flags = flags.split('\x1f');
        assert_eq!(flags.next(), Some("-Clinker=/a directory/bpf-linker"));
        assert!(flags.any(|flag| flag == "-Clink-arg=--btf"));
    }
}
