//! Overrides of limits.

use limiter_common::policy::EXEMPT;
use limiter_policy::{
    changes::{Changes, Override},
    error::Subject,
    spec::{ClassTerms, Per, Terms},
};

use crate::{
    changed, meter, nobody, of, small, with_classes,
    world::{bucket, limit, loaded, terms},
};

fn overriding(limit: &str, source: Option<&str>, terms: &Terms, until: u64) -> Override {
    Override {
        limit: limit.to_owned(),
        source: source.map(|source| source.parse().unwrap()),
        terms: terms.clone(),
        until,
    }
}

#[test]
fn overrides_give_way_to_what_holds_without_them() {
    let (gold, a, b, c) = (
        bucket("1/s", "1"),
        bucket("2/s", "2"),
        bucket("3/s", "3"),
        bucket("4/s", "4"),
    );
    let classes = [
        (0, ClassTerms::Terms(gold.clone())),
        (1, ClassTerms::Exempt),
    ];
    let limit = with_classes(limit("x", small()), &classes);
    let prefixes = loaded(&["10.0.0.0/8", "12.0.0.0/8"]);
    let changes = Changes {
        bans: Vec::new(),
        overrides: vec![
            overriding("x", None, &a, 90),
            overriding("x", Some("10.0.0.0/8"), &c, 40),
            overriding("x", Some("10.0.0.0/8"), &b, 50),
            overriding("x", Some("12.1.0.0/16"), &b, 60),
            overriding("x", Some("11.0.0.0/8"), &b, 70),
            overriding("x", Some("11.1.0.0/16"), &c, 80),
            overriding("x", Some("11.2.0.0/16"), &c, 60),
            overriding("x", Some("13.0.0.0/8"), &c, 0),
        ],
    };
    let compiled = changed(&of(vec![limit]), &prefixes, &changes).unwrap();
    let in_turn = |address: &str| {
        let mut id = meter(&compiled, address);
        let mut turns = Vec::new();
        while id != EXEMPT {
            let entry = compiled.meters[&id];
            turns.push((entry.meter, entry.until));
            if entry.until == 0 {
                break;
            }
            id = u16::try_from(entry.then).unwrap();
        }
        (turns, id == EXEMPT)
    };
    let (small, gold, a, b, c) = (small().meter, gold.meter, a.meter, b.meter, c.meter);
    assert_eq!(in_turn("9.0.0.0/32"), (vec![(a, 90), (small, 0)], false));
    assert_eq!(
        in_turn("10.0.0.0/32"),
        (vec![(b, 50), (gold, 0)], false),
        "the later override; it comes before the class with the same prefix"
    );
    assert_eq!(in_turn("12.0.0.0/32"), (vec![], true));
    assert_eq!(in_turn("12.1.0.0/32"), (vec![(b, 60)], true));
    assert_eq!(
        in_turn("11.1.0.0/32"),
        (vec![(c, 80), (a, 90), (small, 0)], false),
        "what is over before is left out"
    );
    assert_eq!(
        in_turn("11.2.0.0/32"),
        (vec![(c, 60), (b, 70), (a, 90), (small, 0)], false)
    );
    assert_eq!(in_turn("13.0.0.0/32"), in_turn("9.0.0.0/32"));
}

#[test]
fn overrides_that_cannot_be_are_refused() {
    let mut shared = limit("shared", small());
    shared.per = Per::Everyone;
    let log = limit("log", terms("sliding-log", "5/min", ""));
    let mut wide = limit("x", small());
    wide.wide = Some(bucket("100/s", "100"));
    let spec = of(vec![wide, shared, log]);
    let error = |change| {
        let changes = Changes {
            bans: Vec::new(),
            overrides: vec![change],
        };
        changed(&spec, &nobody(), &changes).map(|compiled| {
            let row = compiled.rows[&0];
            [0, 1, 2, 3].map(|number| compiled.meters[&row[number]].meter)
        })
    };
    let fast = bucket("7/s", "7");
    let unknown = error(overriding("y", None, &fast, 9)).unwrap_err();
    assert!(
        unknown.reason.contains("no limit `y`: the limits are `x`"),
        "{unknown}"
    );
    let one = error(overriding("shared", Some("10.0.0.0/8"), &fast, 9)).unwrap_err();
    assert_eq!((one.subject, &*one.key), (Subject::Limit(1), "override"));
    let log = error(overriding("log", None, &fast, 9)).unwrap_err();
    assert!(log.reason.contains("sliding log"), "{log}");
    let base = error(overriding("x", None, &fast, 0)).unwrap();
    let row = error(overriding("x", None, &fast, 9)).unwrap();
    assert_eq!(row[0], fast.meter);
    assert_eq!(
        row[1..3],
        base[1..3],
        "the wider source keeps its own terms"
    );
    let row = error(overriding("x.wide", None, &fast, 9)).unwrap();
    assert_eq!(row[1], fast.meter);
}
