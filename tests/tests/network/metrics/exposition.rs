//! The text format: what `OpenMetrics` 1.0 asks of an exposition, section by section.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};

use super::{FLAGS, scrape};
use crate::common::{Site, start};

/// A metric family as declared.
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    has_help: bool,
    samples: usize,
}

/// Checks an exposition; returns its series.
pub(super) fn check(text: &str) -> Result<BTreeSet<String>> {
    ensure!(text.ends_with("\n# EOF\n"), "it ends with EOF");
    ensure!(text.matches("# EOF").count() == 1, "it ends once");
    ensure!(
        !text.contains('\r') && !text.contains("\n\n"),
        "there are no empty lines"
    );
    let mut families: Vec<Family<'_>> = Vec::new();
    let mut helps: BTreeMap<&str, &str> = BTreeMap::new();
    let mut series = BTreeSet::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        match line.splitn(4, ' ').collect::<Vec<_>>()[..] {
            ["#", "HELP", name, help] => ensure!(
                helps.insert(name, help).is_none(),
                "{name} is described twice"
            ),
            ["#", "TYPE", name, kind] => {
                ensure!(["counter", "gauge"].contains(&kind), "{line}");
                ensure!(
                    families.iter().all(|family| family.name != name),
                    "{name} is declared twice"
                );
                families.push(Family {
                    name,
                    kind,
                    has_help: false,
                    samples: 0,
                });
            }
            ["#", ..] => bail!("no descriptor: {line}"),
            _ => {
                let family = families
                    .last_mut()
                    .with_context(|| format!("of no family: {line}"))?;
                let sample = sample(line, family).with_context(|| format!("in: {line}"))?;
                ensure!(series.insert(sample), "the same series twice: {line}");
                family.samples += 1;
            }
        }
    }
    for family in &mut families {
        family.has_help = helps
            .remove(family.name)
            .is_some_and(|help| !help.is_empty());
        ensure!(family.has_help, "{} is not described", family.name);
        ensure!(family.samples > 0, "{} has no samples", family.name);
    }
    ensure!(helps.is_empty(), "described, not declared: {helps:?}");
    Ok(series)
}

/// Checks a sample; returns its series.
fn sample(line: &str, family: &Family<'_>) -> Result<String> {
    let (series, value) = line.rsplit_once(' ').context("no value")?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (
            name,
            labels.strip_suffix('}').context("labels without an end")?,
        ),
        None => (series, ""),
    };
    let expected = match family.kind {
        "counter" => format!("{}_total", family.name),
        _ => family.name.to_owned(),
    };
    ensure!(
        name == expected,
        "a {} of the family {}",
        family.kind,
        family.name
    );
    let is_name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    ensure!(is_name(name) && !name.contains("__"), "no fine name");
    let mut names = BTreeSet::new();
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (name, value) = label.split_once('=').context("a label without a value")?;
        ensure!(is_name(name) && names.insert(name), "the label {name}");
        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'));
        let value = value.context("a value without quotes")?;
        ensure!(
            !value.is_empty() && !value.contains(['"', '\\', '\n']),
            "the value {value}"
        );
    }
    let number: f64 = value.parse().context("no number")?;
    ensure!(number.is_finite() && number >= 0.0, "no count");
    Ok(series.to_owned())
}

#[test]
fn the_text_keeps_the_rules_of_openmetrics() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, FLAGS)?;
    let answer = scrape(&site)?;
    assert_eq!(
        answer.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let series = check(&answer.body)?;
    assert!(series.len() > 50, "{series:?}");
    Ok(())
}

#[test]
fn the_check_finds_what_is_wrong() {
    let good = "# HELP a_b What.\n# TYPE a_b counter\na_b_total{c=\"d\"} 1\n# EOF\n";
    assert!(check(good).is_ok());
    for (from, to) in [
        ("# EOF\n", ""),
        ("# EOF\n", "# EOF\n# EOF\n"),
        ("_total", ""),
        (" 1\n", " 1\na_b_total{c=\"d\"} 2\n"),
        (" 1\n", " -1\n"),
        (" 1\n", " one\n"),
        ("# TYPE a_b counter\n", ""),
        ("# HELP a_b What.\n", ""),
        ("\"d\"", "d"),
        ("counter", "gauge"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert!(check(&bad).is_err(), "{bad}");
    }
}
