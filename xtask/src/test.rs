//! `cargo xtask test`: every test there is.

mod totals;

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use clap::Args;

use self::totals::Totals;
use crate::{
    SetupOptions, build, fuzz, process,
    setup::{self, needs},
    workspace::Workspace,
};

/// How long the parser is fuzzed after the tests.
const FUZZ_SECONDS: u32 = 20;

/// The packages whose tests measure time, so that they run one after another.
const TIMED: [&str; 2] = ["limiter-lab", "integration-tests"];

/// Tells the integration tests where the binary is that they run.
const BINARY_VARIABLE: &str = "LIMITER_BIN";

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    setup: SetupOptions,
    /// Handed to `cargo test`, for example a part of a test's name; the parser is then not fuzzed
    #[arg(last = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    ensure!(
        setup::is_root()?,
        "the tests load BPF programs and make network namespaces: run `cargo xtask test` as root"
    );
    setup::ensure(workspace, needs::TEST, options.setup)?;
    build::compile(workspace)?;

    let mut totals = Totals::default();
    count(&mut host_tests(workspace, options), &mut totals)?;
    count(&mut timed_tests(workspace, options), &mut totals)?;
    if options.arguments.is_empty()
        && let Err(error) = fuzz::fuzz_parser(workspace, FUZZ_SECONDS)
    {
        println!("{error:#}");
        totals.add_failure();
    }
    let verdict = totals.verdict();
    if let Err(why) = &verdict {
        println!("{why}");
    }
    // The last line of all, also of a failure: other programs read it.
    println!("{totals}");
    Ok(if verdict.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn host_tests(workspace: &Workspace, options: &Options) -> Command {
    let mut command = cargo_test(workspace);
    command.arg("--workspace");
    for package in ["limiter-ebpf"].iter().chain(&TIMED) {
        command.args(["--exclude", package]);
    }
    command.args(&options.arguments);
    command
}

fn timed_tests(workspace: &Workspace, options: &Options) -> Command {
    let mut command = cargo_test(workspace);
    command
        .env(BINARY_VARIABLE, workspace.limiter())
        .env("RUST_TEST_THREADS", "1");
    for package in TIMED {
        command.args(["--package", package]);
    }
    command.args(&options.arguments);
    command
}

fn cargo_test(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo("test");
    command.args(["--locked", "--no-fail-fast"]);
    command
}

/// Runs `cargo test` and adds what its test runners count.
fn count(command: &mut Command, totals: &mut Totals) -> Result<()> {
    let failed_before = totals.failed();
    let status = process::watch_output(command, |line| totals.add_line(line))?;
    if !status.success() && totals.failed() == failed_before {
        println!(
            "{} failed ({status}) without a failed test: it did not build, or a test process died",
            process::line(command)
        );
        totals.add_failure();
    }
    Ok(())
}
