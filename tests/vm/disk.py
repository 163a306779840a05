"""A disk that forgets: an NBD server for QEMU, with the write cache of a real drive.

Writes are volatile until a flush. A power cut keeps, loses or tears (at a sector boundary) each write independently, since a drive may write its cache
in any order. No request is answered after the cut, so everything the guest has said rests on flushes answered before it.

From `record()` to the next cut, writes, flushes and the caller's marks are recorded in order; replay.py rebuilds the disk as of each flush.
"""
import contextlib
import os
import socket
import struct
import threading

SECTOR = 4096  # ext4 does not survive smaller tears: its superblock is written in place, with a checksum
OPTION_MAGIC, REPLY_MAGIC = 0x49484156454F5054, 0x3E889045565A9
REQUEST_MAGIC, SIMPLE_MAGIC = 0x25609513, 0x67446698
FIXED_NEWSTYLE = 1
EXPORT_NAME, ABORT, INFO, GO = 1, 2, 6, 7
ACK, INFO_REPLY, UNSUPPORTED = 1, 3, (1 << 31) + 1
HAS_FLAGS, SEND_FLUSH = 1, 4
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
INVALID = 22


def kept_of(write, rng):
    """What survives of an unflushed write after a power cut: all, nothing, its beginning or its end."""
    offset, data = write
    fate = rng.randrange(4)
    if fate < 2 or len(data) <= SECTOR:
        return [write] if fate % 2 else []
    at = rng.randrange(SECTOR, len(data), SECTOR)
    return [(offset, data[:at])] if fate == 2 else [(offset + at, data[at:])]


class Disk:
    """A disk's contents and its write cache. All methods may be called from any thread."""

    def __init__(self, image, rng):
        self.rng = rng
        with open(image, "rb") as file:
            self.safe = bytearray(file.read())  # survives a power cut
        self.seen = bytearray(self.safe)        # what the guest reads
        self.cache = []                         # (offset, data) since the last flush
        self.lock = threading.RLock()
        self.cut_at = None                      # if set: writes and flushes left until the power is cut
        self.is_cut = threading.Event()
        self.base = self.log = None
        self.recorded = None
        self.before_flush = None                # called with the lock held
        self.writes = self.flushes = self.lost = 0

    def write(self, offset, data):
        self.writes += 1
        self.seen[offset:offset + len(data)] = data
        self.cache.append((offset, data))
        if self.log is not None:
            self.log.append((offset, data))

    def flush(self):
        if self.before_flush:
            self.before_flush()
        self.flushes += 1
        self.put(self.safe, self.cache)
        self.cache = []
        if self.log is not None:
            self.log.append(None)

    @staticmethod
    def put(bytes_, writes):
        for offset, data in writes:
            bytes_[offset:offset + len(data)] = data

    def cut(self):
        """Cuts the power; what survives of the cache is random."""
        with self.lock:
            if self.is_cut.is_set():
                return
            for write in self.cache:
                kept = kept_of(write, self.rng)
                self.lost += kept != [write]
                self.put(self.safe, kept)
            self.cache = []
            self.seen = bytearray(self.safe)
            self.recorded = (self.base, self.log) if self.log else None
            self.base = self.log = None
            self.is_cut.set()

    def power_on(self):
        with self.lock:
            self.is_cut.clear()
            self.cut_at = None

    def record(self):
        """Records until the next cut, which stores (the disk as it is now, the log) in `recorded`."""
        with self.lock:
            self.base, self.log = bytearray(self.safe), []

    def mark(self, what):
        """Adds to the recording what an outside observer has learned by now."""
        with self.lock:
            if self.log is not None:
                self.log.append(what)

    def changes(self, request):
        """Performs a request that changes the disk. Returns False if the power is cut."""
        with self.lock:
            if self.cut_at is not None:
                self.cut_at -= 1
                if self.cut_at < 0:
                    self.cut()
            if self.is_cut.is_set():
                return False
            request()
            return True


class Server(threading.Thread):
    """Serves a disk on a Unix socket, to one QEMU at a time."""

    def __init__(self, disk, path):
        super().__init__(daemon=True)
        self.disk, self.path = disk, str(path)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(1)
        self.idle = threading.Event()  # no QEMU is connected, and everything sent by the last one has been read
        self.idle.set()
        self.start()

    def run(self):
        while True:
            try:
                link, _ = self.socket.accept()
            except OSError:
                return
            self.idle.clear()
            with link, contextlib.suppress(OSError, EOFError):
                if self.agree(link):
                    self.serve(link)
            self.idle.set()

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        os.unlink(self.path)

    @staticmethod
    def take(link, count):
        whole = bytearray()
        while len(whole) < count:
            part = link.recv(count - len(whole))
            if not part:
                raise EOFError
            whole += part
        return bytes(whole)

    def agree(self, link):
        """Does the fixed newstyle negotiation, with a single export under any name."""
        size, flags = len(self.disk.seen), HAS_FLAGS | SEND_FLUSH
        link.sendall(b"NBDMAGIC" + struct.pack(">QH", OPTION_MAGIC, FIXED_NEWSTYLE))
        self.take(link, 4)
        while True:
            magic, option, length = struct.unpack(">QII", self.take(link, 16))
            if magic != OPTION_MAGIC:
                return False
            self.take(link, length)

            def reply(kind, payload=b"", option=option):
                link.sendall(struct.pack(">QIII", REPLY_MAGIC, option, kind, len(payload)) + payload)
            if option == EXPORT_NAME:
                link.sendall(struct.pack(">QH124x", size, flags))
                return True
            if option in (INFO, GO):
                reply(INFO_REPLY, struct.pack(">HQH", 0, size, flags))
                reply(ACK)
                if option == GO:
                    return True
            elif option == ABORT:
                reply(ACK)
                return False
            else:
                reply(UNSUPPORTED)

    @staticmethod
    def be_silent(link):
        """Waits for QEMU to exit without replying, since even an error would be an answer."""
        while link.recv(1 << 16):
            pass

    def serve(self, link):
        disk = self.disk
        while True:
            magic, _, kind, handle, offset, length = struct.unpack(">IHHQQI", self.take(link, 28))
            if magic != REQUEST_MAGIC or kind == DISCONNECT:
                return
            error, answer = 0, b""
            if kind == READ:
                with disk.lock:
                    answer = bytes(disk.seen[offset:offset + length])
            elif kind == WRITE:
                data = self.take(link, length)
                if not disk.changes(lambda: disk.write(offset, data)):  # noqa: B023
                    return self.be_silent(link)
            elif kind == FLUSH:
                if not disk.changes(disk.flush):
                    return self.be_silent(link)
            else:
                error = INVALID
            link.sendall(struct.pack(">IIQ", SIMPLE_MAGIC, error, handle) + answer)
