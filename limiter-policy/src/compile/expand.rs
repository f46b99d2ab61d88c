//! From the limits of the specification to those of the kernel.

use std::collections::BTreeSet;

use limiter_common::{
    meter::{Algorithm, Meter},
    policy::{MAX_LIMITS, Place},
};

use super::{CompiledLimit, conditions};
use crate::{
    error::{PolicyError, Subject},
    spec::{ClassTerms, LimitSpec, Packets, Per, PolicySpec},
};

/// The limits of the kernel, in the order of the file.
pub(super) fn limits(spec: &PolicySpec) -> Result<Vec<CompiledLimit>, PolicyError> {
    let mut limits = Vec::new();
    for (number, limit) in spec.limits.iter().enumerate() {
        check(number, limit)?;
        one(number, limit, spec, &mut limits)?;
    }
    if limits.len() > MAX_LIMITS {
        return Err(PolicyError::new(
            Subject::Top,
            "limits",
            format!(
                "{} limits, where there may be {MAX_LIMITS}, counting one with `wide` twice and one per service without a \
                 service once for each: have fewer of them",
                limits.len()
            ),
        ));
    }
    let mut names = BTreeSet::new();
    for limit in &limits {
        if !names.insert(&limit.name) {
            return Err(PolicyError::new(
                Subject::Limit(limit.spec),
                "name",
                format!(
                    "there are two limits `{0}` in the end, since one with `wide` has another, NAME.wide, and one per \
                     service another for each, NAME.SERVICE: rename one of them",
                    limit.name
                ),
            ));
        }
    }
    Ok(limits)
}

/// The meter of a limit of the kernel for those who are of no class.
pub(super) fn base_meter(limit: &CompiledLimit, spec: &PolicySpec) -> Meter {
    let of = &spec.limits[limit.spec];
    match &of.wide {
        Some(wide) if limit.wide => wide.meter,
        _ => of.terms.meter,
    }
}

/// Whether a meter remembers admissions in a log, not a word.
pub(super) fn keeps_log(meter: &Meter) -> bool {
    meter.algorithm() == Algorithm::SlidingLog
}

fn one(
    number: usize,
    limit: &LimitSpec,
    spec: &PolicySpec,
    limits: &mut Vec<CompiledLimit>,
) -> Result<(), PolicyError> {
    let compiled = |name: String, place, service, wide| CompiledLimit {
        name,
        spec: number,
        place,
        service,
        wide,
    };
    if limit.per == Per::Service && limit.service.is_none() {
        let before = limits.len();
        for (at, service) in spec.services.iter().enumerate() {
            if conditions::can_match(&limit.packets, service) {
                let name = format!("{}.{}", limit.name, service.name);
                limits.push(compiled(name, Place::Shared, Some(at), false));
            }
        }
        if limits.len() == before {
            let reason = if spec.services.is_empty() {
                "it matches nothing, since there are no services: add `[services.NAME]`, or write `per = \"everyone\"`"
                    .to_owned()
            } else {
                matches_nothing(limit, "any service")
            };
            return Err(PolicyError::new(Subject::Limit(number), "per", reason));
        }
        return Ok(());
    }
    if let Some(service) = limit.service
        && !conditions::can_match(&limit.packets, &spec.services[service])
    {
        let whose = format!("service `{}`", spec.services[service].name);
        let reason = matches_nothing(limit, &whose);
        return Err(PolicyError::new(Subject::Limit(number), "packets", reason));
    }
    let place = match limit.per {
        Per::Source => Place::Source,
        Per::Service | Per::Everyone => Place::Shared,
    };
    limits.push(compiled(limit.name.clone(), place, limit.service, false));
    if limit.wide.is_some() {
        let name = format!("{}.wide", limit.name);
        limits.push(compiled(name, Place::Wide, limit.service, true));
    }
    Ok(())
}

fn matches_nothing(limit: &LimitSpec, whose: &str) -> String {
    match limit.packets {
        Packets::Icmp | Packets::Portless => format!(
            "it matches nothing: a service is told by its ports, which these packets do not have, so none are of {whose}; \
             leave out the service or choose other packets"
        ),
        _ => format!(
            "it matches nothing: no such packets are of {whose}, whose protocol is another; leave out the service or \
             choose other packets"
        ),
    }
}

/// Refuses what would keep one state by two meters.
fn check(number: usize, limit: &LimitSpec) -> Result<(), PolicyError> {
    let refuse =
        |key: &str, reason: &str| Err(PolicyError::new(Subject::Limit(number), key, reason));
    let shared = limit.per != Per::Source;
    if shared && limit.wide.is_some() {
        return refuse(
            "wide",
            "only a limit with `per = \"source\"` has wider sources",
        );
    }
    if shared && limit.on_exceed.is_some() {
        return refuse(
            "on_exceed",
            "it would ban whoever came last, since the limit is shared: only one with `per = \"source\"` bans",
        );
    }
    if limit.on_exceed.is_some() && keeps_log(&limit.terms.meter) {
        return refuse(
            "on_exceed",
            "a sliding log does not count refusals, so it cannot ban: choose another algorithm",
        );
    }
    for terms in limit.classes.values() {
        let ClassTerms::Terms(terms) = terms else {
            continue;
        };
        if shared {
            return refuse(
                "classes",
                "the limit is shared, so a class cannot have terms of its own, only be `\"exempt\"`",
            );
        }
        if keeps_log(&terms.meter) != keeps_log(&limit.terms.meter) {
            return refuse(
                "classes",
                "a sliding log keeps its state apart: all classes of the limit use it, or none",
            );
        }
    }
    Ok(())
}
