//! What was seen of files, and what of it is news.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use tracing::warn;

/// What tells one version of a file from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Of the file behind symbolic links: what was renamed over the old one is another.
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    /// Seconds and nanoseconds.
    pub(super) modified: (i64, i64),
    /// Cannot be set back, as `modified` can, by what copies files with their times.
    pub(super) changed: (i64, i64),
}

/// The stamp of a file; `None` where there is none that could be read.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let data = fs::metadata(path).ok()?;
    Some(Stamp {
        device: data.dev(),
        inode: data.ino(),
        size: data.size(),
        modified: (data.mtime(), data.mtime_nsec()),
        changed: (data.ctime(), data.ctime_nsec()),
    })
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// As it was when it was last told of.
    told: Option<Stamp>,
    /// As it was at the last look.
    seen: Option<Stamp>,
    /// Whether it has been said that it is missing.
    missed: bool,
}

impl File {
    fn new(path: PathBuf, stamp: impl Fn(&Path) -> Option<Stamp>) -> Self {
        let told = stamp(&path);
        Self {
            path,
            told,
            seen: told,
            missed: told.is_none(),
        }
    }
}

/// Files under watch. Who looks says when it is time to.
#[derive(Debug)]
pub(super) struct Files(Vec<File>);

impl Files {
    pub(super) fn new(
        paths: impl IntoIterator<Item = PathBuf>,
        stamp: impl Fn(&Path) -> Option<Stamp>,
    ) -> Self {
        let file = |path: PathBuf| File::new(path, &stamp);
        Self(paths.into_iter().map(file).collect())
    }

    /// Other files; what is known of those that stay is kept.
    pub(super) fn set(
        &mut self,
        paths: impl IntoIterator<Item = PathBuf>,
        stamp: impl Fn(&Path) -> Option<Stamp>,
    ) {
        let mut before = std::mem::take(&mut self.0);
        let file = |path: PathBuf| match before.iter().position(|file| file.path == path) {
            Some(known) => before.swap_remove(known),
            None => File::new(path, &stamp),
        };
        self.0 = paths.into_iter().map(file).collect();
    }

    /// Files whose version is not the one last told of, and is still the one seen at the last look: nobody is writing.
    pub(super) fn look(&mut self, stamp: impl Fn(&Path) -> Option<Stamp>) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        for file in &mut self.0 {
            let now = stamp(&file.path);
            let rests = now == file.seen;
            file.seen = now;
            if !rests {
                continue;
            }
            if now.is_none() && !file.missed {
                warn!(
                    "{}: is gone; what was last read from it stays in force",
                    file.path.display()
                );
            }
            file.missed = now.is_none();
            if now.is_some() && now != file.told {
                file.told = now;
                changed.push(file.path.clone());
            }
        }
        changed
    }

    pub(super) fn missing(&self) -> impl Iterator<Item = &Path> {
        let missing = self.0.iter().filter(|file| file.missed);
        missing.map(|file| file.path.as_path())
    }
}
