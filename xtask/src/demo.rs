//! `cargo xtask demo`: the limiter at work against a flood.

use std::{os::unix::process::CommandExt as _, process::Command};

use anyhow::{Context as _, Result};

use crate::{
    SetupOptions, build,
    setup::{self, needs},
    workspace::Workspace,
};

/// Builds the demo and becomes it, so that an interrupt reaches it and nobody else.
pub(crate) fn run(workspace: &Workspace, options: SetupOptions) -> Result<()> {
    setup::ensure(workspace, needs::DEMO, options)?;
    build::compile(workspace)?;
    let demo = workspace.limiter().with_file_name("limiter-demo");
    let error = Command::new(&demo).exec();
    Err(error).with_context(|| format!("cannot start {}", demo.display()))
}
