/* A pod of tests/vm/power.py. It tells the witness that it starts, and that it ends, and goes on only once the witness has written that down. /etc/witness
   has the witness's address and port. It answers the start with milliseconds to run and an exit code. Linked statically, since the guest starts hundreds on an emulated processor. */
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
  dprintf(link, "start %s %s %s %s\n", variable("MUSTER_JOB_NAME"), variable("JOB_COMPLETION_INDEX"), variable("MUSTER_ATTEMPT"), variable("MUSTER_NODE_NAME"));
  char answer[64] = {0};
  long ms, code;
  if (read(link, answer, sizeof answer - 1) <= 0 || sscanf(answer, "%ld %ld", &ms, &code) != 2) return 97;
  const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&pause, NULL);
  dprintf(link, "end %ld\n", code);
  if (read(link, answer, sizeof answer - 1) <= 0) return 96;
  return (int)code;
}
