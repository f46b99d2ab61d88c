//! Help, version and completions.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use crate::common::Site;

const COMMANDS: [&str; 6] = ["run", "status", "explain", "top", "unload", "completions"];

/// Runs what must succeed, and returns what it prints.
fn printed(site: &Site, arguments: &[&str]) -> Result<String> {
    let output = site.limiter()?.output(arguments)?;
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    assert_eq!(output.stderr, b"", "{arguments:?}");
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn the_help_names_every_command() -> Result<()> {
    let site = Site::new()?;
    for arguments in [&["help"][..], &["--help"], &["-h"]] {
        let help = printed(&site, arguments)?;
        for command in COMMANDS {
            let line = |line: &str| line.trim_start().starts_with(command);
            assert!(
                help.lines().any(line),
                "{arguments:?}: no {command}:\n{help}"
            );
        }
        for global in ["--socket", "--pin-dir"] {
            assert!(help.contains(global), "{arguments:?}: no {global}:\n{help}");
        }
    }
    Ok(())
}

#[test]
fn the_help_of_every_command_shows_each_flag() -> Result<()> {
    let site = Site::new()?;
    let table: [(&str, &[&str]); 6] = [
        (
            "run",
            &[
                "--iface",
                "--rate",
                "--burst",
                "--ipv4-prefix",
                "--ipv6-prefix",
                "--max-sources",
                "--monitor",
                "--attach",
                "--needs-rate",
                "--needs-burst",
                "--metrics",
                "--socket-group",
                "--on-exit",
                "--kernel-log",
                "--config",
            ],
        ),
        ("status", &["--json"]),
        (
            "explain",
            &[
                "--proto",
                "--dport",
                "--sport",
                "--syn",
                "--json",
                "<ADDRESS>",
            ],
        ),
        ("top", &["--interval", "--json"]),
        ("unload", &[]),
        ("completions", &["<SHELL>"]),
    ];
    for (command, flags) in table {
        for arguments in [&["help", command][..], &[command, "--help"]] {
            let help = printed(&site, arguments)?;
            for flag in flags.iter().chain(&["--socket", "--pin-dir", "--help"]) {
                assert!(help.contains(flag), "{arguments:?}: no {flag}:\n{help}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_version_is_that_of_the_package() -> Result<()> {
    let site = Site::new()?;
    let version = concat!("limiter ", env!("CARGO_PKG_VERSION"), "\n");
    for argument in ["--version", "-V"] {
        assert_eq!(printed(&site, &[argument])?, version);
    }
    Ok(())
}

#[test]
fn completions_know_every_command() -> Result<()> {
    let site = Site::new()?;
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&site, &["completions", shell])?;
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: no {command}");
        }
    }
    Ok(())
}

#[test]
fn bash_accepts_its_completions() -> Result<()> {
    let site = Site::new()?;
    let script = printed(&site, &["completions", "bash"])?;
    let mut bash = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("run bash")?;
    bash.stdin
        .take()
        .context("no pipe to bash")?
        .write_all(script.as_bytes())?;
    let output = bash.wait_with_output()?;
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    Ok(())
}
