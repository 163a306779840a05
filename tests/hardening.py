"""The executables of a release build are hardened: position-independent, full RELRO, no executable stack, stack protector, FORTIFY, CET.

Reads the ELF files directly (System V ABI, chapters 4 and 5; Intel CET's ENDBR64), so it needs no other programs.
"""
import os
import pathlib
import struct
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
MUSTER = pathlib.Path(os.environ.get("MUSTER") or ROOT / "build" / "release" / "muster")

ET_DYN = 3
EM_X86_64 = 62
PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 2, 0x6474E551, 0x6474E552
SHT_SYMTAB = 2
PF_X = 1
DT_NULL, DT_STRTAB, DT_STRSZ, DT_FLAGS_1 = 0, 5, 10, 0x6FFFFFFB
DF_1_NOW, DF_1_PIE = 1, 0x08000000
ENDBR64 = b"\xf3\x0f\x1e\xfa"


class Elf:
    """A 64-bit little-endian executable."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        assert self.bytes[:6] == b"\x7fELF\x02\x01", f"{path} is no 64-bit little-endian ELF file"
        self.type, self.machine = struct.unpack_from("<HH", self.bytes, 16)
        offset, = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        self.segments = []  # type, flags, offset, address, size
        for i in range(count):
            kind, flags, at, address, _, length = struct.unpack_from("<IIQQQQ", self.bytes, offset + i * size)
            self.segments.append((kind, flags, at, address, length))
        self.dynamic = {}
        for _, _, at, _, length in self.of(PT_DYNAMIC):
            for i in range(at, at + length, 16):
                tag, value = struct.unpack_from("<QQ", self.bytes, i)
                if tag == DT_NULL:
                    break
                self.dynamic[tag] = value

    def of(self, kind):
        return [segment for segment in self.segments if segment[0] == kind]

    def at(self, address):
        """The file offset of a loaded address."""
        return next(at + address - base for kind, _, at, base, size in self.segments if kind == 1 and base <= address < base + size)

    def imports(self):
        """The names in the dynamic string table, which include all functions imported from libraries."""
        start = self.at(self.dynamic[DT_STRTAB])
        return set(self.bytes[start:start + self.dynamic[DT_STRSZ]].decode(errors="replace").split("\0"))

    def entry_of(self, name):
        """The first bytes of one of our functions, found by the symbol table."""
        offset, = struct.unpack_from("<Q", self.bytes, 40)
        size, count = struct.unpack_from("<HH", self.bytes, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, offset + i * size) for i in range(count)]
        for _, kind, _, _, at, length, link, _, _, _ in sections:
            if kind != SHT_SYMTAB:
                continue
            strings = sections[link][4]
            wanted = name.encode() + b"\0"
            for i in range(at, at + length, 24):
                index, _, _, _, address, _ = struct.unpack_from("<IBBHQQ", self.bytes, i)
                if self.bytes.startswith(wanted, strings + index):
                    return self.bytes[self.at(address):][:4]
        raise AssertionError(f"there is no symbol {name}")


class Hardening(unittest.TestCase):
    def test_p10_executables_are_hardened(self):
        for name in ("muster", "muster-keeper"):
            with self.subTest(name):
                elf = Elf(MUSTER.parent / name)
                self.assertEqual(elf.type, ET_DYN, "not position independent")
                self.assertTrue(elf.dynamic.get(DT_FLAGS_1, 0) & DF_1_PIE, "a library, not an executable")
                self.assertTrue(elf.of(PT_GNU_RELRO), "no RELRO")
                self.assertTrue(elf.dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW, "RELRO is partial: functions are bound lazily")
                self.assertTrue(elf.of(PT_GNU_STACK) and not elf.of(PT_GNU_STACK)[0][1] & PF_X, "the stack is executable")
                imports = elf.imports()
                self.assertIn("__stack_chk_fail", imports, "no stack protector")
                self.assertTrue([symbol for symbol in imports if symbol.endswith("_chk") and symbol != "__stack_chk_fail"], "no FORTIFY")
                if elf.machine == EM_X86_64:
                    # The property note of the whole file is no help: Debian 12's C runtime lacks it, so the linker drops it.
                    self.assertEqual(elf.entry_of("main"), ENDBR64, "no CET")


if __name__ == "__main__":
    sys.argv[1:] = sys.argv[1:] or ["-q"]
    unittest.main()
