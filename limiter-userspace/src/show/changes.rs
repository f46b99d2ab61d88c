//! Bans, overrides and what was changed, for people.

use super::{
    line,
    table::{printable, table},
};
use crate::{
    changes::answer::{BanShown, Bans, Changed, OverrideShown, Overrides},
    units,
};

/// Any change.
#[must_use]
pub fn changed(Changed { done, notices }: &Changed) -> String {
    let mut out = String::new();
    line(&mut out, format_args!("{}", printable(done)));
    for notice in notices {
        line(&mut out, format_args!("note: {}", printable(notice)));
    }
    out
}

/// `limiter bans`.
#[must_use]
pub fn bans(Bans { bans, in_policy }: &Bans) -> String {
    let mut out = if bans.is_empty() {
        "no bans by operators or limits\n".to_owned()
    } else {
        let rows: Vec<[String; 5]> = bans.iter().map(ban_row).collect();
        table(["prefix", "by", "until", "left", "reason"], &rows)
    };
    if *in_policy > 0 {
        line(
            &mut out,
            format_args!("and {in_policy} prefixes of the policy's `ban`"),
        );
    }
    out
}

fn ban_row(ban: &BanShown) -> [String; 5] {
    let BanShown {
        prefix,
        by: _,
        author,
        limit,
        reason,
        made: _,
        until,
        remaining_s,
    } = ban;
    let by = match limit {
        Some(limit) => format!("limit {limit}"),
        None => author.clone().unwrap_or_default(),
    };
    [
        prefix.to_string(),
        by,
        until.map_or_else(|| "unbanned".to_owned(), |until| until.to_string()),
        remaining_s.map_or_else(String::new, left),
        reason.clone().unwrap_or_default(),
    ]
}

/// `limiter overrides`.
#[must_use]
pub fn overrides(Overrides { overrides }: &Overrides) -> String {
    if overrides.is_empty() {
        return "no overrides\n".to_owned();
    }
    let rows: Vec<[String; 8]> = overrides.iter().map(override_row).collect();
    let titles = [
        "limit", "source", "rate", "burst", "by", "until", "left", "reason",
    ];
    let mut out = table(titles, &rows);
    for OverrideShown { limit, idle, .. } in overrides {
        if let Some(why) = idle {
            line(
                &mut out,
                format_args!("NOT IN FORCE: {}: {}", printable(limit), printable(why)),
            );
        }
    }
    out
}

fn override_row(change: &OverrideShown) -> [String; 8] {
    let OverrideShown {
        limit,
        source,
        rate,
        burst,
        author,
        reason,
        made: _,
        until,
        remaining_s,
        idle: _,
    } = change;
    let as_before = || "as in policy".to_owned();
    [
        limit.clone(),
        source.map_or_else(|| "all".to_owned(), |source| source.to_string()),
        rate.clone().unwrap_or_else(as_before),
        burst.clone().unwrap_or_else(as_before),
        author.clone(),
        until.to_string(),
        left(*remaining_s),
        reason.clone().unwrap_or_default(),
    ]
}

fn left(seconds: u64) -> String {
    units::duration(seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::answer::Maker;

    #[test]
    fn bans_in_a_table() {
        let made = "2026-12-01T08:00:00Z".parse().unwrap();
        let operator = BanShown {
            prefix: "198.51.100.7".parse().unwrap(),
            by: Maker::Operator,
            author: Some("alice".to_owned()),
            limit: None,
            reason: Some("scan, ticket 7".to_owned()),
            made,
            until: None,
            remaining_s: None,
        };
        let limit = BanShown {
            prefix: "2001:db8:1:2::/64".parse().unwrap(),
            by: Maker::Limit,
            author: None,
            limit: Some("login-per-source".to_owned()),
            reason: None,
            made,
            until: Some("2026-12-01T08:10:00Z".parse().unwrap()),
            remaining_s: Some(540),
        };
        let shown = bans(&Bans {
            bans: vec![operator, limit],
            in_policy: 1_000_000,
        });
        assert_eq!(
            shown,
            "\
prefix             by                      until                 left       reason
198.51.100.7       alice                   unbanned                         scan, ticket 7
2001:db8:1:2::/64  limit login-per-source  2026-12-01T08:10:00Z  9 min 0 s
and 1000000 prefixes of the policy's `ban`
"
        );
        let none = Bans {
            bans: vec![],
            in_policy: 0,
        };
        assert_eq!(bans(&none), "no bans by operators or limits\n");
    }

    #[test]
    fn overrides_in_a_table() {
        let change = OverrideShown {
            limit: "login".to_owned(),
            source: None,
            rate: Some("10/min".to_owned()),
            burst: None,
            author: "root".to_owned(),
            reason: Some("sale".to_owned()),
            made: "2026-12-01T08:00:00Z".parse().unwrap(),
            until: "2026-12-01T08:30:00Z".parse().unwrap(),
            remaining_s: 1800,
            idle: Some("the policy has no limit of that name".to_owned()),
        };
        let shown = overrides(&Overrides {
            overrides: vec![change],
        });
        assert_eq!(
            shown,
            "\
limit  source  rate    burst         by    until                 left        reason
login  all     10/min  as in policy  root  2026-12-01T08:30:00Z  30 min 0 s  sale
NOT IN FORCE: login: the policy has no limit of that name
"
        );
        let none = Overrides { overrides: vec![] };
        assert_eq!(overrides(&none), "no overrides\n");
    }

    #[test]
    fn changes_with_their_notices() {
        let shown = changed(&Changed {
            done: "198.51.100.7 is banned until 2026-12-01T08:10:00Z".to_owned(),
            notices: vec!["it will not survive a restart".to_owned()],
        });
        assert_eq!(
            shown,
            "198.51.100.7 is banned until 2026-12-01T08:10:00Z\nnote: it will not survive a restart\n"
        );
    }
}
