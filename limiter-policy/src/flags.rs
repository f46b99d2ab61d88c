//! The short form of a policy: flags -> one limit per source, for all packets.

use std::collections::BTreeMap;

use limiter_common::{meter::Meter, policy::OnError, source::Prefixes};

use crate::{
    defaults::{self, NEEDS_BURST, NEEDS_RATE, SOURCES},
    names,
    spec::{
        Cost, LimitSpec, Mode, Origin, Packets, Per, PolicySpec, PrefixesSpec, SourcesSpec, Terms,
    },
    units::{RateSpec, SizeSpec, Unit},
};

/// The name of the one limit.
pub const LIMIT: &str = "per-source";

/// The policy flags of `limiter run`, as given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--rate`.
    pub rate: Option<RateSpec>,
    /// `--burst`.
    pub burst: Option<SizeSpec>,
    /// `--ipv4-prefix`.
    pub ipv4_prefix: Option<u8>,
    /// `--ipv6-prefix`.
    pub ipv6_prefix: Option<u8>,
    /// `--max-sources`.
    pub capacity: Option<u32>,
    /// `--needs-rate`.
    pub needs_rate: Option<RateSpec>,
    /// `--needs-burst`.
    pub needs_burst: Option<SizeSpec>,
    /// `--monitor`.
    pub monitor: bool,
}

/// The policy that flags state.
///
/// # Errors
///
/// Flags that are missing, contradict each other or are out of range, by name.
pub fn from_flags(flags: Flags) -> Result<PolicySpec, String> {
    let Flags {
        rate,
        burst,
        ipv4_prefix,
        ipv6_prefix,
        capacity,
        needs_rate,
        needs_burst,
        monitor,
    } = flags;
    let terms = terms(rate, burst)?;
    let sources = sources(ipv4_prefix, ipv6_prefix, capacity)?;
    let needs = needs(needs_rate, needs_burst)?;
    let cost = match terms.rate.unit {
        Unit::Packets => Cost::Fixed(1),
        Unit::Bytes => Cost::Length,
    };
    let limit = LimitSpec {
        name: LIMIT.to_owned(),
        service: None,
        packets: Packets::Any,
        per: Per::Source,
        terms,
        wide: None,
        cost,
        classes: BTreeMap::new(),
        mode: Mode::Enforce,
        on_error: OnError::Pass,
        on_exceed: None,
    };
    Ok(PolicySpec {
        origin: Origin::Flags,
        interfaces: Vec::new(),
        sources,
        needs,
        monitor,
        services: Vec::new(),
        classes: Vec::new(),
        allow: PrefixesSpec::default(),
        ban: PrefixesSpec::default(),
        limits: vec![limit],
    })
}

/// Checks the names of `--iface`.
///
/// # Errors
///
/// Names that no interface can have, and those given twice.
pub fn check_interfaces(names: &[String]) -> Result<(), String> {
    for (place, name) in names.iter().enumerate() {
        names::check_interface(name).map_err(|reason| format!("--iface {name:?}: {reason}"))?;
        if names[..place].contains(name) {
            return Err(format!(
                "--iface {name}: named twice; name each interface once"
            ));
        }
    }
    names::check_interface_count(names.len()).map_err(|reason| format!("--iface: {reason}"))
}

fn terms(rate: Option<RateSpec>, burst: Option<SizeSpec>) -> Result<Terms, String> {
    let Some(rate) = rate else {
        return Err(
            "--rate is missing: say what each source may send, for example --rate 1000/s --burst 2000".to_owned(),
        );
    };
    let Some(burst) = burst else {
        let example = match rate.unit {
            Unit::Packets => "2000",
            Unit::Bytes => "1MB",
        };
        return Err(format!(
            "--burst is missing: say how much of --rate {rate} a source may save up, for example --burst {example}"
        ));
    };
    bucket(("--rate", rate), ("--burst", burst))
}

fn sources(
    ipv4_prefix: Option<u8>,
    ipv6_prefix: Option<u8>,
    capacity: Option<u32>,
) -> Result<SourcesSpec, String> {
    let ipv4_prefix = ipv4_prefix.unwrap_or(SOURCES.ipv4_prefix);
    let ipv6_prefix = ipv6_prefix.unwrap_or(SOURCES.ipv6_prefix);
    if Prefixes::new(ipv4_prefix, ipv6_prefix).is_none() {
        return Err(format!(
            "--ipv4-prefix {ipv4_prefix} --ipv6-prefix {ipv6_prefix}: 1 to 32 and 1 to 128"
        ));
    }
    Ok(SourcesSpec {
        ipv4_prefix,
        ipv6_prefix,
        wide_ipv4_prefix: defaults::wide(SOURCES.wide_ipv4_prefix, ipv4_prefix),
        wide_ipv6_prefix: defaults::wide(SOURCES.wide_ipv6_prefix, ipv6_prefix),
        capacity: capacity.unwrap_or(SOURCES.capacity),
        ..SOURCES
    })
}

fn needs(rate: Option<RateSpec>, burst: Option<SizeSpec>) -> Result<Terms, String> {
    let rate = rate.map_or_else(|| NEEDS_RATE.parse(), Ok)?;
    let burst = burst.map_or_else(|| NEEDS_BURST.parse(), Ok)?;
    if rate.unit != Unit::Packets {
        return Err(format!(
            "--needs-rate {rate}: counts packets, for example 1000/s"
        ));
    }
    bucket(("--needs-rate", rate), ("--needs-burst", burst))
}

fn bucket(
    (rate_flag, rate): (&str, RateSpec),
    (burst_flag, burst): (&str, SizeSpec),
) -> Result<Terms, String> {
    match (rate.unit, burst.unit) {
        (Unit::Bytes, Unit::Packets) => {
            return Err(format!(
                "{burst_flag} {burst}: {rate_flag} {rate} counts bytes, so write a burst in bytes, for example 1MB"
            ));
        }
        (Unit::Packets, Unit::Bytes) => {
            return Err(format!(
                "{burst_flag} {burst}: {rate_flag} {rate} counts packets, so write a burst in packets, for example 2000"
            ));
        }
        (Unit::Packets, Unit::Packets) | (Unit::Bytes, Unit::Bytes) => {}
    }
    match Meter::token_bucket(rate.rate, burst.amount) {
        Some(meter) => Ok(Terms {
            meter,
            rate,
            size: Some(burst),
        }),
        None => Err(format!(
            "{rate_flag} {rate} {burst_flag} {burst}: not a bucket that can be counted"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(rate: &str, burst: &str) -> Flags {
        Flags {
            rate: (!rate.is_empty()).then(|| rate.parse().unwrap()),
            burst: (!burst.is_empty()).then(|| burst.parse().unwrap()),
            ..Flags::default()
        }
    }

    #[test]
    fn one_limit_per_source() {
        let spec = from_flags(flags("1000/s", "2000")).unwrap();
        assert_eq!(spec.sources, SOURCES);
        assert!(!spec.monitor);
        let [limit] = &spec.limits[..] else {
            panic!("one limit")
        };
        assert_eq!(limit.name, "per-source");
        assert_eq!(limit.cost, Cost::Fixed(1));
        let bytes = from_flags(flags("10MB/s", "1MB")).unwrap();
        assert_eq!(bytes.limits[0].cost, Cost::Length);
    }

    #[test]
    fn a_wide_prefix_is_never_longer_than_the_narrow_one() {
        let flags = Flags {
            ipv4_prefix: Some(16),
            ..flags("1/s", "1")
        };
        assert_eq!(from_flags(flags).unwrap().sources.wide_ipv4_prefix, 16);
    }

    #[test]
    fn what_is_refused() {
        let needs = |rate: &str, burst: &str| Flags {
            needs_rate: Some(rate.parse().unwrap()),
            needs_burst: Some(burst.parse().unwrap()),
            ..flags("1/s", "1")
        };
        for (flags, message) in [
            (
                flags("", "2000"),
                "--rate is missing: say what each source may send, for example --rate 1000/s --burst 2000",
            ),
            (
                flags("1000/s", ""),
                "--burst is missing: say how much of --rate 1000/s a source may save up, for example --burst 2000",
            ),
            (
                flags("1MB/s", ""),
                "--burst is missing: say how much of --rate 1MB/s a source may save up, for example --burst 1MB",
            ),
            (
                flags("1MB/s", "1000"),
                "--burst 1000: --rate 1MB/s counts bytes, so write a burst in bytes, for example 1MB",
            ),
            (
                flags("1000/s", "1MB"),
                "--burst 1MB: --rate 1000/s counts packets, so write a burst in packets, for example 2000",
            ),
            (
                Flags {
                    ipv4_prefix: Some(33),
                    ..flags("1/s", "1")
                },
                "--ipv4-prefix 33 --ipv6-prefix 64: 1 to 32 and 1 to 128",
            ),
            (
                needs("1MB/s", "1MB"),
                "--needs-rate 1MB/s: counts packets, for example 1000/s",
            ),
            (
                needs("1/s", "1MB"),
                "--needs-burst 1MB: --needs-rate 1/s counts packets, so write a burst in packets, for example 2000",
            ),
        ] {
            assert_eq!(from_flags(flags).unwrap_err(), message);
        }
    }

    #[test]
    fn interfaces() {
        let check = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            check_interfaces(&names)
        };
        assert_eq!(check(&["eth0", "eth1"]), Ok(()));
        assert_eq!(
            check(&["a b"]).unwrap_err(),
            "--iface \"a b\": not an interface name (1 to 15 bytes without blanks or slashes); `ip link` lists them"
        );
        assert_eq!(
            check(&["eth0", "eth0"]).unwrap_err(),
            "--iface eth0: named twice; name each interface once"
        );
        let many: Vec<_> = (0..65).map(|n| format!("eth{n}")).collect();
        assert!(
            check_interfaces(&many)
                .unwrap_err()
                .starts_with("--iface: 65 interfaces, one daemon")
        );
    }
}
