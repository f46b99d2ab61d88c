//! What prefix sets cost, told before it is spent.

use std::{fmt, fs};

use anyhow::{Context as _, Result};
use limiter_common::address::Address;

/// What a node has besides address and value: two children, length, flags (`struct lpm_trie_node`,
/// `kernel/bpf/lpm_trie.c`), and the allocator's link in front (`LLIST_NODE_SZ`, `kernel/bpf/memalloc.c`). Before 6.13
/// it was an `rcu_head` instead of the link: 8 bytes more, which the rounding below swallows for the values in use.
const NODE_HEADER: usize = 24 + 8;

/// Objects of the kernel's allocator come in these sizes (`kmalloc_info`, `mm/slab_common.c`), and then in powers of 2.
const SLABS: [usize; 10] = [8, 16, 32, 64, 96, 128, 192, 256, 512, 1024];

/// Objects share pages, with what is left of a page unused.
const PAGE: usize = 4096;
/// What the kernel notes for each object: who pays for it (`struct slabobj_ext`, `mm/slab.h`).
const NOTE: usize = 8;

/// Of the memory that is available, the part that prefixes may take: 3/4.
const SHARE: (u64, u64) = (3, 4);

/// Memory that so many prefixes with values `V` take at most.
///
/// Where none is inside another, each but one has a node that branches off to it, as large as its own; each inside
/// another takes the place of a branch.
#[must_use]
pub fn bytes<V>(prefixes: usize) -> u64 {
    let nodes = (2 * prefixes).saturating_sub(1);
    let node = slab(NODE_HEADER + size_of::<Address>() + size_of::<V>());
    let in_page = (PAGE / node).max(1);
    let page = PAGE.max(node) + in_page * NOTE;
    nodes.div_ceil(in_page) as u64 * page as u64
}

fn slab(size: usize) -> usize {
    let fitting = SLABS.into_iter().find(|&slab| slab >= size);
    fitting.unwrap_or_else(|| size.next_power_of_two())
}

/// There is too little memory for a prefix set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLittle {
    /// What it takes, in bytes.
    pub needed: u64,
    /// What the machine could give without swapping.
    pub available: u64,
}

impl fmt::Display for TooLittle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        let Self { needed, available } = *self;
        let (part, whole) = SHARE;
        write!(
            f,
            "the prefixes take {} MB of kernel memory, more than {part}/{whole} of the {} MB that are available; shorten \
             the lists, join neighbours in them, or free memory",
            megabytes(needed),
            megabytes(available)
        )
    }
}

impl std::error::Error for TooLittle {}

/// Whether so much may be taken of what is available.
///
/// # Errors
///
/// Where too little would be left.
pub fn fits(needed: u64, available: u64) -> Result<(), TooLittle> {
    let (part, whole) = SHARE;
    if needed > available / whole * part {
        Err(TooLittle { needed, available })
    } else {
        Ok(())
    }
}

/// What the machine could give without swapping, in bytes: `MemAvailable` of `/proc/meminfo`.
///
/// # Errors
///
/// Where the kernel does not say.
pub fn available() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("/proc/meminfo: cannot be read")?;
    parse(&text).context("/proc/meminfo: there is no MemAvailable in it")
}

fn parse(meminfo: &str) -> Option<u64> {
    let value = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Refuses to take so much where it would not fit.
///
/// # Errors
///
/// Where too little would be left, or the kernel does not say.
pub fn require(needed: u64) -> Result<()> {
    Ok(fits(needed, available()?)?)
}

#[cfg(test)]
mod tests {
    use limiter_common::standing::{Entry, Membership};

    use super::*;

    #[test]
    fn a_million_prefixes_take_what_the_kernel_rounds_them_to() {
        // 64 nodes of 64 bytes in a page, and 42 of 96 bytes.
        assert_eq!(bytes::<Membership>(1_000_000), 31_250 * (4096 + 64 * 8));
        assert_eq!(bytes::<Entry>(1_000_000), 47_620 * (4096 + 42 * 8));
        assert_eq!(bytes::<Entry>(1), 4096 + 42 * 8);
        assert_eq!(bytes::<Entry>(0), 0);
        assert_eq!(bytes::<[u64; 200]>(2), 2 * (4096 + 2 * 8));
    }

    #[test]
    fn a_quarter_of_what_is_available_stays() {
        assert_eq!(fits(3_000, 4_000), Ok(()));
        let refused = fits(192_000_001, 256_000_000).expect_err("too much");
        assert_eq!(
            refused.to_string(),
            "the prefixes take 193 MB of kernel memory, more than 3/4 of the 256 MB that are available; shorten the \
             lists, join neighbours in them, or free memory"
        );
        assert!(fits(u64::MAX, u64::MAX / 2).is_err());
    }

    #[test]
    fn the_kernel_says_what_is_available() {
        assert_eq!(
            parse("MemTotal:  9 kB\nMemAvailable:   23 kB\n"),
            Some(23 * 1024)
        );
        assert_eq!(parse("MemTotal:  9 kB\n"), None);
        assert!(available().is_ok_and(|bytes| bytes > 1 << 20));
    }
}
