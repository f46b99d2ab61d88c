//! Random policies and packets, of few enough addresses, ports and names that they meet.

use std::{collections::BTreeMap, net::IpAddr};

use fastrand::Rng;
use ipnet::IpNet;
use limiter_common::policy::OnError;
use limiter_policy::{
    changes::{Changes, OperatorBan, Override},
    compile::LoadedPrefixes,
    prefix::Prefix,
    spec::{
        ANY_PORT, BanSpec, ClassTerms, Cost, LimitSpec, Mode, Packets, Per, PolicySpec, PortMatch,
        Protocol, ServiceSpec, Terms,
    },
};

use super::{
    SECOND, bucket, class,
    frames::{self, ACK, Fragment, SYN, Upper},
    spec, terms,
};

const NETS: [&str; 22] = [
    "0.0.0.0/0",
    "198.51.0.0/16",
    "198.51.100.0/24",
    "198.51.100.0/25",
    "198.51.100.0/28",
    "198.51.100.7/32",
    "198.51.100.9/32",
    "203.0.113.1/32",
    "::/0",
    "2001:db8::/32",
    "2001:db8:1::/48",
    "2001:db8:1:1::/64",
    "2001:db8:1:1::/96",
    "2001:db8:1:1::7/128",
    "fe80::/9",
    "fe80::/10",
    "fe80::1/128",
    "64:ff9b::/64",
    "64:ff9b::/96",
    "64:ff9b::c633:6407/128",
    "2002:c633:6407::/48",
    "2002:c633:6407:1::/64",
];

const SOURCES: [&str; 15] = [
    "198.51.100.7",
    "198.51.100.8",
    "198.51.100.9",
    "198.51.100.200",
    "203.0.113.1",
    "2001:db8:1:1::7",
    "2001:db8:1:1::8",
    "2001:db8:1:2::7",
    "fe80::1",
    "fec0::1",
    "64:ff9b::c633:6407",
    "64:ff9b::1:c633:6407",
    "2002:c633:6407:1::1",
    "2002:c633:6407:2::1",
    "2001:db8:1:1:1::7",
];

const PORTS: [u16; 6] = [22, 53, 80, 443, 1500, 40_000];
const RANGES: [(u16, u16); 7] = [
    (22, 22),
    (53, 53),
    (80, 80),
    (80, 443),
    (1000, 2000),
    (1024, u16::MAX),
    ANY_PORT,
];

fn one<T: Copy>(random: &mut Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

fn some<T>(random: &mut Rng, most: usize, mut make: impl FnMut(&mut Rng) -> T) -> Vec<T> {
    (0..random.usize(..=most)).map(|_| make(random)).collect()
}

/// A prefix.
pub(crate) fn net(random: &mut Rng) -> IpNet {
    one(random, &NETS).parse().unwrap()
}

fn prefix(random: &mut Rng) -> Prefix {
    net(random).into()
}

/// Up to four prefixes.
pub(crate) fn prefixes(random: &mut Rng) -> Vec<Prefix> {
    some(random, 4, prefix)
}

/// A policy and its prefixes.
pub(crate) fn policy(random: &mut Rng) -> (PolicySpec, LoadedPrefixes) {
    let mut policy = spec();
    policy.sources.ipv4_prefix = one(random, &[32, 32, 24, 28]);
    policy.sources.wide_ipv4_prefix = policy.sources.ipv4_prefix.min(24);
    policy.sources.ipv6_prefix = one(random, &[64, 64, 128, 48, 8]);
    policy.sources.wide_ipv6_prefix = policy.sources.ipv6_prefix.min(48);
    policy.monitor = random.u8(..8) == 0;
    policy.needs = bucket(one(random, &["2/s", "10/min"]), "2");
    for name in &["web", "dns", "game"][..random.usize(..=3)] {
        policy.services.push(ServiceSpec {
            name: (*name).to_owned(),
            matches: (0..=random.usize(..2))
                .map(|_| port_match(random))
                .collect(),
            destinations: if random.bool() {
                Vec::new()
            } else {
                let nets = ["10.0.0.1/32", "10.0.0.0/24", "0.0.0.0/0", "2001:db8:d::/64"];
                some(random, 2, |random| one(random, &nets).parse().unwrap())
            },
        });
    }
    let mut prefixes = LoadedPrefixes::default();
    for name in &["gold", "iron", "lead"][..random.usize(..=3)] {
        policy.classes.push(class(name));
        prefixes.classes.push(some(random, 3, prefix));
    }
    if random.u8(..3) == 0 {
        prefixes.allow = some(random, 1, prefix);
        prefixes.ban = some(random, 2, prefix);
    }
    for name in &["a", "b", "c", "d", "e"][..random.usize(1..=5)] {
        let limit = limit(name, random, &policy);
        policy.limits.push(limit);
    }
    (policy, prefixes)
}

fn port_match(random: &mut Rng) -> PortMatch {
    PortMatch {
        protocol: one(random, &[Protocol::Tcp, Protocol::Udp]),
        destination: one(random, &RANGES),
        source: if random.u8(..3) == 0 {
            one(random, &RANGES)
        } else {
            ANY_PORT
        },
    }
}

/// The terms of one limit and its classes: all of them in a log, or none.
struct Family {
    log: bool,
    bytes: bool,
}

impl Family {
    fn terms(&self, random: &mut Rng) -> Terms {
        if self.log {
            return terms("sliding-log", one(random, &["5/s", "5/min"]), "");
        }
        let algorithm = one(
            random,
            &[
                "token-bucket",
                "token-bucket",
                "leaky-bucket",
                "fixed-window",
                "sliding-window",
            ],
        );
        let windows = algorithm.ends_with("window");
        let (rates, sizes): (&[_], &[_]) = match (self.bytes, windows) {
            (false, false) => (&["1/s", "10/s", "3/min", "1000/s", "1/h"], &["2", "3", "7"]),
            (false, true) => (&["3/s", "10/s", "4/min", "20/h"], &[""]),
            (true, false) => (&["50B/s", "7kB/s", "1kbit/s"], &["65536B"]),
            (true, true) => (&["200B/s", "700B/min", "1kB/h"], &[""]),
        };
        terms(algorithm, one(random, rates), one(random, sizes))
    }
}

fn limit(name: &str, random: &mut Rng, policy: &PolicySpec) -> LimitSpec {
    let per = one(
        random,
        &[
            Per::Source,
            Per::Source,
            Per::Source,
            Per::Service,
            Per::Everyone,
        ],
    );
    let of_source = per == Per::Source;
    let family = Family {
        log: random.u8(..6) == 0,
        bytes: random.u8(..6) == 0,
    };
    let service = (!policy.services.is_empty() && random.bool())
        .then(|| random.usize(..policy.services.len()));
    let packets = match random.u8(..14) {
        0 => Packets::TcpSyn,
        1 => Packets::TcpEstablished,
        2 => Packets::Udp,
        3 => Packets::Answers(vec![one(random, &RANGES)]),
        4 => Packets::Icmp,
        5 => Packets::Fragments,
        6 => Packets::Portless,
        _ => Packets::Any,
    };
    let mut classes = BTreeMap::new();
    for class in 0..policy.classes.len() {
        if random.bool() {
            let terms = if random.bool() || !of_source {
                ClassTerms::Exempt
            } else {
                ClassTerms::Terms(family.terms(random))
            };
            classes.insert(class, terms);
        }
    }
    LimitSpec {
        name: name.to_owned(),
        service,
        packets,
        per,
        terms: family.terms(random),
        wide: (of_source && random.u8(..3) == 0).then(|| family.terms(random)),
        cost: if family.bytes && !family.log {
            Cost::Length
        } else if family.log {
            Cost::Fixed(1)
        } else {
            Cost::Fixed(random.u32(1..=2))
        },
        classes,
        mode: one(random, &[Mode::Enforce, Mode::Enforce, Mode::Monitor]),
        on_error: OnError::Pass,
        on_exceed: (of_source && !family.log && random.u8(..3) == 0).then(|| BanSpec {
            length: one(random, &[SECOND, 60 * SECOND]),
            after: random.u32(1..=4),
            doubles: random.bool(),
        }),
    }
}

/// Bans and overrides in force at `now`, or over just before.
pub(crate) fn changes(random: &mut Rng, policy: &PolicySpec, now: u64) -> Changes {
    let until = |random: &mut Rng| match random.u8(..5) {
        0 => now,
        _ => now + random.u64(1..30) * SECOND,
    };
    let bans = some(random, 5, |random| OperatorBan {
        prefix: net(random),
        until: random.bool().then(|| until(random)),
    });
    let mut overrides = Vec::new();
    for limit in &policy.limits {
        let log = limit.terms.size.is_none() && limit.terms.rate.rate.tokens == 5;
        for _ in 0..random.usize(..=3) {
            let source = (limit.per == Per::Source && random.bool()).then(|| net(random));
            let wide = source.is_none() && limit.wide.is_some() && random.bool();
            overrides.push(Override {
                limit: format!("{}{}", limit.name, if wide { ".wide" } else { "" }),
                source,
                terms: Family {
                    log,
                    bytes: limit.cost == Cost::Length,
                }
                .terms(random),
                until: until(random),
            });
        }
    }
    Changes { bans, overrides }
}

/// A frame.
pub(crate) fn frame(random: &mut Rng) -> Vec<u8> {
    match random.u8(..40) {
        0 => return frames::arp(),
        1 => {
            return frames::packet(
                "127.0.0.1".parse().unwrap(),
                "10.0.0.1".parse().unwrap(),
                &Upper::Echo,
                Fragment::No,
            );
        }
        2 => return vec![0; random.usize(..60)],
        _ => {}
    }
    let source: IpAddr = one(random, &SOURCES).parse().unwrap();
    let destinations = if source.is_ipv4() {
        ["10.0.0.1", "10.0.0.2", "10.1.0.1"]
    } else {
        ["2001:db8:d::1", "2001:db8:d::2", "2001:db8:e::1"]
    };
    let destination = one(random, &destinations).parse().unwrap();
    let (from, to) = (one(random, &PORTS), one(random, &PORTS));
    let upper = match random.u8(..16) {
        0..=5 => Upper::Tcp(one(random, &[SYN, SYN, ACK, SYN | ACK, 0]), from, to),
        6..=10 => Upper::Udp(from, to),
        11 => Upper::UdpLite(from, to),
        12 => Upper::Sctp(from, to),
        13 => Upper::Echo,
        14 => Upper::Gre,
        _ => Upper::Cut,
    };
    let fragment = match random.u8(..10) {
        0 => Fragment::First,
        1 => Fragment::Later,
        _ => Fragment::No,
    };
    frames::packet(source, destination, &upper, fragment)
}

/// How far the clock moves between two packets.
pub(crate) fn pause(random: &mut Rng) -> u64 {
    match random.u8(..12) {
        0..=4 => 0,
        5 => 1,
        6 => random.u64(..SECOND),
        7 => SECOND / 10,
        8 => SECOND,
        9 => SECOND - 1,
        10 => random.u64(..20) * SECOND,
        _ => random.u64(..7200) * SECOND / 2,
    }
}
