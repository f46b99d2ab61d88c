//! What was changed at run time, besides the policy's text: bans and overrides.

use ipnet::IpNet;

use super::spec::Terms;

/// Changes in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Bans by operators.
    pub bans: Vec<OperatorBan>,
    /// Overrides of limits.
    pub overrides: Vec<Override>,
}

/// A ban by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorBan {
    /// Who.
    pub prefix: IpNet,
    /// Until when, in nanoseconds of the monotonic clock; `None` for ever.
    pub until: Option<u64>,
}

/// Other terms of a limit for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The limit, by name.
    pub limit: String,
    /// For whom; `None` for all whom the limit matches but classes with terms of their own.
    pub source: Option<IpNet>,
    /// What they may do.
    pub terms: Terms,
    /// Until when, in nanoseconds of the monotonic clock.
    pub until: u64,
}
