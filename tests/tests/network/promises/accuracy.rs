//! A source gets its burst and its rate, to a tenth of a percent.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::Result;
use limiter_lab::{HOST_V4, Kept, Paced, Sent, Stop, Task, frame::Frame};
use limiter_userspace::explain::Explanation;

use crate::common::{DISCARD, Site, allowance, at_rest, explain, in_time, start, top, wait_until};

const RATE: u64 = 1_000;
const BURST: u64 = 100;
const SECONDS: u64 = 10;
/// Just above the rate, and up to far beyond it.
const OFFERED: [u64; 4] = [1_001, 1_500, 2_001, 20_000];

#[test]
fn a_steady_source_gets_its_burst_and_its_rate() -> Result<()> {
    let site = Site::new()?;
    for (sent, told) in in_time(|| offer_all(&site))? {
        let expected = allowance(BURST, RATE, sent.elapsed).min(sent.packets);
        assert!(
            told.passed.abs_diff(expected) <= expected / 1_000,
            "of {} offered, {} were admitted instead of {expected}",
            sent.packets,
            told.passed
        );
        assert_eq!(told.passed + told.dropped, sent.packets);
    }
    Ok(())
}

/// Offers each source its rate, all at the same time; what was sent and what became of it, and how late a frame was.
fn offer_all(site: &Site) -> Result<(Duration, Vec<(Sent, Explanation)>)> {
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1000/s --burst 100")?;
    let sources = [7, 8, 9, 10].map(|last| Ipv4Addr::new(198, 51, 100, last));
    let stop = Stop::new();
    let streams: Vec<Task<Kept>> = sources
        .into_iter()
        .zip(OFFERED)
        .map(|(source, rate)| {
            let frame = Frame::ipv4(source, HOST_V4).udp(1234, DISCARD).payload(18);
            let span = Duration::from_secs(SECONDS);
            Paced::for_duration(frame.build(), rate, span)?.start(site, &stop)
        })
        .collect::<Result<_>>()?;
    let mut late = Duration::ZERO;
    let mut outcomes = Vec::new();
    for (source, stream) in sources.into_iter().zip(streams) {
        let Kept { sent, latest } = stream.join()?;
        late = late.max(latest);
        outcomes.push((sent, source));
    }
    let status = at_rest(&limiter)?;
    let outcomes = outcomes
        .into_iter()
        .map(|(sent, source)| Ok((sent, explain(&limiter, source)?)))
        .collect::<Result<Vec<_>>>()?;
    let admitted: u64 = outcomes.iter().map(|(_, told)| told.passed).sum();
    assert_eq!(status.limits[0].passed, admitted, "all ways to ask agree");
    wait_until("the ranking agrees", || {
        let busiest = top(&limiter)?.busiest;
        let counts = busiest.iter().map(|source| source.passed + source.dropped);
        Ok(counts.eq(OFFERED.into_iter().rev().map(|rate| rate * SECONDS)))
    })?;
    Ok((late, outcomes))
}
