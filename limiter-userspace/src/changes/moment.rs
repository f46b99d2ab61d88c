//! One instant on both clocks, and wall times as text.

use std::{
    fmt,
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text;

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, for people and over reboots.
    pub wall: WallTime,
    /// Nanoseconds of the monotonic clock, which the kernel's timers count.
    pub monotonic: u64,
}

impl Moment {
    /// Now, given the monotonic clock.
    #[must_use]
    pub fn now(monotonic: u64) -> Self {
        Self {
            wall: WallTime::from(SystemTime::now()),
            monotonic,
        }
    }

    /// What the wall clock will show when the monotonic one shows `monotonic`, if nobody sets it meanwhile.
    #[must_use]
    pub fn wall_at(&self, monotonic: u64) -> WallTime {
        self.wall
            .plus(i128::from(monotonic) - i128::from(self.monotonic))
    }

    /// Whole seconds left until `monotonic`, rounded up; 0 if it is over.
    #[must_use]
    pub const fn seconds_until(&self, monotonic: u64) -> u64 {
        monotonic
            .saturating_sub(self.monotonic)
            .div_ceil(1_000_000_000)
    }
}

/// A time of the wall clock, from 1970 to 9999; as text in RFC 3339, always UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime(SystemTime);

/// 9999-12-31T23:59:59Z, the last second that RFC 3339 can write.
const LAST_NANOS: u64 = 253_402_300_799;
const NANOS_PER_SECOND: i128 = 1_000_000_000;

impl WallTime {
    /// Nanoseconds since 1970.
    #[must_use]
    pub fn nanos(self) -> i128 {
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default();
        i128::from(since.as_secs()) * NANOS_PER_SECOND + i128::from(since.subsec_nanos())
    }

    /// This many nanoseconds later, within what can be written.
    #[must_use]
    pub fn plus(self, nanos: i128) -> Self {
        Self::from_nanos(self.nanos().saturating_add(nanos))
    }

    fn from_nanos(nanos: i128) -> Self {
        let nanos = nanos.clamp(0, i128::from(LAST_NANOS) * NANOS_PER_SECOND);
        let seconds = u64::try_from(nanos / NANOS_PER_SECOND).unwrap_or(LAST_NANOS);
        let rest = u32::try_from(nanos % NANOS_PER_SECOND).unwrap_or(0);
        Self(UNIX_EPOCH + Duration::new(seconds, rest))
    }

    /// The time without its fraction of a second, for people.
    #[must_use]
    pub fn seconds(self) -> Self {
        Self::from_nanos(self.nanos() / NANOS_PER_SECOND * NANOS_PER_SECOND)
    }
}

impl From<SystemTime> for WallTime {
    /// A clock that shows less than 1970 or more than 9999 counts as showing the nearest of them.
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Self::from_nanos(
                i128::from(since.as_secs()) * NANOS_PER_SECOND + i128::from(since.subsec_nanos()),
            ),
            Err(_) => Self(UNIX_EPOCH),
        }
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339(self.0).fmt(f)
    }
}

impl FromStr for WallTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        humantime::parse_rfc3339(text).map(Self).map_err(|error| {
            format!("{text:?} is not a time: {error}; write it like 2026-12-01T08:30:00Z")
        })
    }
}

impl Serialize for WallTime {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WallTime {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text::deserialize(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_in_utc() {
        let text = "2026-12-01T08:30:00.000000001Z";
        let time: WallTime = text.parse().unwrap();
        assert_eq!(time.to_string(), text);
        assert_eq!(time.seconds().to_string(), "2026-12-01T08:30:00Z");
        assert_eq!(time.plus(-1), time.seconds());
        for bad in ["", "yesterday", "2026-12-01", "2026-13-01T00:00:00Z"] {
            let error = bad.parse::<WallTime>().unwrap_err();
            assert!(error.contains("2026-12-01T08:30:00Z"), "{error}");
        }
    }

    #[test]
    fn no_clock_is_too_odd() {
        let before = WallTime::from(UNIX_EPOCH - Duration::from_secs(5));
        assert_eq!(before.to_string(), "1970-01-01T00:00:00Z");
        let after = before.plus(i128::MAX);
        assert_eq!(after.to_string(), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn seconds_left_are_rounded_up() {
        let moment = Moment {
            wall: WallTime(UNIX_EPOCH),
            monotonic: 1_000_000_000,
        };
        assert_eq!(moment.seconds_until(1_000_000_001), 1);
        assert_eq!(moment.seconds_until(2_000_000_000), 1);
        assert_eq!(moment.seconds_until(5), 0);
        let wall = moment.wall_at(3_500_000_000).to_string();
        assert_eq!(wall, "1970-01-01T00:00:02.500000000Z");
    }
}
