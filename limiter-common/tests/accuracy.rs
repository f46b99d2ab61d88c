//! How accurate the limiter is: every algorithm over its whole grid, under a simulated clock, one packet after the other.
//!
//! `cargo test -p limiter-common --test accuracy -- --nocapture` prints the table.

use std::{fmt, iter};

use limiter_common::{
    meter::{LOG_LENGTH, MAX_FIXED_WINDOW, MAX_SLIDING_WINDOW, Meter, MeterLog, Rate, oldest},
    word::Word,
};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
const YEAR: u64 = 365 * 24 * HOUR;
/// When the simulations begin: an hour and ten years after boot.
const STARTS: [u64; 2] = [HOUR + 7, 10 * YEAR + 7];
/// Offered, in thousandths of the rate.
const LOADS: [u64; 8] = [500, 900, 999, 1000, 1001, 1500, 3000, 10_000];

/// The worst of many simulations.
#[derive(Clone, Copy)]
struct Worst {
    simulations: u32,
    packets: u64,
    /// Of buckets, tokens above what any span should admit; of windows, the share of the limit in the worst span.
    most: f64,
    /// Of buckets, packets above what should be admitted, so below 0; of windows, the least share of the limit.
    least: f64,
}

impl Worst {
    const NONE: Self = Self {
        simulations: 0,
        packets: 0,
        most: f64::NEG_INFINITY,
        least: f64::INFINITY,
    };

    fn or(self, other: Self) -> Self {
        Self {
            simulations: self.simulations + other.simulations,
            packets: self.packets + other.packets,
            most: self.most.max(other.most),
            least: self.least.min(other.least),
        }
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} | {} | {:.4} | {:.4}",
            self.simulations, self.packets, self.most, self.least
        )
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share is printed with six digits"
)]
fn share(part: i128, whole: i128) -> f64 {
    part as f64 / whole as f64
}

/// Packets at a steady rate of `load` thousandths of `rate`, each costing `cost`: a burst of `burst` at once, and `count`.
fn offered(
    rate: Rate,
    load: u64,
    cost: u64,
    start: u64,
    burst: u64,
    count: u64,
) -> impl Iterator<Item = u64> {
    let steady = (0..count).map(move |packet| {
        let gap = u128::from(packet) * u128::from(cost) * u128::from(rate.period) * 1000;
        let offset = gap / (u128::from(rate.tokens) * u128::from(load));
        start + u64::try_from(offset).expect("a simulation of less than 584 years")
    });
    iter::repeat_n(start, usize::try_from(burst).expect("a small burst")).chain(steady)
}

/// A bucket that starts full: what it admits in any span, and from the start to any packet.
fn bucket(
    meter: &Meter,
    rate: Rate,
    burst: u64,
    cost: u64,
    times: impl Iterator<Item = u64>,
) -> Worst {
    let (tokens, period) = (i128::from(rate.tokens), i128::from(rate.period));
    let (burst, cost) = (i128::from(burst), i128::from(cost));
    let mut worst = Worst {
        simulations: 1,
        ..Worst::NONE
    };
    let (mut word, mut start) = (0, None);
    let (mut admitted, mut ideal) = (0, 0);
    // All in tokens x period. Between two admissions lies admitted - rate x t; what the span admits is the last one's less
    // the first one's, and its cost.
    let mut least_before = i128::MAX;
    for now in times {
        worst.packets += 1;
        let passed = i128::from(now - *start.get_or_insert(now));
        // What a bucket admits that takes from a packet what it can: all that is offered, or burst + rate x t and all that
        // is offered after that.
        ideal = (ideal + cost * period).min(burst * period + tokens * passed);
        if let Some(new) = meter.take(word, now, u64::try_from(cost).expect("a cost")) {
            word = new;
            let before = admitted * period - tokens * passed;
            least_before = least_before.min(before);
            admitted += cost;
            let above_rate = before + cost * period - least_before;
            // admitted <= burst + rate x t + 1
            let too_many = above_rate - burst * period;
            assert!(too_many <= period, "{rate:?}, burst {burst}: {too_many}");
            worst.most = worst.most.max(share(too_many, period));
        }
        if burst < 2 * cost {
            // What is left after one packet and before the next may not fit in any bucket of this size.
            continue;
        }
        // admitted >= 99.99 % of that, less one packet's cost
        let short = (admitted + cost) * period;
        assert!(
            short * 10_000 >= ideal * 9999,
            "{rate:?}, burst {burst}: {admitted} of {}",
            share(ideal, period)
        );
        worst.least = worst
            .least
            .min(share(admitted * period - ideal, cost * period));
    }
    worst
}

/// Every load and start; the bursts, and a cost and a number of packets for each.
fn buckets(
    make: impl Fn(Rate, u64) -> Option<Meter>,
    rates: &[Rate],
    bursts: &[(u64, u64)],
) -> Worst {
    let mut worst = Worst::NONE;
    for &rate in rates {
        for &(burst, cost) in bursts {
            let meter = make(rate, burst).expect("in range");
            for load in LOADS {
                for start in STARTS {
                    let full = burst / cost;
                    for at_once in [0, full.min(5000)] {
                        let count = (3 * full).clamp(1000, 5000);
                        let times = offered(rate, load, cost, start, at_once, count);
                        worst = worst.or(bucket(&meter, rate, burst, cost, times));
                    }
                }
            }
        }
    }
    worst
}

fn per(period: u64, tokens: &[u64]) -> impl Iterator<Item = Rate> {
    tokens.iter().map(move |&tokens| Rate { tokens, period })
}

/// 1/h to 10,000,000/s.
fn packet_rates() -> Vec<Rate> {
    per(HOUR, &[1, 7, 1000])
        .chain(per(60 * SECOND, &[1, 10, 1_000]))
        .chain(per(
            SECOND,
            &[1, 3, 1000, 3333, 50_000, 999_983, 1_000_000, 10_000_000],
        ))
        .collect()
}

/// 8 kbit/s to 400 Gbit/s, in bytes.
fn byte_rates() -> Vec<Rate> {
    per(
        SECOND,
        &[
            1000,
            12_345,
            1_250_000,
            125_000_000,
            1_250_000_000,
            3_125_000_001,
            12_500_000_000,
            50_000_000_000,
        ],
    )
    .collect()
}

/// The most that are admitted in any window's length, and in aligned windows the most and least.
fn windows(admitted: &[u64], period: u64) -> (u64, u64) {
    let longest = |same: &dyn Fn(u64, u64) -> bool| {
        let mut first = 0;
        let mut most = 0;
        for (last, &now) in admitted.iter().enumerate() {
            while !same(admitted[first], now) {
                first += 1;
            }
            most = most.max(last - first + 1);
        }
        most as u64
    };
    (
        longest(&|first, now| now - first < period),
        longest(&|first, now| first / period == now / period),
    )
}

/// Packets that find the failure of a window algorithm: at each end of a window a limit's worth at once, then a flood.
fn adversary(limit: u64, period: u64, start: u64) -> impl Iterator<Item = u64> {
    let first = start / period + 2;
    (first..first + 6).flat_map(move |number| {
        let seam = number * period;
        let pause = if number % 3 == 0 { limit } else { 0 };
        let flood = 4 * limit * u64::from(number.is_multiple_of(3));
        iter::repeat_n(seam - 1, usize::try_from(pause).expect("a small limit")).chain(
            (0..flood).map(move |packet| {
                seam + u64::try_from(u128::from(packet) * u128::from(period) / u128::from(flood))
                    .expect("within a window")
            }),
        )
    })
}

/// A window algorithm: the share of the limit in any window's length, and in aligned windows.
fn counted(make: impl Fn(Rate) -> Option<Meter>, periods: &[(u64, u64)]) -> (Worst, f64) {
    let mut worst = Worst::NONE;
    let mut aligned: f64 = 0.0;
    for &(period, _) in periods {
        for tokens in [1, 2, 10, 100, 3000] {
            let meter = make(Rate { tokens, period }).expect("in range");
            for start in STARTS {
                let (mut word, mut packets) = (0, 0);
                let mut admitted = Vec::new();
                for now in adversary(tokens, period, start) {
                    packets += 1;
                    if let Some(new) = meter.take(word, now, 1) {
                        word = new;
                        admitted.push(now);
                    }
                }
                let (any, in_one) = windows(&admitted, period);
                assert!(in_one <= tokens && any <= 2 * tokens);
                aligned = aligned.max(share(in_one.into(), tokens.into()));
                // Under a flood an aligned window is spent to the last token, by either algorithm.
                worst = worst.or(Worst {
                    simulations: 1,
                    packets,
                    most: share(any.into(), tokens.into()),
                    least: share(in_one.into(), tokens.into()),
                });
            }
        }
    }
    (worst, aligned)
}

fn logs() -> Worst {
    let mut worst = Worst::NONE;
    for period in [1000, SECOND, 60 * SECOND, 24 * HOUR] {
        for tokens in 1..=LOG_LENGTH as u64 {
            let rate = Rate { tokens, period };
            let meter = Meter::sliding_log(rate).expect("in range");
            for start in STARTS {
                let log = MeterLog::<Word>::default();
                let mut packets = 0;
                let admitted: Vec<u64> = adversary(tokens, period, start)
                    .inspect(|_| packets += 1)
                    .filter(|now| meter.admits(&log, *now, true, oldest))
                    .collect();
                let (any, _) = windows(&admitted, period);
                assert!(any <= tokens);
                worst = worst.or(Worst {
                    simulations: 1,
                    packets,
                    most: share(any.into(), tokens.into()),
                    least: share(any.into(), tokens.into()),
                });
            }
        }
    }
    worst
}

#[test]
fn every_algorithm_keeps_its_promise_over_its_grid() {
    let packets = [(1, 1), (2, 1), (20, 1), (2000, 1)];
    let bytes = [
        (65_536, 64),
        (65_536, 1514),
        (65_536, 65_536),
        (10_000_000, 9014),
    ];
    let leaky = |rate, burst| Meter::leaky_bucket(rate, burst - 1);
    let rows = [
        (
            "token bucket, 1/h to 10,000,000/s",
            buckets(Meter::token_bucket, &packet_rates(), &packets),
        ),
        (
            "token bucket, 8 kbit/s to 400 Gbit/s",
            buckets(Meter::token_bucket, &byte_rates(), &bytes),
        ),
        (
            "leaky bucket, 1/h to 10,000,000/s",
            buckets(leaky, &packet_rates(), &packets),
        ),
        (
            "leaky bucket, 8 kbit/s to 400 Gbit/s",
            buckets(leaky, &byte_rates(), &bytes),
        ),
    ];
    let (fixed, fixed_aligned) = counted(Meter::fixed_window, &MAX_FIXED_WINDOW);
    let (sliding, sliding_aligned) = counted(Meter::sliding_window, &MAX_SLIDING_WINDOW);
    let log = logs();

    println!(
        "Buckets, offered 0.5 to 10 times the rate, an hour and ten years after boot, also after a burst."
    );
    println!(
        "Above: tokens admitted in the worst span above burst + rate x t; promised: 1 at most."
    );
    println!(
        "Below: packets missing from min(offered, burst + rate x t); promised: 1 at most, and 0.01 %.\n"
    );
    println!("| algorithm | simulations | packets | above | below |\n|---|---|---|---|---|");
    for (name, worst) in &rows {
        println!("| {name} | {worst} |");
    }
    println!(
        "\nWindows and logs, offered the limit at the end of a window and then a flood. Shares of the limit.\n"
    );
    println!(
        "| algorithm | simulations | packets | most in any window's length | least under a flood | most in an aligned window |"
    );
    println!("|---|---|---|---|---|---|");
    println!("| fixed window | {fixed} | {fixed_aligned:.4} |");
    println!("| sliding window | {sliding} | {sliding_aligned:.4} |");
    println!("| sliding log | {log} | |");

    assert!(fixed.most.to_bits() == 2f64.to_bits(), "the seam is shown");
    assert!(sliding.most > 1.99 && sliding.most < 2.0);
    for exact in [fixed_aligned, sliding_aligned, log.most, log.least] {
        assert!(exact.to_bits() == 1f64.to_bits());
    }
}
