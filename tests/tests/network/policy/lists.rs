//! Allow, ban and classes: which of them decides.

use anyhow::Result;
use limiter_lab::HOST_V4;
use serde_json::json;

use super::{FEW, Place, Probe, udp};
use crate::common::{ATTACKER, Site, at_rest, status};

#[test]
fn who_is_allowed_passes_before_all_limits() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(&format!(
        "allow = [\"{ATTACKER}\", \"2001:db8:a::/48\"]\n{FEW}"
    ))?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    assert_eq!(probe.send(&udp(ATTACKER), 50)?, 50);
    assert_eq!(probe.send(&udp(crate::common::ATTACKER_V6), 50)?, 50);
    assert_eq!(probe.send(&udp([198, 51, 100, 8]), 50)?, 5);
    let told = limiter.explain(ATTACKER.into())?;
    assert_eq!(
        (&told["listed"], &told["verdict"]),
        (&json!("allowed"), &json!("pass"))
    );
    assert_eq!(at_rest(&limiter)?.limits[0].passed, 5, "nobody else met it");
    Ok(())
}

#[test]
fn the_longest_of_allow_and_ban_decides_and_of_equals_allow() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(&format!(
        r#"
allow = ["198.51.100.64/26", "203.0.113.0/24"]
ban = ["198.51.100.0/24", "198.51.100.77", "203.0.113.0/24"]
{FEW}"#
    ))?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    for (source, listed) in [
        ([198, 51, 100, 7], "banned"),
        ([198, 51, 100, 64], "allowed"),
        ([198, 51, 100, 77], "banned"),
        ([198, 51, 100, 127], "allowed"),
        ([198, 51, 100, 128], "banned"),
        ([203, 0, 113, 9], "allowed"),
        ([203, 0, 114, 9], "no"),
    ] {
        let told = limiter.explain(source.into())?;
        assert_eq!(told["listed"], listed, "{source:?}");
        let passed = match listed {
            "banned" => 0,
            "allowed" => 20,
            _ => 5,
        };
        assert_eq!(probe.send(&udp(source), 20)?, passed, "{source:?}");
    }
    Ok(())
}

#[test]
fn classes_from_files_skip_what_is_no_prefix_and_say_so() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let policy = format!(
        r#"{FEW}
classes.friends = {{ rate = "1/h", burst = 12 }}
classes.own = "exempt"

[classes.friends]
files = ["friends.txt"]

[classes.own]
sources = ["203.0.113.0/24"]
"#
    );
    let place = Place::new(&policy)?;
    place.write(
        "friends.txt",
        "# friends\r\n198.51.100.0/25\r\n\r\n  198.51.100.200 # one more\r\nnot an address\r\n198.51.100.300\r\n\
         203.0.113.7\r\n2001:db8:a::/48\r\n",
    )?;
    let (_daemon, log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    for (source, passed, class) in [
        ([198, 51, 100, 7], 12, json!(["friends"])),
        ([198, 51, 100, 200], 12, json!(["friends"])),
        ([198, 51, 100, 201], 5, json!([])),
        ([203, 0, 113, 8], 20, json!(["own"])),
    ] {
        assert_eq!(
            limiter.explain(source.into())?["classes"],
            class,
            "{source:?}"
        );
        assert_eq!(probe.send(&udp(source), 20)?, passed, "{source:?}");
    }
    // Of two classes that cover it, the longer prefix is the one that counts.
    assert_eq!(probe.send(&udp([203, 0, 113, 7]), 20)?, 12);
    let lists = status(&limiter)?.lists;
    assert_eq!(lists.len(), 1);
    assert_eq!((lists[0].prefixes, lists[0].skipped), (4, 2), "{lists:?}");
    assert!(
        lists[0].examples[0].starts_with("line 5: \"not an address\": "),
        "{lists:?}"
    );
    assert!(
        lists[0].examples[1].starts_with("line 6: \"198.51.100.300\": "),
        "{lists:?}"
    );
    assert_eq!(lists[0].kept, None);
    let shown = super::done(&limiter, &["status"])?;
    let file = place.path("friends.txt");
    for part in [
        &format!("list {}: 4 prefixes, 2 lines skipped\n", file.display())[..],
        "  skipped line 5: ",
    ] {
        assert!(shown.contains(part), "no {part}: {shown}");
    }
    assert!(log.line(&["skipped line 6"]).is_some(), "{}", log.text());
    Ok(())
}

#[test]
fn case_127_a_list_of_strangers_does_not_cut_the_host_off() -> Result<()> {
    let site = Site::new()?;
    site.route_to_net()?;
    let limiter = site.limiter()?;
    let place = Place::new(&format!("ban_files = [\"bogons.txt\"]\n{FEW}"))?;
    place.write(
        "bogons.txt",
        "0.0.0.0/8\n10.0.0.0/8\n127.0.0.1\n192.0.2.0/24\n0.0.0.0/0\n::/0\n198.51.100.0/24\n",
    )?;
    let (_daemon, log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    assert!(!probe.passes([10, 1, 2, 3])?);
    assert!(!probe.passes(ATTACKER)?);
    assert!(
        probe.passes(limiter_lab::NET_V4)?,
        "the gateway and {HOST_V4} lie in 192.0.2.0/24"
    );
    assert!(
        probe.passes([203, 0, 113, 1])?,
        "0.0.0.0/0 is not taken from a list"
    );
    let left_out = log.line(&["were left out"]);
    assert!(left_out.is_some(), "{}", log.text());
    Ok(())
}
