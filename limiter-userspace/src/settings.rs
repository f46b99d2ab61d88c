//! Flags -> what the daemon is to do, as a pure value that has been checked.

use std::{net::SocketAddr, path::PathBuf};

use limiter_common::limits::MAX_INTERFACES;
use limiter_policy::{
    flags::{self, Flags},
    spec::PolicySpec,
};

use crate::cli::{AttachMode, OnExit, RunArgs};

/// The longest alternative name of an interface: `ALTIFNAMSIZ` without its terminating zero
/// (`include/uapi/linux/if.h`).
const LONGEST_NAME: usize = 127;

/// All that `limiter run` is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Interfaces, each once; none where the policy file names them.
    pub interfaces: Vec<String>,
    /// Where the policy comes from.
    pub policy: PolicySource,
    /// Where in the receive path.
    pub attach: AttachMode,
    /// Where to serve metrics.
    pub metrics: Option<SocketAddr>,
    /// Who else may use the socket.
    pub socket_group: Option<String>,
    /// What becomes of enforcement at SIGTERM.
    pub on_exit: OnExit,
}

/// Where the policy comes from.
#[derive(Clone, Debug)]
pub enum PolicySource {
    /// Flags.
    Flags(Box<PolicySpec>),
    /// A file.
    File(PathBuf),
}

impl PolicySource {
    /// The name in status.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Flags(_) => "flags".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// The file, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Flags(_) => None,
            Self::File(path) => Some(path.clone()),
        }
    }
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
        let names = std::mem::take(&mut args.iface);
        let interfaces = if names.is_empty() && args.config.is_some() {
            names
        } else {
            interfaces(names)?
        };
        let policy = policy(&args)?;
        let RunArgs {
            attach,
            metrics,
            socket_group,
            on_exit,
            ..
        } = args;
        Ok(Self {
            interfaces,
            policy,
            attach,
            metrics,
            socket_group,
            on_exit,
        })
    }
}

fn policy(args: &RunArgs) -> Result<PolicySource, UsageError> {
    if let Some(file) = &args.config {
        return match policy_flag(args) {
            Some(flag) => usage(format!(
                "{flag} and --config {}: the policy comes from flags or from a file; give one of them",
                file.display()
            )),
            None => Ok(PolicySource::File(file.clone())),
        };
    }
    let flags = Flags {
        rate: args.rate.clone(),
        burst: args.burst.clone(),
        ipv4_prefix: args.ipv4_prefix,
        ipv6_prefix: args.ipv6_prefix,
        capacity: args.max_sources,
        needs_rate: args.needs_rate.clone(),
        needs_burst: args.needs_burst.clone(),
        monitor: args.monitor,
    };
    let spec = flags::from_flags(flags).map_err(UsageError)?;
    Ok(PolicySource::Flags(Box::new(spec)))
}

/// Checks the names of interfaces.
///
/// # Errors
///
/// Names that cannot be, or are given twice.
pub fn interfaces(names: Vec<String>) -> Result<Vec<String>, UsageError> {
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
