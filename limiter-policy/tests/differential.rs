//! The policy compiled and judged as in the kernel, against a limiter by the book: equal verdicts, equal counters.

mod model;
#[expect(dead_code, reason = "each test uses a part of it")]
mod world;

use std::collections::BTreeMap;

use fastrand::Rng;
use limiter_common::{
    counters::{LimitCounters, Reason},
    judge::Verdict,
    parse::UpperKind,
};
use limiter_policy::{
    changes::Changes,
    compile::{Compiled, LoadedPrefixes, compile},
    host::{HostTables, explain},
    identities::Identities,
    spec::PolicySpec,
};

use self::{
    model::{Counted, Model},
    world::{SECOND, random},
};

const BEGIN: u64 = 1_000 * SECOND;

/// What the tables counted, as the model counts.
fn counted(tables: &HostTables, names: &BTreeMap<u32, String>) -> Counted {
    let counters = tables.counters();
    let by_reason = |counts: &[u64; Reason::COUNT]| {
        let reasons = Reason::ALL.into_iter().map(Reason::name).zip(*counts);
        reasons.filter(|(_, count)| *count != 0).collect()
    };
    let limits = names.iter().map(|(counter, name)| {
        let counts = counters.limits[*counter as usize];
        (name.clone(), counts)
    });
    Counted {
        passed: counters.passed,
        dropped: by_reason(&counters.dropped),
        would_drop: by_reason(&counters.would_drop),
        limits: limits
            .filter(|(_, counts)| *counts != LimitCounters::default())
            .collect(),
    }
}

/// A policy that compiles, if this is one.
struct Loaded {
    spec: PolicySpec,
    prefixes: LoadedPrefixes,
    changes: Changes,
}

fn load(random: &mut Rng, now: u64) -> Loaded {
    let (spec, prefixes) = random::policy(random);
    let changes = if random.bool() {
        random::changes(random, &spec, now)
    } else {
        Changes::default()
    };
    Loaded {
        spec,
        prefixes,
        changes,
    }
}

/// Runs packets and reloads; false if the first policy does not compile.
fn run(seed: u64) -> bool {
    let mut random = Rng::with_seed(seed);
    let mut identities = Identities::default();
    let mut now = BEGIN;
    let first = load(&mut random, now);
    let Ok(compiled) = compile(
        &first.spec,
        &first.prefixes,
        &first.changes,
        &mut identities,
        now,
    ) else {
        return false;
    };
    let mut names = BTreeMap::new();
    note_names(&mut names, &compiled);
    let mut tables = HostTables::new(compiled);
    let mut model = Model::new(&first.spec, &first.prefixes);
    model.set_time(now);
    model.replace(&first.spec, &first.prefixes, &first.changes);
    let mut recent: Vec<Vec<u8>> = Vec::new();
    for step in 0..150 {
        now += random::pause(&mut random);
        tables.set_time(now);
        model.set_time(now);
        if random.u8(..25) == 0 {
            let next = load(&mut random, now);
            let compiled = compile(
                &next.spec,
                &next.prefixes,
                &next.changes,
                &mut identities,
                now,
            );
            if let Ok(compiled) = compiled {
                note_names(&mut names, &compiled);
                assert!(compiled.fresh.is_empty(), "there are numbers for all names");
                tables.replace(compiled);
                model.replace(&next.spec, &next.prefixes, &next.changes);
            }
        }
        // Most packets are of a few flows, so that limits are met.
        let frame = if recent.len() < 4 || random.u8(..4) == 0 {
            let frame = random::frame(&mut random);
            recent.push(frame.clone());
            if recent.len() > 4 {
                recent.remove(0);
            }
            frame
        } else {
            recent[random.usize(..recent.len())].clone()
        };
        let explained = explain(&tables, &frame);
        let verdict = tables.judge_frame(&frame);
        let expected = model.judge(&frame);
        assert_eq!(
            verdict, expected,
            "seed {seed}, step {step}: {explained:#?}"
        );
        if let Some(explained) = explained
            && !tables.compiled().monitor
            && matches!(verdict, Verdict::Pass | Verdict::Drop(Reason::Limit))
            && explained.packet.upper.kind != UpperKind::Malformed
        {
            let refused = explained.refused_by().is_some();
            assert_eq!(
                refused,
                verdict != Verdict::Pass,
                "seed {seed}, step {step}: {explained:#?}"
            );
        }
        assert_eq!(
            counted(&tables, &names),
            *model.counters(),
            "seed {seed}, step {step}"
        );
    }
    true
}

fn note_names(names: &mut BTreeMap<u32, String>, compiled: &Compiled) {
    for (limit, kernel) in compiled.limits.iter().zip(&compiled.policy.limits) {
        let before = names.insert(kernel.counter, limit.name.clone());
        assert!(
            before.is_none_or(|before| before == limit.name),
            "a counter stays with its name"
        );
    }
}

#[test]
fn random_policies_against_the_book() {
    let cases = std::env::var("LIMITER_CASES").map_or(400, |cases| cases.parse().unwrap());
    let first = std::env::var("LIMITER_SEED").map_or(0, |seed| seed.parse().unwrap());
    let compiled = (first..first + cases).filter(|seed| run(*seed)).count();
    assert!(
        compiled as u64 * 5 > cases,
        "only {compiled} of {cases} policies compile"
    );
}
