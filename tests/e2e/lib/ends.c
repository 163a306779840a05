// An MPI program for tests/e2e/mpi.py whose ranks end in various ways.
//
//   ends exit RANK CODE    RANK exits with CODE without MPI_Finalize; the others wait for it
//   ends abort RANK CODE   RANK calls MPI_Abort
//   ends save DIR SECONDS  ranks wait for SIGTERM or SIGUSR1; RANK then takes SECONDS to write DIR/RANK, and
//                          calls MPI_Finalize
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t ending = 0;

static void end(int number) {
  (void)number;
  ending = 1;
}

static void save(const char* folder, double seconds, int rank) {
  char path[4096];
  while (!ending) usleep(10000);
  usleep((useconds_t)(seconds * 1e6));
  snprintf(path, sizeof path, "%s/%d", folder, rank);
  FILE* file = fopen(path, "w");
  if (file == NULL || fputs("saved\n", file) < 0 || fclose(file) != 0) perror(path);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  signal(SIGTERM, end);
  signal(SIGUSR1, end);
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d started\n", rank);
  fflush(stdout);
  if (strcmp(argv[1], "save") == 0) {
    save(argv[2], atof(argv[3]), rank);
  } else if (rank == atoi(argv[2])) {
    if (strcmp(argv[1], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, atoi(argv[3]));
    _exit(atoi(argv[3]));
  } else {
    for (int came = 0; !came && !ending; usleep(2000))
      MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &came, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  printf("rank %d finalized\n", rank);
  return 0;
}
