//! The order in which limits are asked, as the match table has it.

use std::collections::BTreeSet;

use limiter_common::policy::{MAX_LIMITS, Matching, NO_LIMIT};

/// The numbers of all limits in one order that contains that of every entry of the match table; of limits that no packet
/// meets both of, as they stand in `ranked`, which has each number once.
pub(super) fn asked(matches: &[Matching], ranked: &[usize]) -> Vec<usize> {
    let sequences: BTreeSet<u64> = matches.iter().map(|entry| entry.limits).collect();
    // Which limits are asked before each, as bits.
    let mut before = [0_u64; MAX_LIMITS];
    for sequence in sequences {
        let mut earlier = 0;
        for number in sequence.to_le_bytes() {
            if number == NO_LIMIT {
                break;
            }
            if let Some(before) = before.get_mut(usize::from(number)) {
                *before |= earlier;
                earlier |= 1 << number;
            }
        }
    }
    let ranked: Vec<_> = ranked
        .iter()
        .filter(|number| **number < MAX_LIMITS)
        .collect();
    let mut order = Vec::with_capacity(ranked.len());
    let mut done = 0_u64;
    while order.len() < ranked.len() {
        let waits = |number: &usize| done & 1 << number == 0;
        let ready = |number: &usize| waits(number) && before[*number] & !done == 0;
        // A table that contradicts itself has no such order; show its limits all the same.
        let find =
            |suits: &dyn Fn(&usize) -> bool| ranked.iter().copied().find(|number| suits(number));
        let Some(next) = find(&ready).or_else(|| find(&waits)) else {
            break;
        };
        done |= 1 << next;
        order.push(*next);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(limits: &[u8]) -> Matching {
        let mut bytes = [NO_LIMIT; 8];
        bytes[..limits.len()].copy_from_slice(limits);
        Matching {
            limits: u64::from_le_bytes(bytes),
            needs: 0,
        }
    }

    #[test]
    fn the_order_of_every_entry_is_kept() {
        assert_eq!(asked(&[], &[0, 2, 1]), [0, 2, 1]);
        assert_eq!(
            asked(&[Matching::NONE, matching(&[2, 0])], &[0, 1, 2]),
            [1, 2, 0]
        );
        assert_eq!(
            asked(
                &[matching(&[3, 1]), matching(&[1, 0]), matching(&[2])],
                &[0, 1, 2, 3]
            ),
            [2, 3, 1, 0]
        );
    }

    #[test]
    fn a_table_that_contradicts_itself_still_shows_every_limit_once() {
        assert_eq!(
            asked(&[matching(&[0, 1]), matching(&[1, 0])], &[0, 1]),
            [0, 1]
        );
        let many: Vec<_> = (0..100).collect();
        assert_eq!(asked(&[matching(&[63, 200])], &many).len(), 64);
    }
}
