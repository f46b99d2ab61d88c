//! Counters by name, so that what differs can be read.

use std::collections::{BTreeMap, BTreeSet};

use limiter_common::{
    counters::{Counters, LimitCounters, Odd, Reason, Table},
    needs::Need,
};

/// Counters that are not zero, by name: `dropped.limit`, `odd.one_tag`, `limits.0.passed`.
pub type Counted = BTreeMap<String, u64>;

/// What was counted, by name.
#[must_use]
pub fn named(counters: &Counters) -> Counted {
    let Counters {
        seen,
        passed,
        dropped,
        would_drop,
        limits,
        needs_passed,
        needs_exceeded,
        odd,
        table,
    } = counters;
    let single = [("seen", seen), ("passed", passed)];
    let mut all: Counted = single.map(|(name, n)| (name.to_owned(), *n)).into();
    let mut each = |group: &str, names: &[&str], values: &[u64]| {
        for (name, n) in names.iter().zip(values) {
            all.insert(format!("{group}.{name}"), *n);
        }
    };
    each("dropped", &Reason::ALL.map(Reason::name), dropped);
    each("would_drop", &Reason::ALL.map(Reason::name), would_drop);
    each("needs_passed", &Need::ALL.map(Need::name), needs_passed);
    each("needs_exceeded", &Need::ALL.map(Need::name), needs_exceeded);
    each("odd", &Odd::ALL.map(Odd::name), odd);
    each("table", &Table::ALL.map(Table::name), table);
    for (number, limit) in limits.iter().enumerate() {
        let LimitCounters {
            passed,
            dropped,
            would_drop,
        } = limit;
        let names = ["passed", "dropped", "would_drop"];
        let counts = [*passed, *dropped, *would_drop];
        each(&format!("limits.{number}"), &names, &counts);
    }
    all.retain(|_, n| *n != 0);
    all
}

/// What was counted from `before` to `after`.
#[must_use]
pub fn since(before: &Counters, after: &Counters) -> Counted {
    let before = named(before);
    let mut counted = named(after);
    for (name, n) in &mut counted {
        *n -= before.get(name).copied().unwrap_or(0);
    }
    counted.retain(|_, n| *n != 0);
    counted
}

/// The counters that differ.
#[must_use]
pub fn difference(expected: &Counted, found: &Counted) -> Vec<String> {
    let names: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let differing = names.into_iter().filter_map(|name| {
        let [expected, found] =
            [expected, found].map(|counted| counted.get(name).copied().unwrap_or(0));
        (expected != found).then(|| format!("{name}: {expected} expected, {found} found"))
    });
    differing.collect()
}

/// Panics unless all that was seen either passed or was dropped for a reason.
pub fn assert_adds_up(counters: &Counters) {
    assert_eq!(
        counters.seen,
        counters.passed + counters.dropped_total(),
        "seen = passed + dropped: {:#?}",
        named(counters)
    );
}
