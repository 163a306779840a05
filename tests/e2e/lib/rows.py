"""The rows of a data-dir, read and written without muster, through RocksDB's own library."""
import ctypes
import ctypes.util
import unittest

MADE = ("rocksdb_options_create", "rocksdb_open", "rocksdb_writeoptions_create", "rocksdb_readoptions_create", "rocksdb_get",
        "rocksdb_create_iterator", "rocksdb_iter_key")


class Rows:
    """Keys and values are bytes. No other process may have the database open."""

    def __init__(self, data_dir):
        name = ctypes.util.find_library("rocksdb")
        if not name:
            raise unittest.SkipTest("no librocksdb to write foreign rows with")
        self.rocks = ctypes.CDLL(name)
        for function in MADE:
            getattr(self.rocks, function).restype = ctypes.c_void_p
        self.rocks.rocksdb_iter_valid.restype = ctypes.c_ubyte
        self.error = ctypes.c_char_p()
        options = ctypes.c_void_p(self.rocks.rocksdb_options_create())
        self.db = ctypes.c_void_p(self.rocks.rocksdb_open(options, str(data_dir / "db").encode(), ctypes.byref(self.error)))
        if self.error.value:
            raise AssertionError(self.error.value)
        self.reading = ctypes.c_void_p(self.rocks.rocksdb_readoptions_create())
        self.writing = ctypes.c_void_p(self.rocks.rocksdb_writeoptions_create())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.rocks.rocksdb_close(self.db)

    def get(self, key):
        size = ctypes.c_size_t()
        found = self.rocks.rocksdb_get(self.db, self.reading, key, ctypes.c_size_t(len(key)), ctypes.byref(size), ctypes.byref(self.error))
        return ctypes.string_at(found, size.value) if found else None

    def put(self, key, value):
        """Returns the old value."""
        was = self.get(key)
        self.rocks.rocksdb_put(self.db, self.writing, key, ctypes.c_size_t(len(key)), value, ctypes.c_size_t(len(value)),
                               ctypes.byref(self.error))
        if self.error.value:
            raise AssertionError(self.error.value)
        return was

    def keys(self, prefix):
        rows = ctypes.c_void_p(self.rocks.rocksdb_create_iterator(self.db, self.reading))
        self.rocks.rocksdb_iter_seek(rows, prefix, ctypes.c_size_t(len(prefix)))
        found, size = [], ctypes.c_size_t()
        while self.rocks.rocksdb_iter_valid(rows):
            key = ctypes.string_at(self.rocks.rocksdb_iter_key(rows, ctypes.byref(size)), size.value)
            if not key.startswith(prefix):
                break
            found.append(key)
            self.rocks.rocksdb_iter_next(rows)
        self.rocks.rocksdb_iter_destroy(rows)
        return found
