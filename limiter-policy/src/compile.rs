//! From what was meant to what the kernel holds.
//!
//! The limits that match a packet are asked in this order ([`ORDER`]): the most specific first, that is, limits per source,
//! then per wider source, then those shared by the users of one service, then those shared by everyone; of these, limits of
//! a service before those of none, then limits on a kind of packets before those on any, then as they stand in the file.

//!
//! Where a policy leaves it open:
//! - A limit with `wide` holds a wider source to its terms whatever classes are in it; only an exemption takes a class out
//!   of both. It bans by what the source itself has done, never by what the wider one has.
//! - An override of a limit is for all limits that it became, but not for `wide`, which has a name of its own: `NAME.wide`.
//! - An override for a source comes before a class with the same prefix, and so does the later of two overrides.
//! - UDP-Lite counts as UDP, but is of no service: its ports are of another protocol.

mod chains;
mod classes;
mod conditions;
mod destinations;
mod expand;
mod kernel;
mod lists;
mod matching;
mod meters;
mod order;
mod overrides;
mod ports;
mod split;

use std::collections::BTreeMap;

use limiter_common::{
    policy::{Matching, MeterEntry, MeterRow, NO_SET, Place, Policy},
    standing::{Entry, Membership},
};

use self::{chains::Member, matching::MatchTable, meters::Meters, overrides::Overrides};
pub use self::{lists::edit as edit_lists, order::ORDER};
pub use super::identities::{Identities, Number};
use super::{
    changes::Changes,
    error::PolicyError,
    prefix::{Prefix, PrefixSet},
    spec::PolicySpec,
};

/// The prefixes of classes and lists, inline and from files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedPrefixes {
    /// Of each class, in the order of the specification.
    pub classes: Vec<Vec<Prefix>>,
    /// Who passes before all limits.
    pub allow: Vec<Prefix>,
    /// Who is always blocked.
    pub ban: Vec<Prefix>,
}

impl LoadedPrefixes {
    /// Sorts the lists, so that [`edit_lists`] finds its way in them.
    pub fn sort(&mut self) {
        self.allow.sort_unstable();
        self.ban.sort_unstable();
    }
}

/// A policy as the kernel holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The map value. Its `class_set` and `list_set` are 0 where `classes` and `lists` are not empty, or else `NO_SET`;
    /// which of the kernel's sets it is, is decided where it is applied. Its `generation` is likewise left 0.
    pub policy: Policy,
    /// The port tables: `PortTable::COUNT` times `PORT_WORDS` words; empty where `policy.by_port` is 0.
    pub ports: Vec<u64>,
    /// The match table, as long as it is used.
    pub matches: Vec<Matching>,
    /// The meters of each chain of classes.
    pub rows: BTreeMap<u32, MeterRow>,
    /// Meters by id.
    pub meters: BTreeMap<u16, MeterEntry>,
    /// Who is of which chain of classes.
    pub classes: PrefixSet<Membership>,
    /// Who is allowed or banned.
    pub lists: PrefixSet<Entry>,
    /// The limits by their number in `policy.limits`.
    pub limits: Vec<CompiledLimit>,
    /// The names of the classes of each chain: of two that one limit names, that with the longer prefix first.
    pub chains: BTreeMap<u32, Vec<String>>,
    /// Whether nothing is to be dropped.
    pub monitor: bool,
    /// Numbers that belonged to something else before, whose state is to be cleared.
    pub fresh: Vec<Number>,
}

impl Compiled {
    /// Slots that a source must have room for.
    #[must_use]
    pub fn slots(&self) -> u32 {
        let with_sources = self
            .limits
            .iter()
            .zip(&self.policy.limits)
            .filter(|(limit, _)| limit.place != Place::Shared);
        let slots = with_sources.map(|(_, limit)| u32::from(limit.slot) + 1);
        slots.max().unwrap_or(0)
    }
}

/// A limit of the kernel. A limit with `wide`, or per service without naming one, is several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledLimit {
    /// Its name in status, metrics and explanations: that of the specification, followed by `.wide` or by `.` and the
    /// name of the service where one limit became several.
    pub name: String,
    /// Its place in the specification.
    pub spec: usize,
    /// Where its state is.
    pub place: Place,
    /// The service whose packets it matches, by its place in the specification.
    pub service: Option<usize>,
    /// Whether this is the limit on wider sources.
    pub wide: bool,
}

/// Compiles a policy. Overrides and bans that are over at `now` (nanoseconds of the monotonic clock) are left out.
///
/// # Errors
///
/// Where the policy asks for more than the kernel's tables hold, or contradicts itself. `identities` are then unchanged.
pub fn compile(
    spec: &PolicySpec,
    prefixes: &LoadedPrefixes,
    changes: &Changes,
    identities: &mut Identities,
    now: u64,
) -> Result<Compiled, PolicyError> {
    let mut next = identities.clone();
    next.begin();
    let compiled = with(spec, prefixes, changes, &mut next, now)?;
    *identities = next;
    Ok(compiled)
}

fn with(
    spec: &PolicySpec,
    prefixes: &LoadedPrefixes,
    changes: &Changes,
    identities: &mut Identities,
    now: u64,
) -> Result<Compiled, PolicyError> {
    let limits = expand::limits(spec)?;
    let overrides = Overrides::new(changes, spec, &limits, now)?;
    let table = MatchTable::new(spec, &limits)?;
    let mut fresh = Vec::new();
    let mut policy = kernel::policy(spec, &limits, &table, identities, &mut fresh)?;
    let matches = table.entries(&policy)?;
    let ports = table.ports.tables();
    let classes = classes::compile(
        spec,
        &limits,
        prefixes,
        &overrides,
        &policy.prefixes,
        identities,
        &mut fresh,
    )?;
    let lists = lists::compile(prefixes, changes, &policy.prefixes, now);
    let set_of = |is_empty| if is_empty { NO_SET } else { 0 };
    policy.class_set = set_of(classes.set.is_empty());
    policy.list_set = set_of(lists.is_empty());
    let mut meters = Meters {
        spec,
        limits: &limits,
        overrides: &overrides,
        identities,
        entries: BTreeMap::new(),
    };
    let mut rows = BTreeMap::from([(0, meters.row(&[])?)]);
    for (number, chain) in &classes.chains {
        rows.insert(*number, meters.row(chain)?);
    }
    let meters = meters.entries;
    let names = |chain: &Vec<Member>| {
        let names = chain.iter().filter_map(|member| match member {
            Member::Class(class) => Some(spec.classes[*class].name.clone()),
            Member::Override(_) => None,
        });
        names.collect()
    };
    let chains = classes.chains.iter();
    let chains = chains
        .map(|(number, chain)| (*number, names(chain)))
        .collect();
    Ok(Compiled {
        policy,
        ports,
        matches,
        rows,
        meters,
        classes: classes.set,
        lists,
        limits,
        chains,
        monitor: spec.monitor,
        fresh,
    })
}
