//! The Landlock domain: no file, no connection, no signal to others.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetError, RulesetStatus, Scope,
};

use super::ConfineError;

/// The version of the interface that the kernel must have: it denies files.
const REQUIRED: ABI = ABI::V1;

/// The newest version that this program knows. A kernel denies as much of it as it can.
const NEWEST: ABI = ABI::V10;

/// Enters a domain in which everything is denied that the kernel can deny.
pub(super) fn enter() -> Result<(), ConfineError> {
    match deny_all().map_err(ConfineError::Landlock)?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(ConfineError::LandlockUnenforced),
    }
}

fn deny_all() -> Result<RestrictionStatus, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .restrict_self()
}
