// A process that writes lines to a pseudo-terminal each millisecond, and its parent that waits for it with poll(2) and
// epoll(7) in turn. The parent goes on at the same time after each write, and reads all of it at once, although the kernel
// hands the bytes on, each line and its end, when a worker of its own has time. 1 to 4: something else failed; 5: another time; 6: packets.
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200, PERIOD_NS = 1000000, LINES = 40, SEEN_BYTES = 3 * LINES }; // each with "\r\n" at its end

static struct timespec time_of(struct timespec begin, int round)
{
    long ns = begin.tv_nsec + (round + 1L) * PERIOD_NS;
    return (struct timespec){begin.tv_sec + ns / 1000000000, ns % 1000000000};
}

static bool lines_write(int slave)
{
    char lines[2 * LINES];
    for (int i = 0; i < LINES; i++) {
        memcpy(lines + 2 * i, "x\n", 2);
    }
    return write(slave, lines, sizeof lines) == sizeof lines;
}

static int write_each_period(int slave, struct timespec begin)
{
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec time = time_of(begin, round);
        if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0 || !lines_write(slave)) {
            return 1;
        }
    }
    return 0;
}

// Waits for the next lines, and reads them. The time since it was written, in ns; less than 0: failed.
static long delay_of(int master, int set, struct timespec begin, int round)
{
    struct pollfd poll_one = {.fd = master, .events = POLLIN};
    struct epoll_event event;
    struct timespec now;
    char seen[2 * SEEN_BYTES];
    int ready = round % 2 == 0 ? poll(&poll_one, 1, -1) : epoll_wait(set, &event, 1, -1);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (ready != 1 || read(master, seen, sizeof seen) != SEEN_BYTES) {
        return -1;
    }
    const struct timespec time = time_of(begin, round);
    return (now.tv_sec - time.tv_sec) * 1000000000L + now.tv_nsec - time.tv_nsec;
}

// In packet mode (ioctl_tty(2)) a read returns a byte about an event alone, or a byte of 0 and data.
static bool packets_stay_apart(int master, int slave)
{
    int on = 1, off = 0;
    char seen[8 * LINES];
    bool apart = ioctl(master, TIOCPKT, &on) == 0 && tcflush(slave, TCIFLUSH) == 0 && lines_write(slave);
    apart = apart && read(master, seen, sizeof seen) == 1 && (seen[0] & TIOCPKT_FLUSHREAD) != 0;
    for (ssize_t bytes = 0, got; apart && bytes < SEEN_BYTES; bytes += got - 1) {
        got = read(master, seen, sizeof seen);
        apart = got > 1 && seen[0] == 0 && memchr(seen + 1, 0, (size_t)got - 1) == NULL;
    }
    return ioctl(master, TIOCPKT, &off) == 0 && apart;
}

int main(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY), set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    struct timespec begin;
    struct termios raw;
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        return 2;
    }
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (slave < 0 || tcgetattr(slave, &raw) != 0 || epoll_ctl(set, EPOLL_CTL_ADD, master, &event) != 0) {
        return 3;
    }
    cfmakeraw(&raw);
    raw.c_oflag |= OPOST | ONLCR;
    (void)tcsetattr(slave, TCSANOW, &raw);
    if (!packets_stay_apart(master, slave)) {
        return 6;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    pid_t child = fork();
    if (child == 0) {
        _exit(write_each_period(slave, begin));
    }
    long first[2] = {0, 0};
    for (int round = 0; round < ROUNDS; round++) {
        long delay = delay_of(master, set, begin, round);
        if (delay < 0) {
            return 4;
        }
        first[round % 2] = round < 2 ? delay : first[round % 2];
        if (delay != first[round % 2]) {
            printf("round %d: %ld ns after the write, and %ld ns earlier\n", round, delay, first[round % 2]);
            return 5;
        }
    }
    int status;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
