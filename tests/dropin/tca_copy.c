// A program for HA-PACS/TCA: the board copies inside the node's memory and notifies the node.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tca.h"

#define BYTES 4096

static void check(int error, const char *what)
{
    if (error != tcaSuccess) {
        (void)fprintf(stderr, "tca_copy: %s: %s\n", what, tcaStrError(error));
        exit(1);
    }
}

int main(void)
{
    void *from, *to;
    tcaHandle source, destination;
    check(tcaInit(), "tcaInit");
    check(tcaMalloc(&from, BYTES, tcaMemoryCPU), "tcaMalloc");
    check(tcaMalloc(&to, BYTES, tcaMemoryCPU), "tcaMalloc");
    check(tcaCreateHandle(&source, from, BYTES, tcaMemoryCPU), "tcaCreateHandle");
    check(tcaCreateHandle(&destination, to, BYTES, tcaMemoryCPU), "tcaCreateHandle");
    memset(from, 0x6b, BYTES);
    tcaDesc *desc = tcaDescNew();
    check(tcaDescSetMemcpy(desc, &destination, 0, &source, 0, BYTES, tcaDMANotify, 0, 7), "tcaDescSetMemcpy");
    check(tcaDescSet(desc, 0), "tcaDescSet");
    check(tcaStartDMADesc(0), "tcaStartDMADesc");
    check(tcaWaitDMARecvDesc(&destination, 0, 7), "tcaWaitDMARecvDesc");
    check(tcaWaitDMAC(0), "tcaWaitDMAC");
    check(tcaDescFree(desc), "tcaDescFree");
    bool same = memcmp(from, to, BYTES) == 0;
    check(tcaFree(from, tcaMemoryCPU), "tcaFree");
    check(tcaFree(to, tcaMemoryCPU), "tcaFree");
    return same ? 0 : 1;
}
