//! What the metrics say of a policy file, its lists and its changes.

use std::fs;

use anyhow::Result;
use tempfile::TempDir;

use super::{exposition::check, scrape};
use crate::common::{Site, start_logged, status, wait_until};

#[test]
fn lists_bans_and_overrides_are_counted_and_never_named_by_address() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let directory = TempDir::new()?;
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (policy, list) = (path("policy.toml"), path("list.txt"));
    fs::write(
        &list,
        "198.51.100.0/24\nnonsense\n203.0.113.7\n203.0.113.8\n",
    )?;
    fs::write(
        &policy,
        "interfaces = [\"lim0\"]\nban_files = [\"list.txt\"]\n\
         [[limits]]\nname = \"few\"\nper = \"source\"\nrate = \"1/h\"\nburst = 5\n",
    )?;
    let arguments = ["--config", &policy, "--metrics", "127.0.0.1:9433"];
    let (_daemon, _log) = start_logged(&limiter, &arguments)?;
    let text = || -> Result<String> { Ok(scrape(&site)?.body) };
    let says = |line: &str| -> Result<()> {
        let text = text()?;
        assert!(
            text.lines().any(|found| found == line),
            "no {line}:\n{text}"
        );
        Ok(())
    };
    let before = check(&text()?)?;
    says(&format!("limiter_list_prefixes{{file=\"{list}\"}} 3"))?;
    says(&format!("limiter_list_skipped_lines{{file=\"{list}\"}} 1"))?;
    says(&format!("limiter_list_kept{{file=\"{list}\"}} 0"))?;
    says("limiter_bans{by=\"policy\"} 3")?;
    for n in 0..20 {
        limiter.output(&["ban", &format!("10.0.0.{n}")])?;
    }
    let words = [
        "override",
        "few",
        "--rate",
        "2/h",
        "--for",
        "1h",
        "--source",
        "10.1.0.0/16",
    ];
    limiter.output(&words)?;
    says("limiter_bans{by=\"operator\"} 20")?;
    says("limiter_overrides 1")?;
    says("limiter_audit_lost_total 0")?;
    says("limiter_policy_reload_failed 0")?;
    fs::write(&list, "")?;
    wait_until("the list is not taken", || {
        Ok(status(&limiter)?.lists[0].kept.is_some())
    })?;
    says(&format!("limiter_list_kept{{file=\"{list}\"}} 1"))?;
    says(&format!("limiter_list_prefixes{{file=\"{list}\"}} 3"))?;
    let after = check(&text()?)?;
    assert_eq!(before, after, "the series are the same, whoever is banned");
    assert!(!text()?.contains("10.0.0."));
    Ok(())
}
