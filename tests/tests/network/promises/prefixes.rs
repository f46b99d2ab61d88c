//! An IPv6 source is a prefix, however many addresses it uses.

use std::net::Ipv6Addr;

use anyhow::Result;
use limiter_lab::{HOST_V6, Kept, Paced, Sources, Stop, frame::Frame};

use crate::common::{DISCARD, Site, allowance, at_rest, explain, in_time, start};

const ADDRESSES: u32 = 4_000;

const FIRST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 1, 0, 0, 0, 0);

/// Sends from each address in turn, for three seconds; all of them must have the burst and the rate of one.
fn have_one_bucket(sources: Sources, words: &str) -> Result<()> {
    let site = Site::new()?;
    let frames = (0..u64::from(ADDRESSES))
        .map(|n| {
            let frame = Frame::ip(sources.address(n)?, HOST_V6.into());
            Ok(frame.udp(1234, DISCARD).build())
        })
        .collect::<Result<_>>()?;
    let stream = Paced {
        frames,
        rate_per_second: ADDRESSES.into(),
        packets: u64::from(ADDRESSES) * 3,
    };
    let (sent, told) = in_time(|| {
        let limiter = site.limiter()?;
        let _daemon = start(&limiter, words)?;
        let Kept { sent, latest } = stream.run(&site, &Stop::new())?;
        let entered = at_rest(&limiter)?.sources.events["inserted"];
        assert_eq!(entered, 1, "one entry for all addresses");
        Ok((latest, (sent, explain(&limiter, sources.address(17)?)?)))
    })?;
    assert_eq!(told.passed + told.dropped, sent.packets);
    let expected = allowance(100, 1_000, sent.elapsed);
    assert!(
        told.passed.abs_diff(expected) <= expected / 1_000,
        "{} admitted instead of {expected}",
        told.passed
    );
    Ok(())
}

#[test]
fn case_36_four_thousand_addresses_of_one_64_have_one_burst() -> Result<()> {
    let inside = Sources::rotating(FIRST.into(), ADDRESSES).prefixes(116);
    have_one_bucket(inside.random_hosts(), "--rate 1000/s --burst 100")
}

#[test]
fn case_37_four_thousand_64s_of_one_48_have_one_burst_if_asked_for() -> Result<()> {
    let inside = Sources::rotating(FIRST.into(), ADDRESSES).prefixes(64);
    have_one_bucket(inside, "--rate 1000/s --burst 100 --ipv6-prefix 48")
}
