// libibverbs in an attached process: its lock in simulated time, and how its threads wait.
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doubles.h"
#include "tests/shim/test.h"

static struct backend_process process;

static void begin(bool board)
{
    static const struct backend_ops ops;
    static int any_board;
    doubles_reset();
    process.backend.ops = &ops;
    process.board = board ? (struct peach2_board_handle *)(void *)&any_board : NULL;
    ibverbs_process_begin(&process);
    doubles.device_count = 0;
}

// --- the lock -------------------------------------------------------------------------------------------------------

static void give_up(void)
{
    pthread_exit(NULL);
}

static void *lock_try(void *result)
{
    doubles.outside->lock();
    *(bool *)result = true;
    doubles.outside->unlock();
    return NULL;
}

// Can another thread take the lock without waiting?
static bool is_free(void)
{
    pthread_t thread;
    bool got = false;
    doubles.waiting = give_up;
    if (pthread_create(&thread, NULL, lock_try, &got) == 0) {
        (void)pthread_join(thread, NULL);
    }
    doubles.waiting = NULL;
    return got;
}

TEST(DropinLock, IsTakenUntilItIsReleasedAsOftenAsItWasTaken)
{
    begin(false);
    EXPECT_TRUE(is_free());
    doubles.outside->lock();
    doubles.outside->lock();
    EXPECT_FALSE(is_free());
    doubles.outside->unlock();
    EXPECT_FALSE(is_free());
    doubles.outside->unlock();
    EXPECT_TRUE(is_free());
}

static bool free_in_wait;

static void look(void)
{
    free_in_wait = is_free();
}

TEST(DropinLock, IsFreeWhileItsHolderWaitsForAnEventAndTakenAgainUntilItIsReleased)
{
    for (unsigned depth = 1; depth <= 2; depth++) {
        TEST_TRACE("taken %u times", depth);
        begin(false);
        for (unsigned i = 0; i < depth; i++) {
            doubles.outside->lock();
        }
        free_in_wait = false;
        doubles.waiting = look;
        doubles.outside->wait();
        doubles.waiting = NULL;
        EXPECT_TRUE(free_in_wait);
        EXPECT_FALSE(is_free());
        for (unsigned i = 0; i < depth; i++) {
            doubles.outside->unlock();
        }
        EXPECT_TRUE(is_free());
        EXPECT_EQ(doubles.left, doubles.entered - 1 /* the thread that gave up */);
    }
}

// A release is a possible wake-up only if somebody has tried: others that sleep would look in vain.
TEST(DropinLock, WakesOthersWhenItIsReleasedIfSomebodyHasTriedToTakeIt)
{
    begin(false);
    doubles.outside->lock();
    doubles.outside->unlock();
    EXPECT_EQ(doubles.woken, 0);
    doubles.outside->lock();
    EXPECT_FALSE(is_free());
    doubles.outside->unlock();
    EXPECT_EQ(doubles.woken, 1);
    doubles.outside->lock();
    doubles.outside->unlock();
    EXPECT_EQ(doubles.woken, 1);
}

static pthread_barrier_t barrier;

static void *hold(void *arg)
{
    doubles.outside->lock();
    (void)pthread_barrier_wait(&barrier);
    (void)pthread_barrier_wait(&barrier); // the other thread has forked
    doubles.outside->unlock();
    return arg;
}

static void leave(void)
{
    _exit(1);
}

TEST(DropinLock, IsFreeInAChildWhateverThreadOfItsParentHadItAndTheDevicesAreTheParents)
{
    pthread_t thread;
    int status = -1;
    begin(false);
    ASSERT_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
    ASSERT_EQ(pthread_create(&thread, NULL, hold, NULL), 0);
    (void)pthread_barrier_wait(&barrier);
    doubles.waiting = leave;
    pid_t child = fork();
    if (child == 0) {
        doubles.outside->lock();                                                 // does not wait
        _exit(process.libraries[BACKEND_LIBRARY_IBVERBS].state == NULL ? 0 : 2); // it opens devices of its own
    }
    doubles.waiting = NULL;
    (void)pthread_barrier_wait(&barrier);
    (void)pthread_join(thread, NULL);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    (void)pthread_barrier_destroy(&barrier);
}

// --- waiting --------------------------------------------------------------------------------------------------------

TEST(DropinWait, ForAnEventIsEndedByADeviceAndByOtherThreads)
{
    begin(false);
    doubles.outside->wait();
    EXPECT_EQ(doubles.waits, 1);
    EXPECT_EQ(doubles.wait_flags, ATTACH_WAIT_EVENTS | ATTACH_WAIT_OUTSIDE);
}

// The library of a board has work when a peer writes a request; an HCA's when there is an event.
TEST(DropinWait, OfAProgramWithABoardServesWhatPeersWrite)
{
    begin(true);
    doubles.outside->opened();
    EXPECT_TRUE(doubles.progress->on_writes);
    begin(false);
    doubles.outside->opened();
    EXPECT_FALSE(doubles.progress->on_writes);
}

// A thread that waits for the lock, or that another one has, must not enter the library to work for it.
TEST(DropinWait, HasNoWorkForItsLibraryWhileTheLockIsTaken)
{
    begin(true);
    doubles.outside->opened();
    doubles.due_ps = 500;
    EXPECT_EQ(doubles.progress->due_ps(false, false), 500);
    EXPECT_EQ(doubles.progress->due_ps(true, false), 0);
    doubles.outside->lock();
    EXPECT_EQ(doubles.progress->due_ps(true, false), ATTACH_NEVER_PS);
    doubles.outside->unlock();
    EXPECT_EQ(doubles.progress->due_ps(true, false), 0);
}
