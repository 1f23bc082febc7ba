//! A terminal of a given size, with a record of the output.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    },
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use tokio::time::Instant;

use super::DEADLINE;

/// A terminal.
pub(crate) struct Terminal {
    /// Held open, so that the output remains readable after a program ends.
    slave: Option<File>,
    keyboard: File,
    written: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Opens a terminal with this size.
    pub(crate) fn open(columns: u16, lines: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master: OwnedFd = openpt(flags).expect("a terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is unlocked");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let no_controlling = i32::try_from(OpenptFlags::NOCTTY.bits()).expect("a small number");
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(no_controlling);
        let slave = options.open(path).expect("it opens");
        let size = Winsize { ws_col: columns, ws_row: lines, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(slave.as_fd(), size).expect("it takes the size");
        let keyboard = File::from(master.try_clone().expect("a copy"));
        let written: Arc<Mutex<Vec<u8>>> = Arc::default();
        let shared = Arc::clone(&written);
        let reader = std::thread::spawn(move || {
            let (mut master, mut piece) = (File::from(master), [0; 4096]);
            // The end is an error: the other side is closed.
            while let Ok(n_bytes) = master.read(&mut piece) {
                shared.lock().expect("not poisoned").extend_from_slice(&piece[..n_bytes]);
            }
        });
        Self { slave: Some(slave), keyboard, written, reader: Some(reader) }
    }

    /// Returns the terminal as a standard stream for a program.
    pub(crate) fn stream(&self) -> Stdio {
        self.slave.as_ref().expect("it is open").try_clone().expect("a copy").into()
    }

    /// Types a text.
    pub(crate) fn type_text(&self, text: &str) {
        (&self.keyboard).write_all(text.as_bytes()).expect("it takes input");
    }

    /// Returns the output so far.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().expect("not poisoned")).into_owned()
    }

    /// Waits for `text` in the output, and returns all output.
    #[track_caller]
    pub(crate) fn wait(&self, text: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let written = self.written();
            if written.contains(text) {
                return written;
            }
            assert!(Instant::now() < deadline, "`{text}` is not written: {written:?}");
            std::thread::yield_now();
        }
    }

    /// Returns all output, once no program has the terminal open.
    pub(crate) fn close(mut self) -> String {
        self.end();
        self.written()
    }

    fn end(&mut self) {
        drop(self.slave.take());
        if let Some(reader) = self.reader.take() {
            reader.join().expect("it does not panic");
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}
