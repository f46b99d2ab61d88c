//! In which order the limits that match a packet are asked.

use std::cmp::Reverse;

use limiter_common::policy::Place;

use super::CompiledLimit;
use crate::spec::{Packets, Per, PolicySpec};

/// The rule, for people.
pub const ORDER: &str = "\
the most specific limit first: per source, then per wider source, then shared by the users of one service, then shared \
by everyone; of these, limits of a service before those of none, then limits on a kind of packets before those on any, \
then as they stand in the file";

/// The rank of a limit: the lower, the earlier.
pub(super) fn rank(limit: &CompiledLimit, spec: &PolicySpec) -> impl Ord + use<> {
    let of = &spec.limits[limit.spec];
    let place = match (limit.place, of.per) {
        (Place::Source, _) => 0,
        (Place::Wide, _) => 1,
        (Place::Shared, Per::Service) => 2,
        (Place::Shared, _) => 3,
    };
    (
        place,
        Reverse(limit.service.is_some()),
        Reverse(of.packets != Packets::Any),
        limit.spec,
        limit.service,
    )
}
