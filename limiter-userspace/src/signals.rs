//! Signals: they wait from the very start, so that none is lost and none interrupts what must be undone.

use std::thread;

use anyhow::{Context as _, Result};
use nix::sys::signal::{SigSet, Signal};
use tokio::sync::mpsc;
use tracing::warn;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: not to stop, but to read the policy anew.
    Hangup,
}

/// Signals that wait until somebody listens.
#[derive(Debug)]
pub struct Blocked(SigSet);

impl Blocked {
    /// Lets SIGINT, SIGTERM and SIGHUP wait, for this thread and all that it starts.
    ///
    /// # Errors
    ///
    /// Never, for these signals.
    pub fn block() -> Result<Self> {
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            signals.add(signal);
        }
        signals.thread_block().context("cannot make signals wait")?;
        Ok(Self(signals))
    }
}

/// Signals as they come.
#[derive(Debug)]
pub struct Signals(mpsc::UnboundedReceiver<Signal>);

impl Signals {
    /// Takes the signals that wait, and those to come, on a thread of its own.
    ///
    /// # Errors
    ///
    /// Where no thread can be had.
    pub fn listen(Blocked(signals): Blocked) -> Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                loop {
                    match signals.wait() {
                        Ok(signal) if sender.send(signal).is_ok() => {}
                        // Nobody listens any more: the daemon has ended.
                        Ok(_) => return,
                        Err(error) => warn!("cannot wait for signals: {error}"),
                    }
                }
            })
            .context("cannot listen for signals")?;
        Ok(Self(receiver))
    }

    /// Waits for a signal.
    pub async fn next(&mut self) -> Stop {
        match self.0.recv().await {
            Some(Signal::SIGINT) | None => Stop::Interrupt,
            Some(Signal::SIGTERM) => Stop::Terminate,
            Some(_) => Stop::Hangup,
        }
    }
}
