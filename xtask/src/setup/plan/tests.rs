//! Machines, and what is planned for them.

use super::*;
use crate::setup::{
    facts::{CompilerFacts, Host, Installers},
    needs,
};

fn complete(llvm: u32) -> CompilerFacts {
    CompilerFacts {
        lacks: Vec::new(),
        llvm: Some(llvm),
        clippy: true,
    }
}

fn lacking(lacks: &[CompilerPart]) -> CompilerFacts {
    CompilerFacts {
        lacks: lacks.to_vec(),
        llvm: None,
        clippy: false,
    }
}

fn debian_without_rustup() -> Facts {
    Facts {
        forced: None,
        rustup: lacking(&[CompilerPart::Rustup]),
        debian: lacking(&[CompilerPart::DebianCore]),
        linker: false,
        host: Host {
            origin: Origin::Debian,
            clippy: true,
            rustfmt: true,
        },
        absent_programs: vec!["ping", "c++"],
        installers: Installers {
            apt: true,
            rustup: false,
            binstall: false,
        },
        is_installed: |_| false,
    }
}

fn rustup_without_debian() -> Facts {
    Facts {
        rustup: lacking(&[CompilerPart::RustSrc]),
        debian: lacking(&[CompilerPart::DebianRustc]),
        installers: Installers {
            apt: false,
            rustup: true,
            binstall: true,
        },
        ..debian_without_rustup()
    }
}

fn rustup_and_apt() -> Facts {
    let mut facts = rustup_without_debian();
    facts.installers.apt = true;
    facts
}

fn everything() -> Facts {
    Facts {
        rustup: complete(22),
        debian: complete(22),
        linker: true,
        absent_programs: Vec::new(),
        ..rustup_and_apt()
    }
}

fn names(steps: &[Step]) -> Vec<String> {
    steps
        .iter()
        .map(|step| {
            step.to_string()
                .split(" (")
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

#[test]
fn a_machine_with_everything_needs_nothing() {
    assert_eq!(plan(needs::ALL, &everything(), Failed::default()), []);
}

#[test]
fn debian_alone_gets_packages_and_a_linker_from_source() {
    let steps = plan(needs::TEST, &debian_without_rustup(), Failed::default());
    let expected = [
        "rustc-web",
        "cargo-web",
        "libstd-rust-web-dev-bpf",
        "llvm-22-dev",
        "libpolly-22-dev",
        "g++",
        "bpf-linker 0.13.0",
        "iputils-ping",
    ];
    assert_eq!(names(&steps), expected);
}

#[test]
fn a_task_installs_only_what_it_needs() {
    assert_eq!(
        names(&plan(
            needs::FUZZ,
            &debian_without_rustup(),
            Failed::default()
        )),
        ["g++"]
    );
}

#[test]
fn rustup_alone_gets_a_component_and_a_released_linker() {
    let steps = plan(needs::BUILD, &rustup_without_debian(), Failed::default());
    assert_eq!(names(&steps), ["nightly's rust-src", "bpf-linker 0.13.0"]);
    assert_eq!(steps[1], Step::Linker(LinkerFrom::Release));
}

#[test]
fn without_nightly_the_toolchain_is_installed() {
    let mut facts = rustup_without_debian();
    facts.rustup = lacking(&[CompilerPart::Nightly, CompilerPart::RustSrc]);
    let steps = plan(needs::BUILD, &facts, Failed::default());
    assert_eq!(names(&steps)[0], "nightly with rust-src");
}

#[test]
fn when_rustup_fails_debian_is_next() {
    let facts = rustup_and_apt();
    assert_eq!(choose(&facts, Failed::default()), Some(Route::Rustup));
    assert_eq!(
        choose(
            &facts,
            Failed {
                rustup: true,
                binstall: false
            }
        ),
        Some(Route::Debian)
    );
}

#[test]
fn a_complete_compiler_is_preferred_to_one_that_must_be_completed() {
    let facts = Facts {
        debian: complete(22),
        ..rustup_without_debian()
    };
    assert_eq!(choose(&facts, Failed::default()), Some(Route::Debian));
    assert_eq!(
        choose(&everything(), Failed::default()),
        Some(Route::Rustup)
    );
}

#[test]
fn a_forced_route_is_taken_or_nothing_is() {
    let facts = Facts {
        forced: Some(Route::Debian),
        ..everything()
    };
    assert_eq!(choose(&facts, Failed::default()), Some(Route::Debian));
    let facts = Facts {
        forced: Some(Route::Rustup),
        ..debian_without_rustup()
    };
    assert_eq!(choose(&facts, Failed::default()), None);
    let steps = plan(needs::BUILD, &facts, Failed::default());
    assert!(
        matches!(&steps[0], Step::ByHand { what, .. } if what.starts_with("rustup with")),
        "{steps:?}"
    );
}

#[test]
fn neither_rustup_nor_debian_leaves_it_to_a_person() {
    let mut facts = debian_without_rustup();
    facts.installers.apt = false;
    let steps = plan(needs::TEST, &facts, Failed::default());
    assert!(
        steps.iter().all(|step| matches!(step, Step::ByHand { .. })),
        "{steps:?}"
    );
}

#[test]
fn the_linker_is_built_with_the_llvm_of_the_compiler() {
    for (rustc, linker) in [(21, 22), (22, 22), (23, 23)] {
        let facts = Facts {
            rustup: complete(rustc),
            ..debian_without_rustup()
        };
        let steps = plan(needs::BUILD, &facts, Failed::default());
        assert!(
            steps.contains(&Step::Linker(LinkerFrom::Source { llvm: linker })),
            "{steps:?}"
        );
    }
}

#[test]
fn a_compiler_newer_than_any_linker_is_left_to_a_person() {
    let facts = Facts {
        rustup: complete(24),
        ..debian_without_rustup()
    };
    let steps = plan(needs::BUILD, &facts, Failed::default());
    assert!(
        matches!(&steps[..], [Step::ByHand { what, .. }] if what.contains("LLVM 24")),
        "{steps:?}"
    );
}

#[test]
fn when_the_released_linker_is_unusable_it_is_built() {
    let facts = Facts {
        rustup: complete(22),
        ..rustup_and_apt()
    };
    let steps = plan(
        needs::BUILD,
        &facts,
        Failed {
            rustup: false,
            binstall: true,
        },
    );
    assert_eq!(
        steps.last(),
        Some(&Step::Linker(LinkerFrom::Source { llvm: 22 }))
    );
}
