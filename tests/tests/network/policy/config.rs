//! `check`, `diff` and `run --config`: what they print, and their exit codes.

use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::Result;
use limiter_lab::HOST_INTERFACE;

use super::{FEW, MANY, Place, done, ended, reason, refused};
use crate::common::{Site, program_on, status};

#[test]
fn check_says_what_a_policy_means_and_takes() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let told = done(&limiter, &["check", &place.shown()])?;
    for line in [
        &format!("policy of {}\n", place.shown())[..],
        "interfaces: lim0\n",
        "precedence: protected (the host's own needs), then the longest prefix of allow and ban (tie: allow), then bans made by limits, then limits\n",
        "  1. few (enforce)\n     for all packets\n     each source: token-bucket 1/h, burst 5; at most 6 in any hour\n     where its state cannot be kept: pass\n",
        "  sources: 1048576, 218103808 bytes (218.1 MB)\n",
    ] {
        assert!(told.contains(line), "no {line}: {told}");
    }
    assert!(
        !limiter.state_dir.exists() && !limiter.pin_dir.exists(),
        "it touches nothing"
    );
    Ok(())
}

#[test]
fn diff_says_what_would_change_and_changes_nothing() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    place.write(
        "other.toml",
        &FEW.replace("burst = 5", "burst = 6").replace("1/h", "2/h"),
    )?;
    let other = place.path("other.toml").display().to_string();
    let nobody = refused(&limiter, &["diff", &other])?;
    assert!(nobody.contains("no daemon is listening there"), "{nobody}");
    let (_daemon, _log) = place.start(&limiter)?;
    assert_eq!(
        done(&limiter, &["diff", &place.shown()])?,
        "nothing would change\n"
    );
    assert_eq!(
        done(&limiter, &["diff", &other])?,
        "- limits.few.rate = 1/h\n- limits.few.burst = 5\n+ limits.few.rate = 2/h\n+ limits.few.burst = 6\n"
    );
    assert_eq!(status(&limiter)?.policy.generation, 1);
    place.write("other.toml", "nonsense")?;
    let message = refused(&limiter, &["diff", &other])?;
    assert!(message.starts_with(&format!("{other}:1:")), "{message}");
    Ok(())
}

#[test]
fn a_file_that_cannot_be_read_is_named() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let directory = place.path(".").display().to_string();
    let missing = place.path("missing.toml").display().to_string();
    let binary = place.path("binary.toml");
    fs::write(&binary, [0xff, 0xfe])?;
    let binary = binary.display().to_string();
    for (file, why) in [
        (&missing, "No such file or directory (os error 2)"),
        (&directory, "Is a directory (os error 21)"),
        (&binary, "stream did not contain valid UTF-8"),
    ] {
        let message = format!("{file}: cannot be read: {why}");
        assert_eq!(refused(&limiter, &["check", file])?, message);
        let run = ended(&limiter, &["run", "--config", file])?;
        assert_eq!(reason(&run, 1)?, message);
    }
    Ok(())
}

#[test]
fn a_list_that_is_not_there_is_named() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(&format!("ban_files = [\"none.txt\"]\n{FEW}"))?;
    let message = format!(
        "{}: cannot be read: No such file or directory (os error 2)",
        place.path("none.txt").display()
    );
    assert_eq!(refused(&limiter, &["check", &place.shown()])?, message);
    let run = ended(&limiter, &["run", "--config", &place.shown()])?;
    assert_eq!(reason(&run, 1)?, message);
    Ok(())
}

#[test]
fn interfaces_come_from_the_file_or_the_flag() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (daemon, _log) = place.start(&limiter)?;
    let now = status(&limiter)?;
    assert_eq!(now.policy.source, place.shown());
    assert_eq!(now.interfaces[0].name, HOST_INTERFACE);
    drop(daemon);
    // The flag wins.
    place.write("policy.toml", &FEW.replace("lim0", "nowhere0"))?;
    let (_daemon, _log) = place.start_with(&limiter, &["--iface", HOST_INTERFACE])?;
    assert!(program_on(&site.host, HOST_INTERFACE)?.is_some());
    Ok(())
}

#[test]
fn without_any_interface_it_does_not_start() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(&MANY.replace("interfaces = [\"lim0\"]", ""))?;
    let run = ended(&limiter, &["run", "--config", &place.shown()])?;
    assert_eq!(
        reason(&run, 2)?,
        "--iface is missing: name the interface to protect, for example --iface eth0; `ip link` lists them"
    );
    let named = Place::new(&MANY.replace("lim0", "nowhere0"))?;
    let run = ended(&limiter, &["run", "--config", &named.shown()])?;
    assert!(reason(&run, 1)?.contains("nowhere0: no such interface"));
    Ok(())
}

#[test]
fn a_policy_flag_beside_the_file_is_wrong_usage() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let run = ended(&limiter, &["run", "--monitor", "--config", &place.shown()])?;
    assert_eq!(
        reason(&run, 2)?,
        format!(
            "--monitor and --config {}: the policy comes from flags or from a file; give one of them",
            place.shown()
        )
    );
    Ok(())
}

#[test]
fn a_file_that_only_others_may_read_is_refused() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    fs::set_permissions(place.policy(), fs::Permissions::from_mode(0o0))?;
    // Without capabilities, root is like anybody: `check` needs none.
    let mut command = site.host.command("setpriv");
    let check = limiter.command(&["check", &place.shown()]);
    command
        .args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
        ])
        .arg(check.get_program())
        .args(check.get_args());
    let message = reason(&command.output()?, 1)?;
    assert_eq!(
        message,
        format!(
            "{}: cannot be read: Permission denied (os error 13)",
            place.shown()
        )
    );
    Ok(())
}
