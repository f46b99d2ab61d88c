//! Who is allowed or banned.

use limiter_common::address::Address;
use limiter_policy::prefix::Prefix;

use super::{Model, source::covers};

/// What the lists say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Listed {
    /// It is dropped.
    Banned,
    /// It passes.
    Allowed,
}

impl Model {
    /// All that the lists say, with until when.
    fn entries(&self) -> impl Iterator<Item = (Prefix, Listed, u64)> {
        let allow = self.prefixes.allow.iter();
        let ban = self.prefixes.ban.iter();
        let bans = self.changes.bans.iter();
        allow
            .map(|prefix| (*prefix, Listed::Allowed, u64::MAX))
            .chain(ban.map(|prefix| (*prefix, Listed::Banned, u64::MAX)))
            .chain(bans.map(|ban| {
                let until = ban.until.unwrap_or(u64::MAX);
                (ban.prefix.into(), Listed::Banned, until)
            }))
            .filter(|(_, _, until)| *until > self.loaded)
    }

    /// The prefixes that the lists name.
    pub(crate) fn listed_prefixes(&self) -> impl Iterator<Item = Prefix> {
        self.entries().map(|(prefix, _, _)| prefix)
    }

    /// The longest that covers an address decides; of equal ones, that which allows.
    pub(crate) fn listed(&self, address: Address) -> Option<Listed> {
        self.entries()
            .filter(|(prefix, _, until)| self.time < *until && covers(*prefix, address))
            .max_by_key(|(prefix, listed, _)| (prefix.length, *listed))
            .map(|(_, listed, _)| listed)
    }
}
