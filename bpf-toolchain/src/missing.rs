//! What a machine lacks to make BPF objects, in words.

use std::fmt;

use crate::{CompilerPart, LinkerProblem, Route};

/// What is absent, for each route that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The routes that were looked at, and the parts of the compiler that each lacks; none if only the linker is absent.
    pub compilers: Vec<(Route, Vec<CompilerPart>)>,
    /// What is wrong with the linker, which all routes share.
    pub linker: Option<LinkerProblem>,
}

impl Missing {
    /// One line for each route: what it lacks.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.compilers.iter().map(|(route, parts)| {
            let parts = parts.iter().map(ToString::to_string);
            let linker = self.linker.iter().map(ToString::to_string);
            format!(
                "route {route} lacks {}",
                parts.chain(linker).collect::<Vec<_>>().join(", ")
            )
        })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no toolchain for BPF objects")?;
        self.lines().try_for_each(|line| write!(f, "; {line}"))
    }
}

impl std::error::Error for Missing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_says_all_that_it_lacks() {
        let missing = Missing {
            compilers: vec![
                (Route::Rustup, vec![CompilerPart::RustSrc]),
                (
                    Route::Debian,
                    vec![CompilerPart::DebianCargo, CompilerPart::DebianCore],
                ),
            ],
            linker: Some(LinkerProblem::Absent),
        };
        assert_eq!(
            missing.lines().collect::<Vec<_>>(),
            [
                "route rustup lacks nightly's component rust-src, bpf-linker 0.13",
                "route debian lacks /usr/bin/cargo (package cargo-web), core for bpfel-unknown-none (package \
                 libstd-rust-web-dev-bpf), bpf-linker 0.13",
            ]
        );
    }
}
