//! Other room in the tables: other maps, filled with what the old ones know, and then put in force without a gap.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use limiter_common::state::Slot;
use limiter_policy::{
    compile::{Compiled, compile},
    identities::Identities,
    spec::PolicySpec,
};
use tracing::info;

use super::{Control, PrefixFiles, Room, changes, reload};
use crate::kernel::{monotonic_now, sources::SourceCopy, tables::Tables};

impl Control {
    /// Puts a policy in force that needs other room in the tables. Buckets, logs, bans and counters go on; what a source
    /// does in the moment between the last look at it and the switch is forgotten.
    pub(super) fn reshape(
        &self,
        spec: PolicySpec,
        prefixes: PrefixFiles,
        mut identities: Identities,
        compiled: Compiled,
        room: Room,
    ) -> Result<usize> {
        let (mut instances, tables) = self.machine.load(room)?;
        let old = self.enforcer();
        let enforcer = Arc::new(old.successor(Arc::clone(&tables)));
        let began = monotonic_now();
        copy_all(old.tables(), &tables)?;
        let mut written = enforcer.apply(compiled, self.wanted_monitor(&spec))?;
        // From here on nobody changes anything else.
        let mut wanted = self.wanted();
        let now = monotonic_now();
        let again = compile(
            &spec,
            prefixes.loaded(),
            &changes(&wanted.kept, &spec, now),
            &mut identities,
            now,
        )
        .map_err(|error| reload::locate(&self.source, &error))?;
        let monitor = wanted.kept.monitor.unwrap_or(spec.monitor);
        written += enforcer.apply(again, monitor)?;
        let recent = copy_sources(old.tables(), &tables, began)?;
        self.machine.switch(&mut instances)?;
        let mut engine = self.engine_mut();
        *engine = engine.next(enforcer, room, self.machine.interfaces())?;
        wanted.spec = Arc::new(spec);
        wanted.prefixes = prefixes;
        wanted.identities = identities;
        info!(
            ?room,
            recent, "other tables are in force, with what the old ones knew"
        );
        Ok(written)
    }

    fn wanted_monitor(&self, spec: &PolicySpec) -> bool {
        self.wanted().kept.monitor.unwrap_or(spec.monitor)
    }
}

/// Copies everything that verdicts depend on but the policy.
fn copy_all(old: &Tables, new: &Tables) -> Result<()> {
    new.copy_meters(old)?;
    let bans = old.bans.entries().context("cannot read bans")?;
    for (key, ban) in bans {
        new.bans.set(&key, &ban).context("cannot copy a ban")?;
    }
    let logs = old.logs.entries().context("cannot read the sliding logs")?;
    for (key, log) in logs {
        new.logs
            .set(&key, &log)
            .context("cannot copy a sliding log")?;
    }
    new.copy_needs(old)?;
    copy_sources(old, new, 0).map(drop)
}

/// Copies the sources seen since a time, and what everyone shares; how many sources.
fn copy_sources(old: &Tables, new: &Tables, since: u64) -> Result<u64> {
    let mut copied = 0;
    let mut failed = None;
    old.sources.walk_all(|key, copy| {
        if copy.head.last_seen < since || failed.is_some() {
            return;
        }
        let SourceCopy {
            mut head,
            mut slots,
        } = copy;
        // Who it is, is looked up anew under the new policy.
        head.standing = 0;
        slots.resize(new.sources.slots() as usize, Slot::default());
        match new.sources.set(&key, &SourceCopy { head, slots }) {
            Ok(()) => copied += 1,
            Err(error) => failed = Some(error),
        }
    })?;
    if let Some(error) = failed {
        return Err(error.context("cannot copy the source table"));
    }
    new.copy_shared(old)?;
    Ok(copied)
}
