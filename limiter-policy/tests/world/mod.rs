//! Policies and packets to test with.

pub(crate) mod frames;
pub(crate) mod random;

use std::collections::BTreeMap;

use ipnet::IpNet;
use limiter_common::{meter::Meter, policy::OnError};
use limiter_policy::{
    compile::LoadedPrefixes,
    prefix::Prefix,
    spec::{
        ANY_PORT, ClassSpec, Cost, LimitSpec, Mode, Origin, Packets, Per, PolicySpec, PortMatch,
        PrefixesSpec, Protocol, ServiceSpec, SourcesSpec, Terms,
    },
    units::{RateSpec, SizeSpec},
};

/// A second of the clock.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Terms as an operator writes them; `size` is empty for windows and the log.
pub(crate) fn terms(algorithm: &str, rate: &str, size: &str) -> Terms {
    let rate: RateSpec = rate.parse().unwrap();
    let size: Option<SizeSpec> = (!size.is_empty()).then(|| size.parse().unwrap());
    let amount = size.as_ref().map_or(0, |size| size.amount);
    let meter = match algorithm {
        "token-bucket" => Meter::token_bucket(rate.rate, amount),
        "leaky-bucket" => Meter::leaky_bucket(rate.rate, amount),
        "fixed-window" => Meter::fixed_window(rate.rate),
        "sliding-window" => Meter::sliding_window(rate.rate),
        _ => Meter::sliding_log(rate.rate),
    };
    Terms {
        meter: meter.unwrap(),
        rate,
        size,
    }
}

/// A token bucket.
pub(crate) fn bucket(rate: &str, burst: &str) -> Terms {
    terms("token-bucket", rate, burst)
}

/// A policy without limits.
pub(crate) fn spec() -> PolicySpec {
    PolicySpec {
        origin: Origin::Flags,
        interfaces: Vec::new(),
        sources: SourcesSpec {
            ipv4_prefix: 32,
            ipv6_prefix: 64,
            wide_ipv4_prefix: 24,
            wide_ipv6_prefix: 48,
            capacity: 1024,
            log_capacity: 1024,
            ban_capacity: 1024,
        },
        needs: bucket("1000/s", "2000"),
        monitor: false,
        services: Vec::new(),
        classes: Vec::new(),
        allow: PrefixesSpec::default(),
        ban: PrefixesSpec::default(),
        limits: Vec::new(),
    }
}

/// A limit per source on all packets.
pub(crate) fn limit(name: &str, terms: Terms) -> LimitSpec {
    LimitSpec {
        name: name.to_owned(),
        service: None,
        packets: Packets::Any,
        per: Per::Source,
        terms,
        wide: None,
        cost: Cost::Fixed(1),
        classes: BTreeMap::new(),
        mode: Mode::Enforce,
        on_error: OnError::Pass,
        on_exceed: None,
    }
}

/// A service on destination ports.
pub(crate) fn service(name: &str, protocol: Protocol, ports: (u16, u16)) -> ServiceSpec {
    ServiceSpec {
        name: name.to_owned(),
        matches: vec![PortMatch {
            protocol,
            destination: ports,
            source: ANY_PORT,
        }],
        destinations: Vec::new(),
    }
}

/// A class; its prefixes are given apart.
pub(crate) fn class(name: &str) -> ClassSpec {
    ClassSpec {
        name: name.to_owned(),
        prefixes: PrefixesSpec::default(),
    }
}

/// Prefixes, separated by spaces.
pub(crate) fn prefixes(text: &str) -> Vec<Prefix> {
    let nets = text.split_whitespace();
    nets.map(|net| net.parse::<IpNet>().unwrap().into())
        .collect()
}

/// Prefixes of classes, and no lists.
pub(crate) fn loaded(classes: &[&str]) -> LoadedPrefixes {
    LoadedPrefixes {
        classes: classes.iter().map(|text| prefixes(text)).collect(),
        ..LoadedPrefixes::default()
    }
}
