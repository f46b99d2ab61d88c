//! What the service manager is told.

use std::{os::unix::net::UnixDatagram, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use limiter_lab::HOST_INTERFACE;
use nix::sys::signal::Signal;

use crate::common::{Running, Site, assert_no_traces, program_on, status};

/// The next message.
fn next(manager: &UnixDatagram) -> Result<String> {
    let mut buffer = [0; 1024];
    let length = manager
        .recv(&mut buffer)
        .context("the service manager hears nothing")?;
    Ok(String::from_utf8(buffer[..length].to_vec())?)
}

fn manager(path: &Path) -> Result<UnixDatagram> {
    let socket = UnixDatagram::bind(path)?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(socket)
}

#[test]
fn the_service_manager_hears_of_readiness_and_of_the_end() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("notify");
    let manager = manager(&path)?;
    let mut daemon = Running::start(
        limiter
            .command(&[
                "run",
                "--iface",
                HOST_INTERFACE,
                "--rate",
                "1/h",
                "--burst",
                "1",
            ])
            .env("NOTIFY_SOCKET", &path),
    )?;
    assert_eq!(next(&manager)?.trim_end(), "READY=1");
    assert!(
        program_on(&site.host, HOST_INTERFACE)?.is_some(),
        "ready means attached"
    );
    assert!(status(&limiter)?.ready);
    daemon.signal(Signal::SIGTERM)?;
    assert_eq!(next(&manager)?.trim_end(), "STOPPING=1");
    assert_eq!(daemon.wait()?.code(), Some(0), "{}", daemon.log.text());
    assert_no_traces(&site, &limiter, "SIGTERM")
}

#[test]
fn a_refused_start_is_never_ready() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("notify");
    let manager = manager(&path)?;
    let mut daemon = Running::start(
        limiter
            .command(&[
                "run", "--iface", "nowhere0", "--rate", "1/h", "--burst", "1",
            ])
            .env("NOTIFY_SOCKET", &path),
    )?;
    assert_eq!(daemon.wait()?.code(), Some(1));
    manager.set_nonblocking(true)?;
    assert!(manager.recv(&mut [0; 64]).is_err(), "nothing was said");
    Ok(())
}
