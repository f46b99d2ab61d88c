//! What operators changed outlives the daemon.

use std::{fs, thread, time::Duration};

use anyhow::Result;
use nix::sys::signal::Signal;

use super::{FEW, MANY, Place, Probe, done, udp};
use crate::common::{ATTACKER, Site, status, wait_until};

#[test]
fn bans_overrides_and_the_monitor_switch_survive_a_restart() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (daemon, _log) = place.start(&limiter)?;
    done(
        &limiter,
        &["ban", "198.51.100.0/24", "--for", "1h", "--reason", "scan"],
    )?;
    done(
        &limiter,
        &[
            "override", "many", "--rate", "1/h", "--burst", "3", "--for", "1h",
        ],
    )?;
    assert_eq!(daemon.end(Signal::SIGINT)?.code(), Some(0));
    // With nothing but the kernel's program in between, or without it.
    for end in [Signal::SIGTERM, Signal::SIGKILL] {
        let (daemon, _log) = place.start_with(&limiter, &["--on-exit", "keep"])?;
        let mut probe = Probe::new(&site)?;
        assert!(!probe.passes(ATTACKER)?, "before {end}");
        assert!(probe.send(&udp([203, 0, 113, 1]), 10)? <= 3, "before {end}");
        let bans = limiter.json(&["bans", "--json"])?;
        assert_eq!(bans["bans"][0]["prefix"], "198.51.100.0/24");
        assert_eq!(bans["bans"][0]["reason"], "scan");
        assert_eq!(bans["bans"][0]["author"], "root");
        let left = bans["bans"][0]["remaining_s"].as_u64();
        assert!(
            left.is_some_and(|left| (3_500..=3_600).contains(&left)),
            "{left:?}"
        );
        assert_eq!(status(&limiter)?.overrides.len(), 1);
        daemon.end(end)?;
        assert!(!probe.passes(ATTACKER)?, "after {end}");
    }
    let (daemon, _log) = place.start(&limiter)?;
    done(&limiter, &["monitor", "on"])?;
    daemon.end(Signal::SIGINT)?;
    let (_daemon, _log) = place.start(&limiter)?;
    assert_eq!(status(&limiter)?.policy.mode, "monitor");
    assert!(Probe::new(&site)?.passes(ATTACKER)?);
    done(&limiter, &["monitor", "off"])?;
    assert!(!Probe::new(&site)?.passes(ATTACKER)?);
    Ok(())
}

#[test]
fn what_is_over_meanwhile_does_not_come_back() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (daemon, _log) = place.start(&limiter)?;
    done(&limiter, &["ban", &ATTACKER.to_string(), "--for", "1s"])?;
    done(
        &limiter,
        &[
            "override", "many", "--rate", "1/h", "--burst", "1", "--for", "1s",
        ],
    )?;
    daemon.end(Signal::SIGINT)?;
    thread::sleep(Duration::from_secs(1));
    let (_daemon, _log) = place.start(&limiter)?;
    assert_eq!(Probe::new(&site)?.send(&udp(ATTACKER), 10)?, 10);
    let status = status(&limiter)?;
    assert_eq!((status.bans.operator, status.overrides.len()), (0, 0));
    Ok(())
}

#[test]
fn what_was_not_over_ends_after_the_restart() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (daemon, _log) = place.start(&limiter)?;
    done(&limiter, &["ban", &ATTACKER.to_string(), "--for", "4s"])?;
    daemon.end(Signal::SIGINT)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    assert!(!probe.passes(ATTACKER)?);
    wait_until("the ban ends", || probe.passes(ATTACKER))
}

#[test]
fn an_override_of_a_limit_that_is_gone_is_shown_as_idle() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (_daemon, _log) = place.start(&limiter)?;
    done(
        &limiter,
        &[
            "override", "many", "--rate", "1/h", "--burst", "1", "--for", "1h",
        ],
    )?;
    place.reload(&limiter, FEW)?;
    let shown = done(&limiter, &["overrides"])?;
    let idle = "NOT IN FORCE: many: the policy has no limit of that name; it has few\n";
    assert!(shown.ends_with(idle), "{shown}");
    place.reload(&limiter, MANY)?;
    assert!(Probe::new(&site)?.send(&udp(ATTACKER), 10)? <= 1);
    Ok(())
}

#[test]
fn without_a_state_directory_it_works_and_says_so() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    fs::write(&limiter.state_dir, "a file")?;
    let (_daemon, log) = place.start(&limiter)?;
    let warned = [
        "--state-dir",
        "cannot be used, bans and overrides will not survive a restart",
    ];
    assert!(log.line(&warned).is_some(), "{}", log.text());
    let told = done(&limiter, &["ban", &ATTACKER.to_string()])?;
    let note = format!(
        "{ATTACKER} is banned
note: it will not survive a restart: "
    );
    assert!(told.starts_with(&note), "{told}");
    assert!(!Probe::new(&site)?.passes(ATTACKER)?);
    fs::remove_file(&limiter.state_dir)?;
    Ok(())
}
