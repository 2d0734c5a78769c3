// What a program sees of its node: names and addresses, processors, and memory and keys that processes share. Played on
// node0 of two nodes.
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timely.h"

enum { TRUE = 1, KEY = 0x74636173, PAGE_BYTES = 4096 };

// --- names and addresses --------------------------------------------------------------------------------------------

static long address_of(const char *name)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct sockaddr_in address = {0};
    if (getaddrinfo(name, NULL, &hints, &found) == 0) {
        memcpy(&address, found->ai_addr, sizeof address);
        freeaddrinfo(found);
    }
    return (long)ntohl(address.sin_addr.s_addr);
}

static long address_in(const struct hostent *entry)
{
    struct in_addr address = {0};
    if (entry != NULL) {
        memcpy(&address, entry->h_addr_list[0], sizeof address);
    }
    return (long)ntohl(address.s_addr);
}

// The address of node1 follows that of node0.
static long by_getaddrinfo(struct timely_scene *scene)
{
    (void)scene;
    return address_of("node1") - address_of("node0");
}

static long by_gethostbyname(struct timely_scene *scene)
{
    (void)scene;
    long first = address_in(gethostbyname("node0"));
    return address_in(gethostbyname("node1")) - first;
}

static long by_gethostbyname_r(struct timely_scene *scene)
{
    char memory[1024];
    struct hostent entry, *found = NULL;
    int error;
    (void)scene;
    (void)gethostbyname_r("node1", &entry, memory, sizeof memory, &found, &error);
    return address_in(found) - address_of("node0");
}

// FNV-1a of the node's name, as identity.c says.
static long by_gethostid(struct timely_scene *scene)
{
    uint32_t value = 2166136261u;
    (void)scene;
    for (const char *at = "node0"; *at != '\0'; at++) {
        value = (value ^ (unsigned char)*at) * 16777619u;
    }
    return gethostid() == (long)(int32_t)value;
}

static long by_gethostname(struct timely_scene *scene)
{
    char name[64] = "";
    (void)scene;
    return gethostname(name, sizeof name) == 0 && strcmp(name, "node0") == 0;
}

static long by_uname(struct timely_scene *scene)
{
    struct utsname about;
    (void)scene;
    return uname(&about) == 0 && strcmp(about.nodename, "node0") == 0;
}

// Every interface has the node's address.
static long by_getifaddrs(struct timely_scene *scene)
{
    struct ifaddrs *list = NULL;
    long own = address_of("node0"), others = 0;
    (void)scene;
    (void)getifaddrs(&list);
    for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
        struct sockaddr_in address;
        if (entry->ifa_addr != NULL && entry->ifa_addr->sa_family == AF_INET) {
            memcpy(&address, entry->ifa_addr, sizeof address);
            others += (long)ntohl(address.sin_addr.s_addr) != own;
        }
    }
    freeifaddrs(list);
    return list != NULL && others == 0;
}

static long by_ioctl(struct timely_scene *scene)
{
    struct ifreq request = {.ifr_name = "lo"};
    struct sockaddr_in address;
    (void)scene;
    int fd = socket(AF_INET, SOCK_DGRAM, 0), status = ioctl(fd, SIOCGIFADDR, &request);
    memcpy(&address, &request.ifr_addr, sizeof address);
    (void)close(fd);
    return status == 0 && (long)ntohl(address.sin_addr.s_addr) == address_of("node0");
}

// As many interfaces as there are; each has the node's address.
static long by_ioctl_of_list(struct timely_scene *scene)
{
    enum { ROOM = 64 };
    struct ifreq entries[ROOM];
    struct ifconf list = {.ifc_len = sizeof entries, .ifc_req = entries};
    long own = address_of("node0"), others = 0;
    (void)scene;
    int fd = socket(AF_INET, SOCK_DGRAM, 0), status = ioctl(fd, SIOCGIFCONF, &list);
    for (size_t i = 0; status == 0 && i < (size_t)list.ifc_len / sizeof *entries; i++) {
        struct sockaddr_in address;
        memcpy(&address, &entries[i].ifr_addr, sizeof address);
        others += (long)ntohl(address.sin_addr.s_addr) != own;
    }
    (void)close(fd);
    return status == 0 && list.ifc_len > 0 && others == 0;
}

// gethostname(2): ENAMETOOLONG if the name and its end do not fit. Nothing is written behind the room.
static long by_gethostname_of_room(struct timely_scene *scene)
{
    char name[] = "0123456789";
    (void)scene;
    errno = 0;
    bool refused = gethostname(name, strlen("node0")) == -1 && errno == ENAMETOOLONG;
    bool fits = name[strlen("node0")] == '5' && gethostname(name, strlen("node0") + 1) == 0;
    return refused && fits && strcmp(name, "node0") == 0 && name[strlen("node0") + 1] == '6';
}

// A connection comes from the node's address: accept, getpeername and the other end's getsockname say so.
static long by_connect(struct timely_scene *scene)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)}, seen[3] = {0};
    socklen_t bytes = sizeof at, rooms[] = {sizeof at, sizeof at, sizeof at};
    long own = address_of("node0"), others = 0;
    (void)scene;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    (void)bind(listener, (const struct sockaddr *)&at, sizeof at);
    (void)getsockname(listener, (struct sockaddr *)&at, &bytes);
    (void)listen(listener, 1);
    int status = connect(client, (const struct sockaddr *)&at, sizeof at);
    int server = accept(listener, (struct sockaddr *)&seen[0], &rooms[0]);
    (void)getpeername(server, (struct sockaddr *)&seen[1], &rooms[1]);
    (void)getsockname(client, (struct sockaddr *)&seen[2], &rooms[2]);
    for (unsigned i = 0; i < 3; i++) {
        others += (long)ntohl(seen[i].sin_addr.s_addr) != own;
    }
    (void)close(listener);
    (void)close(client);
    (void)close(server);
    return status == 0 && server >= 0 && others == 0;
}

// --- processors -----------------------------------------------------------------------------------------------------

static void first_of(cpu_set_t *one, const cpu_set_t *all)
{
    int processor = 0;
    while (!CPU_ISSET(processor, all)) {
        processor++;
    }
    CPU_ZERO(one);
    CPU_SET(processor, one);
}

static long by_sched_affinity(struct timely_scene *scene)
{
    cpu_set_t all, one, now;
    (void)sched_getaffinity(0, sizeof all, &all);
    first_of(&one, &all);
    int status = sched_setaffinity(scene->thread, sizeof one, &one);
    (void)sched_getaffinity(0, sizeof now, &now);
    (void)sched_setaffinity(0, sizeof all, &all);
    return status == 0 && CPU_EQUAL(&now, &one);
}

static long by_pthread_affinity(struct timely_scene *scene)
{
    cpu_set_t all, one, now;
    (void)scene;
    (void)pthread_getaffinity_np(pthread_self(), sizeof all, &all);
    first_of(&one, &all);
    int error = pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    (void)pthread_getaffinity_np(pthread_self(), sizeof now, &now);
    (void)pthread_setaffinity_np(pthread_self(), sizeof all, &all);
    return error == 0 && CPU_EQUAL(&now, &one);
}

// sched_setaffinity(2): processors that the thread cannot have are left out of the set.
static long by_affinity_of_all(struct timely_scene *scene)
{
    cpu_set_t all, more, now;
    (void)scene;
    (void)sched_getaffinity(0, sizeof all, &all);
    memset(&more, 0xff, sizeof more);
    int status = sched_setaffinity(0, sizeof more, &more);
    (void)sched_getaffinity(0, sizeof now, &now);
    (void)sched_setaffinity(0, sizeof all, &all);
    return status == 0 && CPU_EQUAL(&now, &all);
}

// --- shared memory: a child stores, and this process sees it in a loop without a call -------------------------------

static long seen_in(volatile uint32_t *word)
{
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(TIMELY_WOKEN_US);
        *word = TRUE;
        (void)usleep(TIMELY_WOKEN_US);
        _exit(0);
    }
    while (*word == 0) {
    }
    return (long)*word;
}

static long polled(void *memory, long began_ns, size_t bytes)
{
    long seen = memory != MAP_FAILED ? seen_in(memory) : -1;
    long at_ns = timely_now_ns() - began_ns;
    (void)wait(NULL);
    (void)munmap(memory, bytes);
    return seen == TRUE ? at_ns / 1000 : -1;
}

static long by_mmap(struct timely_scene *scene)
{
    void *memory = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return polled(memory, scene->began_ns, PAGE_BYTES);
}

static long by_mmap64(struct timely_scene *scene)
{
    void *memory = mmap64(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return polled(memory, scene->began_ns, PAGE_BYTES);
}

static long by_mprotect(struct timely_scene *scene)
{
    void *memory = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = mprotect(memory, PAGE_BYTES, PROT_READ | PROT_WRITE);
    return status == 0 ? polled(memory, scene->began_ns, PAGE_BYTES) : timely_result(status);
}

static long by_shmat(struct timely_scene *scene)
{
    int id = shmget(KEY, PAGE_BYTES, IPC_CREAT | IPC_EXCL | 0600);
    void *memory = shmat(id, NULL, 0);
    (void)shmctl(id, IPC_RMID, NULL);
    long us = polled(memory, scene->began_ns, 0);
    (void)shmdt(memory);
    return us;
}

// --- keys: a child finds the object by its key and lets this process go on ------------------------------------------

static int semaphore_give(void *unused)
{
    struct sembuf give = {.sem_op = 1};
    (void)unused;
    (void)usleep(TIMELY_WOKEN_US);
    return semop(semget(KEY, 1, 0), &give, 1);
}

static long by_semget(struct timely_scene *scene)
{
    struct sembuf take = {.sem_op = -1};
    int id = semget(KEY, 1, IPC_CREAT | IPC_EXCL | 0600);
    if (fork() == 0) {
        _exit(semaphore_give(scene));
    }
    long result = timely_result(semop(id, &take, 1)), us = (timely_now_ns() - scene->began_ns) / 1000;
    (void)wait(NULL);
    (void)semctl(id, 0, IPC_RMID);
    return result == 0 ? us : result;
}

static int message_send(void *unused)
{
    const long message[2] = {1};
    (void)unused;
    (void)usleep(TIMELY_WOKEN_US);
    return msgsnd(msgget(KEY, 0), message, 1, 0);
}

static long by_msgget(struct timely_scene *scene)
{
    long message[2];
    int id = msgget(KEY, IPC_CREAT | IPC_EXCL | 0600);
    if (fork() == 0) {
        _exit(message_send(scene));
    }
    long result = timely_result(msgrcv(id, message, 1, 0, 0)), us = (timely_now_ns() - scene->began_ns) / 1000;
    (void)wait(NULL);
    (void)msgctl(id, IPC_RMID, NULL);
    return result == 1 ? us : result;
}

enum { READ_NS = 100 }; // the row, or the C library in it, reads a clock itself
#define STORED .at_us = 2 * TIMELY_WOKEN_US + TIMELY_END_US, .late_ns = READ_NS
// The end of the child may be seen before this process is told of it.
#define GIVEN .at_us = TIMELY_WOKEN_US, .late_ns = TIMELY_END_US * 1000 + READ_NS

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "getaddrinfo", by_getaddrinfo, 1),
    TIMELY_ROW(FUNCTION, "gethostbyname", by_gethostbyname, 1),
    TIMELY_ROW(FUNCTION, "gethostbyname_r", by_gethostbyname_r, 1),
    TIMELY_ROW(FUNCTION, "gethostid", by_gethostid, TRUE),
    TIMELY_ROW(FUNCTION, "gethostname", by_gethostname, TRUE),
    TIMELY_ROW(FUNCTION, "getifaddrs", by_getifaddrs, TRUE, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "gethostname", by_gethostname_of_room, TRUE),
    TIMELY_ROW(FUNCTION, "ioctl", by_ioctl, TRUE),
    TIMELY_ROW(FUNCTION, "ioctl", by_ioctl_of_list, TRUE),
    TIMELY_ROW(FUNCTION, "connect", by_connect, TRUE),
    TIMELY_ROW(FUNCTION, "uname", by_uname, TRUE),
    TIMELY_ROW(FUNCTION, "pthread_getaffinity_np", by_pthread_affinity, TRUE),
    TIMELY_ROW(FUNCTION, "pthread_setaffinity_np", by_pthread_affinity, TRUE),
    TIMELY_ROW(FUNCTION, "sched_getaffinity", by_sched_affinity, TRUE),
    TIMELY_ROW(FUNCTION, "sched_setaffinity", by_sched_affinity, TRUE),
    TIMELY_ROW(FUNCTION, "sched_setaffinity", by_affinity_of_all, TRUE),
    TIMELY_ROW(FUNCTION, "mmap", by_mmap, TIMELY_WOKEN_US, STORED),
    TIMELY_ROW(FUNCTION, "mmap64", by_mmap64, TIMELY_WOKEN_US, STORED),
    TIMELY_ROW(FUNCTION, "mprotect", by_mprotect, TIMELY_WOKEN_US, STORED),
    TIMELY_ROW(FUNCTION, "shmat", by_shmat, TIMELY_WOKEN_US, STORED),
    TIMELY_ROW(FUNCTION, "shmget", by_shmat, TIMELY_WOKEN_US, STORED),
    TIMELY_ROW(FUNCTION, "semget", by_semget, TIMELY_WOKEN_US, GIVEN),
    TIMELY_ROW(FUNCTION, "msgget", by_msgget, TIMELY_WOKEN_US, GIVEN),
};
TIMELY_THEME(hosts, rows);
