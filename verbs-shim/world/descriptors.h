// Waiting for a descriptor, for the calls that read and write (descriptors.c, messages.c,
// names.c). Private to the folder.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum world_descriptor { WORLD_FILE, WORLD_PIPE, WORLD_STREAM, WORLD_OTHER };

enum world_descriptor world_descriptor_of(int fd);
// Does a call wait with these flags (MSG_DONTWAIT)?
bool world_blocks(int fd, int flags);
// option: SO_RCVTIMEO or SO_SNDTIMEO.
uint64_t world_socket_deadline(int fd, int option);
// Is it what tcasim itself has as input, output or errors? What a program writes there, no program of the run reads. Is it
// such a descriptor, and would a program take it for a terminal; is it a request of ioctl about terminals (terminals.c)?
bool world_is_users(int fd);
bool world_is_users_terminal(int fd);
bool world_terminal_request(unsigned long request);
// Waits until the call would not block. 0; -EAGAIN: the socket's timeout came first; -EINTR.
long world_ready_await(int fd, short events, int flags);
// After a call that moved data, or would have: lets others go on, or is an iteration of a loop. sent: to a socket.
long world_moved(int fd, long result);
long world_sent(int fd, long result);
// After a piece that was sent without blocking although the call blocks. true: the rest is sent as soon as there is
// room.
bool world_sent_piece(int fd, long result);
// Writes all to a pipe, in pieces.
long world_pipe_write(int fd, const char *data, size_t bytes);
