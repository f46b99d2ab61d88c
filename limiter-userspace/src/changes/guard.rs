//! Who may not be banned, so that a slip does not lock the operator out.
//!
//! `--force` says that covering so much is meant. It never bans an address of the host itself, nor what the ban would
//! not reach.

use ipnet::IpNet;
use limiter_policy::prefix::Prefix;

use super::{
    own::{Guarded, Kind},
    target::Target,
};

/// The shortest IPv4 prefix to ban without `--force`: no network of one owner is larger.
const SHORTEST_V4: u8 = 8;
/// The same for IPv6, where the largest networks of one owner are a /19.
const SHORTEST_V6: u8 = 19;

/// What never is a source on the wire; the program drops it as `invalid_source`, or it means "no address yet".
const NEVER_SOURCES: [(&str, &str); 7] = [
    ("0.0.0.0/32", "no address at all"),
    ("127.0.0.0/8", "loopback"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("::/128", "no address at all"),
    ("::1/128", "loopback"),
    ("ff00::/8", "multicast"),
];

/// Notices for whoever asks to ban `target`, if that is sensible. `allow` is the policy's list.
///
/// # Errors
///
/// Why it is refused, and what would be accepted.
pub fn ban(
    target: Target,
    force: bool,
    guarded: &[Guarded],
    allow: &[Prefix],
) -> Result<Vec<String>, String> {
    never_a_source(target)?;
    if !force {
        breadth(target)?;
    }
    not_guarded(target, force, guarded)?;
    against_allowed(target, force, allow)
}

fn never_a_source(target: Target) -> Result<(), String> {
    for (range, what) in NEVER_SOURCES {
        let range: IpNet = range.parse().expect("a prefix");
        if range.contains(&target.net()) {
            return Err(format!(
                "{target} is {what}: no packet that is let in has such a source, so there is nothing to ban"
            ));
        }
    }
    Ok(())
}

fn breadth(target: Target) -> Result<(), String> {
    let shortest = match target.net() {
        IpNet::V4(_) => SHORTEST_V4,
        IpNet::V6(_) => SHORTEST_V6,
    };
    if target.net().prefix_len() < shortest {
        return Err(format!(
            "{target} covers more than a /{shortest}; ban less, or say --force (\"force\": true) if all of it is meant"
        ));
    }
    Ok(())
}

fn not_guarded(target: Target, force: bool, guarded: &[Guarded]) -> Result<(), String> {
    let inside = guarded
        .iter()
        .find(|guarded| target.net().contains(&guarded.address));
    let Some(Guarded {
        address,
        kind,
        interface,
    }) = inside
    else {
        return Ok(());
    };
    let whose = match kind {
        Kind::Own => format!("this host's own address {address} ({interface})"),
        Kind::Gateway => format!("the default gateway {address} (by {interface})"),
    };
    let single = target.address().is_some();
    if single && *kind == Kind::Own {
        return Err(format!("{target} is {whose}, which is never banned"));
    }
    if force {
        return Ok(());
    }
    let verb = if single { "is" } else { "covers" };
    Err(format!(
        "{target} {verb} {whose}; ban less, or say --force (\"force\": true) if that is meant"
    ))
}

/// Of an allowing and a banning prefix, the longest decides; of equal ones, the allowing.
fn against_allowed(target: Target, force: bool, allow: &[Prefix]) -> Result<Vec<String>, String> {
    let banned = Prefix::from(target.net());
    if allow.contains(&banned) {
        return Err(format!(
            "{target} is in the policy's `allow`, which wins: the ban would change nothing; take it out of `allow` first"
        ));
    }
    let around = allow
        .iter()
        .filter(|allowed| allowed.covers(&banned))
        .max_by_key(|allowed| allowed.length);
    if let Some(allowed) = around
        && !force
    {
        return Err(format!(
            "{target} is inside {allowed} of the policy's `allow`; say --force (\"force\": true) to ban it all the same: \
             the longer prefix decides, and that is the ban"
        ));
    }
    let inside: Vec<&Prefix> = allow
        .iter()
        .filter(|allowed| banned.covers(allowed))
        .collect();
    Ok(match inside[..] {
        [] => Vec::new(),
        [first] => vec![format!(
            "{first} is in the policy's `allow` and still passes"
        )],
        [first, ..] => vec![format!(
            "{} prefixes inside, such as {first}, are in the policy's `allow` and still pass",
            inside.len()
        )],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    fn guarded() -> Vec<Guarded> {
        [
            ("192.0.2.10", Kind::Own),
            ("2001:db8:1::10", Kind::Own),
            ("192.0.2.1", Kind::Gateway),
        ]
        .map(|(address, kind)| Guarded {
            address: address.parse().unwrap(),
            kind,
            interface: "eth0".to_owned(),
        })
        .to_vec()
    }

    fn allow() -> Vec<Prefix> {
        ["203.0.113.0/24", "198.51.100.7/32", "2001:db8:77::/48"]
            .map(|text| Prefix::from(text.parse::<IpNet>().unwrap()))
            .to_vec()
    }

    fn judge(text: &str, force: bool) -> Result<Vec<String>, String> {
        ban(target(text), force, &guarded(), &allow())
    }

    #[test]
    fn anybody_else_may_be_banned() {
        for text in [
            "198.51.100.8",
            "10.0.0.0/8",
            "2001:db8:2::/64",
            "2a00::/19",
            "192.0.2.11",
        ] {
            assert_eq!(judge(text, false), Ok(vec![]), "{text}");
        }
    }

    #[test]
    fn what_is_too_much_needs_force() {
        for (text, part) in [
            ("0.0.0.0/0", "more than a /8"),
            ("16.0.0.0/7", "more than a /8"),
            ("::/0", "more than a /19"),
            ("2a00::/18", "more than a /19"),
            ("192.0.2.0/24", "covers this host's own address 192.0.2.10"),
            ("2001:db8:1::/64", "own address 2001:db8:1::10 (eth0)"),
            (
                "192.0.2.1",
                "is the default gateway 192.0.2.1 (by eth0); ban less",
            ),
            ("203.0.113.9", "inside 203.0.113.0/24"),
        ] {
            let error = judge(text, false).unwrap_err();
            assert!(
                error.contains(part) && error.contains("--force"),
                "{text}: {error}"
            );
            assert!(judge(text, true).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_even_with_force() {
        for (text, part) in [
            ("192.0.2.10", "never banned"),
            ("::ffff:192.0.2.10", "never banned"),
            ("2001:db8:1::10", "never banned"),
            ("203.0.113.0/24", "`allow`, which wins"),
            ("198.51.100.7", "`allow`, which wins"),
            ("127.0.0.1", "loopback"),
            ("127.0.0.0/8", "loopback"),
            ("::1", "loopback"),
            ("224.0.0.1", "multicast"),
            ("224.0.0.0/4", "multicast"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("0.0.0.0", "no address"),
            ("::", "no address"),
        ] {
            let error = judge(text, true).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn holes_in_a_ban_are_told() {
        let notices = judge("198.51.100.0/24", false).unwrap();
        assert_eq!(
            notices,
            ["198.51.100.7 is in the policy's `allow` and still passes"]
        );
        let notices = judge("0.0.0.0/0", true).unwrap();
        assert_eq!(
            notices,
            [
                "2 prefixes inside, such as 203.0.113.0/24, are in the policy's `allow` and still pass"
            ]
        );
    }
}
