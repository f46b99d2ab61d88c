//! Runs the table of packets through both worlds.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use limiter_common::{needs::Need, source::SourceKey};
use limiter_policy::host::SourceCopy;

use crate::{
    counted::{Counted, difference, since},
    expect::{SITUATIONS, Situation, charged_source, expected},
    kernel::{Kernel, SHORTEST, Shape, least_capacity},
    model::Model,
    packets::Row,
    policies::{self, Rules, monitored, per_hour},
    world::{Action, BEGIN, World, ordinary_source, slot_of},
};

/// What became of a packet.
#[derive(Debug, PartialEq, Eq)]
pub struct Observed {
    /// Its verdict.
    pub action: Action,
    /// What it added to the counters.
    pub counted: Counted,
    /// All sources afterwards.
    pub sources: BTreeMap<SourceKey, SourceCopy>,
    /// Buckets of the host's own needs afterwards.
    pub needs: [u64; Need::COUNT],
}

impl Observed {
    /// Has a world judge a frame, by whichever of its ways.
    pub fn of<W: World>(world: &mut W, judge: impl FnOnce(&mut W) -> Action) -> Self {
        let before = world.counters();
        let action = judge(world);
        Self {
            action,
            counted: since(&before, &world.counters()),
            sources: world.sources(),
            needs: world.needs(),
        }
    }
}

/// One program for all tests of a binary.
pub fn with_kernel<T>(test: impl FnOnce(&mut Kernel) -> T) -> T {
    static KERNEL: Mutex<Option<Kernel>> = Mutex::new(None);
    // Each test begins with a reset, so a failed one leaves nothing behind.
    let mut kernel = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
    test(kernel.get_or_insert_with(|| Kernel::load(shape(), &enforcing())))
}

/// Runs a test under rules on the host and in the kernel; it is told where it is.
pub fn in_both_worlds(rules: &Rules, test: impl Fn(&str, &mut dyn World)) {
    test("host", &mut Model::new(rules));
    with_kernel(|kernel| {
        kernel.reset(rules);
        test("kernel", kernel);
    });
}

/// A small table, which is quickly looked through, and yet far from full, with room for the limits of any test.
fn shape() -> Shape {
    Shape::of_sources(2 * least_capacity()).with_slots(21)
}

/// One packet an hour, and none saved up: a bucket is full or empty.
fn enforcing() -> Rules {
    policies::packets(per_hour(1), 1)
}

/// Panics unless each packet fares as its row says, in both worlds and in each situation.
pub fn check(rows: &[Row]) {
    const SHOWN: usize = 10;
    assert!(!rows.is_empty(), "an empty table shows nothing");
    let wrong: Vec<String> = with_kernel(|kernel| {
        let situations = rows
            .iter()
            .flat_map(|row| SITUATIONS.map(|situation| (row, situation)));
        situations
            .filter_map(|(row, situation)| check_row(kernel, row, situation))
            .collect()
    });
    assert!(
        wrong.is_empty(),
        "{} of {} fared otherwise, the first of them:\n{}",
        wrong.len(),
        rows.len() * SITUATIONS.len(),
        wrong[..wrong.len().min(SHOWN)].join("\n")
    );
}

/// What is wrong in either world, or between them, if anything.
fn check_row(kernel: &mut Kernel, row: &Row, situation: Situation) -> Option<String> {
    let rules = if situation.monitored {
        monitored(enforcing())
    } else {
        enforcing()
    };
    let on_host = observe(&mut Model::new(&rules), &rules, row, situation);
    let mut faults = faults("host", row, situation, &on_host);
    if row.bytes.len() >= SHORTEST {
        let in_kernel = observe(kernel, &rules, row, situation);
        faults.extend(self::faults("kernel", row, situation, &in_kernel));
        if faults.is_empty() && on_host != in_kernel {
            faults.push(format!("host: {on_host:?}"));
            faults.push(format!("kernel: {in_kernel:?}"));
        }
    }
    if faults.is_empty() {
        return None;
    }
    let Row { name, bytes, .. } = row;
    let frame = hex(bytes);
    let faults = faults.join("\n  ");
    Some(format!(
        "{name} ({situation:?}):\n  {faults}\n  frame: {frame}"
    ))
}

fn observe<W: World>(world: &mut W, rules: &Rules, row: &Row, situation: Situation) -> Observed {
    // Enforcing at first: otherwise nothing would tell when the bucket is empty.
    world.reset(&enforcing());
    if situation.drained
        && let Some(source) = ordinary_source(&row.bytes)
    {
        world.drain(source);
    }
    world.set_policy(rules);
    Observed::of(world, |world| world.judge(&row.bytes))
}

/// What is wrong with what a world did.
fn faults(place: &str, row: &Row, situation: Situation, observed: &Observed) -> Vec<String> {
    let Observed {
        action,
        counted,
        sources,
        ..
    } = observed;
    let (right, right_counts) = expected(row, situation);
    let mut faults = difference(&right_counts, counted);
    if *action != right {
        faults.push(format!("{right:?} expected, {action:?} found"));
    }
    let held: Vec<_> = sources.keys().map(SourceKey::to_string).collect();
    let pays = charged_source(row.outcome);
    let as_it_should = match pays {
        Some(key) => held == [key],
        None if situation.drained => held.len() <= 1,
        None => held.is_empty(),
    };
    if !as_it_should {
        faults.push(format!("{pays:?} expected in the table, {held:?} found"));
    }
    let meter = enforcing().meter();
    for (key, source) in sources {
        let tokens = meter.tokens(slot_of(Some(source), 0).word, BEGIN);
        if tokens != 0 {
            faults.push(format!("{key} has {tokens} tokens left"));
        }
    }
    for fault in &mut faults {
        fault.insert_str(0, &format!("{place}: "));
    }
    faults
}

/// A frame in hexadecimal, shortened where it is long.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 160;
    let shown = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}"));
    let mut words: Vec<_> = shown.collect();
    if bytes.len() > SHOWN {
        words.push(format!("... ({} bytes)", bytes.len()));
    }
    words.concat()
}
