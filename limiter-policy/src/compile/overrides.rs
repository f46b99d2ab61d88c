//! Overrides in force, by the limit of the kernel that each is for.

use limiter_common::{meter::Meter, policy::Place};

use super::{
    CompiledLimit,
    expand::{base_meter, keeps_log},
};
use crate::{
    changes::{Changes, Override},
    error::{PolicyError, Subject},
    prefix::Prefix,
    spec::PolicySpec,
};

/// Overrides in force.
#[derive(Debug, Default)]
pub(super) struct Overrides<'a> {
    /// For all whom a limit matches, by the limit's number.
    pub(super) of_all: Vec<Option<&'a Override>>,
    /// For one source.
    pub(super) of_sources: Vec<OfSource>,
}

/// An override of a limit for a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfSource {
    /// The limit, by number.
    pub(super) limit: usize,
    /// The source.
    pub(super) prefix: Prefix,
    /// What holds.
    pub(super) meter: Meter,
    /// Until when.
    pub(super) until: u64,
}

impl<'a> Overrides<'a> {
    /// Those in force at `now`. Of two that mean the same, the later holds.
    pub(super) fn new(
        changes: &'a Changes,
        spec: &PolicySpec,
        limits: &[CompiledLimit],
        now: u64,
    ) -> Result<Self, PolicyError> {
        let mut overrides = Self {
            of_all: vec![None; limits.len()],
            of_sources: Vec::new(),
        };
        for change in changes.overrides.iter().filter(|change| change.until > now) {
            let mut found = false;
            for (number, limit) in limits.iter().enumerate() {
                if is_named(limit, &change.limit, spec) {
                    found = true;
                    overrides.add(number, limit, change, spec)?;
                }
            }
            if !found {
                return Err(PolicyError::new(
                    Subject::Top,
                    "override",
                    unknown(&change.limit, limits),
                ));
            }
        }
        Ok(overrides)
    }

    fn add(
        &mut self,
        number: usize,
        limit: &CompiledLimit,
        change: &'a Override,
        spec: &PolicySpec,
    ) -> Result<(), PolicyError> {
        let meter = change.terms.meter;
        let refuse = |reason: String| {
            Err(PolicyError::new(
                Subject::Limit(limit.spec),
                "override",
                reason,
            ))
        };
        if keeps_log(&meter) != keeps_log(&base_meter(limit, spec)) {
            return refuse(format!(
                "limit `{}` and its override keep their state apart, one in a sliding log: override it by the algorithm that \
                 it has",
                limit.name
            ));
        }
        let Some(source) = change.source else {
            self.of_all[number] = Some(change);
            return Ok(());
        };
        if limit.place != Place::Source {
            return refuse(format!(
                "limit `{}` is shared by several sources, so it cannot be overridden for one: leave out the source",
                limit.name
            ));
        }
        let of_source = OfSource {
            limit: number,
            prefix: source.into(),
            meter,
            until: change.until,
        };
        let same =
            |other: &&mut OfSource| other.limit == number && other.prefix == of_source.prefix;
        match self.of_sources.iter_mut().find(same) {
            Some(before) => *before = of_source,
            None => self.of_sources.push(of_source),
        }
        Ok(())
    }
}

/// Whether an override's name is that of a limit of the kernel, or of the limit that it came from. One that came from
/// `wide` has a name of its own only.
fn is_named(limit: &CompiledLimit, name: &str, spec: &PolicySpec) -> bool {
    limit.name == name || (!limit.wide && spec.limits[limit.spec].name == name)
}

fn unknown(name: &str, limits: &[CompiledLimit]) -> String {
    let names: Vec<_> = limits
        .iter()
        .map(|limit| format!("`{}`", limit.name))
        .collect();
    if names.is_empty() {
        format!("there is no limit `{name}`, nor any other")
    } else {
        format!(
            "there is no limit `{name}`: the limits are {}",
            names.join(", ")
        )
    }
}
