//! The numbers add up, and agree with the interface's own.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use anyhow::Result;
use limiter_lab::{
    ECHO_PORT, EchoServer, Flood, HOST_V4, HOST_V6, Lab, Manner, NET_INTERFACE, Paced, Polite,
    Sources, Stop, Task, Wire,
    frame::{Extension, Frame},
};
use limiter_userspace::report::{InterfaceStatus, Status};

use crate::common::{ATTACKER, ATTACKER_V6, DISCARD, Site, at_rest, start};

/// A little of everything: floods of known and of new sources, what is dropped unseen, needs beyond their ceiling, and people.
fn mixed_traffic(site: &Site) -> Result<()> {
    let _server = EchoServer::start(site)?;
    let stop = Stop::new();
    let flood = |frame: Frame, sources: Sources, packets| Flood {
        template: frame.udp(1234, DISCARD).payload(18).template(),
        sources,
        packets,
        duration: Duration::from_secs(10),
        rate_per_second: Some(50_000),
        cpu: None,
    };
    let v4 = Frame::ipv4(ATTACKER, HOST_V4);
    let v6 = Frame::ipv6(ATTACKER_V6, HOST_V6);
    let floods = [
        flood(v4.clone(), Sources::one(ATTACKER.into()), 30_000),
        flood(v4.tagged(&[100]), Sources::any_ipv4(), 30_000),
        flood(v6, Sources::in_ipv6_sites(ATTACKER_V6, 10), 30_000),
    ];
    let floods: Vec<_> = floods
        .iter()
        .map(|flood| flood.start(site, &stop))
        .collect::<Result<_>>()?;
    let client = Polite::new(
        HOST_V4.into(),
        Manner::Tcp { port: ECHO_PORT },
        Duration::from_secs(1),
    );
    let client = client.start(site, &stop)?;
    send_oddities(site)?;
    for flood in floods {
        assert_eq!(flood.join()?.packets, 30_000);
    }
    Task::join(client)?;
    Ok(())
}

/// Frames that are dropped or passed for other reasons than a source's limit.
fn send_oddities(lab: &Lab) -> Result<()> {
    let datagram = || Frame::ipv4(Ipv4Addr::new(198, 51, 100, 99), HOST_V4).udp(1234, DISCARD);
    let mut frames = vec![
        datagram().build()[..30].to_vec(),
        datagram().tagged(&[1, 2, 3]).build(),
        datagram().tagged(&[1, 2]).build(),
        datagram().payload(3_000).fragments(1_480).concat()[..1_400].to_vec(),
        Frame::ipv4(Ipv4Addr::LOCALHOST, HOST_V4).udp(1, 2).build(),
        Frame::ipv4(Ipv4Addr::BROADCAST, HOST_V4).udp(1, 2).build(),
        Frame::ipv6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), HOST_V6)
            .udp(1, 2)
            .build(),
        Frame::ipv6(ATTACKER_V6, HOST_V6)
            .extension(Extension::destination())
            .protocol(132)
            .payload(8)
            .build(),
    ];
    frames.extend(datagram().payload(3_000).fragments(1_480));
    frames.extend(
        [0x88f7, 0x88e5, 0x8864, 0x1234, 60].map(|kind| Frame::other(kind).payload(60).build()),
    );
    Wire::open(&lab.net, NET_INTERFACE)?.send_all(&frames)?;
    // Beyond the ceiling of 2,000 and 1,000 a second; no faster, because the cable's ring has to hold what comes while the host is busy.
    let arp = Paced {
        frames: vec![Frame::arp_request(ATTACKER, HOST_V4).build()],
        rate_per_second: 5_000,
        packets: 4_000,
    };
    arp.run(lab, &Stop::new()).map(drop)
}

fn assert_sums(interface: &InterfaceStatus) {
    let packets = &interface.packets;
    assert_eq!(packets.seen, packets.passed + packets.dropped);
    assert_eq!(
        packets.dropped,
        packets.dropped_by_reason.values().sum::<u64>()
    );
}

/// What was not passed by the limit was passed without asking it.
fn assert_limits_agree(status: &Status) {
    let [limit] = &status.limits[..] else {
        panic!("there is one limit: {status:?}")
    };
    let sum =
        |count: &dyn Fn(&InterfaceStatus) -> u64| status.interfaces.iter().map(count).sum::<u64>();
    assert_eq!(
        limit.dropped,
        sum(&|interface| interface.packets.dropped_by_reason["limit"])
    );
    assert_eq!(
        limit.would_drop,
        sum(&|interface| interface.packets.would_drop_by_reason["limit"])
    );
    let needs = sum(&|interface| interface.host_needs.values().map(|need| need.passed).sum());
    let others = sum(&|interface| {
        ["llc", "ptp", "macsec", "pppoe_unparsed", "other_ether_type"]
            .map(|kind| interface.odd[kind])
            .iter()
            .sum()
    });
    assert_eq!(
        limit.passed + needs + others,
        sum(&|interface| interface.packets.passed)
    );
}

fn adds_up(mode: &str) -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(
        &limiter,
        &format!("--rate 1000/s --burst 100 --attach {mode}"),
    )?;
    let before = (at_rest(&limiter)?, site.host_counters()?.received);
    mixed_traffic(&site)?;
    let after = (at_rest(&limiter)?, site.host_counters()?.received);
    let seen = |status: &Status| status.interfaces[0].packets.seen;
    assert_eq!(seen(&after.0) - seen(&before.0), after.1 - before.1);
    assert!(after.1 - before.1 > 94_000, "the floods arrived");
    assert_sums(&after.0.interfaces[0]);
    assert_limits_agree(&after.0);
    for reason in [
        "limit",
        "malformed",
        "too_many_tags",
        "invalid_source",
        "need_ceiling",
    ] {
        let dropped = after.0.interfaces[0].packets.dropped_by_reason[reason];
        assert!(
            dropped > 0,
            "nothing was dropped for {reason}: no mixed run"
        );
    }
    Ok(())
}

#[test]
fn everything_adds_up_to_the_packet_natively() -> Result<()> {
    adds_up("native")
}

#[test]
fn everything_adds_up_to_the_packet_in_generic_mode() -> Result<()> {
    adds_up("generic")
}
