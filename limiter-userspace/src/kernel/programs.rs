//! Programs in the kernel, ours and others'.

use aya::programs::loaded_programs;

/// The name of a loaded program, where the kernel tells.
#[must_use]
pub fn name(id: u32) -> String {
    loaded_programs()
        .filter_map(Result::ok)
        .find(|program| program.id() == id)
        .and_then(|program| program.name_as_str().map(str::to_owned))
        .unwrap_or_else(|| "unknown".to_owned())
}
