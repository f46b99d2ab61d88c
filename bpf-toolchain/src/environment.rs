//! What a nested cargo must not inherit.

use std::{env, process::Command};

/// Settings of the person's own cargo that say how to reach a registry, and where its cache lies.
const KEPT: [&str; 6] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_TERM_",
];

/// What cargo and rustup hand to the programs they start, besides `CARGO_*` and `RUSTC*`.
const FOREIGN: [&str; 11] = [
    "DEBUG",
    "HOST",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "TARGET",
];

/// Removes from a nested cargo's environment whatever the cargo around it, clippy, or rustup has put there.
///
/// Otherwise the nested one would compile for the BPF target with the flags, the wrapper, or the compiler of the host.
pub fn scrub(command: &mut Command) -> &mut Command {
    for (key, _) in env::vars_os() {
        if key.to_str().is_some_and(is_foreign) {
            command.env_remove(key);
        }
    }
    command
}

fn is_foreign(key: &str) -> bool {
    let cargo = (key == "CARGO" || key.starts_with("CARGO_"))
        && !KEPT.iter().any(|kept| key.starts_with(kept));
    let rustc = key == "RUSTC" || key.starts_with("RUSTC_");
    cargo || rustc || FOREIGN.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_outer_cargo_sets_is_foreign() {
        for key in [
            "CARGO",
            "CARGO_BUILD_TARGET",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_MAKEFLAGS",
            "CARGO_TARGET_DIR",
            "CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER",
            "RUSTC",
            "RUSTC_BOOTSTRAP",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTC_WRAPPER",
            "RUSTDOC",
            "RUSTFLAGS",
            "RUSTUP_TOOLCHAIN",
            "TARGET",
        ] {
            assert!(is_foreign(key), "{key}");
        }
    }

    #[test]
    fn what_the_person_sets_to_reach_a_registry_stays() {
        for key in [
            "CARGO_HOME",
            "CARGO_HTTP_PROXY",
            "CARGO_NET_OFFLINE",
            "RUSTUP_HOME",
            "PATH",
            "HOME",
            "CARGOES",
        ] {
            assert!(!is_foreign(key), "{key}");
        }
    }
}
