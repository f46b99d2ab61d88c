//! Policies of all kinds, replaced by others while packets come in.

use std::collections::BTreeMap;

use fastrand::Rng;
use integration_tests::{
    check::{hex, with_kernel},
    kernel::{Kernel, SHORTEST},
    model::Model as Host,
    policies::Rules,
    world::{Action, BEGIN, World as _},
};
use limiter_common::{
    counters::{Counters, LimitCounters, Reason},
    judge::Verdict,
};
use limiter_policy::{
    changes::Changes,
    compile::{Compiled, compile},
    host::explain,
    identities::Identities,
};

use super::{
    agree,
    model::{Counted, Model as Book},
    seed,
    world::random,
};

const ROUNDS: u64 = 250;
const FRAMES: usize = 150;
/// All that is remembered is compared after so many frames.
const LOOK: usize = 10;
/// Flows from which most packets come, so that limits are met.
const FLOWS: usize = 4;

#[test]
fn kernel_host_and_book_agree_under_random_policies() {
    run(|_, _, _| None);
}

/// The book knows of no switch: its word counts where the policy does not monitor itself.
#[test]
fn kernel_and_host_agree_while_the_switch_is_turned() {
    run(|random, host, kernel| {
        let monitor = random.bool();
        host.set_monitor(monitor);
        kernel.set_monitor(monitor);
        Some(monitor)
    });
}

/// Runs rounds; `turn` may turn the switch now and then.
fn run(turn: impl Fn(&mut Rng, &mut Host, &mut Kernel) -> Option<bool>) {
    let first = seed();
    let mut tally = Tally::default();
    with_kernel(|kernel| {
        for round in 0..ROUNDS {
            let seed = first.wrapping_add(round);
            if let Some(rules) = any_rules(&mut Rng::with_seed(seed)) {
                Round::new(seed, &rules, kernel).run(kernel, &turn, &mut tally);
            }
        }
    });
    println!("seeds from {first}: {tally:?}");
    let Tally {
        passed,
        dropped,
        reloads,
    } = tally;
    assert!(
        passed.min(dropped) > 1_000,
        "both verdicts are put to the test"
    );
    assert!(reloads > 100, "policies change");
}

/// What was put to the test.
#[derive(Debug, Default)]
struct Tally {
    passed: u64,
    dropped: u64,
    reloads: u64,
}

/// Three limiters under one policy after the other.
struct Round {
    seed: u64,
    random: Rng,
    rules: Rules,
    host: Host,
    book: Option<Book>,
    /// Names of limits by their counters.
    names: BTreeMap<u32, String>,
    now: u64,
}

impl Round {
    fn new(seed: u64, rules: &Rules, kernel: &mut Kernel) -> Self {
        kernel.reset(rules);
        let mut round = Self {
            seed,
            random: Rng::with_seed(seed ^ u64::MAX),
            rules: rules.clone(),
            host: Host::new(rules),
            book: Some(Book::new(&rules.spec, &rules.prefixes)),
            names: BTreeMap::new(),
            now: BEGIN,
        };
        round.tell_book();
        round
    }

    fn tell_book(&mut self) {
        note_names(&mut self.names, &self.host.compiled());
        let Rules {
            spec,
            prefixes,
            changes,
        } = &self.rules;
        if let Some(book) = &mut self.book {
            book.set_time(self.now);
            book.replace(spec, prefixes, changes);
        }
    }

    fn run(
        mut self,
        kernel: &mut Kernel,
        turn: impl Fn(&mut Rng, &mut Host, &mut Kernel) -> Option<bool>,
        tally: &mut Tally,
    ) {
        let mut flows: Vec<Vec<u8>> = Vec::new();
        for step in 0..FRAMES {
            self.wait(kernel);
            if self.random.u8(..25) == 0 && self.reload(kernel) {
                tally.reloads += 1;
            }
            if self.random.u8(..30) == 0 && turn(&mut self.random, &mut self.host, kernel).is_some()
            {
                self.book = None;
            }
            let frame = next(&mut self.random, &mut flows);
            match self.judge(kernel, &frame, step) {
                Action::Pass => tally.passed += 1,
                Action::Drop => tally.dropped += 1,
            }
        }
    }

    fn wait(&mut self, kernel: &mut Kernel) {
        self.now += random::pause(&mut self.random);
        self.host.set_time(self.now);
        kernel.set_time(self.now);
        if let Some(book) = &mut self.book {
            book.set_time(self.now);
        }
    }

    /// Puts other rules in force: quite others, or the same with other changes at run time.
    fn reload(&mut self, kernel: &mut Kernel) -> bool {
        let next = if self.random.bool() {
            any_rules_at(&mut self.random, self.now)
        } else {
            let changes = random::changes(&mut self.random, &self.rules.spec, self.now);
            Some(Rules {
                changes,
                ..self.rules.clone()
            })
            .filter(|rules| compiles(rules, self.now))
        };
        let Some(next) = next else {
            return false;
        };
        self.rules = next;
        self.host.set_policy(&self.rules);
        kernel.set_policy(&self.rules);
        self.tell_book();
        true
    }

    fn judge(&mut self, kernel: &mut Kernel, frame: &[u8], step: usize) -> Action {
        let explained = explain(self.host.tables(), frame);
        let on_host = self.host.judge(frame);
        let in_kernel = kernel.judge(frame);
        let mut differences = agree::verdicts((&self.host, on_host), (kernel, in_kernel));
        if step.is_multiple_of(LOOK) || step == FRAMES - 1 {
            differences.extend(agree::everything(&self.host, kernel));
        }
        if let Some(book) = &mut self.book {
            let monitors = self.rules.spec.monitor;
            let by_the_book = match book.judge(frame) {
                Verdict::Drop(_) if !monitors => Action::Drop,
                Verdict::Drop(_) | Verdict::Pass => Action::Pass,
            };
            let counted = counted(&kernel.counters(), &self.names);
            if by_the_book != in_kernel || counted != *book.counters() {
                let expected = book.counters();
                differences.push(format!(
                    "by the book: {by_the_book:?}, {expected:?}; kernel: {in_kernel:?}, {counted:?}"
                ));
            }
        }
        let Self {
            seed, rules, now, ..
        } = self;
        assert!(
            differences.is_empty(),
            "seed {seed}, frame {step}, at {now}: the worlds differ (expected: host, found: kernel)\n{differences:#?}\n\
             {explained:#?}\n{rules:#?}\n{}",
            hex(frame)
        );
        in_kernel
    }
}

/// A frame of a flow, or of a new one.
fn next(random: &mut Rng, flows: &mut Vec<Vec<u8>>) -> Vec<u8> {
    if flows.len() == FLOWS && random.u8(..4) != 0 {
        return flows[random.usize(..FLOWS)].clone();
    }
    let mut frame = random::frame(random);
    frame.resize(frame.len().max(SHORTEST), 0);
    flows.push(frame.clone());
    if flows.len() > FLOWS {
        flows.remove(0);
    }
    frame
}

/// Rules that compile, if chance makes any.
fn any_rules(random: &mut Rng) -> Option<Rules> {
    any_rules_at(random, BEGIN)
}

fn any_rules_at(random: &mut Rng, now: u64) -> Option<Rules> {
    let (spec, prefixes) = random::policy(random);
    let changes = if random.bool() {
        random::changes(random, &spec, now)
    } else {
        Changes::default()
    };
    let rules = Rules {
        spec,
        prefixes,
        changes,
    };
    compiles(&rules, now).then_some(rules)
}

fn compiles(rules: &Rules, now: u64) -> bool {
    let Rules {
        spec,
        prefixes,
        changes,
    } = rules;
    compile(spec, prefixes, changes, &mut Identities::default(), now).is_ok()
}

fn note_names(names: &mut BTreeMap<u32, String>, compiled: &Compiled) {
    for (limit, of) in compiled.limits.iter().zip(&compiled.policy.limits) {
        names.insert(of.counter, limit.name.clone());
    }
}

/// What was counted, as the book counts.
fn counted(counters: &Counters, names: &BTreeMap<u32, String>) -> Counted {
    let by_reason = |counts: &[u64; Reason::COUNT]| {
        let reasons = Reason::ALL.into_iter().map(Reason::name).zip(*counts);
        reasons.filter(|(_, count)| *count != 0).collect()
    };
    let limits = names
        .iter()
        .map(|(counter, name)| (name.clone(), counters.limits[*counter as usize]));
    Counted {
        passed: counters.passed,
        dropped: by_reason(&counters.dropped),
        would_drop: by_reason(&counters.would_drop),
        limits: limits
            .filter(|(_, counts)| *counts != LimitCounters::default())
            .collect(),
    }
}
