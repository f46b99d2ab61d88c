//! Frames that nobody would think of, under one limit of any rate and burst.

use fastrand::Rng;
use integration_tests::{
    check::{hex, with_kernel},
    kernel::Kernel,
    model::Model,
    mutate,
    packets::{ATTACKER, all},
    policies::{self, Rules, monitored, with_prefixes},
    world::{Action, BEGIN, World},
};
use limiter_common::{
    address::Address,
    frame::SliceFrame,
    meter::Rate,
    parse::{Content, parse},
    source::SourceKey,
};
use limiter_policy::host::SourceCopy;

use super::{agree, seed};

const ROUNDS: usize = 60;
const FRAMES_PER_ROUND: usize = 500;

#[test]
fn both_worlds_agree_on_random_frames() {
    run(|kernel, _, frame| kernel.judge(frame));
}

#[test]
fn both_worlds_agree_on_random_frames_in_two_buffers() {
    run(|kernel, random, frame| {
        let linear = random.usize(14..=frame.len().min(3_000));
        let action = kernel.judge_split(frame, linear);
        action.expect("a kernel that splits frames in a test run: 6.18 or newer")
    });
}

fn run(judge: impl Fn(&mut Kernel, &mut Rng, &[u8]) -> Action) {
    let seed = seed();
    let mut random = Rng::with_seed(seed);
    let mut corpus: Vec<Vec<u8>> = all().into_iter().map(|row| row.bytes).collect();
    corpus.retain(|bytes| (14..=9_000).contains(&bytes.len()));
    let mut verdicts = [0; 2];
    with_kernel(|kernel| {
        for round in 0..ROUNDS {
            let rules = random_rules(&mut random);
            let mut model = Model::new(&rules);
            kernel.reset(&rules);
            let mut now = BEGIN;
            for n in 0..FRAMES_PER_ROUND {
                now = later_or_earlier(&mut random, now);
                model.set_time(now);
                kernel.set_time(now);
                let frame = mutate::frame(&mut random, &corpus);
                let before = Before::of(&model, &rules, &frame);
                let on_host = model.judge(&frame);
                let in_kernel = judge(kernel, &mut random, &frame);
                verdicts[usize::from(on_host == Action::Drop)] += 1;
                let mut differences = agree::verdicts((&model, on_host), (kernel, in_kernel));
                differences.extend(agree::source(&model, kernel, before.key));
                assert!(
                    differences.is_empty(),
                    "seed {seed}, round {round}, frame {n}: the worlds differ (expected: host, found: kernel)\n\
                     {differences:#?}\n{before:#?}\n{:#?}\n{}",
                    rules.spec,
                    hex(&frame)
                );
            }
        }
    });
    println!("seed {seed}: {verdicts:?} passed and dropped");
    let [passed, dropped] = verdicts;
    assert!(
        passed.min(dropped) > ROUNDS * FRAMES_PER_ROUND / 10,
        "seed {seed}: both verdicts are put to the test: {verdicts:?}"
    );
}

/// What a failure needs to be repeated.
#[derive(Debug)]
#[expect(dead_code, reason = "printed where the worlds differ")]
struct Before {
    now: u64,
    key: SourceKey,
    state: Option<SourceCopy>,
}

impl Before {
    fn of(model: &Model, rules: &Rules, frame: &[u8]) -> Self {
        let parsed = parse(&SliceFrame(frame));
        let address = match parsed.content {
            Content::Ip => parsed.packet.source,
            _ => Address::from_v4(ATTACKER.to_bits()),
        };
        let key = SourceKey::of(address, &rules.keys()).0;
        Self {
            now: model.tables().time(),
            key,
            state: model.source(&key),
        }
    }
}

fn random_rules(random: &mut Rng) -> Rules {
    let rate = Rate {
        tokens: 1 << random.u32(..20),
        period: random.u64(1..=10_000_000_000),
    };
    let rules = if random.bool() {
        policies::packets(rate, random.u64(1..30))
    } else {
        policies::bytes(rate, random.u64(1..20_000))
    };
    let rules = match random.u8(..4) {
        0 => with_prefixes(rules, random.u8(1..=32), random.u8(1..=128)),
        _ => rules,
    };
    if random.u8(..5) == 0 {
        monitored(rules)
    } else {
        rules
    }
}

/// Mostly a little later, sometimes much later, sometimes earlier, as another CPU's clock may have been read.
fn later_or_earlier(random: &mut Rng, now: u64) -> u64 {
    match random.u8(..100) {
        0 => now + random.u64(..3_600_000_000_000),
        1..=5 => now - random.u64(..1_000_000),
        6..=40 => now,
        _ => now + (1 << random.u32(..30)),
    }
}
