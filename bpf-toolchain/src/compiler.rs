//! The compiler: which rustc can compile for the BPF target.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{BPF_TARGET, Route, on_path};

/// Where Debian's compiler lies, and nobody else's.
const DEBIAN_BIN: &str = "/usr/bin";

/// A rustc and a cargo that have what it takes to compile `core` programs for the BPF target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    route: Route,
    bin: PathBuf,
}

impl Compiler {
    /// Looks for the compiler of one route.
    ///
    /// # Errors
    ///
    /// The parts of it that are absent.
    pub fn find(route: Route) -> Result<Self, Vec<CompilerPart>> {
        match route {
            Route::Rustup => find_rustup(),
            Route::Debian => find_debian(),
        }
    }

    /// Where one of a route's programs lies, if it is there: also where the compiler is not complete.
    #[must_use]
    pub fn program_of(route: Route, name: &str) -> Option<PathBuf> {
        let bin = match route {
            Route::Rustup => nightly_bin(&on_path("rustup").next()?)?,
            Route::Debian => PathBuf::from(DEBIAN_BIN),
        };
        Some(bin.join(name)).filter(|program| program.is_file())
    }

    /// The route it belongs to.
    #[must_use]
    pub fn route(&self) -> Route {
        self.route
    }

    /// The path of one of its programs: `rustc`, `cargo`, `cargo-clippy`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// The major version of its LLVM: the linker's must not be older.
    #[must_use]
    pub fn llvm_major(&self) -> Option<u32> {
        llvm_major(&self.verbose_version()?)
    }

    /// What `rustc -vV` prints.
    fn verbose_version(&self) -> Option<String> {
        let output = Command::new(self.program("rustc"))
            .arg("-vV")
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.verbose_version().unwrap_or_default();
        let name = version.lines().next().unwrap_or("rustc of unknown version");
        let llvm = field(&version, "LLVM version").unwrap_or("unknown");
        let origin = match self.route {
            Route::Rustup => "rustup's nightly with rust-src",
            Route::Debian => "Debian's packages",
        };
        write!(f, "{name}, LLVM {llvm}, from {origin}")
    }
}

fn llvm_major(verbose_version: &str) -> Option<u32> {
    field(verbose_version, "LLVM version")?
        .split('.')
        .next()?
        .parse()
        .ok()
}

fn field<'a>(verbose_version: &'a str, name: &str) -> Option<&'a str> {
    let line = verbose_version
        .lines()
        .find_map(|line| line.strip_prefix(name))?;
    line.strip_prefix(": ")
}

fn find_rustup() -> Result<Compiler, Vec<CompilerPart>> {
    let Some(rustup) = on_path("rustup").next() else {
        return Err(vec![CompilerPart::Rustup]);
    };
    let Some(bin) = nightly_bin(&rustup) else {
        return Err(vec![CompilerPart::Nightly, CompilerPart::RustSrc]);
    };
    let core = bin.join("../lib/rustlib/src/rust/library/core/src/lib.rs");
    if core.is_file() {
        Ok(Compiler {
            route: Route::Rustup,
            bin,
        })
    } else {
        Err(vec![CompilerPart::RustSrc])
    }
}

/// The directory of nightly's programs. They are called directly, so that no proxy picks another toolchain.
fn nightly_bin(rustup: &Path) -> Option<PathBuf> {
    let output = Command::new(rustup)
        .args(["which", "--toolchain", "nightly", "rustc"])
        .output()
        .ok()?;
    let rustc = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    let bin = rustc.parent()?;
    (output.status.success() && bin.join("cargo").is_file()).then(|| bin.to_owned())
}

fn find_debian() -> Result<Compiler, Vec<CompilerPart>> {
    let bin = PathBuf::from(DEBIAN_BIN);
    let core = bin.join("../lib/rustlib").join(BPF_TARGET).join("lib");
    let mut absent = Vec::new();
    if !bin.join("rustc").is_file() {
        absent.push(CompilerPart::DebianRustc);
    }
    if !bin.join("cargo").is_file() {
        absent.push(CompilerPart::DebianCargo);
    }
    if !holds_core(&core) {
        absent.push(CompilerPart::DebianCore);
    }
    if absent.is_empty() {
        Ok(Compiler {
            route: Route::Debian,
            bin,
        })
    } else {
        Err(absent)
    }
}

fn holds_core(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libcore-") && name.ends_with(".rlib")
    })
}

/// A part of a compiler for the BPF target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilerPart {
    /// The program rustup itself.
    Rustup,
    /// The toolchain called nightly.
    Nightly,
    /// Nightly's component with the source of `core`.
    RustSrc,
    /// Debian's rustc.
    DebianRustc,
    /// Debian's cargo.
    DebianCargo,
    /// Debian's `core` for the BPF target.
    DebianCore,
}

impl fmt::Display for CompilerPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rustup => f.write_str("rustup on PATH"),
            Self::Nightly => f.write_str("the toolchain nightly"),
            Self::RustSrc => f.write_str("nightly's component rust-src"),
            Self::DebianRustc => write!(f, "{DEBIAN_BIN}/rustc (package rustc-web)"),
            Self::DebianCargo => write!(f, "{DEBIAN_BIN}/cargo (package cargo-web)"),
            Self::DebianCore => {
                write!(f, "core for {BPF_TARGET} (package libstd-rust-web-dev-bpf)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERBOSE: &str = "rustc 1.96.0 (ac68faa20 2026-05-25)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n\
                           release: 1.96.0\nLLVM version: 22.1.8\n";

    #[test]
    fn the_llvm_is_read_from_the_verbose_version() {
        assert_eq!(llvm_major(VERBOSE), Some(22));
    }

    #[test]
    fn a_version_without_llvm_is_unknown() {
        for printed in ["", "rustc 1.96.0", "LLVM version: \n", "LLVM version: new"] {
            assert_eq!(llvm_major(printed), None, "{printed}");
        }
    }

    #[test]
    fn a_directory_without_core_holds_none() {
        assert!(!holds_core(Path::new("/nowhere")));
        assert!(!holds_core(Path::new("/")));
    }
}
