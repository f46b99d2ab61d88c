//! Files are taken up as they change, however that is done, unless what they hold is an accident.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use limiter_lab::Limiter;

use super::{FEW, MANY, Place, Probe, done, udp};
use crate::common::{ATTACKER, Log, Site, status, wait_until};

/// Bans who is in a file.
fn banning() -> String {
    format!("ban_files = [\"list.txt\"]\n{MANY}")
}

/// Waits until so many prefixes of the file are in force.
fn prefixes(limiter: &Limiter<'_>, count: u64) -> Result<()> {
    wait_until(&format!("there are {count} prefixes"), || {
        Ok(status(limiter)?.lists[0].prefixes == count)
    })
}

/// Waits until the file's content is not taken, and returns why.
fn kept(limiter: &Limiter<'_>) -> Result<String> {
    crate::common::wait_for("it is not taken", || {
        Ok(status(limiter)?.lists[0].kept.clone())
    })
}

/// A list file: an entry a line.
fn lines(entries: impl Iterator<Item = String>) -> String {
    entries.fold(String::new(), |text, entry| text + &entry + "\n")
}

#[test]
fn a_list_is_taken_up_however_it_is_changed() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(&banning())?;
    place.write("list.txt", "203.0.113.1\n")?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    assert!(probe.passes(ATTACKER)?);
    // In place.
    place.write("list.txt", "203.0.113.1\n198.51.100.0/24\n")?;
    prefixes(&limiter, 2)?;
    assert!(!probe.passes(ATTACKER)?);
    // By renaming.
    place.rename_over("list.txt", "203.0.113.1\n203.0.113.2\n203.0.113.3\n")?;
    prefixes(&limiter, 3)?;
    assert!(probe.passes(ATTACKER)?);
    // By a link to another file.
    place.write(
        "other.txt",
        "203.0.113.1\n203.0.113.2\n203.0.113.3\n198.51.100.7\n",
    )?;
    symlink(place.path("other.txt"), place.path("link"))?;
    fs::rename(place.path("link"), place.path("list.txt"))?;
    prefixes(&limiter, 4)?;
    assert!(!probe.passes(ATTACKER)?);
    Ok(())
}

#[test]
fn the_policy_itself_is_taken_up_and_two_saves_in_a_second_both_count() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    assert_eq!(probe.send(&udp(ATTACKER), 10)?, 5);
    let start = Instant::now();
    for (name, burst) in [("first", 7), ("second", 9)] {
        place.rename_over(
            "policy.toml",
            &FEW.replace("few", name)
                .replace("burst = 5", &format!("burst = {burst}")),
        )?;
        wait_until(name, || Ok(status(&limiter)?.limits[0].name == name))?;
    }
    assert!(
        start.elapsed() < Duration::from_millis(2_500),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(probe.send(&udp(ATTACKER), 20)?, 9);
    let owner = format!("who=root (owner of {})", place.shown());
    assert!(log.line(&["reloaded", &owner]).is_some(), "{}", log.text());
    Ok(())
}

#[test]
fn a_list_that_is_named_later_is_watched_too() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(MANY)?;
    let (_daemon, _log) = place.start(&limiter)?;
    place.write("list.txt", "203.0.113.1\n")?;
    place.reload(&limiter, &banning())?;
    thread::sleep(Duration::from_secs(1));
    place.write("list.txt", "203.0.113.1\n198.51.100.0/24\n")?;
    prefixes(&limiter, 2)?;
    assert!(!Probe::new(&site)?.passes(ATTACKER)?);
    Ok(())
}

#[test]
fn a_file_that_is_being_written_is_waited_for() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, log) = place.start(&limiter)?;
    let whole = format!("{FEW}{}", "# a comment at the end\n".repeat(20));
    let whole = whole.replace("few", "slow");
    let mut file = fs::File::create(place.policy())?;
    for part in whole.as_bytes().chunks(whole.len() / 20) {
        file.write_all(part)?;
        thread::sleep(Duration::from_millis(40));
    }
    drop(file);
    wait_until("it is whole", || {
        Ok(status(&limiter)?.limits[0].name == "slow")
    })?;
    assert_eq!(errors(&log), 0, "{}", log.text());
    Ok(())
}

fn errors(log: &Log) -> usize {
    log.text()
        .lines()
        .filter(|line| line.contains("ERROR"))
        .count()
}

#[test]
fn case_128_what_is_no_list_keeps_the_last_good_one() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(&banning())?;
    let good = lines((0..10).map(|n| format!("198.51.100.{n}")));
    place.write("list.txt", &good)?;
    let (_daemon, log) = place.start(&limiter)?;
    let mut probe = Probe::new(&site)?;
    let grown = lines((0..2_000).map(|n| format!("10.0.{}.{}", n / 256, n % 256)));
    let hint = "; to take it nevertheless, remove the file from the policy, reload, add it again and reload";
    for (text, reason) in [
        ("", format!("no prefixes are left of 10{hint}")),
        ("# emptied\n\n", format!("no prefixes are left of 10{hint}")),
        (
            "198.51.100.7\n203.0.113.1\n203.0.113.2\n203.0.113.3\n",
            format!("only 4 of 10 prefixes are left, fewer than half{hint}"),
        ),
        (
            "<!DOCTYPE html>\n<html>\n<body>404 Not Found</body>\n</html>\n198.51.100.7\n",
            "not a list of prefixes: 4 of its 5 lines are none".to_owned(),
        ),
        (
            &grown,
            format!("10 prefixes have become 2000, 10 times as many or more{hint}"),
        ),
    ] {
        place.write("list.txt", text)?;
        assert_eq!(kept(&limiter)?, reason);
        assert_eq!(status(&limiter)?.lists[0].prefixes, 10);
        assert!(!probe.passes(ATTACKER)?, "{reason}");
        assert!(!probe.passes([198, 51, 100, 3])?, "{reason}");
        let shown = done(&limiter, &["status"])?;
        assert!(
            shown.contains(&format!("  stays as it was: {reason}\n")),
            "{shown}"
        );
        // Better again: half of them are left.
        place.write("list.txt", &good)?;
        wait_until("it is taken again", || {
            Ok(status(&limiter)?.lists[0].kept.is_none())
        })?;
    }
    fs::remove_file(place.path("list.txt"))?;
    wait_until("it is missed", || {
        Ok(log.line(&["list.txt: is gone"]).is_some())
    })?;
    assert!(!probe.passes(ATTACKER)?);
    // A reload does not find it, and keeps what it held.
    let told = done(&limiter, &["reload"])?;
    assert!(
        told.contains("list.txt stays as it was: cannot be read: "),
        "{told}"
    );
    assert!(!probe.passes(ATTACKER)?);
    assert_eq!(status(&limiter)?.policy.last_reload_failure, None);
    Ok(())
}

#[test]
fn half_of_a_list_is_enough() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(&banning())?;
    let good = lines((0..10).map(|n| format!("203.0.113.{n}")));
    place.write("list.txt", &good)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let half = good
        .lines()
        .take(5)
        .fold(String::new(), |text, line| text + line + "\n");
    place.write("list.txt", &half)?;
    prefixes(&limiter, 5)?;
    // And what was refused is taken as its message says.
    place.write("list.txt", "203.0.113.0\n")?;
    kept(&limiter)?;
    place.reload(&limiter, MANY)?;
    place.reload(&limiter, &banning())?;
    prefixes(&limiter, 1).context("after it was taken out and in again")
}
