//! The log against a list of all that it ever admitted.

use proptest::prelude::*;

use super::*;

extern crate std;
use std::{vec, vec::Vec};

const SECOND: u64 = 1_000_000_000;
const YEAR: u64 = 365 * 86_400 * SECOND;

fn log(tokens: u64, period: u64) -> Meter {
    Meter::sliding_log(Rate { tokens, period }).unwrap()
}

fn takes(meter: &Meter, log: &MeterLog<Word>, now: u64) -> bool {
    meter.admits(log, now, true, oldest)
}

fn copy(log: &MeterLog<Word>) -> MeterLog {
    MeterLog {
        moments: core::array::from_fn(|place| log.moments[place].load()),
    }
}

/// The most admissions in any window's length.
fn most(admitted: &mut [u64], period: u64) -> usize {
    admitted.sort_unstable();
    let within =
        |first: usize| admitted[first..].partition_point(|at| at - admitted[first] < period);
    (0..admitted.len()).map(within).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// For every limit: what a list of all admissions would decide.
    #[test]
    fn it_decides_as_a_list_does(
        limit in 1..=LOG_LENGTH as u64,
        period in prop::sample::select(vec![1_000, SECOND, 60 * SECOND, 86_400 * SECOND]),
        start in 0..10 * YEAR,
        gaps in prop::collection::vec(0..2_000u64, 1..400),
    ) {
        let meter = log(limit, period);
        let log = MeterLog::default();
        let mut admitted: Vec<u64> = Vec::new();
        let mut now = start.max(1);
        for gap in gaps {
            now += u64::try_from(u128::from(period) * u128::from(gap * gap) / (1_000_000 * u128::from(limit))).unwrap();
            let young = admitted.iter().filter(|at| now - **at < period).count() as u64;
            let decision = meter.log_decision(&copy(&log), now);
            prop_assert_eq!(decision.allowed, young < limit);
            prop_assert_eq!(decision.remaining, (limit - young).saturating_sub(1));
            let wait = decision.retry_after.unwrap();
            if young < limit {
                prop_assert_eq!(wait, 0);
            } else {
                prop_assert!(!meter.admits(&log, now + wait - 1, false, oldest));
                prop_assert!(meter.admits(&log, now + wait, false, oldest));
            }
            let before = copy(&log);
            prop_assert_eq!(meter.admits(&log, now, false, oldest), young < limit);
            prop_assert_eq!(copy(&log), before, "a look writes nothing");
            if takes(&meter, &log, now) {
                admitted.push(now);
            }
            prop_assert_eq!(admitted.last() == Some(&now) && young < limit, young < limit);
        }
        prop_assert!(most(&mut admitted, period) as u64 <= limit);
    }

    /// CPUs read their clocks in any order, and some give back.
    #[test]
    fn no_window_holds_more_whatever_the_clocks_say(
        limit in 1..=LOG_LENGTH as u64,
        moments in prop::collection::vec((0..20_000u64, 0..4u8), 1..400),
    ) {
        let meter = log(limit, 1000);
        let log = MeterLog::default();
        let mut admitted = Vec::new();
        for (now, fate) in moments {
            let now = 50_000 + now;
            if takes(&meter, &log, now) {
                if fate == 0 {
                    meter.withdraw(&log, now);
                } else {
                    admitted.push(now);
                }
            }
        }
        prop_assert!(most(&mut admitted, 1000) as u64 <= limit);
    }
}

#[test]
fn exactly_the_limit_in_any_window_for_each_limit() {
    for limit in 1..=LOG_LENGTH as u64 {
        let meter = log(limit, SECOND);
        let log = MeterLog::default();
        let mut admitted: Vec<u64> = (0..10_000)
            .map(|step| SECOND + step * 1_000_000)
            .filter(|now| takes(&meter, &log, *now))
            .collect();
        assert_eq!(admitted.len() as u64, 10 * limit, "10 s of flood");
        assert_eq!(most(&mut admitted, SECOND) as u64, limit);
    }
}

#[test]
fn a_moment_of_zero_is_a_moment() {
    let meter = log(1, SECOND);
    let log = MeterLog::default();
    assert!(takes(&meter, &log, 0));
    assert!(!takes(&meter, &log, 0));
    assert!(!takes(&meter, &log, SECOND));
    assert!(takes(&meter, &log, SECOND + 1));
}

#[test]
fn the_oldest_is_found_among_those_in_use() {
    let log = MeterLog::default();
    assert_eq!(oldest(&log, 3), 0);
    for (place, moment) in [(0, 9), (1, 5), (2, 7), (3, 1)] {
        log.moments[place].store(moment);
    }
    assert_eq!(oldest(&log, 3), 1);
    assert_eq!(oldest(&log, 4), 3);
}

#[test]
fn what_is_withdrawn_can_be_admitted_again() {
    let meter = log(2, SECOND);
    let log = MeterLog::default();
    assert!(takes(&meter, &log, 5) && takes(&meter, &log, 6));
    assert!(!takes(&meter, &log, 7));
    meter.withdraw(&log, 6);
    assert!(takes(&meter, &log, 7));
    meter.withdraw(&log, 6);
    assert!(!takes(&meter, &log, 8), "that one was withdrawn before");
}

#[test]
fn a_raised_limit_takes_more_places_and_a_lowered_one_fewer() {
    let (low, high) = (log(2, SECOND), log(5, SECOND));
    let log = MeterLog::default();
    assert_eq!((1..10).filter(|now| takes(&low, &log, *now)).count(), 2);
    assert_eq!((10..20).filter(|now| takes(&high, &log, *now)).count(), 3);
    assert!(!takes(&low, &log, 20), "lowered, it stays empty");
}

#[test]
fn more_than_it_remembers_is_refused() {
    let rate = |tokens, period| Rate { tokens, period };
    assert!(Meter::sliding_log(rate(LOG_LENGTH as u64, SECOND)).is_some());
    assert!(Meter::sliding_log(rate(LOG_LENGTH as u64 + 1, SECOND)).is_none());
    assert!(Meter::sliding_log(rate(0, SECOND)).is_none());
    assert!(Meter::sliding_log(rate(1, 0)).is_none());
}

/// Four threads and one clock that they move on: no window ever holds more, and the limit is reached.
#[test]
fn threads_never_admit_more() {
    const PERIOD: u64 = 1000;
    for limit in [1, 3, LOG_LENGTH as u64] {
        let meter = log(limit, PERIOD);
        let log = MeterLog::default();
        let clock = Word::new(1);
        let hammer = || {
            let mut admitted = Vec::new();
            for _ in 0..100_000 {
                let now = clock.fetch_add(1);
                if takes(&meter, &log, now) {
                    admitted.push(now);
                }
            }
            admitted
        };
        let mut admitted: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(hammer)).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(admitted.len() as u64 > limit * 300, "{}", admitted.len());
        assert!(most(&mut admitted, PERIOD) as u64 <= limit);
    }
}

/// Many threads at one moment: each place is claimed once, and none is refused while there is one.
#[test]
fn threads_at_one_moment_admit_the_limit() {
    for round in 1..200 {
        let meter = log(LOG_LENGTH as u64, SECOND);
        let log = MeterLog::default();
        let admitted: usize = std::thread::scope(|scope| {
            let hammer = || (0..8).filter(|_| takes(&meter, &log, round)).count();
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(hammer)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(admitted, LOG_LENGTH);
    }
}
