// Threads of OpenMP, whose library makes system calls with instructions of its own.
#include <omp.h>
#include <stdio.h>

int main(void)
{
    long sum = 0;
    for (int i = 0; i < 20; i++) {
#pragma omp parallel for num_threads(4) reduction(+ : sum)
        for (int j = 0; j < 1000; j++) {
            sum += j;
        }
    }
#pragma omp parallel num_threads(4)
    {
#pragma omp barrier
#pragma omp critical
        sum++;
#pragma omp barrier
    }
    printf("%ld\n", sum);
    return 0;
}
