//! The prefixes of a policy: inline, and from files of which the last good content stays.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use limiter_policy::{
    compile::LoadedPrefixes,
    lists::{self, accept},
    prefix::Prefix,
    spec::{PolicySpec, PrefixesSpec},
};
use tracing::{info, warn};

use crate::{changes::own::Guarded, report::ListStatus};

/// The prefixes of a policy, and of each file what was last good.
#[derive(Clone, Debug, Default)]
pub struct PrefixFiles {
    loaded: Arc<LoadedPrefixes>,
    files: BTreeMap<PathBuf, File>,
}

/// What a file holds.
#[derive(Clone, Debug)]
struct File {
    prefixes: Arc<Vec<Prefix>>,
    status: ListStatus,
}

/// The files that a policy's prefixes are in.
pub(super) fn files(spec: &PolicySpec) -> Vec<PathBuf> {
    let classes = spec.classes.iter().map(|class| &class.prefixes);
    let mut files: Vec<PathBuf> = classes
        .chain([&spec.allow, &spec.ban])
        .flat_map(|prefixes| prefixes.files.iter().cloned())
        .collect();
    files.sort();
    files.dedup();
    files
}

impl PrefixFiles {
    /// The prefixes of a policy, reading its files. A file that cannot be used keeps what `before` has of it.
    ///
    /// # Errors
    ///
    /// Where a file cannot be used and nothing is known of it: its name and why.
    pub fn read(spec: &PolicySpec, before: &Self, guarded: &[Guarded]) -> Result<Self, String> {
        let mut read = BTreeMap::new();
        for path in files(spec) {
            let file = File::read(&path, before.files.get(&path))?;
            read.insert(path, file);
        }
        let of = |prefixes: &PrefixesSpec| -> Vec<Prefix> {
            let inline = prefixes.inline.iter().copied().map(Prefix::from);
            let files = prefixes.files.iter().filter_map(|path| read.get(path));
            let mut all: Vec<Prefix> = inline
                .chain(files.flat_map(|file| file.prefixes.iter().copied()))
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let mut ban = of(&spec.ban);
        let all = ban.len();
        let inline: Vec<Prefix> = spec.ban.inline.iter().copied().map(Prefix::from).collect();
        // What a list of strangers says does not cut this host off; what the operator wrote here does.
        ban.retain(|prefix| {
            inline.contains(prefix)
                || !guarded
                    .iter()
                    .any(|guarded| prefix.covers(&Prefix::new(guarded.address.into(), 128)))
        });
        super::bans::warn_of_left_out(all - ban.len());
        let loaded = LoadedPrefixes {
            classes: spec
                .classes
                .iter()
                .map(|class| of(&class.prefixes))
                .collect(),
            allow: of(&spec.allow),
            ban,
        };
        // Unchanged content keeps its place in memory.
        let loaded = if *before.loaded == loaded {
            Arc::clone(&before.loaded)
        } else {
            Arc::new(loaded)
        };
        Ok(Self {
            loaded,
            files: read,
        })
    }

    /// The prefixes.
    #[must_use]
    pub fn loaded(&self) -> &LoadedPrefixes {
        &self.loaded
    }

    /// What became of each file.
    pub fn status(&self) -> impl Iterator<Item = &ListStatus> {
        self.files.values().map(|file| &file.status)
    }
}

impl File {
    fn read(path: &Path, before: Option<&Self>) -> Result<Self, String> {
        let shown = path.display();
        match Self::parse(path, before.map(|before| before.prefixes.len())) {
            Ok(file) => {
                let ListStatus {
                    prefixes, skipped, ..
                } = &file.status;
                info!(file = %shown, prefixes, skipped, "list read");
                for example in &file.status.examples {
                    warn!(file = %shown, "skipped {example}");
                }
                Ok(file)
            }
            Err(reason) => match before {
                Some(before) => {
                    warn!(file = %shown, "the list stays as it was: {reason}");
                    let mut kept = before.clone();
                    kept.status.kept = Some(reason);
                    Ok(kept)
                }
                None => Err(format!("{shown}: {reason}")),
            },
        }
    }

    fn parse(path: &Path, before: Option<usize>) -> Result<Self, String> {
        let text = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
        let parsed = lists::parse(&text);
        accept(before, &parsed).map_err(|refused| refused.to_string())?;
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let status = ListStatus {
            file: path.display().to_string(),
            prefixes: count(parsed.prefixes.len()),
            skipped: count(parsed.skipped_lines()),
            examples: parsed.skipped.iter().map(ToString::to_string).collect(),
            kept: None,
        };
        Ok(Self {
            prefixes: Arc::new(parsed.prefixes),
            status,
        })
    }
}
