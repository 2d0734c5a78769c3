// Whom the simulator lets in, and the numbers that it gives.
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/test.h"
#include "tests/support/script.h"

// --- connections that say nothing ------------------------------------------------------------------------------------

static struct {
    struct sockaddr_un address;
    socklen_t bytes;
    int listener;
    pid_t child; // has connected
} place;

static int connection_open(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, (const struct sockaddr *)&place.address, place.bytes), 0);
    return fd;
}

static pid_t child_connect(void)
{
    int ready[2];
    char byte = 0;
    EXPECT_EQ(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)connection_open();
        (void)write(ready[1], &byte, 1);
        for (;;) {
            (void)pause();
        }
    }
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static bool is_closed(int connection)
{
    char byte;
    return recv(connection, &byte, 1, MSG_DONTWAIT) == 0;
}

static void listener_fill(struct attach_thread *thread)
{
    struct attach_server *server = thread->process->server;
    struct attach_listener *listener = &server->listener;
    int others[ATTACH_EARLY_MAX];
    listener->fd = place.listener;
    thread->announces = (uint64_t)place.child;
    attach_accept(server);
    EXPECT_EQ(listener->early_count, 1);
    for (unsigned i = 0; i < ATTACH_EARLY_MAX; i++) {
        others[i] = connection_open();
        attach_accept(server);
    }
    EXPECT_EQ(listener->early_count, ATTACH_EARLY_MAX);
    EXPECT_EQ(listener->early[0].reach.pid, place.child);
    EXPECT_TRUE(is_closed(others[0]));
    EXPECT_FALSE(is_closed(others[1]));
    while (listener->early_count > 0) {
        close(listener->early[--listener->early_count].socket);
        close(others[listener->early_count]);
    }
    listener->fd = -1;
}

TEST(AttachedListener, KeepsAChildThatIsAboutToBeAnnouncedHoweverManyOthersConnect)
{
    place.address.sun_family = AF_UNIX; // the kernel chooses a name
    place.bytes = sizeof place.address;
    place.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ASSERT_EQ(bind(place.listener, (const struct sockaddr *)&place.address, sizeof(sa_family_t)), 0);
    ASSERT_EQ(getsockname(place.listener, (struct sockaddr *)&place.address, &place.bytes), 0);
    ASSERT_EQ(listen(place.listener, 8), 0);
    place.child = child_connect();
    script_run(&(struct script){.first = listener_fill});
    (void)kill(place.child, SIGKILL);
    (void)waitpid(place.child, NULL, 0);
    close(place.listener);
}

// --- numbers ---------------------------------------------------------------------------------------------------------

static int64_t number_of(struct attach_thread *thread, uint64_t number, bool of_run)
{
    return script_request(thread, ATTACH_OP_ID, &(union attach_args){.id = {.number = number, .of_run = of_run}});
}

static void numbers_ask(struct attach_thread *thread)
{
    EXPECT_EQ(number_of(thread, (uint64_t)getpid(), false), ATTACH_ID_BASE);
    EXPECT_EQ(number_of(thread, ATTACH_ID_BASE, true), getpid());
    EXPECT_EQ(number_of(thread, (uint64_t)thread->process->reach.pid, false), thread->process->id);
    EXPECT_EQ(number_of(thread, thread->process->id, true), thread->process->reach.pid);
    EXPECT_EQ(number_of(thread, 1, false), -ESRCH); // of another process of the machine
}

// The simulator is the parent of the programs that a run starts.
TEST(AttachedNumbers, TheSimulatorHasTheFirstNumberOfTheRun)
{
    script_run(&(struct script){.first = numbers_ask});
}
