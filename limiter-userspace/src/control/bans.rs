//! Bans by operators, and those that limits have made.

use std::sync::atomic::Ordering;

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use limiter_common::{source::SourceKey, standing::Ban};
use limiter_policy::{compile::edit_lists as edit, prefix::Prefix};
use serde_json::{Value, json};
use tracing::{info, warn};

use super::{Control, Refused};
use crate::{
    audit::{What, who::Who},
    changes::{
        answer::{BanShown, Bans, Changed},
        guard,
        moment::Moment,
        own,
        request::{BanRequest, UnbanRequest},
        target::Target,
    },
    kernel::monotonic_now,
    report::BanCounts,
};

impl Control {
    /// Bans an address or prefix.
    ///
    /// # Errors
    ///
    /// Where that would be a mistake.
    pub fn ban(&self, request: &BanRequest, who: &Who) -> Result<Changed> {
        let now = Moment::now(monotonic_now());
        let target = request.prefix;
        let ban = request.ban(&who.name(), &now).map_err(Refused)?;
        let guarded = own::guarded().context("cannot tell this host's own addresses")?;
        let mut notices = {
            let wanted = self.wanted();
            let allow = &wanted.prefixes.loaded().allow;
            guard::ban(target, request.force, &guarded, allow).map_err(Refused)?
        };
        notices.extend(self.part_of_source(target));
        let why = ban.reason.clone();
        let after = json!(BanShown::by_operator(target, &ban, &now));
        let before = {
            let mut wanted = self.wanted();
            let before = wanted.kept.add_ban(target, ban.clone()).map_err(Refused)?;
            before.map_or(Value::Null, |before| {
                json!(BanShown::by_operator(target, &before, &now))
            })
        };
        if let Err(error) = self.enforce_ban(target) {
            // What is not in force is not kept.
            drop(self.wanted().kept.remove_ban(target));
            return Err(error);
        }
        notices.extend(self.keep());
        info!(who = %who, %target, seconds = request.for_s, "ban");
        self.record(who, What::Ban, before, after, why);
        let done = match request.for_s {
            Some(seconds) => format!("{target} is banned for {seconds} s"),
            None => format!("{target} is banned"),
        };
        Ok(Changed { done, notices })
    }

    /// Who has banned an address: an operator, the policy, or a limit.
    #[must_use]
    pub fn banned_by(&self, address: IpAddr, by_limit: Option<&Ban>) -> String {
        let address = Target::from(address);
        let wanted = self.wanted();
        let bans = wanted.kept.bans().iter();
        let of_operator = bans
            .filter(|(target, _)| target.covers(address))
            .max_by_key(|(target, _)| target.net().prefix_len());
        if let Some((target, ban)) = of_operator {
            let why = ban.reason.as_deref().unwrap_or("no reason given");
            return format!("{} ({target}: {why})", ban.author);
        }
        let prefix = Prefix::from(address.net());
        let listed = &wanted.prefixes.loaded().ban;
        let of_policy = listed.iter().filter(|banned| banned.covers(&prefix));
        if let Some(banned) = of_policy.max_by_key(|banned| banned.length) {
            return format!("the policy ({banned})");
        }
        drop(wanted);
        match by_limit {
            Some(ban) => format!("limit {}", self.limit_of(ban)),
            None => "nobody any more".to_owned(),
        }
    }

    /// The name of the limit that has made a ban.
    fn limit_of(&self, ban: &Ban) -> String {
        let found = self.enforcer().in_force().and_then(|(compiled, _)| {
            let mut named = compiled.limits.iter().zip(&compiled.policy.limits);
            let limit = named.find(|(_, limit)| limit.counter == ban.limit);
            limit.map(|(limit, _)| limit.name.clone())
        });
        found.unwrap_or_else(|| "that is gone".to_owned())
    }

    /// A notice where a target is only a part of what shares a bucket.
    fn part_of_source(&self, target: Target) -> Option<String> {
        let prefix = Prefix::from(target.net());
        let (compiled, _) = self.enforcer().in_force()?;
        let key = SourceKey::of(prefix.address, &compiled.policy.prefixes).0;
        (u64::from(prefix.length) > key.length).then(|| {
            format!("the rest of its source, {key}, is not banned: whoever has it may go on from another address; ban {key} for all of it")
        })
    }

    /// Lifts a ban: an operator's, and those of limits on sources inside the target.
    ///
    /// # Errors
    ///
    /// Where there is none.
    pub fn unban(&self, request: &UnbanRequest, who: &Who) -> Result<Changed> {
        let now = Moment::now(monotonic_now());
        let why = crate::changes::request::reason(request.reason.as_deref()).map_err(Refused)?;
        let target = request.prefix;
        let by_limits = self.lift_limit_bans(target)?;
        let removed = self.wanted().kept.remove_ban(target);
        let before = match removed {
            Ok(ban) => {
                self.enforce_ban(target)?;
                json!(BanShown::by_operator(target, &ban, &now))
            }
            Err(reason) if by_limits == 0 => return Err(Refused(reason).into()),
            Err(_) => json!({ "by": "limit", "sources": by_limits }),
        };
        let notices = self.keep();
        info!(who = %who, %target, "unban");
        self.record(who, What::Unban, before, Value::Null, why);
        Ok(Changed {
            done: format!("{target} is banned no more"),
            notices,
        })
    }

    /// The bans in force.
    ///
    /// # Errors
    ///
    /// Where the maps cannot be read.
    pub fn bans(&self) -> Result<Bans> {
        let now = Moment::now(monotonic_now());
        let (compiled, _) = self
            .enforcer()
            .in_force()
            .context("no policy is in force yet")?;
        let of_limits = self.limit_bans()?;
        let by_limits = of_limits
            .iter()
            .filter(|(_, ban)| ban.until > now.monotonic)
            .map(|(key, ban)| {
                let mut named = compiled.limits.iter().zip(&compiled.policy.limits);
                let limit = named.find(|(_, limit)| limit.counter == ban.limit);
                let name = limit.map_or("a limit that is gone", |(limit, _)| limit.name.as_str());
                BanShown::by_limit(target(key), ban, name, &now)
            });
        let wanted = self.wanted();
        let in_policy = wanted.prefixes.loaded().ban.len() as u64;
        Ok(Bans::new(
            &wanted.kept,
            by_limits.collect(),
            in_policy,
            &now,
        ))
    }

    /// How many bans are in force.
    #[must_use]
    pub fn bans_counted(&self) -> BanCounts {
        let wanted = self.wanted();
        BanCounts {
            operator: wanted.kept.bans().len() as u64,
            limit: self.limit_bans.load(Ordering::Relaxed),
            policy: wanted.prefixes.loaded().ban.len() as u64,
        }
    }

    /// Puts what is kept of a target's ban in force: that there is one, or none.
    pub(super) fn enforce_ban(&self, target: Target) -> Result<()> {
        let now = monotonic_now();
        let wanted = self.wanted();
        let (changes, _) = wanted.kept.changes(now, |_, _| Err(String::new()));
        let edited = self.enforcer().edit_lists(|lists, keys| {
            edit(
                lists,
                wanted.prefixes.loaded(),
                &changes,
                keys,
                target.net().into(),
                now,
            )
        })?;
        drop(wanted);
        if edited {
            return Ok(());
        }
        self.refresh()
    }

    fn limit_bans(&self) -> Result<Vec<(SourceKey, Ban)>> {
        let bans = self.tables().bans.entries();
        bans.context("cannot read the bans of limits")
    }

    fn lift_limit_bans(&self, lifted: Target) -> Result<usize> {
        let tables = self.tables();
        let bans = &tables.bans;
        let mut count = 0;
        for (key, _) in self.limit_bans()? {
            if lifted.covers(target(&key)) && bans.remove(&key).context("cannot lift a ban")? {
                count += 1;
            }
        }
        Ok(count)
    }

    /// Makes room in the table of bans that limits have made: a ban over for as long as it lasted counts no more.
    pub(super) fn forget_old_bans(&self, now: u64) -> Result<()> {
        let tables = self.tables();
        let bans = &tables.bans;
        let (mut forgotten, mut in_force) = (0, 0);
        for (key, ban) in self.limit_bans()? {
            in_force += u64::from(ban.until > now);
            let length = ban.until.saturating_sub(ban.since);
            if now > ban.until.saturating_add(length) {
                bans.remove(&key).context("cannot forget a ban")?;
                forgotten += 1;
            }
        }
        self.limit_bans.store(in_force, Ordering::Relaxed);
        if forgotten > 0 {
            info!(forgotten, "bans of limits are over");
        }
        Ok(())
    }
}

/// The source of a key, as people write it.
fn target(key: &SourceKey) -> Target {
    let length = u8::try_from(key.length & 0xff).unwrap_or(128);
    Target::from(Prefix::new(key.address, length))
}

/// Says which bans of the policy's lists were left out.
pub(super) fn warn_of_left_out(left_out: usize) {
    if left_out > 0 {
        warn!(
            left_out,
            "banned prefixes that cover this host or its gateway were left out"
        );
    }
}
