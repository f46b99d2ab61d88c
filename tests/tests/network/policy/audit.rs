//! Who changed what, when and why, is written down.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{FEW, MANY, Place, done, refused};
use crate::common::{Site, status, wait_until};

#[test]
fn every_change_is_recorded_with_who_what_and_why() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (daemon, _log) = place.start(&limiter)?;
    done(
        &limiter,
        &["ban", "198.51.100.7", "--for", "10m", "--reason", "scan"],
    )?;
    done(
        &limiter,
        &["unban", "198.51.100.7", "--reason", "a mistake"],
    )?;
    done(
        &limiter,
        &[
            "override", "few", "--rate", "2/h", "--for", "1h", "--reason", "sale",
        ],
    )?;
    done(&limiter, &["override", "few", "--remove"])?;
    done(&limiter, &["monitor", "on", "--reason", "a try"])?;
    done(&limiter, &["monitor", "off"])?;
    place.write("policy.toml", &FEW.replace("burst = 5", "burst = 6"))?;
    done(&limiter, &["reload", "--reason", "ticket 7"])?;
    // What is refused is no change.
    refused(&limiter, &["ban", "127.0.0.1"])?;
    let audit = limiter.json(&["audit", "--json"])?;
    let entries = audit["entries"].as_array().context("a list")?;
    let pid = daemon.pid();
    let expected = [
        ("policy", json!("start")),
        ("ban", json!("scan")),
        ("unban", json!("a mistake")),
        ("override", json!("sale")),
        ("override", Value::Null),
        ("monitor", json!("a try")),
        ("monitor", Value::Null),
        ("policy", json!("ticket 7")),
    ];
    // The file is watched, so it may have been taken up a moment before the command.
    let of_commands: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["why"] != "a file has changed")
        .collect();
    let told: Vec<(&str, Value)> = of_commands
        .iter()
        .map(|entry| {
            (
                entry["what"].as_str().unwrap_or_default(),
                entry["why"].clone(),
            )
        })
        .collect();
    assert_eq!(told, expected);
    for (n, entry) in of_commands.iter().enumerate() {
        assert_eq!(entry["who"]["user"], "root", "{entry}");
        assert_eq!(entry["who"]["uid"], 0, "{entry}");
        assert_eq!(entry["who"]["comm"], "limiter", "{entry}");
        assert_eq!(entry["who"]["pid"] == pid, n == 0, "{entry}");
        assert!(
            entry["time"]
                .as_str()
                .is_some_and(|time| time.ends_with('Z')),
            "{entry}"
        );
    }
    assert_eq!(of_commands[1]["before"], Value::Null);
    assert_eq!(of_commands[1]["after"]["prefix"], "198.51.100.7");
    assert_eq!(of_commands[2]["before"]["prefix"], "198.51.100.7");
    assert_eq!(of_commands[2]["after"], Value::Null);
    assert_eq!(of_commands[3]["after"]["rate"], "2/h");
    assert_eq!(of_commands[4]["before"]["rate"], "2/h");
    assert_eq!(
        (&of_commands[5]["before"], &of_commands[5]["after"]),
        (&json!(false), &json!(true))
    );
    let lines = |value: &Value, line: &str| {
        value
            .as_array()
            .is_some_and(|lines| lines.contains(&json!(line)))
    };
    assert!(lines(&of_commands[7]["after"], "limits.few.burst = 6"));
    // A line of JSON each, in a file that only root may read.
    let text = fs::read_to_string(limiter.state_dir.join("audit.log"))?;
    assert_eq!(text.lines().count(), entries.len());
    for (line, entry) in text.lines().zip(entries) {
        assert_eq!(&serde_json::from_str::<Value>(line)?, entry);
    }
    Ok(())
}

#[test]
fn what_a_file_changed_is_put_down_to_its_owner() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    place.rename_over("policy.toml", MANY)?;
    wait_until("it is taken up", || {
        Ok(status(&limiter)?.limits[0].name == "many")
    })?;
    let audit = limiter.json(&["audit", "--last", "1", "--json"])?;
    let entry = &audit["entries"][0];
    assert_eq!(entry["what"], "policy");
    assert_eq!(
        entry["who"],
        json!({ "file": place.shown(), "owner": "root" })
    );
    assert_eq!(entry["why"], "a file has changed");
    Ok(())
}

#[test]
fn audit_shows_the_newest_of_a_kind() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (daemon, _log) = place.start(&limiter)?;
    for n in 1..=5 {
        done(&limiter, &["ban", &format!("198.51.100.{n}")])?;
    }
    done(&limiter, &["monitor", "on"])?;
    let shown = done(&limiter, &["audit", "--last", "2", "--what", "ban"])?;
    assert_eq!(shown.lines().count(), 4, "{shown}");
    for part in [
        "  ban by root (limiter, process ",
        "198.51.100.4",
        "198.51.100.5",
        "    nothing -> ",
    ] {
        assert!(shown.contains(part), "no {part}: {shown}");
    }
    // It outlives the daemon.
    drop(daemon);
    let (_daemon, _log) = place.start(&limiter)?;
    let audit = limiter.json(&["audit", "--what", "ban", "--json"])?;
    assert_eq!(audit["entries"].as_array().map(Vec::len), Some(5));
    Ok(())
}

#[test]
fn a_log_that_cannot_be_written_is_counted() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    fs::remove_file(limiter.state_dir.join("audit.log"))?;
    fs::create_dir(limiter.state_dir.join("audit.log"))?;
    done(&limiter, &["ban", "198.51.100.7"])?;
    assert_eq!(status(&limiter)?.audit_lost, 1);
    let shown = done(&limiter, &["status"])?;
    assert!(
        shown.contains("1 changes could not be recorded in the audit log\n"),
        "{shown}"
    );
    Ok(())
}
