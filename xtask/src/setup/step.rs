//! One step of set-up: what is installed, why, and by what.

use std::fmt;

use bpf_toolchain::{LINKER_NAME, LINKER_VERSION};

/// One step of set-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something that rustup adds.
    Rustup {
        what: String,
        why: &'static str,
        arguments: Vec<String>,
    },
    /// A package of Debian's.
    Package { name: String, why: &'static str },
    /// The BPF linker.
    Linker(LinkerFrom),
    /// Something that a person has to install.
    ByHand { what: String, why: &'static str },
}

/// How the BPF linker is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkerFrom {
    /// Its own release, by cargo-binstall.
    Release,
    /// Its source, with the distribution's LLVM of this major version.
    Source { llvm: u32 },
}

impl Step {
    pub(crate) fn rustup(what: &str, why: &'static str, arguments: &[&str]) -> Self {
        let arguments = arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        Self::Rustup {
            what: what.to_owned(),
            why,
            arguments,
        }
    }

    pub(crate) fn package(name: impl Into<String>, why: &'static str) -> Self {
        Self::Package {
            name: name.into(),
            why,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rustup {
                what,
                why,
                arguments,
            } => write!(f, "{what} ({why}): by rustup {}", arguments.join(" ")),
            Self::Package { name, why } => write!(f, "{name} ({why}): by apt-get, from Debian"),
            Self::Linker(from) => write!(
                f,
                "{LINKER_NAME} {LINKER_VERSION} (makes BPF objects): {from}"
            ),
            Self::ByHand { what, why } => {
                write!(f, "{what} ({why}): by hand, nothing here can install it")
            }
        }
    }
}

impl fmt::Display for LinkerFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release => f.write_str("by cargo-binstall, below the target directory"),
            Self::Source { llvm } => {
                write!(
                    f,
                    "by cargo install with LLVM {llvm}, below the target directory, a minute or two"
                )
            }
        }
    }
}
