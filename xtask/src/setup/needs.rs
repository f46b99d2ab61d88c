//! What each task needs from the machine.

/// One thing that a task needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A compiler for the BPF target.
    BpfCompiler,
    /// The linker of BPF objects.
    BpfLinker,
    /// Clippy of the compiler for the BPF target.
    BpfClippy,
    /// Clippy of the host's toolchain.
    HostClippy,
    /// The formatter of the host's toolchain.
    Rustfmt,
    /// A program on the search path.
    Program(Program),
}

/// A program on the search path, and Debian's package that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) why: &'static str,
}

impl Need {
    /// What it is called in the list of what is present.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BpfCompiler => "BPF compiler",
            Self::BpfLinker => "BPF linker",
            Self::BpfClippy => "clippy for BPF",
            Self::HostClippy => "clippy",
            Self::Rustfmt => "rustfmt",
            Self::Program(program) => program.name,
        }
    }
}

const IP: Need = Need::Program(Program {
    name: "ip",
    package: "iproute2",
    why: "network namespaces and veth pairs of tests and demo",
});
const PING: Need = Need::Program(Program {
    name: "ping",
    package: "iputils-ping",
    why: "the polite client of tests and demo",
});
const ETHTOOL: Need = Need::Program(Program {
    name: "ethtool",
    package: "ethtool",
    why: "the offloads of veth pairs in tests",
});
const CXX: Need = Need::Program(Program {
    name: "c++",
    package: "g++",
    why: "libFuzzer is written in C++",
});

/// For the binary.
pub(crate) const BUILD: &[Need] = &[Need::BpfCompiler, Need::BpfLinker];
/// For the demonstration.
pub(crate) const DEMO: &[Need] = &[Need::BpfCompiler, Need::BpfLinker, IP, PING, ETHTOOL];
/// For all tests.
pub(crate) const TEST: &[Need] = &[Need::BpfCompiler, Need::BpfLinker, IP, PING, ETHTOOL, CXX];
/// For all checks.
pub(crate) const LINT: &[Need] = &[
    Need::BpfCompiler,
    Need::BpfLinker,
    Need::BpfClippy,
    Need::HostClippy,
    Need::Rustfmt,
    CXX,
];
/// For fuzzing alone.
pub(crate) const FUZZ: &[Need] = &[CXX];
/// For every task.
pub(crate) const ALL: &[Need] = &[
    Need::BpfCompiler,
    Need::BpfLinker,
    Need::BpfClippy,
    Need::HostClippy,
    Need::Rustfmt,
    IP,
    PING,
    ETHTOOL,
    CXX,
];
