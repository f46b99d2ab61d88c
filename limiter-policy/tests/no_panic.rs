//! Whatever is written in a file, it is read or refused in one line; nothing panics.

use std::{fs, path::Path};

use limiter_policy::{describe, file};
use proptest::prelude::*;

/// All files of the corpus, good and bad.
fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for directory in ["good_files", "bad_files"] {
        for entry in fs::read_dir(root.join("tests").join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    texts.sort();
    texts
}

fn read(text: &str) {
    match file::parse(Path::new("fuzz.toml"), text) {
        Ok(parsed) => {
            let lines = describe::lines(&parsed.spec);
            assert!(lines.iter().all(|line| !line.contains('\n')), "{lines:?}");
            // What it warns of is of no interest, only that it can be said.
            assert!(
                describe::warnings(&parsed.spec)
                    .iter()
                    .all(|warning| !warning.is_empty())
            );
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(!shown.contains('\n'), "{shown}");
            assert!(
                error.line >= 1 && error.line <= text.matches('\n').count() + 1,
                "{shown}"
            );
            assert!(!error.key.is_empty() && !error.reason.is_empty(), "{shown}");
        }
    }
}

/// Pieces that files are made of, and some that they are not.
const PIECES: [&str; 28] = [
    "",
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "\n",
    "#",
    "'",
    "-",
    "0",
    "18446744073709551616",
    "1e400",
    "nan",
    "true",
    "1979-05-27",
    "\u{feff}",
    "\u{e9}",
    "\0",
    "[[limits]]\n",
    "classes",
    "\"exempt\"",
    "\"1/s\"",
    "0x7f",
    "\\u0000",
];

/// A change: at this part of the text, this many characters give way to a piece.
type Change = (f64, usize, usize);

fn change(text: &str, (at, length, piece): Change) -> String {
    let characters: Vec<char> = text.chars().collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a short text"
    )]
    let at = ((characters.len() as f64) * at) as usize;
    let end = (at + length).min(characters.len());
    let mut changed: String = characters[..at].iter().collect();
    changed.push_str(PIECES[piece % PIECES.len()]);
    changed.extend(&characters[end..]);
    changed
}

/// Swaps two lines: keys in the wrong tables.
fn swap(text: &str, a: usize, b: usize) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if !lines.is_empty() {
        let count = lines.len();
        lines.swap(a % count, b % count);
    }
    lines.join("\n")
}

#[test]
fn half_written_files_do_not_panic() {
    for text in corpus().iter().filter(|text| text.len() < 2000) {
        for (end, _) in text.char_indices() {
            read(&text[..end]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_files_do_not_panic(
        which in any::<usize>(),
        changes in prop::collection::vec((0.0..1.0_f64, 0..6_usize, any::<usize>()), 0..4),
        (a, b) in any::<(usize, usize)>(),
        swapped in any::<bool>(),
    ) {
        let corpus = corpus();
        let mut text = corpus[which % corpus.len()].clone();
        if swapped {
            text = swap(&text, a, b);
        }
        for one in changes {
            text = change(&text, one);
        }
        read(&text);
    }

    #[test]
    fn any_text_does_not_panic(text in any::<String>()) {
        read(&text);
    }
}
