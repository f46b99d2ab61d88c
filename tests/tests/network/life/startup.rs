//! A start that is interrupted leaves nothing, whenever it is.

use std::{thread, time::Duration};

use anyhow::Result;
use limiter_lab::{HOST_INTERFACE, Limiter};
use nix::sys::signal::Signal;

use crate::common::{Running, Site, assert_no_traces, program_on, status, wait_until};

const RUN: [&str; 7] = [
    "run",
    "--iface",
    HOST_INTERFACE,
    "--rate",
    "1/h",
    "--burst",
    "1",
];

/// Starts daemons and gives each a signal, each a little later than the one before, until one was ready by then.
fn signal_at_every_moment(
    limiter: &Limiter<'_>,
    signal: Signal,
    mut after: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    let mut moments = 0;
    for milliseconds in (0..).step_by(40) {
        let mut daemon = Running::start(&mut limiter.command(&RUN))?;
        thread::sleep(Duration::from_millis(milliseconds));
        let was_ready = daemon.log.line(&[" ready "]).is_some();
        daemon.signal(signal)?;
        daemon.wait()?;
        let log = daemon.log.text();
        after(&format!("{signal} after {milliseconds} ms:\n{log}"))?;
        if was_ready {
            break;
        }
        moments += 1;
    }
    assert!(moments > 1, "the signal came during the start");
    Ok(())
}

/// Starts once more, and ends.
fn the_next_is_not_hindered(site: &Site, limiter: &Limiter<'_>) -> Result<()> {
    let mut daemon = Running::start(&mut limiter.command(&RUN))?;
    wait_until("it is ready", || {
        Ok(status(limiter).is_ok_and(|status| status.ready))
    })?;
    daemon.signal(Signal::SIGINT)?;
    assert_eq!(daemon.wait()?.code(), Some(0), "{}", daemon.log.text());
    assert_no_traces(site, limiter, "the next")
}

#[test]
fn a_start_that_is_interrupted_leaves_nothing_enforced() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        signal_at_every_moment(&limiter, signal, |when| {
            assert_eq!(program_on(&site.host, HOST_INTERFACE)?, None, "{when}");
            assert!(!limiter.pin_dir.exists(), "{when}");
            Ok(())
        })?;
    }
    the_next_is_not_hindered(&site, &limiter)
}

#[test]
fn a_start_that_is_killed_leaves_nothing_that_the_next_minds() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    signal_at_every_moment(&limiter, Signal::SIGKILL, |_when| Ok(()))?;
    the_next_is_not_hindered(&site, &limiter)
}
