/* Preloaded by `--sync-ms N`: makes each sync of a file take N milliseconds longer, as on a disk
 * that is slow to flush. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void) {
  const char* text = getenv("MUSTER_BENCH_SYNC_MS");
  const long ms = text == NULL ? 0 : strtol(text, NULL, 10);
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

int fdatasync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  wait_for_disk();
  return real(fd);
}

int fsync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  wait_for_disk();
  return real(fd);
}
