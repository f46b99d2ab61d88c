//! Taking up the policy file as it is now.

use std::{
    fs,
    path::{Path, absolute},
    sync::PoisonError,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use limiter_common::state::{MAX_SLOTS, slots_for};
use limiter_policy::{
    describe,
    error::PolicyError,
    file::{self, Parsed},
    spec::{Per, PolicySpec, SourcesSpec},
};
use serde_json::{Value, json};
use tracing::{error, info, warn};

use super::{Control, PrefixFiles, refused};
use crate::{
    audit::{What, who::Who},
    changes::{own, request},
    kernel::load::Room,
    settings::PolicySource,
};

/// A policy file that was taken up.
#[derive(Clone, Debug)]
pub struct Reloaded {
    /// How many policies there have been.
    pub generation: u32,
    /// What has changed, a fact a line, removed ones with `-` and new ones with `+`.
    pub changes: Vec<String>,
    /// Entries of prefix sets that were written.
    pub written: usize,
    /// How long it took.
    pub took: Duration,
    /// What whoever asked should know besides.
    pub notices: Vec<String>,
}

/// Reads a policy file.
///
/// # Errors
///
/// What is wrong with it: file, line, column, key and reason.
pub fn read(path: &Path) -> Result<Parsed> {
    let text =
        fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let mut parsed = file::parse(path, &text).map_err(|error| refused(error.to_string()))?;
    // The daemon and whoever asks may work in different directories.
    let spec = &mut parsed.spec;
    let classes = spec.classes.iter_mut().map(|class| &mut class.prefixes);
    for prefixes in classes.chain([&mut spec.allow, &mut spec.ban]) {
        for file in &mut prefixes.files {
            *file =
                absolute(&file).with_context(|| format!("{}: no such place", file.display()))?;
        }
    }
    Ok(parsed)
}

/// Room that a policy with so many slots needs in the maps.
pub(super) fn room(spec: &PolicySpec, slots: u32) -> Room {
    let SourcesSpec {
        capacity,
        log_capacity,
        ban_capacity,
        ..
    } = spec.sources;
    Room {
        sources: capacity,
        slots: slots_for(slots).unwrap_or(MAX_SLOTS),
        logs: log_capacity,
        bans: ban_capacity,
    }
}

/// Room for the first policy: a file may get some more limits later on, flags have one limit.
#[must_use]
pub fn first_room(spec: &PolicySpec, source: &PolicySource) -> Room {
    let per_source = spec.limits.iter().filter(|limit| limit.per == Per::Source);
    let slots: u32 = per_source
        .map(|limit| 1 + u32::from(limit.wide.is_some()))
        .sum();
    match source {
        PolicySource::Flags(_) => Room {
            logs: FEW,
            bans: FEW,
            ..room(spec, slots)
        },
        PolicySource::File(_) => room(spec, slots + SPARE),
    }
}

/// Entries of maps that flags have no use for.
const FEW: u32 = 1024;
/// Limits per source that a reload may add without other tables.
const SPARE: u32 = 3;

/// A fault of the compiled policy, with its place in the file.
pub(super) fn locate(source: &PolicySource, error: &PolicyError) -> anyhow::Error {
    let located = match source {
        PolicySource::File(path) => read(path).ok().map(|parsed| parsed.spans.locate(error)),
        PolicySource::Flags(_) => None,
    };
    match located {
        Some(located) => refused(located.to_string()),
        None => anyhow!(super::Refused(error.to_string())),
    }
}

impl Control {
    /// Takes up the policy file as it is now. A file that is not right changes nothing.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn reload(&self, who: &Who, why: Option<&str>) -> Result<Reloaded> {
        let PolicySource::File(path) = &self.source else {
            // Nothing has failed that status or an alert should tell of.
            let error = refused(
                "the policy comes from flags, there is nothing to reload; start the daemon with --config FILE",
            );
            warn!(who = %who, "{error}");
            return Err(error);
        };
        let why = request::reason(why).map_err(super::Refused)?;
        let result = self.try_reload(path);
        let mut wanted = self.wanted();
        match &result {
            Ok((reloaded, before, after)) => {
                wanted.failure = None;
                drop(wanted);
                let Reloaded {
                    generation,
                    changes,
                    written,
                    took,
                    notices,
                } = reloaded;
                for notice in notices {
                    warn!("{notice}");
                }
                info!(who = %who, generation, written, ms = took.as_millis(), "reloaded: {} changes", changes.len());
                self.record(who, What::Policy, before.clone(), after.clone(), why);
            }
            Err(error) => {
                error!(who = %who, "the policy stays as it was: {error:#}");
                wanted.failure = Some(format!("{error:#}"));
            }
        }
        result.map(|(reloaded, ..)| reloaded)
    }

    fn try_reload(&self, path: &Path) -> Result<(Reloaded, Value, Value)> {
        let started = Instant::now();
        let _one = self
            .reloading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let spec = read(path)?.spec;
        let (before, prefixes) = {
            let wanted = self.wanted();
            (wanted.spec.clone(), wanted.prefixes.clone())
        };
        let guarded = own::guarded().context("cannot tell this host's own addresses")?;
        let prefixes = PrefixFiles::read(&spec, &prefixes, &guarded).map_err(super::Refused)?;
        let (old, new) = (describe::lines(&before), describe::lines(&spec));
        let keys = |spec: &PolicySpec| {
            let SourcesSpec {
                ipv4_prefix,
                ipv6_prefix,
                wide_ipv4_prefix,
                wide_ipv6_prefix,
                ..
            } = spec.sources;
            [ipv4_prefix, ipv6_prefix, wide_ipv4_prefix, wide_ipv6_prefix]
        };
        let anew = if keys(&before) == keys(&spec) {
            None
        } else {
            let walk = self.tables().sources.walk_all(|_, _| {})?;
            Some(walk.entries)
        };
        if before.monitor != spec.monitor {
            // What the file says now is newer than the switch.
            self.wanted().kept.monitor = None;
        }
        let mut notices = notices(&before, &spec, &prefixes);
        if let Some(anew) = anew {
            notices.push(format!(
                "other prefixes tell sources apart now: the buckets of {anew} sources begin anew"
            ));
        }
        let written = self.install(spec, prefixes)?;
        let generation = self
            .enforcer()
            .in_force()
            .map_or(0, |(_, generation)| generation);
        let reloaded = Reloaded {
            generation,
            changes: difference(&old, &new),
            written,
            took: started.elapsed(),
            notices,
        };
        let of = |sign: &str| -> Vec<String> {
            let changes = reloaded.changes.iter();
            let changes = changes.filter_map(|change| change.strip_prefix(sign));
            changes.map(str::to_owned).collect()
        };
        let (gone, new) = (json!(of("- ")), json!(of("+ ")));
        Ok((reloaded, gone, new))
    }

    /// What another policy would change.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        describe::lines(&self.spec())
    }
}

/// What a reload does not do, or did otherwise than the file says.
fn notices(before: &PolicySpec, after: &PolicySpec, prefixes: &PrefixFiles) -> Vec<String> {
    let mut notices = Vec::new();
    if before.interfaces != after.interfaces {
        notices.push("other interfaces are taken up when the daemon starts again".to_owned());
    }
    for list in prefixes.status() {
        if let Some(reason) = &list.kept {
            notices.push(format!("{} stays as it was: {reason}", list.file));
        }
    }
    notices
}

/// What lines there are only before, with `-`, and only after, with `+`.
#[must_use]
pub fn difference(before: &[String], after: &[String]) -> Vec<String> {
    let gone = before.iter().filter(|line| !after.contains(line));
    let new = after.iter().filter(|line| !before.contains(line));
    gone.map(|line| format!("- {line}"))
        .chain(new.map(|line| format!("+ {line}")))
        .collect()
}
