use std::path::Path;

use limiter_common::policy::{Matching, Place};

use super::*;
use crate::file;

const FILE: &str = r#"
interfaces = ["eth0"]

[services.login]
match = ["tcp/22"]

[classes.partner]
sources = ["203.0.113.0/24"]

[[limits]]
name = "ceiling"
per = "everyone"
rate = "500000/s"
burst = 500000
mode = "monitor"

[[limits]]
name = "login"
service = "login"
packets = "tcp-syn"
per = "source"
rate = "10/min"
burst = 20
wide = { rate = "100/min", burst = 200 }
classes.partner = { rate = "100/min", burst = 100 }
on_exceed = { ban = "1h30m", after = 100, doubles = true, spoofable = true }
"#;

fn spec(text: &str) -> PolicySpec {
    file::parse(Path::new("policy.toml"), text).unwrap().spec
}

fn limit(name: &str, spec: usize, place: Place, service: Option<usize>) -> CompiledLimit {
    CompiledLimit {
        name: name.to_owned(),
        spec,
        place,
        service,
        wide: place == Place::Wide,
    }
}

#[test]
fn a_policy_for_people() {
    let limits = [
        limit("ceiling", 0, Place::Shared, None),
        limit("login", 1, Place::Source, Some(0)),
        limit("login.wide", 1, Place::Wide, Some(0)),
    ];
    let matches = [Matching {
        limits: 0xffff_ffff_ff00_0201,
        needs: 3,
    }];
    let kernel = Kernel {
        limits: &limits,
        matches: &matches,
        prefixes: 1,
    };
    let memory = Memory {
        sources: 218_103_808,
        logs: 0,
        prefixes: 64,
        bans: 4_194_304,
    };
    let shown = text(&spec(FILE), &kernel, &memory);
    let expected = include_str!("expected.txt");
    assert_eq!(shown, expected);
}

#[test]
fn warnings_name_what_may_not_be_meant() {
    let warnings = |text: &str| warnings(&spec(text)).join("\n");
    let limit = "[[limits]]\nname = \"a\"\nper = \"source\"\nrate = \"10/s\"\n";
    let bucket = format!("{limit}burst = 20\n");
    assert_eq!(warnings(&bucket), "");
    for (text, part) in [
        (
            format!("monitor = true\n{bucket}"),
            "nothing at all is dropped",
        ),
        (
            format!("{bucket}mode = \"monitor\"\n"),
            "none of them drops anything",
        ),
        (
            format!("{bucket}packets = \"udp\"\n"),
            "packets without ports (later fragments",
        ),
        (
            format!("{bucket}packets = \"portless\"\n"),
            "ICMP meet no limit",
        ),
        (
            format!("{limit}algorithm = \"fixed-window\"\n"),
            "limit a: a fixed-window admits up to twice 10/s within one second",
        ),
        (
            format!("{limit}algorithm = \"sliding-window\"\n"),
            "limit a: a sliding-window takes the second before as evenly filled",
        ),
        (
            format!("{bucket}on_exceed = {{ ban = \"1m\", after = 1, spoofable = true }}\n"),
            "limit a: it bans for any packets, whose source anyone can forge",
        ),
        (
            format!(
                "{bucket}mode = \"monitor\"\non_exceed = {{ ban = \"1m\", after = 1, spoofable = true }}\n"
            ),
            "limit a: with mode = \"monitor\" it never bans",
        ),
        (
            format!(
                "[sources]\nipv4_prefix = 24\nipv6_prefix = 48\n{bucket}wide = {{ rate = \"1/s\", burst = 1 }}\n"
            ),
            "limit a: wider sources are as wide as sources",
        ),
        (
            format!(
                "[services.s]\nmatch = [\"tcp/1\"]\n{bucket}service = \"s\"\npackets = \"fragments\"\n"
            ),
            "limit a: only the first fragment",
        ),
        (
            format!("ban = [\"192.0.2.0/24\"]\nallow = [\"192.0.2.0/24\"]\n{bucket}"),
            "192.0.2.0/24 is in allow and ban: allow wins",
        ),
        (
            format!("ban = [\"0.0.0.0/0\"]\n{bucket}"),
            "ban 0.0.0.0/0: that is 1/1 of all IPv4 addresses",
        ),
        (
            format!("[services.s]\nmatch = [\"tcp/1\"]\n{bucket}"),
            "service s: no limit names it",
        ),
        (
            format!("[classes.c]\nsources = [\"192.0.2.1\"]\n{bucket}"),
            "class c: no limit names it",
        ),
    ] {
        let found = warnings(&text);
        assert!(found.contains(part), "{text}\n{found}");
    }
}

#[test]
fn the_most_in_any_time() {
    let most = |terms: &str| {
        let text = format!("[[limits]]\nname = \"a\"\nper = \"source\"\n{terms}");
        let spec = spec(&text);
        let limit = &spec.limits[0];
        most(&limit.terms, limit.cost)
    };
    assert_eq!(
        most("rate = \"60/min\"\nburst = 60\n"),
        "at most 120 in any minute"
    );
    assert_eq!(
        most("rate = \"100Mbit/s\"\nburst = \"1MB\"\n"),
        "at most 13500000 bytes in any second"
    );
    assert_eq!(
        most("algorithm = \"leaky-bucket\"\nrate = \"10/s\"\nqueue = 5\n"),
        "at most 16 in any second"
    );
    assert_eq!(
        most("algorithm = \"fixed-window\"\nrate = \"10/h\"\n"),
        "at most 10 in one hour of the clock, 20 in any hour"
    );
    assert_eq!(
        most("rate = \"60/min\"\nburst = 60\ncost = 7\n"),
        "at most 17 in any minute"
    );
    assert_eq!(
        most("algorithm = \"sliding-window\"\nrate = \"8Mbit/min\"\n"),
        "at most 1000000 bytes in one minute of the clock, by estimate 1000000 bytes in any minute"
    );
    assert_eq!(
        most("algorithm = \"sliding-log\"\nrate = \"10/d\"\n"),
        "at most 10 in any day"
    );
}

#[test]
fn durations() {
    for text in [
        "1s",
        "1m",
        "1h30m",
        "7d",
        "365d",
        "1s500ms",
        "1d1h1m1s1ms1us1ns",
    ] {
        let length = humantime::parse_duration(text).unwrap().as_nanos();
        assert_eq!(duration(u64::try_from(length).unwrap()), text);
    }
    assert_eq!(duration(0), "0s");
}
