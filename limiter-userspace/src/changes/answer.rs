//! What the control socket tells about changes, as JSON.

use limiter_common::standing::Ban;
use serde::{Deserialize, Serialize};

use super::{
    kept::{Kept, KeptBan, KeptOverride, OverrideKey},
    moment::{Moment, WallTime},
    target::Target,
};

/// Any change that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// What is now in force.
    pub done: String,
    /// What whoever asked should know besides, such as that it will not survive a restart.
    pub notices: Vec<String>,
}

/// `GET /v1/bans`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bans {
    /// Bans by operators and by limits, sorted by prefix.
    pub bans: Vec<BanShown>,
    /// Prefixes of the policy's own list, which are not shown.
    pub in_policy: u64,
}

/// A ban.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanShown {
    /// Whom.
    pub prefix: Target,
    /// Who made it.
    pub by: Maker,
    /// The user, of a ban by an operator.
    pub author: Option<String>,
    /// The limit, of a ban by a limit.
    pub limit: Option<String>,
    /// Why, where somebody has said so.
    pub reason: Option<String>,
    /// Since when.
    pub made: WallTime,
    /// Until when; null for ever.
    pub until: Option<WallTime>,
    /// Seconds left until then, rounded up.
    pub remaining_s: Option<u64>,
}

/// Who makes bans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Maker {
    /// Somebody, with `limiter ban`.
    Operator,
    /// A limit with `on_exceed`.
    Limit,
}

/// `GET /v1/overrides`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// The overrides, sorted by limit.
    pub overrides: Vec<OverrideShown>,
}

/// An override.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverrideShown {
    /// The limit.
    pub limit: String,
    /// For whom; null for all.
    pub source: Option<Target>,
    /// Its rate; null for that of the policy.
    pub rate: Option<String>,
    /// Its burst or queue, likewise.
    pub burst: Option<String>,
    /// Who made it.
    pub author: String,
    /// Why, where somebody has said so.
    pub reason: Option<String>,
    /// Since when.
    pub made: WallTime,
    /// Until when.
    pub until: WallTime,
    /// Seconds left until then, rounded up.
    pub remaining_s: u64,
    /// Why the policy in force has no use for it, such as that the limit is gone.
    pub idle: Option<String>,
}

impl BanShown {
    /// A ban by an operator.
    #[must_use]
    pub fn by_operator(prefix: Target, ban: &KeptBan, now: &Moment) -> Self {
        Self {
            prefix,
            by: Maker::Operator,
            author: Some(ban.author.clone()),
            limit: None,
            reason: ban.reason.clone(),
            made: ban.made,
            until: ban.until.map(|until| now.wall_at(until).seconds()),
            remaining_s: ban.until.map(|until| now.seconds_until(until)),
        }
    }

    /// A ban that the limit of this name has made.
    #[must_use]
    pub fn by_limit(prefix: Target, ban: &Ban, limit: &str, now: &Moment) -> Self {
        Self {
            prefix,
            by: Maker::Limit,
            author: None,
            limit: Some(limit.to_owned()),
            reason: None,
            made: now.wall_at(ban.since).seconds(),
            until: Some(now.wall_at(ban.until).seconds()),
            remaining_s: Some(now.seconds_until(ban.until)),
        }
    }
}

impl Bans {
    /// All bans: of operators, of limits, and how many the policy lists.
    #[must_use]
    pub fn new(kept: &Kept, by_limits: Vec<BanShown>, in_policy: u64, now: &Moment) -> Self {
        let operators = kept.bans().iter();
        let mut bans: Vec<BanShown> = operators
            .map(|(target, ban)| BanShown::by_operator(*target, ban, now))
            .chain(by_limits)
            .collect();
        bans.sort_by_key(|ban| ban.prefix);
        Self { bans, in_policy }
    }
}

impl OverrideShown {
    /// An override, and why it is of no use, if it is not.
    #[must_use]
    pub fn new(
        key: &OverrideKey,
        change: &KeptOverride,
        idle: Option<String>,
        now: &Moment,
    ) -> Self {
        Self {
            limit: key.limit.clone(),
            source: key.source,
            rate: change.rate.as_ref().map(ToString::to_string),
            burst: change.burst.as_ref().map(ToString::to_string),
            author: change.author.clone(),
            reason: change.reason.clone(),
            made: change.made,
            until: now.wall_at(change.until).seconds(),
            remaining_s: now.seconds_until(change.until),
            idle,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A moment of 2026, an hour after the machine started.
    fn now() -> Moment {
        Moment {
            wall: (UNIX_EPOCH + Duration::from_secs(1_790_000_000)).into(),
            monotonic: 3_600 * SECOND,
        }
    }

    fn kept() -> Kept {
        let mut kept = Kept::default();
        let ban = KeptBan {
            until: Some(3_660 * SECOND),
            reason: Some("scan".to_owned()),
            author: "root".to_owned(),
            made: now().wall,
        };
        kept.add_ban("198.51.100.7".parse().unwrap(), ban).unwrap();
        kept
    }

    #[test]
    fn bans_of_all_makers_in_one_list() {
        let made_by_limit = Ban {
            until: 3_601 * SECOND,
            since: 3_000 * SECOND,
            limit: 4,
            repeats: 0,
        };
        let by_limit =
            BanShown::by_limit("10.0.0.1".parse().unwrap(), &made_by_limit, "login", &now());
        let bans = Bans::new(&kept(), vec![by_limit], 3, &now());
        assert_eq!(
            serde_json::to_string_pretty(&bans).unwrap(),
            r#"{
  "bans": [
    {
      "prefix": "10.0.0.1",
      "by": "limit",
      "author": null,
      "limit": "login",
      "reason": null,
      "made": "2026-09-21T14:03:20Z",
      "until": "2026-09-21T14:13:21Z",
      "remaining_s": 1
    },
    {
      "prefix": "198.51.100.7",
      "by": "operator",
      "author": "root",
      "limit": null,
      "reason": "scan",
      "made": "2026-09-21T14:13:20Z",
      "until": "2026-09-21T14:14:20Z",
      "remaining_s": 60
    }
  ],
  "in_policy": 3
}"#
        );
    }

    #[test]
    fn a_wall_clock_set_while_running_moves_what_is_shown_not_what_is_left() {
        let day = 86_400 * i128::from(SECOND);
        for step in [-day, day] {
            let mut later = now();
            later.wall = later.wall.plus(step);
            later.monotonic += 20 * SECOND;
            let shown = Bans::new(&kept(), vec![], 0, &later).bans.remove(0);
            assert_eq!(shown.remaining_s, Some(40));
            let until = later.wall.plus(40 * i128::from(SECOND));
            assert_eq!(shown.until, Some(until));
            assert_eq!(kept().expire(later.monotonic).bans, []);
        }
    }
}
