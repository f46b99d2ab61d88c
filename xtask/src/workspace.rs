//! Where the project lies, and the cargo that runs this program.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::process;

/// The project's directories and the host's cargo.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
    cargo: PathBuf,
}

impl Workspace {
    /// Finds them from what `cargo run` tells the program that it runs.
    pub(crate) fn find() -> Result<Self> {
        let variable = |name| {
            env::var_os(name)
                .map(PathBuf::from)
                .with_context(|| format!("{name} is not set: run this as `cargo xtask`"))
        };
        let package = variable("CARGO_MANIFEST_DIR")?;
        let root = package
            .parent()
            .with_context(|| format!("{} has no directory above it", package.display()))?;
        let program = env::current_exe().context("cannot find this program's own file")?;
        let target = bpf_toolchain::target_root(&program).with_context(|| {
            format!(
                "{} is not in a target directory: run this as `cargo xtask`",
                program.display()
            )
        })?;
        Ok(Self {
            root: root.to_owned(),
            target,
            cargo: variable("CARGO")?,
        })
    }

    /// The checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target directory.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The directory of the project's own tools.
    pub(crate) fn tools(&self) -> PathBuf {
        bpf_toolchain::tools_dir(&self.target)
    }

    /// The binary that `build` leaves.
    pub(crate) fn limiter(&self) -> PathBuf {
        self.target.join("release/limiter")
    }

    /// The host's cargo, to run `subcommand` with the same target directory as this program was built in.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut command = match subcommand {
            // Started directly: cargo prefers a plug-in in its home, which may be another toolchain's.
            "clippy" | "fmt" => Command::new(self.host_program(&format!("cargo-{subcommand}"))),
            _ => Command::new(&self.cargo),
        };
        command
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .arg(subcommand);
        command
    }

    /// A program of the toolchain that the host's cargo belongs to.
    pub(crate) fn host_program(&self, name: &str) -> PathBuf {
        self.cargo.with_file_name(name)
    }

    /// The target triple of this machine.
    pub(crate) fn host_triple(&self) -> Result<String> {
        let version = process::printed(Command::new(&self.cargo).arg("-vV")).unwrap_or_default();
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(str::to_owned)
            .with_context(|| format!("`{} -vV` does not name the host", self.cargo.display()))
    }
}
