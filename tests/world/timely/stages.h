// What the rows with a waker wait for.
#pragma once

#include "timely.h"

extern const struct timely_stage timely_socket, timely_pipe, timely_tcp, timely_epoll;   // there is something to read
extern const struct timely_stage timely_full_socket, timely_full_pipe;                   // there is room
extern const struct timely_stage timely_reader, timely_pipe_reader;                      // all is taken
extern const struct timely_stage timely_pieces, timely_datagrams;                        // the second one is there
extern const struct timely_stage timely_listener, timely_local_listener;                 // somebody connects
extern const struct timely_stage timely_word, timely_spin_lock, timely_word_futex;       // memory
extern const struct timely_stage timely_child;                                           // a child ends with 7
extern const struct timely_stage timely_handled_signal, timely_blocked_signal;           // SIGUSR1
extern const struct timely_stage timely_flock, timely_file_lock, timely_process_lock;    // a lock is released
extern const struct timely_stage timely_semaphore, timely_message, timely_full_messages; // of System V
extern const struct timely_stage timely_queue, timely_full_queue;                        // of POSIX
extern const struct timely_stage timely_nothing;

enum { TIMELY_MANY_BYTES = 4 * 300000, TIMELY_PIECE_US = 30 };
enum { TIMELY_CHILD_STATUS = 7, TIMELY_MESSAGE_BYTES = 4096 };

struct timely_message {
    long type;
    char text[TIMELY_MESSAGE_BYTES];
};

// The time-out of an episode; NULL: none. until: the time of CLOCK_REALTIME at which it ends.
const struct timespec *timely_limit(const struct timely_scene *scene, struct timespec *time);
const struct timespec *timely_limit_until(const struct timely_scene *scene, struct timespec *time);
int timely_limit_ms(const struct timely_scene *scene); // -1: none

void timely_epoll_open(struct timely_scene *scene); // a socket, and epoll
void timely_ends_close(struct timely_scene *scene);
