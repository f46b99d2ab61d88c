//! The sliding window against its own formula, in whole numbers.

use proptest::prelude::*;

use super::*;

extern crate std;
use std::vec::Vec;

const YEAR: u64 = 365 * 86_400 * SECOND;
const MINUTE: u64 = 60 * SECOND;
/// A window's beginning, after eight years of uptime.
const SEAM: u64 = 4_204_800 * MINUTE;

fn per_minute(tokens: u64) -> Meter {
    Meter::sliding_window(Rate {
        tokens,
        period: MINUTE,
    })
    .unwrap()
}

/// The word after `count` tokens taken one by one at `now`.
fn after(meter: &Meter, word: u64, now: u64, count: u64) -> u64 {
    (0..count).fold(word, |word, _| meter.take(word, now, 1).unwrap())
}

/// Any sliding window, with its length and limit.
fn windows() -> impl Strategy<Value = (Meter, u64, u64)> {
    (
        prop::sample::select(MAX_SLIDING_WINDOW.to_vec()),
        any::<u64>(),
        0..26u32,
    )
        .prop_map(|((period, most), noise, bits)| {
            let tokens = 1 + (noise >> (63 - bits)) % most;
            let rate = Rate { tokens, period };
            (Meter::sliding_window(rate).unwrap(), period, tokens)
        })
}

/// Two counts, as a person would keep them.
#[derive(Default)]
struct Model {
    number: u64,
    previous: u64,
    current: u64,
}

impl Model {
    fn advance(&mut self, number: u64) {
        match number - self.number {
            0 => return,
            1 => self.previous = self.current,
            _ => self.previous = 0,
        }
        self.current = 0;
        self.number = number;
    }

    /// The estimate, times the window's length.
    fn estimate(&self, now: u64, period: u64) -> u128 {
        u128::from(self.current) * u128::from(period)
            + u128::from(self.previous) * u128::from(period - now % period)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn it_decides_by_its_formula(
        (meter, period, limit) in windows(),
        start in 0..10 * YEAR,
        steps in prop::collection::vec((0..1_500u64, 1..400u64), 1..300),
    ) {
        let mut model = Model::default();
        let (mut word, mut now) = (0, start);
        for (gap, share) in steps {
            now += u64::try_from(u128::from(period) * u128::from(gap * gap) / 1_000_000).unwrap();
            let cost = (limit / share).max(1);
            model.advance(now / period);
            let exact = model.estimate(now, period);
            let ours = u128::from(estimate(&meter, word, now));
            // What remains of the window is known to 2^-32 of it.
            let slack = u128::from(model.previous) * u128::from(period);
            prop_assert!((ours * u128::from(period)).abs_diff(exact << 32) <= slack);
            let free = u128::from(limit) * u128::from(period);
            let wanted = exact + u128::from(cost) * u128::from(period);
            let taken = meter.take(word, now, cost);
            if taken.is_some() != (wanted <= free) {
                prop_assert!(wanted.abs_diff(free) << 32 <= slack, "they differ at the edge only");
            }
            if let Some(new) = taken {
                word = new;
                model.current += cost;
            }
            prop_assert!(model.current <= limit, "never more than the limit in an aligned window");
            prop_assert_eq!(meter.is_full(word, now), model.current + model.previous == 0);
        }
    }

    /// While nothing is taken, the estimate never grows, whatever windows begin.
    #[test]
    fn the_estimate_only_falls(
        (meter, period, limit) in windows(),
        now in 0..10 * YEAR,
        first in any::<u64>(), second in any::<u64>(),
        mut waits in prop::collection::vec(0..3_000u64, 2..50),
    ) {
        let word = meter.take(0, now, first % limit + 1).unwrap();
        let word = meter.take(word, now + period / 2, second % limit + 1).unwrap_or(word);
        waits.sort_unstable();
        let mut last = u64::MAX;
        for wait in waits {
            let now = now + period / 2 + period / 1000 * wait;
            let ours = estimate(&meter, word, now);
            prop_assert!(ours <= last);
            last = ours;
        }
        prop_assert_eq!(estimate(&meter, word, now + 3 * period), 0);
    }

    #[test]
    fn the_stated_wait_is_the_least((meter, _, limit) in windows(), now in 0..10 * YEAR, cost in any::<u64>()) {
        let cost = cost % limit + 1;
        let word = meter.take(0, now, limit).unwrap();
        let wait = meter.decide(word, now, cost).retry_after.unwrap();
        prop_assert!(meter.take(word, now + wait, cost).is_some());
        prop_assert!(meter.take(word, now + wait - 1, cost).is_none());
        prop_assert_eq!(meter.decide(word, now, limit + 1).retry_after, None);
    }

    #[test]
    fn a_stale_window_is_not_the_previous_one((meter, period, limit) in windows(), now in 0..3 * YEAR, idle in 2..200_000u64) {
        let word = meter.take(0, now, limit).unwrap();
        let later = now / period * period + (idle * period - 2 * period) % (14 * YEAR / period * period) + 2 * period;
        prop_assert_eq!(meter.tokens(word, later), limit);
        let word = meter.take(word, later, limit).unwrap();
        prop_assert_eq!(meter.tokens(word, later + period), 0, "what is noted now is");
    }

    #[test]
    fn a_late_clock_does_no_harm((meter, period, limit) in windows(), number in 1..3000u64, lag in 1..1000u64, spent in any::<u64>()) {
        let seam = number * period;
        let spent = spent % limit + 1;
        let word = meter.take(0, seam, spent).unwrap();
        let late = seam - lag;
        prop_assert!(meter.tokens(word, late) <= meter.tokens(word, seam));
        match meter.take(word, late, 1) {
            None => prop_assert_eq!(spent, limit),
            Some(word) => prop_assert_eq!(meter.tokens(word, seam), limit - spent - 1),
        }
    }
}

/// The worked example: 20 + 90 x 0.75 = 87.5.
#[test]
fn twenty_and_three_quarters_of_ninety_are_eighty_seven_and_a_half() {
    let meter = per_minute(100);
    let word = after(&meter, 0, SEAM - 30 * SECOND, 90);
    let now = SEAM + 15 * SECOND;
    let word = after(&meter, word, now, 20);
    assert_eq!(estimate(&meter, word, now), 87 * ONE + ONE / 2);
    assert_eq!(meter.tokens(word, now), 12);
    assert!(meter.take(word, now, 12).is_some());
    assert!(meter.take(word, now, 13).is_none(), "half a token is none");
}

/// The permissive error: 90 at the very end of a window count as if spread over it.
#[test]
fn ninety_at_the_very_end_let_almost_another_limit_pass() {
    let meter = per_minute(100);
    let begin = SEAM - 1;
    let mut word = after(&meter, 0, begin, 90);
    let mut admitted = 90;
    for now in (SEAM..begin + MINUTE).step_by(1_000_000) {
        if let Some(new) = meter.take(word, now, 1) {
            word = new;
            admitted += 1;
        }
    }
    assert_eq!(
        admitted, 189,
        "90 and 99 in 60 s: 10 at once, and each 0.67 s one more"
    );
    // At its worst: the whole limit at the end.
    let mut word = after(&meter, 0, begin, 100);
    let mut admitted = 100;
    for now in (SEAM..begin + MINUTE).step_by(1_000_000) {
        if let Some(new) = meter.take(word, now, 1) {
            word = new;
            admitted += 1;
        }
    }
    assert_eq!(admitted, 199);
}

/// The other way round: 90 at the beginning of a window count for longer than a minute.
#[test]
fn ninety_at_the_beginning_count_for_too_long() {
    let meter = per_minute(100);
    let word = after(&meter, 0, SEAM, 90);
    let now = SEAM + MINUTE + 30 * SECOND;
    assert_eq!(
        meter.tokens(word, now),
        55,
        "none in the last minute, and 45 of them still count"
    );
}

#[test]
fn each_length_has_room_for_ten_years_and_its_limit_is_the_most_that_fits() {
    for (period, most) in MAX_SLIDING_WINDOW {
        let bits = most.count_ones();
        assert_eq!(most, (1 << bits) - 1);
        assert!(
            u128::from(period) << (64 - 2 * bits) > u128::from(17 * YEAR),
            "{period} ns"
        );
        let rate = |tokens| Rate { tokens, period };
        assert!(Meter::sliding_window(rate(most + 1)).is_none());
        assert!(Meter::sliding_window(rate(0)).is_none());
        let meter = Meter::sliding_window(rate(most)).unwrap();
        // Both counts at their most.
        let now = (17 * YEAR / period - 1) * period;
        let word = meter.take(0, now - 1, most).unwrap();
        assert!(meter.take(word, now, 1).is_none());
        assert!(meter.take(word, now + period - 1, most - 1).is_some());
    }
}

#[test]
fn a_limit_lowered_below_what_is_counted_admits_nothing() {
    let (old, new) = (per_minute(100), per_minute(10));
    let word = new.convert(after(&old, 0, SEAM, 90), SEAM, &old);
    assert_eq!(new.tokens(word, SEAM), 0);
    assert!(new.take(word, SEAM + MINUTE, 1).is_none());
    assert!(new.take(word, SEAM + 2 * MINUTE, 10).is_some());
}

#[test]
fn threads_admit_the_limit_and_no_more() {
    const LIMIT: u64 = 40_000;
    let meter = per_minute(LIMIT);
    let word = crate::word::Word::new(0);
    let hammer = || {
        (0..LIMIT)
            .filter(|offset| {
                loop {
                    let old = word.load();
                    let Some(new) = meter.take(old, SEAM + offset, 1) else {
                        return false;
                    };
                    if word.compare_exchange(old, new) {
                        return true;
                    }
                }
            })
            .count() as u64
    };
    let admitted: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(hammer)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(admitted, LIMIT);
}
