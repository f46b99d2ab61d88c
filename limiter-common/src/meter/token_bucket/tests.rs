//! The bucket against a model in u128 that knows nothing of words.

use proptest::prelude::*;

use super::*;
use crate::{meter::Decision, word::Word};

extern crate std;
use std::{vec, vec::Vec};

const SECOND: u64 = 1_000_000_000;
const YEAR: u64 = 365 * 86_400 * SECOND;

fn per_second(tokens: u64) -> Rate {
    Rate {
        tokens,
        period: SECOND,
    }
}

fn bucket(tokens: u64, period: u64, burst: u64) -> Meter {
    Meter::token_bucket(Rate { tokens, period }, burst).unwrap()
}

/// Admissions of one source offered at `times`, in order.
fn run(bucket: &Meter, word: &mut u64, times: impl IntoIterator<Item = u64>, cost: u64) -> u64 {
    let mut admitted = 0;
    for now in times {
        if let Some(new) = bucket.take(*word, now, cost) {
            *word = new;
            admitted += 1;
        }
    }
    admitted
}

/// Any rate that a bucket can have.
fn rates() -> impl Strategy<Value = Rate> {
    let periods = vec![
        1,
        SECOND,
        60 * SECOND,
        3600 * SECOND,
        86_400 * SECOND,
        MAX_NANOS_PER_TOKEN,
    ];
    (prop::sample::select(periods), 0u32..57, any::<u64>()).prop_map(|(period, bits, noise)| {
        let most = u128::from(MAX_BYTES_PER_SECOND) * u128::from(period) / u128::from(SECOND);
        let tokens = u128::from((1 << bits) | (noise & ((1 << bits) - 1))).min(most);
        Rate {
            tokens: u64::try_from(tokens).unwrap(),
            period,
        }
    })
}

fn bursts() -> impl Strategy<Value = u64> {
    (0u32..=42, any::<u64>())
        .prop_map(|(bits, noise)| ((1u64 << bits) | (noise & ((1 << bits) - 1))).min(MAX_BURST))
}

/// Tokens produced in `nanos` at `rate`, rounded down, and whether there is a remainder.
fn ideal(rate: Rate, nanos: u64) -> u128 {
    u128::from(rate.tokens) * u128::from(nanos) / u128::from(rate.period)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn production_is_the_rate_within_a_unit(rate in rates(), now in any::<u64>()) {
        let b = Meter::token_bucket(rate, 1).unwrap();
        let exact = (u128::from(rate.tokens) << u32::from(b.detail)).checked_mul(u128::from(now)).map(|p| p / u128::from(rate.period));
        let produced = b.progress(now);
        if let Some(exact) = exact.and_then(|exact| u64::try_from(exact).ok()) {
            let slack = u64::from(rate.exceeds(500_000_000)) + 1;
            prop_assert!(produced >= exact && produced - exact <= slack, "{produced} {exact}");
        } else {
            prop_assert!(rate.exceeds(500_000_000), "only the fastest run out of clock");
            prop_assert!(produced >= u64::MAX - 1);
        }
    }

    #[test]
    fn ten_years_are_exact_at_any_rate(rate in rates(), now in 0..=10 * YEAR) {
        let b = Meter::token_bucket(rate, 1).unwrap();
        prop_assert!(b.progress(now) < u64::MAX - MAX_BURST, "a full bucket can still be owed");
    }

    #[test]
    fn an_idle_bucket_is_full_and_never_more(rate in rates(), burst in bursts(), start in 0..YEAR, idle in any::<u64>()) {
        let b = Meter::token_bucket(rate, burst).unwrap();
        let word = b.take(0, start, burst).unwrap();
        prop_assert_eq!(b.tokens(word, start), 0);
        let now = start.saturating_add(idle);
        // One unit of slack for the floor of `produced` at either end.
        let refilled = ideal(rate, now - start);
        let tokens = u128::from(b.tokens(word, now));
        prop_assert!(tokens <= u128::from(burst));
        prop_assert!(tokens <= refilled + 1);
        prop_assert!(tokens + 1 >= refilled.min(u128::from(burst)), "{tokens} {refilled}");
    }

    /// The model: a source offered at random times is admitted between the two bounds the design promises.
    #[test]
    fn admissions_stay_within_the_promise(
        rate in rates(),
        burst in 1u64..2000,
        start in 0..10 * YEAR,
        load in 1u64..40,
        gaps in prop::collection::vec(0u64..1000, 1..600),
    ) {
        let b = Meter::token_bucket(rate, burst).unwrap();
        // Gaps that offer between 0.5 and 20 times the rate.
        let mean = (u128::from(rate.period) * 20 / u128::from(rate.tokens) / u128::from(load)).min(u128::from(YEAR / 1000));
        let mut now = start;
        let mut times = Vec::new();
        for gap in &gaps {
            now += u64::try_from(mean * u128::from(*gap) / 500).unwrap();
            times.push(now);
        }
        let mut word = 0;
        let mut owed_model = 0u128; // in tokens * period
        let period = u128::from(rate.period);
        let full = u128::from(burst) * period;
        let mut last = start;
        let mut admitted = 0u128;
        for &t in &times {
            owed_model = owed_model.saturating_sub(u128::from(t - last) * u128::from(rate.tokens));
            last = t;
            let model = owed_model + period <= full;
            let ours = b.take(word, t, 1);
            if let Some(new) = ours {
                word = new;
                admitted += 1;
            }
            if model == ours.is_some() {
                owed_model += if model { period } else { 0 };
            } else {
                // They may differ only at the very edge, by less than one unit plus one.
                let edge = (owed_model + period).abs_diff(full);
                prop_assert!(edge << u32::from(b.detail) <= 2 * period, "model {model} at an edge of {edge} / {period}");
                owed_model += if ours.is_some() { period } else { 0 };
            }
        }
        let span = last - times[0];
        prop_assert!(admitted <= u128::from(burst) + ideal(rate, span) + 1);
    }

    #[test]
    fn the_stated_wait_is_exact(rate in rates(), burst in 1u64..1000, start in 0..YEAR) {
        let b = Meter::token_bucket(rate, burst).unwrap();
        let word = b.take(0, start, burst).unwrap();
        let d = b.decide(word, start, 1);
        prop_assert!(!d.allowed);
        let wait = d.retry_after.unwrap();
        prop_assert!(b.take(word, start + wait, 1).is_some());
        prop_assert!(b.take(word, start + wait - 1, 1).is_none(), "not a nanosecond earlier");
        prop_assert!(u128::from(wait) <= u128::from(rate.period).div_ceil(u128::from(rate.tokens)) + (1 << 21));
    }

    /// Case 63: a clock read early on another CPU neither refills the bucket nor moves it back.
    #[test]
    fn a_late_clock_does_no_harm(rate in rates(), burst in bursts(), now in 0..10 * YEAR, lag in 0..10 * SECOND, spent in any::<u64>()) {
        let b = Meter::token_bucket(rate, burst).unwrap();
        let word = b.take(0, now, spent % burst + 1).unwrap();
        let early = now.saturating_sub(lag);
        prop_assert!(b.tokens(word, early) <= b.tokens(word, now));
        if let Some(new) = b.take(word, early, 1) {
            prop_assert!(new >= word);
            prop_assert!(b.tokens(new, now) < b.tokens(word, now) || b.tokens(word, now) == burst);
        }
    }

    /// Case 61 and rule 1: what is owed is carried over in tokens.
    #[test]
    fn a_change_carries_tokens_over(old in rates(), new in rates(), burst in bursts(), new_burst in bursts(), spent in any::<u64>(), now in 0..5 * YEAR) {
        let before = Meter::token_bucket(old, burst).unwrap();
        let after = Meter::token_bucket(new, new_burst).unwrap();
        let spent = spent % burst + 1;
        let word = after.convert(before.take(0, now, spent).unwrap(), now, &before);
        prop_assert_eq!(after.tokens(word, now), new_burst.saturating_sub(spent));
        let full = after.convert(0, now, &before);
        prop_assert!(full != 0 && after.is_full(full, now), "full stays full, by a word that tells");
    }
}

#[test]
fn a_steady_source_gets_its_rate_however_often_it_asks() {
    // A rounded-down refill that forgets its remainder would admit half of 1,001 a second.
    let b = bucket(1000, SECOND, 100);
    for offered in [500, 999, 1000, 1001, 1500, 2001, 20_000] {
        let times = (0..offered * 10).map(|i| 77 + i * SECOND / offered);
        let admitted = run(&b, &mut 0, times, 1);
        let ideal = (offered * 10).min(100 + 10_000);
        assert!(
            admitted <= ideal && admitted + 1 >= ideal,
            "{offered}/s: {admitted} of {ideal}"
        );
    }
}

#[test]
fn case_51_a_hundred_years_of_idleness_are_a_full_bucket() {
    let b = bucket(10_000_000, SECOND, 20);
    let word = b.take(0, 0, 20).unwrap();
    assert_eq!(b.tokens(word, 0), 0);
    assert_eq!(b.tokens(word, 100 * YEAR), 20);
    assert_eq!(
        run(
            &b,
            &mut word.clone(),
            std::iter::repeat_n(100 * YEAR, 50),
            1
        ),
        20
    );
}

#[test]
fn case_52_long_times_at_high_rates_do_not_wrap() {
    for (rate, burst) in [
        (per_second(10_000_000), 20),
        (per_second(17_000_000_000), 1 << 20),
        (per_second(MAX_BYTES_PER_SECOND), 1 << 30),
    ] {
        let b = Meter::token_bucket(rate, burst).unwrap();
        for days in [1, 10, 365, 3650] {
            let now = days * 86_400 * SECOND;
            let word = b.take(0, now, burst).unwrap();
            assert_eq!(b.tokens(word, now), 0);
            let later = b.tokens(word, now + 1000);
            let ideal = (rate.tokens / 1_000_000).min(burst);
            assert!(
                later.abs_diff(ideal) <= 1,
                "{rate:?} after {days} days: {later} of {ideal}"
            );
        }
    }
}

#[test]
fn case_53_and_58_what_cannot_be_represented_is_refused() {
    assert!(Meter::token_bucket(per_second(1), 0).is_none());
    assert!(Meter::token_bucket(per_second(0), 1).is_none());
    assert!(
        Meter::token_bucket(
            Rate {
                tokens: 1,
                period: 0
            },
            1
        )
        .is_none()
    );
    assert!(Meter::token_bucket(per_second(1), MAX_BURST).is_some());
    assert!(Meter::token_bucket(per_second(1), MAX_BURST + 1).is_none());
    assert!(Meter::token_bucket(per_second(1), 1 << 63).is_none());
    assert!(Meter::token_bucket(per_second(MAX_BYTES_PER_SECOND), 1).is_some());
    assert!(Meter::token_bucket(per_second(MAX_BYTES_PER_SECOND + 1), 1).is_none());
    assert!(
        Meter::token_bucket(
            Rate {
                tokens: 1,
                period: MAX_NANOS_PER_TOKEN
            },
            1
        )
        .is_some()
    );
    assert!(
        Meter::token_bucket(
            Rate {
                tokens: 1,
                period: MAX_NANOS_PER_TOKEN + 1
            },
            1
        )
        .is_none()
    );
}

#[test]
fn case_55_less_than_a_nanosecond_a_token() {
    let b = bucket(2_000_000_000, SECOND, 1000);
    let word = b.take(0, 5, 1000).unwrap();
    assert_eq!(b.tokens(word, 6), 2);
    assert_eq!(b.tokens(word, 105), 200);
}

#[test]
fn case_56_slower_than_one_a_second() {
    for (tokens, period, hours, ideal) in [
        (1, 10 * SECOND, 2, 720),
        (1, 3600 * SECOND, 2, 2),
        (7, 86_400 * SECOND, 48, 14),
    ] {
        let b = bucket(tokens, period, 3);
        let times = (0..hours * 3600u64).map(|s| 1_000_000_007 + s * SECOND);
        let admitted = run(&b, &mut 0, times, 1);
        assert!(
            admitted.abs_diff(3 + ideal) <= 1,
            "{tokens} per {period} ns: {admitted}"
        );
    }
}

#[test]
fn case_60_the_true_maximum_of_a_window_is_burst_plus_rate() {
    let b = bucket(60, 60 * SECOND, 60);
    let times = std::iter::repeat_n(0, 60).chain((1..=60).map(|s| s * SECOND));
    assert_eq!(run(&b, &mut 0, times, 1), 120);
}

#[test]
fn case_61_a_lowered_burst_acts_at_once() {
    let old = bucket(10, SECOND, 1000);
    let new = bucket(10, SECOND, 20);
    let word = new.convert(0, 5 * SECOND, &old);
    assert_eq!(new.tokens(word, 5 * SECOND), 20);
}

#[test]
fn rule_1_raised_passes_at_once_and_lowered_stays_empty() {
    let slow = bucket(1, 3600 * SECOND, 10);
    let fast = bucket(1000, SECOND, 10);
    let now = 12 * 3600 * SECOND;
    let word = fast.convert(slow.take(0, now, 10).unwrap(), now, &slow);
    assert_eq!(fast.tokens(word, now), 0);
    assert!(
        fast.take(word, now + 10_000_000, 1).is_some(),
        "empty at 1/h, raised to 1000/s: passes within 10 ms"
    );
    let word = slow.convert(fast.take(0, now, 10).unwrap(), now, &fast);
    assert!(
        slow.take(word, now + 60 * SECOND, 1).is_none(),
        "empty at 1000/s, lowered to 1/h: stays empty"
    );
}

#[test]
fn case_59_cost_equal_to_burst_passes_on_a_full_bucket_only() {
    let b = bucket(1_000_000, SECOND, 1500);
    let word = b.take(0, 0, 1500).unwrap();
    assert!(b.take(0, 0, 1501).is_none());
    assert!(b.take(word, 1000, 1500).is_none());
    assert_eq!(
        b.decide(0, 0, 1501),
        Decision {
            allowed: false,
            remaining: 1500,
            retry_after: None
        }
    );
}

#[test]
fn case_72_adding_decides_as_trying_does() {
    let b = bucket(1000, SECOND, 5);
    let now = 3600 * SECOND;
    let word = Word::new(b.take(0, now, 1).unwrap());
    for expected in [true, true, true, true, false, false] {
        assert_eq!(b.take_by_adding(&word, now, 1), expected);
    }
    assert_eq!(
        b.tokens(word.load(), now),
        0,
        "what was refused is given back"
    );
    assert!(
        b.take_by_adding(&word, now + 1_000_000, 1),
        "one token later"
    );
    assert!(!b.take_by_adding(&word, now + 1_000_000, 1));
    assert!(!b.take_by_adding(&word, now, 6), "more than the burst");
}

/// The cost would be owed from when the bucket last owed something, and forgotten at once.
#[test]
fn nothing_is_added_to_a_bucket_that_owes_nothing() {
    let b = bucket(1000, SECOND, 5);
    let word = Word::new(7);
    assert!(!b.take_by_adding(&word, 3600 * SECOND, 1));
    assert_eq!(word.load(), 7);
}

/// The memory of a source that was evicted may be another's when the cost comes back.
#[test]
fn what_was_never_taken_is_not_given_back() {
    let b = bucket(1000, SECOND, 5);
    let word = Word::new(0);
    b.give_back(&word, SECOND, 1);
    assert_eq!(b.tokens(word.load(), SECOND), 5);
}

#[test]
fn case_72_adding_from_many_threads_admits_the_burst_and_no_more() {
    const THREADS: u64 = 8;
    const BURST: u64 = 10_000;
    let b = bucket(1, 3600 * SECOND, BURST);
    for spent in [1, BURST / 2] {
        let word = Word::new(b.take(0, SECOND, spent).unwrap());
        let admitted: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        (0..BURST)
                            .filter(|_| b.take_by_adding(&word, SECOND, 1))
                            .count() as u64
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert!(admitted <= BURST - spent);
        assert!(
            admitted + THREADS >= BURST - spent,
            "{admitted}: at most a token per thread in flight"
        );
    }
}

/// A leaky bucket as a meter is a token bucket of the queue and the one that drains.
#[test]
fn a_leaky_bucket_decides_as_a_token_bucket_of_queue_and_one() {
    for queue in [0, 1, 19, 2000] {
        for rate in [per_second(1), per_second(1000), per_second(10_000_000)] {
            let leaky = Meter::leaky_bucket(rate, queue).unwrap();
            let token = Meter::token_bucket(rate, queue + 1).unwrap();
            let (mut ours, mut theirs) = (0, 0);
            let gap = SECOND / rate.tokens / 3;
            for now in (0..10_000).map(|i| YEAR + i * gap + i % 7) {
                let (a, b) = (leaky.take(ours, now, 1), token.take(theirs, now, 1));
                assert_eq!(a, b);
                (ours, theirs) = (a.unwrap_or(ours), b.unwrap_or(theirs));
                assert_eq!(leaky.decide(ours, now, 1), token.decide(theirs, now, 1));
            }
        }
    }
    assert!(Meter::leaky_bucket(per_second(1), MAX_BURST - 1).is_some());
    assert!(Meter::leaky_bucket(per_second(1), MAX_BURST).is_none());
    assert!(Meter::leaky_bucket(per_second(1), u64::MAX).is_none());
}
