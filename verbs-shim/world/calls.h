// The system calls in which a program waits for somebody, or lets somebody go on, one row each: its number, the
// function that carries it out in simulated time, and when that is so (CALL_* of trap.c). The functions of the C
// library that programs call most come here by their names, as that is cheaper than a trap; everything else by the
// trap.
//
// A function takes the six arguments as the kernel does, with the machine's numbers of processes, and returns what the
// kernel would: -errno where it fails.
//
// Leaves out: io_uring, priority inheritance and futex_waitv, which are refused (ENOSYS).
#pragma once

#define WORLD_CALLS(C)                                                                                                 \
    C(futex, world_call_futex, CALL_ALWAYS)                                                                            \
    C(read, world_call_read, CALL_BUT_OF_LINKER)                                                                       \
    C(readv, world_call_readv, CALL_ALWAYS)                                                                            \
    C(write, world_call_write, CALL_ALWAYS)                                                                            \
    C(writev, world_call_writev, CALL_BUT_TO_STDERR)                                                                   \
    C(recvfrom, world_call_recvfrom, CALL_ALWAYS)                                                                      \
    C(recvmsg, world_call_recvmsg, CALL_ALWAYS)                                                                        \
    C(recvmmsg, world_call_recvmmsg, CALL_ALWAYS)                                                                      \
    C(sendto, world_call_sendto, CALL_ALWAYS)                                                                          \
    C(sendmsg, world_call_sendmsg, CALL_ALWAYS)                                                                        \
    C(sendmmsg, world_call_sendmmsg, CALL_ALWAYS)                                                                      \
    C(accept, world_call_accept, CALL_ALWAYS)                                                                          \
    C(accept4, world_call_accept4, CALL_ALWAYS)                                                                        \
    C(poll, world_call_poll, CALL_ALWAYS)                                                                              \
    C(ppoll, world_call_ppoll, CALL_ALWAYS)                                                                            \
    C(select, world_call_select, CALL_ALWAYS)                                                                          \
    C(pselect6, world_call_pselect, CALL_ALWAYS)                                                                       \
    C(epoll_wait, world_call_epoll_wait, CALL_ALWAYS)                                                                  \
    C(epoll_pwait, world_call_epoll_pwait, CALL_ALWAYS)                                                                \
    C(epoll_pwait2, world_call_epoll_pwait2, CALL_ALWAYS)                                                              \
    C(nanosleep, world_call_nanosleep, CALL_ALWAYS)                                                                    \
    C(clock_nanosleep, world_call_clock_nanosleep, CALL_ALWAYS)                                                        \
    C(pause, world_call_pause, CALL_ALWAYS)                                                                            \
    C(rt_sigsuspend, world_call_sigsuspend, CALL_ALWAYS)                                                               \
    C(rt_sigtimedwait, world_call_sigtimedwait, CALL_ALWAYS)                                                           \
    C(wait4, world_call_wait4, CALL_ALWAYS)                                                                            \
    C(waitid, world_call_waitid, CALL_ALWAYS)                                                                          \
    C(flock, world_call_flock, CALL_ALWAYS)                                                                            \
    C(fcntl, world_call_fcntl, CALL_TO_LOCK)                                                                           \
    C(semop, world_call_semop, CALL_ALWAYS)                                                                            \
    C(semtimedop, world_call_semtimedop, CALL_ALWAYS)                                                                  \
    C(msgsnd, world_call_msgsnd, CALL_ALWAYS)                                                                          \
    C(msgrcv, world_call_msgrcv, CALL_ALWAYS)                                                                          \
    C(mq_timedsend, world_call_mq_send, CALL_ALWAYS)                                                                   \
    C(mq_timedreceive, world_call_mq_receive, CALL_ALWAYS)                                                             \
    C(io_uring_setup, world_call_refused, CALL_ALWAYS)                                                                 \
    C(futex_waitv, world_call_refused, CALL_ALWAYS)

#define DECLARE(name, function, when) long function(const long *arguments);
WORLD_CALLS(DECLARE)
#undef DECLARE

// As the C library's functions return it, with errno.
long world_result(long result);

// What a wrapper by name hands on: WORLD_CALL(world_call_read, fd, buffer, bytes).
#define WORLD_CALL(function, ...)                                                                                      \
    (attach_window_close(), world_result(function((const long[6]){WORLD_ARGUMENTS(__VA_ARGS__, 0, 0, 0, 0, 0)})))
#define WORLD_ARGUMENTS(a, b, c, d, e, f, ...) (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)
