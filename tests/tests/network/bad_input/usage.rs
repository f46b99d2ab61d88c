//! Flags that cannot be meant: exit code 2, before anything is touched.

use anyhow::Result;
use limiter_lab::HOST_INTERFACE;

use super::{GOOD, run_is_answered};
use crate::common::{Site, on_host, to_its_end};

/// What stands behind `limiter run --iface IF`, and the answer.
const RATES: [(&str, &str); 19] = [
    (
        "--rate 1000pps --burst 1",
        "invalid value '1000pps' for '--rate <RATE>': a rate is an amount and a time: write `1000/s`",
    ),
    (
        "--rate 100Mbps --burst 1MB",
        "invalid value '100Mbps' for '--rate <RATE>': a rate is an amount and a time: write `100Mbit/s`",
    ),
    (
        "--rate 0/s --burst 1",
        "invalid value '0/s' for '--rate <RATE>': a rate of 0 would let nothing through for good: the lowest is 1/d",
    ),
    (
        "--rate 0MB/s --burst 1MB",
        "invalid value '0MB/s' for '--rate <RATE>': a rate of 0 would let nothing through for good: the lowest is 1/d",
    ),
    (
        "--rate 1000 --burst 1",
        "invalid value '1000' for '--rate <RATE>': a rate needs a time: write `1000/s` for packets, or for example `10MB/s` or `100Mbit/s`",
    ),
    (
        "--rate abc/s --burst 1",
        "invalid value 'abc/s' for '--rate <RATE>': `abc` does not start with a whole number",
    ),
    (
        "--rate=-1/s --burst 1",
        "invalid value '-1/s' for '--rate <RATE>': `-1` does not start with a whole number",
    ),
    (
        "--rate 1.5/s --burst 1",
        "invalid value '1.5/s' for '--rate <RATE>': `1.5` does not start with a whole number",
    ),
    (
        "--rate 1000/m --burst 1",
        "invalid value '1000/m' for '--rate <RATE>': `/m` is not a time: use /s, /min, /h or /d",
    ),
    (
        "--rate 1000/ --burst 1",
        "invalid value '1000/' for '--rate <RATE>': `/` is not a time: use /s, /min, /h or /d",
    ),
    (
        "--rate 1000/s/s --burst 1",
        "invalid value '1000/s/s' for '--rate <RATE>': `/s/s` is not a time: use /s, /min, /h or /d",
    ),
    (
        "--rate 10k/s --burst 1",
        "invalid value '10k/s' for '--rate <RATE>': `k` is not a unit: write packets as a plain number, bytes as B, kB, MB, GB, KiB, MiB or GiB, bits as bit, kbit, Mbit or Gbit",
    ),
    (
        "--rate 10mb/s --burst 1",
        "invalid value '10mb/s' for '--rate <RATE>': `mb` is not a unit: write packets as a plain number, bytes as B, kB, MB, GB, KiB, MiB or GiB, bits as bit, kbit, Mbit or Gbit",
    ),
    (
        "--rate 10XB/s --burst 1MB",
        "invalid value '10XB/s' for '--rate <RATE>': `X` is not a prefix: use k, M, G, T, Ki, Mi or Gi",
    ),
    (
        "--rate 1000000001/s --burst 1",
        "invalid value '1000000001/s' for '--rate <RATE>': more than can be counted: the highest rate is 1000000000 packets a second",
    ),
    (
        "--rate 4294967296/s --burst 1",
        "invalid value '4294967296/s' for '--rate <RATE>': more than can be counted: the highest rate is 1000000000 packets a second",
    ),
    (
        "--rate 60000000001/min --burst 1",
        "invalid value '60000000001/min' for '--rate <RATE>': more than can be counted: the highest rate is 1000000000 packets a second",
    ),
    (
        "--rate 401Gbit/s --burst 1MB",
        "invalid value '401Gbit/s' for '--rate <RATE>': more than can be counted: the highest rate is 50000000000 bytes a second (400 Gbit/s)",
    ),
    (
        "--rate 99999999999999999999/s --burst 1",
        "invalid value '99999999999999999999/s' for '--rate <RATE>': `99999999999999999999` is more than can be counted: the largest number is 18446744073709551615",
    ),
];

const BURSTS: [(&str, &str); 16] = [
    (
        "--rate 1/s --burst 0",
        "invalid value '0' for '--burst <BURST>': a burst of 0 would let nothing through: the lowest is 1",
    ),
    (
        "--rate 1MB/s --burst 0B",
        "invalid value '0B' for '--burst <BURST>': a burst of 0 would let nothing through: the lowest is 1",
    ),
    (
        "--rate 1/s --burst=-5",
        "invalid value '-5' for '--burst <BURST>': `-5` does not start with a whole number",
    ),
    (
        "--rate 1/s --burst 4398046511105",
        "invalid value '4398046511105' for '--burst <BURST>': more than a bucket holds: the largest burst is 4398046511104",
    ),
    (
        "--rate 1/s --burst 9223372036854775808",
        "invalid value '9223372036854775808' for '--burst <BURST>': more than a bucket holds: the largest burst is 4398046511104",
    ),
    (
        "--rate 1/s --burst 99999999999999999999",
        "invalid value '99999999999999999999' for '--burst <BURST>': `99999999999999999999` is more than can be counted: the largest number is 18446744073709551615",
    ),
    (
        "--rate 1MB/s --burst 1000B",
        "invalid value '1000B' for '--burst <BURST>': smaller than the largest frame, which would then never pass: the lowest is 65536B",
    ),
    (
        "--rate 1MB/s --burst 65535B",
        "invalid value '65535B' for '--burst <BURST>': smaller than the largest frame, which would then never pass: the lowest is 65536B",
    ),
    (
        "--rate 1MB/s --burst 1Mbit",
        "invalid value '1Mbit' for '--burst <BURST>': a burst is in packets or bytes: write for example `2000` or `1MB`",
    ),
    (
        "--rate 1/s --burst 10/s",
        "invalid value '10/s' for '--burst <BURST>': `/s` is not a unit: write packets as a plain number, bytes as B, kB, MB, GB, KiB, MiB or GiB, bits as bit, kbit, Mbit or Gbit",
    ),
    (
        "--rate 1MB/s --burst 1000",
        "--burst 1000: --rate 1MB/s counts bytes, so write a burst in bytes, for example 1MB",
    ),
    (
        "--rate 1000/s --burst 1MB",
        "--burst 1MB: --rate 1000/s counts packets, so write a burst in packets, for example 2000",
    ),
    (
        "--burst 100",
        "--rate is missing: say what each source may send, for example --rate 1000/s --burst 2000",
    ),
    (
        "--monitor",
        "--rate is missing: say what each source may send, for example --rate 1000/s --burst 2000",
    ),
    (
        "--rate 1000/s",
        "--burst is missing: say how much of --rate 1000/s a source may save up, for example --burst 2000",
    ),
    (
        "--rate 1MB/s",
        "--burst is missing: say how much of --rate 1MB/s a source may save up, for example --burst 1MB",
    ),
];

/// What stands behind a good policy.
const OTHERS: [(&str, &str); 17] = [
    (
        "--ipv4-prefix 0",
        "invalid value '0' for '--ipv4-prefix <BITS>': not a whole number from 1 to 32",
    ),
    (
        "--ipv4-prefix 33",
        "invalid value '33' for '--ipv4-prefix <BITS>': not a whole number from 1 to 32",
    ),
    (
        "--ipv6-prefix 0",
        "invalid value '0' for '--ipv6-prefix <BITS>': not a whole number from 1 to 128",
    ),
    (
        "--ipv6-prefix 129",
        "invalid value '129' for '--ipv6-prefix <BITS>': not a whole number from 1 to 128",
    ),
    (
        "--ipv6-prefix 256",
        "invalid value '256' for '--ipv6-prefix <BITS>': not a whole number from 1 to 128",
    ),
    (
        "--max-sources many",
        "invalid value 'many' for '--max-sources <N>': not a whole number up to 4294967295",
    ),
    (
        "--max-sources=-1",
        "invalid value '-1' for '--max-sources <N>': not a whole number up to 4294967295",
    ),
    (
        "--max-sources 4294967296",
        "invalid value '4294967296' for '--max-sources <N>': not a whole number up to 4294967295",
    ),
    (
        "--needs-rate 0/s",
        "invalid value '0/s' for '--needs-rate <RATE>': a rate of 0 would let nothing through for good: the lowest is 1/d",
    ),
    (
        "--needs-rate 1MB/s",
        "--needs-rate 1MB/s: counts packets, for example 1000/s",
    ),
    (
        "--needs-burst 0",
        "invalid value '0' for '--needs-burst <BURST>': a burst of 0 would let nothing through: the lowest is 1",
    ),
    (
        "--needs-burst 1MB",
        "--needs-burst 1MB: --needs-rate 1000/s counts packets, so write a burst in packets, for example 2000",
    ),
    (
        "--attach auto",
        "invalid value 'auto' for '--attach <ATTACH>' [possible values: native, generic]",
    ),
    (
        "--attach Native",
        "invalid value 'Native' for '--attach <ATTACH>' [possible values: native, generic]",
    ),
    (
        "--on-exit maybe",
        "invalid value 'maybe' for '--on-exit <ON_EXIT>' [possible values: detach, keep]",
    ),
    (
        "--config FILE",
        "--rate and --config FILE: the policy comes from flags or from a file; give one of them",
    ),
    (
        "--socket= ",
        "a value is required for '--socket <PATH>' but none was supplied",
    ),
];

#[test]
fn rates_and_bursts_that_cannot_be_meant() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for (words, message) in RATES.iter().chain(&BURSTS) {
        run_is_answered(&site, &limiter, words, (2, message))?;
    }
    Ok(())
}

#[test]
fn other_flags_that_cannot_be_meant() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for (words, message) in OTHERS {
        run_is_answered(&site, &limiter, &format!("{GOOD} {words}"), (2, message))?;
    }
    Ok(())
}

#[test]
fn every_policy_flag_beside_a_file_is_refused_by_name() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for flag in [
        "--rate 1/s",
        "--burst 1",
        "--ipv4-prefix 24",
        "--ipv6-prefix 48",
        "--max-sources 65536",
        "--needs-rate 1/s",
        "--needs-burst 1",
        "--monitor",
    ] {
        let name = flag.split(' ').next().unwrap_or(flag);
        let message = format!(
            "{name} and --config /x.toml: the policy comes from flags or from a file; give one of them"
        );
        run_is_answered(
            &site,
            &limiter,
            &format!("{flag} --config /x.toml"),
            (2, &message),
        )?;
    }
    let message = "/x.toml: cannot be read: No such file or directory (os error 2)";
    run_is_answered(&site, &limiter, "--config /x.toml", (1, message))
}

#[test]
fn negative_numbers_are_answered_like_other_bad_values() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for (words, message) in [
        (
            "--rate -1/s --burst 1",
            "invalid value '-1/s' for '--rate <RATE>': `-1` does not start with a whole number",
        ),
        (
            "--rate 1/s --burst -5",
            "invalid value '-5' for '--burst <BURST>': `-5` does not start with a whole number",
        ),
        (
            "--rate 1/s --burst 1 --max-sources -1",
            "invalid value '-1' for '--max-sources <N>': not a whole number up to 4294967295",
        ),
    ] {
        run_is_answered(&site, &limiter, words, (2, message))?;
    }
    Ok(())
}

#[test]
fn what_is_neither_number_nor_address_is_answered_with_the_bound_or_an_example() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for (words, flag, help) in [
        ("--ipv4-prefix x", "--ipv4-prefix", "32"),
        ("--ipv6-prefix x", "--ipv6-prefix", "128"),
        ("--metrics 9433", "--metrics", "127.0.0.1:9433"),
        ("--metrics localhost:9433", "--metrics", "127.0.0.1:9433"),
    ] {
        let mut command = limiter.command(&["run"]);
        let words = format!("{GOOD} {words}");
        let output = to_its_end(command.args(on_host(&words)))?;
        assert_eq!(output.status.code(), Some(2), "{words}");
        let [complaint] = &super::complaints(&output)?[..] else {
            panic!("one line: {output:?}")
        };
        assert!(
            complaint.contains(flag) && complaint.contains(help),
            "{complaint}"
        );
    }
    Ok(())
}

#[test]
fn an_empty_rate_is_not_answered_with_half_a_rate() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let output = limiter.output(&[
        "run",
        "--iface",
        HOST_INTERFACE,
        "--rate",
        "",
        "--burst",
        "1",
    ])?;
    assert_eq!(output.status.code(), Some(2));
    let [complaint] = &super::complaints(&output)?[..] else {
        panic!("one line: {output:?}")
    };
    assert!(!complaint.contains("`/s`"), "{complaint}");
    Ok(())
}
