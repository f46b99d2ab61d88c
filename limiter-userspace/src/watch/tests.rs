use std::{
    cell::RefCell,
    collections::HashMap,
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    time::{Duration, SystemTime},
};

use super::{
    files::{Stamp, stamp},
    *,
};

const LIST: &str = "/etc/limiter/list";

/// Files that exist in the mind only.
#[derive(Default)]
struct Disk(RefCell<HashMap<PathBuf, Stamp>>);

impl Disk {
    fn write(&self, path: &str, version: i64) {
        let stamp = Stamp {
            device: 1,
            inode: 2,
            size: 3,
            modified: (version, 0),
            changed: (version, 0),
        };
        self.0.borrow_mut().insert(path.into(), stamp);
    }

    fn remove(&self, path: &str) {
        self.0.borrow_mut().remove(Path::new(path));
    }

    fn watch(&self, paths: &[&str]) -> Files {
        Files::new(paths.iter().map(PathBuf::from), |path| self.stamp(path))
    }

    fn look(&self, files: &mut Files) -> Vec<PathBuf> {
        files.look(|path| self.stamp(path))
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        self.0.borrow().get(path).copied()
    }
}

fn nothing() -> Vec<PathBuf> {
    Vec::new()
}

fn list() -> Vec<PathBuf> {
    vec![LIST.into()]
}

#[test]
fn a_change_is_told_of_once_and_after_a_rest() {
    let disk = Disk::default();
    disk.write(LIST, 1);
    let mut files = disk.watch(&[LIST]);
    assert_eq!(disk.look(&mut files), nothing());
    disk.write(LIST, 2);
    assert_eq!(disk.look(&mut files), nothing(), "it may still be written");
    assert_eq!(disk.look(&mut files), list());
    assert_eq!(disk.look(&mut files), nothing());
}

#[test]
fn a_file_being_written_is_left_alone() {
    let disk = Disk::default();
    disk.write(LIST, 1);
    let mut files = disk.watch(&[LIST]);
    for version in 2..50 {
        disk.write(LIST, version);
        assert_eq!(disk.look(&mut files), nothing());
    }
    assert_eq!(disk.look(&mut files), list());
}

#[test]
fn a_writer_that_pauses_is_told_of_again() {
    let disk = Disk::default();
    disk.write(LIST, 1);
    let mut files = disk.watch(&[LIST]);
    for version in 2..5 {
        disk.write(LIST, version);
        assert_eq!(disk.look(&mut files), nothing());
        assert_eq!(disk.look(&mut files), list());
    }
}

#[test]
fn a_change_that_is_taken_back_is_none() {
    let disk = Disk::default();
    disk.write(LIST, 1);
    let mut files = disk.watch(&[LIST]);
    disk.write(LIST, 2);
    assert_eq!(disk.look(&mut files), nothing());
    disk.write(LIST, 1);
    for _ in 0..3 {
        assert_eq!(disk.look(&mut files), nothing());
    }
}

#[test]
fn a_file_that_goes_is_missed_and_told_of_when_it_is_back() {
    let disk = Disk::default();
    disk.write(LIST, 1);
    let mut files = disk.watch(&[LIST]);
    disk.remove(LIST);
    assert_eq!(disk.look(&mut files), nothing());
    assert_eq!(files.missing().count(), 0, "it may be about to be replaced");
    assert_eq!(disk.look(&mut files), nothing());
    assert_eq!(files.missing().collect::<Vec<_>>(), [Path::new(LIST)]);
    disk.write(LIST, 2);
    assert_eq!(disk.look(&mut files), nothing());
    assert_eq!(disk.look(&mut files), list());
    assert_eq!(files.missing().count(), 0);
}

#[test]
fn a_file_that_comes_to_be_is_told_of() {
    let disk = Disk::default();
    let mut files = disk.watch(&[LIST]);
    assert_eq!(files.missing().count(), 1);
    assert_eq!(disk.look(&mut files), nothing());
    disk.write(LIST, 1);
    assert_eq!(disk.look(&mut files), nothing());
    assert_eq!(disk.look(&mut files), list());
}

#[test]
fn files_are_told_of_together_but_do_not_wait_for_each_other() {
    let disk = Disk::default();
    let mut files = disk.watch(&["a", "b", "c"]);
    disk.write("a", 1);
    disk.write("b", 1);
    assert_eq!(disk.look(&mut files), nothing());
    disk.write("b", 2);
    disk.write("c", 1);
    assert_eq!(disk.look(&mut files), [PathBuf::from("a")]);
    assert_eq!(
        disk.look(&mut files),
        [PathBuf::from("b"), PathBuf::from("c")]
    );
}

/// A file is changed in all the ways that editors and feeds do, and each is told of.
#[test]
fn real_files_change_in_many_ways() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let path = at("list");
    fs::write(&path, "old").expect("a file");
    fs::create_dir(at("one")).expect("a directory");
    fs::create_dir(at("two")).expect("a directory");
    fs::write(at("one/list"), "same").expect("a file");
    fs::write(at("two/list"), "same").expect("a file");
    let mut files = Files::new([path.clone()], stamp);
    let mut expect = |what: &str| {
        assert_eq!(files.look(stamp), nothing(), "{what}");
        assert_eq!(files.look(stamp), [path.as_path()], "{what}");
        assert_eq!(files.look(stamp), nothing(), "{what}");
    };

    fs::write(&path, "longer").expect("written");
    expect("written in place");

    let times = fs::metadata(&path)
        .expect("there")
        .modified()
        .expect("a time");
    // The clock of file times may be as coarse as a tick.
    std::thread::sleep(Duration::from_millis(20));
    let mut file = fs::File::options().write(true).open(&path).expect("open");
    file.write_all(b"LONGER").expect("written");
    file.set_modified(times).expect("set back");
    expect("as long as before, with its time set back");

    fs::write(at("new"), "LONGER").expect("written");
    fs::rename(at("new"), &path).expect("renamed");
    expect("renamed over");

    fs::remove_file(&path).expect("removed");
    symlink(at("one"), at("current")).expect("linked");
    symlink("current/list", &path).expect("linked");
    expect("a link in its place");

    symlink(at("two"), at("next")).expect("linked");
    fs::rename(at("next"), at("current")).expect("swapped");
    expect("a link swapped in the middle of its path");

    fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH))
        .expect("touched");
    expect("touched behind links");
}

#[tokio::test]
async fn two_saves_in_a_second_are_both_told_of_in_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("list");
    fs::write(&path, "0").expect("written");
    let mut watch = Watch::new([path.clone()]);
    for text in ["1", "2"] {
        fs::write(&path, text).expect("written");
        let changed = tokio::time::timeout(INTERVAL * 3, watch.changed()).await;
        assert_eq!(changed.expect("in time"), [path.as_path()]);
        assert_eq!(fs::read_to_string(&path).expect("read"), text);
    }
}

#[tokio::test]
async fn giving_up_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("list");
    let mut watch = Watch::new([path.clone()]);
    assert_eq!(watch.missing().collect::<Vec<_>>(), [path.as_path()]);
    fs::write(&path, "1").expect("written");
    let waiting = async {
        loop {
            // Shorter than the interval: none of these waits is long enough by itself.
            if let Ok(changed) = tokio::time::timeout(INTERVAL / 4, watch.changed()).await {
                return changed;
            }
        }
    };
    let changed = tokio::time::timeout(INTERVAL * 4, waiting).await;
    assert_eq!(changed.expect("in time"), [path]);
}

#[test]
fn other_files_beside_it_make_no_change_be_missed() {
    let disk = Disk::default();
    disk.write(LIST, 1);
    let mut files = disk.watch(&[LIST]);
    disk.write(LIST, 2);
    disk.write("/etc/limiter/other", 1);
    let both = [LIST, "/etc/limiter/other"].map(PathBuf::from);
    files.set(both, |path| disk.stamp(path));
    assert_eq!(disk.look(&mut files), nothing());
    assert_eq!(disk.look(&mut files), list());
    files.set([], |path| disk.stamp(path));
    disk.write(LIST, 3);
    assert_eq!(disk.look(&mut files), nothing());
    assert_eq!(disk.look(&mut files), nothing());
}
