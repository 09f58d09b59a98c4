# SPDX-License-Identifier: ISC

"""A file system that a user serves, by the kernel's own protocol (FUSE), and
that at some point no longer answers: whoever asks it then waits, and not even
SIGKILL ends that.

    with Fuse(directory, uid) as fuse:
        fuse.hang(OPEN)     # of the file "file" in there"""

import ctypes
import errno
import os
import struct
import threading

from case import Skip

LOOKUP, GETATTR, OPEN, READ, STATFS, INIT, OPENDIR = 1, 3, 14, 15, 17, 26, 27
FORGET, INTERRUPT = 2, 36       # have no answer
DEVICE = "/dev/fuse"
NOSUID_NODEV, FORCE_DETACH = 6, 3
ROOT, FILE = 1, 2
CONTENT = b"content\n"
libc = ctypes.CDLL(None, use_errno=True)


class Fuse:
    """As fusermount(1) would mount it for the user."""

    def __init__(self, where, uid, other=False):
        self.where, self.uid = os.fsencode(where), uid
        self.hangs = set()
        self.asked = threading.Semaphore(0)
        try:
            self.fd = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
        except OSError as why:
            raise Skip(f"{DEVICE}: {why.strerror}") from why
        options = (f"fd={self.fd},rootmode=40000,user_id={uid},"
                   f"group_id={uid}{',allow_other' if other else ''}")
        if libc.mount(b"hostile", self.where, b"fuse.hostile", NOSUID_NODEV,
                      options.encode()) == -1:
            os.close(self.fd)
            raise Skip(f"fuse: {os.strerror(ctypes.get_errno())}")
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def hang(self, *operations):
        self.hangs = set(operations)

    def waiting(self, count, seconds):
        """So many have asked what is not answered."""
        for _ in range(count):
            assert self.asked.acquire(timeout=seconds), "nobody has asked"

    def attributes(self, node):
        mode = 0o40755 if node == ROOT else 0o100600
        size = 0 if node == ROOT else len(CONTENT)
        return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1,
                           self.uid, self.uid, 0, 4096, 0)

    def answer(self, operation, node):
        """What to answer with; an integer is an error."""
        if operation == INIT:
            return struct.pack("<4I2H2I", 7, 31, 4096, 0, 16, 12, 4096,
                               1).ljust(64, b"\0")
        if operation == GETATTR:
            return bytes(16) + self.attributes(node)
        if operation == LOOKUP:
            return struct.pack("<Q", FILE) + bytes(32) + self.attributes(FILE)
        if operation in (OPEN, OPENDIR):
            return struct.pack("<Q2I", 1, 0, 0)
        if operation == READ:
            return CONTENT
        return bytes(80) if operation == STATFS else errno.ENOSYS

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 17)
            except OSError as why:
                if why.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return      # it was unmounted
            _, operation, unique, node = struct.unpack("<2I2Q", request[:24])
            if operation in self.hangs:
                self.asked.release()
            elif operation not in (FORGET, INTERRUPT):
                self.reply(unique, self.answer(operation, node))

    def reply(self, unique, what):
        data, error = (b"", what) if isinstance(what, int) else (what, 0)
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(data), -error,
                                          unique) + data)
        except OSError:
            pass    # whoever asked has gone

    def end(self):
        """All who wait hear of an error: it is unmounted by force."""
        libc.umount2(self.where, FORCE_DETACH)
        self.thread.join(5)
        os.close(self.fd)
