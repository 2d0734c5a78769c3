// What a program reaches by its sockets: the nodes of the run, and nothing else.
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

// Why the address cannot be reached, as an errno value; 0: it can. Notes that it was asked for (asked.c).
int world_unreachable(const struct sockaddr *address, socklen_t bytes);
// Replaces "any address" and "localhost" by the node's own: a program of another node may use the same port. false:
// another address.
bool world_address_own(const struct sockaddr *address, socklen_t bytes, struct sockaddr_storage *own_out);
