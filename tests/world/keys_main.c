// Makes System V objects of a key that the program on another node uses as well, keeps them for a while, and removes
// them. Ends with 1 if somebody else has one of these.
#include <stdbool.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

enum { KEY = 0x6b657973, NEW = IPC_CREAT | IPC_EXCL | 0600 };

int main(void)
{
    int semaphores = semget(KEY, 1, NEW), messages = msgget(KEY, NEW), memory = shmget(KEY, 4096, NEW);
    bool own = semaphores >= 0 && messages >= 0 && memory >= 0;
    bool found = semget(KEY, 1, 0) == semaphores && msgget(KEY, 0) == messages && shmget(KEY, 4096, 0) == memory;
    (void)usleep(1000); // the other program begins meanwhile
    if (semaphores >= 0) {
        (void)semctl(semaphores, 0, IPC_RMID);
    }
    if (messages >= 0) {
        (void)msgctl(messages, IPC_RMID, NULL);
    }
    if (memory >= 0) {
        (void)shmctl(memory, IPC_RMID, NULL);
    }
    return own && found ? 0 : 1;
}
