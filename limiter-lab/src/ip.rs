//! The `ip` command of iproute2.

use std::{
    io::{ErrorKind, Write as _},
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::netns::Namespace;

/// Runs `ip` with these words and returns what it printed.
pub(crate) fn ip(words: &[&str]) -> Result<String> {
    let output = Command::new("ip")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(not_found)?;
    printed(&words.join(" "), output)
}

/// Runs many `ip` commands, one a line, in one process and one namespace; the first failure ends them.
pub(crate) fn ip_batch(namespace: Option<&Namespace>, lines: &str) -> Result<()> {
    let inside = namespace.map(|namespace| ["-n", namespace.name()]);
    let mut child = Command::new("ip")
        .args(inside.iter().flatten())
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_found)?;
    // `ip` prints nothing while it reads, so writing everything first cannot block on its output.
    let written = child
        .stdin
        .take()
        .context("no pipe to `ip`")?
        .write_all(lines.as_bytes());
    let output = child.wait_with_output().context("wait for `ip`")?;
    // Its message names the line, so the first of many is enough to recognise them.
    printed(
        &format!("-batch ({} ...)", lines.lines().next().unwrap_or_default()),
        output,
    )?;
    written.context("write to `ip -batch`")
}

fn printed(what: &str, output: Output) -> Result<String> {
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("ip {what}: {}: {}", output.status, stderr.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("ip {what} printed no UTF-8"))
}

fn not_found(error: std::io::Error) -> anyhow::Error {
    if error.kind() == ErrorKind::NotFound {
        return anyhow!("the command `ip` is not there; install iproute2");
    }
    anyhow!(error).context("run `ip`")
}
