//! Numbers that stay with their names.

use std::collections::BTreeMap;

use limiter_policy::{
    changes::Changes,
    compile::compile,
    identities::{Identities, Number},
    spec::{ClassTerms, Packets, PolicySpec},
};

use crate::{
    nobody, of, small, with_classes,
    world::{bucket, limit, loaded},
};

#[test]
fn numbers_stay_with_names_over_policies() {
    let mut identities = Identities::default();
    let mut next = |names: &[&str]| {
        let limits = names.iter().map(|name| limit(name, small())).collect();
        let compiled = compile(
            &of(limits),
            &nobody(),
            &Changes::default(),
            &mut identities,
            0,
        )
        .unwrap();
        let numbers = compiled.policy.limits[..names.len()].iter();
        let numbers: BTreeMap<_, _> = names
            .iter()
            .zip(numbers.map(|limit| (limit.slot, limit.counter)))
            .map(|(name, numbers)| ((*name).to_owned(), numbers))
            .collect();
        (numbers, compiled.rows[&0][0], compiled.fresh)
    };
    let (first, meter, fresh) = next(&["a", "b"]);
    assert!(fresh.is_empty());
    let (second, same, _) = next(&["b"]);
    assert_eq!((second["b"], same), (first["b"], meter));
    let (third, ..) = next(&["c", "b", "a"]);
    assert_eq!((third["a"], third["b"]), (first["a"], first["b"]));
    assert_ne!(third["c"], first["a"]);
    // Names enough that the slots run out, 8 at a time.
    let mut reused = Vec::new();
    for turn in 0..9 {
        let names: Vec<_> = (0..7).map(|number| format!("n{turn}-{number}")).collect();
        let mut names: Vec<_> = names.iter().map(String::as_str).collect();
        names.push("b");
        let (numbers, _, fresh) = next(&names);
        assert_eq!(numbers["b"], first["b"]);
        reused.extend(fresh);
    }
    let (slot, counter) = first["a"];
    assert_eq!(
        reused[0],
        Number::Counter(counter),
        "of 66 names, two counters"
    );
    assert_eq!(reused.len(), 2 + 5);
    assert!(reused.contains(&Number::Slot(slot.into())));
}

#[test]
fn a_policy_that_is_refused_changes_no_identities() {
    let mut identities = Identities::default();
    let mut bad = limit("bad", small());
    bad.packets = Packets::Icmp;
    bad.service = Some(0);
    let before = serde_json::to_string(&identities).unwrap();
    let changes = Changes::default();
    let both = of(vec![limit("good", small()), bad]);
    compile(&both, &nobody(), &changes, &mut identities, 0).unwrap_err();
    assert_eq!(serde_json::to_string(&identities).unwrap(), before);
}

#[test]
fn identities_survive_a_restart() {
    let mut identities = Identities::default();
    let classes = [(0, ClassTerms::Terms(bucket("3/s", "3")))];
    let policy = of(vec![
        limit("a", small()),
        with_classes(limit("b", small()), &classes),
    ]);
    let prefixes = loaded(&["10.0.0.0/8", ""]);
    let changes = Changes::default();
    let first = compile(&policy, &prefixes, &changes, &mut identities, 0).unwrap();
    let text = serde_json::to_string(&identities).unwrap();
    let mut restored: Identities = serde_json::from_str(&text).unwrap();
    restored.restore_meters(first.meters.clone());
    let fewer = PolicySpec {
        limits: policy.limits[1..].to_vec(),
        ..policy
    };
    let second = compile(&fewer, &prefixes, &changes, &mut restored, 0).unwrap();
    assert_eq!(second.policy.limits[0].slot, first.policy.limits[1].slot);
    for (chain, row) in &second.rows {
        assert_eq!(row[0], first.rows[chain][1]);
    }
}
