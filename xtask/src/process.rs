//! Running other programs: shown before they run, named in the error when they fail.

use std::{
    io::{self, Read, Write as _},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use anyhow::{Context as _, Result, ensure};

/// Shows a command, runs it, and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    show(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", name(command)))?;
    ensure!(status.success(), "{} failed ({status})", line(command));
    Ok(())
}

/// Runs a command in silence and returns what it prints, or nothing if it fails.
pub(crate) fn printed(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Shows a command and runs it; its standard output is shown live, and each line of it is handed to `watch`.
pub(crate) fn watch_output(command: &mut Command, watch: impl FnMut(&str)) -> Result<ExitStatus> {
    let mut child = start(command.stdout(Stdio::piped()))?;
    if let Some(output) = child.stdout.take() {
        copy_lines(output, &mut io::stdout(), watch).context("cannot show a program's output")?;
    }
    child
        .wait()
        .with_context(|| format!("cannot wait for {}", name(command)))
}

/// Shows a command and runs it; each line of its standard error is handed to `read` and not shown.
pub(crate) fn read_errors(command: &mut Command, read: impl FnMut(&str)) -> Result<ExitStatus> {
    let mut child = start(command.stderr(Stdio::piped()))?;
    if let Some(errors) = child.stderr.take() {
        copy_lines(errors, &mut io::sink(), read).context("cannot read a program's errors")?;
    }
    child
        .wait()
        .with_context(|| format!("cannot wait for {}", name(command)))
}

fn start(command: &mut Command) -> Result<Child> {
    show(command);
    command
        .spawn()
        .with_context(|| format!("cannot start {}", name(command)))
}

/// Copies what is read as it comes, not line by line, so that a test's name shows while the test runs.
fn copy_lines(
    mut from: impl Read,
    to: &mut impl io::Write,
    mut watch: impl FnMut(&str),
) -> io::Result<()> {
    let mut chunk = [0; 8192];
    let mut line = Vec::new();
    loop {
        let read = match from.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&chunk[..read])?;
        to.flush()?;
        for &byte in &chunk[..read] {
            if byte == b'\n' {
                watch(&String::from_utf8_lossy(&line));
                line.clear();
            } else {
                line.push(byte);
            }
        }
        if read == 0 {
            if !line.is_empty() {
                watch(&String::from_utf8_lossy(&line));
            }
            return Ok(());
        }
    }
}

fn show(command: &Command) {
    println!("$ {}", line(command));
    // What is shown must come before what the command prints, also where the output is a file.
    if let Err(error) = io::stdout().flush() {
        eprintln!("cannot write to standard output: {error}");
    }
}

/// The command as one would type it, without the environment.
pub(crate) fn line(command: &Command) -> String {
    let arguments = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned());
    let words: Vec<_> = [name(command)].into_iter().chain(arguments).collect();
    words.join(" ")
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_watched_and_copied() {
        let mut copy = Vec::new();
        let mut lines = Vec::new();
        copy_lines(&b"one\ntwo\nthree"[..], &mut copy, |line| {
            lines.push(line.to_owned());
        })
        .unwrap();
        assert_eq!(copy, b"one\ntwo\nthree");
        assert_eq!(lines, ["one", "two", "three"]);
    }

    #[test]
    fn a_command_is_shown_by_its_name() {
        assert_eq!(
            line(Command::new("/usr/bin/cargo").args(["build", "--release"])),
            "cargo build --release"
        );
    }

    #[test]
    fn a_failing_command_is_named() {
        let error = run(Command::new("sh").args(["-c", "exit 3"]))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "sh -c exit 3 failed (exit status: 3)");
    }
}
