//! `cargo xtask fuzz`: the packet parser under libFuzzer.
//!
//! cargo-fuzz needs a nightly compiler; the same instrumentation is also to be had from a stable one.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::{
    SetupOptions, process,
    setup::{self, needs},
    workspace::Workspace,
};

/// The fuzz target and its corpus.
const TARGET: &str = "parse";

/// What makes a program report to libFuzzer which of its edges were taken.
const FLAGS: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    // An overflow is a finding.
    "-Cdebug-assertions",
];

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    setup: SetupOptions,
    /// How long to fuzz
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    setup::ensure(workspace, needs::FUZZ, options.setup)?;
    fuzz_parser(workspace, options.seconds)
}

/// Builds the fuzz target and runs it; fails if it finds something, or could not have found anything.
pub(crate) fn fuzz_parser(workspace: &Workspace, seconds: u32) -> Result<()> {
    let program = build(workspace)?;
    let project = workspace.root().join("fuzz");
    let artifacts = project.join("artifacts").join(TARGET);
    // What the fuzzer learns stays out of the checkout: it writes to the first corpus only.
    let learnt = workspace.target().join("fuzz/corpus").join(TARGET);
    for directory in [&artifacts, &learnt] {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let mut fuzzer = Command::new(program);
    fuzzer
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-timeout=5", "-print_final_stats=1"])
        .arg(learnt)
        .arg(project.join("corpus").join(TARGET));
    let mut edges = 0;
    let status = process::read_errors(&mut fuzzer, |line| {
        edges = edges.max(covered_edges(line));
        if !is_chatter(line) {
            eprintln!("{line}");
        }
    })?;
    ensure!(
        status.success(),
        "the fuzzer found something: the input is in {}",
        artifacts.display()
    );
    ensure!(
        edges > 0,
        "the fuzz target reported no coverage: the compiler did not instrument it"
    );
    println!("fuzzed {TARGET} for {seconds} s: nothing found, {edges} edges covered");
    Ok(())
}

fn build(workspace: &Workspace) -> Result<PathBuf> {
    let target_dir = workspace.target().join("fuzz");
    let host = workspace.host_triple()?;
    let mut cargo = workspace.cargo("build");
    cargo
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"))
        .args([
            "--release",
            "--locked",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--bin",
            TARGET,
        ])
        // Named, so that build scripts do not get the flags.
        .args(["--target", &host, "--target-dir"])
        .arg(&target_dir);
    process::run(&mut cargo)?;
    Ok(target_dir.join(host).join("release").join(TARGET))
}

/// The edges in a line of libFuzzer's: `#1024 NEW cov: 87 ft: 120 corp: 14/512b ...`.
fn covered_edges(line: &str) -> u32 {
    let mut words = line.split_whitespace();
    let has_number = line.starts_with('#') && words.any(|word| word == "cov:");
    if has_number {
        words
            .next()
            .and_then(|edges| edges.parse().ok())
            .unwrap_or(0)
    } else {
        0
    }
}

/// One of the hundreds of lines about each new input, or about words that would make a good dictionary.
fn is_chatter(line: &str) -> bool {
    let is_about_an_input = matches!(line.split_whitespace().nth(1), Some("NEW" | "REDUCE"));
    let is_about_a_word = line.starts_with("###### ") || line.contains(" # Uses: ");
    is_about_an_input || is_about_a_word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_read_from_the_fuzzers_lines() {
        assert_eq!(
            covered_edges("#1024\tNEW    cov: 87 ft: 120 corp: 14/512b lim: 4 exec/s: 0"),
            87
        );
        assert_eq!(covered_edges("#2\tINITED exec/s: 0 rss: 26Mb"), 0);
        assert_eq!(covered_edges("INFO: -max_len is not provided; cov: 9"), 0);
    }

    #[test]
    fn a_finding_is_no_chatter() {
        assert!(is_chatter("#1024\tREDUCE cov: 87 ft: 120 corp: 14/512b"));
        assert!(is_chatter(r#""N\000" # Uses: 60135"#));
        assert!(!is_chatter("#1024\tDONE   cov: 87 ft: 120 corp: 14/512b"));
        assert!(!is_chatter(
            "thread '<unnamed>' panicked at fuzz_targets/parse.rs:12:5:"
        ));
    }
}
