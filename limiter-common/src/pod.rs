//! Map keys and values may be read and written as bytes.

use crate::{counters::Counters, policy::Policy, source::SourceKey, state::SourceState};

// SAFETY: `repr(C)`, integers only, no padding: its size is asserted.
unsafe impl aya::Pod for Counters {}
// SAFETY: `repr(C)`, integers only, no padding: its size is asserted.
unsafe impl aya::Pod for Policy {}
// SAFETY: `repr(C)`, integers only, no padding: its size is asserted.
unsafe impl aya::Pod for SourceKey {}
// SAFETY: `repr(C)`, integers only, no padding: its size is asserted.
unsafe impl aya::Pod for SourceState {}
