/* Preloaded: each sync of a file takes SLOW_MS milliseconds longer, and does not end while the file HUNG exists; the wall clock is
 * CLOCK_AHEAD seconds ahead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void) {
  const char* text = getenv("SLOW_MS");
  const char* hung = getenv("HUNG");
  const long ms = text == NULL ? 0 : strtol(text, NULL, 10);
  const struct timespec slow = {ms / 1000, ms % 1000 * 1000000};
  const struct timespec moment = {0, 10 * 1000000};
  nanosleep(&slow, NULL);
  while (hung != NULL && access(hung, F_OK) == 0) nanosleep(&moment, NULL);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  int (*real)(clockid_t, struct timespec*) = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const char* ahead = getenv("CLOCK_AHEAD");
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME && ahead != NULL) time->tv_sec += strtol(ahead, NULL, 10);
  return result;
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
