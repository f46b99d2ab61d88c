//! Classes of destinations: addresses that are of the same services are one to the match table.

use limiter_common::{
    address::Address,
    policy::{Destination, MAX_DESTINATIONS},
};

use crate::{
    error::{PolicyError, Subject},
    prefix::Prefix,
    spec::PolicySpec,
};

/// The destinations that the services of a policy tell apart.
#[derive(Debug)]
pub(super) struct Destinations {
    /// Longest prefix first, each with its class.
    prefixes: Vec<(Prefix, usize)>,
    /// By class: the services that the destination is of, of those that name destinations. Class 0 is of none.
    services: Vec<Vec<usize>>,
}

impl Destinations {
    /// The destinations that `services`, numbers of services, tell apart.
    pub(super) fn new(spec: &PolicySpec, services: &[usize]) -> Result<Self, PolicyError> {
        let named = |service: usize| {
            let nets = spec.services[service].destinations.iter();
            nets.map(|net| Prefix::from(*net))
        };
        let mut prefixes: Vec<_> = services.iter().copied().flat_map(named).collect();
        prefixes.sort_unstable_by(|a, b| b.length.cmp(&a.length).then(a.cmp(b)));
        prefixes.dedup();
        if prefixes.len() > MAX_DESTINATIONS {
            return Err(PolicyError::new(
                Subject::Top,
                "services",
                format!(
                    "they name {} destination prefixes, where there may be {MAX_DESTINATIONS}: name fewer, or wider ones",
                    prefixes.len()
                ),
            ));
        }
        let mut classes = Self {
            prefixes: Vec::new(),
            services: vec![Vec::new()],
        };
        for prefix in prefixes {
            let around = services.iter().copied();
            let around: Vec<_> = around
                .filter(|service| named(*service).any(|outer| outer.covers(&prefix)))
                .collect();
            let known = classes
                .services
                .iter()
                .position(|services| *services == around);
            let class = known.unwrap_or_else(|| {
                classes.services.push(around);
                classes.services.len() - 1
            });
            classes.prefixes.push((prefix, class));
        }
        Ok(classes)
    }

    /// How many classes there are, that of no destination included.
    pub(super) const fn count(&self) -> usize {
        self.services.len()
    }

    /// Whether the destinations of a class are among those that a service names.
    pub(super) fn is_of(&self, class: usize, service: usize) -> bool {
        self.services[class].contains(&service)
    }

    /// A destination of a class.
    pub(super) fn example(&self, class: usize) -> Option<Prefix> {
        let found = self.prefixes.iter().find(|(_, of)| *of == class);
        found.map(|(prefix, _)| *prefix)
    }

    /// As the kernel holds them, and how many are in use.
    pub(super) fn table(&self) -> ([Destination; MAX_DESTINATIONS], u32) {
        let mut table = [NONE; MAX_DESTINATIONS];
        let mut count = 0;
        for (entry, (prefix, class)) in table.iter_mut().zip(&self.prefixes) {
            *entry = Destination {
                prefix: prefix.address,
                mask: Address::mask(prefix.length.into()),
                class: *class as u64,
            };
            count += 1;
        }
        (table, count)
    }
}

/// No destination.
const NONE: Destination = Destination {
    prefix: Address { high: 0, low: 0 },
    mask: Address { high: 0, low: 0 },
    class: 0,
};
