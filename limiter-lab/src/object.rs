//! The BPF object with the generator and the counting programs.

use anyhow::{Context as _, Result, ensure};
use aya::{Ebpf, EbpfLoader, Pod, include_bytes_aligned, programs::Xdp};

use crate::{netns::require_root, plan::Plan};

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/flood"));

// SAFETY: only integers, and no padding between them.
unsafe impl Pod for Plan {}
const _: () = assert!(size_of::<Plan>() == 16 + 16 + 8 + 8 + 8 * 4);

/// Loads a copy of the object, and of its programs this one into the kernel.
pub(crate) fn load(program: &str, plan: &Plan) -> Result<Ebpf> {
    require_root()?;
    ensure!(
        !OBJECT.is_empty(),
        "this was built without a BPF toolchain; run `cargo xtask setup` and build again"
    );
    let mut object = EbpfLoader::new()
        .override_global("PLAN", plan, true)
        .load(OBJECT)
        .context("load the laboratory's BPF object")?;
    xdp(&mut object, program)?
        .load()
        .with_context(|| format!("load the BPF program {program}"))?;
    Ok(object)
}

/// A program of the object.
pub(crate) fn xdp<'a>(object: &'a mut Ebpf, program: &str) -> Result<&'a mut Xdp> {
    let found = object
        .program_mut(program)
        .with_context(|| format!("the BPF object has no program {program}"))?;
    found
        .try_into()
        .with_context(|| format!("the BPF program {program} is not for XDP"))
}
