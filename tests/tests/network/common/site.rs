//! A lab and a daemon in it.

use std::{
    ops::Deref,
    process::Stdio,
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result};
use limiter_lab::{Cable, Daemon, HOST_INTERFACE, Lab, Limiter};

use super::Log;

/// A lab, for one test at a time: what is measured here does not bear company.
pub(crate) struct Site {
    lab: Lab,
    _alone: MutexGuard<'static, ()>,
}

impl Site {
    pub(crate) fn new() -> Result<Self> {
        Self::of(|| Lab::new("nettest"))
    }

    pub(crate) fn with_cable(cable: Cable) -> Result<Self> {
        Self::of(|| Lab::with_cable("nettest", cable))
    }

    fn of(lab: impl FnOnce() -> Result<Lab>) -> Result<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        // A test that failed has left nothing behind that the next one could stumble over.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Self {
            lab: lab()?,
            _alone: alone,
        })
    }

    /// How to call `limiter` on the host.
    pub(crate) fn limiter(&self) -> Result<Limiter<'_>> {
        Limiter::new(&self.lab.host)
    }
}

impl Deref for Site {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

/// The arguments of `limiter run` on the host's interface, with these words behind.
pub(crate) fn on_host(words: &str) -> Vec<&str> {
    ["--iface", HOST_INTERFACE]
        .into_iter()
        .chain(words.split_whitespace())
        .collect()
}

/// Starts a daemon on the host's interface.
pub(crate) fn start<'a>(limiter: &'a Limiter<'a>, words: &str) -> Result<Daemon<'a>> {
    Ok(start_logged(limiter, &on_host(words))?.0)
}

/// Starts a daemon with just these arguments, and keeps its log.
pub(crate) fn start_logged<'a>(
    limiter: &'a Limiter<'a>,
    arguments: &[&str],
) -> Result<(Daemon<'a>, Log)> {
    let log = Log::new()?;
    let daemon = limiter
        .run(arguments, Stdio::from(log.file()?))
        .with_context(|| format!("its log:\n{}", log.text()))?;
    Ok((daemon, log))
}
