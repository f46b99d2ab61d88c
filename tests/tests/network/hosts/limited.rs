//! Who is over the limit is held to it, and sees no more of it than that.

use std::{
    net::IpAddr,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use limiter_lab::{ECHO_PORT, EchoServer, HOST_V4, HOST_V6, Manner, NET_V4, NET_V6, Polite, Stop};

use crate::common::{Site, allowance, at_rest, explain, start};

fn is_limited(mode: &str) -> Result<()> {
    let site = Site::new()?;
    let _server = EchoServer::start(&site)?;
    let limiter = site.limiter()?;
    let _daemon = start(
        &limiter,
        &format!("--rate 500/s --burst 50 --attach {mode}"),
    )?;
    let pairs: [(IpAddr, IpAddr); 2] = [
        (NET_V4.into(), HOST_V4.into()),
        (NET_V6.into(), HOST_V6.into()),
    ];
    for (client, server) in pairs {
        let hasty = Polite {
            per_second: 2_000,
            patience: Duration::from_millis(500),
            ..Polite::new(
                server,
                Manner::Udp { port: ECHO_PORT },
                Duration::from_secs(1),
            )
        };
        let start = Instant::now();
        let answers = hasty.start(&site, &Stop::new())?.join()?;
        at_rest(&limiter)?;
        let told = explain(&limiter, client)?;
        // The requests that passed are those that were answered.
        assert_eq!(told.passed, answers.answered, "{client}");
        assert_eq!(told.passed + told.dropped, answers.sent, "{client}");
        // A client that is held up asks for less than it may, and for longer.
        let least = allowance(50, 500, Duration::from_secs(1)) * 8 / 10;
        let most = allowance(50, 500, start.elapsed());
        assert!(
            (least..=most).contains(&told.passed),
            "{client}: {} instead of {least} to {most}",
            told.passed
        );
    }
    Ok(())
}

#[test]
fn a_hasty_client_is_answered_as_often_as_its_limit_allows_natively() -> Result<()> {
    is_limited("native")
}

#[test]
fn a_hasty_client_is_answered_as_often_as_its_limit_allows_in_generic_mode() -> Result<()> {
    is_limited("generic")
}

#[test]
fn a_source_that_waits_is_served_again() -> Result<()> {
    let site = Site::new()?;
    let _server = EchoServer::start(&site)?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 10/s --burst 5")?;
    let udp = Manner::Udp { port: ECHO_PORT };
    let hasty = Polite {
        per_second: 1_000,
        patience: Duration::from_millis(100),
        ..Polite::new(HOST_V4.into(), udp, Duration::from_millis(200))
    };
    let answers = hasty.start(&site, &Stop::new())?.join()?;
    assert!(answers.lost() > 150, "{answers:?}");
    let wait = explain(&limiter, NET_V4)?.limits[0].retry_after_ms;
    // A tenth of a second each, at most: a token may have come back since the last packet.
    assert!(wait.is_none_or(|wait| wait <= 100), "{wait:?}");
    thread::sleep(Duration::from_millis(100));
    let patient = Polite {
        per_second: 8,
        ..Polite::new(HOST_V4.into(), udp, Duration::from_secs(1))
    };
    let answers = patient.start(&site, &Stop::new())?.join()?;
    assert_eq!((answers.sent, answers.lost()), (8, 0));
    Ok(())
}
