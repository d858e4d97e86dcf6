"""Whether a directory is on a network file system, or in a folder that a program copies to other machines.

SQLite's write-ahead log needs memory that all processes share and locks that hold: over a network neither is sure, and
a program that copies the files one by one makes a damaged database of them.

Source: https://sqlite.org/wal.html, "Overview"; https://sqlite.org/howtocorrupt.html, "File locking problems".
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path, PurePosixPath
from typing import Final

ADVICE: Final = (
    "move the workspace to a disk of this machine: docs/troubleshooting.md, "
    '"The workspace is on a network or synchronised file system"'
)
MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK: Final = (
    *("9p", "afp", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fakeowner", "gfs2"),
    *("glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "prl_fs", "smb"),
    *("smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "webdav"),
)
"""Types of file systems whose files are on another machine, or on the host of a virtual one."""
_OF_FUSE: Final = (
    *("beegfs", "ceph", "ceph-fuse", "curlftpfs", "davfs", "davfs2", "gcsfuse", "glusterfs"),
    *("google-drive-ocamlfuse", "goofys", "grpcfuse", "gvfsd-fuse", "juicefs", "mfs", "mount-s3", "onedriver"),
    *("osxfs", "rclone", "s3fs", "s3ql", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse"),
)
_SYNCED: Final = {
    "dropbox": "Dropbox",
    "onedrive": "OneDrive",
    "google drive": "Google Drive",
    "googledrive": "Google Drive",
    "icloud": "iCloud",
    "icloud drive": "iCloud",
    "iclouddrive": "iCloud",
    "mobile documents": "iCloud",
    "cloudstorage": "a cloud drive",
    "nextcloud": "Nextcloud",
    "owncloud": "ownCloud",
    "pcloud drive": "pCloud",
    "pclouddrive": "pCloud",
    "megasync": "MEGA",
    "syncthing": "Syncthing",
}
"""The folders of such programs, in small letters. Some add an account: ``OneDrive - Work``, ``Dropbox (Private)``."""


def shared_storage(directory: Path, mounts: str | None = None, home: Path | None = None) -> str | None:
    """Return where the directory is, if that is no disk of this machine; None if it is one, or is not known.

    ``mounts``: the text of ``/proc/self/mountinfo``; by default that of this process, which only Linux has.
    """
    path = os.path.realpath(directory)
    place = _synced_folder(path, os.path.realpath(home or os.path.expanduser("~")))
    if place is not None:
        return place
    if mounts is None:
        try:
            mounts = MOUNTS.read_text(errors="surrogateescape")
        except OSError:
            return None
    point, kind = _mount_of(path, mounts)
    if kind in _NETWORK or kind.removeprefix("fuse.") in _OF_FUSE:
        return f"is on a network file system ({kind}, mounted at {point})"
    return None


def _synced_folder(path: str, home: str) -> str | None:
    """Return in which program's folder the path is. The names of the home directory and above it do not count."""
    parts = PurePosixPath(path).parts
    above = len(PurePosixPath(home).parts) if PurePosixPath(path).is_relative_to(home) else 1
    for number, part in enumerate(parts[above:], above + 1):
        name = unicodedata.normalize("NFC", part).casefold().split(" - ")[0].split(" (")[0]
        if name in _SYNCED:
            return f"is in a folder of {_SYNCED[name]} ({PurePosixPath(*parts[:number])})"
    return None


def _mount_of(path: str, mounts: str) -> tuple[str, str]:
    """Return where the file system of the path is mounted, and its type; empty if the table does not tell.

    Of several mounts at one place the last one counts, which hides the others. Source: proc_pid_mountinfo(5).
    """
    found = "", ""
    for line in mounts.splitlines():
        fields, _, described = line.partition(" - ")
        columns, kinds = fields.split(" "), described.split(" ")
        if len(columns) < 5 or not kinds[0]:
            continue
        point = _plain(columns[4])
        is_within = path == point or path.startswith(point.rstrip("/") + "/")
        if is_within and len(point) >= len(found[0]):
            found = point, kinds[0]
    return found


def _plain(field: str) -> str:
    """Return the path of a column, in which the kernel writes blanks and backslashes as octal numbers."""
    first, *others = field.split("\\")
    octal = ({*other[:3]} <= {*"01234567"} and len(other) >= 3 for other in others)
    return first + "".join(
        chr(int(other[:3], 8)) + other[3:] if is_octal else f"\\{other}"
        for other, is_octal in zip(others, octal, strict=True)
    )
