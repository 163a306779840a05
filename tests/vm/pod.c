/* A pod of tests/vm/power.py. It reports its start and its end to the witness, whose address and port are in /etc/witness, and waits for each answer.
   The first answer gives the run time in milliseconds and the exit code. Linked statically: the guest starts hundreds, on an emulated processor. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char* variable(const char* name) {
  const char* value = getenv(name);
  return value && *value ? value : "-";
}

int main(void) {
  char address[64];
  unsigned port;
  FILE* file = fopen("/etc/witness", "r");
  if (!file || fscanf(file, "%63s %u", address, &port) != 2) return 99;
  struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, address, &peer.sin_addr);
  const int link = socket(AF_INET, SOCK_STREAM, 0);
  if (link < 0 || connect(link, (struct sockaddr*)&peer, sizeof peer)) return 98;
  dprintf(link, "start %s %s %s\n", variable("MUSTER_JOB_NAME"), variable("JOB_COMPLETION_INDEX"), variable("MUSTER_ATTEMPT"));
  char answer[64] = {0};
  long ms, code;
  if (read(link, answer, sizeof answer - 1) <= 0 || sscanf(answer, "%ld %ld", &ms, &code) != 2) return 97;
  const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&pause, NULL);
  dprintf(link, "end %ld\n", code);
  if (read(link, answer, sizeof answer - 1) <= 0) return 96;
  return (int)code;
}
