//! The check whether scripts can be isolated, by this process and by the service.

use super::finding::{Finding, FindingArea::Scripts};
use crate::{
    config::ExecuteConfig,
    confine::{IsolationSupport, isolation_support},
    error_report::chain,
};

/// The report of a service: its layers, or the reason why it cannot isolate scripts.
pub(super) type ServiceIsolation = Result<ServiceLayers, String>;

/// The layers of isolation that depend on the service.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceLayers {
    /// Each script has a control group.
    pub(super) has_cgroups: bool,
}

const RESTART: &str = "Change this, then run `systemctl restart metamcp`.";

/// Examines the isolation of scripts, unless they are disabled. A service under a unit may be
/// filtered where a shell is not.
pub(super) fn examine(
    config: &ExecuteConfig,
    service: Option<&ServiceIsolation>,
    found: &mut Vec<Finding>,
) {
    if !config.is_enabled {
        found.push(Finding::ok(Scripts, "scripts are disabled (`execute.enabled`)"));
        return;
    }
    found.push(judged(isolation_support().map_err(|error| chain(&error)), service));
}

fn judged(here: Result<IsolationSupport, String>, service: Option<&ServiceIsolation>) -> Finding {
    match (here, service) {
        (Ok(support), None) => {
            let means = layers(support, ServiceLayers::default());
            Finding::ok(Scripts, "this host can isolate scripts").because(means)
        }
        (Ok(support), Some(Ok(service))) => Finding::ok(Scripts, "the service can isolate scripts")
            .because(layers(support, *service)),
        (Err(here), Some(Ok(_))) => Finding::ok(Scripts, "the service can isolate scripts")
            .because(format!("This shell cannot: {here}")),
        (Ok(_), Some(Err(there))) => {
            let what = "the service cannot isolate scripts, although this shell can";
            Finding::warning(Scripts, what).because(there).fix(RESTART)
        }
        (Err(here), None) => Finding::warning(Scripts, "scripts cannot be isolated").because(here),
        (Err(here), Some(Err(there))) => {
            let reasons = match here == *there {
                true => here,
                false => format!("The service: {there}\nThis shell: {here}"),
            };
            Finding::warning(Scripts, "scripts cannot be isolated").because(reasons).fix(RESTART)
        }
    }
}

/// Returns the layers of isolation, in words.
fn layers(support: IsolationSupport, service: ServiceLayers) -> String {
    let IsolationSupport { landlock_version } = support;
    let others = match service.has_cgroups {
        true => ", limits on resources, and a control group for each script",
        false => " and limits on resources",
    };
    format!("By Landlock {landlock_version}, a system call filter{others}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingSeverity;

    #[test]
    fn the_isolation_of_the_service_counts_and_a_different_one_of_the_shell_is_reported() {
        let here = || Ok(IsolationSupport { landlock_version: 6 });
        let refused = || Err::<ServiceLayers, _>("the call is refused: allow it".to_owned());
        let seen = |here, service: Option<ServiceIsolation>| {
            let finding = judged(here, service.as_ref());
            (finding.level, finding.what, finding.why.unwrap_or_default())
        };
        let (level, what, why) = seen(here(), None);
        assert_eq!((level, what.as_str()), (FindingSeverity::Ok, "this host can isolate scripts"));
        assert_eq!(why, "By Landlock 6, a system call filter and limits on resources.");
        let (_, what, why) = seen(here(), Some(Ok(ServiceLayers { has_cgroups: true })));
        assert_eq!(what, "the service can isolate scripts");
        assert!(
            why.ends_with(", limits on resources, and a control group for each script."),
            "{why}"
        );
        let (level, what, why) = seen(here(), Some(refused()));
        assert_eq!(level, FindingSeverity::Warning);
        assert!(what.contains("although this shell can"), "{what}");
        assert_eq!(why, "the call is refused: allow it");
        let lack = || "the kernel has no Landlock".to_owned();
        let (level, _, why) = seen(Err(lack()), Some(Ok(ServiceLayers::default())));
        assert_eq!(level, FindingSeverity::Ok);
        assert_eq!(why, "This shell cannot: the kernel has no Landlock");
        let (level, _, why) = seen(Err(lack()), Some(refused()));
        assert_eq!(level, FindingSeverity::Warning);
        assert!(
            why.contains("The service: the call") && why.contains("This shell: the k"),
            "{why}"
        );
        assert_eq!(seen(Err(lack()), Some(Err(lack()))).2, "the kernel has no Landlock");
        assert_eq!(seen(Err(lack()), None).0, FindingSeverity::Warning);
    }

    #[test]
    fn disabled_scripts_need_no_isolation() {
        let mut found = Vec::new();
        examine(&ExecuteConfig { is_enabled: false, ..ExecuteConfig::default() }, None, &mut found);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "scripts are disabled (`execute.enabled`)");
    }
}
