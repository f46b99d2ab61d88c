use super::*;

/// A kernel that does at most `batch` of eight things in a call and stops at `stops`.
fn run(batch: usize, stops: &[usize], fails: Option<usize>) -> (Vec<usize>, usize, Result<()>) {
    let mut done = Vec::new();
    let mut calls = 0;
    let singles = std::cell::RefCell::new(Vec::new());
    let result = in_batches(
        8,
        |from| {
            calls += 1;
            let end = (from..8.min(from + batch)).find(|at| stops.contains(at));
            let end = end.unwrap_or(8.min(from + batch));
            singles.borrow_mut().extend(from..end);
            end - from
        },
        |at| {
            singles.borrow_mut().push(at);
            if fails == Some(at) {
                Err(anyhow!("no"))
            } else {
                Ok(())
            }
        },
    );
    done.append(&mut singles.borrow_mut());
    (done, calls, result)
}

#[test]
fn everything_is_done_once_and_in_order_wherever_batches_stop() {
    let all: Vec<usize> = (0..8).collect();
    for batch in 0..9 {
        for stops in [&[][..], &[0], &[3], &[7], &[0, 1, 2], &[2, 3, 7]] {
            let (done, _, result) = run(batch, stops, None);
            assert!(result.is_ok());
            assert_eq!(done, all, "batches of {batch}, stopping at {stops:?}");
        }
    }
}

#[test]
fn a_kernel_without_batches_is_asked_once() {
    let (_, calls, _) = run(0, &[], None);
    assert_eq!(calls, 1);
    let (_, calls, _) = run(8, &[], None);
    assert_eq!(calls, 1);
}

#[test]
fn a_failure_ends_it() {
    let (done, _, result) = run(8, &[5], Some(5));
    assert!(result.is_err());
    assert_eq!(done, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn what_may_pass_is_tried_again_and_what_may_not_is_not() {
    let mut calls = 0;
    let result = patiently(|| {
        calls += 1;
        if calls < 3 {
            Err(io::Error::from_raw_os_error(libc::ENOMEM))
        } else {
            Ok(())
        }
    });
    assert!(result.is_ok());
    let mut calls = 0;
    let result = patiently(|| {
        calls += 1;
        Err(io::Error::from_raw_os_error(libc::ENOSPC))
    });
    assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(calls, 1);
}

#[test]
fn keys_are_in_network_order_and_read_back() {
    let prefix_of = |text: &str, length| {
        let address: std::net::IpAddr = text.parse().expect("an address");
        Prefix::new(address.into(), length)
    };
    let ten = key(prefix_of("10.1.0.0", 112));
    assert_eq!(ten.length, 112);
    assert_eq!(
        ten.address,
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 0]
    );
    for (text, length) in [
        ("0.0.0.0", 96),
        ("255.255.255.255", 128),
        ("::", 0),
        ("2001:db8::7", 128),
    ] {
        let original = prefix_of(text, length);
        assert_eq!(prefix(&key(original)), original);
    }
}
