//! A `limiter` that is called in a special way.

use std::{
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{Log, PATIENCE};

/// A child process whose output is kept; it is killed when dropped.
pub(crate) struct Running {
    child: Child,
    printed: Log,
    /// Its standard error.
    pub(crate) log: Log,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let (printed, log) = (Log::new()?, Log::new()?);
        let child = command
            .stdin(Stdio::null())
            .stdout(printed.file()?)
            .stderr(log.file()?)
            .spawn()
            .context("start limiter")?;
        Ok(Self {
            child,
            printed,
            log,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?);
        kill(pid, signal).with_context(|| format!("send {signal}"))
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().context("wait for limiter")? {
                return Ok(status);
            }
            ensure!(
                start.elapsed() < PATIENCE,
                "it does not end:\n{}",
                self.log.text()
            );
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether it has not ended yet.
    pub(crate) fn goes_on(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().context("look for limiter")?.is_none())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Runs what should end by itself soon, and fails if it does not.
pub(crate) fn to_its_end(command: &mut Command) -> Result<Output> {
    let mut running = Running::start(command)?;
    Ok(Output {
        status: running.wait()?,
        stdout: running.printed.text().into_bytes(),
        stderr: running.log.text().into_bytes(),
    })
}
