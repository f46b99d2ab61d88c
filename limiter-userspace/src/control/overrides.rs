//! Other terms of a limit for a time.

use anyhow::Result;
use limiter_policy::spec::{PolicySpec, Terms};
use serde_json::{Value, json};
use tracing::info;

use super::{Control, Refused};
use crate::{
    audit::{What, who::Who},
    changes::{
        answer::{Changed, OverrideShown, Overrides},
        kept::{KeptOverride, OverrideKey},
        moment::Moment,
        request::{OverrideRequest, RemoveOverrideRequest},
    },
    kernel::monotonic_now,
};

/// What an override means in a policy.
pub(super) fn terms(
    spec: &PolicySpec,
    key: &OverrideKey,
    change: &KeptOverride,
) -> Result<Terms, String> {
    let limit = spec
        .limits
        .iter()
        .find(|limit| limit.name == key.limit)
        .ok_or_else(|| {
            let names: Vec<&str> = spec
                .limits
                .iter()
                .map(|limit| limit.name.as_str())
                .collect();
            format!(
                "the policy has no limit of that name; it has {}",
                names.join(", ")
            )
        })?;
    limit
        .terms
        .with(change.rate.clone(), change.burst.clone(), limit.cost)
}

impl Control {
    /// Gives a limit other terms for a time.
    ///
    /// # Errors
    ///
    /// Where the limit is not there or cannot have them.
    pub fn make_override(&self, request: &OverrideRequest, who: &Who) -> Result<Changed> {
        let now = Moment::now(monotonic_now());
        let (key, change) = request.change(&who.name(), &now).map_err(Refused)?;
        let terms = terms(&self.spec(), &key, &change)
            .map_err(|reason| Refused(format!("{}: {reason}", key.limit)))?;
        let why = change.reason.clone();
        let after = shown(&key, &change, &now);
        let before = {
            let mut wanted = self.wanted();
            let before = wanted
                .kept
                .add_override(key.clone(), change)
                .map_err(Refused)?;
            before.map_or(Value::Null, |before| shown(&key, &before, &now))
        };
        if let Err(error) = self.refresh() {
            // What is not in force is not kept.
            drop(self.wanted().kept.remove_override(&key));
            return Err(error);
        }
        let notices = self.keep();
        info!(who = %who, limit = key.limit, rate = %terms.rate, seconds = request.for_s, "override");
        self.record(who, What::Override, before, after, why);
        Ok(Changed {
            done: format!("{} has other terms now, for {} s", key.limit, request.for_s),
            notices,
        })
    }

    /// Takes an override back.
    ///
    /// # Errors
    ///
    /// Where there is none.
    pub fn remove_override(&self, request: &RemoveOverrideRequest, who: &Who) -> Result<Changed> {
        let now = Moment::now(monotonic_now());
        let why = crate::changes::request::reason(request.reason.as_deref()).map_err(Refused)?;
        let key = request.key();
        let before = self.wanted().kept.remove_override(&key).map_err(Refused)?;
        self.refresh()?;
        let notices = self.keep();
        info!(who = %who, limit = key.limit, "override taken back");
        let before = shown(&key, &before, &now);
        self.record(who, What::Override, before, Value::Null, why);
        Ok(Changed {
            done: format!("{} has the policy's terms again", key.limit),
            notices,
        })
    }

    /// The overrides in force.
    #[must_use]
    pub fn overrides(&self) -> Overrides {
        let now = Moment::now(monotonic_now());
        let spec = self.spec();
        let wanted = self.wanted();
        let overrides = wanted.kept.overrides().iter().map(|(key, change)| {
            let idle = terms(&spec, key, change).err();
            OverrideShown::new(key, change, idle, &now)
        });
        Overrides {
            overrides: overrides.collect(),
        }
    }
}

fn shown(key: &OverrideKey, change: &KeptOverride, now: &Moment) -> Value {
    json!(OverrideShown::new(key, change, None, now))
}
