# SPDX-License-Identifier: BSD-2-Clause
"""Writes a cpio archive in the "newc" format that the kernel takes as an initramfs."""
import stat


class Archive:
    """An archive in the making; image.py fills it."""

    def __init__(self):
        self.data = bytearray()
        self.count = 0

    def folder(self, name):
        self._entry(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name, content, mode):
        self._entry(name, stat.S_IFREG | mode, content)

    def link(self, name, target):
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def finish(self):
        """Return the whole archive."""
        self._entry("TRAILER!!!", 0, b"")
        return bytes(self.data)

    def _entry(self, name, mode, content):
        self.count += 1
        path = name.encode() + b"\0"
        # inode, mode, uid, gid, links, mtime, size, device (2), rdev (2), length of name, check
        fields = (self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
        self.data += b"070701" + b"".join(b"%08x" % field for field in fields) + path
        self._pad()
        self.data += content
        self._pad()

    def _pad(self):
        self.data += bytes(-len(self.data) % 4)
