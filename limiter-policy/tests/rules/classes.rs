//! Chains of classes, and sources whose addresses differ.

use limiter_common::{meter::Meter, policy::EXEMPT};
use limiter_policy::{
    compile::{Compiled, LoadedPrefixes},
    error::Subject,
    spec::ClassTerms,
};

use crate::{
    compiled, meter, of, prefix, refused, small, with_classes,
    world::{bucket, class, limit, loaded},
};

fn held(compiled: &Compiled, address: &str) -> Meter {
    compiled.meters[&meter(compiled, address)].meter
}

#[test]
fn the_class_with_the_longest_prefix_decides() {
    let fast = bucket("100/s", "100");
    let both = with_classes(
        limit("x", small()),
        &[
            (0, ClassTerms::Terms(fast.clone())),
            (1, ClassTerms::Exempt),
        ],
    );
    let prefixes = loaded(&[
        "10.0.0.0/8 10.1.1.0/24 10.1.1.0/24",
        "10.1.0.0/16 2001:db8::/32",
    ]);
    let compiled = compiled(&of(vec![both]), &prefixes);
    assert_eq!(held(&compiled, "11.0.0.0/32"), small().meter);
    assert_eq!(held(&compiled, "10.0.0.0/32"), fast.meter);
    assert_eq!(meter(&compiled, "10.1.0.0/32"), EXEMPT);
    assert_eq!(held(&compiled, "10.1.1.0/32"), fast.meter);
    assert_eq!(meter(&compiled, "2001:db8::1/128"), EXEMPT);
    let classes: Vec<_> = compiled
        .chains
        .values()
        .map(|names| names.join(" "))
        .collect();
    assert_eq!(
        classes.len(),
        4,
        "gold, iron, and both in two orders: {classes:?}"
    );
    assert_eq!(compiled.classes.entries().len(), 4);
    assert!(
        compiled
            .classes
            .entries()
            .iter()
            .all(|(_, of)| of.split == 0)
    );
}

#[test]
fn an_order_that_no_limit_asks_for_makes_no_chain() {
    let limits = vec![
        with_classes(limit("x", small()), &[(0, ClassTerms::Exempt)]),
        with_classes(limit("y", small()), &[(1, ClassTerms::Exempt)]),
    ];
    let prefixes = loaded(&[
        "10.0.0.0/8 10.1.1.0/24 12.0.0.0/8",
        "10.1.0.0/16 12.0.0.0/8",
    ]);
    let compiled = compiled(&of(limits), &prefixes);
    let chains: Vec<_> = compiled.chains.values().cloned().collect();
    assert_eq!(chains, [vec!["gold"], vec!["gold", "iron"]]);
}

#[test]
fn equal_prefixes_of_two_classes_are_refused_where_a_limit_names_both() {
    let one = with_classes(limit("x", small()), &[(0, ClassTerms::Exempt)]);
    let both = with_classes(
        limit("both", small()),
        &[(0, ClassTerms::Exempt), (1, ClassTerms::Exempt)],
    );
    let prefixes = loaded(&["10.0.0.0/8", "9.0.0.0/8 10.0.0.0/8"]);
    compiled(&of(vec![one.clone()]), &prefixes);
    let error = refused(&of(vec![one, both]), &prefixes);
    assert_eq!((error.subject, &*error.key), (Subject::Limit(1), "classes"));
    for part in ["`gold` and `iron`", "10.0.0.0/8", "`both`"] {
        assert!(error.reason.contains(part), "{error}");
    }
}

#[test]
fn chains_have_a_bound() {
    let mut spec = of(Vec::new());
    spec.classes = (0..9).map(|number| class(&format!("c{number}"))).collect();
    // Each address by the classes whose bit it has.
    let prefixes = LoadedPrefixes {
        classes: (0..9)
            .map(|class| {
                let with = (0..512).filter(|bits| bits >> class & 1 == 1);
                with.map(|bits| prefix(&format!("10.0.{}.{}/32", bits >> 8, bits & 255)))
                    .collect()
            })
            .collect(),
        ..LoadedPrefixes::default()
    };
    let error = refused(&spec, &prefixes);
    assert!(error.reason.contains("511 different ways"), "{error}");
    spec.classes.pop();
    let mut fewer = prefixes.clone();
    fewer.classes.pop();
    assert_eq!(compiled(&spec, &fewer).chains.len(), 255);
}

#[test]
fn addresses_of_a_source_that_differ_are_told_apart() {
    let prefixes = loaded(&[
        "2001:db8::/32 2001:db8:1:1::7/128",
        "2001:db8:1:1::/96 fe80::1/128 2001:db8:2:2::/64 2002:c633:6407:1::/64",
    ]);
    let compiled = compiled(&of(Vec::new()), &prefixes);
    let found: Vec<_> = compiled
        .classes
        .entries()
        .iter()
        .map(|(prefix, of)| {
            let names = compiled
                .chains
                .get(&of.chain)
                .map_or(String::new(), |names| names.join(" "));
            (prefix.to_string(), of.split, names)
        })
        .collect();
    let expected = [
        ("2001:db8::/32", 0, "gold"),
        ("2001:db8:1:1::/64", 1, "gold"),
        ("2001:db8:1:1::/96", 1, "gold iron"),
        ("2001:db8:1:1::7", 1, "gold iron"),
        ("2001:db8:2:2::/64", 0, "gold iron"),
        ("2002:c633:6407::/48", 1, ""),
        ("2002:c633:6407:1::/64", 1, "iron"),
        ("fe80::1", 0, "iron"),
    ];
    let expected =
        expected.map(|(prefix, split, names)| (prefix.to_owned(), split, names.to_owned()));
    assert_eq!(found, expected);
}
