//! Bad input is answered with one line that names the thing, the value, the bound and what to try, and leaves nothing behind.

mod asking;
mod bpffs;
mod names;
mod privileges;
mod usage;
mod world;

use std::process::{Command, Output};

use anyhow::{Context as _, Result};
use limiter_lab::Limiter;

use crate::common::{Site, assert_no_traces, on_host, to_its_end};

/// A policy that nothing is wrong with.
const GOOD: &str = "--rate 1000/s --burst 100";

/// The lines on standard error that are no log: a log's begin with the date.
fn complaints(output: &Output) -> Result<Vec<String>> {
    let text = String::from_utf8(output.stderr.clone()).context("read standard error")?;
    let is_log = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    Ok(text
        .lines()
        .filter(|line| !is_log(line))
        .map(str::to_owned)
        .collect())
}

/// Runs it, and fails unless it ends with this code, complains just so, and leaves nothing behind.
fn is_answered(
    site: &Site,
    limiter: &Limiter<'_>,
    command: &mut Command,
    (code, message): (i32, &str),
) -> Result<()> {
    let output = to_its_end(command)?;
    let called = format!("{:?}", command.get_args().skip(6).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(code), "{called}: {output:?}");
    assert_eq!(
        complaints(&output)?,
        [format!("limiter: {message}")],
        "{called}"
    );
    assert_eq!(output.stdout, b"", "{called}");
    assert_no_traces(site, limiter, &called)
}

/// As [`is_answered`], for `limiter run` on the host's interface with these words.
fn run_is_answered(
    site: &Site,
    limiter: &Limiter<'_>,
    words: &str,
    answer: (i32, &str),
) -> Result<()> {
    let mut command = limiter.command(&["run"]);
    command.args(on_host(words));
    is_answered(site, limiter, &mut command, answer)
}
