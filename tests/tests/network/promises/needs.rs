//! What the host needs from its network passes, whatever a source has done.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use anyhow::{Context as _, Result};
use limiter_lab::{
    HOST_INTERFACE, HOST_MAC, HOST_V4, HOST_V6, Mac, NET_INTERFACE, NET_MAC, Tap, Wire,
    frame::Frame,
};

use crate::common::{ATTACKER, ATTACKER_V6, DISCARD, Site, at_rest, start};

/// Whom nobody answers for, so that nothing arrives but what was sent on purpose.
const NOBODY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x99);

/// Where link-layer protocols send.
const SLOW_PROTOCOLS: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 0x02]);
const NEAREST_BRIDGE: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
const SPANNING_TREE: Mac = Mac([0x01, 0x80, 0xc2, 0, 0, 0x00]);

fn vrrp(ttl: u8) -> Frame {
    let group = Ipv4Addr::new(224, 0, 0, 18);
    Frame::ipv4(ATTACKER, group)
        .ttl(ttl)
        .protocol(112)
        .payload(20)
}

/// Needs by their names in the status, all of them from sources whose buckets are empty.
fn needs() -> Vec<(&'static str, Frame)> {
    let link_local = NET_MAC.link_local();
    let quoted_v4 = Frame::ipv4(HOST_V4, ATTACKER).udp(1, 2).payload(8);
    let quoted_v6 = Frame::ipv6(HOST_V6, ATTACKER_V6).udp(1, 2).payload(8);
    let quoted = |frame: &Frame| frame.build()[frame.ip_offset()..].to_vec();
    vec![
        ("arp", Frame::arp_request(ATTACKER, HOST_V4)),
        ("arp", Frame::arp_reply(ATTACKER, HOST_V4, HOST_MAC)),
        (
            "neighbour_discovery",
            Frame::neighbour_solicitation(ATTACKER_V6, NOBODY_V6),
        ),
        (
            "neighbour_discovery",
            Frame::neighbour_solicitation(Ipv6Addr::UNSPECIFIED, NOBODY_V6),
        ),
        (
            "neighbour_discovery",
            Frame::neighbour_advertisement(ATTACKER_V6, HOST_V6),
        ),
        (
            "neighbour_discovery",
            Frame::router_solicitation(ATTACKER_V6),
        ),
        (
            "neighbour_discovery",
            Frame::router_advertisement(link_local),
        ),
        (
            "path_mtu",
            Frame::ipv4(ATTACKER, HOST_V4)
                .packet_too_big(1_400)
                .payload_bytes(&quoted(&quoted_v4)),
        ),
        (
            "path_mtu",
            Frame::ipv6(ATTACKER_V6, HOST_V6)
                .packet_too_big(1_400)
                .payload_bytes(&quoted(&quoted_v6)),
        ),
        (
            "dhcp",
            Frame::ipv4(ATTACKER, HOST_V4).udp(67, 68).payload(240),
        ),
        (
            "dhcp",
            Frame::ipv6(ATTACKER_V6, HOST_V6).udp(547, 546).payload(100),
        ),
        ("vrrp", vrrp(255)),
        ("lacp", Frame::other(0x8809).to(SLOW_PROTOCOLS).payload(50)),
        ("lldp", Frame::other(0x88cc).to(NEAREST_BRIDGE).payload(50)),
        ("eapol", Frame::other(0x888e).to(NEAREST_BRIDGE).payload(50)),
        (
            "stp",
            Frame::other(38)
                .to(SPANNING_TREE)
                .payload_bytes(&[&[0x42, 0x42, 3], &[0; 43][..]].concat()),
        ),
    ]
}

/// What looks like a need and is none: a router forwarded it.
fn lookalikes() -> [Frame; 3] {
    [
        Frame::neighbour_solicitation(ATTACKER_V6, HOST_V6).ttl(64),
        Frame::neighbour_advertisement(ATTACKER_V6, HOST_V6).ttl(254),
        vrrp(64),
    ]
}

#[test]
fn cases_24_25_28_32_needs_pass_from_sources_over_their_limit() -> Result<()> {
    const TIMES: u64 = 5;
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    let flood = [
        Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build(),
        Frame::ipv6(ATTACKER_V6, HOST_V6).udp(1234, DISCARD).build(),
        Frame::ipv6(NET_MAC.link_local(), HOST_V6)
            .udp(1234, DISCARD)
            .build(),
    ];
    wire.send_all(&flood)?;
    at_rest(&limiter)?;
    let mut tap = Tap::open(&site.host, HOST_INTERFACE)?;
    for (name, frame) in needs() {
        let frame = frame.build();
        let before = at_rest(&limiter)?;
        for _ in 0..TIMES {
            wire.send_all(&flood)?;
            wire.send(&frame)?;
            let arrived = tap
                .next(Duration::from_secs(1))?
                .with_context(|| format!("{name} was dropped"))?;
            assert_eq!(arrived, frame, "only {name} arrives");
        }
        let after = at_rest(&limiter)?;
        let [before, after] = [&before, &after].map(|status| &status.interfaces[0]);
        assert_eq!(
            after.host_needs[name].passed - before.host_needs[name].passed,
            TIMES,
            "{name}"
        );
        assert_eq!(
            after.packets.passed - before.packets.passed,
            TIMES,
            "{name}"
        );
    }
    let entered = at_rest(&limiter)?.sources.events["inserted"];
    assert_eq!(entered, 3, "needs take no place in the table (case 25)");
    for frame in lookalikes() {
        wire.send(&frame.build())?;
    }
    let arrived = tap.next(Duration::from_millis(50))?;
    assert_eq!(
        arrived, None,
        "what a router forwarded is no need (case 26)"
    );
    Ok(())
}

#[test]
fn case_26_a_need_is_no_hole() -> Result<()> {
    const BURST: u64 = 20;
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(
        &limiter,
        "--rate 1000/s --burst 1000 --needs-rate 1/h --needs-burst 20",
    )?;
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    for n in 0..100 {
        let router = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x100 + n);
        wire.send(&Frame::router_advertisement(router).build())?;
        wire.send(&Frame::arp_request(ATTACKER, HOST_V4).build())?;
    }
    let status = at_rest(&limiter)?;
    let interface = &status.interfaces[0];
    for need in ["neighbour_discovery", "arp"] {
        let counts = &interface.host_needs[need];
        assert_eq!(
            (counts.passed, counts.exceeded),
            (BURST, 100 - BURST),
            "{need}"
        );
    }
    assert_eq!(
        interface.packets.dropped_by_reason["need_ceiling"],
        2 * (100 - BURST)
    );
    assert_eq!(interface.packets.dropped, 2 * (100 - BURST));
    assert_eq!(status.sources.events["inserted"], 0);
    Ok(())
}
