// Prints random numbers of the kernel, however a program asks for them; then the child of a fork, and the program that
// replaces it, print theirs.
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void number_print(const char *way, const void *memory)
{
    uint64_t number;
    memcpy(&number, memory, sizeof number);
    printf("%s %016llx\n", way, (unsigned long long)number);
}

static long instruction(long number, void *memory, long bytes, long flags)
{
    long result = number;
    __asm__ volatile("syscall" : "+a"(result) : "D"(memory), "S"(bytes), "d"(flags) : "rcx", "r11", "memory");
    return result;
}

static void calls_print(void)
{
    uint64_t number = 0;
    (void)getrandom(&number, sizeof number, GRND_NONBLOCK);
    number_print("getrandom", &number);
    (void)syscall(SYS_getrandom, &number, sizeof number, 0);
    number_print("syscall", &number);
    (void)instruction(SYS_getrandom, &number, sizeof number, 0);
    number_print("instruction", &number);
    (void)getentropy(&number, sizeof number);
    number_print("getentropy", &number);
    arc4random_buf(&number, sizeof number);
    number_print("arc4random", &number);
    number_print("auxiliary", (const void *)getauxval(AT_RANDOM)); // NOLINT(performance-no-int-to-ptr)
}

static void devices_print(void)
{
    uint64_t number = 0;
    uint32_t halves[2] = {0};
    const struct iovec pieces[] = {{&halves[0], sizeof halves[0]}, {&halves[1], sizeof halves[1]}};
    int fd = open("/dev/urandom", O_RDONLY);
    (void)(read(fd, &number, sizeof number) == sizeof number);
    number_print("read", &number);
    (void)(readv(fd, pieces, 2) == sizeof halves);
    number_print("readv", halves);
    (void)close(fd);
    FILE *file = fopen("/dev/random", "r");
    (void)(file != NULL ? fread(&number, sizeof number, 1, file) : 0);
    number_print("fread", &number);
    (void)(file != NULL ? fclose(file) : 0);
}

static void uuids_print(void)
{
    char uuid[64] = "";
    for (int i = 0; i < 2; i++) {
        int fd = open("/proc/sys/kernel/random/uuid", O_RDONLY);
        (void)read(fd, uuid, sizeof uuid - 1);
        printf("uuid %s", uuid);
        (void)close(fd);
    }
}

static void ports_print(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t bytes = sizeof at;
    int shares = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shares, sizeof shares);
    (void)bind(fd, (const struct sockaddr *)&at, sizeof at);
    (void)listen(fd, 1);
    (void)getsockname(fd, (struct sockaddr *)&at, &bytes);
    printf("port %u\n", ntohs(at.sin_port));
    int other = socket(AF_INET, SOCK_STREAM, 0);
    (void)connect(other, (const struct sockaddr *)&at, sizeof at);
    (void)getsockname(other, (struct sockaddr *)&at, &bytes);
    printf("port %u\n", ntohs(at.sin_port));
    (void)getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shares, &bytes);
    printf("shares %d\n", shares);
    (void)close(fd);
    (void)close(other);
}

// So many that some of them draw the same port.
enum { SOCKETS = 700, PORTS = 65536 };

static void shared_ports_print(void)
{
    static unsigned char taken[PORTS];
    unsigned twice = 0, outside = 0;
    for (unsigned i = 0; i < SOCKETS; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET};
        socklen_t bytes = sizeof at;
        int shares = 1, fd = socket(AF_INET, SOCK_STREAM, 0); // open until the program ends
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shares, sizeof shares);
        (void)bind(fd, (const struct sockaddr *)&at, sizeof at);
        (void)getsockname(fd, (struct sockaddr *)&at, &bytes);
        unsigned port = ntohs(at.sin_port);
        twice += taken[port]++;
        outside += port < 32768 || port > 60999;
    }
    printf("twice %u outside %u\n", twice, outside);
}

int main(int count, char **arguments)
{
    calls_print();
    if (count > 1) {
        return 0;
    }
    devices_print();
    uuids_print();
    ports_print();
    shared_ports_print();
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        calls_print();
        (void)fflush(stdout);
        (void)execl(arguments[0], arguments[0], "again", (char *)NULL);
        _exit(1);
    }
    return waitpid(child, NULL, 0) != child;
}
