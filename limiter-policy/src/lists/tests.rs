use std::{collections::BTreeMap, net::IpAddr};

use limiter_common::address::Address;
use proptest::prelude::*;

use super::*;
use crate::prefix::PrefixSet;

fn shown(parsed: &Parsed) -> Vec<String> {
    parsed.prefixes.iter().map(Prefix::to_string).collect()
}

fn address(text: &str) -> Address {
    text.parse::<IpAddr>().expect("an address").into()
}

fn list(prefixes: usize) -> Parsed {
    let lines = (0..prefixes).map(|number| format!("10.{}.{}.0/24", number >> 8, number & 255));
    let text = lines.collect::<Vec<_>>().join("\n");
    let parsed = parse(text.as_bytes());
    assert_eq!(parsed.prefixes.len(), prefixes);
    parsed
}

#[test]
fn a_list_as_they_are_found() {
    let text = b"\xef\xbb\xbf# a feed\r\n\
        198.51.100.7\r\n\
        \t 203.0.113.0/24 \t; SBL1\r\n\
        \r\n\
        ; another comment\r\n\
        2001:db8::/32# at once\r\n\
        2001:DB8:0:1::5\r\n\
        ::ffff:192.0.2.1\r\n\
        ::ffff:192.0.2.128/121";
    let parsed = parse(text);
    assert_eq!(
        shown(&parsed),
        [
            "192.0.2.1",
            "192.0.2.128/25",
            "198.51.100.7",
            "203.0.113.0/24",
            "2001:db8::/32",
            "2001:db8:0:1::5"
        ]
    );
    assert_eq!(parsed.entries, 6);
    assert_eq!(parsed.covered, 1);
    assert_eq!(parsed.skipped, []);
    assert_eq!(parsed.skipped_lines(), 0);
}

#[test]
fn nothing_is_no_entry() {
    for text in [
        &b""[..],
        b"\n",
        b"\r\n\r\n",
        b"# only\n;that",
        b"\xef\xbb\xbf",
        b" \t \n",
    ] {
        assert_eq!(parse(text), Parsed::default(), "{text:?}");
    }
}

#[test]
fn lengths_are_exact() {
    for (text, address_text, length) in [
        ("255.255.255.255", "255.255.255.255", 128),
        ("0.0.0.0", "0.0.0.0", 128),
        ("0.0.0.0/8", "0.0.0.0", 104),
        ("1.2.3.4/32", "1.2.3.4", 128),
        ("128.0.0.0/9", "128.0.0.0", 105),
        ("2001:db8::1/128", "2001:db8::1", 128),
        ("::/8", "::", 8),
        ("::1", "::1", 128),
    ] {
        let prefix = Prefix {
            address: address(address_text),
            length,
        };
        assert_eq!(parse(text.as_bytes()).prefixes, [prefix], "{text}");
    }
}

#[test]
fn bits_beyond_the_length_are_cleared_and_counted() {
    let parsed = parse(b"198.51.100.7/24\n198.51.100.0/24\n2001:db8::1/64\n");
    assert_eq!(shown(&parsed), ["198.51.100.0/24", "2001:db8::/64"]);
    assert_eq!((parsed.masked, parsed.duplicates), (2, 1));
}

#[test]
fn a_prefix_inside_another_stays() {
    let parsed = parse(b"10.0.0.0/8\n10.1.0.0/16\n10.1.2.0/24\n11.0.0.0/8\n10.255.0.0/16\n");
    assert_eq!(parsed.prefixes.len(), 5);
    assert_eq!(parsed.covered, 3);
}

#[test]
fn what_is_no_prefix_is_skipped_with_a_reason() {
    for (text, reason) in [
        ("example.org", Reason::NotAPrefix),
        ("<html>", Reason::NotAPrefix),
        ("198.51.100", Reason::NotAPrefix),
        ("198.51.100.256", Reason::NotAPrefix),
        ("198.51.100.07", Reason::NotAPrefix),
        ("198.51.100.7:80", Reason::NotAPrefix),
        ("198.51.100.7-198.51.100.9", Reason::NotAPrefix),
        ("198.51.100.7 198.51.100.8", Reason::NotAPrefix),
        ("198.51.100.7,198.51.100.8", Reason::NotAPrefix),
        ("198.51.100.0 /24", Reason::NotAPrefix),
        ("fe80::1%eth0", Reason::NotAPrefix),
        ("[2001:db8::1]", Reason::NotAPrefix),
        ("/24", Reason::NotAPrefix),
        ("\u{661}.2.3.4", Reason::NotAPrefix),
        ("198.51.100.0/", Reason::Length { most: 32 }),
        ("198.51.100.0/33", Reason::Length { most: 32 }),
        ("198.51.100.0/256", Reason::Length { most: 32 }),
        ("198.51.100.0/-1", Reason::Length { most: 32 }),
        ("198.51.100.0/+24", Reason::Length { most: 32 }),
        ("198.51.100.0/ 24", Reason::Length { most: 32 }),
        ("198.51.100.0/24/24", Reason::Length { most: 32 }),
        ("10.0.0.0/255.0.0.0", Reason::Length { most: 32 }),
        ("2001:db8::/129", Reason::Length { most: 128 }),
        ("::ffff:192.0.2.0/24", Reason::Mapped),
        ("::ffff:192.0.2.0/95", Reason::Mapped),
        ("0.0.0.0/0", Reason::TooWide),
        ("198.51.100.7/2", Reason::TooWide),
        ("8.0.0.0/7", Reason::TooWide),
        ("::/0", Reason::TooWide),
        ("2000::/7", Reason::TooWide),
    ] {
        let parsed = parse(format!("192.0.2.1\n{text}\n").as_bytes());
        let skipped = Skipped {
            line: 2,
            text: text.to_owned(),
            reason,
        };
        assert_eq!(parsed.skipped, [skipped]);
        assert_eq!((parsed.prefixes.len(), parsed.entries), (1, 2), "{text}");
        assert_eq!(
            (parsed.foreign, parsed.too_wide),
            if reason == Reason::TooWide {
                (0, 1)
            } else {
                (1, 0)
            },
            "{text}"
        );
    }
}

#[test]
fn what_is_no_text_is_skipped() {
    let parsed = parse(b"\xff\xfe1\x00.\x002\x00\n192.0.2.1\x00\n\xc3\x28\n");
    assert_eq!(parsed.foreign, 3);
    assert_eq!(parsed.skipped[1].text, "192.0.2.1\0");
    assert_eq!(parsed.skipped[2].text, "\u{fffd}(");
}

#[test]
fn the_first_skipped_lines_are_shown_and_all_are_counted() {
    let line = "x".repeat(1_000);
    let text = format!("\n{line}\n").repeat(50);
    let parsed = parse(text.as_bytes());
    assert_eq!(parsed.foreign, 50);
    assert_eq!(parsed.skipped.len(), SHOWN);
    assert_eq!(parsed.skipped[9].line, 20);
    assert_eq!(parsed.skipped[9].text.len(), SHOWN_BYTES);
    assert_eq!(
        parse(b"a\n").skipped[0].to_string(),
        "line 1: \"a\": not an address or prefix, such as 198.51.100.0/24 or 2001:db8::/32"
    );
}

#[test]
fn a_first_version_may_be_short_but_must_be_a_list() {
    assert_eq!(accept(None, &list(0)), Ok(()));
    assert_eq!(accept(Some(0), &list(0)), Ok(()));
    assert_eq!(accept(None, &list(5_000)), Ok(()));
    let half = parse(b"192.0.2.1\nx\n");
    assert_eq!(accept(None, &half), Ok(()));
    let page = parse(b"<html>\n<p>192.0.2.1 is blocked\n192.0.2.1\n");
    let refused = Refused::NotAList {
        entries: 3,
        foreign: 2,
    };
    assert_eq!(accept(None, &page), Err(refused));
    assert_eq!(accept(Some(1), &page), Err(refused));
    assert_eq!(
        refused.to_string(),
        "not a list of prefixes: 2 of its 3 lines are none"
    );
}

#[test]
fn a_list_may_halve_but_not_less() {
    for (before, now, expected) in [
        (1, 1, Ok(())),
        (2, 1, Ok(())),
        (3, 2, Ok(())),
        (3, 1, Err(Refused::Shrunken { before: 3, now: 1 })),
        (1_000, 500, Ok(())),
        (
            1_000,
            499,
            Err(Refused::Shrunken {
                before: 1_000,
                now: 499,
            }),
        ),
        (1, 0, Err(Refused::Empty { before: 1 })),
    ] {
        assert_eq!(accept(Some(before), &list(now)), expected);
    }
}

#[test]
fn a_long_list_may_not_become_ten_times_as_long() {
    for (before, now, refused) in [
        (3, 999, false),
        (100, 1_000, true),
        (101, 1_000, false),
        (300, 2_999, false),
        (300, 3_000, true),
    ] {
        let refusal = accept(Some(before), &list(now)).err();
        assert_eq!(
            refusal,
            refused.then_some(Refused::Grown { before, now }),
            "{before} to {now}"
        );
    }
}

#[test]
fn a_refusal_says_what_to_do() {
    let refused = Refused::Shrunken { before: 9, now: 2 };
    assert_eq!(
        refused.to_string(),
        "only 2 of 9 prefixes are left, fewer than half; to take it nevertheless, remove the file from the policy, \
         reload, add it again and reload"
    );
}

#[test]
fn an_ipv6_prefix_around_ipv4_does_not_mean_ipv4() {
    let mut entries = vec![
        (parse(b"::/8").prefixes[0], 1),
        (parse(b"10.0.0.0/8").prefixes[0], 2),
    ];
    keep_apart(&mut entries, 0);
    let set = PrefixSet::new(entries);
    let of = |text| set.longest(address(text)).map(|(_, value)| *value);
    assert_eq!(of("198.51.100.7"), Some(0));
    assert_eq!(of("10.0.0.1"), Some(2));
    assert_eq!(of("::1"), Some(1));
    assert_eq!(of("2001:db8::1"), None);
}

#[test]
fn ipv4_gets_no_entry_that_it_does_not_need() {
    let plain = vec![
        (parse(b"10.0.0.0/8").prefixes[0], 1),
        (parse(b"2001:db8::/32").prefixes[0], 1),
    ];
    let all = Prefix::new(address("0.0.0.0"), 96);
    let own = vec![(all, 1), (parse(b"::/8").prefixes[0], 2)];
    for before in [plain, own] {
        let mut after = before.clone();
        keep_apart(&mut after, 0);
        assert_eq!(after, before);
    }
}

/// Few addresses and lengths, so that sets overlap.
fn sets() -> impl Strategy<Value = PrefixSet<u8>> {
    let prefix = (0..4_u32, 0..40_u8).prop_map(|(low, shorter)| {
        Prefix::new(Address::from_v4(0xc633_6400 | (low << 6)), 128 - shorter)
    });
    prop::collection::vec((prefix, 0..3_u8), 0..60).prop_map(PrefixSet::new)
}

proptest! {
    #[test]
    fn a_difference_makes_new_of_old_and_touches_nothing_else(old in sets(), new in sets()) {
        let delta = difference(&old, &new);
        let mut map: BTreeMap<Prefix, u8> = old.entries().iter().copied().collect();
        for prefix in &delta.remove {
            prop_assert!(map.remove(prefix).is_some(), "{prefix} was there");
        }
        for (prefix, value) in &delta.set {
            prop_assert_ne!(map.insert(*prefix, *value), Some(*value), "{} changes", prefix);
        }
        prop_assert_eq!(map.into_iter().collect::<Vec<_>>(), new.entries());
        prop_assert!(difference(&new, &new).is_empty());
        let length = delta.len();
        prop_assert_eq!(small_difference(&old, &new, length), Some(delta.clone()));
        if let Some(less) = length.checked_sub(1) {
            prop_assert_eq!(small_difference(&old, &new, less), None);
        }
        prop_assert_eq!(delta.is_empty(), old == new);
        prop_assert_eq!(delta.len(), delta.set.len() + delta.remove.len());
    }

    #[test]
    fn a_written_prefix_is_read_back(high: u64, low: u64, length in WIDEST..=128_u8, v4: bool) {
        let prefix = if v4 {
            Prefix::new(Address::from_v4(v4_bits(low)), 96 + length.min(32))
        } else {
            // The first bit keeps it clear of the mapped form.
            Prefix::new(Address { high: high | (1 << 63), low }, length)
        };
        let parsed = parse(prefix.to_string().as_bytes());
        prop_assert_eq!(&parsed.prefixes, &[prefix]);
        prop_assert_eq!(parsed.masked, 0);
    }

    #[test]
    fn every_line_is_accounted_for(text: Vec<u8>) {
        let parsed = parse(&text);
        prop_assert_eq!(
            parsed.entries,
            parsed.prefixes.len() + parsed.duplicates + parsed.skipped_lines()
        );
    }
}

fn v4_bits(word: u64) -> u32 {
    u32::try_from(word >> 32).expect("32 bits")
}

/// Also the bound of an ordinary reload: `cargo test --release` shows the time.
#[test]
fn a_million_lines() {
    let mut random = fastrand::Rng::with_seed(1);
    let lines = (0..1_000_000).map(|_| std::net::Ipv4Addr::from_bits(random.u32(..)).to_string());
    let text = lines.collect::<Vec<_>>().join("\n");
    let started = std::time::Instant::now();
    let parsed = parse(text.as_bytes());
    let taken = started.elapsed();
    eprintln!("a million lines: {taken:?}");
    assert_eq!(parsed.entries, 1_000_000);
    assert_eq!(parsed.foreign, 0);
    if !cfg!(debug_assertions) {
        assert!(taken.as_millis() < 500, "{taken:?}");
    }
}
