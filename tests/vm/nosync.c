/* Preloaded, it makes muster never sync, which tests/vm/power.py must detect. */
#include <sys/types.h>

int fsync(int fd) { return fd < 0 ? -1 : 0; }
int fdatasync(int fd) { return fd < 0 ? -1 : 0; }
int msync(void* address, size_t length, int flags) { return address && length && flags ? 0 : 0; }
int sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags) { return fd < 0 && offset && bytes && flags ? -1 : 0; }
