//! A policy as facts, one a line: what `limiter diff` compares.

use super::words::{duration, kind, port_match, ranges, size_key};
use crate::spec::{
    ClassTerms, Cost, LimitSpec, Packets, PolicySpec, PrefixesSpec, ServiceSpec, Terms,
};

/// Facts of a policy, one a line, defaults included. Equal policies have equal lines, wherever they were written, and a
/// change of one value changes one line.
#[must_use]
pub fn lines(spec: &PolicySpec) -> Vec<String> {
    let PolicySpec {
        origin: _,
        interfaces,
        sources,
        needs,
        monitor,
        services,
        classes,
        allow,
        ban,
        limits,
    } = spec;
    let mut facts = Facts::default();
    for interface in interfaces {
        facts.add("interfaces", interface);
    }
    facts.add("monitor", monitor);
    facts.add("sources.ipv4_prefix", sources.ipv4_prefix);
    facts.add("sources.ipv6_prefix", sources.ipv6_prefix);
    facts.add("sources.wide_ipv4_prefix", sources.wide_ipv4_prefix);
    facts.add("sources.wide_ipv6_prefix", sources.wide_ipv6_prefix);
    facts.add("sources.capacity", sources.capacity);
    facts.add("sources.log_capacity", sources.log_capacity);
    facts.add("sources.ban_capacity", sources.ban_capacity);
    facts.terms("needs", needs);
    facts.prefixes("allow", "allow_files", allow);
    facts.prefixes("ban", "ban_files", ban);
    for service in services {
        facts.service(service);
    }
    for class in classes {
        let key = |key| format!("classes.{}.{key}", class.name);
        facts.prefixes(&key("sources"), &key("files"), &class.prefixes);
    }
    for limit in limits {
        facts.limit(spec, limit);
    }
    facts.0
}

#[derive(Default)]
struct Facts(Vec<String>);

impl Facts {
    fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0.push(format!("{key} = {value}"));
    }

    /// In the order of the prefixes, not of the file.
    fn prefixes(&mut self, inline_key: &str, files_key: &str, prefixes: &PrefixesSpec) {
        let mut inline = prefixes.inline.clone();
        inline.sort_unstable();
        inline.dedup();
        for prefix in inline {
            self.add(inline_key, prefix);
        }
        for file in &prefixes.files {
            self.add(files_key, file.display());
        }
    }

    fn terms(&mut self, key: &str, terms: &Terms) {
        self.add(&format!("{key}.rate"), &terms.rate);
        if let Some(size) = &terms.size {
            self.add(&format!("{key}.{}", size_key(terms)), size);
        }
    }

    fn service(&mut self, service: &ServiceSpec) {
        let ServiceSpec {
            name,
            matches,
            destinations,
        } = service;
        for of in matches {
            self.add(&format!("services.{name}.match"), port_match(of));
        }
        for destination in destinations {
            self.add(&format!("services.{name}.destinations"), destination);
        }
    }

    fn limit(&mut self, spec: &PolicySpec, limit: &LimitSpec) {
        let LimitSpec {
            name,
            service,
            packets,
            per,
            terms,
            wide,
            cost,
            classes,
            mode,
            on_error,
            on_exceed,
        } = limit;
        let prefix = format!("limits.{name}");
        let key = |key: &str| format!("{prefix}.{key}");
        if let Some(service) = service.and_then(|service| spec.services.get(service)) {
            self.add(&key("service"), &service.name);
        }
        self.add(&key("packets"), kind(packets));
        if let Packets::Answers(ports) = packets {
            self.add(&key("source_ports"), ranges(ports));
        }
        self.add(&key("per"), per.name());
        self.add(&key("algorithm"), terms.meter.algorithm().name());
        self.terms(&prefix, terms);
        match cost {
            Cost::Fixed(cost) => self.add(&key("cost"), cost),
            Cost::Length => self.add(&key("cost"), "length"),
        }
        if let Some(wide) = wide {
            self.terms(&key("wide"), wide);
        }
        for (class, terms) in classes {
            let class = spec
                .classes
                .get(*class)
                .map_or("", |class| class.name.as_str());
            let key = key(&format!("classes.{class}"));
            match terms {
                ClassTerms::Exempt => self.add(&key, "exempt"),
                ClassTerms::Terms(terms) => self.terms(&key, terms),
            }
        }
        self.add(&key("mode"), mode.name());
        self.add(&key("on_error"), on_error.name());
        if let Some(ban) = on_exceed {
            self.add(&key("on_exceed.ban"), duration(ban.length));
            self.add(&key("on_exceed.after"), ban.after);
            self.add(&key("on_exceed.doubles"), ban.doubles);
        }
    }
}
