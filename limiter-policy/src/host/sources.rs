//! What is remembered of a source, in plain memory.

use std::rc::Rc;

use limiter_common::{
    judge::SourceState,
    state::{Head, MAX_SLOTS, Slot},
    word::Word,
};

use super::SourceCopy;

/// The live state of a source; a clone is the same source.
#[derive(Clone, Debug)]
pub struct HostSource(Rc<Live>);

#[derive(Debug)]
struct Live {
    head: Head<Word>,
    slots: Vec<Slot<Word>>,
}

impl HostSource {
    /// A source of which nothing is known.
    pub(super) fn new() -> Self {
        Self(Rc::new(Live {
            head: Head::default(),
            slots: (0..MAX_SLOTS).map(|_| Slot::default()).collect(),
        }))
    }

    pub(super) fn copy(&self) -> SourceCopy {
        SourceCopy {
            head: self.0.head.snapshot(),
            slots: self.0.slots.iter().map(copy_slot).collect(),
        }
    }

    /// Sets all but the standing.
    pub(super) fn set(&self, copy: &SourceCopy) {
        let head = &self.0.head;
        head.last_seen.store(copy.head.last_seen);
        head.passed.store(copy.head.passed);
        head.dropped.store(copy.head.dropped);
        for (slot, copy) in self.0.slots.iter().zip(&copy.slots) {
            set_slot(slot, *copy);
        }
    }

    pub(super) fn set_slot(&self, slot: u32, copy: Slot) {
        if let Some(slot) = self.slot(slot) {
            set_slot(slot, copy);
        }
    }
}

impl SourceState for HostSource {
    fn head(&self) -> &Head<Word> {
        &self.0.head
    }

    fn slot(&self, slot: u32) -> Option<&Slot<Word>> {
        self.0.slots.get(slot as usize)
    }
}

pub(super) fn copy_slot(slot: &Slot<Word>) -> Slot {
    Slot {
        word: slot.word.load(),
        note: slot.note.load(),
    }
}

pub(super) fn set_slot(slot: &Slot<Word>, copy: Slot) {
    slot.word.store(copy.word);
    slot.note.store(copy.note);
}
