//! Help, version and completions.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use crate::common::Site;

const COMMANDS: [&str; 16] = [
    "run",
    "status",
    "explain",
    "top",
    "unload",
    "check",
    "diff",
    "reload",
    "ban",
    "unban",
    "bans",
    "override",
    "overrides",
    "monitor",
    "audit",
    "completions",
];

/// What every command takes.
const GLOBALS: [&str; 3] = ["--socket", "--pin-dir", "--state-dir"];

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
            let line = |line: &str| line.split_whitespace().next() == Some(command);
            assert!(
                help.lines().any(line),
                "{arguments:?}: no {command}:\n{help}"
            );
        }
        for global in GLOBALS {
            assert!(help.contains(global), "{arguments:?}: no {global}:\n{help}");
        }
    }
    Ok(())
}

#[test]
fn the_help_of_every_command_shows_each_flag() -> Result<()> {
    let site = Site::new()?;
    let table: [(&str, &[&str]); 16] = [
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
                "--to",
                "--json",
                "<ADDRESS>",
            ],
        ),
        ("top", &["--interval", "--json"]),
        ("unload", &[]),
        ("check", &["<FILE>"]),
        ("diff", &["<FILE>"]),
        ("reload", &["--reason"]),
        (
            "ban",
            &[
                "<ADDRESS|CIDR>",
                "--for",
                "--reason",
                "--force",
                "until `unban`",
            ],
        ),
        ("unban", &["<ADDRESS|CIDR>", "--reason"]),
        ("bans", &["--json"]),
        (
            "override",
            &[
                "<LIMIT>", "--rate", "--burst", "--for", "--source", "--remove", "--reason",
            ],
        ),
        ("overrides", &["--json"]),
        ("monitor", &["<on|off>", "--reason"]),
        ("audit", &["--last", "--what", "--json"]),
        ("completions", &["<SHELL>"]),
    ];
    for (command, flags) in table {
        for arguments in [&["help", command][..], &[command, "--help"]] {
            let help = printed(&site, arguments)?;
            for flag in flags.iter().chain(&GLOBALS).chain(&["--help"]) {
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
