//! Flags -> what the daemon is to do, as a pure value that has been checked.

use std::net::SocketAddr;

use limiter_common::{
    limits::MAX_INTERFACES,
    needs::Need,
    policy::{Limit, Policy, Unit},
    source::Prefixes,
    token_bucket::TokenBucket,
};

use crate::{
    cli::{AttachMode, OnExit, RunArgs},
    units::{BurstSpec, RateSpec},
};

const DEFAULT_IPV4_PREFIX: u8 = 32;
const DEFAULT_IPV6_PREFIX: u8 = 64;
const DEFAULT_MAX_SOURCES: u32 = 1 << 20;
const DEFAULT_NEEDS_RATE: &str = "1000/s";
const DEFAULT_NEEDS_BURST: &str = "2000";

/// The longest alternative name of an interface: `ALTIFNAMSIZ` without its terminating zero
/// (`include/uapi/linux/if.h`).
const LONGEST_NAME: usize = 127;

/// All that `limiter run` is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Interfaces, each once.
    pub interfaces: Vec<String>,
    /// What to enforce.
    pub policy: PolicySpec,
    /// Sources remembered.
    pub capacity: u32,
    /// Where in the receive path.
    pub attach: AttachMode,
    /// Where to serve metrics.
    pub metrics: Option<SocketAddr>,
    /// Who else may use the socket.
    pub socket_group: Option<String>,
    /// What becomes of enforcement at SIGTERM.
    pub on_exit: OnExit,
    /// Whether to log rare events of the program.
    pub kernel_log: bool,
}

/// A policy as people state it.
#[derive(Clone, Debug)]
pub struct PolicySpec {
    /// What each source may send.
    pub rate: RateSpec,
    /// How much it may save up.
    pub burst: BurstSpec,
    /// Leading bits that tell IPv4 sources apart.
    pub ipv4_prefix: u8,
    /// Leading bits that tell IPv6 sources apart.
    pub ipv6_prefix: u8,
    /// Whether to drop nothing.
    pub monitor: bool,
    needs: TokenBucket,
    prefixes: Prefixes,
    limit: Limit,
}

/// A flag that cannot be used as given: wrong usage, exit code 2.
#[derive(Debug, PartialEq, Eq)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

fn usage<T>(message: impl Into<String>) -> Result<T, UsageError> {
    Err(UsageError(message.into()))
}

impl Settings {
    /// Checks flags against each other and makes them one value.
    ///
    /// # Errors
    ///
    /// Flags that contradict each other or are out of range, by name.
    pub fn new(mut args: RunArgs) -> Result<Self, UsageError> {
        let interfaces = interfaces(std::mem::take(&mut args.iface))?;
        let policy = PolicySpec::new(&args)?;
        let RunArgs {
            max_sources,
            attach,
            metrics,
            socket_group,
            on_exit,
            kernel_log,
            ..
        } = args;
        Ok(Self {
            interfaces,
            policy,
            capacity: max_sources.unwrap_or(DEFAULT_MAX_SOURCES),
            attach,
            metrics,
            socket_group,
            on_exit,
            kernel_log,
        })
    }
}

fn interfaces(names: Vec<String>) -> Result<Vec<String>, UsageError> {
    if names.is_empty() {
        return usage(
            "--iface is missing: name the interface to protect, for example --iface eth0; `ip link` lists them",
        );
    }
    for (i, name) in names.iter().enumerate() {
        if name.is_empty()
            || name.len() > LONGEST_NAME
            || name.contains(['/', '\0'])
            || name.contains(char::is_whitespace)
        {
            return usage(format!(
                "--iface {name:?}: not an interface name (1 to {LONGEST_NAME} bytes without blanks or slashes); `ip link` lists them"
            ));
        }
        if names[..i].contains(name) {
            return usage(format!(
                "--iface {name}: named twice; name each interface once"
            ));
        }
    }
    if names.len() > MAX_INTERFACES as usize {
        return usage(format!(
            "--iface: {} interfaces, one daemon serves at most {MAX_INTERFACES}; run another with a --socket and --pin-dir of its own",
            names.len()
        ));
    }
    Ok(names)
}

impl PolicySpec {
    fn new(args: &RunArgs) -> Result<Self, UsageError> {
        if let Some(file) = &args.config {
            return match policy_flag(args) {
                Some(flag) => usage(format!(
                    "{flag} and --config {}: the policy comes from flags or from a file; give one of them",
                    file.display()
                )),
                None => usage(format!(
                    "--config {}: this version takes its policy from flags only; give --rate and --burst",
                    file.display()
                )),
            };
        }
        let Some(rate) = args.rate.clone() else {
            return usage(
                "--rate is missing: say what each source may send, for example --rate 1000/s --burst 2000",
            );
        };
        let Some(burst) = args.burst.clone() else {
            return usage(format!(
                "--burst is missing: say how much of --rate {rate} a source may save up, for example --burst {}",
                match rate.unit {
                    Unit::Packets => "2000",
                    Unit::Bytes => "1MB",
                }
            ));
        };
        let ipv4_prefix = args.ipv4_prefix.unwrap_or(DEFAULT_IPV4_PREFIX);
        let ipv6_prefix = args.ipv6_prefix.unwrap_or(DEFAULT_IPV6_PREFIX);
        let Some(prefixes) = Prefixes::new(ipv4_prefix, ipv6_prefix) else {
            return usage(format!(
                "--ipv4-prefix {ipv4_prefix} --ipv6-prefix {ipv6_prefix}: 1 to 32 and 1 to 128"
            ));
        };
        let limit = Limit {
            bucket: bucket(("--rate", &rate), ("--burst", &burst))?,
            unit: rate.unit as u64,
        };
        let needs_rate = args
            .needs_rate
            .clone()
            .map_or_else(|| DEFAULT_NEEDS_RATE.parse(), Ok)
            .map_err(UsageError)?;
        let needs_burst = args
            .needs_burst
            .clone()
            .map_or_else(|| DEFAULT_NEEDS_BURST.parse(), Ok)
            .map_err(UsageError)?;
        if needs_rate.unit != Unit::Packets {
            return usage(format!(
                "--needs-rate {needs_rate}: counts packets, for example 1000/s"
            ));
        }
        let needs = bucket(
            ("--needs-rate", &needs_rate),
            ("--needs-burst", &needs_burst),
        )?;
        Ok(Self {
            rate,
            burst,
            ipv4_prefix,
            ipv6_prefix,
            monitor: args.monitor,
            needs,
            prefixes,
            limit,
        })
    }

    /// The policy as the kernel holds it.
    #[must_use]
    pub fn compile(&self, generation: u32) -> Policy {
        Policy {
            generation,
            monitor: self.monitor.into(),
            prefixes: self.prefixes,
            limit: self.limit,
            need_ceilings: [self.needs; Need::COUNT],
        }
    }

    /// `enforce` or `monitor`.
    #[must_use]
    pub const fn mode(&self) -> &'static str {
        if self.monitor { "monitor" } else { "enforce" }
    }
}

/// The first policy flag given, if any.
fn policy_flag(args: &RunArgs) -> Option<&'static str> {
    let RunArgs {
        rate,
        burst,
        ipv4_prefix,
        ipv6_prefix,
        max_sources,
        needs_rate,
        needs_burst,
        monitor,
        iface: _,
        config: _,
        attach: _,
        metrics: _,
        socket_group: _,
        on_exit: _,
        kernel_log: _,
    } = args;
    [
        (rate.is_some(), "--rate"),
        (burst.is_some(), "--burst"),
        (ipv4_prefix.is_some(), "--ipv4-prefix"),
        (ipv6_prefix.is_some(), "--ipv6-prefix"),
        (max_sources.is_some(), "--max-sources"),
        (needs_rate.is_some(), "--needs-rate"),
        (needs_burst.is_some(), "--needs-burst"),
        (*monitor, "--monitor"),
    ]
    .into_iter()
    .find_map(|(given, flag)| given.then_some(flag))
}

fn bucket(
    (rate_flag, rate): (&str, &RateSpec),
    (burst_flag, burst): (&str, &BurstSpec),
) -> Result<TokenBucket, UsageError> {
    match (rate.unit, burst.unit) {
        (Unit::Bytes, Unit::Packets) => {
            return usage(format!(
                "{burst_flag} {burst}: {rate_flag} {rate} counts bytes, so write a burst in bytes, for example 1MB"
            ));
        }
        (Unit::Packets, Unit::Bytes) => {
            return usage(format!(
                "{burst_flag} {burst}: {rate_flag} {rate} counts packets, so write a burst in packets, for example 2000"
            ));
        }
        (Unit::Packets, Unit::Packets) | (Unit::Bytes, Unit::Bytes) => {}
    }
    match TokenBucket::new(rate.rate, burst.amount) {
        Some(bucket) => Ok(bucket),
        None => usage(format!(
            "{rate_flag} {rate} {burst_flag} {burst}: not a bucket that can be counted"
        )),
    }
}
