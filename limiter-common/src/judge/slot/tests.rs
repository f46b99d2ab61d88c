//! Slots in plain memory, worked on as the kernel does.

use super::*;
use crate::{
    address::Address,
    meter::{LOG_LENGTH, MeterLog, Rate, oldest},
};

extern crate std;
use core::sync::atomic::{AtomicBool, Ordering};
use std::{vec, vec::Vec};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
const NOW: u64 = 1_000 * HOUR;

/// A table of meters, and of logs one.
struct Memory {
    meters: Vec<MeterEntry>,
    log: MeterLog<Word>,
    entered: AtomicBool,
    room: bool,
}

impl Meters for Memory {
    fn meter(&self, id: u32) -> Option<&MeterEntry> {
        self.meters.get(id as usize)
    }
}

impl Logs for Memory {
    fn log(&self, _: &LogKey) -> Option<&MeterLog<Word>> {
        self.entered.load(Ordering::SeqCst).then_some(&self.log)
    }

    fn insert_log(&self, _: &LogKey) -> Result<(), NotInserted> {
        if !self.room {
            return Err(NotInserted::Failed);
        }
        if self.entered.swap(true, Ordering::SeqCst) {
            return Err(NotInserted::Exists);
        }
        Ok(())
    }

    fn oldest(&self, log: &MeterLog<Word>, size: u64) -> u64 {
        oldest(log, size)
    }
}

/// Meters by id, from 1.
fn memory(meters: &[Meter]) -> Memory {
    let entry = |meter: &Meter| MeterEntry {
        meter: *meter,
        until: 0,
        then: 0,
    };
    let unused = entry(&Meter::UNUSED);
    Memory {
        meters: core::iter::once(unused)
            .chain(meters.iter().map(entry))
            .collect(),
        log: MeterLog::default(),
        entered: AtomicBool::new(false),
        room: true,
    }
}

fn bucket(tokens: u64, period: u64, burst: u64) -> Meter {
    Meter::token_bucket(Rate { tokens, period }, burst).unwrap()
}

/// One of each algorithm that has a word, admitting `limit` at [`NOW`].
fn of_each(limit: u64) -> Vec<Meter> {
    let a_day = Rate {
        tokens: limit,
        period: 24 * HOUR,
    };
    let an_hour = Rate {
        tokens: 1,
        period: HOUR,
    };
    vec![
        Meter::token_bucket(an_hour, limit).unwrap(),
        Meter::leaky_bucket(an_hour, limit - 1).unwrap(),
        Meter::fixed_window(a_day).unwrap(),
        Meter::sliding_window(a_day).unwrap(),
    ]
}

fn order(meter: u64, wanted: Wanted) -> Order {
    Order::new(meter, 0, wanted as u64)
}

fn ask(slot: &Slot<Word>, memory: &Memory, meter: u64, wanted: Wanted, now: u64) -> Done {
    work(slot, order(meter, wanted), now, 1, memory)
}

fn takes(slot: &Slot<Word>, memory: &Memory, meter: u64, now: u64) -> bool {
    ask(slot, memory, meter, Wanted::Take, now).admits()
}

/// Takes all there is; how much that was.
fn drain(slot: &Slot<Word>, memory: &Memory, meter: u64, now: u64) -> u64 {
    core::iter::repeat_with(|| takes(slot, memory, meter, now))
        .take_while(|taken| *taken)
        .count() as u64
}

fn copy(slot: &Slot<Word>) -> (u64, u64) {
    (slot.word.load(), slot.note.load())
}

/// The sum of what threads count.
fn threads(count: u64, work: impl Fn(u64) -> u64 + Sync) -> u64 {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    })
}

#[test]
fn an_order_holds_what_it_was_made_of() {
    for meter in [0, 1, 4095, 65_534] {
        for notes in [0, 1] {
            for wanted in [Wanted::Look, Wanted::Take, Wanted::GiveBack, Wanted::Add] {
                let order = Order::new(meter, notes, wanted as u64);
                assert_eq!(u64::from(order.meter()), meter);
                assert_eq!(order.notes(), notes == 1);
                assert_eq!(order.wanted(), wanted as u8);
            }
        }
    }
}

#[test]
fn an_answer_holds_what_it_was_made_of() {
    assert!(Done::ADMITS.admits() && !Done::ADMITS.is_broken());
    assert!(Done::BROKEN.is_broken() && !Done::BROKEN.admits());
    assert!(Done(EXHAUSTED).admits());
    assert_eq!(Done(EXHAUSTED).exhausted_bit(), 1);
    assert!(!Done::CONTENDED.is_settled() && !Done::FOREIGN.is_settled());
    for refusals in [0, 1, 100, MAX_REFUSALS, u32::MAX] {
        for exhausted in [false, true] {
            let done = Done::refuses(refusals, exhausted);
            assert!(!done.admits() && !done.is_broken() && done.is_settled());
            assert_eq!(done.refusals(), refusals);
            assert_eq!(done.exhausted_bit(), u64::from(exhausted));
        }
    }
}

#[test]
fn a_look_writes_nothing_and_neither_does_a_refusal() {
    for (id, _) in (1..).zip(of_each(3)) {
        let memory = memory(&of_each(3));
        let slot = Slot::<Word>::default();
        assert!(takes(&slot, &memory, id, NOW));
        let before = copy(&slot);
        assert!(ask(&slot, &memory, id, Wanted::Look, NOW).admits());
        assert_eq!(copy(&slot), before);
        assert_eq!(drain(&slot, &memory, id, NOW), 2);
        let before = copy(&slot);
        for wanted in [Wanted::Look, Wanted::Take] {
            let done = ask(&slot, &memory, id, wanted, NOW);
            assert_eq!(done, Done::refuses(0, false));
            assert_eq!(copy(&slot), before);
        }
        assert!(ask(&slot, &memory, id, Wanted::GiveBack, NOW).admits());
        assert_eq!(drain(&slot, &memory, id, NOW), 1);
    }
}

#[test]
fn refusals_are_counted_if_asked_until_the_meter_is_full_again() {
    let memory = memory(&[bucket(1, SECOND, 2)]);
    let slot = Slot::<Word>::default();
    let noted = |wanted: Wanted, now| work(&slot, Order::new(1, 1, wanted as u64), now, 1, &memory);
    assert!(noted(Wanted::Take, NOW).admits() && noted(Wanted::Take, NOW).admits());
    assert_eq!(noted(Wanted::Take, NOW).refusals(), 1);
    assert_eq!(noted(Wanted::Look, NOW).refusals(), 2);
    assert_eq!(ask(&slot, &memory, 1, Wanted::Take, NOW).refusals(), 0);
    // Half full is not full.
    let now = NOW + SECOND;
    assert!(noted(Wanted::Take, now).admits());
    assert_eq!(noted(Wanted::Take, now).refusals(), 3);
    let now = now + 2 * SECOND;
    assert!(noted(Wanted::Look, now).admits());
    assert!(noted(Wanted::Take, now).admits());
    assert!(noted(Wanted::Take, now).admits());
    assert_eq!(noted(Wanted::Take, now).refusals(), 1, "counted anew");
}

#[test]
fn refusals_never_run_over_into_the_meter() {
    let memory = memory(&[bucket(1, HOUR, 1)]);
    let slot = Slot::<Word>::default();
    assert_eq!(drain(&slot, &memory, 1, NOW), 1);
    slot.note.store(note_of(0, 1) | u64::from(MAX_REFUSALS - 1));
    let notes = Order::new(1, 1, Wanted::Take as u64);
    for refusals in [MAX_REFUSALS, MAX_REFUSALS, MAX_REFUSALS / 2 + 1] {
        assert_eq!(work(&slot, notes, NOW, 1, &memory).refusals(), refusals);
    }
    assert_eq!(slot.meter(), 1);
}

#[test]
fn a_raised_rate_passes_at_once_and_a_lowered_one_stays_empty() {
    let memory = memory(&[bucket(1, HOUR, 10), bucket(1000, SECOND, 10)]);
    let slot = Slot::<Word>::default();
    assert_eq!(drain(&slot, &memory, 1, NOW), 10);
    assert!(!takes(&slot, &memory, 2, NOW));
    assert!(takes(&slot, &memory, 2, NOW + 10_000_000), "within 10 ms");
    let slot = Slot::<Word>::default();
    assert_eq!(drain(&slot, &memory, 2, NOW), 10);
    assert!(!takes(&slot, &memory, 1, NOW));
    assert!(!takes(&slot, &memory, 1, NOW + HOUR - SECOND));
    assert!(takes(&slot, &memory, 1, NOW + HOUR));
}

#[test]
fn a_changed_burst_acts_at_once() {
    let memory = memory(&[bucket(1, HOUR, 100), bucket(1, HOUR, 20)]);
    let slot = Slot::<Word>::default();
    for _ in 0..5 {
        assert!(takes(&slot, &memory, 1, NOW));
    }
    assert_eq!(drain(&slot, &memory, 2, NOW), 15);
    assert_eq!(drain(&slot, &memory, 1, NOW), 80, "20 are owed");
    assert_eq!(drain(&slot, &memory, 2, NOW), 0);
}

/// What is owed is carried over between any two algorithms and any two lengths of window.
#[test]
fn a_change_of_algorithm_starts_nobody_anew() {
    let mut meters = of_each(10);
    for period in [SECOND, 60 * SECOND, HOUR] {
        let rate = Rate { tokens: 10, period };
        meters.push(Meter::fixed_window(rate).unwrap());
        meters.push(Meter::sliding_window(rate).unwrap());
    }
    meters.push(bucket(50_000_000_000, SECOND, 10));
    let ids = 1..=meters.len() as u64;
    let memory = memory(&meters);
    for old in ids.clone() {
        for new in ids.clone() {
            let slot = Slot::<Word>::default();
            for _ in 0..4 {
                assert!(takes(&slot, &memory, old, NOW));
            }
            assert_eq!(drain(&slot, &memory, new, NOW), 6, "{old} to {new}");
            assert_eq!(drain(&slot, &memory, old, NOW), 0, "{new} to {old}");
        }
    }
}

#[test]
fn a_meter_for_a_time_gives_way_to_the_one_that_holds_always() {
    let mut memory = memory(&[
        bucket(1, HOUR, 10),
        bucket(1000, SECOND, 100),
        bucket(1, HOUR, 1),
    ]);
    let until = NOW + HOUR;
    for raised_or_lowered in [2, 3] {
        memory.meters[raised_or_lowered].until = until;
        memory.meters[raised_or_lowered].then = 1;
    }
    let slot = Slot::<Word>::default();
    assert_eq!(drain(&slot, &memory, 1, NOW), 10);
    assert_eq!(drain(&slot, &memory, 2, NOW), 90, "raised: 10 are owed");
    assert_eq!(drain(&slot, &memory, 2, until - 1), 100);
    assert_eq!(slot.meter(), 2);
    assert_eq!(drain(&slot, &memory, 2, until), 0, "10 are owed at most");
    assert_eq!(slot.meter(), 1);
    assert_eq!(drain(&slot, &memory, 2, until + HOUR), 1);

    let slot = Slot::<Word>::default();
    assert_eq!(drain(&slot, &memory, 3, NOW), 1, "lowered");
    assert_eq!(drain(&slot, &memory, 3, until - 1), 0);
    assert_eq!(
        drain(&slot, &memory, 3, until),
        9 + 1,
        "1 was owed an hour ago"
    );
    memory.meters[2].then = 99;
    assert!(ask(&slot, &memory, 2, Wanted::Take, until).is_broken());
}

#[test]
fn an_unknown_meter_is_broken_and_changes_nothing() {
    let memory = memory(&of_each(3));
    let slot = Slot::<Word>::default();
    assert!(ask(&slot, &memory, 99, Wanted::Take, NOW).is_broken());
    assert_eq!(copy(&slot), (0, 0));
}

/// Another CPU has begun to convert and does not come to an end.
#[test]
fn an_endless_conversion_is_not_waited_for() {
    let memory = memory(&of_each(3));
    let slot = Slot::<Word>::default();
    slot.word.store(77);
    slot.note.store(note_of(0, CONVERTING));
    for wanted in [Wanted::Look, Wanted::Take, Wanted::GiveBack] {
        assert!(ask(&slot, &memory, 1, wanted, NOW).is_broken());
    }
    assert_eq!(copy(&slot), (77, note_of(0, CONVERTING)));
}

#[test]
fn threads_admit_the_limit_exactly_with_each_algorithm() {
    const LIMIT: u64 = 50_000;
    let memory = memory(&of_each(LIMIT));
    for id in 1..=4 {
        let slot = Slot::<Word>::default();
        let given_back = Word::new(0);
        let admitted = threads(4, |number| {
            let mut admitted = 0;
            for packet in 0..2 * LIMIT {
                let wanted = if packet % 7 == number {
                    Wanted::Look
                } else {
                    Wanted::Take
                };
                let admits = ask(&slot, &memory, id, wanted, NOW).admits();
                if !admits || wanted == Wanted::Look {
                    continue;
                }
                if packet % 11 == 0 {
                    assert!(ask(&slot, &memory, id, Wanted::GiveBack, NOW).admits());
                    given_back.add(1);
                } else {
                    admitted += 1;
                }
            }
            admitted
        });
        assert!(given_back.load() > 0);
        // Giving back to a window may be in vain under contention.
        let slack = if id <= 2 { 0 } else { given_back.load() };
        let admitted = admitted + drain(&slot, &memory, id, NOW);
        assert!(admitted <= LIMIT, "meter {id}: {admitted}");
        assert!(admitted + slack >= LIMIT, "meter {id}: {admitted}");
    }
}

/// Policies flip while threads take: some are judged by the old meter yet. Nothing is refilled meanwhile.
#[test]
fn concurrent_conversions_lose_nothing() {
    const LIMIT: u64 = 10_000;
    let windows = of_each(LIMIT);
    let pairs = [
        [bucket(1, HOUR, LIMIT), bucket(1000, SECOND, LIMIT)],
        [
            bucket(1000, SECOND, LIMIT),
            bucket(1_000_000, SECOND, LIMIT),
        ],
        [windows[0], windows[2]],
        [windows[2], windows[3]],
    ];
    for (pair, meters) in pairs.iter().enumerate() {
        let memory = memory(meters);
        for every in [1, 10, 1000] {
            let slot = Slot::<Word>::default();
            let added = AtomicBool::new(false);
            let admitted = threads(4, |number| {
                (0..LIMIT)
                    .filter(|packet| {
                        let id = 1 + (packet / every + number) % 2;
                        let done = ask(&slot, &memory, id, Wanted::Take, NOW);
                        added.fetch_or(done.exhausted_bit() != 0, Ordering::Relaxed);
                        done.admits()
                    })
                    .count() as u64
            });
            let admitted = admitted + drain(&slot, &memory, 1, NOW);
            // What was added may have been converted before it was given back.
            if !added.load(Ordering::Relaxed) {
                assert_eq!(admitted, LIMIT, "pair {pair}, a flip every {every} packets");
            }
        }
    }
}

/// The same from the first packet of a source on, which finds an empty slot.
#[test]
fn a_newcomer_may_come_under_two_policies_at_once() {
    let memory = memory(&[bucket(1, HOUR, 10), bucket(1_000_000, SECOND, 10)]);
    for _ in 0..300 {
        let slot = Slot::<Word>::default();
        let admitted = threads(2, |number| {
            (0..20)
                .filter(|_| takes(&slot, &memory, 1 + number, NOW))
                .count() as u64
        });
        assert_eq!(admitted + drain(&slot, &memory, 2, NOW), 10);
        assert!(
            takes(&slot, &memory, 2, NOW + SECOND),
            "nobody is locked out"
        );
    }
}

#[test]
fn a_log_is_entered_by_the_first_take() {
    let rate = Rate {
        tokens: 2,
        period: SECOND,
    };
    let mut memory = memory(&[Meter::sliding_log(rate).unwrap()]);
    let key = LogKey {
        source: SourceKey {
            address: Address { high: 1, low: 2 },
            length: 64,
        },
        limit: 3,
    };
    memory.room = false;
    let ask = |memory: &Memory, wanted, now| work_log(&key, order(1, wanted), now, memory);
    assert!(ask(&memory, Wanted::Look, NOW).admits());
    assert!(ask(&memory, Wanted::Take, NOW).is_broken(), "no room");
    memory.room = true;
    assert!(ask(&memory, Wanted::Take, NOW).admits());
    assert!(ask(&memory, Wanted::Take, NOW + 1).admits());
    assert_eq!(ask(&memory, Wanted::Look, NOW + 2), Done::refuses(0, false));
    assert!(ask(&memory, Wanted::GiveBack, NOW + 1).admits());
    assert!(ask(&memory, Wanted::Take, NOW + 2).admits());
    assert!(!ask(&memory, Wanted::Take, NOW + SECOND - 1).admits());
    assert!(ask(&memory, Wanted::Take, NOW + SECOND).admits());
    assert!(work_log(&key, order(9, Wanted::Take), NOW, &memory).is_broken());
}

#[test]
fn threads_admit_the_limit_exactly_with_a_log() {
    let rate = Rate {
        tokens: LOG_LENGTH as u64,
        period: HOUR,
    };
    let memory = memory(&[Meter::sliding_log(rate).unwrap()]);
    let key = LogKey {
        source: SourceKey::EVERYONE,
        limit: 0,
    };
    let admitted = threads(4, |_| {
        (0..1000)
            .filter(|_| work_log(&key, order(1, Wanted::Take), NOW, &memory).admits())
            .count() as u64
    });
    assert_eq!(admitted, LOG_LENGTH as u64);
}
