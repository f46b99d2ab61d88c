//! A copy of the live state that concerns one address, to run the kernel's functions on.

use anyhow::{Context as _, Result};
use limiter_common::{
    address::Address,
    judge::LogKey,
    policy::Place,
    source::SourceKey,
    state::{Slot, slots_for},
};
use limiter_policy::{
    compile::Compiled,
    host::{HostTables, SourceCopy},
};

use crate::kernel::tables::Tables;

/// The interface whose buckets of the host's own needs are shown.
const FIRST_INTERFACE: u32 = 0;

/// Copies what concerns an address.
///
/// # Errors
///
/// Where the maps cannot be read.
pub fn of(
    compiled: &Compiled,
    tables: &Tables,
    address: Address,
    now: u64,
    monitor: bool,
) -> Result<HostTables> {
    let mut host = HostTables::new(compiled.clone());
    host.set_time(now);
    host.set_monitor(monitor);
    host.set_needs(tables.needs(FIRST_INTERFACE)?);
    let (plain, _) = SourceKey::of(address, &compiled.policy.prefixes);
    if let Some(ban) = tables.bans.get(&plain).context("cannot read bans")? {
        host.insert_ban(plain, ban);
    }
    let key = host.key_of(address);
    if let Some(ban) = tables.bans.get(&key).context("cannot read bans")? {
        host.insert_ban(key, ban);
    }
    let (wide, _) = SourceKey::of(address, &compiled.policy.wide);
    for key in [key, wide] {
        if let Some(copy) = tables.sources.get(&key)? {
            know_meters(&mut host, tables, &copy.slots)?;
            host.set_source(
                key,
                &SourceCopy {
                    head: copy.head,
                    slots: copy.slots,
                },
            );
        }
    }
    for (limit, kernel) in compiled.limits.iter().zip(&compiled.policy.limits) {
        if kernel.keeps_log != 0 {
            let source = match limit.place {
                Place::Source => key,
                Place::Wide => wide,
                Place::Shared => SourceKey::EVERYONE,
            };
            let key = LogKey {
                source,
                limit: kernel.counter.into(),
            };
            if let Some(log) = tables.logs.get(&key).context("cannot read a sliding log")? {
                host.set_log(key, &log);
            }
        } else if limit.place == Place::Shared {
            let slot = u32::from(kernel.slot);
            let state = tables
                .shared
                .get(&slot)
                .context("cannot read a shared limit")?;
            let state = state.unwrap_or_default();
            know_meters(&mut host, tables, &[state])?;
            host.set_shared(slot, state);
        }
    }
    debug_assert!(
        slots_for(compiled.slots()).is_some(),
        "the policy is in force"
    );
    Ok(host)
}

/// Lets the copy know the meters that have written the slots: those of an earlier policy, too.
fn know_meters(host: &mut HostTables, tables: &Tables, slots: &[Slot]) -> Result<()> {
    for slot in slots {
        let id = slot.meter_id();
        if let Some(entry) = tables.meter(id)? {
            host.add_meters([(id, entry)]);
        }
    }
    Ok(())
}
