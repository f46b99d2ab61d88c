//! The clock against division.

use proptest::prelude::*;

use super::*;
use crate::meter::{Algorithm, MAX_FIXED_WINDOW};

const SECOND: u64 = 1_000_000_000;
const TEN_YEARS: u64 = 3653 * 86_400 * SECOND;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_product_is_that_of_u128(a in any::<u64>(), b in any::<u64>()) {
        let (high, low) = widening_mul(a, b);
        prop_assert_eq!(u128::from(high) << 64 | u128::from(low), u128::from(a) * u128::from(b));
    }

    /// Rounded up, by less than one part in 2^63.
    #[test]
    fn a_fraction_is_hardly_too_much(numerator in 1..1u64 << 57, denominator in 1..1u64 << 52) {
        let (multiplier, shift) = binary_fraction(numerator, denominator);
        prop_assert!(multiplier >> 63 == 1);
        // multiplier / 2^shift - numerator / denominator, in units of 1 / (2^shift * denominator), without the high bits
        // that cancel out.
        let too_much = u128::from(multiplier)
            .wrapping_mul(u128::from(denominator))
            .wrapping_sub(u128::from(numerator).wrapping_shl(shift) * u128::from(shift < 128));
        prop_assert!(too_much < u128::from(denominator), "{too_much}");
    }

    #[test]
    fn progress_never_decreases(tokens in 1..1u64 << 40, period in 1..1u64 << 51, now in any::<u64>(), later in any::<u64>()) {
        let (multiplier, shift) = binary_fraction(tokens, period);
        let meter = Meter { multiplier, shift, ..Meter::UNUSED };
        prop_assert!(meter.progress(now.min(later)) <= meter.progress(now.max(later)));
    }
}

/// For ten years of uptime a window begins at the nanosecond at which it should.
#[test]
fn windows_begin_on_time_for_ten_years() {
    for (period, _) in MAX_FIXED_WINDOW {
        let (multiplier, shift) = binary_fraction(1, period);
        let meter = Meter {
            multiplier,
            shift: shift - 32,
            algorithm: Algorithm::FixedWindow as u8,
            ..Meter::UNUSED
        };
        let windows = TEN_YEARS / period;
        for number in (1..=windows).step_by(usize::try_from(windows / 3000).unwrap()) {
            let start = number * period;
            assert_eq!(meter.progress(start), number << 32, "{period} ns");
            assert_eq!(meter.progress(start - 1) >> 32, number - 1);
            assert_eq!(meter.progress(start + period / 4), number << 32 | 1 << 30);
        }
    }
}
