//! What a daemon writes to standard error.

use std::{
    fs::{self, File},
    io::{Seek as _, SeekFrom},
};

use anyhow::{Context as _, Result};
use tempfile::NamedTempFile;

/// A log, in a file that goes with it.
pub(crate) struct Log(NamedTempFile);

impl Log {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(NamedTempFile::new().context("make a log file")?))
    }

    /// The end of it, to write to.
    pub(crate) fn file(&self) -> Result<File> {
        let mut file = self.0.reopen().context("open a log file")?;
        file.seek(SeekFrom::End(0))
            .context("go to a log file's end")?;
        Ok(file)
    }

    /// All of it so far.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.0.path()).unwrap_or_else(|error| format!("no log: {error}"))
    }

    /// The first line with all of these words.
    pub(crate) fn line(&self, words: &[&str]) -> Option<String> {
        let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
        self.text().lines().find(has_all).map(str::to_owned)
    }
}
