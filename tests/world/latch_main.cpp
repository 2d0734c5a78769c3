// Waits of C++20, which make system calls themselves.
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <latch>
#include <semaphore>
#include <thread>
#include <vector>

int main()
{
    std::atomic<int> value{0};
    std::latch latch(3);
    std::binary_semaphore semaphore{0};
    std::barrier barrier(3);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++) {
        threads.emplace_back([&] {
            value.wait(0);
            latch.arrive_and_wait();
            if (value.fetch_add(1) == 1) {
                semaphore.release();
            }
            for (int round = 0; round < 10; round++) {
                barrier.arrive_and_wait();
            }
        });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    value = 1;
    value.notify_all();
    latch.arrive_and_wait();
    semaphore.acquire();
    for (int round = 0; round < 10; round++) {
        barrier.arrive_and_wait();
    }
    for (auto &thread : threads) {
        thread.join();
    }
    std::printf("%d\n", value.load());
}
