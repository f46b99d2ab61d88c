//! Terms: an algorithm with its rate, and its burst or queue.

use limiter_common::meter::{
    Algorithm, LOG_LENGTH, MAX_FIXED_WINDOW, MAX_SLIDING_WINDOW, Meter, Rate,
};

use super::{
    fault::Fault,
    reader::{Node, Section},
};
use crate::{
    spec::{Cost, Terms},
    units::{self, MIN_BURST_BYTES, RateSpec, SizeSpec, Unit},
};

/// The keys of terms.
pub(super) const KEYS: [&str; 3] = ["rate", "burst", "queue"];

/// What the limit says of all of its terms.
pub(super) struct Rules {
    algorithm: Algorithm,
    cost: Cost,
    log_capacity: u32,
}

impl Rules {
    pub(super) const fn new(algorithm: Algorithm, cost: Cost, log_capacity: u32) -> Self {
        Self {
            algorithm,
            cost,
            log_capacity,
        }
    }

    /// The name of the algorithm.
    const fn name(&self) -> &'static str {
        self.algorithm.name()
    }
}

/// The rate of a section, which cannot do without.
pub(super) fn rate(section: &Section<'_>) -> Result<RateSpec, Fault> {
    rate_of(&section.required(
        "rate",
        "how much may pass in what time, for example rate = \"1000/s\"",
    )?)
}

pub(super) fn rate_of(node: &Node<'_>) -> Result<RateSpec, Fault> {
    node.parsed("a rate with its time, such as \"1000/s\" or \"10MB/s\"")
}

/// The terms of a section whose rate has been read.
pub(super) fn read(section: &Section<'_>, rate: RateSpec, rules: &Rules) -> Result<Terms, Fault> {
    match rules.algorithm {
        Algorithm::TokenBucket => {
            refuse(
                section,
                "queue",
                "a token-bucket has no queue: write burst, how much may be saved up",
            )?;
            let size = burst(section, &rate, rules)?;
            token_bucket(section, rate, Some(size))
        }
        Algorithm::LeakyBucket => {
            refuse(
                section,
                "burst",
                "a leaky-bucket has no burst: write queue, how many may be ahead of their time",
            )?;
            let size = queue(section, &rate, rules)?;
            let meter = Meter::leaky_bucket(rate.rate, size.amount);
            counted(section, rate, Some(size), meter)
        }
        Algorithm::FixedWindow | Algorithm::SlidingWindow | Algorithm::SlidingLog => {
            for key in ["burst", "queue"] {
                let reason = format!(
                    "a {} has none: `{rate}` is {} in any way they come; leave it out",
                    rules.name(),
                    in_words(&rate)
                );
                refuse(section, key, &reason)?;
            }
            window(section, rate, rules)
        }
    }
}

/// A token bucket.
pub(super) fn token_bucket(
    section: &Section<'_>,
    rate: RateSpec,
    size: Option<SizeSpec>,
) -> Result<Terms, Fault> {
    let amount = size.as_ref().map_or(0, |size| size.amount);
    let meter = Meter::token_bucket(rate.rate, amount);
    counted(section, rate, size, meter)
}

fn counted(
    section: &Section<'_>,
    rate: RateSpec,
    size: Option<SizeSpec>,
    meter: Option<Meter>,
) -> Result<Terms, Fault> {
    match meter {
        Some(meter) => Ok(Terms { meter, rate, size }),
        None => Err(section.fault_at(
            "rate",
            format!("`{rate}`: not a bucket that can be counted"),
        )),
    }
}

fn refuse(section: &Section<'_>, key: &str, reason: &str) -> Result<(), Fault> {
    match section.get(key) {
        None => Ok(()),
        Some(node) => Err(node.fault(reason)),
    }
}

/// A limit's rate in words: `100 packets per minute`.
fn in_words(rate: &RateSpec) -> String {
    let (_, time) = rate.time();
    let text = rate.to_string();
    let amount = text.split('/').next().unwrap_or_default();
    match rate.unit {
        Unit::Packets => format!("{amount} packets per {time}"),
        Unit::Bytes => format!("{amount} per {time}"),
    }
}

const fn example(unit: Unit) -> &'static str {
    match unit {
        Unit::Packets => "2000",
        Unit::Bytes => "\"1MB\"",
    }
}

fn burst(section: &Section<'_>, rate: &RateSpec, rules: &Rules) -> Result<SizeSpec, Fault> {
    let example = example(rate.unit);
    let what = format!("how much of {rate} may be saved up, for example burst = {example}");
    let node = section.required("burst", &what)?;
    let text = node.amount(&format!("an amount such as {example}"))?;
    let size: SizeSpec = text.parse().map_err(|reason: String| node.fault(reason))?;
    same_unit(&node, rate, &size, "burst")?;
    affordable(&node, rules.cost, size.amount, || {
        format!("a burst of {size}")
    })?;
    Ok(size)
}

fn queue(section: &Section<'_>, rate: &RateSpec, rules: &Rules) -> Result<SizeSpec, Fault> {
    let example = example(rate.unit);
    let what = format!(
        "how many packets may be ahead of the pace of {rate}, for example queue = {example}"
    );
    let node = section.required("queue", &what)?;
    let text = node.amount(&format!("an amount such as {example}"))?;
    let size = SizeSpec::queue(&text).map_err(|reason| node.fault(reason))?;
    same_unit(&node, rate, &size, "queue")?;
    // The one that drains has a place besides the queue.
    affordable(&node, rules.cost, size.amount + 1, || {
        format!("a queue of {size}, and one that drains,")
    })?;
    Ok(size)
}

fn same_unit(node: &Node<'_>, rate: &RateSpec, size: &SizeSpec, key: &str) -> Result<(), Fault> {
    let (counts, example) = match rate.unit {
        unit if unit == size.unit => return Ok(()),
        Unit::Bytes => ("bytes", "\"1MB\""),
        Unit::Packets => ("packets", "2000"),
    };
    Err(node.fault(format!(
        "`{size}`: rate {rate} counts {counts}, so write a {key} in {counts}, for example {example}"
    )))
}

/// Refuses a cost that could never be paid.
fn affordable(
    node: &Node<'_>,
    cost: Cost,
    most: u64,
    what: impl Fn() -> String,
) -> Result<(), Fault> {
    match cost {
        Cost::Fixed(cost) if u64::from(cost) > most => Err(node.fault(format!(
            "{} never pays for a packet, whose cost is {cost}: write at least as much, or lower the cost",
            what()
        ))),
        Cost::Fixed(_) | Cost::Length => Ok(()),
    }
}

/// A window or log.
fn window(section: &Section<'_>, spec: RateSpec, rules: &Rules) -> Result<Terms, Fault> {
    let node = section.required("rate", "how many in what time")?;
    let rate = whole_bytes(&node, &spec)?;
    if spec.unit == Unit::Bytes && rules.algorithm == Algorithm::SlidingLog {
        return Err(node.fault(format!(
            "`{spec}` counts bytes, a sliding-log packets: write for example \"10/min\", or use sliding-window"
        )));
    }
    if spec.unit == Unit::Bytes && rate.tokens < MIN_BURST_BYTES {
        return Err(node.fault(format!(
            "`{spec}` is smaller than the largest frame, which would then never pass: the lowest of a {} is \
             {MIN_BURST_BYTES}B in its time",
            rules.name()
        )));
    }
    affordable(&node, rules.cost, rate.tokens, || format!("`{spec}`"))?;
    let meter = match rules.algorithm {
        Algorithm::FixedWindow => Meter::fixed_window(rate),
        Algorithm::SlidingWindow => Meter::sliding_window(rate),
        _ => Meter::sliding_log(rate),
    };
    match meter {
        Some(meter) => Ok(Terms {
            meter,
            rate: spec,
            size: None,
        }),
        None => Err(node.fault(out_of_range(&spec, rate, rules))),
    }
}

/// Bits are kept as bytes in eight times the time, but a window is as long as it was written.
fn whole_bytes(node: &Node<'_>, spec: &RateSpec) -> Result<Rate, Fault> {
    let (period, _) = spec.time();
    let Rate {
        tokens,
        period: kept,
    } = spec.rate;
    if kept == period {
        return Ok(spec.rate);
    }
    let parts = kept / period;
    if tokens % parts == 0 {
        Ok(Rate {
            tokens: tokens / parts,
            period,
        })
    } else {
        Err(node.fault(format!(
            "`{spec}` is not a whole number of bytes, which a window counts: write a multiple of {parts}bit"
        )))
    }
}

fn out_of_range(spec: &RateSpec, rate: Rate, rules: &Rules) -> String {
    let name = rules.name();
    let (_, time) = spec.time();
    let most = |ranges: &[(u64, u64)]| {
        let range = ranges.iter().find(|(period, _)| *period == rate.period);
        range.map_or(0, |(_, most)| *most)
    };
    let most = match rules.algorithm {
        Algorithm::FixedWindow => most(&MAX_FIXED_WINDOW),
        Algorithm::SlidingWindow => most(&MAX_SLIDING_WINDOW),
        _ => {
            let memory = u128::from(rate.tokens) * 8 * u128::from(rules.log_capacity);
            let memory = units::bytes(u64::try_from(memory).unwrap_or(u64::MAX));
            return format!(
                "`{spec}`: a {name} remembers at most {LOG_LENGTH} admissions; {} would take {memory}, 8 bytes for each \
                 in {} logs, and as many steps for each packet: use sliding-window or token-bucket",
                rate.tokens, rules.log_capacity
            );
        }
    };
    format!("`{spec}`: a {name} counts at most {most} in one {time}: use token-bucket")
}
