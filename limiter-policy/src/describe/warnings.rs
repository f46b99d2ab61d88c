//! What is allowed, and perhaps not meant.

use ipnet::IpNet;
use limiter_common::meter::Algorithm;

use super::words::kind;
use crate::spec::{LimitSpec, Mode, Packets, Per, PolicySpec, PrefixesSpec};

/// Prefixes this short are a mistake more often than a ban.
const SHORT_PREFIX: u8 = 7;

/// What to think twice about, each on a line of its own; nothing of it is refused.
#[must_use]
pub fn warnings(spec: &PolicySpec) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(not_enforced(spec));
    warnings.extend(not_covered(spec));
    for limit in &spec.limits {
        warnings.extend(of_limit(spec, limit));
    }
    warnings.extend(lists(spec));
    warnings.extend(unused(spec));
    warnings
}

fn not_enforced(spec: &PolicySpec) -> Option<String> {
    let limits = &spec.limits;
    if spec.monitor {
        Some("monitor = true: nothing at all is dropped, bans included".to_owned())
    } else if !limits.is_empty() && limits.iter().all(|limit| limit.mode == Mode::Monitor) {
        Some("all limits have mode = \"monitor\": none of them drops anything".to_owned())
    } else {
        None
    }
}

/// Packets that meet no limit at all.
fn not_covered(spec: &PolicySpec) -> Vec<String> {
    if spec.limits.is_empty() {
        return Vec::new();
    }
    // Whatever is per service is told by its ports.
    let meets = |of: &Packets| {
        spec.limits.iter().any(|limit| {
            let all = limit.service.is_none() && limit.per != Per::Service;
            all && (limit.packets == Packets::Any || limit.packets == *of)
        })
    };
    let mut warnings = Vec::new();
    for (of, what) in [
        (
            Packets::Portless,
            "packets without ports (later fragments, unknown protocols, tunnels)",
        ),
        (Packets::Icmp, "ICMP"),
    ] {
        if !meets(&of) {
            warnings.push(format!(
                "{what} meet no limit: add one with packets = {:?} or \"any\", and without a service",
                kind(&of)
            ));
        }
    }
    warnings
}

fn of_limit(spec: &PolicySpec, limit: &LimitSpec) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: String| warnings.push(format!("limit {}: {text}", limit.name));
    let rate = &limit.terms.rate;
    let (_, time) = rate.time();
    match limit.terms.meter.algorithm() {
        Algorithm::FixedWindow => warn(format!(
            "a fixed-window admits up to twice {rate} within one {time} across the seam of two windows"
        )),
        Algorithm::SlidingWindow => warn(format!(
            "a sliding-window takes the {time} before as evenly filled: after a burst at its very end, up to nearly twice \
             {rate} pass within one {time}"
        )),
        Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::SlidingLog => {}
    }
    if limit.on_exceed.is_some() {
        if limit.mode == Mode::Monitor {
            warn(
                "with mode = \"monitor\" it never bans: on_exceed waits for mode = \"enforce\""
                    .to_owned(),
            );
        } else if spec.allow == PrefixesSpec::default() {
            warn(format!(
                "it bans for {} packets, whose source anyone can forge, and `allow` is empty: list there whom you cannot do \
                 without",
                kind(&limit.packets)
            ));
        }
    }
    if limit.packets == Packets::Fragments && limit.service.is_some() {
        warn(
            "only the first fragment of a packet has ports, so later ones are of no service"
                .to_owned(),
        );
    }
    let sources = &spec.sources;
    if limit.wide.is_some()
        && sources.wide_ipv4_prefix == sources.ipv4_prefix
        && sources.wide_ipv6_prefix == sources.ipv6_prefix
    {
        warn(
            "wider sources are as wide as sources, so `wide` limits the same once more".to_owned(),
        );
    }
    warnings
}

fn lists(spec: &PolicySpec) -> Vec<String> {
    let mut warnings = Vec::new();
    for net in &spec.ban.inline {
        if spec.allow.inline.contains(net) {
            warnings.push(format!("{net} is in allow and ban: allow wins"));
        } else if net.prefix_len() <= SHORT_PREFIX {
            let family = match net {
                IpNet::V4(_) => "IPv4",
                IpNet::V6(_) => "IPv6",
            };
            let parts = 1_u32 << net.prefix_len();
            warnings.push(format!(
                "ban {net}: that is 1/{parts} of all {family} addresses"
            ));
        }
    }
    warnings
}

/// What is defined and named by no limit.
fn unused(spec: &PolicySpec) -> Vec<String> {
    let per_each_service = |limit: &LimitSpec| limit.service.is_none() && limit.per == Per::Service;
    let service_used = |place| {
        let names = |limit: &LimitSpec| limit.service == Some(place) || per_each_service(limit);
        spec.limits.iter().any(names)
    };
    let class_used = |place: usize| {
        spec.limits
            .iter()
            .any(|limit| limit.classes.contains_key(&place))
    };
    let services = spec.services.iter().enumerate();
    let classes = spec.classes.iter().enumerate();
    let services = services
        .filter(|(place, _)| !service_used(*place))
        .map(|(_, service)| format!("service {}: no limit names it", service.name));
    let classes = classes
        .filter(|(place, _)| !class_used(*place))
        .map(|(_, class)| format!("class {}: no limit names it", class.name));
    services.chain(classes).collect()
}
