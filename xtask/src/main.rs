//! Development tasks, one module each: `cargo xtask <task>`.

mod build;
mod demo;
mod fuzz;
mod lint;
mod process;
mod setup;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use workspace::Workspace;

/// Development tasks. Each does all of its own set-up, and says what it installs before it does.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what any of the tasks needs
    Setup(SetupOptions),
    /// Build target/release/limiter
    Build(SetupOptions),
    /// Run all tests, as root: host, kernel, network, and the fuzz target briefly
    Test(test::Options),
    /// Show the limiter at work against a flood, in network namespaces of its own
    Demo(SetupOptions),
    /// Check formatting, clippy on host and BPF code, documentation, licences and advisories
    Lint(SetupOptions),
    /// Fuzz the packet parser
    Fuzz(fuzz::Options),
}

/// What every task does about tools that are not there.
#[derive(Args, Clone, Copy)]
struct SetupOptions {
    /// Install nothing: only check and list, and fail if something is missing
    #[arg(long)]
    no_install: bool,
}

fn main() -> ExitCode {
    run(Cli::parse().task).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(task: Task) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match task {
        Task::Setup(options) => setup::run(&workspace, options),
        Task::Build(options) => build::run(&workspace, options),
        Task::Test(options) => return test::run(&workspace, &options),
        Task::Demo(options) => demo::run(&workspace, options),
        Task::Lint(options) => lint::run(&workspace, options),
        Task::Fuzz(options) => fuzz::run(&workspace, &options),
    }?;
    Ok(ExitCode::SUCCESS)
}
