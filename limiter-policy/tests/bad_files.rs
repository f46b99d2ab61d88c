//! Files that are refused, each with its exact message: the comment in its first line, or beside it in NAME.txt where a
//! comment would change what is tested.

use std::{fs, path::Path};

use limiter_policy::file;

#[test]
fn each_bad_file_has_its_message() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_files");
    let mut count = 0;
    let mut differences = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        count += 1;
        let text = fs::read_to_string(&path).unwrap();
        let beside = fs::read_to_string(path.with_extension("txt"));
        let expected = match &beside {
            Ok(expected) => expected.trim_end(),
            Err(_none) => {
                let first = text.lines().next().unwrap_or_default();
                first.trim_start_matches("# ")
            }
        };
        let name = path.file_name().unwrap();
        let found = match file::parse(Path::new(name), &text) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => error.to_string(),
        };
        if found != expected {
            differences = format!("{differences}\nexpected {expected}\n   found {found}\n");
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(count >= 70, "only {count} files");
}
