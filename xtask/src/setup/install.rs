//! Taking the steps of set-up.

use std::process::Command;

use anyhow::Result;
use bpf_toolchain::{LINKER_NAME, LINKER_VERSION, Linker, scrub};

use super::{
    plan::Failed,
    step::{LinkerFrom, Step},
};
use crate::{process, workspace::Workspace};

/// The packages of Debian's among the steps.
pub(crate) fn packages(steps: &[Step]) -> Vec<&str> {
    let names = steps.iter().filter_map(|step| match step {
        Step::Package { name, .. } => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

/// Takes all steps; stops where another way has to be planned, and notes in `failed` which one did not work.
pub(crate) fn take(steps: &[Step], workspace: &Workspace, failed: &mut Failed) -> Result<()> {
    for step in steps {
        if let Step::Rustup {
            what, arguments, ..
        } = step
        {
            let added = process::run(rustup().args(arguments));
            if let Err(error) = added {
                // Said once, and the plan that follows says what is taken instead.
                println!("rustup cannot add {what}: {error}");
                failed.rustup = true;
                return Ok(());
            }
        }
    }
    install_packages(&packages(steps))?;
    for step in steps {
        if let Step::Linker(from) = step {
            install_linker(*from, workspace, failed)?;
        }
    }
    Ok(())
}

fn rustup() -> Command {
    let mut command = Command::new("rustup");
    // A failure here is expected on a machine without its servers: no back trace.
    command.env_remove("RUST_BACKTRACE");
    command
}

/// The command that installs packages, as one would type it.
pub(crate) fn apt_get(packages: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    // Installing a compiler must not remove the one that somebody uses.
    command
        .args(["install", "--yes", "--no-install-recommends", "--no-remove"])
        .args(packages);
    command
}

fn install_packages(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    process::run(Command::new("apt-get").arg("update").arg("--quiet=2"))?;
    process::run(apt_get(packages).env("DEBIAN_FRONTEND", "noninteractive"))
}

fn install_linker(from: LinkerFrom, workspace: &Workspace, failed: &mut Failed) -> Result<()> {
    match from {
        LinkerFrom::Release => {
            let outcome = process::run(scrub(&mut binstall(workspace)));
            let usable = Linker::find(&workspace.tools());
            failed.binstall = outcome.is_err() || usable.is_err();
            if failed.binstall {
                println!("the released {LINKER_NAME} is not usable here: it has to be built");
            }
            Ok(())
        }
        LinkerFrom::Source { llvm } => process::run(&mut cargo_install(workspace, llvm)),
    }
}

fn binstall(workspace: &Workspace) -> Command {
    let mut command = Command::new("cargo-binstall");
    command
        .arg(format!("{LINKER_NAME}@{LINKER_VERSION}"))
        .args([
            "--no-confirm",
            "--force",
            "--disable-strategies",
            "compile",
            "--root",
        ])
        .arg(workspace.tools());
    command
}

fn cargo_install(workspace: &Workspace, llvm: u32) -> Command {
    let mut command = Command::new(workspace.host_program("cargo"));
    scrub(&mut command)
        .env("RUSTC", workspace.host_program("rustc"))
        // The linker finds its LLVM by this alone.
        .env("LLVM_PREFIX", format!("/usr/lib/llvm-{llvm}"))
        .args([
            "install",
            LINKER_NAME,
            "--version",
            &LINKER_VERSION.to_string(),
        ])
        .args([
            "--locked",
            "--force",
            "--no-default-features",
            "--features",
            &format!("llvm-{llvm}"),
            "--root",
        ])
        .arg(workspace.tools());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_together_and_remove_nothing() {
        let steps = [
            Step::package("ethtool", "tests"),
            Step::Linker(LinkerFrom::Release),
            Step::package("g++", "fuzzing"),
        ];
        let line = process::line(&apt_get(&packages(&steps)));
        assert_eq!(
            line,
            "apt-get install --yes --no-install-recommends --no-remove ethtool g++"
        );
    }
}
