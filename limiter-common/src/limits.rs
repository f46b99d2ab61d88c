//! Bounds of what one daemon serves.

/// Interfaces of one daemon.
pub const MAX_INTERFACES: u32 = 64;

/// The fewest sources a table may hold, per possible CPU: an LRU map frees entries in batches of 128 per CPU
/// (`LOCAL_FREE_TARGET`, `kernel/bpf/bpf_lru_list.c`, 6.12), so a small one forgets long before it is full.
pub const MIN_SOURCES_PER_CPU: u32 = 1024;

/// Slots for limits that everyone shares.
pub const SHARED_SLOTS: u32 = 256;
