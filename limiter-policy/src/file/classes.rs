//! `[classes.NAME]`: who is asking.

use std::path::Path;

use super::{
    fault::Fault,
    lists,
    reader::{Node, Section},
};
use crate::{
    names,
    spec::{ClassSpec, PrefixesSpec},
};

const KEYS: [&str; 2] = ["sources", "files"];

pub(super) fn read(top: &Section<'_>, directory: &Path) -> Result<Vec<ClassSpec>, Fault> {
    let Some(node) = top.get("classes") else {
        return Ok(Vec::new());
    };
    let classes = node
        .table("a table for each class, [classes.NAME]")?
        .entries();
    let read = |(name, node)| read_one(name, &node, directory);
    classes.into_iter().map(read).collect()
}

fn read_one(name: &str, node: &Node<'_>, directory: &Path) -> Result<ClassSpec, Fault> {
    names::check(name).map_err(|reason| node.fault(reason))?;
    let section = node.section("a table, [classes.NAME], with a name of your choice", &KEYS)?;
    let (inline, files) = (section.get("sources"), section.get("files"));
    let prefixes = lists::read(inline.as_ref(), files.as_ref(), directory)?;
    if prefixes == PrefixesSpec::default() {
        return Err(node.fault(
            "nobody is in this class: name prefixes, sources = [\"203.0.113.0/24\"], or files of them, files = [\"partners.txt\"]",
        ));
    }
    Ok(ClassSpec {
        name: name.to_owned(),
        prefixes,
    })
}
