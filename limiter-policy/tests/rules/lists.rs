//! Who is allowed or banned.

use limiter_common::standing::{Entry, Listed};
use limiter_policy::{
    changes::{Changes, OperatorBan},
    compile::LoadedPrefixes,
};

use crate::{changed, nobody, of, prefix, world::prefixes};

fn ban(net: &str, until: Option<u64>) -> OperatorBan {
    OperatorBan {
        prefix: net.parse().unwrap(),
        until,
    }
}

#[test]
fn the_longest_of_allow_and_ban_decides() {
    let lists = LoadedPrefixes {
        allow: prefixes("10.0.0.0/8 10.1.1.0/24 11.0.0.1/32"),
        ban: prefixes("10.1.0.0/16 10.1.1.0/24 2001:db8:1:1::7/128"),
        ..nobody()
    };
    let changes = Changes {
        bans: vec![
            ban("10.1.1.128/25", Some(50)),
            ban("10.1.1.192/26", Some(40)),
            ban("10.1.1.224/27", Some(60)),
            ban("10.1.2.0/24", Some(50)),
            ban("11.0.0.1/32", Some(50)),
            ban("12.0.0.0/8", Some(50)),
            ban("13.0.0.0/8", Some(0)),
            ban("14.0.0.0/8", Some(50)),
            ban("14.0.0.0/8", Some(70)),
            ban("15.0.0.0/8", None),
            ban("15.0.0.0/8", Some(70)),
        ],
        overrides: Vec::new(),
    };
    let compiled = changed(&of(Vec::new()), &lists, &changes).unwrap();
    assert_eq!(compiled.policy.list_set, 0);
    let (no, allowed, banned) = (Listed::No, Listed::Allowed, Listed::Banned);
    let until = Listed::BannedUntil;
    let expected = [
        ("10.0.0.0/8", allowed, 0, no, 0),
        ("10.1.0.0/16", banned, 0, no, 0),
        ("10.1.1.0/24", allowed, 0, no, 0),
        ("10.1.1.128/25", until, 50, allowed, 0),
        // One ban goes over into the other.
        ("10.1.1.192/26", until, 50, allowed, 0),
        ("10.1.1.224/27", until, 60, allowed, 0),
        ("10.1.2.0/24", banned, 0, no, 0),
        ("11.0.0.1/32", allowed, 0, no, 0),
        ("12.0.0.0/8", until, 50, no, 0),
        ("14.0.0.0/8", until, 70, no, 0),
        ("15.0.0.0/8", banned, 0, no, 0),
        ("2001:db8:1:1::/64", no, 0, no, 1),
        ("2001:db8:1:1::7/128", banned, 0, no, 1),
    ];
    let entries = expected.map(|(text, listed, until, then, split)| {
        let entry = Entry {
            listed: listed as u32,
            split,
            until,
            then: then as u32,
            zero: 0,
        };
        (prefix(text), entry)
    });
    assert_eq!(compiled.lists.entries(), entries);
}
