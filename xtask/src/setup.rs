//! `cargo xtask setup`: finds out what is missing, says so, and installs it.

mod facts;
mod install;
pub(crate) mod needs;
mod plan;
mod step;

use anyhow::{Context as _, Result, bail, ensure};
use bpf_toolchain::{ROUTE_VARIABLE, Route, Toolchain, detect};

pub(crate) use self::facts::is_root;
use self::{facts::Facts, needs::Need, plan::Failed, step::Step};
use crate::{SetupOptions, process, workspace::Workspace};

/// Sets up everything that any task needs.
pub(crate) fn run(workspace: &Workspace, options: SetupOptions) -> Result<()> {
    ensure(workspace, needs::ALL, options)
}

/// Makes sure that the machine has what a task needs.
pub(crate) fn ensure(workspace: &Workspace, needs: &[Need], options: SetupOptions) -> Result<()> {
    let mut failed = Failed::default();
    let mut taken = Vec::new();
    loop {
        let facts = Facts::look(workspace, needs)?;
        let steps = plan::plan(needs, &facts, failed);
        println!("present: {}", present(needs, &facts, failed));
        if steps.is_empty() {
            println!("nothing to install");
            return if needs.contains(&Need::BpfCompiler) {
                settle(workspace, &facts, failed)
            } else {
                Ok(())
            };
        }
        println!(
            "{}",
            if options.no_install {
                "missing:"
            } else {
                "to be installed:"
            }
        );
        for step in &steps {
            println!("  {step}");
        }
        ensure!(
            !options.no_install,
            "{} missing: run this without --no-install",
            things(steps.len())
        );
        ensure!(
            steps != taken,
            "still missing, although the steps above were taken: see their output"
        );
        refuse_the_impossible(&steps)?;
        install::take(&steps, workspace, &mut failed)?;
        taken = steps;
    }
}

/// Finds the toolchain that [`ensure()`] has made sure of.
pub(crate) fn toolchain(workspace: &Workspace) -> Result<Toolchain> {
    Ok(detect(&workspace.tools(), Route::forced()?)?)
}

fn present(needs: &[Need], facts: &Facts, failed: Failed) -> String {
    let name = |need: &Need| match (need, plan::choose(facts, failed)) {
        (Need::BpfCompiler, Some(route)) => format!("{} (route {route})", need.name()),
        _ => need.name().to_owned(),
    };
    let is_met = |need: &&Need| plan::towards(**need, facts, failed).is_empty();
    let names: Vec<_> = needs.iter().filter(is_met).map(name).collect();
    if names.is_empty() {
        "nothing of what is needed".to_owned()
    } else {
        names.join(", ")
    }
}

/// Fails before anything is installed if a person has to do a part of it.
fn refuse_the_impossible(steps: &[Step]) -> Result<()> {
    let by_hand = steps
        .iter()
        .filter(|step| matches!(step, Step::ByHand { .. }))
        .count();
    ensure!(
        by_hand == 0,
        "{} to be installed by hand, see the list above: then run this again",
        things(by_hand)
    );
    let packages = install::packages(steps);
    if !packages.is_empty() && !is_root()? {
        let command = process::line(&install::apt_get(&packages));
        bail!("only root can install packages: run `sudo {command}`, then this again");
    }
    Ok(())
}

/// Says which toolchain was chosen and why, and notes it where build scripts look.
fn settle(workspace: &Workspace, facts: &Facts, failed: Failed) -> Result<()> {
    let toolchain = toolchain(workspace)?;
    let route = toolchain.compiler().route();
    println!(
        "BPF toolchain: route {route}, {}: {toolchain}",
        why(route, facts, failed)
    );
    let noted = toolchain.note(workspace.target());
    noted.with_context(|| format!("cannot write to {}", workspace.tools().display()))
}

fn why(route: Route, facts: &Facts, failed: Failed) -> String {
    let lacks: Vec<_> = facts.rustup.lacks.iter().map(ToString::to_string).collect();
    match route {
        _ if facts.forced.is_some() => format!("as {ROUTE_VARIABLE} asks"),
        Route::Rustup => "preferred where it is complete".to_owned(),
        Route::Debian if failed.rustup => {
            format!("because rustup could not add {}", lacks.join(", "))
        }
        Route::Debian => format!("because route rustup lacks {}", lacks.join(", ")),
    }
}

fn things(count: usize) -> String {
    if count == 1 {
        "1 thing is".to_owned()
    } else {
        format!("{count} things are")
    }
}
