//! Waiting for what will happen, instead of sleeping and hoping.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

/// How long anything may take that is done in milliseconds on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

const LOOK: Duration = Duration::from_millis(5);

/// Waits until something is there.
pub(crate) fn wait_for<T>(what: &str, mut get: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = get()? {
            return Ok(found);
        }
        if start.elapsed() > PATIENCE {
            bail!("not within {PATIENCE:?}: {what}");
        }
        thread::sleep(LOOK);
    }
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    wait_for(what, || Ok(is_so()?.then_some(())))
}
