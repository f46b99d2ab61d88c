//! Files that are accepted, each with what it means: the facts in NAME.lines.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use limiter_policy::{
    describe,
    error::{PolicyError, Subject},
    file,
};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good_files")
}

fn parse(name: &str) -> file::Parsed {
    let text = fs::read_to_string(directory().join(name)).unwrap();
    file::parse(Path::new(name), &text).unwrap()
}

#[test]
fn each_good_file_means_what_is_written_beside_it() {
    let mut count = 0;
    let mut differences = String::new();
    for entry in fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        count += 1;
        let text = fs::read_to_string(&path).unwrap();
        let name = Path::new("/etc/limiter").join(path.file_name().unwrap());
        let expected = fs::read_to_string(path.with_extension("lines")).unwrap_or_default();
        let found = match file::parse(&name, &text) {
            Ok(parsed) => describe::lines(&parsed.spec).join("\n") + "\n",
            Err(error) => error.to_string(),
        };
        if found != expected {
            writeln!(differences, "{}: found\n{found}", path.display()).unwrap();
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(count >= 6, "only {count} files");
}

#[test]
fn the_examples_of_the_reference_are_policies() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/POLICY.md");
    let text = fs::read_to_string(reference).unwrap();
    let mut count = 0;
    for block in text.split("```toml\n").skip(1) {
        let example = block.split("```").next().unwrap();
        if let Err(error) = file::parse(Path::new("example.toml"), example) {
            panic!("{error}\n{example}");
        }
        count += 1;
    }
    assert!(count >= 5, "only {count} examples");
}

#[test]
fn faults_that_come_to_light_later_have_their_place_in_the_file() {
    let spans = parse("design.toml").spans;
    let place = |subject, key: &str| {
        let error = PolicyError::new(subject, key, "no");
        spans.locate(&error).to_string()
    };
    for (subject, key, expected) in [
        (
            Subject::Limit(1),
            "burst",
            "design.toml:28:9: limits.per-source.burst: no",
        ),
        (
            Subject::Limit(1),
            "",
            "design.toml:24:1: limits.per-source: no",
        ),
        (
            Subject::Limit(1),
            "classes.partner",
            "design.toml:29:19: limits.per-source.classes.partner: no",
        ),
        // A key that is not in the file: its part.
        (
            Subject::Limit(2),
            "wide",
            "design.toml:31:1: limits.ceiling.wide: no",
        ),
        (
            Subject::Service(0),
            "match[1]",
            "design.toml:9:10: services.login.match[1]: no",
        ),
        (
            Subject::Service(0),
            "match[7]",
            "design.toml:9:9: services.login.match[7]: no",
        ),
        (
            Subject::Class(0),
            "sources",
            "design.toml:12:11: classes.partner.sources: no",
        ),
        (
            Subject::Sources,
            "capacity",
            "design.toml:6:12: sources.capacity: no",
        ),
        (Subject::Top, "limits", "design.toml:14:1: limits: no"),
        (Subject::Top, "nowhere", "design.toml:1:1: nowhere: no"),
        (Subject::Limit(9), "burst", "design.toml:1:1: burst: no"),
    ] {
        assert_eq!(place(subject, key), expected);
    }
}
