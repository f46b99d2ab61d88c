//! The linker: which `bpf-linker` is good enough, and where one lies.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::on_path;

/// The linker's name, as a program and as a package.
pub const LINKER_NAME: &str = "bpf-linker";

/// The version that set-up installs, and the series that is accepted.
pub const LINKER_VERSION: Version = Version {
    major: 0,
    minor: 13,
    patch: 0,
};

/// Without this feature (LLVM 22) every multi-byte header field is loaded byte by byte.
const FEATURE: &str = "allows-misaligned-mem-access";

/// The three numbers of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// Reads what `bpf-linker --version` prints: `bpf-linker 0.13.0`.
    fn parse(printed: &str) -> Option<Self> {
        let mut numbers = printed.split_whitespace().nth(1)?.splitn(3, '.');
        let mut next = || numbers.next()?.split(['-', '+']).next()?.parse().ok();
        Some(Self {
            major: next()?,
            minor: next()?,
            patch: next()?,
        })
    }

    /// Whether it is of the series whose options this project knows; before 1.0 the second number may break them.
    fn is_known(self) -> bool {
        self.major == LINKER_VERSION.major && self.minor == LINKER_VERSION.minor
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A usable `bpf-linker`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linker {
    path: PathBuf,
    version: Version,
}

impl Linker {
    /// Looks among the project's own tools first, then on `PATH`.
    ///
    /// # Errors
    ///
    /// When none is usable: what is wrong with the first one, or that there is none.
    pub fn find(tools: &Path) -> Result<Self, LinkerProblem> {
        let own = tools.join("bin").join(LINKER_NAME);
        let candidates = own
            .is_file()
            .then_some(own)
            .into_iter()
            .chain(on_path(LINKER_NAME));
        let mut problem = None;
        for path in candidates {
            match Self::examine(path) {
                Ok(linker) => return Ok(linker),
                Err(found) => problem = problem.or(Some(found)),
            }
        }
        Err(problem.unwrap_or(LinkerProblem::Absent))
    }

    fn examine(path: PathBuf) -> Result<Self, LinkerProblem> {
        match (printed_by(&path, "--version"), printed_by(&path, "--help")) {
            (Some(version), Some(help)) => judge(path, &version, &help),
            _ => Err(LinkerProblem::DoesNotRun(path)),
        }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for Linker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{LINKER_NAME} {} at {}",
            self.version,
            self.path.display()
        )
    }
}

fn judge(path: PathBuf, version: &str, help: &str) -> Result<Linker, LinkerProblem> {
    match Version::parse(version) {
        Some(version) if !version.is_known() => Err(LinkerProblem::WrongVersion(path, version)),
        Some(version) if help.contains(FEATURE) => Ok(Linker { path, version }),
        Some(_) => Err(LinkerProblem::LacksFeature(path)),
        None => Err(LinkerProblem::DoesNotRun(path)),
    }
}

fn printed_by(program: &Path, option: &str) -> Option<String> {
    let output = Command::new(program).arg(option).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Why there is no usable linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkerProblem {
    /// There is none at all.
    Absent,
    /// It cannot be started, or does not say what it is.
    DoesNotRun(PathBuf),
    /// It is of another series.
    WrongVersion(PathBuf, Version),
    /// It was built with an LLVM older than 22.
    LacksFeature(PathBuf),
}

impl fmt::Display for LinkerProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version { major, minor, .. } = LINKER_VERSION;
        match self {
            Self::Absent => write!(f, "{LINKER_NAME} {major}.{minor}"),
            Self::DoesNotRun(path) => {
                write!(
                    f,
                    "{LINKER_NAME} {major}.{minor} ({} does not run)",
                    path.display()
                )
            }
            Self::WrongVersion(path, version) => {
                write!(
                    f,
                    "{LINKER_NAME} {major}.{minor} ({} is {version})",
                    path.display()
                )
            }
            Self::LacksFeature(path) => write!(
                f,
                "{LINKER_NAME} {major}.{minor} built with LLVM 22 or newer ({} lacks the CPU feature {FEATURE})",
                path.display()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "--cpu-features <features>  alu32, dwarfris. LLVM 22 builds also support \
                        allows-misaligned-mem-access.";

    fn judged(version: &str, help: &str) -> Result<Version, LinkerProblem> {
        judge(PathBuf::from("/opt/bpf-linker"), version, help).map(|linker| linker.version)
    }

    #[test]
    fn the_pinned_version_with_the_feature_is_usable() {
        assert_eq!(judged("bpf-linker 0.13.0\n", HELP), Ok(LINKER_VERSION));
        assert_eq!(
            judged("bpf-linker 0.13.4-rc.1\n", HELP),
            Ok(Version {
                patch: 4,
                ..LINKER_VERSION
            })
        );
    }

    #[test]
    fn another_series_is_refused_and_named() {
        for version in ["0.12.9", "0.14.0", "1.13.0"] {
            let problem = judged(&format!("bpf-linker {version}"), HELP).unwrap_err();
            assert!(problem.to_string().contains(version), "{problem}");
        }
    }

    #[test]
    fn an_old_llvm_is_refused() {
        let problem = judged("bpf-linker 0.13.0", "alu32, dwarfris").unwrap_err();
        assert_eq!(
            problem,
            LinkerProblem::LacksFeature(PathBuf::from("/opt/bpf-linker"))
        );
    }

    #[test]
    fn nonsense_is_no_version() {
        for printed in ["", "bpf-linker", "bpf-linker x.y.z", "bpf-linker 0.13"] {
            assert_eq!(Version::parse(printed), None, "{printed}");
        }
    }

    #[test]
    fn a_linker_that_is_not_there_does_not_run() {
        let path = PathBuf::from("/nowhere/bpf-linker");
        assert_eq!(
            Linker::examine(path.clone()),
            Err(LinkerProblem::DoesNotRun(path))
        );
    }
}
