//! A daemon's answers, as values.

use std::{net::IpAddr, thread, time::Duration};

use anyhow::{Context as _, Result};
use limiter_lab::Limiter;
use limiter_userspace::{
    explain::Explanation,
    report::{Status, Top},
};

pub(crate) fn status(limiter: &Limiter<'_>) -> Result<Status> {
    serde_json::from_value(limiter.status()?).context("read a status")
}

pub(crate) fn explain(limiter: &Limiter<'_>, address: impl Into<IpAddr>) -> Result<Explanation> {
    serde_json::from_value(limiter.explain(address.into())?).context("read an explanation")
}

pub(crate) fn top(limiter: &Limiter<'_>) -> Result<Top> {
    serde_json::from_value(limiter.json(&["top", "--json"])?).context("read a ranking")
}

/// The status once no frame is under way any more.
pub(crate) fn at_rest(limiter: &Limiter<'_>) -> Result<Status> {
    const QUIET: Duration = Duration::from_millis(50);
    let seen = |status: &Status| -> u64 {
        let packets = status.interfaces.iter().map(|interface| &interface.packets);
        packets.map(|packets| packets.seen).sum()
    };
    let mut before = status(limiter)?;
    loop {
        thread::sleep(QUIET);
        let now = status(limiter)?;
        if seen(&now) == seen(&before) {
            return Ok(now);
        }
        before = now;
    }
}
