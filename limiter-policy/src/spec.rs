//! What an operator means: the policy as a pure value, checked, before it is compiled.

use std::{collections::BTreeMap, path::PathBuf};

use ipnet::IpNet;
use limiter_common::{meter::Meter, policy::OnError};

use crate::units::{RateSpec, SizeSpec};

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    /// Where it was written.
    pub origin: Origin,
    /// Interfaces that it names; `limiter run --iface` may name them instead.
    pub interfaces: Vec<String>,
    /// Who shares a bucket, and how many there may be.
    pub sources: SourcesSpec,
    /// The ceiling of each of the host's own needs.
    pub needs: Terms,
    /// Whether to drop nothing at all.
    pub monitor: bool,
    /// What is protected, in the order of the file.
    pub services: Vec<ServiceSpec>,
    /// Who is asking, in the order of the file.
    pub classes: Vec<ClassSpec>,
    /// Who passes before all limits.
    pub allow: PrefixesSpec,
    /// Who is always blocked.
    pub ban: PrefixesSpec,
    /// The limits, in the order of the file.
    pub limits: Vec<LimitSpec>,
}

/// Where a policy was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// On the command line.
    Flags,
    /// In a file.
    File(PathBuf),
}

/// `[sources]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcesSpec {
    /// Leading bits that tell IPv4 sources apart, 1 to 32.
    pub ipv4_prefix: u8,
    /// Leading bits that tell IPv6 sources apart, 1 to 128.
    pub ipv6_prefix: u8,
    /// The same for the wider sources of limits with `wide`; at most `ipv4_prefix`.
    pub wide_ipv4_prefix: u8,
    /// See `wide_ipv4_prefix`.
    pub wide_ipv6_prefix: u8,
    /// Sources remembered.
    pub capacity: u32,
    /// Sliding logs remembered: one for each source and limit with that algorithm.
    pub log_capacity: u32,
    /// Bans that limits may have made at once.
    pub ban_capacity: u32,
}

/// `[services.NAME]`: a packet is of a service if any of `matches` matches it, and its destination lies in any of
/// `destinations`, unless there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSpec {
    /// Name.
    pub name: String,
    /// Protocols and ports, at least one.
    pub matches: Vec<PortMatch>,
    /// Destination prefixes; empty for any.
    pub destinations: Vec<IpNet>,
}

/// A protocol and its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMatch {
    /// The protocol.
    pub protocol: Protocol,
    /// Destination ports, first and last.
    pub destination: (u16, u16),
    /// Source ports, first and last.
    pub source: (u16, u16),
}

/// All ports.
pub const ANY_PORT: (u16, u16) = (0, u16::MAX);

/// A protocol with ports that services name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// `[classes.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSpec {
    /// Name.
    pub name: String,
    /// Its prefixes.
    pub prefixes: PrefixesSpec,
}

/// Prefixes, written in the policy or in files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixesSpec {
    /// Inline. Bits beyond the length are zero.
    pub inline: Vec<IpNet>,
    /// Files with a prefix a line; relative ones have been made relative to the policy's directory.
    pub files: Vec<PathBuf>,
}

/// `[[limits]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSpec {
    /// Name, unique.
    pub name: String,
    /// The service it protects, by its place in `services`; `None` for all packets.
    pub service: Option<usize>,
    /// Which packets.
    pub packets: Packets,
    /// Who shares a bucket.
    pub per: Per,
    /// What each may do.
    pub terms: Terms,
    /// What each wider source may do, too; only `per = "source"`.
    pub wide: Option<Terms>,
    /// Tokens that a packet costs.
    pub cost: Cost,
    /// Other terms for classes, by their place in `classes`; only `per = "source"`, but for exemptions.
    pub classes: BTreeMap<usize, ClassTerms>,
    /// Whether it drops.
    pub mode: Mode,
    /// What becomes of a packet where its state cannot be kept.
    pub on_error: OnError,
    /// Whom it bans.
    pub on_exceed: Option<BanSpec>,
}

/// An algorithm with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// For the kernel.
    pub meter: Meter,
    /// The rate as written: of a window or log, how many in what time.
    pub rate: RateSpec,
    /// The burst of a token bucket or queue of a leaky one, as written; `None` for windows and the log.
    pub size: Option<SizeSpec>,
}

/// Packets that a limit is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packets {
    /// All.
    Any,
    /// TCP connection attempts: SYN without ACK.
    TcpSyn,
    /// TCP of connections: ACK without SYN.
    TcpEstablished,
    /// UDP.
    Udp,
    /// UDP from these source ports, first and last of each range: answers to what the host has asked.
    Answers(Vec<(u16, u16)>),
    /// ICMP and ICMPv6.
    Icmp,
    /// Fragments, the first included.
    Fragments,
    /// Packets without ports, or whose ports cannot be known.
    Portless,
}

/// Who shares a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Each source has its own.
    Source,
    /// Each service has one; of a limit that names none, each of all services.
    Service,
    /// There is one.
    Everyone,
}

/// Tokens that a packet costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A number, 1 unless the limit says otherwise.
    Fixed(u32),
    /// The bytes of its frame, if the rate counts bytes.
    Length,
}

/// What a class may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassTerms {
    /// The limit does not apply.
    Exempt,
    /// Other terms.
    Terms(Terms),
}

/// Whether a limit drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It does.
    Enforce,
    /// It counts what it would drop.
    Monitor,
}

/// `on_exceed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BanSpec {
    /// How long, in nanoseconds.
    pub length: u64,
    /// After how many refusals since the bucket was last full, at least 1.
    pub after: u32,
    /// Whether each further ban lasts twice as long.
    pub doubles: bool,
}

impl Mode {
    /// The name in files, status and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Monitor => "monitor",
        }
    }
}

impl Per {
    /// The name in files, status and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Service => "service",
            Self::Everyone => "everyone",
        }
    }
}
