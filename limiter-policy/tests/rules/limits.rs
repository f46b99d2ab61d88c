//! From the limits of the specification to those of the kernel.

use limiter_common::policy::{EXEMPT, Limit, NO_SET, Place};
use limiter_policy::{
    error::Subject,
    spec::{
        ANY_PORT, BanSpec, ClassTerms, Cost, LimitSpec, Mode, Packets, Per, PolicySpec, PortMatch,
        Protocol,
    },
};

use crate::{
    compiled, nobody, of, refused, small, with_classes,
    world::{SECOND, bucket, limit, loaded, service, spec, terms},
};

#[test]
fn one_limit_may_become_several() {
    let mut each = limit("each", small());
    each.wide = Some(bucket("100/s", "100"));
    let mut services = limit("services", small());
    services.per = Per::Service;
    let mut everyone = limit("everyone", small());
    everyone.per = Per::Everyone;
    let mut syn = services.clone();
    syn.name = "syn".to_owned();
    syn.packets = Packets::TcpSyn;
    let compiled = compiled(&of(vec![each, services, everyone, syn]), &nobody());
    let named: Vec<_> = compiled
        .limits
        .iter()
        .map(|limit| (limit.name.as_str(), limit.place, limit.service, limit.wide))
        .collect();
    assert_eq!(
        named,
        [
            ("each", Place::Source, None, false),
            ("each.wide", Place::Wide, None, true),
            ("services.ssh", Place::Shared, Some(0), false),
            ("services.dns", Place::Shared, Some(1), false),
            ("everyone", Place::Shared, None, false),
            ("syn.ssh", Place::Shared, Some(0), false),
        ],
        "of `syn` there is none for UDP"
    );
    let slots: Vec<_> = compiled.policy.limits[..6]
        .iter()
        .map(|limit| limit.slot)
        .collect();
    assert_eq!(
        slots,
        [0, 1, 0, 1, 2, 3],
        "one numbering for sources, one for all"
    );
    assert_eq!(compiled.slots(), 2);
    let row = &compiled.rows[&0];
    assert_ne!(row[0], row[1]);
    assert_eq!(row[0], row[2], "equal meters share an id");
    assert!(row[..6].iter().all(|id| (1..EXEMPT).contains(id)));
}

#[test]
fn limits_as_the_kernel_holds_them() {
    let mut banning = limit("banning", small());
    banning.cost = Cost::Fixed(3);
    banning.wide = Some(small());
    banning.on_exceed = Some(BanSpec {
        length: 7 * SECOND,
        after: 5,
        doubles: true,
    });
    let mut bytes = limit("bytes", bucket("1MB/s", "1MB"));
    bytes.cost = Cost::Length;
    bytes.mode = Mode::Monitor;
    let log = limit("log", terms("sliding-log", "5/min", ""));
    let compiled = compiled(&of(vec![banning, bytes, log]), &nobody());
    let [banning, wide, bytes, log] = [0, 1, 2, 3].map(|number| compiled.policy.limits[number]);
    assert_eq!((banning.cost, banning.length_mask), (3, 0));
    assert_eq!((banning.bans, banning.ban_after), (1, 5));
    assert_eq!((banning.ban_for, banning.ban_doubles), (7 * SECOND, 1));
    assert_eq!(
        (wide.bans, wide.ban_after),
        (0, 0),
        "it is not the last one's doing"
    );
    assert_eq!((bytes.cost, bytes.length_mask), (0, u32::MAX));
    assert_eq!((bytes.monitor, banning.monitor), (1, 0));
    assert_eq!((log.keeps_log, bytes.keeps_log), (1, 0));
    assert_eq!(compiled.policy.bans, 1);
    assert_eq!(
        (compiled.policy.class_set, compiled.policy.list_set),
        (NO_SET, NO_SET)
    );
    assert_eq!(compiled.policy.need_ceilings[3], spec().needs.meter);
    let unused = compiled.policy.limits[4];
    assert_eq!(unused, Limit::default());
}

#[test]
fn limits_that_can_match_nothing_are_refused() {
    for (packets, service, part) in [
        (Packets::Icmp, Some(0), "told by its ports"),
        (Packets::Portless, Some(0), "told by its ports"),
        (Packets::TcpSyn, Some(1), "service `dns`"),
        (Packets::Answers(vec![(53, 53)]), Some(0), "service `ssh`"),
    ] {
        let mut limit = limit("x", small());
        limit.packets = packets;
        limit.service = service;
        let error = refused(&of(vec![limit]), &nobody());
        assert_eq!((error.subject, &*error.key), (Subject::Limit(0), "packets"));
        assert!(error.reason.contains(part), "{error}");
    }
    let mut none = limit("x", small());
    none.per = Per::Service;
    none.packets = Packets::Icmp;
    assert_eq!(refused(&of(vec![none.clone()]), &nobody()).key, "per");
    none.packets = Packets::Any;
    let without_services = PolicySpec {
        limits: vec![none],
        ..spec()
    };
    let error = refused(&without_services, &loaded(&[]));
    assert!(error.reason.contains("there are no services"), "{error}");
}

#[test]
fn what_would_keep_one_state_by_two_meters_is_refused() {
    let shared = LimitSpec {
        per: Per::Everyone,
        ..limit("x", small())
    };
    let log = || terms("sliding-log", "5/min", "");
    let ban = BanSpec {
        length: SECOND,
        after: 1,
        doubles: false,
    };
    for (limit, key) in [
        (
            with_classes(shared.clone(), &[(0, ClassTerms::Terms(small()))]),
            "classes",
        ),
        (
            with_classes(limit("x", small()), &[(0, ClassTerms::Terms(log()))]),
            "classes",
        ),
        (
            LimitSpec {
                wide: Some(small()),
                ..shared.clone()
            },
            "wide",
        ),
        (
            LimitSpec {
                on_exceed: Some(ban),
                ..shared.clone()
            },
            "on_exceed",
        ),
        (
            LimitSpec {
                on_exceed: Some(ban),
                ..limit("x", log())
            },
            "on_exceed",
        ),
    ] {
        let error = refused(&of(vec![limit]), &nobody());
        assert_eq!(
            (error.subject, &*error.key),
            (Subject::Limit(0), key),
            "{error}"
        );
    }
    let exempt = with_classes(shared, &[(0, ClassTerms::Exempt)]);
    compiled(&of(vec![exempt]), &nobody());
}

#[test]
fn tables_have_bounds() {
    let limits = |count: usize| {
        let mut spec = of(Vec::new());
        spec.services = (0..22)
            .map(|number| service(&format!("s{number}"), Protocol::Tcp, (number, number)))
            .collect();
        spec.limits = (0..count)
            .map(|number| {
                let mut limit = limit(&format!("l{number}"), small());
                limit.service = Some(number % 22);
                limit.per = if number < 60 {
                    Per::Source
                } else {
                    Per::Service
                };
                limit
            })
            .collect();
        spec
    };
    compiled(&limits(64), &nobody());
    let error = refused(&limits(65), &nobody());
    assert!(
        error.reason.contains("65 limits, where there may be 64"),
        "{error}"
    );

    let mut slots = limits(62);
    for limit in &mut slots.limits {
        limit.per = Per::Source;
    }
    let error = refused(&slots, &nobody());
    assert!(error.reason.contains("there may be: 61"), "{error}");

    let mut ports = of(vec![limit("x", small())]);
    ports.services[0].matches = (0..256)
        .map(|port| PortMatch {
            protocol: Protocol::Tcp,
            destination: (2 * port, 2 * port),
            source: ANY_PORT,
        })
        .collect();
    compiled(&ports, &nobody());
    ports.limits[0].service = Some(0);
    let error = refused(&ports, &nobody());
    assert!(
        error.reason.contains("255 kinds of TCP destination"),
        "{error}"
    );

    ports.services[0].matches.truncate(100);
    for of in &mut ports.services[0].matches {
        of.source = of.destination;
    }
    let error = refused(&ports, &nobody());
    let said = [
        "142814 cases",
        "101 kinds of destination ports x 101 of source",
    ];
    assert!(
        said.iter().all(|part| error.reason.contains(part)),
        "{error}"
    );

    let mut destinations = of(vec![limit("x", small())]);
    destinations.limits[0].service = Some(0);
    destinations.services[0].destinations = (0..17)
        .map(|number| format!("10.0.{number}.0/24").parse().unwrap())
        .collect();
    let error = refused(&destinations, &nobody());
    assert!(error.reason.contains("17 destination prefixes"), "{error}");
    destinations.services[0].destinations.pop();
    let compiled = compiled(&destinations, &nobody());
    assert_eq!(compiled.policy.destination_count, 16);
    assert_eq!(
        compiled.policy.destinations[3].class, 1,
        "all are of the same service"
    );
}

#[test]
fn names_must_differ_in_the_end() {
    let mut each = limit("each", small());
    each.wide = Some(small());
    let error = refused(&of(vec![each, limit("each.wide", small())]), &nobody());
    assert_eq!((error.subject, &*error.key), (Subject::Limit(1), "name"));
}
