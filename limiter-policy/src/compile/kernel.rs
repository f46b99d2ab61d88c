//! The policy as a map value.

use limiter_common::{
    needs::Need,
    policy::{Limit, MAX_LIMITS, NO_SET, Place, Policy},
    source::Prefixes,
    state::MAX_SLOTS,
};

use super::{
    CompiledLimit,
    expand::{base_meter, keeps_log},
    matching::MatchTable,
};
use crate::{
    error::{PolicyError, Subject},
    identities::{Identities, Number},
    spec::{Cost, Mode, PolicySpec},
};

/// The map value, but for its sets.
pub(super) fn policy(
    spec: &PolicySpec,
    limits: &[CompiledLimit],
    table: &MatchTable<'_>,
    identities: &mut Identities,
    fresh: &mut Vec<Number>,
) -> Result<Policy, PolicyError> {
    let sources = &spec.sources;
    let keys = |ipv4, ipv6| {
        Prefixes::new(ipv4, ipv6).ok_or_else(|| {
            let reason = format!(
                "sources by their first {ipv4} bits of IPv4 and {ipv6} of IPv6, where there may be 1 to 32 and 1 to 128"
            );
            PolicyError::new(Subject::Sources, "", reason)
        })
    };
    let (destinations, destination_count) = table.destinations.table();
    let count = |classes: usize| u32::try_from(classes).unwrap_or(u32::MAX);
    Ok(Policy {
        generation: 0,
        by_port: table.ports.tell_apart().into(),
        destination_ports: count(table.ports.destinations()),
        source_ports: count(table.ports.sources()),
        destination_count,
        class_set: NO_SET,
        list_set: NO_SET,
        bans: spec
            .limits
            .iter()
            .any(|limit| limit.on_exceed.is_some())
            .into(),
        prefixes: keys(sources.ipv4_prefix, sources.ipv6_prefix)?,
        wide: keys(sources.wide_ipv4_prefix, sources.wide_ipv6_prefix)?,
        limits: self::limits(spec, limits, identities, fresh)?,
        destinations,
        need_ceilings: [spec.needs.meter; Need::COUNT],
    })
}

fn limits(
    spec: &PolicySpec,
    limits: &[CompiledLimit],
    identities: &mut Identities,
    fresh: &mut Vec<Number>,
) -> Result<[Limit; MAX_LIMITS], PolicyError> {
    let names = |shared: Option<bool>| -> Vec<String> {
        let of_place = limits
            .iter()
            .filter(|limit| shared.is_none_or(|shared| shared == (limit.place == Place::Shared)));
        of_place.map(|limit| limit.name.clone()).collect()
    };
    let too_many = |what: &str, most: usize| {
        let reason = format!("there are more {what} than there may be: {most}; have fewer of them");
        PolicyError::new(Subject::Top, "limits", reason)
    };
    let counters = identities
        .counters(&names(None), fresh)
        .map_err(|_exhausted| too_many("limits", MAX_LIMITS))?;
    let slots = identities
        .slots(&names(Some(false)), fresh)
        .map_err(|_exhausted| {
            too_many(
                "limits per source, with `wide` counted twice,",
                MAX_SLOTS as usize,
            )
        })?;
    let shared = identities
        .shared(&names(Some(true)), fresh)
        .map_err(|_exhausted| too_many("shared limits", MAX_LIMITS))?;
    let (mut slots, mut shared) = (slots.into_iter(), shared.into_iter());
    let mut table = [Limit::default(); MAX_LIMITS];
    for ((entry, limit), counter) in table.iter_mut().zip(limits).zip(counters) {
        let slot = match limit.place {
            Place::Shared => shared.next(),
            Place::Source | Place::Wide => slots.next(),
        };
        *entry = self::limit(spec, limit, counter, slot.unwrap_or_default());
    }
    Ok(table)
}

fn limit(spec: &PolicySpec, limit: &CompiledLimit, counter: u32, slot: u32) -> Limit {
    let of = &spec.limits[limit.spec];
    let (cost, length_mask) = match of.cost {
        Cost::Fixed(cost) => (cost, 0),
        Cost::Length => (0, u32::MAX),
    };
    // What a wider source has done is not the doing of the one that comes last.
    let ban = of.on_exceed.filter(|_| !limit.wide);
    Limit {
        cost,
        length_mask,
        place: limit.place as u8,
        slot: u8::try_from(slot).unwrap_or(u8::MAX),
        monitor: (of.mode == Mode::Monitor).into(),
        bans: ban.is_some().into(),
        on_error: of.on_error as u8,
        ban_doubles: ban.is_some_and(|ban| ban.doubles).into(),
        keeps_log: keeps_log(&base_meter(limit, spec)).into(),
        zero: 0,
        ban_after: ban.map_or(0, |ban| ban.after),
        counter,
        ban_for: ban.map_or(0, |ban| ban.length),
    }
}
