//! Where things lie: programs on the search path, and cargo's target directory.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// Every file called `name` in the directories of `PATH`, in their order.
pub fn on_path(name: impl AsRef<OsStr>) -> impl Iterator<Item = PathBuf> {
    let name = PathBuf::from(name.as_ref());
    let directories = env::var_os("PATH").unwrap_or_default();
    let candidates: Vec<_> = env::split_paths(&directories)
        .map(|directory| directory.join(&name))
        .collect();
    candidates
        .into_iter()
        .filter(|candidate| candidate.is_file())
}

/// Cargo's target directory, found from something that cargo made in it: an executable or an `OUT_DIR`.
///
/// Cargo tells neither a build script nor a running program where that directory is. It marks one that it has created
/// with `CACHEDIR.TAG`; one that was there before (a mounted volume) stays unmarked and is recognised by the profile's
/// directory below it.
#[must_use]
pub fn target_root(inside: &Path) -> Option<PathBuf> {
    let marked = inside
        .ancestors()
        .skip(1)
        .find(|ancestor| ancestor.join("CACHEDIR.TAG").is_file());
    marked.or_else(|| above_profile(inside)).map(Path::to_owned)
}

/// The directory that holds `debug` or `release`, or the one above it when that one is named after a target triple.
fn above_profile(inside: &Path) -> Option<&Path> {
    let profile = inside.ancestors().skip(1).find(|ancestor| {
        ancestor
            .file_name()
            .is_some_and(|name| name == "debug" || name == "release")
    })?;
    let above = profile.parent()?;
    let is_triple = above
        .file_name()
        .is_some_and(|name| name.to_string_lossy().split('-').count() >= 3);
    if is_triple {
        above.parent()
    } else {
        Some(above)
    }
}

/// The directory of the project's own tools, below cargo's target directory.
///
/// Build scripts watch it: whatever set-up changes there makes them look again.
#[must_use]
pub fn tools_dir(target_root: &Path) -> PathBuf {
    target_root.join("tools")
}

#[cfg(test)]
mod tests {
    use std::{fs, process};

    use super::*;

    #[test]
    fn the_marked_directory_is_the_root() {
        let root = env::temp_dir().join(format!("bpf-toolchain-places-{}", process::id()));
        let out_dir = root.join("some-profile/build/package-0123/out");
        fs::create_dir_all(&out_dir).unwrap();
        fs::write(root.join("CACHEDIR.TAG"), "").unwrap();
        let found = target_root(&out_dir);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, Some(root));
    }

    #[test]
    fn an_unmarked_root_is_known_by_its_profile() {
        for inside in [
            "/nowhere/target/debug/xtask",
            "/nowhere/target/release/build/limiter-lab-0123/out",
            "/nowhere/target/x86_64-unknown-linux-gnu/release/build/limiter-lab-0123/out",
        ] {
            assert_eq!(
                target_root(Path::new(inside)),
                Some(PathBuf::from("/nowhere/target")),
                "{inside}"
            );
        }
    }

    #[test]
    fn a_path_outside_any_target_directory_has_no_root() {
        assert_eq!(target_root(Path::new("/nowhere/at/all")), None);
    }

    #[test]
    fn a_program_is_found_on_the_path() {
        assert!(on_path("sh").next().is_some());
        assert!(on_path("a-program-nobody-has").next().is_none());
    }
}
