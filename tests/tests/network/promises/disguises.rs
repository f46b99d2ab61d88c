//! No disguise gets a source past its limit.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use anyhow::Result;
use limiter_lab::{
    HOST_INTERFACE, HOST_V4, HOST_V6, NET_INTERFACE, Tap, Wire,
    frame::{Extension, Frame, tcp_flags},
};

use crate::common::{ATTACKER, ATTACKER_V6, DISCARD, Site, at_rest, explain, start, wait_until};

/// How often each disguise is tried.
const TRIES: u64 = 10;

/// A name, and the frames of one datagram.
type Disguise = (String, Vec<Vec<u8>>);

fn ipv4() -> Vec<Disguise> {
    let bare = || Frame::ipv4(ATTACKER, HOST_V4);
    let datagram = || bare().udp(1234, DISCARD).payload(18);
    let mut all = vec![
        one("none", &datagram()),
        one("another port", &bare().udp(53, 53).payload(18)),
        one("a connection attempt", &bare().tcp(1, 22, tcp_flags::SYN)),
        one("a ping", &bare().echo_request(1, 1)),
        one("another destination", &{
            Frame::ipv4(ATTACKER, Ipv4Addr::BROADCAST).udp(1234, DISCARD)
        }),
        one("a later fragment (case 13)", &{
            bare().protocol(17).fragment(1480, false).payload(8)
        }),
        one("a tiny first fragment (case 18)", &{
            bare().protocol(6).fragment(0, true).payload(8)
        }),
        one("padding (case 14)", &{
            let last = bare().protocol(6).fragment(1480, false).payload(8);
            last.padded_to(60)
        }),
        (
            "fragments (case 13)".to_owned(),
            bare().udp(1234, DISCARD).payload(3_000).fragments(1_480),
        ),
    ];
    all.extend((1..=10).map(|words| {
        let name = format!("{words} words of options (case 11)");
        one(&name, &datagram().options(words))
    }));
    all.extend([47, 4, 50, 132, 255].map(|number| {
        let name = format!("protocol {number} (case 4)");
        one(&name, &bare().protocol(number).payload(8))
    }));
    all.extend(tagged(&datagram));
    all
}

fn ipv6() -> Vec<Disguise> {
    let bare = || Frame::ipv6(ATTACKER_V6, HOST_V6);
    let datagram = || bare().udp(1234, DISCARD).payload(18);
    let behind = |extensions: Vec<Extension>| {
        let frame = extensions.into_iter().fold(bare(), Frame::extension);
        frame.udp(1234, DISCARD).payload(18)
    };
    let mut all = vec![
        one("none", &datagram()),
        one("a ping", &bare().echo_request(1, 1)),
        one("another address of its /64 (case 36)", &{
            let other = Ipv6Addr::from_bits(ATTACKER_V6.to_bits() + 1);
            Frame::ipv6(other, HOST_V6).udp(1234, DISCARD)
        }),
        one(
            "authentication",
            &behind(vec![Extension::authentication(12)]),
        ),
        one("256 times 8 bytes (case 7)", &{
            bare()
                .extension(Extension::generic(60, 1_200))
                .udp(1234, 53)
        }),
        one("a whole datagram as a fragment (case 16)", &{
            datagram().fragment(0, false)
        }),
        one("a first fragment (case 16)", &datagram().fragment(0, true)),
        one("a later fragment (case 16)", &{
            bare().protocol(17).fragment(1448, false).payload(8)
        }),
        (
            "fragments".to_owned(),
            bare().udp(1234, DISCARD).payload(3_000).fragments(1_400),
        ),
    ];
    all.extend([0, 43, 60, 135, 139, 140].map(|number| {
        let name = format!("extension header {number} (case 5)");
        one(&name, &behind(vec![Extension::generic(number, 8)]))
    }));
    all.extend([8, 9].map(|count| {
        let name = format!("{count} extension headers (case 8)");
        one(&name, &behind(vec![Extension::destination(); count]))
    }));
    all.extend(tagged(&datagram));
    all
}

fn tagged(datagram: &dyn Fn() -> Frame) -> Vec<Disguise> {
    vec![
        one("a tag (case 1)", &datagram().tagged(&[100])),
        one("two tags", &datagram().tagged(&[100, 200])),
        one("a provider's tag", &datagram().service_tagged(100)),
        one("a provider's tag and another", &{
            datagram().service_tagged(100).tagged(&[200])
        }),
    ]
}

fn one(name: &str, frame: &Frame) -> Disguise {
    (name.to_owned(), vec![frame.build()])
}

#[test]
fn a_source_over_its_limit_is_dropped_in_every_disguise() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    // What empties the buckets.
    wire.send(&Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build())?;
    wire.send(&Frame::ipv6(ATTACKER_V6, HOST_V6).udp(1234, DISCARD).build())?;
    assert_eq!(at_rest(&limiter)?.limits[0].passed, 2);
    let mut tap = Tap::open(&site.host, HOST_INTERFACE)?;
    let mut total = 2;
    for (source, disguises) in [
        (IpAddr::from(ATTACKER), ipv4()),
        (IpAddr::from(ATTACKER_V6), ipv6()),
    ] {
        for (name, frames) in disguises {
            let before = explain(&limiter, source)?.dropped;
            for _ in 0..TRIES {
                wire.send_all(&frames)?;
            }
            let sent = TRIES * u64::try_from(frames.len())?;
            wait_until(&format!("{source} with {name} is dropped"), || {
                Ok(explain(&limiter, source)?.dropped == before + sent)
            })?;
            total += sent;
        }
    }
    assert_eq!(
        tap.next(Duration::from_millis(50))?,
        None,
        "nothing reached the host's network stack"
    );
    let status = at_rest(&limiter)?;
    assert_eq!(status.interfaces[0].packets.seen, total);
    assert_eq!(status.limits[0].passed, 2);
    assert_eq!(status.sources.events["inserted"], 2);
    Ok(())
}
