//! Other terms in the place of a limit's own, as an override asks for them.

use limiter_common::meter::{Algorithm, Meter};

use crate::{
    spec::{Cost, Terms},
    units::{RateSpec, SizeSpec, Unit},
};

impl Terms {
    /// The same algorithm with another rate or size; what is not given stays.
    ///
    /// # Errors
    ///
    /// Where the algorithm cannot have them, or a packet could never pay.
    pub fn with(
        &self,
        rate: Option<RateSpec>,
        size: Option<SizeSpec>,
        cost: Cost,
    ) -> Result<Self, String> {
        let algorithm = self.meter.algorithm();
        if size.is_some() && self.size.is_none() {
            return Err(format!(
                "a {} has no burst; give a rate only",
                algorithm.name()
            ));
        }
        let rate = rate.unwrap_or_else(|| self.rate.clone());
        let size = size.or_else(|| self.size.clone());
        let unit = match cost {
            Cost::Length => Unit::Bytes,
            Cost::Fixed(_) => Unit::Packets,
        };
        if rate.unit != unit {
            return Err(format!("rate {rate}: the limit counts {}", name(unit)));
        }
        if let Some(size) = size.as_ref().filter(|size| size.unit != unit) {
            return Err(format!("burst {size}: the limit counts {}", name(unit)));
        }
        let amount = size.as_ref().map_or(0, |size| size.amount);
        let meter = match algorithm {
            Algorithm::TokenBucket => Meter::token_bucket(rate.rate, amount),
            Algorithm::LeakyBucket => Meter::leaky_bucket(rate.rate, amount),
            Algorithm::FixedWindow => Meter::fixed_window(rate.rate),
            Algorithm::SlidingWindow => Meter::sliding_window(rate.rate),
            Algorithm::SlidingLog => Meter::sliding_log(rate.rate),
        };
        let meter = meter.ok_or_else(|| {
            format!(
                "{rate} is outside the range of a {}; see the policy's reference",
                algorithm.name()
            )
        })?;
        if let Cost::Fixed(cost) = cost
            && meter.tokens(0, 0) < u64::from(cost)
            && algorithm != Algorithm::SlidingLog
        {
            return Err(format!(
                "a packet costs {cost}, more than there ever is; raise the rate or burst"
            ));
        }
        Ok(Self { meter, rate, size })
    }
}

const fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Packets => "packets",
        Unit::Bytes => "bytes",
    }
}
