// OpenSHMEM: a put to the next processing element, and atomic additions to the first one's word.
#include <shmem.h>
#include <stdio.h>

static long from_left, sum;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), all = shmem_n_pes();
    shmem_long_p(&from_left, me + 1, (me + 1) % all);
    shmem_long_atomic_add(&sum, me + 1, 0);
    shmem_barrier_all();
    int wrong = from_left != (me + all - 1) % all + 1 || (me == 0 && sum != (long)all * (all + 1) / 2);
    if (me == 0) {
        printf("%d wrong\n", wrong);
    }
    shmem_finalize();
    return wrong;
}
