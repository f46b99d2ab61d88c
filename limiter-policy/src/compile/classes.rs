//! The class set: for each prefix of a class, the chain of all classes that cover it.
//!
//! An override of a limit for one source is a class of one prefix, named by that limit only, and longer than any class of
//! an equal prefix.

use limiter_common::{policy::MAX_CHAINS, source::Prefixes, standing::Membership};

use super::{
    CompiledLimit, LoadedPrefixes,
    chains::{Chains, Known, Member},
    overrides::Overrides,
    split::Split,
};
use crate::{
    error::{PolicyError, Subject},
    identities::{Identities, Number},
    prefix::{Prefix, PrefixSet},
    spec::PolicySpec,
};

/// The class set of a policy, and its chains.
pub(super) struct Classes {
    /// Which chain a prefix is of.
    pub(super) set: PrefixSet<Membership>,
    /// The members of each chain: of two that one limit names, that with the longer prefix first.
    pub(super) chains: Vec<(u32, Vec<Member>)>,
}

/// Compiles the class set.
pub(super) fn compile(
    spec: &PolicySpec,
    limits: &[CompiledLimit],
    prefixes: &LoadedPrefixes,
    overrides: &Overrides<'_>,
    keys: &Prefixes,
    identities: &mut Identities,
    fresh: &mut Vec<Number>,
) -> Result<Classes, PolicyError> {
    let known = known(spec, limits, overrides);
    let mut entries = entries(&known, prefixes, overrides);
    let split = Split::new(entries.iter().map(|(prefix, _)| *prefix), keys);
    entries.extend(split.needed().map(|prefix| (prefix, member(NOBODY))));
    entries.sort_unstable_by_key(|(prefix, membership)| (*prefix, membership.chain));
    let mut chains = Chains::new(&known);
    sweep(&mut entries, &mut chains, &split).map_err(|conflict| {
        let [a, b] = conflict.members.map(|member| &known[member as usize]);
        let both = a.named_by & b.named_by;
        let limit = &limits[both.trailing_zeros() as usize];
        let name = |known: &Known| known.name.trim_start_matches(CLASS).to_owned();
        PolicyError::new(
            Subject::Limit(limit.spec),
            "classes",
            format!(
                "classes `{}` and `{}` both have {}, so limit `{}`, which names both, cannot tell which to use: take it out \
                 of one of them",
                name(a),
                name(b),
                conflict.prefix,
                spec.limits[limit.spec].name
            ),
        )
    })?;
    let numbers = number(&mut entries, &chains, identities, fresh)?;
    let members = |state: u32| {
        let members = chains.states[state as usize].iter();
        members
            .map(|member| known[*member as usize].member)
            .collect()
    };
    Ok(Classes {
        set: PrefixSet::sorted(entries),
        chains: numbers
            .into_iter()
            .map(|(state, number)| (number, members(state)))
            .collect(),
    })
}

const CLASS: &str = "class:";

fn known(spec: &PolicySpec, limits: &[CompiledLimit], overrides: &Overrides<'_>) -> Vec<Known> {
    let classes = spec.classes.iter().enumerate().map(|(number, class)| {
        let names = |limit: &CompiledLimit| spec.limits[limit.spec].classes.contains_key(&number);
        let naming = limits.iter().enumerate().filter(|(_, limit)| names(limit));
        Known {
            member: Member::Class(number),
            name: format!("{CLASS}{}", class.name),
            named_by: naming.fold(0, |bits, (limit, _)| bits | 1 << limit),
        }
    });
    let of_sources = overrides.of_sources.iter().enumerate();
    let of_sources = of_sources.map(|(number, of)| Known {
        member: Member::Override(number),
        name: format!("override:{}@{}", limits[of.limit].name, of.prefix),
        named_by: 1 << of.limit,
    });
    let mut known: Vec<_> = classes.chain(of_sources).collect();
    // By name, so that the identity of a chain does not hang on the order of the file.
    known.sort_by(|a, b| a.name.cmp(&b.name));
    known
}

/// In place of a member: the prefix is of nobody but those around it.
const NOBODY: u32 = u32::MAX;

/// Until chains are known, an entry holds a member.
const fn member(number: u32) -> Membership {
    Membership {
        chain: number,
        split: 0,
    }
}

/// Each prefix with its member. A million of them are no reason to keep a second copy.
fn entries(
    known: &[Known],
    prefixes: &LoadedPrefixes,
    overrides: &Overrides<'_>,
) -> Vec<(Prefix, Membership)> {
    let of = |known: &Known| match known.member {
        Member::Class(number) => prefixes.classes.get(number).map_or(&[][..], Vec::as_slice),
        Member::Override(number) => std::slice::from_ref(&overrides.of_sources[number].prefix),
    };
    let mut entries = Vec::with_capacity(known.iter().map(|known| of(known).len()).sum());
    for (number, known) in (0..).zip(known) {
        entries.extend(of(known).iter().map(|prefix| (*prefix, member(number))));
    }
    entries
}

/// Two classes that one limit names have one prefix.
struct Conflict {
    members: [u32; 2],
    prefix: Prefix,
}

/// Gives each prefix the chain of all that cover it, in place, each prefix once. The entries are sorted.
fn sweep(
    entries: &mut Vec<(Prefix, Membership)>,
    chains: &mut Chains<'_>,
    split: &Split<'_>,
) -> Result<(), Conflict> {
    // The prefixes around the one at hand, shortest first.
    let mut around: Vec<(Prefix, u32)> = Vec::new();
    let (mut read, mut write) = (0, 0);
    while let Some((prefix, _)) = entries.get(read).copied() {
        while around
            .last()
            .is_some_and(|(outer, _)| !outer.covers(&prefix))
        {
            around.pop();
        }
        let mut state = around.last().map_or(Chains::EMPTY, |(_, state)| *state);
        let first = read;
        while let Some((same, Membership { chain: member, .. })) = entries.get(read)
            && *same == prefix
        {
            if *member != NOBODY {
                let others = entries[first..read].iter().map(|(_, other)| other.chain);
                if let Some(other) = others.into_iter().find(|other| chains.tie(*other, *member)) {
                    return Err(Conflict {
                        members: [other, *member],
                        prefix,
                    });
                }
                state = chains.push(state, *member);
            }
            read += 1;
        }
        around.push((prefix, state));
        let membership = Membership {
            chain: state,
            split: split.contains(prefix).into(),
        };
        entries[write] = (prefix, membership);
        write += 1;
    }
    entries.truncate(write);
    Ok(())
}

/// Gives the chains their numbers; those in use, each as met and for good.
fn number(
    entries: &mut [(Prefix, Membership)],
    chains: &Chains<'_>,
    identities: &mut Identities,
    fresh: &mut Vec<Number>,
) -> Result<Vec<(u32, u32)>, PolicyError> {
    let mut used = vec![false; chains.states.len()];
    for (_, membership) in entries.iter() {
        used[membership.chain as usize] = true;
    }
    let states: Vec<u32> = (0..)
        .zip(&used)
        .filter(|(state, used)| **used && *state != Chains::EMPTY)
        .map(|(state, _)| state)
        .collect();
    let names: Vec<_> = states.iter().map(|state| chains.names(*state)).collect();
    let numbers = identities.chains(&names, fresh).map_err(|_exhausted| {
        PolicyError::new(
            Subject::Top,
            "classes",
            format!(
                "they and the overrides in force cover sources in {} different ways, where there may be {}: have fewer \
                 classes that overlap, or name fewer in one limit",
                states.len(),
                MAX_CHAINS - 1
            ),
        )
    })?;
    let mut by_state = vec![0; chains.states.len()];
    for (state, number) in states.iter().zip(&numbers) {
        by_state[*state as usize] = *number;
    }
    for (_, membership) in entries {
        membership.chain = by_state[membership.chain as usize];
    }
    Ok(states.into_iter().zip(numbers).collect())
}
