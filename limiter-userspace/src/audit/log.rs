//! Writing the audit log.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use nix::fcntl::OFlag;
use serde_json::{Value, json};
use tracing::{error, info};

use super::{Entry, FILES, path};

/// A file is full at this many bytes: five of them take 3.75 MiB.
const FILE_BYTES: u64 = 768 << 10;
/// A longer line is shortened: one change must not push all others out.
const LINE_BYTES: usize = 64 << 10;

/// The audit log of one daemon: `audit.log` and the older `audit.log.1` to `audit.log.4`.
///
/// The newest file is opened for each entry, since changes are rare and whoever moves the file away shall not take
/// later entries with it. Entries are not forced to the disk; a crash of the machine may lose the last seconds.
#[derive(Debug)]
pub struct AuditLog {
    directory: PathBuf,
    file_bytes: u64,
    /// Whether the last entry was lost; held while one is written.
    failing: Mutex<bool>,
    lost: AtomicU64,
}

impl AuditLog {
    /// The log in a state directory.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self::with_file_bytes(directory, FILE_BYTES)
    }

    fn with_file_bytes(directory: &Path, file_bytes: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            file_bytes,
            failing: Mutex::new(false),
            lost: AtomicU64::new(0),
        }
    }

    /// Entries that could not be written since the daemon started.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Appends an entry, after the change is in force. One that cannot be written is counted, and the first of a row of
    /// them logged, but holds nothing up: a full disk must not keep anybody from banning a flood.
    pub fn record(&self, entry: &Entry) {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.append(&line(entry)) {
            Ok(()) => {
                if *failing {
                    info!(
                        "{}: can be written again; {} entries are lost",
                        path(&self.directory, 0).display(),
                        self.lost()
                    );
                }
                *failing = false;
            }
            Err(error) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                if !*failing {
                    error!(
                        "{}: cannot be written, changes go unrecorded until it can: {error}",
                        path(&self.directory, 0).display()
                    );
                }
                *failing = true;
            }
        }
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        let newest = path(&self.directory, 0);
        let mut file = open(&newest)?;
        let mut length = file.metadata()?.len();
        if length > 0 && length + line.len() as u64 > self.file_bytes {
            self.rotate()?;
            file = open(&newest)?;
            length = 0;
        }
        let written = if is_torn(&file, length)? {
            file.write(&[b"\n", line].concat())?.saturating_sub(1)
        } else {
            file.write(line)?
        };
        if written < line.len() {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn rotate(&self) -> io::Result<()> {
        for number in (1..FILES).rev() {
            match fs::rename(
                path(&self.directory, number - 1),
                path(&self.directory, number),
            ) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Opens a file to append to it. It is read as well: its last byte tells whether the last line is whole.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file"))
    }
}

/// Whether a file's last line lacks its end, since the machine crashed or the disk was full.
fn is_torn(file: &File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else {
        return Ok(false);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}

/// An entry as a line, shortened if need be.
fn line(entry: &Entry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).expect("text keys only");
    if line.len() >= LINE_BYTES {
        let left_out = |value: &Value| match value {
            Value::Null => Value::Null,
            value => json!({ "left_out_bytes": value.to_string().len() }),
        };
        let short = Entry {
            before: left_out(&entry.before),
            after: left_out(&entry.after),
            ..entry.clone()
        };
        line = serde_json::to_vec(&short).expect("text keys only");
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{PermissionsExt as _, symlink},
        time::UNIX_EPOCH,
    };

    use tempfile::TempDir;

    use super::{
        super::{What, read::read, who::Who},
        *,
    };

    fn entry(after: Value) -> Entry {
        Entry {
            time: UNIX_EPOCH.into(),
            who: Who::File {
                file: "/etc/limiter.toml".to_owned(),
                owner: "root".to_owned(),
            },
            what: What::Policy,
            before: Value::Null,
            after,
            why: None,
        }
    }

    fn log(file_bytes: u64) -> (TempDir, AuditLog) {
        let directory = tempfile::tempdir().unwrap();
        let log = AuditLog::with_file_bytes(directory.path(), file_bytes);
        (directory, log)
    }

    fn values(directory: &Path) -> Vec<Value> {
        let audit = read(directory, usize::MAX, None).unwrap();
        audit.entries.into_iter().map(|entry| entry.after).collect()
    }

    #[test]
    fn an_entry_is_a_line() {
        let (directory, log) = log(FILE_BYTES);
        log.record(&entry(json!({ "generation": 2 })));
        let newest = path(directory.path(), 0);
        assert_eq!(
            fs::read_to_string(&newest).unwrap(),
            concat!(
                r#"{"time":"1970-01-01T00:00:00Z","who":{"file":"/etc/limiter.toml","owner":"root"},"#,
                r#""what":"policy","before":null,"after":{"generation":2},"why":null}"#,
                "\n"
            )
        );
        let mode = fs::metadata(newest).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_forged_line_is_no_line() {
        let (directory, log) = log(FILE_BYTES);
        let mut forged = entry(json!("a\nb"));
        forged.why = Some("x\n{\"time\":\"now\"}".to_owned());
        log.record(&forged);
        let audit = read(directory.path(), usize::MAX, None).unwrap();
        assert_eq!(audit.entries, [forged]);
        assert_eq!(audit.unreadable, 0);
    }

    #[test]
    fn the_files_stay_below_four_mebibytes_and_hold_the_newest() {
        let (directory, log) = log(FILE_BYTES);
        let filling = "x".repeat(8 << 10);
        for number in 0..1_000 {
            log.record(&entry(json!([number, filling])));
        }
        let files: Vec<u64> = fs::read_dir(directory.path())
            .unwrap()
            .map(|file| file.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(files.len(), FILES);
        let total: u64 = files.iter().sum();
        assert!((3 << 20..4 << 20).contains(&total), "{total}");
        let numbers: Vec<u64> = values(directory.path())
            .iter()
            .map(|value| value[0].as_u64().unwrap())
            .collect();
        let first = 1_000 - numbers.len() as u64;
        assert!(numbers.into_iter().eq(first..1_000), "no gap, in order");
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn a_huge_change_is_shortened() {
        let (directory, log) = log(FILE_BYTES);
        log.record(&entry(json!("x".repeat(LINE_BYTES))));
        assert_eq!(
            values(directory.path()),
            [json!({ "left_out_bytes": LINE_BYTES + 2 })]
        );
    }

    #[test]
    fn after_a_torn_line_the_next_is_whole() {
        let (directory, log) = log(FILE_BYTES);
        log.record(&entry(json!(1)));
        log.record(&entry(json!(2)));
        let newest = path(directory.path(), 0);
        let length = fs::metadata(&newest).unwrap().len();
        File::options()
            .write(true)
            .open(&newest)
            .unwrap()
            .set_len(length - 20)
            .unwrap();
        log.record(&entry(json!(3)));
        assert_eq!(values(directory.path()), [json!(1), json!(3)]);
    }

    #[test]
    fn a_log_that_was_moved_away_begins_anew() {
        let (directory, log) = log(FILE_BYTES);
        log.record(&entry(json!(1)));
        fs::rename(path(directory.path(), 0), directory.path().join("mine")).unwrap();
        log.record(&entry(json!(2)));
        assert_eq!(values(directory.path()), [json!(2)]);
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_then_goes_on() {
        let (directory, log) = log(FILE_BYTES);
        let newest = path(directory.path(), 0);
        symlink("/dev/full", &newest).unwrap();
        log.record(&entry(json!(1)));
        fs::remove_file(&newest).unwrap();
        fs::create_dir(&newest).unwrap();
        log.record(&entry(json!(2)));
        assert_eq!(log.lost(), 2);
        fs::remove_dir(&newest).unwrap();
        log.record(&entry(json!(3)));
        assert_eq!(log.lost(), 2);
        assert_eq!(values(directory.path()), [json!(3)]);
    }

    #[test]
    fn many_writers_tear_no_line() {
        let (directory, log) = log(4 << 10);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let log = &log;
                scope.spawn(move || (0..100).for_each(|n| log.record(&entry(json!([writer, n])))));
            }
        });
        let audit = read(directory.path(), usize::MAX, None).unwrap();
        assert_eq!(audit.unreadable, 0);
        assert!(audit.entries.len() > 50);
        assert_eq!(log.lost(), 0);
    }
}
