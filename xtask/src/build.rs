//! `cargo xtask build`: the release binary, BPF program included.

use anyhow::Result;

use crate::{
    SetupOptions, process,
    setup::{self, needs},
    workspace::Workspace,
};

pub(crate) fn run(workspace: &Workspace, options: SetupOptions) -> Result<()> {
    setup::ensure(workspace, needs::BUILD, options)?;
    compile(workspace)?;
    println!("built {}", workspace.limiter().display());
    Ok(())
}

/// Builds the host's crates in release, after a set-up that made sure that the BPF programs in them are no empty files.
pub(crate) fn compile(workspace: &Workspace) -> Result<()> {
    process::run(workspace.cargo("build").args(["--release", "--locked"]))
}
