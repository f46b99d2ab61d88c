//! A note of the chosen toolchain among the project's own tools, which build scripts watch.
//!
//! A compiler that is installed elsewhere changes nothing that cargo looks at. The note does: it is written when set-up
//! finds a toolchain, and taken away when a build script finds none.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{Toolchain, tools_dir};

fn path(target_root: &Path) -> PathBuf {
    tools_dir(target_root).join("toolchain")
}

impl Toolchain {
    /// Notes the toolchain, so that build scripts which did without one, or with another, run again.
    ///
    /// # Errors
    ///
    /// When the note cannot be written.
    pub fn note(&self, target_root: &Path) -> io::Result<()> {
        let path = path(target_root);
        let description = self.describe();
        if fs::read_to_string(&path).is_ok_and(|noted| noted == description) {
            return Ok(());
        }
        fs::create_dir_all(tools_dir(target_root))?;
        fs::write(path, description)
    }
}

/// Takes the note away, if there is one.
pub(crate) fn forget(target_root: &Path) -> io::Result<()> {
    match fs::remove_file(path(target_root)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    #[test]
    fn a_note_that_is_not_there_is_forgotten_too() {
        let root = env::temp_dir().join(format!("bpf-toolchain-note-{}", process::id()));
        fs::create_dir_all(tools_dir(&root)).unwrap();
        fs::write(path(&root), "a toolchain").unwrap();
        forget(&root).unwrap();
        assert!(!path(&root).exists());
        forget(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
    }
}
