//! The scripts of the service: whether and how they run, and their records.

use std::sync::Arc;

use super::{
    driver::SCRIPTS_RUNNING_MAX, record_store::ScriptRecords, sandbox_cgroup::DelegatedCgroup,
    sandbox_process::SandboxLauncher,
};
use crate::{
    config::{ExecuteConfig, ExecuteProfile},
    confine,
    error_report::chain,
    fair_share::Admission,
};

/// The scripts of the service.
#[derive(Clone, Debug)]
pub struct ScriptServices {
    /// The records of scripts.
    pub records: Arc<ScriptRecords>,
    /// The places of the scripts that run at the same time.
    pub places: Arc<Admission>,
    /// The reason why this host cannot isolate scripts, if it cannot.
    isolation: Result<(), String>,
    /// Each sandbox gets a control group of its own.
    has_cgroups: bool,
}

impl ScriptServices {
    /// Returns the scripts with these records, and finds out how this process can isolate them.
    /// Call this before the first child starts: the process may move to another control group.
    pub fn new(records: Arc<ScriptRecords>) -> Self {
        let isolation = confine::isolation_support().map(drop).map_err(|error| chain(&error));
        let places = Admission::new(SCRIPTS_RUNNING_MAX);
        let has_cgroups = isolation.is_ok() && DelegatedCgroup::of_service().is_some();
        Self { records, places, isolation, has_cgroups }
    }

    /// Returns the reason why this process cannot isolate scripts, if it cannot.
    pub fn isolation_error(&self) -> Option<&str> {
        self.isolation.as_ref().err().map(String::as_str)
    }

    /// Returns whether each sandbox gets a control group of its own.
    pub fn has_cgroups(&self) -> bool {
        self.has_cgroups
    }

    /// Returns the way to start a sandbox.
    ///
    /// # Errors
    ///
    /// The reason why no script may run, in words.
    pub fn launcher(&self, config: &ExecuteConfig) -> Result<SandboxLauncher, String> {
        match (config.is_enabled, config.profile, &self.isolation) {
            (false, _, _) => Err("the operator has disabled code (`execute.enabled`)".to_owned()),
            (true, ExecuteProfile::Dev, _) => Ok(SandboxLauncher::Unconfined),
            (true, ExecuteProfile::Standard, Ok(())) => Ok(SandboxLauncher::Confined),
            (true, ExecuteProfile::Standard, Err(reason)) => {
                Err(format!("this host cannot isolate code: {reason}"))
            }
        }
    }
}
