//! Each rule of compiling a policy.

mod classes;
mod identities;
mod limits;
mod lists;
mod order;
mod overrides;
#[path = "../world/mod.rs"]
#[expect(dead_code, reason = "each test uses a part of it")]
mod world;

use limiter_policy::{
    changes::Changes,
    compile::{Compiled, LoadedPrefixes, compile},
    error::PolicyError,
    identities::Identities,
    prefix::Prefix,
    spec::{ClassTerms, LimitSpec, PolicySpec, Protocol, Terms},
};

use self::world::{bucket, class, loaded, prefixes, service, spec};

fn compiled(spec: &PolicySpec, prefixes: &LoadedPrefixes) -> Compiled {
    changed(spec, prefixes, &Changes::default()).unwrap()
}

fn changed(
    spec: &PolicySpec,
    prefixes: &LoadedPrefixes,
    changes: &Changes,
) -> Result<Compiled, PolicyError> {
    compile(spec, prefixes, changes, &mut Identities::default(), 0)
}

fn refused(spec: &PolicySpec, prefixes: &LoadedPrefixes) -> PolicyError {
    changed(spec, prefixes, &Changes::default()).unwrap_err()
}

/// A policy of these limits, and the classes and services that they may name.
fn of(limits: Vec<LimitSpec>) -> PolicySpec {
    PolicySpec {
        limits,
        classes: vec![class("gold"), class("iron")],
        services: vec![
            service("ssh", Protocol::Tcp, (22, 22)),
            service("dns", Protocol::Udp, (53, 53)),
        ],
        ..spec()
    }
}

/// No prefixes for the classes of [`of`].
fn nobody() -> LoadedPrefixes {
    loaded(&["", ""])
}

fn prefix(text: &str) -> Prefix {
    prefixes(text)[0]
}

fn small() -> Terms {
    bucket("10/s", "10")
}

fn with_classes(mut limit: LimitSpec, classes: &[(usize, ClassTerms)]) -> LimitSpec {
    limit.classes = classes.iter().cloned().collect();
    limit
}

/// Of which meter an address is, for limit 0.
fn meter(compiled: &Compiled, address: &str) -> u16 {
    let found = compiled.classes.longest(prefix(address).address);
    let chain = found.map_or(0, |(_, membership)| membership.chain);
    compiled.rows[&chain][0]
}
