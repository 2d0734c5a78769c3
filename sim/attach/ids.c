// The numbers of processes and threads that programs see. The machine's numbers differ in each run, and programs use
// them as random seeds, to order connections, and in their output. So a run has its own numbers, in the order in which
// processes and threads attach.
//
// The run's numbers begin where the machine's end, so that the two cannot be confused. A process that has ended keeps
// its number, because its parent uses it to wait for the process.
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/attach/internal.h"

uint32_t attach_ids_take(struct attach_server *server)
{
    return ATTACH_ID_BASE + ++server->ids.taken; // ATTACH_ID_BASE itself is the simulator's
}

bool attach_ids_note(struct attach_server *server, uint32_t id, pid_t pid)
{
    for (size_t i = 0; i < server->ids.count; i++) {
        if (server->ids.list[i].pid == pid) { // the machine has reused the number for another process
            server->ids.list[i].pid = server->ids.list[i].id == id ? pid : 0;
        }
        if (server->ids.list[i].id == id) { // another program of the same process
            return true;
        }
    }
    if (server->ids.count == server->ids.room) {
        size_t room = server->ids.room != 0 ? 2 * server->ids.room : 64;
        struct attach_id *ids = realloc(server->ids.list, room * sizeof *ids);
        if (ids == NULL) {
            return false;
        }
        server->ids.list = ids;
        server->ids.room = room;
    }
    server->ids.list[server->ids.count++] = (struct attach_id){id, pid};
    return true;
}

int64_t attach_ids_of(const struct attach_server *server, uint64_t pid)
{
    for (size_t i = 0; pid != 0 && i < server->ids.count; i++) {
        if ((uint64_t)server->ids.list[i].pid == pid) {
            return server->ids.list[i].id;
        }
    }
    return pid == (uint64_t)getpid() ? (int64_t)ATTACH_ID_BASE : -ESRCH;
}

int64_t attach_ids_real(const struct attach_process *process, uint64_t id)
{
    const struct attach_server *server = process->server;
    if (id == ATTACH_ID_BASE) {
        return getpid();
    }
    for (size_t i = 0; i < server->ids.count; i++) {
        if (server->ids.list[i].id == id && server->ids.list[i].pid != 0) {
            return server->ids.list[i].pid;
        }
    }
    for (unsigned i = 0; i < process->slots; i++) {
        const struct attach_thread *thread = process->threads[i];
        if (thread != NULL && thread->id == id) {
            return thread->slot->tid;
        }
    }
    return -ESRCH;
}
