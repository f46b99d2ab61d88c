//! What came of it, as tables.

use std::{fmt, net::IpAddr};

use anyhow::{Context as _, Result, ensure};
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use limiter_lab::{Lab, Limiter};
use serde_json::Value;

use crate::{
    BURST, RATE,
    cast::{Attack, GUEST_SOURCES, Visit},
};

/// Admitted over expected, in percent, that the demo takes for exact: the flood's own duration is measured from outside.
const EXACT: std::ops::RangeInclusive<f64> = 99.9..=100.1;

pub(crate) struct Report {
    attacks: Vec<Row>,
    guests: Vec<Row>,
    visits: Vec<Visit>,
    per_packet: f64,
    start: Moment,
    now: Moment,
}

/// What the limiter and the interface itself had counted at a moment in between packets.
pub(crate) struct Moment {
    seen: u64,
    passed: u64,
    dropped: u64,
    received: u64,
}

impl Moment {
    pub(crate) fn take(limiter: &Limiter<'_>, lab: &Lab) -> Result<Self> {
        loop {
            let before = lab.host_counters()?.received;
            let status = limiter.status()?;
            let received = lab.host_counters()?.received;
            if received != before {
                continue;
            }
            let packets = &status["interfaces"][0]["packets"];
            return Ok(Self {
                seen: number(&packets["seen"])?,
                passed: number(&packets["passed"])?,
                dropped: number(&packets["dropped"])?,
                received,
            });
        }
    }
}

struct Row {
    source: &'static str,
    offered: u64,
    admitted: u64,
    dropped: u64,
    /// What a perfect limiter would have admitted.
    expected: Option<f64>,
}

impl Row {
    fn of(limiter: &Limiter<'_>, source: &'static str, address: IpAddr) -> Result<Self> {
        let explanation = limiter.explain(address)?;
        let (admitted, dropped) = (
            number(&explanation["passed"])?,
            number(&explanation["dropped"])?,
        );
        Ok(Self {
            source,
            offered: admitted + dropped,
            admitted,
            dropped,
            expected: None,
        })
    }

    fn exactness(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a percentage")]
        self.expected
            .map(|expected| self.admitted as f64 * 100.0 / expected)
    }
}

fn number(value: &Value) -> Result<u64> {
    value.as_u64().context("limiter's answer lacks a number")
}

impl Report {
    pub(crate) fn new(
        limiter: &Limiter<'_>,
        lab: &Lab,
        attacks: Vec<Attack>,
        visits: Vec<Visit>,
        per_packet: f64,
        start: Moment,
    ) -> Result<Self> {
        let attacks = attacks
            .into_iter()
            .map(
                |Attack {
                     name,
                     address,
                     sent,
                 }| {
                    #[expect(clippy::cast_precision_loss, reason = "compared in percent")]
                    let ideal = BURST as f64 + RATE as f64 * sent.elapsed.as_secs_f64();
                    #[expect(clippy::cast_precision_loss, reason = "compared in percent")]
                    let expected = ideal.min(sent.packets as f64);
                    let row = Row::of(limiter, name, address)?;
                    Ok(Row {
                        offered: sent.packets,
                        expected: Some(expected),
                        ..row
                    })
                },
            )
            .collect::<Result<_>>()?;
        let guests = GUEST_SOURCES
            .into_iter()
            .map(|(name, address)| Row::of(limiter, name, address))
            .collect::<Result<_>>()?;
        let now = Moment::take(limiter, lab)?;
        Ok(Self {
            attacks,
            guests,
            visits,
            per_packet,
            start,
            now,
        })
    }

    /// Frames seen by the limiter, and received by the interface itself, since the demo's start.
    fn since_start(&self) -> (u64, u64) {
        (
            self.now.seen - self.start.seen,
            self.now.received - self.start.received,
        )
    }

    /// What must hold.
    pub(crate) fn verdict(&self) -> Result<()> {
        for row in &self.attacks {
            let exactness = row.exactness().context("an attack has an expectation")?;
            ensure!(
                EXACT.contains(&exactness),
                "{}: admitted {exactness:.3} % of what was expected",
                row.source
            );
            ensure!(
                row.admitted + row.dropped == row.offered,
                "{}: packets are unaccounted for",
                row.source
            );
        }
        for Visit { name, answers } in &self.visits {
            ensure!(
                answers.lost() == 0,
                "{name}: {} of {} requests were lost",
                answers.lost(),
                answers.sent
            );
        }
        let Moment {
            seen,
            passed,
            dropped,
            ..
        } = self.now;
        ensure!(
            seen == passed + dropped,
            "{seen} seen is not {passed} passed + {dropped} dropped"
        );
        let (seen, received) = self.since_start();
        ensure!(
            seen == received,
            "{seen} seen, but the interface itself received {received}"
        );
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sources = table([
            "source",
            "offered",
            "admitted",
            "dropped",
            "admitted/expected",
        ]);
        for row in self.attacks.iter().chain(&self.guests) {
            sources.add_row([
                row.source.to_owned(),
                row.offered.to_string(),
                row.admitted.to_string(),
                row.dropped.to_string(),
                row.exactness()
                    .map_or_else(|| "-".to_owned(), |percent| format!("{percent:.3} %")),
            ]);
        }
        let mut visits = table(["polite client", "asked", "lost", "median", "slowest"]);
        for Visit { name, answers } in &self.visits {
            let shown = |time: Option<std::time::Duration>| {
                time.map_or_else(|| "-".to_owned(), |time| format!("{time:.0?}"))
            };
            visits.add_row([
                (*name).to_owned(),
                answers.sent.to_string(),
                answers.lost().to_string(),
                shown(answers.median),
                shown(answers.slowest),
            ]);
        }
        let Moment {
            seen,
            passed,
            dropped,
            ..
        } = self.now;
        let (since, received) = self.since_start();
        write!(
            f,
            "\n{sources}\n\n{visits}\n\n{seen} seen = {passed} passed + {dropped} dropped; \
             {since} of them since the guests came, when the interface itself received {received}\n\
             {:.0} ns per packet in the program, as the kernel measures it\n",
            self.per_packet
        )
    }
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
