//! The daemon under test, as a child process in the protected host's namespace.

use std::{
    env,
    net::IpAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::netns::Namespace;

/// How long a daemon may take to be ready, or to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Names another binary to call.
const BINARY_VARIABLE: &str = "LIMITER_BIN";
const LOOK: Duration = Duration::from_millis(20);

/// How to call `limiter` in a namespace, with a socket, a pin directory and a state directory of one's own.
#[derive(Debug)]
pub struct Limiter<'a> {
    namespace: &'a Namespace,
    binary: PathBuf,
    /// The control socket.
    pub socket: PathBuf,
    /// The pin directory.
    pub pin_dir: PathBuf,
    /// The state directory; it is there once a daemon was.
    pub state_dir: PathBuf,
}

/// A running daemon; it is asked to end when dropped.
#[derive(Debug)]
pub struct Daemon<'a> {
    limiter: &'a Limiter<'a>,
    child: Child,
}

impl<'a> Limiter<'a> {
    /// Calls the `limiter` that `LIMITER_BIN` names, or that lies beside the running program, or above it as beside a
    /// test.
    ///
    /// # Errors
    /// There is none.
    pub fn new(namespace: &'a Namespace) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let binary = match env::var_os(BINARY_VARIABLE) {
            Some(binary) => PathBuf::from(binary),
            None => beside_this_program()?,
        };
        let name = format!(
            "limiter_lab_{}_{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        Ok(Self {
            namespace,
            binary,
            socket: env::temp_dir().join(format!("{name}.sock")),
            state_dir: env::temp_dir().join(format!("{name}.state")),
            pin_dir: Path::new("/sys/fs/bpf").join(name),
        })
    }

    /// `limiter` with these arguments, in the namespace.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.namespace.command(&self.binary);
        command
            .arg("--socket")
            .arg(&self.socket)
            .arg("--pin-dir")
            .arg(&self.pin_dir)
            .arg("--state-dir")
            .arg(&self.state_dir)
            .args(arguments);
        command
    }

    /// Runs it to its end and returns what it printed.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn output(&self, arguments: &[&str]) -> Result<Output> {
        self.command(arguments).output().context("run limiter")
    }

    /// Runs it to its end and returns the JSON it printed.
    ///
    /// # Errors
    /// It fails, or prints something else.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.output(arguments)?;
        ensure!(
            output.status.success(),
            "limiter {} failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("limiter {} prints no JSON", arguments.join(" ")))
    }

    /// Starts the daemon and waits until it is ready. Its log goes to `log`.
    ///
    /// # Errors
    /// It does not become ready in time, or ends.
    pub fn run(&'a self, arguments: &[&str], log: Stdio) -> Result<Daemon<'a>> {
        let child = self
            .command(&["run"])
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start limiter")?;
        let mut daemon = Daemon {
            limiter: self,
            child,
        };
        let start = Instant::now();
        while !self.is_ready() {
            if let Some(status) = daemon.child.try_wait().context("wait for limiter")? {
                bail!(
                    "limiter run {} ended before it was ready ({status})",
                    arguments.join(" ")
                );
            }
            ensure!(
                start.elapsed() < PATIENCE,
                "limiter was not ready after {PATIENCE:?}"
            );
            thread::sleep(LOOK);
        }
        Ok(daemon)
    }

    /// What `limiter status --json` says.
    ///
    /// # Errors
    /// No daemon answers.
    pub fn status(&self) -> Result<Value> {
        self.json(&["status", "--json"])
    }

    /// What `limiter explain ADDRESS --json` says.
    ///
    /// # Errors
    /// No daemon answers.
    pub fn explain(&self, address: IpAddr) -> Result<Value> {
        self.json(&["explain", &address.to_string(), "--json"])
    }

    fn is_ready(&self) -> bool {
        self.status().is_ok_and(|status| status["ready"] == true)
    }
}

fn beside_this_program() -> Result<PathBuf> {
    let program = env::current_exe().context("find the running program")?;
    program
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("limiter"))
        .find(|candidate| candidate.is_file())
        .with_context(|| {
            format!(
                "there is no limiter beside {}; run `cargo build`",
                program.display()
            )
        })
}

impl Drop for Limiter<'_> {
    fn drop(&mut self) {
        if self.pin_dir.exists()
            && let Err(error) = self.output(&["unload"])
        {
            eprintln!(
                "the pins in {} are left behind: {error:#}",
                self.pin_dir.display()
            );
        }
        drop(std::fs::remove_file(&self.socket));
        drop(std::fs::remove_dir_all(&self.state_dir));
    }
}

impl Daemon<'_> {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?);
        kill(pid, signal).with_context(|| format!("send {signal} to limiter"))
    }

    /// Sends it a signal and waits for its end.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn end(mut self, signal: Signal) -> Result<ExitStatus> {
        self.signal(signal)?;
        self.wait()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().context("wait for limiter")? {
                return Ok(status);
            }
            ensure!(
                start.elapsed() < PATIENCE,
                "limiter did not end within {PATIENCE:?}"
            );
            thread::sleep(LOOK);
        }
    }

    /// How it is called.
    #[must_use]
    pub fn limiter(&self) -> &Limiter<'_> {
        self.limiter
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let asked = self.signal(Signal::SIGINT).and_then(|()| self.wait());
        if asked.is_err() {
            eprintln!("limiter does not end; killing it");
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}
