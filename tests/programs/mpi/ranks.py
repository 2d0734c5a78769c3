"""mpi4py with numpy: an all-reduce over all ranks, and a ping-pong between the first two."""
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
own, total = numpy.full(1000, rank, dtype="d"), numpy.empty(1000, dtype="d")
world.Allreduce(own, total)
wrong = world.allreduce(int((total != ranks * (ranks - 1) / 2).sum()))
began = MPI.Wtime()
for turn in range(100):
    if rank == 0:
        world.Send(own[:1], 1)
        world.Recv(own[:1], 1)
    elif rank == 1:
        world.Recv(total[:1], 0)
        world.Send(total[:1], 0)
if rank == 0:
    print(f"    8 B {(MPI.Wtime() - began) / 200 * 1e6:8.3f} us")
    print(wrong, "wrong")
