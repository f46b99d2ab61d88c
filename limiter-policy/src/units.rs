//! Rates, bursts and sizes as people write them.

use std::{fmt, str::FromStr};

use limiter_common::meter::{MAX_BURST, MAX_BYTES_PER_SECOND, MAX_PACKETS_PER_SECOND, Rate};

/// The smallest burst of a limit that counts bytes: the largest frame that an interface hands over in one piece, with
/// segmentation offload (`GSO_LEGACY_MAX_SIZE`, `include/linux/netdevice.h`, 6.12), or it would never pass, however long its
/// source waits.
pub const MIN_BURST_BYTES: u64 = 65_536;

/// What a token pays for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A packet.
    Packets,
    /// A byte.
    Bytes,
}

const SECOND: u64 = 1_000_000_000;

/// A time that rates are in.
struct Time {
    symbol: &'static str,
    word: &'static str,
    period: u64,
}

const TIMES: [Time; 4] = [
    Time {
        symbol: "s",
        word: "second",
        period: SECOND,
    },
    Time {
        symbol: "min",
        word: "minute",
        period: 60 * SECOND,
    },
    Time {
        symbol: "h",
        word: "hour",
        period: 3600 * SECOND,
    },
    Time {
        symbol: "d",
        word: "day",
        period: 86_400 * SECOND,
    },
];

/// A rate: `1000/s`, `10/min`, `1/h`, `10MB/s`, `100Mbit/s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSpec {
    /// Tokens in a time.
    pub rate: Rate,
    /// What a token pays for.
    pub unit: Unit,
    text: String,
}

/// A burst: `2000` packets, or `1MB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeSpec {
    /// Packets or bytes.
    pub amount: u64,
    /// Which of them.
    pub unit: Unit,
    text: String,
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for SizeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl RateSpec {
    /// The time that the rate names, in nanoseconds and in words.
    #[must_use]
    pub fn time(&self) -> (u64, &'static str) {
        let periods = TIMES.iter().map(|time| (time.period, time.word));
        // Bits are kept as bytes in eight times the time.
        let (period, word) = periods
            .clone()
            .find(|(period, _)| *period == self.rate.period)
            .or_else(|| {
                periods
                    .clone()
                    .find(|(period, _)| 8 * period == self.rate.period)
            })
            .unwrap_or((self.rate.period, "period"));
        (period, word)
    }
}

impl SizeSpec {
    /// The queue of a leaky bucket, as people write it. Unlike a burst it may be 0: then no packet passes ahead of its
    /// time.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and the bound.
    pub fn queue(text: &str) -> Result<Self, String> {
        // The packet that drains has a place besides the queue.
        size(text, "queue", 0, MAX_BURST - 1)
    }
}

impl FromStr for RateSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a rate is missing: write for example `1000/s` or `10MB/s`".to_owned());
        }
        let (amount, per) = text.split_once('/').ok_or_else(|| without_time(text))?;
        let Some(Time { period, .. }) = TIMES.into_iter().find(|time| time.symbol == per) else {
            return Err(format!("`/{per}` is not a time: use /s, /min, /h or /d"));
        };
        let Amount { count, quantity } = amount.parse()?;
        let (rate, unit) = match quantity {
            Quantity::Bare => (
                Rate {
                    tokens: count,
                    period,
                },
                Unit::Packets,
            ),
            Quantity::Bytes => (
                Rate {
                    tokens: count,
                    period,
                },
                Unit::Bytes,
            ),
            Quantity::Bits => (
                Rate {
                    tokens: count,
                    period: 8 * period,
                },
                Unit::Bytes,
            ),
        };
        if count == 0 {
            return Err(
                "a rate of 0 would let nothing through for good: the lowest is 1/d".to_owned(),
            );
        }
        let (most, what) = match unit {
            Unit::Packets => (MAX_PACKETS_PER_SECOND, "packets a second"),
            Unit::Bytes => (MAX_BYTES_PER_SECOND, "bytes a second (400 Gbit/s)"),
        };
        if rate.exceeds(most) {
            return Err(format!(
                "more than can be counted: the highest rate is {most} {what}"
            ));
        }
        Ok(Self {
            rate,
            unit,
            text: text.replace('_', ""),
        })
    }
}

/// What to write instead of a rate without a `/`.
fn without_time(text: &str) -> String {
    if text
        .parse::<Amount>()
        .is_ok_and(|amount| amount.quantity == Quantity::Bare)
    {
        return format!(
            "a rate needs a time: write `{text}/s` for packets, or for example `10MB/s` or `100Mbit/s`"
        );
    }
    let other = ["pps", "Bps", "bps", "B", "bit"]
        .into_iter()
        .find_map(|unit| {
            let amount = text.strip_suffix(unit)?;
            let unit = match unit {
                "pps" => "",
                "Bps" => "B",
                "bps" => "bit",
                same => same,
            };
            let rate = format!("{amount}{unit}/s");
            rate.parse::<RateSpec>().is_ok().then_some(rate)
        });
    match other {
        Some(rate) => format!("a rate is an amount and a time: write `{rate}`"),
        None => {
            "a rate is an amount and a time: write for example `1000/s`, `10MB/s` or `100Mbit/s`"
                .to_owned()
        }
    }
}

impl FromStr for SizeSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        size(text, "burst", 1, MAX_BURST)
    }
}

fn size(text: &str, what: &str, least: u64, most: u64) -> Result<SizeSpec, String> {
    let Amount { count, quantity } = text.parse()?;
    let unit = match quantity {
        Quantity::Bare => Unit::Packets,
        Quantity::Bytes => Unit::Bytes,
        Quantity::Bits => {
            return Err(format!(
                "a {what} is in packets or bytes: write for example `2000` or `1MB`"
            ));
        }
    };
    if count < least {
        return Err(format!(
            "a {what} of {count} would let nothing through: the lowest is {least}"
        ));
    }
    if count > most {
        return Err(format!(
            "more than a bucket holds: the largest {what} is {most}"
        ));
    }
    if unit == Unit::Bytes && count < MIN_BURST_BYTES {
        return Err(format!(
            "smaller than the largest frame, which would then never pass: the lowest is {MIN_BURST_BYTES}B"
        ));
    }
    Ok(SizeSpec {
        amount: count,
        unit,
        text: text.replace('_', ""),
    })
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Bare,
    Bytes,
    Bits,
}

/// A whole number with a unit.
struct Amount {
    count: u64,
    quantity: Quantity,
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '_')
            .unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let digits = digits.replace('_', "");
        if digits.is_empty() || unit.starts_with('.') {
            return Err(format!("`{text}` does not start with a whole number"));
        }
        let number: u64 = digits
            .parse()
            .map_err(|_ignored: std::num::ParseIntError| {
                format!(
                    "`{digits}` is more than can be counted: the largest number is {}",
                    u64::MAX
                )
            })?;
        let (prefix, quantity) = if let Some(prefix) = unit.strip_suffix("bit") {
            (prefix, Quantity::Bits)
        } else if let Some(prefix) = unit.strip_suffix('B') {
            (prefix, Quantity::Bytes)
        } else {
            (unit, Quantity::Bare)
        };
        let factor: u64 = match (prefix, quantity) {
            ("", _) => 1,
            (_, Quantity::Bare) => {
                return Err(format!(
                    "`{unit}` is not a unit: write packets as a plain number, bytes as B, kB, MB, GB, KiB, MiB or GiB, \
                     bits as bit, kbit, Mbit or Gbit"
                ));
            }
            ("k" | "K", _) => 1_000,
            ("M", _) => 1_000_000,
            ("G", _) => 1_000_000_000,
            ("T", _) => 1_000_000_000_000,
            ("Ki", _) => 1 << 10,
            ("Mi", _) => 1 << 20,
            ("Gi", _) => 1 << 30,
            (other, _) => {
                return Err(format!(
                    "`{other}` is not a prefix: use k, M, G, T, Ki, Mi or Gi"
                ));
            }
        };
        let count = number.checked_mul(factor).ok_or_else(|| {
            format!(
                "`{text}` is more than can be counted: the largest number is {}",
                u64::MAX
            )
        })?;
        Ok(Self { count, quantity })
    }
}

/// A number of bytes for people: `137.4 MB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let value = count as f64;
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.1} GB", value / 1e9),
    }
}

/// A time for people, given in milliseconds: `250 ms`, `1.5 s`, `59 min 59 s`, `23 h 5 min`, `3 d 4 h`.
#[must_use]
pub fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 if milliseconds.is_multiple_of(1000) => format!("{seconds} s"),
        1_000..60_000 => format!("{seconds}.{} s", milliseconds % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600_000..86_400_000 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_for_people() {
        for (milliseconds, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_550, "1.5 s"),
            (59_999, "59.9 s"),
            (3_599_999, "59 min 59 s"),
            (3_600_000, "1 h 0 min"),
            (86_400_000, "1 d 0 h"),
        ] {
            assert_eq!(duration(milliseconds), text);
        }
    }

    #[test]
    fn rates_without_a_time_are_answered_with_one() {
        for (text, instead) in [
            ("1000", "`1000/s`"),
            ("1000pps", "`1000/s`"),
            ("100Mbps", "`100Mbit/s`"),
            ("100kbps", "`100kbit/s`"),
            ("10MBps", "`10MB/s`"),
            ("10MB", "`10MB/s`"),
            ("100Mbit", "`100Mbit/s`"),
            ("1000x", "for example `1000/s`"),
            ("fast", "for example `1000/s`"),
        ] {
            let error = text.parse::<RateSpec>().unwrap_err();
            assert!(error.contains(instead), "{text}: {error}");
        }
    }

    fn rate(text: &str) -> (u64, u64, Unit) {
        let spec: RateSpec = text.parse().unwrap();
        (spec.rate.tokens, spec.rate.period, spec.unit)
    }

    #[test]
    fn rates_as_people_write_them() {
        assert_eq!(rate("1000/s"), (1000, SECOND, Unit::Packets));
        assert_eq!(rate("1_000/s"), (1000, SECOND, Unit::Packets));
        assert_eq!(rate("10/min"), (10, 60 * SECOND, Unit::Packets));
        assert_eq!(rate("1/h"), (1, 3600 * SECOND, Unit::Packets));
        assert_eq!(rate("1/d"), (1, 86_400 * SECOND, Unit::Packets));
        assert_eq!(rate("10MB/s"), (10_000_000, SECOND, Unit::Bytes));
        assert_eq!(rate("1MiB/s"), (1 << 20, SECOND, Unit::Bytes));
        assert_eq!(rate("100Mbit/s"), (100_000_000, 8 * SECOND, Unit::Bytes));
        assert_eq!(
            rate("7bit/s"),
            (7, 8 * SECOND, Unit::Bytes),
            "no rounding to whole bytes"
        );
        assert_eq!(
            rate("400Gbit/s"),
            (400_000_000_000, 8 * SECOND, Unit::Bytes)
        );
        assert_eq!(rate("1000000000/s"), (1_000_000_000, SECOND, Unit::Packets));
    }

    #[test]
    fn rates_that_are_refused_say_why() {
        for (text, part) in [
            ("1000", "a rate needs a time"),
            ("", "a rate is missing"),
            ("0/s", "0 would let nothing through"),
            ("0MB/s", "0 would let nothing through"),
            ("-1/s", "whole number"),
            ("1.5/s", "whole number"),
            ("/s", "whole number"),
            ("1000/", "not a time"),
            ("1000/m", "not a time"),
            ("10k/s", "not a unit"),
            ("10mb/s", "not a unit"),
            ("10XB/s", "not a prefix"),
            ("1000000001/s", "highest rate is 1000000000"),
            ("4294967296/s", "highest rate is 1000000000"),
            ("60000000001/min", "highest rate is 1000000000"),
            ("401Gbit/s", "highest rate is 50000000000 bytes"),
            ("99999999999999999999/s", "largest number"),
            ("18446744073709551615TB/s", "largest number"),
        ] {
            let error = text.parse::<RateSpec>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn bursts() {
        let burst = |text: &str| text.parse::<SizeSpec>().map(|b| (b.amount, b.unit));
        assert_eq!(burst("2000"), Ok((2000, Unit::Packets)));
        assert_eq!(burst("1MB"), Ok((1_000_000, Unit::Bytes)));
        assert_eq!(burst("65536B"), Ok((65_536, Unit::Bytes)));
        assert_eq!(burst("4398046511104"), Ok((1 << 42, Unit::Packets)));
        for (text, part) in [
            ("0", "0 would let nothing"),
            ("0B", "0 would let nothing"),
            ("1B", "the lowest is 65536B"),
            ("4398046511105", "largest burst is 4398046511104"),
            ("9223372036854775808", "largest burst"),
            ("1000B", "largest frame"),
            ("65535B", "the lowest is 65536B"),
            ("1Mbit", "packets or bytes"),
            ("x", "whole number"),
            ("10/s", "not a unit"),
        ] {
            let error = burst(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
    #[test]
    fn queues() {
        let queue = |text: &str| SizeSpec::queue(text).map(|b| (b.amount, b.unit));
        assert_eq!(queue("0"), Ok((0, Unit::Packets)));
        assert!(queue("0B").unwrap_err().contains("the lowest is 65536B"));
        assert_eq!(queue("50"), Ok((50, Unit::Packets)));
        assert_eq!(
            queue("4398046511104").unwrap_err(),
            "more than a bucket holds: the largest queue is 4398046511103"
        );
    }

    #[test]
    fn times() {
        let time = |text: &str| text.parse::<RateSpec>().unwrap().time();
        assert_eq!(time("1/s"), (SECOND, "second"));
        assert_eq!(time("100Mbit/s"), (SECOND, "second"));
        assert_eq!(time("8bit/min"), (60 * SECOND, "minute"));
        assert_eq!(time("5/d"), (86_400 * SECOND, "day"));
    }
}
