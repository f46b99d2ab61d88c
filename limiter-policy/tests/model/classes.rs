//! What a limit asks of whom.

use std::collections::BTreeMap;

use limiter_common::address::Address;
use limiter_policy::{
    changes::Override,
    prefix::Prefix,
    spec::{ClassTerms, Terms},
};

use super::{Level, Model, levels, meter::Book, source::covers};

/// Terms that hold one after the other: those in force, and until when, then those after them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InTurn(Vec<(Option<Book>, u64)>);

impl InTurn {
    /// The terms in force.
    pub(crate) fn book(&self) -> &Book {
        self.0[0].0.as_ref().expect("the limit applies")
    }
}

impl Model {
    /// The overrides that were not over when the policy was loaded, for a level of a limit. Of those that mean the same,
    /// the last holds.
    fn overrides(&self, level: &Level<'_>) -> Vec<&Override> {
        let mut found = BTreeMap::new();
        for change in &self.changes.overrides {
            let named =
                change.limit == level.name || (!level.wide && change.limit == level.limit.name);
            if named && change.until > self.loaded {
                found.insert(change.source.map(Prefix::from), change);
            }
        }
        found.into_values().collect()
    }

    /// The terms of a level of a limit for an address; `None` if the limit does not apply to it.
    pub(crate) fn in_turn(&self, level: &Level<'_>, address: Address) -> Option<InTurn> {
        // All that covers the address, with how much it counts: its length, an override before a class.
        let mut all: Vec<((u8, bool), Option<&Terms>, u64)> = Vec::new();
        let mut of_all = None;
        for change in self.overrides(level) {
            match change.source.map(Prefix::from) {
                Some(prefix) if covers(prefix, address) => {
                    all.push(((prefix.length, true), Some(&change.terms), change.until));
                }
                Some(_) => {}
                None => of_all = Some(change),
            }
        }
        let base = match &level.limit.wide {
            Some(wide) if level.wide => wide,
            _ => &level.limit.terms,
        };
        let mut in_class = false;
        for (class, terms) in &level.limit.classes {
            let Some(length) = self.longest(*class, address) else {
                continue;
            };
            in_class = true;
            all.push(match terms {
                ClassTerms::Exempt => ((length, false), None, u64::MAX),
                ClassTerms::Terms(_) if level.wide => ((length, false), Some(base), u64::MAX),
                ClassTerms::Terms(terms) => ((length, false), Some(terms), u64::MAX),
            });
        }
        all.sort_by_key(|(weight, _, _)| *weight);
        all.reverse();
        // A class decides for good, so nothing shorter matters. Those in none, and for wider sources those in a class of
        // other terms, are under the terms for all.
        if let Some(at) = all.iter().position(|(_, _, until)| *until == u64::MAX) {
            let keeps = level.wide && all[at].1.is_some();
            all.truncate(if keeps { at } else { at + 1 });
            in_class = !keeps;
        }
        if !in_class {
            if let Some(change) = of_all {
                all.push(((0, false), Some(&change.terms), change.until));
            }
            all.push(((0, false), Some(base), u64::MAX));
        }
        // What ends before that which comes before it is never in force.
        let mut latest = 0;
        all.retain(|(_, _, until)| {
            let outlasts = *until > latest;
            latest = latest.max(*until);
            outlasts
        });
        all.retain(|(_, _, until)| *until > self.time);
        all[0].1?;
        let books = all.into_iter();
        Some(InTurn(
            books
                .map(|(_, terms, until)| (terms.map(Book::of), until))
                .collect(),
        ))
    }

    /// The length of the longest prefix of a class that covers an address.
    fn longest(&self, class: usize, address: Address) -> Option<u8> {
        let prefixes = self.prefixes.classes[class].iter();
        let covering = prefixes.filter(|prefix| covers(**prefix, address));
        covering.map(|prefix| prefix.length).max()
    }

    /// All prefixes of classes and overrides.
    pub(crate) fn class_prefixes(&self) -> impl Iterator<Item = Prefix> {
        let classes = self.prefixes.classes.iter().flatten().copied();
        let levels = levels(&self.spec);
        let overrides: Vec<_> = levels
            .iter()
            .flat_map(|level| self.overrides(level))
            .filter_map(|change| change.source.map(Prefix::from))
            .collect();
        classes.chain(overrides)
    }

    /// The classes and overrides that cover an address: by name, but of two that one limit names, that with the longer
    /// prefix first.
    pub(crate) fn chain(&self, address: Address) -> Vec<String> {
        let levels = levels(&self.spec);
        // Name, weight, and the levels that ask for it.
        let mut rest: Vec<(String, (u8, bool), Vec<usize>)> = Vec::new();
        for (number, class) in self.spec.classes.iter().enumerate() {
            if let Some(length) = self.longest(number, address) {
                let asking = (0..levels.len())
                    .filter(|level| levels[*level].limit.classes.contains_key(&number));
                let name = format!("1 {}", class.name);
                rest.push((name, (length, false), asking.collect()));
            }
        }
        for (number, level) in levels.iter().enumerate() {
            for change in self.overrides(level) {
                if let Some(prefix) = change.source.map(Prefix::from)
                    && covers(prefix, address)
                {
                    let name = format!("2 {}@{prefix}", level.name);
                    rest.push((name, (prefix.length, true), vec![number]));
                }
            }
        }
        rest.sort();
        let mut chain = Vec::new();
        while !rest.is_empty() {
            let beaten = |of: &(String, (u8, bool), Vec<usize>)| {
                rest.iter()
                    .any(|other| other.1 > of.1 && other.2.iter().any(|level| of.2.contains(level)))
            };
            let next = rest.iter().position(|of| !beaten(of)).expect("the longest");
            chain.push(rest.remove(next).0);
        }
        chain
    }
}
