//! What an operator changes is in force when the command has ended, and that is soon.

use std::time::{Duration, Instant};

use anyhow::Result;
use limiter_lab::Limiter;
use nix::sys::signal::Signal;

use super::{FEW, MANY, Place, Probe, done, udp};
use crate::common::{ATTACKER, Site, at_rest, status, wait_until};

/// How long a change may take, the start of the command included.
const SOON: Duration = Duration::from_millis(100);

/// Runs a command and fails unless it is done soon. A busy machine has a few tries.
fn soon(limiter: &Limiter<'_>, change: &[&str], back: &[&str]) -> Result<()> {
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        done(limiter, change)?;
        fastest = fastest.min(start.elapsed());
        if fastest < SOON {
            return Ok(());
        }
        done(limiter, back)?;
    }
    panic!("{change:?} took {fastest:?}");
}

#[test]
fn a_ban_and_its_end_are_in_force_at_once() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    let whom = ATTACKER.to_string();
    let (ban, unban) = (["ban", &whom], ["unban", &whom]);
    assert!(probe.passes(ATTACKER)?);
    soon(&limiter, &ban, &unban)?;
    assert_eq!(probe.send(&udp(ATTACKER), 20)?, 0);
    soon(&limiter, &unban, &ban)?;
    assert_eq!(probe.send(&udp(ATTACKER), 20)?, 20);
    Ok(())
}

#[test]
fn an_override_and_its_end_are_in_force_at_once() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    assert_eq!(probe.send(&udp(ATTACKER), 10)?, 5);
    let make = [
        "override", "few", "--rate", "100000/s", "--burst", "100", "--for", "1h",
    ];
    let remove = ["override", "few", "--remove"];
    soon(&limiter, &make, &remove)?;
    // What was owed is owed in tokens, so a bucket that was empty fills at the new rate.
    wait_until("the bucket fills", || probe.passes(ATTACKER))?;
    let told = limiter.explain(ATTACKER.into())?;
    assert!(told["limits"][0]["overridden_for_s"].is_u64(), "{told}");
    soon(&limiter, &remove, &make)?;
    let told = limiter.explain(ATTACKER.into())?;
    assert!(told["limits"][0]["overridden_for_s"].is_null(), "{told}");
    assert!(probe.send(&udp(ATTACKER), 200)? <= 5);
    assert!(!probe.passes(ATTACKER)?);
    Ok(())
}

#[test]
fn an_override_for_some_leaves_others_alone_and_ends_by_itself() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    let net = format!("{ATTACKER}/32");
    done(
        &limiter,
        &[
            "override", "many", "--rate", "1/h", "--burst", "2", "--for", "1s", "--source", &net,
        ],
    )?;
    assert!(probe.send(&udp(ATTACKER), 10)? <= 2);
    assert_eq!(probe.send(&udp([198, 51, 100, 8]), 10)?, 10);
    wait_until("it is over", || {
        Ok(status(&limiter)?.overrides.is_empty() && probe.passes(ATTACKER)?)
    })
}

#[test]
fn monitor_mode_is_a_switch() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    let banned = [198, 51, 100, 9];
    done(&limiter, &["ban", "198.51.100.9"])?;
    assert_eq!(probe.send(&udp(ATTACKER), 10)?, 5);
    assert!(!probe.passes(banned)?);
    let (on, off) = (["monitor", "on"], ["monitor", "off"]);
    soon(&limiter, &on, &off)?;
    assert_eq!(probe.send(&udp(ATTACKER), 10)?, 10);
    assert_eq!(probe.send(&udp(banned), 10)?, 10);
    let now = at_rest(&limiter)?;
    assert_eq!(now.policy.mode, "monitor");
    let would_drop = &now.interfaces[0].packets.would_drop_by_reason;
    assert_eq!((would_drop["limit"], would_drop["ban"]), (10, 10));
    assert_eq!(now.limits[0].would_drop, 10);
    soon(&limiter, &off, &on)?;
    assert_eq!(probe.send(&udp(ATTACKER), 10)?, 0);
    assert!(!probe.passes(banned)?);
    Ok(())
}

#[test]
fn a_reload_is_in_force_when_the_command_has_ended() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    assert_eq!(probe.send(&udp(ATTACKER), 10)?, 5);
    let start = Instant::now();
    let told = place.reload(&limiter, MANY)?;
    let took = start.elapsed();
    assert!(took < 5 * SOON, "{took:?}");
    assert_eq!(probe.send(&udp(ATTACKER), 10)?, 10);
    assert!(told.starts_with("policy 2 is in force after "), "{told}");
    assert!(told.contains("note: - limits.few.burst = 5\n"), "{told}");
    assert!(
        told.contains("note: + limits.many.burst = 1000000\n"),
        "{told}"
    );
    soon(&limiter, &["reload"], &["reload"])?;
    // To take a limit out and in again gives nobody another burst.
    place.reload(&limiter, FEW)?;
    assert_eq!(probe.send(&udp(ATTACKER), 10)?, 0);
    Ok(())
}

#[test]
fn sighup_reloads_the_file() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (daemon, log) = place.start(&limiter)?;
    let before = status(&limiter)?;
    place.write("policy.toml", MANY)?;
    daemon.signal(Signal::SIGHUP)?;
    wait_until("it is taken up", || {
        Ok(status(&limiter)?.limits[0].name == "many")
    })?;
    let after = status(&limiter)?;
    assert_eq!(after.pid, before.pid);
    assert_eq!(
        after.interfaces[0].program_id,
        before.interfaces[0].program_id
    );
    assert!(log.line(&["reloaded"]).is_some(), "{}", log.text());
    Ok(())
}
