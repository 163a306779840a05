"""A virtual machine whose power can be cut, on a disk that forgets (disk.py)."""
import contextlib
import os
import pathlib
import random
import subprocess
import threading

import vm
from disk import SECTOR, Disk, Server
from witness import Listener

DISK_MIB = 128
# In load order, before the modules in vm.py.
MODULES = [*(f"drivers/virtio/{name}.ko" for name in ("virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci")),
           "drivers/block/virtio_blk.ko", "net/core/failover.ko", "drivers/net/net_failover.ko", "drivers/net/virtio_net.ko"]
os.environ["PATH"] += ":/usr/sbin:/sbin"  # mke2fs, e2fsck, debugfs
HOST = "10.0.2.2"  # the host, as a guest sees it
API, AGENTS = 7117, 7118  # the coordinator's ports in its guest


def stage(folder):
    """Builds the guest in a folder and returns (kernel, initramfs)."""
    kernel = vm.kernel()
    vm.MODULES[:0] = [one for one in MODULES if one not in vm.MODULES]
    image, root = folder / "power.cpio", folder / "root"
    pod = folder / "pod"
    subprocess.run(["cc", "-static", "-O1", "-o", pod, vm.HERE / "pod.c"], check=True)
    nosync = folder / "nosync.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", nosync, vm.HERE / "nosync.c"], check=True)
    vm.stage(image, "power", root, more=[pod, nosync])
    return kernel, image


def ext4(path, files=None):
    """Makes a disk, with what is in the folder `files`."""
    with open(path, "wb") as file:
        file.truncate(DISK_MIB << 20)
    subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0", *(["-d", files] if files else []), path],
                   check=True)


class Machine:
    """`role` is "head" (coordinator and agent) or "node" (agent only); the node is named after the machine. Its disk has what is in the folder `files`."""

    def __init__(self, name, role, folder, guest, witness, seed, files=None, **settings):
        self.name, self.role, self.folder = name, role, pathlib.Path(folder)
        self.kernel, self.image = guest
        self.settings = settings
        ext4(self.folder / f"{name}.img", files)
        self.disk = Disk(self.folder / f"{name}.img", random.Random(f"{seed} {name}"))
        self.server = Server(self.disk, self.folder / f"{name}.nbd")
        self.listener = Listener(witness, name, self.disk.is_cut)
        self.forwards = {}  # port in the guest: port on the host
        self.devices = []   # more options for QEMU
        self.guest = self.console = None
        self.faults = []    # console lines that indicate a fault: a daemon ended, a spool is damaged
        self.boots = 0

    def power_on(self):
        self.disk.power_on()
        self.boots += 1
        words = {"role": self.role, "name": self.name, **self.settings}
        forwards = "".join(f",hostfwd=tcp:127.0.0.1:{host}-:{port}" for port, host in self.forwards.items())
        self.guest = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "768", "-nodefaults", "-display", "none", "-serial", "stdio",
             "-no-reboot", "-kernel", self.kernel, "-initrd", self.image,
             "-append", "console=ttyS0 quiet panic=-1 " + " ".join(f"{key}={value}" for key, value in words.items()),
             "-blockdev", f"driver=nbd,node-name=disk,server.type=unix,server.path={self.server.path}", "-device",
             f"virtio-blk-pci,drive=disk,num-queues=1,physical_block_size={SECTOR}", "-netdev", "user,id=net" + forwards, "-device", "virtio-net-pci,netdev=net,romfile=",
             *self.devices],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.console = threading.Thread(target=self.read_console, args=(self.guest.stdout,), daemon=True)
        self.console.start()

    def read_console(self, pipe):
        with open(self.folder / f"{self.name}.console", "ab") as log, contextlib.suppress(ValueError):
            log.write(b"---- boot %d\n" % self.boots)
            for line in pipe:
                log.write(line)
                log.flush()
                if (line.startswith((b"ENDED", b"the disk cannot be mounted")) or b"damaged" in line) and not self.disk.is_cut.is_set():
                    self.faults.append(f"{self.name}, boot {self.boots}: {line.decode().strip()}")

    def stopped(self):
        """Whether QEMU has exited without a power cut."""
        return self.guest is not None and self.guest.poll() is not None and not self.disk.is_cut.is_set()

    def log(self, lines=40):
        path = self.folder / f"{self.name}.console"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def cut(self):
        """Cuts the power, unless the disk already has (`cut_at`), and kills QEMU."""
        self.disk.cut()
        self.guest.kill()
        self.guest.wait()
        self.server.idle.wait()
        self.console.join()
        self.guest.stdout.close()
        self.listener.power_is_off()
        self.guest = None

    def close(self):
        if self.guest:
            self.cut()
        self.server.close()
        self.listener.close()
