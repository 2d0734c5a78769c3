// Error codes, and messages that say what to do.
#include <stdarg.h>
#include <stdio.h>

#include "verbs-shim/libtca/note.h"

static const char *const texts[] = {
    [-tcaSuccess] = "no error",
    [-tcaErrorNotInitialized] = "the library is not initialised: call tcaInit first",
    [-tcaErrorNoBoard] = "this process has no PEACH2 board: run it on a node that has one, with its driver loaded",
    [-tcaErrorArgument] = "an argument is null, negative or contradicts another: see tcaLastMessage",
    [-tcaErrorNoMemory] = "no memory that the board can reach is left: free some with tcaFree",
    [-tcaErrorNotSupported] = "this node has no GPU: use tcaMemoryCPU",
    [-tcaErrorHandle] = "not a handle: make it with tcaCreateHandle and pass all its bytes on unchanged",
    [-tcaErrorNotTcaMemory] =
        "the memory does not come from tcaMalloc (GPU memory: or cudaMalloc): the board reaches no other",
    [-tcaErrorFreed] = "the memory was freed: make a new handle and descriptor after tcaMalloc",
    [-tcaErrorRange] = "beyond the memory of the handle: check offsets, sizes and pitches",
    [-tcaErrorAlignment] = "addresses must be multiples of 4, and source and destination agree in their low 4 bits",
    [-tcaErrorSize] = "sizes, widths and pitches must be multiples of 4, and more than 0 bytes be copied",
    [-tcaErrorSlot] = "no such notification slot: they are 0 to 31",
    [-tcaErrorChannel] = "no such DMA channel: they are 0 to 3",
    [-tcaErrorBusy] = "its DMA still runs: call tcaWaitDMAC first",
    [-tcaErrorNotSet] = "nothing to start: add copies with tcaDescSetMemcpy and call tcaDescSet first",
    [-tcaErrorBoardMemory] = "the board's memory is full: free descriptors, or leave out the internal flags",
    [-tcaErrorNodes] = "a sub-cluster has at most 16 nodes, and a list as many handles as there are ranks",
    [-tcaErrorComm] = "the ranks could not exchange their handles: give the library a tcaComm that works",
    [-tcaErrorNotLocal] = "the memory lies in another node: this call takes memory of the own one",
    [-tcaErrorDMA] = "the board refused or could not finish the DMA: see tcaLastMessage",
    [-tcaErrorIO] = "the board does not answer",
    [-tcaErrorTimeout] = "it did not come in time: check the sender and the cables, or wait longer with tcaSetTimeout",
    [-tcaErrorWindow] = "the fabric reaches the first two GPUs of a node, and 8 GiB of the window of each",
    [-tcaErrorInUse] = "another process of the node has the board: one at a time uses it",
};

const char *tcaStrError(int error)
{
    unsigned index = error > 0 ? UINT32_MAX : 0u - (unsigned)error;
    return index < sizeof texts / sizeof texts[0] ? texts[index] : "unknown error";
}

const char *tcaLastMessage(void)
{
    const struct tca_context *context = tca_context_current();
    return context != NULL ? context->message : tcaStrError(tcaErrorNotInitialized);
}

int tca_refuse(struct tca_context *context, enum tcaError error, const char *format, ...)
{
    if (context != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(context->message, sizeof context->message, format, args);
        va_end(args);
        tca_note_refusal(context);
    }
    return error;
}
