//! What the policy in force looks like from outside.

use limiter_common::counters::{Counters, LimitCounters};
use limiter_policy::spec::{Packets, Terms};

use super::Control;
use crate::{
    kernel::load::Room,
    report::{LimitStatus, ListStatus, PolicyStatus},
};

impl Control {
    /// Room in the maps.
    #[must_use]
    pub fn room(&self) -> Room {
        self.engine().room
    }

    /// `enforce` or `monitor`.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        if self.enforcer().is_monitoring() {
            "monitor"
        } else {
            "enforce"
        }
    }

    /// The policy in force.
    #[must_use]
    pub fn policy_status(&self) -> PolicyStatus {
        let spec = self.spec();
        PolicyStatus {
            generation: self
                .enforcer()
                .in_force()
                .map_or(0, |(_, generation)| generation),
            source: self.source.name(),
            mode: self.mode().to_owned(),
            ipv4_prefix: spec.sources.ipv4_prefix,
            ipv6_prefix: spec.sources.ipv6_prefix,
            last_reload_failure: self.failure(),
        }
    }

    /// Each limit of the policy in force, with what it has counted of `total`.
    #[must_use]
    pub fn limits_status(&self, total: &Counters) -> Vec<LimitStatus> {
        let spec = self.spec();
        let Some((compiled, _)) = self.enforcer().in_force() else {
            return Vec::new();
        };
        let kernel = compiled.policy.limits.iter();
        let limits = compiled.limits.iter().zip(kernel);
        limits
            .filter_map(|(meaning, kernel)| {
                let limit = spec.limits.get(meaning.spec)?;
                let terms: &Terms = match &limit.wide {
                    Some(wide) if meaning.wide => wide,
                    _ => &limit.terms,
                };
                let counted = total.limits.get(kernel.counter as usize);
                let LimitCounters {
                    passed,
                    dropped,
                    would_drop,
                } = self
                    .enforcer()
                    .counted(kernel.counter, &counted.copied().unwrap_or_default());
                Some(LimitStatus {
                    name: meaning.name.clone(),
                    mode: if self.enforcer().is_monitoring() {
                        "monitor".to_owned()
                    } else {
                        limit.mode.name().to_owned()
                    },
                    per: limit.per.name().to_owned(),
                    service: meaning
                        .service
                        .map(|service| spec.services[service].name.clone()),
                    packets: packets(&limit.packets).to_owned(),
                    algorithm: terms.meter.algorithm().name().to_owned(),
                    rate: terms.rate.to_string(),
                    burst: terms.size.as_ref().map(ToString::to_string),
                    passed,
                    dropped,
                    would_drop,
                })
            })
            .collect()
    }

    /// What became of each list file.
    #[must_use]
    pub fn lists_status(&self) -> Vec<ListStatus> {
        self.wanted().prefixes.status().cloned().collect()
    }
}

const fn packets(packets: &Packets) -> &'static str {
    match packets {
        Packets::Any => "any",
        Packets::TcpSyn => "tcp-syn",
        Packets::TcpEstablished => "tcp-established",
        Packets::Udp => "udp",
        Packets::Answers(_) => "answers",
        Packets::Icmp => "icmp",
        Packets::Fragments => "fragments",
        Packets::Portless => "portless",
    }
}
