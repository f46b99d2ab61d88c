//! What would become of a packet now: the same functions as in the kernel, on a copy of the state.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context as _, Result};
use limiter_common::{
    address::Address,
    judge::Verdict,
    meter::Decision,
    needs::Need,
    protocol::{EtherType, IpProtocol},
    source::{KeyRule, SourceKey},
    standing::Listed,
};
use limiter_policy::{
    compile::Compiled,
    host::{self, Asked, Explained},
    spec::{ClassTerms, Cost, PolicySpec, SourcesSpec},
};
use serde::{Deserialize, Serialize};

use crate::{
    changes::answer::OverrideShown, cli::Proto, control::Control, kernel::monotonic_now, snapshot,
};

/// `GET /v1/explain`, its query.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The source address.
    pub address: IpAddr,
    /// The packet's protocol.
    #[serde(default = "default_proto")]
    pub proto: Proto,
    /// Its destination port.
    #[serde(default)]
    pub dport: u16,
    /// Its source port.
    #[serde(default)]
    pub sport: u16,
    /// Whether it is a TCP connection attempt.
    #[serde(default)]
    pub syn: bool,
    /// Its destination address; any of this host's by default.
    #[serde(default)]
    pub to: Option<IpAddr>,
}

const fn default_proto() -> Proto {
    Proto::Udp
}

/// `GET /v1/explain`, its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// The address asked about; an IPv4-mapped one as IPv4.
    pub address: IpAddr,
    /// Its protocol.
    pub proto: Proto,
    /// Its destination port.
    pub dport: u16,
    /// Its source port.
    pub sport: u16,
    /// Whether it is a TCP connection attempt.
    pub syn: bool,
    /// `enforce` or `monitor`, where what is said to be dropped is not.
    pub mode: String,
    /// `pass` or `drop`, for such a packet now.
    pub verdict: String,
    /// Why it would be dropped, or in monitor mode counted as if.
    pub reason: Option<String>,
    /// The host's own need that it serves, if any.
    pub host_need: Option<String>,
    /// The source: who shares the buckets.
    pub source: String,
    /// The rule that made the source of the address.
    pub rule: String,
    /// Whether the source is remembered.
    pub tracked: bool,
    /// Packets of the source that passed since it was entered.
    pub passed: u64,
    /// Packets dropped since, or that would have been.
    pub dropped: u64,
    /// Seconds since its last packet.
    pub last_seen_s: Option<u64>,
    /// The classes that cover the source.
    pub classes: Vec<String>,
    /// What lists and bans say of it: `no`, `allowed` or `banned`.
    pub listed: String,
    /// Who has banned it and why; null where it is not banned.
    pub banned_by: Option<String>,
    /// Whether no destination port was given, so that limits of services were not asked.
    pub ports_unknown: bool,
    /// Seconds until the ban ends by itself; null where there is none, or it does not.
    pub banned_for_s: Option<u64>,
    /// In which order it is decided.
    pub precedence: String,
    /// The limits that match, in the order in which they are asked.
    pub limits: Vec<LimitExplanation>,
}

/// What a limit says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitExplanation {
    /// Name.
    pub name: String,
    /// `enforce` or `monitor`.
    pub mode: String,
    /// Rate, as it was written.
    pub rate: String,
    /// Burst or queue, as it was written; null for windows and logs.
    pub burst: Option<String>,
    /// How it decides.
    pub algorithm: String,
    /// The class whose terms hold; null for the limit's own.
    pub class: Option<String>,
    /// Seconds until an override ends, if one is in force.
    pub overridden_for_s: Option<u64>,
    /// Who shares its state.
    pub shared_by: String,
    /// Whether it does not apply to the source's classes.
    pub exempt: bool,
    /// What a token pays for: `packets` or `bytes`.
    pub unit: String,
    /// Whether it would admit the packet now.
    pub allowed: bool,
    /// Whole tokens in the bucket now.
    pub tokens: u64,
    /// Milliseconds until the packet would be admitted, rounded up; null if never.
    pub retry_after_ms: Option<u64>,
}

/// Explains a packet, as if it came in on the daemon's first interface.
///
/// # Errors
///
/// Where the maps cannot be read.
pub fn explain(question: &Question, control: &Control) -> Result<Explanation> {
    let (compiled, _) = control
        .enforcer()
        .in_force()
        .context("no policy is in force yet")?;
    let spec = control.spec();
    let monitor = control.enforcer().is_monitoring();
    let address = Address::from(question.address);
    let now = monotonic_now();
    let copied = snapshot::of(&compiled, &control.tables(), address, now, monitor)?;
    let bytes = packet(question);
    let explained = host::explain(&copied, &bytes);
    let mut judging = copied;
    let verdict = judging.judge_frame(&bytes);
    let counters = judging.counters();
    let host_need = Need::ALL.into_iter().find(|need| {
        counters.needs_passed[*need as usize] + counters.needs_exceeded[*need as usize] > 0
    });
    let (verdict, reason) = match verdict {
        Verdict::Pass => ("pass", None),
        Verdict::Drop(reason) if monitor => ("pass", Some(reason.name())),
        Verdict::Drop(reason) => ("drop", Some(reason.name())),
    };
    let key = explained.as_ref().map_or_else(
        || SourceKey::of(address, &compiled.policy.prefixes).0,
        |explained| explained.key,
    );
    let rule = SourceKey::of(address, &compiled.policy.prefixes).1;
    let source = control.tables().sources.get(&key)?;
    let head = source.map(|source| source.head);
    let asked = host_need.is_none() && reason != Some("invalid_source");
    let overrides = control.overrides().overrides;
    let limits = explained
        .iter()
        .filter(|explained| asked && explained.listed == Listed::No)
        .flat_map(|explained| &explained.limits)
        .map(|asked| {
            let shown = limit(asked, &spec, &compiled, now);
            overridden(shown, &overrides, question.address, monitor)
        });
    Ok(Explanation {
        address: address.into(),
        proto: question.proto,
        dport: question.dport,
        sport: question.sport,
        syn: question.syn,
        mode: mode(monitor).to_owned(),
        verdict: verdict.to_owned(),
        reason: reason.map(str::to_owned),
        host_need: host_need.map(|need| need.name().to_owned()),
        source: key.to_string(),
        rule: describe(rule, &spec),
        tracked: head.is_some(),
        passed: head.map_or(0, |head| head.passed),
        dropped: head.map_or(0, |head| head.dropped),
        last_seen_s: head.map(|head| now.saturating_sub(head.last_seen) / 1_000_000_000),
        classes: explained
            .as_ref()
            .map_or_else(Vec::new, |explained| explained.classes.clone()),
        listed: explained.as_ref().map_or_else(
            || "no".to_owned(),
            |explained| explained.listed.name().to_owned(),
        ),
        banned_by: explained
            .as_ref()
            .filter(|explained| explained.listed == Listed::Banned)
            .map(|explained| control.banned_by(question.address, explained.ban.as_ref())),
        ports_unknown: question.dport == 0
            && question.proto != Proto::Icmp
            && spec.limits.iter().any(|limit| limit.service.is_some()),
        banned_for_s: explained
            .as_ref()
            .filter(|explained| explained.listed == Listed::Banned)
            .and_then(|explained| banned_for(explained, now)),
        precedence: PRECEDENCE.to_owned(),
        limits: limits.collect(),
    })
}

/// In which order it is decided.
const PRECEDENCE: &str =
    "protected, then the longest of allow and ban (tie: allow), then bans of limits, then limits";

const fn mode(monitor: bool) -> &'static str {
    if monitor { "monitor" } else { "enforce" }
}

/// Seconds that a ban lasts still, if it ends by itself.
fn banned_for(explained: &Explained, now: u64) -> Option<u64> {
    let of_list = explained.entry.filter(|entry| entry.listed != 0);
    let until = match of_list {
        Some(entry) => entry.until,
        None => explained.ban?.until,
    };
    (until > now).then(|| (until - now).div_ceil(1_000_000_000))
}

fn limit(asked: &Asked, spec: &PolicySpec, compiled: &Compiled, now: u64) -> LimitExplanation {
    let meaning = &compiled.limits[asked.number];
    let limit = &spec.limits[meaning.spec];
    let terms = match (&limit.wide, meaning.wide) {
        (Some(wide), true) => wide,
        _ => &limit.terms,
    };
    // Which of the limit's terms the meter in force is of.
    let meter = asked.meter.and_then(|id| compiled.meters.get(&id));
    let of_class = limit.classes.iter().find_map(|(class, terms)| match terms {
        ClassTerms::Terms(terms) if meter.is_some_and(|meter| meter.meter == terms.meter) => {
            Some((&spec.classes[*class].name, terms))
        }
        ClassTerms::Terms(_) | ClassTerms::Exempt => None,
    });
    let (class, terms) = match of_class {
        Some((class, class_terms)) if meter.is_none_or(|meter| meter.meter != terms.meter) => {
            (Some(class.clone()), class_terms)
        }
        _ => (None, terms),
    };
    let overridden = asked.until != 0;
    LimitExplanation {
        name: asked.name.clone(),
        mode: limit.mode.name().to_owned(),
        rate: terms.rate.to_string(),
        burst: terms.size.as_ref().map(ToString::to_string),
        algorithm: terms.meter.algorithm().name().to_owned(),
        unit: match limit.cost {
            Cost::Length => "bytes".to_owned(),
            Cost::Fixed(_) => "packets".to_owned(),
        },
        class,
        overridden_for_s: overridden
            .then(|| asked.until.saturating_sub(now).div_ceil(1_000_000_000)),
        shared_by: match asked.key {
            Some(key) => format!("all of {key}"),
            None => match meaning.service {
                Some(service) => format!("all users of {}", spec.services[service].name),
                None => "everyone".to_owned(),
            },
        },
        exempt: asked.decision.is_none(),
        allowed: asked.decision.is_none_or(|decision| decision.allowed),
        tokens: asked
            .decision
            .map_or(0, |decision| left(decision, asked.cost)),
        retry_after_ms: asked.decision.map_or(Some(0), |decision| {
            decision.retry_after.map(|nanos| nanos.div_ceil(1_000_000))
        }),
    }
}

/// The same limit with the terms of an override in the place of its own.
fn overridden(
    mut shown: LimitExplanation,
    overrides: &[OverrideShown],
    address: IpAddr,
    monitor: bool,
) -> LimitExplanation {
    if monitor {
        mode(true).clone_into(&mut shown.mode);
    }
    if shown.overridden_for_s.is_none() {
        return shown;
    }
    let of_source = |change: &&OverrideShown| {
        let whom = change.source.map(|source| source.covers(address.into()));
        change.limit == shown.name && change.idle.is_none() && whom != Some(false)
    };
    // One for some sources goes before one for all.
    let found = overrides
        .iter()
        .filter(of_source)
        .max_by_key(|change| change.source.is_some());
    if let Some(change) = found {
        if let Some(rate) = &change.rate {
            shown.rate.clone_from(rate);
        }
        if change.burst.is_some() {
            shown.burst.clone_from(&change.burst);
        }
    }
    shown
}

/// Tokens before the packet, where the decision tells those after it.
const fn left(decision: Decision, cost: u64) -> u64 {
    if decision.allowed {
        decision.remaining + cost
    } else {
        decision.remaining
    }
}

fn describe(rule: KeyRule, spec: &PolicySpec) -> String {
    let SourcesSpec {
        ipv4_prefix,
        ipv6_prefix,
        ..
    } = spec.sources;
    match rule {
        KeyRule::Ipv4 if ipv4_prefix == 32 => "each IPv4 address by itself".to_owned(),
        KeyRule::Ipv4 => format!("all addresses of an IPv4 /{ipv4_prefix} share"),
        KeyRule::Ipv6 if ipv6_prefix == 128 => "each IPv6 address by itself".to_owned(),
        KeyRule::Ipv6 => format!("all addresses of an IPv6 /{ipv6_prefix} share"),
        KeyRule::LinkLocal => "each link-local address by itself".to_owned(),
        KeyRule::Nat64 => {
            "each NAT64 address by itself: an IPv4 host behind the translator".to_owned()
        }
        KeyRule::SixToFour => "all addresses of a 6to4 /48 share: one IPv4 host".to_owned(),
    }
}

/// The packet that the question is about, without payload.
fn packet(question: &Question) -> Vec<u8> {
    let Question {
        address,
        proto,
        dport,
        sport,
        syn,
        to,
    } = *question;
    let (protocol, upper) = upper_header(address, proto, sport, dport, syn);
    let mut frame = vec![0; 12];
    match address.to_canonical() {
        IpAddr::V4(source) => {
            frame.extend(EtherType::IPV4.0.to_be_bytes());
            let total = u16::try_from(20 + upper.len()).unwrap_or(u16::MAX);
            frame.extend([0x45, 0]);
            frame.extend(total.to_be_bytes());
            frame.extend([0, 0, 0, 0, HOP_LIMIT, protocol.0, 0, 0]);
            frame.extend(source.octets());
            // A host without an address can only broadcast.
            let to = match to {
                Some(IpAddr::V4(to)) => to,
                _ if source.is_unspecified() => Ipv4Addr::BROADCAST,
                _ => Ipv4Addr::new(192, 0, 2, 1),
            };
            frame.extend(to.octets());
        }
        IpAddr::V6(source) => {
            frame.extend(EtherType::IPV6.0.to_be_bytes());
            let payload = u16::try_from(upper.len()).unwrap_or(u16::MAX);
            frame.extend([0x60, 0, 0, 0]);
            frame.extend(payload.to_be_bytes());
            frame.extend([protocol.0, HOP_LIMIT]);
            frame.extend(source.octets());
            let to = match to {
                Some(IpAddr::V6(to)) => to,
                _ => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
            };
            frame.extend(to.octets());
        }
    }
    frame.extend(upper);
    frame
}

const HOP_LIMIT: u8 = 64;

fn upper_header(
    address: IpAddr,
    proto: Proto,
    sport: u16,
    dport: u16,
    syn: bool,
) -> (IpProtocol, Vec<u8>) {
    const TCP_OFFSET: u8 = 5 << 4;
    const TCP_SYN: u8 = 0x02;
    const TCP_ACK: u8 = 0x10;
    let mut ports = Vec::new();
    ports.extend(sport.to_be_bytes());
    ports.extend(dport.to_be_bytes());
    match proto {
        Proto::Tcp => {
            ports.extend([0; 8]);
            ports.extend([TCP_OFFSET, if syn { TCP_SYN } else { TCP_ACK }]);
            ports.extend([0; 6]);
            (IpProtocol::TCP, ports)
        }
        Proto::Udp => {
            ports.extend([0, 8, 0, 0]);
            (IpProtocol::UDP, ports)
        }
        Proto::Icmp if address.to_canonical().is_ipv4() => {
            (IpProtocol::ICMP, vec![8, 0, 0, 0, 0, 0, 0, 0])
        }
        Proto::Icmp => (IpProtocol::ICMPV6, vec![128, 0, 0, 0, 0, 0, 0, 0]),
    }
}
