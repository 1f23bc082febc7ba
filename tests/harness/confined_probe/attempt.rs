//! A system call that untrusted code might try, and the things that it acts on.

use std::{ffi::CString, fs, io, path::Path, ptr};

use libc::{c_int, c_long, c_void};

/// The size of a page that a call may change.
pub(crate) const PAGE_BYTES: usize = 4096;

/// A system call to try.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) number: c_long,
    pub(crate) arguments: fn(&Scenery) -> [usize; 6],
    /// True if any process can make the call.
    pub(crate) is_possible: bool,
    /// The condition under which another layer than the filter refuses the call.
    pub(crate) refusal: Refusal,
}

/// The layers besides the filter that refuse a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// None does.
    FilterOnly,
    /// A layer that every kernel has.
    Always,
    /// Landlock, in this version of its interface and later.
    Landlock(i32),
    /// The refusal of executable memory.
    ExecutableMemory,
}

impl Attempt {
    /// Returns an attempt that only the filter stops, and that may need privileges.
    pub(crate) const fn new(
        name: &'static str,
        number: c_long,
        arguments: fn(&Scenery) -> [usize; 6],
    ) -> Self {
        Self { name, number, arguments, is_possible: false, refusal: Refusal::FilterOnly }
    }

    /// States that any process can make the call.
    pub(crate) const fn possible(self) -> Self {
        Self { is_possible: true, ..self }
    }

    /// States that a confined process cannot make the call, even without the filter.
    pub(crate) const fn refused(self, refusal: Refusal) -> Self {
        Self { refusal, ..self }
    }

    /// Makes the call, and returns its result.
    pub(crate) fn make(&self, scenery: &Scenery) -> io::Result<c_long> {
        let [a, b, c, d, e, f] = (self.arguments)(scenery);
        // SAFETY: a pointer among the arguments leads to memory of `scenery`, which lives on and is
        // not used by other code. The calls that end or replace this process may do so.
        let result = unsafe { libc::syscall(self.number, a, b, c, d, e, f) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }
}

/// The things that attempts act on. All exist before the process is confined.
pub(crate) struct Scenery {
    file: CString,
    missing: CString,
    link: CString,
    directory: CString,
    page: *mut c_void,
    pub(crate) parent: usize,
    pub(crate) own: usize,
}

impl Scenery {
    /// The descriptor of the file, open for reading and writing.
    pub(crate) const FILE_DESCRIPTOR: usize = 3;

    /// Prepares the things in an empty directory.
    pub(crate) fn new(directory: &Path) -> Self {
        let path = |name: &str| {
            let path = directory.join(name).into_os_string().into_encoded_bytes();
            CString::new(path).expect("a path without a zero byte")
        };
        let file = fs::File::options().read(true).write(true).open(directory.join("file"));
        let file = std::os::fd::IntoRawFd::into_raw_fd(file.expect("the test made the file"));
        assert_eq!(usize::try_from(file), Ok(Self::FILE_DESCRIPTOR), "the first free descriptor");
        Self {
            file: path("file"),
            missing: path("missing"),
            link: path("link"),
            directory: path(""),
            page: page(),
            parent: rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as usize),
            own: std::process::id() as usize,
        }
    }

    pub(crate) fn file(&self) -> usize {
        self.file.as_ptr().addr()
    }

    pub(crate) fn missing(&self) -> usize {
        self.missing.as_ptr().addr()
    }

    pub(crate) fn link(&self) -> usize {
        self.link.as_ptr().addr()
    }

    pub(crate) fn directory(&self) -> usize {
        self.directory.as_ptr().addr()
    }

    /// The address of two pages that are readable and writable.
    pub(crate) fn page(&self) -> usize {
        self.page.addr()
    }

    /// Stores numbers in the first page, and returns their address.
    pub(crate) fn stored<const N: usize>(&self, numbers: [u64; N]) -> usize {
        // SAFETY: the page is mapped, writable, aligned and larger than the numbers.
        unsafe { self.page.cast::<[u64; N]>().write(numbers) };
        self.page()
    }
}

/// Maps two pages of memory.
fn page() -> *mut c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new anonymous mapping touches no other memory.
    let page = unsafe { libc::mmap(ptr::null_mut(), 2 * PAGE_BYTES, protection, flags, -1, 0) };
    assert!(page != libc::MAP_FAILED, "{}", io::Error::last_os_error());
    page
}

/// Returns a flag or a negative descriptor in the width of an argument.
pub(crate) const fn flag(flag: c_int) -> usize {
    flag as usize
}
