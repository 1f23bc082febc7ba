//! The README's first command builds quickly: few crates, and no costly setting of the profile.
//!
//! `cargo bench --bench gateway -- build` measures the time, and `docs/performance.md` has it.

use std::{collections::BTreeSet, fs, process::Command};

/// The number of crates that a build of the program may compile, metamcp included. 174 s on two
/// cores are for 183 crates; one more costs a second on average. The last ten are for untrusted
/// code: its confinement takes four, and its engine the others. Two write the metrics: a format with
/// rules for names and escapes that a kept crate knows better.
const CRATES_MAX: usize = 202;

#[test]
fn the_program_needs_few_crates() {
    #[expect(clippy::disallowed_methods, reason = "only cargo knows the crates of a build")]
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges=no-dev", "--prefix=none", "--format={p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).expect("text");
    let crates: BTreeSet<_> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    assert!(crates.len() > 50, "{} crates are listed", crates.len());
    assert!(
        crates.len() <= CRATES_MAX,
        "{} crates: measure the build with `cargo bench --bench gateway -- build`",
        crates.len()
    );
}

#[test]
fn the_release_profile_is_quick_to_build_and_the_dist_profile_optimises() {
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string("Cargo.toml").expect("text")).expect("TOML");
    let profile = |name: &str, key: &str| manifest["profile"][name].get(key).cloned();
    for costly in ["lto", "codegen-units", "debug"] {
        assert_eq!(profile("release", costly), None, "profile.release.{costly} makes it slow");
    }
    assert_eq!(profile("release", "opt-level"), Some(1.into()));
    for optimised in ["dist", "bench"] {
        assert_eq!(profile(optimised, "lto"), Some("thin".into()), "{optimised}");
        assert_eq!(profile(optimised, "opt-level"), Some(3.into()), "{optimised}");
    }
}
