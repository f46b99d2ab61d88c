//! A policy file, with its lists, in a directory of its own.

use std::{fs, path::PathBuf, process::Output};

use anyhow::{Context as _, Result};
use limiter_lab::{Daemon, Limiter};
use tempfile::TempDir;

use crate::common::{Log, start_logged, to_its_end};

/// One limit that lets the first few packets of a source through and then none for an hour; the interface is the lab's.
pub(super) const FEW: &str = r#"
interfaces = ["lim0"]

[[limits]]
name = "few"
per = "source"
rate = "1/h"
burst = 5
"#;

/// One limit that nobody meets.
pub(super) const MANY: &str = r#"
interfaces = ["lim0"]

[[limits]]
name = "many"
per = "source"
rate = "1000000/s"
burst = 1000000
"#;

/// The directory.
pub(super) struct Place(TempDir);

impl Place {
    /// With a policy in it.
    pub(super) fn new(policy: &str) -> Result<Self> {
        let place = Self(TempDir::new().context("make a directory")?);
        place.write("policy.toml", policy)?;
        Ok(place)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The policy.
    pub(super) fn policy(&self) -> PathBuf {
        self.path("policy.toml")
    }

    /// The policy's name, as messages have it.
    pub(super) fn shown(&self) -> String {
        self.policy().display().to_string()
    }

    /// Writes a file in place.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.path(name), text).with_context(|| format!("write {name}"))
    }

    /// Puts a new file in the place of an old one, as most editors and `install` do.
    pub(super) fn rename_over(&self, name: &str, text: &str) -> Result<()> {
        let new = format!("{name}.new");
        self.write(&new, text)?;
        fs::rename(self.path(&new), self.path(name)).with_context(|| format!("rename {new}"))
    }

    /// Starts a daemon with the policy.
    pub(super) fn start<'a>(&self, limiter: &'a Limiter<'a>) -> Result<(Daemon<'a>, Log)> {
        self.start_with(limiter, &[])
    }

    /// As [`Place::start`], with more arguments.
    pub(super) fn start_with<'a>(
        &self,
        limiter: &'a Limiter<'a>,
        more: &[&str],
    ) -> Result<(Daemon<'a>, Log)> {
        let policy = self.shown();
        let arguments: Vec<&str> = ["--config", &policy]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        start_logged(limiter, &arguments)
    }

    /// Writes another policy and has it taken up.
    pub(super) fn reload(&self, limiter: &Limiter<'_>, policy: &str) -> Result<String> {
        self.write("policy.toml", policy)?;
        done(limiter, &["reload"])
    }
}

/// Runs a command that must succeed, and returns what it prints.
pub(super) fn done(limiter: &Limiter<'_>, arguments: &[&str]) -> Result<String> {
    let output = limiter.output(arguments)?;
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    assert_eq!(output.stderr, b"", "{arguments:?}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a command that must be refused, and returns why, without the program's name.
pub(super) fn refused(limiter: &Limiter<'_>, arguments: &[&str]) -> Result<String> {
    reason(&limiter.output(arguments)?, 1)
}

/// What a command that ends by itself leaves.
pub(super) fn ended(limiter: &Limiter<'_>, arguments: &[&str]) -> Result<Output> {
    to_its_end(&mut limiter.command(arguments))
}

/// Why a command was refused, with this exit code: one line.
pub(super) fn reason(output: &Output, code: i32) -> Result<String> {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert_eq!(output.stdout, b"", "{output:?}");
    let text = String::from_utf8(output.stderr.clone())?;
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("limiter: "))
        .collect();
    let [line] = lines[..] else {
        panic!("one line: {text}")
    };
    Ok(line.trim_start_matches("limiter: ").to_owned())
}
