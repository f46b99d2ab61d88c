//! Frames of several buffers (case 21): where one ends must not matter, and all of them count.

use aya::util::KernelVersion;
use integration_tests::{
    check::{Observed, hex, with_kernel},
    kernel::{Kernel, SHORTEST},
    model::Model,
    packets::{Outcome, Row, all},
    policies::{self, Rules, per_hour},
    world::{Action, World, slot_of},
};

/// A first buffer that is not the longest possible is left to chance in frames longer than this.
const EVERY_SPLIT: usize = 300;

/// Cutting a frame into two buffers anywhere changes nothing.
#[test]
fn case_21_where_the_first_buffer_ends_changes_nothing() {
    let rules = policies::packets(per_hour(1), 1);
    with_kernel(|kernel| {
        for row in all() {
            let length = row.bytes.len();
            if length <= SHORTEST || length > EVERY_SPLIT {
                continue;
            }
            kernel.reset(&rules);
            let whole = Observed::of(kernel, |kernel| kernel.judge(&row.bytes));
            for linear in SHORTEST..length {
                kernel.reset(&rules);
                let split = Observed::of(kernel, |kernel| judge_split(kernel, &row, linear));
                assert_eq!(
                    split,
                    whole,
                    "{}: first buffer of {linear} bytes (left) and whole (right): {}",
                    row.name,
                    hex(&row.bytes)
                );
            }
        }
    });
}

fn judge_split(kernel: &Kernel, row: &Row, linear: usize) -> Action {
    let action = kernel.judge_split(&row.bytes, linear);
    action.unwrap_or_else(|| {
        let version = KernelVersion::current().expect("the kernel's version");
        panic!("kernel {version} does not split frames in a test run, which came with 6.18")
    })
}

/// Each packet that is charged costs the bytes of all its buffers.
#[test]
fn case_21_every_byte_of_a_frame_costs_a_token() {
    const BURST: u64 = 100_000;
    let rules = policies::bytes(per_hour(1), BURST);
    let mut lengths = Vec::new();
    with_kernel(|kernel| {
        for row in all() {
            if !matches!(row.outcome, Outcome::Charged(_)) {
                continue;
            }
            let length = row.bytes.len();
            let mut model = Model::new(&rules);
            model.judge(&row.bytes);
            assert_eq!(
                tokens(&model, &rules),
                BURST - length as u64,
                "{}: host",
                row.name
            );
            kernel.reset(&rules);
            kernel.judge(&row.bytes);
            assert_eq!(
                tokens(kernel, &rules),
                BURST - length as u64,
                "{}: kernel",
                row.name
            );
            lengths.push(length);
        }
    });
    for length in [9_000, 65_000, 70_000] {
        assert!(
            lengths.contains(&length),
            "no frame of {length} bytes was charged"
        );
    }
}

/// Tokens left to the only source there is.
fn tokens(world: &impl World, rules: &Rules) -> u64 {
    let (_, source) = world.sources().pop_first().expect("a source was charged");
    let bucket = slot_of(Some(&source), 0).word;
    rules.meter().tokens(bucket, source.head.last_seen)
}
