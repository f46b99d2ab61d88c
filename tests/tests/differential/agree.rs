//! What differs between the worlds.

use integration_tests::{
    counted::{difference, named},
    kernel::Kernel,
    model::Model,
    world::{Action, World},
};
use limiter_common::{policy::Place, source::SourceKey};

/// How the verdicts and counters differ.
pub(crate) fn verdicts(
    (model, on_host): (&Model, Action),
    (kernel, in_kernel): (&Kernel, Action),
) -> Vec<String> {
    let mut differences = difference(&named(&model.counters()), &named(&kernel.counters()));
    if on_host != in_kernel {
        differences.push(format!("verdict: {on_host:?} and {in_kernel:?}"));
    }
    differences
}

/// How the buckets of the host's needs and one source differ.
pub(crate) fn source(model: &Model, kernel: &Kernel, key: SourceKey) -> Vec<String> {
    let mut differences = Vec::new();
    note(&mut differences, "needs", &model.needs(), &kernel.needs());
    let (host, program) = (model.source(&key), kernel.source(&key));
    note(&mut differences, &key.to_string(), &host, &program);
    differences
}

/// How all that is remembered differs.
pub(crate) fn everything(model: &Model, kernel: &Kernel) -> Vec<String> {
    let mut differences = Vec::new();
    note(&mut differences, "needs", &model.needs(), &kernel.needs());
    note(
        &mut differences,
        "sources",
        &model.sources(),
        &kernel.sources(),
    );
    note(&mut differences, "bans", &model.bans(), &kernel.bans());
    let compiled = model.compiled();
    for (limit, of) in compiled.limits.iter().zip(&compiled.policy.limits) {
        if limit.place == Place::Shared {
            let slot = u32::from(of.slot);
            let (host, program) = (model.shared(slot), kernel.shared(slot));
            note(&mut differences, &limit.name, &host, &program);
        }
    }
    for (key, log) in kernel.logs() {
        let on_host = model.tables().log_copy(&key);
        note(&mut differences, &format!("{key:?}"), &on_host, &Some(log));
    }
    differences
}

fn note<T: PartialEq + std::fmt::Debug>(to: &mut Vec<String>, what: &str, host: &T, kernel: &T) {
    if host != kernel {
        to.push(format!("{what}: {host:?} and {kernel:?}"));
    }
}
