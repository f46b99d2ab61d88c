//! How long a change lasts, and why it is made: what both the command line and the socket take.

use std::{ops::RangeInclusive, time::Duration};

/// Seconds that a ban or an override may last: up to a year.
pub const LENGTHS: RangeInclusive<u64> = 1..=365 * 86_400;

/// The longest reason, in characters. It is kept in the state, in the audit log and shown in tables.
pub const LONGEST_REASON: usize = 256;

/// Seconds from text such as `10m` or `1h30m`.
///
/// # Errors
///
/// Where the text has no unit, or the time is no whole number of seconds or outside [`LENGTHS`].
pub fn parse_length(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "a bare number has no unit: write {text}s, {text}m, {text}h or {text}d"
        ));
    }
    let length: Duration = humantime::parse_duration(text)
        .map_err(|error| format!("not a time: {error}; write for example 10m or 1h30m"))?;
    if length.subsec_nanos() != 0 {
        return Err("not a whole number of seconds; the shortest is 1s".to_owned());
    }
    check_length(length.as_secs())?;
    Ok(length.as_secs())
}

/// Refuses what is outside [`LENGTHS`].
///
/// # Errors
///
/// Says the bounds.
pub fn check_length(seconds: u64) -> Result<(), String> {
    if LENGTHS.contains(&seconds) {
        return Ok(());
    }
    Err(format!(
        "{seconds} s is out of range: the shortest is 1s, the longest 365d"
    ))
}

/// A reason as it may be kept.
///
/// # Errors
///
/// Where it is longer than [`LONGEST_REASON`], or has control characters, which could forge lines of a log or table.
pub fn parse_reason(text: &str) -> Result<String, String> {
    let length = text.chars().count();
    if length > LONGEST_REASON {
        return Err(format!(
            "a reason of {length} characters; the longest has {LONGEST_REASON}"
        ));
    }
    if text.chars().any(char::is_control) {
        return Err("a reason is one line of text, without control characters".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_as_people_write_them() {
        for (text, seconds) in [
            ("1s", 1),
            ("10m", 600),
            ("10min", 600),
            ("1h30m", 5400),
            ("2h 30m", 9000),
            (" 1d ", 86_400),
            ("365d", 365 * 86_400),
        ] {
            assert_eq!(parse_length(text), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn lengths_that_are_refused_say_what_to_write() {
        for (text, part) in [
            ("10", "write 10s, 10m, 10h or 10d"),
            ("0", "write 0s"),
            ("", "10m or 1h30m"),
            ("ten", "10m or 1h30m"),
            ("-5m", "10m or 1h30m"),
            ("5x", "10m or 1h30m"),
            ("0s", "the shortest is 1s"),
            ("1500ms", "whole number of seconds"),
            ("366d", "the longest 365d"),
            ("1000y", "the longest 365d"),
            ("99999999999999999999999d", "10m or 1h30m"),
        ] {
            let error = parse_length(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn reasons_are_one_bounded_line() {
        assert!(parse_reason("scans, see ticket #7: ünïcode").is_ok());
        assert!(parse_reason("a\nb").unwrap_err().contains("one line"));
        assert!(parse_reason("\u{1b}[2J").is_err());
        assert!(parse_reason(&"x".repeat(256)).is_ok());
        let error = parse_reason(&"x".repeat(257)).unwrap_err();
        assert!(error.contains("257") && error.contains("256"), "{error}");
    }
}
