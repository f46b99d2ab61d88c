//! `explain` says who shares a bucket with an address, and the kernel keeps to it.

use std::net::IpAddr;

use anyhow::Result;
use limiter_lab::{HOST_V4, HOST_V6, NET_INTERFACE, Wire, frame::Frame};

use crate::common::{DISCARD, Site, at_rest, explain, start};

/// An address, its source, the rule; then an address that shares its bucket, and one that does not.
type Rule = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static str,
);

const DEFAULT: [Rule; 6] = [
    (
        "198.51.100.7",
        "198.51.100.7",
        "each IPv4 address by itself",
        None,
        "198.51.100.6",
    ),
    (
        "2001:db8:a:1::7",
        "2001:db8:a:1::/64",
        "all addresses of an IPv6 /64 share",
        Some("2001:db8:a:1:ffff:ffff:ffff:ffff"),
        "2001:db8:a:2::7",
    ),
    (
        "fe80::7",
        "fe80::7",
        "each link-local address by itself",
        None,
        "fe80::8",
    ),
    (
        "64:ff9b::198.51.100.7",
        "64:ff9b::c633:6407",
        "each NAT64 address by itself: an IPv4 host behind the translator",
        None,
        "64:ff9b::198.51.100.8",
    ),
    (
        "2002:c633:6407::7",
        "2002:c633:6407::/48",
        "all addresses of a 6to4 /48 share: one IPv4 host",
        Some("2002:c633:6407:ffff::1"),
        "2002:c633:6408::7",
    ),
    // Not the translator's well-known /96, although near it.
    (
        "64:ff9b:1::7",
        "64:ff9b:1::/64",
        "all addresses of an IPv6 /64 share",
        Some("64:ff9b:1::8"),
        "64:ff9b:1:1::7",
    ),
];

const WIDE: [Rule; 4] = [
    (
        "198.51.100.7",
        "198.51.100.0/24",
        "all addresses of an IPv4 /24 share",
        Some("198.51.100.250"),
        "198.51.101.7",
    ),
    (
        "2001:db8:a:1::7",
        "2001:db8:a::/48",
        "all addresses of an IPv6 /48 share",
        Some("2001:db8:a:ffff::"),
        "2001:db8:b::7",
    ),
    (
        "fe80::7",
        "fe80::7",
        "each link-local address by itself",
        None,
        "fe80::8",
    ),
    (
        "2002:c633:6407::7",
        "2002:c633:6407::/48",
        "all addresses of a 6to4 /48 share: one IPv4 host",
        None,
        "2002:c633:6408::7",
    ),
];

const NARROW: [Rule; 2] = [
    (
        "2001:db8:a:1::7",
        "2001:db8:a:1::7",
        "each IPv6 address by itself",
        None,
        "2001:db8:a:1::8",
    ),
    (
        "2002:c633:6407::7",
        "2002:c633:6407::/48",
        "all addresses of a 6to4 /48 share: one IPv4 host",
        Some("2002:c633:6407::8"),
        "2002:c633:6408::7",
    ),
];

fn datagram(source: IpAddr) -> Vec<u8> {
    let frame = match source {
        IpAddr::V4(source) => Frame::ipv4(source, HOST_V4),
        IpAddr::V6(source) => Frame::ipv6(source, HOST_V6),
    };
    frame.udp(1234, DISCARD).build()
}

fn is_kept_to(flags: &str, rules: &[Rule]) -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, &format!("--rate 1/h --burst 3 {flags}"))?;
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    for (address, source, rule, sharing, other) in rules {
        let address: IpAddr = address.parse()?;
        let told = explain(&limiter, address)?;
        assert_eq!(
            (told.source.as_str(), told.rule.as_str()),
            (*source, *rule),
            "{address}"
        );
        assert!(!told.tracked, "{address} was not heard of yet");
        wire.send(&datagram(address))?;
        if let Some(sharing) = sharing {
            wire.send(&datagram(sharing.parse()?))?;
        }
        at_rest(&limiter)?;
        let told = explain(&limiter, address)?;
        assert_eq!(
            told.passed,
            1 + u64::from(sharing.is_some()),
            "{address} with {sharing:?}"
        );
        let told = explain(&limiter, other.parse::<IpAddr>()?)?;
        assert!(!told.tracked, "{other} has nothing to do with {address}");
    }
    Ok(())
}

#[test]
fn who_shares_a_bucket_by_default() -> Result<()> {
    is_kept_to("", &DEFAULT)
}

#[test]
fn who_shares_a_bucket_by_wide_prefixes() -> Result<()> {
    is_kept_to("--ipv4-prefix 24 --ipv6-prefix 48", &WIDE)
}

#[test]
fn who_shares_a_bucket_by_narrow_prefixes() -> Result<()> {
    is_kept_to("--ipv6-prefix 128", &NARROW)
}

#[test]
fn case_34_the_byte_order_is_that_of_the_text() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    wire.send(&datagram("10.0.0.1".parse()?))?;
    at_rest(&limiter)?;
    assert_eq!(explain(&limiter, "10.0.0.1".parse::<IpAddr>()?)?.passed, 1);
    assert!(!explain(&limiter, "1.0.0.10".parse::<IpAddr>()?)?.tracked);
    Ok(())
}

#[test]
fn case_38_a_mapped_address_is_explained_as_the_ipv4_address_it_stands_for() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let told = explain(&limiter, "::ffff:198.51.100.7".parse::<IpAddr>()?)?;
    assert_eq!(told.address, "198.51.100.7".parse::<IpAddr>()?);
    assert_eq!(told.source, "198.51.100.7");
    assert_eq!(told.verdict, "pass");
    // On the wire it is nobody's address.
    Wire::open(&site.net, NET_INTERFACE)?.send(&datagram("::ffff:198.51.100.7".parse()?))?;
    let status = at_rest(&limiter)?;
    assert_eq!(
        status.interfaces[0].packets.dropped_by_reason["invalid_source"],
        1
    );
    assert_eq!(status.sources.events["inserted"], 0);
    Ok(())
}
