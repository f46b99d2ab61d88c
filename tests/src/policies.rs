//! Policies to judge by.

use std::collections::BTreeMap;

use limiter_common::{
    meter::{Meter, Rate},
    policy::OnError,
    source::Prefixes,
};
use limiter_policy::{
    changes::Changes,
    compile::LoadedPrefixes,
    file,
    spec::{
        Cost, LimitSpec, Mode, Origin, Packets, Per, PolicySpec, PrefixesSpec, SourcesSpec, Terms,
    },
    units::{RateSpec, SizeSpec},
};

/// All that a policy is compiled from.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What is meant.
    pub spec: PolicySpec,
    /// The prefixes of its classes and lists.
    pub prefixes: LoadedPrefixes,
    /// What was changed at run time.
    pub changes: Changes,
}

impl Rules {
    /// What a file says. Its prefixes are all written in it.
    #[must_use]
    pub fn from_file(text: &str) -> Self {
        let parsed = file::parse("test.toml".as_ref(), text);
        let spec = parsed.unwrap_or_else(|error| panic!("{error}")).spec;
        let loaded = |prefixes: &PrefixesSpec| {
            assert!(prefixes.files.is_empty(), "prefixes of a test are inline");
            prefixes.inline.iter().copied().map(Into::into).collect()
        };
        Self {
            prefixes: LoadedPrefixes {
                classes: spec
                    .classes
                    .iter()
                    .map(|class| loaded(&class.prefixes))
                    .collect(),
                allow: loaded(&spec.allow),
                ban: loaded(&spec.ban),
            },
            spec,
            changes: Changes::default(),
        }
    }

    /// Who shares a bucket.
    #[must_use]
    pub fn keys(&self) -> Prefixes {
        let sources = &self.spec.sources;
        Prefixes::new(sources.ipv4_prefix, sources.ipv6_prefix).expect("valid prefix lengths")
    }

    /// The meter of the first limit.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.spec.limits[0].terms.meter
    }
}

const SECOND: u64 = 1_000_000_000;

/// So many tokens a second.
#[must_use]
pub fn per_second(tokens: u64) -> Rate {
    Rate {
        tokens,
        period: SECOND,
    }
}

/// So many tokens an hour.
#[must_use]
pub fn per_hour(tokens: u64) -> Rate {
    Rate {
        tokens,
        period: 3_600 * SECOND,
    }
}

/// One limit per source that counts packets: prefixes and ceilings as by default.
#[must_use]
pub fn packets(rate: Rate, burst: u64) -> Rules {
    with_limit(bucket(rate, burst), Cost::Fixed(1))
}

/// One limit per source that counts bytes: prefixes and ceilings as by default.
#[must_use]
pub fn bytes(rate: Rate, burst: u64) -> Rules {
    with_limit(bucket(rate, burst), Cost::Length)
}

/// The same, dropping nothing.
#[must_use]
pub fn monitored(mut rules: Rules) -> Rules {
    rules.spec.monitor = true;
    rules
}

/// The same with other prefix lengths.
#[must_use]
pub fn with_prefixes(mut rules: Rules, ipv4: u8, ipv6: u8) -> Rules {
    let sources = &mut rules.spec.sources;
    sources.ipv4_prefix = ipv4;
    sources.ipv6_prefix = ipv6;
    sources.wide_ipv4_prefix = sources.wide_ipv4_prefix.min(ipv4);
    sources.wide_ipv6_prefix = sources.wide_ipv6_prefix.min(ipv6);
    rules
}

/// The same with another ceiling for each of the host's own needs.
#[must_use]
pub fn with_needs(mut rules: Rules, rate: Rate, burst: u64) -> Rules {
    rules.spec.needs = bucket(rate, burst);
    rules
}

/// The ceiling of each of the host's own needs by default.
pub const NEED_RATE: u64 = 1_000;
/// How much of it can be saved up.
pub const NEED_BURST: u64 = 2_000;

fn with_limit(terms: Terms, cost: Cost) -> Rules {
    let limit = LimitSpec {
        name: "per-source".to_owned(),
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
    let spec = PolicySpec {
        origin: Origin::Flags,
        interfaces: Vec::new(),
        sources: SourcesSpec {
            ipv4_prefix: 32,
            ipv6_prefix: 64,
            wide_ipv4_prefix: 24,
            wide_ipv6_prefix: 48,
            capacity: 1 << 20,
            log_capacity: 1 << 16,
            ban_capacity: 1 << 16,
        },
        needs: bucket(per_second(NEED_RATE), NEED_BURST),
        monitor: false,
        services: Vec::new(),
        classes: Vec::new(),
        allow: PrefixesSpec::default(),
        ban: PrefixesSpec::default(),
        limits: vec![limit],
    };
    Rules {
        spec,
        prefixes: LoadedPrefixes::default(),
        changes: Changes::default(),
    }
}

/// A bucket of any rate and burst, also such as an operator may not write. The words beside it are for people only.
fn bucket(rate: Rate, burst: u64) -> Terms {
    Terms {
        meter: Meter::token_bucket(rate, burst).expect("a rate and burst within range"),
        rate: "1/s".parse().expect("a rate"),
        size: None,
    }
}

/// Terms of a token bucket, as an operator writes them.
#[must_use]
pub fn terms(rate: &str, burst: &str) -> Terms {
    let rate: RateSpec = rate.parse().expect("a rate");
    let size: SizeSpec = burst.parse().expect("a burst");
    Terms {
        meter: Meter::token_bucket(rate.rate, size.amount).expect("a bucket"),
        rate,
        size: Some(size),
    }
}
