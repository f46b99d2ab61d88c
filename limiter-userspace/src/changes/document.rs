//! The changes as kept on disk: JSON with wall times.
//!
//! The document says when it was written, on both clocks and in which boot. Read in the same boot, the monotonic clock
//! goes on counting, so that a wall clock set meanwhile changes nothing. After a reboot the wall clock counts; if it
//! shows less than when the document was written, nothing gets longer than it had left then.

use limiter_policy::units::{RateSpec, SizeSpec};
use serde::{Deserialize, Serialize};

use super::{
    kept::{Kept, KeptBan, KeptOverride, OverrideKey},
    moment::{Moment, WallTime},
    target::Target,
    text,
};

/// The version that is written, and the only one that is read.
pub const VERSION: u64 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u64,
    written: Written,
    bans: Vec<Ban>,
    overrides: Vec<Override>,
    monitor: Option<bool>,
}

/// What any version has.
#[derive(Debug, Deserialize)]
struct Versioned {
    version: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    at: WallTime,
    monotonic_ns: u64,
    boot: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ban {
    prefix: Target,
    until: Option<WallTime>,
    reason: Option<String>,
    author: String,
    made: WallTime,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Override {
    limit: String,
    source: Option<Target>,
    #[serde(with = "text::option")]
    rate: Option<RateSpec>,
    #[serde(with = "text::option")]
    burst: Option<SizeSpec>,
    until: WallTime,
    reason: Option<String>,
    author: String,
    made: WallTime,
}

/// The document of `kept`, written at `at` in the boot called `boot`.
///
/// # Panics
///
/// Never: all of it has a form in JSON.
#[must_use]
pub fn encode(kept: &Kept, at: &Moment, boot: &str) -> Vec<u8> {
    let document = Document {
        version: VERSION,
        written: Written {
            at: at.wall,
            monotonic_ns: at.monotonic,
            boot: boot.to_owned(),
        },
        bans: kept
            .bans()
            .iter()
            .map(|(target, ban)| Ban {
                prefix: *target,
                until: ban.until.map(|until| at.wall_at(until)),
                reason: ban.reason.clone(),
                author: ban.author.clone(),
                made: ban.made,
            })
            .collect(),
        overrides: kept
            .overrides()
            .iter()
            .map(|(key, change)| Override {
                limit: key.limit.clone(),
                source: key.source,
                rate: change.rate.clone(),
                burst: change.burst.clone(),
                until: at.wall_at(change.until),
                reason: change.reason.clone(),
                author: change.author.clone(),
                made: change.made,
            })
            .collect(),
        monitor: kept.monitor,
    };
    let mut text = serde_json::to_vec_pretty(&document).expect("text keys and values only");
    text.push(b'\n');
    text
}

/// What a document says at `now` in the boot called `boot`, without what is over.
///
/// # Errors
///
/// What is wrong with it, with line and column where that can be told.
pub fn decode(document: &[u8], now: &Moment, boot: &str) -> Result<Kept, String> {
    let Versioned { version } = read(document)?;
    if version != VERSION {
        return Err(format!(
            "it is of version {version}; this program reads version {VERSION}"
        ));
    }
    let Document {
        version: _,
        written,
        bans,
        overrides,
        monitor,
    } = read(document)?;
    let mut kept = Kept::default();
    kept.monitor = monitor;
    for ban in bans {
        let ends = ban.until.map(|until| written.end(until, now, boot));
        if ends.is_some_and(|until| until <= now.monotonic) {
            continue;
        }
        let target = ban.prefix;
        let before = kept.add_ban(
            target,
            KeptBan {
                until: ends,
                reason: ban.reason,
                author: ban.author,
                made: ban.made,
            },
        )?;
        if before.is_some() {
            return Err(format!("{target} is banned twice"));
        }
    }
    for change in overrides {
        let until = written.end(change.until, now, boot);
        if until <= now.monotonic {
            continue;
        }
        let limit = change.limit.clone();
        let before = kept.add_override(
            OverrideKey {
                limit: change.limit,
                source: change.source,
            },
            KeptOverride {
                rate: change.rate,
                burst: change.burst,
                until,
                reason: change.reason,
                author: change.author,
                made: change.made,
            },
        )?;
        if before.is_some() {
            return Err(format!("{limit} is overridden twice for one source"));
        }
    }
    Ok(kept)
}

fn read<'a, T: Deserialize<'a>>(document: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(document).map_err(|error| error.to_string())
}

impl Written {
    /// When, on the monotonic clock of now, something ends whose end was written as `until`.
    fn end(&self, until: WallTime, now: &Moment, boot: &str) -> u64 {
        let left_then = until.nanos() - self.at.nanos();
        let end = if self.boot == boot && self.monotonic_ns <= now.monotonic {
            i128::from(self.monotonic_ns) + left_then
        } else {
            let left = (until.nanos() - now.wall.nanos()).min(left_then);
            i128::from(now.monotonic) + left
        };
        u64::try_from(end.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, Ipv6Addr},
        time::{Duration, UNIX_EPOCH},
    };

    use ipnet::{Ipv4Net, Ipv6Net};
    use proptest::{collection::btree_map, option, prelude::*};

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const DAY: u64 = 86_400 * SECOND;

    /// A moment of 2026.
    fn moment(seconds: u64, monotonic: u64) -> Moment {
        Moment {
            wall: (UNIX_EPOCH + Duration::from_secs(1_790_000_000 + seconds)).into(),
            monotonic,
        }
    }

    fn one_ban(until: u64) -> Kept {
        let mut kept = Kept::default();
        let ban = KeptBan {
            until: Some(until),
            reason: None,
            author: "root".to_owned(),
            made: UNIX_EPOCH.into(),
        };
        kept.add_ban("198.51.100.7".parse().unwrap(), ban).unwrap();
        kept
    }

    /// When a ban of ten minutes, made at 100 s of one boot, ends after the document was read at `now` in `boot`.
    fn end_of_ten_minutes(now: &Moment, boot: &str) -> Option<u64> {
        let document = encode(&one_ban(700 * SECOND), &moment(0, 100 * SECOND), "boot-1");
        let kept = decode(&document, now, boot).unwrap();
        kept.next_end()
    }

    #[test]
    fn in_one_boot_the_monotonic_clock_counts_wherever_the_wall_clock_went() {
        let day = DAY / SECOND;
        for wall in [60, day, day + 60] {
            let now = moment(wall, 160 * SECOND);
            assert_eq!(end_of_ten_minutes(&now, "boot-1"), Some(700 * SECOND));
        }
        let mut back = moment(0, 160 * SECOND);
        back.wall = back.wall.plus(-i128::from(DAY));
        assert_eq!(end_of_ten_minutes(&back, "boot-1"), Some(700 * SECOND));
        let over = moment(0, 700 * SECOND);
        assert_eq!(end_of_ten_minutes(&over, "boot-1"), None);
    }

    #[test]
    fn after_a_reboot_the_wall_clock_counts() {
        let now = moment(240, 5 * SECOND);
        assert_eq!(
            end_of_ten_minutes(&now, "boot-2"),
            Some((5 + 600 - 240) * SECOND)
        );
        assert_eq!(
            end_of_ten_minutes(&moment(600, 5 * SECOND), "boot-2"),
            None,
            "over while the machine was off"
        );
    }

    #[test]
    fn a_wall_clock_that_lost_its_time_makes_nothing_longer() {
        let now = Moment {
            wall: UNIX_EPOCH.into(),
            monotonic: 5 * SECOND,
        };
        assert_eq!(end_of_ten_minutes(&now, "boot-2"), Some(605 * SECOND));
    }

    #[test]
    fn a_document_is_readable() {
        let mut kept = one_ban(700 * SECOND);
        kept.monitor = Some(true);
        let key = OverrideKey {
            limit: "login".to_owned(),
            source: Some("2001:db8::/48".parse().unwrap()),
        };
        let change = KeptOverride {
            rate: Some("100Mbit/s".parse().unwrap()),
            burst: None,
            until: 1000 * SECOND,
            reason: Some("sale".to_owned()),
            author: "alice".to_owned(),
            made: moment(0, 0).wall,
        };
        kept.add_override(key, change).unwrap();
        let text = encode(&kept, &moment(0, 100 * SECOND), "boot-1");
        assert_eq!(
            String::from_utf8(text).unwrap(),
            r#"{
  "version": 1,
  "written": {
    "at": "2026-09-21T14:13:20Z",
    "monotonic_ns": 100000000000,
    "boot": "boot-1"
  },
  "bans": [
    {
      "prefix": "198.51.100.7",
      "until": "2026-09-21T14:23:20Z",
      "reason": null,
      "author": "root",
      "made": "1970-01-01T00:00:00Z"
    }
  ],
  "overrides": [
    {
      "limit": "login",
      "source": "2001:db8::/48",
      "rate": "100Mbit/s",
      "burst": null,
      "until": "2026-09-21T14:28:20Z",
      "reason": "sale",
      "author": "alice",
      "made": "2026-09-21T14:13:20Z"
    }
  ],
  "monitor": true
}
"#
        );
    }

    #[test]
    fn faulty_documents_say_what_is_wrong() {
        let good = encode(&one_ban(700 * SECOND), &moment(0, 0), "boot-1");
        let good = String::from_utf8(good).unwrap();
        let swap = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            good.replacen(from, to, 1)
        };
        let twice = r#"{"prefix":"198.51.100.7","until":null,"reason":null,"author":"a","made":"2026-01-01T00:00:00Z"},"#;
        for (document, part) in [
            (String::new(), "EOF"),
            ("\0".repeat(512), "expected value at line 1 column 1"),
            (good[..good.len() / 2].to_owned(), "EOF"),
            ("[]".to_owned(), "invalid"),
            ("{}".to_owned(), "missing field `version`"),
            (swap("1,", "2,"), "version 2; this program reads version 1"),
            (swap("1,", "\"1\","), "invalid type: string"),
            (swap("198.51.100.7", "198.51.100.7/24"), "198.51.100.0/24"),
            (swap("198.51.100.7", "here"), "not an address"),
            (swap("author", "autor"), "unknown field `autor`"),
            (swap("\"made\": \"1970", "\"made\": \"x970"), "not a time"),
            (
                swap("\"bans\": [", &format!("\"bans\": [{twice}")),
                "banned twice",
            ),
            (format!("{good}{good}"), "trailing characters"),
            (swap("null", "7"), "invalid type: integer"),
        ] {
            let error = decode(document.as_bytes(), &moment(0, 0), "boot-1").unwrap_err();
            assert!(error.contains(part), "{part}: {error}");
        }
        let latin: &[u8] = b"{\"version\":1,\"who\":\"\xe9\"}";
        assert!(decode(latin, &moment(0, 0), "boot-1").is_err());
    }

    fn targets() -> impl Strategy<Value = Target> {
        prop_oneof![
            (any::<u32>(), 0..=32_u8).prop_map(|(bits, length)| Target::new(
                Ipv4Net::new_assert(Ipv4Addr::from_bits(bits), length).into()
            )),
            // Global addresses, so that none is IPv4 in disguise.
            (any::<u128>(), 3..=128_u8).prop_map(|(bits, length)| Target::new(
                Ipv6Net::new_assert(Ipv6Addr::from_bits(bits >> 3 | 1 << 125), length).into()
            )),
        ]
    }

    fn walls() -> impl Strategy<Value = WallTime> {
        (0..4_000_000_000_u64, 0..1_000_000_000_u32)
            .prop_map(|(s, ns)| (UNIX_EPOCH + Duration::new(s, ns)).into())
    }

    /// Ends within a year after one day of uptime.
    fn ends() -> impl Strategy<Value = u64> {
        DAY + 1..366 * DAY
    }

    prop_compose! {
        fn bans()(
            until in option::of(ends()),
            reason in option::of(".*"),
            author in ".*",
            made in walls(),
        ) -> KeptBan {
            KeptBan { until, reason, author, made }
        }
    }

    prop_compose! {
        fn overrides()(
            rate in option::of(1..1_000_000_000_u64),
            burst in option::of(1..1_u64 << 42),
            until in ends(),
            reason in option::of(".*"),
            author in ".*",
            made in walls(),
        ) -> KeptOverride {
            KeptOverride {
                rate: rate.map(|n| format!("{n}/s").parse().unwrap()),
                burst: burst.map(|n| n.to_string().parse().unwrap()),
                until, reason, author, made,
            }
        }
    }

    prop_compose! {
        fn kepts()(
            bans in btree_map(targets(), bans(), 0..8),
            overrides in btree_map((".*", option::of(targets())), overrides(), 0..8),
            monitor in any::<Option<bool>>(),
        ) -> Kept {
            let mut kept = Kept::default();
            kept.monitor = monitor;
            for (target, ban) in bans {
                kept.add_ban(target, ban).unwrap();
            }
            for ((limit, source), change) in overrides {
                kept.add_override(OverrideKey { limit, source }, change).unwrap();
            }
            kept
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(kept in kepts(), wall in walls(), step in 0..DAY, other_boot: bool) {
            let written = Moment { wall, monotonic: DAY - step };
            let document = encode(&kept, &written, "boot-1");
            // After a reboot, or not; no time is lost either way.
            let boot = if other_boot { "boot-2" } else { "boot-1" };
            prop_assert_eq!(decode(&document, &written, boot), Ok(kept.clone()));
            let later = Moment { wall: wall.plus(i128::from(step)), monotonic: DAY };
            prop_assert_eq!(decode(&document, &later, boot), Ok(kept));
        }

        #[test]
        fn no_broken_document_is_taken(kept in kepts(), cut in any::<prop::sample::Index>()) {
            let document = encode(&kept, &moment(0, 0), "boot-1");
            // All but the last newline matters.
            let cut = cut.index(document.len() - 1);
            prop_assert!(decode(&document[..cut], &moment(0, 0), "boot-1").is_err());
        }
    }
}
