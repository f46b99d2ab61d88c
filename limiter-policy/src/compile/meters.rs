//! Meters: what each limit asks for each chain of classes.

use std::collections::BTreeMap;

use limiter_common::{
    meter::Meter,
    policy::{EXEMPT, MAX_LIMITS, MAX_SUCCESSORS, METERS, MeterEntry, MeterRow},
};

use super::{CompiledLimit, chains::Member, expand::base_meter, overrides::Overrides};
use crate::{
    error::{PolicyError, Subject},
    identities::Identities,
    spec::{ClassTerms, PolicySpec},
};

/// Meters by id, as they are met.
pub(super) struct Meters<'a> {
    pub(super) spec: &'a PolicySpec,
    pub(super) limits: &'a [CompiledLimit],
    pub(super) overrides: &'a Overrides<'a>,
    pub(super) identities: &'a mut Identities,
    /// What was met.
    pub(super) entries: BTreeMap<u16, MeterEntry>,
}

impl Meters<'_> {
    /// The row of a chain.
    pub(super) fn row(&mut self, chain: &[Member]) -> Result<MeterRow, PolicyError> {
        let mut row = [0; MAX_LIMITS];
        for (number, id) in row.iter_mut().enumerate().take(self.limits.len()) {
            *id = self.one(number, chain)?;
        }
        Ok(row)
    }

    /// The meter of a limit for a chain: that of the first member that the limit names.
    fn one(&mut self, number: usize, chain: &[Member]) -> Result<u16, PolicyError> {
        let limit = &self.limits[number];
        let of = &self.spec.limits[limit.spec];
        // Overrides met on the way, until when each holds; a class that the limit names ends the way.
        let mut overrides: Vec<(Meter, u64)> = Vec::new();
        let mut class = None;
        for member in chain {
            match member {
                Member::Override(at) => {
                    let of_source = self.overrides.of_sources[*at];
                    if of_source.limit == number {
                        overrides.push((of_source.meter, of_source.until));
                    }
                }
                Member::Class(at) => {
                    class = of.classes.get(at);
                    if class.is_some() {
                        break;
                    }
                }
            }
        }
        let mut id = match class {
            Some(ClassTerms::Exempt) => EXEMPT,
            Some(ClassTerms::Terms(terms)) if !limit.wide => self.id(terms.meter, 0, 0)?,
            // A wider source is shared with those outside the class, which does not change its terms.
            _ => {
                if let Some(change) = self.overrides.of_all[number] {
                    overrides.push((change.terms.meter, change.until));
                }
                self.id(base_meter(limit, self.spec), 0, 0)?
            }
        };
        // What ends before that which comes before it is never in force.
        let mut latest = 0;
        overrides.retain(|(_, until)| {
            let outlasts = *until > latest;
            latest = latest.max(*until);
            outlasts
        });
        if overrides.len() > MAX_SUCCESSORS as usize {
            return Err(PolicyError::new(
                Subject::Limit(limit.spec),
                "override",
                format!(
                    "{} overrides of limit `{}` hold for one source in turn, where there may be {MAX_SUCCESSORS}: end some of \
                     them",
                    overrides.len(),
                    limit.name
                ),
            ));
        }
        for (meter, until) in overrides.into_iter().rev() {
            id = self.id(meter, until, id)?;
        }
        Ok(id)
    }

    fn id(&mut self, meter: Meter, until: u64, then: u16) -> Result<u16, PolicyError> {
        let entry = MeterEntry {
            meter,
            until,
            then: then.into(),
        };
        let id = self.identities.meter(entry).map_err(|_exhausted| {
            PolicyError::new(
                Subject::Top,
                "limits",
                format!(
                    "they have more different terms, those of classes and overrides included, than there may be: {}",
                    METERS - 1
                ),
            )
        })?;
        self.entries.insert(id, entry);
        Ok(id)
    }
}
