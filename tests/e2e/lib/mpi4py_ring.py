"""Passes a list around all ranks until the file FILE exists, with a reduction in each round. Rank 0 notes the rounds in FILE.rounds.

    python3 mpi4py_ring.py FILE
"""
import array
import pathlib
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
stop = pathlib.Path(sys.argv[1])
print(f"rank {rank} of {size} on {MPI.Get_processor_name()}", flush=True)
world.Barrier()
rounds, going = 0, True
while going:
    # Objects go pickled, buffers as they are.
    names = [rank]
    for _ in range(size - 1):
        names = [rank, *world.sendrecv(names, dest=(rank + 1) % size, source=(rank - 1) % size)]
    expected = [(rank - i) % size for i in range(size)]
    numbers, total = array.array("d", [rank, rounds, rank * rank]), array.array("d", [0, 0, 0])
    world.Allreduce(numbers, total, op=MPI.SUM)
    if names != expected or list(total) != [size * (size - 1) / 2, size * rounds, sum(i * i for i in range(size))]:
        print(f"rank {rank}, round {rounds}: {names} {list(total)}", flush=True)
        world.Abort(3)
    if rank == 0:
        print(f"round {rounds}", flush=True)
        stop.with_suffix(".rounds").write_text(str(rounds))
        time.sleep(0.02)
    rounds += 1
    going = not world.bcast(stop.exists() if rank == 0 else None, root=0)
