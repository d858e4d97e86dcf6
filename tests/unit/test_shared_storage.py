"""Whether a workspace is on a network file system or in a synchronised folder.

The lines are in the form of proc_pid_mountinfo(5); the names of folders are those that the programs make.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from signet_actors.config import shared_storage as module
from signet_actors.config.shared_storage import shared_storage

HOME = Path("/home/ada")
LOCAL = (
    *("ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay", "bcachefs", "vfat", "exfat", "ntfs3", "fuseblk"),
    *(
        "fuse.mergerfs",
        "fuse.gocryptfs",
        "fuse.encfs",
        "fuse.bindfs",
        "fuse.fuse-overlayfs",
        "ecryptfs",
        "ramfs",
        "jfs",
    ),
    *("apfs", "hfsplus", "rootfs", "erofs", "squashfs", "fuse.lxcfs"),
)
NETWORK = (
    *(
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "virtiofs",
        "ceph",
        "glusterfs",
        "afs",
        "lustre",
        "vboxsf",
        "prl_fs",
    ),
    *("fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.vmhgfs-fuse", "fuse.gvfsd-fuse", "fuse.davfs2"),
    *("fuse.grpcfuse", "fakeowner", "ocfs2", "gfs2", "beegfs", "fuse.juicefs", "drvfs", "fuse.glusterfs", "davfs"),
)


def mount(point: str, kind: str, number: int = 40, optional: str = " shared:1 master:2") -> str:
    return f"{number} 20 0:{number} / {point} rw,relatime{optional} - {kind} source rw,vers=4.2"


ROOT = mount("/", "ext4", 20)


@pytest.mark.parametrize("kind", NETWORK)
def test_a_network_file_system_is_named_with_its_place(kind: str) -> None:
    table = "\n".join((ROOT, mount("/home", kind), mount("/home/ada/local", "ext4")))
    assert shared_storage(HOME / ".agents", table, HOME) == f"is on a network file system ({kind}, mounted at /home)"
    for local in ("/home/ada/local", "/home/ada/local/.agents", "/srv/agents", "/homes/ada"):
        assert shared_storage(Path(local), table, HOME) is None, local


@pytest.mark.parametrize("kind", LOCAL)
def test_a_disk_of_this_machine_is_not_named(kind: str) -> None:
    table = "\n".join((mount("/", "nfs4", 20), mount("/home", kind, optional=""), mount("/home/bob", "cifs")))
    assert shared_storage(HOME / ".agents", table, HOME) is None


def test_the_innermost_and_last_mount_counts() -> None:
    def found(*mounts: str, path: str = "/net/a b/agents") -> bool:
        return shared_storage(Path(path), "\n".join((ROOT, *mounts)), HOME) is not None

    assert found(mount("/net", "autofs"), mount("/net/a\\040b", "nfs4"))
    assert not found(mount("/net", "nfs4"), mount("/net/a\\040b", "ext4"))
    assert found(mount("/net/a\\040b", "autofs"), mount("/net/a\\040b", "nfs4"))
    assert not found(mount("/net/a\\040b", "nfs4"), mount("/net/a\\040b", "ext4"))
    assert found(mount("/net/a\\040b", "ext4"), mount("/net/a\\040b/agents", "9p"))
    assert not found(mount("/net/a", "nfs4"))
    assert found(mount("/net/\\134x\\011y", "cifs"), path="/net/\\x\ty/agents")
    assert found(mount("/net/café", "cifs", optional=""), path="/net/café")


@pytest.mark.parametrize(
    "table", ["", "\n\n", "nonsense", "1 2 3", " - ", "1 2 0:1 / / rw -", "1 2 0:1 / /\\9x\\12 rw - nfs s rw", ROOT]
)
def test_a_table_that_tells_nothing_names_nothing(table: str) -> None:
    assert shared_storage(HOME / ".agents", table, HOME) is None


@pytest.mark.parametrize(
    ("path", "program"),
    [
        ("/home/ada/Dropbox/agents", "Dropbox"),
        ("/home/ada/Dropbox", "Dropbox"),
        ("/home/ada/Dropbox (Personal)/.agents", "Dropbox"),
        ("/home/ada/work/dropbox/a/b", "Dropbox"),
        ("/home/ada/OneDrive/.agents", "OneDrive"),
        ("/home/ada/OneDrive - Contoso Ltd/.agents", "OneDrive"),
        ("/home/ada/Google Drive/.agents", "Google Drive"),
        ("/home/ada/GoogleDrive/My Drive/agents", "Google Drive"),
        ("/Volumes/Google Drive/agents", "Google Drive"),
        ("/home/ada/Library/Mobile Documents/com~apple~CloudDocs/agents", "iCloud"),
        ("/home/ada/Library/CloudStorage/OneDrive-Personal/agents", "a cloud drive"),
        ("/home/ada/Library/CloudStorage/GoogleDrive-ada@example.org/My Drive", "a cloud drive"),
        ("/home/ada/iCloud Drive (Archive)/agents", "iCloud"),
        ("/home/ada/iCloudDrive/agents", "iCloud"),
        ("/home/ada/Nextcloud/agents", "Nextcloud"),
        ("/home/ada/ownCloud/agents", "ownCloud"),
        ("/home/ada/pCloud Drive/agents", "pCloud"),
        ("/home/ada/MEGAsync/agents", "MEGA"),
        ("/mnt/data/Syncthing/agents", "Syncthing"),
        ("/mnt/c/Users/ada/OneDrive/agents", "OneDrive"),
    ],
)
def test_the_folder_of_a_program_that_synchronises_is_named(path: str, program: str) -> None:
    found = shared_storage(Path(path), ROOT, HOME)
    assert found is not None
    assert found.startswith(f"is in a folder of {program} (/")


@pytest.mark.parametrize(
    "path",
    [
        *("/home/ada/.agents", "/home/ada/code/dropbox-clone/agents", "/home/ada/onedrive-sdk", "/home/ada/Dropbox2/a"),
        *("/home/ada/my dropbox notes/a", "/home/ada/Documents/agents", "/srv/agents", "/home/ada/google/drive/agents"),
        *("/home/ada/iclouds/a", "/home/ada/drive/a", "/home/ada/sync/a", "/home/ada/cloud/a", "/home/ada/box/a", "/"),
        *("/home/ada/Mobile/Documents/a", "/home/ada/next cloud/a", "/home/ada/not-Nextcloud", "/var/lib/agents"),
    ],
)
def test_other_folders_are_not_named(path: str) -> None:
    assert shared_storage(Path(path), ROOT, HOME) is None


def test_the_name_of_the_home_directory_does_not_count_and_links_are_followed(tmp_path: Path) -> None:
    home = Path(os.path.realpath(tmp_path)) / "nextcloud"
    (home / "Dropbox" / "agents").mkdir(parents=True)
    (home / ".agents").symlink_to(home / "Dropbox" / "agents")
    (home / "plain").mkdir()
    (home / "Dropbox" / "out").symlink_to(home / "plain")
    assert "Dropbox" in (shared_storage(home / ".agents", ROOT, home) or "")
    assert shared_storage(home / "plain", ROOT, home) is None
    assert shared_storage(home / "Dropbox" / "out", ROOT, home) is None
    assert "Dropbox" in (shared_storage(home / "Dropbox" / "not yet there", ROOT, home) or "")


@pytest.mark.parametrize("kind", ["nfs4", "ext4"])
def test_the_doctor_names_it_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"{ROOT}\n{mount(os.path.realpath(tmp_path), kind)}\n")
    monkeypatch.setattr(module, "MOUNTS", table)
    shown = CliRunner().invoke(cli, ["--workspace", str(tmp_path / "w"), "doctor", "--json"]).stdout
    assert ("is on a network file system (nfs4" in shown) is (kind == "nfs4")
    assert ("troubleshooting.md" in shown) is (kind == "nfs4")
