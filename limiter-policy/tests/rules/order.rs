//! Which limits match a packet, and in which order they are asked.

use limiter_common::policy::{Kind, MAX_MATCHING, Matching, NO_LIMIT};
use limiter_policy::{
    compile::Compiled,
    error::Subject,
    spec::{Packets, Per},
};

use crate::{compiled, nobody, of, refused, small, world::limit};

/// The names of the limits that match a kind of packets without ports.
fn asked(compiled: &Compiled, kind: Kind) -> Vec<&str> {
    let index = compiled.policy.match_index(2 * kind as u32, 0, 0, 0);
    names(compiled, compiled.matches[index as usize])
}

fn names(compiled: &Compiled, matching: Matching) -> Vec<&str> {
    let numbers = matching.limits.to_le_bytes().into_iter();
    numbers
        .take_while(|number| *number != NO_LIMIT)
        .map(|number| compiled.limits[usize::from(number)].name.as_str())
        .collect()
}

#[test]
fn the_most_specific_limit_is_asked_first() {
    let of_service = |name: &str, per| {
        let mut limit = limit(name, small());
        limit.service = Some(0);
        limit.per = per;
        limit
    };
    let mut everyone = limit("everyone", small());
    everyone.per = Per::Everyone;
    let mut any = limit("any", small());
    any.wide = Some(small());
    let mut syn = limit("syn", small());
    syn.packets = Packets::TcpSyn;
    let compiled = compiled(
        &of(vec![
            everyone,
            of_service("ssh-everyone", Per::Everyone),
            of_service("ssh-all", Per::Service),
            any,
            limit("later", small()),
            syn,
            of_service("ssh-source", Per::Source),
        ]),
        &nobody(),
    );
    let index = compiled
        .policy
        .match_index(2 * Kind::TcpSyn as u32, 1, 0, 0);
    let matching = compiled.matches[index as usize];
    assert_eq!(
        names(&compiled, matching),
        [
            "ssh-source",
            "syn",
            "any",
            "later",
            "any.wide",
            "ssh-all",
            "ssh-everyone",
            "everyone"
        ]
    );
    assert_eq!(matching.needs, Matching::SOURCE | Matching::WIDE);
    assert_eq!(
        asked(&compiled, Kind::Icmp),
        ["any", "later", "any.wide", "everyone"]
    );
}

#[test]
fn no_more_limits_match_a_packet_than_are_asked() {
    let mut limits: Vec<_> = (0..MAX_MATCHING)
        .map(|number| limit(&format!("l{number}"), small()))
        .collect();
    let mut ninth = limit("ninth", small());
    ninth.service = Some(0);
    ninth.packets = Packets::TcpSyn;
    limits.push(ninth);
    let error = refused(&of(limits.clone()), &nobody());
    assert_eq!(error.subject, Subject::Top);
    for part in ["9 limits match", "tcp/22 SYN,", "may be 8", "`ninth`, `l0`"] {
        assert!(error.reason.contains(part), "{error}");
    }
    limits[8].packets = Packets::Udp;
    limits[8].service = Some(1);
    let error = refused(&of(limits.clone()), &nobody());
    assert!(error.reason.contains("udp/53,"), "{error}");
    limits.remove(0);
    compiled(&of(limits), &nobody());
}
