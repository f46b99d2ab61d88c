//! `explain` says what would become of a packet, and that is what becomes of it.

use std::{
    net::IpAddr,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use limiter_lab::{HOST_V4, NET_INTERFACE, Wire, frame::Frame};
use limiter_userspace::explain::Explanation;

use crate::common::{ATTACKER, DISCARD, Site, at_rest, explain, start};

#[test]
fn an_address_that_was_never_seen_starts_with_a_full_bucket() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3")?;
    let told = explain(&limiter, ATTACKER)?;
    assert_eq!(
        (told.verdict.as_str(), &told.reason, told.tracked),
        ("pass", &None, false)
    );
    assert_eq!((told.passed, told.dropped, told.last_seen_s), (0, 0, None));
    let [limit] = &told.limits[..] else {
        panic!("one limit: {told:?}")
    };
    assert_eq!(
        (limit.name.as_str(), limit.mode.as_str()),
        ("per-source", "enforce")
    );
    assert_eq!(
        (limit.allowed, limit.tokens, limit.retry_after_ms),
        (true, 3, Some(0))
    );
    assert_eq!(
        at_rest(&limiter)?.sources.events["inserted"],
        0,
        "asking enters nobody"
    );
    Ok(())
}

#[test]
fn case_41_impossible_sources_are_said_to_be_so() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3")?;
    for address in [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "224.0.0.1",
        "239.255.255.255",
        "255.255.255.255",
        "::",
        "::1",
        "ff02::1",
        "ff0e::7",
    ] {
        let told = explain(&limiter, address.parse::<IpAddr>()?)?;
        assert_eq!(
            (told.verdict.as_str(), told.reason.as_deref()),
            ("drop", Some("invalid_source")),
            "{address}"
        );
        assert!(
            told.limits.is_empty() && !told.tracked,
            "{address}: {told:?}"
        );
    }
    Ok(())
}

#[test]
fn needs_are_told_from_other_packets_of_the_same_source() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3")?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build();
    Wire::open(&site.net, NET_INTERFACE)?.send_all(&vec![frame; 5])?;
    at_rest(&limiter)?;
    let attacker = ATTACKER.to_string();
    for (words, need) in [
        ("--proto udp --sport 67 --dport 68", Some("dhcp")),
        ("--proto udp --sport 68 --dport 67", Some("dhcp")),
        ("--proto udp --sport 68 --dport 68", None),
        ("--proto tcp --sport 67 --dport 68", None),
        ("--proto tcp --dport 22 --syn", None),
        ("--proto icmp", None),
        ("", None),
    ] {
        let mut question = vec!["explain", &attacker, "--json"];
        question.extend(words.split_whitespace());
        let told: Explanation = serde_json::from_value(limiter.json(&question)?)?;
        assert_eq!(told.host_need.as_deref(), need, "{words}");
        if need.is_some() {
            assert_eq!(
                (told.verdict.as_str(), told.limits.len()),
                ("pass", 0),
                "{words}: {told:?}"
            );
        } else {
            assert_eq!(
                (told.verdict.as_str(), told.reason.as_deref()),
                ("drop", Some("limit")),
                "{words}"
            );
        }
    }
    Ok(())
}

fn sleep_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// A try to see the wait to be true; none if this machine was too slow for it.
fn try_the_wait(site: &Site, wire: &Wire) -> Result<Option<()>> {
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/s --burst 2")?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build();
    wire.send_all(&vec![frame.clone(); 5])?;
    at_rest(&limiter)?;
    let before = Instant::now();
    let told = explain(&limiter, ATTACKER)?;
    let after = Instant::now();
    let limit = &told.limits[0];
    assert_eq!(
        (told.verdict.as_str(), told.reason.as_deref()),
        ("drop", Some("limit"))
    );
    assert_eq!((limit.allowed, limit.tokens), (false, 0));
    let wait = Duration::from_millis(limit.retry_after_ms.context("it is admitted some time")?);
    assert!(
        wait <= Duration::from_secs(1),
        "one token is missing: {wait:?}"
    );
    // The wait counts from some moment between the question and its answer, and is rounded up to a millisecond.
    let not_yet = before + wait.saturating_sub(Duration::from_millis(1));
    sleep_until(before + wait.saturating_sub(Duration::from_millis(100)));
    wire.send(&frame)?;
    if Instant::now() >= not_yet {
        return Ok(None);
    }
    let admitted = at_rest(&limiter)?.limits[0].passed;
    assert_eq!(admitted, 2, "before {wait:?} are over, nothing passes");
    sleep_until(after + wait);
    assert!(explain(&limiter, ATTACKER)?.limits[0].allowed);
    wire.send(&frame)?;
    assert_eq!(
        at_rest(&limiter)?.limits[0].passed,
        3,
        "after {wait:?}, a packet passes"
    );
    Ok(Some(()))
}

#[test]
fn an_empty_bucket_admits_when_it_is_said_to_and_not_before() -> Result<()> {
    let site = Site::new()?;
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    for _attempt in 0..5 {
        if try_the_wait(&site, &wire)?.is_some() {
            return Ok(());
        }
    }
    bail!("this machine is too slow to ask, wait and send within a second")
}
