//! What the control socket takes, as JSON. A field that is not known is refused, for it may be a misspelt one.

use limiter_policy::units::{RateSpec, SizeSpec};
use serde::{Deserialize, Serialize};

use super::{
    kept::{KeptBan, KeptOverride, OverrideKey},
    length::{check_length, parse_reason},
    moment::Moment,
    target::Target,
    text,
};

/// `POST /v1/ban`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BanRequest {
    /// Whom.
    pub prefix: Target,
    /// For how many seconds; for ever, if missing.
    #[serde(default)]
    pub for_s: Option<u64>,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// Whether covering so much is meant; see [`super::guard`].
    #[serde(default)]
    pub force: bool,
}

/// `POST /v1/unban`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnbanRequest {
    /// Whom.
    pub prefix: Target,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `POST /v1/override`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverrideRequest {
    /// The limit, by name.
    pub limit: String,
    /// For whom; for all, if missing.
    #[serde(default)]
    pub source: Option<Target>,
    /// Its rate; as the policy has it, if missing.
    #[serde(default, with = "text::option")]
    pub rate: Option<RateSpec>,
    /// Its burst or queue, likewise. At least one of both is there.
    #[serde(default, with = "text::option")]
    pub burst: Option<SizeSpec>,
    /// For how many seconds.
    pub for_s: u64,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `POST /v1/override/remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveOverrideRequest {
    /// The limit, by name.
    pub limit: String,
    /// For whom; the one for all, if missing.
    #[serde(default)]
    pub source: Option<Target>,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `POST /v1/monitor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonitorRequest {
    /// Whether to drop nothing and only count.
    pub on: bool,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `POST /v1/reload`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadRequest {
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl BanRequest {
    /// The ban that is asked for by `author`, from `now` on.
    ///
    /// # Errors
    ///
    /// Where its time or reason is out of bounds.
    pub fn ban(&self, author: &str, now: &Moment) -> Result<KeptBan, String> {
        let until = self.for_s.map(|seconds| end(seconds, now)).transpose()?;
        Ok(KeptBan {
            until,
            reason: reason(self.reason.as_deref())?,
            author: author.to_owned(),
            made: now.wall,
        })
    }
}

impl OverrideRequest {
    /// The override that is asked for by `author`, from `now` on.
    ///
    /// # Errors
    ///
    /// Where it changes nothing, or its time or reason is out of bounds.
    pub fn change(
        &self,
        author: &str,
        now: &Moment,
    ) -> Result<(OverrideKey, KeptOverride), String> {
        if self.rate.is_none() && self.burst.is_none() {
            return Err(format!(
                "{}: neither a rate nor a burst is given; give at least one of them",
                self.limit
            ));
        }
        let key = OverrideKey {
            limit: self.limit.clone(),
            source: self.source,
        };
        let change = KeptOverride {
            rate: self.rate.clone(),
            burst: self.burst.clone(),
            until: end(self.for_s, now)?,
            reason: reason(self.reason.as_deref())?,
            author: author.to_owned(),
            made: now.wall,
        };
        Ok((key, change))
    }
}

impl RemoveOverrideRequest {
    /// What to take back.
    #[must_use]
    pub fn key(&self) -> OverrideKey {
        OverrideKey {
            limit: self.limit.clone(),
            source: self.source,
        }
    }
}

/// A reason as it may be kept.
///
/// # Errors
///
/// As [`parse_reason`].
pub fn reason(text: Option<&str>) -> Result<Option<String>, String> {
    text.map(|text| parse_reason(text).map_err(|error| format!("reason: {error}")))
        .transpose()
}

fn end(seconds: u64, now: &Moment) -> Result<u64, String> {
    check_length(seconds).map_err(|error| format!("for_s: {error}"))?;
    Ok(now
        .monotonic
        .saturating_add(seconds.saturating_mul(NANOS_PER_SECOND)))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn now() -> Moment {
        Moment {
            wall: UNIX_EPOCH.into(),
            monotonic: 5 * NANOS_PER_SECOND,
        }
    }

    fn ban(json: &str) -> Result<KeptBan, String> {
        let request: BanRequest = serde_json::from_str(json).map_err(|error| error.to_string())?;
        request.ban("root", &now())
    }

    fn change(json: &str) -> Result<(OverrideKey, KeptOverride), String> {
        let request: OverrideRequest =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        request.change("root", &now())
    }

    #[test]
    fn bans_begin_now() {
        let asked = ban(r#"{"prefix":"198.51.100.7","for_s":600,"reason":"scan"}"#).unwrap();
        assert_eq!(asked.until, Some(605 * NANOS_PER_SECOND));
        assert_eq!(asked.reason.as_deref(), Some("scan"));
        assert_eq!(asked.author, "root");
        let for_ever = ban(r#"{"prefix":"198.51.100.0/24","for_s":null}"#).unwrap();
        assert_eq!(for_ever.until, None);
    }

    #[test]
    fn bad_bans_say_what_is_wrong() {
        for (json, part) in [
            ("{}", "missing field `prefix`"),
            (r#"{"prefix":"198.51.100.7/24"}"#, "198.51.100.0/24"),
            (r#"{"prefix":7}"#, "expected a string"),
            (
                r#"{"prefix":"198.51.100.7","for":600}"#,
                "unknown field `for`",
            ),
            (
                r#"{"prefix":"198.51.100.7","for_s":0}"#,
                "for_s: 0 s is out of range",
            ),
            (
                r#"{"prefix":"198.51.100.7","for_s":31536001}"#,
                "longest 365d",
            ),
            (r#"{"prefix":"198.51.100.7","for_s":-1}"#, "invalid value"),
            (r#"{"prefix":"198.51.100.7","for_s":"10m"}"#, "invalid type"),
            (
                r#"{"prefix":"198.51.100.7","reason":"a\nb"}"#,
                "reason: a reason is one line",
            ),
        ] {
            let error = ban(json).unwrap_err();
            assert!(error.contains(part), "{json}: {error}");
        }
    }

    #[test]
    fn overrides_change_rate_or_burst_or_both() {
        let (key, both) =
            change(r#"{"limit":"login","rate":"10/min","burst":"20","for_s":1800}"#).unwrap();
        assert_eq!(key.limit, "login");
        assert_eq!(key.source, None);
        assert_eq!(both.rate.unwrap().to_string(), "10/min");
        assert_eq!(both.burst.unwrap().to_string(), "20");
        assert_eq!(both.until, 1805 * NANOS_PER_SECOND);
        let (key, rate) =
            change(r#"{"limit":"login","rate":"10/min","for_s":1,"source":"::ffff:198.51.100.7"}"#)
                .unwrap();
        assert_eq!(key.source, Some("198.51.100.7".parse().unwrap()));
        assert_eq!(rate.burst, None);
    }

    #[test]
    fn bad_overrides_say_what_is_wrong() {
        for (json, part) in [
            (r#"{"limit":"login","for_s":1}"#, "at least one"),
            (
                r#"{"limit":"login","rate":"10/min"}"#,
                "missing field `for_s`",
            ),
            (
                r#"{"limit":"login","rate":"1000","for_s":1}"#,
                "a rate needs a time",
            ),
            (r#"{"limit":"login","burst":"0","for_s":1}"#, "lowest is 1"),
            (
                r#"{"limit":"login","brust":"5","for_s":1}"#,
                "unknown field `brust`",
            ),
            (r#"{"rate":"10/min","for_s":1}"#, "missing field `limit`"),
        ] {
            let error = change(json).unwrap_err();
            assert!(error.contains(part), "{json}: {error}");
        }
    }

    #[test]
    fn requests_are_read_as_they_are_written() {
        let request = OverrideRequest {
            limit: "login".to_owned(),
            source: None,
            rate: Some("10MB/s".parse().unwrap()),
            burst: Some("1MB".parse().unwrap()),
            for_s: 60,
            reason: None,
        };
        let json = serde_json::to_string(&request).unwrap();
        assert_eq!(
            json,
            r#"{"limit":"login","source":null,"rate":"10MB/s","burst":"1MB","for_s":60,"reason":null}"#
        );
        assert_eq!(
            serde_json::from_str::<OverrideRequest>(&json).unwrap(),
            request
        );
    }
}
