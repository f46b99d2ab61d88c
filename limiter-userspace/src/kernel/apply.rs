//! From a compiled policy to the maps: built aside, then put in force by one store; small changes of who is who in place.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result};
use aya::Pod;
use limiter_common::{
    counters::LimitCounters,
    judge::LogKey,
    limits::MAX_INTERFACES,
    needs::Need,
    policy::{Force, MATCHES, MAX_CHAINS, NO_SET, POLICIES, PORT_WORDS, Policy, PortTable},
    source::{Prefixes, SourceKey},
    standing::Entry,
    state::Slot,
};
use limiter_policy::{
    compile::Compiled,
    identities::Number,
    lists::{Delta, difference, small_difference},
    prefix::{Prefix, PrefixSet},
};

use super::{prefix_map::PrefixMap, sources::SourceCopy, tables::Tables};

/// Changes of who is who that are made in place. More are built aside, where they take effect all at once.
const MOST_IN_PLACE: usize = 4096;

/// What keeps the maps as the policy says.
pub struct Enforcer {
    tables: Arc<Tables>,
    live: Mutex<Live>,
    /// One policy at a time is built aside. Bans do not wait for that.
    building: Mutex<()>,
}

/// What is in force.
struct Live {
    force: Force,
    generation: u32,
    place: Option<Place>,
    previous: Option<Place>,
    compiled: Option<Arc<Compiled>>,
    /// What counters had counted for others before.
    bases: BTreeMap<u32, LimitCounters>,
    /// The list set that is being filled aside.
    building: Option<u32>,
    /// Edits while a policy is being built aside, to be made there too.
    journal: Vec<(Prefix, Option<Entry>)>,
}

/// Where a policy lies in the maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    policy: u32,
    classes: u32,
    lists: u32,
}

/// A change of policy that has begun.
pub struct Change<'a> {
    enforcer: &'a Enforcer,
    _building: MutexGuard<'a, ()>,
}

impl Change<'_> {
    /// Puts a policy in force: in place where only who is who has changed a little, or else built aside and flipped.
    /// Returns the entries of class and list sets that were written.
    ///
    /// # Errors
    ///
    /// Where a map takes no more; the policy before stays in force then.
    pub fn apply(self, compiled: Compiled, monitor: bool) -> Result<usize> {
        let enforcer = self.enforcer;
        enforcer.write_meters(&compiled)?;
        if let Some(written) = enforcer.apply_in_place(&compiled, monitor)? {
            return Ok(written);
        }
        enforcer.clear(&compiled.fresh)?;
        enforcer.clear_needs(&compiled)?;
        let (mut place, written) = enforcer.build(&compiled)?;
        let mut live = enforcer.live();
        live.building = None;
        // Who was banned meanwhile is banned under the new policy, too; whoever made the ban has it compiled anew.
        let edits = std::mem::take(&mut live.journal);
        if place.lists == NO_SET && !edits.is_empty() {
            place.lists = live.place.map_or(NO_SET, |place| place.lists);
        }
        enforcer.edit_set(place.lists, &edits)?;
        live.generation += 1;
        enforcer.write_policy(&compiled, place, live.generation)?;
        live.force = Force::new(live.force.epoch() + 1, place.policy, monitor);
        enforcer.tables.flip.set(live.force);
        live.previous = live.place.replace(place);
        live.compiled = Some(Arc::new(compiled));
        Ok(written)
    }
}

impl Enforcer {
    /// An enforcer of nothing, yet.
    #[must_use]
    pub fn new(tables: Arc<Tables>) -> Self {
        Self {
            tables,
            live: Mutex::new(Live {
                force: Force(0),
                generation: 0,
                place: None,
                previous: None,
                compiled: None,
                bases: BTreeMap::new(),
                building: None,
                journal: Vec::new(),
            }),
            building: Mutex::new(()),
        }
    }

    /// An enforcer on other maps, that goes on counting policies where this one is.
    #[must_use]
    pub fn successor(&self, tables: Arc<Tables>) -> Self {
        let next = Self::new(tables);
        next.live().generation = self.live().generation;
        next
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The maps.
    #[must_use]
    pub const fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// The policy in force with all that was changed in place, and how many there have been; `None` before the first.
    #[must_use]
    pub fn in_force(&self) -> Option<(Arc<Compiled>, u32)> {
        let live = self.live();
        Some((live.compiled.clone()?, live.generation))
    }

    /// Whether nothing is dropped.
    #[must_use]
    pub fn is_monitoring(&self) -> bool {
        self.live().force.monitor()
    }

    /// What a limit has counted, of all that its counters have.
    #[must_use]
    pub fn counted(&self, counter: u32, counters: &LimitCounters) -> LimitCounters {
        let base = self.live().bases.get(&counter).copied().unwrap_or_default();
        LimitCounters {
            passed: counters.passed.saturating_sub(base.passed),
            dropped: counters.dropped.saturating_sub(base.dropped),
            would_drop: counters.would_drop.saturating_sub(base.would_drop),
        }
    }

    /// Begins to change the policy: what is listed from now on will hold under the new one, too.
    pub fn begin(&self) -> Change<'_> {
        let building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        self.live().journal.clear();
        Change {
            enforcer: self,
            _building: building,
        }
    }

    /// Puts a policy in force that takes everything listed so far into account.
    ///
    /// # Errors
    ///
    /// As [`Change::apply`].
    pub fn apply(&self, compiled: Compiled, monitor: bool) -> Result<usize> {
        self.begin().apply(compiled, monitor)
    }

    /// Drops nothing from now on, or what the policy says.
    pub fn set_monitor(&self, monitor: bool) {
        let mut live = self.live();
        live.force = Force::new(live.force.epoch(), live.force.policy(), monitor);
        self.tables.flip.set(live.force);
    }

    /// Edits the list set in place, at once: `edit` changes the set, and says what has changed. False where there is no set:
    /// the policy must be applied anew.
    ///
    /// # Errors
    ///
    /// Where the map takes no more.
    pub fn edit_lists(
        &self,
        edit: impl FnOnce(&mut PrefixSet<Entry>, &Prefixes) -> Vec<(Prefix, Option<Entry>)>,
    ) -> Result<bool> {
        let mut live = self.live();
        let Live {
            place: Some(place),
            compiled: Some(compiled),
            previous,
            building,
            generation,
            ..
        } = &mut *live
        else {
            return Ok(false);
        };
        let compiled = Arc::make_mut(compiled);
        let edits = edit(&mut compiled.lists, &compiled.policy.prefixes);
        if place.lists == NO_SET {
            // Nobody waits for a policy that is being built to be banned.
            let taken = [previous.map(|place| place.lists), *building];
            let free = (0..POLICIES).find(|set| !taken.contains(&Some(*set)));
            place.lists = free.context("no room for another list set")?;
            fill(&self.tables.lists, place.lists, &compiled.lists)?;
            compiled.policy.list_set = 0;
            self.write_policy(compiled, *place, *generation)?;
        } else {
            self.edit_set(place.lists, &edits)?;
        }
        live.journal.extend(edits);
        self.begin_epoch(&mut live);
        Ok(true)
    }

    fn write_policy(&self, compiled: &Compiled, place: Place, generation: u32) -> Result<()> {
        let policy = Policy {
            generation,
            class_set: place.classes,
            list_set: place.lists,
            ..compiled.policy
        };
        self.tables
            .policies
            .set(&place.policy, &policy)
            .context("cannot write the policy")
    }

    fn edit_set(&self, set: u32, edits: &[(Prefix, Option<Entry>)]) -> Result<()> {
        let Some(map) = self.tables.lists.get(set as usize) else {
            return Ok(());
        };
        edits.iter().try_for_each(|(prefix, entry)| match entry {
            Some(entry) => map.set(*prefix, *entry),
            None => map.remove(*prefix).map(drop),
        })
    }

    /// Lets every source be looked up anew.
    fn begin_epoch(&self, live: &mut Live) {
        live.force = Force::new(
            live.force.epoch() + 1,
            live.force.policy(),
            live.force.monitor(),
        );
        self.tables.flip.set(live.force);
    }

    /// Meters are written before anything names them; a meter once written does not change.
    fn write_meters(&self, compiled: &Compiled) -> Result<()> {
        let keys: Vec<u32> = compiled.meters.keys().map(|id| u32::from(*id)).collect();
        let values: Vec<_> = compiled.meters.values().copied().collect();
        self.tables
            .meters
            .set_all(&keys, &values)
            .context("cannot write the meters")
    }

    /// Applies a policy that differs only in who is who, and in little. `None` where it differs in more.
    fn apply_in_place(&self, compiled: &Compiled, monitor: bool) -> Result<Option<usize>> {
        let mut live = self.live();
        let (Some(place), Some(old)) = (live.place, &live.compiled) else {
            return Ok(None);
        };
        let same = old.policy == compiled.policy
            && old.ports == compiled.ports
            && old.matches == compiled.matches
            && old.limits == compiled.limits
            && compiled.fresh.is_empty()
            && old
                .rows
                .iter()
                .all(|(chain, row)| compiled.rows.get(chain).is_none_or(|new| new == row));
        if !same {
            return Ok(None);
        }
        // Bans wait meanwhile: sets that differ in much are not compared to the end.
        let classes = small_difference(&old.classes, &compiled.classes, MOST_IN_PLACE);
        let lists = small_difference(&old.lists, &compiled.lists, MOST_IN_PLACE);
        let (Some(classes), Some(mut lists)) = (classes, lists) else {
            return Ok(None);
        };
        // What was listed since the change began stays; whoever did it has the policy compiled anew.
        let newer = |prefix: &Prefix| live.journal.iter().any(|(edited, _)| edited == prefix);
        lists.set.retain(|(prefix, _)| !newer(prefix));
        lists.remove.retain(|prefix| !newer(prefix));
        let changes = classes.len() + lists.len();
        let no_set = (!classes.is_empty() && place.classes == NO_SET)
            || (!lists.is_empty() && place.lists == NO_SET);
        if no_set || changes > MOST_IN_PLACE {
            return Ok(None);
        }
        // New chains have rows before any prefix names them.
        self.write_rows(place.policy, compiled)?;
        apply_delta(&self.tables.classes, place.classes, &classes)?;
        apply_delta(&self.tables.lists, place.lists, &lists)?;
        live.compiled = Some(Arc::new(compiled.clone()));
        live.generation += u32::from(changes > 0);
        live.force = Force::new(live.force.epoch(), live.force.policy(), monitor);
        self.begin_epoch(&mut live);
        Ok(Some(changes))
    }

    /// Writes a policy where no packet looks, and shares the sets that have not changed.
    fn build(&self, compiled: &Compiled) -> Result<(Place, usize)> {
        let mut live = self.live();
        let (old, current, previous) = (live.compiled.clone(), live.place, live.previous);
        let free = |part: fn(&Place) -> u32| {
            let taken = [current, previous].map(|place| place.as_ref().map(part));
            (0..POLICIES).find(|number| !taken.contains(&Some(*number)))
        };
        live.building = free(|place| place.lists);
        drop(live);
        // Held no longer than that: a ban meanwhile changes the sets, and would have to copy those that others hold, too.
        let (same_classes, same_lists) = old.map_or((false, false), |old| {
            let Compiled { classes, lists, .. } = &*old;
            (*classes == compiled.classes, *lists == compiled.lists)
        });
        let policy = free(|place| place.policy).context("no room for another policy")?;
        let mut written = 0;
        let classes = match current {
            _ if compiled.classes.is_empty() => NO_SET,
            Some(place) if same_classes => place.classes,
            _ => {
                let set = free(|place| place.classes).context("no room for another class set")?;
                written += fill(&self.tables.classes, set, &compiled.classes)?;
                set
            }
        };
        let lists = match current {
            _ if compiled.lists.is_empty() => NO_SET,
            Some(place) if same_lists => place.lists,
            _ => {
                let set = free(|place| place.lists).context("no room for another list set")?;
                written += fill(&self.tables.lists, set, &compiled.lists)?;
                set
            }
        };
        self.write_ports(policy, compiled)?;
        let first = policy * MATCHES;
        let keys: Vec<u32> = (first..).take(compiled.matches.len()).collect();
        self.tables
            .matches
            .set_all(&keys, &compiled.matches)
            .context("cannot write which limits match")?;
        self.write_rows(policy, compiled)?;
        let place = Place {
            policy,
            classes,
            lists,
        };
        Ok((place, written))
    }

    /// Clears what the maps hold under numbers that belonged to something else.
    fn clear(&self, fresh: &[Number]) -> Result<()> {
        let tables = &self.tables;
        let forget = |which: &dyn Fn(&SourceKey, &SourceCopy) -> bool| {
            let mut forgotten = Vec::new();
            tables.sources.walk_all(|key, copy| {
                if which(&key, &copy) {
                    forgotten.push(key);
                }
            })?;
            forgotten
                .iter()
                .try_for_each(|key| tables.sources.remove(key).map(drop))
        };
        for number in fresh {
            match *number {
                Number::Counter(counter) => {
                    forget_logs(tables, |key| key.limit == u64::from(counter))?;
                    self.live()
                        .bases
                        .insert(counter, tables.limit_counters(counter)?);
                }
                Number::Slot(slot) => forget(&|_, copy| {
                    copy.slots
                        .get(slot as usize)
                        .is_some_and(|slot| *slot != Slot::default())
                })?,
                Number::Shared(slot) => tables
                    .shared
                    .set(&slot, &Slot::default())
                    .context("cannot clear a shared limit")?,
                Number::Chain(chain) => {
                    let of_chain = |key: &SourceKey| key.chain() == u64::from(chain);
                    forget(&|key, _| of_chain(key))?;
                    forget_logs(tables, |key| of_chain(&key.source))?;
                    for (key, _) in tables.bans.entries().context("cannot read bans")? {
                        if of_chain(&key) {
                            tables.bans.remove(&key).context("cannot forget a ban")?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// A ceiling's word means what its meter says, and there is no note of which: with another meter it begins anew.
    fn clear_needs(&self, compiled: &Compiled) -> Result<()> {
        let same = self
            .live()
            .compiled
            .as_ref()
            .is_some_and(|old| old.policy.need_ceilings == compiled.policy.need_ceilings);
        if same {
            return Ok(());
        }
        (0..MAX_INTERFACES)
            .try_for_each(|interface| self.tables.set_needs(interface, &[0; Need::COUNT]))
    }

    fn write_ports(&self, policy: u32, compiled: &Compiled) -> Result<()> {
        let first = policy * PortTable::COUNT * PORT_WORDS;
        let keys: Vec<u32> = (first..).take(compiled.ports.len()).collect();
        self.tables
            .ports
            .set_all(&keys, &compiled.ports)
            .context("cannot write the classes of ports")
    }

    fn write_rows(&self, policy: u32, compiled: &Compiled) -> Result<()> {
        let first = policy * MAX_CHAINS;
        let keys: Vec<u32> = compiled.rows.keys().map(|chain| first + chain).collect();
        let rows: Vec<_> = compiled.rows.values().copied().collect();
        self.tables
            .rows
            .set_all(&keys, &rows)
            .context("cannot write the limits of classes")
    }
}

fn forget_logs(tables: &Tables, which: impl Fn(&LogKey) -> bool) -> Result<()> {
    for (key, _) in tables
        .logs
        .entries()
        .context("cannot read the sliding logs")?
    {
        if which(&key) {
            tables
                .logs
                .remove(&key)
                .context("cannot forget a sliding log")?;
        }
    }
    Ok(())
}

/// Fills a set that no policy in force names.
fn fill<V: Pod + Default + PartialEq>(
    sets: &[PrefixMap<V>],
    set: u32,
    content: &PrefixSet<V>,
) -> Result<usize> {
    let map = sets.get(set as usize).context("no such set")?;
    map.clear()?;
    map.apply(&difference(&PrefixSet::default(), content))?;
    Ok(content.entries().len())
}

fn apply_delta<V: Pod + Default>(sets: &[PrefixMap<V>], set: u32, delta: &Delta<V>) -> Result<()> {
    match sets.get(set as usize) {
        Some(map) => map.apply(delta),
        None => Ok(()),
    }
}
