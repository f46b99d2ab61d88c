//! The table of packets through the kernel and through the host's functions, which must agree.
//!
//! Each packet comes in three times: first of its source, from a source with an empty bucket, and from such a source in
//! monitor mode.

use integration_tests::{
    check::check,
    every_table,
    packets::{
        Outcome, all, dhcp, fragments, ipv4, ipv6, large, needs, non_ip, sources, tags, truncation,
    },
};
use limiter_common::{
    counters::{Odd, Reason},
    needs::Need,
};

macro_rules! tests {
    ($($test:ident: $module:ident::$table:ident,)*) => {
        $(
            #[test]
            fn $test() {
                check(&$module::$table());
            }
        )*
    };
}

every_table!(tests);

/// What has a name in the counters and can come of a single packet occurs in the table.
#[test]
fn the_table_is_complete() {
    let rows = all();
    for odd in Odd::ALL {
        let occurs = rows.iter().any(|row| row.odd.contains(&odd));
        assert!(occurs, "no packet is {}", odd.name());
    }
    for need in Need::ALL {
        let occurs = rows.iter().any(|row| row.outcome == Outcome::Need(need));
        assert!(occurs, "no packet serves {}", need.name());
    }
    for reason in [
        Reason::Malformed,
        Reason::TooManyTags,
        Reason::InvalidSource,
    ] {
        let occurs = rows
            .iter()
            .any(|row| row.outcome == Outcome::Dropped(reason));
        assert!(occurs, "no packet is dropped for {}", reason.name());
    }
}
