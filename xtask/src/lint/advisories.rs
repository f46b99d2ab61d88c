//! Known vulnerabilities in dependencies, where a database of them is to be had.

use std::process::Command;

use anyhow::{Result, bail};
use bpf_toolchain::on_path;
use serde_json::Value;

use crate::workspace::Workspace;

/// Asks cargo-audit. Without an answer it is said that nothing was checked; that is no failure, but no "ok" either.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        match ask(workspace, lock) {
            Answer::Clean => println!("advisories: none for {lock}"),
            Answer::NotChecked(why) => println!("advisories: NOT checked for {lock}: {why}"),
            Answer::Vulnerable(count) => {
                bail!(
                    "{count} known vulnerabilities in {lock}: run `cargo audit --file {lock}` to see them"
                )
            }
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Clean,
    Vulnerable(u64),
    NotChecked(String),
}

fn ask(workspace: &Workspace, lock: &str) -> Answer {
    let Some(audit) = on_path("cargo-audit").next() else {
        return Answer::NotChecked("cargo-audit is not installed".to_owned());
    };
    let output = Command::new(audit)
        .args(["audit", "--json", "--file"])
        .arg(workspace.root().join(lock))
        .output();
    match output {
        Ok(output) => read(&output.stdout, &String::from_utf8_lossy(&output.stderr)),
        Err(error) => Answer::NotChecked(format!("cargo-audit does not start: {error}")),
    }
}

/// Reads the report. Its exit code does not tell a vulnerability from a database that cannot be reached.
fn read(report: &[u8], errors: &str) -> Answer {
    let report: Option<Value> = serde_json::from_slice(report).ok();
    match report
        .as_ref()
        .and_then(|report| report.pointer("/vulnerabilities/count"))
        .and_then(Value::as_u64)
    {
        Some(0) => Answer::Clean,
        Some(count) => Answer::Vulnerable(count),
        None => Answer::NotChecked(format!(
            "cargo-audit gives no report: {}",
            first_error(errors)
        )),
    }
}

fn first_error(errors: &str) -> &str {
    errors
        .lines()
        .find(|line| line.starts_with("error"))
        .unwrap_or("no error either")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_counted() {
        assert_eq!(
            read(
                br#"{"vulnerabilities":{"found":false,"count":0,"list":[]}}"#,
                ""
            ),
            Answer::Clean
        );
        assert_eq!(
            read(
                br#"{"vulnerabilities":{"found":true,"count":2,"list":[]}}"#,
                ""
            ),
            Answer::Vulnerable(2)
        );
    }

    #[test]
    fn no_report_is_not_a_clean_one() {
        let errors = "    Fetching advisory database\nerror: couldn't fetch advisory database\n";
        let Answer::NotChecked(why) = read(b"", errors) else {
            panic!("it was taken for an answer")
        };
        assert!(
            why.ends_with("error: couldn't fetch advisory database"),
            "{why}"
        );
        assert!(matches!(read(b"{}", ""), Answer::NotChecked(_)));
    }
}
