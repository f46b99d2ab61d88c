//! Durations: `30s`, `10m`, `1h30m`, `7d`.

use std::time::Duration;

use super::{fault::Fault, reader::Node};

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// A duration in nanoseconds.
pub(super) fn read(node: &Node<'_>) -> Result<u64, Fault> {
    let text = node.string("a duration such as \"10m\"")?;
    let duration = humantime::parse_duration(text).map_err(
        |_say_it_in_our_words: humantime::DurationError| {
            node.fault(format!(
                "`{text}` is not a duration: write for example 30s, 10m, 1h30m or 7d"
            ))
        },
    )?;
    if !(SHORTEST..=LONGEST).contains(&duration) {
        return Err(node.fault(format!("`{text}` is out of range: 1s to 365d")));
    }
    u64::try_from(duration.as_nanos())
        .map_err(|_too_long: std::num::TryFromIntError| node.fault("out of range: 1s to 365d"))
}
