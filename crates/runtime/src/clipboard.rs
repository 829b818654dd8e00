//! Images from the clipboard, through whichever of the programs that read it is there.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_exec::child_environment;

use crate::base::Base;
use crate::error::{Error, Result};
use crate::terminals::variables;

/// Programs that print the image in the clipboard as a PNG, and how they are asked: Wayland, X11, macOS twice, and
/// Windows around a WSL.
const READERS: [(&str, &str); 5] = [
    ("wl-paste", "wl-paste --no-newline --type image/png"),
    ("xclip", "xclip -selection clipboard -target image/png -out"),
    ("pngpaste", "pngpaste -"),
    (
        "osascript",
        "osascript -e 'the clipboard as «class PNGf»' | sed 's/.*PNGf//; s/».*//' | xxd -r -p",
    ),
    (
        "powershell.exe",
        "powershell.exe -NoProfile -NonInteractive -STA -Command 'Add-Type -AssemblyName System.Windows.Forms; \
         $image = [Windows.Forms.Clipboard]::GetImage(); if ($image) { $bytes = New-Object IO.MemoryStream; \
         $image.Save($bytes, [Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($bytes.ToArray()) }' \
         | tr -d '\\r\\n' | base64 -d",
    ),
];

/// Variables by which those programs find the clipboard.
const DISPLAYS: [&str; 5] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "WSL_INTEROP",
];

/// A clipboard is read at once, or whoever owns it does not answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What a shell says of a program that is not there.
const NOT_FOUND: i32 = 127;
const PNG: &[u8] = b"\x89PNG";

/// What a clipboard is read with, and where its images are kept.
pub struct Clipboard {
    environment: Vec<(OsString, OsString)>,
    folder: PathBuf,
}

impl Clipboard {
    pub fn of(base: &Base) -> Self {
        let displays = DISPLAYS.map(str::to_owned);
        Self {
            environment: child_environment(variables(base), &displays),
            folder: base.home.media(),
        }
    }

    /// Keeps the image that is in the clipboard in a file that only its owner reads. Returns the file.
    pub async fn keep_image(self) -> Result<PathBuf> {
        let path = self.create_file().map_err(|error| {
            Error::failed(format!(
                "cannot keep the image in `{}`: {error}",
                self.folder.display()
            ))
        })?;
        let kept = self.read_into(&path).await;
        if kept.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        kept.map(|()| path)
    }

    /// Asks one program after the other until one has an image.
    async fn read_into(&self, path: &Path) -> Result<()> {
        let mut is_readable = false;
        for (program, line) in READERS {
            is_readable |= self.ask(program, line, path).await?;
            if is_png(path) {
                return Ok(());
            }
        }
        Err(if is_readable {
            Error::failed("there is no image in the clipboard")
                .with_hint(
                    "copy one first, or paste the path of an image file; over ssh only the clipboard there can be read",
                )
        } else {
            Error::failed("there is no program here that reads images from the clipboard").with_hint(
                "install wl-clipboard (Wayland), xclip (X11) or pngpaste (macOS), or paste the path of an image file",
            )
        })
    }

    /// Has a program write the image into the file. Returns whether there is such a program.
    async fn ask(&self, program: &str, line: &str, path: &Path) -> Result<bool> {
        let script = format!("command -v {program} >/dev/null || exit {NOT_FOUND}; {line} >\"$1\"");
        let words = [
            "-c".as_ref(),
            script.as_ref(),
            "sh".as_ref(),
            path.as_os_str(),
        ];
        let asked = hermes_exec::output("sh", words, &self.environment, &self.folder, TIMEOUT);
        match asked.await {
            Ok(output) => Ok(output.status.code() != Some(NOT_FOUND)),
            Err(error) => Err(Error::failed(format!(
                "cannot read the clipboard with `{program}`: {error}"
            ))),
        }
    }

    fn create_file(&self) -> io::Result<PathBuf> {
        let mut folder = std::fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.folder)?;
        let mut number = 1;
        loop {
            let path = self.folder.join(format!("clipboard-{number}.png"));
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).mode(0o600).open(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_png(path: &Path) -> bool {
    let mut start = [0; PNG.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == PNG
}
