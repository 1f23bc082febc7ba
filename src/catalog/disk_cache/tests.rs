//! Tests with a directory that metamcp made, and with one that holds foreign files.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    time::{Duration, SystemTime},
};

use super::*;
use crate::{
    catalog::Listing,
    protocol::list_page::{ListKind, ListPage},
};

struct Rig {
    directory: tempfile::TempDir,
    store: DiskCache,
}

impl Rig {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = DiskCache::new(Some(directory.path().join("a/b")));
        Self { directory, store }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("a/b/git.catalog")
    }

    /// Returns the names of all files in the cache directory.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path().join("a/b")).expect("readable");
        entries.map(|entry| entry.expect("one").file_name().display().to_string()).collect()
    }

    fn write(&self, known: &KnownLists) -> Option<CatalogDigest> {
        self.store.write(&git(), known)
    }

    fn read(&self) -> Option<KnownLists> {
        self.store.read(&git(), declared())
    }
}

fn git() -> ServerName {
    ServerName::new("git").expect("a name")
}

fn declared() -> CatalogDigest {
    CatalogDigest::of(b"a")
}

fn known(tool: &str) -> KnownLists {
    let tool = serde_json::json!({ "name": tool, "inputSchema": { "type": "object" } });
    let result = serde_json::json!({ "tools": [tool] }).to_string();
    let listing = Listing::new(ListPage::read(ListKind::Tools, &result).expect("a list").items);
    let mut known = KnownLists::of(declared());
    known.learn(ListKind::Tools, &listing, None, SystemTime::UNIX_EPOCH);
    known
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o777
}

#[test]
fn a_cache_file_is_private_to_its_owner_and_its_draft_is_removed() {
    let rig = Rig::new();
    assert!(rig.read().is_none());
    let digest = rig.write(&known("x")).expect("written");
    let found = rig.read().expect("read");
    assert_eq!(
        (found.listing(ListKind::Tools), found.saved),
        (known("x").listing(ListKind::Tools), Some(digest))
    );
    assert_eq!((mode(&rig.path()), mode(rig.path().parent().expect("one"))), (0o600, 0o700));
    assert_eq!(rig.files(), ["git.catalog"]);
}

#[test]
fn a_cache_file_is_rewritten_only_if_a_definition_changed() {
    let rig = Rig::new();
    rig.write(&known("x")).expect("written");
    let inode = || fs::metadata(rig.path()).expect("there").ino();
    let first = inode();
    let mut found = rig.read().expect("read");

    rig.write(&found).expect("it is there");
    assert_eq!(inode(), first);

    let now = SystemTime::now();
    found.learn(ListKind::Tools, &known("y").listing(ListKind::Tools).expect("it"), None, now);
    rig.write(&found).expect("written");
    assert_ne!(inode(), first);
    assert_eq!(
        rig.read().expect("read").listing(ListKind::Tools),
        known("y").listing(ListKind::Tools)
    );
}

#[test]
fn a_cache_path_that_is_not_a_private_regular_file_is_not_read_and_does_not_block() {
    let rig = Rig::new();
    rig.write(&known("x")).expect("written");
    let elsewhere = rig.directory.path().join("elsewhere");
    fs::rename(rig.path(), &elsewhere).expect("moved");
    let attempts: [(&str, &dyn Fn()); 5] = [
        ("a link", &|| symlink(&elsewhere, rig.path()).expect("made")),
        ("a directory", &|| fs::create_dir(rig.path()).expect("made")),
        ("a pipe", &|| {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let made = rustix::fs::mknodat(
                rustix::fs::CWD,
                rig.path(),
                rustix::fs::FileType::Fifo,
                mode,
                0,
            );
            made.expect("made");
        }),
        ("one that others may write", &|| {
            fs::copy(&elsewhere, rig.path()).expect("copied");
            fs::set_permissions(rig.path(), fs::Permissions::from_mode(0o622)).expect("set");
        }),
        ("one that is too large", &|| {
            let file = fs::File::create(rig.path()).expect("made");
            file.set_len(defaults::CACHE_FILE_BYTES_MAX as u64 + 1).expect("it is sparse");
        }),
    ];
    for (what, make) in attempts {
        make();
        assert!(rig.read().is_none(), "{what}");
        let gone = fs::remove_file(rig.path()).or_else(|_| fs::remove_dir(rig.path()));
        gone.expect(what);
    }
    fs::rename(&elsewhere, rig.path()).expect("moved back");
    assert!(rig.read().is_some());
}

#[test]
fn a_symbolic_link_is_replaced_and_its_target_stays() {
    let rig = Rig::new();
    rig.write(&known("x")).expect("written");
    let victim = rig.directory.path().join("victim");
    fs::write(&victim, "precious").expect("written");
    fs::remove_file(rig.path()).expect("gone");
    symlink(&victim, rig.path()).expect("made");

    rig.write(&known("y")).expect("written");

    assert_eq!(fs::read_to_string(victim).expect("there"), "precious");
    assert!(rig.read().is_some());
}

#[test]
fn an_unwritable_cache_directory_disables_only_the_cache() {
    let rig = Rig::new();
    fs::write(rig.directory.path().join("a"), "a file").expect("written");
    assert!(rig.write(&known("x")).is_none() && rig.read().is_none());
    rig.store.tidy();
    let none = DiskCache::default();
    assert!(none.write(&git(), &known("x")).is_none() && none.read(&git(), declared()).is_none());
}

#[test]
fn the_disk_cache_removes_an_abandoned_draft_and_keeps_a_recent_one() {
    let rig = Rig::new();
    rig.write(&known("x")).expect("written");
    let drafts = ["67e5504410b1426f9247bb680e5fe0c8", "67e5504410b1426f9247bb680e5fe0c9"];
    let [old, young] = drafts.map(|word| {
        let path = rig.path().with_file_name(format!(".git.catalog.{word}.metamcp"));
        fs::write(&path, "half").expect("written");
        path
    });
    let then = SystemTime::now() - defaults::CACHE_DRAFT_AGE - Duration::from_secs(1);
    fs::File::open(&old).expect("there").set_modified(then).expect("set");

    rig.store.tidy();

    assert_eq!((old.exists(), young.exists(), rig.path().exists()), (false, true, true));
}

#[test]
fn the_cache_directory_is_that_of_the_service_manager_or_else_of_the_user() {
    let place = |variables: &[(&str, &str)]| {
        let known: BTreeMap<_, _> = variables.iter().copied().collect();
        directory(|name| known.get(name).map(OsString::from))
    };
    let (manager, cache, home) =
        (("CACHE_DIRECTORY", "/m:/n"), ("XDG_CACHE_HOME", "/c"), ("HOME", "/h"));
    for (variables, expected) in [
        (vec![manager, cache, home], Some("/m/catalog")),
        (vec![cache, home], Some("/c/metamcp/catalog")),
        (vec![home], Some("/h/.cache/metamcp/catalog")),
        (vec![("XDG_CACHE_HOME", "relative"), home], Some("/h/.cache/metamcp/catalog")),
        (vec![], None),
    ] {
        assert_eq!(place(&variables), expected.map(PathBuf::from));
    }
}
