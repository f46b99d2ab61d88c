//! `top` and the count of sources, from a walk in the background.

use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use anyhow::Result;
use limiter_lab::{Flood, HOST_V4, NET_INTERFACE, Sources, Stop, Wire, frame::Frame};
use limiter_userspace::report::TopSource;

use crate::common::{ATTACKER, DISCARD, Site, at_rest, start, status, top, wait_for, wait_until};

const CROWD: u32 = 10_000;

fn flood(sources: Sources, packets: u64, rate_per_second: u64) -> Flood {
    Flood {
        template: Frame::ipv4(ATTACKER, HOST_V4)
            .udp(1234, DISCARD)
            .payload(18)
            .template(),
        sources,
        packets,
        duration: Duration::from_secs(10),
        rate_per_second: Some(rate_per_second),
        cpu: None,
    }
}

fn crowd() -> Sources {
    Sources::rotating(Ipv4Addr::new(10, 0, 0, 1).into(), CROWD)
}

#[test]
fn the_busiest_come_first() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 50")?;
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    // Each source sends so many; the limit lets 50 through.
    for (last, count) in [(1, 20), (2, 150), (3, 60), (4, 100)] {
        let source = Ipv4Addr::new(198, 51, 100, last);
        let frame = Frame::ipv4(source, HOST_V4).udp(1234, DISCARD).build();
        wire.send_all(&vec![frame; count])?;
        at_rest(&limiter)?;
    }
    let top = wait_for("the last of them is ranked", || {
        let top = top(&limiter)?;
        let counted: u64 = top
            .busiest
            .iter()
            .map(|source| source.passed + source.dropped)
            .sum();
        Ok((counted == 330).then_some(top))
    })?;
    let row = |last: u8, passed: u64, dropped: u64| (format!("198.51.100.{last}"), passed, dropped);
    let rows = |sources: &[TopSource]| -> Vec<_> {
        sources
            .iter()
            .map(|source| (source.source.clone(), source.passed, source.dropped))
            .collect()
    };
    assert_eq!(
        rows(&top.busiest),
        [
            row(2, 50, 100),
            row(4, 50, 50),
            row(3, 50, 10),
            row(1, 20, 0)
        ]
    );
    assert_eq!(
        rows(&top.most_dropped),
        [row(2, 50, 100), row(4, 50, 50), row(3, 50, 10)]
    );
    Ok(())
}

#[test]
fn a_flooder_is_found_among_ten_thousand_within_five_seconds() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1000/s --burst 100")?;
    let stop = Stop::new();
    flood(crowd(), 30_000, 30_000).run(&site, &stop)?;
    let flooder = flood(Sources::one(ATTACKER.into()), 1_000_000, 20_000).start(&site, &stop)?;
    let start = Instant::now();
    let attacker = ATTACKER.to_string();
    // A rate needs two walks; it would be 20,000 on an idle machine.
    wait_until("the flooder leads", || {
        let top = top(&limiter)?;
        let leads = |ranking: &[TopSource]| {
            ranking.first().is_some_and(|first| {
                first.source == attacker && first.packets_per_s.is_some_and(|rate| rate > 5_000)
            })
        };
        Ok(leads(&top.busiest) && leads(&top.most_dropped))
    })?;
    let elapsed = start.elapsed();
    assert!(elapsed < Duration::from_secs(5), "found after {elapsed:?}");
    drop(flooder);
    let top = top(&limiter)?;
    assert_eq!(top.busiest.len(), 100, "the ranking is bounded");
    assert!(top.most_dropped.iter().all(|source| source.dropped > 0));
    Ok(())
}

#[test]
fn who_sends_now_leads_before_who_has_sent_more() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 100/s --burst 10")?;
    let stop = Stop::new();
    let yesterday = Ipv4Addr::new(198, 51, 100, 99);
    flood(Sources::one(yesterday.into()), 5_000, 20_000).run(&site, &stop)?;
    at_rest(&limiter)?;
    let _now = flood(Sources::one(ATTACKER.into()), 100_000, 500).start(&site, &stop)?;
    wait_until("it is there", || {
        Ok(status(&limiter)?.sources.events["inserted"] == 2)
    })?;
    let top = top(&limiter)?;
    assert_eq!((top.age_s, top.interval_ms), (0, Some(1_000)));
    for ranking in [&top.busiest, &top.most_dropped] {
        let [first, second] = &ranking[..] else {
            panic!("two: {ranking:?}")
        };
        assert_eq!(first.source, ATTACKER.to_string());
        assert!(first.dropped < second.dropped, "{ranking:?}");
        let rates = (second.packets_per_s, second.dropped_per_s);
        assert_eq!(rates, (Some(0), Some(0)), "{ranking:?}");
        // 500 and 400 on an idle machine.
        let packets = first.packets_per_s.unwrap_or_default();
        let dropped = first.dropped_per_s.unwrap_or_default();
        assert!((250..=600).contains(&packets), "{ranking:?}");
        assert!(dropped >= packets.saturating_sub(130), "{ranking:?}");
    }
    stop.ask();
    Ok(())
}

#[test]
fn the_interval_is_the_askers() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 100/s --burst 10")?;
    let start = Instant::now();
    let top = limiter.json(&["top", "--interval", "3", "--json"])?;
    assert_eq!(top["interval_ms"], 3_000);
    assert!(start.elapsed() >= Duration::from_secs(3));
    Ok(())
}

#[test]
fn sources_are_counted_and_the_count_is_fresh() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1000/s --burst 100")?;
    assert_eq!(status(&limiter)?.sources.tracked, 0);
    flood(crowd(), CROWD.into(), 50_000).run(&site, &Stop::new())?;
    let sources = wait_for("all are counted", || {
        let sources = status(&limiter)?.sources;
        assert!(sources.tracked_age_s <= 30, "{sources:?}");
        Ok((sources.tracked == u64::from(CROWD)).then_some(sources))
    })?;
    assert!(sources.tracked_complete);
    assert_eq!(sources.events["inserted"], u64::from(CROWD));
    assert_eq!(sources.events["insert_failed"], 0);
    Ok(())
}
