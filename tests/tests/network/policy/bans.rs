//! Bans by operators: whom they hit, whom they may not, when they end.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result};
use limiter_lab::{HOST_V4, HOST_V6, NET_V4};
use serde_json::Value;

use super::{MANY, Place, Probe, done, refused, udp};
use crate::common::{ATTACKER, ATTACKER_V6, Site, at_rest, status, wait_until};

#[test]
fn case_132_a_prefix_is_banned_whole_and_no_more() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    for prefix in ["203.0.113.0/24", "2001:db8:a::/48"] {
        assert_eq!(
            done(&limiter, &["ban", prefix])?,
            format!("{prefix} is banned\n")
        );
    }
    for inside in [[203, 0, 113, 0], [203, 0, 113, 77], [203, 0, 113, 255]] {
        assert!(!probe.passes(inside)?, "{inside:?}");
    }
    for outside in [[203, 0, 112, 255], [203, 0, 114, 0]] {
        assert!(probe.passes(outside)?, "{outside:?}");
    }
    assert!(!probe.passes(ATTACKER_V6)?);
    let told = limiter.explain(ATTACKER_V6.into())?;
    assert_eq!(
        (&told["listed"], &told["reason"]),
        (&"banned".into(), &"ban".into())
    );
    assert_eq!(told["banned_for_s"], Value::Null);
    done(&limiter, &["unban", "2001:db8:a::/48"])?;
    assert!(probe.passes(ATTACKER_V6)?);
    Ok(())
}

#[test]
fn a_ban_ends_by_itself() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (_daemon, log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    let whom = ATTACKER.to_string();
    let told = done(&limiter, &["ban", &whom, "--for", "2s"])?;
    assert_eq!(told, format!("{whom} is banned for 2 s\n"));
    assert!(!probe.passes(ATTACKER)?);
    let left = limiter.explain(ATTACKER.into())?["banned_for_s"].as_u64();
    assert!(left.is_some_and(|left| (1..=2).contains(&left)), "{left:?}");
    wait_until("the ban ends", || probe.passes(ATTACKER))?;
    wait_until("it is listed no more", || {
        Ok(status(&limiter)?.bans.operator == 0)
    })?;
    assert_eq!(
        done(&limiter, &["bans"])?,
        "no bans by operators or limits\n"
    );
    assert!(log.line(&["the ban is over", &whom]).is_some());
    assert_eq!(
        refused(&limiter, &["unban", &whom])?,
        format!("{whom} is not banned by an operator; see `limiter bans`")
    );
    Ok(())
}

#[test]
fn a_mapped_address_is_banned_as_ipv4() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mapped = format!("::ffff:{ATTACKER}");
    assert_eq!(
        done(&limiter, &["ban", &mapped])?,
        format!("{ATTACKER} is banned\n")
    );
    assert!(!Probe::new(&site)?.passes(ATTACKER)?);
    done(&limiter, &["unban", &ATTACKER.to_string()])?;
    assert!(Probe::new(&site)?.passes(ATTACKER)?);
    Ok(())
}

#[test]
fn who_bans_themselves_is_stopped() -> Result<()> {
    let site = Site::new()?;
    site.route_to_net()?;
    let limiter = site.limiter()?;
    let place = Place::new(&format!("allow = [\"203.0.113.0/24\"]\n{MANY}"))?;
    let (_daemon, _log) = place.start(&limiter)?;
    let force = "say --force (\"force\": true) if that is meant";
    for (target, message) in [
        (
            HOST_V4.to_string(),
            format!("{HOST_V4} is this host's own address {HOST_V4} (lim0), which is never banned"),
        ),
        (
            HOST_V6.to_string(),
            format!("{HOST_V6} is this host's own address {HOST_V6} (lim0), which is never banned"),
        ),
        (
            NET_V4.to_string(),
            format!("{NET_V4} is the default gateway {NET_V4} (by lim0); ban less, or {force}"),
        ),
        (
            "192.0.2.0/24".to_owned(),
            format!("192.0.2.0/24 covers this host's own address {HOST_V4} (lim0); ban less, or {force}"),
        ),
        (
            "10.0.0.0/7".to_owned(),
            "10.0.0.0/7 covers more than a /8; ban less, or say --force (\"force\": true) if all of it is meant".to_owned(),
        ),
        (
            "::/0".to_owned(),
            "::/0 covers more than a /19; ban less, or say --force (\"force\": true) if all of it is meant".to_owned(),
        ),
        (
            "203.0.113.0/24".to_owned(),
            "203.0.113.0/24 is in the policy's `allow`, which wins: the ban would change nothing; take it out of `allow` first".to_owned(),
        ),
    ] {
        assert_eq!(refused(&limiter, &["ban", &target])?, message);
    }
    assert_eq!(status(&limiter)?.bans.operator, 0);
    assert!(Probe::new(&site)?.passes(NET_V4)?);
    // Said twice, it is done.
    done(&limiter, &["ban", "10.0.0.0/7", "--force"])?;
    assert!(!Probe::new(&site)?.passes([11, 255, 0, 1])?);
    Ok(())
}

#[test]
fn bans_are_listed_with_author_reason_and_end() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(&format!("ban = [\"192.0.2.128/25\"]\n{MANY}"))?;
    let (_daemon, _log) = place.start(&limiter)?;
    done(
        &limiter,
        &[
            "ban",
            "198.51.100.7",
            "--for",
            "10m",
            "--reason",
            "scan, ticket 7",
        ],
    )?;
    done(&limiter, &["ban", "2001:db8:a::/48"])?;
    let bans = limiter.json(&["bans", "--json"])?;
    assert_eq!(bans["in_policy"], 1);
    let listed = bans["bans"].as_array().context("a list")?;
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["prefix"], "198.51.100.7");
    assert_eq!(listed[0]["by"], "operator");
    assert_eq!(listed[0]["author"], "root");
    assert_eq!(listed[0]["reason"], "scan, ticket 7");
    assert!(
        listed[0]["remaining_s"]
            .as_u64()
            .is_some_and(|left| (590..=600).contains(&left))
    );
    assert!(listed[0]["until"].is_string() && listed[0]["made"].is_string());
    assert_eq!(listed[1]["until"], Value::Null);
    let shown = done(&limiter, &["bans"])?;
    for part in [
        "198.51.100.7",
        "root",
        "scan, ticket 7",
        "unbanned",
        "and 1 prefixes of the policy's `ban`",
    ] {
        assert!(shown.contains(part), "no {part}: {shown}");
    }
    // Once more, it is another one.
    done(&limiter, &["ban", "198.51.100.7", "--for", "20m"])?;
    assert_eq!(status(&limiter)?.bans.operator, 2);
    let bans = limiter.json(&["bans", "--json"])?;
    assert_eq!(bans["bans"][0]["reason"], Value::Null);
    Ok(())
}

/// Bans who sends twice too much.
const BANNING: &str = r#"
interfaces = ["lim0"]

[[limits]]
name = "strict"
per = "source"
rate = "1/h"
burst = 5
on_exceed = { ban = "1h", after = 2, spoofable = true }
"#;

#[test]
fn a_ban_by_a_limit_is_lifted_like_another() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(BANNING)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    for last in [7, 8] {
        assert_eq!(probe.send(&udp(Ipv4Addr::new(198, 51, 100, last)), 10)?, 5);
    }
    let packets = at_rest(&limiter)?.interfaces[0]
        .packets
        .dropped_by_reason
        .clone();
    assert_eq!((packets["limit"], packets["ban"]), (4, 6));
    wait_until("the bans are counted", || {
        Ok(status(&limiter)?.bans.limit == 2)
    })?;
    // All that lie in a prefix.
    done(&limiter, &["unban", "198.51.100.0/24"])?;
    assert_eq!(
        limiter.json(&["bans", "--json"])?["bans"],
        serde_json::json!([])
    );
    let told = limiter.explain(Ipv4Addr::new(198, 51, 100, 8).into())?;
    assert_eq!(
        (&told["listed"], &told["reason"]),
        (&"no".into(), &"limit".into())
    );
    Ok(())
}
