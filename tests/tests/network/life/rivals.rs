//! A second daemon is refused, whatever it shares with the first, and leaves the first alone.

use std::process::Command;

use anyhow::Result;
use limiter_lab::{HOST_INTERFACE, Limiter};
use limiter_userspace::report::Status;
use nix::sys::signal::Signal;

use crate::common::{
    Running, Site, assert_no_traces, program_on, start, status, to_its_end, wait_until,
};

/// The arguments of `limiter run` for a second daemon.
const RUN: [&str; 7] = [
    "run",
    "--iface",
    HOST_INTERFACE,
    "--rate",
    "1/h",
    "--burst",
    "1",
];

/// Runs a second daemon, which must refuse for this reason without touching the first.
fn is_refused(site: &Site, first: &Limiter<'_>, second: &mut Command, reason: &str) -> Result<()> {
    let before = status(first)?;
    let output = to_its_end(second)?;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr)?,
        format!("limiter: {reason}\n")
    );
    let after = status(first)?;
    let identity = |status: &Status| (status.pid, status.interfaces[0].program_id, status.ready);
    assert_eq!(identity(&after), identity(&before));
    let program = program_on(&site.host, HOST_INTERFACE)?;
    assert_eq!(program, Some(after.interfaces[0].program_id.into()));
    Ok(())
}

#[test]
fn a_second_daemon_on_the_same_socket_is_refused() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let reason = format!(
        "--socket {}: a daemon is listening there already; ask it with `limiter status`, stop it, or name another path",
        limiter.socket.display()
    );
    // With the same pins, too, those would be the reason.
    let other = site.limiter()?;
    let mut second = limiter.command(&RUN);
    second.arg("--pin-dir").arg(&other.pin_dir);
    is_refused(&site, &limiter, &mut second, &reason)?;
    assert!(!other.pin_dir.exists());
    Ok(())
}

#[test]
fn a_second_daemon_on_the_same_pins_is_refused() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let other = site.limiter()?;
    let mut second = other.command(&RUN);
    // Of an option given twice, the one behind the command counts.
    second.arg("--pin-dir").arg(&limiter.pin_dir);
    let reason = format!(
        "--pin-dir {}: another limiter, pid {}, is using it; ask it with `limiter status`, or stop it with `limiter unload` (both with its \
         --socket)",
        limiter.pin_dir.display(),
        daemon.pid()
    );
    is_refused(&site, &limiter, &mut second, &reason)?;
    assert!(!other.socket.exists(), "the second daemon's socket is gone");
    Ok(())
}

#[test]
fn a_second_daemon_with_other_pins_is_refused_by_the_interface() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let program = status(&limiter)?.interfaces[0].program_id;
    let other = site.limiter()?;
    let reason = format!(
        "--iface {HOST_INTERFACE}: XDP program limiter (id {program}) is attached already, by another limiter: end that with `limiter \
         unload` and its --pin-dir and --socket; or name another interface"
    );
    is_refused(&site, &limiter, &mut other.command(&RUN), &reason)?;
    assert!(!other.socket.exists() && !other.pin_dir.exists());
    Ok(())
}

#[test]
fn of_two_that_start_at_once_one_wins() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for _race in 0..5 {
        let mut racers = [
            Running::start(&mut limiter.command(&RUN))?,
            Running::start(&mut limiter.command(&RUN))?,
        ];
        wait_until("one of them gives up", || {
            Ok(!racers[0].goes_on()? || !racers[1].goes_on()?)
        })?;
        racers.sort_by_key(|racer| racer.log.line(&["limiter: "]).is_some());
        let [winner, loser] = &mut racers;
        assert_eq!(loser.wait()?.code(), Some(1), "{}", loser.log.text());
        wait_until("the other one is ready", || {
            assert!(winner.goes_on()?, "{}", winner.log.text());
            Ok(status(&limiter).is_ok_and(|status| status.ready))
        })?;
        winner.signal(Signal::SIGINT)?;
        assert_eq!(winner.wait()?.code(), Some(0), "{}", winner.log.text());
        assert_no_traces(&site, &limiter, "a race")?;
    }
    Ok(())
}
