// An MPI program for tests/e2e/mpi.py and tests/bench/mpi.py.
//
//   ring            an allreduce; every rank prints where it is
//   ring FILE       then a token goes around until FILE exists, and the last rank prints each round
//
// Ranks sleep while they wait, since tests run many of them on a few cores.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int receive(int from) {
  int token = 0, done = 0;
  MPI_Request request;
  MPI_Irecv(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, &request);
  for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
       MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    usleep(2000);
  return token;
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0, sum = 0;
  char host[256] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  gethostname(host, sizeof host - 1);
  const char* pod = getenv("MUSTER_POD_NAME");
  printf("rank %d of %d sum %d host %s pod %s pid %d\n", rank, ranks, sum, host,
         pod == NULL ? "-" : pod, (int)getpid());
  fflush(stdout);
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (int round = 0, token = 0; argc > 1 && token >= 0; ++round) {
    if (rank == 0) {
      usleep(20000);
      token = access(argv[1], F_OK) == 0 ? -1 : round;
    } else {
      token = receive(previous);
    }
    if (rank == ranks - 1 && token >= 0) {
      printf("round %d\n", token);
      fflush(stdout);
    }
    MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    if (rank == 0) receive(previous);
  }
  MPI_Finalize();
  return 0;
}
