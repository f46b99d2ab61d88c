//! Reading the audit log.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use nix::fcntl::OFlag;

use super::{Audit, Entry, FILES, What, path};

/// More of a file is not read; the daemon writes less.
const MOST_BYTES: u64 = 16 << 20;

/// The last changes, at most `last` of them, oldest first; of one kind, if `what` is given. None, where nothing has been
/// recorded.
///
/// # Errors
///
/// Where a file cannot be read; the error names it.
pub fn read(directory: &Path, last: usize, what: Option<What>) -> io::Result<Audit> {
    let mut audit = Audit::default();
    let mut entries = VecDeque::new();
    for file in open_all(directory)?.into_iter().rev() {
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        for line in bytes.split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice::<Entry>(line) {
                Ok(entry) if what.is_none_or(|what| what == entry.what) => {
                    entries.push_back(entry);
                    if entries.len() > last {
                        entries.pop_front();
                    }
                }
                Ok(_) => {}
                Err(_) => audit.unreadable += 1,
            }
        }
    }
    audit.entries = entries.into();
    Ok(audit)
}

/// The files, newest first. In that order, a rotation meanwhile shows a file twice rather than never.
fn open_all(directory: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    let mut seen = Vec::new();
    for number in 0..FILES {
        let path = path(directory, number);
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(named(error)),
        };
        let metadata = file.metadata().map_err(named)?;
        if !metadata.is_file() {
            return Err(named(io::Error::other("it is no regular file")));
        }
        let identity = (metadata.dev(), metadata.ino());
        if !seen.contains(&identity) {
            seen.push(identity);
            files.push(file);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn line(what: &str, why: &str) -> String {
        format!(
            r#"{{"time":"2026-12-01T08:30:00Z","who":{{"uid":0,"user":"root","pid":7,"comm":"limiter"}},"what":"{what}","before":null,"after":null,"why":"{why}"}}"#
        ) + "\n"
    }

    fn whys(audit: &Audit) -> Vec<&str> {
        let whys = audit.entries.iter();
        whys.map(|entry| entry.why.as_deref().unwrap()).collect()
    }

    #[test]
    fn nothing_recorded_is_no_error() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path(), 10, None).unwrap(), Audit::default());
        let missing = directory.path().join("missing");
        assert_eq!(read(&missing, 10, None).unwrap(), Audit::default());
    }

    #[test]
    fn the_last_of_all_files_or_of_one_kind() {
        let directory = tempfile::tempdir().unwrap();
        let write = |number, text: String| fs::write(path(directory.path(), number), text).unwrap();
        write(0, line("ban", "e") + &line("unban", "f"));
        write(1, line("ban", "c") + &line("policy", "d"));
        // One that somebody took away is no gap in what is left.
        write(3, line("ban", "a") + &line("monitor", "b"));
        let read = |last, what| read(directory.path(), last, what).unwrap();
        assert_eq!(
            whys(&read(usize::MAX, None)),
            ["a", "b", "c", "d", "e", "f"]
        );
        assert_eq!(whys(&read(3, None)), ["d", "e", "f"]);
        assert_eq!(whys(&read(2, Some(What::Ban))), ["c", "e"]);
        assert_eq!(whys(&read(0, None)), [""; 0]);
    }

    #[test]
    fn lines_that_make_no_sense_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let whole = line("ban", "a");
        let mut text = whole.clone().into_bytes();
        text.extend(b"\n\xff\xfe\n{}\nnull\n");
        text.extend(line("lullaby", "b").bytes());
        text.extend(whole[..whole.len() / 2].bytes());
        fs::write(path(directory.path(), 0), text).unwrap();
        let audit = read(directory.path(), 10, None).unwrap();
        assert_eq!(whys(&audit), ["a"]);
        assert_eq!(audit.unreadable, 5);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(path(directory.path(), 0)).unwrap();
        let error = read(directory.path(), 10, None).unwrap_err().to_string();
        assert!(error.contains("audit.log: "), "{error}");
    }
}
