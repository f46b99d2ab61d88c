//! `cargo xtask lint`: everything that is checked without running the limiter.

mod advisories;
mod licences;

use anyhow::{Result, bail};

use crate::{
    SetupOptions, process,
    setup::{self, needs},
    workspace::Workspace,
};

type Check = fn(&Workspace) -> Result<()>;

const CHECKS: [(&str, Check); 6] = [
    ("format", format),
    ("clippy", clippy),
    ("clippy for BPF", bpf_clippy),
    ("documentation", documentation),
    ("licences", licences::check),
    ("advisories", advisories::check),
];

/// Runs every check, also after one has failed.
pub(crate) fn run(workspace: &Workspace, options: SetupOptions) -> Result<()> {
    setup::ensure(workspace, needs::LINT, options)?;
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        if let Err(error) = check(workspace) {
            eprintln!("{name}: {error:#}");
            failed.push(name);
        }
    }
    if failed.is_empty() {
        println!("lint: no findings");
        return Ok(());
    }
    bail!("lint: findings in {}", failed.join(", "))
}

fn format(workspace: &Workspace) -> Result<()> {
    process::run(workspace.cargo("fmt").args(["--all", "--check"]))?;
    process::run(
        workspace
            .cargo("fmt")
            .args(["--manifest-path", "fuzz/Cargo.toml", "--check"]),
    )
}

fn clippy(workspace: &Workspace) -> Result<()> {
    let deny = ["--", "-Dwarnings"];
    process::run(
        workspace
            .cargo("clippy")
            .args(["--locked", "--all-targets"])
            .args(deny),
    )?;
    process::run(
        workspace
            .cargo("clippy")
            .args(["--locked", "--manifest-path", "fuzz/Cargo.toml"])
            .args(deny),
    )
}

fn bpf_clippy(workspace: &Workspace) -> Result<()> {
    let toolchain = setup::toolchain(workspace)?;
    let mut command = toolchain.clippy_command(workspace.root(), &workspace.target().join("bpf"));
    process::run(command.args(["--", "-Dwarnings"]))
}

fn documentation(workspace: &Workspace) -> Result<()> {
    process::run(
        workspace
            .cargo("doc")
            .env("RUSTDOCFLAGS", "-Dwarnings")
            .args(["--locked", "--no-deps"]),
    )
}
