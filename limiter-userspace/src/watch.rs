//! Watching files for changes.
//!
//! By asking for their metadata again and again: unlike inotify, this also follows symbolic links that are swapped
//! anywhere on the path, sees files on network and overlay file systems, and forgets nothing when a queue is full.

mod files;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use files::Files;
use tokio::time::{Instant, sleep_until};

/// How often to look. A change is told of after one to two of these, since a file must have rested for one.
pub const INTERVAL: Duration = Duration::from_millis(200);

/// Files under watch.
#[derive(Debug)]
pub struct Watch {
    files: Files,
    next: Instant,
}

impl Watch {
    /// Watches files as they are now, or for coming to be. To miss nothing, begin to watch before reading them.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            files: Files::new(paths, files::stamp),
            next: Instant::now() + INTERVAL,
        }
    }

    /// Watches these files from now on; of those that were watched already, no change is missed.
    pub fn set(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.files.set(paths, files::stamp);
    }

    /// Waits until files have changed, come, or come back, and have been left alone since then for an [`INTERVAL`].
    ///
    /// Nothing is lost if this is given up and called again.
    pub async fn changed(&mut self) -> Vec<PathBuf> {
        loop {
            sleep_until(self.next).await;
            self.next = Instant::now() + INTERVAL;
            let changed = self.files.look(files::stamp);
            if !changed.is_empty() {
                return changed;
            }
        }
    }

    /// Files that are not there at present; what was last read from them stays in force.
    pub fn missing(&self) -> impl Iterator<Item = &Path> {
        self.files.missing()
    }
}

#[cfg(test)]
mod tests;
