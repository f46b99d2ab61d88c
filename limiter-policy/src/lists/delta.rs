//! From what the kernel holds to what it should hold.

use crate::prefix::{Prefix, PrefixSet};

/// What to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta<V> {
    /// New prefixes, and those that mean something else now.
    pub set: Vec<(Prefix, V)>,
    /// Prefixes that are there no more.
    pub remove: Vec<Prefix>,
}

impl<V> Default for Delta<V> {
    fn default() -> Self {
        Self {
            set: Vec::new(),
            remove: Vec::new(),
        }
    }
}

impl<V> Delta<V> {
    /// Whether there is nothing to do.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }

    /// How many prefixes it touches.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.set.len() + self.remove.len()
    }
}

/// What makes `new` of `old`.
#[must_use]
pub fn difference<V: Copy + PartialEq>(old: &PrefixSet<V>, new: &PrefixSet<V>) -> Delta<V> {
    let mut delta = Delta::default();
    walk(old, new, &mut delta, usize::MAX);
    delta
}

/// The same where it touches at most so many prefixes. Of sets that differ in more, only their beginnings are looked at.
#[must_use]
pub fn small_difference<V: Copy + PartialEq>(
    old: &PrefixSet<V>,
    new: &PrefixSet<V>,
    most: usize,
) -> Option<Delta<V>> {
    let mut delta = Delta::default();
    walk(old, new, &mut delta, most);
    (delta.len() <= most).then_some(delta)
}

/// Both are sorted, so one walk side by side finds what differs. It ends where that is more than `most`.
fn walk<V: Copy + PartialEq>(
    old: &PrefixSet<V>,
    new: &PrefixSet<V>,
    delta: &mut Delta<V>,
    most: usize,
) {
    let mut old = old.entries().iter().peekable();
    for &(prefix, value) in new.entries() {
        while let Some((gone, _)) = old.next_if(|(old, _)| *old < prefix) {
            delta.remove.push(*gone);
        }
        let same = old.next_if(|(old, _)| *old == prefix);
        if same.is_none_or(|(_, old)| *old != value) {
            delta.set.push((prefix, value));
        }
        if delta.len() > most {
            return;
        }
    }
    delta.remove.extend(old.map(|(gone, _)| *gone));
}
