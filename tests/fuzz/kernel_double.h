// The calls of the kernel that librdmacm makes, in memory and in a time of their own: local sockets, event counters,
// timers, epoll, and locks of files. The linker puts them in the place of the C library's functions
// (-Wl,--wrap, CMakeLists.txt); descriptors that are not theirs go on to the C library.
//
// A case costs no system call and depends on nothing but its input. A thread that waits for what cannot come is a
// finding. Left out: blocking sends, descriptors of children, messages with descriptors.
#pragma once

// Nothing is open, and no name is taken. What the case before has left open is a finding.
void kernel_double_begin(void);
