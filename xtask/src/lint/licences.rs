//! The licences of all dependencies, against the list of those that are compatible with this project's.

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::{Metadata, MetadataCommand};
use spdx::{Expression, ParseMode};

use crate::workspace::Workspace;

/// Permissive licences, and one whose copyleft ends at the file.
const ALLOWED: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut dependencies = 0;
    let mut refused = Vec::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let metadata = metadata(workspace, manifest)?;
        // The project's own packages come from no registry.
        for package in metadata
            .packages
            .iter()
            .filter(|package| package.source.is_some())
        {
            dependencies += 1;
            if let Err(why) = judge(package.license.as_deref()) {
                refused.push(format!("{} {}: {why}", package.name, package.version));
            }
        }
    }
    ensure!(refused.is_empty(), "not allowed: {}", refused.join("; "));
    println!("licences: {dependencies} dependencies, all of them allowed");
    Ok(())
}

/// The packages of one workspace, without those of platforms that it never runs on.
fn metadata(workspace: &Workspace, manifest: &str) -> Result<Metadata> {
    let host = workspace.host_triple()?;
    let options = ["--locked", "--filter-platform", &host].map(str::to_owned);
    MetadataCommand::new()
        .cargo_path(workspace.host_program("cargo"))
        .manifest_path(workspace.root().join(manifest))
        .other_options(options)
        .exec()
        .with_context(|| format!("cannot read the dependencies of {manifest}"))
}

/// Whether a package's licence expression can be met with allowed licences.
fn judge(expression: Option<&str>) -> Result<(), String> {
    let text = expression.ok_or("names no licence")?;
    // Older packages write `MIT/Apache-2.0`.
    let expression = Expression::parse_mode(text, ParseMode::LAX)
        .map_err(|error| format!("{text}: {}", error.reason))?;
    let is_allowed = |requirement: &spdx::LicenseReq| {
        // An exception only permits more.
        requirement
            .license
            .id()
            .is_some_and(|id| ALLOWED.contains(&id.name))
    };
    if expression.evaluate(is_allowed) {
        Ok(())
    } else {
        Err(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_needs_one_allowed_licence() {
        for expression in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
        ] {
            assert_eq!(judge(Some(expression)), Ok(()), "{expression}");
        }
    }

    #[test]
    fn a_conjunction_needs_all_allowed() {
        assert_eq!(judge(Some("(MIT OR Apache-2.0) AND Unicode-3.0")), Ok(()));
        assert!(judge(Some("MIT AND GPL-2.0-only")).is_err());
    }

    #[test]
    fn what_is_unknown_or_absent_is_refused() {
        assert!(judge(Some("LicenseRef-Proprietary")).is_err());
        assert!(judge(Some("something else")).is_err());
        assert!(judge(None).is_err());
    }
}
