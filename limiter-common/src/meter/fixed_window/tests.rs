//! The fixed window against a table of counts.

use proptest::prelude::*;

use super::*;
use crate::word::Word;

extern crate std;
use std::{collections::BTreeMap, vec::Vec};

const YEAR: u64 = 365 * 86_400 * SECOND;

fn per_minute(tokens: u64) -> Meter {
    Meter::fixed_window(Rate {
        tokens,
        period: 60 * SECOND,
    })
    .unwrap()
}

/// Any fixed window, with its length and limit.
fn windows() -> impl Strategy<Value = (Meter, u64, u64)> {
    (
        prop::sample::select(MAX_FIXED_WINDOW.to_vec()),
        any::<u64>(),
        0..51u32,
    )
        .prop_map(|((period, most), noise, bits)| {
            let tokens = 1 + (noise >> (63 - bits)) % most;
            let rate = Rate { tokens, period };
            (Meter::fixed_window(rate).unwrap(), period, tokens)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn it_counts_as_a_table_does(
        (meter, period, limit) in windows(),
        start in 0..10 * YEAR,
        steps in prop::collection::vec((0..2_000u64, 1..400u64), 1..300),
    ) {
        let mut counts = BTreeMap::<u64, u64>::new();
        let (mut word, mut now) = (0, start);
        for (gap, share) in steps {
            now += u64::try_from(u128::from(period) * u128::from(gap * gap) / 1_000_000).unwrap();
            let cost = (limit / share).max(1);
            let count = counts.entry(now / period).or_default();
            let taken = meter.take(word, now, cost);
            prop_assert_eq!(taken.is_some(), *count + cost <= limit);
            if let Some(new) = taken {
                word = new;
                *count += cost;
            }
            prop_assert_eq!(meter.tokens(word, now), limit - *count);
            prop_assert_eq!(meter.is_full(word, now), *count == 0);
        }
    }

    #[test]
    fn the_stated_wait_is_the_least((meter, period, limit) in windows(), now in 0..10 * YEAR, cost in any::<u64>()) {
        let word = meter.take(0, now, limit).unwrap();
        let decision = meter.decide(word, now, cost % limit + 1);
        prop_assert!(!decision.allowed);
        prop_assert_eq!(decision.remaining, 0);
        prop_assert_eq!(decision.retry_after, Some(period - now % period));
        prop_assert_eq!(meter.decide(word, now, limit + 1).retry_after, None);
    }

    /// Neither for a reader nor for a taker, however long ago the word was written.
    #[test]
    fn a_stale_window_counts_for_nothing((meter, period, limit) in windows(), now in 0..3 * YEAR, idle in 1..8 * YEAR) {
        let word = meter.take(0, now, limit).unwrap();
        let later = now + idle;
        let expected = if later / period == now / period { 0 } else { limit };
        prop_assert_eq!(meter.tokens(word, later), expected);
    }

    /// A clock read late finds the window that has begun meanwhile, and counts in it.
    #[test]
    fn a_late_clock_does_no_harm((meter, period, limit) in windows(), number in 1..3000u64, lag in 1..1000u64, spent in any::<u64>()) {
        let seam = number * period;
        let spent = spent % limit + 1;
        let word = meter.take(0, seam, spent).unwrap();
        let late = seam - lag;
        prop_assert_eq!(meter.tokens(word, late), limit - spent);
        match meter.take(word, late, 1) {
            None => prop_assert_eq!(spent, limit),
            Some(word) => prop_assert_eq!(meter.tokens(word, seam), limit - spent - 1),
        }
    }
}

/// The failure of the algorithm, as documented: all of a window at its end, all of the next at its beginning.
#[test]
fn twice_the_limit_passes_across_a_seam_and_no_more() {
    let meter = per_minute(100);
    let seam = 1_000_000 * 60 * SECOND;
    let mut word = 0;
    let mut admitted = 0;
    for now in (seam - SECOND..seam + SECOND).step_by(1_000_000) {
        if let Some(new) = meter.take(word, now, 1) {
            word = new;
            admitted += 1;
        }
    }
    assert_eq!(admitted, 200);
    assert!(
        meter.take(word, seam + 60 * SECOND - 1, 1).is_none(),
        "the window's limit is spent to its end"
    );
    assert!(meter.take(word, seam + 60 * SECOND, 100).is_some());
}

#[test]
fn each_length_has_room_for_ten_years_and_its_limit_is_the_most_that_fits() {
    for (period, most) in MAX_FIXED_WINDOW {
        let bits = most.count_ones();
        assert_eq!(most, (1 << bits) - 1);
        assert!(
            u128::from(period) << (64 - bits) > u128::from(17 * YEAR),
            "{period} ns"
        );
        let rate = |tokens| Rate { tokens, period };
        assert!(Meter::fixed_window(rate(most)).is_some());
        assert!(Meter::fixed_window(rate(most + 1)).is_none());
        assert!(Meter::fixed_window(rate(0)).is_none());
        let meter = Meter::fixed_window(rate(most)).unwrap();
        let now = 17 * YEAR - 1;
        let word = meter.take(0, now, most).unwrap();
        assert!(meter.take(word, now, 1).is_none());
        assert_eq!(meter.tokens(word, now + period), most);
    }
    let odd = Rate {
        tokens: 10,
        period: 2 * SECOND,
    };
    assert!(Meter::fixed_window(odd).is_none());
}

#[test]
fn what_is_given_back_can_be_taken_again_in_its_window_only() {
    let meter = per_minute(10);
    let now = 60 * SECOND;
    let word = Word::new(meter.take(0, now, 7).unwrap());
    meter.give_back(&word, now, 3);
    assert_eq!(meter.tokens(word.load(), now), 6);
    meter.give_back(&word, now + 60 * SECOND, 3);
    assert_eq!(meter.tokens(word.load(), now), 6, "the window is over");
    meter.give_back(&word, now, 5);
    assert_eq!(meter.tokens(word.load(), now), 6, "more than was taken");
}

/// A count that ran over would leave the number of another window.
#[test]
fn nothing_is_added_to_a_window() {
    let meter = per_minute(MAX_FIXED_WINDOW[1].1);
    let word = Word::new(meter.take(0, SECOND, MAX_FIXED_WINDOW[1].1).unwrap());
    let before = word.load();
    assert!(!meter.take_by_adding(&word, SECOND, 1));
    assert_eq!(word.load(), before);
}

#[test]
fn threads_admit_the_limit_and_no_more() {
    const LIMIT: u64 = 40_000;
    let meter = per_minute(LIMIT);
    let word = Word::new(0);
    let hammer = || {
        // Half of each thread's packets come in the first window, half in the second.
        (0..2 * LIMIT)
            .filter(|packet| {
                loop {
                    let old = word.load();
                    let now = packet / LIMIT * 60 * SECOND;
                    let Some(new) = meter.take(old, now, 1) else {
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
    // A thread that is still in the first window when another has begun the second counts in that.
    assert!((LIMIT..=2 * LIMIT).contains(&admitted), "{admitted}");
    assert_eq!(meter.tokens(word.load(), 60 * SECOND), 0);
}
