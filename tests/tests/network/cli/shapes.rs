//! The JSON answers have the documented shapes: these keys, of these types, and no others.

use anyhow::Result;
use limiter_lab::{HOST_V4, NET_INTERFACE, Wire, frame::Frame};
use serde_json::Value;

use crate::common::{ATTACKER, DISCARD, Site, at_rest, start, top, wait_until};

/// What a value may be.
enum Shape {
    Text,
    Number,
    Flag,
    /// Or null.
    Maybe(&'static Shape),
    List(&'static Shape),
    /// These keys, with values of one shape.
    Same(&'static [&'static str], &'static Shape),
    Object(&'static [(&'static str, Shape)]),
}

use Shape::{Flag, List, Maybe, Number, Object, Same, Text};

const STATUS: Shape = Object(&[
    ("version", Text),
    ("ready", Flag),
    ("pid", Number),
    ("uptime_s", Number),
    (
        "policy",
        Object(&[
            ("generation", Number),
            ("source", Text),
            ("mode", Text),
            ("ipv4_prefix", Number),
            ("ipv6_prefix", Number),
            ("last_reload_failure", Maybe(&Text)),
        ]),
    ),
    ("interfaces", List(&INTERFACE)),
    (
        "limits",
        List(&Object(&[
            ("name", Text),
            ("mode", Text),
            ("per", Text),
            ("service", Maybe(&Text)),
            ("packets", Text),
            ("algorithm", Text),
            ("rate", Text),
            ("burst", Maybe(&Text)),
            ("passed", Number),
            ("dropped", Number),
            ("would_drop", Number),
        ])),
    ),
    (
        "sources",
        Object(&[
            ("capacity", Number),
            ("tracked", Number),
            ("tracked_age_s", Number),
            ("tracked_complete", Flag),
            ("memory_bytes", Number),
            (
                "events",
                Same(
                    &[
                        "inserted",
                        "insert_raced",
                        "insert_failed",
                        "retries_exhausted",
                        "limit_skipped",
                        "ban_failed",
                    ],
                    &Number,
                ),
            ),
        ]),
    ),
    (
        "lists",
        List(&Object(&[
            ("file", Text),
            ("prefixes", Number),
            ("skipped", Number),
            ("examples", List(&Text)),
            ("kept", Maybe(&Text)),
        ])),
    ),
    (
        "overrides",
        List(&Object(&[
            ("limit", Text),
            ("source", Maybe(&Text)),
            ("rate", Maybe(&Text)),
            ("burst", Maybe(&Text)),
            ("author", Text),
            ("reason", Maybe(&Text)),
            ("made", Text),
            ("until", Text),
            ("remaining_s", Number),
            ("idle", Maybe(&Text)),
        ])),
    ),
    ("bans", Same(&["operator", "limit", "policy"], &Number)),
    ("audit_lost", Number),
]);

const INTERFACE: Shape = Object(&[
    ("name", Text),
    ("ifindex", Number),
    ("attached", Flag),
    ("attach_mode", Text),
    ("attach_type", Text),
    ("program_id", Number),
    (
        "packets",
        Object(&[
            ("seen", Number),
            ("passed", Number),
            ("dropped", Number),
            ("dropped_by_reason", Same(REASONS, &Number)),
            ("would_drop_by_reason", Same(REASONS, &Number)),
        ]),
    ),
    (
        "host_needs",
        Same(
            &[
                "arp",
                "neighbour_discovery",
                "path_mtu",
                "dhcp",
                "lacp",
                "lldp",
                "eapol",
                "stp",
                "vrrp",
            ],
            &Object(&[("passed", Number), ("exceeded", Number)]),
        ),
    ),
    (
        "odd",
        Same(
            &[
                "one_tag",
                "two_tags",
                "llc",
                "ptp",
                "macsec",
                "pppoe_unparsed",
                "other_ether_type",
                "later_fragment",
                "cut_first_fragment",
                "ext_chain_limit",
                "unknown_protocol",
            ],
            &Number,
        ),
    ),
]);

const REASONS: &[&str] = &[
    "limit",
    "ban",
    "malformed",
    "too_many_tags",
    "invalid_source",
    "need_ceiling",
    "table_full",
];

const EXPLANATION: Shape = Object(&[
    ("address", Text),
    ("proto", Text),
    ("dport", Number),
    ("sport", Number),
    ("syn", Flag),
    ("mode", Text),
    ("verdict", Text),
    ("reason", Maybe(&Text)),
    ("host_need", Maybe(&Text)),
    ("source", Text),
    ("rule", Text),
    ("tracked", Flag),
    ("passed", Number),
    ("dropped", Number),
    ("last_seen_s", Maybe(&Number)),
    ("classes", List(&Text)),
    ("listed", Text),
    ("banned_by", Maybe(&Text)),
    ("ports_unknown", Flag),
    ("banned_for_s", Maybe(&Number)),
    ("precedence", Text),
    (
        "limits",
        List(&Object(&[
            ("name", Text),
            ("mode", Text),
            ("rate", Text),
            ("burst", Maybe(&Text)),
            ("algorithm", Text),
            ("class", Maybe(&Text)),
            ("overridden_for_s", Maybe(&Number)),
            ("shared_by", Text),
            ("exempt", Flag),
            ("unit", Text),
            ("allowed", Flag),
            ("tokens", Number),
            ("retry_after_ms", Maybe(&Number)),
        ])),
    ),
]);

const TOP: Shape = Object(&[
    ("age_s", Number),
    ("mode", Text),
    ("interval_ms", Maybe(&Number)),
    ("busiest", List(&RANKED)),
    ("most_dropped", List(&RANKED)),
]);

const RANKED: Shape = Object(&[
    ("source", Text),
    ("passed", Number),
    ("dropped", Number),
    ("packets_per_s", Maybe(&Number)),
    ("dropped_per_s", Maybe(&Number)),
    ("last_seen_s", Number),
]);

/// Fails unless the value at `path` has the shape.
fn assert_shape(path: &str, value: &Value, shape: &Shape) {
    let keys = |expected: &mut dyn Iterator<Item = &str>| {
        let found: Vec<&str> = value
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys().map(String::as_str))
            .collect();
        let (mut found, mut expected) = (found, expected.collect::<Vec<_>>());
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "the keys of {path}");
    };
    match shape {
        Text => assert!(value.is_string(), "{path}: {value}"),
        Number => assert!(value.is_u64(), "{path}: {value}"),
        Flag => assert!(value.is_boolean(), "{path}: {value}"),
        Maybe(shape) => {
            if !value.is_null() {
                assert_shape(path, value, shape);
            }
        }
        List(shape) => {
            let items = value
                .as_array()
                .unwrap_or_else(|| panic!("{path}: {value}"));
            for item in items {
                assert_shape(&format!("{path}[]"), item, shape);
            }
        }
        Same(names, shape) => {
            keys(&mut names.iter().copied());
            for name in *names {
                assert_shape(&format!("{path}.{name}"), &value[name], shape);
            }
        }
        Object(fields) => {
            keys(&mut fields.iter().map(|(name, _)| *name));
            for (name, shape) in *fields {
                assert_shape(&format!("{path}.{name}"), &value[name], shape);
            }
        }
    }
}

#[test]
fn answers_have_the_documented_shapes() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3")?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build();
    Wire::open(&site.net, NET_INTERFACE)?.send_all(&vec![frame; 10])?;
    at_rest(&limiter)?;
    wait_until("there is a ranking", || {
        Ok(!top(&limiter)?.most_dropped.is_empty())
    })?;
    let attacker = ATTACKER.to_string();
    let questions: [(&[&str], &Shape); 6] = [
        (&["status", "--json"], &STATUS),
        (&["top", "--json"], &TOP),
        (&["explain", &attacker, "--json"], &EXPLANATION),
        (&["explain", "203.0.113.5", "--json"], &EXPLANATION),
        (&["explain", "127.0.0.1", "--json"], &EXPLANATION),
        (
            &[
                "explain",
                "203.0.113.5",
                "--proto",
                "udp",
                "--sport",
                "67",
                "--dport",
                "68",
                "--json",
            ],
            &EXPLANATION,
        ),
    ];
    for (question, shape) in questions {
        let answer = limiter.json(question)?;
        assert_shape(question[0], &answer, shape);
    }
    let status = limiter.status()?;
    for (pointer, expected) in [
        ("/version", Value::from(env!("CARGO_PKG_VERSION"))),
        ("/ready", true.into()),
        ("/policy/generation", 1.into()),
        ("/policy/source", "flags".into()),
        ("/policy/mode", "enforce".into()),
        ("/policy/ipv4_prefix", 32.into()),
        ("/policy/ipv6_prefix", 64.into()),
        ("/interfaces/0/name", limiter_lab::HOST_INTERFACE.into()),
        ("/interfaces/0/attach_mode", "native".into()),
        ("/limits/0/name", "per-source".into()),
        ("/limits/0/per", "source".into()),
        ("/limits/0/rate", "1/h".into()),
        ("/limits/0/burst", "3".into()),
        ("/sources/capacity", (1 << 20).into()),
    ] {
        assert_eq!(status.pointer(pointer), Some(&expected), "{pointer}");
    }
    Ok(())
}
