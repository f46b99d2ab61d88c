//! What set-up has to do, decided from what the machine has.

use bpf_toolchain::{CompilerPart, LINKER_NAME, LINKER_VERSION, ROUTE_VARIABLE, Route};

use super::{
    facts::{Facts, Origin},
    needs::Need,
    step::{LinkerFrom, Step},
};

/// The LLVM of Debian's rustc, and the oldest whose linker has what the packet parser needs.
const OLDEST_LLVM: u32 = 22;

/// The newest LLVM that the linker can be built with.
const NEWEST_LLVM: u32 = 23;

/// Ways that were tried in this run and failed; they are not planned again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Failed {
    pub(crate) rustup: bool,
    pub(crate) binstall: bool,
}

/// All steps towards `needs`.
pub(crate) fn plan(needs: &[Need], facts: &Facts, failed: Failed) -> Vec<Step> {
    without_duplicates(
        needs
            .iter()
            .flat_map(|need| towards(*need, facts, failed))
            .collect(),
    )
}

/// The steps towards one need; none if it is met.
pub(crate) fn towards(need: Need, facts: &Facts, failed: Failed) -> Vec<Step> {
    let route = choose(facts, failed);
    match need {
        Need::BpfCompiler => compiler(route, facts),
        Need::BpfLinker => linker(route, facts, failed),
        Need::BpfClippy => bpf_clippy(route, facts).into_iter().collect(),
        Need::HostClippy if !facts.host.clippy => {
            vec![host_component("clippy", "rust-web-clippy", facts)]
        }
        Need::Rustfmt if !facts.host.rustfmt => {
            vec![host_component("rustfmt", "rustfmt-web", facts)]
        }
        Need::Program(program) if facts.absent_programs.contains(&program.name) => {
            vec![package(program.package, program.why, facts)]
        }
        Need::HostClippy | Need::Rustfmt | Need::Program(_) => Vec::new(),
    }
}

/// The route to take: the one asked for, else one whose compiler is complete, else one that can be completed.
pub(crate) fn choose(facts: &Facts, failed: Failed) -> Option<Route> {
    let is_complete = |route: &Route| facts.compiler(*route).lacks.is_empty();
    let can_be_completed = |route: &Route| match route {
        Route::Rustup => facts.installers.rustup && !failed.rustup,
        Route::Debian => facts.installers.apt,
    };
    let allowed: Vec<_> = Route::ALL
        .into_iter()
        .filter(|route| facts.forced.is_none_or(|forced| forced == *route))
        .collect();
    allowed
        .iter()
        .copied()
        .find(is_complete)
        .or_else(|| allowed.iter().copied().find(can_be_completed))
}

fn compiler(route: Option<Route>, facts: &Facts) -> Vec<Step> {
    const WHY: &str = "compiles BPF programs";
    match route {
        None => vec![Step::ByHand {
            what: by_hand(facts.forced).to_owned(),
            why: WHY,
        }],
        Some(route) if facts.compiler(route).lacks.is_empty() => Vec::new(),
        Some(Route::Rustup) if facts.rustup.lacks.contains(&CompilerPart::Nightly) => {
            vec![Step::rustup(
                "nightly with rust-src",
                WHY,
                &[
                    "toolchain",
                    "install",
                    "nightly",
                    "--profile",
                    "minimal",
                    "--component",
                    "rust-src",
                ],
            )]
        }
        Some(Route::Rustup) => vec![Step::rustup(
            "nightly's rust-src",
            WHY,
            &["component", "add", "rust-src", "--toolchain", "nightly"],
        )],
        // All three: they only work together, in one version.
        Some(Route::Debian) => ["rustc-web", "cargo-web", "libstd-rust-web-dev-bpf"]
            .map(|name| Step::package(name, WHY))
            .into(),
    }
}

fn by_hand(forced: Option<Route>) -> &'static str {
    match forced {
        Some(Route::Rustup) => "rustup with the toolchain nightly and its component rust-src",
        Some(Route::Debian) => "Debian's packages rustc-web, cargo-web and libstd-rust-web-dev-bpf",
        None => {
            "rustup with the toolchain nightly and its component rust-src; or, on Debian, the packages rustc-web, \
             cargo-web and libstd-rust-web-dev-bpf"
        }
    }
}

fn linker(route: Option<Route>, facts: &Facts, failed: Failed) -> Vec<Step> {
    const WHY: &str = "bpf-linker is built with it";
    if facts.linker {
        return Vec::new();
    }
    if route == Some(Route::Rustup) && facts.installers.binstall && !failed.binstall {
        return vec![Step::Linker(LinkerFrom::Release)];
    }
    let wanted = route
        .and_then(|route| facts.compiler(route).llvm)
        .unwrap_or(OLDEST_LLVM);
    if !facts.installers.apt || wanted > NEWEST_LLVM {
        let what = format!(
            "{LINKER_NAME} {LINKER_VERSION} with LLVM {wanted} or newer on PATH, for example by `cargo binstall \
             {LINKER_NAME}@{LINKER_VERSION}` (or another compiler: see {ROUTE_VARIABLE})"
        );
        return vec![Step::ByHand {
            what,
            why: "makes BPF objects",
        }];
    }
    let llvm = wanted.max(OLDEST_LLVM);
    let packages = [
        format!("llvm-{llvm}-dev"),
        format!("libpolly-{llvm}-dev"),
        "g++".to_owned(),
    ];
    let absent = packages
        .into_iter()
        .filter(|name| !(facts.is_installed)(name));
    let mut steps: Vec<_> = absent.map(|name| Step::package(name, WHY)).collect();
    steps.push(Step::Linker(LinkerFrom::Source { llvm }));
    steps
}

fn bpf_clippy(route: Option<Route>, facts: &Facts) -> Option<Step> {
    const WHY: &str = "checks BPF programs";
    let route = route.filter(|route| !facts.compiler(*route).clippy)?;
    Some(match route {
        Route::Rustup => Step::rustup(
            "nightly's clippy",
            WHY,
            &["component", "add", "clippy", "--toolchain", "nightly"],
        ),
        Route::Debian => Step::package("rust-web-clippy", WHY),
    })
}

fn host_component(component: &'static str, package: &str, facts: &Facts) -> Step {
    const WHY: &str = "checks the host's crates";
    match &facts.host.origin {
        Origin::Rustup(toolchain) => Step::rustup(
            component,
            WHY,
            &["component", "add", component, "--toolchain", toolchain],
        ),
        Origin::Debian => Step::package(package, WHY),
        Origin::Unknown => Step::ByHand {
            what: format!("{component} beside cargo"),
            why: WHY,
        },
    }
}

fn package(name: &str, why: &'static str, facts: &Facts) -> Step {
    if facts.installers.apt {
        Step::package(name, why)
    } else {
        Step::ByHand {
            what: name.to_owned(),
            why,
        }
    }
}

fn without_duplicates(steps: Vec<Step>) -> Vec<Step> {
    let mut unique: Vec<Step> = Vec::new();
    for step in steps {
        let is_twin = |other: &Step| match (&step, other) {
            (Step::Package { name, .. }, Step::Package { name: other, .. }) => name == other,
            _ => step == *other,
        };
        if !unique.iter().any(is_twin) {
            unique.push(step);
        }
    }
    unique
}

#[cfg(test)]
mod tests;
