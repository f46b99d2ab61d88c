//! Prefixes written in the policy, and files of them.

use std::path::{Path, PathBuf};

use super::{cidr, fault::Fault, reader::Node};
use crate::spec::PrefixesSpec;

/// Prefixes and files. Relative files start from `directory`.
pub(super) fn read(
    inline: Option<&Node<'_>>,
    files: Option<&Node<'_>>,
    directory: &Path,
) -> Result<PrefixesSpec, Fault> {
    Ok(PrefixesSpec {
        inline: inline.map_or(Ok(Vec::new()), cidr::read_all)?,
        files: files.map_or(Ok(Vec::new()), |files| read_files(files, directory))?,
    })
}

fn read_files(node: &Node<'_>, directory: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut files = Vec::new();
    for element in node.elements("an array of files such as [\"partners.txt\"]")? {
        let name = element.string("a file such as \"partners.txt\"")?;
        if name.is_empty() || name.contains('\0') {
            return Err(element.fault(format!("{name:?} is not the name of a file")));
        }
        let file = directory.join(name);
        if files.contains(&file) {
            return Err(element.fault(format!("`{name}` is listed twice")));
        }
        files.push(file);
    }
    Ok(files)
}
