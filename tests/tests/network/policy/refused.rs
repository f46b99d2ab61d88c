//! A policy that does not load changes nothing, and says where and why.

use anyhow::Result;
use limiter_lab::Limiter;
use serde_json::Value;

use super::{FEW, Place, Probe, done, ended, reason, refused, udp};
use crate::common::{ATTACKER, Site, get, status, wait_until};

const PORT: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9433);

/// Faults of a policy, and the answers; `FILE` stands for its name.
fn faults() -> Vec<(String, String)> {
    [
        ("interfaces = [\"lim0\"\n", "FILE:1:21: syntax: unclosed array, expected `]`"),
        (
            &FEW.replace("burst", "brust"),
            "FILE:8:1: limits.few.brust: unknown key: did you mean `burst`?",
        ),
        (
            &format!("ban = [\"1.2.3.4/33\"]\n{FEW}"),
            "FILE:1:8: ban[1]: `1.2.3.4/33`: the length of an IPv4 prefix is a whole number from 0 to 32",
        ),
        (
            "",
            "FILE:1:1: limits: missing, and so is `ban`: this policy would never drop anything; write a [[limits]] with \
             name, per, rate and burst",
        ),
        (
            &format!("{FEW}{}", FEW.replace("interfaces = [\"lim0\"]", "")),
            "FILE:13:8: limits[2].name: there is a limit `few` already: name each differently",
        ),
        (
            &FEW.replace("1/h", "1000"),
            "FILE:7:8: limits.few.rate: a rate needs a time: write `1000/s` for packets, or for example `10MB/s` or \
             `100Mbit/s`",
        ),
    ]
    .map(|(text, message)| (text.to_owned(), message.to_owned()))
    .to_vec()
}

/// Fails unless the reload is refused with this message and all stays as it was.
fn changes_nothing(
    limiter: &Limiter<'_>,
    probe: &mut Probe,
    message: &str,
    case: &str,
) -> Result<()> {
    let before = status(limiter)?;
    let tokens = || -> Result<Value> {
        let told = limiter.explain(ATTACKER.into())?;
        Ok(told["limits"][0]["tokens"].clone())
    };
    let left = tokens()?;
    assert_eq!(refused(limiter, &["reload"])?, message, "{case}");
    let after = status(limiter)?;
    assert_eq!(after.policy.last_reload_failure.as_deref(), Some(message));
    assert_eq!(after.policy.generation, before.policy.generation, "{case}");
    assert_eq!(after.limits[0].name, "few");
    assert_eq!(tokens()?, left, "{case}");
    assert!(!probe.passes(ATTACKER)?, "its bucket is as empty as before");
    let shown = done(limiter, &["status"])?;
    assert!(
        shown.contains(&format!(
            "  the last reload FAILED, the policy before it is in force: {message}\n"
        )),
        "{shown}"
    );
    Ok(())
}

#[test]
fn case_125_a_reload_that_fails_changes_nothing_and_says_why() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, log) = place.start_with(&limiter, &["--metrics", "127.0.0.1:9433"])?;
    let failed = || -> Result<bool> {
        let text = get(&site.host, PORT, "/metrics")?.body;
        Ok(text
            .lines()
            .any(|line| line == "limiter_policy_reload_failed 1"))
    };
    let mut probe = Probe::new(&site)?;
    assert_eq!(probe.send(&udp(ATTACKER), 10)?, 5);
    assert!(!failed()?);
    for (text, message) in faults() {
        let message = message.replace("FILE", &place.shown());
        place.rename_over("policy.toml", &text)?;
        changes_nothing(&limiter, &mut probe, &message, &text)?;
        assert!(failed()?, "the metric says so, too");
    }
    std::fs::remove_file(place.policy())?;
    let gone = format!(
        "{}: cannot be read: No such file or directory (os error 2)",
        place.shown()
    );
    changes_nothing(&limiter, &mut probe, &gone, "no file")?;
    assert!(
        log.line(&["ERROR", "the policy stays as it was: ", &gone])
            .is_some()
    );
    place.reload(&limiter, FEW)?;
    assert!(!failed()?);
    assert_eq!(status(&limiter)?.policy.last_reload_failure, None);
    assert!(!probe.passes(ATTACKER)?);
    Ok(())
}

#[test]
fn a_fault_is_found_by_watching_too() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    place.write("policy.toml", &FEW.replace("burst", "brust"))?;
    wait_until("it has failed", || {
        Ok(status(&limiter)?.policy.last_reload_failure.is_some())
    })?;
    place.write("policy.toml", FEW)?;
    wait_until("it is well again", || {
        Ok(status(&limiter)?.policy.last_reload_failure.is_none())
    })
}

#[test]
fn check_and_start_find_the_same_faults() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    for (text, message) in faults() {
        let message = message.replace("FILE", &place.shown());
        place.write("policy.toml", &text)?;
        assert_eq!(refused(&limiter, &["check", &place.shown()])?, message);
        let run = ended(&limiter, &["run", "--config", &place.shown()])?;
        assert_eq!(reason(&run, 1)?, message);
    }
    Ok(())
}

#[test]
fn other_tables_take_over_what_the_old_ones_know() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    probe.send(&udp(ATTACKER), 100)?;
    assert!(!probe.passes(ATTACKER)?);
    done(&limiter, &["ban", "203.0.113.1"])?;
    let before = status(&limiter)?;
    place.reload(&limiter, &format!("{FEW}\n[sources]\ncapacity = 65536\n"))?;
    let after = status(&limiter)?;
    assert_eq!(after.sources.capacity, 65_536);
    assert!(after.policy.generation > before.policy.generation);
    let seen = |status: &limiter_userspace::report::Status| status.interfaces[0].packets.seen;
    assert!(seen(&after) >= seen(&before), "counters go on");
    assert!(after.limits[0].dropped >= before.limits[0].dropped);
    assert!(!probe.passes(ATTACKER)?, "the bucket is as empty as before");
    assert!(!probe.passes([203, 0, 113, 1])?, "the ban holds");
    Ok(())
}
