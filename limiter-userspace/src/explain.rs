//! What would become of a packet now: the same functions as in the kernel, on a copy of the state.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use limiter_common::{
    address::Address,
    counters::{Counters, Table},
    frame::{Frame as _, SliceFrame},
    judge::{NotInserted, SLOT, Tables as _, Verdict, judge},
    needs::Need,
    parse::parse,
    policy::Policy,
    protocol::{EtherType, IpProtocol},
    source::{KeyRule, SourceKey},
    state::SourceState,
    word::Word,
};
use serde::{Deserialize, Serialize};

use crate::{
    cli::Proto,
    kernel::{monotonic_now, tables::Tables},
    settings::PolicySpec,
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
    /// Burst, as it was written.
    pub burst: String,
    /// What a token pays for: `packets` or `bytes`.
    pub unit: String,
    /// Whether the packet would be admitted now.
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
pub fn explain(
    question: &Question,
    spec: &PolicySpec,
    policy: &Policy,
    tables: &Tables,
) -> anyhow::Result<Explanation> {
    let address = Address::from(question.address);
    let (key, rule) = SourceKey::of(address, &policy.prefixes);
    let state = tables.source(&key)?;
    let moment = Moment {
        now: monotonic_now(),
        source: state.map(SourceState::into),
        needs: tables.needs(FIRST_INTERFACE)?.map(Word::new),
    };
    let bytes = packet(question);
    let frame = SliceFrame(&bytes);
    let mut counters = Counters::default();
    let cost = if policy.limit.counts_bytes() {
        u64::from(frame.length())
    } else {
        1
    };
    let word = state.map_or(0, |state| state.buckets[SLOT]);
    let decision = policy.limit.bucket.decide(word, moment.now(), cost);
    let verdict = judge(&frame, &parse(&frame), &moment, policy, &mut counters);
    let host_need = Need::ALL.into_iter().find(|need| {
        counters.needs_passed[*need as usize] + counters.needs_exceeded[*need as usize] > 0
    });
    let limit = &counters.limit;
    let matched = limit.passed + limit.dropped + limit.would_drop > 0;
    let limits = matched.then(|| LimitExplanation {
        name: LIMIT_NAME.to_owned(),
        mode: spec.mode().to_owned(),
        rate: spec.rate.to_string(),
        burst: spec.burst.to_string(),
        unit: if policy.limit.counts_bytes() {
            "bytes"
        } else {
            "packets"
        }
        .to_owned(),
        allowed: decision.allowed,
        tokens: policy.limit.bucket.tokens(word, moment.now()),
        retry_after_ms: decision.retry_after.map(|nanos| nanos.div_ceil(1_000_000)),
    });
    let (verdict, reason) = match verdict {
        Verdict::Pass => ("pass", None),
        Verdict::Drop(reason) if policy.monitor != 0 => ("pass", Some(reason.name())),
        Verdict::Drop(reason) => ("drop", Some(reason.name())),
    };
    Ok(Explanation {
        address: address.into(),
        proto: question.proto,
        dport: question.dport,
        sport: question.sport,
        syn: question.syn,
        mode: spec.mode().to_owned(),
        verdict: verdict.to_owned(),
        reason: reason.map(str::to_owned),
        host_need: host_need.map(|need| need.name().to_owned()),
        source: key.to_string(),
        rule: describe(rule, spec),
        tracked: state.is_some(),
        passed: state.map_or(0, |state| state.passed),
        dropped: state.map_or(0, |state| state.dropped),
        last_seen_s: state
            .map(|state| moment.now().saturating_sub(state.last_seen) / 1_000_000_000),
        limits: limits.into_iter().collect(),
    })
}

/// The name of the limit that flags make.
pub const LIMIT_NAME: &str = "per-source";

const FIRST_INTERFACE: u32 = 0;

fn describe(rule: KeyRule, spec: &PolicySpec) -> String {
    match rule {
        KeyRule::Ipv4 if spec.ipv4_prefix == 32 => "each IPv4 address by itself".to_owned(),
        KeyRule::Ipv4 => format!("all addresses of an IPv4 /{} share", spec.ipv4_prefix),
        KeyRule::Ipv6 if spec.ipv6_prefix == 128 => "each IPv6 address by itself".to_owned(),
        KeyRule::Ipv6 => format!("all addresses of an IPv6 /{} share", spec.ipv6_prefix),
        KeyRule::LinkLocal => "each link-local address by itself".to_owned(),
        KeyRule::Nat64 => {
            "each NAT64 address by itself: an IPv4 host behind the translator".to_owned()
        }
        KeyRule::SixToFour => "all addresses of a 6to4 /48 share: one IPv4 host".to_owned(),
    }
}

/// The state at one moment, for one source.
struct Moment {
    now: u64,
    source: Option<SourceState<Word>>,
    needs: [Word; Need::COUNT],
}

impl limiter_common::judge::Tables for Moment {
    fn now(&self) -> u64 {
        self.now
    }

    fn source(&self, _key: &SourceKey) -> Option<&SourceState<Word>> {
        self.source.as_ref()
    }

    fn insert(&self, _key: &SourceKey, _state: &SourceState) -> Result<(), NotInserted> {
        Ok(())
    }

    fn need(&self, need: Need) -> Option<&Word> {
        self.needs.get(need as usize)
    }

    fn rare(&self, _event: Table, _count: u64) {}
}

/// The packet that the question is about, without payload.
fn packet(question: &Question) -> Vec<u8> {
    let Question {
        address,
        proto,
        dport,
        sport,
        syn,
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
            let to = if source.is_unspecified() {
                Ipv4Addr::BROADCAST
            } else {
                Ipv4Addr::new(192, 0, 2, 1)
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
            frame.extend(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets());
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
