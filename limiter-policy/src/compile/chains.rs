//! Chains of classes, and which of them mean the same.
//!
//! A source is in every class that covers it. A limit asks the one with the longest prefix among those that it names, so a
//! chain is a set of classes in an order, and only as much of an order as a limit asks for: where no limit names two
//! classes both, which of them is the longer makes no chain of its own.

use std::collections::HashMap;

/// What a chain is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    /// A class, by its place in the specification.
    Class(usize),
    /// An override for a source, by its place among [`of_sources`](super::overrides::Overrides::of_sources).
    Override(usize),
}

/// A member, and which limits name it.
pub(super) struct Known {
    /// The member.
    pub(super) member: Member,
    /// Its name in the chain's identity. Classes come before overrides.
    pub(super) name: String,
    /// Numbers of limits, a bit each.
    pub(super) named_by: u64,
}

/// All chains met, by a number that is not yet theirs for good.
pub(super) struct Chains<'a> {
    known: &'a [Known],
    pub(super) states: Vec<Vec<u32>>,
    by_members: HashMap<Vec<u32>, u32>,
    pushes: HashMap<(u32, u32), u32>,
    last: Option<((u32, u32), u32)>,
}

impl<'a> Chains<'a> {
    /// The chain of no member.
    pub(super) const EMPTY: u32 = 0;

    /// No chain but that of no member.
    pub(super) fn new(known: &'a [Known]) -> Self {
        Self {
            known,
            states: vec![Vec::new()],
            by_members: HashMap::from([(Vec::new(), Self::EMPTY)]),
            pushes: HashMap::new(),
            last: None,
        }
    }

    /// Whether it matters to some limit which of two members is the longer.
    fn ordered(&self, a: u32, b: u32) -> bool {
        self.known[a as usize].named_by & self.known[b as usize].named_by != 0
    }

    /// Whether two members with one prefix leave a limit undecided.
    pub(super) fn tie(&self, a: u32, b: u32) -> bool {
        let is_class = |member: u32| matches!(self.known[member as usize].member, Member::Class(_));
        a != b && is_class(a) && is_class(b) && self.ordered(a, b)
    }

    /// The chain of a member with a longer prefix than all in a chain.
    pub(super) fn push(&mut self, state: u32, member: u32) -> u32 {
        let key = (state, member);
        // Prefixes of one class follow each other in the million.
        if let Some((last, pushed)) = self.last
            && last == key
        {
            return pushed;
        }
        let pushed = if let Some(pushed) = self.pushes.get(&key) {
            *pushed
        } else {
            let members = self.canonical(state, member);
            let next = u32::try_from(self.states.len()).unwrap_or(u32::MAX);
            let pushed = *self
                .by_members
                .entry(members)
                .or_insert_with_key(|members| {
                    self.states.push(members.clone());
                    next
                });
            self.pushes.insert(key, pushed);
            pushed
        };
        self.last = Some((key, pushed));
        pushed
    }

    /// The members in the one order that stands for all that mean the same: again and again the first of those before
    /// which no other must come.
    fn canonical(&self, state: u32, member: u32) -> Vec<u32> {
        let mut rest = vec![member];
        rest.extend(
            self.states[state as usize]
                .iter()
                .filter(|other| **other != member),
        );
        let mut ordered = Vec::with_capacity(rest.len());
        while !rest.is_empty() {
            let free = rest.iter().enumerate().filter(|(at, member)| {
                rest[..*at]
                    .iter()
                    .all(|before| !self.ordered(*before, **member))
            });
            let Some((at, _)) = free.min_by_key(|(_, member)| **member) else {
                break;
            };
            ordered.push(rest.remove(at));
        }
        ordered
    }

    /// The names of a chain's members, in their order.
    pub(super) fn names(&self, state: u32) -> Vec<String> {
        let members = self.states[state as usize].iter();
        members
            .map(|member| self.known[*member as usize].name.clone())
            .collect()
    }
}
