//! The policy of a running daemon: what is wanted, and everything that changes it.
//!
//! What is wanted is the policy's text, the prefixes of its files, and the changes that operators made; all of it is
//! compiled and put in force ([`Enforcer`]). A change is checked, put in force, kept, and recorded, in this order.

mod bans;
mod engine;
mod overrides;
mod prefixes;
mod reload;
mod reshape;
mod status;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::AtomicU64,
    },
};

use anyhow::{Context as _, Result, anyhow};
use limiter_policy::{
    changes::Changes,
    compile::{Compiled, compile},
    identities::Identities,
    spec::PolicySpec,
};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::{
    audit::{Entry, What, log::AuditLog, who::Who},
    changes::{answer::Changed, kept::Kept, moment::Moment, request::MonitorRequest, store::Store},
    kernel::{apply::Enforcer, load::Room, monotonic_now, tables::Tables},
    settings::PolicySource,
};

pub use engine::{Engine, Machine};
pub use prefixes::PrefixFiles;
pub use reload::{Reloaded, difference, first_room, read};

/// What changes the policy of a running daemon.
pub struct Control {
    engine: RwLock<Engine>,
    machine: Machine,
    source: PolicySource,
    wanted: Mutex<Wanted>,
    /// Bans of limits in force at the last look; reading them all for each scrape would be dear.
    limit_bans: AtomicU64,
    /// One policy at a time is read and compiled; bans do not wait for that.
    reloading: Mutex<()>,
    store: Option<Store>,
    audit: Option<AuditLog>,
}

/// What is wanted.
struct Wanted {
    spec: Arc<PolicySpec>,
    prefixes: PrefixFiles,
    identities: Identities,
    kept: Kept,
    /// The last reload, if it failed.
    failure: Option<String>,
}

/// A refusal: what was asked for is not done, and nothing has changed.
#[derive(Debug)]
pub struct Refused(pub String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

fn refused(reason: impl Into<String>) -> anyhow::Error {
    anyhow!(Refused(reason.into()))
}

impl Control {
    /// Puts the first policy in force, with the changes that were kept.
    ///
    /// # Errors
    ///
    /// Where it cannot be compiled or the maps take no more.
    pub fn start(
        (spec, prefixes): (PolicySpec, PrefixFiles),
        source: PolicySource,
        (tables, room): (Arc<Tables>, Room),
        machine: Machine,
        state_dir: &Path,
    ) -> Result<Self> {
        let enforcer = Arc::new(Enforcer::new(tables));
        let (store, kept) = open_state(state_dir);
        let audit = store.is_some().then(|| AuditLog::new(state_dir));
        let control = Self {
            engine: RwLock::new(Engine::new(enforcer, room)),
            machine,
            source,
            wanted: Mutex::new(Wanted {
                spec: Arc::new(spec.clone()),
                prefixes: PrefixFiles::default(),
                identities: Identities::default(),
                kept,
                failure: None,
            }),
            limit_bans: AtomicU64::new(0),
            reloading: Mutex::new(()),
            store,
            audit,
        };
        control.heed_monitor(&spec);
        control.install(spec, prefixes)?;
        Ok(control)
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A policy that says to drop nothing is heeded, whatever the switch was set to before.
    fn heed_monitor(&self, spec: &PolicySpec) {
        let mut wanted = self.wanted();
        if spec.monitor && wanted.kept.monitor == Some(false) {
            wanted.kept.monitor = None;
            warn!(
                "the policy says to drop nothing, which `limiter monitor off` said before; the policy holds"
            );
        }
    }

    /// The maps in force.
    pub fn engine(&self) -> RwLockReadGuard<'_, Engine> {
        self.engine.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn engine_mut(&self) -> RwLockWriteGuard<'_, Engine> {
        self.engine.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What keeps the maps as the policy says.
    #[must_use]
    pub fn enforcer(&self) -> Arc<Enforcer> {
        Arc::clone(&self.engine().enforcer)
    }

    /// The maps.
    #[must_use]
    pub fn tables(&self) -> Arc<Tables> {
        Arc::clone(self.enforcer().tables())
    }

    /// The policy as it was written.
    #[must_use]
    pub fn spec(&self) -> Arc<PolicySpec> {
        Arc::clone(&self.wanted().spec)
    }

    /// Why the last reload failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.wanted().failure.clone()
    }

    /// Where the policy comes from.
    #[must_use]
    pub const fn source(&self) -> &PolicySource {
        &self.source
    }

    /// Audit entries that could not be written.
    #[must_use]
    pub fn audit_lost(&self) -> u64 {
        self.audit.as_ref().map_or(0, AuditLog::lost)
    }

    /// Files to watch: the policy's and those of its prefixes.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        files(&self.source, &self.spec())
    }

    /// Compiles what is wanted with another text, and puts it in force. How many entries of prefix sets were written.
    fn install(&self, spec: PolicySpec, prefixes: PrefixFiles) -> Result<usize> {
        let now = monotonic_now();
        let enforcer = self.enforcer();
        let (mut identities, kept, change) = {
            let wanted = self.wanted();
            let change = enforcer.begin();
            (wanted.identities.clone(), wanted.kept.clone(), change)
        };
        let changes = changes(&kept, &spec, now);
        let compiled = compile(&spec, prefixes.loaded(), &changes, &mut identities, now)
            .map_err(|error| reload::locate(&self.source, &error))?;
        if let Some(room) = self.other_room(&spec, &compiled) {
            drop(change);
            return self.reshape(spec, prefixes, identities, compiled, room);
        }
        let monitor = kept.monitor.unwrap_or(spec.monitor);
        let written = change.apply(compiled, monitor)?;
        let mut wanted = self.wanted();
        wanted.spec = Arc::new(spec);
        wanted.prefixes = prefixes;
        wanted.identities = identities;
        let again = wanted.kept.bans() != kept.bans();
        let monitor = wanted.kept.monitor.unwrap_or(wanted.spec.monitor);
        drop(wanted);
        if monitor != enforcer.is_monitoring() {
            enforcer.set_monitor(monitor);
        }
        if again {
            // Bans were made meanwhile; they are in force already, but as before.
            let (spec, prefixes) = self.text();
            return self.install(spec, prefixes).map(|more| written + more);
        }
        Ok(written)
    }

    /// Compiles what is wanted once more, after a change besides the text.
    fn refresh(&self) -> Result<()> {
        let _one = self
            .reloading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (spec, prefixes) = self.text();
        self.install(spec, prefixes).map(drop)
    }

    /// The policy as it was written, and its prefixes.
    fn text(&self) -> (PolicySpec, PrefixFiles) {
        let wanted = self.wanted();
        (wanted.spec.as_ref().clone(), wanted.prefixes.clone())
    }

    /// The room that a policy needs, if the maps do not have it.
    fn other_room(&self, spec: &PolicySpec, compiled: &Compiled) -> Option<Room> {
        if matches!(self.source, PolicySource::Flags(_)) {
            return None;
        }
        let has = self.engine().room;
        let needs = reload::room(spec, compiled.slots());
        let same = needs.sources == has.sources && needs.logs == has.logs && needs.bans == has.bans;
        (!same || needs.slots > has.slots).then_some(Room {
            slots: needs.slots.max(has.slots),
            ..needs
        })
    }

    /// Drops nothing from now on, or drops again.
    ///
    /// # Errors
    ///
    /// Where the reason is none.
    pub fn set_monitor(&self, request: &MonitorRequest, who: &Who) -> Result<Changed> {
        let MonitorRequest { on, reason } = request;
        let why = crate::changes::request::reason(reason.as_deref()).map_err(Refused)?;
        let enforcer = self.enforcer();
        let before = enforcer.is_monitoring();
        {
            let mut wanted = self.wanted();
            wanted.kept.monitor = Some(*on);
            enforcer.set_monitor(*on);
        }
        let notices = self.keep();
        self.record(who, What::Monitor, json!(before), json!(on), why);
        info!(who = %who, on, "monitor mode");
        let done = if *on {
            "nothing is dropped from now on; what would be is counted"
        } else {
            "limits drop again"
        };
        Ok(Changed {
            done: done.to_owned(),
            notices,
        })
    }

    /// Keeps the changes over a restart; what whoever made one should know if that fails.
    fn keep(&self) -> Vec<String> {
        let Some(store) = &self.store else {
            return vec!["it will not survive a restart: there is no state directory".to_owned()];
        };
        let kept = self.wanted().kept.clone();
        match store.save(&kept, &Moment::now(monotonic_now())) {
            Ok(()) => Vec::new(),
            Err(error) => {
                warn!("{error:#}");
                vec![format!("it will not survive a restart: {error:#}")]
            }
        }
    }

    /// Records a change.
    pub fn record(&self, who: &Who, what: What, before: Value, after: Value, why: Option<String>) {
        if let Some(audit) = &self.audit {
            audit.record(&Entry {
                time: Moment::now(monotonic_now()).wall,
                who: who.clone(),
                what,
                before,
                after,
                why,
            });
        }
    }

    /// The directory of the audit log.
    ///
    /// # Errors
    ///
    /// Where there is none.
    pub fn state_dir(&self) -> Result<&Path> {
        let store = self.store.as_ref();
        store
            .map(Store::directory)
            .context("there is no state directory, so nothing is recorded; see --state-dir")
    }

    /// Ends what is over, and says so.
    ///
    /// # Errors
    ///
    /// Where the maps cannot be written.
    pub fn expire(&self) -> Result<()> {
        let now = monotonic_now();
        let expired = self.wanted().kept.expire(now);
        for (target, _) in &expired.bans {
            info!(%target, "the ban is over");
            self.enforce_ban(*target)?;
        }
        for (key, _) in &expired.overrides {
            info!(limit = key.limit, "the override is over");
        }
        if !expired.overrides.is_empty() {
            self.refresh()?;
        }
        if !expired.bans.is_empty() || !expired.overrides.is_empty() {
            self.keep();
        }
        self.forget_old_bans(now)
    }
}

/// Files of a policy: its own and those of its prefixes.
#[must_use]
pub fn files(source: &PolicySource, spec: &PolicySpec) -> Vec<PathBuf> {
    let policy = source.file();
    policy.into_iter().chain(prefixes::files(spec)).collect()
}

/// The changes as the policy is compiled with them; of no use are those of limits that are gone.
fn changes(kept: &Kept, spec: &PolicySpec, now: u64) -> Changes {
    let (changes, idle) = kept.changes(now, |key, change| overrides::terms(spec, key, change));
    for idle in idle {
        warn!(
            limit = idle.key.limit,
            "an override is of no use: {}", idle.why
        );
    }
    changes
}

/// Where state is kept, and what was kept; without it the daemon works, but forgets.
fn open_state(directory: &Path) -> (Option<Store>, Kept) {
    match Store::open(directory) {
        Ok(store) => {
            let loaded = store.load(&Moment::now(monotonic_now()));
            (Some(store), loaded.kept)
        }
        Err(error) => {
            warn!("bans, overrides and the audit log will not survive a restart: {error:#}");
            (None, Kept::default())
        }
    }
}
