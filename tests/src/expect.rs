//! What a row of the table means in each situation.

use limiter_common::counters::Reason;

use crate::{
    counted::Counted,
    packets::{Outcome, Row},
    world::Action,
};

/// In what situation a packet comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Whether its source has spent all it had; otherwise nobody has sent anything yet.
    pub drained: bool,
    /// Whether nothing is to be dropped.
    pub monitored: bool,
}

/// Those in which each packet is tried.
pub const SITUATIONS: [Situation; 3] = [
    Situation {
        drained: false,
        monitored: false,
    },
    Situation {
        drained: true,
        monitored: false,
    },
    Situation {
        drained: true,
        monitored: true,
    },
];

/// The source that pays, if any.
#[must_use]
pub const fn charged_source(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Charged(key) | Outcome::ChargedMalformed(key) => Some(key),
        Outcome::Dropped(_) | Outcome::Need(_) | Outcome::Passed => None,
    }
}

/// The verdict, and what is counted.
#[must_use]
pub fn expected(row: &Row, situation: Situation) -> (Action, Counted) {
    let Situation { drained, monitored } = situation;
    let mut counted = Counted::new();
    let mut count = |name: &str| *counted.entry(name.to_owned()).or_default() += 1;
    count("seen");
    for odd in &row.odd {
        count(&format!("odd.{}", odd.name()));
    }
    if charged_source(row.outcome).is_some() && !drained {
        count("table.inserted");
    }
    let reason = match row.outcome {
        Outcome::Charged(_) if !drained => {
            count("limits.0.passed");
            None
        }
        // A malformed packet that its source can pay for is none that the limit has let through.
        Outcome::ChargedMalformed(_) if !drained => Some(Reason::Malformed),
        Outcome::Charged(_) | Outcome::ChargedMalformed(_) => {
            count(if monitored {
                "limits.0.would_drop"
            } else {
                "limits.0.dropped"
            });
            Some(if matches!(row.outcome, Outcome::Charged(_)) {
                Reason::Limit
            } else {
                Reason::Malformed
            })
        }
        Outcome::Dropped(reason) => Some(reason),
        Outcome::Need(need) => {
            count(&format!("needs_passed.{}", need.name()));
            None
        }
        Outcome::Passed => None,
    };
    let action = match reason {
        Some(reason) if monitored => {
            count(&format!("would_drop.{}", reason.name()));
            Action::Pass
        }
        Some(reason) => {
            count(&format!("dropped.{}", reason.name()));
            Action::Drop
        }
        None => Action::Pass,
    };
    if action == Action::Pass {
        count("passed");
    }
    (action, counted)
}
