//! The sum of what all test runners count.

use std::fmt;

use anyhow::{Result, ensure};

/// How many tests passed, failed, and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Totals {
    /// Adds a line of a test runner's, if it is the one that sums up:
    /// `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
    pub(crate) fn add_line(&mut self, line: &str) {
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split("; ") {
            match count
                .split_once(' ')
                .map(|(number, what)| (number.parse::<u64>(), what))
            {
                Some((Ok(number), "passed")) => self.passed += number,
                Some((Ok(number), "failed")) => self.failed += number,
                Some((Ok(number), "ignored")) => self.skipped += number,
                _ => {}
            }
        }
    }

    /// Adds a failure that no test runner counted.
    pub(crate) fn add_failure(&mut self) {
        self.failed += 1;
    }

    /// How many tests failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// Whether all is well: a run without a test proves nothing, so it is a failure too.
    pub(crate) fn verdict(&self) -> Result<()> {
        ensure!(
            self.failed == 0,
            "{} failed, see above",
            if self.failed == 1 { "a test" } else { "tests" }
        );
        ensure!(self.passed > 0, "no test ran");
        Ok(())
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(lines: &[&str]) -> Totals {
        let mut totals = Totals::default();
        for line in lines {
            totals.add_line(line);
        }
        totals
    }

    #[test]
    fn the_runners_totals_are_summed() {
        let totals = sum(&[
            "running 5 tests",
            "test bucket::full ... ok",
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 7 passed; 2 failed; 0 ignored; 3 measured; 9 filtered out; finished in 12.34s",
        ]);
        assert_eq!(totals.to_string(), "12 passed, 2 failed, 1 skipped");
        assert!(totals.verdict().is_err());
    }

    #[test]
    fn nothing_skipped_is_not_mentioned() {
        let totals =
            sum(&["test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"]);
        assert_eq!(totals.to_string(), "1 passed, 0 failed");
        assert!(totals.verdict().is_ok());
    }

    #[test]
    fn a_run_without_tests_fails() {
        assert!(
            sum(&["test result: ok. 0 passed; 0 failed; 4 ignored; 0 measured; 0 filtered out"])
                .verdict()
                .is_err()
        );
    }

    #[test]
    fn a_failure_outside_the_runners_counts() {
        let mut totals =
            sum(&["test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"]);
        totals.add_failure();
        assert_eq!(totals.to_string(), "1 passed, 1 failed");
        assert!(totals.verdict().is_err());
    }

    #[test]
    fn a_line_that_only_looks_like_one_is_ignored() {
        assert_eq!(
            sum(&[
                "test result: ok",
                "12 passed; 3 failed",
                "test result: ok. many passed"
            ]),
            Totals::default()
        );
    }
}
